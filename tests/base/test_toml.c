/* SPDX-License-Identifier: MIT */
/* tests/e2e/test_toml.py compares with another reader; here is what has to be refused, and how. */
#include "config.h"

#include <criterion/criterion.h>

#include "tec/base/toml.h"

/* The canonical JSON of a text, or "!" and the error. The caller frees. */
static char *convert(const char *text, size_t len)
{
	cleanup_strbuf struct strbuf s = STRBUF_INIT;
	struct err err = ERR_INIT;
	cleanup_json struct json_object *o = toml_parse(text, len, &err);

	cr_expect_eq(o == NULL, err_is_set(&err), "%s", text);
	if (o)
		json_canonical(&s, o);
	else
		strbuf_addf(&s, "!%s", err.text);
	return strbuf_steal(&s);
}

struct row {
	const char *in, *want;
};

static void compare(const struct row *t, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		cleanup_free char *got = convert(t[i].in, strlen(t[i].in));

		cr_expect_str_eq(got, t[i].want, "%s: got %s", t[i].in, got);
	}
}

Test(base_toml, documents)
{
	static const struct row t[] = {
		{"", "{}"},
		{"# only a comment", "{}"},
		{"a = 1\r\nb = \"x\"\r\n", "{\"a\":1,\"b\":\"x\"}"},
		{"a.b.c = true", "{\"a\":{\"b\":{\"c\":true}}}"},
		{"[a]\nb = 1\n[a.c]\nd = 2", "{\"a\":{\"b\":1,\"c\":{\"d\":2}}}"},
		{"[a.b]\nx = 1\n[a]\ny = 2", "{\"a\":{\"b\":{\"x\":1},\"y\":2}}"},
		{"[[p]]\nn = 1\n[[p]]\nn = 2\n[p.q]\nm = 3",
			"{\"p\":[{\"n\":1},{\"n\":2,\"q\":{\"m\":3}}]}"},
		{"a = [ 1, # one\n 2,\n]", "{\"a\":[1,2]}"},
		{"a = [[1], [\"x\", {b = 2}]]", "{\"a\":[[1],[\"x\",{\"b\":2}]]}"},
		{"a = {b = 1, c.d = 'e'}", "{\"a\":{\"b\":1,\"c\":{\"d\":\"e\"}}}"},
		{"\"a b\".'c.d' = 1", "{\"a b\":{\"c.d\":1}}"},
		{"a = \"\"\"\nb \\\n  c\"\"\"\"", "{\"a\":\"b c\\\"\"}"},
		{"a = '''\nb\\n'''", "{\"a\":\"b\\\\n\"}"},
		{"a = \"\\u00e4\\U0001F600\\t\"", "{\"a\":\"\xc3\xa4\xf0\x9f\x98\x80\\t\"}"},
		{"a = 0x_1", "!line 1: a number is malformed"},
		{"a = 0xdead_BEEF", "{\"a\":3735928559}"},
		{"a = -9223372036854775808", "{\"a\":-9223372036854775808}"},
		{"a = 1979-05-27 07:32:00Z", "{\"a\":\"1979-05-27 07:32:00Z\"}"},
		{"a = 1979-05-27T00:32:00.999-07:00", "{\"a\":\"1979-05-27T00:32:00.999-07:00\"}"},
		{"a = 07:32:00", "{\"a\":\"07:32:00\"}"},
		{"a = +inf", "{\"a\":\"+inf\"}"},
	};

	compare(t, ARRAY_LEN(t));
}

Test(base_toml, what_is_refused_has_a_line)
{
	static const struct row t[] = {
		{"a = 1\na = 2", "!line 2: duplicate key"},
		{"[a]\n[a]", "!line 2: duplicate table"},
		{"a.b = 1\n[a]", "!line 2: duplicate table"},
		{"a = {b = 1}\n[a.c]",
			"!line 2: duplicate key, or a table that cannot be extended"},
		{"a = [{}]\n[[a]]", "!line 2: duplicate table"},
		{"[[a]]\n[a]", "!line 2: duplicate table"},
		{"[a]\nb = 1\n[a.b]", "!line 3: duplicate table"},
		{"a = 1 b = 2", "!line 1: trailing data after a value or table name"},
		{"a", "!line 1: missing '=' after a key"},
		{"a =", "!line 1: a value is missing"},
		{"= 1", "!line 1: a key is missing"},
		{"\n\n[a", "!line 3: unterminated table name"},
		{"[[a]", "!line 1: unterminated table name"},
		{"a = \"x\ny\"", "!line 1: a string does not end on its line"},
		{"a = \"\"\"x\n\n", "!line 1: unterminated string"},
		{"a = \"\\q\"", "!line 1: a string has an unknown escape"},
		{"a = \"\\ud800\"", "!line 1: an escape is not a Unicode character"},
		{"a = \"\\u0000\"", "!line 1: a string has a NUL character"},
		{"a = \"\x01\"", "!line 1: a string has a control character"},
		{"# \x07", "!line 1: a comment has a control character"},
		{"a = 1\rb = 2", "!line 1: trailing data after a value or table name"},
		{"a = 01", "!line 1: a value is not a quoted string, number, date, true or false"},
		{"a = yes", "!line 1: a value is not a quoted string, number, date, true or false"},
		{"a = 9223372036854775808", "!line 1: an integer is beyond 64 bits"},
		{"a = 1e309", "!line 1: a float is beyond 64 bits"},
		{"a = -19392.5e20193932", "!line 1: a float is beyond 64 bits"},
		{"a = 2023-02-29",
			"!line 1: a value is not a quoted string, number, date, true or false"},
		{"a = [1 2]", "!line 1: expected ',' or ']' in an array"},
		{"a = {b = 1,\nc = 2}", "!line 1: a key is missing"},
		{"a = {b = 1 c = 2}", "!line 1: expected ',' or '}' in an inline table"},
		{"a = \"\xc3\x28\"", "!not valid UTF-8"},
	};

	compare(t, ARRAY_LEN(t));
}

/* n times open, a 1, n times close. The caller frees. */
static char *nested(const char *head, size_t n, const char *open, const char *close)
{
	cleanup_strbuf struct strbuf s = STRBUF_INIT;

	strbuf_adds(&s, head);
	for (size_t i = 0; i < n; i++)
		strbuf_adds(&s, open);
	strbuf_adds(&s, "1");
	for (size_t i = 0; i < n; i++)
		strbuf_adds(&s, close);
	return strbuf_steal(&s);
}

Test(base_toml, depth_and_size_are_bounded)
{
	cleanup_free char *good = nested("a = ", 64, "[", "]"),
			  *deep = nested("a = ", 65, "[", "]"), *keys = nested("", 65, "a.", ""),
			  *large = xmalloc((1 << 20) + 1);
	cleanup_free char *got_good = convert(good, strlen(good)),
			  *got_deep = convert(deep, strlen(deep)),
			  *got_keys = convert(keys, strlen(keys)), *got_large = NULL;

	memset(large, '\n', (1 << 20) + 1);
	got_large = convert(large, (1 << 20) + 1);
	cr_assert(got_good[0] == '{', "%s", got_good);
	cr_assert_str_eq(got_deep, "!line 1: values are nested too deeply");
	cr_assert_str_eq(got_keys, "!line 1: tables are nested too deeply");
	cr_assert_str_eq(got_large, "!more than 1 MiB");
}
