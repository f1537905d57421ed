/* SPDX-License-Identifier: MIT */
/*
 * AttestationKey: matching, one key per Machine, approval, ownership, Secret with finalizer,
 * identity to Trustee; revocation is keyed on the Secret (a deleted AttestationKey is gone at
 * once). Keys are AttestationKey names, which are also the names of their Secrets.
 */
#ifndef TEC_CTL_AK_H
#define TEC_CTL_AK_H

#include "tec/ctl/env.h"
#include "tec/kobj/key.h"
#include "tec/loop/queue.h"

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
	bool usable;  /* a public key that Trustee can verify, and the one that was approved */
	bool machine; /* a live Machine holds the id that this key names */
	bool approved, stamped; /* owned by exactly that Machine; with our marks of when and what
				   was approved */
	bool asked;             /* an administrator's annotation, not consumed yet */
	bool allowed;           /* nothing stands against approving it by itself */
	bool superseded;        /* another usable key of this Machine is the one that counts */
	bool bound; /* the Machine carries the mark that it had a key: before the first delivery */
	enum ctl_ak_secret secret;
	bool secret_held, secret_deleting; /* our finalizer is on it; deletionTimestamp */
	bool secret_live;  /* a live answer showed that the cached version of the Secret is current
			    */
	bool must_read;    /* the API has a Secret that the cache does not show */
	bool name_taken;   /* the identity's name belongs to a key approved earlier */
	bool others_clear; /* every other identity that this Machine had is confirmed gone */
	bool declared, fresh; /* this key's identity; from the cached version of this key */
	bool revoked; /* nothing of this key, or of the stale Secret, is declared, and a tombstone
			 says so */
	enum kbs_far far; /* of what has to be revoked or is declared */
	bool confirmed;   /* a live answer showed that the cached version of this key is current */
	bool overdue;     /* past pendingTTL (only what a listener made) */
	bool status_ok;
};

enum ctl_ak_do {
	CTL_AK_NOTHING,
	CTL_AK_CONFIRM, /* GET the AttestationKey before it is deleted for its age */
	CTL_AK_APPROVE,
	CTL_AK_UNAPPROVE,
	CTL_AK_READ_SECRET,
	CTL_AK_CREATE_SECRET,
	CTL_AK_ADD_SECRET_FINALIZER,
	CTL_AK_DECLARE,
	CTL_AK_REVOKE,
	CTL_AK_DELETE_SECRET,
	CTL_AK_DROP_SECRET_FINALIZER,
	CTL_AK_EXPIRE,
	CTL_AK_APPLY_STATUS,
	CTL_AK_N_DO,
};
enum ctl_ak_do ctl_ak_decide(const struct ctl_ak_view *v);
const char *ctl_ak_do_name(enum ctl_ak_do d);

struct ctl_ak;
struct ctl_ak *ctl_ak_new(const struct ctl_env *env);
void ctl_ak_free(struct ctl_ak *c);
void ctl_ak_on(struct ctl_ak *c);  /* caches filled and leader */
void ctl_ak_off(struct ctl_ak *c); /* cancels what is in flight */
struct queue_next ctl_ak_step(struct ctl_ak *c, const struct kobj_key *key);

#endif
