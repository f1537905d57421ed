/* SPDX-License-Identifier: MIT */
/*
 * AttestationKey: look, decide one thing, do it, return; and which keys a change concerns. A key
 * here is a name, of an AttestationKey, of a Secret or of both: what is left of a deleted key is
 * its Secret.
 */
#include "config.h"

#include "ak_internal.h"

#include <string.h>

#include "tec/base/mem.h"

static struct queue_next step(void *self, const struct kobj_key *key)
{
	return ctl_ak_step(self, key);
}

/* Nothing is left of the key, or only what has nothing to do with it. */
static bool is_over(const struct ak_look *l)
{
	return !l->v.found && l->v.secret != CTL_AK_SECRET_STALE;
}

struct queue_next ctl_ak_step(struct ctl_ak *c, const struct kobj_key *key)
{
	struct ctl_act *a = ctl_act_find(&c->acts, key->name);
	struct queue_next next;
	struct ak_look l;
	enum ctl_ak_do d;
	bool memory = true;

	if (ctl_act_busy(a, &next))
		return next;
	/* What changes memory only is followed by another look at once; more than a few of them is
	 * a mistake that must not spin. */
	for (int i = 0; memory && i < 4; i++) {
		ak_look(c, key->name, a, &l);
		d = ctl_ak_decide(&l.v);
		if (!a && (l.waits || (d != CTL_AK_NOTHING && d != CTL_AK_DECLARE))) {
			a = ctl_act_get(&c->acts, key->name);
			ak_look(c, key->name, a, &l); /* again, to note what it waits for */
		}
		memory = ak_do_memory(c, &l, d);
	}
	if (is_over(&l)) {
		ctl_act_drop(a);
		ctl_runner_forget(c->runner, key->name);
		return ctl_settled();
	}
	if (d == CTL_AK_NOTHING) {
		ctl_act_rest(a);
		return l.recheck_ms ? ctl_retry(l.recheck_ms, "pendingTTL") : ctl_settled();
	}
	if (a && d == CTL_AK_APPLY_STATUS && !ctl_act_calm(a, &next))
		return next;
	if (!a || memory || !ctl_act_begin(a, (int)d))
		return ctl_retry(0, "an act had no visible effect yet");
	ak_start(c, a, &l, d);
	return ctl_in_flight();
}

/* ---- which keys a change concerns */

static void wake_uuid(struct ctl_ak *c, const char *uuid)
{
	for (const struct kobj *o = uuid ? k8s_cache_first(c->env->state->aks, 0, uuid) : NULL; o;
		o = k8s_cache_next(c->env->state->aks, 0, o))
		ctl_runner_wake(c->runner, o->name);
}

static void wake_owned(struct ctl_ak *c, const char *machine_uid)
{
	for (const struct kobj *o = k8s_cache_first(c->env->state->aks, 2, machine_uid); o;
		o = k8s_cache_next(c->env->state->aks, 2, o))
		ctl_runner_wake(c->runner, o->name);
}

static void wake_same_key(struct ctl_ak *c, const char *spki)
{
	for (const struct kobj *o = spki ? k8s_cache_first(c->env->state->aks, 1, spki) : NULL; o;
		o = k8s_cache_next(c->env->state->aks, 1, o))
		ctl_runner_wake(c->runner, o->name);
}

static void wake_one(void *arg, const struct kobj *o)
{
	struct ctl_ak *c = arg;

	ctl_runner_wake(c->runner, o->name);
}

/* Withdrawn at once; the Secret with our finalizer remembers it if we are killed before. */
static void on_gone(struct ctl_ak *c, const struct model_ak *was)
{
	char name[RATS_IDENTITY_NAME_LEN + 1];
	const struct kobj *holder;

	if (!c->on || !model_ak_identity(was, name))
		return;
	holder = kbs_sync_holder(c->env->state->sync, KBS_REFVALUE, name);
	if (holder && str_eq(holder->uid, was->obj.uid))
		kbs_sync_revoke(c->env->state->sync, KBS_REFVALUE, name);
	else if (!holder &&
		 state_trustee_gone(state_trustee_far(c->env->state, KBS_REFVALUE, name)))
		kbs_sync_forget(c->env->state->sync, KBS_REFVALUE, name);
}

static void map_ak(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_ak *c = self;
	const struct model_ak *a = was ? model_ak(was) : NULL, *b = now ? model_ak(now) : NULL;

	ctl_runner_wake(c->runner, was ? was->name : now->name);
	if (a && (!b || !str_eq(was->uid, now->uid)))
		on_gone(c, a);
	/* What the Machine's other keys see of this one. */
	if (a && b && str_eq(was->uid, now->uid) && str_eq(a->owner_uid, b->owner_uid) &&
		a->n_owners == b->n_owners && str_eq(a->approved_at, b->approved_at) &&
		a->cond[AK_APPROVED].status == b->cond[AK_APPROVED].status &&
		str_eq(a->uuid, b->uuid) && was->deleting == now->deleting)
		return;
	wake_uuid(c, a ? a->uuid : NULL);
	wake_uuid(c, b ? b->uuid : NULL);
	wake_same_key(c, a ? a->spki_sha256 : b->spki_sha256);
}

static void map_secret(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_ak *c = self;
	const char *name = was ? was->name : now->name;
	const struct kobj *ak = k8s_cache_find(c->env->state->aks, name);
	const char *identity;
	bool held = (was && model_secret(was)->has_ak_finalizer) ||
		    (now && model_secret(now)->has_ak_finalizer);

	if (ak || held)
		ctl_runner_wake(c->runner, name);
	if (!was || !now || was->deleting != now->deleting || was->unreadable != now->unreadable)
		wake_uuid(c, name); /* a disk key, which a Machine is bound for */
	if (ak && (!now || (was && was->unreadable)))
		wake_uuid(c, model_ak(ak)->uuid); /* an earlier key's Secret may be what a later one
						     waits for */
	/* The last thing that remembered it: confirmed gone, it is nobody's business any more. */
	if (c->on && !ak && !now && (identity = model_secret(was)->identity) &&
		kbs_sync_is_revoked(c->env->state->sync, KBS_REFVALUE, identity) &&
		state_trustee_gone(state_trustee_far(c->env->state, KBS_REFVALUE, identity)))
		kbs_sync_forget(c->env->state->sync, KBS_REFVALUE, identity);
}

static void map_machine(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_ak *c = self;
	const struct model_machine *a = was ? model_machine(was) : NULL,
				   *b = now ? model_machine(now) : NULL;

	if (a && b && str_eq(was->uid, now->uid) && was->deleting == now->deleting &&
		str_eq(a->id, b->id) && str_eq(a->announced, b->announced) &&
		str_eq(a->bound_at, b->bound_at) && str_eq(a->bound_key, b->bound_key) &&
		str_eq(a->bound_spki, b->bound_spki) &&
		model_machine_delivered(a) == model_machine_delivered(b))
		return;
	wake_uuid(c, a ? a->id : NULL);
	wake_uuid(c, b ? b->id : NULL);
	wake_owned(c, was ? was->uid : now->uid);
}

static void map_cluster(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_ak *c = self;

	if (model_cluster_means_the_same(was, now))
		return;
	k8s_cache_each(c->env->state->aks, wake_one, c);
}

static void on_sync(void *arg, enum kbs_sort sort, const char *name)
{
	struct ctl_ak *c = arg;
	const struct kobj *holder;

	if (!c->on || sort != KBS_REFVALUE)
		return;
	ctl_acts_wake_waiting(&c->acts, sort, name);
	if (!name) {
		k8s_cache_each(c->env->state->aks, wake_one, c);
		return;
	}
	if (state_trustee_is_filling(c->env->state, sort, name))
		return;
	holder = rats_is_identity_name(name) ? kbs_sync_holder(c->env->state->sync, sort, name)
					     : NULL;
	if (holder)
		ctl_runner_wake(c->runner, holder->name);
}

/* ---- life */

struct ctl_ak *ctl_ak_new(const struct ctl_env *env)
{
	struct ctl_ak *c = xcalloc(1, sizeof(*c));

	c->env = env;
	c->runner = ctl_runner_new(env->loop, "ak", env->ns, step, c);
	ctl_acts_init(&c->acts, c, c->runner);
	ctl_runner_watch(c->runner, env->state->aks, map_ak);
	ctl_runner_watch(c->runner, env->state->secrets, map_secret);
	ctl_runner_watch(c->runner, env->state->machines, map_machine);
	ctl_runner_watch(c->runner, env->state->clusters, map_cluster);
	kbs_sync_listen(env->state->sync, on_sync, c);
	return c;
}

void ctl_ak_free(struct ctl_ak *c)
{
	if (!c)
		return;
	ctl_acts_clear(&c->acts);
	ctl_runner_free(c->runner);
	free(c);
}

void ctl_ak_on(struct ctl_ak *c)
{
	c->on = true;
	ctl_runner_on(c->runner);
}

void ctl_ak_off(struct ctl_ak *c)
{
	c->on = false;
	ctl_runner_off(c->runner);
	ctl_acts_clear(&c->acts);
}
