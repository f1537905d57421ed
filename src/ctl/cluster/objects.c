/* SPDX-License-Identifier: MIT */
/*
 * The installation as one table. An object is read once per resourceVersion and compared with what
 * is rendered now; what was found right is not read again until it changes. Never written: what
 * another owner controls, what the image controller and its Jobs keep; Secrets are cluster_own.c's.
 */
#include "config.h"

#include "cluster_internal.h"

#include <stdio.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/model/configmap.h"
#include "tec/kobj/subset.h"
#include "tec/render/listener.h"

static struct json_object *data(const struct ctl_cluster *ctl, const struct model_cluster *c)
{
	struct render_trustee_inputs in;

	cluster_inputs(ctl, &in);
	return c->delivery == MODEL_DELIVERY_VOLUMES
		       ? render_trustee_data_volumes(c, ctl->env->ns, &in)
		       : render_trustee_data(c, ctl->env->ns, &in);
}

static struct json_object *policies(const struct ctl_cluster *ctl, const struct model_cluster *c)
{
	return c->delivery == MODEL_DELIVERY_VOLUMES
		       ? render_trustee_policies_volumes(c, ctl->env->ns)
		       : render_trustee_policies(c, ctl->env->ns);
}

static struct json_object *rv_data(const struct ctl_cluster *ctl, const struct model_cluster *c)
{
	return render_rv_data(c, ctl->env->ns);
}

static struct json_object *image_pcrs(const struct ctl_cluster *ctl, const struct model_cluster *c)
{
	return render_image_pcrs(ctl->env->ns);
}

static struct json_object *kbs_service(const struct ctl_cluster *ctl, const struct model_cluster *c)
{
	return render_trustee_service(c, ctl->env->ns);
}

static struct json_object *deployment(const struct ctl_cluster *ctl, const struct model_cluster *c)
{
	struct render_trustee_inputs in;

	if (c->delivery == MODEL_DELIVERY_VOLUMES)
		return cluster_volumes_render(ctl, c);
	cluster_inputs(ctl, &in);
	return render_trustee_deployment(c, ctl->env->ns, &ctl->env->images_ref, &in);
}

static struct json_object *register_service(
	const struct ctl_cluster *ctl, const struct model_cluster *c)
{
	return render_register_service(c, ctl->env->ns);
}

static struct json_object *ak_service(const struct ctl_cluster *ctl, const struct model_cluster *c)
{
	return render_ak_service(c, ctl->env->ns);
}

/* In the order of installation: what the Deployment mounts comes before it. */
const struct cluster_object cluster_objects[CLUSTER_N_OBJECTS] = {
	{&kobj_configmap, CLUSTER_DATA, CLUSTER_OBJECT_APPLY, true, true, data},
	{&kobj_configmap, "trustee-policies", CLUSTER_OBJECT_APPLY, true, true, policies},
	{&kobj_configmap, "trustee-rv-data", CLUSTER_OBJECT_CREATE_ONLY, false, false, rv_data},
	{&kobj_configmap, "image-pcrs", CLUSTER_OBJECT_CREATE_ONLY, false, false, image_pcrs},
	{&kobj_secret, CLUSTER_AUTH, CLUSTER_OBJECT_SECRET, true, false, NULL},
	{&kobj_service, "kbs-service", CLUSTER_OBJECT_APPLY, true, false, kbs_service},
	{&kobj_deployment, CLUSTER_DEPLOYMENT, CLUSTER_OBJECT_APPLY, true, true, deployment},
	{&kobj_service, "register-server", CLUSTER_OBJECT_APPLY, false, false, register_service},
	{&kobj_service, "attestation-key-register", CLUSTER_OBJECT_APPLY, false, false, ak_service},
	{&kobj_deployment, "register-server", CLUSTER_OBJECT_UNWANTED, false, false, NULL},
	{&kobj_deployment, "attestation-key-register", CLUSTER_OBJECT_UNWANTED, false, false, NULL},
};

/* ---- what is known */

void cluster_known_fini(struct cluster_known *k)
{
	free(k->ok_rv);
	free(k->drift_rv);
	free(k->conflict_rv);
	free(k->foreign_rv);
	memset(k, 0, sizeof(*k));
}

static void forget_secrets(struct ctl_cluster *c)
{
	cluster_inputs_reset(c);
	cluster_own_reset(&c->auth);
	cluster_regkey_reset(c);
}

void cluster_known_reset(struct ctl_cluster *c, const struct model_cluster *served)
{
	for (unsigned i = 0; i < CLUSTER_N_OBJECTS; i++)
		cluster_known_fini(&c->known[i]);
	if (!served || !str_eq(c->known_uid, served->obj.uid))
		forget_secrets(c);
	free(c->known_uid);
	c->known_uid = xstrdup(served ? served->obj.uid : NULL);
	c->known_generation = served ? served->obj.generation : 0;
	c->problem[0] = '\0';
}

void cluster_known_forget(struct ctl_cluster *c, const struct kobj_gvk *gvk, const char *name)
{
	for (unsigned i = 0; i < CLUSTER_N_OBJECTS; i++)
		if (cluster_objects[i].gvk == gvk && str_eq(cluster_objects[i].name, name))
			cluster_known_fini(&c->known[i]);
}

static struct k8s_cache *cache_of(const struct ctl_env *env, unsigned i)
{
	const struct kobj_gvk *gvk = cluster_objects[i].gvk;

	return gvk == &kobj_configmap ? env->state->configmaps
	       : gvk == &kobj_service ? env->state->services
	       : gvk == &kobj_secret  ? env->state->secrets
				      : env->state->deployments;
}

const struct kobj *cluster_object_find(const struct ctl_env *env, unsigned i)
{
	return k8s_cache_find(cache_of(env, i), cluster_objects[i].name);
}

static bool is_deployment(unsigned i)
{
	return str_eq(cluster_objects[i].name, CLUSTER_DEPLOYMENT);
}

static enum ctl_cluster_do look_object(struct ctl_cluster *c, struct cluster_look *l, unsigned i)
{
	const struct cluster_object *t = &cluster_objects[i];
	const struct kobj *o = cluster_object_find(c->env, i);
	const struct model_plain *plain = (const struct model_plain *)o;
	const struct cluster_known *k = &c->known[i];
	bool held = t->of_delivery && cluster_volumes_hold(c);

	if (o && o->unreadable) {
		l->unreadable = t->name;
		return CTL_CLUSTER_NOTHING;
	}
	if (t->kind == CLUSTER_OBJECT_UNWANTED)
		return plain && !o->deleting && !plain->render_hash &&
				       str_eq(plain->owner_uid, l->c->obj.uid)
			       ? CTL_CLUSTER_DELETE
			       : CTL_CLUSTER_NOTHING;
	if (!o && k->must_read)
		return CTL_CLUSTER_READ;
	if (!o)
		return held                                    ? CTL_CLUSTER_NOTHING
		       : t->kind == CLUSTER_OBJECT_CREATE_ONLY ? CTL_CLUSTER_CREATE
							       : CTL_CLUSTER_APPLY;
	if (o->deleting) {
		l->waits = t->name;
		return CTL_CLUSTER_NOTHING;
	}
	if (t->kind == CLUSTER_OBJECT_CREATE_ONLY || str_eq(k->ok_rv, o->rv))
		return CTL_CLUSTER_NOTHING;
	if (str_eq(k->conflict_rv, o->rv) ||
		(plain && plain->owner_uid && !str_eq(plain->owner_uid, l->c->obj.uid))) {
		if (!l->conflict)
			l->conflict = t->name;
		return CTL_CLUSTER_NOTHING;
	}
	if (str_eq(k->foreign_rv, o->rv))
		return CTL_CLUSTER_DELETE;
	return !str_eq(k->drift_rv, o->rv) ? CTL_CLUSTER_READ
	       : held                      ? CTL_CLUSTER_NOTHING
					   : CTL_CLUSTER_APPLY;
}

void cluster_want(struct cluster_look *l, enum ctl_cluster_do d, unsigned object, unsigned number)
{
	if (d == CTL_CLUSTER_NOTHING || l->v.todo)
		return;
	l->v.todo = (int)d;
	l->object = object;
	l->number = number;
}

/*
 * Is this not to be done to the Deployment? It is not written to mount somebody else's signer or
 * admin key, and one that runs does not go before everything is there with which a new one starts.
 */
static bool held(const struct ctl_cluster *c, struct cluster_look *l, enum ctl_cluster_do d)
{
	bool safe =
		c->inputs.plan.n_use && cluster_own_state(c, l->c, &c->auth) == CLUSTER_OWN_GOOD;
	const char *tls = l->c->trustee_secret;

	if (d == CTL_CLUSTER_APPLY)
		return !safe;
	if (d != CTL_CLUSTER_DELETE)
		return false;
	if (tls && !state_secret(c->env->state, tls))
		l->missing = tls;
	return !safe || l->conflict || l->missing || l->unreadable;
}

/*
 * First what is rendered from is read, then a signer is made if there is none at all. A further
 * signer has time: it comes behind everything that is missing or was changed.
 */
void cluster_look_objects(struct ctl_cluster *c, struct cluster_look *l)
{
	bool external = l->c->deploy == MODEL_DEPLOY_EXTERNAL;
	bool planned = !external && cluster_look_inputs(c, l);
	bool bare = planned && !c->inputs.plan.n_use;

	if (bare)
		cluster_look_plan(c, l);
	for (unsigned i = 0; i < CLUSTER_N_OBJECTS; i++) {
		enum ctl_cluster_do d;

		if (external && cluster_objects[i].of_trustee)
			continue;
		if (cluster_objects[i].kind == CLUSTER_OBJECT_SECRET) {
			cluster_look_own(c, l, &c->auth, i, 0, true);
			continue;
		}
		d = look_object(c, l, i);
		if (!is_deployment(i) || (!l->unreadable && !held(c, l, d)))
			cluster_want(l, d, i, 0);
	}
	cluster_look_regkey(c, l);
	if (planned && !bare)
		cluster_look_plan(c, l);
	cluster_look_tidy(c, l);
}

/* ---- acts */

struct op *cluster_start_object(struct ctl_cluster *c, struct ctl_act *a,
	const struct cluster_look *l, enum ctl_cluster_do d, k8s_result_fn done, struct err *err)
{
	const struct ctl_env *env = c->env;
	const struct cluster_object *t = &cluster_objects[l->object];
	cleanup_json struct json_object *o = t->render ? t->render(c, l->c) : NULL;

	switch (d) {
	case CTL_CLUSTER_READ:
		return k8s_call_get(env->api, &c->acts.ops, t->gvk, env->ns, t->name, done, a);
	case CTL_CLUSTER_CREATE:
		return k8s_call_create(env->api, &c->acts.ops, t->gvk, env->ns, o, 0, done, a);
	case CTL_CLUSTER_APPLY:
		if (!o) { /* it grew over the limit by something else than Machines */
			err_set(err, ERR_INVALID, "%s would be too large", t->name);
			return NULL;
		}
		if (is_deployment(l->object))
			cluster_volumes_writes(c, l->c);
		return k8s_call_apply(env->api, &c->acts.ops, t->gvk, env->ns, o, done, a);
	case CTL_CLUSTER_DELETE:
		return k8s_call_delete(env->api, &c->acts.ops, t->gvk, env->ns, t->name,
			cluster_object_find(env, l->object)->uid, done, a);
	default:
		DIE("cluster %s: act %d is no object's", a->name, (int)d);
	}
}

void cluster_set_rv(char **slot, struct json_object *o)
{
	free(*slot);
	*slot = xstrdup(json_get_str(o, "metadata/resourceVersion"));
}

/* Does what is rendered differ in what a certificate or a signer leaves in the Pod template? Then
 * it is written because they changed, not because somebody changed it. */
static bool follows(struct json_object *want, struct json_object *have)
{
	return !str_eq(render_trustee_tls_hash(want), render_trustee_tls_hash(have)) ||
	       !str_eq(render_trustee_token_hash(want), render_trustee_token_hash(have));
}

/* Is what was read what we would render? */
static void judge(
	struct ctl_cluster *c, const struct kobj *cluster, unsigned i, struct json_object *o)
{
	const struct cluster_object *t = &cluster_objects[i];
	struct cluster_known *k = &c->known[i];
	cleanup_json struct json_object *want = NULL;
	bool fits;

	if (is_deployment(i))
		cluster_inputs_saw_deployment(
			c, model_cluster(cluster), o); /* before anything is rendered from it */
	if (is_deployment(i) && render_trustee_deployment_is_foreign(o)) {
		/* Ours is deleted and made anew; nobody's is neither deleted nor applied over. */
		fits = str_eq(kobj_owner_controller(o), cluster->uid);
		cluster_set_rv(fits ? &k->foreign_rv : &k->conflict_rv, o);
		return;
	}
	if (is_deployment(i))
		cluster_volumes_saw(c, model_cluster(cluster), o);
	want = t->render(c, model_cluster(cluster));
	/* Nothing to compare with: it holds, and waits for something else to change. */
	fits = !want || kobj_subset(want, o);
	if (fits && is_deployment(i))
		c->volumes.announced = false;
	cluster_set_rv(fits ? &k->ok_rv : &k->drift_rv, o);
	if (is_deployment(i))
		c->inputs.moved = !fits && (c->inputs.moved || follows(want, o));
}

/* ---- what people are told */

static bool is_installed(const struct kobj *cluster)
{
	return model_cluster(cluster)->cond[CLUSTER_INSTALLED].status == KOBJ_COND_TRUE;
}

void cluster_told_repaired(struct ctl_cluster *c, const struct kobj *cluster,
	const struct kobj_gvk *gvk, const char *name)
{
	struct log_ctx lc = {gvk->kind, c->env->ns, name, NULL};

	if (!is_installed(cluster)) {
		log_info(&lc, "installed", NULL);
		return;
	}
	log_warn(&lc, "repaired, it was changed or deleted", NULL);
	k8s_events_post(c->env->events, &kobj_cluster, cluster, K8S_EVENT_NORMAL, "Repaired",
		"Repair", "%s %s had been changed or deleted and is as it should be again.",
		gvk->kind, name);
}

/* Written because what it is rendered from changed. */
static void told_moved(struct ctl_cluster *c, const struct kobj *cluster, unsigned i)
{
	struct log_ctx lc = {
		cluster_objects[i].gvk->kind, c->env->ns, cluster_objects[i].name, NULL};

	log_info(&lc, "follows a certificate or token signer", NULL);
	if (is_deployment(i))
		k8s_events_post(c->env->events, &kobj_cluster, cluster, K8S_EVENT_NORMAL,
			"Restarted", "Restart",
			"Trustee is restarted once, as its certificate or token signer is another one.");
}

/*
 * The gap: Trustee serves no key from when the old Pod is told to end until the new one is ready
 * and filled, as every restart of Trustee has it; nodes that boot just then try again. It is as
 * short as one Pod can make it, since all that the new one mounts was put in place before (the
 * order of the table). No key is touched: they lie in the Machines' Secrets, and the new Trustee is
 * filled from there. Two Trustees at once would be no help: both would be behind the one Service,
 * and the new one is empty at first.
 */
static void told_taken_over(struct ctl_cluster *c, const struct kobj *cluster)
{
	struct log_ctx lc = {"Deployment", c->env->ns, CLUSTER_DEPLOYMENT, NULL};

	log_info(&lc, "deleted, it was another operator's of this cluster", NULL);
	k8s_events_post(c->env->events, &kobj_cluster, cluster, K8S_EVENT_NORMAL, "TakenOver",
		"TakeOver",
		"Deployment " CLUSTER_DEPLOYMENT
		" had the form of another operator and is made anew. Keys stay as they are; Trustee serves them again when "
		"its new Pod is ready.");
}

/* ---- answers */

bool cluster_object_failed(struct ctl_cluster *c, bool *must_read, const struct kobj_gvk *gvk,
	const char *name, enum ctl_cluster_do d, const struct err *err, const struct k8s_result *r)
{
	bool gone = err->kind == ERR_NOT_FOUND;

	*must_read = (r && r->already_exists) || (*must_read && !gone);
	if ((r && r->already_exists) ||
		(gone && (d == CTL_CLUSTER_READ || d == CTL_CLUSTER_DELETE)))
		return true;
	/* What time does not heal is told. */
	if (err->kind == ERR_INVALID || err->kind == ERR_DENIED)
		snprintf(c->problem, sizeof(c->problem), "%s %s cannot be %s: %s", gvk->kind, name,
			d == CTL_CLUSTER_READ ? "read" : "written", err->text);
	return false;
}

static void told(
	struct ctl_cluster *c, const struct kobj *cluster, enum ctl_cluster_do d, unsigned i)
{
	const struct cluster_object *t = &cluster_objects[i];
	bool announced = d == CTL_CLUSTER_APPLY && is_deployment(i) && c->volumes.announced;

	if (announced)
		c->volumes.announced = false;
	if (d == CTL_CLUSTER_DELETE && is_deployment(i))
		told_taken_over(c, cluster);
	else if (d == CTL_CLUSTER_DELETE || d == CTL_CLUSTER_READ)
		return;
	else if (is_installed(cluster) && c->inputs.moved &&
		 (is_deployment(i) || str_eq(t->name, CLUSTER_DATA)))
		told_moved(c, cluster, i);
	else if (announced && is_installed(cluster))
		log_info(NULL, "Trustee restarts with other files", "machine=%zu ak=%zu",
			c->volumes.wanted.n_machines, c->volumes.wanted.n_aks);
	else
		cluster_told_repaired(c, cluster, t->gvk, t->name);
}

/* The cluster the act was for may have been replaced meanwhile: then what is known was reset, and
 * only the cache learns. */
bool cluster_object_done(struct ctl_cluster *c, const struct kobj *cluster, enum ctl_cluster_do d,
	unsigned i, const struct err *err, const struct k8s_result *r)
{
	const struct cluster_object *t = &cluster_objects[i];
	struct cluster_known *k = &c->known[i];
	bool ours = cluster && str_eq(cluster->uid, c->known_uid);

	if (err_is_set(err))
		return cluster_object_failed(c, &k->must_read, t->gvk, t->name, d, err, r);
	c->problem[0] = '\0';
	k->must_read = false;
	if (ours)
		told(c, cluster, d, i);
	if (d == CTL_CLUSTER_DELETE)
		return true;
	if (ours && d == CTL_CLUSTER_READ && t->kind != CLUSTER_OBJECT_CREATE_ONLY)
		judge(c, cluster, i, r->object);
	else if (ours)
		cluster_set_rv(&k->ok_rv, r->object);
	if (ours && d == CTL_CLUSTER_APPLY && is_deployment(i)) {
		c->inputs.moved = false;
		cluster_inputs_saw_deployment(c, model_cluster(cluster), r->object);
		cluster_volumes_saw(c, model_cluster(cluster), r->object);
	}
	ctl_take_answer(cache_of(c->env, i), r->object, true);
	return true;
}
