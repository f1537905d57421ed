/* SPDX-License-Identifier: MIT */
/*
 * Machines and keys are limited separately, both by pendingLimit: a flood of Machines keeps no key
 * out, and a flood of keys no Machine.
 */
#include "config.h"

#include "tec/model/pending.h"

#define SHARE_MIN       16
#define UUID_VERSION_AT 14 /* offset in a UUID's text; with AtKey the version is 8 */

/* A Machine stops being pending when a key is bound to it, not when its node attests. */
bool model_pending_machine(const struct model_machine *m)
{
	return m && m->by_listener && !m->bound_at;
}

/* A uuid that a listener derives from a key is of version 8 (RFC 9562); a uuid that it chooses is
 * random. */
bool model_pending_by_key(const struct model_machine *m)
{
	return m && m->by_listener && m->id_valid && m->id[UUID_VERSION_AT] == '8';
}

/* A key that matched a Machine has it as its owner. */
bool model_pending_ak(const struct model_ak *a)
{
	return a && a->by_listener && !a->owner_uid;
}

/* Half of machineLimit, rounded up, may never have attested: strangers cannot fill the cluster with
 * Machines. */
bool model_pending_is_reached(const struct model_cluster *c, const struct model_pending *p,
	enum model_pending_limit limit)
{
	switch (limit) {
	case MODEL_PENDING_ALL_MACHINES:
		return p->all_machines >= (size_t)c->machine_limit;
	case MODEL_PENDING_NEVER_ATTESTED:
		return p->never_attested >= (size_t)(c->machine_limit + 1) / 2;
	case MODEL_PENDING_MACHINES:
		return p->machines >= (size_t)c->pending_limit;
	case MODEL_PENDING_KEYS:
		return p->keys >= (size_t)c->pending_limit;
	case MODEL_PENDING_NONE:
	case MODEL_PENDING_N:
		break;
	}
	return false;
}

enum model_pending_limit model_pending_reached(
	const struct model_cluster *c, const struct model_pending *p)
{
	for (enum model_pending_limit l = MODEL_PENDING_NONE + 1; l < MODEL_PENDING_N; l++)
		if (model_pending_is_reached(c, p, l))
			return l;
	return MODEL_PENDING_NONE;
}

/* The lower limit decides: whichever is reached first locks others out. */
size_t model_pending_share(const struct model_cluster *c)
{
	int lower = c->machine_limit < c->pending_limit ? c->machine_limit : c->pending_limit;
	size_t quarter = (size_t)lower / 4;

	return quarter > SHARE_MIN ? quarter : SHARE_MIN;
}
