/* SPDX-License-Identifier: MIT */
/*
 * One entry per (kind, name) in a hash table: what is wanted (a value, given by an object, or
 * nothing: it is revoked) and, per target, what that target was last seen to hold. The state of a
 * name is computed from these when it is asked for and never stored. What a target was not asked
 * about counts as present. Refuses to confirm for an unknown target.
 */
#include "config.h"

#include <string.h>

#include "kbs_internal.h"
#include "tec/base/clock.h"
#include "tec/base/mem.h"

struct kbs_sync *kbs_sync_new(void)
{
	return xcalloc(1, sizeof(struct kbs_sync));
}

void kbs_sync_listen(
	struct kbs_sync *s, void (*fn)(void *arg, enum kbs_sort sort, const char *name), void *arg)
{
	if (s->n_listeners == KBS_LISTENERS_MAX)
		DIE("kbs sync: more than %d listeners", KBS_LISTENERS_MAX);
	s->listener[s->n_listeners].fn = fn;
	s->listener[s->n_listeners].arg = arg;
	s->n_listeners++;
}

static void notify(struct kbs_sync *s, enum kbs_sort sort, const char *name)
{
	for (size_t i = 0; i < s->n_listeners; i++)
		s->listener[i].fn(s->listener[i].arg, sort, name);
}

void kbs_notify_all(struct kbs_sync *s)
{
	notify(s, KBS_RESOURCE, NULL);
	notify(s, KBS_REFVALUE, NULL);
}

/* ---- entries */

static uint32_t hash_of(enum kbs_sort sort, const char *name)
{
	return table_hash_str(name) + (uint32_t)sort;
}

struct kbs_entry *kbs_entry_find(const struct kbs_sync *s, enum kbs_sort sort, const char *name)
{
	struct kbs_entry *e;

	TABLE_WITH_HASH (e, link, &s->entries, hash_of(sort, name))
		if (e->sort == sort && strcmp(e->name, name) == 0)
			return e;
	return NULL;
}

static struct kbs_entry *find_or_add(struct kbs_sync *s, enum kbs_sort sort, const char *name)
{
	struct kbs_entry *e = kbs_entry_find(s, sort, name);
	size_t len = strlen(name);

	if (e)
		return e;
	e = xcalloc(1, offsetof(struct kbs_entry, name) + len + 1);
	memcpy(e->name, name, len);
	e->sort = sort;
	table_add(&s->entries, &e->link, hash_of(sort, name));
	return e;
}

/* Frees an entry that is not in the table, not queued and not in flight. */
void kbs_entry_unpin(struct kbs_entry *e)
{
	if (!e->forgotten || e->queued[0] || e->queued[1] || e->in_flight)
		return;
	kobj_unref(e->holder);
	free(e);
}

static void entry_drop(struct kbs_sync *s, struct kbs_entry *e)
{
	table_remove(&s->entries, &e->link);
	if (e->holder)
		kbs_sum_change(&s->sum, e, false);
	e->forgotten = true;
	kbs_entry_unpin(e);
}

bool kbs_entry_differs(const struct kbs_entry *e, unsigned t)
{
	return e->seen[t] != (e->holder ? KBS_SEEN_DESIRED : KBS_SEEN_ABSENT);
}

enum kbs_seen kbs_entry_seen(const struct kbs_entry *e, const uint8_t *sha256)
{
	if (!sha256)
		return KBS_SEEN_ABSENT;
	return e->holder && memcmp(e->sha256, sha256, SHA256_LEN) == 0 ? KBS_SEEN_DESIRED
								       : KBS_SEEN_OTHER;
}

/* A copy of the name: a listener may forget the entry. */
void kbs_set_seen(struct kbs_sync *s, struct kbs_entry *e, unsigned t, enum kbs_seen seen)
{
	cleanup_free char *name = NULL;

	if (e->seen[t] == seen)
		return;
	e->seen[t] = (uint8_t)seen;
	if (e->forgotten)
		return;
	name = xstrdup(e->name);
	notify(s, e->sort, name);
}

static enum kbs_far observed_of(const struct kbs_sync *s, const struct kbs_entry *e)
{
	enum kbs_far observed = e->holder ? KBS_FAR_PRESENT : KBS_FAR_ABSENT;

	EACH_TARGET (s, t) {
		if (e->seen[t] == KBS_SEEN_UNKNOWN)
			return KBS_FAR_UNKNOWN;
		if (kbs_entry_differs(e, t))
			observed = KBS_FAR_PENDING;
	}
	return observed;
}

/* ---- what is wanted */

/* Makes another value (sha256), or none, the wanted one of e. A target that was seen to hold the
 * old one now holds a different one. */
static void want(struct kbs_sync *s, struct kbs_entry *e, const struct kobj *holder,
	kbs_render_fn render, const uint8_t *sha256)
{
	if (e->holder)
		kbs_sum_change(&s->sum, e, false);
	kobj_unref(e->holder);
	e->holder = holder ? kobj_ref(holder) : NULL;
	e->render = render;
	if (holder) {
		memcpy(e->sha256, sha256, SHA256_LEN);
		kbs_sum_change(&s->sum, e, true);
	}
	s->changed_ms = clock_boot_ms();
	EACH_TARGET (s, t) {
		if (e->seen[t] == KBS_SEEN_DESIRED)
			e->seen[t] = KBS_SEEN_OTHER;
		kbs_queue_add(s, t, e);
		kbs_sync_wake(s, t);
	}
}

bool kbs_sync_declare(struct kbs_sync *s, enum kbs_sort sort, const char *name,
	const struct kobj *holder, kbs_render_fn render)
{
	cleanup_secret struct secret *value = render(holder);
	struct kbs_entry *e = find_or_add(s, sort, name);
	const struct kobj *old = e->holder;
	uint8_t sha256[SHA256_LEN];

	if (!value)
		DIE("kbs sync: the value of %s cannot be rendered", holder->name);
	secret_sha256(value, sha256);
	if (old && memcmp(e->sha256, sha256, SHA256_LEN) == 0) {
		/* A newer object with the same value replaces the older one, so that the older one is
		 * not kept in memory. */
		e->holder = kobj_ref(holder);
		e->render = render;
		kobj_unref(old);
		return false;
	}
	want(s, e, holder, render, sha256);
	notify(s, sort, name);
	return true;
}

bool kbs_sync_revoke(struct kbs_sync *s, enum kbs_sort sort, const char *name)
{
	struct kbs_entry *e = kbs_entry_find(s, sort, name);

	if (e && !e->holder)
		return false;
	want(s, e ? e : find_or_add(s, sort, name), NULL, NULL, NULL);
	notify(s, sort, name);
	return true;
}

void kbs_sync_forget(struct kbs_sync *s, enum kbs_sort sort, const char *name)
{
	struct kbs_entry *e = kbs_entry_find(s, sort, name);

	if (e)
		entry_drop(s, e);
}

void kbs_sync_policies(
	struct kbs_sync *s, const char *attestation, const char *resource, bool shared)
{
	if (s->policies.attestation == attestation && s->policies.resource == resource &&
		s->policies.shared == shared)
		return;
	s->policies = (struct kbs_policies){attestation, resource, shared};
	s->changed_ms = clock_boot_ms();
	EACH_TARGET (s, t)
		kbs_sync_wake(s, t);
}

/* ---- questions */

enum kbs_far kbs_sync_far(const struct kbs_sync *s, enum kbs_sort sort, const char *name)
{
	const struct kbs_entry *e;

	if (!s->targets)
		return KBS_FAR_NONE;
	e = kbs_entry_find(s, sort, name);
	return e ? observed_of(s, e) : KBS_FAR_UNKNOWN;
}

const struct kobj *kbs_sync_holder(const struct kbs_sync *s, enum kbs_sort sort, const char *name)
{
	const struct kbs_entry *e = kbs_entry_find(s, sort, name);

	return e ? e->holder : NULL;
}

bool kbs_sync_is_revoked(const struct kbs_sync *s, enum kbs_sort sort, const char *name)
{
	const struct kbs_entry *e = kbs_entry_find(s, sort, name);

	return e && !e->holder;
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

void kbs_sync_names(const struct kbs_sync *s, enum kbs_sort sort,
	void (*fn)(void *arg, const char *name), void *arg)
{
	cleanup_strbuf struct strbuf names = STRBUF_INIT;
	struct kbs_entry *e;

	EACH_ENTRY (s, e)
		if (e->sort == sort)
			strbuf_add(&names, e->name, strlen(e->name) + 1);
	for (size_t at = 0; at < names.len; at += strlen(names.data + at) + 1)
		fn(arg, names.data + at);
}

void kbs_sync_counts(
	const struct kbs_sync *s, size_t *declared, size_t *confirmed, size_t *revoking)
{
	struct kbs_entry *e;

	*declared = *confirmed = *revoking = 0;
	EACH_ENTRY (s, e) {
		enum kbs_far observed = observed_of(s, e);

		*declared += e->holder != NULL;
		*confirmed += e->holder && s->targets && observed == KBS_FAR_PRESENT;
		*revoking += !e->holder && observed != KBS_FAR_ABSENT;
	}
}

/* ---- targets */

static int find(const struct kbs_sync *s, const char *name)
{
	EACH_TARGET (s, t)
		if (strcmp(s->target[t].name, name) == 0)
			return (int)t;
	return -1;
}

void kbs_sync_target_add(struct kbs_sync *s, const char *name)
{
	unsigned t = 0;
	struct kbs_entry *e;

	if (find(s, name) >= 0)
		return;
	while (t < KBS_TARGETS_MAX && s->targets & 1u << t)
		t++;
	if (t == KBS_TARGETS_MAX)
		DIE("kbs sync: more than %d targets", KBS_TARGETS_MAX);
	s->targets |= 1u << t;
	s->target[t] = (struct kbs_target){.name = xstrdup(name), .state = KBS_TARGET_ASKING};
	EACH_ENTRY (s, e)
		e->seen[t] = KBS_SEEN_UNKNOWN;
	kbs_notify_all(s);
}

static void target_clear(struct kbs_sync *s, unsigned t)
{
	struct kbs_target *x = &s->target[t];

	kbs_sync_detach(s, t);
	s->targets &= ~(1u << t);
	free(x->name);
	free(x->error);
	free(x->text);
	memset(x, 0, sizeof(*x));
}

void kbs_sync_target_remove(struct kbs_sync *s, const char *name)
{
	int t = find(s, name);
	struct kbs_entry *e;

	if (t < 0)
		return;
	target_clear(s, (unsigned)t);
	if (!s->targets)
		EACH_ENTRY (s, e)
			if (!e->holder)
				entry_drop(s, e);
	kbs_notify_all(s);
}

void kbs_sync_reset(struct kbs_sync *s)
{
	struct kbs_entry *e;

	EACH_TARGET (s, t)
		target_clear(s, t);
	EACH_ENTRY (s, e)
		entry_drop(s, e);
}

void kbs_sync_free(struct kbs_sync *s)
{
	if (!s)
		return;
	kbs_sync_reset(s);
	table_fini(&s->entries);
	free(s);
}

unsigned kbs_sync_attach(
	struct kbs_sync *s, const char *name, struct loop *l, loop_fn fn, void *arg)
{
	int t;

	kbs_sync_target_add(s, name);
	t = find(s, name);
	s->target[t].loop = l;
	s->target[t].fn = fn;
	s->target[t].arg = arg;
	return (unsigned)t;
}

void kbs_sync_target_says(struct kbs_sync *s, const char *name, enum kbs_target_state state,
	const char *error, const char *text)
{
	int t = find(s, name);
	struct kbs_target *x = t < 0 ? NULL : &s->target[t];

	if (!x || (x->state == state && str_eq(x->error, error) && str_eq(x->text, text)))
		return;
	x->state = state;
	free(x->error);
	x->error = xstrdup(error);
	free(x->text);
	x->text = xstrdup(text);
	kbs_notify_all(s);
}

bool kbs_sync_target(const struct kbs_sync *s, unsigned i, struct kbs_target_status *out)
{
	EACH_TARGET (s, t)
		if (i-- == 0) {
			const struct kbs_target *x = &s->target[t];

			*out = (struct kbs_target_status){x->name, x->state, x->error, x->text};
			return true;
		}
	return false;
}

bool kbs_sync_target_lacks(
	const struct kbs_sync *s, unsigned i, enum kbs_sort sort, const char *name)
{
	const struct kbs_entry *e = kbs_entry_find(s, sort, name);

	EACH_TARGET (s, t)
		if (i-- == 0)
			return !e || kbs_entry_differs(e, t);
	return false;
}

enum kbs_target_state kbs_sync_state(const struct kbs_sync *s)
{
	static const int badness[] = {[KBS_TARGET_REFUSED] = 4,
		[KBS_TARGET_WAITING] = 3,
		[KBS_TARGET_POPULATING] = 2,
		[KBS_TARGET_ASKING] = 1,
		[KBS_TARGET_IN_SYNC] = 0};
	enum kbs_target_state worst = s->targets ? KBS_TARGET_IN_SYNC : KBS_TARGET_WAITING;

	EACH_TARGET (s, t)
		if (badness[s->target[t].state] > badness[worst])
			worst = s->target[t].state;
	return worst;
}

void kbs_sync_confirm(struct kbs_sync *s, const char *target, enum kbs_sort sort, const char *name,
	const uint8_t sha256[SHA256_LEN])
{
	struct kbs_entry *e = kbs_entry_find(s, sort, name);
	int t = find(s, target);

	if (e && t >= 0)
		kbs_set_seen(s, e, (unsigned)t, kbs_entry_seen(e, sha256));
}

void kbs_sync_doubt(struct kbs_sync *s, const char *target, enum kbs_sort sort, const char *name)
{
	struct kbs_entry *e = kbs_entry_find(s, sort, name);
	int t = find(s, target);

	if (!e || t < 0)
		return;
	kbs_set_seen(s, e, (unsigned)t, KBS_SEEN_UNKNOWN);
	e = kbs_entry_find(s, sort, name); /* a listener may have forgotten it */
	if (e)
		kbs_queue_add(s, (unsigned)t, e);
	kbs_sync_wake(s, (unsigned)t);
}
