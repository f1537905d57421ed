/* SPDX-License-Identifier: MIT */
/* Shared by both versions of OpenAPI documents (openapi_parts.c). */
#ifndef SCHEMA_OPENAPI_INTERNAL_H
#define SCHEMA_OPENAPI_INTERNAL_H

#include <json-c/json.h>
#include <stdbool.h>

#include "tec/schema/discovery.h"

#define OPENAPI_META "io.k8s.apimachinery.pkg.apis.meta.v1."

/* Make the name of a kind's schema; the caller frees it. suffix: "" or "List". */
char *openapi_name(const struct schema_kind *k, const char *suffix);
/* {"$ref": prefix + name}. */
struct json_object *openapi_ref(const char *prefix, const char *name);
/* Add ObjectMeta, ListMeta and the schemas to which they refer. */
void openapi_add_meta(struct json_object *schemas, const char *prefix);
/* Add a kind and its list. take_schema: schema of the kind, without apiVersion, kind and
 * metadata. */
void openapi_add_kind(struct json_object *schemas, const char *prefix, const struct schema_kind *k,
	struct json_object *take_schema);
/* Make the schema of a built-in kind: its members by name, with any value. */
struct json_object *openapi_builtin(const struct schema_kind *k);
/* Add the paths of a kind with their operations. */
void openapi_add_paths(struct json_object *paths, const struct schema_kind *k, bool v2);

#endif
