/* SPDX-License-Identifier: MIT */
/*
 * Each source has its places in a list from the idlest to the busiest, and stands in the list of
 * its level, which is how many places it has. A level's list is in the order of what happened last
 * too, so among equals the source that did nothing for longest comes first. The top level moves by
 * one at a time.
 */
#include "config.h"

#include "tec/net/share.h"

#include <assert.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/net/addr.h"

#define FIRST_N 16u

struct share_source {
	uint8_t key[ADDR_SOURCE_LEN];
	size_t n;                             /* places, never 0 */
	struct share_place *idlest, *busiest; /* borrowed */
	struct share_source *chain;           /* next in its hash slot */
	struct share_source *idler, *busier;  /* in its level */
};

struct level {
	struct share_source *idlest, *busiest;
};

struct share {
	size_t n_slots;              /* a power of two */
	struct share_source **slots; /* owned; the sources too */
	struct level *levels;        /* owned; [0] is never used */
	size_t n_levels, top;        /* top: the highest level with a source, 0 if there is none */
};

struct share *share_new(size_t expected)
{
	struct share *s = xcalloc(1, sizeof(*s));

	s->n_slots = FIRST_N;
	while (s->n_slots < expected && s->n_slots < (1u << 20))
		s->n_slots *= 2;
	s->slots = xcalloc(s->n_slots, sizeof(struct share_source *));
	s->n_levels = FIRST_N;
	s->levels = xcalloc(s->n_levels, sizeof(struct level));
	return s;
}

void share_free(struct share *s)
{
	if (!s)
		return;
	assert(s->top == 0);
	free(s->slots);
	free(s->levels);
	free(s);
}

static struct share_source **find(const struct share *s, const uint8_t key[ADDR_SOURCE_LEN])
{
	struct share_source **pp = &s->slots[str_hash(key, ADDR_SOURCE_LEN) & (s->n_slots - 1)];

	while (*pp && memcmp((*pp)->key, key, ADDR_SOURCE_LEN) != 0)
		pp = &(*pp)->chain;
	return pp;
}

static void unlink_level(struct share *s, struct share_source *src)
{
	struct level *l = &s->levels[src->n];

	*(src->idler ? &src->idler->busier : &l->idlest) = src->busier;
	*(src->busier ? &src->busier->idler : &l->busiest) = src->idler;
	if (src->n == s->top && !l->idlest)
		s->top--; /* src is about to enter the level below or above, or leaves an empty one
			   */
}

static void link_level(struct share *s, struct share_source *src)
{
	struct level *l;

	if (src->n >= s->n_levels) {
		s->levels = xreallocarray(s->levels, s->n_levels * 2, sizeof(struct level));
		memset(s->levels + s->n_levels, 0, s->n_levels * sizeof(struct level));
		s->n_levels *= 2;
	}
	l = &s->levels[src->n];
	src->busier = NULL;
	src->idler = l->busiest;
	*(l->busiest ? &l->busiest->busier : &l->idlest) = src;
	l->busiest = src;
	if (src->n > s->top)
		s->top = src->n;
}

static void unlink_place(struct share_place *p)
{
	struct share_source *src = p->source;

	*(p->idler ? &p->idler->busier : &src->idlest) = p->busier;
	*(p->busier ? &p->busier->idler : &src->busiest) = p->idler;
}

static void link_place(struct share_place *p)
{
	struct share_source *src = p->source;

	p->busier = NULL;
	p->idler = src->busiest;
	*(src->busiest ? &src->busiest->busier : &src->idlest) = p;
	src->busiest = p;
	p->active_ms = clock_boot_ms();
}

void share_join(struct share *s, struct share_place *p, const struct sockaddr *sa)
{
	uint8_t key[ADDR_SOURCE_LEN];
	struct share_source **pp;

	addr_source(sa, key);
	pp = find(s, key);
	if (*pp) {
		unlink_level(s, *pp);
	} else {
		*pp = xcalloc(1, sizeof(**pp));
		memcpy((*pp)->key, key, ADDR_SOURCE_LEN);
	}
	p->source = *pp;
	p->source->n++;
	link_place(p);
	link_level(s, p->source);
}

void share_leave(struct share *s, struct share_place *p)
{
	struct share_source *src = p->source;

	unlink_level(s, src);
	unlink_place(p);
	p->source = NULL;
	if (--src->n > 0) {
		link_level(s, src);
		return;
	}
	*find(s, src->key) = src->chain;
	free(src);
}

void share_active(struct share *s, struct share_place *p)
{
	unlink_place(p);
	link_place(p);
	unlink_level(s, p->source);
	link_level(s, p->source);
}

struct share_place *share_victim(const struct share *s, const struct sockaddr *newcomer, bool *own)
{
	uint8_t key[ADDR_SOURCE_LEN];
	const struct share_source *src;

	*own = false;
	if (s->top == 0)
		return NULL;
	addr_source(newcomer, key);
	src = *find(s, key);
	*own = src && src->n == s->top;
	return *own ? src->idlest : s->levels[s->top].idlest->idlest;
}
