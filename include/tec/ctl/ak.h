/* SPDX-License-Identifier: MIT */
/*
 * AttestationKey: matching, one key per Machine, approval, ownership, Secret with finalizer,
 * identity to Trustee; revocation is keyed on the Secret (a deleted AttestationKey is gone at
 * once). Which key a Machine is bound to is one mark on the Machine; everything else follows from
 * it. Keys are AttestationKey names, which are also the names of their Secrets.
 */
#ifndef TEC_CTL_AK_H
#define TEC_CTL_AK_H

#include "tec/ctl/env.h"
#include "tec/ctl/kind.h"
#include "tec/ctl/record.h"
#include "tec/model/cluster.h"

/* The Secret of this name. */
enum ctl_ak_secret {
	CTL_AK_SECRET_ABSENT,
	CTL_AK_SECRET_OURS,  /* this key's, as we would have made it */
	CTL_AK_SECRET_STALE, /* a key's that is gone (our finalizer is on it): has to be revoked */
	CTL_AK_SECRET_FOREIGN, /* anything else, and what cannot be read: never touched */
	CTL_AK_SECRET_N,
};

/* All that decide looks at. */
struct ctl_ak_view {
	bool found, deleting;
	enum model_authority authority;
	bool verifiable, usable; /* a public key that Trustee can verify; and, when bound, the one
				    that was bound */
	bool invalid;            /* not verifiable, and no older operator's: never approved */
	bool machine;            /* a live Machine has the id that this key names */
	bool approved, stamped;  /* that Machine is bound to it (what is not a public key: is its
				    owner); the key carries owner and marks that follow from it */
	bool annotated;          /* an administrator's annotation approves it; not consumed yet */
	bool ignored;   /* the annotation, but our Approved condition was never written: it came
			   with the key */
	bool allowed;   /* nothing prevents approving it automatically */
	bool bindable;  /* binding it marks the Machine's disk key as delivered: that key is there,
			   or the mark is */
	bool left_over; /* owner or marks of an approval that is no longer valid */
	bool inherited; /* another operator approved it: kept as it is until it is bound */
	enum ctl_ak_secret secret;
	bool secret_held, secret_deleting; /* our finalizer is on it; deletionTimestamp */
	bool secret_live;  /* a live answer showed that the cached version of the Secret is current
			    */
	bool must_read;    /* the API has a Secret that the cache does not show */
	bool duplicate;    /* another Machine has the same key, approved earlier */
	bool others_clear; /* every other identity that this Machine had is confirmed gone */
	bool withheld;     /* not to be declared: state_cluster_withholds() */
	bool declared, fresh; /* this key's identity; from the cached version of this key */
	bool revoked; /* nothing of this key, or of the stale Secret, is declared, and a tombstone
			 says so */
	enum kbs_observed observed; /* of what has to be revoked or is declared */
	enum ctl_recorded recorded; /* that it was revoked */
	bool confirmed; /* a live answer showed that the cached version of this key is current */
	bool overdue;   /* past pendingTTL (only what a listener made) */
	bool status_ok;
};

enum ctl_ak_do {
	CTL_AK_NOTHING,
	CTL_AK_CONFIRM, /* GET the AttestationKey before it is deleted for its age */
	CTL_AK_IGNORE,  /* takes the annotation off that came with the key */
	CTL_AK_BIND,    /* the mark on the Machine: the one record of the key it is bound to */
	CTL_AK_APPROVE, /* owner and marks of the key; consumes the annotation */
	CTL_AK_UNAPPROVE,
	CTL_AK_READ_SECRET,
	CTL_AK_CREATE_SECRET,
	CTL_AK_ADD_SECRET_FINALIZER,
	CTL_AK_DECLARE,
	CTL_AK_REVOKE,
	CTL_AK_RECORD, /* that the identity was revoked: ctl/record.h */
	CTL_AK_DELETE_SECRET,
	CTL_AK_DROP_SECRET_FINALIZER,
	CTL_AK_EXPIRE,
	CTL_AK_APPLY_STATUS,
	CTL_AK_N_DO,
};
enum ctl_ak_do ctl_ak_decide(const struct ctl_ak_view *v);

struct ctl_kind *ctl_ak_new(const struct ctl_env *env);

#endif
