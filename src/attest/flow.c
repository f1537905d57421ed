/* SPDX-License-Identifier: MIT */
/*
 * auth => evidence => attest => resource, one callback each. Text from a server is escaped and
 * shortened before it is shown. Stock Trustee answers every failure with 401, so a refusal is
 * classified by its `type` and by the request that failed.
 */
#include "config.h"

#include "tec/attest/flow.h"

#include <string.h>

#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/net/sessions.h"

#define CONNECT_MS 5000
#define ATTEST_MS  20000
#define NONCE_MAX  1024
#define TOKEN_MAX  60000 /* below SECRET_MAX_LEN */
#define ANSWER_MAX (128u << 10)

static const struct json_limits answer_limits = {.bytes = ANSWER_MAX, .depth = 16, .tokens = 4096};

struct flow {
	struct op op;        /* first */
	struct op_scope ops; /* its calls, one at a time */
	struct httpc *client;
	const struct attest_source *source;
	char *url, *path, *init_data;    /* owned; NULL as in the request */
	struct httpc_tls *tls;           /* owned reference, or NULL */
	const struct attest_token *have; /* borrowed; replaces the handshake, or NULL */
	uint32_t connect_ms;
	char *cookie, *nonce;       /* owned; from the answer to auth */
	struct attest_token *token; /* owned; its key exists before its text */
	attest_flow_fn done;
	void *arg;
};

/* ---- tokens */

void attest_token_free(struct attest_token *t)
{
	if (!t)
		return;
	secret_free(t->text);
	jwe_own_free(t->key);
	free(t);
}

/* Characters of base64url and the dots between the parts of a JWT; also those allowed in a path. */
static bool token_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '_' || c == '.';
}

/* The signature is not checked: only servers rely on it. */
struct json_object *attest_flow_claims(const char *jwt)
{
	const char *from = strchr(jwt, '.'), *to = from ? strchr(from + 1, '.') : NULL;
	cleanup_free uint8_t *claims = NULL;
	struct err ignored = ERR_INIT;
	size_t n = 0;

	if (!to || bytes_from_b64url(from + 1, (size_t)(to - from - 1), &claims, &n) < 0)
		return NULL;
	return json_parse((const char *)claims, n, &answer_limits, &ignored);
}

/* The characters are checked because the token goes into an Authorization header. */
struct attest_token *attest_flow_read_token(const char *body, size_t len, struct err *err)
{
	cleanup_json struct json_object *o = json_parse(body, len, &answer_limits, err);
	const char *text = json_get_str(o, "token");
	cleanup_json struct json_object *claims = NULL;
	struct attest_token *t;
	size_t n = text ? strlen(text) : 0;

	if (!o)
		return NULL;
	for (size_t i = 0; i < n && n <= TOKEN_MAX; i++)
		if (!token_char(text[i]))
			n = 0;
	if (n == 0 || n > TOKEN_MAX) {
		json_wipe(o);
		return err_null(err, ERR_INVALID, "the token is missing or malformed");
	}
	t = xcalloc(1, sizeof(*t));
	t->text = secret_new_copy(text, n + 1);
	claims = attest_flow_claims(text);
	t->exp_s = json_get_int(claims, "exp", 0);
	json_wipe(o);
	return t;
}

/* ---- paths */

/* The path becomes part of a URL, so its characters are limited. A segment does not begin with a
 * dot, so that "." and ".." are refused. */
bool attest_path_valid(const char *path)
{
	for (unsigned i = 0; i < 3; i++) {
		size_t n = 0;

		while (token_char(path[n]) && path[0] != '.')
			n++;
		if (n == 0 || n > 255 || path[n] != (i < 2 ? '/' : '\0'))
			return false;
		path += n + 1;
	}
	return true;
}

/* ---- interpreting answers */

/*
 * Servers that support several hash algorithms announce one; without an announcement it is SHA-384.
 */
char *attest_flow_read_nonce(const char *body, size_t len, struct err *err)
{
	cleanup_json struct json_object *o = json_parse(body, len, &answer_limits, err);
	const char *nonce = json_get_str(o, "nonce"),
		   *hash = json_get_str(o, "extra-params/selected-hash-algorithm");

	if (!o)
		return NULL;
	if (hash && !str_eq(hash, "sha384"))
		return err_null(err, ERR_INVALID,
			"it selects the hash %s, but this node supports only sha384",
			log_esc(hash));
	if (!nonce || !*nonce || strlen(nonce) > NONCE_MAX)
		return err_null(err, ERR_INVALID, "the nonce is missing or too long");
	return xstrdup(nonce);
}

/* Check whether an error type means that a policy refused this node or the resource. */
static bool is_policy(const char *type, const char *step)
{
	if (str_eq(step, "attest"))
		return str_eq(type, "AttestationError");
	return str_eq(step, "resource") &&
	       (str_eq(type, "PolicyDeny") || str_eq(type, "ResourceAccessDenied"));
}

/* Recognize refusals by policy, which a person has to resolve, and a missing resource, for which
 * Trustee answers PluginInternalError as for one that it cannot read; other error statuses may be
 * temporary. */
enum attest_fault attest_flow_judge(
	int status, const char *body, size_t len, const char *step, struct err *err)
{
	struct err unread = ERR_INIT;
	cleanup_json struct json_object *o =
		len > 0 ? json_parse(body, len, &json_limits_public, &unread) : NULL;
	const char *url = json_get_str(o, "type");
	const char *type = url && strrchr(url, '/') ? strrchr(url, '/') + 1 : url;
	const char *detail = type ? json_get_str(o, "detail") : NULL;

	if (status == 429) /* about the number of requests, whatever type it has */
		type = NULL;
	if (type && status >= 400 && status < 500 && is_policy(type, step)) {
		err_set_http(err, ERR_DENIED, status, "the server refused the request (%s)%s%.150s",
			type, detail ? ": " : "", detail ? log_esc(detail) : "");
		return ATTEST_REFUSED;
	}
	if (type && status >= 400 && status < 500 && str_eq(step, "resource") &&
		(str_eq(type, "ResourceNotFound") || str_eq(type, "PluginInternalError"))) {
		err_set_http(err, ERR_NOT_FOUND, status,
			"the server does not have this resource%s (%s)",
			*type == 'P' ? ", or cannot read it" : "", type);
		return ATTEST_SERVER;
	}
	err_set_http(err, ERR_TRANSIENT, status, "the server answered %d to %s%s%.150s", status,
		step, detail ? ": " : "", detail ? log_esc(detail) : "");
	return ATTEST_SERVER;
}

/* ---- the end */

static void flow_free(struct op *op)
{
	struct flow *f = container_of(op, struct flow, op);

	op_scope_cancel(&f->ops);
	httpc_tls_unref(f->tls);
	attest_token_free(f->token);
	free(f->url);
	free(f->path);
	free(f->init_data);
	free(f->cookie);
	free(f->nonce);
	free(f);
}

/* End the flow. `done` may take the token and the resource; otherwise both are freed here. */
static void finish(struct flow *f, struct attest_flow_answer *a)
{
	op_finish(&f->op);
	if (a->fault == ATTEST_OK)
		a->token = steal_ptr(&f->token);
	f->done(f->arg, a);
	attest_token_free(a->token);
	body_fini(&a->resource);
	flow_free(&f->op);
}

static void fail(struct flow *f, enum attest_fault fault, const struct err *err)
{
	struct attest_flow_answer a = {.fault = fault, .err = *err};

	finish(f, &a);
}

/* End with ATTEST_SERVER because an answer is unusable. */
static void fail_answer(struct flow *f, struct err *err, const char *step)
{
	err_wrap(err, "the server's answer to %s", step);
	fail(f, ATTEST_SERVER, err);
}

/* Return true if the answer has status 200. Otherwise end the flow; it must not be used
 * any more. */
static bool answered(
	struct flow *f, const struct err *err, const struct httpc_answer *a, const char *step)
{
	struct attest_flow_answer out = {.fault = ATTEST_NETWORK};

	if (!err_is_set(err) && a->status == 200)
		return true;
	if (err_is_set(err)) {
		/* INVALID: the server responded, but not with HTTP, or with too much of it. */
		out.fault = err->kind == ERR_INVALID ? ATTEST_SERVER : ATTEST_NETWORK;
		out.err = *err;
	} else {
		out.fault = attest_flow_judge(a->status, a->body, a->body_len, step, &out.err);
		out.err.retry_after_ms = a->retry_after_ms;
		out.stale = f->have && a->status == 401 && out.fault == ATTEST_SERVER &&
			    out.err.kind != ERR_NOT_FOUND;
	}
	finish(f, &out);
	return false;
}

/* ---- requests */

/* Send a request to the KBS API. The session cookie links the requests of one handshake. */
static void ask(struct flow *f, const char *method, const char *path, const struct strbuf *body,
	uint32_t deadline_ms, httpc_done_fn done)
{
	cleanup_strbuf struct strbuf url = STRBUF_INIT, cookie = STRBUF_INIT;
	struct httpc_header headers[2] = {{"Accept", "application/json"}, {"Cookie", NULL}};
	struct httpc_request r = {.method = method,
		.tls = f->tls,
		.headers = headers,
		.n_headers = 1,
		.body = body ? body->data : NULL,
		.body_len = body ? body->len : 0,
		.max_body = f->path ? 2 * ATTEST_RESOURCE_MAX : ANSWER_MAX,
		.connect_ms = f->connect_ms,
		.deadline_ms = deadline_ms};

	if (body)
		headers[0] = (struct httpc_header){"Content-Type", "application/json"};
	if (f->cookie) {
		strbuf_addf(&cookie, "kbs-session-id=%s", f->cookie);
		headers[1].value = strbuf_str(&cookie);
		r.n_headers = 2;
	}
	if (f->have)
		r.bearer = (const char *)secret_peek(f->have->text);
	strbuf_addf(&url, "%s/kbs/v0/%s", f->url, path);
	r.url = strbuf_str(&url);
	httpc_start(f->client, &f->ops, &r, NULL, done, f);
}

/* Decrypt the resource with the key that the attestation announced to the server. */
static void on_resource(void *arg, const struct err *err, const struct httpc_answer *answer)
{
	struct flow *f = arg;
	const struct attest_token *t = f->have ? f->have : f->token;
	struct attest_flow_answer out = {.fault = ATTEST_OK};

	if (!answered(f, err, answer, "resource"))
		return;
	if (jwe_open(t->key, answer->body, answer->body_len, &out.resource, &out.err) < 0)
		fail_answer(f, &out.err, "resource");
	else
		finish(f, &out);
}

static void ask_resource(struct flow *f)
{
	cleanup_strbuf struct strbuf path = STRBUF_INIT;

	strbuf_addf(&path, "resource/%s", f->path);
	ask(f, "GET", strbuf_str(&path), NULL, ATTEST_MS, on_resource);
}

/* Store the token in the struct that already holds its key. */
static void on_attest(void *arg, const struct err *err, const struct httpc_answer *answer)
{
	struct flow *f = arg;
	struct attest_flow_answer out = {.fault = ATTEST_OK};
	struct attest_token *t;

	if (!answered(f, err, answer, "attest"))
		return;
	t = attest_flow_read_token(answer->body, answer->body_len, &out.err);
	if (!t) {
		fail_answer(f, &out.err, "attest");
		return;
	}
	f->token->text = steal_ptr(&t->text);
	f->token->exp_s = t->exp_s;
	attest_token_free(t);
	if (f->path)
		ask_resource(f);
	else
		finish(f, &out);
}

/* Send the evidence. It is parsed first because it comes from a child process. */
static void on_evidence(void *arg, const struct err *err, const char *json, size_t len)
{
	struct flow *f = arg;
	struct err bad = ERR_INIT;
	enum rats_flaw flaw;
	struct rats_attest a = {.nonce = f->nonce, .init_data = f->init_data, .additional = ""};
	cleanup_json struct json_object *o = NULL;
	cleanup_strbuf struct strbuf body = STRBUF_INIT;

	if (err_is_set(err)) {
		fail(f, ATTEST_TPM, err);
		return;
	}
	o = json_parse(json, len, &json_limits_public, &bad);
	if (!o || rats_evidence_read(o, &a.evidence, &flaw, &bad) < 0) {
		err_wrap(&bad, "this node's evidence");
		fail(f, ATTEST_TPM, &bad);
		return;
	}
	jwe_own_public(f->token->key, &a.key);
	rats_attest_write(&a, &body);
	ask(f, "POST", "attest", &body, ATTEST_MS, on_attest);
}

/* Create the session key and collect evidence bound to it and to the server's nonce. */
static void on_auth(void *arg, const struct err *err, const struct httpc_answer *answer)
{
	struct flow *f = arg;
	uint8_t binding[RATS_BINDING_LEN];
	struct err bad = ERR_INIT;
	struct pki_jwk key;

	if (!answered(f, err, answer, "auth"))
		return;
	f->nonce = attest_flow_read_nonce(answer->body, answer->body_len, &bad);
	f->cookie = answer->set_cookie ? sessions_cookie(answer->set_cookie) : NULL;
	if (f->nonce && !f->cookie)
		err_set(&bad, ERR_INVALID, "the session cookie is missing");
	if (err_is_set(&bad)) {
		fail_answer(f, &bad, "auth");
		return;
	}
	f->token = xcalloc(1, sizeof(*f->token));
	f->token->key = jwe_own_new();
	jwe_own_public(f->token->key, &key);
	rats_binding(&key, f->nonce, "", binding);
	f->source->start(f->source, &f->ops, binding, on_evidence, f);
}

/* Trailing slashes of the URL are removed: people paste them, and "//kbs" would not be routed. */
struct op *attest_flow_start(struct httpc *client, const struct attest_source *source,
	struct op_scope *scope, const struct attest_flow_request *r, attest_flow_fn done, void *arg)
{
	struct flow *f = xcalloc(1, sizeof(*f));
	cleanup_json struct json_object *extra = json_obj();
	struct rats_auth auth = {.tee = source->tee, .extra = extra};
	cleanup_strbuf struct strbuf body = STRBUF_INIT;
	size_t n = strlen(r->url);

	while (n > 0 && r->url[n - 1] == '/')
		n--;
	f->client = client;
	f->source = source;
	f->url = xstrndup(r->url, n);
	f->path = xstrdup(r->path);
	f->init_data = xstrdup(r->init_data);
	f->tls = r->tls ? httpc_tls_ref(r->tls) : NULL;
	f->have = r->token;
	f->connect_ms = r->connect_ms ? r->connect_ms : CONNECT_MS;
	f->done = done;
	f->arg = arg;
	op_begin(&f->op, scope, flow_free);
	if (f->have) {
		ask_resource(f);
		return &f->op;
	}
	/* The connect timeout covers the answer too, so that a dead server is skipped quickly. */
	rats_auth_write(&auth, &body);
	ask(f, "POST", "auth", &body, f->connect_ms, on_auth);
	return &f->op;
}
