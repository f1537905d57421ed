/* SPDX-License-Identifier: MIT */
/*
 * What is counted by source: a bounded table of records (sources), token buckets that are such records
 * (ratelimit), and places of a limited resource (share).
 */
#include "config.h"

#include <assert.h>
#include <string.h>
#include <sys/queue.h>

#include "tec/base/clock.h"
#include "tec/base/mem.h"
#include "tec/base/table.h"
#include "tec/net/ratelimit.h"
#include "tec/net/share.h"
#include "tec/net/sources.h"

/* First in the entries of both kinds of tables. */
struct keyed {
	struct table_link link;
	uint8_t key[ADDR_SOURCE_LEN];
};

static struct keyed *find(const struct table *t, const uint8_t key[ADDR_SOURCE_LEN], uint32_t hash)
{
	struct keyed *k;

	TABLE_WITH_HASH (k, link, t, hash)
		if (memcmp(k->key, key, ADDR_SOURCE_LEN) == 0)
			return k;
	return NULL;
}

/* ---- records, linked from the most to the least recently used source */

struct source {
	struct keyed keyed;
	TAILQ_ENTRY(source) age;
	_Alignas(uint64_t) unsigned char record[];
};

struct sources {
	uint32_t max;
	size_t record_size;
	struct table table;
	TAILQ_HEAD(source_ages, source) ages; /* the most recently used one first; owned */
};

struct sources *sources_new(uint32_t max, size_t record_size)
{
	struct sources *s = xcalloc(1, sizeof(*s));

	assert(max > 0);
	s->max = max;
	s->record_size = record_size;
	TAILQ_INIT(&s->ages);
	return s;
}

void sources_free(struct sources *s)
{
	struct source *o;

	if (!s)
		return;
	while ((o = TAILQ_FIRST(&s->ages))) {
		TAILQ_REMOVE(&s->ages, o, age);
		free(o);
	}
	table_fini(&s->table);
	free(s);
}

void *sources_find(const struct sources *s, const uint8_t key[ADDR_SOURCE_LEN])
{
	struct source *o = (struct source *)find(&s->table, key, table_hash(key, ADDR_SOURCE_LEN));

	return o ? o->record : NULL;
}

void *sources_use(struct sources *s, const uint8_t key[ADDR_SOURCE_LEN], bool *fresh)
{
	uint32_t hash = table_hash(key, ADDR_SOURCE_LEN);
	struct source *o = (struct source *)find(&s->table, key, hash);

	*fresh = !o;
	if (!o && s->table.n == s->max) {
		o = TAILQ_LAST(&s->ages, source_ages);
		table_remove(&s->table, &o->keyed.link);
	}
	if (o)
		TAILQ_REMOVE(&s->ages, o, age);
	else
		o = xmalloc(sizeof(*o) + s->record_size);
	if (*fresh) {
		memset(o, 0, sizeof(*o) + s->record_size);
		memcpy(o->keyed.key, key, ADDR_SOURCE_LEN);
		table_add(&s->table, &o->keyed.link, hash);
	}
	TAILQ_INSERT_HEAD(&s->ages, o, age);
	return o->record;
}

/* ---- token buckets
 *
 * A bucket is the record of its source, and a new one starts full. Levels are counted in fractions of a
 * token of which a whole number is returned each millisecond, so that rounding loses nothing.
 */

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

/* ---- fair shares
 *
 * Each source has a list of its places from the longest idle to the most recently active, and is itself
 * in the list of its level, which is its number of places. A level's list is ordered by activity as
 * well, so that among equal sources the longest idle one comes first. A source moves only between
 * adjacent levels, so the top level changes by at most one at a time and needs no search.
 *
 *   levels[3]: source A -> source B        top = 3: the next place to reclaim is A's first place
 *   levels[1]: source C -> source D
 */

#define FIRST_LEVELS 16u

struct share_source {
	struct keyed keyed;
	size_t n;                               /* places, never 0 */
	TAILQ_HEAD(places, share_place) places; /* borrowed; the longest idle one first */
	TAILQ_ENTRY(share_source) level;        /* in levels[n]; the longest idle one first */
};
TAILQ_HEAD(level, share_source);

struct share {
	struct table sources; /* owned; the sources too */
	struct level *levels; /* owned; [0] is never used */
	size_t n_levels, top; /* top: the highest level with a source, 0 if there is none */
};

/* Grow the array of lists. Levels are added only when a source reaches them, so a flood of sources
 * costs none. */
static void add_levels(struct share *s, size_t n)
{
	struct level *old = s->levels;

	s->levels = xcalloc(n, sizeof(*s->levels));
	for (size_t i = 0; i < n; i++) {
		TAILQ_INIT(&s->levels[i]);
		if (i < s->n_levels) /* a list points to its head, so it cannot be copied */
			TAILQ_CONCAT(&s->levels[i], &old[i], level);
	}
	free(old);
	s->n_levels = n;
}

struct share *share_new(void)
{
	struct share *s = xcalloc(1, sizeof(*s));

	add_levels(s, FIRST_LEVELS);
	return s;
}

void share_free(struct share *s)
{
	if (!s)
		return;
	assert(s->top == 0);
	table_fini(&s->sources);
	free(s->levels);
	free(s);
}

/* Remove the source from its level; the caller then changes n by one or leaves it. */
static void unlink_level(struct share *s, struct share_source *src)
{
	TAILQ_REMOVE(&s->levels[src->n], src, level);
	if (src->n == s->top && TAILQ_EMPTY(&s->levels[src->n]))
		s->top--; /* src enters an adjacent level next, or was the only one */
}

/* Append the source to its level as the most recently active one. */
static void link_level(struct share *s, struct share_source *src)
{
	if (src->n >= s->n_levels)
		add_levels(s, s->n_levels * 2);
	TAILQ_INSERT_TAIL(&s->levels[src->n], src, level);
	if (src->n > s->top)
		s->top = src->n;
}

/* Joining counts as activity of the source. */
void share_join(struct share *s, struct share_place *p, const uint8_t key[ADDR_SOURCE_LEN])
{
	uint32_t hash = table_hash(key, ADDR_SOURCE_LEN);

	p->source = (struct share_source *)find(&s->sources, key, hash);
	if (p->source) {
		unlink_level(s, p->source);
	} else {
		p->source = xcalloc(1, sizeof(*p->source));
		TAILQ_INIT(&p->source->places);
		memcpy(p->source->keyed.key, key, ADDR_SOURCE_LEN);
		table_add(&s->sources, &p->source->keyed.link, hash);
	}
	p->source->n++;
	TAILQ_INSERT_TAIL(&p->source->places, p, link);
	p->active_ms = clock_boot_ms();
	link_level(s, p->source);
}

/* A source without places is freed, so memory is bounded by the number of places. */
void share_leave(struct share *s, struct share_place *p)
{
	struct share_source *src = p->source;

	unlink_level(s, src);
	TAILQ_REMOVE(&src->places, p, link);
	p->source = NULL;
	if (--src->n > 0) {
		link_level(s, src);
		return;
	}
	table_remove(&s->sources, &src->keyed.link);
	free(src);
}

/* Both lists are ordered by time, so activity moves the place and its source to the ends. */
void share_active(struct share *s, struct share_place *p)
{
	TAILQ_REMOVE(&p->source->places, p, link);
	TAILQ_INSERT_TAIL(&p->source->places, p, link);
	p->active_ms = clock_boot_ms();
	unlink_level(s, p->source);
	link_level(s, p->source);
}

/* If the newcomer's source is among those that hold the most, it pays itself: no other source holds
 * more than it. */
struct share_place *share_victim(
	const struct share *s, const uint8_t newcomer[ADDR_SOURCE_LEN], bool *own)
{
	const struct share_source *src;

	*own = false;
	if (s->top == 0)
		return NULL;
	src = (struct share_source *)find(
		&s->sources, newcomer, table_hash(newcomer, ADDR_SOURCE_LEN));
	*own = src && src->n == s->top;
	if (!*own)
		src = TAILQ_FIRST(&s->levels[s->top]);
	return TAILQ_FIRST(&src->places);
}

struct share_place *share_idlest(const struct share *s)
{
	return s->top ? TAILQ_FIRST(&TAILQ_FIRST(&s->levels[s->top])->places) : NULL;
}

struct share_place *share_held(
	const struct share *s, const uint8_t source[ADDR_SOURCE_LEN], size_t *n)
{
	const struct share_source *src = (struct share_source *)find(
		&s->sources, source, table_hash(source, ADDR_SOURCE_LEN));

	*n = src ? src->n : 0;
	return src ? TAILQ_FIRST(&src->places) : NULL;
}
