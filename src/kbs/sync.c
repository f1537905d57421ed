/* SPDX-License-Identifier: MIT */
/*
 * One entry per (sort, name) in a hash table: what is wanted (a value by its holder, or nothing: a
 * tombstone) and, per target, what that target was last seen to hold. A state is derived, never
 * stored, so it cannot contradict what it stands on. What was not asked counts as present. Refuses
 * to confirm for a target it does not know.
 */
#include "config.h"

#include "tec/kbs/sync.h"

#include <string.h>

#include "tec/base/mem.h"
#include "tec/base/str.h"

#define TARGETS_MAX   32
#define LISTENERS_MAX 8

enum seen { SEEN_UNKNOWN = 0, SEEN_ABSENT, SEEN_WANTED, SEEN_OTHER };

struct entry {
	struct entry *next;
	uint64_t hash;
	enum kbs_sort sort;
	const struct kobj *holder; /* owned reference; NULL: a tombstone */
	uint8_t sha256[SHA256_LEN];
	uint8_t seen[TARGETS_MAX]; /* enum seen, by target */
	char name[];
};

struct kbs_sync {
	struct entry **buckets; /* owned; a power of two */
	size_t n_buckets, n_entries;
	char *target[TARGETS_MAX]; /* owned */
	size_t n_targets;
	struct {
		void (*fn)(void *arg, enum kbs_sort sort, const char *name);
		void *arg;
	} listener[LISTENERS_MAX];
	size_t n_listeners;
	size_t n_declared, n_confirmed, n_revoking; /* kept by tally() */
	struct strbuf why;
};

static enum kbs_far entry_far(const struct kbs_sync *s, const struct entry *e)
{
	enum seen want = e->holder ? SEEN_WANTED : SEEN_ABSENT;
	enum kbs_far far = e->holder ? KBS_FAR_PRESENT : KBS_FAR_ABSENT;

	for (size_t i = 0; i < s->n_targets; i++) {
		if (e->seen[i] == SEEN_UNKNOWN)
			return KBS_FAR_UNKNOWN;
		if (e->seen[i] != want)
			far = KBS_FAR_PENDING;
	}
	return far;
}

/* Around every change of an entry: once with -1 before it, once with +1 after it (unsigned wrap is
 * meant). */
static void tally(struct kbs_sync *s, const struct entry *e, size_t step)
{
	enum kbs_far far = entry_far(s, e);

	if (e->holder)
		s->n_declared += step;
	if (e->holder && s->n_targets && far == KBS_FAR_PRESENT)
		s->n_confirmed += step;
	if (!e->holder && far != KBS_FAR_ABSENT)
		s->n_revoking += step;
}
#define LESS ((size_t)-1)

/* Targets come and go rarely: count anew. */
static void tally_all(struct kbs_sync *s)
{
	s->n_declared = s->n_confirmed = s->n_revoking = 0;
	for (size_t b = 0; b < s->n_buckets; b++)
		for (const struct entry *e = s->buckets[b]; e; e = e->next)
			tally(s, e, 1);
}

struct kbs_sync *kbs_sync_new(void)
{
	struct kbs_sync *s = xcalloc(1, sizeof(*s));

	s->n_buckets = 64;
	s->buckets = xcalloc(s->n_buckets, sizeof(*s->buckets));
	return s;
}

static void entry_free(struct entry *e)
{
	kobj_unref(e->holder);
	free(e);
}

static void drop_entries(struct kbs_sync *s, bool tombstones_only)
{
	for (size_t i = 0; i < s->n_buckets; i++) {
		struct entry **pp = &s->buckets[i];

		while (*pp) {
			struct entry *e = *pp;

			if (tombstones_only && e->holder) {
				pp = &e->next;
				continue;
			}
			*pp = e->next;
			s->n_entries--;
			entry_free(e);
		}
	}
	tally_all(s);
}

void kbs_sync_free(struct kbs_sync *s)
{
	if (!s)
		return;
	drop_entries(s, false);
	for (size_t i = 0; i < s->n_targets; i++)
		free(s->target[i]);
	strbuf_fini(&s->why);
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

static void tell(struct kbs_sync *s, enum kbs_sort sort, const char *name)
{
	for (size_t i = 0; i < s->n_listeners; i++)
		s->listener[i].fn(s->listener[i].arg, sort, name);
}

/* ---- entries */

static uint64_t hash_of(enum kbs_sort sort, const char *name)
{
	return str_hash(name, strlen(name)) + (uint64_t)sort;
}

static struct entry *find(const struct kbs_sync *s, enum kbs_sort sort, const char *name)
{
	uint64_t hash = hash_of(sort, name);

	for (struct entry *e = s->buckets[hash & (s->n_buckets - 1)]; e; e = e->next)
		if (e->hash == hash && e->sort == sort && strcmp(e->name, name) == 0)
			return e;
	return NULL;
}

static void grow(struct kbs_sync *s)
{
	struct entry **old = s->buckets;
	size_t n_old = s->n_buckets;

	s->n_buckets *= 2;
	s->buckets = xcalloc(s->n_buckets, sizeof(*s->buckets));
	for (size_t i = 0; i < n_old; i++) {
		while (old[i]) {
			struct entry *e = old[i], **b = &s->buckets[e->hash & (s->n_buckets - 1)];

			old[i] = e->next;
			e->next = *b;
			*b = e;
		}
	}
	free(old);
}

static struct entry *find_or_add(struct kbs_sync *s, enum kbs_sort sort, const char *name)
{
	struct entry *e = find(s, sort, name), **b;
	size_t len = strlen(name);

	if (e)
		return e;
	if (s->n_entries >= s->n_buckets)
		grow(s);
	e = xcalloc(1, sizeof(*e) + len + 1);
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
static void wanted_changed(struct kbs_sync *s, struct entry *e)
{
	for (size_t i = 0; i < s->n_targets; i++)
		if (e->seen[i] == SEEN_WANTED)
			e->seen[i] = SEEN_OTHER;
}

bool kbs_sync_declare(struct kbs_sync *s, enum kbs_sort sort, const char *name,
	const struct kobj *holder, kbs_render_fn render)
{
	cleanup_secret struct secret *value = render(holder);
	struct entry *e = find_or_add(s, sort, name);
	const struct kobj *old = e->holder;
	uint8_t sha256[SHA256_LEN];
	bool changed;

	if (!value)
		DIE("kbs sync: the value of %s cannot be rendered", holder->name);
	secret_sha256(value, sha256);
	changed = !old || memcmp(e->sha256, sha256, SHA256_LEN) != 0;
	/* A newer object with the same value takes the older one's place, so that the older is not
	 * kept alive. */
	tally(s, e, LESS);
	e->holder = kobj_ref(holder);
	kobj_unref(old);
	if (changed) {
		wanted_changed(s, e);
		memcpy(e->sha256, sha256, SHA256_LEN);
	}
	tally(s, e, 1);
	if (changed)
		tell(s, sort, name);
	return changed;
}

bool kbs_sync_revoke(struct kbs_sync *s, enum kbs_sort sort, const char *name)
{
	struct entry *e = find(s, sort, name);

	if (e && !e->holder)
		return false;
	if (!e)
		e = find_or_add(s, sort, name);
	tally(s, e, LESS);
	kobj_unref(e->holder);
	e->holder = NULL;
	wanted_changed(s, e);
	tally(s, e, 1);
	tell(s, sort, name);
	return true;
}

void kbs_sync_forget(struct kbs_sync *s, enum kbs_sort sort, const char *name)
{
	struct entry *e = find(s, sort, name), **pp;

	if (!e)
		return;
	for (pp = &s->buckets[e->hash & (s->n_buckets - 1)]; *pp != e; pp = &(*pp)->next)
		;
	*pp = e->next;
	s->n_entries--;
	tally(s, e, LESS);
	entry_free(e);
}

/* ---- targets */

static int target_index(const struct kbs_sync *s, const char *target)
{
	for (size_t i = 0; i < s->n_targets; i++)
		if (strcmp(s->target[i], target) == 0)
			return (int)i;
	return -1;
}

void kbs_sync_target_add(struct kbs_sync *s, const char *target)
{
	if (target_index(s, target) >= 0)
		return;
	if (s->n_targets == TARGETS_MAX)
		DIE("kbs sync: more than %d targets", TARGETS_MAX);
	for (size_t b = 0; b < s->n_buckets; b++)
		for (struct entry *e = s->buckets[b]; e; e = e->next)
			e->seen[s->n_targets] = SEEN_UNKNOWN;
	s->target[s->n_targets++] = xstrdup(target);
	tally_all(s);
	tell(s, KBS_RESOURCE, NULL);
	tell(s, KBS_REFVALUE, NULL);
}

void kbs_sync_target_remove(struct kbs_sync *s, const char *target)
{
	int i = target_index(s, target);
	size_t last = s->n_targets - 1;

	if (i < 0)
		return;
	free(s->target[i]);
	s->target[i] = s->target[last];
	for (size_t b = 0; b < s->n_buckets; b++) {
		for (struct entry *e = s->buckets[b]; e; e = e->next) {
			e->seen[i] = e->seen[last];
			e->seen[last] = SEEN_UNKNOWN;
		}
	}
	s->n_targets = last;
	if (s->n_targets == 0)
		drop_entries(s, true);
	tally_all(s);
	tell(s, KBS_RESOURCE, NULL);
	tell(s, KBS_REFVALUE, NULL);
}

size_t kbs_sync_targets(const struct kbs_sync *s)
{
	return s->n_targets;
}

void kbs_sync_reset(struct kbs_sync *s)
{
	drop_entries(s, false);
	for (size_t i = 0; i < s->n_targets; i++)
		free(s->target[i]);
	s->n_targets = 0;
	tally_all(s);
}

void kbs_sync_confirm(struct kbs_sync *s, const char *target, enum kbs_sort sort, const char *name,
	const uint8_t sha256[SHA256_LEN])
{
	struct entry *e = find(s, sort, name);
	int i = target_index(s, target);
	enum seen seen;

	if (!e || i < 0)
		return;
	if (!sha256)
		seen = SEEN_ABSENT;
	else if (e->holder && memcmp(e->sha256, sha256, SHA256_LEN) == 0)
		seen = SEEN_WANTED;
	else
		seen = SEEN_OTHER;
	if (e->seen[i] == seen)
		return;
	tally(s, e, LESS);
	e->seen[i] = (uint8_t)seen;
	tally(s, e, 1);
	/* A copy: a listener may forget the entry, and with it the name. */
	cleanup_free char *copy = xstrdup(e->name);
	tell(s, sort, copy);
}

const char *kbs_sync_why(const struct kbs_sync *s)
{
	struct strbuf *why = (struct strbuf *)(uintptr_t)&s->why;

	strbuf_reset(why);
	if (s->n_targets == 0) {
		strbuf_adds(why, "No Trustee is administered.");
		return strbuf_str(why);
	}
	strbuf_adds(why, "No answer has come yet from Trustee at ");
	for (size_t i = 0; i < s->n_targets; i++)
		strbuf_addf(why, "%s%s", i ? ", " : "", s->target[i]);
	strbuf_addc(why, '.');
	return strbuf_str(why);
}

/* ---- questions */

enum kbs_far kbs_sync_far(const struct kbs_sync *s, enum kbs_sort sort, const char *name)
{
	const struct entry *e;

	if (s->n_targets == 0)
		return KBS_FAR_NONE;
	e = find(s, sort, name);
	return e ? entry_far(s, e) : KBS_FAR_UNKNOWN;
}

const struct kobj *kbs_sync_holder(const struct kbs_sync *s, enum kbs_sort sort, const char *name)
{
	const struct entry *e = find(s, sort, name);

	return e ? e->holder : NULL;
}

bool kbs_sync_is_declared(const struct kbs_sync *s, enum kbs_sort sort, const char *name,
	const uint8_t sha256[SHA256_LEN])
{
	const struct entry *e = find(s, sort, name);

	return e && e->holder && memcmp(e->sha256, sha256, SHA256_LEN) == 0;
}

bool kbs_sync_is_revoked(const struct kbs_sync *s, enum kbs_sort sort, const char *name)
{
	const struct entry *e = find(s, sort, name);

	return e && !e->holder;
}

void kbs_sync_counts(
	const struct kbs_sync *s, size_t *declared, size_t *confirmed, size_t *revoking)
{
	*declared = s->n_declared;
	*confirmed = s->n_confirmed;
	*revoking = s->n_revoking;
}
