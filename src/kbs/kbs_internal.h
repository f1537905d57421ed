/* SPDX-License-Identifier: MIT */
/*
 * Shared inside src/kbs: entries of kbs_sync, and what a target still has to be told. A target's
 * work is four queues of entries, per sort one of revocations and one of the rest; whoever takes an
 * entry out looks at it again, as it may have changed since.
 */
#ifndef TEC_KBS_INTERNAL_H
#define TEC_KBS_INTERNAL_H

#include "tec/base/bytes.h"
#include "tec/base/str.h"
#include "tec/kbs/sync.h"

#define KBS_TARGETS_MAX 24

enum kbs_seen { KBS_SEEN_UNKNOWN = 0, KBS_SEEN_ABSENT, KBS_SEEN_WANTED, KBS_SEEN_OTHER };

/* Small: there are two for every Machine. */
struct kbs_entry {
	struct kbs_entry *next;
	const struct kobj *holder; /* owned reference; NULL: a tombstone */
	kbs_render_fn render;
	uint8_t sha256[SHA256_LEN];
	uint32_t hash;
	uint32_t queued, flying;       /* bit by target */
	uint32_t urgent;               /* queued before the others */
	uint8_t seen[KBS_TARGETS_MAX]; /* enum kbs_seen, by target */
	uint8_t sort;                  /* enum kbs_sort */
	bool forgotten;                /* not in the table; freed with its last bit */
	char name[];
};

/* 256-bit sum, least significant first. */
struct kbs_sum {
	uint64_t w[4];
};
void kbs_sum_hex(const struct kbs_sum *sum, char out[SHA256_HEX_LEN + 1]);

struct kbs_todo {             /* a ring; zero is empty */
	struct kbs_entry **v; /* owned; a power of two */
	size_t head, n, cap;
};

struct kbs_policies {
	const char *attestation, *resource; /* static; NULL: not known yet */
	bool shared;
};

/* ---- for a push; `t` is the index that kbs_sync_attach gave */

/* wake: work may have come, or the policies changed. From inside declare and the like. */
unsigned kbs_sync_attach(
	struct kbs_sync *s, const char *target, void (*wake)(void *arg), void *arg);
void kbs_sync_detach(struct kbs_sync *s, unsigned t); /* stays a target, without work */
const struct kbs_policies *kbs_sync_wanted_policies(const struct kbs_sync *s);
/* Of everything declared and both policies: what a clean sentinel says. */
void kbs_sync_sum(const struct kbs_sync *s, struct kbs_sum *out);
uint64_t kbs_sync_changed_ms(const struct kbs_sync *s); /* boot clock of the last change */
/* The far side is not known any more: everything is to be told. Nobody is woken for it: what was
 * delivered is so again in a moment, as a rule, and each is told when it is confirmed. */
void kbs_sync_unknown(struct kbs_sync *s, unsigned t);
/* The far side holds all that is declared. A tombstone is never confirmed by this: the sum is of
 * what was wanted, and whoever wrote it may have delivered the name since, or not have known of it.
 */
void kbs_sync_all_confirmed(struct kbs_sync *s, unsigned t);
size_t kbs_sync_waiting(const struct kbs_sync *s, unsigned t, enum kbs_sort sort);
/* The next entry that differs at t: its `flying` bit is set now. NULL: none is left. */
struct kbs_entry *kbs_sync_take(struct kbs_sync *s, unsigned t, enum kbs_sort sort);
/* The same without taking it. Revocations come before all others. */
struct kbs_entry *kbs_sync_peek(struct kbs_sync *s, unsigned t, enum kbs_sort sort);
/* Ends a flight: confirmed to hold sha256 (NULL: nothing), or unknown. Queued again when it differs
 * from what is wanted now. May free e. */
void kbs_sync_landed(
	struct kbs_sync *s, unsigned t, struct kbs_entry *e, bool confirmed, const uint8_t *sha256);
/* A flight's answer did not come: what the far side holds is unknown. Still in flight. */
void kbs_sync_lost(struct kbs_sync *s, unsigned t, struct kbs_entry *e);
/* The value that t confirmed under a name and that is still wanted; NULL: none, or a request about
 * it is under way. The caller frees. */
struct secret *kbs_sync_confirmed(
	const struct kbs_sync *s, unsigned t, enum kbs_sort sort, const char *name);
/* t does not hold what it confirmed: pending again. */
void kbs_sync_suspect(struct kbs_sync *s, unsigned t, enum kbs_sort sort, const char *name);
/* Every declared entry of a sort, in no order. */
void kbs_sync_each(const struct kbs_sync *s, enum kbs_sort sort,
	void (*fn)(void *arg, const struct kbs_entry *e), void *arg);

#endif
