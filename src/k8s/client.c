/* SPDX-License-Identifier: MIT */
/*
 * One exchange: get credentials, send the request, and after a 401 send it once more if other
 * credentials are available. All of it shares one deadline. Redirects are not followed, and nothing
 * else is retried. HTTP/2 is tried first for each request; net/h2c knows whether the server
 * supports it, and sends no part of a request that httpc must send instead.
 */
#include "config.h"

#include "tec/k8s/client.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "tec/base/clock.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/metric.h"
#include "tec/base/str.h"
#include "tec/k8s/auth.h"
#include "tec/loop/timer.h"
#include "tec/net/h2c.h"

#define DEADLINE_MS 15000u
#define CONNECT_MS  10000u
#define MAX_BODY    (4u * 1024 * 1024) /* larger bodies (objects, lists) go to on_data */

static struct metric connection = METRIC_GAUGE_INIT("tec_api_connection_info",
	"1 for the protocol of the latest answer of the Kubernetes API: h2 or http/1.1.",
	"protocol", NULL);

struct client {
	struct k8s_transport t; /* first */
	struct httpc *http;     /* borrowed */
	struct h2c *h2;         /* owned; NULL: HTTP/1.1 only */
	struct k8s_auth *auth;
	char *server, *user_agent;
	char *proxy;          /* wiped; NULL: none */
	const char *protocol; /* of the latest answer; NULL: none yet */
	unsigned n_calls;
};

struct call {
	struct k8s_exchange x; /* first */
	struct op_scope wire;  /* credentials, then the transfer */
	struct timer deadline; /* while waiting for credentials */
	uint64_t end_ms;       /* boot clock; 0: a stream */
	unsigned generation;   /* of the credential last used */
	bool retried;
	bool http1; /* the server does not support HTTP/2 */
};

static struct client *client_of(const struct call *k)
{
	return (struct client *)k->x.t;
}

static void call_proceed(struct call *k);

static int on_data(void *arg, const void *data, size_t len, struct err *err)
{
	struct call *k = arg;

	return k->x.to.on_data(k->x.arg, data, len, err); /* may free k */
}

/* After a 401: tell whether credentials other than the refused ones are available or can be
 * fetched. */
static bool may_retry(struct call *k)
{
	struct k8s_auth *auth = client_of(k)->auth;
	struct k8s_cred cred;
	struct err err = ERR_INIT;

	if (k->retried || (k->end_ms && clock_boot_ms() >= k->end_ms))
		return false;
	k8s_auth_refused(auth);
	if (k8s_auth_ready(auth, &cred, &err))
		return cred.generation != k->generation;
	return !err_is_set(&err);
}

/* H2C_NO_H2 means that nothing was sent: the same request is sent again over HTTP/1.1 and does not
 * count as a retry. */
static void on_http(void *arg, const struct err *err, const struct httpc_answer *a)
{
	static const char h2[] = "h2", http1[] = "http/1.1";
	struct call *k = arg;
	struct client *c = client_of(k);
	const char *protocol = c->h2 && !k->http1 ? h2 : http1;
	struct k8s_answer answer = {.status = a->status,
		.retry_after_ms = a->retry_after_ms,
		.body = a->body,
		.body_len = a->body_len};

	if (a->status == H2C_NO_H2) {
		k->http1 = true;
		call_proceed(k);
		return;
	}
	if (!err_is_set(err) && c->protocol != protocol) {
		log_info(NULL, "connected to the Kubernetes API", "url=%s proto=%s",
			log_esc(c->server), protocol);
		if (c->protocol)
			metric_set(&connection, c->protocol, NULL, 0);
		metric_set(&connection, protocol, NULL, 1);
		c->protocol = protocol;
	}
	if (!err_is_set(err) && a->status == 401 && may_retry(k)) {
		log_info(NULL, "the API server refused the credentials, retrying with new ones",
			"method=%s http=401", k->x.req.method);
		k->retried = true;
		if (a->sent)
			k->x.req.body = body_move(a->sent);
		call_proceed(k);
		return;
	}
	k8s_transport_end(&k->x, err, &answer);
}

/* HTTP/2 borrows the body until the answer, so that it can be sent again; HTTP/1.1 takes it and
 * returns it with the answer (a->sent). */
static void call_send(struct call *k, const struct k8s_cred *cred)
{
	struct client *c = client_of(k);
	const struct k8s_request *r = &k->x.req;
	cleanup_free char *url = xasprintf("%s%s", c->server, r->path);
	struct httpc_header headers[3] = {{"Accept", "application/json"},
		{"User-Agent", c->user_agent}, {"Content-Type", r->content_type}};
	httpc_data_fn data_fn = k->x.to.on_data ? on_data : NULL;
	uint64_t now = clock_boot_ms();
	struct httpc_request req = {
		.method = r->method,
		.url = url,
		.tls = cred->tls,
		.proxy = c->proxy,
		.headers = headers,
		.n_headers = r->content_type ? 3 : 2,
		.bearer = cred->bearer,
		.max_body = MAX_BODY,
		.connect_ms = CONNECT_MS,
		.silence_ms = k->x.to.on_data ? r->silence_ms : 0,
		.stream = k->end_ms == 0,
		.yields = r->yields,
	};

	if (k->end_ms)
		req.deadline_ms = k->end_ms > now ? (uint32_t)(k->end_ms - now) : 1;
	timer_cancel(&k->deadline);
	k->generation = cred->generation;
	if (c->h2 && !k->http1) {
		req.body = r->body.data;
		req.body_len = r->body.len;
		(void)h2c_start(c->h2, &k->wire, &req, data_fn, on_http, k);
	} else {
		req.take_body = &k->x.req.body;
		(void)httpc_start(c->http, &k->wire, &req, data_fn, on_http, k);
	}
}

static void on_cred(void *arg, const struct err *err, const struct k8s_cred *cred)
{
	struct call *k = arg;

	if (err_is_set(err))
		k8s_transport_end(&k->x, err, NULL);
	else
		call_send(k, cred);
}

/* Only the wait for credentials needs this timer: the transfer has a deadline of its own. */
static void on_deadline(void *arg)
{
	struct call *k = arg;

	err_set(&k->x.err, ERR_TRANSIENT, "%s %s: timed out waiting for credentials",
		k->x.req.method, client_of(k)->server);
	k8s_transport_end(&k->x, &k->x.err, NULL);
}

/* Errors end the exchange from the loop, because done must not run before the call has returned. */
static void call_proceed(struct call *k)
{
	struct k8s_auth *auth = client_of(k)->auth;
	uint64_t now = clock_boot_ms();
	struct k8s_cred cred;

	if (k8s_auth_ready(auth, &cred, &k->x.err)) {
		call_send(k, &cred);
	} else if (err_is_set(&k->x.err)) {
		k8s_transport_fail(&k->x);
	} else {
		if (k->end_ms)
			timer_set(&k->deadline, k->end_ms > now ? k->end_ms - now : 0);
		(void)k8s_auth_get(auth, &k->wire, on_cred, k);
	}
}

/* The deadline includes the wait for credentials; only a stream has none. */
static void client_start(struct k8s_exchange *x)
{
	struct call *k = (struct call *)x;
	uint32_t deadline_ms = x->req.deadline_ms;

	if (!x->to.on_data || deadline_ms)
		k->end_ms = clock_boot_ms() + (deadline_ms ? deadline_ms : DEADLINE_MS);
	client_of(k)->n_calls++;
	timer_init(&k->deadline, x->t->loop, on_deadline, k);
	call_proceed(k);
}

/* Runs before done and on a cancel, so it must not touch the answer. */
static void client_stop(struct k8s_exchange *x)
{
	struct call *k = (struct call *)x;

	op_scope_cancel(&k->wire);
	timer_fini(&k->deadline);
	client_of(k)->n_calls--;
}

/* Calls must have ended: they use the connections and credentials freed here. */
static void client_free(struct k8s_transport *t)
{
	struct client *c = (struct client *)t;

	assert(c->n_calls == 0);
	h2c_free(c->h2);
	k8s_auth_free(c->auth);
	if (c->protocol)
		metric_set(&connection, c->protocol, NULL, 0);
	free(c->server);
	free(c->user_agent);
	if (c->proxy)
		secret_wipe(c->proxy, strlen(c->proxy));
	free(c->proxy);
	free(c);
}

static const struct k8s_transport_ops client_ops = {client_start, client_stop, client_free};

/* HTTP/2 is used over TLS only, where ALPN negotiates it, and not inside the TLS of a proxy, which
 * only httpc has. */
struct k8s_transport *k8s_client_new(struct loop *l, struct httpc *http,
	struct k8s_kubeconfig *take_config, const char *user_agent, bool http1_only)
{
	struct client *c = xcalloc(1, sizeof(*c));

	c->t = (struct k8s_transport){&client_ops, l, sizeof(struct call)};
	c->http = http;
	c->proxy = xstrdup(take_config->proxy);
	if (!http1_only && str_starts(take_config->server, "https://") &&
		!(c->proxy && strncasecmp(c->proxy, "https://", 8) == 0))
		c->h2 = h2c_new(l, http);
	c->server = xstrdup(take_config->server);
	c->user_agent = xstrdup(user_agent);
	c->auth = k8s_auth_new(l, take_config);
	return &c->t;
}
