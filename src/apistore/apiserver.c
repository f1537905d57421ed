/* SPDX-License-Identifier: MIT */
/*
 * One handler for every path, in this order: what needs no name; who asks (401); what the path is
 * about (404); may he (403); how the answer may look (406); then the store.
 */
#include "config.h"

#include "tec/apistore/apiserver.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "tec/apistore/face.h"
#include "tec/apistore/list.h"
#include "tec/apistore/protobuf.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/yaml.h"

#include "apiserver_internal.h"

#define HEAD_MAX     (48 * 1024)
#define LINE_MAX_LEN (24 * 1024) /* a token of 16 KiB */
#define TARGET_MAX   (8 * 1024)
#define REQUEST_MS   60000
#define IDLE_MS      120000       /* client-go keeps a connection for 90 s */
#define PIECE        (128u << 10) /* of a list */
#define RENEW_MS     (12 * 3600 * 1000)
#define JSON_TYPE    "application/json"
#define TEXT_TYPE    "text/plain; charset=utf-8"
#define NOT_FOUND    "404 page not found\n"

static const char *const free_paths[] = {"/healthz", "/livez", "/readyz", "/version"};

/* ---- answers */

void apiserver_answer(struct httpd_req *req, struct apistore_answer take)
{
	const char *type = take.len && take.body[0] == '{' ? JSON_TYPE : TEXT_TYPE;

	httpd_reply_header(req, "Cache-Control", "no-cache, private");
	if (take.code == 401)
		httpd_reply_header(req, "WWW-Authenticate", "Bearer realm=\"tec-operator\"");
	httpd_reply(req, take.code, type, take.body ? take.body : "", take.len);
	apistore_answer_fini(&take);
}

void apiserver_json(struct httpd_req *req, int code, struct json_object *take_o)
{
	apiserver_answer(req, apistore_status_object(code, take_o));
	json_object_put(take_o);
}

static void not_found(struct httpd_req *req)
{
	httpd_reply(req, 404, TEXT_TYPE, NOT_FOUND, strlen(NOT_FOUND));
}

/* What the listener refuses by itself. */
static const char *error_body(struct strbuf *out, int status, const char *message)
{
	static const struct {
		int status;
		const char *reason;
	} reasons[] = {{400, "BadRequest"}, {405, "MethodNotAllowed"}, {408, "Timeout"},
		{413, "RequestEntityTooLarge"}, {415, "UnsupportedMediaType"},
		{429, "TooManyRequests"}, {503, "ServiceUnavailable"}};
	const char *reason = "";
	struct apistore_answer a;

	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		if (reasons[i].status == status)
			reason = reasons[i].reason;
	a = apistore_status_refusal(status, reason, "%s", message);
	strbuf_add(out, a.body, a.len);
	apistore_answer_fini(&a);
	return JSON_TYPE;
}

/* ---- without a name */

static void reply_ready(struct apistore_apiserver *a, struct httpd_req *req)
{
	const char *why = "not ready";

	if (!a->conf.ready || a->conf.ready(a->conf.ready_arg, &why))
		httpd_reply(req, 200, TEXT_TYPE, "ok", 2);
	else
		httpd_reply(req, 500, TEXT_TYPE, why, strlen(why));
}

/* The version whose API this follows; what comes after the plus is ours. */
static void reply_version(struct apistore_apiserver *a, struct httpd_req *req)
{
	cleanup_free char *git = xasprintf("v1.34.0+tec-operator-%s", a->conf.version);
	struct json_object *o = json_obj();

	json_add_str(json_add_str(o, "major", "1"), "minor", "34");
	json_add_str(o, "gitVersion", git);
	json_add_str(json_add_str(o, "gitCommit", ""), "gitTreeState", "clean");
	json_add_str(o, "buildDate", "1970-01-01T00:00:00Z");
	json_add_str(json_add_str(o, "goVersion", ""), "compiler", "");
	json_add_str(o, "platform", "linux");
	apiserver_json(req, 200, o);
}

static bool served_to_all(struct apistore_apiserver *a, struct httpd_req *req)
{
	const char *path = httpd_req_path(req);
	size_t i = 0;

	while (i < ARRAY_LEN(free_paths) && strcmp(path, free_paths[i]) != 0)
		i++;
	if (i == ARRAY_LEN(free_paths))
		return false;
	if (!(httpd_req_method(req) & (HTTPD_GET | HTTPD_HEAD)))
		apiserver_answer(req, apistore_status_refusal(
					      405, "MethodNotAllowed", "only GET is allowed here"));
	else if (str_eq(path, "/version"))
		reply_version(a, req);
	else if (str_eq(path, "/readyz"))
		reply_ready(a, req);
	else
		httpd_reply(req, 200, TEXT_TYPE, "ok", 2);
	return true;
}

/* ---- who asks */

static struct json_object *account_of(
	struct apistore_apiserver *a, const char *ns, const char *name)
{
	cleanup_free char *path = xasprintf("/api/v1/namespaces/%s/serviceaccounts/%s", ns, name);

	return apistore_face_get(a->conf.objects, path);
}

static bool token_user(struct apistore_apiserver *a, const char *token, struct apistore_user *out)
{
	cleanup_json struct json_object *account = NULL;
	struct err err = ERR_INIT;

	if (apistore_token_read(a->tokens, token, strlen(token), clock_wall_s(), out, &err) < 0)
		return false;
	account = account_of(a, out->ns, out->account);
	return account && str_eq(json_get_str(account, "metadata/uid"), out->uid);
}

/* A certificate goes before a token, as in kube-apiserver; a bad one of either is no user at all. */
static bool user_of(struct apistore_apiserver *a, struct httpd_req *req, struct apistore_user *out)
{
	const char *auth = httpd_req_header(req, "Authorization");
	struct tls_client client;

	*out = (struct apistore_user){.n_groups = 0};
	switch (httpd_req_client(req, &client)) {
	case TLS_CLIENT_BAD:
		return false;
	case TLS_CLIENT_OK:
		snprintf(out->name, sizeof(out->name), "%s", client.name);
		for (size_t i = 0; i < client.n_orgs; i++)
			apistore_user_add_group(out, client.orgs[i]);
		break;
	case TLS_CLIENT_NONE:
		if (!auth || strncasecmp(auth, "Bearer ", 7) != 0 || !token_user(a, auth + 7, out))
			return false;
	}
	apistore_user_add_group(out, "system:authenticated");
	return true;
}

static struct json_object *role(void *arg, const char *ns, const char *name)
{
	cleanup_strbuf struct strbuf path = STRBUF_INIT;

	strbuf_addf(&path, "/apis/rbac.authorization.k8s.io/v1/namespaces/%s/roles/", ns);
	str_percent_encode(&path, name, strlen(name));
	return apistore_face_get(arg, path.data);
}

static struct json_object *bindings(void *arg, const char *ns)
{
	cleanup_strbuf struct strbuf path = STRBUF_INIT;

	strbuf_adds(&path, "/apis/rbac.authorization.k8s.io/v1/namespaces/");
	str_percent_encode(&path, ns, strlen(ns));
	strbuf_adds(&path, "/rolebindings");
	return apistore_face_get(arg, path.data);
}

/* ---- what may be done */

struct apistore_act apiserver_act(const struct apistore_target *t, const char *verb)
{
	return (struct apistore_act){.verb = verb,
		.group = t->group,
		.resource = t->resource,
		.sub = t->sub,
		.ns = str_eq(t->resource, "namespaces") ? t->name : t->ns,
		.name = t->name,
		.path = ""};
}

static bool is_watch(const struct apistore_target *t)
{
	return apistore_target_flag(t, "watch");
}

static const char *verb_of(enum httpd_method m, const struct apistore_target *t)
{
	switch (m) {
	case HTTPD_POST:
		return "create";
	case HTTPD_PUT:
		return "update";
	case HTTPD_PATCH:
		return "patch";
	case HTTPD_DELETE:
		return t->name[0] ? "delete" : "deletecollection";
	case HTTPD_GET:
	case HTTPD_HEAD:
	case HTTPD_OPTIONS:
		break;
	}
	return t->name[0] ? "get" : is_watch(t) ? "watch" : "list";
}

static void forbid(const struct apiserver_call *c, const struct apistore_act *act)
{
	cleanup_free char *why = apistore_rights_refusal(&c->user, act);
	struct json_object *o = json_obj(), *d = json_obj();

	json_add_str(json_add_str(o, "kind", "Status"), "apiVersion", "v1");
	json_add(o, "metadata", json_obj());
	json_add_str(json_add_str(o, "status", "Failure"), "message", why);
	json_add_str(o, "reason", "Forbidden");
	json_add_str(d, "name", act->name[0] ? act->name : NULL);
	json_add_str(d, "group", act->group[0] ? act->group : NULL);
	json_add_str(d, "kind", act->resource[0] ? act->resource : NULL);
	json_add_int(json_add(o, "details", d), "code", 403);
	apiserver_json(c->req, 403, o);
}

/* ---- how the answer may look */

/* The first of the media ranges that can be served. False: none. */
static bool accepts_json(struct httpd_req *req)
{
	static const char *const ranges[] = {"application/json", "application/*", "*/*"};
	const char *p = httpd_req_header(req, "Accept");

	if (!p || !*p)
		return true;
	for (; *p; p += strcspn(p, ","), p += *p == ',') {
		size_t n;

		p += strspn(p, " \t");
		n = strcspn(p, ";, \t");
		for (size_t i = 0; i < ARRAY_LEN(ranges); i++)
			if (n == strlen(ranges[i]) && strncasecmp(p, ranges[i], n) == 0)
				return true;
	}
	return false;
}

static struct apistore_answer not_acceptable(void)
{
	return apistore_status_refusal(406, "NotAcceptable",
		"only the following media types are accepted: application/json");
}

/* ---- bodies */

static bool type_is(const char *have, const char *want)
{
	size_t n = have ? strcspn(have, "; \t") : 0;

	return n == strlen(want) && strncasecmp(have, want, n) == 0;
}

/* What a client may leave out, since the path says it. */
static void complete(struct json_object *o, const struct apistore_kind_names *k)
{
	cleanup_free char *gv = xasprintf("%s%s%s", k->group, k->group[0] ? "/" : "", k->version);

	if (!json_get_str(o, "apiVersion"))
		json_add_str(o, "apiVersion", gv);
	if (!json_get_str(o, "kind"))
		json_add_str(o, "kind", k->kind);
}

/* A body as JSON; NULL: *refusal says why. An empty body is an empty object. */
static struct json_object *read_body(struct httpd_req *req, struct apistore_answer *refusal)
{
	const char *type = httpd_req_header(req, "Content-Type");
	struct err err = ERR_INIT;
	struct json_object *o;
	size_t len;
	const char *body = httpd_req_body(req, &len);

	if (len == 0)
		return json_obj();
	if (type_is(type, APISTORE_PROTOBUF_TYPE)) {
		o = apistore_protobuf_read(body, len, &err);
		if (!o && err.kind == ERR_NOT_FOUND) {
			*refusal = apistore_status_refusal(
				415, "UnsupportedMediaType", "%s", err.text);
			return NULL;
		}
	} else if (type_is(type, "application/yaml"))
		o = yaml_parse(body, len, &err);
	else
		o = json_parse(body, len, &json_limits_object, &err);
	if (!o)
		*refusal = apistore_status_refusal(400, "BadRequest",
			"the object provided is unrecognized: %s",
			err_is_set(&err) ? err.text : "it is null");
	return o;
}

/* ---- the store */

/* An answer that waits until it is stored, or a list that is sent piece by piece. */
struct reply {
	struct apistore_apiserver *a;
	struct httpd_req *req;
	struct apistore_wait wait;
	struct apistore_answer answer;
	struct defer next;
	bool blocked;
};

static void reply_gone(void *arg)
{
	struct reply *r = arg;

	apistore_wait_cancel(&r->wait);
	defer_cancel(&r->next);
	apistore_answer_fini(&r->answer);
	free(r);
}

static void next_piece(void *arg)
{
	struct reply *r = arg;
	struct body out = BODY_INIT;
	struct err err = ERR_INIT;
	int rc;

	if (r->blocked)
		return;
	rc = apistore_list_pull(r->answer.more, &out, PIECE, &err);
	if (out.len > 0)
		r->blocked = httpd_stream_add(r->req, out.data, out.len) > 0;
	body_fini(&out);
	if (rc > 0) {
		defer_call(&r->next, r->a->loop, next_piece, r);
	} else if (rc == 0) {
		httpd_stream_end(r->req);
	} else {
		log_err(LOG_ERROR, NULL, "a list cannot be read to its end", &err);
		httpd_stream_abort(r->req); /* what was sent must not look whole */
	}
}

static void on_drained(void *arg)
{
	struct reply *r = arg;

	r->blocked = false;
	defer_call(&r->next, r->a->loop, next_piece, r);
}

static void on_stored(void *arg, const struct err *failed)
{
	struct reply *r = arg;
	struct apistore_answer a = r->answer;

	if (!err_is_set(failed) && a.more && httpd_req_method(r->req) == HTTPD_GET) {
		httpd_reply_header(r->req, "Cache-Control", "no-cache, private");
		httpd_stream_start(r->req, a.code, JSON_TYPE, on_drained, r);
		r->blocked = a.len > 0 && httpd_stream_add(r->req, a.body, a.len) > 0;
		next_piece(r);
		return;
	}
	r->answer = (struct apistore_answer){0};
	if (err_is_set(failed)) {
		apistore_answer_fini(&a);
		a = apistore_status_storage(failed);
	}
	apiserver_answer(r->req, a);
}

static void answer_stored(const struct apiserver_call *c, struct apistore_answer take)
{
	struct reply *r = xcalloc(1, sizeof(*r));

	r->a = c->a;
	r->req = c->req;
	r->answer = take;
	httpd_req_on_gone(c->req, reply_gone, r);
	apistore_objects_when_stored(c->a->conf.objects, &r->wait, on_stored, r);
}

/* The types of whole objects, which are JSON once they are read. */
static bool is_object_type(const char *type)
{
	return type_is(type, "application/yaml") || type_is(type, APISTORE_PROTOBUF_TYPE);
}

static void ask_store(const struct apiserver_call *c, const char *method)
{
	const char *type = httpd_req_header(c->req, "Content-Type"), *raw;
	struct apistore_answer refusal = {0};
	cleanup_json struct json_object *body = NULL;
	cleanup_free char *text = NULL;
	size_t len = 0;

	raw = httpd_req_body(c->req, &len);
	if (str_eq(method, "PATCH")) { /* read by its own type */
		answer_stored(c, apistore_face_ask(c->a->conf.objects, method,
					 httpd_req_target(c->req), type ? type : "", raw, len));
		return;
	}
	if (len > 0 || str_eq(method, "POST")) {
		body = read_body(c->req, &refusal);
		if (!body) {
			apiserver_answer(c->req, refusal);
			return;
		}
	}
	if (body && apiserver_review(c, body))
		return;
	if (body && json_object_is_type(body, json_type_object) &&
		(str_eq(method, "POST") || str_eq(method, "PUT")))
		complete(body, c->kind);
	text = body ? json_text(body) : NULL;
	answer_stored(
		c, apistore_face_ask(c->a->conf.objects, method, httpd_req_target(c->req),
			   is_object_type(type) ? NULL : type, text, text ? strlen(text) : 0));
	if (text)
		secret_wipe(text, strlen(text));
}

static void serve_object(const struct apiserver_call *c)
{
	const enum httpd_method m = httpd_req_method(c->req);
	const struct apistore_act act = apiserver_act(c->t, verb_of(m, c->t));
	bool read = m == HTTPD_GET || m == HTTPD_HEAD;

	if (!apistore_rights_allow(&c->user, &act, &c->a->roles))
		forbid(c, &act);
	else if (!accepts_json(c->req))
		apiserver_answer(c->req, not_acceptable());
	else if (m == HTTPD_GET && !c->t->name[0] && is_watch(c->t))
		apiserver_watch_start(c);
	else
		ask_store(c, read ? "GET" : httpd_method_name(m));
}

/* ---- everything else that has a name */

static void serve_path(const struct apiserver_call *c)
{
	const char *path = httpd_req_path(c->req);
	struct apistore_act act = {"get", "", "", "", "", "", path};
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	struct json_object *o;

	if (httpd_req_method(c->req) != HTTPD_GET && httpd_req_method(c->req) != HTTPD_HEAD)
		act.verb = httpd_method_name(httpd_req_method(c->req));
	if (!apistore_rights_allow(&c->user, &act, &c->a->roles)) {
		forbid(c, &act);
		return;
	}
	if (str_eq(path, "/metrics") && c->a->conf.metrics) {
		c->a->conf.metrics(&text);
		httpd_reply(c->req, 200, "text/plain; version=0.0.4; charset=utf-8",
			strbuf_str(&text), text.len);
		return;
	}
	o = apistore_kinds_document(c->a->conf.kinds, path, c->a->server);
	if (!o)
		not_found(c->req);
	else if (!accepts_json(c->req)) {
		json_object_put(o);
		apiserver_answer(c->req, not_acceptable());
	} else
		apiserver_json(c->req, 200, o);
}

/* To go on as who really asks would answer for a user with fewer rights. */
static bool is_impersonation(struct httpd_req *req)
{
	return httpd_req_header(req, "Impersonate-User") ||
	       httpd_req_header(req, "Impersonate-Group") ||
	       httpd_req_header(req, "Impersonate-Uid");
}

static void serve(struct httpd_req *req, void *arg)
{
	struct apiserver_call c = {.a = arg, .req = req};
	cleanup_apistore_target struct apistore_target t = {0};

	struct err err = ERR_INIT;
	int rc;

	if (served_to_all(c.a, req))
		return;
	if (!user_of(c.a, req, &c.user)) {
		apiserver_answer(req, apistore_status_refusal(401, "Unauthorized", "Unauthorized"));
		return;
	}
	if (is_impersonation(req)) {
		apiserver_answer(req, apistore_status_refusal(403, "Forbidden",
					      "impersonation is not supported by this API server"));
		return;
	}
	rc = apistore_target_parse(httpd_req_target(req), &t, &err);
	if (rc < 0 && err.kind != ERR_NOT_FOUND) {
		apiserver_answer(req, apistore_status_refusal(400, "BadRequest", "%s", err.text));
		return;
	}
	if (rc == 0)
		c.kind = apistore_kinds_find(c.a->conf.kinds, t.group, t.version, t.resource);
	if (!c.kind) {
		serve_path(&c);
		return;
	}
	c.t = &t;
	serve_object(&c);
}

/* ---- the listener */

static int use_certificate(struct apistore_apiserver *a, struct err *err)
{
	const struct apistore_authority *au = a->conf.authority;
	const char *cert = apistore_authority_cert(au), *ca = apistore_authority_ca(au);
	const struct secret *key = apistore_authority_key(au);
	cleanup_tls_ctx struct tls_ctx *tls =
		tls_ctx_new(cert, strlen(cert), secret_peek(key), secret_len(key), err);

	if (!tls || tls_ctx_ask_clients(tls, ca, strlen(ca), err) < 0)
		return err_wrap(err, "the API server's certificate");
	httpd_set_tls(a->httpd, tls);
	return 0;
}

static void on_renew(void *arg)
{
	struct apistore_apiserver *a = arg;
	struct err err = ERR_INIT;
	int rc = apistore_authority_renew(a->conf.authority, clock_wall_s(), &err);

	if (rc == 1)
		rc = use_certificate(a, &err);
	if (rc < 0)
		log_err(LOG_ERROR, NULL, "the API server's certificates cannot be renewed", &err);
	timer_set(&a->renew, RENEW_MS);
}

static int read_token_key(struct apistore_apiserver *a, struct err *err)
{
	cleanup_strbuf struct strbuf pem = STRBUF_INIT;

	pki_key_public_pem(apistore_authority_token_key(a->conf.authority), &pem);
	a->tokens = jws_public_from_pem(pem.data, pem.len, err);
	return a->tokens ? 0 : -1;
}

struct apistore_apiserver *apistore_apiserver_new(
	struct loop *l, const struct apistore_apiserver_conf *conf, struct err *err)
{
	static const struct httpd_route routes[] = {{.path = "/*",
		.methods = HTTPD_GET | HTTPD_HEAD | HTTPD_POST | HTTPD_PUT | HTTPD_DELETE |
			   HTTPD_PATCH | HTTPD_OPTIONS,
		.fn = serve}};
	struct apistore_apiserver *a = xcalloc(1, sizeof(*a));
	struct httpd_conf h = httpd_conf_default;

	a->conf = *conf;
	a->loop = l;
	a->roles = (struct apistore_roles){role, bindings, conf->objects};
	h.name = "api";
	h.limits = (struct httphead_limits){.head = HEAD_MAX,
		.body = APISTORE_BODY_MAX,
		.lines = 100,
		.line = LINE_MAX_LEN,
		.target = TARGET_MAX};
	h.request_ms = REQUEST_MS;
	h.idle_ms = IDLE_MS;
	h.requests_per_conn = UINT32_MAX;
	h.max_connections = conf->max_connections;
	h.routes = routes;
	h.n_routes = ARRAY_LEN(routes);
	h.arg = a;
	h.wipe = true;
	h.error_body = error_body;
	a->httpd = httpd_new(l, &h);
	timer_init(&a->renew, l, on_renew, a);
	timer_set(&a->renew, RENEW_MS);
	if (read_token_key(a, err) < 0 || use_certificate(a, err) < 0) {
		apistore_apiserver_free(a);
		return NULL;
	}
	return a;
}

void apistore_apiserver_free(struct apistore_apiserver *a)
{
	if (!a)
		return;
	httpd_free(a->httpd); /* ends the watches */
	timer_fini(&a->renew);
	jws_public_free(a->tokens);
	free(a);
}

struct httpd *apistore_apiserver_httpd(struct apistore_apiserver *a)
{
	return a->httpd;
}

void apistore_apiserver_drain(struct apistore_apiserver *a)
{
	httpd_drain(a->httpd);
	apiserver_watch_end_all(a);
}
