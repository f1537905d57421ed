/* SPDX-License-Identifier: MIT */
/*
 * A table of buckets that are also linked from the most to the least recently used. A new source gets
 * a new bucket until the maximum is reached, then the one at the tail. Levels are counted in fractions
 * of a token of which a whole number is returned each millisecond, so that rounding loses nothing.
 */
#include "config.h"

#include <assert.h>
#include <string.h>
#include <sys/queue.h>

#include "tec/base/clock.h"
#include "tec/base/mem.h"
#include "tec/base/table.h"
#include "tec/net/ratelimit.h"

struct bucket {
	uint8_t key[ADDR_SOURCE_LEN];
	uint64_t level; /* fractions of a token */
	uint64_t at_ms; /* boot clock: the time that `level` refers to */
	struct table_link link;
	TAILQ_ENTRY(bucket) age;
};

struct ratelimit {
	uint64_t full, token; /* in fractions: a full bucket, one token */
	uint32_t per_ms;      /* fractions returned per millisecond */
	uint32_t max;
	struct table buckets;
	TAILQ_HEAD(bucket_ages, bucket) ages; /* the most recently used one first; owned */
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
	r->max = max_sources;
	TAILQ_INIT(&r->ages);
	return r;
}

struct ratelimit *ratelimit_new(uint32_t burst, uint32_t per_s, uint32_t max_sources)
{
	return ratelimit_new_slow(burst, per_s, 1000, max_sources);
}

void ratelimit_free(struct ratelimit *r)
{
	struct bucket *b;

	if (!r)
		return;
	while ((b = TAILQ_FIRST(&r->ages))) {
		TAILQ_REMOVE(&r->ages, b, age);
		free(b);
	}
	table_fini(&r->buckets);
	free(r);
}

/* Return the source's bucket and make it the most recently used one. A new or reused bucket starts
 * full. */
static struct bucket *bucket_get(
	struct ratelimit *r, const uint8_t key[ADDR_SOURCE_LEN], uint64_t now)
{
	uint32_t hash = table_hash(key, ADDR_SOURCE_LEN);
	struct bucket *b;

	TABLE_WITH_HASH (b, link, &r->buckets, hash) {
		if (memcmp(b->key, key, ADDR_SOURCE_LEN) == 0) {
			TAILQ_REMOVE(&r->ages, b, age);
			TAILQ_INSERT_HEAD(&r->ages, b, age);
			return b;
		}
	}
	if (r->buckets.n < r->max) {
		b = xcalloc(1, sizeof(*b));
	} else {
		b = TAILQ_LAST(&r->ages, bucket_ages);
		TAILQ_REMOVE(&r->ages, b, age);
		table_remove(&r->buckets, &b->link);
	}
	memcpy(b->key, key, ADDR_SOURCE_LEN);
	b->level = r->full;
	b->at_ms = now;
	table_add(&r->buckets, &b->link, hash);
	TAILQ_INSERT_HEAD(&r->ages, b, age);
	return b;
}

/* Return the source's bucket with the tokens that were returned since its last use. */
static struct bucket *refill(struct ratelimit *r, const uint8_t source[ADDR_SOURCE_LEN])
{
	uint64_t now = clock_boot_ms();
	struct bucket *b = bucket_get(r, source, now);

	/* After this time the bucket is full, and the product below could overflow. */
	if (now - b->at_ms >= r->full / r->per_ms + 1)
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
