/* SPDX-License-Identifier: MIT */
/* What a pattern matches where engines differ, and that no text takes long. */
#include "config.h"

#include "schema/schema_testing.h"

#include "tec/schema/regex.h"

static const struct {
	const char *pattern, *yes, *no; /* NULL: there is none */
} rows[] = {
	{"", "", NULL},
	{"b", "abc", "ac"},
	{"^b", "bc", "abc"},
	{"b$", "ab", "b\n"},
	{"^$", "", "\n"},
	{"a.c", "abc", "a\nc"},
	{"^.$", "\xf0\x9f\x99\x82", "ab"},
	{"^[\xc3\xa0-\xc3\xbf]$", "\xc3\xa9", "\xff"},
	{"^\\d$", "1", "\xd9\xa1"}, /* no digits but those of ASCII */
	{".*@sha256:.*", "a@sha256:b", "a@sha:b"},
	{"^(\\[[0-9A-Fa-f:.]+\\]|[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?[.]?)(:([1-9][0-9]{0,3}|"
	 "[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?$",
		"[2001:db8::1]:65535", "trustee:65536"},
};

static struct schema_regex *compile(const char *pattern)
{
	struct err err = ERR_INIT;
	struct schema_regex *r = schema_regex_new(pattern, strlen(pattern), &err);

	cr_assert(r, "%s: %s", pattern, err.text);
	return r;
}

Test(schema_regex, matches)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct schema_regex *r = compile(rows[i].pattern);

		cr_assert(schema_regex_match(r, rows[i].yes, strlen(rows[i].yes)),
			"%s should match %s", rows[i].pattern, rows[i].yes);
		cr_assert(!rows[i].no || !schema_regex_match(r, rows[i].no, strlen(rows[i].no)),
			"%s should not match %s", rows[i].pattern, rows[i].no);
		schema_regex_free(r);
	}
}

Test(schema_regex, sees_past_a_nul)
{
	struct schema_regex *r = compile("^a$");

	cr_assert(schema_regex_match(r, "a", 1));
	cr_assert(!schema_regex_match(r, "a\0b", 3));
	schema_regex_free(r);
}

static const struct {
	const char *pattern, *why;
} bad[] = {
	{"a(b", "missing closing parenthesis at byte 3"},
	{"[z-a]", "range out of order in character class"},
	{"*a", "quantifier does not follow a repeatable item"},
	{"(a)\\1", "reference to non-existent subpattern"},
	{"\\C", "using \\C is disabled"},
	{"\xff", "UTF-8 error"},
	{"((((a{1000}){1000}){1000}){1000})", "too large"},
};

Test(schema_regex, refuses)
{
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct err err = ERR_INIT;

		cr_assert_null(schema_regex_new(bad[i].pattern, strlen(bad[i].pattern), &err), "%s",
			bad[i].pattern);
		cr_assert_eq(err.kind, ERR_INVALID);
		cr_expect(strstr(err.text, bad[i].why), "%s: %s", bad[i].pattern, err.text);
	}
}

Test(schema_regex, refuses_what_is_long_or_nests_deeply)
{
	struct strbuf b = STRBUF_INIT;

	for (int i = 0; i < 100000; i++) {
		struct err err = ERR_INIT;

		if (i == 1000 || i == 99999)
			cr_assert_null(schema_regex_new(b.data, b.len, &err));
		strbuf_addc(&b, '(');
	}
	strbuf_fini(&b);
}

/* These try for ever where there is no limit; what uses it up does not match. */
Test(schema_regex, ends_on_hostile_text, .timeout = 20)
{
	static const char *const patterns[] = {
		"^(a+)+$", "^(a|aa)*$", "^(x+x+)+y", "^(.*)*(.*)*$b", "^((a?)*)*$"};
	const size_t len = 1 << 20;
	char *text = xcalloc(len + 1, 1);

	memset(text, 'a', len);
	text[len - 1] = '!';
	for (size_t i = 0; i < ARRAY_LEN(patterns); i++) {
		struct schema_regex *r = compile(patterns[i]);

		cr_expect(!schema_regex_match(r, text, len), "%s", patterns[i]);
		cr_expect(!schema_regex_match(r, text + len - 3000, 3000), "%s", patterns[i]);
		cr_expect(!schema_regex_match(r, text, len + 1), "%s", patterns[i]);
		schema_regex_free(r);
	}
	free(text);
}

/* The longest that crd/ lets in stays below the limits. */
Test(schema_regex, has_limits_that_names_do_not_reach)
{
	struct schema_regex *r =
		compile("^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
			"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$");
	struct strbuf b = STRBUF_INIT;

	for (int i = 0; i < 126; i++)
		strbuf_adds(&b, "a.");
	strbuf_adds(&b, "a/");
	for (int i = 0; i < 63; i++)
		strbuf_addc(&b, 'B');
	cr_assert(schema_regex_match(r, b.data, b.len));
	strbuf_addc(&b, '-');
	cr_assert(!schema_regex_match(r, b.data, b.len));
	strbuf_fini(&b);
	schema_regex_free(r);
}
