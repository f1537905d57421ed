/* SPDX-License-Identifier: MIT */
/*
 * One op = credentials, a request, and after a 401 once more with other credentials if there are
 * any. All of it shares one deadline. Does not follow redirects, does not retry anything else.
 */
#include "config.h"

#include "tec/k8s/client.h"

#include <assert.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/secret.h"
#include "tec/base/str.h"
#include "tec/k8s/auth.h"
#include "tec/loop/timer.h"

#define DEADLINE_MS 15000u
#define CONNECT_MS  10000u
#define MAX_BODY    (4u * 1024 * 1024) /* objects and lists come to on_data */

struct client {
	struct k8s_transport t; /* first */
	struct httpc *http;     /* borrowed */
	struct k8s_auth *auth;
	char *server, *user_agent;
	unsigned n_calls;
};

struct call {
	struct op op; /* first */
	struct client *c;
	struct op_scope inner; /* credentials, then the transfer */
	struct timer deadline; /* while waiting for credentials */
	struct defer failed;
	struct err err;
	uint64_t end_ms;     /* boot clock; 0: a stream */
	unsigned generation; /* of the credential last used */
	bool retried;
	char *method, *url, *content_type, *body; /* owned; body wiped */
	size_t body_len;
	uint32_t silence_ms;
	k8s_data_fn on_data;
	k8s_answer_fn done;
	void *arg;
};

static void call_free(struct call *k)
{
	op_scope_cancel(&k->inner);
	timer_fini(&k->deadline);
	defer_cancel(&k->failed);
	if (k->body)
		secret_wipe(k->body, k->body_len);
	free(k->body);
	free(k->method);
	free(k->url);
	free(k->content_type);
	free(k);
}

static void call_abort(struct op *op)
{
	struct call *k = (struct call *)op;

	k->c->n_calls--;
	call_free(k);
}

static void call_end(struct call *k, const struct err *err, const struct k8s_answer *answer)
{
	static const struct k8s_answer none = {.body = ""};

	op_finish(&k->op);
	k->c->n_calls--;
	k->done(k->arg, err, answer ? answer : &none); /* may free the client */
	call_free(k);
}

static void on_failed(void *arg)
{
	struct call *k = arg;

	call_end(k, &k->err, NULL);
}

static void call_proceed(struct call *k);

static int on_data(void *arg, const void *data, size_t len, struct err *err)
{
	struct call *k = arg;

	return k->on_data(k->arg, data, len, err); /* may free k */
}

/* After a 401: are there other credentials than the ones refused? If they have to be fetched, that
 * is a yes. */
static bool may_retry(struct call *k)
{
	struct k8s_cred cred;
	struct err err = ERR_INIT;

	if (k->retried || (k->end_ms && clock_boot_ms() >= k->end_ms))
		return false;
	k8s_auth_refused(k->c->auth);
	if (k8s_auth_ready(k->c->auth, &cred, &err))
		return cred.generation != k->generation;
	return !err_is_set(&err);
}

static void on_http(void *arg, const struct err *err, const struct httpc_answer *a)
{
	struct call *k = arg;
	struct k8s_answer answer = {.status = a->status,
		.retry_after_ms = a->retry_after_ms,
		.body = a->body,
		.body_len = a->body_len};

	if (!err_is_set(err) && a->status == 401 && may_retry(k)) {
		log_info(NULL, "the API refused our credentials, trying with new ones",
			"method=%s http=401", k->method);
		k->retried = true;
		call_proceed(k);
		return;
	}
	call_end(k, err, &answer);
}

static void call_send(struct call *k, const struct k8s_cred *cred)
{
	struct httpc_header headers[3] = {{"Accept", "application/json"},
		{"User-Agent", k->c->user_agent}, {"Content-Type", k->content_type}};
	struct httpc_request req = {
		.method = k->method,
		.url = k->url,
		.tls = cred->tls,
		.headers = headers,
		.n_headers = k->content_type ? 3 : 2,
		.bearer = cred->bearer,
		.body = k->body,
		.body_len = k->body_len,
		.max_body = MAX_BODY,
		.connect_ms = CONNECT_MS,
		.silence_ms = k->silence_ms,
		.stream = k->end_ms == 0,
	};
	uint64_t now = clock_boot_ms();

	if (k->end_ms)
		req.deadline_ms = k->end_ms > now ? (uint32_t)(k->end_ms - now) : 1;
	timer_cancel(&k->deadline);
	k->generation = cred->generation;
	(void)httpc_start(k->c->http, &k->inner, &req, k->on_data ? on_data : NULL, on_http, k);
}

static void on_cred(void *arg, const struct err *err, const struct k8s_cred *cred)
{
	struct call *k = arg;

	if (err_is_set(err))
		call_end(k, err, NULL);
	else
		call_send(k, cred);
}

static void on_deadline(void *arg)
{
	struct call *k = arg;

	err_set(&k->err, ERR_TRANSIENT, "%s %s: no credentials in time", k->method, k->c->server);
	call_end(k, &k->err, NULL);
}

static void call_proceed(struct call *k)
{
	uint64_t now = clock_boot_ms();
	struct k8s_cred cred;

	if (k8s_auth_ready(k->c->auth, &cred, &k->err)) {
		call_send(k, &cred);
		return;
	}
	if (err_is_set(&k->err)) {
		defer_call(&k->failed, k->c->t.loop, on_failed, k);
		return;
	}
	if (k->end_ms)
		timer_set(&k->deadline, k->end_ms > now ? k->end_ms - now : 0);
	(void)k8s_auth_get(k->c->auth, &k->inner, on_cred, k);
}

static struct op *client_start(struct k8s_transport *t, struct op_scope *scope,
	const struct k8s_request *req, k8s_data_fn data, k8s_answer_fn done, void *arg)
{
	struct client *c = (struct client *)t;
	struct call *k = xcalloc(1, sizeof(*k));

	k->c = c;
	k->method = xstrdup(req->method);
	k->url = xasprintf("%s%s", c->server, req->path);
	k->content_type = xstrdup(req->content_type);
	if (req->body) {
		k->body = xmemdup(req->body, req->body_len);
		k->body_len = req->body_len;
	}
	if (!data || req->deadline_ms)
		k->end_ms = clock_boot_ms() + (req->deadline_ms ? req->deadline_ms : DEADLINE_MS);
	k->silence_ms = data ? req->silence_ms : 0;
	k->on_data = data;
	k->done = done;
	k->arg = arg;
	c->n_calls++;
	timer_init(&k->deadline, t->loop, on_deadline, k);
	op_begin(&k->op, scope, call_abort);
	call_proceed(k);
	return &k->op;
}

static void client_free(struct k8s_transport *t)
{
	struct client *c = (struct client *)t;

	assert(c->n_calls == 0);
	k8s_auth_free(c->auth);
	free(c->server);
	free(c->user_agent);
	free(c);
}

static const struct k8s_transport_ops client_ops = {client_start, client_free};

struct k8s_transport *k8s_client_new(struct loop *l, struct httpc *http,
	struct k8s_kubeconfig *take_config, const char *user_agent)
{
	struct client *c = xcalloc(1, sizeof(*c));

	c->t.ops = &client_ops;
	c->t.loop = l;
	c->http = http;
	c->server = xstrdup(take_config->server);
	c->user_agent = xstrdup(user_agent);
	c->auth = k8s_auth_new(l, take_config);
	return &c->t;
}
