/* SPDX-License-Identifier: MIT */
/*
 * Condition RegistrationOpen: whether an unknown node can register now, and how close the limits
 * are. Each change of a cache updates the counts, so that a look costs nothing; any number of
 * registrations causes one step a second.
 */
#include "config.h"

#include "cluster_internal.h"

#include <stdio.h>

/* ---- counts */

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
		cluster_counted(c);
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
		cluster_counted(c);
}

void cluster_registration_watch(struct ctl_cluster *c)
{
	k8s_cache_listen(c->env->caches->machines, on_machine, c);
	k8s_cache_listen(c->env->caches->aks, on_ak, c);
}

/* ---- logs, Events, conditions */

/* Which limit is reached. The listeners apply the same limits with model_pending_reached(), so
 * condition and answers agree. */
static enum model_cluster_reason by_counts(
	const struct ctl_cluster *c, const struct model_cluster *cluster, struct strbuf *text)
{
	static const struct {
		enum model_cluster_reason reason;
		const char *text;
	} limits[MODEL_PENDING_N] = {
		[MODEL_PENDING_NONE] = {CLUSTER_OPEN, "Nodes can register."},
		[MODEL_PENDING_ALL_MACHINES] = {CLUSTER_MACHINE_LIMIT_REACHED,
			"No more Machines can register. Delete Machines that are not needed, or raise registration.machineLimit."},
		[MODEL_PENDING_NEVER_ATTESTED] = {CLUSTER_MACHINE_LIMIT_REACHED,
			"No more Machines can register: half of registration.machineLimit never attested. They expire after "
			"registration.pendingTTL; delete unknown Machines now, or raise registration.machineLimit."},
		[MODEL_PENDING_MACHINES] = {CLUSTER_PENDING_LIMIT_REACHED,
			"No more Machines can register. Delete unknown Machines whose AK is not True (kubectl get machines), or raise "
			"registration.pendingLimit."},
		[MODEL_PENDING_KEYS] = {CLUSTER_PENDING_LIMIT_REACHED,
			"No more keys are accepted, except the first key of a Machine that has none. Delete unknown keys that are not "
			"approved (kubectl get attestationkeys), or raise registration.pendingLimit."},
	};
	struct model_pending p = c->pending;
	enum model_pending_limit reached;

	p.all_machines = k8s_cache_count(c->env->caches->machines);
	p.never_attested = c->env->caches->never_attested;
	reached = model_pending_reached(cluster, &p);
	strbuf_addf(text,
		"%s Created by a listener and not matched yet: %zu Machines and %zu keys (registration.pendingLimit %d each). "
		"Machines in total: %zu (registration.machineLimit %d), of which listeners created %zu for a registered key alone "
		"(registration.machine AtKey).",
		limits[reached].text, p.machines, p.keys, cluster->pending_limit, p.all_machines,
		cluster->machine_limit, c->by_key);
	return limits[reached].reason;
}

/* The first obstacle wins: authority, then mode, then the key, then the TLS Secrets, without which no
 * node gets an answer that it can verify, then the limits. */
void cluster_registration_want(const struct ctl_cluster *c, struct cluster_look *l)
{
	/* Self gets here only while it is unknown whether the peer decides. */
	static const struct {
		enum model_cluster_reason reason;
		const char *text;
	} by_authority[] = {
		[MODEL_AUTHORITY_SELF] = {CLUSTER_PEER_UNKNOWN,
			"It is not known whether another operator decides; see the condition Authority."},
		[MODEL_AUTHORITY_FOLLOWING] = {CLUSTER_FOLLOWING,
			"spec.authority is Following: nodes register with the operator that decides."},
		[MODEL_AUTHORITY_FROZEN] = {CLUSTER_FROZEN, "spec.authority is Frozen."},
		[MODEL_AUTHORITY_RETIRED] = {CLUSTER_RETIRED, "spec.authority is Retired."},
	};
	const struct ctl_own *key = &c->regkey[CLUSTER_REGKEY_CURRENT];
	enum ctl_own_state state = ctl_own_state(key, &l->c->obj);
	cleanup_strbuf struct strbuf text = STRBUF_INIT, tls = STRBUF_INIT;
	enum model_cluster_reason r;

	cluster_tls_refused(c->env, l->c, &tls);
	cluster_tls_unusable(c->env, l->c, &tls);
	cluster_tls_missing(c->env, l->c, &tls);
	if (l->v.deleting || !l->v.served) {
		r = CLUSTER_NOT_SERVED;
		strbuf_adds(&text, "This cluster is not served.");
	} else if (!caches_cluster_decides(c->env->caches)) {
		r = by_authority[l->c->authority].reason;
		strbuf_adds(&text, by_authority[l->c->authority].text);
	} else if (l->c->reg_mode == MODEL_REG_MANUAL) {
		r = CLUSTER_MODE_MANUAL;
		strbuf_adds(
			&text, "registration.mode is Manual: only administrators create Machines.");
	} else if (l->c->reg_machine == MODEL_REG_AT_KEY &&
		   (state == CTL_OWN_ABSENT || state == CTL_OWN_PLANTED ||
			   state == CTL_OWN_FOREIGN)) {
		/* One that was not read yet counts as valid, so that a start of the operator does
		 * not close registration. */
		r = CLUSTER_NO_REGISTRATION_KEY;
		strbuf_adds(&text,
			"Secret tec-registration-key does not exist yet, or was not created by this operator (see condition Installed).");
	} else if (tls.len) {
		r = CLUSTER_REFUSED;
		strbuf_addf(&text, "No node can register:%s", tls.data);
	} else {
		r = by_counts(c, l->c, &text);
	}
	CLUSTER_WANT(l, CLUSTER_REGISTRATION_OPEN, r == CLUSTER_OPEN, r, "%s", strbuf_str(&text));
}
