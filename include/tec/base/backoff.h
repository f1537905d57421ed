/* SPDX-License-Identifier: MIT */
/*
 * How long to wait before the next try: doubles from the least to the most, each time drawn at
 * random from a fifth of it, so that what failed together does not come back together. An all-zero
 * struct backoff has seen no failure yet; embedded, nothing to free.
 */
#ifndef TEC_BASE_BACKOFF_H
#define TEC_BASE_BACKOFF_H

#include <stdint.h>

#define BACKOFF_MIN_MS 800u /* what nothing speaks against */
#define BACKOFF_MAX_MS 30000u

struct backoff {
	uint32_t ms; /* of the last wait, before the draw; 0: no failure since the reset */
};

/* After a failure: the wait before the next try, min_ms to max_ms. */
uint32_t backoff_next(struct backoff *b, uint32_t min_ms, uint32_t max_ms);
void backoff_reset(struct backoff *b); /* after a success */
/* lo to hi, both included, evenly; for spreading out, not for secrets. */
uint64_t backoff_spread(uint64_t lo, uint64_t hi);

#endif
