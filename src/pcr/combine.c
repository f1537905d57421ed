/* SPDX-License-Identifier: MIT */
/*
 * Each pair of value sets is walked event id by event id. If both have an event and it differs, the
 * walk forks, and from there on the groups of the event belong to the chosen side. PCRs are
 * extended along the way, so branches hash their common beginning once; what several pairs have in
 * common is found in a small cache. An event that only one side has is left out only if its group
 * already belongs to the other side: a boot loader's value without a kernel's would approve
 * whatever that loader starts.
 */
#include "config.h"

#include "tec/pcr/combine.h"

#include <string.h>

#include "tec/base/mem.h"
#include "tec/pcr/bootpath.h"

/* Direct-mapped: digests are effectively random, and a collision only costs one hash. */
#define CACHE_SLOTS 8192
struct slot {
	bool used;
	uint8_t pcr[SHA256_LEN], digest[SHA256_LEN], result[SHA256_LEN];
};

/* The events of one value set by id: at[id] .. at[id + 1] of v. */
struct indexed {
	char *name; /* owned */
	size_t image;
	struct pcr_event *v; /* owned; sorted by id, stable */
	size_t at[PCR_N_EVENT_IDS + 1];
	struct pcr_set own;
};

/* The state of one branch of a walk. */
struct walk {
	unsigned groups[2]; /* groups fixed to side 0 and to side 1 */
	struct pcr_set set;
};

struct pcr_mixer {
	struct slot *cache;     /* owned */
	struct indexed *values; /* owned */
	size_t n;
	size_t conflicts;
};

/* The combination of one value set with another. */
struct combine {
	struct pcr_mixer *mixer;
	struct pcr_sets *out;
	const struct indexed *side[2];
	size_t max;
	bool full;
};

void pcr_sets_fini(struct pcr_sets *s)
{
	free(s->v);
	free(s->table);
	*s = (struct pcr_sets)PCR_SETS_INIT;
}

/* Extend a value, through the cache. Digests are fixed once a set is added, so entries never become
 * stale. */
static void extend_value(
	struct pcr_mixer *m, uint8_t pcr[SHA256_LEN], const uint8_t digest[SHA256_LEN])
{
	uint32_t a, b;
	struct slot *s;

	memcpy(&a, pcr, sizeof(a));
	memcpy(&b, digest, sizeof(b));
	s = &m->cache[(a ^ b * 3u) % CACHE_SLOTS];
	if (!s->used || memcmp(s->pcr, pcr, SHA256_LEN) != 0 ||
		memcmp(s->digest, digest, SHA256_LEN) != 0) {
		s->used = true;
		memcpy(s->pcr, pcr, SHA256_LEN);
		memcpy(s->digest, digest, SHA256_LEN);
		memcpy(s->result, pcr, SHA256_LEN);
		pcr_extend(s->result, digest);
	}
	memcpy(pcr, s->result, SHA256_LEN);
}

/* Extend a PCR; PCR 4 in both of its forms. */
static void extend(struct pcr_mixer *m, struct pcr_set *set, const struct pcr_event *e)
{
	set->has[e->pcr] = true;
	if (e->type == PCR_EV_NO_ACTION)
		return;
	extend_value(m, set->value[e->pcr], e->digest);
	if (pcr_boot_is_call(e))
		set->has_uncalled = true;
	else if (e->pcr == 4)
		extend_value(m, set->uncalled, e->digest);
	if (e->id == PCR4_BOOT_ENTRY_FAILED)
		set->has_uncalled = false;
}

/* ---- sets, found by their PCR values */

/* Hash a set by the first 8 bytes of each PCR; table_find() compares all of them. */
static size_t place_of(const struct pcr_set *set)
{
	uint64_t h = 0;

	for (unsigned i = 0; i < PCR_MAX; i++) {
		uint64_t part;

		memcpy(&part, set->value[i], sizeof(part)); /* zeros if the PCR is missing */
		h = (h << 7 | h >> 57) ^ part ^ set->has[i];
	}
	return (size_t)(h ^ h >> 32);
}

/* Find the table entry of a set, or the free entry for it. The table is never full. */
static size_t *table_find(const struct pcr_sets *s, const struct pcr_set *set)
{
	size_t i = place_of(set) % s->n_table;

	for (; s->table[i]; i = (i + 1) % s->n_table) {
		const struct pcr_set *other = &s->v[s->table[i] - 1];

		/* A PCR without events differs from one whose value happens to be zero. */
		if (memcmp(other->has, set->has, sizeof(set->has)) == 0 &&
			memcmp(other->value, set->value, sizeof(set->value)) == 0)
			break;
	}
	return &s->table[i];
}

static void table_fill(struct pcr_sets *s)
{
	memset(s->table, 0, s->n_table * sizeof(*s->table));
	for (size_t i = 0; i < s->n; i++) {
		size_t *at = table_find(s, &s->v[i]);

		*at = *at ? *at : i + 1;
	}
}

/* Append a set. The table is four times the capacity of the list, so searches end quickly. */
static void push(struct pcr_sets *s, const struct pcr_set *set)
{
	size_t *at;

	if (s->n == s->cap) {
		s->cap = s->cap ? 2 * s->cap : 16;
		s->v = xreallocarray(s->v, s->cap, sizeof(*s->v));
		s->n_table = 4 * s->cap;
		s->table = xreallocarray(s->table, s->n_table, sizeof(*s->table));
		table_fill(s);
	}
	at = table_find(s, set);
	s->v[s->n++] = *set;
	*at = *at ? *at : s->n;
}

/* Shrink the list. The table is rebuilt, because open addressing does not support removal. */
void pcr_sets_cut(struct pcr_sets *s, size_t n)
{
	if (n == s->n)
		return;
	s->n = n;
	table_fill(s);
}

/* ---- one pair */

static size_t count(const struct indexed *x, int id)
{
	return x->at[id + 1] - x->at[id];
}

/* Compare all events of one id, in order. */
static bool same_events(const struct indexed *a, const struct indexed *b, int id)
{
	if (count(a, id) != count(b, id))
		return false;
	for (size_t i = 0; i < count(a, id); i++)
		if (!pcr_event_same(&a->v[a->at[id] + i], &b->v[b->at[id] + i]))
			return false;
	return true;
}

/* Extend a walk with all events of one id, in order. */
static void take(struct combine *c, struct walk *w, const struct indexed *x, int id)
{
	for (size_t i = x->at[id]; i < x->at[id + 1]; i++)
		extend(c->mixer, &w->set, &x->v[i]);
}

/* Take the kernel of one side as often as the loader measures it: the loader may be that of the
 * other side. */
static void take_kernel(struct combine *c, struct walk *w, int side)
{
	const struct indexed *x = c->side[side], *loader = x;
	const struct pcr_event *first = &x->v[x->at[PCR4_VMLINUZ]];
	size_t n = count(x, PCR4_VMLINUZ);

	for (int i = 0; i < 2; i++)
		if (w->groups[i] & PCR_GROUP_BOOTLOADER)
			loader = c->side[i];
	for (size_t i = 1; i < n; i++)
		if (!pcr_event_same(first, &x->v[x->at[PCR4_VMLINUZ] + i]))
			loader = x; /* events differ: keep them as they are */
	if (loader == x) {
		take(c, w, x, PCR4_VMLINUZ);
		return;
	}
	for (n = count(loader, PCR4_VMLINUZ); n > 0; n--)
		extend(c->mixer, &w->set, first);
}

/* Take one side's events of this id, and bind their groups to that side. */
static void take_side(struct combine *c, struct walk *w, int side, int id)
{
	w->groups[side] |= pcr_event_groups((enum pcr_event_id)id);
	if (id == PCR4_VMLINUZ && count(c->side[!side], id))
		take_kernel(c, w, side);
	else
		take(c, w, c->side[side], id);
}

/* Store a completed walk, unless the same PCR values are stored already. */
static void finish(struct combine *c, struct walk *w)
{
	if (c->full || (c->out->n_table && *table_find(c->out, &w->set)))
		return;
	if (c->out->n == c->max) {
		c->full = true;
		return;
	}
	w->set.image[0] = c->side[0]->image;
	w->set.image[1] = c->side[1]->image;
	push(c->out, &w->set);
}

/* Continue a walk from one id. Groups of the other side rule out a side's events; if both sides are
 * ruled out, the branch is contradictory and is dropped. */
static void step(struct combine *c, struct walk w, int id)
{
	for (; id < PCR_N_EVENT_IDS && !c->full; id++) {
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
				c->mixer->conflicts++;
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

/* ---- all */

struct pcr_mixer *pcr_mixer_new(void)
{
	struct pcr_mixer *m = xcalloc(1, sizeof(*m));

	m->cache = xcalloc(CACHE_SLOTS, sizeof(*m->cache));
	return m;
}

void pcr_mixer_free(struct pcr_mixer *m)
{
	if (!m)
		return;
	pcr_mixer_cut(m, 0);
	free(m->values);
	free(m->cache);
	free(m);
}

size_t pcr_mixer_count(const struct pcr_mixer *m)
{
	return m->n;
}

size_t pcr_mixer_conflicts(const struct pcr_mixer *m)
{
	return m->conflicts;
}

/* Remove value sets that were added last. */
void pcr_mixer_cut(struct pcr_mixer *m, size_t n)
{
	while (m->n > n) {
		m->n--;
		free(m->values[m->n].name);
		free(m->values[m->n].v);
	}
}

/* Sort the events by id, keeping their order within one id. */
static const struct indexed *index_values(
	struct pcr_mixer *m, const char *name, size_t image, const struct pcr_events *e)
{
	struct indexed *x;
	size_t n = 0;

	ARRAY_GROW(m->values, m->n);
	x = &m->values[m->n++];
	*x = (struct indexed){.name = xstrdup(name), .image = image};
	x->v = xcalloc(e->n ? e->n : 1, sizeof(*x->v));
	for (int id = 0; id < PCR_N_EVENT_IDS; id++) {
		x->at[id] = n;
		for (size_t k = 0; k < e->n; k++)
			if ((int)e->v[k].id == id)
				x->v[n++] = e->v[k];
	}
	x->at[PCR_N_EVENT_IDS] = n;
	/* The set's own values keep its order and repetitions. */
	x->own.image[0] = x->own.image[1] = image;
	for (size_t k = 0; k < e->n; k++)
		extend(m, &x->own, &e->v[k]);
	return x;
}

/* Combine the new set with all earlier ones. Side 0 is the earlier one. */
bool pcr_mixer_add(struct pcr_mixer *m, const char *name, size_t image,
	const struct pcr_events *events, size_t max, struct pcr_sets *out)
{
	const struct indexed *x = index_values(m, name, image, events);
	struct combine c = {.mixer = m, .out = out, .max = max};

	if (events->n && out->n == max)
		return false;
	if (events->n)
		push(out, &x->own);
	for (size_t i = 0; i + 1 < m->n && !c.full; i++) {
		if (strcmp(m->values[i].name, name) == 0) /* variants of one image */
			continue;
		c.side[0] = &m->values[i];
		c.side[1] = x;
		step(&c, (struct walk){.groups = {0, 0}}, 0);
	}
	return !c.full;
}
