/* SPDX-License-Identifier: MIT */
/*
 * What the process knows about its cluster: the caches, what Trustee is confirmed to hold, and
 * since when this operator exists. Controllers and listeners borrow one struct caches for their
 * lifetime. What several of them need to conclude from it is computed in this folder, so that all
 * get the same answer; nothing here writes or decides.
 *
 * Doubtful questions are answered so that nothing is lost: a Trustee may still exist, nothing is
 * approved. A list that has not arrived yet and an object that cannot be read are doubtful.
 */
#ifndef TEC_CACHES_CACHES_H
#define TEC_CACHES_CACHES_H

#include "tec/k8s/cache.h"
#include "tec/kbs/sync.h"
#include "tec/model/configmap.h"
#include "tec/model/secretobj.h"
#include "tec/caches/kinds.h"

/* What is known about the peer, the operator elsewhere that may decide instead of this one. */
enum caches_peer {
	CACHES_PEER_FINE,    /* does not decide, as read while leading or set by an administrator */
	CACHES_PEER_UNKNOWN, /* not read yet */
	CACHES_PEER_DECIDES,
	CACHES_PEER_TOLD, /* this process does not lead, and relies on what the leader wrote */
};

struct caches {
	/* Borrowed; NULL: not used in this role. */
	union {
		struct k8s_cache *cache[CACHES_N_ALL];
		struct { /* in the order of enum caches_of */
			struct k8s_cache *clusters, *machines, *aks, *images, *configmaps;
			struct k8s_cache *services, *deployments, *jobs, *pods, *secrets;
			struct k8s_cache *kbsconfigs, *input_configmaps, *input_secrets;
			struct k8s_cache *trusteeconfigs, *claims;
		};
	};
	struct kbs_sync *sync; /* borrowed; NULL: in a role without controllers */
	/* When this operator was first started here, wall clock, from ctl/adoption_cutoff; INT64_MIN:
	 * unknown; 0 in a role without controllers, which does not read it: nothing is older. */
	int64_t marker_s;
	/* When the store was last restored from a backup, wall clock; 0: never. */
	int64_t restored_s;
	bool kbs_in_process; /* this process is the primary Trustee: no Secret is needed */
	/* Since when this process alone gives out disk keys and marks each time on the Machine;
	 * wall clock, 0: it does not. never_attested: number of Machines created since then by
	 * listeners that were never attested. Set by cmd/embedded. */
	int64_t marks_since_s;
	size_t never_attested;
	enum caches_peer peer; /* set by ctl/follow; meaningless for a cluster without a peer */
};
#define CACHES_INIT                                                                                \
	{                                                                                          \
		.marker_s = INT64_MIN                                                              \
	}

/* Tell whether all caches that are needed for this are filled, of those that the role has. */
bool caches_filled(const struct caches *s, enum caches_need need);

/* Borrowed until return to the loop; NULL: absent. */
static inline const struct model_secret *caches_secret(const struct caches *s, const char *name)
{
	return (const struct model_secret *)k8s_cache_find(s->secrets, name);
}
static inline const struct model_configmap *caches_configmap(
	const struct caches *s, const char *name)
{
	return (const struct model_configmap *)k8s_cache_find(s->configmaps, name);
}

#endif
