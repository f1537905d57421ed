/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>

#include "tec/base/mem.h"
#include "tec/base/str.h"

Test(base_str, strbuf_grows_and_stays_terminated)
{
	cleanup_strbuf struct strbuf b = STRBUF_INIT;

	cr_assert_str_eq(strbuf_str(&b), "");
	for (int i = 0; i < 1000; i++) {
		strbuf_addf(&b, "%03d,", i);
		cr_assert_eq(b.data[b.len], '\0');
	}
	cr_assert_eq(b.len, 4000);
	cr_assert_eq(strncmp(b.data, "000,001,", 8), 0);
	strbuf_drop(&b, 3996);
	cr_assert_str_eq(strbuf_str(&b), "999,");
	strbuf_drop(&b, 4);
	cr_assert_str_eq(strbuf_str(&b), "");
	strbuf_addc(&b, 'x');
	strbuf_adds(&b, "yz");
	strbuf_add(&b, NULL, 0);
	cr_assert_str_eq(strbuf_str(&b), "xyz");
	strbuf_reset(&b);
	cr_assert_eq(b.len, 0);
	cr_assert_str_eq(strbuf_str(&b), "");
}

/* The plain build gives the freed piece out again; its first words are the allocator's. */
Test(base_str, what_was_outgrown_is_wiped)
{
	struct strbuf b = STRBUF_INIT;
	unsigned char *again;
	size_t left = 0;

	for (int i = 0; i < 60; i++)
		strbuf_addc(&b, 'k');
	strbuf_adds(&b, "kkkkkkkk");
	again = malloc(64);
	cr_assert(again);
	for (size_t i = 16; i < 64; i++)
		left += again[i] == 'k';
	cr_expect_eq(left, 0, "%zu bytes", left);
	free(again);
	strbuf_fini(&b);
}

Test(base_str, strbuf_extended_is_written_by_the_caller)
{
	cleanup_strbuf struct strbuf b = STRBUF_INIT;

	memcpy(strbuf_extend(&b, 3), "abc", 3);
	memset(strbuf_extend(&b, 5000), 'q', 5000);
	strbuf_adds(&b, "z");
	cr_assert_eq(b.len, 5004);
	cr_assert_eq(strncmp(b.data, "abcq", 4), 0);
	cr_assert_str_eq(b.data + 5002, "qz");
	(void)strbuf_extend(&b, 0);
	cr_assert_eq(b.data[5004], '\0');
}

Test(base_str, strbuf_keeps_nul_bytes_and_long_formats)
{
	cleanup_strbuf struct strbuf b = STRBUF_INIT;
	cleanup_free char *big = xmalloc(70001);

	memset(big, 'q', 70000);
	big[70000] = '\0';
	strbuf_add(&b, "a\0b", 3);
	cr_assert_eq(b.len, 3);
	strbuf_addf(&b, "<%s>", big);
	cr_assert_eq(b.len, 70005);
	cr_assert_eq(b.data[70004], '>');
}

Test(base_str, steal_of_empty_is_an_empty_string)
{
	struct strbuf b = STRBUF_INIT;
	cleanup_free char *s = strbuf_steal(&b);
	cleanup_free char *t = NULL;

	cr_assert_str_eq(s, "");
	strbuf_adds(&b, "t");
	t = strbuf_steal(&b);
	cr_assert_str_eq(t, "t");
	cr_assert_null(b.data);
}

Test(base_str, strbuf_above_its_limit_aborts, .signal = SIGABRT)
{
	struct strbuf b = STRBUF_INIT;
	char *big = xcalloc(1, 40 << 20);

	strbuf_add(&b, big, 40 << 20);
	strbuf_add(&b, big, 40 << 20);
}

Test(base_str, dropping_too_much_aborts, .signal = SIGABRT)
{
	struct strbuf b = STRBUF_INIT;

	strbuf_drop(&b, 1);
}

Test(base_str, comparisons)
{
	cr_assert(str_eq(NULL, NULL));
	cr_assert(!str_eq(NULL, ""));
	cr_assert(str_eq("a", "a"));
	cr_assert(str_starts("abc", "ab"));
	cr_assert(str_starts("abc", ""));
	cr_assert(!str_starts("ab", "abc"));
	cr_assert(str_ends("abc", "bc"));
	cr_assert(str_ends("abc", ""));
	cr_assert(!str_ends("bc", "abc"));
}

Test(base_str, hash_is_stable_and_uses_all_bytes)
{
	cr_assert_eq(str_hash("a\0b", 3), str_hash("a\0b", 3));
	cr_assert_neq(str_hash("a\0b", 3), str_hash("a\0c", 3));
	cr_assert_neq(str_hash("a", 1), str_hash("a\0", 2));
	cr_assert_eq(str_hash("", 0), str_hash(NULL, 0));
}

Test(base_str, u64_takes_plain_decimals_only)
{
	static const struct {
		const char *in;
		uint64_t max, want;
		int rc;
	} t[] = {
		{"0", 10, 0, 0},
		{"10", 10, 10, 0},
		{"11", 10, 0, -1},
		{"007", 10, 7, 0},
		{"18446744073709551615", UINT64_MAX, UINT64_MAX, 0},
		{"18446744073709551616", UINT64_MAX, 0, -1},
		{"99999999999999999999999", UINT64_MAX, 0, -1},
		{"", 10, 0, -1},
		{"+1", 10, 0, -1},
		{"-1", UINT64_MAX, 0, -1},
		{" 1", 10, 0, -1},
		{"1 ", 10, 0, -1},
		{"1x", 10, 0, -1},
		{"0x1", 10, 0, -1},
		{"1e3", 10000, 0, -1},
		{"\xd9\xa1", 10, 0, -1},
	};
	uint64_t v;

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		v = 77;
		cr_expect_eq(str_to_u64(t[i].in, t[i].max, &v), t[i].rc, "%s", t[i].in);
		cr_expect_eq(v, t[i].rc == 0 ? t[i].want : 77, "%s", t[i].in);
	}
	cr_assert_eq(str_to_u64(NULL, 1, &v), -1);
}

Test(base_str, duration_accepts_go_terms)
{
	static const struct {
		const char *in;
		int64_t want;
	} t[] = {
		{"0", 0},
		{"0s", 0},
		{"250ms", 250},
		{"90s", 90000},
		{"24h", 86400000},
		{"1h30m", 5400000},
		{"1h0m0s", 3600000},
		{"1m1ms", 60001},
		{"1.5s", 1500},
		{"0.25h", 900000},
		{"2562047h", 9223369200000},
		{"1s1s", 2000},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		int64_t ms = -1;

		cr_expect_eq(str_to_duration_ms(t[i].in, &ms), 0, "%s", t[i].in);
		cr_expect_eq(ms, t[i].want, "%s", t[i].in);
	}
}

Test(base_str, duration_refuses_everything_else)
{
	static const char *const t[] = {"", "1", "s", "h1", "-1s", "+1s", "1 s", " 1s", "1s ", "1d",
		"1w", "1S", "1.s", ".5s", "1..5s", "1,5s", "1s2", "1us", "1ns", "0.5ms", "1.0005s",
		"00", "0x1s", "1e3s", "2562048h", "99999999999999999999s", "18446744073709551616ms",
		"5124096h", "1.00000000000001s", "1sm", "infs", "nans", "9223372036854775808ms"};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		int64_t ms = -7;

		cr_expect_eq(str_to_duration_ms(t[i], &ms), -1, "%s", t[i]);
		cr_expect_eq(ms, -7, "%s", t[i]);
	}
	cr_assert_eq(str_to_duration_ms(NULL, &(int64_t){0}), -1);
}

Test(base_str, percent_encoding_leaves_only_unreserved)
{
	cleanup_strbuf struct strbuf b = STRBUF_INIT;

	str_percent_encode(&b, "aZ09-._~ /?&=%\xc3\xa4\0", 17);
	cr_assert_str_eq(strbuf_str(&b), "aZ09-._~%20%2F%3F%26%3D%25%C3%A4%00");
}

Test(base_str, order_is_that_of_bytes)
{
	const char *v[] = {"b", "\xc3\xa4", "", "a", "B"}, *key = "a", *none = "c";

	qsort(v, 5, sizeof(*v), str_order);
	cr_assert_str_eq(v[0], "");
	cr_assert_str_eq(v[1], "B");
	cr_assert_str_eq(v[4], "\xc3\xa4");
	cr_assert(bsearch(&key, v, 5, sizeof(*v), str_order));
	cr_assert_null(bsearch(&none, v, 5, sizeof(*v), str_order));
}
