/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <signal.h>

#include "tec/base/bytes.h"
#include "tec/base/json.h"

static const struct json_limits roomy = {.bytes = 1 << 20, .depth = 5, .tokens = 1000};

/* 0: it is read, or a null alone, which only json_parse() refuses. */
static int scan(const char *s, size_t len, const struct json_limits *limits)
{
	/* A copy without NUL behind it: ASan sees every byte read too many. */
	char *exact = malloc(len ? len : 1);
	struct err err = ERR_INIT;
	struct json_object *o;

	if (len > 0)
		memcpy(exact, s, len);
	o = json_parse(exact, len, limits, &err);
	cr_expect_eq(err_is_set(&err), o == NULL);
	cr_expect(o || err.kind == ERR_INVALID);
	cr_expect(!o || json_object_put(o) == 1);
	free(exact);
	return o || strcmp(err.text, "JSON: the value is null") == 0 ? 0 : -1;
}

Test(base_jsonread, accepts_json)
{
	static const char *const t[] = {"0", "-0", "1", "-12", "1.5", "1e5", "1E+5", "1.25e-7",
		"\"\"", "\"a\"", "true", "false", "null", "[]", "{}", " [ ] ", "\t\r\n{ }\n",
		"[1,2]", "[ 1 , 2 ]", "{\"a\":1}",
		"{ \"a\" : 1 , \"b\" : [ { } , { \"a\" : 2 } ] }",
		"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\"", "\"\\ud83d\\ude00\"",
		"\"\xf0\x9f\x98\x80\"", "\"\x7f\"", "[[],[],{},\"\"]", "{\"\":0}",
		"{\"a\":{\"a\":{\"a\":1}}}", "[{\"a\":1},{\"a\":1}]", "{\"a\":1,\"A\":1}",
		"{\"a\":[{\"b\":1}],\"b\":2}", "123456789012345678901234567890", "1e400", "\"'\""};

	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		cr_expect_eq(scan(t[i], strlen(t[i]), &roomy), 0, "%s", t[i]);
}

Test(base_jsonread, refuses_what_is_no_json)
{
	static const char *const t[] = {"", " ", "nul", "nulll", "True", "tru", "NaN", "Infinity",
		"-Infinity", "-", "+1", "01", "-01", "00", "1.", ".5", "1e", "1e+", "1.e5", "0x1",
		"1_0", "1 2", "[1 2]", "[1,]", "[,1]", "[,]", "[", "]", "{", "}", "[}", "{]", "[1",
		"{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":1,", "{\"a\":1,}", "{a:1}", "{'a':1}",
		"'a'", "{1:1}", "{null:1}", "{\"a\" 1}", "{\"a\"::1}", "{,}", "{\"a\",\"b\"}", "\"",
		"\"a", "\"\\\"", "\"\\", "\"\\x\"", "\"\\'\"", "\"\\u\"", "\"\\u12\"",
		"\"\\u123g\"", "\"\\u 123\"", "\"\\u0000\"", "\"\\ud800\"", "\"\\udc00\"",
		"\"\\ud800\\ud800\"", "\"\\ud800x\"", "\"\\ud800\\n\"", "\"\\ud800\\u\"",
		"\"\\ud800\\udc0", "\"a\nb\"", "\"a\tb\"", "\"\x01\"", "\"\x1f\"", "[1]]", "{}{}",
		"1,", "\xef\xbb\xbf{}", "// c\n1", "/* c */1", "1 // c", "[1]x", "\v1", "\f1",
		"\xc2\xa0"
		"1",
		"\"\xff\"", "\"\xc0\x80\"", "\"\xed\xa0\x80\"", "\"\xf5\x80\x80\x80\"",
		"\"\xe2\x82\"", "undefined", "[1,2", "--1", "{\"a\":1 \"b\":2}", "[\"a\" \"b\"]",
		"{\"a\":}", "[:]", "-a", "1.-5", "\\u0031"};

	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		cr_expect_eq(scan(t[i], strlen(t[i]), &roomy), -1, "%s", t[i]);
}

Test(base_jsonread, refuses_nul_bytes)
{
	static const struct {
		const char *s;
		size_t len;
	} t[] = {{"\0", 1}, {"1\0", 2}, {"\"a\0b\"", 5}, {"{\0}", 3}, {"[1]\0", 4}, {"\0[1]", 4},
		{"\"\\\0\"", 4}};

	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		cr_expect_eq(scan(t[i].s, t[i].len, &roomy), -1, "case %zu", i);
}

Test(base_jsonread, an_escaped_nul_passes_in_the_texts_of_the_api_alone)
{
	static const char value[] = "{\"a\":[\"\\u0006\\u0000\",\"\\u0000\"]}";
	static const char *const bad[] = {
		"{\"a\\u0000\":1}", "{\"\\u0000\":1,\"\\u0000\":2}", "\"\\u000\""};
	struct err err = ERR_INIT;
	cleanup_json struct json_object *o =
		json_parse(value, strlen(value), &json_limits_api, &err);
	struct json_object *text = json_object_array_get_idx(json_get_arr(o, "a"), 0);

	cr_expect_eq(scan(value, strlen(value), &json_limits_object), -1);
	cr_assert_eq(json_object_get_string_len(text), 2);
	cr_expect_arr_eq(json_object_get_string(text), "\6\0", 2);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		cr_expect_eq(scan(bad[i], strlen(bad[i]), &json_limits_api), -1, "%s", bad[i]);
}

Test(base_jsonread, duplicate_names_are_compared_unescaped)
{
	static const char *const t[] = {"{\"a\":1,\"a\":2}", "{\"a\":1,\"\\u0061\":2}",
		"{\"\\u0061\":1,\"\\u0061\":2}", "{\"\":1,\"\":2}", "{\"\\/\":1,\"/\":2}",
		"{\"\\ud83d\\ude00\":1,\"\xf0\x9f\x98\x80\":2}", "{\"\\u00E9\":1,\"\xc3\xa9\":2}",
		"{\"\\u20AC\":1,\"\xe2\x82\xac\":2}", "{\"a\":{\"b\":1},\"a\":2}",
		"[{\"x\":{\"a\":1,\"b\":2,\"a\":3}}]", "{\"a\":[],\"b\":{\"c\":1},\"b\":1}",
		"{\"\\n\":1,\"\\u000a\":2}", "{\"\\\"\":1,\"\\u0022\":2}"};

	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		cr_expect_eq(scan(t[i], strlen(t[i]), &roomy), -1, "%s", t[i]);
}

Test(base_jsonread, depth_counts_like_json_c)
{
	for (unsigned depth = 1; depth <= 20; depth++) {
		struct json_limits limits = {.bytes = 1000, .depth = depth, .tokens = 1000};

		for (unsigned n = 1; n <= 20; n++) {
			cleanup_strbuf struct strbuf s = STRBUF_INIT;
			struct json_tokener *tok = json_tokener_new_ex((int)depth);
			struct json_object *o;

			for (unsigned i = 0; i < n; i++)
				strbuf_adds(&s, i % 2 ? "[" : "{\"a\":");
			strbuf_adds(&s, "1");
			for (unsigned i = n; i-- > 0;)
				strbuf_addc(&s, i % 2 ? ']' : '}');
			o = json_tokener_parse_ex(tok, strbuf_str(&s), (int)s.len);
			cr_expect_eq(scan(strbuf_str(&s), s.len, &limits) == 0, o != NULL,
				"depth %u of %u", n, depth);
			cr_expect_eq(o != NULL, n < depth);
			json_object_put(o);
			json_tokener_free(tok);
		}
	}
}

Test(base_jsonread, an_empty_container_is_one_level)
{
	struct json_limits one = {.bytes = 100, .depth = 1, .tokens = 10};

	cr_assert_eq(scan("[]", 2, &one), 0);
	cr_assert_eq(scan("{}", 2, &one), 0);
	cr_assert_eq(scan("1", 1, &one), 0);
	cr_assert_eq(scan("[1]", 3, &one), -1);
	cr_assert_eq(scan("[[]]", 4, &one), -1);
}

Test(base_jsonread, a_million_brackets_stop_at_once)
{
	size_t len = 1 << 20;
	char *s = malloc(len);
	struct err err = ERR_INIT;

	memset(s, '[', len);
	cr_assert_null(json_parse(s, len, &json_limits_object, &err));
	cr_assert_not_null(strstr(err.text, "deep"));
	free(s);
}

Test(base_jsonread, tokens_are_values_and_names)
{
	struct json_limits limits = {.bytes = 100, .depth = 5, .tokens = 4};

	cr_assert_eq(scan("[1,2,3]", 7, &limits), 0);
	cr_assert_eq(scan("[1,2,3,4]", 9, &limits), -1);
	cr_assert_eq(scan("{\"a\":1}", 7, &limits), 0);
	cr_assert_eq(scan("{\"a\":1,\"b\":2}", 13, &limits), -1);
	cr_assert_eq(scan("[[],[],[]]", 10, &limits), 0);
	cr_assert_eq(scan("[[],[],[[]]]", 12, &limits), -1);
}

Test(base_jsonread, bytes_are_bounded)
{
	struct json_limits limits = {.bytes = 4, .depth = 5, .tokens = 4};

	cr_assert_eq(scan("[1] ", 4, &limits), 0);
	cr_assert_eq(scan("[1]  ", 5, &limits), -1);
}

/* {"n0":0,"n1":0,...}: `objects` of them in an array with `names` each. */
static void many_names(struct strbuf *s, unsigned objects, unsigned names)
{
	strbuf_addc(s, '[');
	for (unsigned o = 0; o < objects; o++) {
		strbuf_adds(s, o ? ",{" : "{");
		for (unsigned n = 0; n < names; n++)
			strbuf_addf(s, "%s\"n%u\":0", n ? "," : "", n);
		strbuf_addc(s, '}');
	}
	strbuf_addc(s, ']');
}

Test(base_jsonread, a_hundred_thousand_names_are_no_problem)
{
	static const unsigned t[][2] = {{1, 99000}, {990, 100}, {49000, 1}};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		cleanup_strbuf struct strbuf s = STRBUF_INIT;
		size_t last;

		many_names(&s, t[i][0], t[i][1]);
		cr_assert_eq(scan(strbuf_str(&s), s.len, &json_limits_object), 0);
		/* The very last name again: found, in whatever size the table has by then. */
		last = s.len - 2;
		strbuf_drop(&s, 0);
		s.len = last;
		strbuf_addf(&s, ",\"n%u\":0}]", t[i][1] - 1);
		cr_assert_eq(scan(strbuf_str(&s), s.len, &json_limits_object), -1);
	}
}

Test(base_jsonread, amplification_is_bounded_by_tokens)
{
	cleanup_strbuf struct strbuf s = STRBUF_INIT;

	strbuf_addc(&s, '[');
	for (unsigned i = 0; i < 300; i++)
		strbuf_adds(&s, i ? ",{}" : "{}");
	strbuf_addc(&s, ']');
	cr_assert_eq(scan(strbuf_str(&s), s.len, &json_limits_public), -1);
}

Test(base_jsonread, errors_name_the_byte_not_the_text)
{
	struct err err = ERR_INIT;

	cr_assert_null(json_parse("{\"key\":hunter2}", 15, &json_limits_public, &err));
	cr_assert_null(strstr(err.text, "hunter2"));
	cr_assert_not_null(strstr(err.text, "byte 7"));
}

Test(base_jsonread, every_prefix_of_a_document_is_refused)
{
	static const char doc[] = "{\"a\":[1,-2.5e3,true,null,\"x\\u00e9\\ud83d\\ude00\"],"
				  "\"b\":{\"c\":\"\xe2\x82\xac\"}}";

	for (size_t len = 0; len < sizeof(doc) - 1; len++)
		cr_expect_eq(scan(doc, len, &roomy), -1, "prefix %zu", len);
	cr_assert_eq(scan(doc, sizeof(doc) - 1, &roomy), 0);
}

/* As json-c's own parser reads it; the text ends in a NUL. */
static struct json_object *by_json_c(const char *text)
{
	struct json_tokener *tok = json_tokener_new_ex(100);
	struct json_object *o;

	json_tokener_set_flags(tok, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	o = json_tokener_parse_ex(tok, text, (int)strlen(text) + 1);
	json_tokener_free(tok);
	return o;
}

/* Whether json-c makes the same of a text that we accept. */
static bool is_as_json_c(const char *text, struct json_object *ours)
{
	cleanup_json struct json_object *theirs = by_json_c(text);
	cleanup_free char *a = json_text(ours), *b = json_text(theirs);

	return theirs && json_object_equal(ours, theirs) && strcmp(a, b) == 0;
}

Test(base_jsonread, values_are_those_of_json_c)
{
	static const char *const t[] = {"0", "-0", "1", "-1", "12", "9223372036854775807",
		"9223372036854775808", "-9223372036854775807", "-9223372036854775808",
		"-9223372036854775809", "18446744073709551614", "18446744073709551615",
		"18446744073709551616", "18446744073709551620", "99999999999999999999999",
		"-99999999999999999999999", "184467440737095516150", "0.0", "-0.0", "1.50", "1e3",
		"1E+3", "1e-3", "1e400", "-1e400", "1e-400", "0.1", "123456789.123456789", "5e-324",
		"1.7976931348623157e308", "true", "false", "\"\"", "\"a\"",
		"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\u0001\\u007f\\u0080\\u07ff\"",
		"\"\\u0800\\uffff\\ud800\\udc00\\udbff\\udfff\"", "\"\\uD83D\\uDE00x\"",
		"\"a\\u0000b\"", "\"\xf0\x9f\x98\x80\xe2\x82\xac\xc3\xa9\"", "[]", "{}",
		"[[],{},[null,true],\"\",0]", "{\"b\":1,\"a\":{\"\":null},\"\\u0061b\":[1.0]}",
		"{\"b\":{\"c\":[{\"d\":\"\\\"\"},2]},\"a\\/b\":\"\\/\"}"};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		static const struct json_limits limits = {
			.bytes = 1000, .depth = 100, .tokens = 1000, .nul = true};
		struct err err = ERR_INIT;
		cleanup_json struct json_object *o = json_parse(t[i], strlen(t[i]), &limits, &err);

		cr_assert_not_null(o, "%s: %s", t[i], err.text);
		cr_expect(is_as_json_c(t[i], o), "%s", t[i]);
	}
}

/* Flips every byte of a document to every value. */
/* json-c 0.16 reads U+FFFD. */
Test(base_jsonread, a_pair_whose_low_half_looks_like_a_surrogate)
{
	static const char text[] = "\"\\ud837\\ude40\\ud836\\udc00\"";
	struct err err = ERR_INIT;
	cleanup_json struct json_object *o =
		json_parse(text, strlen(text), &json_limits_public, &err);

	cr_assert_str_eq(json_object_get_string(o), "\xf0\x9d\xb9\x80\xf0\x9d\xa0\x80");
}

Test(base_jsonread, what_passes_json_c_reads_the_same)
{
	static const char doc[] =
		"{\"a\":[1,-2.5e3,true,null,\"x\\u00e9\"],\"b\":{\"\":\"\xe2\x82\xac\"}}";
	unsigned accepted = 0;

	for (size_t i = 0; i < sizeof(doc) - 1; i++) {
		for (unsigned b = 0; b < 256; b++) {
			char text[sizeof(doc)];
			struct err err = ERR_INIT;
			struct json_object *o;

			memcpy(text, doc, sizeof(doc));
			text[i] = (char)b;
			o = json_parse(text, sizeof(doc) - 1, &roomy, &err);
			if (!o)
				continue;
			accepted++;
			cr_expect(is_as_json_c(text, o), "byte %zu = %u", i, b);
			cr_expect_eq(json_object_put(o), 1);
		}
	}
	cr_assert_gt(accepted, sizeof(doc));
}

Test(base_jsonread, depth_limit_above_the_stack_aborts, .signal = SIGABRT)
{
	struct json_limits limits = {.bytes = 10, .depth = 1000, .tokens = 10};
	struct err err = ERR_INIT;

	json_object_put(json_parse("1", 1, &limits, &err));
}

static void add_path(void *arg, const char *path)
{
	strbuf_addf(arg, "%s;", path);
}

Test(base_jsonread, of_members_with_one_name_the_last_counts)
{
	static const struct {
		const char *text, *paths, *value; /* value NULL: refused */
	} cases[] = {
		{"{\"a\":1,\"b\":2}", "", "{\"a\":1,\"b\":2}"},
		{"{\"a\":1,\"b\":2,\"a\":3}", "a;", "{\"b\":2,\"a\":3}"},
		{"{\"a\":1,\"a\":2,\"a\":3}", "a;a;", "{\"a\":3}"},
		{"{\"a\":1,\"\\u0061\":2}", "a;", "{\"a\":2}"},
		{"{\"x\":{\"y\":[0,{\"a\":1,\"a\":2}]}}", "x.y[1].a;",
			"{\"x\":{\"y\":[0,{\"a\":2}]}}"},
		{"[[],[{\"a\":{},\"a\":[]}]]", "[1][0].a;", "[[],[{\"a\":[]}]]"},
		{"{\"a\":{\"b\":1,\"b\":2},\"a\":{\"b\":3}}", "a.b;a;", "{\"a\":{\"b\":3}}"},
		{"{\"a\":{\"b\":1},\"a\":{\"b\":3,\"b\":4}}", "a;a.b;", "{\"a\":{\"b\":4}}"},
		{"{\"a\":null,\"a\":null}", "a;", "{\"a\":null}"},
		{"{\"a\":1,\"a\":}", "a;", NULL},
		{"{\"a\":1,\"a\":2", "a;", NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_strbuf struct strbuf paths = STRBUF_INIT;
		struct err err = ERR_INIT;
		cleanup_json struct json_object *o = json_parse_last(cases[i].text,
			strlen(cases[i].text), &json_limits_object, add_path, &paths, &err);
		cleanup_free char *text = o ? json_text(o) : NULL;

		cr_expect_str_eq(strbuf_str(&paths), cases[i].paths, "%s", cases[i].text);
		cr_expect(!text == !cases[i].value, "%s", cases[i].text);
		if (text && cases[i].value)
			cr_expect_str_eq(text, cases[i].value);
	}
}
