/* SPDX-License-Identifier: MIT */
/*
 * Two kinds of chained hash tables over dense arrays, linked by 32-bit numbers: entries by name,
 * and per index groups of entries with one value. A group of one holds its entry itself, a larger
 * one a sorted array, so that 10,000 objects with one value stay cheap. Keys are not copied: they
 * are read from the object. About 24 bytes per object and 28 per object and index
 * (tests/k8s/test_cache.c).
 */
#include "config.h"

#include "tec/k8s/cache.h"

#include <assert.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"

#define TOMBSTONES 256 /* removals remembered: a late answer raises nobody from the dead */
#define NONE       UINT32_MAX
#define NO_LINK    0x7fffffffu

struct entry {
	const struct kobj *o; /* a reference; NULL: on the free list */
	uint32_t hash;
	uint32_t next : 31; /* in its bucket, or in the free list */
	uint32_t mark : 1;  /* the relist that saw it */
};

struct group {
	uint32_t hash, next;
	uint32_t n; /* 0: on the free list */
	uint32_t cap;
	union {
		uint32_t one;
		uint32_t *many; /* owned while cap > 0; oldest first */
	};
};

struct buckets {
	uint32_t *head; /* owned */
	uint32_t n;     /* a power of two, or 0 */
};

struct index {
	struct group *groups; /* owned */
	uint32_t n_groups, cap_groups, free_group, used;
	struct buckets by_value;
};

struct listener {
	k8s_cache_change_fn fn;
	void *arg;
};

struct k8s_cache {
	const struct k8s_cache_type *type; /* static */
	k8s_cache_index_fn value;
	unsigned n_indexes;
	struct index index[K8S_CACHE_INDEXES];
	struct entry *entries; /* owned */
	uint32_t n_entries, cap_entries, free_entry, count;
	size_t n_unreadable;
	struct buckets by_name;
	struct listener *listeners; /* owned */
	size_t n_listeners;
	bool filled, relisting;
	uint32_t mark;
	uint64_t tombstones[TOMBSTONES]; /* hashes of uids, a ring */
	unsigned next_tombstone;
};

static uint32_t text_hash(const char *s)
{
	return (uint32_t)str_hash(s, strlen(s));
}

static uint32_t grown(uint32_t n)
{
	if (n >= NO_LINK / 2)
		DIE("cache of more than %u objects", n);
	return n < 16 ? 16 : n + n / 2;
}

struct k8s_cache *k8s_cache_new(const struct k8s_cache_type *type)
{
	struct k8s_cache *c = xcalloc(1, sizeof(*c));

	assert(type->n_indexes <= K8S_CACHE_INDEXES && (type->n_indexes == 0 || type->index));
	c->type = type;
	c->n_indexes = type->n_indexes;
	c->value = type->index;
	c->free_entry = NO_LINK;
	for (unsigned i = 0; i < c->n_indexes; i++)
		c->index[i].free_group = NONE;
	return c;
}

void k8s_cache_free(struct k8s_cache *c)
{
	if (!c)
		return;
	for (uint32_t e = 0; e < c->n_entries; e++)
		kobj_unref(c->entries[e].o);
	for (unsigned i = 0; i < c->n_indexes; i++) {
		for (uint32_t g = 0; g < c->index[i].n_groups; g++)
			if (c->index[i].groups[g].cap)
				free(c->index[i].groups[g].many);
		free(c->index[i].groups);
		free(c->index[i].by_value.head);
	}
	free(c->entries);
	free(c->by_name.head);
	free(c->listeners);
	free(c);
}

void k8s_cache_listen(struct k8s_cache *c, k8s_cache_change_fn fn, void *arg)
{
	c->listeners = xreallocarray(c->listeners, c->n_listeners + 1, sizeof(*c->listeners));
	c->listeners[c->n_listeners++] = (struct listener){fn, arg};
}

/* ---- entries by name */

static uint32_t entry_of(const struct k8s_cache *c, const char *name, uint32_t hash)
{
	uint32_t e = c->by_name.n ? c->by_name.head[hash & (c->by_name.n - 1)] : NO_LINK;

	while (e != NO_LINK &&
		(c->entries[e].hash != hash || strcmp(c->entries[e].o->name, name) != 0))
		e = c->entries[e].next;
	return e;
}

static void entries_rehash(struct k8s_cache *c)
{
	struct buckets *b = &c->by_name;

	if (c->count < b->n)
		return;
	b->n = b->n ? b->n * 2 : 16;
	b->head = xreallocarray(b->head, b->n, sizeof(*b->head));
	for (uint32_t i = 0; i < b->n; i++)
		b->head[i] = NO_LINK;
	for (uint32_t e = 0; e < c->n_entries; e++) {
		uint32_t *head = &b->head[c->entries[e].hash & (b->n - 1)];

		if (!c->entries[e].o)
			continue;
		c->entries[e].next = *head & NO_LINK;
		*head = e;
	}
}

static uint32_t entry_add(struct k8s_cache *c, const struct kobj *take_o, uint32_t hash)
{
	uint32_t e = c->free_entry, *head;

	entries_rehash(c);
	if (e != NO_LINK) {
		c->free_entry = c->entries[e].next;
	} else {
		if (c->n_entries == c->cap_entries) {
			c->cap_entries = grown(c->cap_entries);
			c->entries = xreallocarray(c->entries, c->cap_entries, sizeof(*c->entries));
		}
		e = c->n_entries++;
	}
	head = &c->by_name.head[hash & (c->by_name.n - 1)];
	c->entries[e] = (struct entry){
		.o = take_o, .hash = hash, .next = *head & NO_LINK, .mark = c->mark & 1};
	*head = e;
	c->count++;
	return e;
}

static void entry_remove(struct k8s_cache *c, uint32_t e)
{
	uint32_t *head = &c->by_name.head[c->entries[e].hash & (c->by_name.n - 1)];

	if (*head == e) {
		*head = c->entries[e].next;
	} else {
		uint32_t p = *head;

		while (c->entries[p].next != e)
			p = c->entries[p].next;
		c->entries[p].next = c->entries[e].next;
	}
	c->entries[e].o = NULL;
	c->entries[e].next = c->free_entry & NO_LINK;
	c->free_entry = e;
	c->count--;
}

/* ---- groups by value */

static const uint32_t *members(const struct group *g)
{
	return g->cap ? g->many : &g->one;
}

static int age_order(const struct kobj *a, const struct kobj *b)
{
	if (a->created_s != b->created_s)
		return a->created_s < b->created_s ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* First place in g whose object is not older than o. */
static uint32_t place_of(const struct k8s_cache *c, const struct group *g, const struct kobj *o)
{
	uint32_t lo = 0, hi = g->n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (age_order(c->entries[members(g)[mid]].o, o) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static uint32_t group_of(const struct k8s_cache *c, unsigned i, const char *value, uint32_t hash)
{
	const struct index *x = &c->index[i];
	uint32_t g = x->by_value.n ? x->by_value.head[hash & (x->by_value.n - 1)] : NONE;

	while (g != NONE &&
		(x->groups[g].hash != hash ||
			strcmp(c->value(c->entries[members(&x->groups[g])[0]].o, i), value) != 0))
		g = x->groups[g].next;
	return g;
}

static void groups_rehash(struct index *x)
{
	struct buckets *b = &x->by_value;

	if (x->used < b->n)
		return;
	b->n = b->n ? b->n * 2 : 16;
	b->head = xreallocarray(b->head, b->n, sizeof(*b->head));
	for (uint32_t i = 0; i < b->n; i++)
		b->head[i] = NONE;
	for (uint32_t g = 0; g < x->n_groups; g++) {
		uint32_t *head = &b->head[x->groups[g].hash & (b->n - 1)];

		if (x->groups[g].n == 0)
			continue;
		x->groups[g].next = *head;
		*head = g;
	}
}

static void group_new(struct index *x, uint32_t e, uint32_t hash)
{
	uint32_t g = x->free_group, *head;

	groups_rehash(x);
	if (g != NONE) {
		x->free_group = x->groups[g].next;
	} else {
		if (x->n_groups == x->cap_groups) {
			x->cap_groups = grown(x->cap_groups);
			x->groups = xreallocarray(x->groups, x->cap_groups, sizeof(*x->groups));
		}
		g = x->n_groups++;
	}
	head = &x->by_value.head[hash & (x->by_value.n - 1)];
	x->groups[g] = (struct group){.hash = hash, .next = *head, .n = 1, .one = e};
	*head = g;
	x->used++;
}

static void group_free(struct index *x, uint32_t g)
{
	uint32_t *p = &x->by_value.head[x->groups[g].hash & (x->by_value.n - 1)];

	while (*p != g)
		p = &x->groups[*p].next;
	*p = x->groups[g].next;
	if (x->groups[g].cap)
		free(x->groups[g].many);
	x->groups[g] = (struct group){.next = x->free_group};
	x->free_group = g;
	x->used--;
}

/* What cannot be read has no value. */
static const char *index_value(const struct k8s_cache *c, const struct kobj *o, unsigned i)
{
	return o->unreadable ? NULL : c->value(o, i);
}

static void index_add(struct k8s_cache *c, unsigned i, uint32_t e)
{
	struct index *x = &c->index[i];
	const struct kobj *o = c->entries[e].o;
	const char *value = index_value(c, o, i);
	uint32_t hash, g, at;
	struct group *group;

	if (!value)
		return;
	hash = text_hash(value);
	g = group_of(c, i, value, hash);
	if (g == NONE) {
		group_new(x, e, hash);
		return;
	}
	group = &x->groups[g];
	at = place_of(c, group, o);
	if (group->n + 1 > group->cap) {
		uint32_t cap = group->cap ? grown(group->cap) : 4, one = group->one;

		group->many =
			xreallocarray(group->cap ? group->many : NULL, cap, sizeof(*group->many));
		if (group->cap == 0)
			group->many[0] = one;
		group->cap = cap;
	}
	memmove(group->many + at + 1, group->many + at, (group->n - at) * sizeof(*group->many));
	group->many[at] = e;
	group->n++;
}

static void index_remove(struct k8s_cache *c, unsigned i, uint32_t e)
{
	struct index *x = &c->index[i];
	const char *value = index_value(c, c->entries[e].o, i);
	struct group *group;
	uint32_t g, at;

	if (!value)
		return;
	g = group_of(c, i, value, text_hash(value));
	if (g == NONE)
		DIE("index %u lost %s", i, c->entries[e].o->name);
	group = &x->groups[g];
	if (group->n == 1) {
		group_free(x, g);
		return;
	}
	at = place_of(c, group, c->entries[e].o);
	assert(group->many[at] == e);
	group->n--;
	memmove(group->many + at, group->many + at + 1, (group->n - at) * sizeof(*group->many));
}

/* ---- readers */

const struct kobj *k8s_cache_find(const struct k8s_cache *c, const char *name)
{
	uint32_t e = name ? entry_of(c, name, text_hash(name)) : NO_LINK;

	return e == NO_LINK ? NULL : c->entries[e].o;
}

const struct kobj *k8s_cache_first(const struct k8s_cache *c, unsigned i, const char *value)
{
	uint32_t g;

	assert(i < c->n_indexes);
	g = value ? group_of(c, i, value, text_hash(value)) : NONE;
	return g == NONE ? NULL : c->entries[members(&c->index[i].groups[g])[0]].o;
}

const struct kobj *k8s_cache_next(const struct k8s_cache *c, unsigned i, const struct kobj *o)
{
	const char *value = index_value(c, o, i);
	uint32_t g = value ? group_of(c, i, value, text_hash(value)) : NONE, at;
	const struct group *group;

	if (g == NONE)
		return NULL;
	group = &c->index[i].groups[g];
	at = place_of(c, group, o);
	if (at < group->n && age_order(c->entries[members(group)[at]].o, o) == 0)
		at++;
	return at < group->n ? c->entries[members(group)[at]].o : NULL;
}

size_t k8s_cache_unreadable(const struct k8s_cache *c)
{
	return c->n_unreadable;
}

size_t k8s_cache_count(const struct k8s_cache *c)
{
	return c->count;
}

void k8s_cache_each(
	const struct k8s_cache *c, void (*fn)(void *arg, const struct kobj *o), void *arg)
{
	for (uint32_t e = 0; e < c->n_entries; e++)
		if (c->entries[e].o)
			fn(arg, c->entries[e].o);
}

bool k8s_cache_filled(const struct k8s_cache *c)
{
	return c->filled;
}

/* ---- writers */

/* Takes both references; the cache is in its new state already, so a listener may read it. */
static void tell(struct k8s_cache *c, const struct kobj *take_was, const struct kobj *take_now)
{
	c->n_unreadable += take_now && take_now->unreadable;
	c->n_unreadable -= take_was && take_was->unreadable;
	for (size_t i = 0; i < c->n_listeners; i++)
		c->listeners[i].fn(c->listeners[i].arg, take_was, take_now);
	kobj_unref(take_was);
	kobj_unref(take_now);
}

/*
 * An older resourceVersion of the same object is an event that was overtaken by an answer. During a
 * relist everything counts: the list is the truth, even that of a server restored from a backup.
 * resourceVersions that are no numbers are only compared for equality.
 */
static bool is_stale(const struct k8s_cache *c, const struct kobj *have, const struct kobj *o)
{
	uint64_t a, b;

	if (strcmp(have->uid, o->uid) != 0)
		return false;
	if (strcmp(have->rv, o->rv) == 0)
		return true;
	return !c->relisting && str_to_u64(have->rv, UINT64_MAX, &a) == 0 &&
	       str_to_u64(o->rv, UINT64_MAX, &b) == 0 && b < a;
}

static void put(struct k8s_cache *c, struct kobj *take_o)
{
	uint32_t hash = text_hash(take_o->name);
	uint32_t e = entry_of(c, take_o->name, hash);
	const struct kobj *was = NULL;

	if (e == NO_LINK) {
		e = entry_add(c, take_o, hash);
	} else {
		c->entries[e].mark = c->mark & 1;
		was = c->entries[e].o;
		if (is_stale(c, was, take_o)) {
			kobj_unref(take_o);
			return;
		}
		for (unsigned i = 0; i < c->n_indexes; i++)
			index_remove(c, i, e);
		c->entries[e].o = take_o;
	}
	for (unsigned i = 0; i < c->n_indexes; i++)
		index_add(c, i, e);
	tell(c, was, kobj_ref(take_o));
}

static struct kobj *extract(const struct k8s_cache *c, struct json_object *o, struct err *err)
{
	struct kobj *k = c->type->extract(o, err);

	if (k && k->size != c->type->size)
		DIE("object %s: its extractor makes %u bytes, its cache holds %zu", k->name,
			(unsigned)k->size, c->type->size);
	return k;
}

void k8s_cache_put(struct k8s_cache *c, struct json_object *o)
{
	struct err ignored = ERR_INIT; /* the watch logs what cannot be taken in */
	struct kobj *k = extract(c, o, &ignored);
	uint64_t uid = k ? str_hash(k->uid, strlen(k->uid)) : 0;

	if (!k)
		return;
	for (unsigned i = 0; i < TOMBSTONES; i++) {
		if (c->tombstones[i] == uid) {
			kobj_unref(k);
			return;
		}
	}
	put(c, k);
}

static void remove_entry(struct k8s_cache *c, uint32_t e)
{
	const struct kobj *was = c->entries[e].o;

	for (unsigned i = 0; i < c->n_indexes; i++)
		index_remove(c, i, e);
	entry_remove(c, e);
	c->tombstones[c->next_tombstone++ % TOMBSTONES] = str_hash(was->uid, strlen(was->uid));
	tell(c, was, NULL);
}

void k8s_cache_remove(struct k8s_cache *c, const char *name, const char *uid)
{
	uint32_t e = entry_of(c, name, text_hash(name));

	if (e != NO_LINK && (!uid || strcmp(c->entries[e].o->uid, uid) == 0))
		remove_entry(c, e);
}

int k8s_cache_put_event(struct k8s_cache *c, struct json_object *o, struct err *err)
{
	struct kobj *k = extract(c, o, err);
	const char *name = json_get_str(o, "metadata/name");

	if (k)
		put(c, k);
	else if (name)
		k8s_cache_remove(c, name, NULL);
	return err_is_set(err) ? -1 : 0;
}

int k8s_cache_put_unreadable(struct k8s_cache *c, const char *name, const char *uid, const char *rv,
	bool deleting, struct err *err)
{
	struct kobj *k = kobj_unreadable(c->type->size, name, uid, rv, deleting, err);
	uint32_t e = k ? entry_of(c, name, text_hash(name)) : NO_LINK;
	const struct kobj *was = e == NO_LINK ? NULL : c->entries[e].o;

	if (!k)
		return -1;
	if (was && was->immutable && strcmp(was->uid, uid) == 0 && was->deleting == deleting) {
		c->entries[e].mark = c->mark & 1;
		kobj_unref(k);
		return 0;
	}
	put(c, k);
	return 0;
}

void k8s_cache_relist_begin(struct k8s_cache *c)
{
	k8s_cache_relist_abandon(c);
	c->relisting = true;
	c->mark ^= 1;
}

void k8s_cache_relist_end(struct k8s_cache *c)
{
	assert(c->relisting);
	c->relisting = false;
	c->filled = true;
	for (uint32_t e = 0; e < c->n_entries; e++)
		if (c->entries[e].o && c->entries[e].mark != c->mark)
			remove_entry(c, e);
}

void k8s_cache_relist_abandon(struct k8s_cache *c)
{
	if (!c->relisting)
		return;
	c->relisting = false;
	for (uint32_t e = 0; e < c->n_entries; e++)
		c->entries[e].mark = c->mark & 1;
}

void k8s_cache_clear(struct k8s_cache *c)
{
	k8s_cache_relist_abandon(c);
	c->filled = false;
	for (uint32_t e = 0; e < c->n_entries; e++)
		if (c->entries[e].o)
			remove_entry(c, e);
	/* Nothing was deleted: the same objects may come back. */
	memset(c->tombstones, 0, sizeof(c->tombstones));
}
