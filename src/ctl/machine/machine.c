/* SPDX-License-Identifier: MIT */
/*
 * The controller of Machine: which Machines a change concerns. One thing is done outside a step:
 * what a Machine declared is withdrawn when its object disappears, because no step can do that any
 * more.
 */
#include "config.h"

#include "machine_internal.h"

#include <string.h>

#include "tec/base/uuid.h"

/* Several Machines may claim one ID; a change of one of them may concern all. */
static void wake_id(struct ctl_kind *k, const char *id)
{
	ctl_kind_wake_index(k, STATE_MACHINES, 0, id);
}

/* Withdraw what a deleted Machine declared. If someone removed its finalizer by force, revoke
 * the key: no step of this Machine will. */
static void on_gone(struct ctl_kind *k, const struct model_machine *was)
{
	struct kbs_sync *sync = k->state->sync;
	char path[RATS_RESOURCE_PATH_MAX];
	const struct kobj *declared;

	if (!k->on || !was->id_valid)
		return;
	rats_resource_path(was->id, path);
	declared = kbs_sync_object(sync, KBS_RESOURCE, path);
	if (declared && str_eq(model_secret(declared)->owner_uid, was->obj.uid))
		kbs_sync_revoke(sync, KBS_RESOURCE, path);
	if (k8s_cache_first(k->state->machines, 0, was->id))
		return; /* the next one with this id decides */
	if (state_trustee_gone(state_trustee_observed(k->state, KBS_RESOURCE, path)))
		kbs_sync_forget(sync, KBS_RESOURCE, path);
	else if (was->has_finalizer)
		kbs_sync_revoke(sync, KBS_RESOURCE, path);
}

/* Wake the Machine, and those with the same ID when it may belong to another one now. */
static void map_machine(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_kind *k = self;
	const struct model_machine *a = was ? model_machine(was) : NULL,
				   *b = now ? model_machine(now) : NULL;

	ctl_runner_wake(k->runner, was ? was->name : now->name);
	if (a && (!b || !str_eq(was->uid, now->uid)))
		on_gone(k, a);
	/* The ID may now belong to another Machine. */
	if (!a || !b || !str_eq(was->uid, now->uid) || !str_eq(a->announced, b->announced) ||
		model_machine_delivered(a) != model_machine_delivered(b)) {
		wake_id(k, a ? a->id : NULL);
		wake_id(k, b ? b->id : NULL);
	}
}

/* Wake the Machine only for changes that its look depends on: a status write of a key is not
 * one. */
static void map_ak(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_kind *k = self;
	const struct model_ak *a = was ? model_ak(was) : NULL, *b = now ? model_ak(now) : NULL;

	if (a && b && str_eq(a->owner_uid, b->owner_uid) && a->n_owners == b->n_owners &&
		str_eq(a->approved_at, b->approved_at) &&
		a->cond[AK_APPROVED].status == b->cond[AK_APPROVED].status &&
		str_eq(a->uuid, b->uuid) && str_eq(was->uid, now->uid) &&
		was->deleting == now->deleting)
		return;
	wake_id(k, a ? a->uuid : NULL);
	if (b && (!a || !str_eq(a->uuid, b->uuid)))
		wake_id(k, b->uuid);
}

/* The Secret of a disk key is named like the ID of its Machine. */
static void map_secret(void *self, const struct kobj *was, const struct kobj *now)
{
	wake_id(self, was ? was->name : now->name);
}

/* Wake what a change in a Trustee concerns. While Trustee is being filled, answers arrive for
 * every name; those keys are woken when the filling ends. name NULL: anything may have changed. */
static void on_sync(struct ctl_kind *k, enum kbs_kind kind, const char *name)
{
	char id[UUID_TEXT_LEN + 1];
	const struct kobj *declared;

	ctl_acts_wake_waiting(&k->acts, kind, name);
	if (!name) {
		ctl_kind_wake_all(k);
		return;
	}
	if (state_trustee_is_filling(k->state, kind, name))
		return;
	if (kind == KBS_REFVALUE) {
		if (!rats_is_identity_name(name))
			return;
		for (unsigned i = 0; i <= KBS_LIST_MAX; i++) {
			declared = kbs_sync_object_at(k->state->sync, kind, name, i);
			if (!declared)
				return;
			wake_id(k, model_ak(declared)->uuid);
		}
	} else if (rats_resource_id(name, id)) {
		wake_id(k, id);
		if (!k8s_cache_first(k->state->machines, 0, id) &&
			state_trustee_gone(state_trustee_observed(k->state, kind, name)))
			kbs_sync_forget(k->state->sync, kind, name);
	}
}

struct ctl_kind *ctl_machine_new(const struct ctl_env *env)
{
	static const struct ctl_watch watches[] = {
		{STATE_MACHINES, map_machine},
		{STATE_AKS, map_ak},
		{STATE_SECRETS, map_secret},
		{STATE_CLUSTERS, ctl_kind_map_cluster},
		{.map = NULL},
	};
	static const struct ctl_kind_conf conf = {
		.name = "machine",
		.of = STATE_MACHINES,
		.size = sizeof(struct ctl_kind),
		.look_size = sizeof(struct machine_look),
		.n_conds = MACHINE_N_CONDS,
		.acts = machine_acts,
		.status = CTL_MACHINE_APPLY_STATUS,
		.knows_cached = true,
		.watches = watches,
		.look = machine_view_look,
		.ended = machine_act_ended,
		.tell = machine_act_tell,
		.on_sync = on_sync,
	};

	return ctl_kind_new(env, &conf);
}
