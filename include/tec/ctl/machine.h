/* SPDX-License-Identifier: MIT */
/*
 * Machine: finalizer, LUKS key (born once, never again), annotation, declaration to Trustee,
 * status; and the way back on delete. decide is pure: see enum ctl_machine_do. Keys are Machine
 * names.
 */
#ifndef TEC_CTL_MACHINE_H
#define TEC_CTL_MACHINE_H

#include "tec/ctl/env.h"
#include "tec/kobj/key.h"
#include "tec/loop/queue.h"

/* The Secret named like the Machine's id. */
enum ctl_luks {
	CTL_LUKS_ABSENT,
	CTL_LUKS_OK,         /* a well-formed key, owned by exactly this Machine */
	CTL_LUKS_MALFORMED,  /* owned by this Machine, but not a key of the known form */
	CTL_LUKS_FOREIGN,    /* somebody else's, or something else: never touched */
	CTL_LUKS_DELETING,   /* as OK, and about to go */
	CTL_LUKS_UNREADABLE, /* it cannot be read: nothing follows from it */
	CTL_LUKS_N,
};

/* All that decide looks at. "Far" of several names is the worst of them. */
struct ctl_machine_view {
	bool found, deleting, has_finalizer;
	bool id_ok, is_holder; /* of several Machines with one id, one holds it */
	bool confirmed;      /* a live answer showed that the cached version of this Machine is the
				current one */
	bool adopt;          /* made by a listener, owned by nobody, and a cluster is served */
	bool overdue, bound; /* past pendingTTL (only what a listener made); a key was approved for
				it, ever */
	bool must_bind; /* a usable key is approved for it, and the Machine does not say so yet */
	enum ctl_luks luks;
	bool must_read;             /* the API has a Secret that the cache does not show */
	bool key_made, key_matches; /* the annotation; the Secret's key is the one it names */
	bool can_restore;           /* the key that the annotation names is still in memory */
	bool declared,
		revoked; /* to kbs/sync: this Secret's value; nothing of this Machine any more */
	enum kbs_far far_key, far_ids;
	bool status_ok;
};

enum ctl_machine_do {
	CTL_MACHINE_NOTHING,
	CTL_MACHINE_CONFIRM, /* GET the Machine: a stale cache must not lead to a second key */
	CTL_MACHINE_ADD_FINALIZER,
	CTL_MACHINE_ADOPT,
	CTL_MACHINE_READ_SECRET,
	CTL_MACHINE_CREATE_SECRET,  /* POST; the only place a key is born */
	CTL_MACHINE_RESTORE_SECRET, /* POST the key that was made before */
	CTL_MACHINE_NOTE_KEY,       /* the annotation: from here on no key is ever made again */
	CTL_MACHINE_BIND,           /* the mark that it had a key: from here on it never expires */
	CTL_MACHINE_DECLARE,
	CTL_MACHINE_REVOKE,
	CTL_MACHINE_DROP_FINALIZER,
	CTL_MACHINE_EXPIRE,
	CTL_MACHINE_APPLY_STATUS,
	CTL_MACHINE_N_DO,
};
enum ctl_machine_do ctl_machine_decide(const struct ctl_machine_view *v);
const char *ctl_machine_do_name(enum ctl_machine_do d);

struct ctl_machine;
struct ctl_machine *ctl_machine_new(const struct ctl_env *env);
void ctl_machine_free(struct ctl_machine *c);
void ctl_machine_on(struct ctl_machine *c);  /* caches filled and leader */
void ctl_machine_off(struct ctl_machine *c); /* cancels what is in flight */
struct queue_next ctl_machine_step(struct ctl_machine *c, const struct kobj_key *key);

#endif
