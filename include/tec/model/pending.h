/* SPDX-License-Identifier: MIT */
/*
 * What counts against the limits of spec.registration, for the listeners, which refuse, and for the
 * cluster's condition RegistrationOpen, which says so: one rule for both.
 */
#ifndef TEC_MODEL_PENDING_H
#define TEC_MODEL_PENDING_H

#include <stdbool.h>
#include <stddef.h>

#include "tec/model/ak.h"
#include "tec/model/cluster.h"
#include "tec/model/machine.h"

/* A listener made it and nothing has matched it; false for NULL. */
bool model_pending_machine(const struct model_machine *m);
bool model_pending_ak(const struct model_ak *a);
/* A listener made it because a key was registered (registration.machine AtKey), bound or not: any
 * number that looks like a public key is enough for that. False for NULL. */
bool model_pending_by_key(const struct model_machine *m);

struct model_pending {
	size_t machines;       /* pending */
	size_t keys;           /* pending */
	size_t all_machines;   /* everybody's */
	size_t never_attested; /* where that is known (state.h) */
};
/* The limits, in the order in which they are reported. */
enum model_pending_limit {
	MODEL_PENDING_NONE,
	MODEL_PENDING_ALL_MACHINES,   /* machineLimit: no Machine is made */
	MODEL_PENDING_NEVER_ATTESTED, /* half of machineLimit: no Machine is made */
	MODEL_PENDING_MACHINES,       /* pendingLimit: no Machine is made */
	/* pendingLimit: of keys the first one for a Machine without any is taken, no other. */
	MODEL_PENDING_KEYS,
	MODEL_PENDING_N,
};
/* The first limit that these counts have reached. */
enum model_pending_limit model_pending_reached(
	const struct model_cluster *c, const struct model_pending *p);
bool model_pending_is_reached(const struct model_cluster *c, const struct model_pending *p,
	enum model_pending_limit limit);
/* How many Machines one source address may have made within an hour, bound or not: a quarter of the
 * lower of pendingLimit and machineLimit, so that no single one fills either at once, and never less
 * than 16. */
size_t model_pending_share(const struct model_cluster *c);

#endif
