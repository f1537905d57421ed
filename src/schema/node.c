/* SPDX-License-Identifier: MIT */
/* What is asked of a node of a schema. Members are sorted, so that one is found by bisection. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "schema_internal.h"
#include "tec/base/mem.h"

static const char *const type_names[] = {[SCHEMA_TYPE_NONE] = "",
	[SCHEMA_TYPE_OBJECT] = "object",
	[SCHEMA_TYPE_ARRAY] = "array",
	[SCHEMA_TYPE_STRING] = "string",
	[SCHEMA_TYPE_INTEGER] = "integer",
	[SCHEMA_TYPE_BOOLEAN] = "boolean"};

enum schema_node_type schema_node_type_named(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(type_names); i++)
		if (str_eq(type_names[i], name))
			return (enum schema_node_type)i;
	return SCHEMA_TYPE_NONE;
}

/* Integers above INT64_MAX have no type: Kubernetes knows int64 only. */
static enum schema_node_type type_of(struct json_object *v)
{
	switch (json_object_get_type(v)) {
	case json_type_boolean:
		return SCHEMA_TYPE_BOOLEAN;
	case json_type_int:
		return json_object_get_uint64(v) > INT64_MAX ? SCHEMA_TYPE_NONE
							     : SCHEMA_TYPE_INTEGER;
	case json_type_object:
		return SCHEMA_TYPE_OBJECT;
	case json_type_array:
		return SCHEMA_TYPE_ARRAY;
	case json_type_string:
		return SCHEMA_TYPE_STRING;
	case json_type_double:
	case json_type_null:
		break;
	}
	return SCHEMA_TYPE_NONE;
}

char *schema_node_mismatch(const struct schema_node *s, struct json_object *v)
{
	if (type_of(v) == s->type)
		return NULL;
	return xasprintf("must be of type %s, not %s", type_names[s->type],
		json_type_to_name(json_object_get_type(v)));
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct schema_prop *)a)->name, ((const struct schema_prop *)b)->name);
}

void schema_node_sort(struct schema_node *s)
{
	if (s->n_props)
		qsort(s->prop, s->n_props, sizeof(*s->prop), by_name);
}

/* s may be NULL, so that callers can walk below a place without schema. */
const struct schema_node *schema_node_member(const struct schema_node *s, const char *name)
{
	struct schema_prop key = {name, NULL};
	const struct schema_prop *p =
		s && s->n_props ? bsearch(&key, s->prop, s->n_props, sizeof(key), by_name) : NULL;

	return p ? p->node : NULL;
}

const struct schema_node *schema_node_element(const struct schema_node *s)
{
	return s ? s->items : NULL;
}

const struct schema_merge *schema_node_merge(const struct schema_node *s)
{
	static const struct schema_merge plain = {.type = SCHEMA_MERGE_PLAIN};

	return s ? &s->merge : &plain;
}
