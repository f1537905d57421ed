/* SPDX-License-Identifier: MIT */
/* The listener. Passes the three requests of nodes to broker/attest and everything else below
 * the API's prefix to broker/admin, which knows paths and methods there. */
#include "config.h"

#include "tec/broker/kbsd.h"

#include <stdio.h>

#include "tec/base/clock.h"
#include "tec/base/mem.h"
#include "tec/loop/timer.h"
#include "tec/rats/api.h"

#define REQUESTS_PER_CONN 100000
#define SWEEP_MS          10000
#define RETRY_AFTER_S     5

struct broker_kbsd {
	struct httpd *httpd;
	struct broker_kbsd_conf conf;
	struct timer sweep; /* set while there are handshakes */
};

/* The response with a resource that waits for its owner's permission; freed with the request. */
struct held {
	struct broker_held public;
	struct broker_kbsd *k;
	struct httpd_req *req;
	struct broker_answer answer;
	char *path;
};

/* Borrows everything from the httpd request. */
static struct broker_request request_of(struct httpd_req *req)
{
	struct broker_request r = {
		.method = httpd_method_name(httpd_req_method(req)),
		.target = httpd_req_target(req),
		.authorization = httpd_req_header(req, "Authorization"),
	};

	r.body = httpd_req_body(req, &r.len);
	return r;
}

/* on_answer may still change the answer, for instance its status. */
static void reply(struct broker_kbsd *k, struct httpd_req *req, const struct broker_request *r,
	struct broker_answer *a)
{
	/* Before the headers, which are made from the answer. */
	if (k->conf.on_answer)
		k->conf.on_answer(k->conf.arg, r, a);
	if (a->challenge)
		httpd_reply_header(req, "WWW-Authenticate", a->challenge);
	if (a->cookie.len)
		httpd_reply_header(req, "Set-Cookie", strbuf_str(&a->cookie));
	if (a->retry_after_s) {
		char text[12];

		snprintf(text, sizeof(text), "%u", a->retry_after_s);
		httpd_reply_header(req, "Retry-After", text);
	}
	if (a->allow[0])
		httpd_reply_header(req, "Allow", a->allow);
	httpd_reply(req, a->status, a->content_type, a->body.data, a->body.len);
}

static void on_healthz(struct httpd_req *req, void *arg)
{
	struct broker_request r = request_of(req);

	reply(arg, req, &r, &(struct broker_answer){.status = 200, .verb = "healthz", .type = ""});
}

/* Which of the nodes' requests this is; none if this broker does not serve them. */
static enum rats_api asked_of(
	const struct broker_kbsd *k, const struct httpd_req *req, char path[RATS_API_PATH_MAX + 1])
{
	return k->conf.attest ? rats_api_read(httpd_method_name(httpd_req_method(req)),
					httpd_req_target(req), path)
			      : RATS_API_NONE;
}

/* Classify the sender before its body is read: everything but the nodes' requests requires an
 * administrator's token. */
static enum httpd_standing standing(struct httpd_req *req, void *arg)
{
	const struct broker_kbsd *k = arg;
	const struct broker_admin *admin = k->conf.admin;
	const char *target = httpd_req_target(req);
	char path[RATS_API_PATH_MAX + 1];
	enum rats_api asked = asked_of(k, req, path);
	struct err err = ERR_INIT;

	/* Nobody is known before attestation: the listener bounds what strangers may send. */
	if (asked == RATS_API_AUTH || asked == RATS_API_ATTEST)
		return HTTPD_STRANGER;
	if (!admin || admin->check(admin->arg, httpd_req_header(req, "Authorization"), target,
			      clock_wall_s(), &err) < 0)
		return HTTPD_REFUSED;
	return HTTPD_KNOWN;
}

/* ---- a resource for a node */

/* Runs when the request ends, also when the client disconnects while it is held. */
static void held_gone(void *arg)
{
	struct held *h = arg;

	broker_answer_fini(&h->answer);
	free(h->path);
	free(h);
}

/* Send the held response, or an error if the owner refuses it. Frees h with the request. */
void broker_held_end(struct broker_held *take, const struct err *err)
{
	struct held *h = (struct held *)take;
	struct broker_request r = request_of(h->req);

	if (err && err->kind == ERR_NOT_FOUND) {
		broker_admin_refuse(
			&h->answer, 404, "ResourceNotFound", "The resource does not exist.");
	} else if (err) {
		/* 503 makes the node retry: its token stays valid. */
		broker_admin_refuse(&h->answer, 503, "PluginInternalError", "%s", err->text);
		h->answer.retry_after_s = RETRY_AFTER_S;
	}
	reply(h->k, h->req, &r, &h->answer); /* h is gone */
}

/* Serve a resource to a node, or hold it until its owner releases it. */
static void on_resource(struct broker_kbsd *k, struct httpd_req *req,
	const struct broker_request *r, const struct broker_node *n, const char *path)
{
	cleanup_broker_answer struct broker_answer a;
	struct held *h;

	broker_attest_resource(k->conf.attest, n, path, &a);
	if (a.status != 200 || !k->conf.on_held) {
		reply(k, req, r, &a);
		return;
	}
	h = xcalloc(1, sizeof(*h));
	h->k = k;
	h->req = req;
	h->answer = a;
	/* The answer moved to h; ours must not be freed. */
	a = (struct broker_answer){.status = 0};
	h->path = xstrdup(path);
	h->public = (struct broker_held){.ops = httpd_req_ops(req), .path = h->path};
	/* From here on the request owns h; a disconnect cancels what the owner started in ops. */
	httpd_req_on_gone(req, held_gone, h);
	/* The owner decides asynchronously, for instance after a lookup of the Machine. */
	k->conf.on_held(k->conf.arg, &h->public);
}

/* The node's requests first; everything else is the admin API, which needs a token. */
static void on_api(struct httpd_req *req, void *arg)
{
	cleanup_broker_answer struct broker_answer a = {.status = 0};
	struct broker_kbsd *k = arg;
	struct broker_request r = request_of(req);
	/* Both clocks are read once, so that one request sees one time. */
	struct broker_node n = {.peer = httpd_req_peer(req),
		.cookie = httpd_req_header(req, "Cookie"),
		.authorization = r.authorization,
		.body = r.body,
		.len = r.len,
		.now_s = clock_wall_s(),
		.now_ms = clock_boot_ms()};
	char path[RATS_API_PATH_MAX + 1];
	enum rats_api asked;

	httpd_req_source(req, n.source);
	asked = asked_of(k, req, path);
	if (asked == RATS_API_GET_RESOURCE) {
		on_resource(k, req, &r, &n, path);
		return;
	}
	if (asked == RATS_API_AUTH) {
		broker_attest_auth(k->conf.attest, &n, &a);
		/* Only this request opens sessions. */
		timer_set_earlier(&k->sweep, SWEEP_MS);
	} else if (asked == RATS_API_ATTEST) {
		broker_attest_attest(k->conf.attest, &n, &a);
	} else if (k->conf.admin) {
		broker_admin(k->conf.admin, &r, n.now_s, &a);
	} else {
		a = (struct broker_answer){.status = 200, .verb = "other", .type = ""};
		broker_admin_refuse(&a, 404, "InvalidRequestPath", "not found");
	}
	reply(k, req, &r, &a);
}

/* Expire sessions, and run again only while there are any: an idle broker has no timer. */
static void on_sweep(void *arg)
{
	struct broker_kbsd *k = arg;

	broker_attest_sweep(k->conf.attest, clock_boot_ms());
	if (broker_attest_sessions(k->conf.attest) > 0)
		timer_set(&k->sweep, SWEEP_MS);
}

/* All methods are routed, so that broker/admin answers 405 in the shape of Trustee's errors. */
struct broker_kbsd *broker_kbsd_new(struct loop *l, const struct broker_kbsd_conf *conf)
{
	static const struct httpd_route routes[] = {
		{.path = "/healthz", .methods = HTTPD_GET, .fn = on_healthz},
		{.path = BROKER_ADMIN_PREFIX "*",
			.methods = HTTPD_GET | HTTPD_HEAD | HTTPD_POST | HTTPD_PUT | HTTPD_DELETE |
				   HTTPD_PATCH,
			.fn = on_api},
	};
	struct broker_kbsd *k = xcalloc(1, sizeof(*k));
	struct httpd_conf h = httpd_conf_default;

	k->conf = *conf;
	h.name = conf->name;
	h.limits.body = conf->max_body;
	h.limits.chunked = true; /* as Trustee: attesters may not know a body's length */
	/* The operator reuses its connections for all keys. */
	h.requests_per_conn = REQUESTS_PER_CONN;
	h.rate = conf->rate;
	if (conf->max_connections)
		h.max_connections = conf->max_connections;
	h.standing = standing;
	h.routes = routes;
	h.n_routes = ARRAY_LEN(routes);
	h.arg = k;
	/* Bodies contain disk keys, headers contain tokens. */
	h.wipe = true;
	h.error_body = conf->error_body ? conf->error_body : rats_api_listener_error;
	timer_init(&k->sweep, l, on_sweep, k);
	k->httpd = httpd_new(l, &h);
	return k;
}

/* Closing the listener ends held responses, which free themselves in held_gone(). */
void broker_kbsd_free(struct broker_kbsd *k)
{
	if (!k)
		return;
	httpd_free(k->httpd);
	timer_fini(&k->sweep);
	free(k);
}

struct httpd *broker_kbsd_httpd(struct broker_kbsd *k)
{
	return k->httpd;
}
