/* SPDX-License-Identifier: MIT */
/*
 * A job is one attestation, with or without fetching a resource. HTTP requests wait for a job as
 * ops, so a client that disconnects does not affect the others. A job without waiters continues:
 * its TPM command must complete, and its token serves the next request.
 */
#include "config.h"

#include "tec/attest/cdh.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>

#include "tec/attest/fetch.h"
#include "tec/base/bytes.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/uuid.h"

#define RESOURCE   "/cdh/resource/"
#define BIND_WITH  "tec-node/runtime-data:" /* documented in tec-node(1) */
#define BUDGET_MS  25000
#define REQUEST_MS 30000
#define CLIENTS    600
#define SPARE_S    15 /* minimum remaining lifetime: the token must outlast the request */
#define DATA_MAX   SHA256_LEN
#define JOBS_MAX   64

struct job;
/* One HTTP request that waits for a job. */
struct waiter {
	struct op op; /* must be first; in the scope of its request */
	TAILQ_ENTRY(waiter) link;
	struct job *job;
	struct httpd_req *req;
};

struct job {
	LIST_ENTRY(job) link;
	struct attest_cdh *cdh;
	char *path;                  /* owned; NULL: the token */
	struct attest_config config; /* copy of the service's with this path; owns nothing */
	struct attest_token *token;  /* borrowed from the service; counted in token_users */
	TAILQ_HEAD(, waiter) waiters;
};

struct attest_cdh {
	struct httpc *client;
	const struct attest_source *source;
	const struct attest_config *config;
	const struct attest_cdh_conf *conf;
	struct httpd *httpd; /* owned */
	struct op_scope ops; /* of the jobs */
	LIST_HEAD(, job) jobs;
	unsigned n_jobs;
	attest_cdh_idle_fn on_idle; /* NULL: none */
	void *idle_arg;
	struct attest_token *token; /* owned; NULL: none */
	bool token_spent;           /* must not serve new requests; freed after the last job */
	unsigned token_users;
	size_t server; /* index of the server that answered last */
};

/* ---- who may ask */

/* Nothing but a port may follow, so that "localhost.example" does not pass as "localhost". */
bool attest_cdh_host_ok(const char *host)
{
	static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};

	for (size_t i = 0; host && i < ARRAY_LEN(names); i++) {
		const char *port = host + strlen(names[i]);
		size_t n;

		if (strncasecmp(host, names[i], strlen(names[i])) != 0)
			continue;
		n = *port == ':' ? strspn(port + 1, "0123456789") : 0;
		if (!*port || (n > 0 && n <= 5 && !port[1 + n]))
			return true;
	}
	return false;
}

/* Return the reason to refuse a request, or NULL to serve it. */
static const char *why_refused(const struct attest_cdh *c, const struct httpd_req *r)
{
	const char *peer = httpd_req_peer(r);
	uint32_t uid;

	if (httpd_req_local(r, &uid)) {
		bool found = uid == 0 || c->conf->n_users == 0;

		for (uint32_t i = 0; !found && i < c->conf->n_users; i++)
			found = c->conf->users[i] == uid;
		if (!found)
			return "this user is not listed in --socket-users";
	} else if (!str_starts(peer, "127.") && !str_starts(peer, "[::1]") &&
		   !str_starts(peer, "[::ffff:127.")) { /* IPv4 on an IPv6 socket */
		return "the peer address is not a loopback address";
	}
	if (!attest_cdh_host_ok(httpd_req_header(r, "Host")))
		return "the Host header does not name a loopback address";
	/* Browsers omit Origin when they load images and scripts, but send Sec-Fetch-Site. */
	if (httpd_req_header(r, "Origin") || httpd_req_header(r, "Sec-Fetch-Site"))
		return "requests from web pages are refused";
	return NULL;
}

/* Refuse a request that is not allowed, with 403 and one log line. */
static bool allowed(const struct attest_cdh *c, struct httpd_req *r)
{
	const char *why = why_refused(c, r);

	if (!why)
		return true;
	log_warn(NULL, "request refused", "peer=%s reason=%s", log_esc(httpd_req_peer(r)), why);
	httpd_reply_error(r, 403, 0, "Forbidden: %s.", why);
	return false;
}

/* Refuse requests for tokens and evidence unless --aa enables them. */
static bool allowed_aa(const struct attest_cdh *c, struct httpd_req *r)
{
	if (!allowed(c, r))
		return false;
	if (!c->conf->aa)
		httpd_reply_error(r, 403, 0,
			"Forbidden: tokens and evidence are available only with tec-node serve --aa.");
	return c->conf->aa;
}

/* Ignore case, so that a server which does the same cannot be used to get around the check. */
bool attest_cdh_is_disk_key(const char *path)
{
	static const char repository[] = "default/", tag[] = "/root";
	const size_t at = strlen(repository), end = at + UUID_TEXT_LEN;
	char uuid[UUID_TEXT_LEN];

	if (strlen(path) != end + strlen(tag) || strncasecmp(path, repository, at) != 0 ||
		strcasecmp(path + end, tag) != 0)
		return false;
	for (size_t i = 0; i < UUID_TEXT_LEN; i++)
		uuid[i] = (char)tolower((unsigned char)path[at + i]);
	return uuid_valid(uuid, UUID_TEXT_LEN);
}

/* ---- queries */

/* Decode percent-encoding. The result may contain NUL bytes: use *len. NULL: malformed. */
static char *decode(const char *p, size_t n, size_t *len)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	for (size_t i = 0; i < n; i++) {
		uint8_t byte = (uint8_t)(p[i] == '+' ? ' ' : p[i]);

		if (p[i] == '%') {
			int hi = n - i < 3 ? -1 : bytes_hex_digit(p[i + 1]),
			    lo = hi < 0 ? -1 : bytes_hex_digit(p[i + 2]);

			if (lo < 0)
				return NULL;
			byte = (uint8_t)(hi << 4 | lo);
			i += 2;
		}
		strbuf_addc(&out, (char)byte);
	}
	*len = out.len;
	return strbuf_steal(&out);
}

/* If the name occurs several times, the first value counts. */
char *attest_cdh_param(const char *query, const char *name, size_t *len)
{
	size_t n = strlen(name);

	for (const char *p = query; p && *p;) {
		size_t all = strcspn(p, "&");

		if (all > n && p[n] == '=' && memcmp(p, name, n) == 0)
			return decode(p + n + 1, all - n - 1, len);
		p += all + (p[all] == '&');
	}
	return NULL;
}

static const char *query_of(const struct httpd_req *r)
{
	const char *q = strchr(httpd_req_target(r), '?');

	return q ? q + 1 : "";
}

/* ---- the token */

/* Stop using the token. Jobs borrow it, so it is freed when the last of them has ended. */
static void token_drop(struct attest_cdh *c)
{
	c->token_spent = true;
	if (c->token_users > 0)
		return;
	attest_token_free(c->token);
	c->token = NULL;
	c->token_spent = false;
}

/* Return a token that is still valid long enough for a request, or NULL. */
static struct attest_token *token_now(struct attest_cdh *c)
{
	if (!c->token || c->token_spent)
		return NULL;
	if (c->token->exp_s > clock_wall_s() + SPARE_S)
		return c->token;
	token_drop(c);
	return NULL;
}

/* ---- answers */

/* Reply with the token and the private key that it is bound to, as api-server-rest does. The buffer
 * holds a private key, so it is wiped. */
static void reply_token(struct httpd_req *r, const struct attest_token *t)
{
	cleanup_wiped_strbuf struct strbuf out = STRBUF_INIT;
	cleanup_secret struct secret *pem = jwe_own_pem(t->key);

	strbuf_adds(&out, "{\"token\":");
	json_quote(&out, (const char *)secret_peek(t->text), secret_len(t->text) - 1);
	strbuf_adds(&out, ",\"tee_keypair\":");
	json_quote(&out, (const char *)secret_peek(pem), secret_len(pem));
	strbuf_addc(&out, '}');
	httpd_reply(r, 200, "application/json", out.data, out.len);
}

static void waiter_end(struct op *op)
{
	struct waiter *w = container_of(op, struct waiter, op);

	TAILQ_REMOVE(&w->job->waiters, w, link);
	free(w);
}

/* Free a job and report idleness. attest_cdh_free() ends here too, so the callback must
 * not free c. */
static void job_free(struct job *j)
{
	struct attest_cdh *c = j->cdh;

	LIST_REMOVE(j, link);
	c->n_jobs--;
	free(j->path);
	free(j);
	if (c->n_jobs == 0 && c->on_idle)
		c->on_idle(c->idle_arg);
}

/*
 * End a job: update the token and answer all waiters. After a refusal the token is dropped, because
 * the next attestation may lead to another verdict; a token that was replaced meanwhile is dropped
 * as well.
 */
static void on_fetched(void *arg, struct attest_fetch_answer *a)
{
	struct job *j = arg;
	struct attest_cdh *c = j->cdh;
	struct waiter *w;

	if (j->token)
		c->token_users--;
	if (a->fault == ATTEST_REFUSED || (a->token && c->token) ||
		(c->token_spent && !c->token_users))
		token_drop(c);
	if (a->token && !c->token)
		c->token = steal_ptr(&a->token);
	if (a->fault == ATTEST_OK)
		c->server = a->server;
	else
		log_err(LOG_WARN, NULL, "request failed", &a->err);
	while ((w = TAILQ_FIRST(&j->waiters)) != NULL) {
		struct httpd_req *r = w->req;

		op_finish(&w->op);
		waiter_end(&w->op);
		if (a->fault != ATTEST_OK)
			httpd_reply_error(r, 500, 0, "%s", a->err.text);
		else if (j->path)
			httpd_reply(r, 200, "application/octet-stream",
				a->resource.len ? a->resource.data : "", a->resource.len);
		else if (c->token)
			reply_token(r, c->token);
		else
			httpd_reply_error(
				r, 500, 0, "The token changed during the request: retry.");
	}
	job_free(j);
}

/* ---- jobs */

/* Start a fetch: one round over all servers, within BUDGET_MS. The token is borrowed only after the
 * start succeeded. */
static struct job *job_start(struct attest_cdh *c, const char *path, struct err *err)
{
	struct job *j = xcalloc(1, sizeof(*j));
	struct attest_fetch_request r = {.config = &j->config,
		.token_only = !path,
		.budget_ms = BUDGET_MS,
		.first = c->server};

	j->cdh = c;
	j->path = xstrdup(path);
	j->config = *c->config;
	j->config.path = j->path;
	j->config.limited = true;
	j->config.retries = 0;
	j->token = path ? token_now(c) : NULL;
	r.token = j->token;
	TAILQ_INIT(&j->waiters);
	LIST_INSERT_HEAD(&c->jobs, j, link);
	c->n_jobs++;
	if (!attest_fetch_start(c->client, c->source, &c->ops, &r, on_fetched, j, err)) {
		job_free(j);
		return NULL;
	}
	if (j->token)
		c->token_users++;
	return j;
}

/* Make a request wait for the job of this path, and start that job if none is running. */
static void join(struct attest_cdh *c, struct httpd_req *r, const char *path)
{
	struct err err = ERR_INIT;
	struct waiter *w;
	struct job *j;

	LIST_FOREACH (j, &c->jobs, link)
		if (str_eq(j->path, path)) /* NULL: only a token */
			break;

	if (!j && c->n_jobs == JOBS_MAX) {
		httpd_reply_error(r, 503, 1, "Too many resources are being fetched at once.");
		return;
	}
	if (!j && !(j = job_start(c, path, &err))) {
		httpd_reply_error(r, 500, 0, "%s", err.text);
		return;
	}
	w = xcalloc(1, sizeof(*w));
	w->job = j;
	w->req = r;
	TAILQ_INSERT_TAIL(&j->waiters, w, link);
	op_begin(&w->op, httpd_req_ops(r), waiter_end);
}

/* ---- handlers */

/* The order of checks matters: a caller that is not allowed learns nothing about paths. */
static void get_resource(struct httpd_req *r, void *arg)
{
	const char *path = httpd_req_path(r) + strlen(RESOURCE);

	if (!allowed(arg, r))
		return;
	if (!attest_path_valid(path))
		httpd_reply_error(r, 404, 0, "URL NOT FOUND");
	else if (attest_cdh_is_disk_key(path))
		httpd_reply_error(r, 403, 0,
			"Forbidden: disk keys are not served here; as root, use tec-node get-resource.");
	else
		join(arg, r, path);
}

/* Reply at once if the token is still valid, otherwise wait for an attestation. */
static void get_token(struct httpd_req *r, void *arg)
{
	struct attest_cdh *c = arg;
	size_t len = 0;
	cleanup_free char *type = NULL;

	if (!allowed_aa(c, r))
		return;
	type = attest_cdh_param(query_of(r), "token_type", &len);
	if (!str_eq(type, "kbs"))
		httpd_reply_error(r, 400, 0, "token_type must be kbs, the only supported type");
	else if (token_now(c))
		reply_token(r, token_now(c));
	else
		join(c, r, NULL);
}

/* Reply with the evidence. A child ends its output with a newline, which is removed. */
static void on_evidence(void *arg, const struct err *err, const char *json, size_t len)
{
	if (err_is_set(err)) {
		httpd_reply_error(arg, 500, 0, "%s", err->text);
		return;
	}
	while (len > 0 && json[len - 1] == '\n')
		len--;
	httpd_reply(arg, 200, "application/json", json, len);
}

/* The prefix begins with a letter, while a handshake hashes a JSON object, which begins with a
 * brace. */
void attest_cdh_bind(const void *data, size_t len, uint8_t out[RATS_BINDING_LEN])
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;

	strbuf_adds(&text, BIND_WITH);
	strbuf_add(&text, data, len);
	bytes_sha384(text.data, text.len, out);
}

/* Bind the runtime_data of a query. Return -1 if it is missing, too long or malformed. */
static int read_data(const char *query, uint8_t out[RATS_BINDING_LEN])
{
	size_t len = 0, n = 0;
	cleanup_free char *text = attest_cdh_param(query, "runtime_data", &len);
	cleanup_free char *encoding = attest_cdh_param(query, "encoding", &n);
	cleanup_free uint8_t *bytes = NULL;

	if (!text || (encoding && !str_eq(encoding, "base64")))
		return -1;
	if (encoding && (bytes_from_b64url(text, len, &bytes, &n) < 0 || n > DATA_MAX))
		return -1;
	if (!encoding && len > DATA_MAX)
		return -1;
	attest_cdh_bind(encoding ? (const void *)bytes : text, encoding ? n : len, out);
	return 0;
}

static void get_evidence(struct httpd_req *r, void *arg)
{
	struct attest_cdh *c = arg;
	uint8_t binding[RATS_BINDING_LEN];

	if (!allowed_aa(c, r))
		return;
	if (read_data(query_of(r), binding) < 0)
		httpd_reply_error(r, 400, 0,
			"runtime_data is missing, longer than %d bytes, or not base64url with encoding=base64",
			DATA_MAX);
	else
		/* The request's scope: a disconnect kills the child. A quote occupies no slot of
		 * the TPM, so none is lost. */
		c->source->start(c->source, httpd_req_ops(r), binding, on_evidence, r);
}

static void get_info(struct httpd_req *r, void *arg)
{
	const struct attest_cdh *c = arg;
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	if (!allowed(c, r))
		return;
	strbuf_addf(&out,
		"{\"version\":\"" PACKAGE_VERSION
		"\",\"tee\":\"%s\",\"additional_tees\":[],\"features\":[\"resource\"%s]}",
		c->source->tee, c->conf->aa ? ",\"attestation\"" : "");
	httpd_reply(r, 200, "application/json", out.data, out.len);
}

/* Word errors of the listener as api-server-rest does: plain text. */
static const char *error_body(struct strbuf *out, int status, const char *message)
{
	strbuf_adds(out, status == 404 ? "URL NOT FOUND" : message);
	return "text/plain";
}

static const struct httpd_route routes[] = {
	{.path = RESOURCE "*", .methods = HTTPD_GET, .fn = get_resource},
	{.path = "/aa/token", .methods = HTTPD_GET, .fn = get_token},
	{.path = "/aa/evidence", .methods = HTTPD_GET, .fn = get_evidence, .at_once = 8},
	{.path = "/info", .methods = HTTPD_GET, .fn = get_info},
};

/* ---- the service */

struct attest_cdh *attest_cdh_new(struct httpc *client, const struct attest_source *source,
	const struct attest_config *config, const struct attest_cdh_conf *cdh_conf)
{
	struct attest_cdh *c = xcalloc(1, sizeof(*c));
	struct httpd_conf conf = httpd_conf_default;

	c->client = client;
	c->source = source;
	c->config = config;
	c->conf = cdh_conf;
	LIST_INIT(&c->jobs);
	conf.name = "cdh";
	conf.request_ms = REQUEST_MS;
	conf.max_connections = CLIENTS;
	conf.limits.body = 1024;
	conf.requests_per_conn = 10000;
	conf.routes = routes;
	conf.n_routes = ARRAY_LEN(routes);
	conf.arg = c;
	conf.wipe = true;
	conf.error_body = error_body;
	c->httpd = httpd_new(source->loop, &conf);
	return c;
}

/* The listener goes first: it cancels the waiters, which point to jobs. */
void attest_cdh_free(struct attest_cdh *c)
{
	struct job *j;

	if (!c)
		return;
	httpd_free(c->httpd); /* ends the waiters */
	op_scope_cancel(&c->ops);
	while ((j = LIST_FIRST(&c->jobs)) != NULL)
		job_free(j);
	attest_token_free(c->token);
	free(c);
}

struct httpd *attest_cdh_httpd(const struct attest_cdh *c)
{
	return c->httpd;
}

void attest_cdh_on_idle(struct attest_cdh *c, attest_cdh_idle_fn idle, void *arg)
{
	c->on_idle = idle;
	c->idle_arg = arg;
}

bool attest_cdh_busy(const struct attest_cdh *c)
{
	return c->n_jobs > 0;
}
