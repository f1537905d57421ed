/* SPDX-License-Identifier: MIT */
/*
 * The state of a push, shared by push.c and what it uses: push_check.c reads back what was
 * confirmed, push_repeat.c keeps the revocations that are repeated. Neither knows anything of
 * push.c.
 */
#ifndef TEC_KBS_PUSH_INTERNAL_H
#define TEC_KBS_PUSH_INTERNAL_H

#include <sys/queue.h>

#include "kbs_internal.h"
#include "tec/base/backoff.h"
#include "tec/kbs/admin.h"
#include "tec/kbs/push.h"
#include "tec/loop/timer.h"

#define KBS_IDENTITY_PREFIX "ak."

/* A request about a resource, or a message of values, and what it was made from. A failed
 * request about a resource is kept until its next try; its entry counts as in flight, so it is
 * not sent twice. */
TAILQ_HEAD(push_requests, push_request);
struct push_request {
	TAILQ_ENTRY(push_request) link;
	struct push_requests *list; /* the one it is in */
	struct kbs_push *p;
	struct push_item {
		struct kbs_entry *e; /* in flight */
		bool revoke;
		uint8_t sha256[SHA256_LEN];
	} * item; /* owned */
	size_t n, cap;
	bool stale; /* the store was lost after sending: the answer is meaningless */
	/* The revocations that it repeats, owned, and their number. */
	struct push_repeat *repeats;
	size_t n_repeats;
	/* A message of values: */
	bool clean; /* it carries a clean sentinel with this sum */
	struct kbs_sum sum;
	bool empties_shared; /* trusted_aks is emptied */
	/* About a resource: */
	struct backoff backoff;
	struct timer retry;
};

/* A name with a revocation that is sent once more. */
struct push_repeat {
	struct table_link link; /* in push_repeats.names; owner: its kind */
	struct push_repeat *next;
	char name[];
};
struct push_repeats {
	struct push_repeat *first[2]; /* by kind, owned */
	struct table names;           /* of both kinds: finds duplicates */
};

/* What is sent first until both policies are confirmed. */
enum push_order {
	/* The store was lost: nothing may be readable under the server's default policies. Or
	 * its attestation policy is of version 0.2.0 or older and cannot read identities that
	 * are lists. */
	PUSH_POLICIES_FIRST,
	/* The stored policy reads lists: a new policy must not refuse a node before its values
	 * are stored. */
	PUSH_VALUES_FIRST,
};

struct kbs_push {
	struct loop *loop; /* borrowed */
	struct kbs_sync *sync;
	struct kbs_push_conf conf;
	char *target, *cluster_uid, *session; /* owned */
	unsigned t;                           /* index in sync */
	struct kbs_transport *transport;      /* owned; NULL: not reachable yet */
	struct op_scope ops;
	enum kbs_target_state state;
	char error[256]; /* of the last request, or "" */
	char *text;      /* owned: why there is no transport; NULL: there is one */
	bool failed;     /* no answer since the last failure */
	bool finishing;  /* the clean sentinel is no longer debounced */
	struct backoff backoff;
	struct timer retry;
	unsigned in_row; /* failures since something was accepted, bounded */

	/* The probe, and what is known about Trustee's store. */
	bool probe_wanted;
	bool hold;   /* nothing is sent before the probe is answered */
	bool known;  /* the entries' state of this target is valid */
	bool marked; /* the stored sentinel is ours, so a probe is conclusive */
	bool asked;  /* a probe has just read it; valid for this turn of the loop */
	enum push_order order;
	uint64_t waiting_since_ms; /* boot clock: when the first probe became due */
	struct timer probe;

	/* Populating: one request at a time about policies and values. */
	bool serial; /* one is in flight; the probe counts too */
	struct backoff serial_backoff;
	struct timer serial_wait;
	const char *policy_attestation, *policy_resource; /* confirmed; NULL: unknown */
	const char *policy_sent;                          /* the one in flight */
	bool sends_resource_policy;                       /* or the attestation policy */
	bool shared_emptied;                              /* trusted_aks is empty */
	bool shared_mode;                                 /* identities are sent as one array */
	size_t batch_max; /* names per message; halved when one is too large */
	/* The stored sentinel is dirty unless one of these is set: */
	bool clean; /* it is clean, with stored_sum */
	bool sent;  /* it may be clean, with sent_sum: the answer was lost */
	struct kbs_sum stored_sum, sent_sum;
	bool sentinel_due;
	struct timer sentinel;

	/* Running: a window of requests about resources. */
	struct push_requests in_flight; /* messages of values too */
	struct push_requests waiting;   /* failed, until their timer */
	struct push_requests due[2];    /* ready for another try: deliveries, revocations */
	unsigned n_resources;           /* requests about resources in flight */
	unsigned allowed;               /* their current limit, at most conf.window */
	/* Repeating. What was revoked early in our term becomes due when the last requests of an
	 * earlier leader must have arrived; what conf.each_revoked names becomes due when a
	 * store was lost. */
	struct push_repeats early, due_again;
	struct timer repeat_timer; /* not set: the early part of our term is over */
	bool past_due;             /* conf.each_revoked has not named them yet */
	unsigned n_repeated;       /* repeated deletes in flight: nothing is delivered meanwhile */

	/* Checking: reading back after everything was sent to a store. */
	bool check_due, checking;
	struct strbuf check_names; /* of values, each with its NUL */
	size_t check_at;           /* in them */
	unsigned check_losses;     /* in a row */
	struct timer check;
};

/* ---- push_repeat.c: what is revoked once more */
void push_repeat_note(struct kbs_push *p, enum kbs_kind kind, const char *name); /* revoked now */
void push_repeat_early(struct kbs_push *p); /* make what was noted due */
/* Make what conf.each_revoked names due; false: not known yet. */
bool push_repeat_past(struct kbs_push *p);
/* The next name that is due and not wanted again; NULL: none. Borrowed until it is taken. */
const char *push_repeat_next(struct kbs_push *p, enum kbs_kind kind);
void push_repeat_take(struct push_request *f, enum kbs_kind kind); /* move the next one to f */
/* f ends: what it repeated is done, or becomes due again. */
void push_repeat_end(struct push_request *f, bool done);
void push_repeat_fini(struct kbs_push *p);

/* ---- push_check.c: reads back what was confirmed; what is missing becomes unknown */
void push_check_start(struct kbs_push *p);
void push_check_stop(struct kbs_push *p);
void push_check_next(void *push); /* read the next value; also the timer's callback */

#endif
