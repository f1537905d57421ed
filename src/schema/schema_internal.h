/* SPDX-License-Identifier: MIT */
/* A node of a schema, which structural.c makes. */
#ifndef SCHEMA_INTERNAL_H
#define SCHEMA_INTERNAL_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tec/base/str.h"
#include "tec/schema/cause.h"
#include "tec/schema/cel.h"
#include "tec/schema/merge.h"
#include "tec/schema/regex.h"

enum schema_node_type {
	SCHEMA_TYPE_NONE, /* as the type of a value: null, or not a whole number */
	SCHEMA_TYPE_OBJECT,
	SCHEMA_TYPE_ARRAY,
	SCHEMA_TYPE_STRING,
	SCHEMA_TYPE_INTEGER,
	SCHEMA_TYPE_BOOLEAN,
};

struct schema_rule {
	struct schema_cel *cel; /* owned */
	const char *message;    /* borrowed from the schema */
	const char *field_path; /* "a.b", NULL: none */
};

struct schema_prop {
	const char *name;
	struct schema_node *node; /* owned */
};

struct schema_limit {
	bool set;
	int64_t value;
};

struct schema_node {
	struct json_object
		*schema; /* an owned reference; strings and arrays below are borrowed from it */
	enum schema_node_type type;
	bool has_rules; /* at this node or below */
	bool date_time;
	const char *pattern_text;
	struct schema_regex *pattern; /* owned; NULL: none */
	struct schema_limit max_length, min_length, max_items, min_items, maximum, minimum;
	struct json_object *enumeration, *required; /* arrays of strings; NULL: none */
	struct schema_prop *prop;                   /* owned, sorted by name */
	size_t n_props;
	struct schema_node *items; /* owned; NULL: none */
	struct schema_rule *rule;  /* owned */
	size_t n_rules;
	struct schema_merge merge; /* x-kubernetes-list-type and the one key of a map */
};

/* Return "must be of type string, not array"; the caller frees it. NULL: v has the type that s
 * requires. */
char *schema_node_mismatch(const struct schema_node *s, struct json_object *v);
static inline int schema_prop_order(const void *a, const void *b)
{
	return strcmp(((const struct schema_prop *)a)->name, ((const struct schema_prop *)b)->name);
}
/* Members are sorted, so that one is found by bisection. s may be NULL, so that callers can walk
 * below a place without schema. NULL: unknown. */
static inline const struct schema_node *schema_node_member(
	const struct schema_node *s, const char *name)
{
	struct schema_prop key = {name, NULL};
	const struct schema_prop *p =
		s && s->n_props ? bsearch(&key, s->prop, s->n_props, sizeof(key), schema_prop_order)
				: NULL;

	return p ? p->node : NULL;
}

/* A path that grows and is cut back: "spec.a[0].b". add and index return the length to cut back
 * to. */
static inline size_t schema_path_add(struct strbuf *path, const char *name)
{
	size_t before = path->len;

	if (before)
		strbuf_addc(path, '.');
	strbuf_adds(path, name);
	return before;
}

static inline size_t schema_path_index(struct strbuf *path, size_t i)
{
	size_t before = path->len;

	strbuf_addf(path, "[%zu]", i);
	return before;
}

static inline void schema_path_cut(struct strbuf *path, size_t before)
{
	path->len = before;
	if (path->data)
		path->data[before] = '\0';
}

#endif
