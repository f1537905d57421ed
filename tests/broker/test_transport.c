/* SPDX-License-Identifier: MIT */
/* The operator's seam to the broker in its own process. */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "fake/broker.h"
#include "tec/base/clock.h"
#include "tec/base/mem.h"
#include "tec/base/metric.h"
#include "tec/broker/transport.h"
#include "tec/loop/loop.h"

static struct loop *l;
static struct broker_store *store;
static struct kbs_transport *t;
static struct op_scope ops;
static unsigned n_done;
static int status;
static char type[64], body[512];
static struct err result;

static void up(void)
{
	clock_fake_start(1000000, 1767323045);
	l = loop_new();
	store = broker_store_memory_new();
	t = broker_transport_new(l, store);
}

static void down(void)
{
	op_scope_cancel(&ops);
	kbs_transport_free(t);
	broker_store_free(store);
	loop_free(l);
	metric_reset_all();
}

TestSuite(broker_transport, .init = up, .fini = down);

static void on_done(void *arg, const struct err *err, const struct kbs_answer *a)
{
	n_done++;
	result = *err;
	status = a->status;
	snprintf(type, sizeof(type), "%s", a->type);
	snprintf(body, sizeof(body), "%.*s", (int)a->body_len, a->body);
}

static void ask(const char *method, const char *path, const char *text)
{
	struct kbs_request req = {.method = method, .path = path, .verb = "test"};

	if (text)
		req.body = body_of_text(xstrdup(text));
	kbs_transport_start(t, &ops, &req, on_done, NULL);
}

Test(broker_transport, answer_comes_in_a_later_turn_and_without_a_token)
{
	ask("POST", "/kbs/v0/resource/default/a/root", "a key");
	cr_expect_eq(n_done, 0);
	loop_drain(l);
	cr_expect_eq(n_done, 1);
	cr_expect_eq(status, 200);
	cr_expect_not(err_is_set(&result));
	ask("DELETE", "/kbs/v0/resource/default/a/root", NULL);
	loop_drain(l);
	cr_expect_eq(status, 200);
	ask("DELETE", "/kbs/v0/resource/default/a/root", NULL);
	loop_drain(l);
	cr_expect_eq(status, 404);
	cr_expect_str_eq(type, "ResourceNotFound");
	cr_expect(err_is_set(&result));
}

Test(broker_transport, cancelled_request_is_not_answered)
{
	ask("POST", "/kbs/v0/resource/default/a/root", "a key");
	op_scope_cancel(&ops);
	loop_drain(l);
	cr_expect_eq(n_done, 0);
}

/* ---- a store that is durable later, or never */

static broker_store_settled_fn settled;
static void *settled_arg;
static struct op *settling;

static void settle_abort(struct op *op)
{
	free(op);
	settling = NULL;
}

static struct op *settle(
	struct broker_store *s, struct op_scope *scope, broker_store_settled_fn fn, void *arg)
{
	settling = xcalloc(1, sizeof(*settling));
	settled = fn;
	settled_arg = arg;
	op_begin(settling, scope, settle_abort);
	return settling;
}

static int set(struct broker_store *s, enum broker_store_ns ns, const char *key, const void *data,
	size_t len, struct err *err)
{
	return 0;
}

static void end_settling(const struct err *err)
{
	op_finish(settling);
	settled(settled_arg, err);
	free(settling);
	settling = NULL;
}

Test(broker_transport, answer_waits_until_it_is_durable)
{
	static const struct broker_store_ops slow_ops = {.set = set, .settle = settle};
	struct broker_store slow = {&slow_ops};
	struct kbs_transport *mine = t;
	struct err failed = ERR_INIT;

	err_set(&failed, ERR_TRANSIENT, "the disk is full");
	t = broker_transport_new(l, &slow);
	ask("POST", "/kbs/v0/resource/default/a/root", "a key");
	loop_drain(l);
	cr_expect_eq(n_done, 0);
	end_settling(&(const struct err)ERR_INIT);
	cr_expect_eq(n_done, 1);
	cr_expect_eq(status, 200);
	ask("POST", "/kbs/v0/resource/default/a/root", "a key");
	loop_drain(l);
	end_settling(&failed);
	cr_expect_eq(n_done, 2);
	cr_expect_eq(status, 0);
	cr_expect_eq(result.kind, ERR_TRANSIENT);
	ask("POST", "/kbs/v0/resource/default/a/root", "a key");
	op_scope_cancel(&ops);
	cr_expect_null(settling);
	kbs_transport_free(t);
	t = mine;
}
