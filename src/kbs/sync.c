/* SPDX-License-Identifier: MIT */
/*
 * One entry per (kind, name) in a hash table: what is desired (a value made from an object, or
 * nothing: it is revoked) and, per target, what that target was last seen to hold. The state of a
 * name is computed from these on request and never stored. A target that was not asked counts as
 * holding the value. Confirmations for an unknown target are ignored.
 *
 * What is left to send to each target is in queues, where an entry is at most once. It is added
 * when the target no longer holds what is desired, and checked again when it is taken out, so a
 * change costs the number of targets and never a scan. An entry revoked after it was queued for
 * delivery is in both queues, and is found among the revocations first.
 */
#include "config.h"

#include "kbs_internal.h"

#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/intern.h"
#include "tec/base/mem.h"

struct kbs_sync *kbs_sync_new(void)
{
	return xcalloc(1, sizeof(struct kbs_sync));
}

void kbs_sync_listen(
	struct kbs_sync *s, void (*fn)(void *arg, enum kbs_kind kind, const char *name), void *arg)
{
	if (s->n_listeners == KBS_LISTENERS_MAX)
		DIE("kbs sync: more than %d listeners", KBS_LISTENERS_MAX);
	s->listener[s->n_listeners++] = (struct kbs_listener){fn, arg};
}

/* Listeners may forget entries: callers must not use an entry after this. */
static void notify(struct kbs_sync *s, enum kbs_kind kind, const char *name)
{
	for (size_t i = 0; i < s->n_listeners; i++)
		s->listener[i].fn(s->listener[i].arg, kind, name);
}

static void notify_all(struct kbs_sync *s)
{
	notify(s, KBS_RESOURCE, NULL);
	notify(s, KBS_REFVALUE, NULL);
}

/* ---- the sum */

/* Add or subtract SHA-256(name, one zero byte, SHA-256(value)) modulo 2^256: independent of the
 * order. */
static void sum_change(
	struct kbs_sum *sum, const char *name, const uint8_t sha256[SHA256_LEN], bool plus)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	unsigned __int128 carry = plus ? 0 : 1; /* minus x is plus ~x plus 1 */
	uint8_t digest[SHA256_LEN];

	strbuf_add(&text, name, strlen(name) + 1);
	strbuf_add(&text, sha256, SHA256_LEN);
	bytes_sha256(strbuf_str(&text), text.len, digest);
	for (unsigned i = 0; i < 4; i++) {
		uint64_t x = 0;

		for (unsigned k = 0; k < 8; k++)
			x |= (uint64_t)digest[i * 8 + k] << (k * 8);
		carry += (unsigned __int128)sum->w[i] + (plus ? x : ~x);
		sum->w[i] = (uint64_t)carry;
		carry >>= 64;
	}
}

/* The mode is part of the sum, because it changes how identities are stored. */
void kbs_sync_sum(const struct kbs_sync *s, struct kbs_sum *out)
{
	const struct kbs_policies *p = &s->policies;
	uint8_t digest[SHA256_LEN];

	*out = s->sum;
	if (!p->attestation)
		return;
	bytes_sha256(p->attestation, strlen(p->attestation), digest);
	sum_change(out, p->shared ? "policy/shared" : "policy/attestation", digest, true);
	bytes_sha256(p->resource, strlen(p->resource), digest);
	sum_change(out, "policy/resource", digest, true);
}

/* Most significant digit first. */
void kbs_sum_hex(const struct kbs_sum *sum, char out[SHA256_HEX_LEN + 1])
{
	uint8_t bytes[SHA256_LEN];

	for (unsigned i = 0; i < SHA256_LEN; i++)
		bytes[i] = (uint8_t)(sum->w[3 - i / 8] >> (56 - i % 8 * 8));
	bytes_to_hex(bytes, SHA256_LEN, out);
}

/* ---- entries */

/* A path and a value may have the same name, so the kind is compared too; it is also part of the hash,
 * as both kinds share one table. */
struct kbs_entry *kbs_entry_find(const struct kbs_sync *s, enum kbs_kind kind, const char *name)
{
	struct kbs_entry *e;

	TABLE_WITH_HASH (e, link, &s->entries, table_hash_str(name) + (uint32_t)kind)
		if (e->kind == kind && strcmp(e->name, name) == 0)
			return e;
	return NULL;
}

/* Reference value names are interned, because the Secret's object holds the same text; a
 * resource path is stored in the entry. */
static struct kbs_entry *find_or_add(struct kbs_sync *s, enum kbs_kind kind, const char *name)
{
	struct kbs_entry *e = kbs_entry_find(s, kind, name);
	size_t len = strlen(name);

	if (e)
		return e;
	e = xcalloc(1, offsetof(struct kbs_entry, path) + (kind == KBS_RESOURCE ? len + 1 : 0));
	if (kind == KBS_RESOURCE)
		e->name = memcpy(e->path, name, len + 1);
	else
		e->name = intern_ref(name);
	e->kind = kind;
	table_add(&s->entries, &e->link, table_hash_str(name) + (uint32_t)kind);
	return e;
}

/* Takes a reference: cached objects are never modified. */
static struct kbs_object *object_new(const struct kobj *kobj, int64_t order)
{
	struct kbs_object *o = xcalloc(1, sizeof(*o));

	o->kobj = kobj_ref(kobj);
	o->order = order;
	return o;
}

static void objects_free(struct kbs_object *o)
{
	while (o) {
		struct kbs_object *next = o->next;

		kobj_unref(o->kobj);
		free(o);
		o = next;
	}
}

/* The link to the object with this name, or the end of the list. */
static struct kbs_object **object_at(struct kbs_object **list, const char *name)
{
	while (*list && strcmp((*list)->kobj->name, name) != 0)
		list = &(*list)->next;
	return list;
}

/* Frees an entry that is not in the table, not queued and not in flight. */
static void unpin(struct kbs_entry *e)
{
	if (!e->forgotten || e->queued[0] || e->queued[1] || e->in_flight)
		return;
	objects_free(e->objects);
	if (e->kind != KBS_RESOURCE)
		intern_unref(e->name);
	free(e);
}

/* Controllers declare only objects that render, so a failure is a bug. */
struct secret *kbs_object_render(const struct kbs_entry *e, const struct kbs_object *o)
{
	struct secret *value = e->render(o->kobj);

	if (!value)
		DIE("kbs sync: the value of %s cannot be rendered", o->kobj->name);
	return value;
}

/* A list is public (reference values), so the array is built in plain memory. */
struct secret *kbs_entry_render(const struct kbs_entry *e)
{
	cleanup_strbuf struct strbuf list = STRBUF_INIT;
	const struct kbs_object *o;

	if (!e->list)
		return kbs_object_render(e, e->objects);
	EACH_OBJECT (e, o) {
		cleanup_secret struct secret *value = kbs_object_render(e, o);

		strbuf_addc(&list, list.len ? ',' : '[');
		strbuf_add(&list, (const char *)secret_peek(value), secret_len(value));
	}
	strbuf_addc(&list, ']');
	return secret_new_copy(strbuf_str(&list), list.len);
}

/* The entry lives on while it is queued or in flight. */
static void entry_drop(struct kbs_sync *s, struct kbs_entry *e)
{
	table_remove(&s->entries, &e->link);
	if (e->objects)
		sum_change(&s->sum, e->name, e->sha256, false);
	e->forgotten = true;
	unpin(e);
}

static enum kbs_seen seen_of(const struct kbs_entry *e, unsigned t)
{
	return (enum kbs_seen)(e->seen >> 2 * t & 3);
}

/* Set without notifying listeners. */
static void note_seen(struct kbs_entry *e, unsigned t, enum kbs_seen seen)
{
	e->seen = (e->seen & ~(UINT64_C(3) << 2 * t)) | (uint64_t)seen << 2 * t;
}

/* Unknown differs from everything, so it is sent. */
static bool differs(const struct kbs_entry *e, unsigned t)
{
	return seen_of(e, t) != (e->objects ? KBS_SEEN_DESIRED : KBS_SEEN_ABSENT);
}

/* What holding this value means for the entry. sha256 NULL: the target holds nothing. */
static enum kbs_seen seen_as(const struct kbs_entry *e, const uint8_t *sha256)
{
	if (!sha256)
		return KBS_SEEN_ABSENT;
	return e->objects && memcmp(e->sha256, sha256, SHA256_LEN) == 0 ? KBS_SEEN_DESIRED
									: KBS_SEEN_OTHER;
}

/* Set what t holds and notify listeners, which may forget the entry: hence the copy of the name. */
void kbs_set_seen(struct kbs_sync *s, struct kbs_entry *e, unsigned t, enum kbs_seen seen)
{
	cleanup_free char *name = NULL;

	if (seen_of(e, t) == seen)
		return;
	note_seen(e, t, seen);
	if (e->forgotten)
		return;
	name = xstrdup(e->name);
	notify(s, e->kind, name);
}

/* Unknown wins over pending: the caller must treat the value as present. */
static enum kbs_observed observed_of(const struct kbs_sync *s, const struct kbs_entry *e)
{
	enum kbs_observed observed = e->objects ? KBS_OBSERVED_PRESENT : KBS_OBSERVED_ABSENT;

	EACH_TARGET (s, t) {
		if (seen_of(e, t) == KBS_SEEN_UNKNOWN)
			return KBS_OBSERVED_UNKNOWN;
		if (differs(e, t))
			observed = KBS_OBSERVED_PENDING;
	}
	return observed;
}

/* ---- queues */

/* Deferred, so that many changes in one turn wake the push once. */
void kbs_sync_wake(struct kbs_sync *s, unsigned t)
{
	struct kbs_target *x = &s->target[t];

	if (x->loop)
		defer_call(&x->work, x->loop, x->fn, x->arg);
}

/* Append to the ring, which doubles when it is full. */
static void queue_add(struct kbs_sync *s, unsigned t, struct kbs_entry *e)
{
	bool revoked = !e->objects;
	struct kbs_queue *q = &s->target[t].queue[e->kind][revoked];
	uint32_t bit = 1u << t;

	/* An entry in flight is checked when its request ends. */
	if (e->queued[revoked] & bit || e->in_flight & bit || !s->target[t].loop || !differs(e, t))
		return;
	e->queued[revoked] |= bit;
	if (q->n == q->cap) {
		size_t cap = q->cap ? q->cap * 2 : 64;
		struct kbs_entry **v = xcalloc(cap, sizeof(*v));

		for (size_t i = 0; i < q->n; i++)
			v[i] = q->v[(q->head + i) & (q->cap - 1)];
		free(q->v);
		*q = (struct kbs_queue){.v = v, .n = q->n, .cap = cap};
	}
	q->v[(q->head + q->n++) & (q->cap - 1)] = e;
}

/* Remove the head of a queue, which may free the entry. */
static void queue_pop(struct kbs_sync *s, unsigned t, enum kbs_kind kind, bool revoked)
{
	struct kbs_queue *q = &s->target[t].queue[kind][revoked];
	struct kbs_entry *e = q->v[q->head];

	q->head = (q->head + 1) & (q->cap - 1);
	if (--q->n == 0) { /* populating may have made it large */
		free(q->v);
		*q = (struct kbs_queue){0};
	}
	e->queued[revoked] &= ~(1u << t);
	unpin(e);
}

static void queue_clear(struct kbs_sync *s, unsigned t)
{
	for (unsigned i = 0; i < 4; i++)
		while (s->target[t].queue[i / 2][i % 2].n)
			queue_pop(s, t, i / 2, i % 2);
}

/* ---- desired */

/* Recompute the value after e's objects changed; false: it is unchanged. A target that held the
 * old value now holds a different one. name: e's own, because a listener may free the entry. */
static bool renew(struct kbs_sync *s, struct kbs_entry *e, const char *name, bool was_declared)
{
	cleanup_secret struct secret *value = e->objects ? kbs_entry_render(e) : NULL;
	uint8_t sha256[SHA256_LEN];

	if (value)
		secret_sha256(value, sha256);
	/* A relist renews every object; without a change no request must follow. */
	if (value && was_declared && memcmp(e->sha256, sha256, SHA256_LEN) == 0)
		return false;
	if (was_declared)
		sum_change(&s->sum, e->name, e->sha256, false);
	if (value) {
		memcpy(e->sha256, sha256, SHA256_LEN);
		sum_change(&s->sum, e->name, e->sha256, true);
	}
	s->changed_ms = clock_boot_ms();
	EACH_TARGET (s, t) {
		if (seen_of(e, t) == KBS_SEEN_DESIRED)
			note_seen(e, t, KBS_SEEN_OTHER);
		queue_add(s, t, e);
		kbs_sync_wake(s, t);
	}
	notify(s, (enum kbs_kind)e->kind, name);
	return true;
}

/* A newer object with the same value replaces the older one, so the older one does not stay in
 * memory. */
bool kbs_sync_declare(struct kbs_sync *s, enum kbs_kind kind, const char *name,
	const struct kobj *object, kbs_render_fn render)
{
	struct kbs_entry *e = find_or_add(s, kind, name);
	struct kbs_object *old = e->objects;
	bool was_declared = old != NULL;

	e->objects = object_new(object, 0);
	e->render = render;
	e->list = false;
	objects_free(old);
	return renew(s, e, name, was_declared);
}

/* Replace the object with the same name, or insert it in order. */
bool kbs_sync_declare_in(struct kbs_sync *s, enum kbs_kind kind, const char *name,
	const struct kobj *object, int64_t order, kbs_render_fn render)
{
	struct kbs_entry *e = find_or_add(s, kind, name);
	struct kbs_object *o = object_new(object, order),
			  **at = object_at(&e->objects, object->name), *old = *at;
	bool was_declared = e->objects != NULL;

	if (old) {
		*at = old->next;
		old->next = NULL;
	}
	/* The uid breaks ties, so that all processes sort alike. */
	at = &e->objects;
	while (*at && ((*at)->order != order ? (*at)->order < order
					     : strcmp((*at)->kobj->uid, object->uid) < 0))
		at = &(*at)->next;
	o->next = *at;
	*at = o;
	e->render = render;
	e->list = true;
	objects_free(old);
	return renew(s, e, name, was_declared);
}

/* taken_back makes an early withdrawal be sent once more, as a revocation is. */
bool kbs_sync_withdraw(struct kbs_sync *s, enum kbs_kind kind, const char *name, const char *object)
{
	struct kbs_entry *e = kbs_entry_find(s, kind, name);
	struct kbs_object **at, *old;

	if (!e || !e->objects)
		return kbs_sync_revoke(s, kind, name);
	at = object_at(&e->objects, object);
	old = *at;
	if (!old)
		return false;
	/* The last object: the name itself is revoked. */
	if (old == e->objects && !old->next)
		return kbs_sync_revoke(s, kind, name);
	*at = old->next;
	old->next = NULL;
	objects_free(old);
	e->taken_back = true;
	return renew(s, e, name, true);
}

/* A name that was never declared is revoked too: an earlier process may have sent it. */
bool kbs_sync_revoke(struct kbs_sync *s, enum kbs_kind kind, const char *name)
{
	struct kbs_entry *e = kbs_entry_find(s, kind, name);
	bool was_declared = e && e->objects;

	if (e && !was_declared)
		return false;
	e = e ? e : find_or_add(s, kind, name);
	objects_free(steal_ptr(&e->objects));
	return renew(s, e, name, was_declared);
}

void kbs_sync_forget(struct kbs_sync *s, enum kbs_kind kind, const char *name)
{
	struct kbs_entry *e = kbs_entry_find(s, kind, name);

	if (e)
		entry_drop(s, e);
}

/* Texts are static, so pointers are compared. */
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

/* ---- queries */

/* A name that is unknown here was never asked about, so it may be present. */
enum kbs_observed kbs_sync_observed(const struct kbs_sync *s, enum kbs_kind kind, const char *name)
{
	const struct kbs_entry *e;

	if (!s->targets)
		return KBS_OBSERVED_NONE;
	e = kbs_entry_find(s, kind, name);
	return e ? observed_of(s, e) : KBS_OBSERVED_UNKNOWN;
}

const struct kobj *kbs_sync_object_at(
	const struct kbs_sync *s, enum kbs_kind kind, const char *name, unsigned i)
{
	const struct kbs_entry *e = kbs_entry_find(s, kind, name);
	const struct kbs_object *o = e ? e->objects : NULL;

	while (o && i--)
		o = o->next;
	return o ? o->kobj : NULL;
}

const struct kobj *kbs_sync_object(const struct kbs_sync *s, enum kbs_kind kind, const char *name)
{
	return kbs_sync_object_at(s, kind, name, 0);
}

const struct kobj *kbs_sync_object_in(const struct kbs_sync *s, enum kbs_kind kind,
	const char *name, const char *object, bool *has_place)
{
	const struct kbs_entry *e = kbs_entry_find(s, kind, name);
	const struct kbs_object *o = e ? e->objects : NULL;
	unsigned i = 0;

	for (; o && strcmp(o->kobj->name, object) != 0; o = o->next)
		i++;
	if (has_place)
		*has_place = o && i < KBS_LIST_MAX;
	return o ? o->kobj : NULL;
}

/* The value is present everywhere, but without an object that waits for a place. */
enum kbs_observed kbs_sync_observed_in(
	const struct kbs_sync *s, enum kbs_kind kind, const char *name, const char *object)
{
	enum kbs_observed observed = kbs_sync_observed(s, kind, name);
	bool has_place;

	(void)kbs_sync_object_in(s, kind, name, object, &has_place);
	return observed == KBS_OBSERVED_PRESENT && !has_place ? KBS_OBSERVED_ABSENT : observed;
}

bool kbs_sync_is_revoked(const struct kbs_sync *s, enum kbs_kind kind, const char *name)
{
	const struct kbs_entry *e = kbs_entry_find(s, kind, name);

	return e && !e->objects;
}

bool kbs_sync_desired(
	const struct kbs_sync *s, enum kbs_kind kind, const char *name, uint8_t sha256[SHA256_LEN])
{
	const struct kbs_entry *e = kbs_entry_find(s, kind, name);

	if (!e || !e->objects)
		return false;
	memcpy(sha256, e->sha256, SHA256_LEN);
	return true;
}

void kbs_sync_names(const struct kbs_sync *s, enum kbs_kind kind,
	void (*fn)(void *arg, const char *name), void *arg)
{
	cleanup_strbuf struct strbuf names = STRBUF_INIT;
	struct kbs_entry *e;

	EACH_ENTRY (s, e)
		if (e->kind == kind)
			strbuf_add(&names, e->name, strlen(e->name) + 1);
	for (size_t at = 0; at < names.len; at += strlen(names.data + at) + 1)
		fn(arg, names.data + at);
}

/* A scan over all entries: for status only, not for decisions. */
void kbs_sync_counts(
	const struct kbs_sync *s, size_t *declared, size_t *confirmed, size_t *revoking)
{
	struct kbs_entry *e;

	*declared = *confirmed = *revoking = 0;
	EACH_ENTRY (s, e) {
		enum kbs_observed observed = observed_of(s, e);

		*declared += e->objects != NULL;
		*confirmed += e->objects && s->targets && observed == KBS_OBSERVED_PRESENT;
		*revoking += !e->objects && observed != KBS_OBSERVED_ABSENT;
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

/* A new target knows nothing, which makes every name UNKNOWN until it is probed. */
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
	s->target[t] = (struct kbs_target){.name = xstrdup(name), .state = KBS_TARGET_PROBING};
	EACH_ENTRY (s, e)
		note_seen(e, t, KBS_SEEN_UNKNOWN);
	notify_all(s);
}

/* Free the slot. Its bits in the entries are reset when the slot is used again. */
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

/* Without targets a revocation has nobody to confirm it, so revoked names are dropped. */
void kbs_sync_target_remove(struct kbs_sync *s, const char *name)
{
	int t = find(s, name);
	struct kbs_entry *e;

	if (t < 0)
		return;
	target_clear(s, (unsigned)t);
	if (!s->targets)
		EACH_ENTRY (s, e)
			if (!e->objects)
				entry_drop(s, e);
	notify_all(s);
}

/* Listeners are not called: the controllers stop with the leadership. */
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

/* From here on the queues of this target fill; without a push they stay empty. */
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

/* Only a change is reported: every object is examined again after it. */
void kbs_sync_set_status(struct kbs_sync *s, const char *name, enum kbs_target_state state,
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
	notify_all(s);
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

bool kbs_sync_target_differs(
	const struct kbs_sync *s, unsigned i, enum kbs_kind kind, const char *name)
{
	const struct kbs_entry *e = kbs_entry_find(s, kind, name);

	EACH_TARGET (s, t)
		if (i-- == 0)
			return !e || differs(e, t);
	return false;
}

/* First the states that need a person. */
enum kbs_target_state kbs_sync_state(const struct kbs_sync *s)
{
	static const int badness[] = {[KBS_TARGET_CONFLICT] = 5,
		[KBS_TARGET_REFUSED] = 4,
		[KBS_TARGET_UNREACHABLE] = 3,
		[KBS_TARGET_POPULATING] = 2,
		[KBS_TARGET_PROBING] = 1,
		[KBS_TARGET_IN_SYNC] = 0};
	enum kbs_target_state worst = s->targets ? KBS_TARGET_IN_SYNC : KBS_TARGET_UNREACHABLE;

	EACH_TARGET (s, t)
		if (badness[s->target[t].state] > badness[worst])
			worst = s->target[t].state;
	return worst;
}

/* The hash is compared with what is desired now, which may have changed since the request. */
void kbs_sync_confirm(struct kbs_sync *s, const char *target, enum kbs_kind kind, const char *name,
	const uint8_t sha256[SHA256_LEN])
{
	struct kbs_entry *e = kbs_entry_find(s, kind, name);
	int t = find(s, target);

	if (e && t >= 0)
		kbs_set_seen(s, e, (unsigned)t, seen_as(e, sha256));
}

/* Queue the entry again unless a listener has forgotten it. */
void kbs_sync_set_unknown(
	struct kbs_sync *s, const char *target, enum kbs_kind kind, const char *name)
{
	struct kbs_entry *e = kbs_entry_find(s, kind, name);
	int t = find(s, target);

	if (!e || t < 0)
		return;
	kbs_set_seen(s, e, (unsigned)t, KBS_SEEN_UNKNOWN);
	e = kbs_entry_find(s, kind, name); /* a listener may have forgotten it */
	if (e)
		queue_add(s, (unsigned)t, e);
	kbs_sync_wake(s, (unsigned)t);
}

/* ---- for a push */

void kbs_sync_detach(struct kbs_sync *s, unsigned t)
{
	queue_clear(s, t);
	defer_cancel(&s->target[t].work);
	s->target[t].loop = NULL;
}

/* Set all entries at once after a probe: everything declared is confirmed, or everything is
 * unknown. */
void kbs_sync_assume(struct kbs_sync *s, unsigned t, bool confirmed)
{
	struct kbs_entry *e;

	if (confirmed)
		queue_clear(s, t);
	EACH_ENTRY (s, e) {
		note_seen(e, t, confirmed && e->objects ? KBS_SEEN_DESIRED : KBS_SEEN_UNKNOWN);
		queue_add(s, t, e);
	}
	if (confirmed)
		notify_all(s);
}

/* The next entry to send, revocations first; outdated ones are removed on the way. NULL: none. */
struct kbs_entry *kbs_sync_peek(struct kbs_sync *s, unsigned t, enum kbs_kind kind)
{
	for (int revoked = 1; revoked >= 0; revoked--) {
		struct kbs_queue *q = &s->target[t].queue[kind][revoked];

		/* Dropping a head may free its entry, so e is read anew each time. */
		for (; q->n; queue_pop(s, t, kind, revoked)) {
			struct kbs_entry *e = q->v[q->head];

			/* An entry in flight is checked when its request ends. */
			if (!e->forgotten && !(e->in_flight & 1u << t) && differs(e, t))
				return e;
		}
	}
	return NULL;
}

void kbs_sync_take(struct kbs_sync *s, unsigned t, struct kbs_entry *e)
{
	e->in_flight |= 1u << t;
	queue_pop(s, t, e->kind, s->target[t].queue[e->kind][1].n > 0);
	/* A revocation during this request must not count as confirmed: the request may still
	 * create the value. */
	if (seen_of(e, t) == KBS_SEEN_ABSENT)
		note_seen(e, t, KBS_SEEN_OTHER);
}

/* Record the answer, and queue the entry again if the desired value changed meanwhile. */
void kbs_sync_finish(
	struct kbs_sync *s, unsigned t, struct kbs_entry *e, bool confirmed, const uint8_t *sha256)
{
	/* It is not freed while listeners run, which may forget it. */
	kbs_set_seen(s, e, t, confirmed ? seen_as(e, sha256) : KBS_SEEN_UNKNOWN);
	e->in_flight &= ~(1u << t);
	if (!e->forgotten)
		queue_add(s, t, e);
	unpin(e);
}

/* For comparing with what the target returns. */
struct secret *kbs_sync_confirmed(
	const struct kbs_sync *s, unsigned t, enum kbs_kind kind, const char *name)
{
	const struct kbs_entry *e = kbs_entry_find(s, kind, name);

	if (!e || !e->objects || e->in_flight & 1u << t || seen_of(e, t) != KBS_SEEN_DESIRED)
		return NULL;
	return kbs_entry_render(e);
}
