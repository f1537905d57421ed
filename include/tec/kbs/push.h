/* SPDX-License-Identifier: MIT */
/*
 * Keeps one administered Trustee equal to what kbs_sync wants. Its state (enum kbs_target_state) is
 * told to kbs_sync and changes in one place:
 *
 *   WAITING -> ASKING -> IN_SYNC | POPULATING -> IN_SYNC;  any -> WAITING | REFUSED -> ASKING
 *
 * ASKING reads the sentinel. Equal to what is wanted: all that is declared is confirmed and not
 * sent (what is revoked is revoked, once in a life: a sum says nothing about other names).
 * Missing: the store was lost; policies go first, then values, identities, keys, the sentinel.
 * Different: values and identities, then policies (nobody is refused by a new policy before its
 * values are there), keys, the sentinel. IN_SYNC: one request per change, bounded window, order
 * kept per name, tombstones before declarations, the clean sentinel last and debounced, a probe
 * per interval. A message of reference values carries the dirty sentinel as long as anything is
 * outstanding, and nothing is revoked while the clean one stands, so a kill between two requests
 * is always seen by the next probe.
 *
 * A request that fails is sent again by itself: after 0.1-0.5 s with jitter, doubling per key, when
 * nothing came back, and up to 30 s when Trustee answers and does not take it. The window halves
 * when an answer is lost and grows by one with each that comes, and a probe tells first whether the
 * store is still the same. Trustee is away after five failures in a row: then everything in flight
 * is pending again and one probe is sent after 0.2-30 s with jitter. Of a request whose answer was
 * lost nothing is confirmed. Answers confirm into kbs_sync, which tells the controllers.
 */
#ifndef TEC_KBS_PUSH_H
#define TEC_KBS_PUSH_H

#include "tec/kbs/sync.h"
#include "tec/kbs/transport.h"
#include "tec/loop/loop.h"

#define KBS_SENTINEL "0.operator.generation" /* sorts before every other name of a message */

struct kbs_push_conf {
	const char *target;      /* name in kbs_sync, which is told of it; copied */
	const char *cluster_uid; /* part of the sentinel; copied */
	unsigned window;         /* 0: 32 */
	size_t max_body;         /* of a message of reference values; 0: 512 KiB */
	uint32_t probe_ms;       /* 0: 15,000 */
	uint32_t settle_ms;      /* a sentinel is first judged when what is wanted has not changed
				    for this long; 0: 500 */
	uint32_t sentinel_ms;    /* debounce; 0: 3,000 */
	uint32_t denied_ms;      /* it does not take our key, or not yet: 0: 20,000 */
	uint32_t refused_ms;     /* it does not take what we send: 0: 300,000 */
	/* Once after all was sent to a store, what can be read of it is, and what is missing is
	 * sent again. */
	bool read_back;
	/* After this long since start, what was revoked meanwhile is revoked once more: an old
	 * leader's last requests may have come late, and Trustee has no fencing. 0: never (no
	 * lease). */
	uint32_t repeat_revoked_ms;
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
/* Look now: its Pod was replaced, or it became ready. */
void kbs_push_probe(struct kbs_push *p);
/* The process is about to end: the clean sentinel is written as soon as all is sent, so that the
 * next one has nothing to send. */
void kbs_push_finish(struct kbs_push *p);
/* It is written, or cannot be for now: nothing to wait for. */
bool kbs_push_is_finished(struct kbs_push *p);
/* At most so many requests about resources at once from now on. */
void kbs_push_set_window(struct kbs_push *p, unsigned window);

#endif
