/* SPDX-License-Identifier: MIT */
/* Right after a start kbs_sync knows no Trustee. Whether there is one is concluded from the API, so
 * that NONE never means "not known yet". */
#include "config.h"

#include "tec/caches/trustee.h"

#include "tec/caches/cluster.h"

/* Without an owner and our annotation the Deployment is a user's own, and not administered. */
bool caches_trustee_is_left(const struct caches *s)
{
	const struct model_plain *d =
		(const struct model_plain *)k8s_cache_find(s->deployments, "trustee-deployment");

	if (!k8s_cache_filled(s->deployments))
		return true;
	return d && (d->obj.unreadable || d->owner_uid || d->render_hash);
}

bool caches_trustee_is_followed(const struct caches *s)
{
	const struct model_cluster *c = caches_cluster(s);

	if (!c || s->kbs_in_process || !model_cluster_leaves_trustee(c))
		return false;
	/* What it administered itself is remembered, and has to be revoked there. */
	return c->authority != MODEL_AUTHORITY_RETIRED ||
	       (k8s_cache_filled(s->configmaps) &&
		       !k8s_cache_find(s->configmaps, CACHES_TRUSTEE_MEMORY));
}

bool caches_trustee_is_administered(const struct caches *s)
{
	/* The ConfigMap that remembers external servers is removed when they are clean. */
	return (caches_cluster(s) && !caches_trustee_is_followed(s)) || caches_cluster_unknown(s) ||
	       caches_trustee_is_left(s) || !k8s_cache_filled(s->configmaps) ||
	       k8s_cache_find(s->configmaps, CACHES_TRUSTEE_MEMORY);
}

/* NONE would allow a finalizer to be removed although a Trustee may still hold the object. */
static enum kbs_observed unless_unknown(const struct caches *s, enum kbs_observed observed)
{
	return observed == KBS_OBSERVED_NONE && caches_trustee_is_administered(s)
		       ? KBS_OBSERVED_UNKNOWN
		       : observed;
}

enum kbs_observed caches_trustee_observed(
	const struct caches *s, enum kbs_kind kind, const char *name)
{
	return unless_unknown(s, kbs_sync_observed(s->sync, kind, name));
}

enum kbs_observed caches_trustee_observed_key(
	const struct caches *s, const char *identity, const char *ak)
{
	return unless_unknown(s, kbs_sync_observed_in(s->sync, KBS_REFVALUE, identity, ak));
}

/* An identity's name is shared by keys: the name must be declared for another key, or revoked. */
bool caches_trustee_withdrawn(const struct caches *s, const char *identity, const char *ak)
{
	if (kbs_sync_object_in(s->sync, KBS_REFVALUE, identity, ak, NULL))
		return false;
	return kbs_sync_object(s->sync, KBS_REFVALUE, identity) ||
	       kbs_sync_is_revoked(s->sync, KBS_REFVALUE, identity);
}

bool caches_trustee_is_probing(const struct caches *s)
{
	return kbs_sync_state(s->sync) == KBS_TARGET_PROBING;
}

/* With delivery by volumes, filling waits for a new Pod, which may take minutes. */
bool caches_trustee_is_catching_up(const struct caches *s)
{
	const struct model_cluster *c = caches_cluster(s);

	return caches_trustee_is_probing(s) || (kbs_sync_state(s->sync) == KBS_TARGET_POPULATING &&
						       c && c->delivery != MODEL_DELIVERY_VOLUMES);
}

/* Only while POPULATING, when thousands of objects may be declared at once. */
bool caches_trustee_is_filling(const struct caches *s, enum kbs_kind kind, const char *name)
{
	return kbs_sync_state(s->sync) == KBS_TARGET_POPULATING &&
	       kbs_sync_object(s->sync, kind, name);
}
