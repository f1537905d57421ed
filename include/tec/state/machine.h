/* SPDX-License-Identifier: MIT */
/* Machines and the disk keys in their Secrets. */
#ifndef TEC_STATE_MACHINE_H
#define TEC_STATE_MACHINE_H

#include "tec/model/machine.h"
#include "tec/state/state.h"

/*
 * The Machine that holds an id: one whose key may have been delivered, else one that announces a
 * key, else the oldest. Age alone is not enough: an older one may show up late (two API servers'
 * clocks, one second's resolution), after the key was made. The owner of a Secret does not count:
 * every client that may create one writes it.
 */
const struct model_machine *state_machine_of_id(const struct state *s, const char *id);

/* A listener made it, and its disk key was given to no node; false where that is not known. */
bool state_machine_never_attested(const struct state *s, const struct model_machine *m);

/* Since when a Machine waits: for a key, and then for its node to attest. */
int64_t state_machine_waits_since_s(const struct model_machine *m);
/* The operator's own deletion of a Machine that nobody came for: its node may come again. */
bool state_machine_is_expired(const struct state *s, const struct model_machine *m);

/* What the Secret named like the Machine's id is to it. */
enum state_luks {
	STATE_LUKS_ABSENT,
	STATE_LUKS_OK,         /* a well-formed key, owned by exactly this Machine */
	STATE_LUKS_MALFORMED,  /* owned by this Machine, but not a key of the known form */
	STATE_LUKS_FOREIGN,    /* of another owner, or something else: never touched */
	STATE_LUKS_DELETING,   /* as OK, and being deleted */
	STATE_LUKS_UNREADABLE, /* it cannot be read: nothing follows from it */
	STATE_LUKS_N,
};
enum state_luks state_machine_luks(const struct state *s, const struct model_machine *m);
/* The Secret's content is a key that the Machine announces. */
bool state_machine_announces(const struct model_machine *m, const struct model_secret *secret);
/* Made by another operator, or version 0.1.0, and now to become this operator's: Secret and Machine
 * are older, and none of our marks contradicts it. */
bool state_machine_inherits(
	const struct state *s, const struct model_machine *m, const struct model_secret *secret);
/* Another operator's Machine whose Secret is gone: its disk may be encrypted. */
bool state_machine_lost_key(const struct state *s, const struct model_machine *m);

#endif
