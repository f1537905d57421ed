/* SPDX-License-Identifier: MIT */
/*
 * A table of buckets, also linked from the most to the least recently used. A new source takes
 * a fresh bucket while there are any, then the one at the tail. Levels are thousandths of a token,
 * so that one millisecond is never lost to rounding.
 */
#include "config.h"

#include <assert.h>
#include <string.h>
#include <sys/queue.h>

#include "tec/base/clock.h"
#include "tec/base/mem.h"
#include "tec/base/table.h"
#include "tec/net/addr.h"
#include "tec/net/ratelimit.h"

#define TOKEN 1000u

struct bucket {
	uint8_t key[ADDR_SOURCE_LEN];
	uint64_t level; /* thousandths of a token */
	uint64_t at_ms; /* when `level` was right */
	struct table_link link;
	TAILQ_ENTRY(bucket) age;
};

struct ratelimit {
	uint64_t full; /* thousandths */
	uint32_t per_s;
	uint32_t max;
	struct table buckets;
	TAILQ_HEAD(bucket_ages, bucket) ages; /* the most recently used one first; owned */
};

struct ratelimit *ratelimit_new(uint32_t burst, uint32_t per_s, uint32_t max_sources)
{
	struct ratelimit *r = xcalloc(1, sizeof(*r));

	assert(burst > 0 && per_s > 0 && max_sources > 0);
	r->full = (uint64_t)burst * TOKEN;
	r->per_s = per_s;
	r->max = max_sources;
	TAILQ_INIT(&r->ages);
	return r;
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

/* The source's bucket, which becomes the most recently used one. */
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

bool ratelimit_take(struct ratelimit *r, const struct sockaddr *sa, uint32_t *retry_s)
{
	uint64_t now = clock_boot_ms();
	uint8_t key[ADDR_SOURCE_LEN];
	struct bucket *b;

	*retry_s = 0;
	if (!r)
		return true;
	addr_source(sa, key);
	b = bucket_get(r, key, now);
	/* per_s tokens a second are per_s thousandths a millisecond */
	if (now - b->at_ms >= r->full / r->per_s + 1)
		b->level = r->full;
	else
		b->level += (now - b->at_ms) * r->per_s;
	if (b->level > r->full)
		b->level = r->full;
	b->at_ms = now;
	if (b->level >= TOKEN) {
		b->level -= TOKEN;
		return true;
	}
	*retry_s = (uint32_t)((TOKEN - b->level + (uint64_t)r->per_s * 1000 - 1) /
			      ((uint64_t)r->per_s * 1000));
	return false;
}
