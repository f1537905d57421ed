/* SPDX-License-Identifier: MIT */
/*
 * Delivery by volumes. Decision: which files Trustee's Pod must have. Each change of the list
 * restarts Trustee, so the list is a copy of what is declared, updated at most every ten seconds,
 * and sooner for revocations. A mounted file that no controller has declared or revoked yet stays:
 * after a start of the operator, nothing is unmounted only because its controller has not run yet.
 * A list that the API would not store is refused, but revoked files are removed in any case.
 *
 * Confirmation. What Trustee serves is read from its Deployment and its Pods, never assumed from what
 * was written. A Pod carries a hash of the contents that it was started with; while a Pod with
 * another hash exists, even one that is being deleted, nothing is confirmed. A file is confirmed only
 * if its content is known to be current.
 */
#include "config.h"

#include "cluster_internal.h"

#include <stdio.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/model/configmap.h"

/* Of the hash of the current content of a list's files: "<keys>.<reference values>". */
#define CONTENTS_LEN (2 * 16 + 1)
#define ADD_MS       10000 /* between two restarts that add files */
#define TAKE_BACK_MS 2000  /* collects many revocations into few restarts */

/* ---- contents: a hash of all files, as the Pod template carries it */

/* A missing Secret is part of the hash, so its creation changes the contents. */
static void add_content(
	struct bytes_sha256_run *run, const char *kind, const char *name, const char *sha256)
{
	cleanup_free char *line = xasprintf("%s %s %s\n", kind, name, sha256 ? sha256 : "-");

	bytes_sha256_add(run, line, strlen(line));
}

/* Hash what the files hold now. The second half covers the reference values, so that a change of
 * a key alone does not make confirmed values doubtful, and the other way round. */
static void contents_of(
	const struct ctl_env *env, const struct render_volumes *l, char out[CONTENTS_LEN + 1])
{
	const struct model_configmap *rv = caches_configmap(env->caches, MODEL_RV_CONFIGMAP);
	const struct model_cluster *cluster = caches_cluster(env->caches);
	cleanup_sha256 struct bytes_sha256_run run;
	uint8_t digest[SHA256_LEN];
	char hex[SHA256_HEX_LEN + 1];

	bytes_sha256_init(&run);
	if (cluster) {
		const char *policy = render_trustee_volumes_policy(cluster);

		bytes_sha256_add(&run, policy, strlen(policy));
	}
	for (size_t i = 0; i < l->machines.n; i++) {
		const struct model_secret *s = caches_secret(env->caches, l->machines.v[i]);

		add_content(&run, "machine", l->machines.v[i],
			s ? model_secret_key_sha256(s, hex) : NULL);
	}
	for (size_t i = 0; i < l->aks.n; i++) {
		const struct model_secret *s = caches_secret(env->caches, l->aks.v[i]);

		add_content(
			&run, "key", l->aks.v[i], s ? model_secret_public_sha256(s, hex) : NULL);
	}
	bytes_sha256_end(&run, digest);
	bytes_to_hex(digest, SHA256_LEN, hex);
	snprintf(out, CONTENTS_LEN + 1, "%.16s.%.16s", hex,
		rv && rv->file_sha256 ? rv->file_sha256 : "none");
}

/* ---- the Deployment */

/* Remember what the Deployment mounts, and whether its rollout is complete, at this
 * resourceVersion. */
void cluster_served_saw(struct cluster_volumes *v, struct json_object *deployment)
{
	int64_t replicas = json_get_int(deployment, "status/replicas", 0);

	render_volumes_fini(&v->live);
	v->live_ours = render_volumes_read(deployment, &v->live);
	/* The criteria of `kubectl rollout status`. */
	v->live_done = replicas > 0 && replicas == json_get_int(deployment, "spec/replicas", 1) &&
		       json_get_int(deployment, "status/updatedReplicas", 0) == replicas &&
		       json_get_int(deployment, "status/availableReplicas", 0) == replicas &&
		       json_get_int(deployment, "status/observedGeneration", -1) >=
			       json_get_int(deployment, "metadata/generation", 0);
	v->live_known = v->dirty = true;
	free(v->live_rv);
	v->live_rv = xstrdup(json_get_str(deployment, "metadata/resourceVersion"));
}

/* ---- the Pods */

struct pods {
	const char *contents;
	size_t n_ready, n_others;
	/* The first by name: one with other files, and one that is not ready. */
	const struct model_pod *other, *waits;
};

/* The condition names one Pod; the choice must not depend on the order of the cache. */
static const struct model_pod *first_of(const struct model_pod *a, const struct model_pod *b)
{
	return a && strcmp(a->obj.name, b->obj.name) < 0 ? a : b;
}

/* A Pod that cannot be read counts as one with other files: it may serve what was revoked. Pods
 * that ended serve nothing. */
static void count_pod(void *arg, const struct kobj *o)
{
	const struct model_pod *p = (const struct model_pod *)o;
	struct pods *in = arg;

	if (!o->unreadable && (!str_eq(p->app, "kbs") || p->ended))
		return;
	if (o->unreadable || !str_eq(p->contents, in->contents)) {
		in->n_others++;
		in->other = first_of(in->other, p);
	} else if (p->ready) {
		in->n_ready++;
	} else {
		in->waits = first_of(in->waits, p);
	}
}

/* At least one ready Pod with the current files, and none with others. */
static bool is_served(const struct ctl_cluster *c)
{
	const struct cluster_volumes *v = &c->volumes;
	struct pods in = {.contents = v->live.contents};

	if (!v->live_known || !v->live_ours || !v->live_done || !in.contents)
		return false;
	k8s_cache_each(c->env->caches->pods, count_pod, &in);
	return in.n_ready > 0 && in.n_others == 0;
}

/* Explain what confirmation waits for. A Pod without a Deployment, or whose node is gone, stays
 * until a user deletes it, so the text names the command. */
static void why_not_served(const struct ctl_cluster *c, struct strbuf *out)
{
	struct pods in = {.contents = c->volumes.live.contents};
	const char *name;

	k8s_cache_each(c->env->caches->pods, count_pod, &in);
	if (in.other) {
		name = in.other->obj.name;
		strbuf_addf(out,
			in.other->obj.deleting
				? "Pod %s is being deleted and may still serve what was revoked. If its node is gone for good: "
				  "kubectl delete pod %s --force"
				: "Pod %s (label app=kbs) does not have the current files and may serve what was revoked. If it stays: "
				  "kubectl delete pod %s",
			name, name);
		if (in.n_others > 1)
			strbuf_addf(out, " (the first of %zu such Pods)", in.n_others);
		strbuf_addc(out, '.');
	} else if (in.waits) {
		strbuf_addf(out, "Pod %s has the current files but is not ready yet%s%.300s.",
			in.waits->obj.name, in.waits->why ? ": " : "",
			in.waits->why ? in.waits->why : "");
	} else {
		strbuf_adds(out, "No Pod has the current files yet.");
	}
}

/* ---- names */

struct confirm {
	const struct ctl_env *env;
	const struct render_volumes *live;
	const struct model_configmap *rv; /* NULL: there is none */
	const char *target;
	bool keys, values; /* the files have their current contents */
	/* Secrets of keys that are mounted, borrowed; sorted by the name of their identity. */
	const struct model_secret **aks;
	size_t n_aks;
};

static void confirm(
	const struct confirm *in, enum kbs_kind kind, const char *name, const uint8_t *sha256)
{
	kbs_sync_confirm(in->env->caches->sync, in->target, kind, name, sha256);
}

/* Confirm one disk key: absent if it is not mounted, else with the hash of its Secret, provided
 * that the mounted content is current. */
static void confirm_key(void *arg, const char *path)
{
	const struct confirm *in = arg;
	const struct model_secret *s;
	char id[UUID_TEXT_LEN + 1];

	if (!rats_resource_id(path, id))
		return;
	if (!render_names_have(&in->live->machines, id)) {
		confirm(in, KBS_RESOURCE, path, NULL);
		return;
	}
	s = caches_secret(in->env->caches, id);
	if (in->keys && s && s->shape == MODEL_SECRET_LUKS)
		confirm(in, KBS_RESOURCE, path, s->sha256);
}

static int by_identity(const void *a, const void *b)
{
	const struct model_secret *const *x = a, *const *y = b;

	return strcmp((*x)->identity, (*y)->identity);
}

/* Find the first mounted key of this identity by binary search; n_aks if there is none. */
static size_t first_mounted(const struct confirm *in, const char *name)
{
	size_t low = 0, high = in->n_aks;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(in->aks[middle]->identity, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < in->n_aks && str_eq(in->aks[low]->identity, name) ? low : in->n_aks;
}

/* Confirm an identity as declared if exactly the declared keys of this name are mounted. */
static void confirm_identity(const struct confirm *in, const char *name)
{
	const struct kbs_sync *sync = in->env->caches->sync;
	size_t first = first_mounted(in, name), i = first;
	unsigned n_places = 0, n_placed = 0;
	uint8_t sha256[SHA256_LEN];
	bool has_place;

	if (!in->keys)
		return;
	if (first == in->n_aks) {
		confirm(in, KBS_REFVALUE, name, NULL);
		return;
	}
	for (; i < in->n_aks && str_eq(in->aks[i]->identity, name); i++) {
		kbs_sync_object_in(sync, KBS_REFVALUE, name, in->aks[i]->obj.name, &has_place);
		n_placed += has_place;
	}
	while (n_places < KBS_LIST_MAX && kbs_sync_object_at(sync, KBS_REFVALUE, name, n_places))
		n_places++;
	if (n_placed == n_places && n_placed == i - first &&
		kbs_sync_desired(sync, KBS_REFVALUE, name, sha256))
		confirm(in, KBS_REFVALUE, name, sha256);
}

/* Confirm one array of reference values. Trustee treats a missing array like an empty one. */
static void confirm_array(const struct confirm *in, unsigned i)
{
	const char *name = model_rv_array_names[i];
	uint8_t wanted[SHA256_LEN], empty[SHA256_LEN];
	bool there = in->rv && in->rv->arrays & 1u << i;
	bool declared = kbs_sync_desired(in->env->caches->sync, KBS_REFVALUE, name, wanted);
	bool nothing;

	bytes_sha256("[]", 2, empty);
	nothing = !there || memcmp(in->rv->array_sha256[i], empty, SHA256_LEN) == 0;
	confirm(in, KBS_REFVALUE, name,
		!nothing   ? in->rv->array_sha256[i]
		: declared ? empty
			   : NULL);
}

/*
 * Confirm one reference value. Boot sets are not files: the policy of such a Trustee reads the
 * arrays, and leaving an image out of them revokes it. tpm_svn is the same for all images and not
 * in the installed file. If the file is current, both are as declared.
 */
static void confirm_value(void *arg, const char *name)
{
	const struct confirm *in = arg;
	uint8_t sha256[SHA256_LEN];
	bool declared;

	if (rats_is_identity_name(name)) {
		confirm_identity(in, name);
		return;
	}
	if (!in->values)
		return;
	for (unsigned i = 0; i < MODEL_RV_N_ARRAYS; i++) {
		if (i != MODEL_RV_SVN && str_eq(name, model_rv_array_names[i])) {
			confirm_array(in, i);
			return;
		}
	}
	declared = kbs_sync_desired(in->env->caches->sync, KBS_REFVALUE, name, sha256);
	confirm(in, KBS_REFVALUE, name, declared ? sha256 : NULL);
}

/* Tell kbs_sync what is served. The two halves of the hash are compared separately: keys and
 * reference values are confirmed independently. */
static void confirm_all(struct ctl_cluster *c, const struct model_cluster *served)
{
	const struct cluster_volumes *v = &c->volumes;
	cleanup_free const struct model_secret **aks = NULL;
	struct confirm in = {.env = c->env, .live = &v->live, .target = ctl_primary_target(served)};
	char now[CONTENTS_LEN + 1];
	const char *point, *now_point;

	if (!is_served(c))
		return;
	contents_of(c->env, &v->live, now);
	now_point = strchr(now, '.');
	point = strchr(v->live.contents, '.');
	if (!point)
		return; /* not written by us */
	in.keys = point - v->live.contents == now_point - now &&
		  strncmp(v->live.contents, now, (size_t)(now_point - now)) == 0;
	in.values = str_eq(point, now_point);
	in.rv = caches_configmap(c->env->caches, MODEL_RV_CONFIGMAP);
	in.aks = aks = xcalloc(v->live.aks.n + 1, sizeof(*aks));
	/* A deleted Secret needs no care here: it changes the contents hash, which makes `keys`
	 * false. */
	for (size_t i = 0; i < v->live.aks.n; i++) {
		const struct model_secret *s = caches_secret(c->env->caches, v->live.aks.v[i]);

		if (s && s->identity)
			aks[in.n_aks++] = s;
	}
	qsort(aks, in.n_aks, sizeof(*aks), by_identity);
	kbs_sync_names(c->env->caches->sync, KBS_RESOURCE, confirm_key, &in);
	kbs_sync_names(c->env->caches->sync, KBS_REFVALUE, confirm_value, &in);
}

/* ---- what is mounted */

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
		kbs_sync_object(in->env->caches->sync, KBS_RESOURCE, path) &&
		caches_secret(in->env->caches, id))
		render_names_add(&in->out->machines, id);
}

/* Several AttestationKeys may share one identity; each of their Secrets is a file. */
static void collect_value(void *arg, const char *name)
{
	struct collect *in = arg;
	const struct kbs_sync *sync = in->env->caches->sync;
	const struct kobj *o;

	if (!rats_is_identity_name(name)) {
		in->revoking_values |= !kbs_sync_object(sync, KBS_REFVALUE, name);
		return;
	}
	for (unsigned i = 0; i < KBS_LIST_MAX; i++) {
		o = kbs_sync_object_at(sync, KBS_REFVALUE, name, i);
		if (!o)
			return;
		if (caches_secret(in->env->caches, o->name))
			render_names_add(&in->out->aks, o->name);
	}
}

/* Keep what is mounted but neither declared nor revoked yet, while its Secret exists: a mount of a
 * missing Secret would keep the new Pod from starting. */
static void collect_mounted(struct collect *in, const struct render_volumes *live)
{
	const struct kbs_sync *sync = in->env->caches->sync;
	char path[RATS_RESOURCE_PATH_MAX];

	for (size_t i = 0; i < live->machines.n; i++) {
		rats_resource_path(live->machines.v[i], path);
		if (caches_secret(in->env->caches, live->machines.v[i]) &&
			!kbs_sync_is_revoked(sync, KBS_RESOURCE, path))
			render_names_add(&in->out->machines, live->machines.v[i]);
	}
	for (size_t i = 0; i < live->aks.n; i++) {
		const struct model_secret *s = caches_secret(in->env->caches, live->aks.v[i]);

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
	char contents[CONTENTS_LEN + 1];

	render_volumes_sort(l);
	contents_of(env, l, contents);
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
	const struct k8s_cache *secrets = c->env->caches->secrets;

	if (is_unreadable(c->env->caches->configmaps, MODEL_RV_CONFIGMAP) ||
		is_unreadable(c->env->caches->deployments, CLUSTER_DEPLOYMENT))
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

	kbs_sync_names(c->env->caches->sync, KBS_RESOURCE, collect_key, &in);
	kbs_sync_names(c->env->caches->sync, KBS_REFVALUE, collect_value, &in);
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
	} else if (!is_served(c)) {
		why_not_served(c, &text);
		why = strbuf_str(&text);
	} else {
		state = KBS_TARGET_IN_SYNC;
	}
	kbs_sync_set_status(c->env->caches->sync, ctl_primary_target(served), state, NULL, why);
}

/* ---- step */

/* Runs before the look, because `wanted` is an input of the rendering. Nothing is decided until
 * the live Deployment was read: its mounts must not be dropped by accident. */
uint32_t cluster_volumes_step(struct ctl_cluster *c, const struct model_cluster *served)
{
	struct cluster_volumes *v = &c->volumes;
	const struct kobj *o = k8s_cache_find(c->env->caches->deployments, CLUSTER_DEPLOYMENT);
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
		confirm_all(c, served);
	say(c, served, o != NULL);
	v->confirming = false;
	return wait_ms;
}

/* An apply of the Deployment begins. The files that it adds may reach Trustee from now on, and
 * may be revoked before the answer arrives, so they count as unknown. */
void cluster_volumes_writes(struct ctl_cluster *c, const struct model_cluster *served)
{
	struct cluster_volumes *v = &c->volumes;
	struct kbs_sync *sync = c->env->caches->sync;
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
		const struct model_secret *s = caches_secret(c->env->caches, v->wanted.aks.v[i]);

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
	return name && kbs_sync_is_revoked(c->env->caches->sync, kind, name);
}
