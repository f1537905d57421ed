/* SPDX-License-Identifier: MIT */
/*
 * The JSONPaths of printer columns: .a.b, ['a'], [0], [*], .*, [?(@.a=="x")] with ==, != and a
 * string, number or boolean, or only the existence of @.a. Recursive descent and slices are
 * refused.
 */
#ifndef TEC_SCHEMA_JSONPATH_H
#define TEC_SCHEMA_JSONPATH_H

#include <json-c/json.h>

#include "tec/base/err.h"

struct schema_jsonpath;

struct schema_jsonpath *schema_jsonpath_new(const char *path, struct err *err) MUST_CHECK;
void schema_jsonpath_free(struct schema_jsonpath *p); /* NULL is fine */

/* Every value that the path leads to, in order: fn is called for each until it returns false. The
 * values are borrowed from o and may be NULL (null). */
typedef bool (*schema_jsonpath_fn)(struct json_object *v, void *arg);
void schema_jsonpath_find(
	const struct schema_jsonpath *p, struct json_object *o, schema_jsonpath_fn fn, void *arg);

#endif
