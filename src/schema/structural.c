/* SPDX-License-Identifier: MIT */
/*
 * Compiles an openAPIV3Schema into nodes, patterns and rules. What the rest
 * could not work with is refused, here or in structural_check.c.
 */
#include "config.h"

#include "tec/schema/structural.h"

#include <math.h>
#include <string.h>

#include "schema_internal.h"
#include "tec/base/json.h"

#define DEPTH_MAX 50
#define NODES_MAX 100000

static const struct {
	const char *name;
	enum schema_node_type type;
} types[] = {{"", SCHEMA_TYPE_NONE}, {"object", SCHEMA_TYPE_OBJECT}, {"array", SCHEMA_TYPE_ARRAY},
	{"string", SCHEMA_TYPE_STRING}, {"integer", SCHEMA_TYPE_INTEGER},
	{"number", SCHEMA_TYPE_NUMBER}, {"boolean", SCHEMA_TYPE_BOOLEAN}};

const char *schema_type_name(enum schema_node_type t)
{
	return types[t].name;
}

static void free_nodes(struct schema_nodes *l)
{
	for (size_t i = 0; i < l->n; i++)
		schema_structural_free(l->node[i]);
	free(l->node);
}

static void free_rules(struct schema_node *s)
{
	for (size_t i = 0; i < s->n_rules; i++) {
		schema_cel_free(s->rule[i].cel);
		free(s->rule[i].rule);
		free(s->rule[i].message);
		free(s->rule[i].field_path);
	}
	free(s->rule);
}

void schema_structural_free(struct schema_node *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n_props; i++) {
		free(s->prop[i].name);
		schema_structural_free(s->prop[i].node);
	}
	for (size_t i = 0; i < s->n_required; i++)
		free(s->required[i]);
	for (size_t i = 0; i < s->n_keys; i++)
		free(s->keys[i]);
	free_nodes(&s->all_of);
	free_nodes(&s->any_of);
	free_nodes(&s->one_of);
	schema_structural_free(s->additional);
	schema_structural_free(s->items);
	schema_structural_free(s->negated);
	free_rules(s);
	schema_regex_free(s->pattern);
	json_object_put(s->enumeration);
	json_object_put(s->dflt);
	free(s->prop);
	free(s->required);
	free(s->key_default);
	free(s->format);
	free(s->pattern_text);
	free(s);
}

void schema_compile_fault(struct schema_compile *c, enum schema_problem problem, const char *name,
	struct json_object *value, const char *detail)
{
	size_t before = name ? schema_path_add(&c->path, name) : c->path.len;

	schema_cause_add(c->causes, problem, strbuf_str(&c->path), value, "%s", detail);
	schema_path_cut(&c->path, before);
}

/* ---- members with one value */

static struct json_object *member(
	struct schema_compile *c, struct json_object *schema, const char *name, json_type type)
{
	struct json_object *v = NULL;

	if (!json_object_object_get_ex(schema, name, &v) || !v)
		return NULL;
	if (json_object_is_type(v, type))
		return v;
	if (type == json_type_double && json_object_is_type(v, json_type_int))
		return v;
	schema_compile_fault(c, SCHEMA_INVALID, name, v, "has the wrong type for a schema");
	return NULL;
}

static bool flag(struct schema_compile *c, struct json_object *schema, const char *name)
{
	return json_object_get_boolean(member(c, schema, name, json_type_boolean));
}

static struct schema_limit limit(
	struct schema_compile *c, struct json_object *schema, const char *name)
{
	struct json_object *v = member(c, schema, name, json_type_int);

	return (struct schema_limit){v != NULL, v ? json_object_get_int64(v) : 0};
}

static struct schema_bound bound(struct schema_compile *c, struct json_object *schema,
	const char *name, const char *exclusive)
{
	struct json_object *v = member(c, schema, name, json_type_double);

	return (struct schema_bound){v != NULL, exclusive && flag(c, schema, exclusive),
		v ? json_object_get_double(v) : 0};
}

static void compile_type(
	struct schema_compile *c, struct schema_node *n, struct json_object *schema)
{
	struct json_object *v = member(c, schema, "type", json_type_string);
	const char *name = v ? json_object_get_string(v) : "";

	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (str_eq(name, types[i].name)) {
			n->type = types[i].type;
			return;
		}
	schema_compile_fault(c, SCHEMA_UNSUPPORTED, "type", v,
		"supported values: \"array\", \"boolean\", \"integer\", \"number\", \"object\", \"string\"");
}

static void compile_pattern(
	struct schema_compile *c, struct schema_node *n, struct json_object *schema)
{
	struct json_object *v = member(c, schema, "pattern", json_type_string);
	struct err err = ERR_INIT;
	cleanup_free char *detail = NULL;

	if (!v || json_object_get_string_len(v) == 0)
		return;
	n->pattern_text = xstrdup(json_object_get_string(v));
	n->pattern = schema_regex_new(n->pattern_text, strlen(n->pattern_text), &err);
	if (n->pattern)
		return;
	detail = xasprintf("must be a valid regular expression, but isn't: %s", err.text);
	schema_compile_fault(c, SCHEMA_INVALID, "pattern", v, detail);
}

static void compile_lists(
	struct schema_compile *c, struct schema_node *n, struct json_object *schema)
{
	struct json_object *type = member(c, schema, "x-kubernetes-list-type", json_type_string),
			   *map = member(c, schema, "x-kubernetes-map-type", json_type_string),
			   *keys = member(c, schema, "x-kubernetes-list-map-keys", json_type_array);
	const char *t = type ? json_object_get_string(type) : "";

	n->set = str_eq(t, "set");
	n->map = str_eq(t, "map");
	for (size_t i = 0; keys && i < json_object_array_length(keys); i++) {
		struct json_object *k = json_object_array_get_idx(keys, i);

		if (i >= ARRAY_LEN(n->keys) || !json_object_is_type(k, json_type_string)) {
			schema_compile_fault(c, SCHEMA_INVALID, "x-kubernetes-list-map-keys", keys,
				"must be at most four names");
			break;
		}
		n->keys[n->n_keys++] = xstrdup(json_object_get_string(k));
	}
	n->merge.type =
		n->set   ? SCHEMA_MERGE_SET
		: n->map ? SCHEMA_MERGE_MAP
		: str_eq(t, "atomic") || (map && str_eq(json_object_get_string(map), "atomic"))
			? SCHEMA_MERGE_ATOMIC
			: SCHEMA_MERGE_PLAIN;
	for (size_t i = 0; i < n->n_keys; i++)
		n->merge.keys[i] = n->keys[i];
}

static void compile_values(
	struct schema_compile *c, struct schema_node *n, struct json_object *schema)
{
	struct json_object *format = member(c, schema, "format", json_type_string),
			   *list = member(c, schema, "enum", json_type_array), *v = NULL;

	n->nullable = flag(c, schema, "nullable");
	n->int_or_string = flag(c, schema, "x-kubernetes-int-or-string");
	n->embedded = flag(c, schema, "x-kubernetes-embedded-resource");
	n->preserve = flag(c, schema, "x-kubernetes-preserve-unknown-fields");
	if (format && schema_format_known(json_object_get_string(format)))
		n->format = xstrdup(json_object_get_string(format));
	n->max_length = limit(c, schema, "maxLength");
	n->min_length = limit(c, schema, "minLength");
	n->max_items = limit(c, schema, "maxItems");
	n->min_items = limit(c, schema, "minItems");
	n->max_properties = limit(c, schema, "maxProperties");
	n->min_properties = limit(c, schema, "minProperties");
	n->maximum = bound(c, schema, "maximum", "exclusiveMaximum");
	n->minimum = bound(c, schema, "minimum", "exclusiveMinimum");
	n->multiple_of = bound(c, schema, "multipleOf", NULL);
	n->enumeration = json_object_get(list);
	if (json_object_object_get_ex(schema, "default", &v) && v) {
		n->dflt = json_object_get(v);
		n->has_default = true;
	}
	compile_pattern(c, n, schema);
	compile_lists(c, n, schema);
}

static void compile_required(
	struct schema_compile *c, struct schema_node *n, struct json_object *schema)
{
	struct json_object *list = member(c, schema, "required", json_type_array);

	for (size_t i = 0; list && i < json_object_array_length(list); i++) {
		struct json_object *v = json_object_array_get_idx(list, i);

		if (!json_object_is_type(v, json_type_string)) {
			schema_compile_fault(c, SCHEMA_INVALID, "required", v, "must be a name");
			return;
		}
		ARRAY_GROW(n->required, n->n_required);
		n->required[n->n_required++] = xstrdup(json_object_get_string(v));
	}
}

/* ---- members that are schemas */

static struct schema_node *compile(
	struct schema_compile *c, struct json_object *schema, bool nested, bool root);

static struct schema_node *compile_child(
	struct schema_compile *c, struct json_object *schema, const char *name, bool nested)
{
	struct json_object *v = member(c, schema, name, json_type_object);
	size_t before;
	struct schema_node *n;

	if (!v)
		return NULL;
	before = schema_path_add(&c->path, name);
	n = compile(c, v, nested, false);
	schema_path_cut(&c->path, before);
	return n;
}

static void compile_nodes(struct schema_compile *c, struct json_object *schema, const char *name,
	struct schema_nodes *out, bool root)
{
	struct json_object *list = member(c, schema, name, json_type_array);
	size_t before = schema_path_add(&c->path, name);

	for (size_t i = 0; list && i < json_object_array_length(list); i++) {
		struct json_object *v = json_object_array_get_idx(list, i);
		size_t here = schema_path_index(&c->path, i);

		if (!json_object_is_type(v, json_type_object)) {
			schema_compile_fault(c, SCHEMA_INVALID, NULL, v, "must be a schema");
		} else {
			ARRAY_GROW(out->node, out->n);
			out->node[out->n++] = compile(c, v, true, root);
		}
		schema_path_cut(&c->path, here);
	}
	schema_path_cut(&c->path, before);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct schema_prop *)a)->name, ((const struct schema_prop *)b)->name);
}

static void compile_props(
	struct schema_compile *c, struct schema_node *n, struct json_object *schema, bool nested)
{
	struct json_object *props = member(c, schema, "properties", json_type_object);
	size_t before = schema_path_add(&c->path, "properties");

	if (props) {
		json_object_object_foreach (props, name, v) {
			size_t here = schema_path_key(&c->path, name);

			if (!json_object_is_type(v, json_type_object)) {
				schema_compile_fault(
					c, SCHEMA_INVALID, NULL, v, "must be a schema");
			} else {
				ARRAY_GROW(n->prop, n->n_props);
				n->prop[n->n_props++] = (struct schema_prop){
					xstrdup(name), compile(c, v, nested, false)};
			}
			schema_path_cut(&c->path, here);
		}
	}
	schema_path_cut(&c->path, before);
	if (n->n_props)
		qsort(n->prop, n->n_props, sizeof(*n->prop), by_name);
}

static void compile_additional(
	struct schema_compile *c, struct schema_node *n, struct json_object *schema, bool nested)
{
	struct json_object *v = NULL;

	if (!json_object_object_get_ex(schema, "additionalProperties", &v) || !v)
		return;
	if (json_object_is_type(v, json_type_boolean)) {
		n->additional_is = json_object_get_boolean(v) ? SCHEMA_ADDITIONAL_TRUE
							      : SCHEMA_ADDITIONAL_FALSE;
		return;
	}
	n->additional = compile_child(c, schema, "additionalProperties", nested);
	if (n->additional)
		n->additional_is = SCHEMA_ADDITIONAL_TRUE;
}

static bool any_child(const struct schema_node *n, bool (*has)(const struct schema_node *))
{
	const struct schema_nodes *lists[] = {&n->all_of, &n->any_of, &n->one_of};

	for (size_t i = 0; i < n->n_props; i++)
		if (has(n->prop[i].node))
			return true;
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		for (size_t j = 0; j < lists[i]->n; j++)
			if (has(lists[i]->node[j]))
				return true;
	return (n->additional && has(n->additional)) || (n->items && has(n->items));
}

static bool has_rules(const struct schema_node *n)
{
	return n->has_rules;
}

static bool has_default(const struct schema_node *n)
{
	return n->has_default;
}

/* The default of a list's last key, as apply fills it in. */
static void note_key_default(struct schema_node *n)
{
	const struct schema_node *key = n->map && n->n_keys && n->items
						? schema_node_prop(n->items, n->keys[n->n_keys - 1])
						: NULL;

	if (!key || !json_object_is_type(key->dflt, json_type_string))
		return;
	n->key_default = xstrdup(json_object_get_string(key->dflt));
	n->merge.key_default = n->key_default;
}

static struct schema_node *compile(
	struct schema_compile *c, struct json_object *schema, bool nested, bool root)
{
	struct schema_node *n = xcalloc(1, sizeof(*n));
	size_t causes = c->causes->n;

	if (++c->depth > DEPTH_MAX || ++c->nodes > NODES_MAX) {
		schema_compile_fault(c, SCHEMA_INVALID, NULL, NULL, "the schema is too large");
		c->depth--;
		return n;
	}
	compile_type(c, n, schema);
	compile_values(c, n, schema);
	compile_required(c, n, schema);
	compile_props(c, n, schema, nested);
	compile_additional(c, n, schema, nested);
	n->items = compile_child(c, schema, "items", nested);
	compile_nodes(c, schema, "allOf", &n->all_of, root);
	compile_nodes(c, schema, "anyOf", &n->any_of, root);
	compile_nodes(c, schema, "oneOf", &n->one_of, root);
	n->negated = compile_child(c, schema, "not", true);
	note_key_default(n);
	schema_compile_check(c, n, schema, nested, root);
	/* Rules of a schema that is wrong would only say so again. */
	if (c->causes->n == causes && !nested)
		schema_compile_rules(c, n, schema);
	n->has_rules = n->n_rules || any_child(n, has_rules);
	n->has_default = n->has_default || any_child(n, has_default);
	c->depth--;
	return n;
}

/* Nothing in it that the schema would drop, and nothing that it refuses. */
static void check_default(struct schema_compile *c, const struct schema_node *n)
{
	/* As the value of a member, since the default itself may be kept as it is. */
	struct schema_prop prop = {(char *)"default", (struct schema_node *)n};
	struct schema_node around = {.type = SCHEMA_TYPE_OBJECT, .prop = &prop, .n_props = 1};
	cleanup_json struct json_object *o = json_add(json_obj(), "default", json_copy(n->dflt));
	cleanup_schema_texts struct schema_texts unknown = {NULL, 0, 0};
	struct json_object *v = json_object_object_get(o, "default");
	struct schema_then none = {.s = n, .now = v, .equal = -1};
	size_t before = schema_path_add(&c->path, "default");

	schema_default(&around, o);
	schema_prune(&around, o, &unknown);
	if (unknown.n)
		schema_cause_add(c->causes, SCHEMA_INVALID, strbuf_str(&c->path), n->dflt,
			"must not have unknown fields");
	else
		schema_check_values(n, v, &none, c->causes, strbuf_str(&c->path));
	schema_path_cut(&c->path, before);
}

/* Defaults must be what the schema accepts, with nothing that it would drop. */
static void check_defaults(struct schema_compile *c, const struct schema_node *n)
{
	size_t before;

	if (n->dflt)
		check_default(c, n);
	before = schema_path_add(&c->path, "properties");
	for (size_t i = 0; i < n->n_props; i++) {
		size_t here = schema_path_key(&c->path, n->prop[i].name);

		if (n->prop[i].node->has_default)
			check_defaults(c, n->prop[i].node);
		schema_path_cut(&c->path, here);
	}
	schema_path_cut(&c->path, before);
	before = schema_path_add(&c->path, n->items ? "items" : "additionalProperties");
	if (n->items || n->additional)
		check_defaults(c, n->items ? n->items : n->additional);
	schema_path_cut(&c->path, before);
}

struct schema_node *schema_structural_new(
	struct json_object *schema, const char *path, struct schema_causes *causes)
{
	size_t before = causes->n;
	struct schema_compile c = {.path = STRBUF_INIT, .causes = causes};
	struct schema_node *n = NULL;

	strbuf_adds(&c.path, path);
	if (!json_object_is_type(schema, json_type_object))
		schema_compile_fault(&c, SCHEMA_REQUIRED, NULL, NULL, "");
	else
		n = compile(&c, schema, false, true);
	if (causes->n == before && n && n->has_default)
		check_defaults(&c, n);
	strbuf_fini(&c.path);
	if (causes->n == before)
		return n;
	schema_structural_free(n);
	return NULL;
}

/* ---- looking things up */

const struct schema_node *schema_node_prop(const struct schema_node *s, const char *name)
{
	struct schema_prop key = {(char *)name, NULL};
	const struct schema_prop *p =
		s->n_props ? bsearch(&key, s->prop, s->n_props, sizeof(key), by_name) : NULL;

	return p ? p->node : NULL;
}

const struct schema_node *schema_node_member(const struct schema_node *s, const char *name)
{
	const struct schema_node *n = s ? schema_node_prop(s, name) : NULL;

	return n || !s ? n : s->additional;
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
