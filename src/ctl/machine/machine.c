/* SPDX-License-Identifier: MIT */
/*
 * Machine: look, decide one thing, do it, return; and which Machines a change concerns. The one
 * thing done outside a step is withdrawing what a vanished Machine had declared: there is no object
 * left whose step could do it.
 */
#include "config.h"

#include "machine_internal.h"

#include <string.h>

#include "tec/base/mem.h"
#include "tec/base/uuid.h"

static struct queue_next step(void *self, const struct kobj_key *key)
{
	return ctl_machine_step(self, key);
}

struct queue_next ctl_machine_step(struct ctl_machine *c, const struct kobj_key *key)
{
	struct ctl_act *a = ctl_act_find(&c->acts, key->name);
	struct queue_next next;
	struct machine_look l;
	enum ctl_machine_do d;
	bool memory = true;

	if (ctl_act_busy(a, &next))
		return next;
	/* What changes memory only is followed by another look at once; more than a few of them is
	 * a mistake that must not spin. */
	for (int i = 0; memory && i < 4; i++) {
		machine_look(c->env, key->name, a, &l);
		d = ctl_machine_decide(&l.v);
		if (!a && (l.waits || (d != CTL_MACHINE_NOTHING && d != CTL_MACHINE_DECLARE))) {
			a = ctl_act_get(&c->acts, key->name);
			machine_look(
				c->env, key->name, a, &l); /* again, to note what it waits for */
		}
		memory = machine_do_memory(c->env, &l, d);
	}
	if (!l.v.found) {
		ctl_act_drop(a);
		ctl_runner_forget(c->runner, key->name);
		return ctl_settled();
	}
	if (d == CTL_MACHINE_NOTHING) {
		ctl_act_rest(a);
		return l.recheck_ms ? ctl_retry(l.recheck_ms, "pendingTTL") : ctl_settled();
	}
	if (a && d == CTL_MACHINE_APPLY_STATUS && !ctl_act_calm(a, &next))
		return next;
	if (!a || memory || !ctl_act_begin(a, (int)d))
		return ctl_retry(0, "an act had no visible effect yet");
	machine_start(c, a, &l, d);
	return ctl_in_flight();
}

/* ---- which Machines a change concerns */

static void wake_id(struct ctl_machine *c, const char *id)
{
	for (const struct kobj *o = id ? k8s_cache_first(c->env->state->machines, 0, id) : NULL; o;
		o = k8s_cache_next(c->env->state->machines, 0, o))
		ctl_runner_wake(c->runner, o->name);
}

static void wake_one(void *arg, const struct kobj *o)
{
	struct ctl_machine *c = arg;

	ctl_runner_wake(c->runner, o->name);
}

/* No object is left to step: withdraw here what it declared, and leave a tombstone if it was forced
 * away. */
static void on_gone(struct ctl_machine *c, const struct model_machine *was)
{
	struct kbs_sync *sync = c->env->state->sync;
	char path[RATS_RESOURCE_PATH_MAX];
	const struct kobj *holder;

	if (!c->on || !was->id_valid)
		return;
	rats_resource_path(was->id, path);
	holder = kbs_sync_holder(sync, KBS_RESOURCE, path);
	if (holder && str_eq(model_secret(holder)->owner_uid, was->obj.uid))
		kbs_sync_revoke(sync, KBS_RESOURCE, path);
	if (k8s_cache_first(c->env->state->machines, 0, was->id))
		return; /* the next one with this id decides */
	if (state_trustee_gone(state_trustee_far(c->env->state, KBS_RESOURCE, path)))
		kbs_sync_forget(sync, KBS_RESOURCE, path);
	else if (was->has_finalizer)
		kbs_sync_revoke(sync, KBS_RESOURCE, path);
}

static void map_machine(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_machine *c = self;
	const struct model_machine *a = was ? model_machine(was) : NULL,
				   *b = now ? model_machine(now) : NULL;

	ctl_runner_wake(c->runner, was ? was->name : now->name);
	if (a && (!b || !str_eq(was->uid, now->uid)))
		on_gone(c, a);
	/* Who holds the id may have changed for others. */
	if (!a || !b || !str_eq(was->uid, now->uid) || !str_eq(a->announced, b->announced) ||
		model_machine_delivered(a) != model_machine_delivered(b)) {
		wake_id(c, a ? a->id : NULL);
		wake_id(c, b ? b->id : NULL);
	}
}

static void map_ak(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_machine *c = self;
	const struct model_ak *a = was ? model_ak(was) : NULL, *b = now ? model_ak(now) : NULL;

	if (a && b && str_eq(a->owner_uid, b->owner_uid) && a->n_owners == b->n_owners &&
		str_eq(a->approved_at, b->approved_at) &&
		a->cond[AK_APPROVED].status == b->cond[AK_APPROVED].status &&
		str_eq(a->uuid, b->uuid) && str_eq(was->uid, now->uid) &&
		was->deleting == now->deleting)
		return;
	wake_id(c, a ? a->uuid : NULL);
	if (b && (!a || !str_eq(a->uuid, b->uuid)))
		wake_id(c, b->uuid);
}

static void map_secret(void *self, const struct kobj *was, const struct kobj *now)
{
	wake_id(self, was ? was->name : now->name);
}

static void map_cluster(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_machine *c = self;

	if (model_cluster_means_the_same(was, now))
		return;
	k8s_cache_each(c->env->state->machines, wake_one, c);
}

static void on_sync(void *arg, enum kbs_sort sort, const char *name)
{
	struct ctl_machine *c = arg;
	char id[UUID_TEXT_LEN + 1];
	const struct kobj *holder;

	if (!c->on)
		return;
	ctl_acts_wake_waiting(&c->acts, sort, name);
	if (!name) {
		k8s_cache_each(c->env->state->machines, wake_one, c);
		return;
	}
	if (state_trustee_is_filling(c->env->state, sort, name))
		return;
	if (sort == KBS_REFVALUE) {
		if (!rats_is_identity_name(name))
			return;
		holder = kbs_sync_holder(c->env->state->sync, sort, name);
		wake_id(c, holder ? model_ak(holder)->uuid : NULL);
	} else if (rats_resource_id(name, id)) {
		wake_id(c, id);
		if (!k8s_cache_first(c->env->state->machines, 0, id) &&
			state_trustee_gone(state_trustee_far(c->env->state, sort, name)))
			kbs_sync_forget(c->env->state->sync, sort, name);
	}
}

/* ---- life */

struct ctl_machine *ctl_machine_new(const struct ctl_env *env)
{
	struct ctl_machine *c = xcalloc(1, sizeof(*c));

	c->env = env;
	c->runner = ctl_runner_new(env->loop, "machine", env->ns, step, c);
	ctl_acts_init(&c->acts, c, c->runner);
	ctl_runner_watch(c->runner, env->state->machines, map_machine);
	ctl_runner_watch(c->runner, env->state->aks, map_ak);
	ctl_runner_watch(c->runner, env->state->secrets, map_secret);
	ctl_runner_watch(c->runner, env->state->clusters, map_cluster);
	kbs_sync_listen(env->state->sync, on_sync, c);
	return c;
}

void ctl_machine_free(struct ctl_machine *c)
{
	if (!c)
		return;
	ctl_acts_clear(&c->acts);
	ctl_runner_free(c->runner);
	free(c);
}

void ctl_machine_on(struct ctl_machine *c)
{
	c->on = true;
	ctl_runner_on(c->runner);
}

void ctl_machine_off(struct ctl_machine *c)
{
	c->on = false;
	ctl_runner_off(c->runner);
	ctl_acts_clear(&c->acts);
}
