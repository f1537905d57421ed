/* SPDX-License-Identifier: MIT */
/*
 * The controller of AttestationKey. It matches keys with Machines (one key per Machine), approves
 * them, sets their owner, creates a Secret with a finalizer for each and declares its identity to
 * Trustee. Revocation depends on the Secret, because a deleted AttestationKey is gone at once. One
 * mark on the Machine says which key it is bound to; everything else follows from it. Keys of the
 * queue are AttestationKey names, which are also the names of their Secrets.
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
	CTL_AK_SECRET_OURS,    /* of this key, as this operator creates it */
	CTL_AK_SECRET_STALE,   /* of a deleted key, with our finalizer: to be revoked */
	CTL_AK_SECRET_FOREIGN, /* anything else, or unreadable: never touched */
	CTL_AK_SECRET_N,
};

/* The input of decide. */
struct ctl_ak_view {
	bool found, deleting;
	enum model_authority authority;
	bool verifiable, usable; /* Trustee can verify the public key; and, if bound, it is the key
				    that was bound */
	bool invalid;           /* not verifiable, and not from an older operator: never approved */
	bool machine;           /* a live Machine has the ID that this key names */
	bool approved, stamped; /* that Machine is bound to it (or owns it, if it is not a usable
				    public key); the key has the owner and marks that follow */
	bool annotated; /* an administrator's annotation approves it and was not applied yet */
	bool ignored;   /* the annotation is set, but our Approved condition was never written:
			   it was set at creation and does not count */
	bool allowed;   /* nothing prevents approving it automatically */
	bool bindable;  /* the disk key that binding marks as delivered exists, or is marked
			   already */
	bool left_over; /* it has owner or marks of an approval that is no longer valid */
	bool inherited; /* another operator approved it: unchanged until it is bound */
	enum ctl_ak_secret secret;
	bool secret_held, secret_deleting; /* has our finalizer; has a deletionTimestamp */
	bool secret_live;  /* a live answer showed that the cached version of the Secret is current
			    */
	bool must_read;    /* the API has a Secret that the cache does not show */
	bool duplicate;    /* another Machine has the same key, approved earlier */
	bool others_clear; /* every other identity of this Machine is confirmed gone */
	bool withheld;     /* not to be declared: caches_cluster_withholds() */
	bool declared, fresh; /* its identity is declared; from this cached version */
	bool revoked; /* the identity of this key, or of the stale Secret, is not declared and
			 marked for revocation */
	enum kbs_observed observed; /* of the identity that is declared or has to be revoked */
	enum ctl_recorded recorded; /* the revocation */
	bool confirmed; /* a live answer showed that the cached version of this key is current */
	bool overdue;   /* older than pendingTTL (only if a listener created it) */
	bool status_ok;
};

enum ctl_ak_do {
	CTL_AK_NOTHING,
	CTL_AK_CONFIRM, /* GET the AttestationKey before it expires */
	CTL_AK_IGNORE,  /* remove an annotation that was set at creation */
	CTL_AK_BIND,    /* set the mark on the Machine: the only record of its key */
	CTL_AK_APPROVE, /* set owner and marks of the key; remove the annotation */
	CTL_AK_UNAPPROVE,
	CTL_AK_READ_SECRET,
	CTL_AK_CREATE_SECRET,
	CTL_AK_ADD_SECRET_FINALIZER,
	CTL_AK_DECLARE,
	CTL_AK_REVOKE,
	CTL_AK_RECORD, /* the revocation of the identity: ctl/record.h */
	CTL_AK_DELETE_SECRET,
	CTL_AK_DROP_SECRET_FINALIZER,
	CTL_AK_EXPIRE,
	CTL_AK_APPLY_STATUS,
	CTL_AK_N_DO,
};
enum ctl_ak_do ctl_ak_decide(const struct ctl_ak_view *v);

struct ctl_kind *ctl_ak_new(const struct ctl_env *env);

#endif
