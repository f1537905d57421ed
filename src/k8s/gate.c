/* SPDX-License-Identifier: MIT */
/*
 * An exchange that passes is handed to the other transport unchanged, at no further cost: its
 * memory has room for that transport's part from the start.
 */
#include "config.h"

#include "tec/k8s/gate.h"

#include <string.h>

#include "tec/base/mem.h"

struct gate {
	struct k8s_transport t;   /* first */
	struct k8s_transport *to; /* borrowed */
	bool (*may_write)(void *arg);
	void *arg;
};

/* GET covers lists and watches, too. The check is made once, when the request starts. */
static void gate_start(struct k8s_exchange *x)
{
	struct gate *g = (struct gate *)x->t;

	x->req.yields = true;
	if (!g->may_write || strcmp(x->req.method, "GET") == 0 || g->may_write(g->arg)) {
		x->t = g->to;
		g->to->ops->start(x);
		return;
	}
	(void)err_set_lease_lost(&x->err);
	x->code = "denied";
	k8s_transport_fail(x);
}

static void gate_stop(struct k8s_exchange *x)
{
	/* a refused exchange holds nothing */
}

static void gate_free(struct k8s_transport *t)
{
	free(t);
}

static const struct k8s_transport_ops gate_ops = {gate_start, gate_stop, gate_free};

struct k8s_transport *k8s_gate_new(
	struct k8s_transport *to, bool (*may_write)(void *arg), void *arg)
{
	struct gate *g = xcalloc(1, sizeof(*g));

	g->t = (struct k8s_transport){&gate_ops, to->loop, to->exchange_size};
	g->to = to;
	g->may_write = may_write;
	g->arg = arg;
	return &g->t;
}
