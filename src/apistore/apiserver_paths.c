/* SPDX-License-Identifier: MIT */
/*
 * Paths that are not about an object. Health and version are open to anonymous users; discovery,
 * OpenAPI and /metrics are not. OpenAPI and aggregated discovery documents are cached (documents.h)
 * and have an ETag.
 */
#include "config.h"

#include <string.h>
#include <time.h>

#include "tec/apistore/negotiation.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/schema/discovery.h"

#include "apiserver_internal.h"
#include "documents.h"

#define DISCOVERY   "apidiscovery.k8s.io"
#define SWAGGER     "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
#define SWAGGER_OLD "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
#define NOT_FOUND   "404 page not found\n"

/* The Python client requests the version with a trailing slash. */
static const char *const free_paths[] = {"/healthz", "/livez", "/readyz", "/version", "/version/"};

/* Answer 404: a Status below the API roots, else the plain text that kube-apiserver sends. */
static void not_found(struct httpd_req *req)
{
	const char *path = httpd_req_path(req);

	if (str_starts(path, "/api/") || str_starts(path, "/apis/"))
		apiserver_answer_refuse(req, 404, "NotFound",
			"%s is not served by tec-operator --standalone", log_esc(path));
	else
		httpd_reply(req, 404, APISERVER_TEXT, NOT_FOUND, strlen(NOT_FOUND));
}

/* ---- anonymous users */

/* Answer /readyz with 500 and the reason while the operator is not ready, as kube-apiserver
 * does. */
static void reply_ready(struct apiserver_shared *shared, struct httpd_req *req)
{
	const char *why = "not ready";

	if (!shared->conf.ready || shared->conf.ready(shared->conf.ready_arg, &why))
		httpd_reply(req, 200, APISERVER_TEXT, "ok", 2);
	else
		httpd_reply(req, 500, APISERVER_TEXT, why, strlen(why));
}

/* Answer /version with the Kubernetes version whose API is implemented. The part after the plus is
 * build metadata, which clients ignore when they compare versions. */
static void reply_version(struct apiserver_shared *shared, struct httpd_req *req)
{
	cleanup_free char *git = xasprintf("v1.34.0+tec-operator-%s", shared->conf.version);
	struct json_object *o = json_obj();

	json_add_str(json_add_str(o, "major", "1"), "minor", "34");
	json_add_str(o, "gitVersion", git);
	json_add_str(json_add_str(o, "gitCommit", ""), "gitTreeState", "clean");
	json_add_str(o, "buildDate", "1970-01-01T00:00:00Z");
	json_add_str(json_add_str(o, "goVersion", ""), "compiler", "");
	json_add_str(o, "platform", "linux");
	apiserver_answer_json(req, 200, o);
}

/* Answer the paths that need no authentication: health probes send no credentials. */
bool apiserver_paths_open(struct apiserver_shared *shared, struct httpd_req *req)
{
	const char *path = httpd_req_path(req);
	size_t i = 0;

	while (i < ARRAY_LEN(free_paths) && strcmp(path, free_paths[i]) != 0)
		i++;
	if (i == ARRAY_LEN(free_paths))
		return false;
	if (!(httpd_req_method(req) & (HTTPD_GET | HTTPD_HEAD)))
		apiserver_answer_refuse(req, 405, "MethodNotAllowed", "only GET is allowed here");
	else if (str_starts(path, "/version"))
		reply_version(shared, req);
	else if (str_eq(path, "/readyz"))
		reply_ready(shared, req);
	else
		httpd_reply(req, 200, APISERVER_TEXT, "ok", 2);
	return true;
}

/* ---- discovery and OpenAPI */

/* A document and how to send it. */
struct found {
	const struct document *kept; /* borrowed; NULL: see o */
	struct json_object *o;       /* owned; NULL and no kept: not found */
	const char *type;            /* static */
	bool refused;                /* the client accepts none of our media types */
	bool hashed;                 /* may be requested with ?hash= from the index */
};

/* Negotiate a discovery document. *version becomes the version of aggregated discovery that the
 * client prefers, or "" for the older form with one document per group version. False: nothing is
 * acceptable. */
static bool choose_discovery(const char *accept, const char **version)
{
	struct apistore_media m;
	struct apistore_form any;

	*version = "";
	for (const char *p = accept ? accept : ""; apistore_negotiation_next(&p, &m);) {
		if (!str_eq(m.type, "application/json") || !str_eq(m.group, DISCOVERY) ||
			!str_eq(m.as, "APIGroupDiscoveryList")) {
			if (!m.as[0])
				break; /* an older client, or one that prefers the older form */
			continue;
		}
		*version = str_eq(m.version, "v2") ? "v2" : "v2beta1";
		return str_eq(m.version, "v2") || str_eq(m.version, "v2beta1");
	}
	return apistore_negotiation_choose(accept, &any);
}

/* Find the document of /api (core) or /apis. */
static void root(
	const struct schema_served *s, bool core, const struct apiserver_call *c, struct found *f)
{
	const char *version;

	f->refused = !choose_discovery(httpd_req_header(c->req, "Accept"), &version);
	if (f->refused)
		return;
	if (*version) {
		f->type =
			str_eq(version, "v2")
				? "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
				: "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
		f->kept = documents_get(c->shared->documents,
			core ? DOCUMENTS_CORE : DOCUMENTS_GROUPS, "", version);
	} else {
		f->o = core ? schema_discovery_versions("") : schema_discovery_groups(s);
	}
}

/* Find the OpenAPI v2 document, as JSON or in the protobuf form that kubectl asks for first. */
static void swagger(const struct apiserver_call *c, const char *accept, struct found *f)
{
	struct apistore_media m;
	bool protobuf = false;
	struct apistore_form any;

	for (const char *p = accept ? accept : ""; apistore_negotiation_next(&p, &m);)
		if (str_eq(m.type, SWAGGER) || str_eq(m.type, SWAGGER_OLD)) {
			protobuf = true;
			break;
		} else if (str_eq(m.type, "application/json")) {
			break;
		}
	f->refused = !protobuf && !apistore_negotiation_choose(accept, &any);
	if (f->refused)
		return;
	f->kept = documents_get(
		c->shared->documents, protobuf ? DOCUMENTS_V2_PROTOBUF : DOCUMENTS_V2, "", "");
	if (protobuf)
		f->type = SWAGGER;
}

/* Find an OpenAPI v3 document. rest is "apis/GROUP/VERSION" or "api/VERSION"; anything else is not
 * found. */
static void openapi(const struct apiserver_call *c, const char *rest, struct found *f)
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
	f->kept = documents_get(c->shared->documents, DOCUMENTS_V3, group ? group : "", version);
	f->hashed = true;
}

/* Find an unaggregated discovery document: /api/VERSION, /apis/GROUP or /apis/GROUP/VERSION. */
static void legacy(const struct schema_served *s, const char *path, struct found *f)
{
	cleanup_free char *group = NULL;
	const char *slash;

	if (str_starts(path, "/api/")) {
		f->o = schema_discovery_resources(s, "", path + strlen("/api/"));
		return;
	}
	if (!str_starts(path, "/apis/"))
		return;
	path += strlen("/apis/");
	slash = strchr(path, '/');
	if (!slash) {
		f->o = schema_discovery_group(s, path);
		return;
	}
	group = xstrndup(path, (size_t)(slash - path));
	f->o = schema_discovery_resources(s, group, slash + 1);
}

/* Find the document of a path. The document is chosen before the media type is checked, so an
 * unknown path is 404 whatever the client accepts. */
static struct found find(const struct apiserver_call *c)
{
	const struct schema_served s = apistore_kinds_served(c->shared->conf.kinds);
	const char *accept = httpd_req_header(c->req, "Accept");
	cleanup_free char *path = xstrdup(httpd_req_path(c->req));
	struct found f = {.type = APISERVER_JSON};
	struct apistore_form any;
	size_t len = strlen(path);

	/* Discovery paths may end with a slash. */
	if (len > 1 && path[len - 1] == '/')
		path[len - 1] = '\0';
	if (str_eq(path, "/api") || str_eq(path, "/apis")) {
		root(&s, str_eq(path, "/api"), c, &f);
		return f;
	}
	if (str_eq(path, "/openapi/v2")) {
		swagger(c, accept, &f);
		return f;
	}
	if (str_eq(path, "/openapi/v3"))
		f.kept = documents_get(c->shared->documents, DOCUMENTS_V3_INDEX, "", "");
	else if (str_starts(path, "/openapi/v3/"))
		openapi(c, path + strlen("/openapi/v3/"), &f);
	else
		legacy(&s, path, &f);
	f.refused = (f.o || f.kept) && !apistore_negotiation_choose(accept, &any);
	return f;
}

/* ---- answers */

/* Does If-None-Match hold this ETag or "*"? Weak comparison (RFC 9110, section 13.1.2). */
static bool is_known(const struct apiserver_call *c, const char *etag)
{
	const char *p = httpd_req_header(c->req, "If-None-Match");
	size_t n = strlen(etag);

	for (; p && *p; p += strcspn(p, ","), p += *p == ',') {
		p += strspn(p, " \t");
		if (*p == '*')
			return true;
		/* A weak tag matches the strong one of the same text. */
		p += str_starts(p, "W/") ? 2 : 0;
		if (strncmp(p, etag, n) == 0 && strchr(", \t", p[n]))
			return true;
	}
	return false;
}

/* Let the client cache the document for a year: its URL holds the hash of its content. */
static void keep_for_ever(struct httpd_req *req)
{
	time_t at = (time_t)(clock_wall_s() + (int64_t)365 * 86400);
	char expires[64];
	struct tm tm;

	strftime(expires, sizeof(expires), "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&at, &tm));
	httpd_reply_header(req, "Cache-Control", "public, immutable");
	httpd_reply_header(req, "Expires", expires);
}

/* Redirect a request with an outdated hash to the URL of the current document. */
static void move_to(const struct apiserver_call *c, const struct document *d)
{
	cleanup_free char *url = xasprintf("/openapi/v3/%s%s/%s?hash=%s",
		*d->group ? "apis/" : "api", d->group, d->version, d->etag);

	httpd_reply_header(c->req, "Location", url);
	httpd_reply(c->req, 301, APISERVER_TEXT, "", 0);
}

/* Send a cached document: 304 if the client has it, 301 if its hash is outdated. */
static void reply_kept(const struct apiserver_call *c, const struct found *f)
{
	cleanup_free char *hash = f->hashed ? apistore_target_param(c->t, "hash") : NULL;
	cleanup_free char *etag = xasprintf("\"%s\"", f->kept->etag);

	httpd_reply_header(c->req, "Vary", "Accept");
	httpd_reply_header(c->req, "ETag", etag);
	if (hash && *hash && !str_eq(hash, f->kept->etag)) {
		move_to(c, f->kept);
		return;
	}
	if (hash && *hash)
		keep_for_ever(c->req);
	else
		apiserver_answer_uncached(c->req);
	if (is_known(c, etag))
		httpd_reply(c->req, 304, f->type, "", 0);
	else
		httpd_reply(c->req, 200, f->type, f->kept->data, f->kept->len);
}

/* Send the document of a path. Vary tells caches that the same URL has several forms. */
static void serve_document(const struct apiserver_call *c)
{
	struct found f = find(c);

	if (f.refused) {
		apiserver_answer_not_acceptable(c->req);
	} else if (f.kept) {
		reply_kept(c, &f);
	} else if (!f.o) {
		not_found(c->req);
	} else {
		cleanup_free char *text = json_text(f.o);

		httpd_reply_header(c->req, "Vary", "Accept");
		apiserver_answer_uncached(c->req);
		httpd_reply(c->req, 200, f.type, text, strlen(text));
	}
	json_object_put(f.o);
}

void apiserver_paths(const struct apiserver_call *c)
{
	const char *path = httpd_req_path(c->req);
	cleanup_strbuf struct strbuf text = STRBUF_INIT;

	if (!str_eq(path, "/metrics") || !c->shared->conf.metrics) {
		serve_document(c);
		return;
	}
	c->shared->conf.metrics(&text);
	httpd_reply(c->req, 200, "text/plain; version=0.0.4; charset=utf-8", strbuf_str(&text),
		text.len);
}
