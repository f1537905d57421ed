/* SPDX-License-Identifier: MIT */
/*
 * What all implementations of the seam have in common: the lease check, the counter, a second
 * try with a new token, and the meaning of an answer. A status alone is never interpreted:
 * Trustee answers 401 for nearly everything, and an HTML page with status 200 comes from a
 * proxy.
 */
#include "config.h"

#include "tec/kbs/transport.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/metric.h"
#include "tec/base/str.h"
#include "tec/loop/loop.h"

#define ERROR_BODY_MAX 4096 /* Trustee's are about 150 bytes */

static struct metric requests = METRIC_COUNTER_INIT("tec_trustee_requests_total",
	"Requests to Trustee's admin API by verb and HTTP status (error: no answer, denied: not sent without the lease).",
	"verb", "code");

/* A request in flight, possibly its second try or a following step. */
struct kbs_call {
	struct op op; /* first */
	struct kbs_transport *t;
	struct kbs_request req; /* its path and body are owned */
	struct op_scope inner;  /* of the implementation's op */
	struct defer held_back;
	bool renewed; /* already repeated with a new token */
	kbs_done_fn done;
	void *arg;
};

static void call_free(struct kbs_call *k)
{
	op_scope_cancel(&k->inner);
	defer_cancel(&k->held_back);
	body_fini(&k->req.body);
	free((char *)(uintptr_t)k->req.path);
	free(k);
}

/* Runs when the owner cancels the op: done is not called. */
static void call_abort(struct op *op)
{
	struct kbs_call *k = (struct kbs_call *)op;

	k->t->n_calls--;
	call_free(k);
}

/* The op is finished before done, which may cancel siblings or free the owner. */
static void call_end(struct kbs_call *k, const struct err *err, const struct kbs_answer *answer)
{
	op_finish(&k->op);
	k->t->n_calls--;
	k->done(k->arg, err, answer); /* may free the transport */
	call_free(k);
}

/* Deferred failure of a request that was never sent: done must not run before start returned. */
static void on_held_back(void *arg)
{
	struct kbs_call *k = arg;
	struct err err = ERR_INIT;

	err_set_lease_lost(&err);
	metric_add(&requests, k->req.verb, "denied", 1);
	call_end(k, &err, &(const struct kbs_answer){.type = "", .body = ""});
}

/* The lease is checked before each request of a call, also before its repetition. */
static void call_send(struct kbs_call *k)
{
	if (k->t->may_send && !k->t->may_send(k->t->may_send_arg))
		defer_call(&k->held_back, k->t->loop, on_held_back, k);
	else
		k->t->ops->start(k->t, &k->inner, &k->req, k);
}

/* Repeat once with a new token if it was refused, continue with req.next, or finish the call. */
void kbs_call_answer(struct kbs_call *k, const struct err *err, const struct kbs_answer *answer)
{
	struct kbs_answer a = *answer;
	char type[KBS_TYPE_MAX] = "", code[12] = "error";
	struct err why = ERR_INIT;

	a.type = type;
	if (!err_is_set(err)) {
		(void)snprintf(code, sizeof(code), "%d", a.status);
		if (a.status != 200)
			kbs_answer_type(a.body, a.body_len, type);
	}
	if (str_starts(type, "AdminAuth") && k->t->ops->renew && !k->renewed) {
		k->renewed = true;
		k->t->ops->renew(k->t);
		/* The implementation hands the body back, so that it need not be copied for a
		 * second try. */
		if (a.sent)
			k->req.body = body_move(a.sent);
		call_send(k);
		return;
	}
	metric_add(&requests, k->req.verb, code, 1);
	(void)!kbs_answer_check(err, &a, k->req.reads_value, &why);
	body_fini(&k->req.body); /* some implementations only borrow it */
	if (k->req.next && k->req.next(&k->req, &why, &a)) {
		k->renewed = false;
		call_send(k);
		return;
	}
	call_end(k, &why, &a);
}

/* The body moves into the call; the caller's request no longer owns it. */
struct op *kbs_transport_start(struct kbs_transport *t, struct op_scope *scope,
	struct kbs_request *take_req, kbs_done_fn done, void *arg)
{
	struct kbs_call *k = xcalloc(1, sizeof(*k));

	k->t = t;
	k->req = *take_req;
	take_req->body = (struct body)BODY_INIT;
	k->req.path = xstrdup(take_req->path);
	k->req.verb = take_req->verb ? take_req->verb : "other";
	k->done = done;
	k->arg = arg;
	t->n_calls++;
	op_begin(&k->op, scope, call_abort);
	call_send(k);
	return &k->op;
}

void kbs_transport_free(struct kbs_transport *t)
{
	if (!t)
		return;
	assert(t->n_calls == 0);
	t->ops->free(t);
}

/* ---- what an answer means */

/* Only a plain word is accepted, because the type is logged and shown in status. */
void kbs_answer_type(const char *body, size_t len, char out[KBS_TYPE_MAX])
{
	static const struct json_limits limits = {
		.bytes = ERROR_BODY_MAX, .depth = 4, .tokens = 32};
	cleanup_json struct json_object *o = NULL;
	struct err ignored = ERR_INIT;
	const char *type, *last;
	size_t n = 0;

	out[0] = '\0';
	if (len == 0 || len > ERROR_BODY_MAX || body[0] != '{')
		return;
	o = json_parse(body, len, &limits, &ignored);
	type = o ? json_get_str(o, "type") : NULL;
	if (!type)
		return;
	last = strrchr(type, '/');
	last = last ? last + 1 : type;
	while ((last[n] >= 'A' && last[n] <= 'Z') || (last[n] >= 'a' && last[n] <= 'z'))
		n++;
	if (last[n] == '\0' && n < KBS_TYPE_MAX)
		memcpy(out, last, n + 1);
}

int kbs_answer_check(const struct err *transport_err, const struct kbs_answer *answer,
	bool reads_value, struct err *err)
{
	enum err_kind kind = ERR_TRANSIENT;
	size_t blank;

	if (transport_err && err_is_set(transport_err)) {
		*err = *transport_err;
		/* Not an HTTP answer: it does not prove that the request was invalid. */
		if (err->kind == ERR_INVALID)
			err->kind = ERR_TRANSIENT;
		return -1;
	}
	/* A proxy's login or error page may have status 200. */
	blank = answer->body_len ? strspn(answer->body, " \t\r\n") : 0;
	if (answer->status == 200 && reads_value && blank >= answer->body_len)
		return err_set_http(
			err, ERR_TRANSIENT, 200, "received an empty body instead of a value");
	if (answer->status == 200 && (blank >= answer->body_len || answer->body[blank] != '<'))
		return 0;
	if (answer->status == 200)
		return err_set_http(err, ERR_TRANSIENT, 200,
			"received an HTML page instead of Trustee's answer");
	/* What a person must fix is DENIED or INVALID; anything else may pass and is retried. */
	if (str_eq(answer->type, "AdminAuthAccess") ||
		str_eq(answer->type, "AdminAuthInitialization"))
		kind = ERR_DENIED;
	else if (str_eq(answer->type, "ParsePolicyError") || answer->status == 413)
		kind = ERR_INVALID;
	else if (reads_value && str_eq(answer->type, "RvpsError"))
		kind = ERR_NOT_FOUND;
	err_set_http(err, kind, answer->status, "HTTP %d%s%s", answer->status,
		*answer->type ? " " : "", answer->type);
	err->retry_after_ms = answer->retry_after_ms;
	return -1;
}
