/* SPDX-License-Identifier: MIT */
/*
 * What every maker of the seam has in common: the gate of the lease, the counter, and what an
 * answer means. A call here is an op of its own around the maker's, so that a refused request and a
 * sent one look alike to the caller. Refuses to take a status for a meaning: Trustee answers 401
 * for nearly everything, and a page of HTML with 200 comes from something in between.
 */
#include "config.h"

#include "tec/kbs/transport.h"

#include <stdio.h>
#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/metric.h"
#include "tec/base/str.h"
#include "tec/loop/loop.h"

#define ERROR_BODY_MAX 4096 /* Trustee's are about 150 bytes */

static struct metric requests = METRIC_COUNTER_INIT("tec_trustee_requests_total",
	"Requests to Trustee's admin API by verb and HTTP code (error: no answer, denied: not sent).",
	"verb", "code");

struct call {
	struct op op;          /* first */
	struct op_scope inner; /* the maker's op */
	struct defer denied;
	const char *verb; /* static */
	kbs_answer_fn done;
	void *arg;
};

static void call_abort(struct op *op)
{
	struct call *k = (struct call *)op;

	op_scope_cancel(&k->inner);
	defer_cancel(&k->denied);
	free(k);
}

static void call_end(
	struct call *k, const struct err *err, const struct kbs_answer *answer, const char *code)
{
	metric_add(&requests, k->verb, code, 1);
	op_finish(&k->op);
	k->done(k->arg, err, answer);
	free(k);
}

static void on_denied(void *arg)
{
	struct err err = ERR_INIT;

	err_set(&err, ERR_CONFLICT, "not sent: this process no longer holds the lease");
	call_end(arg, &err, &(const struct kbs_answer){.type = "", .body = ""}, "denied");
}

static void on_answer(void *arg, const struct err *err, const struct kbs_answer *answer)
{
	char code[12] = "error";

	if (!err_is_set(err))
		(void)snprintf(code, sizeof(code), "%d", answer->status);
	call_end(arg, err, answer, code);
}

struct op *kbs_transport_start(struct kbs_transport *t, struct op_scope *scope,
	const struct kbs_request *req, kbs_answer_fn done, void *arg)
{
	struct call *k = xcalloc(1, sizeof(*k));

	k->verb = req->verb ? req->verb : "other";
	k->done = done;
	k->arg = arg;
	op_begin(&k->op, scope, call_abort);
	if (t->may_send && !t->may_send(t->may_send_arg))
		defer_call(&k->denied, t->loop, on_denied, k);
	else
		(void)t->ops->start(t, &k->inner, req, on_answer, k);
	return &k->op;
}

void kbs_transport_free(struct kbs_transport *t)
{
	if (t)
		t->ops->free(t);
}

/* ---- what an answer means */

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

static enum err_kind kind_of(const struct kbs_answer *a, bool reads_value)
{
	if (str_eq(a->type, "AdminAuthAccess") || str_eq(a->type, "AdminAuthInitialization"))
		return ERR_DENIED;
	if (str_eq(a->type, "ParsePolicyError") || a->status == 413)
		return ERR_INVALID;
	if (reads_value && str_eq(a->type, "RvpsError"))
		return ERR_NOT_FOUND;
	return ERR_TRANSIENT;
}

int kbs_answer_check(const struct err *transport_err, const struct kbs_answer *answer,
	bool reads_value, struct err *err)
{
	size_t blank;

	if (transport_err && err_is_set(transport_err)) {
		*err = *transport_err;
		/* What came was no answer: it does not say that what was sent is wrong. */
		if (err->kind == ERR_INVALID)
			err->kind = ERR_TRANSIENT;
		return -1;
	}
	if (!answer)
		return err_set(err, ERR_BUG, "no answer and no error");
	blank = answer->body_len ? strspn(answer->body, " \t\r\n") : 0;
	if (answer->status == 200 && (blank >= answer->body_len || answer->body[blank] != '<'))
		return 0;
	if (answer->status == 200)
		return err_set_http(
			err, ERR_TRANSIENT, 200, "a page came instead of Trustee's answer");
	err_set_http(err, kind_of(answer, reads_value), answer->status, "HTTP %d%s%s",
		answer->status, *answer->type ? " " : "", answer->type);
	err->retry_after_ms = answer->retry_after_ms;
	return -1;
}
