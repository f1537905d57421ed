/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files of a push: push.c (its states, errors, and which phase acts), and one file
 * for each phase: push_probe.c, push_populate.c, push_run.c, push_check.c. Members stand under the
 * phase that writes them; the others only read them.
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

/* One request about a resource, or one message of values, and what it was made from. A request
 * about a resource that failed is kept until its next try; its entry counts as in flight, so that
 * it is not sent a second time. */
TAILQ_HEAD(push_flights, push_flight);
struct push_flight {
	TAILQ_ENTRY(push_flight) link;
	struct push_flights *list; /* the one it stands in */
	struct kbs_push *p;
	struct push_item {
		struct kbs_entry *e; /* in flight */
		bool revoke;
		uint8_t sha256[SHA256_LEN];
	} * item; /* owned */
	size_t n, cap;
	bool stale;     /* the store was found lost meanwhile: its answer says nothing any more */
	size_t repeats; /* it repeats so many revocations of the list, from its head */
	/* A message of values: */
	bool clean; /* it is a clean sentinel with this sum */
	struct kbs_sum sum;
	bool empties_shared; /* trusted_aks is emptied */
	/* About a resource: */
	struct backoff backoff;
	struct timer retry;
};

/* A name revoked early in our term: revoked once more when an old leader's last requests must have
 * arrived. */
struct push_repeat {
	struct table_link link; /* in kbs_push.repeated; owner: its sort */
	struct push_repeat *next;
	char name[];
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
	struct op_scope ops;
	enum kbs_target_state state;
	char error[256]; /* of the last request, or "" */
	char *text;      /* owned: why there is no transport; NULL: there is one */
	bool failed;     /* and has not answered since */
	bool finishing;  /* the clean sentinel is not debounced any more */
	struct backoff backoff;
	struct timer retry;
	unsigned in_row; /* failures since something was taken, bounded */

	/* The probe, and what is known of the far side. */
	bool probe_wanted;
	bool hold;   /* nothing is sent before it is answered */
	bool known;  /* what was seen of the far side stands, but for what differs: since a judged
			probe */
	bool marked; /* the sentinel there is ours, so that a probe says something */
	enum push_order order;
	uint64_t waiting_since_ms; /* for a first judgement */
	struct timer probe;

	/* Populating: one request at a time about policies and values. */
	bool serial; /* one is in flight, the probe included */
	struct backoff serial_backoff;
	struct timer serial_wait;
	const char *policy_attestation, *policy_resource; /* confirmed there; NULL: unknown */
	const char *policy_sent;                          /* the one in flight */
	bool shared_emptied;                              /* trusted_aks is empty there */
	bool shared_mode; /* how identities are sent since the far side was last unknown */
	size_t batch_max; /* names per message; halved when one is too large */
	/* The sentinel there is dirty, or may be a clean one: */
	bool clean; /* one with far_sum */
	bool sent;  /* one with sent_sum, whose answer was lost */
	struct kbs_sum far_sum, sent_sum;
	bool sentinel_due;
	struct timer sentinel;

	/* Running: a window of requests about resources. */
	struct push_flights flights; /* under way; messages of values too */
	struct push_flights waiting; /* failed, until their timer */
	struct push_flights due[2];  /* to be sent again: deliveries, revocations */
	unsigned n_resources;        /* under way */
	unsigned room;               /* of them that may be, now */
	/* What was revoked early, by sort, owned: once it is due only taken from. */
	struct push_repeat *repeat[2];
	struct table repeated;
	struct timer repeat_timer;
	bool repeat_due;
	bool repeat_flying; /* a resource is deleted once more: none may be delivered beside it */

	/* Checking: what is read back, after all was sent to a store. */
	bool check_due, checking;
	struct strbuf check_names; /* of values, each with its NUL */
	size_t check_at;           /* in them */
	unsigned check_losses;     /* in a row */
	struct timer check;
};

/* ---- push.c */
void push_set_state(struct kbs_push *p, enum kbs_target_state state);
void push_ask(struct kbs_push *p); /* look for work in the next turn */
/* Trustee is away, or refuses us: everything in flight is pending again. */
void push_fail(struct kbs_push *p, const struct err *err);
/* A request failed; first: of its kind or its name. True: so many did that Trustee is away. */
bool push_is_away(struct kbs_push *p, const struct err *err, bool first);
void push_went_well(struct kbs_push *p); /* something that was sent was taken */
/* After a failed request: how long until it is sent again. what: for the log. */
uint32_t push_delay(struct kbs_push *p, struct backoff *b, const char *what, const struct err *err);

/* ---- push_probe.c: reads the sentinel and says what is known; sends nothing else */
void push_probe_start(struct kbs_push *p);
void push_probe_on_timer(void *arg);

/* ---- push_populate.c: policies, reference values, the sentinel */
/* {"cluster":...,"sum":"..."}; sum NULL: dirty. */
void push_sentinel_json(const struct kbs_push *p, const struct kbs_sum *sum, struct strbuf *out);
bool push_sentinel_is_right(const struct kbs_push *p);
bool push_policies_are_there(const struct kbs_push *p);
/* A value, or an array to be emptied, is left to send. */
bool push_values_are_left(struct kbs_push *p, bool *empties_shared);
void push_start_values(struct kbs_push *p, bool empties_shared); /* no value left: marks it dirty */
void push_start_clean(struct kbs_push *p);                       /* the clean sentinel */
void push_start_policy(struct kbs_push *p);
/* Of what is sent one at a time; f may be NULL. */
void push_serial_failed(
	struct kbs_push *p, struct push_flight *f, const char *what, const struct err *err);
void push_repeat_values(struct kbs_push *p);

/* ---- push_run.c: keys, in a window; flights */
struct push_flight *push_flight_new(struct kbs_push *p);
void push_flight_add(struct push_flight *f, struct kbs_entry *e);
void push_land(struct push_flight *f); /* all it carried is there */
/* Nobody knows whether what it carried is there: it is pending again. */
void push_land_unknown(struct push_flight *f);
void push_land_all_unknown(struct kbs_push *p);
bool push_keys_are_left(struct kbs_push *p); /* to send, in flight, or waiting for another try */
/* Sends what fits into the window. True: something waits for the sentinel to be dirty. */
bool push_start_keys(struct kbs_push *p);
bool push_start_repeat(struct kbs_push *p); /* of a revocation; false: nothing is to be repeated */
void push_repeat_drop(struct kbs_push *p, enum kbs_sort sort, size_t n); /* the first n */

/* ---- push_check.c: reads what was confirmed; makes unknown what is not there */
void push_check_start(struct kbs_push *p);
void push_check_stop(struct kbs_push *p);
void push_check_on_timer(void *arg);

#endif
