/* SPDX-License-Identifier: MIT */
/* Machines, and the disk keys in their Secrets. */
#ifndef TEC_CACHES_MACHINE_H
#define TEC_CACHES_MACHINE_H

#include "tec/model/machine.h"
#include "tec/caches/caches.h"

/*
 * Return the Machine that holds an id: one whose key may have been delivered, else one that
 * announces a key, else the oldest. Age alone does not suffice: an older Machine may appear late
 * (clocks of two API servers, resolution of one second), after the key was generated. The owner of
 * a Secret does not count: every client that may create one can set it.
 */
const struct model_machine *caches_machine_of_id(const struct caches *s, const char *id);

/* Created by a listener, and its disk key was not given to any node; false where that is
 * unknown. */
bool caches_machine_never_attested(const struct caches *s, const struct model_machine *m);

/* Tell whether pendingTTL applies: created by a listener, and no node can have its disk key. */
bool caches_machine_may_expire(const struct caches *s, const struct model_machine *m);
/* Since when a Machine waits: for a key, then for its node to attest. Wall clock. */
int64_t caches_machine_waits_since_s(const struct model_machine *m);
/* Tell whether the operator deleted this Machine because its node did not come in time: the node
 * may come again. */
bool caches_machine_is_expired(const struct caches *s, const struct model_machine *m);

/* What the Secret that has the Machine's id as its name is to the Machine. */
enum caches_luks {
	CACHES_LUKS_ABSENT,
	CACHES_LUKS_OK,         /* a well-formed key, owned by exactly this Machine */
	CACHES_LUKS_MALFORMED,  /* owned by this Machine, but not a key of the known form */
	CACHES_LUKS_FOREIGN,    /* of another owner, or of another form: never changed */
	CACHES_LUKS_DELETING,   /* like OK, but being deleted */
	CACHES_LUKS_UNREADABLE, /* cannot be read: no conclusion is drawn */
	CACHES_LUKS_N,
};
enum caches_luks caches_machine_luks(const struct caches *s, const struct model_machine *m);
/* The Secret contains a key that the Machine announces. */
bool caches_machine_announces(const struct model_machine *m, const struct model_secret *secret);
/* Created by another operator, or by version 0.1.0, and to become this operator's: Secret and
 * Machine are older than this operator, and none of our marks contradicts it. */
bool caches_machine_inherits(
	const struct caches *s, const struct model_machine *m, const struct model_secret *secret);
/* Another operator's Machine whose Secret is missing: its disk may be encrypted with the lost
 * key. */
bool caches_machine_lost_key(const struct caches *s, const struct model_machine *m);

#endif
