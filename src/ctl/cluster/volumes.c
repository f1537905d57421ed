/* SPDX-License-Identifier: MIT */
/*
 * Delivery by volumes, decision: which files Trustee's Pod must have. Each change of the list
 * restarts Trustee, so the list is a copy of what is declared, updated at most every ten seconds,
 * and sooner for revocations. A mounted file that no controller has declared or revoked yet stays:
 * after a start of the operator, nothing is unmounted only because its controller has not run yet.
 * A list that the API would not store is refused, but revoked files are removed in any case.
 */
#include "config.h"

#include "cluster_internal.h"

#include <stdio.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/model/configmap.h"

#define ADD_MS       10000 /* between two restarts that add files */
#define TAKE_BACK_MS 2000  /* collects many revocations into few restarts */

/* Also for another cluster or delivery: everything is learned again. */
void cluster_volumes_fini(struct ctl_cluster *c)
{
	struct cluster_volumes *v = &c->volumes;

	render_volumes_fini(&v->wanted);
	render_volumes_fini(&v->live);
	free(v->live_rv);
	free(v->uid);
	memset(v, 0, sizeof(*v));
}

/* Move a list; `from` is empty afterwards. */
static void replace(struct render_volumes *to, struct render_volumes *from)
{
	render_volumes_fini(to);
	*to = *from;
	memset(from, 0, sizeof(*from));
}

/* ---- what is declared */

/* The walk over kbs_sync that fills a list. */
struct collect {
	const struct ctl_env *env;
	struct render_volumes *out;
	bool revoking_values;
};

/* A path without a declared object is one that has to be revoked: it is not mounted. */
static void collect_key(void *arg, const char *path)
{
	struct collect *in = arg;
	char id[UUID_TEXT_LEN + 1];

	if (rats_resource_id(path, id) &&
		kbs_sync_object(in->env->state->sync, KBS_RESOURCE, path) &&
		state_secret(in->env->state, id))
		render_names_add(&in->out->machines, id);
}

/* Several AttestationKeys may share one identity; each of their Secrets is a file. */
static void collect_value(void *arg, const char *name)
{
	struct collect *in = arg;
	const struct kbs_sync *sync = in->env->state->sync;
	const struct kobj *o;

	if (!rats_is_identity_name(name)) {
		in->revoking_values |= !kbs_sync_object(sync, KBS_REFVALUE, name);
		return;
	}
	for (unsigned i = 0; i < KBS_LIST_MAX; i++) {
		o = kbs_sync_object_at(sync, KBS_REFVALUE, name, i);
		if (!o)
			return;
		if (state_secret(in->env->state, o->name))
			render_names_add(&in->out->aks, o->name);
	}
}

/* Keep what is mounted but neither declared nor revoked yet, while its Secret exists: a mount of a
 * missing Secret would keep the new Pod from starting. */
static void collect_mounted(struct collect *in, const struct render_volumes *live)
{
	const struct kbs_sync *sync = in->env->state->sync;
	char path[RATS_RESOURCE_PATH_MAX];

	for (size_t i = 0; i < live->machines.n; i++) {
		rats_resource_path(live->machines.v[i], path);
		if (state_secret(in->env->state, live->machines.v[i]) &&
			!kbs_sync_is_revoked(sync, KBS_RESOURCE, path))
			render_names_add(&in->out->machines, live->machines.v[i]);
	}
	for (size_t i = 0; i < live->aks.n; i++) {
		const struct model_secret *s = state_secret(in->env->state, live->aks.v[i]);

		/* A declared identity is in the list already, or this key of it was revoked. */
		if (s && s->has_ak_finalizer && s->identity &&
			!kbs_sync_object(sync, KBS_REFVALUE, s->identity) &&
			!kbs_sync_is_revoked(sync, KBS_REFVALUE, s->identity))
			render_names_add(&in->out->aks, live->aks.v[i]);
	}
}

/* Sort the list, so that equal lists render equally, and attach the hash of its contents. */
static void finish(const struct ctl_env *env, struct render_volumes *l)
{
	char contents[CLUSTER_CONTENTS_LEN + 1];

	render_volumes_sort(l);
	cluster_served_contents(env, l, contents);
	free(l->contents);
	l->contents = xstrdup(contents);
}

/* ---- what is rendered */

static struct json_object *render(const struct ctl_cluster *c, const struct model_cluster *cluster,
	const struct render_volumes *l, struct err *err)
{
	const struct render_trustee_inputs in = cluster_inputs(c);

	return render_trustee_deployment_volumes(
		cluster, c->env->ns, &c->env->images_ref, &in, l, err);
}

/* Tell whether the API would store the Deployment with these files; err says why not. */
static bool fits(const struct ctl_cluster *c, const struct model_cluster *cluster,
	const struct render_volumes *l, struct err *err)
{
	cleanup_json struct json_object *o = render(c, cluster, l, err);

	return o != NULL;
}

/* NULL makes ctl/install keep the Deployment as it is. */
struct json_object *cluster_volumes_render(
	const struct ctl_cluster *c, const struct model_cluster *cluster)
{
	struct err ignored = ERR_INIT;

	return c->volumes.has_wanted ? render(c, cluster, &c->volumes.wanted, &ignored) : NULL;
}

static bool is_unreadable(const struct k8s_cache *cache, const char *name)
{
	const struct kobj *o = k8s_cache_find(cache, name);

	return o && o->unreadable;
}

/* Tell whether a mounted object, or the Deployment, cannot be read: then the contents hash is
 * unknown. Lists are visited only if some Secret is unreadable. */
static bool is_unknown(const struct ctl_cluster *c)
{
	const struct cluster_volumes *v = &c->volumes;
	const struct render_names *const lists[] = {
		&v->live.machines, &v->live.aks, &v->wanted.machines, &v->wanted.aks};
	const struct k8s_cache *secrets = c->env->state->secrets;

	if (is_unreadable(c->env->state->configmaps, MODEL_RV_CONFIGMAP) ||
		is_unreadable(c->env->state->deployments, CLUSTER_DEPLOYMENT))
		return true;
	for (size_t k = 0; k < ARRAY_LEN(lists) && k8s_cache_unreadable(secrets); k++)
		for (size_t i = 0; i < lists[k]->n; i++)
			if (is_unreadable(secrets, lists[k]->v[i]))
				return true;
	return false;
}

/* Tell whether `of` has a name that `in` lacks. */
static bool lacks(const struct render_names *in, const struct render_names *of)
{
	for (size_t i = 0; i < of->n; i++)
		if (!render_names_have(in, of->v[i]))
			return true;
	return false;
}

/* Equal names with other contents are a change, too: the Pods must restart. */
static bool same(const struct render_volumes *a, const struct render_volumes *b)
{
	return str_eq(a->contents, b->contents) && a->machines.n == b->machines.n &&
	       a->aks.n == b->aks.n && !lacks(&a->machines, &b->machines) &&
	       !lacks(&a->aks, &b->aks);
}

/* Add the names that both lists have. */
static void add_common(
	struct render_names *to, const struct render_names *a, const struct render_names *b)
{
	for (size_t i = 0; i < a->n; i++)
		if (render_names_have(b, a->v[i]))
			render_names_add(to, a->v[i]);
}

/* Compute the list again and adopt it if its time has come. Sets pending. Returns the ms until the
 * change may be written, 0 if there is no change. */
static uint32_t renew(struct ctl_cluster *c, const struct model_cluster *served)
{
	struct cluster_volumes *v = &c->volumes;
	cleanup_volumes struct render_volumes desired = RENDER_VOLUMES_INIT,
					      less = RENDER_VOLUMES_INIT;
	const struct render_volumes *now_mounted;
	struct collect in = {.env = c->env, .out = &desired};
	uint64_t now = clock_boot_ms(), due;
	struct err ignored = ERR_INIT;

	kbs_sync_names(c->env->state->sync, KBS_RESOURCE, collect_key, &in);
	kbs_sync_names(c->env->state->sync, KBS_REFVALUE, collect_value, &in);
	collect_mounted(&in, &v->live);
	finish(c->env, &desired);
	v->pending = false;
	v->n_left_out = 0;
	err_clear(&v->refused);
	if (v->has_wanted && v->generation == served->obj.generation && same(&v->wanted, &desired))
		return 0;
	v->generation = served->obj.generation;
	if (!fits(c, served, &desired, &v->refused)) {
		v->n_left_out = desired.machines.n;
		if (!v->has_wanted && !v->live_ours)
			return 0; /* nothing was ever mounted: apply nothing */
		/* Reduce it to what is mounted now, without what was revoked. */
		now_mounted = v->has_wanted ? &v->wanted : &v->live;
		add_common(&less.machines, &now_mounted->machines, &desired.machines);
		add_common(&less.aks, &now_mounted->aks, &desired.aks);
		finish(c->env, &less);
		replace(&desired, &less);
		v->n_left_out -= desired.machines.n;
		if (!fits(c, served, &desired, &ignored)) {
			v->has_wanted = false; /* too large because of spec itself */
			return 0;
		}
	}
	if (v->has_wanted && same(&v->wanted, &desired))
		return 0;
	if (v->has_wanted && !v->announced) { /* not written yet: replacing it costs nothing */
		/* Removing files is urgent. While some reference value is being revoked, so is a
		 * change of their file. */
		bool takes_back = lacks(&desired.machines, &v->wanted.machines) ||
				  lacks(&desired.aks, &v->wanted.aks) ||
				  (in.revoking_values && !str_eq(strchr(v->wanted.contents, '.'),
								 strchr(desired.contents, '.')));

		due = takes_back ? v->take_back_ms : v->add_ms;
		v->pending = now < due;
		if (v->pending)
			return (uint32_t)(due - now);
	}
	replace(&v->wanted, &desired);
	v->has_wanted = v->announced = true;
	v->add_ms = now + ADD_MS;
	v->take_back_ms = now + TAKE_BACK_MS;
	ctl_install_forget(&c->install, CLUSTER_FROM_FILES);
	return 0;
}

/* ---- logs, Events, conditions */

/* Report the state of the primary Trustee to kbs_sync, which condition TrusteeSynced shows. */
static void say(struct ctl_cluster *c, const struct model_cluster *served, bool there)
{
	const struct cluster_volumes *v = &c->volumes;
	enum kbs_target_state state = KBS_TARGET_POPULATING;
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	const char *why = NULL;

	if (err_is_set(&v->refused)) {
		state = KBS_TARGET_REFUSED;
		strbuf_adds(&text, v->refused.text);
		if (v->live_ours && !v->has_wanted)
			strbuf_adds(&text,
				" The Deployment is too large even with the files mounted now: nothing is written, and files of revoked keys stay mounted.");
		else if (v->n_left_out)
			strbuf_addf(&text,
				" Until then %zu Machines are not delivered and no files are added; revoked files are still removed.",
				v->n_left_out);
		why = strbuf_str(&text);
	} else if (!there) {
		state = KBS_TARGET_UNREACHABLE;
		why = "Deployment " CLUSTER_DEPLOYMENT " does not exist yet.";
	} else if (v->pending || !v->has_wanted || !v->live_ours || !same(&v->wanted, &v->live)) {
		why = "a restart with changed files is pending.";
	} else if (!cluster_served(c)) {
		cluster_served_why(c, &text);
		why = strbuf_str(&text);
	} else {
		state = KBS_TARGET_IN_SYNC;
	}
	kbs_sync_set_status(c->env->state->sync, ctl_primary_target(served), state, NULL, why);
}

/* ---- step */

/* Runs before the look, because `wanted` is an input of the rendering. Nothing is decided until
 * the live Deployment was read: its mounts must not be dropped by accident. */
uint32_t cluster_volumes_step(struct ctl_cluster *c, const struct model_cluster *served)
{
	struct cluster_volumes *v = &c->volumes;
	const struct kobj *o = k8s_cache_find(c->env->state->deployments, CLUSTER_DEPLOYMENT);
	uint32_t wait_ms = 0;

	if (!served || served->delivery != MODEL_DELIVERY_VOLUMES) {
		cluster_volumes_fini(c);
		return 0;
	}
	if (!str_eq(v->uid, served->obj.uid)) {
		cluster_volumes_fini(c);
		v->uid = xstrdup(served->obj.uid);
		v->dirty = true;
	}
	if (!o && v->live_rv) {
		render_volumes_fini(&v->live);
		free(steal_ptr(&v->live_rv));
		v->live_ours = v->live_known = false;
		v->dirty = true;
	}
	if (is_unknown(c)) /* a change of the object wakes the key */
		return 0;
	if (!v->dirty && !v->pending && v->generation == served->obj.generation)
		return 0;
	v->dirty = false;
	v->confirming = true;
	if (!o || v->live_rv) /* wait until the mounted files were read */
		wait_ms = renew(c, served);
	if (o && v->live_known && str_eq(o->rv, v->live_rv) && !is_unknown(c))
		cluster_served_confirm(c, served);
	say(c, served, o != NULL);
	v->confirming = false;
	return wait_ms;
}

/* An apply of the Deployment begins. The files that it adds may reach Trustee from now on, and
 * may be revoked before the answer arrives, so they count as unknown. */
void cluster_volumes_writes(struct ctl_cluster *c, const struct model_cluster *served)
{
	struct cluster_volumes *v = &c->volumes;
	struct kbs_sync *sync = c->env->state->sync;
	const char *target = ctl_primary_target(served);
	char path[RATS_RESOURCE_PATH_MAX];

	if (!v->uid)
		return;
	v->live_known = false; /* until the answer, or the next read */
	v->confirming = true;
	for (size_t i = 0; i < v->wanted.machines.n; i++) {
		if (render_names_have(&v->live.machines, v->wanted.machines.v[i]))
			continue;
		rats_resource_path(v->wanted.machines.v[i], path);
		kbs_sync_set_unknown(sync, target, KBS_RESOURCE, path);
	}
	for (size_t i = 0; i < v->wanted.aks.n; i++) {
		const struct model_secret *s = state_secret(c->env->state, v->wanted.aks.v[i]);

		if (s && s->identity && !render_names_have(&v->live.aks, v->wanted.aks.v[i]))
			kbs_sync_set_unknown(sync, target, KBS_REFVALUE, s->identity);
	}
	v->confirming = false;
}

/* Only revocations run a step at once; everything else waits for the next one. */
bool cluster_volumes_on_sync(struct ctl_cluster *c, enum kbs_kind kind, const char *name)
{
	struct cluster_volumes *v = &c->volumes;

	if (!v->uid || v->confirming)
		return false;
	v->dirty = true;
	return name && kbs_sync_is_revoked(c->env->state->sync, kind, name);
}
