/* SPDX-License-Identifier: MIT */
/* The expressions of RE2 that we read, those that we refuse, and that none takes long. */
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
	{"^$", "", "a"},
	{"a.c", "abc", "a\nc"},
	{"(?s)a.c", "a\nc", "ac"},
	{"(?m)^b$", "a\nb\nc", "abc"},
	{"(?i)^abc$", "aBC", "abd"},
	{"(?i)^[a-c]+$", "aBC", "abd"},
	{"(?i)k", "\xe2\x84\xaa", "j"},
	{"(?i:A)b", "ab", "aB"},
	{"^(a|b)*$", "abba", "abc"},
	{"^(|a)+$", "aa", "ab"},
	{"^(a*)*$", "aaa", "b"},
	{"^a{2}$", "aa", "a"},
	{"^a{2,}$", "aaaa", "a"},
	{"^a{2,3}$", "aaa", "aaaa"},
	{"^a{0}b$", "b", "ab"},
	{"^a{,2}$", "a{,2}", "aa"},
	{"^x{$", "x{", "x"},
	{"^a+?b??$", "aab", "b"},
	{"^[^a]$", "\n", "a"},
	{"^[]a]+$", "]a", "b"},
	{"^[a-]+$", "a-", "b"},
	{"^[\\]\\\\]+$", "]\\", "a"},
	{"^[[:digit:][:^digit:]]$", "x", "xx"},
	{"^[\\d\\-x]+$", "1-x", "y"},
	{"^[\\D]$", "a", "1"},
	{"^\\w+\\s\\S$", "a_1 x", "a- x"},
	{"^\\x41\\x{1F642}\\n$", "A\xf0\x9f\x99\x82\n", "A"},
	{"^\\101\\.$", "A.", "Ab"},
	{"\\bfoo\\b", "a foo b", "afoo"},
	{"a\\Bb", "ab", "a b"},
	{"\\Aab\\z", "ab", "ab\n"},
	{"^\\Qa.b\\E$", "a.b", "axb"},
	{"^(?:a)(?P<n>b)(?<m>c)$", "abc", "ab"},
	{"^.$", "\xf0\x9f\x99\x82", "ab"},
	{"^[\xc3\xa0-\xc3\xbf]$", "\xc3\xa9", "e"},
	{"^.$", "\xff", NULL},
	{".*@sha256:.*", "a@sha256:b", "a@sha:b"},
	{"^(\\[[0-9A-Fa-f:.]+\\]|[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?[.]?)(:([1-9][0-9]{0,3}|"
	 "[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?$",
		"[2001:db8::1]:65535", "trustee:65536"},
};

Test(schema_regex, matches)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err err = ERR_INIT;
		struct schema_regex *r =
			schema_regex_new(rows[i].pattern, strlen(rows[i].pattern), &err);
		uint64_t budget = 1000000;

		cr_assert(r, "%s: %s", rows[i].pattern, err.text);
		cr_assert(schema_regex_match(r, rows[i].yes, strlen(rows[i].yes), &budget),
			"%s should match %s", rows[i].pattern, rows[i].yes);
		cr_assert(!rows[i].no ||
				  !schema_regex_match(r, rows[i].no, strlen(rows[i].no), &budget),
			"%s should not match %s", rows[i].pattern, rows[i].no);
		schema_regex_free(r);
	}
}

static const struct {
	const char *pattern, *why;
} bad[] = {
	{"a(b", "missing closing ): `a(b`"},
	{"ab)", "unexpected ): `ab)`"},
	{"[a", "missing closing ]: `[a`"},
	{"[z-a]", "invalid character class range: `z-a`"},
	{"[[:nope:]]", "invalid character class range: `[:nope:]`"},
	{"*a", "missing argument to repetition operator: `*`"},
	{"a**", "invalid nested repetition operator: `**`"},
	{"a{2}{3}", "invalid nested repetition operator: `{2}{3}`"},
	{"a{2,1}", "invalid repeat count: `{2,1}`"},
	{"a{1001}", "invalid repeat count: `{1001}`"},
	{"a\\", "trailing backslash at end of expression: ``"},
	{"\\y", "invalid escape sequence: `\\y`"},
	{"(a)\\1", "invalid escape sequence: `\\1`"},
	{"a(?=b)", "invalid or unsupported Perl syntax: `(?=`"},
	{"a(?!b)", "invalid or unsupported Perl syntax: `(?!`"},
	{"(?<=a)b", "invalid or unsupported Perl syntax: `(?<`"},
	{"(?>a)", "invalid or unsupported Perl syntax: `(?>`"},
	{"a++", "invalid nested repetition operator: `++`"},
	{"\\pL", "Unicode classes are not supported: `\\p`"},
	{"[\\pL]", "Unicode classes are not supported: `\\p`"},
	{"\\x{110000}", "invalid escape sequence"},
	{"((((a{1000}){1000}){1000}){1000})", "expression too large"},
	{"((((a{0}){1000}){1000}){1000})", "expression too large"},
	{"(((){1000}){1000}){1000}", "expression too large"},
};

Test(schema_regex, refuses)
{
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct err err = ERR_INIT;
		struct schema_regex *r =
			schema_regex_new(bad[i].pattern, strlen(bad[i].pattern), &err);

		cr_assert_null(r, "%s", bad[i].pattern);
		cr_assert_eq(err.kind, ERR_INVALID);
		cr_assert(str_starts(err.text, "error parsing regexp: ") &&
				  strstr(err.text, bad[i].why),
			"%s: %s", bad[i].pattern, err.text);
	}
}

Test(schema_regex, nests_only_so_deep)
{
	struct strbuf b = STRBUF_INIT;
	struct err err = ERR_INIT;

	for (int i = 0; i < 100000; i++)
		strbuf_addc(&b, '(');
	cr_assert_null(schema_regex_new(b.data, b.len, &err));
	strbuf_fini(&b);
}

/* What makes other engines try for ever. */
Test(schema_regex, takes_linear_time)
{
	static const char *const patterns[] = {"^(a+)+$", "^(a|aa)*$", "(x+x+)+y", "^(.*)*(.*)*$b"};
	char text[2001];

	memset(text, 'a', 2000);
	text[2000] = '\0';
	text[1999] = '!';
	for (size_t i = 0; i < ARRAY_LEN(patterns); i++) {
		struct err err = ERR_INIT;
		struct schema_regex *r = schema_regex_new(patterns[i], strlen(patterns[i]), &err);
		uint64_t budget = 1000000;

		cr_assert(r);
		cr_assert(!schema_regex_match(r, text, 2000, &budget));
		cr_assert_gt(budget, 800000, "%s took %llu steps", patterns[i],
			(unsigned long long)(1000000 - budget));
		schema_regex_free(r);
	}
}

Test(schema_regex, ends_when_the_budget_is_gone)
{
	struct err err = ERR_INIT;
	struct schema_regex *r = schema_regex_new("a*b", 3, &err);
	uint64_t budget = 5;

	cr_assert(!schema_regex_match(r, "aaaaaaaaab", 10, &budget));
	cr_assert_eq(budget, 0);
	schema_regex_free(r);
}
