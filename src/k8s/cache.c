/* SPDX-License-Identifier: MIT */
/*
 * Entries are in a hash table by name. Each index is a table of groups: the entries that share one
 * value. A group of one points to its object, a larger one to a sorted array, so that 10,000
 * objects with one value stay cheap. Keys are not copied: they are read from the object. Costs
 * about 45 bytes per object, and another 45 per object and index when no two objects share a value
 * (tests/k8s/test_cache.c).
 */
#include "config.h"

#include "tec/k8s/cache.h"

#include <assert.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/base/table.h"

#define TOMBSTONES                                                                                 \
	256 /* removals remembered, so that a late answer does not bring an object back */

struct entry {
	struct table_link link; /* owner: the mark of the relist that last listed it */
	const struct kobj *o;   /* a reference */
};

struct members {
	uint32_t cap;
	const struct kobj *v[]; /* oldest first */
};

/* Kept small: most groups have one object, and each Machine and its key are in four of them. */
struct group {
	struct table_link link; /* owner: the number of objects */
	union {
		const struct kobj *one; /* n is 1 */
		struct members *many;   /* owned; n is larger */
	};                              /* the objects are borrowed from their entries */
};

struct listener {
	k8s_cache_change_fn fn;
	void *arg;
};

struct k8s_cache {
	const struct k8s_cache_type *type;      /* static */
	struct table groups[K8S_CACHE_INDEXES]; /* owned; the groups too */
	struct table entries;                   /* owned; the entries too */
	size_t n_unreadable;
	struct listener *listeners; /* owned */
	size_t n_listeners;
	bool filled, relisting;
	bool saw_delete; /* valid while listeners are called */
	uint32_t mark;
	uint64_t tombstones[TOMBSTONES]; /* hashes of UIDs, a ring buffer */
	unsigned next_tombstone;
};

struct k8s_cache *k8s_cache_new(const struct k8s_cache_type *type)
{
	struct k8s_cache *c = xcalloc(1, sizeof(*c));

	assert(type->n_indexes <= K8S_CACHE_INDEXES && (type->n_indexes == 0 || type->index));
	c->type = type;
	return c;
}

static void group_free(struct group *g)
{
	if (g->link.owner > 1)
		free(g->many);
	free(g);
}

void k8s_cache_free(struct k8s_cache *c)
{
	struct entry *e;
	struct group *g;

	if (!c)
		return;
	TABLE_EACH (e, link, &c->entries) {
		kobj_unref(e->o);
		free(e);
	}
	table_fini(&c->entries);
	for (unsigned i = 0; i < c->type->n_indexes; i++) {
		TABLE_EACH (g, link, &c->groups[i])
			group_free(g);
		table_fini(&c->groups[i]);
	}
	free(c->listeners);
	free(c);
}

void k8s_cache_listen(struct k8s_cache *c, k8s_cache_change_fn fn, void *arg)
{
	ARRAY_GROW(c->listeners, c->n_listeners);
	c->listeners[c->n_listeners++] = (struct listener){fn, arg};
}

bool k8s_cache_saw_delete(const struct k8s_cache *c)
{
	return c->saw_delete;
}

/* Names are unique within the cache: the cache has one namespace, or its extractor uses the UID as
 * the name. */
static struct entry *entry_of(const struct k8s_cache *c, const char *name)
{
	struct entry *e;

	TABLE_WITH_HASH (e, link, &c->entries, table_hash_str(name))
		if (strcmp(e->o->name, name) == 0)
			return e;
	return NULL;
}

/* ---- groups by value */

static const struct kobj *const *members(const struct group *g)
{
	return g->link.owner > 1 ? g->many->v : &g->one;
}

/* The oldest object comes first: when two objects claim one value, controllers let the older one
 * have it. */
static int age_order(const struct kobj *a, const struct kobj *b)
{
	if (a->created_s != b->created_s)
		return a->created_s < b->created_s ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* Return the first position in g whose object is not older than o. */
static uint32_t place_of(const struct group *g, const struct kobj *o)
{
	uint32_t lo = 0, hi = g->link.owner;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (age_order(members(g)[mid], o) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* The value of a group is read from its first object, so the key needs no copy. */
static struct group *group_of(const struct k8s_cache *c, unsigned i, const char *value)
{
	struct group *g;

	assert(i < c->type->n_indexes);
	if (!value)
		return NULL;
	TABLE_WITH_HASH (g, link, &c->groups[i], table_hash_str(value))
		if (strcmp(c->type->index(members(g)[0], i), value) == 0)
			return g;
	return NULL;
}

/* An unreadable object has no value, so it is in no index. */
static const char *index_value(const struct k8s_cache *c, const struct kobj *o, unsigned i)
{
	return o->unreadable ? NULL : c->type->index(o, i);
}

static struct members *members_grow(struct members *m, uint32_t cap)
{
	m = xrealloc(m, sizeof(*m) + cap * sizeof(m->v[0]));
	m->cap = cap;
	return m;
}

/* Most groups have one object, for which no array is allocated. */
static void index_add(struct k8s_cache *c, unsigned i, const struct kobj *o)
{
	const char *value = index_value(c, o, i);
	struct group *g = group_of(c, i, value);
	uint32_t at, n;

	if (!value)
		return;
	if (!g) {
		g = xcalloc(1, sizeof(*g));
		g->link.owner = 1;
		g->one = o;
		table_add(&c->groups[i], &g->link, table_hash_str(value));
		return;
	}
	at = place_of(g, o);
	n = g->link.owner++;
	if (n == 1) {
		const struct kobj *one = g->one;

		g->many = members_grow(NULL, 4);
		g->many->v[0] = one;
	} else if (n == g->many->cap) { /* grow by half: one group may hold all objects */
		g->many = members_grow(g->many, n + n / 2);
	}
	memmove(g->many->v + at + 1, g->many->v + at, (n - at) * sizeof(g->many->v[0]));
	g->many->v[at] = o;
}

/* Find the object by its age and name: both are immutable, so the sorted position still is the
 * right one. */
static void index_remove(struct k8s_cache *c, unsigned i, const struct kobj *o)
{
	const char *value = index_value(c, o, i);
	struct group *g = group_of(c, i, value);
	struct members *m;
	uint32_t at, n;

	if (!value)
		return;
	if (!g)
		DIE("index %u lost %s", i, o->name);
	n = g->link.owner;
	if (n == 1) {
		table_remove(&c->groups[i], &g->link);
		group_free(g);
		return;
	}
	at = place_of(g, o);
	m = g->many;
	assert(m->v[at] == o);
	memmove(m->v + at, m->v + at + 1, (n - 1 - at) * sizeof(m->v[0]));
	g->link.owner = n - 1;
	if (n == 2) {
		g->one = m->v[0];
		free(m);
	}
}

/* ---- readers */

const struct kobj *k8s_cache_find(const struct k8s_cache *c, const char *name)
{
	const struct entry *e = name ? entry_of(c, name) : NULL;

	return e ? e->o : NULL;
}

const struct kobj *k8s_cache_first(const struct k8s_cache *c, unsigned i, const char *value)
{
	const struct group *g = group_of(c, i, value);

	return g ? members(g)[0] : NULL;
}

/* The object need not be in the group any more: iteration continues with the next younger one. */
const struct kobj *k8s_cache_next(const struct k8s_cache *c, unsigned i, const struct kobj *o)
{
	const struct group *g = group_of(c, i, index_value(c, o, i));
	uint32_t at;

	if (!g)
		return NULL;
	at = place_of(g, o);
	if (at < g->link.owner && age_order(members(g)[at], o) == 0)
		at++;
	return at < g->link.owner ? members(g)[at] : NULL;
}

size_t k8s_cache_unreadable(const struct k8s_cache *c)
{
	return c->n_unreadable;
}

size_t k8s_cache_count(const struct k8s_cache *c)
{
	return c->entries.n;
}

void k8s_cache_each(
	const struct k8s_cache *c, void (*fn)(void *arg, const struct kobj *o), void *arg)
{
	k8s_cache_each_in(c, 0, 1, fn, arg);
}

void k8s_cache_each_in(const struct k8s_cache *c, unsigned i, unsigned n,
	void (*fn)(void *arg, const struct kobj *o), void *arg)
{
	const struct entry *e;

	TABLE_EACH_IN(e, link, &c->entries, i, n)
	fn(arg, e->o);
}

bool k8s_cache_filled(const struct k8s_cache *c)
{
	return c->filled;
}

/* ---- writers */

/* Call the listeners. Takes both references. The cache is already in its new state, so a listener
 * may read it. */
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
 * An older resourceVersion of the same object belongs to an event that was overtaken by an answer.
 * During a relist everything counts: the list is authoritative, even that of a server restored from
 * a backup. resourceVersions that are not numbers are compared for equality only.
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

/* A stale object still gets the mark of the relist: it exists, only its content is older. */
static void put(struct k8s_cache *c, struct kobj *take_o)
{
	struct entry *e = entry_of(c, take_o->name);
	const struct kobj *was = e ? e->o : NULL;

	if (e) {
		e->link.owner = c->mark;
		if (is_stale(c, was, take_o)) {
			kobj_unref(take_o);
			return;
		}
		for (unsigned i = 0; i < c->type->n_indexes; i++)
			index_remove(c, i, was);
	} else {
		e = xmalloc(sizeof(*e));
		e->link.owner = c->mark;
		table_add(&c->entries, &e->link, table_hash_str(take_o->name));
	}
	e->o = take_o;
	for (unsigned i = 0; i < c->type->n_indexes; i++)
		index_add(c, i, take_o);
	tell(c, was, kobj_ref(take_o));
}

/* The size check catches an extractor of another kind, whose objects readers would cast to the
 * wrong struct. */
static struct kobj *extract(const struct k8s_cache *c, struct json_object *o, struct err *err)
{
	struct kobj *k = c->type->extract(o, err);

	if (k && k->size != c->type->size)
		DIE("object %s: its extractor makes %u bytes, its cache holds %zu", k->name,
			(unsigned)k->size, c->type->size);
	return k;
}

/* A tombstone means that the watch already reported the deletion of this object: the answer is
 * older. */
void k8s_cache_put(struct k8s_cache *c, struct json_object *o)
{
	struct err ignored = ERR_INIT; /* the watch logs objects that are refused */
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

/* The UID is remembered as a tombstone before listeners run, because they may put answers into the
 * cache. */
static void remove_entry(struct k8s_cache *c, struct entry *e)
{
	const struct kobj *was = e->o;

	for (unsigned i = 0; i < c->type->n_indexes; i++)
		index_remove(c, i, was);
	table_remove(&c->entries, &e->link);
	free(e);
	c->tombstones[c->next_tombstone++ % TOMBSTONES] = str_hash(was->uid, strlen(was->uid));
	tell(c, was, NULL);
}

/* An entry with another UID was created after the deleted object and stays. */
void k8s_cache_remove(struct k8s_cache *c, const char *name, const char *uid)
{
	struct entry *e = entry_of(c, name);

	if (!e || (uid && strcmp(e->o->uid, uid) != 0))
		return;
	c->saw_delete = true;
	remove_entry(c, e);
	c->saw_delete = false;
}

/* An object that extract refuses or does not want replaces its previous version by nothing. */
int k8s_cache_put_event(struct k8s_cache *c, struct json_object *o, struct err *err)
{
	struct kobj *k = extract(c, o, err);
	const char *name = json_get_str(o, "metadata/name");
	struct entry *e = !k && name ? entry_of(c, name) : NULL;

	if (k)
		put(c, k);
	else if (e)
		remove_entry(c, e);
	return err_is_set(err) ? -1 : 0;
}

/* An immutable object keeps its readable version: its content cannot have changed. */
int k8s_cache_put_unreadable(struct k8s_cache *c, const char *name, const char *uid, const char *rv,
	bool deleting, struct err *err)
{
	struct kobj *k = kobj_unreadable(c->type->size, name, uid, rv, deleting, err);
	struct entry *e = k ? entry_of(c, name) : NULL;
	const struct kobj *was = e ? e->o : NULL;

	if (!k)
		return -1;
	if (was && was->immutable && strcmp(was->uid, uid) == 0 && was->deleting == deleting) {
		e->link.owner = c->mark;
		kobj_unref(k);
		return 0;
	}
	put(c, k);
	return 0;
}

/* Flip the mark: entries that the new list does not contain keep the old one. */
void k8s_cache_relist_begin(struct k8s_cache *c)
{
	k8s_cache_relist_abandon(c);
	c->relisting = true;
	c->mark ^= 1;
}

/* Objects that the list did not contain were deleted while nobody watched. */
void k8s_cache_relist_end(struct k8s_cache *c)
{
	struct entry *e;

	assert(c->relisting);
	c->relisting = false;
	c->filled = true;
	TABLE_EACH (e, link, &c->entries)
		if (e->link.owner != c->mark)
			remove_entry(c, e);
}

/* Give every entry the current mark again, so that the next relist starts from a uniform state. */
void k8s_cache_relist_abandon(struct k8s_cache *c)
{
	struct entry *e;

	if (!c->relisting)
		return;
	c->relisting = false;
	TABLE_EACH (e, link, &c->entries)
		e->link.owner = c->mark;
}

/* The entries go one by one, so that listeners see each object leave. */
void k8s_cache_clear(struct k8s_cache *c)
{
	struct entry *e;

	k8s_cache_relist_abandon(c);
	c->filled = false;
	TABLE_EACH (e, link, &c->entries)
		remove_entry(c, e);
	/* Nothing was deleted: the same objects may return. */
	memset(c->tombstones, 0, sizeof(c->tombstones));
}
