/* SPDX-License-Identifier: MIT */
/*
 * What a schema may not say: the checks of kube-apiserver for structural schemas, with its words,
 * and the reading of x-kubernetes-validations.
 */
#include "config.h"

#include <stdarg.h>
#include <string.h>

#include "schema_internal.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"

struct check {
	struct schema_compile *c;
	const struct schema_node *n;
	struct json_object *schema;
};

static bool has(const struct check *k, const char *name)
{
	struct json_object *v = NULL;

	return json_object_object_get_ex(k->schema, name, &v) && v;
}

static void forbid(const struct check *k, const char *name, const char *why)
{
	schema_compile_fault(k->c, SCHEMA_FORBIDDEN, name, NULL, why);
}

/* ---- everywhere */

static void check_unsupported(const struct check *k)
{
	static const char *const names[] = {"id", "additionalItems", "patternProperties",
		"definitions", "dependencies", "$ref"};
	struct json_object *v = NULL;

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (has(k, names[i])) {
			cleanup_free char *why = xasprintf("%s is not supported", names[i]);

			forbid(k, names[i], why);
		}
	if (json_get_bool(k->schema, "uniqueItems", false))
		forbid(k, "uniqueItems",
			"uniqueItems cannot be set to true since the runtime complexity becomes quadratic");
	if (k->n->n_props && (k->n->additional || k->n->additional_is == SCHEMA_ADDITIONAL_FALSE))
		forbid(k, "additionalProperties",
			"additionalProperties and properties are mutual exclusive");
	if (json_object_object_get_ex(k->schema, "x-kubernetes-preserve-unknown-fields", &v) && v &&
		!json_object_get_boolean(v))
		schema_compile_fault(k->c, SCHEMA_INVALID, "x-kubernetes-preserve-unknown-fields",
			v, "must be true or undefined");
}

/* Outside of a nested schema a place says its type. */
static void check_type(const struct check *k, bool root, bool item)
{
	const struct schema_node *n = k->n;
	const char *why = root   ? "must not be empty at the root"
			  : item ? "must not be empty for specified array items"
				 : "must not be empty for specified object fields";

	if (n->embedded && n->type != SCHEMA_TYPE_OBJECT)
		schema_compile_fault(k->c, n->type ? SCHEMA_INVALID : SCHEMA_REQUIRED, "type",
			json_object_object_get(k->schema, "type"),
			"must be object if x-kubernetes-embedded-resource is true");
	else if (!n->type && !has(k, "type") && !n->int_or_string && !n->preserve)
		schema_compile_fault(k->c, SCHEMA_REQUIRED, "type", NULL, why);
	if (root && n->type && n->type != SCHEMA_TYPE_OBJECT)
		schema_compile_fault(k->c, SCHEMA_INVALID, "type",
			json_object_object_get(k->schema, "type"), "must be object at the root");
	if (n->type == SCHEMA_TYPE_ARRAY && !n->items)
		schema_compile_fault(k->c, SCHEMA_REQUIRED, "items", NULL, "must be specified");
	if (root && has(k, "additionalProperties"))
		forbid(k, "additionalProperties", "must not be used at the root");
	if (n->embedded && has(k, "additionalProperties"))
		forbid(k, "additionalProperties",
			"must not be used if x-kubernetes-embedded-resource is set");
	if (n->embedded && !n->preserve && !n->n_props)
		schema_compile_fault(k->c, SCHEMA_REQUIRED, "properties", NULL,
			"must not be empty if x-kubernetes-embedded-resource is true without "
			"x-kubernetes-preserve-unknown-fields");
	if (n->int_or_string && n->preserve)
		schema_compile_fault(k->c, SCHEMA_INVALID, "x-kubernetes-preserve-unknown-fields",
			json_object_object_get(k->schema, "x-kubernetes-preserve-unknown-fields"),
			"must be false if x-kubernetes-int-or-string is true");
	if (root && n->nullable)
		forbid(k, "nullable", "nullable cannot be true at the root");
}

/* metadata is said by Kubernetes: a schema may only say type, name and generateName of it. */
static void check_metadata(const struct check *k, bool root)
{
	const struct schema_node *meta = schema_node_prop(k->n, "metadata");
	struct json_object *o = json_get_obj(k->schema, "properties/metadata"), *props;
	bool more = false;

	if ((!root && !k->n->embedded) || !meta)
		return;
	if (meta->type != SCHEMA_TYPE_OBJECT)
		schema_compile_fault(k->c, SCHEMA_INVALID, "properties[metadata].type",
			json_object_object_get(o, "type"), "must be object");
	if (!root)
		return;
	json_object_object_foreach (o, name, v) {
		(void)v;
		if (!str_eq(name, "type") && !str_eq(name, "properties") &&
			!str_eq(name, "description"))
			more = true;
	}
	props = json_get_obj(o, "properties");
	if (props) {
		json_object_object_foreach (props, prop, value) {
			(void)value;
			if (!str_eq(prop, "name") && !str_eq(prop, "generateName"))
				more = true;
		}
	}
	if (more)
		forbid(k, "properties[metadata]",
			"must not specify anything other than name and generateName, but metadata is "
			"implicitly specified");
}

/* ---- lists and maps */

static void check_map_key(const struct check *k, const char *key)
{
	const struct schema_node *items = k->n->items, *p = schema_node_prop(items, key);
	cleanup_free char *at = xasprintf("items.properties[%s]", key);
	size_t before;
	bool required = false;

	if (!p) {
		schema_compile_fault(k->c, SCHEMA_INVALID, "x-kubernetes-list-map-keys",
			json_object_object_get(k->schema, "x-kubernetes-list-map-keys"),
			"entries must all be names of item properties");
		return;
	}
	before = schema_path_add(&k->c->path, at);
	if (p->type == SCHEMA_TYPE_ARRAY || p->type == SCHEMA_TYPE_OBJECT)
		schema_cause_add_text(k->c->causes, SCHEMA_INVALID, strbuf_str(&k->c->path),
			schema_type_name(items->type),
			"must be a scalar type if parent array's x-kubernetes-list-type is map");
	for (size_t i = 0; i < items->n_required; i++)
		required = required || str_eq(items->required[i], key);
	if (!required && !p->dflt)
		schema_compile_fault(k->c, SCHEMA_REQUIRED, "default", NULL,
			"this property is in x-kubernetes-list-map-keys, so it must have a default "
			"or be a required property");
	if (p->nullable)
		forbid(k, "nullable",
			"this property is in x-kubernetes-list-map-keys, so it cannot be nullable");
	schema_path_cut(&k->c->path, before);
}

static void check_list_map(const struct check *k)
{
	const struct schema_node *n = k->n;

	if (!n->n_keys)
		schema_compile_fault(k->c, SCHEMA_REQUIRED, "x-kubernetes-list-map-keys", NULL,
			"must not be empty if x-kubernetes-list-type is map");
	if (!n->items)
		return;
	if (n->items->type != SCHEMA_TYPE_OBJECT) {
		size_t before = schema_path_add(&k->c->path, "items.type");

		schema_cause_add_text(k->c->causes, SCHEMA_INVALID, strbuf_str(&k->c->path),
			schema_type_name(n->items->type),
			"must be object if parent array's x-kubernetes-list-type is map");
		schema_path_cut(&k->c->path, before);
		return;
	}
	for (size_t i = 0; i < n->n_keys; i++) {
		check_map_key(k, n->keys[i]);
		for (size_t j = 0; j < i; j++)
			if (str_eq(n->keys[i], n->keys[j]))
				schema_compile_fault(k->c, SCHEMA_INVALID,
					"x-kubernetes-list-map-keys",
					json_object_object_get(
						k->schema, "x-kubernetes-list-map-keys"),
					"must not contain duplicate entries");
	}
}

static void check_lists(const struct check *k)
{
	const struct schema_node *n = k->n;
	struct json_object *list = json_object_object_get(k->schema, "x-kubernetes-list-type"),
			   *map = json_object_object_get(k->schema, "x-kubernetes-map-type"),
			   *type = json_object_object_get(k->schema, "type");
	const char *l = json_get_str(k->schema, "x-kubernetes-list-type"),
		   *m = json_get_str(k->schema, "x-kubernetes-map-type");

	if (list && n->type != SCHEMA_TYPE_ARRAY)
		schema_compile_fault(k->c, n->type ? SCHEMA_INVALID : SCHEMA_REQUIRED, "type", type,
			"must be array if x-kubernetes-list-type is specified");
	if (map && n->type != SCHEMA_TYPE_OBJECT)
		schema_compile_fault(k->c, n->type ? SCHEMA_INVALID : SCHEMA_REQUIRED, "type", type,
			"must be object if x-kubernetes-map-type is specified");
	if (list && !str_eq(l, "atomic") && !n->set && !n->map)
		schema_compile_fault(k->c, SCHEMA_UNSUPPORTED, "x-kubernetes-list-type", list,
			"supported values: \"atomic\", \"set\", \"map\"");
	if (map && !str_eq(m, "atomic") && !str_eq(m, "granular"))
		schema_compile_fault(k->c, SCHEMA_UNSUPPORTED, "x-kubernetes-map-type", map,
			"supported values: \"atomic\", \"granular\"");
	if (n->n_keys && !n->map)
		schema_compile_fault(k->c, list ? SCHEMA_INVALID : SCHEMA_REQUIRED,
			"x-kubernetes-list-type", list,
			"must be map if x-kubernetes-list-map-keys is non-empty");
	if ((n->set || n->map) && n->items && n->items->nullable)
		forbid(k, "items.nullable",
			n->set ? "cannot be nullable when x-kubernetes-list-type is set"
			       : "cannot be nullable when x-kubernetes-list-type is map");
	if (n->set && n->items && n->items->type == SCHEMA_TYPE_OBJECT &&
		n->items->merge.type != SCHEMA_MERGE_ATOMIC)
		schema_compile_fault(k->c, SCHEMA_INVALID, "items.x-kubernetes-map-type", NULL,
			"must be atomic as item of a list with x-kubernetes-list-type=set");
	if (n->map)
		check_list_map(k);
}

/* ---- below allOf, anyOf, oneOf and not: only values, nothing that makes the structure */

/* The two exceptions for x-kubernetes-int-or-string: {type: integer} and {type: string} there. */
static bool is_int_or_string(const struct schema_compile *c, struct json_object *schema)
{
	const char *at = strstr(strbuf_str(&c->path), "anyOf[");
	const char *type = json_get_str(schema, "type");

	return at && json_object_object_length(schema) == 1 &&
	       (str_eq(type, "integer") || str_eq(type, "string"));
}

static void check_nested(const struct check *k)
{
	static const struct {
		const char *name, *why;
	} no[] = {
		{"type", "must be empty to be structural"},
		{"additionalProperties", "must be undefined to be structural"},
		{"default", "must be undefined to be structural"},
		{"title", "must be empty to be structural"},
		{"description", "must be empty to be structural"},
		{"nullable", "must be false to be structural"},
		{"x-kubernetes-preserve-unknown-fields", "must be false to be structural"},
		{"x-kubernetes-embedded-resource", "must be false to be structural"},
		{"x-kubernetes-int-or-string", "must be false to be structural"},
		{"x-kubernetes-list-map-keys", "must be empty to be structural"},
		{"x-kubernetes-list-type", "must be undefined to be structural"},
		{"x-kubernetes-map-type", "must be undefined to be structural"},
		{"x-kubernetes-validations", "must be empty to be structural"},
	};

	for (size_t i = 0; i < ARRAY_LEN(no); i++)
		if (has(k, no[i].name) && !(i == 0 && is_int_or_string(k->c, k->schema)))
			forbid(k, no[i].name, no[i].why);
	if (schema_node_prop(k->n, "metadata"))
		forbid(k, "properties[metadata]", "must not be specified in a nested context");
}

void schema_compile_check(struct schema_compile *c, const struct schema_node *n,
	struct json_object *schema, bool nested, bool root, bool item)
{
	struct check k = {c, n, schema};

	check_unsupported(&k);
	if (nested) {
		check_nested(&k);
		return;
	}
	check_type(&k, root, item);
	check_metadata(&k, root);
	check_lists(&k);
}

/* ---- rules */

static char *trimmed(const char *s)
{
	static const char blanks[] = " \t\r\n\v\f";
	size_t len;

	s += strspn(s, blanks);
	for (len = strlen(s); len && strchr(blanks, s[len - 1]); len--)
		;
	return xstrndup(s, len);
}

static void rule_fault(struct schema_compile *c, size_t i, enum schema_problem problem,
	const char *name, struct json_object *value, const char *fmt, ...) PRINTF_LIKE(6, 7);
static void rule_fault(struct schema_compile *c, size_t i, enum schema_problem problem,
	const char *name, struct json_object *value, const char *fmt, ...)
{
	cleanup_free char *at = xasprintf("x-kubernetes-validations[%zu].%s", i, name);
	struct strbuf detail = STRBUF_INIT;
	va_list ap;

	va_start(ap, fmt);
	strbuf_vaddf(&detail, fmt, ap);
	va_end(ap);
	schema_compile_fault(c, problem, at, value, strbuf_str(&detail));
	strbuf_fini(&detail);
}

/* ".a.b" of members that the schema names; "a.b", or NULL. */
static char *field_path(const struct schema_node *n, const char *path)
{
	struct strbuf out = STRBUF_INIT;

	for (const char *p = path; *p;) {
		size_t len = *p == '.' ? strcspn(p + 1, ".[") : 0;
		cleanup_free char *name = xstrndup(p + 1, len);

		n = len && n ? schema_node_prop(n, name) : NULL;
		if (!n) {
			strbuf_fini(&out);
			return NULL;
		}
		schema_path_add(&out, name);
		p += 1 + len;
	}
	return strbuf_steal(&out);
}

static enum schema_problem reason_of(struct schema_compile *c, size_t i, struct json_object *rule)
{
	static const struct {
		const char *name;
		enum schema_problem problem;
	} reasons[] = {{"FieldValueRequired", SCHEMA_REQUIRED},
		{"FieldValueForbidden", SCHEMA_FORBIDDEN}, {"FieldValueInvalid", SCHEMA_INVALID},
		{"FieldValueDuplicate", SCHEMA_DUPLICATE}};
	struct json_object *v = json_object_object_get(rule, "reason");
	const char *name = json_get_str(rule, "reason");

	for (size_t j = 0; name && j < ARRAY_LEN(reasons); j++)
		if (str_eq(name, reasons[j].name))
			return reasons[j].problem;
	if (v)
		rule_fault(c, i, SCHEMA_UNSUPPORTED, "reason", v,
			"supported values: \"FieldValueDuplicate\", \"FieldValueForbidden\", "
			"\"FieldValueInvalid\", \"FieldValueRequired\"");
	return SCHEMA_INVALID;
}

static void check_texts(
	struct schema_compile *c, size_t i, struct json_object *rule, const struct schema_rule *r)
{
	struct json_object *message = json_object_object_get(rule, "message");

	if (!r->rule[0])
		rule_fault(c, i, SCHEMA_REQUIRED, "rule", NULL, "rule is not specified");
	else if (r->message && !r->message[0])
		rule_fault(
			c, i, SCHEMA_INVALID, "message", message, "must be non-empty if specified");
	else if (r->message && strpbrk(r->message, "\r\n"))
		rule_fault(
			c, i, SCHEMA_INVALID, "message", message, "must not contain line breaks");
	else if (!r->message && strpbrk(r->rule, "\r\n"))
		rule_fault(c, i, SCHEMA_REQUIRED, "message", NULL,
			"message must be specified if rule contains line breaks");
	if (json_object_object_get(rule, "messageExpression"))
		rule_fault(c, i, SCHEMA_FORBIDDEN, "messageExpression", NULL,
			"not supported here for the rule `%s`: give it a message", r->rule);
}

static void compile_rule(
	struct schema_compile *c, struct schema_node *n, size_t i, struct json_object *rule)
{
	const char *text = json_get_str(rule, "rule"), *message = json_get_str(rule, "message"),
		   *path = json_get_str(rule, "fieldPath");
	struct json_object *optional = json_object_object_get(rule, "optionalOldSelf");
	struct schema_rule *r;
	struct err err = ERR_INIT;

	ARRAY_GROW(n->rule, n->n_rules);
	r = &n->rule[n->n_rules++];
	*r = (struct schema_rule){.rule = trimmed(text ? text : ""),
		.message = message && *message ? trimmed(message) : NULL,
		.reason = reason_of(c, i, rule)};
	check_texts(c, i, rule, r);
	if (path && *path && !(r->field_path = field_path(n, path)))
		rule_fault(c, i, SCHEMA_INVALID, "fieldPath",
			json_object_object_get(rule, "fieldPath"), "must be a valid path");
	if (!r->rule[0])
		return;
	r->cel = schema_cel_new(r->rule, n, &err);
	if (!r->cel)
		rule_fault(c, i, SCHEMA_INVALID, "rule", json_object_object_get(rule, "rule"),
			"%s%s", str_starts(err.text, "ERROR") ? "compilation failed: " : "",
			err.text);
	else if (c->uncorrelated && schema_cel_uses_old(r->cel))
		rule_fault(c, i, SCHEMA_INVALID, "rule", json_object_object_get(rule, "rule"),
			"oldSelf cannot be used on the uncorrelatable portion of the schema within %s",
			c->uncorrelated);
	if (optional && r->cel && !schema_cel_uses_old(r->cel))
		rule_fault(c, i, SCHEMA_INVALID, "optionalOldSelf", optional,
			"may not be set if oldSelf is not used in rule");
	else if (json_object_get_boolean(optional))
		rule_fault(c, i, SCHEMA_FORBIDDEN, "optionalOldSelf", NULL,
			"not supported here for the rule `%s`", r->rule);
}

void schema_compile_rules(
	struct schema_compile *c, struct schema_node *n, struct json_object *schema)
{
	struct json_object *list = json_object_object_get(schema, "x-kubernetes-validations");

	if (!list)
		return;
	if (!json_object_is_type(list, json_type_array)) {
		schema_compile_fault(c, SCHEMA_INVALID, "x-kubernetes-validations", list,
			"has the wrong type for a schema");
		return;
	}
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *rule = json_object_array_get_idx(list, i);

		if (json_object_is_type(rule, json_type_object))
			compile_rule(c, n, i, rule);
		else
			rule_fault(c, i, SCHEMA_INVALID, "rule", rule, "must be an object");
	}
}
