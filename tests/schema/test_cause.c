/* SPDX-License-Identifier: MIT */
/* Values as Go writes them, and lists of causes. */
#include "config.h"

#include "schema/schema_testing.h"

#include "tec/schema/cause.h"

Test(schema_cause, quotes_as_go_does)
{
	static const struct {
		const char *in;
		size_t len;
		const char *out;
	} rows[] = {
		{"", 0, "\"\""},
		{"a b", 3, "\"a b\""},
		{"a\"b\\c", 5, "\"a\\\"b\\\\c\""},
		{"\a\b\f\n\r\t\v", 7, "\"\\a\\b\\f\\n\\r\\t\\v\""},
		{"\0\x1f\x7f", 3, "\"\\x00\\x1f\\x7f\""},
		{"\xc3\xa9", 2, "\"\xc3\xa9\""},
		{"\xc2\x85", 2, "\"\\u0085\""},
		{"\xc2\xa0", 2, "\"\\u00a0\""},
		{"\xe2\x80\x8b", 3, "\"\\u200b\""},
		{"\xef\xbb\xbf", 3, "\"\\ufeff\""},
		{"\xf0\x9f\x99\x82", 4, "\"\xf0\x9f\x99\x82\""},
		{"\xf3\xa0\x80\x81", 4, "\"\\U000e0001\""},
		{"\xff", 1, "\"\\xff\""},
		{"\xc3", 1, "\"\\xc3\""},
		{"\xe2\x82", 2, "\"\\xe2\\x82\""},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		cleanup_strbuf struct strbuf b = STRBUF_INIT;

		schema_quote_go(&b, rows[i].in, rows[i].len);
		cr_assert_str_eq(strbuf_str(&b), rows[i].out);
	}
}

Test(schema_cause, writes_json_as_go_does)
{
	static const char *const rows[][2] = {
		{"{\"b\":1,\"a\":[true,null,\"x\"]}", "{\"a\":[true,null,\"x\"],\"b\":1}"},
		{"\"<a>&\\u2028\"", "\"\\u003ca\\u003e\\u0026\\u2028\""},
		{"[1.5,1e21,1e20,1.0,0.000001,1e-7,-2]", "[1.5,1e+21,1e+20,1,0.000001,1e-7,-2]"},
		{"[5.015e20,-9.5e18,9.5e18]", "[5.015e+20,-9.5e+18,9500000000000000000]"},
		{"[9223372036854775807,9223372036854775808]",
			"[9223372036854775807,9223372036854775808]"},
		{"\"\\b\\f\\n\\r\\t\\u0001/\"", "\"\\b\\f\\n\\r\\t\\u0001/\""},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err err = ERR_INIT;
		cleanup_json struct json_object *o =
			json_parse(rows[i][0], strlen(rows[i][0]), &json_limits_object, &err);
		cleanup_strbuf struct strbuf b = STRBUF_INIT;

		cr_assert(o, "%s", err.text);
		schema_json_go(&b, o);
		if (i != 4) /* a number that only a double holds: no digits of its own */
			cr_assert_str_eq(strbuf_str(&b), rows[i][1]);
	}
}

Test(schema_cause, has_the_words_of_its_problem)
{
	cleanup_schema_causes struct schema_causes c = {NULL, 0, 0, false};
	cleanup_json struct json_object *five = json_object_new_int(5), *list = parse("[a, 1]"),
					*json;
	cleanup_free char *text = NULL;

	schema_cause_add(&c, SCHEMA_REQUIRED, "spec.id", NULL, "%s", "");
	schema_cause_add(&c, SCHEMA_INVALID, "a", five, "should be less");
	schema_cause_add_text(&c, SCHEMA_UNSUPPORTED, "b", "x\"", "supported values: %s", "\"y\"");
	schema_cause_add(&c, SCHEMA_DUPLICATE, "c[1]", list, "%s", "");
	schema_cause_add(&c, SCHEMA_TOO_LONG, "d", NULL, "may not be more than 3 bytes");
	schema_cause_add(&c, SCHEMA_INVALID, NULL, NULL, "all of it");
	schema_cause_add(&c, SCHEMA_INVALID, NULL, NULL, "all of it");
	text = schema_causes_text(&c);
	cr_assert_str_eq(text,
		"[spec.id: Required value, a: Invalid value: 5: should be less, "
		"b: Unsupported value: \"x\\\"\": supported values: \"y\", "
		"c[1]: Duplicate value: [\"a\",1], d: Too long: may not be more than 3 bytes, "
		"<nil>: Invalid value: all of it]");
	json = schema_causes_json(&c);
	cr_assert_eq(json_object_array_length(json), 7);
	cr_assert_str_eq(
		json_get_str(json_object_array_get_idx(json, 0), "reason"), "FieldValueRequired");
	cr_assert_str_eq(
		json_get_str(json_object_array_get_idx(json, 0), "message"), "Required value");
	cr_assert_str_eq(json_get_str(json_object_array_get_idx(json, 0), "field"), "spec.id");
}

Test(schema_cause, one_stands_alone)
{
	cleanup_schema_causes struct schema_causes c = {NULL, 0, 0, false};
	cleanup_free char *text = NULL;

	schema_cause_add(&c, SCHEMA_FORBIDDEN, "a", NULL, "no");
	text = schema_causes_text(&c);
	cr_assert_str_eq(text, "a: Forbidden: no");
}

Test(schema_cause, are_bounded)
{
	cleanup_schema_causes struct schema_causes c = {NULL, 0, 0, false};

	for (int i = 0; i < SCHEMA_CAUSES_MAX + 10; i++)
		schema_cause_add(&c, SCHEMA_FORBIDDEN, "a", NULL, "%d", i);
	cr_assert_eq(c.n, SCHEMA_CAUSES_MAX);
	cr_assert(c.cut);
}

Test(schema_cause, texts_are_sorted)
{
	cleanup_schema_texts struct schema_texts t = {NULL, 0, 0};

	schema_texts_add(&t, "b%d", 1);
	schema_texts_add(&t, "a");
	schema_texts_sort(&t);
	cr_assert_eq(t.n, 2);
	cr_assert_str_eq(t.text[0], "a");
	cr_assert_str_eq(t.text[1], "b1");
}
