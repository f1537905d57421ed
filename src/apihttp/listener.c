/* SPDX-License-Identifier: MIT */
/*
 * One handler serves every path, in this order: paths open to anonymous users, authentication
 * (401), parsing the path (400), authorization (403), unknown resources (404) and verbs (405),
 * content negotiation (406), then the store.
 */
#include "config.h"

#include "tec/apihttp/listener.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "tec/apireq/inproc.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/loop/timer.h"

#include "apihttp_internal.h"

#define HEAD_MAX     (48 * 1024)
#define LINE_MAX_LEN (24 * 1024) /* room for a token of 16 KiB */
#define TARGET_MAX   (8 * 1024)
#define REQUEST_MS   60000
#define IDLE_MS      120000 /* client-go keeps a connection for 90 s */
#define RENEW_MS     (12 * 3600 * 1000)

struct apihttp_listener {
	struct apihttp_shared shared;
	struct httpd *httpd;       /* owned */
	struct jws_public *tokens; /* owned */
	struct timer renew;        /* when to check the certificates */
};

/* Write the Status body of an error that the listener itself sends, before any handler is
 * called. */
static const char *error_body(struct strbuf *out, int status, const char *message)
{
	struct apireq_answer a = apireq_status_refusal(status, "%s", message);

	strbuf_add(out, a.body, a.len);
	apireq_answer_fini(&a);
	return APIHTTP_JSON;
}

/* ---- who asks */

/* Authenticate a request. A client certificate takes precedence over a token, as in kube-apiserver;
 * an invalid certificate is an error even if a valid token comes with it. The ServiceAccount of a
 * token must still exist with the uid in the token: an account deleted and created again does not
 * inherit its predecessor's tokens. */
static bool user_of(struct apihttp_listener *a, struct httpd_req *req, struct apireq_user *out)
{
	const char *auth = httpd_req_header(req, "Authorization"), *token;
	cleanup_json struct json_object *account = NULL;
	struct tls_client client;
	struct err err = ERR_INIT;

	*out = (struct apireq_user){.n_groups = 0};
	switch (httpd_req_client(req, &client)) {
	case TLS_CLIENT_BAD:
		return false;
	case TLS_CLIENT_OK:
		snprintf(out->name, sizeof(out->name), "%s", client.name);
		for (size_t i = 0; i < client.n_orgs; i++)
			apireq_user_add_group(out, client.orgs[i]);
		break;
	case TLS_CLIENT_NONE:
		if (!auth || strncasecmp(auth, "Bearer ", 7) != 0)
			return false;
		token = auth + 7;
		if (apireq_token_read(a->tokens, token, strlen(token), clock_wall_s(), out, &err) <
			0)
			return false;
		account = apireq_inproc_object(a->shared.conf.objects,
			&(const struct store_key){"serviceaccounts", out->ns, out->account});
		if (!account || !str_eq(json_get_str(account, "metadata/uid"), out->uid))
			return false;
	}
	apireq_user_add_group(out, "system:authenticated");
	return true;
}

/* Tell the listener whether a client is authenticated, before its body is read. */
static enum httpd_standing standing(struct httpd_req *req, void *arg)
{
	struct apireq_user user;

	return user_of(arg, req, &user) ? HTTPD_KNOWN : HTTPD_REFUSED;
}

/* ---- what may be done */

/* Map an HTTP method to the RBAC verb, as kube-apiserver does. */
static const char *verb_of(enum httpd_method m, const struct apireq_request_info *t)
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
	return t->name[0] ? "get" : apireq_request_info_flag(t, "watch") ? "watch" : "list";
}

/* Describe the request for authorization: an object with its RBAC verb, or else a non-resource
 * path, whose verb is the HTTP method ("get" for GET and HEAD). A Namespace object counts as being
 * in its own namespace, so a RoleBinding there can grant access to it. */
static struct apireq_act act_of(const struct apihttp_call *c, const char *path)
{
	const enum httpd_method m = httpd_req_method(c->req);
	const struct apireq_request_info *t = c->t;
	struct apireq_act act = {"get", "", "", "", "", "", path};

	if (c->kind)
		return (struct apireq_act){verb_of(m, t), t->group, t->resource, t->sub,
			str_eq(t->resource, "namespaces") ? t->name : t->ns, t->name, ""};
	if (m != HTTPD_GET && m != HTTPD_HEAD)
		act.verb = httpd_method_name(m);
	return act;
}

/* Does the kind support this verb? Custom kinds support all of them. An unknown subresource passes:
 * the store answers that with 404. */
static bool has_verb(const struct apihttp_call *c, const char *verb)
{
	const struct schema_sub *sub = schema_kind_sub(c->kind, c->t->sub);
	const char *names[9];

	if (c->kind->crd || (c->t->sub[0] && !sub))
		return true;
	schema_verb_names(sub ? sub->verbs : c->kind->verbs, names);
	for (const char **n = names; *n; n++)
		if (str_eq(*n, verb))
			return true;
	return false;
}

/* Handle one request; the file header gives the order. Authorization comes before 404 and 405, so a
 * user without rights does not learn what is served. */
static void serve(struct httpd_req *req, void *arg)
{
	cleanup_apireq_request_info struct apireq_request_info t = {0};
	struct apihttp_listener *a = arg;
	const struct schema_served served = apireq_kinds_served(a->shared.conf.kinds);
	struct apihttp_call c = {.shared = &a->shared, .req = req, .t = &t};
	struct apireq_act act;
	struct err err = ERR_INIT;
	int rc;

	if (apihttp_paths_open(c.shared, req))
		return;
	if (!user_of(a, req, &c.user)) {
		apihttp_answer_refuse(req, 401, "Unauthorized");
		return;
	}
	/* Ignoring the header would run the request with the rights of the caller instead of the
	 * fewer rights of the user that was named. */
	if (httpd_req_header(req, "Impersonate-User") ||
		httpd_req_header(req, "Impersonate-Group") ||
		httpd_req_header(req, "Impersonate-Uid")) {
		apihttp_answer_refuse(
			req, 403, "impersonation is not supported by this API server");
		return;
	}
	/* A path that is not an API path is authorized too, as a non-resource path. */
	rc = apireq_request_info_parse(httpd_req_target(req), &t, &err);
	if (rc < 0 && err.kind != ERR_NOT_FOUND) {
		apihttp_answer_refuse(req, 400, "%s", err.text);
		return;
	}
	if (rc == 0)
		c.kind = schema_served_kind(&served, t.group, t.version, t.resource);
	act = act_of(&c, httpd_req_path(req));
	if (!apireq_rights_allow(a->shared.conf.objects, &c.user, &act)) {
		const struct apireq_request_info denied = {.group = (char *)act.group,
			.resource = (char *)act.resource,
			.name = (char *)act.name};
		cleanup_free char *why = apireq_rights_refusal(&c.user, &act);

		apihttp_answer(req, apireq_status_denied(&denied, why));
	} else if (apihttp_admin_values(&c)) {
		return;
	} else if (c.kind && !has_verb(&c, act.verb)) {
		apihttp_answer_refuse(req, 405,
			"%s of %s is not served by tec-operator --standalone", act.verb,
			t.qualified);
	} else if (c.kind) {
		apihttp_objects(&c);
	} else if (rc == 0) {
		apihttp_answer_refuse(
			req, 404, "%s is not served by tec-operator --standalone", t.qualified);
	} else if (!apihttp_admin(&c)) {
		apihttp_paths(&c);
	}
}

/* ---- the listener */

/* Give the listener the current certificate and the CA that client certificates are verified
 * against. New connections use it; open ones keep theirs. */
static int use_certificate(struct apihttp_listener *a, struct err *err)
{
	const struct apihttp_identity id = apihttp_authority_identity(a->shared.conf.authority);
	cleanup_tls_ctx struct tls_ctx *tls =
		tls_ctx_new(id.cert, strlen(id.cert), secret_peek(id.key), secret_len(id.key), err);

	if (!tls || tls_ctx_ask_clients(tls, id.ca, strlen(id.ca), err) < 0)
		return err_wrap(err, "the API server's certificate");
	httpd_set_tls(a->httpd, tls);
	return 0;
}

/* Renew certificates twice a day. A failure is logged and retried at the next timer. */
static void on_renew(void *arg)
{
	struct apihttp_listener *a = arg;
	struct err err = ERR_INIT;
	int rc = apihttp_authority_renew(a->shared.conf.authority, clock_wall_s(), &err);

	if (rc == 1)
		rc = use_certificate(a, &err);
	if (rc < 0)
		log_err(LOG_ERROR, NULL, "the API server's certificates cannot be renewed", &err);
	timer_set(&a->renew, RENEW_MS);
}

/* One route takes all paths, because authentication and authorization come before everything that
 * depends on the path. Connections are reused without limit: client-go keeps one for all its
 * requests. */
struct apihttp_listener *apihttp_listener_new(
	struct loop *l, const struct apihttp_listener_conf *conf, struct err *err)
{
	static const struct httpd_route routes[] = {{.path = "/*",
		.methods = HTTPD_GET | HTTPD_HEAD | HTTPD_POST | HTTPD_PUT | HTTPD_DELETE |
			   HTTPD_PATCH | HTTPD_OPTIONS,
		.fn = serve}};
	struct apihttp_listener *a = xcalloc(1, sizeof(*a));
	struct httpd_conf h = httpd_conf_default;
	cleanup_strbuf struct strbuf pem = STRBUF_INIT;

	a->shared.conf = *conf;
	a->shared.loop = l;
	h.name = "api";
	h.limits = (struct httphead_limits){.head = HEAD_MAX,
		.body = APIREQ_BODY_MAX,
		.lines = 100,
		.line = LINE_MAX_LEN,
		.target = TARGET_MAX,
		.chunked = true}; /* clients that stream a body, such as kubectl create --raw */
	h.request_ms = REQUEST_MS;
	h.idle_ms = IDLE_MS;
	h.requests_per_conn = UINT32_MAX;
	h.max_connections = conf->max_connections;
	h.standing = standing;
	h.routes = routes;
	h.n_routes = ARRAY_LEN(routes);
	h.arg = a;
	/* Bodies hold Secrets: the listener wipes their buffers. */
	h.wipe = true;
	h.error_body = error_body;
	a->httpd = httpd_new(l, &h);
	timer_init(&a->renew, l, on_renew, a);
	timer_set(&a->renew, RENEW_MS);
	pki_key_public_pem(apihttp_authority_identity(conf->authority).token_key, &pem);
	a->tokens = jws_public_from_pem(pem.data, pem.len, err);
	if (!a->tokens || use_certificate(a, err) < 0) {
		apihttp_listener_free(a);
		return NULL;
	}
	return a;
}

void apihttp_listener_free(struct apihttp_listener *a)
{
	if (!a)
		return;
	httpd_free(a->httpd); /* ends all requests, and so their watches and jobs */
	apihttp_paths_fini(&a->shared);
	timer_fini(&a->renew);
	jws_public_free(a->tokens);
	free(a);
}

struct httpd *apihttp_listener_httpd(struct apihttp_listener *a)
{
	return a->httpd;
}

void apihttp_listener_drain(struct apihttp_listener *a)
{
	httpd_drain(a->httpd);
	apihttp_objects_drain(&a->shared);
}
