/* SPDX-License-Identifier: MIT */
/* Lists of causes, and their words. */
#include "config.h"

#include "schema/schema_testing.h"

#include "tec/schema/cause.h"

Test(schema_cause, has_the_words_of_its_problem)
{
	cleanup_schema_causes struct schema_causes c = {NULL, 0, 0};
	cleanup_json struct json_object *five = json_object_new_int(5), *list = parse("[a, 1]"),
					*json;
	cleanup_free char *text = NULL;

	schema_cause_add(&c, SCHEMA_REQUIRED, "spec.id", NULL, "%s", "");
	schema_cause_add(&c, SCHEMA_INVALID, "a", five, "should be less");
	schema_cause_add_text(&c, SCHEMA_UNSUPPORTED, "b", "x\"", "supported values: \"y\"");
	schema_cause_add(&c, SCHEMA_DUPLICATE, "c[1]", list, "%s", "");
	schema_cause_add(&c, SCHEMA_TOO_LONG, "d", NULL, "must have at most 3 bytes");
	schema_cause_add(&c, SCHEMA_INVALID, NULL, NULL, "all of it");
	schema_cause_add(&c, SCHEMA_INVALID, NULL, NULL, "all of it");
	text = schema_causes_text(&c);
	cr_assert_str_eq(text,
		"[spec.id: Required value, a: Invalid value: 5: should be less, "
		"b: Unsupported value: \"x\\\"\": supported values: \"y\", "
		"c[1]: Duplicate value: [\"a\",1], d: Too long: must have at most 3 bytes, "
		"<nil>: Invalid value: all of it]");
	json = schema_causes_json(&c);
	cr_assert_eq(json_object_array_length(json), 7);
	cr_assert_str_eq(
		json_get_str(json_object_array_get_idx(json, 0), "reason"), "FieldValueRequired");
	cr_assert_str_eq(
		json_get_str(json_object_array_get_idx(json, 0), "message"), "Required value");
	cr_assert_str_eq(json_get_str(json_object_array_get_idx(json, 0), "field"), "spec.id");
}

Test(schema_cause, a_long_value_is_cut_between_characters)
{
	cleanup_schema_causes struct schema_causes c = {NULL, 0, 0};
	cleanup_strbuf struct strbuf value = STRBUF_INIT;

	for (int i = 0; i < 1000; i++)
		strbuf_adds(&value, "\xe2\x82\xac");
	schema_cause_add_text(&c, SCHEMA_INVALID, "a", value.data, "no");
	cr_assert_eq(
		strlen(c.cause[0].message), strlen("Invalid value: ") + 199 + strlen("...: no"));
	cr_assert(strstr(c.cause[0].message, "\xac...: no"));
}

Test(schema_cause, one_stands_alone)
{
	cleanup_schema_causes struct schema_causes c = {NULL, 0, 0};
	cleanup_free char *text = NULL;

	schema_cause_add(&c, SCHEMA_FORBIDDEN, "a", NULL, "no");
	text = schema_causes_text(&c);
	cr_assert_str_eq(text, "a: Forbidden: no");
}

Test(schema_cause, are_bounded)
{
	cleanup_schema_causes struct schema_causes c = {NULL, 0, 0};

	for (int i = 0; i < SCHEMA_CAUSES_MAX + 10; i++)
		schema_cause_add(&c, SCHEMA_FORBIDDEN, "a", NULL, "%d", i);
	cr_assert_eq(c.n, SCHEMA_CAUSES_MAX);
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
