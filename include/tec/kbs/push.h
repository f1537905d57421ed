/* SPDX-License-Identifier: MIT */
/*
 * Keeps what one administered Trustee holds equal to what kbs_sync wants. Its state (enum
 * kbs_target_state) is reported to kbs_sync and changes in one place:
 *
 *   WAITING -> PROBING -> IN_SYNC | POPULATING -> IN_SYNC;  any -> WAITING | REFUSED -> PROBING
 *
 * PROBING reads the sentinel, a reference value with a sum of what was written.
 *  - Equal to the sum of what is wanted: everything declared is confirmed and not sent. What is
 *    revoked is revoked, once per process: the sum says nothing about other names.
 *  - Missing: the store was lost. Policies are sent first, then values, identities, keys, and the
 *    sentinel.
 *  - Different: values and identities first, then policies (a new policy must not refuse a node
 *    before its values are there), keys, and the sentinel. When the sentinel does not say that a
 *    policy is there that reads identities as lists, it is of version 0.2.0 or older: then policies
 *    are sent first, after a dirty sentinel.
 * In both, what was revoked earlier is revoked once more before the sentinel is written: the store
 * may be an older one.
 * IN_SYNC sends one request per change, in a bounded window, in order per name, revocations before
 * deliveries, the clean sentinel last and debounced, and a probe per interval. Nothing is sent while
 * a clean sentinel is stored but the dirty one, so the next probe always detects a kill between two
 * requests. Each of the two replaces only one that was read just before: a store that was lost
 * between two requests, when no connection failed, is filled again, and no key goes to it earlier.
 *
 * A request that fails is sent again alone: after 0.1-0.5 s with jitter, doubling per key, when
 * there was no answer, and up to 30 s when Trustee answers and does not accept it. The window
 * halves when an answer is lost and grows by one with each answer, and a probe first checks that
 * the store is still the same. After five failures in a row Trustee counts as unreachable: then
 * everything in flight is pending again and one probe is sent after 0.2-30 s with jitter. A request
 * whose answer was lost confirms nothing. Answers are recorded in kbs_sync, which calls its
 * listeners.
 */
#ifndef TEC_KBS_PUSH_H
#define TEC_KBS_PUSH_H

#include "tec/kbs/sync.h"
#include "tec/kbs/transport.h"
#include "tec/loop/loop.h"

#define KBS_SENTINEL "0.operator.generation" /* sorts before every other name of a message */

struct kbs_push_conf {
	const char *target;      /* name in kbs_sync; copied */
	const char *cluster_uid; /* part of the sentinel; copied */
	unsigned window;         /* 0: 32 */
	size_t max_body;         /* of a message of reference values; 0: 512 KiB */
	uint32_t probe_ms;       /* 0: 15,000 */
	uint32_t settle_ms;      /* a sentinel is first judged when what is wanted has not changed
				    for this long; 0: 500 */
	uint32_t sentinel_ms;    /* debounce; 0: 3,000 */
	uint32_t denied_ms;      /* retry when it does not accept our key; 0: 20,000 */
	uint32_t refused_ms;     /* retry when it does not accept what we send; 0: 300,000 */
	/* Once after everything was sent to a store, reads back what can be read; what is missing
	 * is sent again. */
	bool read_back;
	/* So long after the start, what was revoked since then is revoked once more: the last
	 * requests of an earlier leader may have arrived late, and Trustee has no fencing. 0: never
	 * (there is no lease). */
	uint32_t repeat_revoked_ms;
	/* What was revoked lately, by this and earlier processes: a store that was set back holds it
	 * again, and cannot list it. Calls fn for each name, which are revoked once more whenever
	 * everything is sent to a store, unless they are wanted. False: they are not known yet, and
	 * the store is not in sync before they are. NULL: nothing is recorded. */
	bool (*each_revoked)(void *arg,
		void (*fn)(void *fn_arg, enum kbs_kind kind, const char *name), void *fn_arg);
	void *revoked_arg;
};

struct kbs_push;
/* Adds the target to sync. take_t may be NULL (not reachable yet): set_transport later. */
struct kbs_push *kbs_push_new(struct loop *l, struct kbs_sync *sync,
	const struct kbs_push_conf *conf, struct kbs_transport *take_t);
/* Cancels what is in flight. Removes the target from sync. */
void kbs_push_free(struct kbs_push *p);
/* Address, certificate or key changed: what is in flight is cancelled and pending again, next is a
 * probe. why: a sentence for people while take_t is NULL (copied). */
void kbs_push_set_transport(struct kbs_push *p, struct kbs_transport *take_t, const char *why);
/* Probe now: its Pod was replaced, or became ready. */
void kbs_push_probe(struct kbs_push *p);
/* The process is about to end: the clean sentinel is written as soon as everything is sent, so that
 * the next process has nothing to send. */
void kbs_push_finish(struct kbs_push *p);
/* It is written, or cannot be written now: there is nothing to wait for. */
bool kbs_push_is_finished(struct kbs_push *p);
/* The maximum number of requests about resources at once, from now on. */
void kbs_push_set_window(struct kbs_push *p, unsigned window);

#endif
