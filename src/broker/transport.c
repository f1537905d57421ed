/* SPDX-License-Identifier: MIT */
/* A request is executed when it starts; its answer waits until the store has settled, at least
 * until the next turn of the loop. */
#include "config.h"

#include "tec/broker/transport.h"

#include "tec/base/clock.h"
#include "tec/base/mem.h"
#include "tec/base/secret.h"
#include "tec/broker/admin.h"
#include "tec/loop/loop.h"

/* The implementation's state; `t` must be first, so that both pointers are equal. */
struct transport {
	struct kbs_transport t; /* first */
	struct broker_store *store;
};

/* An executed request whose answer waits for the store. */
struct waiting {
	struct op op; /* first */
	struct kbs_call *call;
	struct broker_answer answer;
	struct op_scope ops; /* of the store's settle op */
	struct defer now;    /* set if the store has nothing to settle */
};

/* The body is wiped: a GET of reference values is harmless, but the type does not tell. */
static void waiting_free(struct waiting *w)
{
	op_scope_cancel(&w->ops);
	defer_cancel(&w->now);
	secret_wipe(w->answer.body.data, w->answer.body.len);
	broker_answer_fini(&w->answer);
	free(w);
}

static void waiting_abort(struct op *op)
{
	waiting_free((struct waiting *)op);
}

/* If the write was not stored, the answer is dropped and the caller gets the error. */
static void on_settled(void *arg, const struct err *err)
{
	struct waiting *w = arg;
	const struct kbs_answer a = {.status = err_is_set(err) ? 0 : w->answer.status,
		.body = strbuf_str(&w->answer.body),
		.body_len = w->answer.body.len};

	/* The op ends before the callback, which may free the transport. */
	op_finish(&w->op);
	kbs_call_answer(w->call, err, &a);
	waiting_free(w);
}

static void on_now(void *arg)
{
	on_settled(arg, &(const struct err)ERR_INIT);
}

/* The answer never arrives before this returns (house rule for ops), hence the defer. */
static void start(struct kbs_transport *t, struct op_scope *scope, struct kbs_request *req,
	struct kbs_call *call)
{
	struct transport *b = (struct transport *)t;
	const struct broker_admin admin = {.store = b->store};
	const struct broker_request r = {.method = req->method,
		.target = req->path,
		.body = req->body.data,
		.len = req->body.len};
	struct waiting *w = xcalloc(1, sizeof(*w));

	w->call = call;
	op_begin(&w->op, scope, waiting_abort);
	/* Executed at once, so that requests take effect in the order of their start. */
	broker_admin(&admin, &r, clock_wall_s(), &w->answer);
	if (!broker_store_settle(b->store, &w->ops, on_settled, w))
		defer_call(&w->now, t->loop, on_now, w);
}

static void transport_free(struct kbs_transport *t)
{
	free(t);
}

/* No `renew`: in-process requests carry no token. */
struct kbs_transport *broker_transport_new(struct loop *l, struct broker_store *store)
{
	static const struct kbs_transport_ops ops = {.start = start, .free = transport_free};
	struct transport *b = xcalloc(1, sizeof(*b));

	b->t.ops = &ops;
	b->t.loop = l;
	b->store = store;
	return &b->t;
}
