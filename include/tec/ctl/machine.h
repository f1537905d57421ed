/* SPDX-License-Identifier: MIT */
/*
 * Machine: the LUKS key, announced on the Machine before its Secret is made (born once, never
 * again), declaration to Trustee, status; and the way back on delete. Which AttestationKey the
 * Machine is bound to is written by the controller of these. decide is pure: see enum
 * ctl_machine_do. Keys are Machine names.
 */
#ifndef TEC_CTL_MACHINE_H
#define TEC_CTL_MACHINE_H

#include "tec/ctl/env.h"
#include "tec/ctl/kind.h"
#include "tec/ctl/record.h"
#include "tec/model/cluster.h"
#include "tec/state/machine.h"

/* All that decide looks at. What is observed of several names is the worst of them. */
struct ctl_machine_view {
	bool found, deleting, has_finalizer;
	enum model_authority authority;
	bool id_ok, owns_id; /* of several Machines with one id, one counts */
	bool confirmed;      /* a live answer showed that the cached version of this Machine is the
				current one */
	bool adopt;          /* made by a listener, without an owner, and a cluster is served */
	bool overdue;        /* past pendingTTL (only what a listener made) */
	bool bound;          /* a key is or was bound to it */
	bool never_attested; /* its disk key was given to no node */
	enum state_luks luks;
	bool must_read; /* the API has a Secret that the cache does not show */
	/* Marks on the Machine: it announces keys; its key may have been delivered. */
	bool announced, delivered;
	bool in_hand;     /* a key that it announces is in memory, its Secret not made yet */
	bool key_ours;    /* the Secret's content is announced */
	bool inherits;    /* ... is not, but both were there before this operator */
	bool lost;        /* another operator's Machine whose Secret is gone */
	bool must_mark;   /* the key is to be delivered, and the mark for that is missing */
	bool may_deliver; /* the marks for delivering it are there */
	bool recall;      /* delivered earlier, and not to be now; not confirmed yet */
	bool can_restore; /* the announced key is still in memory */
	/* In kbs/sync: this Secret's value; nothing of this Machine any more; a tombstone for its
	 * path. */
	bool declared, revoked, path_revoked;
	enum kbs_observed observed_key, observed_ids;
	enum ctl_recorded recorded; /* what has to be known when this Machine is gone */
	bool status_ok;
};

enum ctl_machine_do {
	CTL_MACHINE_NOTHING,
	CTL_MACHINE_CONFIRM, /* GET the Machine before it is deleted for its age */
	CTL_MACHINE_ADD_FINALIZER,
	CTL_MACHINE_ADOPT,
	CTL_MACHINE_READ_SECRET,
	CTL_MACHINE_ANNOUNCE,       /* finalizer and hash; the only place a key is born */
	CTL_MACHINE_CREATE_SECRET,  /* POST the key that was announced */
	CTL_MACHINE_RESTORE_SECRET, /* POST the key that was delivered */
	CTL_MACHINE_INHERIT, /* finalizer, hash and delivered mark for what another operator made */
	CTL_MACHINE_MARK_DELIVERED, /* before the first delivery: no key is ever made again */
	CTL_MACHINE_DECLARE,
	CTL_MACHINE_RECALL,      /* the key only; the Machine stays */
	CTL_MACHINE_NOTE_RECALL, /* every Trustee confirmed that */
	CTL_MACHINE_REVOKE,
	CTL_MACHINE_RECORD, /* that it was deleted: ctl/record.h */
	CTL_MACHINE_DROP_FINALIZER,
	CTL_MACHINE_EXPIRE,
	CTL_MACHINE_APPLY_STATUS,
	CTL_MACHINE_N_DO,
};
enum ctl_machine_do ctl_machine_decide(const struct ctl_machine_view *v);
/* To be applied before a Machine's disk key is given to its node. The caller puts it. */
struct json_object *ctl_machine_attested_json(const struct model_machine *m, int64_t now_s);

struct ctl_kind *ctl_machine_new(const struct ctl_env *env);

#endif
