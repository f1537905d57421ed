/* SPDX-License-Identifier: MIT */
/*
 * What is left to send to each target, and the sum of what is desired. An entry is at most once in
 * each queue of a target. It is added when the target no longer holds what is desired, and checked
 * again when it is taken out, so a change costs the number of targets and never a scan. An entry
 * revoked after it was queued for delivery is in both queues, and is found among the revocations
 * first.
 */
#include "config.h"

#include <string.h>

#include "kbs_internal.h"
#include "tec/base/mem.h"

/* ---- the sum */

/* Add or subtract SHA-256(name, one zero byte, SHA-256(value)) modulo 2^256: independent of the
 * order. */
void kbs_sum_change(
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
	kbs_sum_change(out, p->shared ? "policy/shared" : "policy/attestation", digest, true);
	bytes_sha256(p->resource, strlen(p->resource), digest);
	kbs_sum_change(out, "policy/resource", digest, true);
}

/* Most significant digit first. */
void kbs_sum_hex(const struct kbs_sum *sum, char out[SHA256_HEX_LEN + 1])
{
	uint8_t bytes[SHA256_LEN];

	for (unsigned i = 0; i < SHA256_LEN; i++)
		bytes[i] = (uint8_t)(sum->w[3 - i / 8] >> (56 - i % 8 * 8));
	bytes_to_hex(bytes, SHA256_LEN, out);
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
void kbs_queue_add(struct kbs_sync *s, unsigned t, struct kbs_entry *e)
{
	bool revoked = !e->objects;
	struct kbs_queue *q = &s->target[t].queue[e->kind][revoked];
	uint32_t bit = 1u << t;

	/* An entry in flight is checked when its request ends. */
	if (e->queued[revoked] & bit || e->in_flight & bit || !s->target[t].loop ||
		!kbs_entry_differs(e, t))
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
	kbs_entry_unpin(e);
}

static void queue_clear(struct kbs_sync *s, unsigned t)
{
	for (unsigned i = 0; i < 4; i++)
		while (s->target[t].queue[i / 2][i % 2].n)
			queue_pop(s, t, i / 2, i % 2);
}

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
		kbs_seen_note(e, t, confirmed && e->objects ? KBS_SEEN_DESIRED : KBS_SEEN_UNKNOWN);
		kbs_queue_add(s, t, e);
	}
	if (confirmed)
		kbs_notify_all(s);
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
			if (!e->forgotten && !(e->in_flight & 1u << t) && kbs_entry_differs(e, t))
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
	if (kbs_seen_of(e, t) == KBS_SEEN_ABSENT)
		kbs_seen_note(e, t, KBS_SEEN_OTHER);
}

/* Record the answer, and queue the entry again if the desired value changed meanwhile. */
void kbs_sync_finish(
	struct kbs_sync *s, unsigned t, struct kbs_entry *e, bool confirmed, const uint8_t *sha256)
{
	/* It is not freed while listeners run, which may forget it. */
	kbs_set_seen(s, e, t, confirmed ? kbs_entry_seen(e, sha256) : KBS_SEEN_UNKNOWN);
	e->in_flight &= ~(1u << t);
	if (!e->forgotten)
		kbs_queue_add(s, t, e);
	kbs_entry_unpin(e);
}

/* For comparing with what the target returns. */
struct secret *kbs_sync_confirmed(
	const struct kbs_sync *s, unsigned t, enum kbs_kind kind, const char *name)
{
	const struct kbs_entry *e = kbs_entry_find(s, kind, name);

	if (!e || !e->objects || e->in_flight & 1u << t || kbs_seen_of(e, t) != KBS_SEEN_DESIRED)
		return NULL;
	return kbs_entry_render(e);
}
