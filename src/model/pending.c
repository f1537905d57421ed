/* SPDX-License-Identifier: MIT */
/*
 * Machines and keys are limited separately, both to pendingLimit: a crowd of Machines keeps
 * no key out, and a crowd of keys no Machine.
 */
#include "config.h"

#include "tec/model/pending.h"

#define SHARE_MIN       16
#define UUID_VERSION_AT 14 /* of a UUID's text; with AtKey it is version 8 */

bool model_pending_machine(const struct model_machine *m)
{
	return m && m->by_listener && !m->bound_at;
}

bool model_pending_by_key(const struct model_machine *m)
{
	return m && m->by_listener && m->id_valid && m->id[UUID_VERSION_AT] == '8';
}

bool model_pending_ak(const struct model_ak *a)
{
	return a && a->by_listener && !a->owner_uid;
}

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

size_t model_pending_share(const struct model_cluster *c)
{
	int lower = c->machine_limit < c->pending_limit ? c->machine_limit : c->pending_limit;
	size_t quarter = (size_t)lower / 4;

	return quarter > SHARE_MIN ? quarter : SHARE_MIN;
}
