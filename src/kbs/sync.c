/* SPDX-License-Identifier: MIT */
/*
 * One entry per (sort, name) in a hash table: what is wanted (a value by its holder, or nothing: a
 * tombstone) and, per target, what that target was last seen to hold. A state is derived, never
 * stored, so it cannot contradict what it stands on. What was not asked counts as present. Refuses
 * to confirm for a target it does not know. What targets still have to be told is in target.c.
 */
#include "config.h"

#include "sync_internal.h"

#include "tec/base/clock.h"

/* Around every change of an entry: once with -1 before it, once with +1 after it (unsigned wrap is
 * meant). */
static void tally(struct kbs_sync *s, const struct kbs_entry *e, size_t step)
{
	enum kbs_far far = kbs_entry_far(s, e);

	if (e->holder)
		s->n_declared += step;
	if (e->holder && s->targets && far == KBS_FAR_PRESENT)
		s->n_confirmed += step;
	if (!e->holder && far != KBS_FAR_ABSENT)
		s->n_revoking += step;
}
#define LESS ((size_t)-1)

/* Targets come and go rarely: count anew. */
void kbs_tally_all(struct kbs_sync *s)
{
	s->n_declared = s->n_confirmed = s->n_revoking = 0;
	for (size_t b = 0; b < s->n_buckets; b++)
		for (const struct kbs_entry *e = s->buckets[b]; e; e = e->next)
			tally(s, e, 1);
}

struct kbs_sync *kbs_sync_new(void)
{
	struct kbs_sync *s = xcalloc(1, sizeof(*s));

	s->n_buckets = 64;
	s->buckets = xcalloc(s->n_buckets, sizeof(*s->buckets));
	return s;
}

static void entry_free(struct kbs_entry *e)
{
	kobj_unref(e->holder);
	free(e);
}

/* It has left the table: freed when no queue and no flight has it. */
void kbs_entry_unpin(struct kbs_entry *e)
{
	if (e->forgotten && !e->queued && !e->urgent && !e->flying)
		entry_free(e);
}

static void entry_drop(struct kbs_sync *s, struct kbs_entry *e)
{
	s->n_entries--;
	if (e->holder)
		kbs_sum_sub(&s->sum, e);
	e->forgotten = true;
	kbs_entry_unpin(e);
}

void kbs_drop_entries(struct kbs_sync *s, bool tombstones_only)
{
	for (size_t i = 0; i < s->n_buckets; i++) {
		struct kbs_entry **pp = &s->buckets[i];

		while (*pp) {
			struct kbs_entry *e = *pp;

			if (tombstones_only && e->holder) {
				pp = &e->next;
				continue;
			}
			*pp = e->next;
			entry_drop(s, e);
		}
	}
	kbs_tally_all(s);
}

void kbs_sync_free(struct kbs_sync *s)
{
	if (!s)
		return;
	kbs_sync_reset(s);
	strbuf_fini(&s->why);
	strbuf_fini(&s->lacking);
	free(s->buckets);
	free(s);
}

void kbs_sync_listen(
	struct kbs_sync *s, void (*fn)(void *arg, enum kbs_sort sort, const char *name), void *arg)
{
	if (s->n_listeners == LISTENERS_MAX)
		DIE("kbs sync: more than %d listeners", LISTENERS_MAX);
	s->listener[s->n_listeners].fn = fn;
	s->listener[s->n_listeners].arg = arg;
	s->n_listeners++;
}

void kbs_tell(struct kbs_sync *s, enum kbs_sort sort, const char *name)
{
	for (size_t i = 0; i < s->n_listeners; i++)
		s->listener[i].fn(s->listener[i].arg, sort, name);
}

/* ---- entries */

static uint32_t hash_of(enum kbs_sort sort, const char *name)
{
	return (uint32_t)str_hash(name, strlen(name)) + (uint32_t)sort;
}

struct kbs_entry *kbs_entry_find(const struct kbs_sync *s, enum kbs_sort sort, const char *name)
{
	uint32_t hash = hash_of(sort, name);

	for (struct kbs_entry *e = s->buckets[hash & (s->n_buckets - 1)]; e; e = e->next)
		if (e->hash == hash && e->sort == sort && strcmp(e->name, name) == 0)
			return e;
	return NULL;
}

static void grow(struct kbs_sync *s)
{
	struct kbs_entry **old = s->buckets;
	size_t n_old = s->n_buckets;

	s->n_buckets *= 2;
	s->buckets = xcalloc(s->n_buckets, sizeof(*s->buckets));
	for (size_t i = 0; i < n_old; i++) {
		while (old[i]) {
			struct kbs_entry *e = old[i],
					 **b = &s->buckets[e->hash & (s->n_buckets - 1)];

			old[i] = e->next;
			e->next = *b;
			*b = e;
		}
	}
	free(old);
}

static struct kbs_entry *find_or_add(struct kbs_sync *s, enum kbs_sort sort, const char *name)
{
	struct kbs_entry *e = kbs_entry_find(s, sort, name), **b;
	size_t len = strlen(name);

	if (e)
		return e;
	if (s->n_entries >= s->n_buckets)
		grow(s);
	e = xcalloc(1, offsetof(struct kbs_entry, name) + len + 1);
	memcpy(e->name, name, len);
	e->sort = sort;
	e->hash = hash_of(sort, name);
	b = &s->buckets[e->hash & (s->n_buckets - 1)];
	e->next = *b;
	*b = e;
	s->n_entries++;
	tally(s, e, 1);
	return e;
}

/* The wanted value changed: a target that was seen to hold the old one now holds another one. */
static void wanted_changed(struct kbs_sync *s, struct kbs_entry *e)
{
	s->changed_ms = clock_boot_ms();
	EACH_TARGET(s, i)
	if (e->seen[i] == KBS_SEEN_WANTED)
		e->seen[i] = KBS_SEEN_OTHER;
}

bool kbs_sync_declare(struct kbs_sync *s, enum kbs_sort sort, const char *name,
	const struct kobj *holder, kbs_render_fn render)
{
	cleanup_secret struct secret *value = render(holder);
	struct kbs_entry *e = find_or_add(s, sort, name);
	const struct kobj *old = e->holder;
	uint8_t sha256[SHA256_LEN];
	bool changed;

	if (!value)
		DIE("kbs sync: the value of %s cannot be rendered", holder->name);
	secret_sha256(value, sha256);
	changed = !old || memcmp(e->sha256, sha256, SHA256_LEN) != 0;
	tally(s, e, LESS);
	if (changed && old)
		kbs_sum_sub(&s->sum, e);
	/* A newer object with the same value takes the older one's place, so that the older is not
	 * kept alive. */
	e->holder = kobj_ref(holder);
	e->render = render;
	kobj_unref(old);
	if (changed) {
		wanted_changed(s, e);
		memcpy(e->sha256, sha256, SHA256_LEN);
		kbs_sum_add(&s->sum, e);
	}
	tally(s, e, 1);
	if (!changed)
		return false;
	kbs_todo_spread(s, e);
	kbs_tell(s, sort, name);
	return true;
}

bool kbs_sync_revoke(struct kbs_sync *s, enum kbs_sort sort, const char *name)
{
	struct kbs_entry *e = kbs_entry_find(s, sort, name);

	if (e && !e->holder)
		return false;
	if (!e)
		e = find_or_add(s, sort, name);
	tally(s, e, LESS);
	if (e->holder)
		kbs_sum_sub(&s->sum, e);
	kobj_unref(e->holder);
	e->holder = NULL;
	wanted_changed(s, e);
	tally(s, e, 1);
	kbs_todo_spread(s, e);
	kbs_tell(s, sort, name);
	return true;
}

void kbs_sync_forget(struct kbs_sync *s, enum kbs_sort sort, const char *name)
{
	struct kbs_entry *e = kbs_entry_find(s, sort, name), **pp;

	if (!e)
		return;
	for (pp = &s->buckets[e->hash & (s->n_buckets - 1)]; *pp != e; pp = &(*pp)->next)
		;
	*pp = e->next;
	tally(s, e, LESS);
	entry_drop(s, e);
}

/* A copy of the name: a listener may forget the entry. */
void kbs_set_seen(struct kbs_sync *s, struct kbs_entry *e, unsigned t, enum kbs_seen seen)
{
	cleanup_free char *name = NULL;

	if (e->seen[t] == seen)
		return;
	if (e->forgotten) {
		e->seen[t] = (uint8_t)seen;
		return;
	}
	tally(s, e, LESS);
	e->seen[t] = (uint8_t)seen;
	tally(s, e, 1);
	name = xstrdup(e->name);
	kbs_tell(s, e->sort, name);
}

void kbs_sync_each(const struct kbs_sync *s, enum kbs_sort sort,
	void (*fn)(void *arg, const struct kbs_entry *e), void *arg)
{
	for (size_t b = 0; b < s->n_buckets; b++)
		for (const struct kbs_entry *e = s->buckets[b]; e; e = e->next)
			if (e->sort == sort && e->holder)
				fn(arg, e);
}

/* ---- questions */

enum kbs_far kbs_sync_far(const struct kbs_sync *s, enum kbs_sort sort, const char *name)
{
	const struct kbs_entry *e;

	if (!s->targets)
		return KBS_FAR_NONE;
	e = kbs_entry_find(s, sort, name);
	return e ? kbs_entry_far(s, e) : KBS_FAR_UNKNOWN;
}

const struct kobj *kbs_sync_holder(const struct kbs_sync *s, enum kbs_sort sort, const char *name)
{
	const struct kbs_entry *e = kbs_entry_find(s, sort, name);

	return e ? e->holder : NULL;
}

bool kbs_sync_is_declared(const struct kbs_sync *s, enum kbs_sort sort, const char *name,
	const uint8_t sha256[SHA256_LEN])
{
	const struct kbs_entry *e = kbs_entry_find(s, sort, name);

	return e && e->holder && memcmp(e->sha256, sha256, SHA256_LEN) == 0;
}

bool kbs_sync_wanted(
	const struct kbs_sync *s, enum kbs_sort sort, const char *name, uint8_t sha256[SHA256_LEN])
{
	const struct kbs_entry *e = kbs_entry_find(s, sort, name);

	if (!e || !e->holder)
		return false;
	memcpy(sha256, e->sha256, SHA256_LEN);
	return true;
}

bool kbs_sync_is_revoked(const struct kbs_sync *s, enum kbs_sort sort, const char *name)
{
	const struct kbs_entry *e = kbs_entry_find(s, sort, name);

	return e && !e->holder;
}

void kbs_sync_names(const struct kbs_sync *s, enum kbs_sort sort,
	void (*fn)(void *arg, const char *name), void *arg)
{
	cleanup_strbuf struct strbuf names = STRBUF_INIT;

	for (size_t b = 0; b < s->n_buckets; b++)
		for (const struct kbs_entry *e = s->buckets[b]; e; e = e->next)
			if (e->sort == sort)
				strbuf_add(&names, e->name, strlen(e->name) + 1);
	for (size_t at = 0; at < names.len; at += strlen(names.data + at) + 1)
		fn(arg, names.data + at);
}

void kbs_sync_counts(
	const struct kbs_sync *s, size_t *declared, size_t *confirmed, size_t *revoking)
{
	*declared = s->n_declared;
	*confirmed = s->n_confirmed;
	*revoking = s->n_revoking;
}
