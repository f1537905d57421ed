/* SPDX-License-Identifier: MIT */
/*
 * Each source has a list of its places from the longest idle to the most recently active, and is itself
 * in the list of its level, which is its number of places. A level's list is ordered by activity as
 * well, so that among equal sources the longest idle one comes first. A source moves only between
 * adjacent levels, so the top level changes by at most one at a time and needs no search.
 *
 *   levels[3]: source A -> source B        top = 3: the next place to reclaim is A's first place
 *   levels[1]: source C -> source D
 */
#include "config.h"

#include "tec/net/share.h"

#include <assert.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/mem.h"
#include "tec/base/table.h"

#define FIRST_LEVELS 16u

struct share_source {
	uint8_t key[ADDR_SOURCE_LEN];
	size_t n;                               /* places, never 0 */
	TAILQ_HEAD(places, share_place) places; /* borrowed; the longest idle one first */
	struct table_link link;
	TAILQ_ENTRY(share_source) level; /* in levels[n]; the longest idle one first */
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

static struct share_source *find(const struct share *s, const uint8_t key[ADDR_SOURCE_LEN])
{
	struct share_source *src;

	TABLE_WITH_HASH (src, link, &s->sources, table_hash(key, ADDR_SOURCE_LEN))
		if (memcmp(src->key, key, ADDR_SOURCE_LEN) == 0)
			return src;
	return NULL;
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

static void link_place(struct share_place *p)
{
	TAILQ_INSERT_TAIL(&p->source->places, p, link);
	p->active_ms = clock_boot_ms();
}

/* Joining counts as activity of the source. */
void share_join(struct share *s, struct share_place *p, const uint8_t key[ADDR_SOURCE_LEN])
{
	p->source = find(s, key);
	if (p->source) {
		unlink_level(s, p->source);
	} else {
		p->source = xcalloc(1, sizeof(*p->source));
		memcpy(p->source->key, key, ADDR_SOURCE_LEN);
		TAILQ_INIT(&p->source->places);
		table_add(&s->sources, &p->source->link, table_hash(key, ADDR_SOURCE_LEN));
	}
	p->source->n++;
	link_place(p);
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
	table_remove(&s->sources, &src->link);
	free(src);
}

/* Both lists are ordered by time, so activity moves the place and its source to the ends. */
void share_active(struct share *s, struct share_place *p)
{
	TAILQ_REMOVE(&p->source->places, p, link);
	link_place(p);
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
	src = find(s, newcomer);
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
	const struct share_source *src = find(s, source);

	*n = src ? src->n : 0;
	return src ? TAILQ_FIRST(&src->places) : NULL;
}
