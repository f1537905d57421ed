/* SPDX-License-Identifier: MIT */
/*
 * What every maker of the seam has in common: the write gate, the counters, and what an answer
 * means. A call here is an op of its own around the maker's, so that a refused write and a counted
 * one look alike to the caller.
 */
#include "config.h"

#include "tec/k8s/transport.h"

#include <stdio.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/metric.h"
#include "tec/base/str.h"
#include "tec/loop/loop.h"

#define STATUS_MAX 65536 /* a Status larger than this is not looked into */

static struct metric requests = METRIC_COUNTER_INIT("tec_api_requests_total",
	"Requests to the Kubernetes API by verb and HTTP code (error: no answer, denied: not sent).",
	"verb", "code");
static struct metric seconds = METRIC_SECONDS_INIT("tec_api_request_seconds",
	"Time to the complete answer of the Kubernetes API, streams left out.", "verb", NULL);

struct call {
	struct op op;          /* first */
	struct op_scope inner; /* the maker's op */
	struct defer denied;
	const char *verb; /* static */
	uint64_t start_us;
	bool stream;
	k8s_data_fn on_data;
	k8s_answer_fn done;
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
	struct call *k, const struct err *err, const struct k8s_answer *answer, const char *code)
{
	metric_add(&requests, k->verb, code, 1);
	op_finish(&k->op);
	k->done(k->arg, err, answer);
	free(k);
}

static void on_denied(void *arg)
{
	struct err err = ERR_INIT;

	err_set(&err, ERR_DENIED, "not sent: this process no longer holds the lease");
	call_end(arg, &err, &(const struct k8s_answer){.body = ""}, "denied");
}

static int on_data(void *arg, const char *data, size_t len, struct err *err)
{
	struct call *k = arg;

	return k->on_data(k->arg, data, len, err); /* may free k */
}

static void on_answer(void *arg, const struct err *err, const struct k8s_answer *answer)
{
	struct call *k = arg;
	char code[12] = "error";

	if (!err_is_set(err) && answer)
		(void)snprintf(code, sizeof(code), "%d", answer->status);
	if (!k->stream)
		metric_observe(
			&seconds, k->verb, NULL, (double)(clock_boot_us() - k->start_us) / 1e6);
	call_end(k, err, answer, code);
}

struct op *k8s_transport_start(struct k8s_transport *t, struct op_scope *scope,
	const struct k8s_request *req, k8s_data_fn data, k8s_answer_fn done, void *arg)
{
	struct call *k = xcalloc(1, sizeof(*k));
	bool writes = strcmp(req->method, "GET") != 0;

	k->verb = req->verb ? req->verb : "other";
	k->start_us = clock_boot_us();
	k->stream = data && !req->deadline_ms;
	k->on_data = data;
	k->done = done;
	k->arg = arg;
	op_begin(&k->op, scope, call_abort);
	if (writes && t->may_write && !t->may_write(t->may_write_arg))
		defer_call(&k->denied, t->loop, on_denied, k);
	else
		(void)t->ops->start(t, &k->inner, req, data ? on_data : NULL, on_answer, k);
	return &k->op;
}

void k8s_transport_free(struct k8s_transport *t)
{
	if (t)
		t->ops->free(t);
}

/* ---- what an answer means ---- */

static enum err_kind kind_of(int status)
{
	switch (status) {
	case 401:
	case 403:
		return ERR_DENIED;
	case 404:
		return ERR_NOT_FOUND;
	case 409:
		return ERR_CONFLICT;
	case 410:
		return ERR_GONE;
	case 408:
	case 425:
	case 429:
		return ERR_TRANSIENT;
	default:
		if (status >= 500 && status <= 599)
			return ERR_TRANSIENT;
		return status >= 300 && status <= 499 ? ERR_INVALID : ERR_BUG;
	}
}

/* Outside text for people: bounded, without control bytes. */
static void clean(char *out, size_t size, const char *s)
{
	size_t n = 0;

	for (; s && *s && n + 1 < size; s++)
		out[n++] = (unsigned char)*s < 0x20 || *s == 0x7f ? ' ' : *s;
	if (s && ((unsigned char)*s & 0xc0) == 0x80) { /* cut within a character */
		while (n && ((unsigned char)out[n - 1] & 0xc0) == 0x80)
			n--;
		n -= n > 0;
	}
	out[n] = '\0';
}

static int set_from_status(const struct k8s_answer *a, struct json_object *status, struct err *err)
{
	char reason[64] = "", message[160] = "";
	int64_t after_s = 0;

	if (status && str_eq(json_get_str(status, "kind"), "Status")) {
		clean(reason, sizeof(reason), json_get_str(status, "reason"));
		clean(message, sizeof(message), json_get_str(status, "message"));
		after_s = json_get_int(status, "details/retryAfterSeconds", 0);
	}
	err_set_http(err, kind_of(a->status), a->status, "HTTP %d%s%s%s%s", a->status,
		*reason ? " " : "", reason, *message ? ": " : "", message);
	err->retry_after_ms = a->retry_after_ms;
	if (!err->retry_after_ms && after_s > 0)
		err->retry_after_ms = after_s > 3600 ? 3600000 : (uint32_t)after_s * 1000;
	return -1;
}

int k8s_answer_check(
	const struct err *transport_err, const struct k8s_answer *answer, struct err *err)
{
	struct err ignored = ERR_INIT;
	struct json_object *status = NULL;

	if (transport_err && err_is_set(transport_err)) {
		*err = *transport_err;
		return -1;
	}
	if (!answer)
		return err_set(err, ERR_BUG, "no answer and no error");
	if (answer->status >= 200 && answer->status <= 299)
		return 0;
	if (answer->body_len && answer->body_len <= STATUS_MAX && answer->body[0] == '{')
		status = json_parse(answer->body, answer->body_len, &json_limits_object, &ignored);
	(void)set_from_status(answer, status, err);
	json_object_put(status);
	return -1;
}
