/* SPDX-License-Identifier: MIT */
/* Private to src/ctl/follow: the source, what is known of it, and the kinds that copy. */
#ifndef TEC_CTL_FOLLOW_INTERNAL_H
#define TEC_CTL_FOLLOW_INTERNAL_H

#include "../ctl_internal.h"
#include "tec/base/table.h"
#include "tec/ctl/follow.h"
#include "tec/loop/timer.h"

/* ---- what the kinds share: follow.c */

enum follow_lag {
	FOLLOW_IN_STEP,
	FOLLOW_BEHIND,
	FOLLOW_MISSING, /* the source no longer lists it */
	FOLLOW_UNUSED,  /* the same, but no Trustee ever had anything of it: blocks nothing */
	FOLLOW_CONFLICT,
	FOLLOW_N_LAGS,
};

struct follow_notes {
	struct table table; /* owned, with the notes */
	size_t n[FOLLOW_N_LAGS];
};
struct follow_kind {
	struct ctl_kind kind; /* the first member */
	struct ctl_follow *f;
	struct follow_notes notes;
};
static inline struct follow_kind *follow_kind(struct ctl_kind *k)
{
	return (struct follow_kind *)k;
}
struct follow_watch {
	enum caches_of of;
	ctl_map_fn here, there; /* of our cache; of the source's, NULL: none */
};
/* conf.of is the kind that is copied. watches ends with a NULL here. */
struct ctl_kind *follow_kind_new(
	struct ctl_follow *f, const struct ctl_kind_conf *conf, const struct follow_watch *watches);
void follow_kind_forget(struct ctl_kind *k); /* for ctl_kind_conf */

/* The two objects of a key. Borrowed from the caches, valid for one step. */
struct follow_pair {
	const struct kobj *there, *here;  /* NULL: none, or unreadable; there: or being deleted */
	bool may_copy, may_take, deleted; /* as in struct ctl_follow_machine_view */
};
/* Also sets o and over of the look. */
struct follow_pair follow_kind_look(struct ctl_kind *k, const char *name, struct ctl_look *l);
/* Records the result of a look. */
void follow_kind_lags(struct ctl_kind *k, const char *name, enum follow_lag lag);

void follow_kind_wake(void *kind, const struct kobj *o); /* for k8s_cache_each() */
/* For ctl_watch: the key has the name of the object. Of the source: notes deletions, too. */
void follow_kind_map(void *kind, const struct kobj *was, const struct kobj *now);
void follow_kind_map_source(void *kind, const struct kobj *was, const struct kobj *now);

void follow_kind_check(void *f); /* schedules a check for the next turn of the loop */
void follow_kind_check_soon(struct ctl_follow *f);

/* ---- the kinds */

struct ctl_kind *follow_cluster_new(struct ctl_follow *f); /* cluster.c */
struct ctl_kind *follow_machine_new(struct ctl_follow *f); /* machine.c */
struct ctl_kind *follow_ak_new(struct ctl_follow *f);      /* ak.c */
struct ctl_kind *follow_image_new(struct ctl_follow *f);   /* image.c */

/* ---- the source */

#define FOLLOW_N_WATCHES 6

struct follow_source {
	const struct ctl_env *env; /* borrowed */
	struct ctl_follow *f;      /* borrowed: its owner */
	struct op_scope ops;
	struct caches caches;                      /* owns its caches, which stay for life */
	struct k8s_watch *watch[FOLLOW_N_WATCHES]; /* owned; NULL: not connected */
	struct k8s_transport *api;                 /* owned, likewise */
	char *ns;                                  /* owned, likewise */
	int n;           /* watches in use, from the first; 0: not connected */
	char *from;      /* owned: spec.follow and its Secret's version when read; NULL: none */
	struct op *read; /* the read of the Secret */
	char peer[256];  /* "https://host:port namespace"; "": not connected */
	char problem[ERR_TEXT_SIZE + 64]; /* why there is no connection; "": no reason */
};

/* ---- follow.c */

enum { FOLLOW_CLUSTER, FOLLOW_MACHINE, FOLLOW_AK, FOLLOW_IMAGE, FOLLOW_N_KINDS };

struct follow_listeners {
	struct {
		void (*fn)(void *arg);
		void *arg;
	} v[CTL_FOLLOW_LISTENERS];
	unsigned n;
};

struct ctl_follow {
	const struct ctl_env *env; /* borrowed */
	struct caches *caches;     /* borrowed: env's, to write peer */
	struct follow_source source;
	struct ctl_kind *kind[FOLLOW_N_KINDS]; /* owned */
	struct defer check;
	struct timer tick;
	bool on;
	struct { /* this cluster, as of the last check of the peer */
		char uid[64];
		enum model_authority authority;
		int64_t epoch;
	} was;
	bool may_copy;  /* as of the last check */
	bool went_back; /* as of the last complete list */
	char went_back_why[384];
	char spec_why[512]; /* why spec is not in step; "": it is */
	struct ctl_follow_state is;
	int64_t told_seen_s;   /* is.seen_s at the last notification */
	size_t told_behind;    /* is.behind, likewise */
	uint64_t told_ms;      /* boot clock of the last notification */
	int64_t told_stale_s;  /* when the last Event SourceAway was posted */
	const char *told_peer; /* reason of the last Event about the peer, static; NULL: none */
	int64_t told_peer_s;
	struct follow_listeners listeners, peer_listeners;
};

void follow_peer_view(const struct ctl_follow *f, struct ctl_follow_peer_view *out);

#endif
