/* SPDX-License-Identifier: MIT */
/*
 * Follows another operator: while spec.authority is Following, what that one decided is copied into
 * this namespace, so that this one's Trustee can serve the same nodes, and this operator can decide
 * in its place at any time. It reads the other cluster and writes nothing there; of this one it is
 * the only part that writes the copies while it runs.
 *
 * Every Machine and AttestationKey of this namespace counts as a copy. One that is deleted there is
 * revoked here and deleted. One that a complete list does not show is only revoked, and gets a mark
 * (MODEL_WITHHELD_ANNOTATION) until it shows again. decide is pure: see the two enums. Keys are
 * names of Machines, and of AttestationKeys, which are also the names of their Secrets.
 *
 * While authority is Self or Frozen, the one that was followed before is the peer: its
 * TrustedExecutionCluster alone is read, and nothing is copied. Until that was read once, or an
 * administrator confirmed that this operator decides (spec.epoch rises, or spec.authority becomes Self,
 * while it runs), it does not: see state_cluster_authority(). A peer that decides with a higher epoch
 * makes this one Frozen. Two that cannot reach each other may both decide: that is seen when they can.
 */
#ifndef TEC_CTL_FOLLOW_H
#define TEC_CTL_FOLLOW_H

#include "tec/ctl/ak.h"
#include "tec/ctl/env.h"
#include "tec/ctl/record.h"

enum ctl_follow_is {
	CTL_FOLLOW_OFF,         /* authority is not Following */
	CTL_FOLLOW_CONNECTING,  /* nothing complete was read of the other one yet */
	CTL_FOLLOW_COPYING,     /* something is still to be copied */
	CTL_FOLLOW_IN_STEP,     /* what was read last is copied, and in every Trustee of ours */
	CTL_FOLLOW_UNREACHABLE, /* why says it: no kubeconfig, no connection, no rights */
	CTL_FOLLOW_OTHER,       /* it is not the cluster that was followed before */
	CTL_FOLLOW_WENT_BACK, /* much of what was copied is missing there at once: nothing is taken away */
	CTL_FOLLOW_CONFLICT, /* an object of ours has a copy's name and another content */
};

struct ctl_follow_state {
	enum ctl_follow_is
		is;     /* with a peer: OFF, CONNECTING, IN_STEP (it is read), UNREACHABLE, OTHER */
	char peer[256]; /* "https://host:port namespace", "" while it is not known */
	char uid[64];   /* of the TrustedExecutionCluster there, likewise */
	size_t behind;  /* objects that are not copied yet, or still to be taken away */
	int64_t epoch;  /* of the other one, as it was read last; -1: not known */
	bool decides_too; /* the peer, with a lower epoch: it does not know of this one */
	int64_t seen_s; /* wall clock: when the other one was last known to be as we read it; 0: never */
	char why[512]; /* for people, "" where there is nothing to say */
};

struct ctl_follow;
/* Writes the member peer of state, and nothing else of it. */
struct ctl_follow *ctl_follow_new(const struct ctl_env *env, struct state *state);
void ctl_follow_free(struct ctl_follow *f); /* NULL is fine */
/* This process leads from now on: what others wrote of the peer counts no more. Before anything that
 * decides is on. */
void ctl_follow_leads(struct ctl_follow *f);
void ctl_follow_on(struct ctl_follow *f);  /* it looks at spec.authority itself */
void ctl_follow_off(struct ctl_follow *f); /* forgets the source and its keys */
/* Stays the same object for life; changes are told by fn, those of seen_s alone every 10 s at most. */
const struct ctl_follow_state *ctl_follow_state(const struct ctl_follow *f);
#define CTL_FOLLOW_LISTENERS 4
void ctl_follow_listen(struct ctl_follow *f, void (*fn)(void *arg), void *arg);
/* fn: whether the peer may decide changed, so every object may have to be looked at. */
void ctl_follow_listen_peer(struct ctl_follow *f, void (*fn)(void *arg), void *arg);

/* ---- the peer */

struct ctl_follow_peer_view {
	bool known;            /* there is one, and this one is Self or Frozen */
	bool confirmed;        /* since the last look an administrator said that this one decides */
	bool read;             /* it can be read now; the rest is of what was read */
	bool self;             /* this one's spec.authority */
	bool retired, decides; /* the peer */
	bool yields;           /* model_cluster_yields() */
};
enum state_peer ctl_follow_peer(const struct ctl_follow_peer_view *v, enum state_peer was);

/* ---- one Machine: all that decide looks at */

enum ctl_follow_secret {
	CTL_FOLLOW_SECRET_ABSENT,
	CTL_FOLLOW_SECRET_SAME,     /* the key that is to be copied, owned by our Machine */
	CTL_FOLLOW_SECRET_DELETING, /* the same, and it will be created again when it is gone */
	CTL_FOLLOW_SECRET_OTHER,    /* never touched */
	CTL_FOLLOW_SECRET_N,
};

struct ctl_follow_machine_view {
	bool may_copy; /* what is read there is complete, and of the cluster that is followed */
	bool may_take; /* ... and not suspiciously less than before */
	bool there;    /* the source has it, and is not deleting it */
	bool deleted;  /* the source deleted it */
	bool here, deleting, held; /* ours; deletionTimestamp; our finalizer is on it */
	bool same;                 /* ours has the source's id, and no other delivered key */
	bool ready;                /* the source noted which key it has */
	bool waits;                /* its AttestationKey is not copied yet, which a mark names */
	bool marked;               /* ours has the finalizer and all marks of the source's */
	bool has_key;              /* the source's Secret is there and holds that key */
	enum ctl_follow_secret secret;
	bool must_read;             /* the API has a Secret that the cache does not show */
	bool withheld;              /* the mark */
	bool unused;                /* no Trustee ever had its key, nor a node */
	bool revoked;               /* nothing of it is declared, and a tombstone says so */
	bool gone;                  /* every Trustee confirmed that */
	enum ctl_recorded recorded; /* what has to be known when ours is gone: ctl/record.h */
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

/* ---- one AttestationKey, or what is left of one: its Secret */

struct ctl_follow_ak_view {
	bool may_copy, may_take, there, deleted; /* as above */
	bool here;
	bool same;       /* ours has the source's public key and uuid, or no uuid yet */
	bool creatable;  /* the Machine that it names is copied, or there is none */
	bool approved;   /* acknowledged by the source: its Machine is bound to it */
	bool bound;      /* ... and our copy of that Machine to our copy of it */
	bool stamped;    /* ours has the owner and the marks of that */
	bool patched;    /* nothing else of ours differs from the source's */
	bool unapproved; /* the source's Machine is bound to another key now */
	enum ctl_ak_secret secret;
	bool secret_held, secret_deleting, secret_live, must_read; /* as in ctl/ak.h */
	bool withheld, unused, revoked, gone;                      /* as above, its identity */
	enum ctl_recorded recorded;
};

enum ctl_follow_ak_do {
	CTL_FOLLOW_AK_NOTHING,
	CTL_FOLLOW_AK_CREATE,
	CTL_FOLLOW_AK_PATCH,   /* uuid, and no mark that withholds it */
	CTL_FOLLOW_AK_APPROVE, /* owner and marks */
	CTL_FOLLOW_AK_UNAPPROVE,
	CTL_FOLLOW_AK_READ_SECRET,
	CTL_FOLLOW_AK_CREATE_SECRET,
	CTL_FOLLOW_AK_WITHHOLD,
	CTL_FOLLOW_AK_DELETE, /* its Secret is left, and held by our finalizer */
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
	bool patched;                                            /* ... and the rest of its spec */
	bool has_entry;           /* the source's operator wrote its values */
	bool announced, written;  /* on ours; into our ConfigMap */
	bool writable, text_read; /* that one is there; its text is known in this version */
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
	bool there;                 /* the source has it, and is not deleting it */
	bool there_read, here_read; /* it is known what it holds, in its version of now */
	bool has;                   /* that is something to be copied */
	bool here, deleting;
	bool same;   /* ours holds that too */
	bool copied; /* ours has the mark of a copy from there */
	bool own; /* ours may be another one: spec.trusteeServers, which names it, is not copied */
	bool in_hand; /* what is to be written was just read */
};

enum ctl_follow_named_do {
	CTL_FOLLOW_NAMED_NOTHING,
	CTL_FOLLOW_NAMED_READ_THERE,
	CTL_FOLLOW_NAMED_READ_HERE,
	CTL_FOLLOW_NAMED_CREATE,
	CTL_FOLLOW_NAMED_ADOPT, /* the mark: it is updated from then on */
	CTL_FOLLOW_NAMED_UPDATE,
	CTL_FOLLOW_NAMED_WAIT,
	CTL_FOLLOW_NAMED_CONFLICT,
};
enum ctl_follow_named_do ctl_follow_named_decide(const struct ctl_follow_named_view *v);

#endif
