/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "tec/base/json.h"

static struct json_object *parse(const char *s)
{
	struct err err = ERR_INIT;
	struct json_object *o = json_parse(s, strlen(s), &json_limits_object, &err);

	cr_assert_eq(o == NULL, err_is_set(&err));
	return o;
}

Test(base_json, parse_takes_any_value_but_null)
{
	static const char *const t[] = {"1", "-1", " 12 ", "0", "1.5", "1e3", "true", "\"x\"", "[]",
		"{}", "\n{}\n ", "{\"a\":null}", "[null]", "1e400", "[1e400]",
		"99999999999999999999999"};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		cleanup_json struct json_object *o = parse(t[i]);

		cr_expect_not_null(o, "%s", t[i]);
	}
	cr_assert_null(parse("null"));
	cr_assert_null(parse(" null "));
	cr_assert_null(parse(""));
	cr_assert_null(parse("{\"a\":1,\"a\":2}"));
	cr_assert_null(parse("{} {}"));
}

Test(base_json, parse_needs_no_nul_behind)
{
	char *exact = xmalloc(2);
	struct err err = ERR_INIT;
	cleanup_json struct json_object *o = NULL;

	memcpy(exact, "12", 2);
	o = json_parse(exact, 2, &json_limits_object, &err);
	cr_assert_eq(json_object_get_int64(o), 12);
	free(exact);
}

Test(base_json, getters_check_the_type)
{
	cleanup_json struct json_object *o =
		parse("{\"s\":\"x\",\"i\":5,\"n\":-5,\"d\":1.0,\"b\":true,\"z\":null,"
		      "\"o\":{\"in\":{\"s\":\"deep\"}},\"a\":[1],\"12x\":\"12x\"}");

	cr_assert_str_eq(json_get_str(o, "s"), "x");
	cr_assert_null(json_get_str(o, "i"));
	cr_assert_null(json_get_str(o, "z"));
	cr_assert_null(json_get_str(o, "missing"));
	cr_assert_eq(json_get_int(o, "i", 9), 5);
	cr_assert_eq(json_get_int(o, "n", 9), -5);
	cr_assert_eq(json_get_int(o, "d", 9), 9);
	cr_assert_eq(json_get_int(o, "12x", 9), 9);
	cr_assert_eq(json_get_int(o, "b", 9), 9);
	cr_assert_eq(json_get_bool(o, "b", false), true);
	cr_assert_eq(json_get_bool(o, "i", false), false);
	cr_assert_eq(json_get_bool(o, "z", true), true);
	cr_assert_not_null(json_get_obj(o, "o"));
	cr_assert_null(json_get_obj(o, "a"));
	cr_assert_not_null(json_get_arr(o, "a"));
	cr_assert_null(json_get_arr(o, "o"));
	cr_assert_null(json_get(o, "z"));
	cr_assert_str_eq(json_get_str(o, "o/in/s"), "deep");
	cr_assert_null(json_get_str(o, "o/in/s/x"));
	cr_assert_null(json_get_str(o, "o/no/s"));
	cr_assert_null(json_get_str(o, "a/0"));
	cr_assert_null(json_get_str(o, ""));
	cr_assert_null(json_get(NULL, "a"));
	cr_assert_null(json_get_str(NULL, "a/b"));
}

Test(base_json, integers_out_of_range_are_the_default)
{
	cleanup_json struct json_object *o =
		parse("{\"max\":9223372036854775807,\"over\":9223372036854775808,"
		      "\"far\":99999999999999999999}");

	cr_assert_eq(json_get_int(o, "max", 1), INT64_MAX);
	cr_assert_eq(json_get_int(o, "over", 1), 1);
	cr_assert_eq(json_get_int(o, "far", 1), 1);
}

Test(base_json, a_number_that_no_double_holds_is_found)
{
	cleanup_json struct json_object *o = parse("{\"a\":[1,{\"b\":-1e999}]}");

	cr_assert_not_null(json_find_infinite(o));
	cr_expect_str_eq(json_object_get_string(json_find_infinite(o)), "-1e999");
	cr_expect_null(json_find_infinite(NULL));
}

Test(base_json, string_with_nul_is_no_string)
{
	cleanup_json struct json_object *o =
		json_add(json_obj(), "s", json_object_new_string_len("a\0b", 3));

	cr_assert_null(json_get_str(o, "s"));
}

Test(base_json, builders_nest_and_leave_null_strings_out)
{
	cleanup_json struct json_object *o = json_obj();
	cleanup_free char *text = NULL;

	json_add_str(o, "s", "a/b");
	json_add_str(o, "none", NULL);
	json_add_int(o, "i", -3);
	json_add_bool(o, "b", false);
	json_add(o, "z", NULL);
	json_add(
		o, "a", json_push_str(json_push(json_push_str(json_arr(), "x"), json_obj()), NULL));
	text = json_text(o);
	cr_assert_str_eq(text, "{\"s\":\"a/b\",\"i\":-3,\"b\":false,\"z\":null,\"a\":[\"x\",{}]}");
}

/* json-c's own text, but for sequences that both may write in two ways. */
Test(base_json, text_is_what_json_c_would_write)
{
	cleanup_json struct json_object *o = parse(
		"{\"e\":{},\"a\":[],\"n\":[null,true,false,0,-1,18446744073709551615,1.50,1e9],"
		"\"\\u0001\\\"\":\"\\b\\f\\n\\r\\t\\\\\\\"/\\u001f\x7f\xc3\xa4\",\"o\":{\"a\":[{\"b\":[[1],[]]}]}}");
	cleanup_free char *text = json_text(o), *none = json_text(NULL);

	cr_assert_str_eq(none, "null");
	cr_assert_str_eq(text, json_object_to_json_string_ext(
				       o, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
}

Test(base_json, names_in_a_path_may_be_long)
{
	char name[201], path[210];
	cleanup_json struct json_object *o = json_obj();

	memset(name, 'n', sizeof(name) - 1);
	for (size_t len = 60; len <= 200; len++) {
		name[len] = '\0';
		json_add(o, name, json_add_int(json_obj(), "v", (int64_t)len));
		snprintf(path, sizeof(path), "%s/v", name);
		cr_expect_eq(json_get_int(o, path, 0), (int64_t)len);
		name[len] = 'n';
	}
	cr_expect_null(json_get(o, "/v"));
	cr_expect_null(json_get(o, "nn/v"));
}

Test(base_json, adding_a_name_again_replaces)
{
	cleanup_json struct json_object *o = json_add_int(json_add_int(json_obj(), "a", 1), "a", 2);

	cr_assert_eq(json_get_int(o, "a", 0), 2);
	cr_assert_eq(json_object_object_length(o), 1);
}

Test(base_json, copy_is_deep)
{
	cleanup_json struct json_object *o = parse("{\"a\":{\"b\":[1,2.50]}}"), *c = json_copy(o);
	cleanup_free char *text = NULL;

	json_add_int(json_get_obj(o, "a"), "b", 7);
	text = json_text(c);
	cr_assert_str_eq(text, "{\"a\":{\"b\":[1,2.50]}}");
	cr_assert_null(json_copy(NULL));
}

Test(base_json, canonical_sorts_every_level_by_bytes)
{
	cleanup_json struct json_object *a =
		parse("{\"b\":1,\"a\":{\"\xc3\xa4\":1,\"z\":[{\"y\":1,\"x\":null}]},"
		      "\"B\":\"a/b\\n\\u0001\"}");
	cleanup_strbuf struct strbuf s = STRBUF_INIT;

	json_canonical(&s, a);
	cr_assert_str_eq(strbuf_str(&s),
		"{\"B\":\"a/b\\n\\u0001\",\"a\":{\"z\":[{\"x\":null,\"y\":1}],"
		"\"\xc3\xa4\":1},\"b\":1}");
	strbuf_reset(&s);
	json_canonical(&s, NULL);
	cr_assert_str_eq(strbuf_str(&s), "null");
}

Test(base_json, canonical_is_the_same_for_any_order)
{
	cleanup_json struct json_object *a = parse("{\"x\":1,\"y\":[true,1.5]}"),
					*b = parse("{\"y\":[true,1.5],\"x\":1}");
	cleanup_strbuf struct strbuf sa = STRBUF_INIT, sb = STRBUF_INIT;

	json_canonical(&sa, a);
	json_canonical(&sb, b);
	cr_assert_str_eq(strbuf_str(&sa), strbuf_str(&sb));
}

Test(base_json, quote_escapes_what_json_must)
{
	cleanup_strbuf struct strbuf s = STRBUF_INIT;

	json_quote(&s, "a\"\\/\b\f\n\r\t\x1f\0z\xc3\xa4", 14);
	cr_assert_str_eq(strbuf_str(&s), "\"a\\\"\\\\/\\b\\f\\n\\r\\t\\u001f\\u0000z\xc3\xa4\"");
	strbuf_reset(&s);
	json_quote(&s, "", 0);
	cr_assert_str_eq(strbuf_str(&s), "\"\"");
}

Test(base_json, wipe_reaches_every_string_and_keeps_the_shape)
{
	cleanup_json struct json_object *o = json_tokener_parse(
		"{\"a\":\"short\",\"b\":[\"in a list\",{\"c\":\"deep\"}],\"n\":1,\"z\":null}");
	const char *paths[] = {"a", "b"};

	json_wipe(NULL);
	json_wipe(o);
	cr_assert_eq(json_object_get_string_len(json_get(o, "a")), 5);
	cr_assert_eq(memcmp(json_object_get_string(json_get(o, "a")), "\0\0\0\0\0", 5), 0);
	cr_assert_eq(json_object_get_string(json_object_array_get_idx(json_get(o, paths[1]), 0))[0],
		'\0');
	cr_assert_eq(json_get_int(o, "n", 0), 1);
}

/* json-c asserts on each of these. */
Test(base_json, elements_and_members_need_no_type)
{
	static const char *const other[] = {"1", "1.5", "true", "\"x\"", "[]", "{}"};

	for (size_t i = 0; i <= ARRAY_LEN(other); i++) {
		cleanup_json struct json_object *o = i < ARRAY_LEN(other) ? parse(other[i]) : NULL;
		int n = 0;

		json_each (o, name, v)
			n++;
		json_drop(o, "a");
		json_cut(o, 0, 1);
		json_put_at(o, 1, json_int(1));
		if (!json_object_is_type(o, json_type_array))
			json_push(o, json_str("x"));
		if (!json_object_is_type(o, json_type_object))
			json_add_int(o, "a", 1);
		cr_expect(json_len(o) == 0 && json_at(o, 0) == NULL && n == 0, "%zu", i);
	}
}

Test(base_json, elements_and_members_come_in_order)
{
	cleanup_json struct json_object *o = parse("{\"b\":1,\"a\":[5,null],\"c\":{}}");
	struct json_object *a = json_get(o, "a");
	cleanup_strbuf struct strbuf names = STRBUF_INIT;

	cr_assert(json_len(o) == 3 && json_len(a) == 2 && json_len(json_get(o, "c")) == 0);
	cr_assert_eq(json_object_get_int64(json_at(a, 0)), 5);
	cr_assert(json_at(a, 1) == NULL && json_at(a, 2) == NULL && json_at(o, 0) == NULL);
	json_each (o, name, v) {
		strbuf_addf(&names, "%s:%d ", name, (int)json_object_get_type(v));
		if (str_eq(name, "b"))
			json_drop(o, name);
	}
	cr_assert_str_eq(strbuf_str(&names), "b:3 a:5 c:4 ");
	cr_assert_eq(json_len(o), 2);
}

Test(base_json, elements_are_replaced_added_and_cut)
{
	cleanup_json struct json_object *a = parse("[1,2,3]");
	cleanup_free char *text = NULL;

	json_put_at(a, 0, json_str_len("xyz", 1));
	json_put_at(a, 3, json_int(4));
	json_put_at(a, 9, json_str("beyond the end"));
	json_cut(a, 1, 2);
	json_cut(a, 1, 2);
	text = json_text(a);
	cr_assert_str_eq(text, "[\"x\",4]");
}

Test(base_json, a_plain_run_ends_at_quotes_backslashes_and_control_bytes_only)
{
	char text[24];

	for (int c = 0; c < 256; c++)
		for (size_t at = 0; at < sizeof(text); at++) {
			bool plain = c >= 0x20 && c != '"' && c != '\\';

			memset(text, at % 2 ? 'a' : 0xc3, sizeof(text));
			text[at] = (char)c;
			cr_assert_eq((size_t)(json_plain_run(text, text + sizeof(text)) - text),
				plain ? sizeof(text) : at, "byte %d at %zu", c, at);
			cr_assert_eq((size_t)(json_plain_run(text, text + at) - text), at);
		}
}
