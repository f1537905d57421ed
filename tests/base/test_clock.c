/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <signal.h>

#include "tec/base/clock.h"
#include "tec/base/mem.h"

Test(base_clock, real_clocks_run)
{
	uint64_t a = clock_boot_us(), b = clock_boot_us();

	cr_assert(!clock_is_fake());
	cr_assert_geq(b, a);
	cr_assert_geq(clock_boot_ms(), a / 1000);
	cr_assert_gt(clock_wall_s(), 1700000000);
}

Test(base_clock, fake_clock_replaces_both)
{
	clock_fake_start(5000, 1000);
	cr_assert(clock_is_fake());
	cr_assert_eq(clock_boot_ms(), 5000);
	cr_assert_eq(clock_wall_s(), 1000);
	clock_fake_advance(1500);
	cr_assert_eq(clock_boot_ms(), 6500);
	cr_assert_eq(clock_boot_us(), 6500000);
	cr_assert_eq(clock_wall_us(), 1001500000);
	clock_fake_set_wall(-5);
	cr_assert_eq(clock_wall_s(), -5);
	cr_assert_eq(clock_boot_ms(), 6500);
	clock_fake_stop();
	cr_assert(!clock_is_fake());
	cr_assert_gt(clock_wall_s(), 1700000000);
}

Test(base_clock, advancing_the_real_clock_aborts, .signal = SIGABRT)
{
	clock_fake_advance(1);
}

Test(base_clock, format_known_times)
{
	static const struct {
		int64_t s;
		const char *want;
	} t[] = {
		{0, "1970-01-01T00:00:00Z"},
		{-1, "1969-12-31T23:59:59Z"},
		{951782400, "2000-02-29T00:00:00Z"},
		{1767323045, "2026-01-02T03:04:05Z"},
		{253402300799, "9999-12-31T23:59:59Z"},
		{INT64_MAX, "9999-12-31T23:59:59Z"},
		{-62167219200, "0000-01-01T00:00:00Z"},
		{INT64_MIN, "0000-01-01T00:00:00Z"},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		char text[CLOCK_RFC3339_LEN];

		clock_format(t[i].s, text);
		cr_expect_str_eq(text, t[i].want);
	}
}

Test(base_clock, format_microseconds)
{
	char text[CLOCK_RFC3339_US_LEN];

	clock_format_us(1767323045000042, text);
	cr_assert_str_eq(text, "2026-01-02T03:04:05.000042Z");
	clock_format_us(-1, text);
	cr_assert_str_eq(text, "1969-12-31T23:59:59.999999Z");
}

Test(base_clock, parse_reads_rfc3339)
{
	static const struct {
		const char *in;
		int64_t want;
	} t[] = {
		{"1970-01-01T00:00:00Z", 0},
		{"1970-01-01t00:00:00z", 0},
		{"2026-01-02T03:04:05Z", 1767323045000000},
		{"2026-01-02T03:04:05.000042Z", 1767323045000042},
		{"2026-01-02T03:04:05.1Z", 1767323045100000},
		{"2026-01-02T03:04:05.123456789123Z", 1767323045123456},
		{"2026-01-02T05:04:05+02:00", 1767323045000000},
		{"2026-01-01T20:34:05-06:30", 1767323045000000},
		{"2026-01-02T03:04:05-00:00", 1767323045000000},
		{"2000-02-29T00:00:00Z", 951782400000000},
		{"1969-12-31T23:59:59.5Z", -500000},
		{"2016-12-31T23:59:60Z", 1483228800000000},
		{"0000-01-01T00:00:00Z", -62167219200000000},
		{"9999-12-31T23:59:59Z", 253402300799000000},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		int64_t us = 77;

		cr_expect_eq(clock_parse(t[i].in, &us), 0, "%s", t[i].in);
		cr_expect_eq(us, t[i].want, "%s", t[i].in);
	}
}

Test(base_clock, parse_refuses)
{
	static const char *const t[] = {"", "2026", "2026-01-02", "2026-01-02T03:04:05",
		"2026-01-02 03:04:05Z", "2026-01-02T03:04Z", "2026-1-2T03:04:05Z",
		"2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2026-01-00T00:00:00Z",
		"2026-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2026-04-31T00:00:00Z",
		"2026-01-02T24:00:00Z", "2026-01-02T03:60:05Z", "2026-01-02T03:04:61Z",
		"2026-01-02T03:04:05.Z", "2026-01-02T03:04:05,5Z", "2026-01-02T03:04:05+0200",
		"2026-01-02T03:04:05+2:00", "2026-01-02T03:04:05+24:00",
		"2026-01-02T03:04:05+00:60", "2026-01-02T03:04:05Zx", "2026-01-02T03:04:05+02:00Z",
		" 2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z ", "-026-01-02T03:04:05Z",
		"12026-01-02T03:04:05Z", "2026-01-02T03:04:05", "2026/01/02T03:04:05Z",
		"20260102T030405Z", "+2026-01-02T03:04:05Z"};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		int64_t us = 77;

		cr_expect_eq(clock_parse(t[i], &us), -1, "%s", t[i]);
		cr_expect_eq(us, 77, "%s", t[i]);
	}
	cr_assert_eq(clock_parse(NULL, &(int64_t){0}), -1);
}

Test(base_clock, format_and_parse_agree_over_centuries)
{
	for (int64_t s = -62167219200; s < 253402300799; s += 86400 * 97 + 12345) {
		char text[CLOCK_RFC3339_LEN];
		int64_t us;

		clock_format(s, text);
		cr_assert_eq(clock_parse(text, &us), 0);
		cr_assert_eq(us, s * 1000000, "%s", text);
	}
}
