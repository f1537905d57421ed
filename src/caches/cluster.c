/* SPDX-License-Identifier: MIT */
/* The oldest cluster that is not being deleted is served. While one of them cannot be read, it
 * could be older: then no policy is in force, but what runs continues. */
#include "config.h"

#include "tec/caches/cluster.h"

#include "tec/base/str.h"

/* Index 0 has "" for every cluster that is not being deleted, in the order of age. */
const struct model_cluster *caches_cluster_oldest(const struct caches *s)
{
	return model_cluster(k8s_cache_first(s->clusters, 0, ""));
}

const struct model_cluster *caches_cluster(const struct caches *s)
{
	return caches_cluster_unknown(s) ? NULL : caches_cluster_oldest(s);
}

/* The unreadable one may be the oldest: its age is not known. */
bool caches_cluster_unknown(const struct caches *s)
{
	return k8s_cache_unreadable(s->clusters) > 0;
}

/* A pruned spec may lack restrictions, so it permits nothing. */
const struct model_cluster *caches_cluster_policy(const struct caches *s)
{
	const struct model_cluster *c = caches_cluster(s);

	return c && !c->extended_lost ? c : NULL;
}

/* Without knowledge, assume that the peer decides: two clusters must never decide at once. A
 * process that does not lead reads the leader's conclusion from the condition. */
static bool peer_may_decide(const struct caches *s, const struct model_cluster *c)
{
	const char *reason = c->cond[CLUSTER_AUTHORITY].reason;

	if (!model_cluster_peer(c))
		return false;
	switch (s->peer) {
	case CACHES_PEER_UNKNOWN:
	case CACHES_PEER_DECIDES:
		return true;
	case CACHES_PEER_TOLD:
		return str_eq(reason, model_cluster_reason(CLUSTER_PEER_UNKNOWN)) ||
		       str_eq(reason, model_cluster_reason(CLUSTER_PEER_DECIDES));
	case CACHES_PEER_FINE:
		break;
	}
	return false;
}

/* The oldest readable cluster is used even while another one is unreadable: to be Frozen or Retired
 * must not end because of that. */
enum model_authority caches_cluster_authority(const struct caches *s)
{
	const struct model_cluster *c = s->clusters ? caches_cluster_oldest(s) : NULL;

	if (!c)
		return MODEL_AUTHORITY_SELF;
	return c->authority == MODEL_AUTHORITY_SELF && peer_may_decide(s, c)
		       ? MODEL_AUTHORITY_FROZEN
		       : c->authority;
}

bool caches_cluster_decides(const struct caches *s)
{
	return caches_cluster_authority(s) == MODEL_AUTHORITY_SELF;
}

/* The mark counts only while following: after a promotion nothing is withheld any more. */
bool caches_cluster_withholds(const struct caches *s, bool withheld)
{
	return withheld && caches_cluster_authority(s) == MODEL_AUTHORITY_FOLLOWING;
}

/* Delivery by volumes cannot restrict a key to one node, whatever keyIsolation says. */
bool caches_cluster_shares_keys(const struct caches *s)
{
	const struct model_cluster *c = caches_cluster_policy(s);

	return c &&
	       (c->isolation == MODEL_ISOLATION_SHARED || c->delivery == MODEL_DELIVERY_VOLUMES);
}
