/* SPDX-License-Identifier: MIT */
/*
 * The wait before a retry. It doubles from the minimum to the maximum; a random part of up to a fifth
 * is taken off each time, so that clients that failed together do not return together. An all-zero
 * struct backoff has seen no failure; it is embedded and needs no release.
 */
#ifndef TEC_BASE_BACKOFF_H
#define TEC_BASE_BACKOFF_H

#include <stdint.h>

#define BACKOFF_MIN_MS 800u /* defaults */
#define BACKOFF_MAX_MS 30000u

#define BACKOFF_ASKED_MAX_MS 60000u

struct backoff {
	uint32_t ms; /* last wait, before jitter; 0: no failure since the reset */
};

/* After a failure: returns the wait before the next attempt, min_ms to max_ms. */
uint32_t backoff_next(struct backoff *b, uint32_t min_ms, uint32_t max_ms);
void backoff_reset(struct backoff *b); /* after a success */
/* The wait that a server asks for with Retry-After, at most BACKOFF_ASKED_MAX_MS of it, and up to half
 * of that more: it told others the same. 0 for 0. */
uint32_t backoff_asked(uint32_t retry_after_ms);
/* A uniformly distributed number from lo to hi inclusive; for jitter, not for secrets. */
uint64_t backoff_spread(uint64_t lo, uint64_t hi);

#endif
