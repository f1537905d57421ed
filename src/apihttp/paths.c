/* SPDX-License-Identifier: MIT */
/*
 * Paths that are not about an object. Health and version are open to anonymous users; discovery,
 * OpenAPI and /metrics are not. OpenAPI and aggregated discovery documents have an ETag; each is
 * built on its first request and kept, since the kinds do not change while the program runs.
 */
#include "config.h"

#include <string.h>
#include <time.h>

#include "tec/apihttp/negotiation.h"
#include "tec/base/bytes.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/schema/discovery.h"
#include "tec/schema/openapi.h"

#include "apihttp_internal.h"

#define DISCOVERY   "apidiscovery.k8s.io"
#define SWAGGER     "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
#define SWAGGER_OLD "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
#define NOT_FOUND   "404 page not found\n"

enum document_what {
	DOCUMENT_V2,
	DOCUMENT_V2_PROTOBUF,
	DOCUMENT_V3_INDEX,
	DOCUMENT_V3,     /* of one group and version */
	DOCUMENT_CORE,   /* aggregated discovery of /api; version: of the discovery format */
	DOCUMENT_GROUPS, /* the same of /apis */
};

struct document {
	char *data; /* owned, as the texts below */
	size_t len;
	char etag[2 * SHA256_LEN + 1]; /* hex SHA-256 of data, as in the OpenAPI v3 index */
	enum document_what what;
	char *group, *version;
};

/* The Python client requests the version with a trailing slash. */
static const char *const free_paths[] = {"/healthz", "/livez", "/readyz", "/version", "/version/"};

/* ---- anonymous users */

/* Answer /version with the Kubernetes version whose API is implemented. The part after the plus is
 * build metadata, which clients ignore when they compare versions. */
static void reply_version(struct apihttp_shared *shared, struct httpd_req *req)
{
	cleanup_free char *git = xasprintf("v1.34.0+tec-operator-%s", shared->conf.version);
	struct json_object *o = json_obj();

	json_add_str(json_add_str(o, "major", "1"), "minor", "34");
	json_add_str(o, "gitVersion", git);
	json_add_str(json_add_str(o, "gitCommit", ""), "gitTreeState", "clean");
	json_add_str(o, "buildDate", "1970-01-01T00:00:00Z");
	json_add_str(json_add_str(o, "goVersion", ""), "compiler", "");
	json_add_str(o, "platform", "linux");
	apihttp_answer_json(req, 200, o);
}

/* Answer the paths that need no authentication: health probes send no credentials. /readyz answers
 * 500 and the reason while the operator is not ready, as in kube-apiserver. */
bool apihttp_paths_open(struct apihttp_shared *shared, struct httpd_req *req)
{
	const struct apihttp_listener_conf *conf = &shared->conf;
	const char *path = httpd_req_path(req), *why = "not ready";
	size_t i = 0;

	while (i < ARRAY_LEN(free_paths) && strcmp(path, free_paths[i]) != 0)
		i++;
	if (i == ARRAY_LEN(free_paths))
		return false;
	if (!(httpd_req_method(req) & (HTTPD_GET | HTTPD_HEAD)))
		apihttp_answer_refuse(req, 405, "only GET is allowed here");
	else if (str_starts(path, "/version"))
		reply_version(shared, req);
	else if (str_eq(path, "/readyz") && conf->ready && !conf->ready(conf->ready_arg, &why))
		httpd_reply(req, 500, APIHTTP_TEXT, why, strlen(why));
	else
		httpd_reply(req, 200, APIHTTP_TEXT, "ok", 2);
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

/* ---- documents, of which there are a few per group and version served: a request for another group
 * or version finds none and adds none */

/* Build a document. NULL: this group or version is not served. */
static struct json_object *make_document(const struct schema_served *s, enum document_what what,
	const char *group, const char *version)
{
	switch (what) {
	case DOCUMENT_V2:
	case DOCUMENT_V2_PROTOBUF:
		return schema_openapi_v2(s);
	case DOCUMENT_V3_INDEX:
		return schema_openapi_index(s);
	case DOCUMENT_V3:
		return schema_openapi_v3(s, group, version);
	case DOCUMENT_CORE:
	case DOCUMENT_GROUPS:
		return schema_discovery_aggregated(s, what == DOCUMENT_CORE, version);
	}
	DIE("no such document: %d", (int)what);
}

/* Return a document; it is encoded, and hashed for its ETag, on its first request. Borrowed as long as
 * the server exists. group and version: "" where they do not apply. NULL: not found. */
static const struct document *document_of(
	struct apihttp_shared *d, enum document_what what, const char *group, const char *version)
{
	const struct schema_served s = apireq_kinds_served(d->conf.kinds);
	cleanup_json struct json_object *o = NULL;
	struct strbuf bytes = STRBUF_INIT;
	uint8_t hash[SHA256_LEN];
	struct document *doc;

	for (size_t i = 0; i < d->n_documents; i++)
		if (d->documents[i]->what == what && str_eq(d->documents[i]->group, group) &&
			str_eq(d->documents[i]->version, version))
			return d->documents[i];
	o = make_document(&s, what, group, version);
	if (!o)
		return NULL;
	doc = xcalloc(1, sizeof(*doc));
	if (what == DOCUMENT_V2_PROTOBUF) {
		schema_openapi_v2_protobuf(o, &bytes);
		doc->len = bytes.len;
		doc->data = strbuf_steal(&bytes);
	} else {
		doc->data = json_text(o);
		doc->len = strlen(doc->data);
	}
	bytes_sha256(doc->data, doc->len, hash);
	bytes_to_hex(hash, sizeof(hash), doc->etag);
	doc->what = what;
	doc->group = xstrdup(group);
	doc->version = xstrdup(version);
	ARRAY_GROW(d->documents, d->n_documents);
	d->documents[d->n_documents++] = doc;
	return doc;
}

void apihttp_paths_fini(struct apihttp_shared *shared)
{
	for (size_t i = 0; i < shared->n_documents; i++) {
		free(shared->documents[i]->data);
		free(shared->documents[i]->group);
		free(shared->documents[i]->version);
		free(shared->documents[i]);
	}
	free(shared->documents);
}

/* Negotiate a discovery document. *version becomes the version of aggregated discovery that the
 * client prefers, or "" for the older form with one document per group version. False: nothing is
 * acceptable. */
static bool choose_discovery(const char *accept, const char **version)
{
	struct apihttp_media m;
	struct apireq_representation any;

	*version = "";
	for (const char *p = accept ? accept : ""; apihttp_negotiation_next(&p, &m);) {
		if (!str_eq(m.type, "application/json") || !str_eq(m.group, DISCOVERY) ||
			!str_eq(m.as, "APIGroupDiscoveryList")) {
			if (!m.as[0])
				break; /* an older client, or one that prefers the older form */
			continue;
		}
		*version = str_eq(m.version, "v2") ? "v2" : "v2beta1";
		return str_eq(m.version, "v2") || str_eq(m.version, "v2beta1");
	}
	return apihttp_negotiation_choose(accept, &any);
}

/* Find the document of /api (core) or /apis. */
static void root(
	const struct schema_served *s, bool core, const struct apihttp_call *c, struct found *f)
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
		f->kept =
			document_of(c->shared, core ? DOCUMENT_CORE : DOCUMENT_GROUPS, "", version);
	} else {
		f->o = core ? schema_discovery_versions("") : schema_discovery_groups(s);
	}
}

/* Find the OpenAPI v2 document, as JSON or in the protobuf form that kubectl asks for first. */
static void swagger(const struct apihttp_call *c, const char *accept, struct found *f)
{
	struct apihttp_media m;
	bool protobuf = false;
	struct apireq_representation any;

	for (const char *p = accept ? accept : ""; apihttp_negotiation_next(&p, &m);)
		if (str_eq(m.type, SWAGGER) || str_eq(m.type, SWAGGER_OLD)) {
			protobuf = true;
			break;
		} else if (str_eq(m.type, "application/json")) {
			break;
		}
	f->refused = !protobuf && !apihttp_negotiation_choose(accept, &any);
	if (f->refused)
		return;
	f->kept = document_of(c->shared, protobuf ? DOCUMENT_V2_PROTOBUF : DOCUMENT_V2, "", "");
	if (protobuf)
		f->type = SWAGGER;
}

/* Split "api/VERSION", "apis/GROUP" (version NULL) or "apis/GROUP/VERSION". False: it is another
 * path. The caller frees the group. */
static bool split(const char *path, char **group, const char **version)
{
	const char *slash;

	*group = NULL;
	if (str_starts(path, "api/")) {
		*group = xstrdup("");
		*version = path + strlen("api/");
	} else if (str_starts(path, "apis/")) {
		path += strlen("apis/");
		slash = strchrnul(path, '/');
		*group = xstrndup(path, (size_t)(slash - path));
		*version = *slash ? slash + 1 : NULL;
	}
	return *group != NULL;
}

/* Find the document of a path. The document is chosen before the media type is checked, so an
 * unknown path is 404 whatever the client accepts. */
static struct found find(const struct apihttp_call *c)
{
	const struct schema_served s = apireq_kinds_served(c->shared->conf.kinds);
	const char *accept = httpd_req_header(c->req, "Accept");
	cleanup_free char *path = xstrdup(httpd_req_path(c->req)), *group = NULL;
	const char *version;
	struct found f = {.type = APIHTTP_JSON};
	struct apireq_representation any;
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
		f.kept = document_of(c->shared, DOCUMENT_V3_INDEX, "", "");
	else if (str_starts(path, "/openapi/v3/")) {
		if (split(path + strlen("/openapi/v3/"), &group, &version) && version)
			f.kept = document_of(c->shared, DOCUMENT_V3, group, version);
		f.hashed = true;
	} else if (*path == '/' && split(path + 1, &group, &version)) { /* unaggregated discovery */
		f.o = version ? schema_discovery_resources(&s, group, version)
			      : schema_discovery_group(&s, group);
	}
	f.refused = (f.o || f.kept) && !apihttp_negotiation_choose(accept, &any);
	return f;
}

/* ---- answers */

/* Does If-None-Match hold this ETag or "*"? Weak comparison (RFC 9110, section 13.1.2). */
static bool is_known(const struct apihttp_call *c, const char *etag)
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

/* Send a cached document: 304 if the client has it, 301 to its current URL if the hash is outdated.
 * A URL that holds the hash of the content may be cached for a year. */
static void reply_kept(const struct apihttp_call *c, const struct found *f)
{
	cleanup_free char *hash = f->hashed ? apireq_request_info_param(c->t, "hash") : NULL;
	cleanup_free char *etag = xasprintf("\"%s\"", f->kept->etag);
	const struct document *d = f->kept;
	time_t at = (time_t)(clock_wall_s() + (int64_t)365 * 86400);
	char expires[64];
	struct tm tm;

	httpd_reply_header(c->req, "Vary", "Accept");
	httpd_reply_header(c->req, "ETag", etag);
	if (hash && *hash && !str_eq(hash, d->etag)) {
		cleanup_free char *url = xasprintf("/openapi/v3/%s%s/%s?hash=%s",
			*d->group ? "apis/" : "api", d->group, d->version, d->etag);

		httpd_reply_header(c->req, "Location", url);
		httpd_reply(c->req, 301, APIHTTP_TEXT, "", 0);
		return;
	}
	if (hash && *hash) {
		strftime(expires, sizeof(expires), "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&at, &tm));
		httpd_reply_header(c->req, "Cache-Control", "public, immutable");
		httpd_reply_header(c->req, "Expires", expires);
	} else {
		apihttp_answer_uncached(c->req);
	}
	if (is_known(c, etag))
		httpd_reply(c->req, 304, f->type, "", 0);
	else
		httpd_reply(c->req, 200, f->type, d->data, d->len);
}

/* Send the metrics or a document. Vary tells caches that the same URL has several forms. 404 is a
 * Status below the API roots, else the plain text that kube-apiserver sends. */
void apihttp_paths(const struct apihttp_call *c)
{
	const char *path = httpd_req_path(c->req);
	cleanup_strbuf struct strbuf metrics = STRBUF_INIT;
	cleanup_free char *text = NULL;
	struct found f;

	if (str_eq(path, "/metrics") && c->shared->conf.metrics) {
		c->shared->conf.metrics(&metrics);
		httpd_reply(c->req, 200, "text/plain; version=0.0.4; charset=utf-8",
			strbuf_str(&metrics), metrics.len);
		return;
	}
	f = find(c);
	if (f.refused) {
		apihttp_answer_not_acceptable(c->req);
	} else if (f.kept) {
		reply_kept(c, &f);
	} else if (f.o) {
		text = json_text(f.o);
		httpd_reply_header(c->req, "Vary", "Accept");
		apihttp_answer_uncached(c->req);
		httpd_reply(c->req, 200, f.type, text, strlen(text));
	} else if (str_starts(path, "/api/") || str_starts(path, "/apis/")) {
		apihttp_answer_refuse(c->req, 404, "%s is not served by tec-operator --standalone",
			log_esc(path));
	} else {
		httpd_reply(c->req, 404, APIHTTP_TEXT, NOT_FOUND, strlen(NOT_FOUND));
	}
	json_object_put(f.o);
}
