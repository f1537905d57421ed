/* SPDX-License-Identifier: MIT */
/*
 * A bucket is the record of its source (net/sources), and a new one starts full. Levels are counted in
 * fractions of a token of which a whole number is returned each millisecond, so that rounding loses
 * nothing.
 */
#include "config.h"

#include <assert.h>

#include "tec/base/clock.h"
#include "tec/base/mem.h"
#include "tec/net/ratelimit.h"
#include "tec/net/sources.h"

struct bucket {
	uint64_t level; /* fractions of a token */
	uint64_t at_ms; /* boot clock: the time that `level` refers to */
};

struct ratelimit {
	uint64_t full, token;    /* in fractions: a full bucket, one token */
	uint32_t per_ms;         /* fractions returned per millisecond */
	struct sources *buckets; /* owned */
};

/* With a fraction of 1/ms of a token, n tokens per `ms` milliseconds are n fractions per
 * millisecond. */
struct ratelimit *ratelimit_new_slow(uint32_t burst, uint32_t n, uint32_t ms, uint32_t max_sources)
{
	struct ratelimit *r = xcalloc(1, sizeof(*r));

	assert(burst > 0 && n > 0 && ms > 0 && max_sources > 0);
	r->token = ms;
	r->full = (uint64_t)burst * ms;
	r->per_ms = n;
	r->buckets = sources_new(max_sources, sizeof(struct bucket));
	return r;
}

struct ratelimit *ratelimit_new(uint32_t burst, uint32_t per_s, uint32_t max_sources)
{
	return ratelimit_new_slow(burst, per_s, 1000, max_sources);
}

void ratelimit_free(struct ratelimit *r)
{
	if (!r)
		return;
	sources_free(r->buckets);
	free(r);
}

/* Return the source's bucket with the tokens that were returned since its last use. */
static struct bucket *refill(struct ratelimit *r, const uint8_t source[ADDR_SOURCE_LEN])
{
	uint64_t now = clock_boot_ms();
	bool fresh;
	struct bucket *b = sources_use(r->buckets, source, &fresh);

	/* After this time the bucket is full, and the product below could overflow. */
	if (fresh || now - b->at_ms >= r->full / r->per_ms + 1)
		b->level = r->full;
	else
		b->level += (now - b->at_ms) * r->per_ms;
	if (b->level > r->full)
		b->level = r->full;
	b->at_ms = now;
	return b;
}

/* *retry_s is rounded up, so that a client that waits so long gets its token. */
bool ratelimit_take_source(
	struct ratelimit *r, const uint8_t source[ADDR_SOURCE_LEN], uint32_t *retry_s)
{
	struct bucket *b = refill(r, source);
	uint64_t per_s = (uint64_t)r->per_ms * 1000;

	*retry_s = 0;
	if (b->level >= r->token) {
		b->level -= r->token;
		return true;
	}
	*retry_s = (uint32_t)((r->token - b->level + per_s - 1) / per_s);
	return false;
}

/* A bucket never exceeds its burst. */
void ratelimit_give_source(struct ratelimit *r, const uint8_t source[ADDR_SOURCE_LEN])
{
	struct bucket *b = refill(r, source);

	b->level = b->level + r->token < r->full ? b->level + r->token : r->full;
}

bool ratelimit_take(struct ratelimit *r, const struct sockaddr *sa, uint32_t *retry_s)
{
	uint8_t source[ADDR_SOURCE_LEN];

	*retry_s = 0;
	if (!r)
		return true;
	addr_source(sa, source);
	return ratelimit_take_source(r, source, retry_s);
}
