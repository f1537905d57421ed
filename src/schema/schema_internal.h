/* SPDX-License-Identifier: MIT */
/* struct schema_node, between what compiles it (structural.c) and what works with it. */
#ifndef SCHEMA_INTERNAL_H
#define SCHEMA_INTERNAL_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tec/base/str.h"
#include "tec/schema/cause.h"
#include "tec/schema/cel.h"
#include "tec/schema/merge.h"
#include "tec/schema/regex.h"

enum schema_node_type {
	SCHEMA_TYPE_NONE, /* not said */
	SCHEMA_TYPE_OBJECT,
	SCHEMA_TYPE_ARRAY,
	SCHEMA_TYPE_STRING,
	SCHEMA_TYPE_INTEGER,
	SCHEMA_TYPE_NUMBER,
	SCHEMA_TYPE_BOOLEAN,
};

struct schema_rule {
	struct schema_cel *cel;     /* owned */
	char *rule, *message;       /* owned, trimmed; message NULL: none */
	char *field_path;           /* owned; "a.b", NULL: none */
	enum schema_problem reason; /* INVALID, FORBIDDEN, REQUIRED or DUPLICATE */
};

struct schema_prop {
	char *name; /* owned */
	struct schema_node *node;
};

struct schema_limit {
	bool set;
	int64_t value;
};

struct schema_bound {
	bool set, exclusive;
	double value;
};

struct schema_nodes {
	struct schema_node **node; /* owned, and the nodes */
	size_t n;
};

enum schema_additional { SCHEMA_ADDITIONAL_UNSET, SCHEMA_ADDITIONAL_FALSE, SCHEMA_ADDITIONAL_TRUE };

struct schema_node {
	enum schema_node_type type;
	bool nullable, int_or_string, preserve, embedded;
	bool set, map;      /* x-kubernetes-list-type */
	bool has_rules;     /* here or below */
	bool has_default;   /* here or below */
	char *format;       /* owned; NULL: none that is checked */
	char *pattern_text; /* owned */
	struct schema_regex *pattern;
	struct schema_limit max_length, min_length, max_items, min_items, max_properties,
		min_properties;
	struct schema_bound maximum, minimum, multiple_of;
	struct json_object *enumeration, *dflt; /* owned references; dflt NULL: none */
	struct schema_prop *prop;               /* owned, sorted by name */
	size_t n_props;
	enum schema_additional additional_is;
	struct schema_node *additional, *items, *negated; /* owned; NULL: none */
	struct schema_nodes all_of, any_of, one_of;
	char **required; /* owned, in order */
	size_t n_required;
	struct schema_rule *rule; /* owned */
	size_t n_rules;
	char *keys[4]; /* owned; x-kubernetes-list-map-keys */
	size_t n_keys;
	char *key_default; /* owned; of the last key, when its schema has a text as default */
	struct schema_merge merge;
};

const char *schema_type_name(enum schema_node_type t); /* "" for NONE */
const struct schema_node *schema_node_prop(const struct schema_node *s, const char *name);

/* Whether a text is of a format that kube-apiserver checks, and whether there is such a format. */
bool schema_format_known(const char *format);
bool schema_format_holds(const char *format, const char *s, size_t len);

/* A path that grows and is cut back: "spec.a[0].b". */
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

static inline size_t schema_path_key(struct strbuf *path, const char *key)
{
	size_t before = path->len;

	strbuf_addf(path, "[%s]", key);
	return before;
}

static inline void schema_path_cut(struct strbuf *path, size_t before)
{
	path->len = before;
	if (path->data)
		path->data[before] = '\0';
}

/* A value and what it was before, as far as that can be told; on the stack of a walk. */
struct schema_then {
	const struct schema_node *s;
	struct json_object *now, *old;
	const struct schema_then *parent; /* the nearest that can be told */
	bool known;                       /* old is what now was */
	signed char equal;                /* -1: not compared yet */
};
struct schema_then schema_then_member(struct schema_then *t, const char *name,
	struct json_object *now, const struct schema_node *s);
struct schema_then schema_then_element(
	struct schema_then *t, struct json_object *now, const struct schema_node *s);
bool schema_then_equal(struct schema_then *t);
/* The element of old with the list-map-keys of the new one; NULL: none. */
struct json_object *schema_map_find(
	const struct schema_node *list, struct json_object *old, struct json_object *now);

/* The steps of validation. t->known is false for a create. */
void schema_check_values(const struct schema_node *s, struct json_object *v, struct schema_then *t,
	struct schema_causes *causes, const char *prefix);
void schema_check_lists(
	const struct schema_node *s, struct json_object *o, struct schema_causes *causes);
void schema_check_embedded(
	const struct schema_node *s, struct json_object *o, struct schema_causes *causes);
void schema_check_rules(const struct schema_node *s, struct json_object *o, struct json_object *old,
	struct schema_then *t, struct schema_causes *causes, struct schema_texts *warnings);

/* The parts of the compiler (structural.c, structural_check.c). */
struct schema_compile {
	struct strbuf path;
	struct schema_causes *causes;
	unsigned depth, nodes;
};
/* nested: under allOf and the like. */
void schema_compile_check(struct schema_compile *c, const struct schema_node *n,
	struct json_object *schema, bool nested, bool root);
void schema_compile_rules(
	struct schema_compile *c, struct schema_node *n, struct json_object *schema);
/* A cause at NAME below the current path. */
void schema_compile_fault(struct schema_compile *c, enum schema_problem problem, const char *name,
	struct json_object *value, const char *detail);

#endif
