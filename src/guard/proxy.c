/* SPDX-License-Identifier: MIT */
/*
 * A request is judged, then forwarded by pass_on(); the response comes back through on_answer().
 * The state of a request in flight is a struct pass that ends with the request (httpd_req_on_gone)
 * after its op, so neither a disconnecting client nor a failing upstream leaks anything.
 *
 * Trustee checks binding, signature and policy: it issued the nonce, the guard did not.
 *
 * The log has one line for each attestation and each resource request. Handshakes that were only
 * started are not logged, because anybody can start many; the counters include them.
 */
#include "config.h"

#include "tec/guard/proxy.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/metric.h"
#include "tec/guard/look.h"
#include "tec/net/sessions.h"
#include "tec/rats/api.h"
#include "tec/rats/rcar.h"

#define ANSWER_MAX    (4u << 20) /* a resource of 2 MiB, in base64 */
#define ADMIN_MAX     (8u << 20) /* limit of the operator's Trustee: all identities in one value */
#define ADMIN_AT_ONCE 128        /* connections; the operator uses one per key in flight */
#define UPSTREAM_MAX  64         /* concurrent requests; others wait here */
#define ADMIN_MORE    64         /* additional ones for the operator's requests */
#define SOURCES_MAX   16384      /* sources whose handshakes are counted */
#define FINGERPRINT   16         /* hex digits of a key's SHA-256 in the log */

struct guard {
	struct loop *loop;
	struct httpc *http; /* borrowed */
	char *upstream;
	struct httpc_tls *upstream_tls;
	bool sample, additional;
	size_t attest_max;
	struct sessions *sessions;
	struct ratelimit *begun; /* owned; sessions that Trustee still keeps, by source */
	struct guard_look *look;
	struct httpd *node, *admin;
};

enum kind { PASS_AUTH, PASS_ATTEST, PASS_RESOURCE, PASS_ADMIN };
static const char *const kind_names[] = {"auth", "attest", "resource", "admin"};

/* A forwarded request; owned by the httpd request, freed in on_gone(). */
struct pass {
	struct guard *g;
	struct httpd_req *req;
	enum kind kind;
	struct session *session;   /* auth */
	char key[FINGERPRINT + 1]; /* attest: fingerprint of the evidence's key; "" unknown */
	uint64_t start_us;
};

static struct metric requests = METRIC_COUNTER_INIT("tec_guard_requests_total",
	"Requests by kind and HTTP status, including those answered by the guard itself.", "kind",
	"code");
static struct metric refused = METRIC_COUNTER_INIT("tec_guard_refused_total",
	"Requests refused before they reached Trustee, by kind and reason.", "kind", "reason");
static struct metric open_sessions =
	METRIC_GAUGE_INIT("tec_guard_sessions", "Handshakes in progress.", NULL, NULL);
static struct metric evicted_sessions = METRIC_COUNTER_INIT("tec_guard_evicted_sessions_total",
	"Handshakes evicted from the session table by newer ones.", NULL, NULL);
static struct metric upstream_seconds = METRIC_SECONDS_INIT("tec_guard_upstream_seconds",
	"Response time of Trustee in seconds, by kind of request.", "kind", NULL);

/* The gauge follows each change of the table. */
static void count_sessions(const struct guard *g)
{
	metric_set(&open_sessions, NULL, NULL, (double)sessions_count(g->sessions));
}

/* ---- forwarding */

/* Without an answer it is unknown whether Trustee opened a session: count it until it would
 * expire. */
static void on_gone(void *arg)
{
	struct pass *p = arg;

	if (p->session)
		session_named(p->g->sessions, p->session, NULL);
	free(p);
}

/* The request owns the pass: on_gone() frees it. */
static struct pass *pass_new(struct guard *g, struct httpd_req *r, enum kind kind)
{
	struct pass *p = xcalloc(1, sizeof(*p));

	p->g = g;
	p->req = r;
	p->kind = kind;
	p->start_us = clock_boot_us();
	httpd_req_on_gone(r, on_gone, p);
	return p;
}

static void log_end(const struct pass *p, int status)
{
	if (p->kind == PASS_ATTEST)
		log_info(NULL, "attestation forwarded", "peer=%s key=%s status=%d",
			httpd_req_peer(p->req), p->key, status);
	else if (p->kind == PASS_RESOURCE)
		log_info(NULL, "resource requested", "peer=%s path=%s status=%d",
			httpd_req_peer(p->req), log_esc(httpd_req_path(p->req)), status);
}

/* Release the session's slot and its source's share: it ended, or Trustee never opened it. */
static void end_session(struct guard *g, struct session *take_e)
{
	ratelimit_give_source(g->begun, session_source(take_e));
	sessions_end(g->sessions, take_e);
}

/* Update the session table from the response: auth names the session by its cookie, a successful
 * attest ends the handshake. */
static void note_session(struct pass *p, const struct httpc_answer *a)
{
	struct sessions *s = p->g->sessions;

	if (p->kind == PASS_AUTH) {
		cleanup_free char *cookie =
			a->status == 200 ? sessions_cookie(a->set_cookie) : NULL;

		if (cookie)
			session_named(s, steal_ptr(&p->session), cookie);
		else
			end_session(p->g, steal_ptr(&p->session));
	} else if (p->kind == PASS_ATTEST && a->status == 200) {
		cleanup_free char *cookie = sessions_cookie(httpd_req_header(p->req, "Cookie"));

		struct session *e = cookie ? sessions_find(s, cookie, clock_boot_ms()) : NULL;

		if (e)
			end_session(p->g, e);
	}
	count_sessions(p->g);
}

static void count_request(enum kind kind, int status)
{
	char code[12];

	snprintf(code, sizeof(code), "%d", status);
	metric_add(&requests, kind_names[kind], code, 1);
}

/* Relay the response. Set-Cookie is the only header besides Content-Type that clients need. */
static void on_answer(void *arg, const struct err *err, const struct httpc_answer *a)
{
	struct pass *p = arg;
	struct httpd_req *r = p->req;

	metric_observe(&upstream_seconds, kind_names[p->kind], NULL,
		(double)(clock_boot_us() - p->start_us) / 1e6);
	/* ETIMEDOUT is a 504, anything else a 502 (RFC 9110 sections 15.6.3 and 15.6.5). */
	if (err_is_set(err) || a->status < 200 || a->status > 599) {
		int status = err->sys == ETIMEDOUT ? 504 : 502;

		count_request(p->kind, status);
		log_err(LOG_WARN, NULL, "Trustee did not answer", err);
		log_end(p, status);
		httpd_reply_error(r, status, 5, "Trustee did not answer");
		return;
	}
	count_request(p->kind, a->status);
	note_session(p, a);
	log_end(p, a->status);
	/* The session cookie is Trustee's; the guard only reads it. */
	if (a->set_cookie)
		httpd_reply_header(r, "Set-Cookie", a->set_cookie);
	httpd_reply(r, a->status, a->content_type, a->body, a->body_len);
}

/* Send a request to Trustee with the headers that are forwarded. `once`: a repeated attest would
 * use a nonce that Trustee has already consumed. */
static void pass_on(struct pass *p, const char *method, const char *path, struct body *take_body,
	const char *type)
{
	const char *cookie = httpd_req_header(p->req, "Cookie"),
		   *token = httpd_req_header(p->req, "Authorization");
	const char *peer = httpd_req_peer(p->req), *port = strrchr(peer, ':');
	cleanup_free char *host = xstrndup(peer, port ? (size_t)(port - peer) : strlen(peer));
	cleanup_free char *forwarded =
		xasprintf("for=\"%s\";proto=%s", host, httpd_req_is_tls(p->req) ? "https" : "http");
	cleanup_free char *url = xasprintf("%s%s", p->g->upstream, path);
	uint32_t left = httpd_req_ms_left(p->req);
	struct httpc_header headers[5];
	struct httpc_request req = {.method = method,
		.url = url,
		.tls = p->g->upstream_tls,
		.headers = headers,
		.take_body = take_body,
		.max_body = ANSWER_MAX,
		/* Shorter than the request's own deadline, so that a timeout is reported as
		 * Trustee's. */
		.deadline_ms = left > 2000 ? left - 1000 : left / 2 + 1,
		.once = true,
		.yields = p->kind != PASS_ADMIN, /* node load must not delay a revocation */
		.max_in_flight = UPSTREAM_MAX + (p->kind == PASS_ADMIN ? ADMIN_MORE : 0)};

	/* The client's own Forwarded headers are dropped: they could be forged. */
	headers[req.n_headers++] = (struct httpc_header){"Forwarded", forwarded};
	headers[req.n_headers++] = (struct httpc_header){"X-Forwarded-For", host};
	if (type)
		headers[req.n_headers++] = (struct httpc_header){"Content-Type", type};
	if (cookie)
		headers[req.n_headers++] = (struct httpc_header){"Cookie", cookie};
	if (token)
		headers[req.n_headers++] = (struct httpc_header){"Authorization", token};
	httpc_start(p->g->http, httpd_req_ops(p->req), &req, NULL, on_answer, p);
}

/* ---- the node listener */

static void count_refused(enum kind kind, const char *reason, int status)
{
	metric_add(&refused, kind_names[kind], reason, 1);
	count_request(kind, status);
}

/* Answer a refused handshake or attestation as the embedded broker does. */
static void refuse(struct httpd_req *r, enum kind kind, const char *reason, int status,
	uint32_t retry_s, const char *text)
{
	cleanup_strbuf struct strbuf body = STRBUF_INIT;
	cleanup_free char *detail =
		xasprintf("%s%s", kind == PASS_AUTH ? RATS_AUTH_FAILED : RATS_ATTEST_FAILED, text);

	count_refused(kind, reason, status);
	rats_api_error(&body, "AttestationError", detail);
	if (retry_s) {
		char seconds[12];

		snprintf(seconds, sizeof(seconds), "%u", retry_s);
		httpd_reply_header(r, "Retry-After", seconds);
	}
	httpd_reply(r, status, "application/json", body.data, body.len);
}

static void refuse_flaw(struct httpd_req *r, enum kind kind, enum rats_flaw flaw)
{
	refuse(r, kind, rats_flaw_name(flaw), 401, 0, rats_flaw_text(flaw));
}

/* Sample evidence passes only if configured: it proves nothing. */
static bool tee_passes(const struct guard *g, const char *tee)
{
	return str_eq(tee, rats_tee_name(RATS_TEE_TPM)) ||
	       (g->sample && str_eq(tee, rats_tee_name(RATS_TEE_SAMPLE)));
}

/* Trustee keeps a session until it expires, even if it was evicted from the table here.
 * Therefore the handshakes that one source starts are also limited over that time. */
static struct session *open_session(
	struct guard *g, const uint8_t source[ADDR_SOURCE_LEN], uint32_t *retry_s)
{
	struct session *e;

	if (!ratelimit_take_source(g->begun, source, retry_s))
		return NULL;
	/* The table may be full although the source is within its rate. */
	e = sessions_open(g->sessions, source, clock_boot_ms(), retry_s);
	if (!e)
		ratelimit_give_source(g->begun, source);
	return e;
}

/* Only a rewritten request reaches Trustee; the session is opened last, when nothing can be
 * refused. */
static void post_auth(struct guard *g, struct httpd_req *r)
{
	cleanup_rats_auth struct rats_auth a = {.o = NULL};
	struct strbuf text = STRBUF_INIT;
	uint8_t source[ADDR_SOURCE_LEN];
	struct session *session;
	enum rats_flaw flaw;
	struct err err = ERR_INIT;
	uint32_t retry_s = 0;
	struct body body;
	struct pass *p;
	size_t len;
	const char *in = httpd_req_body(r, &len);

	/* 401 for every refusal, as Trustee answers. */
	if (rats_auth_read(in, len, &a, &flaw, &err) < 0) {
		log_warn(NULL, "handshake refused", "peer=%s reason=%s err=%s", httpd_req_peer(r),
			rats_flaw_name(flaw), log_esc(err.text));
		refuse_flaw(r, PASS_AUTH, flaw);
		return;
	}
	if (!tee_passes(g, a.tee)) {
		refuse_flaw(r, PASS_AUTH, RATS_FLAW_TEE);
		return;
	}
	httpd_req_source(r, source);
	session = open_session(g, source, &retry_s);
	count_sessions(g);
	if (!session) {
		refuse(r, PASS_AUTH, "sessions", 429, retry_s, "Too many handshakes in progress.");
		return;
	}
	p = pass_new(g, r, PASS_AUTH);
	/* The response to auth names or ends the session (note_session). */
	p->session = session;
	rats_auth_write(&a, &text);
	body = body_of_text(strbuf_steal(&text));
	pass_on(p, "POST", RATS_API_PREFIX "auth", &body, "application/json");
}

/* Refuse what Trustee would accept and a policy cannot see. */
static int judge(
	const struct guard *g, const struct rats_attest *a, enum rats_flaw *flaw, struct err *err)
{
	*flaw = RATS_FLAW_TEE;
	if (!tee_passes(g, rats_tee_name(a->evidence.tee)))
		return err_set(err, ERR_INVALID, "This kind of evidence is not accepted here.");
	*flaw = RATS_FLAW_ADDITIONAL;
	if (!g->additional && *a->additional)
		return err_set(err, ERR_INVALID, "Additional evidence is not accepted here.");
	/* extraData must be the truncated binding; whether it is the right one, only Trustee can
	 * tell. */
	*flaw = RATS_FLAW_BINDING;
	if (a->evidence.tee == RATS_TEE_TPM && a->evidence.quote.extra_data_len != SHA256_LEN)
		return err_set(err, ERR_INVALID, "The quote's extraData has %zu bytes, not 32.",
			a->evidence.quote.extra_data_len);
	return 0;
}

/* Judge the evidence and forward it as it was understood, not as it was sent. */
static void post_attest(struct guard *g, struct httpd_req *r)
{
	cleanup_rats_attest struct rats_attest a;
	struct strbuf text = STRBUF_INIT;
	char key[FINGERPRINT + 1] = "";
	enum rats_flaw flaw;
	struct err err = ERR_INIT;
	struct body body;
	struct pass *p;
	size_t len;
	const char *in = httpd_req_body(r, &len);

	if (rats_attest_read(in, len, g->attest_max, &a, &flaw, &err) < 0 ||
		judge(g, &a, &flaw, &err) < 0) {
		/* The key is logged as soon as it could be read. It is untrusted here: nothing has
		 * verified the signature yet. */
		if (a.evidence.ak.der_len)
			bytes_to_hex(a.evidence.ak.sha256, FINGERPRINT / 2, key);
		log_warn(NULL, "attestation refused", "peer=%s key=%s reason=%s err=%s",
			httpd_req_peer(r), key, rats_flaw_name(flaw), log_esc(err.text));
		refuse_flaw(r, PASS_ATTEST, flaw);
		return;
	}
	p = pass_new(g, r, PASS_ATTEST);
	if (a.evidence.tee == RATS_TEE_TPM)
		bytes_to_hex(a.evidence.ak.sha256, FINGERPRINT / 2, p->key);
	rats_attest_write(&a, &text);
	body = body_of_text(strbuf_steal(&text));
	pass_on(p, "POST", RATS_API_PREFIX "attest", &body, "application/json");
}

/* Forward the path as it was understood; a query has no meaning for resources. */
static void get_resource(struct guard *g, struct httpd_req *r, const char *path)
{
	cleanup_free char *url = xasprintf(RATS_API_RESOURCE "%s", path);

	if (!*path) {
		count_refused(PASS_RESOURCE, "path", 404);
		httpd_reply_error(r, 404, 0, "The path must be resource/REPOSITORY/TYPE/TAG.");
		return;
	}
	pass_on(pass_new(g, r, PASS_RESOURCE), "GET", url, NULL, NULL);
}

static enum rats_api asked_of(const struct httpd_req *r, char path[RATS_API_PATH_MAX + 1])
{
	return rats_api_read(httpd_method_name(httpd_req_method(r)), httpd_req_target(r), path);
}

/* Nothing but the handshake is reachable for nodes. */
static void node(struct httpd_req *r, void *arg)
{
	char path[RATS_API_PATH_MAX + 1];

	switch (asked_of(r, path)) {
	case RATS_API_AUTH:
		post_auth(arg, r);
		return;
	case RATS_API_ATTEST:
		post_attest(arg, r);
		return;
	case RATS_API_GET_RESOURCE:
		get_resource(arg, r, path);
		return;
	case RATS_API_NONE:
		httpd_reply_error(r, 404, 0, "not found");
	}
}

/* Only handshakes and attestations have a body that is worth waiting for. */
static enum httpd_standing node_standing(struct httpd_req *r, void *arg)
{
	char path[RATS_API_PATH_MAX + 1];
	enum rats_api asked = asked_of(r, path);

	return asked == RATS_API_AUTH || asked == RATS_API_ATTEST ? HTTPD_STRANGER : HTTPD_REFUSED;
}

/* Answer from the last probe: a load balancer's checks cause no request to Trustee. */
static void get_health(struct httpd_req *r, void *arg)
{
	const struct guard *g = arg;

	if (guard_look_answers(g->look))
		httpd_reply(r, 200, NULL, "", 0);
	else
		httpd_reply_error(r, 503, 5, "Trustee does not answer");
}

/* ---- the admin listener */

/* Forward unchanged: Trustee authorizes the request by its token. */
static void admin(struct httpd_req *r, void *arg)
{
	const char *type = httpd_req_header(r, "Content-Type");
	struct body body = BODY_INIT;
	size_t len;
	const char *in = httpd_req_body(r, &len);

	if (len)
		body_add(&body, in, len, len);
	pass_on(pass_new(arg, r, PASS_ADMIN), httpd_method_name(httpd_req_method(r)),
		httpd_req_target(r), len ? &body : NULL, type);
}

/* All methods of the API, so that the broker and the guard refuse alike what is not for nodes. */
static const struct httpd_route node_routes[] = {
	{.path = RATS_API_PREFIX "*",
		.methods = HTTPD_GET | HTTPD_HEAD | HTTPD_POST | HTTPD_PUT | HTTPD_DELETE |
			   HTTPD_PATCH,
		.fn = node},
	{.path = "/healthz", .methods = HTTPD_GET, .fn = get_health},
};

/* The part of the admin API that the operator uses. */
static const struct httpd_route admin_routes[] = {
	{.path = RATS_API_PREFIX "resource", .methods = HTTPD_GET, .fn = admin},
	{.path = RATS_API_RESOURCE "*", .methods = HTTPD_POST | HTTPD_DELETE, .fn = admin},
	{.path = RATS_API_PREFIX "reference-value", .methods = HTTPD_POST, .fn = admin},
	{.path = RATS_API_PREFIX "reference-value/*", .methods = HTTPD_GET, .fn = admin},
	{.path = RATS_API_PREFIX "attestation-policy", .methods = HTTPD_POST, .fn = admin},
	{.path = RATS_API_PREFIX "resource-policy", .methods = HTTPD_POST | HTTPD_GET, .fn = admin},
	{.path = "/healthz", .methods = HTTPD_GET, .fn = admin},
};

/* ---- setting up */

/* Tokens and disk keys pass here, so plain http is limited to loopback addresses. A host name is
 * refused: it could resolve to any address. */
int guard_upstream_check(const char *url, struct err *err)
{
	const char *host = url + strlen("http://");
	cleanup_free char *port = NULL;
	struct addr a;

	if (str_starts(url, "https://"))
		return 0;
	if (!str_starts(url, "http://"))
		return err_set(err, ERR_INVALID, "%s is not an http or https URL", log_esc(url));
	/* addr_parse() accepts addresses only, no names. */
	port = xasprintf("%s%s", host, strchr(host, ':') ? "" : ":80");
	if (strpbrk(host, "/?#@") || addr_parse(port, &a, err) < 0 ||
		addr_scope((const struct sockaddr *)&a.ss) != ADDR_LOOPBACK) {
		err_clear(err);
		return err_set(err, ERR_INVALID,
			"%s: plain http is allowed for loopback addresses only, such as http://127.0.0.1:8080; use https elsewhere",
			log_esc(url));
	}
	return 0;
}

/* Both listeners share the error body and the wiping of buffers. */
static struct httpd *make_httpd(struct guard *g, const char *name, unsigned connections,
	size_t body, struct ratelimit *rate, httpd_standing_fn standing,
	const struct httpd_route *routes, size_t n)
{
	struct httpd_conf c = httpd_conf_default;

	c.name = name;
	c.max_connections = connections;
	c.limits.body = body;
	c.limits.chunked = true; /* as Trustee; what is forwarded has a length again */
	c.rate = rate;
	c.standing = standing;
	c.routes = routes;
	c.n_routes = n;
	c.arg = g;
	c.wipe = true; /* tokens, cookies and, on the admin listener, disk keys */
	c.error_body = rats_api_listener_error;
	return httpd_new(g->loop, &c);
}

/* A trailing slash of the upstream is dropped, because paths are appended to it. */
struct guard *guard_new(struct loop *l, struct httpc *http, const struct guard_conf *conf)
{
	struct guard *g = xcalloc(1, sizeof(*g));
	size_t len = strlen(conf->upstream);

	g->loop = l;
	g->http = http;
	g->upstream = xstrndup(conf->upstream, len - (len && conf->upstream[len - 1] == '/'));
	g->upstream_tls = conf->upstream_tls ? httpc_tls_ref(conf->upstream_tls) : NULL;
	g->sample = conf->sample;
	g->additional = conf->additional;
	g->attest_max = conf->attest_max;
	g->sessions = sessions_new(conf->sessions, conf->sessions_per_source, conf->session_ms,
		&evicted_sessions, NULL);
	/* As many handshakes per session lifetime as a source may have at once. */
	g->begun = ratelimit_new_slow(conf->sessions_per_source, conf->sessions_per_source,
		conf->session_ms, SOURCES_MAX);
	g->look = guard_look_new(l, http, g->upstream, g->upstream_tls, conf->look_ms);
	g->node = make_httpd(g, "kbs", conf->max_connections, conf->attest_max, conf->rate,
		node_standing, node_routes, ARRAY_LEN(node_routes));
	g->admin = make_httpd(g, "kbs-admin", ADMIN_AT_ONCE, ADMIN_MAX, NULL, NULL, admin_routes,
		ARRAY_LEN(admin_routes));
	return g;
}

/* The listeners go first: closing them ends the requests, which refer to the sessions. */
void guard_free(struct guard *g)
{
	if (!g)
		return;
	httpd_free(g->node);
	httpd_free(g->admin);
	guard_look_free(g->look);
	sessions_free(g->sessions);
	ratelimit_free(g->begun);
	httpc_tls_unref(g->upstream_tls);
	free(g->upstream);
	free(g);
}

struct httpd *guard_node_httpd(struct guard *g)
{
	return g->node;
}

struct httpd *guard_admin_httpd(struct guard *g)
{
	return g->admin;
}

bool guard_upstream_answers(const struct guard *g)
{
	return guard_look_answers(g->look);
}
