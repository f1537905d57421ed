/* SPDX-License-Identifier: MIT */
/*
 * Condition RegistrationOpen: whether an unknown node can register now, and how close the limits
 * are. Each change of a cache updates the counts, so that a look costs nothing; any number of
 * registrations causes one step a second.
 */
#include "config.h"

#include "cluster_internal.h"

#include <stdio.h>

#define STATUS_WAIT_MS 1000

/* ---- counts */

/* Many nodes may register in the same second; one step is enough for all of them. */
static void wake(struct ctl_cluster *c)
{
	const struct model_cluster *served = c->on ? state_cluster(c->env->state) : NULL;

	if (served)
		ctl_runner_wake_after(c->runner, served->obj.name, STATUS_WAIT_MS);
}

/* Keep the counts in step with the cache, also while this replica does not lead. was and now are
 * the versions before and after the change, NULL when there is none. */
static void on_machine(void *arg, const struct kobj *was, const struct kobj *now)
{
	struct ctl_cluster *c = arg;
	bool before = model_pending_machine(was ? model_machine(was) : NULL);
	bool after = model_pending_machine(now ? model_machine(now) : NULL);

	c->pending.machines += after;
	c->pending.machines -= before;
	c->by_key += model_pending_by_key(now ? model_machine(now) : NULL);
	c->by_key -= model_pending_by_key(was ? model_machine(was) : NULL);
	if (before != after || !was || !now)
		wake(c);
}

/* Only keys that a listener created and that are not approved count. */
static void on_ak(void *arg, const struct kobj *was, const struct kobj *now)
{
	struct ctl_cluster *c = arg;
	bool before = model_pending_ak(was ? model_ak(was) : NULL);
	bool after = model_pending_ak(now ? model_ak(now) : NULL);

	c->pending.keys += after;
	c->pending.keys -= before;
	if (before != after)
		wake(c);
}

void cluster_registration_watch(struct ctl_cluster *c)
{
	k8s_cache_listen(c->env->state->machines, on_machine, c);
	k8s_cache_listen(c->env->state->aks, on_ak, c);
}

/* ---- logs, Events, conditions */

static void want(
	struct cluster_look *l, enum model_cluster_reason r, const char *why, const char *counts)
{
	enum model_cluster_cond t = CLUSTER_REGISTRATION_OPEN;

	kobj_cond_want(&l->want[t], model_cluster_cond_types[t],
		r == CLUSTER_OPEN ? KOBJ_COND_TRUE : KOBJ_COND_FALSE, model_cluster_reason(r),
		"%s%s%s", why, counts[0] ? " " : "", counts);
}

/* Derive the condition from the counts. The listeners apply the same limits with
 * model_pending_reached(), so condition and answers agree. */
static void want_by_counts(const struct ctl_cluster *c, struct cluster_look *l)
{
	struct model_pending p = c->pending;
	char counts[384];

	p.all_machines = k8s_cache_count(c->env->state->machines);
	p.never_attested = c->env->state->never_attested;
	snprintf(counts, sizeof(counts),
		"Created by a listener and not matched yet: %zu Machines and %zu keys (registration.pendingLimit %d each). "
		"Machines in total: %zu (registration.machineLimit %d), of which listeners created %zu for a registered key alone "
		"(registration.machine AtKey).",
		p.machines, p.keys, l->c->pending_limit, p.all_machines, l->c->machine_limit,
		c->by_key);
	switch (model_pending_reached(l->c, &p)) {
	case MODEL_PENDING_ALL_MACHINES:
		want(l, CLUSTER_MACHINE_LIMIT_REACHED,
			"No more Machines can register. Delete Machines that are not needed, or raise registration.machineLimit.",
			counts);
		break;
	case MODEL_PENDING_NEVER_ATTESTED:
		want(l, CLUSTER_MACHINE_LIMIT_REACHED,
			"No more Machines can register: half of registration.machineLimit never attested. They expire after "
			"registration.pendingTTL; delete unknown Machines now, or raise registration.machineLimit.",
			counts);
		break;
	case MODEL_PENDING_MACHINES:
		want(l, CLUSTER_PENDING_LIMIT_REACHED,
			"No more Machines can register. Delete unknown Machines whose AK is not True (kubectl get machines), or raise "
			"registration.pendingLimit.",
			counts);
		break;
	case MODEL_PENDING_KEYS:
		want(l, CLUSTER_PENDING_LIMIT_REACHED,
			"No more keys are accepted, except the first key of a Machine that has none. Delete unknown keys that are not "
			"approved (kubectl get attestationkeys), or raise registration.pendingLimit.",
			counts);
		break;
	case MODEL_PENDING_NONE:
	case MODEL_PENDING_N:
		want(l, CLUSTER_OPEN, "Nodes can register.", counts);
		break;
	}
}

/* Tell whether the registration key is missing, which only AtKey needs. A Secret that was not
 * read yet counts as valid, so that a start of the operator does not close registration. */
static bool lacks_key(const struct ctl_cluster *c, const struct model_cluster *cluster)
{
	enum ctl_own_state state = ctl_own_state(&c->regkey[CLUSTER_REGKEY_CURRENT], &cluster->obj);

	return cluster->reg_machine == MODEL_REG_AT_KEY &&
	       (state == CTL_OWN_ABSENT || state == CTL_OWN_PLANTED || state == CTL_OWN_FOREIGN);
}

/* Self gets here only while it is unknown whether the peer decides. */
static void want_by_authority(struct cluster_look *l)
{
	if (l->c->authority == MODEL_AUTHORITY_FOLLOWING)
		want(l, CLUSTER_FOLLOWING,
			"spec.authority is Following: nodes register with the operator that decides.",
			"");
	else if (l->c->authority == MODEL_AUTHORITY_RETIRED)
		want(l, CLUSTER_RETIRED, "spec.authority is Retired.", "");
	else if (l->c->authority == MODEL_AUTHORITY_SELF)
		want(l, CLUSTER_PEER_UNKNOWN,
			"It is not known whether another operator decides; see the condition Authority.",
			"");
	else
		want(l, CLUSTER_FROZEN, "spec.authority is Frozen.", "");
}

/* The first obstacle wins: authority, then mode, then the key, then the limits. */
void cluster_registration_want(const struct ctl_cluster *c, struct cluster_look *l)
{
	if (l->v.deleting || !l->v.served)
		want(l, CLUSTER_NOT_SERVED, "This cluster is not served.", "");
	else if (!state_cluster_decides(c->env->state))
		want_by_authority(l);
	else if (l->c->reg_mode == MODEL_REG_MANUAL)
		want(l, CLUSTER_MODE_MANUAL,
			"registration.mode is Manual: only administrators create Machines.", "");
	else if (lacks_key(c, l->c))
		want(l, CLUSTER_NO_REGISTRATION_KEY,
			"Secret tec-registration-key does not exist yet, or was not created by this operator (see condition Installed).",
			"");
	else
		want_by_counts(c, l);
}
