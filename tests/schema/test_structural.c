/* SPDX-License-Identifier: MIT */
/* What a schema drops, fills in and refuses, in kube-apiserver's words. */
#include "config.h"

#include "schema/schema_testing.h"

#include "tec/schema/structural.h"

/* ---- pruning and defaults */

static const struct {
	const char *schema, *in, *out, *unknown;
} prunes[] = {
	{"properties: {spec: {type: object, properties: {a: {type: string}}}}",
		"{apiVersion: v, kind: k, metadata: {name: n}, spec: {a: x, b: y}, c: 1}",
		"{apiVersion: v, kind: k, metadata: {name: n}, spec: {a: x}}", "c spec.b"},
	{"properties: {l: {type: array, items: {type: object, properties: {a: {type: string}}}}}",
		"{l: [{a: x}, {b: y, c: z}]}", "{l: [{a: x}, {}]}", "l[1].b l[1].c"},
	{"properties: {m: {type: object, additionalProperties: {type: object, properties: {a: {type: "
	 "string}}}}}",
		"{m: {k: {a: x, b: y}}}", "{m: {k: {a: x}}}", "m.k.b"},
	{"properties: {p: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {k: "
	 "{type: object, properties: {a: {type: string}}}}}}",
		"{p: {any: {thing: 1}, k: {a: x, b: y}}}", "{p: {any: {thing: 1}, k: {a: x}}}",
		"p.k.b"},
	{"properties: {e: {type: object, x-kubernetes-embedded-resource: true, "
	 "x-kubernetes-preserve-unknown-fields: true}}",
		"{e: {apiVersion: v1, kind: Pod, metadata: {name: n, x: 1}, spec: {}}}",
		"{e: {apiVersion: v1, kind: Pod, metadata: {name: n}, spec: {}}}", "e.metadata.x"},
	{"properties: {i: {x-kubernetes-int-or-string: true}}", "{i: 5}", "{i: 5}", ""},
	{"properties: {m: {type: object, additionalProperties: true}}", "{m: {a: {b: 1}, c: 2}}",
		"{m: {a: {}, c: 2}}", "m.a.b"},
	{"{}", "{metadata: {name: n, foo: 1, ownerReferences: [{uid: u, bar: 2}], labels: {any: x}}}",
		"{metadata: {name: n, ownerReferences: [{uid: u}], labels: {any: x}}}",
		"metadata.foo metadata.ownerReferences[0].bar"},
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
		schema_prune(n, o, NULL);
		assert_json(o, prunes[i].out, "twice");
		schema_structural_free(n);
	}
}

static const struct {
	const char *schema, *in, *out;
} defaults[] = {
	{"properties: {a: {type: integer, default: 5}, b: {type: string}}", "{}", "{a: 5}"},
	{"properties: {a: {type: integer, default: 5}}", "{a: 6}", "{a: 6}"},
	{"properties: {a: {type: integer, default: 5}}", "{a: null}", "{a: 5}"},
	{"properties: {a: {type: integer, nullable: true, default: 5}}", "{a: null}", "{a: null}"},
	{"properties: {a: {type: integer}}", "{a: null}", "{}"},
	{"properties: {a: {type: integer, nullable: true}}", "{a: null}", "{a: null}"},
	{"properties: {s: {type: object, properties: {a: {type: integer, default: 5}}}}", "{}",
		"{}"},
	{"properties: {s: {type: object, properties: {a: {type: integer, default: 5}}}}", "{s: {}}",
		"{s: {a: 5}}"},
	{"properties: {s: {type: object, default: {}, properties: {a: {type: integer, default: 5}}}}",
		"{}", "{s: {a: 5}}"},
	{"properties: {l: {type: array, items: {type: object, properties: {a: {type: integer, "
	 "default: 5}}}}}",
		"{l: [{}, {a: 1}]}", "{l: [{a: 5}, {a: 1}]}"},
	{"properties: {m: {type: object, additionalProperties: {type: string, default: x}}}",
		"{m: {k: null, l: y}}", "{m: {k: x, l: y}}"},
};

Test(schema_structural, fills_in_defaults)
{
	for (size_t i = 0; i < ARRAY_LEN(defaults); i++) {
		struct schema_node *n = object_of(defaults[i].schema);
		cleanup_json struct json_object *o = parse(defaults[i].in);

		schema_default(n, o);
		assert_json(o, defaults[i].out, defaults[i].schema);
		schema_structural_free(n);
	}
}

/* ---- values: the schema of v, an object {v: ...}, what is wrong */

static const struct {
	const char *schema, *value, *causes;
} values[] = {
	{"{type: string}", "x", ""},
	{"{type: string}", "5",
		"v: Invalid value: \"integer\": v in body must be of type string: \"integer\""},
	{"{type: string}", "null",
		"v: Invalid value: \"null\": v in body must be of type string: \"null\""},
	{"{type: string, nullable: true}", "null", ""},
	{"{type: integer}", "x",
		"v: Invalid value: \"string\": v in body must be of type integer: \"string\""},
	{"{type: boolean}", "{}",
		"v: Invalid value: \"object\": v in body must be of type boolean: \"object\""},
	{"{type: object}", "[]",
		"v: Invalid value: \"array\": v in body must be of type object: \"array\""},
	{"{type: array, items: {type: string}}", "true",
		"v: Invalid value: \"boolean\": v in body must be of type array: \"boolean\""},
	{"{type: number}", "5", ""},
	{"{x-kubernetes-int-or-string: true}", "5", ""},
	{"{x-kubernetes-int-or-string: true}", "'5'", ""},
	{"{x-kubernetes-int-or-string: true}", "true",
		"v: Invalid value: \"boolean\": v in body must be of type integer,string: \"boolean\""},
	{"{type: string, maxLength: 3}", "abcd", "v: Too long: may not be more than 3 bytes"},
	{"{type: string, maxLength: 1}", "abcd", "v: Too long: may not be more than 1 byte"},
	{"{type: string, maxLength: 2}", "\xc3\xa9\xc3\xa9", ""},
	{"{type: string, minLength: 1}", "''",
		"v: Invalid value: \"\": v in body should be at least 1 chars long"},
	{"{type: string, pattern: '^a$'}", "b",
		"v: Invalid value: \"b\": v in body should match '^a$'"},
	{"{type: string, pattern: '^a$'}", "\"a\\n\"",
		"v: Invalid value: \"a\\n\": v in body should match '^a$'"},
	{"{type: string, enum: [A, B]}", "C",
		"v: Unsupported value: \"C\": supported values: \"A\", \"B\""},
	{"{type: integer, enum: [1, 2]}", "3",
		"v: Unsupported value: 3: supported values: \"1\", \"2\""},
	{"{type: integer, minimum: 1}", "0",
		"v: Invalid value: 0: v in body should be greater than or equal to 1"},
	{"{type: integer, maximum: 10}", "11",
		"v: Invalid value: 11: v in body should be less than or equal to 10"},
	{"{type: integer, maximum: 10, exclusiveMaximum: true}", "10",
		"v: Invalid value: 10: v in body should be less than 10"},
	{"{type: integer, minimum: 1, exclusiveMinimum: true}", "1",
		"v: Invalid value: 1: v in body should be greater than 1"},
	{"{type: integer, multipleOf: 5}", "7",
		"v: Invalid value: 7: v in body should be a multiple of 5"},
	{"{type: array, items: {type: string}, maxItems: 1}", "[a, b]",
		"v: Too many: 2: must have at most 1 item"},
	{"{type: array, items: {type: string}, minItems: 2}", "[a]",
		"v: Invalid value: 1: v in body should have at least 2 items"},
	{"{type: array, items: {type: string}}", "[a, 1]",
		"v[1]: Invalid value: \"integer\": v[1] in body must be of type string: \"integer\""},
	{"{type: object, required: [a, b], properties: {a: {type: string}}}", "{a: x}",
		"v.b: Required value"},
	{"{type: object, minProperties: 1}", "{}",
		"v: Invalid value: 0: v in body should have at least 1 properties"},
	{"{type: object, maxProperties: 1, additionalProperties: {type: integer}}", "{a: 1, b: 2}",
		"v: Too many: 2: must have at most 1 item"},
	{"{type: object, additionalProperties: {type: integer}}", "{k: x}",
		"v.k: Invalid value: \"string\": v.k in body must be of type integer: \"string\""},
	{"{type: object, additionalProperties: false}", "{k: x}",
		"v: Invalid value: \"k\": v.k in body is a forbidden property"},
	/* Formats; int32 is none that is checked. */
	{"{type: string, format: date-time}", "2024-01-02T03:04:05Z", ""},
	{"{type: string, format: date-time}", "yesterday",
		"v: Invalid value: \"yesterday\": v in body must be of type date-time: \"yesterday\""},
	{"{type: string, format: date-time}", "5",
		"v: Invalid value: \"int64\": v in body must be of type date-time: \"int64\""},
	{"{type: string, format: uuid}", "x",
		"v: Invalid value: \"x\": v in body must be of type uuid: \"x\""},
	{"{type: string, format: something}", "x", ""},
	{"{type: integer, format: int32}", "99999999999", ""},
	{"{type: string, format: duration}", "2 days", ""},
	{"{type: string, format: duration}", "1h30m", ""},
	{"{type: string, format: duration}", "two days",
		"v: Invalid value: \"two days\": v in body must be of type duration: \"two days\""},
	{"{type: string, format: byte}", "''",
		"v: Invalid value: \"\": v in body must be of type byte: \"\""},
	/* Alternatives. */
	{"{type: string, anyOf: [{maxLength: 1}, {pattern: '^x'}]}", "xyz", ""},
	{"{type: string, anyOf: [{maxLength: 1}, {pattern: '^x'}]}", "abc",
		"<nil>: Invalid value: \"\": \"v\" must validate at least one schema (anyOf)\n"
		"v: Too long: may not be more than 1 byte"},
	{"{type: string, oneOf: [{maxLength: 1}, {pattern: '^x'}]}", "x",
		"<nil>: Invalid value: \"\": \"v\" must validate one and only one schema (oneOf). Found 2 "
		"valid alternatives"},
	{"{type: object, properties: {a: {type: string}, b: {type: string}}, oneOf: [{required: [a]}, "
	 "{required: [b]}]}",
		"{}",
		"<nil>: Invalid value: \"\": \"v\" must validate one and only one schema (oneOf). Found "
		"none valid\nv.a: Required value"},
	{"{type: string, allOf: [{maxLength: 1}, {pattern: '^x'}]}", "xyz",
		"v: Too long: may not be more than 1 byte\n"
		"<nil>: Invalid value: \"\": \"v\" must validate all the schemas (allOf)"},
	{"{type: string, not: {pattern: '^x'}}", "x",
		"<nil>: Invalid value: \"\": \"v\" must not validate the schema (not)"},
	/* Lists that are sets or maps. */
	{"{type: array, items: {type: string}, x-kubernetes-list-type: set}", "[a, b, a, a]",
		"v[2]: Duplicate value: \"a\""},
	{"{type: array, items: {type: object, required: [n], properties: {n: {type: string}}}, "
	 "x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [n]}",
		"[{n: a}, {n: b}, {n: a}]", "v[2]: Duplicate value: {\"n\":\"a\"}"},
	/* Embedded objects. */
	{"{type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: "
	 "true}",
		"{kind: ''}",
		"v.apiVersion: Required value\nv.kind: Invalid value: \"\": must not be empty"},
	/* Rules. */
	{"{type: string, x-kubernetes-validations: [{rule: \"self == 'a'\", message: must be a}]}",
		"b", "v: Invalid value: \"string\": must be a"},
	{"{type: string, x-kubernetes-validations: [{rule: \"self == 'a'\"}]}", "b",
		"v: Invalid value: \"string\": failed rule: self == 'a'"},
	{"{type: object, properties: {a: {type: string}}, x-kubernetes-validations: [{rule: \"self.a "
	 "== 'x'\"}]}",
		"{}",
		"v: Invalid value: \"object\": no such key: a evaluating rule: self.a == 'x'"},
	{"{type: object, properties: {a: {type: string}}, x-kubernetes-validations: [{rule: has(self.a), "
	 "fieldPath: .a, reason: FieldValueRequired, message: a it is}]}",
		"{}", "v.a: Required value: a it is"},
	{"{type: string, x-kubernetes-validations: [{rule: self != self, reason: FieldValueForbidden, "
	 "message: no}]}",
		"x", "v: Forbidden: no"},
	{"{type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: no}]}", "x",
		""},
	{"{type: object, additionalProperties: {type: string, x-kubernetes-validations: [{rule: "
	 "self != self, message: no}]}}",
		"{k: x}", "v[k]: Invalid value: \"string\": no"},
	{"{type: string, maxLength: 1, x-kubernetes-validations: [{rule: self != self, message: no}]}",
		"xy",
		"v: Too long: may not be more than 1 byte\n<nil>: Invalid value: null: some validation "
		"rules were not checked because the object was invalid; correct the existing errors to "
		"complete validation"},
};

Test(schema_structural, says_what_is_wrong)
{
	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		cleanup_free char *schema = xasprintf("properties: {v: %s}", values[i].schema);
		struct schema_node *n = object_of(schema);
		cleanup_json struct json_object *o = json_obj();
		cleanup_schema_causes struct schema_causes c = {NULL, 0, 0, false};
		cleanup_free char *text = NULL, *v = xasprintf("{v: %s}", values[i].value);

		json_object_put(o);
		o = parse(v);
		schema_validate(n, o, NULL, &c, NULL);
		text = lines(&c);
		cr_expect_str_eq(text, values[i].causes, "%s %s: %s", values[i].schema,
			values[i].value, text);
		schema_structural_free(n);
	}
}

/* As JSON: the reader of YAML has no fractions. */
Test(schema_structural, numbers_are_as_go_has_them)
{
	static const char *const numbers[][3] = {
		{"{\"type\":\"number\",\"multipleOf\":0.5}", "1",
			"v: Invalid value: 0: factor MultipleOf declared for v must be positive: 0"},
		{"{\"type\":\"number\",\"multipleOf\":0.5}", "1.25",
			"v: Invalid value: 1.25: v in body should be a multiple of 0.5"},
		{"{\"type\":\"number\",\"multipleOf\":0.5}", "1.5", ""},
		{"{\"type\":\"number\",\"maximum\":1.25}", "1.5",
			"v: Invalid value: 1.5: v in body should be less than or equal to 1.25"},
		{"{\"type\":\"integer\",\"maximum\":6e38}", "9223372036854775807", ""},
		{"{\"type\":\"integer\",\"minimum\":6e38}", "7",
			"v: Invalid value: 7: v in body should be greater than or equal to 9223372036854775807"},
		{"{\"type\":\"integer\",\"maximum\":-6e38}", "7",
			"v: Invalid value: 7: v in body should be less than or equal to -9223372036854775808"},
		{"{\"type\":\"integer\"}", "1.0", ""},
		{"{\"type\":\"integer\"}", "1.5",
			"v: Invalid value: \"number\": v in body must be of type integer: \"number\""},
		{"{\"type\":\"integer\",\"x-kubernetes-validations\":[{\"rule\":\"self == "
		 "1\"}]}",
			"1.0",
			"v: Invalid value: \"integer\": invalid data, expected int, got float64 "
			"evaluating rule: self == 1"},
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
		cleanup_schema_causes struct schema_causes c = {NULL, 0, 0, false};
		struct schema_node *n = schema_structural_new(s, "s", &c);

		cr_assert(n && o);
		schema_validate(n, o, NULL, &c, NULL);
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
		"a", "b", "v: Invalid value: \"string\": immutable", ""},
	{"{type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: immutable}]}",
		"a", "a", "", ""},
	/* What did not change is not held against an update. */
	{"{type: string, maxLength: 1}", "ab", "ab", "", ""},
	{"{type: string, maxLength: 1}", "ab", "abc", "v: Too long: may not be more than 1 byte",
		""},
	{"{type: object, required: [a], properties: {a: {type: string}, b: {type: string}}}",
		"{b: x}", "{b: x}", "", ""},
	{"{type: object, required: [a], properties: {a: {type: string}, b: {type: string}}}",
		"{b: x}", "{b: y}", "v.a: Required value", ""},
	{"{type: string, x-kubernetes-validations: [{rule: self != self, message: never}]}", "a",
		"a", "", "v: Invalid value: \"string\": never"},
	{"{type: string, x-kubernetes-validations: [{rule: self != self, message: never}]}", "a",
		"b", "v: Invalid value: \"string\": never", ""},
	{"{type: array, items: {type: string}, x-kubernetes-list-type: set}", "[a, a]", "[a, a, a]",
		"", ""},
	{"{type: array, items: {type: object, required: [n], properties: {n: {type: string}, v: {type: "
	 "string, maxLength: 1}}}, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [n]}",
		"[{n: a, v: xx}]", "[{n: b, v: x}, {n: a, v: xx}]", "", ""},
	{"{type: array, items: {type: object, required: [n], properties: {n: {type: string}, v: {type: "
	 "string, x-kubernetes-validations: [{rule: self == oldSelf, message: fixed}]}}}, "
	 "x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [n]}",
		"[{n: a, v: x}, {n: b, v: y}]", "[{n: b, v: z}, {n: c, v: x}]",
		"v[0].v: Invalid value: \"string\": fixed", ""},
	{"{type: array, items: {type: string, maxLength: 1}}", "[ab]", "[ab, c]",
		"v[0]: Too long: may not be more than 1 byte", ""},
};

Test(schema_structural, holds_only_changes_against_an_update)
{
	for (size_t i = 0; i < ARRAY_LEN(updates); i++) {
		cleanup_free char *schema = xasprintf("properties: {v: %s}", updates[i].schema),
				  *a = xasprintf("{v: %s}", updates[i].old),
				  *b = xasprintf("{v: %s}", updates[i].now), *text = NULL;
		struct schema_node *n = object_of(schema);
		cleanup_json struct json_object *old = parse(a), *now = parse(b);
		cleanup_schema_causes struct schema_causes c = {NULL, 0, 0, false};
		cleanup_schema_texts struct schema_texts w = {NULL, 0, 0};

		schema_validate(n, now, old, &c, &w);
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
	cleanup_schema_causes struct schema_causes c = {NULL, 0, 0, false};
	cleanup_free char *text = NULL;

	schema_validate_status(n, o, NULL, &c, NULL);
	text = lines(&c);
	cr_assert_str_eq(
		text, "status.a: Too long: may not be more than 1 byte\nstatus.r: Required value");
	schema_structural_free(n);
}

/* ---- schemas that the rest could not work with */

static const struct {
	const char *schema, *field, *why; /* of the first cause; why: a part of it */
} bad[] = {
	{"{}", "s", "must be an object"},
	{"{type: string}", "s", "must be an object"},
	{"{type: object, properties: {a: {}}}", "s.properties[a]", "needs a type"},
	{"{type: object, properties: {a: {type: array}}}", "s.properties[a]", "needs items"},
	{"{type: object, properties: {a: {type: any}}}", "s.properties[a].type", "\"any\""},
	{"{type: object, properties: {a: {type: object, properties: {b: {type: string}}, "
	 "additionalProperties: {type: string}}}}",
		"s.properties[a]", "exclude each other"},
	{"{type: object, properties: {a: {type: string, pattern: '('}}}", "s.properties[a].pattern",
		"regular expression"},
	{"{type: object, properties: {a: {type: string, $ref: x}}}", "s.properties[a].$ref",
		"not supported"},
	{"{type: object, properties: {a: {type: string, anyOf: [{type: integer, enum: [1]}]}}}",
		"s.properties[a].anyOf[0].type", "not supported below"},
	{"{type: object, properties: {a: {type: string, x-kubernetes-list-type: set}}}",
		"s.properties[a]", "must be an array"},
	{"{type: object, properties: {a: {type: array, items: {type: object}, "
	 "x-kubernetes-list-type: map}}}",
		"s.properties[a]", "needs keys"},
	{"{type: object, properties: {a: {type: array, items: {type: object}, "
	 "x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k]}}}",
		"s.properties[a]", "must be properties"},
	{"{type: object, properties: {a: {type: integer, default: x}}}", "s.properties[a].default",
		"must be of type integer"},
	{"{type: object, properties: {a: {type: object, default: {zz: 1}, properties: {b: {type: "
	 "string}}}}}",
		"s.properties[a].default", "must not have unknown fields"},
	{"{type: object, properties: {a: {type: string, maxLength: x}}}",
		"s.properties[a].maxLength", "has the wrong type for a schema"},
	{"{type: object, x-kubernetes-validations: [{rule: 'self.all(x, x)'}]}",
		"s.x-kubernetes-validations[0].rule", "all"},
	{"{type: object, properties: {a: {type: string}}, x-kubernetes-validations: [{rule: has(self.a), messageExpression: \"'x'\"}]}",
		"s.x-kubernetes-validations[0].messageExpression", "not supported"},
	{"{type: object, x-kubernetes-validations: [{rule: ''}]}",
		"s.x-kubernetes-validations[0].rule", ""},
	{"{type: object, properties: {a: {type: string}}, x-kubernetes-validations: [{rule: has(self.a), reason: Whatever}]}",
		"s.x-kubernetes-validations[0].reason", "unknown reason"},
	{"{type: object, properties: {a: {type: string}}, x-kubernetes-validations: [{rule: has(self.a), fieldPath: .nope}]}",
		"s.x-kubernetes-validations[0].fieldPath", "must name a property"},
};

Test(schema_structural, refuses_a_schema_outside_of_its_part)
{
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		cleanup_json struct json_object *o = parse(bad[i].schema);
		cleanup_schema_causes struct schema_causes c = {NULL, 0, 0, false};

		cr_expect_null(schema_structural_new(o, "s", &c), "%s", bad[i].schema);
		cr_assert_gt(c.n, 0, "%s", bad[i].schema);
		cr_expect_str_eq(c.cause[0].field, bad[i].field, "%s", bad[i].schema);
		cr_expect(strstr(c.cause[0].message, bad[i].why), "%s: %s", bad[i].schema,
			c.cause[0].message);
	}
}

/* A pattern and a list that take a quadratic time elsewhere. */
Test(schema_structural, takes_no_long_time)
{
	struct schema_node *n = object_of(
		"properties: {v: {type: array, x-kubernetes-list-type: set, items: {type: string}}, p: "
		"{type: string, pattern: '^(a+)+$'}}");
	struct json_object *list = json_arr();
	cleanup_json struct json_object *o = json_add(json_obj(), "v", list);
	cleanup_schema_causes struct schema_causes c = {NULL, 0, 0, false};
	cleanup_free char *text = xmalloc(1000001);

	memset(text, 'a', 1000000);
	text[999999] = 'b';
	text[1000000] = '\0';
	for (int i = 0; i < 50000; i++) {
		char e[16];

		snprintf(e, sizeof(e), "%d", i % 49999);
		json_push_str(list, e);
	}
	json_add_str(o, "p", text);
	schema_validate(n, o, NULL, &c, NULL);
	cr_assert_eq(c.n, 2);
	cr_assert_str_eq(c.cause[0].field, "p");
	cr_assert_str_eq(c.cause[1].field, "v[49999]");
	schema_structural_free(n);
}
