/* SPDX-License-Identifier: MIT */
/*
 * Read an openAPIV3Schema of crd/ into nodes, patterns and rules. The files are part of the
 * program: tests/schema/test_crd.c checks that they contain no keyword that is not read here.
 */
#include "config.h"

#include "tec/schema/structural.h"

#include <string.h>

#include "schema_internal.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"

/* Also frees a node whose construction failed halfway. */
void schema_structural_free(struct schema_node *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n_props; i++)
		schema_structural_free(s->prop[i].node);
	for (size_t i = 0; i < s->n_rules; i++)
		schema_cel_free(s->rule[i].cel);
	schema_structural_free(s->items);
	schema_regex_free(s->pattern);
	free(s->prop);
	free(s->rule);
	json_object_put(s->schema);
	free(s);
}

/* ---- reading */

/* `set` tells an absent limit from a limit of 0. */
static struct schema_limit read_limit(struct json_object *schema, const char *name)
{
	return (struct schema_limit){json_get(schema, name) != NULL, json_get_int(schema, name, 0)};
}

/* Read all keywords about single values; only the pattern can fail. */
static int read_values(struct schema_node *n, struct err *err)
{
	struct json_object *s = n->schema;
	struct err why = ERR_INIT;

	n->type = schema_node_type_named(json_get_str(s, "type"));
	n->date_time = str_eq(json_get_str(s, "format"), "date-time");
	n->max_length = read_limit(s, "maxLength");
	n->min_length = read_limit(s, "minLength");
	n->max_items = read_limit(s, "maxItems");
	n->min_items = read_limit(s, "minItems");
	n->maximum = read_limit(s, "maximum");
	n->minimum = read_limit(s, "minimum");
	n->enumeration = json_get(s, "enum");
	n->required = json_get(s, "required");
	n->pattern_text = json_get_str(s, "pattern");
	if (!n->pattern_text)
		return 0;
	n->pattern = schema_regex_new(n->pattern_text, strlen(n->pattern_text), &why);
	return n->pattern
		       ? 0
		       : err_set(err, ERR_INVALID, "pattern '%s': %s", n->pattern_text, why.text);
}

/* A map has up to four keys here, but validate.c compares the first one only: crd/ needs no
 * more. */
static void read_list_type(struct schema_node *n)
{
	const char *type = json_get_str(n->schema, "x-kubernetes-list-type");
	struct json_object *keys = json_get(n->schema, "x-kubernetes-list-map-keys");

	n->merge.type = str_eq(type, "set")   ? SCHEMA_MERGE_SET
			: str_eq(type, "map") ? SCHEMA_MERGE_MAP
					      : SCHEMA_MERGE_PLAIN;
	for (size_t i = 0; i < json_len(keys) && i < ARRAY_LEN(n->merge.keys); i++)
		n->merge.keys[i] = json_object_get_string(json_at(keys, i));
}

/* Sorted by name, for causes in a fixed order, too. */
static int read_props(struct schema_node *n, struct err *err)
{
	json_each (json_get(n->schema, "properties"), name, v) {
		struct schema_node *p = schema_structural_new(v, err);

		if (!p)
			return -1;
		ARRAY_GROW(n->prop, n->n_props);
		n->prop[n->n_props++] = (struct schema_prop){name, p};
		n->has_rules = n->has_rules || p->has_rules;
	}
	schema_node_sort(n);
	return 0;
}

/* has_rules is inherited upwards, so that a walk skips branches without rules. */
static int read_items(struct schema_node *n, struct err *err)
{
	struct json_object *v = json_get(n->schema, "items");

	if (!v)
		return 0;
	n->items = schema_structural_new(v, err);
	n->has_rules = n->has_rules || (n->items && n->items->has_rules);
	return n->items ? 0 : -1;
}

/* A rule is compiled against the schema of its own node, whose members must be read before.
 * fieldPath begins with a dot, which is skipped. */
static int read_rules(struct schema_node *n, struct err *err)
{
	struct json_object *list = json_get(n->schema, "x-kubernetes-validations");

	for (size_t i = 0; i < json_len(list); i++) {
		struct json_object *o = json_at(list, i);
		const char *path = json_get_str(o, "fieldPath"), *text = json_get_str(o, "rule");
		struct err why = ERR_INIT;
		struct schema_cel *cel = schema_cel_new(text ? text : "", n, &why);

		if (!cel)
			return err_set(err, ERR_INVALID, "rule '%s': %s", text, why.text);
		ARRAY_GROW(n->rule, n->n_rules);
		n->rule[n->n_rules++] = (struct schema_rule){
			cel, json_get_str(o, "message"), path ? path + 1 : NULL};
		n->has_rules = true;
	}
	return 0;
}

/* Rules come last: compiling them looks members up. */
struct schema_node *schema_structural_new(struct json_object *schema, struct err *err)
{
	struct schema_node *n = xcalloc(1, sizeof(*n));

	n->schema = json_object_get(schema);
	read_list_type(n);
	if (read_values(n, err) == 0 && read_props(n, err) == 0 && read_items(n, err) == 0 &&
		read_rules(n, err) == 0)
		return n;
	schema_structural_free(n);
	return NULL;
}
