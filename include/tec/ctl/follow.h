/* SPDX-License-Identifier: MIT */
/*
 * Follows another operator, the source. While spec.authority is Following, the decisions of the
 * source are copied into this namespace, so that the Trustee here can serve the same nodes and
 * this operator can take over at any time. It reads the other cluster and writes nothing there;
 * while it runs, it is the only writer of the copies here.
 *
 * Every Machine and AttestationKey of this namespace counts as a copy. If the source deletes one,
 * it is revoked and deleted here. If a complete list merely lacks one, it is only revoked and gets
 * a mark (MODEL_WITHHELD_ANNOTATION) until the source lists it again. decide is pure: see the two
 * enums. Keys of the queue are names of Machines, and of AttestationKeys, which are also the names
 * of their Secrets.
 *
 * While spec.authority is Self or Frozen, the operator that was followed before is the peer: only
 * its TrustedExecutionCluster is read, and nothing is copied. This operator does not decide until
 * it has read the peer once, or an administrator confirmed that it decides (spec.epoch rises, or
 * spec.authority becomes Self, while it runs): see caches_cluster_authority(). A peer that decides
 * with a higher epoch makes this one Frozen. Two operators that cannot reach each other may both
 * decide; that is detected when they can.
 */
#ifndef TEC_CTL_FOLLOW_H
#define TEC_CTL_FOLLOW_H

#include "tec/ctl/ak.h"
#include "tec/ctl/env.h"
#include "tec/ctl/record.h"

enum ctl_follow_is {
	CTL_FOLLOW_OFF,         /* authority is not Following */
	CTL_FOLLOW_CONNECTING,  /* the source was not read completely yet */
	CTL_FOLLOW_COPYING,     /* something still has to be copied */
	CTL_FOLLOW_IN_STEP,     /* everything is copied, and in every Trustee of this cluster */
	CTL_FOLLOW_UNREACHABLE, /* `why` explains: no kubeconfig, no connection, no rights */
	CTL_FOLLOW_OTHER,       /* the source is not the cluster that was followed before */
	CTL_FOLLOW_WENT_BACK,   /* too many copies are missing at the source: nothing is revoked */
	CTL_FOLLOW_CONFLICT,    /* an object here has the name of a copy but different content */
};

struct ctl_follow_state {
	enum ctl_follow_is
		is;     /* for a peer: OFF, CONNECTING, IN_STEP (it is read), UNREACHABLE, OTHER */
	char peer[256]; /* "https://host:port namespace"; "" while unknown */
	char uid[64];   /* of the TrustedExecutionCluster there; "" while unknown */
	size_t behind;  /* objects that still have to be copied, or deleted here */
	int64_t epoch;  /* of the other cluster when it was last read; -1: unknown */
	bool decides_too; /* the peer decides with a lower epoch: it does not know of this operator */
	int64_t seen_s; /* wall clock: when the copy of the other's state was last current; 0: never */
	char why[512]; /* for people; "": nothing to report */
};

struct ctl_follow;
/* Writes only the member peer of state. */
struct ctl_follow *ctl_follow_new(const struct ctl_env *env, struct caches *caches);
void ctl_follow_free(struct ctl_follow *f); /* NULL is fine */
/* This process leads from now on: what others wrote about the peer no longer counts. Called
 * before any controller that decides is on. */
void ctl_follow_leads(struct ctl_follow *f);
void ctl_follow_on(struct ctl_follow *f);  /* it follows spec.authority itself */
void ctl_follow_off(struct ctl_follow *f); /* forgets the source and its keys */
/* The same object for life. Listeners are called on changes; for seen_s alone, at most every 10
 * s. */
const struct ctl_follow_state *ctl_follow_state(const struct ctl_follow *f);
#define CTL_FOLLOW_LISTENERS 4
void ctl_follow_listen(struct ctl_follow *f, void (*fn)(void *arg), void *arg);
/* fn is called when state->peer changed, so every object may need another look. */
void ctl_follow_listen_peer(struct ctl_follow *f, void (*fn)(void *arg), void *arg);

/* ---- the peer */

struct ctl_follow_peer_view {
	bool known;     /* there is a peer, and this cluster is Self or Frozen */
	bool confirmed; /* since the last look, an administrator confirmed that this one decides */
	bool read;      /* the peer can be read now; the rest is what was read */
	bool self;      /* spec.authority of this cluster is Self */
	bool retired, decides; /* the peer is Retired; is Self */
	bool yields;           /* model_cluster_yields() */
};
enum caches_peer ctl_follow_peer(const struct ctl_follow_peer_view *v, enum caches_peer was);

/* ---- one Machine: the input of decide */

enum ctl_follow_secret {
	CTL_FOLLOW_SECRET_ABSENT,
	CTL_FOLLOW_SECRET_SAME,     /* holds the key to copy, owned by our Machine */
	CTL_FOLLOW_SECRET_DELETING, /* the same, being deleted: created again when it is gone */
	CTL_FOLLOW_SECRET_OTHER,    /* anything else: never touched */
	CTL_FOLLOW_SECRET_N,
};

struct ctl_follow_machine_view {
	bool may_copy;             /* the source was read completely, and is the followed cluster */
	bool may_take;             /* may_copy, and not suspiciously many objects are missing */
	bool there;                /* the source has it and is not deleting it */
	bool deleted;              /* the source deleted it */
	bool here, deleting, held; /* our copy: exists; has a deletionTimestamp; our finalizer */
	bool same;                 /* ours has the source's ID and no other delivered key */
	bool ready;                /* the source recorded which key it has */
	bool waits;                /* the AttestationKey that a mark names is not copied yet */
	bool marked;               /* ours has the finalizer and all marks of the source */
	bool has_key;              /* the source's Secret exists and holds that key */
	enum ctl_follow_secret secret;
	bool must_read;             /* the API has a Secret that the cache does not show */
	bool withheld;              /* ours has the mark */
	bool unused;                /* no Trustee and no node ever had its key */
	bool revoked;               /* nothing of it is declared; it is marked for revocation */
	bool gone;                  /* every Trustee confirmed the revocation */
	enum ctl_recorded recorded; /* what must be known once ours is gone: ctl/record.h */
};

enum ctl_follow_machine_do {
	CTL_FOLLOW_MACHINE_NOTHING,
	CTL_FOLLOW_MACHINE_CREATE,
	CTL_FOLLOW_MACHINE_MARK, /* the finalizer and all marks, in one patch */
	CTL_FOLLOW_MACHINE_READ_SECRET,
	CTL_FOLLOW_MACHINE_CREATE_SECRET,
	CTL_FOLLOW_MACHINE_WITHHOLD,
	CTL_FOLLOW_MACHINE_DELETE, /* our finalizer holds it until it is revoked */
	CTL_FOLLOW_MACHINE_REVOKE,
	CTL_FOLLOW_MACHINE_RECORD,
	CTL_FOLLOW_MACHINE_DROP_FINALIZER,
	CTL_FOLLOW_MACHINE_N_DO,
};
enum ctl_follow_machine_do ctl_follow_machine_decide(const struct ctl_follow_machine_view *v);

/* ---- one AttestationKey, or the Secret that a deleted one left */

struct ctl_follow_ak_view {
	bool may_copy, may_take, there, deleted; /* as above */
	bool here;
	bool same;       /* ours has the source's public key, and its UUID or none yet */
	bool creatable;  /* the Machine that it names is copied, or does not exist */
	bool approved;   /* by the source: its Machine there is bound to it */
	bool bound;      /* our copy of that Machine is bound to our copy of the key */
	bool stamped;    /* ours has the owner and the marks of the approval */
	bool patched;    /* nothing else of ours differs from the source */
	bool unapproved; /* the source's Machine is bound to another key now */
	enum ctl_ak_secret secret;
	bool secret_held, secret_deleting, secret_live, must_read; /* as in ctl/ak.h */
	bool withheld, unused, revoked, gone;                      /* as above, its identity */
	enum ctl_recorded recorded;
};

enum ctl_follow_ak_do {
	CTL_FOLLOW_AK_NOTHING,
	CTL_FOLLOW_AK_CREATE,
	CTL_FOLLOW_AK_PATCH,   /* set the UUID, remove the mark that withholds it */
	CTL_FOLLOW_AK_APPROVE, /* owner and marks */
	CTL_FOLLOW_AK_UNAPPROVE,
	CTL_FOLLOW_AK_READ_SECRET,
	CTL_FOLLOW_AK_CREATE_SECRET,
	CTL_FOLLOW_AK_WITHHOLD,
	CTL_FOLLOW_AK_DELETE, /* our finalizer holds its Secret */
	CTL_FOLLOW_AK_REVOKE,
	CTL_FOLLOW_AK_DELETE_SECRET,
	CTL_FOLLOW_AK_RECORD,
	CTL_FOLLOW_AK_DROP_SECRET_FINALIZER,
	CTL_FOLLOW_AK_N_DO,
};
enum ctl_follow_ak_do ctl_follow_ak_decide(const struct ctl_follow_ak_view *v);

/* ---- one ApprovedImage */

struct ctl_follow_image_view {
	bool may_copy, may_take, there, deleted, here, deleting; /* as above */
	bool same;                                               /* ours has the source's image */
	bool patched;                                            /* and the rest of its spec */
	bool has_entry;           /* the source's operator wrote its values */
	bool announced, written;  /* on our copy; in our ConfigMap */
	bool writable, text_read; /* our ConfigMap exists; its current text is known */
};

enum ctl_follow_image_do {
	CTL_FOLLOW_IMAGE_NOTHING,
	CTL_FOLLOW_IMAGE_CREATE,
	CTL_FOLLOW_IMAGE_PATCH,
	CTL_FOLLOW_IMAGE_ANNOUNCE,
	CTL_FOLLOW_IMAGE_READ,
	CTL_FOLLOW_IMAGE_WRITE,
	CTL_FOLLOW_IMAGE_DELETE,
	CTL_FOLLOW_IMAGE_N_DO,
};
enum ctl_follow_image_do ctl_follow_image_decide(const struct ctl_follow_image_view *v);

/* ---- one ConfigMap or Secret that the source's spec names */

struct ctl_follow_named_view {
	bool there;                 /* the source has it and is not deleting it */
	bool there_read, here_read; /* its content is known in the current version */
	bool has;                   /* the source's has something to copy */
	bool here, deleting;
	bool same;    /* ours has the same content */
	bool copied;  /* ours has the mark of a copy from there */
	bool own;     /* ours may differ: spec.trusteeServers, which names it, is not copied */
	bool in_hand; /* the content to write is in memory */
};

enum ctl_follow_named_do {
	CTL_FOLLOW_NAMED_NOTHING,
	CTL_FOLLOW_NAMED_READ_THERE,
	CTL_FOLLOW_NAMED_READ_HERE,
	CTL_FOLLOW_NAMED_CREATE,
	CTL_FOLLOW_NAMED_ADOPT, /* set the mark of a copy: it is updated from then on */
	CTL_FOLLOW_NAMED_UPDATE,
	CTL_FOLLOW_NAMED_WAIT,
	CTL_FOLLOW_NAMED_CONFLICT,
};
enum ctl_follow_named_do ctl_follow_named_decide(const struct ctl_follow_named_view *v);

#endif
