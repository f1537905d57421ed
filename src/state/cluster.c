/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tec/state/cluster.h"

const struct model_cluster *state_cluster_oldest(const struct state *s)
{
	return model_cluster(k8s_cache_first(s->clusters, 0, ""));
}

const struct model_cluster *state_cluster(const struct state *s)
{
	return state_cluster_unknown(s) ? NULL : state_cluster_oldest(s);
}

bool state_cluster_unknown(const struct state *s)
{
	return k8s_cache_unreadable(s->clusters) > 0;
}

const struct model_cluster *state_cluster_policy(const struct state *s)
{
	const struct model_cluster *c = state_cluster(s);

	return c && !c->extended_lost ? c : NULL;
}

enum model_authority state_cluster_authority(const struct state *s)
{
	const struct model_cluster *c = s->clusters ? state_cluster_oldest(s) : NULL;

	return c ? c->authority : MODEL_AUTHORITY_SELF;
}

bool state_cluster_decides(const struct state *s)
{
	return state_cluster_authority(s) == MODEL_AUTHORITY_SELF;
}

bool state_cluster_withholds(const struct state *s, bool withheld)
{
	return withheld && state_cluster_authority(s) == MODEL_AUTHORITY_FOLLOWING;
}

bool state_cluster_shares_keys(const struct state *s)
{
	const struct model_cluster *c = state_cluster_policy(s);

	return c &&
	       (c->isolation == MODEL_ISOLATION_SHARED || c->delivery == MODEL_DELIVERY_VOLUMES);
}
