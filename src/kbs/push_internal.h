/* SPDX-License-Identifier: MIT */
/* Shared by push.c (states, probe), push_work.c (what is sent in which order) and push_wait.c (what
 * is sent again when) only. */
#ifndef TEC_KBS_PUSH_INTERNAL_H
#define TEC_KBS_PUSH_INTERNAL_H

#include "kbs_internal.h"
#include "tec/kbs/admin.h"
#include "tec/kbs/push.h"
#include "tec/loop/timer.h"

#define KBS_IDENTITY_PREFIX "ak."

/* A name revoked early in our term: revoked once more when an old leader's last requests must have
 * arrived. */
struct push_again {
	struct push_again *next;
	char name[];
};

/* One request about a resource, or one message of values; owns what it was made from. */
struct push_flight {
	struct push_flight *next, **prevp; /* in kbs_push.flights */
	struct kbs_push *p;
	struct push_item {
		struct kbs_entry *e; /* in flight; NULL: a name that nobody declares any more */
		bool revoke;
		uint8_t sha256[SHA256_LEN];
	} * item; /* owned */
	size_t n, cap;
	bool clean; /* a message that is a clean sentinel with this sum */
	struct kbs_sum sum;
	bool empties_shared; /* trusted_aks is emptied */
	size_t again;        /* it repeats so many of the list, from its head */
	unsigned tries;      /* of a key: how often it failed before */
	bool stale; /* the store was found lost meanwhile: its answer says nothing any more */
};

/* A key whose request failed. It counts as in flight in sync, so that nobody else sends it. */
struct push_wait {
	struct kbs_entry *e;
	uint64_t due_ms; /* boot clock */
	uint8_t tries;
};
struct push_waits {          /* a heap, earliest first; zero is empty */
	struct push_wait *v; /* owned */
	size_t n, cap;
};

enum push_order {
	PUSH_POLICIES_FIRST, /* the store was lost: nothing may be readable under its own policies
			      */
	PUSH_VALUES_FIRST, /* ours are there: nobody is refused by a new one before its values came
			    */
};

struct kbs_push {
	struct loop *loop; /* borrowed */
	struct kbs_sync *sync;
	struct kbs_push_conf conf;
	char *target, *cluster_uid, *session; /* owned */
	unsigned t;                           /* index in sync */
	struct kbs_transport *transport;      /* owned; NULL: not reachable yet */
	enum kbs_push_state state;
	struct op_scope ops;
	struct push_flight *flights;
	unsigned n_resources; /* of them, requests about resources */
	bool serial;          /* a probe, policy or message of values is in flight: one at a time */
	bool probe_wanted;
	bool hold;   /* nothing is sent before it is answered */
	bool marked; /* the sentinel there is ours, so that a probe says something */
	bool failed; /* and has not answered since */
	bool known;  /* what was seen of the far side stands, but for what differs: since a judged
			probe */
	enum push_order order;
	const char *policy_attestation, *policy_resource; /* confirmed there; NULL: unknown */
	const char *policy_sent;                          /* the one in flight */
	bool shared_emptied;                              /* trusted_aks is empty there */
	bool shared_mode; /* how identities are sent since the far side was last unknown */
	/* The sentinel there is dirty, or may be a clean one: */
	bool clean; /* one with far_sum */
	bool sent;  /* one with sent_sum, whose answer was lost */
	struct kbs_sum far_sum, sent_sum;
	size_t batch_max; /* names per message; halved when one is too large */
	uint32_t backoff_ms;
	uint64_t jitter_seq;
	uint64_t waiting_since_ms;  /* for a first judgement */
	struct push_waits waits[2]; /* revocations, deliveries */
	unsigned room;              /* requests about resources that may be in flight now */
	unsigned in_row;            /* failures since something was taken, bounded */
	unsigned serial_tries;
	struct timer retry, probe, sentinel, again_timer, wait, serial_wait;
	bool sentinel_due;
	/* What is read back, after all was sent to a store: */
	bool check_due, checking;
	struct strbuf check_names; /* of values, each with its NUL */
	size_t check_at;           /* in them */
	unsigned check_losses;     /* in a row */
	struct timer check;
	bool finishing; /* the clean sentinel is not debounced any more */
	/* By sort, owned; from again_due on sorted, each name once, and only taken from. */
	struct push_again *again[2];
	bool again_due;
	bool again_flying; /* a resource is deleted once more: none may be delivered beside it */
	struct defer work;
	char why[320];
};

/* push.c */
void push_set_state(struct kbs_push *p, enum kbs_push_state state, const char *why);
/* Trustee is away, or refuses us: everything in flight is pending again. */
void push_fail(struct kbs_push *p, const struct err *err);
void push_ask(struct kbs_push *p); /* look for work in the next turn */
void push_note_revoked(struct kbs_push *p, enum kbs_sort sort, const char *name);
void push_drop_again(struct kbs_push *p, enum kbs_sort sort, size_t n); /* the first n */
void push_flight_free(struct push_flight *f); /* what it holds must have landed */

/* push_wait.c */
bool push_is_refused(const struct err *err); /* waiting a little does not help */
/* A request failed that failed `tries` times before. True: so many did that Trustee is away. */
bool push_is_away(struct kbs_push *p, const struct err *err, unsigned tries);
void push_went_well(struct kbs_push *p); /* something that was sent was taken */
void push_is_back(struct kbs_push *p);   /* a probe was answered after it was away */
uint32_t push_jitter(struct kbs_push *p, uint32_t ms);
/* No policy, value or probe before a while. what: for the log. */
void push_retry_serial(struct kbs_push *p, const char *what, const struct err *err);
/* e, in flight, is unknown and waits for its own turn. */
void push_retry_key(struct kbs_push *p, struct kbs_entry *e, unsigned tries, const struct err *err);
/* The first key that has waited long enough, of revocations or deliveries; NULL: none. */
struct kbs_entry *push_wait_due(struct kbs_push *p, bool delivery);
/* Takes it out; how often it failed. */
unsigned push_wait_take(struct kbs_push *p, bool delivery);
bool push_is_waiting(const struct kbs_push *p);
void push_wait_drop(struct kbs_push *p); /* all of them are pending, and nothing waits */
void push_wait_arm(struct kbs_push *p);  /* wakes us for the next one */

/* push_check.c */
void push_check_start(struct kbs_push *p);
void push_check_stop(struct kbs_push *p);
void push_check_on_timer(void *arg);

/* push_work.c */
bool push_is_done(struct kbs_push *p); /* all is sent, and the sentinel says so */
void push_work(struct kbs_push *p);    /* starts what may be started now */
/* {"cluster":...,"sum":"..."}; sum NULL: dirty. */
void push_sentinel_json(const struct kbs_push *p, const struct kbs_sum *sum, struct strbuf *out);

#endif
