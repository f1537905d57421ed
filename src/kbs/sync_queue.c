/* SPDX-License-Identifier: MIT */
/*
 * What a target still has to be told, and the sum of what is wanted. An entry stands at most once
 * in each of a target's queues; it is put there when it begins to differ and looked at again when
 * it is taken out, so a change costs the number of targets and never a scan. What is revoked after
 * it was queued is in both, and found among the revocations first.
 */
#include "config.h"

#include <string.h>

#include "kbs_internal.h"
#include "tec/base/mem.h"

/* ---- the sum */

/* Plus or minus SHA-256(name, one zero byte, SHA-256(value)). */
static void change(
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

void kbs_sum_change(struct kbs_sum *sum, const struct kbs_entry *e, bool declared)
{
	change(sum, e->name, e->sha256, declared);
}

void kbs_sync_sum(const struct kbs_sync *s, struct kbs_sum *out)
{
	const struct kbs_policies *p = &s->policies;
	uint8_t digest[SHA256_LEN];

	*out = s->sum;
	if (!p->attestation)
		return;
	bytes_sha256(p->attestation, strlen(p->attestation), digest);
	change(out, p->shared ? "policy/shared" : "policy/attestation", digest, true);
	bytes_sha256(p->resource, strlen(p->resource), digest);
	change(out, "policy/resource", digest, true);
}

void kbs_sum_hex(const struct kbs_sum *sum, char out[SHA256_HEX_LEN + 1])
{
	uint8_t bytes[SHA256_LEN];

	for (unsigned i = 0; i < SHA256_LEN; i++)
		bytes[i] = (uint8_t)(sum->w[3 - i / 8] >> (56 - i % 8 * 8));
	bytes_to_hex(bytes, SHA256_LEN, out);
}

/* ---- queues */

void kbs_sync_wake(struct kbs_sync *s, unsigned t)
{
	struct kbs_target *x = &s->target[t];

	if (x->loop)
		defer_call(&x->work, x->loop, x->fn, x->arg);
}

void kbs_todo_add(struct kbs_sync *s, unsigned t, struct kbs_entry *e)
{
	bool revoked = !e->holder;
	struct kbs_todo *q = &s->target[t].todo[e->sort][revoked];
	uint32_t bit = 1u << t;

	/* In flight: landing looks at it. */
	if (e->queued[revoked] & bit || e->flying & bit || !s->target[t].loop ||
		!kbs_entry_differs(e, t))
		return;
	e->queued[revoked] |= bit;
	if (q->n == q->cap) {
		size_t cap = q->cap ? q->cap * 2 : 64;
		struct kbs_entry **v = xcalloc(cap, sizeof(*v));

		for (size_t i = 0; i < q->n; i++)
			v[i] = q->v[(q->head + i) & (q->cap - 1)];
		free(q->v);
		*q = (struct kbs_todo){.v = v, .n = q->n, .cap = cap};
	}
	q->v[(q->head + q->n++) & (q->cap - 1)] = e;
}

/* The first one. May free it. */
static void todo_pop(struct kbs_sync *s, unsigned t, enum kbs_sort sort, bool revoked)
{
	struct kbs_todo *q = &s->target[t].todo[sort][revoked];
	struct kbs_entry *e = q->v[q->head];

	q->head = (q->head + 1) & (q->cap - 1);
	if (--q->n == 0) { /* as large as the last populating: given back */
		free(q->v);
		*q = (struct kbs_todo){0};
	}
	e->queued[revoked] &= ~(1u << t);
	kbs_entry_unpin(e);
}

static void todo_clear(struct kbs_sync *s, unsigned t)
{
	for (unsigned i = 0; i < 4; i++)
		while (s->target[t].todo[i / 2][i % 2].n)
			todo_pop(s, t, i / 2, i % 2);
}

void kbs_sync_detach(struct kbs_sync *s, unsigned t)
{
	todo_clear(s, t);
	defer_cancel(&s->target[t].work);
	s->target[t].loop = NULL;
}

void kbs_sync_assume(struct kbs_sync *s, unsigned t, bool confirmed)
{
	struct kbs_entry *e;

	if (confirmed)
		todo_clear(s, t);
	EACH_ENTRY (s, e) {
		e->seen[t] = confirmed && e->holder ? KBS_SEEN_WANTED : KBS_SEEN_UNKNOWN;
		kbs_todo_add(s, t, e);
	}
	if (confirmed)
		kbs_tell_all(s);
}

struct kbs_entry *kbs_sync_peek(struct kbs_sync *s, unsigned t, enum kbs_sort sort)
{
	for (int revoked = 1; revoked >= 0; revoked--) {
		struct kbs_todo *q = &s->target[t].todo[sort][revoked];

		for (; q->n; todo_pop(s, t, sort, revoked)) {
			struct kbs_entry *e = q->v[q->head];

			/* What is in flight is looked at when it lands. */
			if (!e->forgotten && !(e->flying & 1u << t) && kbs_entry_differs(e, t))
				return e;
		}
	}
	return NULL;
}

struct kbs_entry *kbs_sync_take(struct kbs_sync *s, unsigned t, enum kbs_sort sort)
{
	struct kbs_entry *e = kbs_sync_peek(s, t, sort);

	if (!e)
		return NULL;
	e->flying |= 1u << t;
	todo_pop(s, t, sort, s->target[t].todo[sort][1].n > 0);
	/* Revoked while this is under way, it would count as gone. (Pending before and after.) */
	if (e->seen[t] == KBS_SEEN_ABSENT)
		e->seen[t] = KBS_SEEN_OTHER;
	return e;
}

void kbs_sync_landed(
	struct kbs_sync *s, unsigned t, struct kbs_entry *e, bool confirmed, const uint8_t *sha256)
{
	/* It stays pinned while listeners, who may forget it, are told. */
	kbs_set_seen(s, e, t, confirmed ? kbs_entry_seen(e, sha256) : KBS_SEEN_UNKNOWN);
	e->flying &= ~(1u << t);
	if (!e->forgotten)
		kbs_todo_add(s, t, e);
	kbs_entry_unpin(e);
}

struct secret *kbs_sync_confirmed(
	const struct kbs_sync *s, unsigned t, enum kbs_sort sort, const char *name)
{
	const struct kbs_entry *e = kbs_entry_find(s, sort, name);

	if (!e || !e->holder || e->flying & 1u << t || e->seen[t] != KBS_SEEN_WANTED)
		return NULL;
	return e->render(e->holder);
}
