/* SPDX-License-Identifier: MIT */
/* The oldest cluster that is not being deleted is served. While one of them cannot be read, it
 * could be older: then no policy is in force, but what runs continues. */
#include "config.h"

#include "tec/state/cluster.h"

#include "tec/base/str.h"

/* Index 0 has "" for every cluster that is not being deleted, in the order of age. */
const struct model_cluster *state_cluster_oldest(const struct state *s)
{
	return model_cluster(k8s_cache_first(s->clusters, 0, ""));
}

const struct model_cluster *state_cluster(const struct state *s)
{
	return state_cluster_unknown(s) ? NULL : state_cluster_oldest(s);
}

/* The unreadable one may be the oldest: its age is not known. */
bool state_cluster_unknown(const struct state *s)
{
	return k8s_cache_unreadable(s->clusters) > 0;
}

/* A pruned spec may lack restrictions, so it permits nothing. */
const struct model_cluster *state_cluster_policy(const struct state *s)
{
	const struct model_cluster *c = state_cluster(s);

	return c && !c->extended_lost ? c : NULL;
}

/* Without knowledge, assume that the peer decides: two clusters must never decide at once. A
 * process that does not lead reads the leader's conclusion from the condition. */
static bool peer_may_decide(const struct state *s, const struct model_cluster *c)
{
	const char *reason = c->cond[CLUSTER_AUTHORITY].reason;

	if (!model_cluster_peer(c))
		return false;
	switch (s->peer) {
	case STATE_PEER_UNKNOWN:
	case STATE_PEER_DECIDES:
		return true;
	case STATE_PEER_TOLD:
		return str_eq(reason, model_cluster_reason(CLUSTER_PEER_UNKNOWN)) ||
		       str_eq(reason, model_cluster_reason(CLUSTER_PEER_DECIDES));
	case STATE_PEER_FINE:
		break;
	}
	return false;
}

/* The oldest readable cluster is used even while another one is unreadable: to be Frozen or Retired
 * must not end because of that. */
enum model_authority state_cluster_authority(const struct state *s)
{
	const struct model_cluster *c = s->clusters ? state_cluster_oldest(s) : NULL;

	if (!c)
		return MODEL_AUTHORITY_SELF;
	return c->authority == MODEL_AUTHORITY_SELF && peer_may_decide(s, c)
		       ? MODEL_AUTHORITY_FROZEN
		       : c->authority;
}

bool state_cluster_decides(const struct state *s)
{
	return state_cluster_authority(s) == MODEL_AUTHORITY_SELF;
}

/* The mark counts only while following: after a promotion nothing is withheld any more. */
bool state_cluster_withholds(const struct state *s, bool withheld)
{
	return withheld && state_cluster_authority(s) == MODEL_AUTHORITY_FOLLOWING;
}

/* Delivery by volumes cannot restrict a key to one node, whatever keyIsolation says. */
bool state_cluster_shares_keys(const struct state *s)
{
	const struct model_cluster *c = state_cluster_policy(s);

	return c &&
	       (c->isolation == MODEL_ISOLATION_SHARED || c->delivery == MODEL_DELIVERY_VOLUMES);
}
