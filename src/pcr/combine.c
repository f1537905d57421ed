/* SPDX-License-Identifier: MIT */
/*
 * Each pair of images is walked event id by event id (reference-values.md section 5.3). Where both
 * have an event and it differs, the walk forks, and the event's groups belong to the one side from
 * there on. Registers are extended on the way, so what two branches share is hashed once; what two
 * pairs share is found in a small cache. Refuses to leave out an event that one side has unless
 * its group is the other side's already: a boot loader's value without a kernel's would approve
 * whatever that loader starts.
 */
#include "config.h"

#include "tec/pcr/combine.h"

#include <string.h>

#include "tec/base/mem.h"

/* Direct-mapped: digests are as good as random, and a collision costs only a hash. */
#define CACHE_SLOTS 8192
struct slot {
	bool used;
	uint8_t pcr[SHA256_LEN], digest[SHA256_LEN], result[SHA256_LEN];
};

/* One image's events by id: at[id] .. at[id + 1] of v. */
struct indexed {
	const char *name;
	size_t image;
	const struct pcr_event **v; /* owned; sorted by id, stable */
	size_t at[PCR_N_EVENT_IDS + 1];
	struct pcr_set own;
};

/* Where one branch of a walk stands. */
struct walk {
	unsigned groups[2]; /* that belong to the one side and to the other */
	struct pcr_set set;
};

struct combine {
	struct slot *cache; /* owned */
	struct pcr_sets *out;
	const struct indexed *side[2];
	size_t first; /* of this pair's sets in out */
	size_t conflicts;
};

void pcr_sets_fini(struct pcr_sets *s)
{
	free(s->v);
	*s = (struct pcr_sets)PCR_SETS_INIT;
}

static void extend(struct combine *c, struct pcr_set *set, const struct pcr_event *e)
{
	uint8_t *pcr = set->value[e->pcr];
	uint32_t a, b;
	struct slot *s;

	set->has[e->pcr] = true;
	memcpy(&a, pcr, sizeof(a));
	memcpy(&b, e->digest, sizeof(b));
	s = &c->cache[(a ^ b * 3u) % CACHE_SLOTS];
	if (!s->used || memcmp(s->pcr, pcr, SHA256_LEN) != 0 ||
		memcmp(s->digest, e->digest, SHA256_LEN) != 0) {
		s->used = true;
		memcpy(s->pcr, pcr, SHA256_LEN);
		memcpy(s->digest, e->digest, SHA256_LEN);
		memcpy(s->result, pcr, SHA256_LEN);
		pcr_extend(s->result, e->digest);
	}
	memcpy(pcr, s->result, SHA256_LEN);
}

static bool same_values(const struct pcr_set *a, const struct pcr_set *b)
{
	return memcmp(a->has, b->has, sizeof(a->has)) == 0 &&
	       memcmp(a->value, b->value, sizeof(a->value)) == 0;
}

static void push(struct pcr_sets *s, const struct pcr_set *set)
{
	if (s->n == s->cap) {
		s->cap = s->cap ? 2 * s->cap : 16;
		s->v = xreallocarray(s->v, s->cap, sizeof(*s->v));
	}
	s->v[s->n++] = *set;
}

/* ---- one pair */

static size_t count(const struct indexed *x, int id)
{
	return x->at[id + 1] - x->at[id];
}

static bool same_events(const struct indexed *a, const struct indexed *b, int id)
{
	if (count(a, id) != count(b, id))
		return false;
	for (size_t i = 0; i < count(a, id); i++)
		if (!pcr_event_same(a->v[a->at[id] + i], b->v[b->at[id] + i]))
			return false;
	return true;
}

static void take(struct combine *c, struct walk *w, const struct indexed *x, int id)
{
	for (size_t i = x->at[id]; i < x->at[id + 1]; i++)
		extend(c, &w->set, x->v[i]);
}

/* How often one kernel is measured is its loader's doing, and that may be the other side's. */
static void take_kernel(struct combine *c, struct walk *w, int side)
{
	const struct indexed *x = c->side[side], *loader = x;
	const struct pcr_event *first = x->v[x->at[PCR4_VMLINUZ]];
	size_t n = count(x, PCR4_VMLINUZ);

	for (int i = 0; i < 2; i++)
		if (w->groups[i] & PCR_GROUP_BOOTLOADER)
			loader = c->side[i];
	for (size_t i = 1; i < n; i++)
		if (!pcr_event_same(first, x->v[x->at[PCR4_VMLINUZ] + i]))
			loader = x; /* several kernels, or something behind them */
	if (loader == x) {
		take(c, w, x, PCR4_VMLINUZ);
		return;
	}
	for (n = count(loader, PCR4_VMLINUZ); n > 0; n--)
		extend(c, &w->set, first);
}

static void take_side(struct combine *c, struct walk *w, int side, int id)
{
	w->groups[side] |= pcr_event_groups((enum pcr_event_id)id);
	if (id == PCR4_VMLINUZ && count(c->side[!side], id))
		take_kernel(c, w, side);
	else
		take(c, w, c->side[side], id);
}

static void finish(struct combine *c, struct walk *w)
{
	if (same_values(&w->set, &c->side[0]->own) || same_values(&w->set, &c->side[1]->own))
		return;
	for (size_t i = c->first; i < c->out->n; i++)
		if (same_values(&w->set, &c->out->v[i]))
			return;
	w->set.image[0] = c->side[0]->image;
	w->set.image[1] = c->side[1]->image;
	push(c->out, &w->set);
}

static void step(struct combine *c, struct walk w, int id)
{
	for (; id < PCR_N_EVENT_IDS; id++) {
		unsigned g = pcr_event_groups((enum pcr_event_id)id);
		size_t na = count(c->side[0], id), nb = count(c->side[1], id);
		bool free_a = (g & w.groups[1]) == 0, free_b = (g & w.groups[0]) == 0;

		if (na && nb && same_events(c->side[0], c->side[1], id)) {
			take(c, &w, c->side[0], id);
		} else if (na && nb) {
			struct walk other = w;

			if (free_a && free_b) {
				take_side(c, &other, 0, id);
				step(c, other, id + 1);
			} else if (!free_a && !free_b) {
				c->conflicts++;
				return;
			}
			take_side(c, &w, free_b, id);
		} else if (na || nb) {
			int x = nb > 0;

			if (x ? !free_b : !free_a)
				continue;
			take_side(c, &w, x, id);
		}
	}
	finish(c, &w);
}

/* ---- all images */

static void index_image(
	struct combine *c, const struct pcr_image *image, size_t i, struct indexed *out)
{
	const struct pcr_events *e = &image->events;
	size_t n = 0;

	out->name = image->name;
	out->image = i;
	out->v = xcalloc(e->n ? e->n : 1, sizeof(*out->v));
	for (int id = 0; id < PCR_N_EVENT_IDS; id++) {
		out->at[id] = n;
		for (size_t k = 0; k < e->n; k++)
			if ((int)e->v[k].id == id)
				out->v[n++] = &e->v[k];
	}
	out->at[PCR_N_EVENT_IDS] = n;
	/* Its own values keep its own order and repetitions. */
	out->own.image[0] = out->own.image[1] = i;
	for (size_t k = 0; k < e->n; k++)
		extend(c, &out->own, &e->v[k]);
	if (e->n)
		push(c->out, &out->own);
}

void pcr_combine(const struct pcr_image *images, size_t n, struct pcr_sets *out, size_t *conflicts)
{
	struct indexed *x = xcalloc(n ? n : 1, sizeof(*x));
	struct combine c = {.out = out};

	c.cache = xcalloc(CACHE_SLOTS, sizeof(*c.cache));
	for (size_t i = 0; i < n; i++)
		index_image(&c, &images[i], i, &x[i]);
	for (size_t i = 0; i < n; i++) {
		for (size_t k = i + 1; k < n; k++) {
			if (strcmp(x[i].name, x[k].name) == 0) /* variants of one image */
				continue;
			c.side[0] = &x[i];
			c.side[1] = &x[k];
			c.first = out->n;
			step(&c, (struct walk){.groups = {0, 0}}, 0);
		}
	}
	for (size_t i = 0; i < n; i++)
		free(x[i].v);
	free(x);
	free(c.cache);
	if (conflicts)
		*conflicts = c.conflicts;
}
