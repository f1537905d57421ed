/* SPDX-License-Identifier: MIT */
/*
 * What a schema of crd/ may say, as far as the rest relies on it (kube-apiserver has more to say, which
 * tests/e2e/test_crd.py asks it), and the reading of x-kubernetes-validations.
 */
#include "config.h"

#include <stdarg.h>
#include <string.h>

#include "schema_internal.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"

static bool is_one_of(const char *name, const char *const *list)
{
	while (*list && !str_eq(*list, name))
		list++;
	return *list != NULL;
}

static const char *const values[] = {"enum", "exclusiveMaximum", "exclusiveMinimum", "format",
	"maxItems", "maxLength", "maxProperties", "maximum", "minItems", "minLength",
	"minProperties", "minimum", "multipleOf", "pattern", "items", "properties", "required",
	"allOf", "anyOf", "oneOf", "not", NULL};
static const char *const structure[] = {"type", "additionalProperties", "default", "description",
	"nullable", "title", "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string",
	"x-kubernetes-list-map-keys", "x-kubernetes-list-type", "x-kubernetes-map-type",
	"x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations", NULL};

/* Below allOf, anyOf, oneOf and not stand only values, but for {type: integer} and {type: string} of
 * x-kubernetes-int-or-string. */
static void check_members(struct schema_compile *c, struct json_object *schema, bool nested)
{
	json_object_object_foreach (schema, name, v) {
		bool alone = str_eq(name, "type") && json_object_object_length(schema) == 1;

		(void)v;
		if (!is_one_of(name, values) && (!is_one_of(name, structure) || (nested && !alone)))
			schema_compile_fault(c, SCHEMA_FORBIDDEN, name, NULL,
				nested ? "not supported below allOf, anyOf, oneOf and not"
				       : "not supported");
	}
}

/* What else is wrong with a place that is not nested; NULL: nothing. */
static const char *fault_of(const struct schema_node *n, bool root)
{
	bool list = n->type == SCHEMA_TYPE_ARRAY;

	if ((root || n->embedded) && n->type != SCHEMA_TYPE_OBJECT)
		return "must be an object";
	if (!n->type && !n->int_or_string && !n->preserve)
		return "needs a type";
	if (list && !n->items)
		return "needs items";
	if ((n->set || n->map || n->n_keys) && !list)
		return "must be an array";
	if (n->map != (n->n_keys > 0) || (n->map && n->items->type != SCHEMA_TYPE_OBJECT))
		return "a list that is a map needs keys, and objects as items";
	for (size_t i = 0; i < n->n_keys; i++)
		if (!schema_node_prop(n->items, n->keys[i]))
			return "the keys of a map must be properties of its items";
	if (n->n_props && n->additional)
		return "properties and additionalProperties exclude each other";
	return NULL;
}

void schema_compile_check(struct schema_compile *c, const struct schema_node *n,
	struct json_object *schema, bool nested, bool root)
{
	const char *why = nested ? NULL : fault_of(n, root);

	check_members(c, schema, nested);
	if (why)
		schema_compile_fault(c, SCHEMA_INVALID, NULL, NULL, why);
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
	struct json_object *v = json_get(rule, "reason");

	for (size_t j = 0; j < ARRAY_LEN(reasons); j++)
		if (str_eq(json_get_str(rule, "reason"), reasons[j].name))
			return reasons[j].problem;
	if (v)
		rule_fault(c, i, SCHEMA_UNSUPPORTED, "reason", v, "unknown reason");
	return SCHEMA_INVALID;
}

static void compile_rule(
	struct schema_compile *c, struct schema_node *n, size_t i, struct json_object *rule)
{
	static const char *const members[] = {"rule", "message", "fieldPath", "reason", NULL};
	const char *text = json_get_str(rule, "rule"), *message = json_get_str(rule, "message"),
		   *path = json_get_str(rule, "fieldPath");
	struct schema_rule *r;
	struct err err = ERR_INIT;

	json_object_object_foreach (rule, name, v) {
		(void)v;
		if (!is_one_of(name, members))
			rule_fault(c, i, SCHEMA_FORBIDDEN, name, NULL, "not supported");
	}
	ARRAY_GROW(n->rule, n->n_rules);
	r = &n->rule[n->n_rules++];
	*r = (struct schema_rule){.rule = trimmed(text ? text : ""),
		.message = message && *message ? trimmed(message) : NULL,
		.reason = reason_of(c, i, rule)};
	if (path && *path && !(r->field_path = field_path(n, path)))
		rule_fault(c, i, SCHEMA_INVALID, "fieldPath", json_get(rule, "fieldPath"),
			"must name a property");
	r->cel = schema_cel_new(r->rule, n, &err);
	if (!r->cel)
		rule_fault(c, i, SCHEMA_INVALID, "rule", json_get(rule, "rule"), "%s", err.text);
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
