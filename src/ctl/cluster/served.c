/* SPDX-License-Identifier: MIT */
/*
 * Delivery by volumes, confirmation. What Trustee serves is read from its Deployment and its Pods,
 * never assumed from what was written. A Pod carries a hash of the contents that it was started
 * with; while a Pod with another hash exists, even one that is being deleted, nothing is confirmed.
 * A file is confirmed only if its content is known to be current.
 */
#include "config.h"

#include "cluster_internal.h"

#include <stdio.h>
#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/model/configmap.h"

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
void cluster_served_contents(const struct ctl_env *env, const struct render_volumes *l,
	char out[CLUSTER_CONTENTS_LEN + 1])
{
	const struct model_configmap *rv = state_configmap(env->state, MODEL_RV_CONFIGMAP);
	const struct model_cluster *cluster = state_cluster(env->state);
	cleanup_sha256 struct bytes_sha256_run run;
	uint8_t digest[SHA256_LEN];
	char hex[SHA256_HEX_LEN + 1];

	bytes_sha256_init(&run);
	if (cluster) {
		const char *policy = render_volumes_attestation_policy(cluster);

		bytes_sha256_add(&run, policy, strlen(policy));
	}
	for (size_t i = 0; i < l->machines.n; i++) {
		const struct model_secret *s = state_secret(env->state, l->machines.v[i]);

		add_content(&run, "machine", l->machines.v[i],
			s ? model_secret_key_sha256(s, hex) : NULL);
	}
	for (size_t i = 0; i < l->aks.n; i++) {
		const struct model_secret *s = state_secret(env->state, l->aks.v[i]);

		add_content(
			&run, "key", l->aks.v[i], s ? model_secret_public_sha256(s, hex) : NULL);
	}
	bytes_sha256_end(&run, digest);
	bytes_to_hex(digest, SHA256_LEN, hex);
	snprintf(out, CLUSTER_CONTENTS_LEN + 1, "%.16s.%.16s", hex,
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
bool cluster_served(const struct ctl_cluster *c)
{
	const struct cluster_volumes *v = &c->volumes;
	struct pods in = {.contents = v->live.contents};

	if (!v->live_known || !v->live_ours || !v->live_done || !in.contents)
		return false;
	k8s_cache_each(c->env->state->pods, count_pod, &in);
	return in.n_ready > 0 && in.n_others == 0;
}

/* Explain what confirmation waits for. A Pod without a Deployment, or whose node is gone, stays
 * until a user deletes it, so the text names the command. */
void cluster_served_why(const struct ctl_cluster *c, struct strbuf *out)
{
	struct pods in = {.contents = c->volumes.live.contents};
	const char *name;

	k8s_cache_each(c->env->state->pods, count_pod, &in);
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
	kbs_sync_confirm(in->env->state->sync, in->target, kind, name, sha256);
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
	s = state_secret(in->env->state, id);
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
	const struct kbs_sync *sync = in->env->state->sync;
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
	bool declared = kbs_sync_desired(in->env->state->sync, KBS_REFVALUE, name, wanted);
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
	declared = kbs_sync_desired(in->env->state->sync, KBS_REFVALUE, name, sha256);
	confirm(in, KBS_REFVALUE, name, declared ? sha256 : NULL);
}

/* Tell kbs_sync what is served. The two halves of the hash are compared separately: keys and
 * reference values are confirmed independently. */
void cluster_served_confirm(struct ctl_cluster *c, const struct model_cluster *served)
{
	const struct cluster_volumes *v = &c->volumes;
	cleanup_free const struct model_secret **aks = NULL;
	struct confirm in = {.env = c->env, .live = &v->live, .target = ctl_primary_target(served)};
	char now[CLUSTER_CONTENTS_LEN + 1];
	const char *point, *now_point;

	if (!cluster_served(c))
		return;
	cluster_served_contents(c->env, &v->live, now);
	now_point = strchr(now, '.');
	point = strchr(v->live.contents, '.');
	if (!point)
		return; /* not written by us */
	in.keys = point - v->live.contents == now_point - now &&
		  strncmp(v->live.contents, now, (size_t)(now_point - now)) == 0;
	in.values = str_eq(point, now_point);
	in.rv = state_configmap(c->env->state, MODEL_RV_CONFIGMAP);
	in.aks = aks = xcalloc(v->live.aks.n + 1, sizeof(*aks));
	/* A deleted Secret needs no care here: it changes the contents hash, which makes `keys`
	 * false. */
	for (size_t i = 0; i < v->live.aks.n; i++) {
		const struct model_secret *s = state_secret(c->env->state, v->live.aks.v[i]);

		if (s && s->identity)
			aks[in.n_aks++] = s;
	}
	qsort(aks, in.n_aks, sizeof(*aks), by_identity);
	kbs_sync_names(c->env->state->sync, KBS_RESOURCE, confirm_key, &in);
	kbs_sync_names(c->env->state->sync, KBS_REFVALUE, confirm_value, &in);
}
