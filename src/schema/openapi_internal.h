/* SPDX-License-Identifier: MIT */
/* What both versions of OpenAPI documents have (openapi_parts.c). */
#ifndef SCHEMA_OPENAPI_INTERNAL_H
#define SCHEMA_OPENAPI_INTERNAL_H

#include <json-c/json.h>
#include <stdbool.h>

#include "tec/schema/discovery.h"

#define OPENAPI_META "io.k8s.apimachinery.pkg.apis.meta.v1."

/* The name of a kind's schema; the caller frees. suffix: "" or "List". */
char *openapi_name(const struct schema_kind *k, const char *suffix);
/* {"$ref": prefix + name}. */
struct json_object *openapi_ref(const char *prefix, const char *name);
/* Adds ObjectMeta, ListMeta and what they need. */
void openapi_add_meta(struct json_object *schemas, const char *prefix);
/* Adds a kind and its list. take_schema: of the kind, without apiVersion, kind and metadata. */
void openapi_add_kind(struct json_object *schemas, const char *prefix, const struct schema_kind *k,
	struct json_object *take_schema);
/* The schema of a built-in kind: its members, and nothing of what is in them. */
struct json_object *openapi_builtin(const struct schema_kind *k);
/* Adds the paths of a kind with what may be asked there. */
void openapi_add_paths(struct json_object *paths, const struct schema_kind *k, bool v2);

#endif
