/* SPDX-License-Identifier: MIT */
/*
 * Paths that are not about an object: health and version, which need no name; discovery, OpenAPI
 * and /metrics, which do. Documents are made when they are asked for: clients keep them.
 */
#include "config.h"

#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/schema/openapi.h"

#include "apiserver_internal.h"

#define DISCOVERY   "apidiscovery.k8s.io"
#define SWAGGER     "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
#define SWAGGER_OLD "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
#define NOT_FOUND   "404 page not found\n"

/* Python's client asks for the version with a slash. */
static const char *const free_paths[] = {"/healthz", "/livez", "/readyz", "/version", "/version/"};

static void not_found(struct httpd_req *req)
{
	httpd_reply(req, 404, APISERVER_TEXT, NOT_FOUND, strlen(NOT_FOUND));
}

/* ---- without a name */

static void reply_ready(struct apistore_apiserver *a, struct httpd_req *req)
{
	const char *why = "not ready";

	if (!a->conf.ready || a->conf.ready(a->conf.ready_arg, &why))
		httpd_reply(req, 200, APISERVER_TEXT, "ok", 2);
	else
		httpd_reply(req, 500, APISERVER_TEXT, why, strlen(why));
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

bool apiserver_serve_all(struct apistore_apiserver *a, struct httpd_req *req)
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
	else if (str_starts(path, "/version"))
		reply_version(a, req);
	else if (str_eq(path, "/readyz"))
		reply_ready(a, req);
	else
		httpd_reply(req, 200, APISERVER_TEXT, "ok", 2);
	return true;
}

/* ---- discovery and OpenAPI */

/* A document and how it goes out. */
struct document {
	struct json_object *o;   /* owned; NULL: there is none */
	struct strbuf bytes;     /* instead of o, when it is not JSON */
	const char *type;        /* static */
	bool refused, immutable; /* not in a form that the client takes; it never changes */
};

/* Whether the client takes JSON; of a discovery document: the version of the aggregated form that it
 * wants before that, "" for the other form. */
static bool choose_discovery(const char *accept, const char **version)
{
	struct apistore_media m;
	struct apistore_form any;

	*version = "";
	for (const char *p = accept ? accept : ""; apistore_form_next_media(&p, &m);) {
		if (!str_eq(m.type, "application/json") || !str_eq(m.group, DISCOVERY) ||
			!str_eq(m.as, "APIGroupDiscoveryList")) {
			if (!m.as[0])
				break; /* an older client, or one that prefers the other form */
			continue;
		}
		*version = str_eq(m.version, "v2") ? "v2" : "v2beta1";
		return str_eq(m.version, "v2") || str_eq(m.version, "v2beta1");
	}
	return apistore_form_choose(accept, &any);
}

static void root(const struct schema_served *s, bool core, const struct apiserver_call *c,
	struct document *d)
{
	const char *version;

	d->refused = !choose_discovery(httpd_req_header(c->req, "Accept"), &version);
	if (d->refused)
		return;
	if (*version) {
		d->type =
			str_eq(version, "v2")
				? "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
				: "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
		d->o = schema_discovery_aggregated(s, core, version);
	} else {
		d->o = core ? schema_discovery_versions(c->a->server) : schema_discovery_groups(s);
	}
}

static void swagger(const struct schema_served *s, const char *accept, struct document *d)
{
	struct apistore_media m;
	bool protobuf = false;
	struct apistore_form any;

	for (const char *p = accept ? accept : ""; apistore_form_next_media(&p, &m);)
		if (str_eq(m.type, SWAGGER) || str_eq(m.type, SWAGGER_OLD)) {
			protobuf = true;
			break;
		} else if (str_eq(m.type, "application/json")) {
			break;
		}
	d->refused = !protobuf && !apistore_form_choose(accept, &any);
	if (d->refused)
		return;
	d->o = schema_openapi_v2(s);
	if (!protobuf)
		return;
	schema_openapi_v2_protobuf(d->o, &d->bytes);
	d->type = SWAGGER;
}

/* "apis/GROUP/VERSION" or "api/VERSION" */
static void openapi(const struct schema_served *s, const char *rest, const struct apiserver_call *c,
	struct document *d)
{
	cleanup_free char *group = NULL;
	const char *version = rest, *slash;

	if (str_starts(rest, "apis/")) {
		slash = strchr(rest + strlen("apis/"), '/');
		if (!slash)
			return;
		group = xstrndup(rest + strlen("apis/"), (size_t)(slash - rest) - strlen("apis/"));
		version = slash + 1;
	} else if (str_starts(rest, "api/")) {
		version = rest + strlen("api/");
	} else {
		return;
	}
	d->o = schema_openapi_v3(s, group ? group : "", version);
	/* A path with the hash of the index is another one when the document is. */
	d->immutable = strstr(httpd_req_target(c->req), "?hash=") != NULL;
}

static void legacy(const struct schema_served *s, const char *path, struct document *d)
{
	cleanup_free char *group = NULL;
	const char *slash;

	if (str_starts(path, "/api/")) {
		d->o = schema_discovery_resources(s, "", path + strlen("/api/"));
		return;
	}
	if (!str_starts(path, "/apis/"))
		return;
	path += strlen("/apis/");
	slash = strchr(path, '/');
	if (!slash) {
		d->o = schema_discovery_group(s, path);
		return;
	}
	group = xstrndup(path, (size_t)(slash - path));
	d->o = schema_discovery_resources(s, group, slash + 1);
}

static struct document document_of(const struct apiserver_call *c)
{
	const struct schema_served s = apistore_kinds_served(c->a->conf.kinds);
	const char *accept = httpd_req_header(c->req, "Accept");
	cleanup_free char *path = xstrdup(httpd_req_path(c->req));
	struct document d = {.type = APISERVER_JSON};
	struct apistore_form any;
	size_t len = strlen(path);

	if (len > 1 && path[len - 1] == '/')
		path[len - 1] = '\0';
	if (str_eq(path, "/api") || str_eq(path, "/apis")) {
		root(&s, str_eq(path, "/api"), c, &d);
		return d;
	}
	if (str_eq(path, "/openapi/v2")) {
		swagger(&s, accept, &d);
		return d;
	}
	if (str_eq(path, "/openapi/v3"))
		d.o = schema_openapi_index(&s);
	else if (str_starts(path, "/openapi/v3/"))
		openapi(&s, path + strlen("/openapi/v3/"), c, &d);
	else
		legacy(&s, path, &d);
	d.refused = d.o && !apistore_form_choose(accept, &any);
	return d;
}

static void serve_document(const struct apiserver_call *c)
{
	struct document d = document_of(c);
	cleanup_free char *text = NULL;

	if (d.refused) {
		apiserver_answer(c->req, apiserver_not_acceptable());
	} else if (!d.o) {
		not_found(c->req);
	} else {
		if (!d.bytes.data) {
			text = json_text(d.o);
			strbuf_adds(&d.bytes, text);
		}
		httpd_reply_header(c->req, "Vary", "Accept");
		httpd_reply_header(c->req, "Cache-Control",
			d.immutable ? "public, immutable" : "no-cache, private");
		httpd_reply(c->req, 200, d.type, d.bytes.data, d.bytes.len);
	}
	json_object_put(d.o);
	strbuf_fini(&d.bytes);
}

void apiserver_serve_path(const struct apiserver_call *c)
{
	const char *path = httpd_req_path(c->req);
	cleanup_strbuf struct strbuf text = STRBUF_INIT;

	if (apiserver_admin(c))
		return;
	if (!str_eq(path, "/metrics") || !c->a->conf.metrics) {
		serve_document(c);
		return;
	}
	c->a->conf.metrics(&text);
	httpd_reply(c->req, 200, "text/plain; version=0.0.4; charset=utf-8", strbuf_str(&text),
		text.len);
}
