/* SPDX-License-Identifier: MIT */
/*
 * Common to all transports: the life of an exchange, the counters, and the meaning of an answer.
 * The memory of an exchange is the struct of the transport, whose size it states, followed by the
 * receiver's own data.
 */
#include "config.h"

#include "tec/k8s/transport.h"

#include <stdio.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/metric.h"
#include "tec/base/str.h"

#define STATUS_MAX 65536 /* a larger Status is not parsed */

static struct metric requests = METRIC_COUNTER_INIT("tec_api_requests_total",
	"Requests to the Kubernetes API by verb and HTTP code (error: no answer, denied: not sent).",
	"verb", "code");
static struct metric seconds = METRIC_SECONDS_INIT("tec_api_request_seconds",
	"Time to the complete answer of the Kubernetes API, excluding streams.", "verb", NULL);

static void exchange_free(struct k8s_exchange *x)
{
	if (x->to.fini)
		x->to.fini(x->arg);
	defer_cancel(&x->failed);
	free(x->req.path);
	body_fini(&x->req.body);
	free(x);
}

/* Called when the op is cancelled: done does not run, but the receiver's fini does. */
static void exchange_abort(struct op *op)
{
	struct k8s_exchange *x = (struct k8s_exchange *)op;

	x->t->ops->stop(x);
	exchange_free(x);
}

/* Time is recorded for requests with an end only. Everything needed later is read before done runs,
 * because done may free the transport. */
void k8s_transport_end(
	struct k8s_exchange *x, const struct err *err, const struct k8s_answer *answer)
{
	static const struct k8s_answer none = {.body = ""};
	const char *verb = x->req.verb ? x->req.verb : "other", *code = x->code;
	char status[12] = "error";

	x->t->ops->stop(x);
	if (!err_is_set(err) && answer)
		(void)snprintf(status, sizeof(status), "%d", answer->status);
	metric_add(&requests, verb, code ? code : status, 1);
	if (!code && (!x->to.on_data || x->req.deadline_ms))
		metric_observe(&seconds, verb, NULL, (double)(clock_boot_us() - x->start_us) / 1e6);
	op_finish(&x->op);
	x->to.done(x->arg, err, answer ? answer : &none); /* may free the transport */
	exchange_free(x);
}

static void on_failed(void *arg)
{
	struct k8s_exchange *x = arg;

	k8s_transport_end(x, &x->err, NULL);
}

void k8s_transport_fail(struct k8s_exchange *x)
{
	defer_call(&x->failed, x->t->loop, on_failed, x);
}

struct op *k8s_transport_start_own(struct k8s_transport *t, struct op_scope *scope,
	struct k8s_request *take_req, const struct k8s_receiver *to, const void *own, size_t size)
{
	struct k8s_exchange *x = xcalloc(1, t->exchange_size + size);

	x->t = t;
	x->req = *take_req;
	take_req->path = NULL;
	take_req->body = (struct body)BODY_INIT;
	x->to = *to;
	x->arg = size ? memcpy((char *)x + t->exchange_size, own, size) : (void *)(uintptr_t)own;
	x->start_us = clock_boot_us();
	op_begin(&x->op, scope, exchange_abort);
	t->ops->start(x);
	return &x->op;
}

struct op *k8s_transport_start(struct k8s_transport *t, struct op_scope *scope,
	struct k8s_request *take_req, k8s_data_fn on_data, k8s_answer_fn done, void *arg)
{
	const struct k8s_receiver to = {on_data, done, NULL};

	return k8s_transport_start_own(t, scope, take_req, &to, arg, 0);
}
void k8s_transport_free(struct k8s_transport *t)
{
	if (t)
		t->ops->free(t);
}

/* ---- what an answer means ---- */

/* The kind decides what controllers do: retry, read again, recreate, or report. Redirects are not
 * followed, so 3xx is a wrong address. */
static enum err_kind kind_of(int status)
{
	static const struct {
		int status;
		enum err_kind kind;
	} kinds[] = {{401, ERR_DENIED}, {403, ERR_DENIED}, {404, ERR_NOT_FOUND},
		{408, ERR_TRANSIENT}, {409, ERR_CONFLICT}, {410, ERR_GONE}, {425, ERR_TRANSIENT},
		{429, ERR_TRANSIENT}};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (status == kinds[i].status)
			return kinds[i].kind;
	if (status >= 500 && status <= 599)
		return ERR_TRANSIENT;
	return status >= 300 && status <= 499 ? ERR_INVALID : ERR_BUG;
}

/* Copy text from the server for display: bounded, without control bytes. */
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

/* Bodies that do not look like JSON come from proxies and are not parsed. The Retry-After header wins
 * over details.retryAfterSeconds, of which an hour at most is kept. */
int k8s_answer_check(
	const struct err *transport_err, const struct k8s_answer *answer, struct err *err)
{
	struct err ignored = ERR_INIT;
	cleanup_json struct json_object *status = NULL;
	char reason[64] = "", message[160] = "";
	int64_t after_s = 0;

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
	if (str_eq(json_get_str(status, "kind"), "Status")) {
		clean(reason, sizeof(reason), json_get_str(status, "reason"));
		clean(message, sizeof(message), json_get_str(status, "message"));
		after_s = json_get_int(status, "details/retryAfterSeconds", 0);
	}
	err_set_http(err, kind_of(answer->status), answer->status, "HTTP %d%s%s%s%s",
		answer->status, *reason ? " " : "", reason, *message ? ": " : "", message);
	err->retry_after_ms = answer->retry_after_ms;
	if (!err->retry_after_ms && after_s > 0)
		err->retry_after_ms = after_s > 3600 ? 3600000 : (uint32_t)after_s * 1000;
	return -1;
}
