/* SPDX-License-Identifier: MIT */
/*
 * A hash table of buckets, also linked from the most to the least recently used. A new source takes
 * a fresh bucket while there are any, then the one at the tail. Levels are thousandths of a token,
 * so that one millisecond is never lost to rounding.
 */
#include "config.h"

#include <assert.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/net/addr.h"
#include "tec/net/ratelimit.h"

#define TOKEN   1000u
#define FIRST_N 64u

struct bucket {
	uint8_t key[ADDR_SOURCE_LEN];
	uint64_t level;       /* thousandths of a token */
	uint64_t at_ms;       /* when `level` was right */
	struct bucket *chain; /* next in its hash slot */
	struct bucket *newer, *older;
};

struct ratelimit {
	uint64_t full; /* thousandths */
	uint32_t per_s;
	uint32_t max, n;
	uint32_t n_slots;      /* a power of two */
	struct bucket **slots; /* owned; the buckets too */
	struct bucket *newest, *oldest;
};

struct ratelimit *ratelimit_new(uint32_t burst, uint32_t per_s, uint32_t max_sources)
{
	struct ratelimit *r = xcalloc(1, sizeof(*r));

	assert(burst > 0 && per_s > 0 && max_sources > 0);
	r->full = (uint64_t)burst * TOKEN;
	r->per_s = per_s;
	r->max = max_sources;
	r->n_slots = FIRST_N;
	while (r->n_slots < max_sources && r->n_slots < (1u << 20))
		r->n_slots *= 2;
	r->slots = xcalloc(r->n_slots, sizeof(struct bucket *));
	return r;
}

void ratelimit_free(struct ratelimit *r)
{
	if (!r)
		return;
	while (r->newest) {
		struct bucket *b = r->newest;

		r->newest = b->older;
		free(b);
	}
	free(r->slots);
	free(r);
}

static struct bucket **slot_of(struct ratelimit *r, const uint8_t key[ADDR_SOURCE_LEN])
{
	return &r->slots[str_hash(key, ADDR_SOURCE_LEN) & (r->n_slots - 1)];
}

static void unlink_age(struct ratelimit *r, struct bucket *b)
{
	*(b->newer ? &b->newer->older : &r->newest) = b->older;
	*(b->older ? &b->older->newer : &r->oldest) = b->newer;
}

static void link_newest(struct ratelimit *r, struct bucket *b)
{
	b->newer = NULL;
	b->older = r->newest;
	*(r->newest ? &r->newest->newer : &r->oldest) = b;
	r->newest = b;
}

static struct bucket *reuse_oldest(struct ratelimit *r)
{
	struct bucket *b = r->oldest;
	struct bucket **pp = slot_of(r, b->key);

	while (*pp != b)
		pp = &(*pp)->chain;
	*pp = b->chain;
	unlink_age(r, b);
	return b;
}

static struct bucket *bucket_get(
	struct ratelimit *r, const uint8_t key[ADDR_SOURCE_LEN], uint64_t now)
{
	struct bucket **slot = slot_of(r, key);
	struct bucket *b;

	for (b = *slot; b; b = b->chain)
		if (memcmp(b->key, key, ADDR_SOURCE_LEN) == 0)
			break;
	if (b) {
		unlink_age(r, b);
	} else {
		if (r->n < r->max) {
			b = xcalloc(1, sizeof(*b));
			r->n++;
		} else {
			b = reuse_oldest(r);
		}
		memcpy(b->key, key, ADDR_SOURCE_LEN);
		b->level = r->full;
		b->at_ms = now;
		b->chain = *slot;
		*slot = b;
	}
	link_newest(r, b);
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
