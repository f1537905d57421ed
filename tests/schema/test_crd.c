/* SPDX-License-Identifier: MIT */
/* Our own definitions are read, and say nothing that the program could not serve. */
#include "config.h"

#include "schema/schema_testing.h"

#include "tec/schema/crd.h"

static const char *const files[] = {"crd/approvedimages.yaml", "crd/attestationkeys.yaml",
	"crd/machines.yaml", "crd/trustedexecutionclusters.yaml"};

Test(schema_crd, reads_ours)
{
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		struct schema_crd *c = load_crd(files[i]);

		cr_assert(c->kind.namespaced && c->kind.status && c->kind.n_subs == 1);
		cr_assert_str_eq(c->kind.group, "trusted-execution-clusters.io");
		cr_assert_str_eq(c->kind.version, "v1alpha1");
		cr_assert_str_eq(c->kind.categories[0], "tec-all");
		cr_assert_not_null(c->kind.short_names[0]);
		cr_assert_gt(c->n_columns, 2);
		cr_assert_eq(c->kind.crd, c);
		schema_crd_free(c);
	}
}

/* ---- what a file may say, so that the program need not look when it starts */

static const struct {
	const char *name;
	enum json_type type;
} keywords[] = {{"type", json_type_string}, {"description", json_type_string},
	{"format", json_type_string}, {"enum", json_type_array}, {"pattern", json_type_string},
	{"maxLength", json_type_int}, {"minLength", json_type_int}, {"maxItems", json_type_int},
	{"minItems", json_type_int}, {"maximum", json_type_int}, {"minimum", json_type_int},
	{"items", json_type_object}, {"properties", json_type_object},
	{"required", json_type_array}, {"x-kubernetes-list-type", json_type_string},
	{"x-kubernetes-list-map-keys", json_type_array},
	{"x-kubernetes-validations", json_type_array}};

static bool is_one_of(const char *s, const char *const *list)
{
	while (*list && !str_eq(*list, s))
		list++;
	return *list != NULL;
}

static bool has_texts(struct json_object *a)
{
	for (size_t i = 0; i < json_len(a); i++)
		if (!json_object_is_type(json_at(a, i), json_type_string))
			return false;
	return true;
}

/* The schema has the member that is named by ".a.b". */
static bool has_field(struct json_object *s, const char *path)
{
	while (*path == '.') {
		size_t len = strcspn(path + 1, ".");
		cleanup_free char *name = xstrndup(path + 1, len);

		s = json_get(json_get(s, "properties"), name);
		path += 1 + len;
	}
	return s && !*path;
}

static const char *fault_of_rules(struct json_object *s)
{
	static const char *const members[] = {"rule", "message", "fieldPath", NULL};
	struct json_object *rules = json_get(s, "x-kubernetes-validations");

	for (size_t i = 0; i < json_len(rules); i++) {
		const char *path = json_get_str(json_at(rules, i), "fieldPath");

		json_each (json_at(rules, i), name, v)
			if (!is_one_of(name, members) || !json_object_is_type(v, json_type_string))
				return name;
		if (!json_get_str(json_at(rules, i), "rule") ||
			!json_get_str(json_at(rules, i), "message"))
			return "needs rule and message";
		if (path && !has_field(s, path))
			return "fieldPath names no property";
	}
	return NULL;
}

static const char *fault_of_list(struct json_object *s)
{
	const char *kind = json_get_str(s, "x-kubernetes-list-type"), *key;
	struct json_object *keys = json_get(s, "x-kubernetes-list-map-keys");

	if (!json_get(s, "items") || !json_get(s, "maxItems"))
		return "a list needs items and maxItems";
	if (!kind || str_eq(kind, "set"))
		return keys ? "only a map has keys" : NULL;
	key = json_len(keys) == 1 ? json_object_get_string(json_at(keys, 0)) : "";
	return str_eq(kind, "map") && json_get(json_get(s, "items/properties"), key)
		       ? NULL
		       : "a map needs one key that its items have";
}

static const char *fault_of(struct json_object *s)
{
	static const char *const types[] = {"object", "array", "string", "integer", "boolean",
		NULL},
				 *const formats[] = {"int32", "int64", "date-time", NULL};
	const char *type = json_get_str(s, "type"), *format = json_get_str(s, "format"), *why;

	json_each (s, name, v) {
		size_t i = 0;

		while (i < ARRAY_LEN(keywords) && !str_eq(keywords[i].name, name))
			i++;
		if (i == ARRAY_LEN(keywords) || !json_object_is_type(v, keywords[i].type))
			return name;
	}
	if (!type || !is_one_of(type, types))
		return "type";
	if (format && !is_one_of(format, formats))
		return "format";
	if (!has_texts(json_get(s, "enum")) || !has_texts(json_get(s, "required")))
		return "enum and required are texts";
	why = str_eq(type, "array") ? fault_of_list(s) : fault_of_rules(s);
	if (why)
		return why;
	json_each (json_get(s, "properties"), child, c)
		if ((why = fault_of(c)))
			return why;
	return json_get(s, "items") ? fault_of(json_get(s, "items")) : NULL;
}

static const char *fault_of_definition(struct json_object *o)
{
	static const char *const names[] = {"kind", "listKind", "plural", "singular", NULL};
	struct json_object *versions = json_get_arr(o, "spec/versions"), *v = json_at(versions, 0),
			   *columns = json_get(v, "additionalPrinterColumns");

	if (json_len(versions) != 1 || !json_get_str(v, "name") || !json_get_str(o, "spec/group"))
		return "needs one version and a group";
	for (size_t i = 0; names[i]; i++)
		if (!json_get_str(json_get(o, "spec/names"), names[i]))
			return names[i];
	for (size_t i = 0; i < json_len(columns); i++)
		if (!json_get_str(json_at(columns, i), "name") ||
			!json_get_str(json_at(columns, i), "type") ||
			!json_get_str(json_at(columns, i), "jsonPath"))
			return "a column needs name, type and jsonPath";
	return fault_of(json_get(v, "schema/openAPIV3Schema"));
}

Test(schema_crd, ours_say_only_what_is_served)
{
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		cleanup_json struct json_object *o = load(files[i]);

		cr_expect_null(fault_of_definition(o), "%s: %s", files[i], fault_of_definition(o));
	}
}

/* The check above finds what it is there for. */
Test(schema_crd, anything_else_is_a_fault)
{
	static const struct {
		const char *schema, *why;
	} rows[] = {
		{"{type: string}", NULL},
		{"{type: string, default: x}", "default"},
		{"{type: object, properties: {a: {type: object, default: {}}}}", "default"},
		{"{type: array, maxItems: 1, items: {type: string, nullable: true}}", "nullable"},
		{"{type: object, additionalProperties: {type: string}}", "additionalProperties"},
		{"{type: string, maxLength: x}", "maxLength"},
		{"{type: number}", "type"},
		{"{maxLength: 5}", "type"},
		{"{type: string, format: uuid}", "format"},
		{"{type: integer, enum: [1]}", "enum and required are texts"},
		{"{type: array, items: {type: string}}", "a list needs items and maxItems"},
		{"{type: array, maxItems: 1, items: {type: object}, x-kubernetes-list-type: map, "
		 "x-kubernetes-list-map-keys: [k]}",
			"a map needs one key that its items have"},
		{"{type: string, x-kubernetes-validations: [{rule: x}]}", "needs rule and message"},
		{"{type: string, x-kubernetes-validations: [{rule: x, message: y, reason: z}]}",
			"reason"},
		{"{type: object, x-kubernetes-validations: [{rule: x, message: y, fieldPath: .a}]}",
			"fieldPath names no property"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		cleanup_json struct json_object *o = parse(rows[i].schema);

		cr_expect(str_eq(fault_of(o), rows[i].why), "%s: %s", rows[i].schema, fault_of(o));
	}
}

Test(schema_crd, a_pattern_or_rule_that_cannot_be_compiled_is_refused)
{
	static const char *const rows[][2] = {
		{"{type: object, properties: {a: {type: string, pattern: '('}}}", "pattern '('"},
		{"{type: object, x-kubernetes-validations: [{rule: 'self.nope()', message: m}]}",
			"rule 'self.nope()'"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		cleanup_free char *text = xasprintf(
			"{spec: {versions: [{schema: {openAPIV3Schema: %s}}]}}", rows[i][0]);
		cleanup_json struct json_object *o = parse(text);
		struct err err = ERR_INIT;

		cr_expect_null(schema_crd_new(o, &err), "%s", rows[i][0]);
		cr_expect(str_starts(err.text, rows[i][1]), "%s", err.text);
	}
}
