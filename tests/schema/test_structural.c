/* SPDX-License-Identifier: MIT */
/* What a schema drops and refuses. */
#include "config.h"

#include "schema/schema_testing.h"

#include "tec/schema/structural.h"

/* ---- pruning */

static const struct {
	const char *schema, *in, *out, *unknown;
} prunes[] = {
	{"properties: {spec: {type: object, properties: {a: {type: string}}}}",
		"{apiVersion: v, kind: k, metadata: {name: n}, spec: {a: x, b: y}, c: 1}",
		"{apiVersion: v, kind: k, metadata: {name: n}, spec: {a: x}}", "c spec.b"},
	{"properties: {l: {type: array, items: {type: object, properties: {a: {type: string}}}}}",
		"{l: [{a: x}, {b: y, c: z}, null, [{d: x}]]}", "{l: [{a: x}, {}, null, [{}]]}",
		"l[1].b l[1].c l[3][0].d"},
	{"properties: {a: {type: string}, b: {type: object}}", "{a: null, b: null, c: null}", "{}",
		"c"},
	{"properties: {a: {type: object, properties: {b: {type: string}}}}", "{a: {b: null}}",
		"{a: {}}", ""},
	{"{}", "{metadata: {name: n, foo: 1, ownerReferences: [{uid: u, bar: 2}], labels: {any: x}}}",
		"{metadata: {name: n, ownerReferences: [{uid: u}], labels: {any: x}}}",
		"metadata.foo metadata.ownerReferences[0].bar"},
	{"{}", "{metadata: [x]}", "{metadata: [x]}", ""},
};

static void assert_json(struct json_object *o, const char *want, const char *what)
{
	cleanup_json struct json_object *w = parse(want);
	cleanup_strbuf struct strbuf a = STRBUF_INIT, b = STRBUF_INIT;

	json_canonical(&a, o);
	json_canonical(&b, w);
	cr_expect_str_eq(strbuf_str(&a), strbuf_str(&b), "%s", what);
}

static struct schema_node *object_of(const char *members)
{
	cleanup_free char *text = str_eq(members, "{}") ? xstrdup("{type: object}")
							: xasprintf("{type: object, %s}", members);

	return node_of(text);
}

Test(schema_structural, drops_what_it_does_not_know)
{
	for (size_t i = 0; i < ARRAY_LEN(prunes); i++) {
		struct schema_node *n = object_of(prunes[i].schema);
		cleanup_json struct json_object *o = parse(prunes[i].in);
		cleanup_schema_texts struct schema_texts unknown = {NULL, 0, 0};
		cleanup_strbuf struct strbuf b = STRBUF_INIT;

		schema_prune(n, o, &unknown);
		assert_json(o, prunes[i].out, prunes[i].in);
		for (size_t j = 0; j < unknown.n; j++)
			strbuf_addf(&b, "%s%s", j ? " " : "", unknown.text[j]);
		cr_expect_str_eq(
			strbuf_str(&b), prunes[i].unknown, "%s: %s", prunes[i].in, strbuf_str(&b));
		schema_prune(n, o, &unknown);
		assert_json(o, prunes[i].out, "twice");
		schema_structural_free(n);
	}
}

/* ---- values: the schema of v, an object {v: ...}, what is wrong */

static const struct {
	const char *schema, *value, *causes;
} values[] = {
	{"{type: string}", "x", ""},
	{"{type: string}", "5", "v: Invalid value: must be of type string, not int"},
	{"{type: string}", "null", "v: Invalid value: must be of type string, not null"},
	{"{type: integer}", "x", "v: Invalid value: must be of type integer, not string"},
	{"{type: boolean}", "{}", "v: Invalid value: must be of type boolean, not object"},
	{"{type: object}", "[]", "v: Invalid value: must be of type object, not array"},
	{"{type: array, items: {type: string}}", "true",
		"v: Invalid value: must be of type array, not boolean"},
	{"{type: string, maxLength: 3}", "abcd", "v: Too long: must have at most 3 characters"},
	{"{type: string, maxLength: 2}", "\xc3\xa9\xc3\xa9", ""},
	{"{type: string, minLength: 1}", "''",
		"v: Invalid value: \"\": must have at least 1 characters"},
	{"{type: string, pattern: '^a$'}", "b", "v: Invalid value: \"b\": must match '^a$'"},
	{"{type: string, pattern: '^a$'}", "\"a\\n\"",
		"v: Invalid value: \"a\\n\": must match '^a$'"},
	{"{type: string, enum: [A, B]}", "C",
		"v: Unsupported value: \"C\": supported values: \"A\", \"B\""},
	{"{type: integer, minimum: 1}", "0", "v: Invalid value: 0: must be at least 1"},
	{"{type: integer, maximum: 10}", "11", "v: Invalid value: 11: must be at most 10"},
	{"{type: integer, minimum: 1, maximum: 10}", "10", ""},
	{"{type: integer, minimum: 1}", "1", ""},
	{"{type: array, items: {type: string}, maxItems: 1}", "[a, 5]",
		"v: Too many: must have at most 1 items, has 2"},
	{"{type: array, items: {type: string}, minItems: 2}", "[a]",
		"v: Invalid value: must have at least 2 items, has 1"},
	{"{type: array, items: {type: string}}", "[a, 1]",
		"v[1]: Invalid value: must be of type string, not int"},
	{"{type: object, required: [a, b], properties: {a: {type: string}}}", "{a: x}",
		"v.b: Required value"},
	/* int32 and int64 are not checked: crd/ has limits. */
	{"{type: string, format: date-time}", "2024-01-02T03:04:05Z", ""},
	{"{type: string, format: date-time}", "yesterday",
		"v: Invalid value: \"yesterday\": must be a time such as 2026-01-02T03:04:05Z"},
	{"{type: string, format: date-time}", "2024-02-30T03:04:05+01:00",
		"v: Invalid value: \"2024-02-30T03:04:05+01:00\": must be a time such as 2026-01-02T03:04:05Z"},
	{"{type: string, format: date-time}", "5",
		"v: Invalid value: must be of type string, not int"},
	{"{type: integer, format: int32}", "99999999999", ""},
	/* Lists that are sets or maps. */
	{"{type: array, items: {type: string}, x-kubernetes-list-type: set}", "[a, b, a, a]",
		"v[2]: Duplicate value: \"a\""},
	{"{type: array, items: {type: object, required: [n], properties: {n: {type: string}}}, "
	 "x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [n]}",
		"[{n: a}, {n: b}, {n: a}]", "v[2]: Duplicate value: \"a\""},
	{"{type: array, items: {type: object, properties: {n: {type: string}}}, "
	 "x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [n]}",
		"[{}, {}, 5, 5]",
		"v[2]: Invalid value: must be of type object, not int\n"
		"v[3]: Invalid value: must be of type object, not int"},
	/* Rules. */
	{"{type: string, x-kubernetes-validations: [{rule: \"self == 'a'\", message: must be a}]}",
		"b", "v: Invalid value: must be a"},
	{"{type: object, properties: {a: {type: string}}, x-kubernetes-validations: [{rule: \"self.a "
	 "== 'x'\", message: a is x}]}",
		"{}", "v: Invalid value: a is x"},
	{"{type: object, properties: {a: {type: string}}, x-kubernetes-validations: [{rule: has(self.a), "
	 "fieldPath: .a, message: a is missing}]}",
		"{}", "v.a: Invalid value: a is missing"},
	{"{type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: no}]}", "x",
		""},
	{"{type: array, items: {type: string, x-kubernetes-validations: [{rule: self != self, "
	 "message: no}]}}",
		"[x]", "v[0]: Invalid value: no"},
	{"{type: string, maxLength: 1, x-kubernetes-validations: [{rule: self != self, message: no}]}",
		"xy",
		"v: Too long: must have at most 1 characters\n<nil>: Invalid value: the rules were not "
		"checked: correct the fields above first"},
};

Test(schema_structural, says_what_is_wrong)
{
	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		cleanup_free char *schema = xasprintf("properties: {v: %s}", values[i].schema);
		struct schema_node *n = object_of(schema);
		cleanup_json struct json_object *o = json_obj();
		cleanup_schema_causes struct schema_causes c = {NULL, 0, 0};
		cleanup_free char *text = NULL, *v = xasprintf("{v: %s}", values[i].value);

		json_object_put(o);
		o = parse(v);
		schema_validate(n, o, NULL, false, &c, NULL);
		text = lines(&c);
		cr_expect_str_eq(text, values[i].causes, "%s %s: %s", values[i].schema,
			values[i].value, text);
		schema_structural_free(n);
	}
}

/* As JSON: the reader of YAML has no fractions. */
Test(schema_structural, numbers_are_whole)
{
	static const char *const numbers[][3] = {
		{"{\"type\":\"integer\",\"minimum\":0}", "9223372036854775807", ""},
		{"{\"type\":\"integer\"}", "9223372036854775808",
			"v: Invalid value: must be of type integer, not int"},
		{"{\"type\":\"integer\"}", "1.5",
			"v: Invalid value: must be of type integer, not double"},
		{"{\"type\":\"integer\",\"maximum\":5}", "1e30",
			"v: Invalid value: must be of type integer, not double\n"
			"v: Invalid value: 1e30: must be at most 5"},
	};

	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		cleanup_free char *schema = xasprintf(
					  "{\"type\":\"object\",\"properties\":{\"v\":%s}}",
					  numbers[i][0]),
				  *object = xasprintf("{\"v\":%s}", numbers[i][1]), *text = NULL;
		struct err err = ERR_INIT;
		cleanup_json struct json_object *s = json_parse(schema, strlen(schema),
							&json_limits_object, &err),
						*o = json_parse(object, strlen(object),
							&json_limits_object, &err);
		cleanup_schema_causes struct schema_causes c = {NULL, 0, 0};
		struct schema_node *n = schema_structural_new(s, &err);

		cr_assert(n && o);
		schema_validate(n, o, NULL, false, &c, NULL);
		text = lines(&c);
		cr_expect_str_eq(text, numbers[i][2], "%s %s: %s", schema, object, text);
		schema_structural_free(n);
	}
}

/* ---- updates */

static const struct {
	const char *schema, *old, *now, *causes, *warnings;
} updates[] = {
	{"{type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: immutable}]}",
		"a", "b", "v: Invalid value: immutable", ""},
	{"{type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: immutable}]}",
		"a", "a", "", ""},
	/* What did not change is not held against an update. */
	{"{type: string, maxLength: 1}", "ab", "ab", "", ""},
	{"{type: string, maxLength: 1}", "ab", "abc", "v: Too long: must have at most 1 characters",
		""},
	{"{type: object, required: [a], properties: {a: {type: string}, b: {type: string}}}",
		"{b: x}", "{b: x}", "", ""},
	{"{type: object, required: [a], properties: {a: {type: string}, b: {type: string}}}",
		"{b: x}", "{b: y}", "v.a: Required value", ""},
	{"{type: string, x-kubernetes-validations: [{rule: self != self, message: never}]}", "a",
		"a", "", "v: never"},
	{"{type: string, x-kubernetes-validations: [{rule: self != self, message: never}]}", "a",
		"b", "v: Invalid value: never", ""},
	{"{type: array, items: {type: string}, x-kubernetes-list-type: set}", "[a, a]", "[a, a, a]",
		"", ""},
	{"{type: array, items: {type: object, required: [n], properties: {n: {type: string}, v: {type: "
	 "string, maxLength: 1}}}, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [n]}",
		"[{n: a, v: xx}]", "[{n: b, v: x}, {n: a, v: xx}]", "", ""},
	{"{type: array, items: {type: object, required: [n], properties: {n: {type: string}, v: {type: "
	 "string, x-kubernetes-validations: [{rule: self == oldSelf, message: fixed}]}}}, "
	 "x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [n]}",
		"[{n: a, v: x}, {n: b, v: y}]", "[{n: b, v: z}, {n: c, v: x}]",
		"v[0].v: Invalid value: fixed", ""},
	{"{type: array, items: {type: string, maxLength: 1}}", "[ab]", "[ab, c]",
		"v[0]: Too long: must have at most 1 characters", ""},
};

Test(schema_structural, holds_only_changes_against_an_update)
{
	for (size_t i = 0; i < ARRAY_LEN(updates); i++) {
		cleanup_free char *schema = xasprintf("properties: {v: %s}", updates[i].schema),
				  *a = xasprintf("{v: %s}", updates[i].old),
				  *b = xasprintf("{v: %s}", updates[i].now), *text = NULL;
		struct schema_node *n = object_of(schema);
		cleanup_json struct json_object *old = parse(a), *now = parse(b);
		cleanup_schema_causes struct schema_causes c = {NULL, 0, 0};
		cleanup_schema_texts struct schema_texts w = {NULL, 0, 0};

		schema_validate(n, now, old, false, &c, &w);
		text = lines(&c);
		cr_expect_str_eq(text, updates[i].causes, "%s %s: %s", updates[i].schema,
			updates[i].now, text);
		cr_expect_str_eq(
			w.n ? w.text[0] : "", updates[i].warnings, "%s", updates[i].schema);
		schema_structural_free(n);
	}
}

Test(schema_structural, status_alone_is_validated_by_itself)
{
	struct schema_node *n = object_of(
		"properties: {spec: {type: string}, status: {type: object, required: [r], properties: "
		"{a: {type: string, maxLength: 1}}}}");
	cleanup_json struct json_object *o = parse("{spec: 5, status: {a: xx}}");
	cleanup_schema_causes struct schema_causes c = {NULL, 0, 0};
	cleanup_free char *text = NULL;

	schema_validate(n, o, NULL, true, &c, NULL);
	text = lines(&c);
	cr_assert_str_eq(text,
		"status.a: Too long: must have at most 1 characters\nstatus.r: Required value");
	schema_structural_free(n);
}

/* A pattern and a list that take a quadratic time elsewhere. */
Test(schema_structural, takes_no_long_time)
{
	struct schema_node *n = object_of(
		"properties: {v: {type: array, maxItems: 32, x-kubernetes-list-type: set, items: "
		"{type: string}}, p: {type: string, pattern: '^(a+)+$'}}");
	struct json_object *list = json_arr();
	cleanup_json struct json_object *o = json_add(json_obj(), "v", list);
	cleanup_schema_causes struct schema_causes c = {NULL, 0, 0};
	cleanup_free char *text = xmalloc(1000001);

	memset(text, 'a', 1000000);
	text[999999] = 'b';
	text[1000000] = '\0';
	for (int i = 0; i < 50000; i++)
		json_push_str(list, "x");
	json_add_str(o, "p", text);
	schema_validate(n, o, NULL, false, &c, NULL);
	cr_assert_eq(c.n, 2);
	cr_assert_str_eq(c.cause[0].field, "p");
	cr_assert_str_eq(c.cause[1].field, "v");
	schema_structural_free(n);
}
