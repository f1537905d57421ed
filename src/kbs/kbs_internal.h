/* SPDX-License-Identifier: MIT */
/*
 * What kbs_sync (sync.c) gives to a push: its entries, and the work left for each target. A
 * target's work is four queues of entries: revocations and deliveries for each kind. An entry is
 * checked again when it is taken out, because it may have changed since.
 */
#ifndef TEC_KBS_INTERNAL_H
#define TEC_KBS_INTERNAL_H

#include "tec/base/bytes.h"
#include "tec/base/str.h"
#include "tec/base/table.h"
#include "tec/kbs/sync.h"
#include "tec/loop/loop.h"

#define KBS_TARGETS_MAX   24
#define KBS_LISTENERS_MAX 12

enum kbs_seen { KBS_SEEN_UNKNOWN = 0, KBS_SEEN_ABSENT, KBS_SEEN_DESIRED, KBS_SEEN_OTHER };

/* An object declared under a name. */
struct kbs_object {
	struct kbs_object *next;
	const struct kobj *kobj; /* owned reference */
	int64_t order;
};

/* Everything known about one name. Kept small: there are two for every Machine. */
struct kbs_entry {
	struct table_link link;
	struct kbs_object *objects; /* owned, sorted; NULL: revoked */
	kbs_render_fn render;
	const char *name; /* a path: `path`. Of a reference value a reference (base/intern.h): an
			     identity's is long, and its Secret knows it too. */
	uint64_t seen;    /* enum kbs_seen, two bits by target */
	uint8_t sha256[SHA256_LEN];
	uint32_t queued[2]; /* bit by target; [1]: among the revocations */
	uint32_t in_flight; /* bit by target */
	uint8_t kind;       /* enum kbs_kind */
	bool list;          /* the value is an array with one element per object */
	bool taken_back;    /* an object of the list was withdrawn, at any time */
	bool forgotten;     /* not in the table; freed when no bit above is set */
	char path[];
};
_Static_assert(KBS_TARGETS_MAX <= 32, "two bits by target");

/* A 256-bit sum, least significant word first. */
struct kbs_sum {
	uint64_t w[4];
};
void kbs_sum_hex(const struct kbs_sum *sum, char out[SHA256_HEX_LEN + 1]);

struct kbs_queue {            /* a ring; zero is empty */
	struct kbs_entry **v; /* owned; a power of two */
	size_t head, n, cap;
};

struct kbs_policies {
	const char *attestation, *resource; /* static; NULL: not known yet */
	bool shared;
};

struct kbs_target {
	char *name, *error, *text; /* owned */
	enum kbs_target_state state;
	struct loop *loop; /* borrowed; NULL: no push works for it */
	struct defer work;
	loop_fn fn;
	void *arg;
	struct kbs_queue queue[2][2]; /* by kind; 1: revocations */
};

struct kbs_sync {
	struct table entries;
	struct kbs_target target[KBS_TARGETS_MAX];
	uint32_t targets; /* bit by slot in use; a slot stays its target's until it is removed */
	struct kbs_listener {
		void (*fn)(void *arg, enum kbs_kind kind, const char *name);
		void *arg;
	} listener[KBS_LISTENERS_MAX];
	size_t n_listeners;
	struct kbs_policies policies;
	struct kbs_sum sum;  /* of what is declared, policies left out */
	uint64_t changed_ms; /* boot clock of the last change of what is wanted */
};

#define EACH_TARGET(s, i)                                                                          \
	for (unsigned i = 0; i < KBS_TARGETS_MAX; i++)                                             \
		if ((s)->targets & 1u << i)
#define EACH_ENTRY(s, e) TABLE_EACH (e, link, &(s)->entries)

struct kbs_entry *kbs_entry_find(const struct kbs_sync *s, enum kbs_kind kind, const char *name);
/* The declared value, and the part of it that one object contributes; the caller frees. */
struct secret *kbs_entry_render(const struct kbs_entry *e);
struct secret *kbs_object_render(const struct kbs_entry *e, const struct kbs_object *o);
/* Iterate over the objects that are part of an entry's value. */
#define EACH_OBJECT(e, o)                                                                          \
	for (unsigned o##_n_ = ((o) = (e)->objects, 0); (o) && o##_n_ < KBS_LIST_MAX;              \
		(o) = (o)->next, o##_n_++)
void kbs_set_seen(struct kbs_sync *s, struct kbs_entry *e, unsigned t, enum kbs_seen seen);

/* ---- for a push; `t` is the index that kbs_sync_attach() returned */

/* The sum over everything declared and both policies, as stored in a clean sentinel. */
void kbs_sync_sum(const struct kbs_sync *s, struct kbs_sum *out);

/* Register the push of this target: fn runs in the next turn of the loop if there may be work. */
unsigned kbs_sync_attach(
	struct kbs_sync *s, const char *target, struct loop *l, loop_fn fn, void *arg);
void kbs_sync_detach(struct kbs_sync *s, unsigned t); /* stays a target, without work */
void kbs_sync_wake(struct kbs_sync *s, unsigned t);
/*
 * Set the state of all entries at once. Not confirmed: what t holds is unknown and everything is
 * sent. No listener is called, because normally all of it is delivered a moment later and reported
 * name by name. Confirmed: t holds everything declared. This never confirms a revocation: the sum
 * covers declared names only, and the process that wrote it may have delivered this name since, or
 * not known it.
 */
void kbs_sync_assume(struct kbs_sync *s, unsigned t, bool confirmed);
/* The next entry to send, revocations first. NULL: none. */
struct kbs_entry *kbs_sync_peek(struct kbs_sync *s, unsigned t, enum kbs_kind kind);
/* Take e, which kbs_sync_peek() just returned, out of its queue: it is in flight from here on. */
void kbs_sync_take(struct kbs_sync *s, unsigned t, struct kbs_entry *e);
/* End a request: t is confirmed to hold sha256 (NULL: nothing), or its content is unknown.
 * Queues the entry again if that differs from what is desired now. May free e. */
void kbs_sync_finish(
	struct kbs_sync *s, unsigned t, struct kbs_entry *e, bool confirmed, const uint8_t *sha256);
/* The value that t confirmed under a name and that is still desired; NULL: none, or a request
 * about it is in flight. The caller frees. */
struct secret *kbs_sync_confirmed(
	const struct kbs_sync *s, unsigned t, enum kbs_kind kind, const char *name);

#endif
