/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include "tec/base/backoff.h"

Test(base_backoff, doubles_up_to_the_most_and_starts_again_after_a_reset)
{
	struct backoff b = {0};

	for (int round = 0; round < 50; round++) {
		uint32_t base = BACKOFF_MIN_MS;

		for (int i = 0; i < 10; i++) {
			uint32_t ms = backoff_next(&b, BACKOFF_MIN_MS, BACKOFF_MAX_MS);

			cr_expect_geq(ms, BACKOFF_MIN_MS);
			cr_expect_leq(ms, BACKOFF_MAX_MS);
			cr_expect_leq(ms, base + base / 4);
			cr_expect_geq(
				ms, base < BACKOFF_MAX_MS / 5 * 4 ? base : BACKOFF_MAX_MS / 5 * 4);
			base = base * 2 < BACKOFF_MAX_MS ? base * 2 : BACKOFF_MAX_MS;
		}
		backoff_reset(&b);
	}
}

Test(base_backoff, the_least_may_be_the_most)
{
	struct backoff b = {0};

	for (int i = 0; i < 5; i++)
		cr_expect_eq(backoff_next(&b, 7, 7), 7);
}

Test(base_backoff, draws_are_spread_over_the_whole_range)
{
	unsigned seen[5] = {0};

	for (int i = 0; i < 1000; i++) {
		uint64_t v = backoff_spread(10, 14);

		cr_assert(v >= 10 && v <= 14);
		seen[v - 10]++;
	}
	for (int i = 0; i < 5; i++)
		cr_expect_gt(seen[i], 100);
	cr_expect_eq(backoff_spread(3, 3), 3);
}

Test(base_backoff, what_a_server_asks_for_is_kept_bounded_and_spread)
{
	static const struct {
		uint32_t asked, least, most;
	} t[] = {{0, 0, 0}, {1000, 1000, 1500}, {60000, 60000, 90000}, {UINT32_MAX, 60000, 90000}};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		uint32_t low = UINT32_MAX, high = 0;

		for (int n = 0; n < 200; n++) {
			uint32_t ms = backoff_asked(t[i].asked);

			low = ms < low ? ms : low;
			high = ms > high ? ms : high;
		}
		cr_expect(low >= t[i].least && high <= t[i].most, "%u to %u", low, high);
		cr_expect(high - low >= (t[i].most - t[i].least) / 2, "%u to %u", low, high);
	}
}
