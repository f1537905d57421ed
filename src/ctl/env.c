/* SPDX-License-Identifier: MIT */
/*
 * Questions to the caches that several controllers ask: which cluster is served, who holds an id,
 * which key is a Machine's, whether any Trustee may hold something of ours. Nothing is remembered
 * here. Whatever is in doubt is answered so that nothing is lost: a Trustee may still be there,
 * nothing is approved. A list that has not come yet, and an object that cannot be read, are in
 * doubt.
 */
#include "config.h"

#include "ctl_internal.h"

#include <stdio.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/ctl/since.h"
#include "tec/kobj/subset.h"
#include "tec/model/mark.h"
#include "tec/pki/spki.h"

const struct model_cluster *ctl_env_cluster(const struct ctl_env *env)
{
	if (ctl_env_cluster_unknown(env))
		return NULL;
	return model_cluster(k8s_cache_first(env->clusters, 0, ""));
}

bool ctl_env_cluster_unknown(const struct ctl_env *env)
{
	return k8s_cache_unreadable(env->clusters) > 0;
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

int64_t ctl_since_s(const struct ctl_env *env)
{
	int64_t since_s = env->since ? ctl_since_marker_s(env->since) : INT64_MIN;
	const struct model_cluster *c = ctl_env_cluster(env);

	if (since_s == INT64_MIN || !c || c->adopt_before_s > clock_wall_s())
		return since_s;
	return c->adopt_before_s > since_s ? c->adopt_before_s : since_s;
}

bool ctl_deployment_is_left(const struct ctl_env *env)
{
	const struct ctl_plain *d =
		(const struct ctl_plain *)k8s_cache_find(env->deployments, "trustee-deployment");

	if (!k8s_cache_filled(env->deployments))
		return true;
	return d && (d->obj.unreadable || d->owner_uid || d->render_hash);
}

bool ctl_administered(const struct ctl_env *env)
{
	/* Memory of servers outside goes when they are clean. */
	return ctl_env_cluster(env) || ctl_env_cluster_unknown(env) ||
	       ctl_deployment_is_left(env) || !k8s_cache_filled(env->configmaps) ||
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

bool ctl_is_older(const struct ctl_env *env, const struct kobj *o)
{
	return o->created_s < ctl_since_s(env);
}

bool ctl_cluster_means_the_same(const struct kobj *was, const struct kobj *now)
{
	return was && now && str_eq(was->uid, now->uid) && was->generation == now->generation &&
	       was->deleting == now->deleting &&
	       model_cluster(was)->adopt_before_s == model_cluster(now)->adopt_before_s &&
	       str_eq(model_cluster(was)->extended_mirror, model_cluster(now)->extended_mirror);
}

bool ctl_keys_are_shared(const struct ctl_env *env)
{
	const struct model_cluster *c = ctl_policy(env);

	return c &&
	       (c->isolation == MODEL_ISOLATION_SHARED || c->delivery == MODEL_DELIVERY_VOLUMES);
}

/* ---- Machines and their Secrets */

const struct model_machine *ctl_holder(const struct ctl_env *env, const char *id)
{
	const struct model_machine *best = NULL;
	int best_rank = -1;

	for (const struct kobj *o = k8s_cache_first(env->machines, 0, id); o;
		o = k8s_cache_next(env->machines, 0, o)) {
		const struct model_machine *m = model_machine(o);
		int rank = model_machine_delivered(m) ? 2 : m->announced ? 1 : 0;

		if (rank > best_rank) {
			best = m;
			best_rank = rank;
		}
	}
	return best;
}

enum ctl_luks ctl_luks(const struct ctl_env *env, const struct model_machine *m)
{
	const struct model_secret *s = m->id_valid ? ctl_secret(env, m->id) : NULL;

	if (!s)
		return CTL_LUKS_ABSENT;
	if (s->obj.unreadable)
		return CTL_LUKS_UNREADABLE;
	if (s->n_owners != 1 || !str_eq(s->owner_uid, m->obj.uid) ||
		(s->shape != MODEL_SECRET_LUKS && s->shape != MODEL_SECRET_LUKS_BAD))
		return CTL_LUKS_FOREIGN;
	if (s->shape == MODEL_SECRET_LUKS_BAD)
		return CTL_LUKS_MALFORMED;
	return s->obj.deleting ? CTL_LUKS_DELETING : CTL_LUKS_OK;
}

bool ctl_luks_is_announced(const struct model_machine *m, const struct model_secret *s)
{
	return s && model_mark_announces(m->announced, s->key_sha256);
}

bool ctl_luks_is_inherited(
	const struct ctl_env *env, const struct model_machine *m, const struct model_secret *s)
{
	return ctl_luks(env, m) == CTL_LUKS_OK && !m->announced && !model_machine_delivered(m) &&
	       ctl_is_older(env, &m->obj) && ctl_is_older(env, &s->obj) &&
	       (!m->old_key_sha256 || str_eq(m->old_key_sha256, s->key_sha256));
}

bool ctl_luks_was_lost(const struct ctl_env *env, const struct model_machine *m)
{
	return m->has_finalizer && !m->announced && !model_machine_delivered(m) &&
	       ctl_is_older(env, &m->obj);
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

bool ctl_ak_was_approved(const struct model_ak *ak)
{
	return ak->approved_at || ak->cond[AK_APPROVED].status == KOBJ_COND_TRUE;
}

bool ctl_ak_is_inherited(
	const struct ctl_env *env, const struct model_ak *ak, const struct model_machine *m)
{
	return !m->bound_at && !ak->obj.deleting && ak->spki_sha256 &&
	       ak->cond[AK_APPROVED].status == KOBJ_COND_TRUE && ctl_ak_is_of(ak, m->obj.uid) &&
	       ctl_is_older(env, &ak->obj) && ctl_is_older(env, &m->obj);
}

/* Of several to be inherited the youngest counts, as it was approved last. */
static bool is_younger(const struct model_ak *a, const struct model_ak *b)
{
	return a->obj.created_s > b->obj.created_s ||
	       (a->obj.created_s == b->obj.created_s && strcmp(a->obj.name, b->obj.name) < 0);
}

const struct model_ak *ctl_ak_of_machine(const struct ctl_env *env, const struct model_machine *m)
{
	const struct model_ak *best = NULL;

	for (const struct kobj *o = k8s_cache_first(env->aks, 0, m->id); o;
		o = k8s_cache_next(env->aks, 0, o)) {
		const struct model_ak *ak = model_ak(o);

		if (m->bound_key && str_eq(m->bound_key, o->uid))
			return o->deleting || !str_eq(m->bound_spki, ak->spki_sha256) ? NULL : ak;
		if (ctl_ak_is_inherited(env, ak, m) && (!best || is_younger(ak, best)))
			best = ak;
	}
	return best;
}

/* The Secret knows the name already, which saves parsing the key again. */
bool ctl_ak_identity(const struct model_ak *ak, char out[RATS_IDENTITY_NAME_LEN + 1])
{
	return ak->spki_sha256 && rats_identity_name_pem(ak->public_key, out) == 0;
}
