/* SPDX-License-Identifier: MIT */
/*
 * What the process knows of the cluster it runs in: the caches, what Trustee holds as far as it
 * confirmed that, and since when this operator is here. Controllers and listeners borrow one struct
 * state for life. What more than one of them needs to know of it is computed in this folder, so
 * that all get one answer; nothing here writes or decides.
 *
 * Whatever is in doubt is answered so that nothing is lost: a Trustee may still be there, nothing
 * is approved. A list that has not come yet, and an object that cannot be read, are in doubt.
 */
#ifndef TEC_STATE_STATE_H
#define TEC_STATE_STATE_H

#include "tec/k8s/cache.h"
#include "tec/kbs/sync.h"
#include "tec/model/configmap.h"
#include "tec/model/secretobj.h"
#include "tec/state/kinds.h"

/* What is known of the operator elsewhere that may decide in place of this one, the peer. */
enum state_peer {
	STATE_PEER_FINE, /* read since this process leads: it does not; or an administrator said so */
	STATE_PEER_UNKNOWN, /* not read yet */
	STATE_PEER_DECIDES,
	STATE_PEER_TOLD, /* this process does not lead, and goes by what the leader wrote */
};

struct state {
	/* Borrowed; NULL: this role does not have it. */
	union {
		struct k8s_cache *cache[STATE_N_ALL];
		struct { /* in the order of enum state_of */
			struct k8s_cache *clusters, *machines, *aks, *images, *configmaps;
			struct k8s_cache *services, *deployments, *jobs, *pods, *secrets;
			struct k8s_cache *kbsconfigs, *input_configmaps, *input_secrets;
			struct k8s_cache *trusteeconfigs, *claims;
		};
	};
	struct kbs_sync *sync; /* borrowed; NULL: in a role without controllers */
	/* When this operator was first started here, wall clock, by ctl/since; INT64_MIN: not
	 * known; 0 in a role without controllers, which does not look for it: nothing is older. */
	int64_t marker_s;
	/* When the store of all this was last restored from a backup, wall clock; 0: never. */
	int64_t restored_s;
	/* Since when disk keys are given out by this process alone, and each time marked on the
	 * Machine; wall clock, 0: they are not. Of the Machines made since by listeners, how many
	 * were never attested. By cmd/attested. */
	int64_t marks_since_s;
	size_t never_attested;
	enum state_peer peer; /* by ctl/follow; says nothing of a cluster without a peer */
};
#define STATE_INIT                                                                                 \
	{                                                                                          \
		.marker_s = INT64_MIN                                                              \
	}

/* All caches are filled that are needed for this, of those that the role has. */
bool state_filled(const struct state *s, enum state_need need);

/* Borrowed for the turn; NULL: it is not there. */
static inline const struct model_secret *state_secret(const struct state *s, const char *name)
{
	return (const struct model_secret *)k8s_cache_find(s->secrets, name);
}
static inline const struct model_configmap *state_configmap(const struct state *s, const char *name)
{
	return (const struct model_configmap *)k8s_cache_find(s->configmaps, name);
}

#endif
