/* SPDX-License-Identifier: MIT */
/*
 * The controller of TrustedExecutionCluster: the step, and which changes wake it. Each step looks
 * at the caches, decides on one act, starts it and returns.
 */
#include "config.h"

#include "cluster_internal.h"

#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/model/configmap.h"
#include "tec/render/regkey.h"

/* ---- the step */

/* Look, decide, start one act. If a request was refused, the reason is written into the status before
 * the retry. */
static struct queue_next step(void *self, const struct kobj_key *key)
{
	struct ctl_cluster *c = self;
	struct ctl_act *a = ctl_act_find(&c->acts, key->name);
	const struct model_cluster *served = caches_cluster(c->env->caches);
	bool tells = ctl_act_tells(a, CTL_CLUSTER_APPLY_STATUS);
	uint32_t wait_ms = 0;
	struct queue_next next;
	struct cluster_look l;
	enum ctl_cluster_do d;

	if (!tells && ctl_act_busy(a, &next))
		return next;
	if (!served || str_eq(served->obj.name, key->name))
		wait_ms = cluster_volumes_step(c, served);
	if (served && str_eq(served->obj.name, key->name))
		cluster_view_refresh(c, served);
	cluster_view_look(c, key->name, &l);
	d = ctl_cluster_decide(&l.v);
	if (tells && (!l.v.found || l.v.status_ok)) {
		ctl_act_busy(a, &next);
		return next;
	}
	if (tells)
		d = CTL_CLUSTER_APPLY_STATUS;
	if (d != CTL_CLUSTER_NOTHING)
		return cluster_act_start(c, a ? a : ctl_act_get(&c->acts, key->name), &l, d);
	ctl_act_settled(a);
	if (wait_ms)
		cluster_recheck(&l, wait_ms);
	if (l.recheck_ms)
		return ctl_retry(l.recheck_ms, "due");
	if (!l.v.found)
		ctl_runner_forget(c->runner, key->name);
	return ctl_settled();
}

/* ---- which clusters a change concerns */

static void wake_one(void *arg, const struct kobj *o)
{
	struct ctl_cluster *c = arg;

	ctl_runner_wake(c->runner, o->name);
}

/* A change of the oldest cluster object may make another one the served one, so all are woken
 * when one appears, disappears or is being deleted. */
static void map_cluster(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_cluster *c = self;

	ctl_runner_wake(c->runner, was ? was->name : now->name);
	if (!was || !now || !str_eq(was->uid, now->uid) ||
		was->deleting != now->deleting) /* another one may be served */
		k8s_cache_each(c->env->caches->clusters, wake_one, c);
}

/* Wake for a ConfigMap, Service or Deployment of the table, and for ConfigMaps that the step
 * reads. */
static void map_object(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_cluster *c = self;
	const char *name = (was ? was : now)->name;

	if (str_eq(name, MODEL_RV_CONFIGMAP))
		c->volumes.dirty = true;
	if (str_eq(name, MODEL_RECORD_IDS))
		cluster_wake(c, 0);
	for (unsigned i = 0; i < CLUSTER_N_OBJECTS; i++)
		if (str_eq(cluster_objects.objects[i].name, name))
			cluster_wake(c, 0);
}

/* With delivery by volumes, Pods of Trustee show which files are served; confirmation waits for
 * them. */
static void map_pod(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_cluster *c = self;

	if (!c->volumes.uid || !str_eq(((const struct model_pod *)(was ? was : now))->app, "kbs"))
		return;
	c->volumes.dirty = true;
	cluster_wake(c, 0);
}

/* Wake for a Secret that the operator creates, that spec names (the status reports its absence), or
 * that Trustee may mount. */
static void map_secret(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_cluster *c = self;
	const char *name = (was ? was : now)->name;
	const struct model_cluster *s = caches_cluster(c->env->caches);

	/* Its deletion needs nothing here. */
	if (render_token_number(name) && now)
		(void)cluster_inputs_signer(c, render_token_number(name));
	if (!s)
		return;
	if (c->volumes.uid && model_secret(now ? now : was)->shape != MODEL_SECRET_OTHER) {
		c->volumes.dirty = true; /* Trustee may mount it */
		cluster_wake(c, CLUSTER_WAIT_MS);
	}
	if (render_token_number(name) || cluster_regkey_is_name(name) ||
		str_eq(name, c->auth.name) || cluster_tls_is_named(s, name))
		cluster_wake(c, 0);
}

/* Counts and new values wait a second, because more usually follow; revocations do not wait. */
static void on_sync(void *arg, enum kbs_kind kind, const char *name)
{
	struct ctl_cluster *c = arg;
	if (!c->on || !caches_cluster(c->env->caches))
		return;
	cluster_counted(c);
	if (cluster_volumes_on_sync(c, kind, name))
		cluster_wake(c, 0);
}

/* ---- life */

/* Listeners that keep counts are added here, before any cache is filled, so that they miss
 * nothing. */
struct ctl_cluster *ctl_cluster_new(const struct ctl_env *env)
{
	struct ctl_cluster *c = xcalloc(1, sizeof(*c));

	c->env = env;
	ctl_own_init(&c->auth, env, &cluster_own_auth, c, "trustee-auth");
	for (int i = 0; i < CLUSTER_N_REGKEYS; i++)
		ctl_own_init(&c->regkey[i], env, &cluster_own_regkey, c,
			i == CLUSTER_REGKEY_CURRENT ? RENDER_REGKEY_CURRENT
						    : RENDER_REGKEY_PREVIOUS);
	cluster_registration_watch(c);
	c->runner = ctl_acts_init(&c->acts, env, "cluster", step, c);
	ctl_install_init(&c->install, env, &cluster_objects, c, &c->acts.ops);
	ctl_runner_watch(c->runner, env->caches->clusters, map_cluster);
	ctl_runner_watch(c->runner, env->caches->configmaps, map_object);
	ctl_runner_watch(c->runner, env->caches->services, map_object);
	ctl_runner_watch(c->runner, env->caches->deployments, map_object);
	ctl_runner_watch(c->runner, env->caches->secrets, map_secret);
	ctl_runner_watch(c->runner, env->caches->pods, map_pod);
	cluster_authority_watch(c);
	kbs_sync_listen(env->caches->sync, on_sync, c);
	return c;
}

/* Drop everything learned while leading: another replica may change all of it before this one
 * leads again. */
static void forget_all(struct ctl_cluster *c)
{
	ctl_acts_clear(&c->acts);
	ctl_install_follow(&c->install, NULL);
	cluster_view_forget(c);
	cluster_inputs_fini(c);
	cluster_volumes_fini(c);
	cluster_authority_fini(c);
}

void ctl_cluster_free(struct ctl_cluster *c)
{
	if (!c)
		return;
	c->on = false;
	forget_all(c);
	ctl_runner_free(c->runner);
	free(c);
}

void ctl_cluster_look_again(struct ctl_cluster *c)
{
	cluster_wake(c, 0);
}

/* Counts are still growing at the start, so the clock of status writes begins now. */
void ctl_cluster_on(struct ctl_cluster *c)
{
	if (c->on)
		return;
	c->on = true;
	c->status_ms = clock_boot_ms();
	ctl_runner_on(c->runner);
}

void ctl_cluster_off(struct ctl_cluster *c)
{
	c->on = false;
	ctl_runner_off(c->runner);
	forget_all(c);
}
