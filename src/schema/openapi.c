/* SPDX-License-Identifier: MIT */
/*
 * OpenAPI documents from kinds. Version 3 contains the schemas of CRDs unchanged. Version 2 leaves
 * out what it cannot express (nullable, alternatives, int-or-string), and is closed only where the
 * CRD is.
 */
#include "config.h"

#include "tec/schema/openapi.h"

#include <string.h>

#include "openapi_internal.h"
#include "tec/base/bytes.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/schema/builtin.h"

#define V3 "#/components/schemas/"
#define V2 "#/definitions/"

typedef void (*each_fn)(const struct schema_kind *k, void *arg);

static void each_kind(const struct schema_served *s, each_fn fn, void *arg)
{
	for (size_t i = 0; i < schema_builtin_count(); i++)
		fn(schema_builtin_at(i), arg);
	for (size_t i = 0; i < s->n; i++)
		fn(&s->crds[i]->kind, arg);
}

/* The version of Kubernetes that the built-in kinds follow. */
static struct json_object *info(struct json_object *doc)
{
	struct json_object *o = json_add_str(json_obj(), "title", "Kubernetes");

	return json_add(doc, "info", json_add_str(o, "version", "v1.34.0"));
}

/* ---- version 3 */

struct v3 {
	const char *group, *version;
	struct json_object *schemas, *paths;
	size_t n;
};

/* A CRD's schema is copied, because openapi_add_kind() adds to it. */
static void add_v3(const struct schema_kind *k, void *arg)
{
	struct v3 *d = arg;

	if (!str_eq(k->group, d->group) || !str_eq(k->version, d->version))
		return;
	openapi_add_kind(
		d->schemas, V3, k, k->crd ? json_copy(k->crd->openapi) : openapi_builtin(k));
	openapi_add_paths(d->paths, k, false);
	d->n++;
}

/* NULL when no kind is of this group and version. The shared metadata schemas are in every
 * document, because references do not cross documents. */
struct json_object *schema_openapi_v3(
	const struct schema_served *s, const char *group, const char *version)
{
	struct v3 d = {group, version, json_obj(), json_obj(), 0};
	struct json_object *doc = json_add_str(json_obj(), "openapi", "3.0.0");

	openapi_add_meta(d.schemas, V3);
	each_kind(s, add_v3, &d);
	info(doc);
	json_add(doc, "paths", d.paths);
	json_add(doc, "components", json_add(json_obj(), "schemas", d.schemas));
	if (d.n)
		return doc;
	json_object_put(doc);
	return NULL;
}

struct index {
	const struct schema_served *s;
	struct json_object *paths;
};

/* Add the document of a kind's group and version to the index, once. The hash is of the document's
 * text, so that clients may cache it indefinitely. */
static void add_index(const struct schema_kind *k, void *arg)
{
	struct index *x = arg;
	cleanup_free char *path =
		xasprintf("%s%s/%s", *k->group ? "apis/" : "api", k->group, k->version);
	cleanup_json struct json_object *doc = NULL;
	cleanup_free char *text = NULL, *url = NULL;
	uint8_t hash[SHA256_LEN];
	char hex[2 * SHA256_LEN + 1];

	if (json_object_object_get_ex(x->paths, path, NULL))
		return;
	doc = schema_openapi_v3(x->s, k->group, k->version);
	text = json_text(doc);
	bytes_sha256(text, strlen(text), hash);
	bytes_to_hex(hash, sizeof(hash), hex);
	url = xasprintf("/openapi/v3/%s?hash=%s", path, hex);
	json_add(x->paths, path, json_add_str(json_obj(), "serverRelativeURL", url));
}

struct json_object *schema_openapi_index(const struct schema_served *s)
{
	struct index x = {s, json_obj()};

	each_kind(s, add_index, &x);
	return json_add(json_obj(), "paths", x.paths);
}

/* ---- version 2 */

static void to_v2(struct json_object *s);

static void members_to_v2(struct json_object *s, const char *name)
{
	struct json_object *o = json_get_obj(s, name);

	if (!o)
		return;
	json_each (o, member, v) {
		to_v2(v);
	}
}

/* Reduce a schema to what version 2 can express. Where that would make it stricter than the CRD,
 * open it entirely: the server validates anyway. */
static void to_v2(struct json_object *s)
{
	static const char *const no[] = {"nullable", "oneOf", "anyOf", "allOf", "not", "default"};
	bool open;

	if (!json_object_is_type(s, json_type_object))
		return;
	open = json_get_bool(s, "x-kubernetes-preserve-unknown-fields", false) ||
	       json_get_bool(s, "nullable", false);
	if (json_get_bool(s, "x-kubernetes-int-or-string", false))
		json_drop(s, "type");
	for (size_t i = 0; i < ARRAY_LEN(no); i++)
		json_drop(s, no[i]);
	if (open) { /* allows null or unknown fields, which kubectl would refuse */
		json_drop(s, "type");
		json_drop(s, "items");
		json_drop(s, "properties");
		json_drop(s, "required");
	}
	members_to_v2(s, "properties");
	to_v2(json_get_obj(s, "items"));
	to_v2(json_get_obj(s, "additionalProperties"));
}

struct v2 {
	struct json_object *definitions, *paths;
};

/* The schema is reduced before the metadata is added, which version 2 can express. */
static void add_v2(const struct schema_kind *k, void *arg)
{
	struct v2 *d = arg;
	struct json_object *schema = k->crd ? json_copy(k->crd->openapi) : openapi_builtin(k);

	to_v2(schema);
	openapi_add_kind(d->definitions, V2, k, schema);
	openapi_add_paths(d->paths, k, true);
}

/* One document for all groups, which older versions of kubectl use. */
struct json_object *schema_openapi_v2(const struct schema_served *s)
{
	struct v2 d = {json_obj(), json_obj()};
	struct json_object *doc = json_add_str(json_obj(), "swagger", "2.0");

	openapi_add_meta(d.definitions, V2);
	each_kind(s, add_v2, &d);
	info(doc);
	return json_add(json_add(doc, "paths", d.paths), "definitions", d.definitions);
}
