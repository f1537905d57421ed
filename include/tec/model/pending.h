/* SPDX-License-Identifier: MIT */
/*
 * The rules for what counts against the limits of spec.registration, shared by the listeners, which
 * enforce them, and the cluster's condition RegistrationOpen, which reports them.
 */
#ifndef TEC_MODEL_PENDING_H
#define TEC_MODEL_PENDING_H

#include <stdbool.h>
#include <stddef.h>

#include "tec/model/ak.h"
#include "tec/model/cluster.h"
#include "tec/model/machine.h"

/* Created by a listener, and not matched with anything yet; false for NULL. */
bool model_pending_machine(const struct model_machine *m);
bool model_pending_ak(const struct model_ak *a);
/* Created by a listener because a key was registered (registration.machine AtKey), whether bound or
 * not: any number that looks like a public key suffices for that. False for NULL. */
bool model_pending_by_key(const struct model_machine *m);

struct model_pending {
	size_t machines;       /* pending */
	size_t keys;           /* pending */
	size_t all_machines;   /* by listeners and by others */
	size_t never_attested; /* where this is known (caches/caches.h) */
};
/* The limits, in the order in which they are reported. */
enum model_pending_limit {
	MODEL_PENDING_NONE,
	MODEL_PENDING_ALL_MACHINES,   /* machineLimit: no Machine is created */
	MODEL_PENDING_NEVER_ATTESTED, /* half of machineLimit: no Machine is created */
	MODEL_PENDING_MACHINES,       /* pendingLimit: no Machine is created */
	/* pendingLimit: only the first key of a Machine without any is accepted. */
	MODEL_PENDING_KEYS,
	MODEL_PENDING_N,
};
/* Return the first limit that these counts have reached. */
enum model_pending_limit model_pending_reached(
	const struct model_cluster *c, const struct model_pending *p);
bool model_pending_is_reached(const struct model_cluster *c, const struct model_pending *p,
	enum model_pending_limit limit);
/* Return how many Machines one source address may create within an hour, bound or not: a quarter of
 * the lower of pendingLimit and machineLimit, so that no single source exhausts either at once, and
 * at least 16. */
size_t model_pending_share(const struct model_cluster *c);

#endif
