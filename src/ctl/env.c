/* SPDX-License-Identifier: MIT */
/*
 * Questions to the caches that several controllers ask: which cluster is served, who holds an id,
 * which key is a Machine's, whether any Trustee may hold something of ours. Nothing is remembered
 * here. Whatever is in doubt is answered so that nothing is lost: a Trustee may still be there,
 * nothing is approved.
 */
#include "config.h"

#include "ctl_internal.h"

#include <stdio.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/kobj/subset.h"
#include "tec/pki/spki.h"

const struct model_cluster *ctl_env_cluster(const struct ctl_env *env)
{
	return model_cluster(k8s_cache_first(env->clusters, 0, ""));
}

int64_t ctl_since_s(const struct ctl_env *env)
{
	const struct kobj *o = k8s_cache_find(env->configmaps, CTL_SINCE_CONFIGMAP);

	return o ? o->created_s : INT64_MIN;
}

struct kobj *ctl_plain_extract(struct json_object *o, struct err *err)
{
	cleanup_kobj_pack struct kobj_pack pack = KOBJ_PACK_INIT;
	struct ctl_plain p = {0};

	if (kobj_meta_read(&pack, o, &p.obj, err) < 0)
		return NULL;
	kobj_pack_str(&pack, offsetof(struct ctl_plain, owner_uid), kobj_owner_controller(o));
	kobj_pack_str(&pack, offsetof(struct ctl_plain, render_hash),
		kobj_annotation(o, KOBJ_RENDER_HASH_ANNOTATION));
	kobj_pack_str(
		&pack, offsetof(struct ctl_plain, cluster_ip), json_get_str(o, "spec/clusterIP"));
	return kobj_pack_finish(&pack, &p, sizeof(p));
}

bool ctl_path_id(const char *path, char id[UUID_TEXT_LEN + 1])
{
	const char *p = strchr(path, '/');

	if (!p || strlen(p + 1) < UUID_TEXT_LEN || !uuid_valid(p + 1, UUID_TEXT_LEN))
		return false;
	memcpy(id, p + 1, UUID_TEXT_LEN);
	id[UUID_TEXT_LEN] = '\0';
	return true;
}

bool ctl_deployment_is_left(const struct ctl_env *env)
{
	const struct ctl_plain *d =
		(const struct ctl_plain *)k8s_cache_find(env->deployments, "trustee-deployment");

	return d && (d->owner_uid || d->render_hash);
}

bool ctl_administered(const struct ctl_env *env)
{
	/* Memory of servers outside goes when they are clean. */
	return ctl_env_cluster(env) || ctl_deployment_is_left(env) ||
	       k8s_cache_find(env->configmaps, CTL_TRUSTEE_MEMORY);
}

bool ctl_asking(const struct ctl_env *env)
{
	return kbs_sync_state(env->sync) == KBS_TARGET_ASKING;
}

bool ctl_filling(const struct ctl_env *env, enum kbs_sort sort, const char *name)
{
	return kbs_sync_state(env->sync) == KBS_TARGET_POPULATING &&
	       kbs_sync_holder(env->sync, sort, name);
}

enum kbs_far ctl_far(const struct ctl_env *env, enum kbs_sort sort, const char *name)
{
	enum kbs_far far = kbs_sync_far(env->sync, sort, name);

	return far == KBS_FAR_NONE && ctl_administered(env) ? KBS_FAR_UNKNOWN : far;
}

const struct kobj *ctl_taken_by(const struct ctl_env *env, const char *identity, const char *uid)
{
	const struct kobj *holder = kbs_sync_holder(env->sync, KBS_REFVALUE, identity);

	return holder && !str_eq(holder->uid, uid) ? holder : NULL;
}

const struct model_cluster *ctl_policy(const struct ctl_env *env)
{
	const struct model_cluster *c = ctl_env_cluster(env);

	return c && !c->extended_lost ? c : NULL;
}

const struct model_secret *ctl_secret(const struct ctl_env *env, const char *name)
{
	const struct kobj *o = k8s_cache_find(env->secrets, name);

	return o ? model_secret(o) : NULL;
}

const struct model_machine *ctl_holder(const struct ctl_env *env, const char *id)
{
	const struct kobj *first = k8s_cache_first(env->machines, 0, id), *made = NULL;
	const struct model_secret *s;

	if (!first)
		return NULL;
	s = ctl_secret(env, id);
	for (const struct kobj *o = first; o; o = k8s_cache_next(env->machines, 0, o)) {
		if (s && s->root && s->n_owners == 1 && str_eq(s->owner_uid, o->uid))
			return model_machine(o);
		if (!made && model_machine(o)->key_sha256)
			made = o;
	}
	return model_machine(made ? made : first);
}

/* ---- attestation keys */

int64_t ctl_ak_approved_us(const struct model_ak *ak)
{
	int64_t us;

	if (!ak->approved_at)
		return ak->obj.created_s * 1000000;
	return clock_parse(ak->approved_at, &us) == 0 ? us : 0;
}

bool ctl_ak_is_of(const struct model_ak *ak, const char *machine_uid)
{
	return ak->n_owners == 1 && str_eq(ak->owner_uid, machine_uid);
}

bool ctl_ak_usable(const struct model_ak *ak)
{
	return ak->spki_sha256 &&
	       (!ak->approved_spki || str_eq(ak->approved_spki, ak->spki_sha256));
}

/*
 * Whether a counts rather than b, both approved for one Machine. What an administrator approved
 * beats what was approved by itself, the later beats the earlier; by itself, the earlier stays (two
 * that register at once must not push each other out); what the Rust operator left without a mark
 * comes last, the youngest first.
 */
static bool beats(const struct model_ak *a, const struct model_ak *b)
{
	int rank_a = !a->approved_at ? 0 : a->approved_by_admin ? 2 : 1;
	int rank_b = !b->approved_at ? 0 : b->approved_by_admin ? 2 : 1;
	int64_t at_a = ctl_ak_approved_us(a), at_b = ctl_ak_approved_us(b);

	if (rank_a != rank_b)
		return rank_a > rank_b;
	if (at_a != at_b)
		return rank_a == 1 ? at_a < at_b : at_a > at_b;
	return strcmp(a->obj.name, b->obj.name) < 0;
}

const struct model_ak *ctl_ak_of_machine(const struct ctl_env *env, const char *machine_uid)
{
	const struct model_ak *best = NULL;

	for (const struct kobj *o = k8s_cache_first(env->aks, 2, machine_uid); o;
		o = k8s_cache_next(env->aks, 2, o)) {
		const struct model_ak *ak = model_ak(o);

		if (o->deleting || !ctl_ak_is_of(ak, machine_uid) || !ctl_ak_usable(ak))
			continue;
		if (!best || beats(ak, best))
			best = ak;
	}
	return best;
}

/* The Secret knows the name already, which saves parsing the key again. */
bool ctl_ak_identity(const struct model_ak *ak, char out[RATS_IDENTITY_NAME_LEN + 1])
{
	return ak->spki_sha256 && rats_identity_name_pem(ak->public_key, out) == 0;
}
