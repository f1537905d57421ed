/* SPDX-License-Identifier: MIT */
/* Machines, and the disk keys in their Secrets. */
#ifndef TEC_STATE_MACHINE_H
#define TEC_STATE_MACHINE_H

#include "tec/model/machine.h"
#include "tec/state/state.h"

/*
 * Return the Machine that holds an id: one whose key may have been delivered, else one that
 * announces a key, else the oldest. Age alone does not suffice: an older Machine may appear late
 * (clocks of two API servers, resolution of one second), after the key was generated. The owner of
 * a Secret does not count: every client that may create one can set it.
 */
const struct model_machine *state_machine_of_id(const struct state *s, const char *id);

/* Created by a listener, and its disk key was not given to any node; false where that is
 * unknown. */
bool state_machine_never_attested(const struct state *s, const struct model_machine *m);

/* Tell whether pendingTTL applies: created by a listener, and no node can have its disk key. */
bool state_machine_may_expire(const struct state *s, const struct model_machine *m);
/* Since when a Machine waits: for a key, then for its node to attest. Wall clock. */
int64_t state_machine_waits_since_s(const struct model_machine *m);
/* Tell whether the operator deleted this Machine because its node did not come in time: the node
 * may come again. */
bool state_machine_is_expired(const struct state *s, const struct model_machine *m);

/* What the Secret that has the Machine's id as its name is to the Machine. */
enum state_luks {
	STATE_LUKS_ABSENT,
	STATE_LUKS_OK,         /* a well-formed key, owned by exactly this Machine */
	STATE_LUKS_MALFORMED,  /* owned by this Machine, but not a key of the known form */
	STATE_LUKS_FOREIGN,    /* of another owner, or of another form: never changed */
	STATE_LUKS_DELETING,   /* like OK, but being deleted */
	STATE_LUKS_UNREADABLE, /* cannot be read: no conclusion is drawn */
	STATE_LUKS_N,
};
enum state_luks state_machine_luks(const struct state *s, const struct model_machine *m);
/* The Secret contains a key that the Machine announces. */
bool state_machine_announces(const struct model_machine *m, const struct model_secret *secret);
/* Created by another operator, or by version 0.1.0, and to become this operator's: Secret and
 * Machine are older than this operator, and none of our marks contradicts it. */
bool state_machine_inherits(
	const struct state *s, const struct model_machine *m, const struct model_secret *secret);
/* Another operator's Machine whose Secret is missing: its disk may be encrypted with the lost
 * key. */
bool state_machine_lost_key(const struct state *s, const struct model_machine *m);

#endif
