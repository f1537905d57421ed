/* SPDX-License-Identifier: MIT */
/*
 * The controller of AttestationKey: which keys a change concerns. A key of the queue is the name of
 * an AttestationKey, of a Secret, or of both: a deleted AttestationKey leaves its Secret.
 */
#include "config.h"

#include "ak_internal.h"

#include <string.h>

/* All keys that name one Machine compete for it. */
static void wake_uuid(struct ctl_kind *k, const char *uuid)
{
	ctl_kind_wake_index(k, STATE_AKS, 0, uuid);
}

/* Withdraw the identity of a deleted key at once. If the operator is killed before, the Secret
 * with its finalizer leads to the same revocation. */
static void on_gone(struct ctl_kind *k, const struct model_ak *was)
{
	char name[RATS_IDENTITY_NAME_LEN + 1];
	const struct kobj *declared;

	if (!k->on || !model_ak_identity(was, name))
		return;
	declared = kbs_sync_object_in(k->state->sync, KBS_REFVALUE, name, was->obj.name, NULL);
	if (declared && str_eq(declared->uid, was->obj.uid))
		kbs_sync_withdraw(k->state->sync, KBS_REFVALUE, name, was->obj.name);
	else if (!kbs_sync_object(k->state->sync, KBS_REFVALUE, name) &&
		 state_trustee_gone(state_trustee_observed(k->state, KBS_REFVALUE, name)))
		kbs_sync_forget(k->state->sync, KBS_REFVALUE, name);
}

/* Wake the key itself, and, when something changed that its competitors depend on, the other
 * keys of the Machine and those with the same public key. */
static void map_ak(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_kind *k = self;
	const struct model_ak *a = was ? model_ak(was) : NULL, *b = now ? model_ak(now) : NULL;

	ctl_runner_wake(k->runner, was ? was->name : now->name);
	if (a && (!b || !str_eq(was->uid, now->uid)))
		on_gone(k, a);
	/* The other keys of the Machine depend on these members only. */
	if (a && b && str_eq(was->uid, now->uid) && str_eq(a->owner_uid, b->owner_uid) &&
		a->n_owners == b->n_owners && str_eq(a->approved_at, b->approved_at) &&
		a->cond[AK_APPROVED].status == b->cond[AK_APPROVED].status &&
		str_eq(a->uuid, b->uuid) && was->deleting == now->deleting)
		return;
	wake_uuid(k, a ? a->uuid : NULL);
	wake_uuid(k, b ? b->uuid : NULL);
	ctl_kind_wake_index(k, STATE_AKS, 1, a ? a->spki_sha256 : b->spki_sha256);
}

/* A name may be that of a key's own Secret, or of a disk key (which is the UUID of a Machine). */
static void map_secret(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_kind *k = self;
	const char *name = was ? was->name : now->name;
	const struct kobj *ak = k8s_cache_find(k->state->aks, name);
	const char *identity;
	bool held = (was && model_secret(was)->has_ak_finalizer) ||
		    (now && model_secret(now)->has_ak_finalizer);

	if (ak || held)
		ctl_runner_wake(k->runner, name);
	if (!was || !now || was->deleting != now->deleting || was->unreadable != now->unreadable)
		wake_uuid(k, name); /* a disk key: binding waits for it */
	if (ak && (!now || (was && was->unreadable)))
		wake_uuid(k, model_ak(ak)->uuid); /* a later key may wait until this Secret
						     is gone */
	/* This Secret was the last trace of the identity, and Trustee confirmed the deletion. */
	if (k->on && !ak && !now && (identity = model_secret(was)->identity) &&
		kbs_sync_is_revoked(k->state->sync, KBS_REFVALUE, identity) &&
		state_trustee_gone(state_trustee_observed(k->state, KBS_REFVALUE, identity)))
		kbs_sync_forget(k->state->sync, KBS_REFVALUE, identity);
}

/* Wake the keys of a Machine when something changes that approval depends on: ID, binding, disk
 * key. */
static void map_machine(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_kind *k = self;
	const struct model_machine *a = was ? model_machine(was) : NULL,
				   *b = now ? model_machine(now) : NULL;

	if (a && b && str_eq(was->uid, now->uid) && was->deleting == now->deleting &&
		str_eq(a->id, b->id) && str_eq(a->announced, b->announced) &&
		str_eq(a->bound_at, b->bound_at) && str_eq(a->bound_key, b->bound_key) &&
		str_eq(a->bound_spki, b->bound_spki) &&
		model_machine_delivered(a) == model_machine_delivered(b))
		return;
	wake_uuid(k, a ? a->id : NULL);
	wake_uuid(k, b ? b->id : NULL);
	ctl_kind_wake_index(k, STATE_AKS, 2, was ? was->uid : now->uid);
}

/* Wake the keys whose identity changed in a Trustee. name NULL: anything may have changed. */
static void on_sync(struct ctl_kind *k, enum kbs_kind kind, const char *name)
{
	const struct kobj *declared;

	if (kind != KBS_REFVALUE)
		return;
	ctl_acts_wake_waiting(&k->acts, kind, name);
	if (!name) {
		ctl_kind_wake_all(k);
		return;
	}
	if (state_trustee_is_filling(k->state, kind, name))
		return;
	if (!rats_is_identity_name(name))
		return;
	/* The keys in the list, and the first one that waits for a place. */
	for (unsigned i = 0; i <= KBS_LIST_MAX; i++) {
		declared = kbs_sync_object_at(k->state->sync, kind, name, i);
		if (!declared)
			return;
		ctl_runner_wake(k->runner, declared->name);
	}
}

struct ctl_kind *ctl_ak_new(const struct ctl_env *env)
{
	static const struct ctl_watch watches[] = {
		{STATE_AKS, map_ak},
		{STATE_SECRETS, map_secret},
		{STATE_MACHINES, map_machine},
		{STATE_CLUSTERS, ctl_kind_map_cluster},
		{.map = NULL},
	};
	static const struct ctl_kind_conf conf = {
		.name = "ak",
		.of = STATE_AKS,
		.size = sizeof(struct ctl_kind),
		.look_size = sizeof(struct ak_look),
		.n_conds = AK_N_CONDS,
		.acts = ak_acts,
		.status = CTL_AK_APPLY_STATUS,
		.knows_cached = true,
		.watches = watches,
		.look = ak_view_look,
		.ended = ak_act_ended,
		.tell = ak_act_tell,
		.on_sync = on_sync,
	};

	return ctl_kind_new(env, &conf);
}
