/* SPDX-License-Identifier: MIT */
/*
 * Keeps the content of one administered Trustee equal to what kbs_sync wants. Its state (enum
 * kbs_target_state) is reported to kbs_sync and changes in one place:
 *
 *   UNREACHABLE -> PROBING -> IN_SYNC | POPULATING -> IN_SYNC
 *   any -> UNREACHABLE | REFUSED -> PROBING
 *   PROBING | POPULATING | IN_SYNC -> CONFLICT -> POPULATING | IN_SYNC
 *
 * PROBING reads the sentinel, a reference value with a sum of everything written.
 *
 *  - Equal to the sum of what is desired: everything declared is confirmed and not sent. Revoked
 *    names are revoked once per process, because the sum does not cover other names.
 *  - Missing: the store was lost. Policies are sent first, then values, identities, keys, and the
 *    clean sentinel.
 *  - Different: values and identities first, then policies (a new policy must not refuse a node
 *    before its values are stored), keys, and the clean sentinel. If the sentinel does not record
 *    that the stored policy reads identities as lists, that policy is of version 0.2.0 or older:
 *    then policies are sent first.
 *  - Of another cluster, which conf.may_replace does not give up: CONFLICT. Two clusters would
 *    replace each other's policies, and a revoked image would get keys again. Only probes are sent
 *    until the sentinel is ours, of no cluster, missing, or may be replaced.
 *
 * In cases two and three the dirty sentinel is the first that is written, with the values or alone.
 * A probe recognizes the store by it, so after a lost answer the rest is sent, not everything. And
 * earlier revocations are repeated before the clean sentinel is written: the store may have been
 * restored from an older state. With conf.revoke_first they come before values and
 * keys.
 *
 * IN_SYNC sends one request per change, in a bounded window, in order per name, revocations before
 * deliveries, the clean sentinel last and debounced, and a probe per interval. While a clean
 * sentinel is stored, only the dirty one is sent, so the next probe always detects a kill between
 * two requests. Each sentinel replaces only one that was read just before: a store that was lost
 * between two requests without a failed connection is populated again, and receives no key earlier.
 *
 * A key that Trustee could not store (PluginInternalError) is a sign of a full or damaged storage: keys
 * are then sent one by one, and when it could be stored, everything is sent again, because keys that
 * were confirmed may be gone.
 *
 * A failed request is sent again alone: after 0.1-0.5 s with jitter if there was no answer, and
 * with a delay that doubles per key up to 30 s if Trustee answers but does not accept it. The
 * window halves when an answer is lost and grows by one with each answer, and a probe first checks
 * that the store is still the same. After five failures in a row Trustee counts as unreachable:
 * everything in flight is pending again, and one probe is sent after 0.2-30 s with jitter: the time
 * for which nothing was accepted, or a quarter of the time without an answer. A request whose answer
 * was lost confirms nothing. Answers are recorded in kbs_sync, which calls its listeners.
 */
#ifndef TEC_KBS_PUSH_H
#define TEC_KBS_PUSH_H

#include "tec/kbs/sync.h"
#include "tec/kbs/transport.h"
#include "tec/loop/loop.h"

#define KBS_SENTINEL "0.operator.generation" /* sorts before every other name in a message */

struct kbs_push_conf {
	const char *target;      /* name in kbs_sync; copied */
	const char *cluster_uid; /* part of the sentinel; copied */
	unsigned window;         /* 0: 32 */
	size_t max_body;         /* of a message of reference values; 0: 512 KiB */
	uint32_t probe_ms;       /* 0: 15,000 */
	uint32_t settle_ms;      /* a sentinel is first judged when what is wanted has not changed
				    for this long; 0: 500 */
	uint32_t sentinel_ms;    /* debounce; 0: 3,000 */
	uint32_t denied_ms;      /* retry if Trustee does not accept our key; 0: 20,000 */
	uint32_t refused_ms;     /* retry if it does not accept what we send; 0: 300,000 */
	/* Read back once, after everything was sent to a store, what can be read; send again
	 * what is missing. */
	bool read_back;
	/* This long after the start, everything revoked since then is revoked once more: the
	 * last requests of an earlier leader may have arrived late, and Trustee has no fencing.
	 * 0: never (there is no lease). */
	uint32_t repeat_revoked_ms;
	/*
	 * Recent revocations of this and earlier processes: a store restored from an older state
	 * holds these names again and cannot list them. Calls fn for each name. They are revoked
	 * once more whenever everything is sent to a store, unless they are wanted again. False:
	 * not loaded yet, and until then the store is not in sync. NULL: nothing is recorded.
	 */
	bool (*each_revoked)(void *arg,
		void (*fn)(void *fn_arg, enum kbs_kind kind, const char *name), void *fn_arg);
	void *revoked_arg;
	/* Revoke them before anything but policies is sent: the server was given up for a while,
	 * and deletions were completed without it. */
	bool revoke_first;
	/* The sentinel of the cluster with this uid is stored: may it be replaced? Asked at each
	 * probe. NULL: always, because the store is ours alone. Once it is replaced, did_replace is
	 * called: two clusters that may replace each other would take turns for ever. */
	bool (*may_replace)(void *arg, const char *cluster_uid);
	void (*did_replace)(void *arg, const char *cluster_uid); /* NULL without may_replace */
	void *replace_arg;
};

struct kbs_push;
/* Add the target to sync. take_t may be NULL (not reachable yet): call set_transport later. */
struct kbs_push *kbs_push_new(struct loop *l, struct kbs_sync *sync,
	const struct kbs_push_conf *conf, struct kbs_transport *take_t);
/* Cancel what is in flight and remove the target from sync. */
void kbs_push_free(struct kbs_push *p);
/* Address, certificate or key changed: cancel what is in flight, which becomes pending again,
 * then probe. why: a message for people while take_t is NULL; copied. */
void kbs_push_set_transport(struct kbs_push *p, struct kbs_transport *take_t, const char *why);
/* Probe now: the Pod was replaced or became ready. */
void kbs_push_probe(struct kbs_push *p);
/* The process is about to end: write the clean sentinel as soon as everything is sent, so that
 * the next process has nothing to send. */
void kbs_push_finish(struct kbs_push *p);
/* Whether it is written or cannot be written now: there is nothing to wait for. */
bool kbs_push_is_finished(struct kbs_push *p);
/* The cluster ends: once everything is taken back, a sentinel of no cluster is written, and nothing
 * after it. */
void kbs_push_release(struct kbs_push *p);
/* Whether that is stored, or the store is another cluster's. */
bool kbs_push_is_released(const struct kbs_push *p);
/* Set the maximum number of concurrent requests about resources. */
void kbs_push_set_window(struct kbs_push *p, unsigned window);

#endif
