/* SPDX-License-Identifier: MIT */
/*
 * The controller of Machine. It announces the LUKS key on the Machine before it creates the Secret
 * (a key is created once and never again), declares the key to Trustee and writes the status; on
 * deletion it undoes this in reverse. The controller of AttestationKeys writes which key a Machine
 * is bound to. decide is pure: see enum ctl_machine_do. Keys of the queue are Machine names.
 */
#ifndef TEC_CTL_MACHINE_H
#define TEC_CTL_MACHINE_H

#include "tec/ctl/env.h"
#include "tec/ctl/kind.h"
#include "tec/ctl/record.h"
#include "tec/model/cluster.h"
#include "tec/caches/machine.h"

/* The input of decide. An observation of several names is the worst of them. */
struct ctl_machine_view {
	bool found, deleting, has_finalizer;
	enum model_authority authority;
	bool id_ok, owns_id; /* of several Machines with one ID, the ID belongs to one */
	bool confirmed;      /* a live answer showed that the cached version of this Machine is
				current */
	bool adopt;          /* a listener created it, it has no owner, and a cluster is served */
	bool overdue;        /* older than pendingTTL (only if a listener created it) */
	bool bound;          /* a key is or was bound to it */
	bool never_attested; /* no node ever received its disk key */
	enum caches_luks luks;
	bool must_read; /* the API has a Secret that the cache does not show */
	/* Marks on the Machine: keys are announced; the key may have been delivered. */
	bool announced, delivered;
	bool in_hand;     /* an announced key is in memory, its Secret not created yet */
	bool key_ours;    /* the Secret's content is announced */
	bool inherits;    /* it is not, but Machine and Secret are older than this operator */
	bool lost;        /* another operator's Machine whose Secret is gone */
	bool must_mark;   /* the key may be delivered once it is marked so */
	bool may_deliver; /* the marks allow delivery */
	bool recall;      /* delivered earlier, must be revoked now; not confirmed yet */
	bool can_restore; /* the announced key is still in memory */
	/* In kbs/sync: this Secret's value is declared; nothing of this Machine is left; the path is
	 * revoked. */
	bool declared, revoked, path_revoked;
	enum kbs_observed observed_key, observed_ids;
	enum ctl_recorded recorded; /* what must be known once this Machine is gone */
	bool status_ok;
};

enum ctl_machine_do {
	CTL_MACHINE_NOTHING,
	CTL_MACHINE_CONFIRM, /* GET the Machine before it expires */
	CTL_MACHINE_ADD_FINALIZER,
	CTL_MACHINE_ADOPT,
	CTL_MACHINE_READ_SECRET,
	CTL_MACHINE_ANNOUNCE,       /* finalizer and hash; the only act that generates a key */
	CTL_MACHINE_CREATE_SECRET,  /* POST the announced key */
	CTL_MACHINE_RESTORE_SECRET, /* POST the delivered key */
	CTL_MACHINE_INHERIT, /* finalizer, hash and delivered mark for another operator's key */
	CTL_MACHINE_MARK_DELIVERED, /* before the first delivery: the key is never replaced */
	CTL_MACHINE_DECLARE,
	CTL_MACHINE_RECALL,      /* the key only; the Machine stays */
	CTL_MACHINE_NOTE_RECALL, /* every Trustee confirmed that */
	CTL_MACHINE_REVOKE,
	CTL_MACHINE_RECORD, /* the deletion: ctl/record.h */
	CTL_MACHINE_DROP_FINALIZER,
	CTL_MACHINE_EXPIRE,
	CTL_MACHINE_APPLY_STATUS,
	CTL_MACHINE_N_DO,
};
enum ctl_machine_do ctl_machine_decide(const struct ctl_machine_view *v);
/* Renders the time of an attestation, applied before a node receives its disk key. The caller
 * puts it. */
struct json_object *ctl_machine_attested_json(const struct model_machine *m, int64_t now_s);

struct ctl_kind *ctl_machine_new(const struct ctl_env *env);

#endif
