/* SPDX-License-Identifier: MIT */
/*
 * The listener, its routes, and how answers look. The real one has one handler for everything below
 * its prefix; with quirks, a second table sends what that handler would refuse to the same errors,
 * where the first leaves 405 and 404 to the listener. The attester's side would add its routes
 * here.
 */
#include "config.h"

#include <stdarg.h>
#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"

#include "kbsd_internal.h"

#define ERROR_URL         "https://github.com/confidential-containers/kbs/errors/"
#define REQUESTS_PER_CONN 100000
#define TOO_LARGE         "payload reached size limit"
#define ALL_METHODS       (HTTPD_GET | HTTPD_POST | HTTPD_PUT | HTTPD_DELETE)

static const char *const admin_paths[] = {KBSD_PREFIX "resource", KBSD_PREFIX "reference-value",
	KBSD_PREFIX "attestation-policy", KBSD_PREFIX "resource-policy", NULL};
static const struct kbsauth_acl acls[] = {{"admin", admin_paths}};

/* ---- answers */

static const char *method_name(enum httpd_method m)
{
	switch (m) {
	case HTTPD_GET:
		return "GET";
	case HTTPD_HEAD:
		return "HEAD";
	case HTTPD_POST:
		return "POST";
	case HTTPD_PUT:
		return "PUT";
	case HTTPD_DELETE:
		return "DELETE";
	case HTTPD_PATCH:
		return "PATCH";
	}
	return "?";
}

static void note(const struct kbsd_call *c, int status, const char *type)
{
	struct kbsd_event e = {
		.verb = c->verb,
		.method = method_name(httpd_req_method(c->req)),
		.target = httpd_req_target(c->req),
		.status = status,
		.type = type,
	};

	if (c->k->on_request)
		c->k->on_request(c->k->arg, &e);
}

void kbsd_reply(const struct kbsd_call *c, const char *content_type, const void *body, size_t len)
{
	note(c, 200, "");
	httpd_reply(c->req, 200, content_type, body, len);
}

static void make_error(struct strbuf *out, const char *type, const char *detail)
{
	strbuf_addf(out, "{\"type\":\"" ERROR_URL "%s\",\"detail\":", type);
	json_quote(out, detail, strlen(detail));
	strbuf_addc(out, '}');
}

static bool is_no_path(const char *type)
{
	return str_eq(type, "InvalidRequestPath") || str_eq(type, "PluginNotFound");
}

void kbsd_refuse(const struct kbsd_call *c, int status, const char *type, const char *fmt, ...)
{
	cleanup_strbuf struct strbuf detail = STRBUF_INIT, body = STRBUF_INIT;
	va_list ap;

	va_start(ap, fmt);
	strbuf_vaddf(&detail, fmt, ap);
	va_end(ap);
	make_error(&body, type, strbuf_str(&detail));
	if (c->k->quirks)
		status = is_no_path(type) ? 404 : 401;
	else if (status == 401)
		httpd_reply_header(c->req, "WWW-Authenticate", "Bearer");
	note(c, status, type);
	httpd_reply(c->req, status, c->k->quirks ? NULL : "application/json", body.data, body.len);
}

/* What the listener refuses by itself. */
static const char *error_body(struct strbuf *out, int status, const char *message)
{
	if (status == 413) {
		strbuf_adds(out, TOO_LARGE);
		return "text/plain";
	}
	make_error(out, status == 404 ? "InvalidRequestPath" : "HttpError", message);
	return "application/json";
}

static const char *error_body_quirks(struct strbuf *out, int status, const char *message)
{
	if (status == 413)
		strbuf_adds(out, TOO_LARGE);
	return status == 413 ? "text/plain" : NULL;
}

/* ---- routes */

static void healthz(struct httpd_req *req, void *arg)
{
	kbsd_reply(&(struct kbsd_call){arg, req, "healthz"}, NULL, NULL, 0);
}

static void no_plugin(struct httpd_req *req, void *arg)
{
	kbsd_refuse(
		&(struct kbsd_call){arg, req, "other"}, 404, "PluginNotFound", "Plugin not found");
}

/* Reading a resource takes an attestation token, and there is no attestation yet. */
static void resource_get(struct httpd_req *req, void *arg)
{
	struct kbsd_call c = {arg, req, "resource-get"};

	if (httpd_req_header(req, "Authorization"))
		kbsd_refuse(&c, 401, "TokenVerifierError", "Token Verifier error");
	else
		kbsd_refuse(&c, 401, "TokenNotFound", "Attestation Token not found");
}

/* The resource plugin knows the path, not the method. */
static void resource_other(struct httpd_req *req, void *arg)
{
	kbsd_refuse(&(struct kbsd_call){arg, req, "other"}, 405, "PluginInternalError",
		"Plugin internal error");
}

#define ADMIN_ROUTES                                                                               \
	{.path = "/healthz", .methods = HTTPD_GET, .fn = healthz},                                 \
		{.path = KBSD_RESOURCE "*", .methods = HTTPD_GET, .fn = resource_get},             \
		{.path = KBSD_RESOURCE "*", .methods = HTTPD_POST, .fn = kbsd_resource_put},       \
		{.path = KBSD_RESOURCE "*", .methods = HTTPD_DELETE, .fn = kbsd_resource_delete},  \
		{.path = KBSD_PREFIX "reference-value",                                            \
			.methods = HTTPD_POST,                                                     \
			.fn = kbsd_values_put},                                                    \
		{.path = KBSD_REFERENCE_VALUE "*", .methods = HTTPD_GET, .fn = kbsd_value_get},    \
		{.path = KBSD_PREFIX "attestation-policy",                                         \
			.methods = HTTPD_POST,                                                     \
			.fn = kbsd_attestation_policy_put},                                        \
		{.path = KBSD_PREFIX "resource-policy",                                            \
			.methods = HTTPD_POST,                                                     \
			.fn = kbsd_resource_policy_put},                                           \
		{.path = KBSD_PREFIX "resource-policy",                                            \
			.methods = HTTPD_GET,                                                      \
			.fn = kbsd_resource_policy_get},                                           \
	{                                                                                          \
		.path = KBSD_PREFIX "*", .methods = ALL_METHODS, .fn = no_plugin                   \
	}

static const struct httpd_route routes[] = {ADMIN_ROUTES};

static const struct httpd_route routes_quirks[] = {
	ADMIN_ROUTES,
	{.path = KBSD_RESOURCE "*", .methods = HTTPD_PUT, .fn = resource_other},
	{.path = KBSD_PREFIX "reference-value",
		.methods = ALL_METHODS & ~HTTPD_POST,
		.fn = no_plugin},
	{.path = KBSD_REFERENCE_VALUE "*", .methods = ALL_METHODS & ~HTTPD_GET, .fn = no_plugin},
	{.path = KBSD_PREFIX "attestation-policy",
		.methods = ALL_METHODS & ~HTTPD_POST,
		.fn = no_plugin},
	{.path = KBSD_PREFIX "resource-policy",
		.methods = HTTPD_PUT | HTTPD_DELETE,
		.fn = no_plugin},
};

/* ---- the whole */

struct kbsd *kbsd_new(struct loop *l, const struct kbsd_conf *conf)
{
	struct kbsd *k = xcalloc(1, sizeof(*k));
	struct httpd_conf h = httpd_conf_default;

	k->issuer = xstrdup(conf->issuer);
	k->audience = xstrdup(conf->audience);
	k->auth = (struct kbsauth){
		.key = conf->admin_key,
		.issuer = k->issuer,
		.audience = k->audience,
		.acls = acls,
		.n_acls = ARRAY_LEN(acls),
	};
	k->quirks = conf->quirks;
	k->store = conf->store;
	k->on_request = conf->on_request;
	k->arg = conf->arg;
	h.name = conf->name;
	h.limits.body = conf->max_body ? conf->max_body : KBSD_MAX_BODY;
	h.requests_per_conn = REQUESTS_PER_CONN;
	h.routes = k->quirks ? routes_quirks : routes;
	h.n_routes = k->quirks ? ARRAY_LEN(routes_quirks) : ARRAY_LEN(routes);
	h.arg = k;
	h.wipe = true;
	h.error_body = k->quirks ? error_body_quirks : error_body;
	k->httpd = httpd_new(l, &h);
	return k;
}

void kbsd_free(struct kbsd *k)
{
	if (!k)
		return;
	httpd_free(k->httpd);
	free(k->issuer);
	free(k->audience);
	free(k);
}

struct httpd *kbsd_httpd(struct kbsd *k)
{
	return k->httpd;
}

void kbsd_set_store(struct kbsd *k, struct kbsstore *store)
{
	k->store = store;
}
