/* SPDX-License-Identifier: MIT */
/* Jitter comes from the keyed hash of a counter: random enough to spread retries, and without a
 * system call. */
#include "config.h"

#include "tec/base/backoff.h"

#include "tec/base/mem.h"
#include "tec/base/str.h"

/* The modulo bias is negligible for ranges of milliseconds. The full 64-bit range is refused,
 * because its size does not fit. */
uint64_t backoff_spread(uint64_t lo, uint64_t hi)
{
	static uint64_t counter;

	counter++;
	if (lo > hi || (lo == 0 && hi == UINT64_MAX))
		DIE("invalid range from %llu to %llu", (unsigned long long)lo,
			(unsigned long long)hi);
	return lo + str_hash(&counter, sizeof(counter)) % (hi - lo + 1);
}

/* Double the wait and draw from [4/5 hi, hi], where hi is a quarter above the wait: jitter stays
 * within min_ms and max_ms. */
uint32_t backoff_next(struct backoff *b, uint32_t min_ms, uint32_t max_ms)
{
	uint64_t base = b->ms ? (uint64_t)b->ms * 2 : min_ms, hi;

	if (base > max_ms)
		base = max_ms;
	b->ms = (uint32_t)base;
	hi = base + base / 4 < max_ms ? base + base / 4 : max_ms;
	return (uint32_t)backoff_spread(hi - hi / 5 > min_ms ? hi - hi / 5 : min_ms, hi);
}

void backoff_reset(struct backoff *b)
{
	b->ms = 0;
}

uint32_t backoff_asked(uint32_t retry_after_ms)
{
	uint32_t ms = retry_after_ms < BACKOFF_ASKED_MAX_MS ? retry_after_ms : BACKOFF_ASKED_MAX_MS;

	return (uint32_t)backoff_spread(ms, ms + ms / 2);
}
