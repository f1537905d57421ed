/* SPDX-License-Identifier: MIT */
/*
 * The kinds that are kept in caches: which objects, what is kept of each, and who cannot work
 * without them. One table for all who create caches, so that a reader's cast always fits what was
 * stored.
 */
#ifndef TEC_CACHES_KINDS_H
#define TEC_CACHES_KINDS_H

#include "tec/k8s/cache.h"
#include "tec/kobj/gvk.h"

enum caches_of {
	CACHES_CLUSTERS,    /* struct model_cluster */
	CACHES_MACHINES,    /* struct model_machine */
	CACHES_AKS,         /* struct model_ak */
	CACHES_IMAGES,      /* struct model_image */
	CACHES_CONFIGMAPS,  /* struct model_configmap */
	CACHES_SERVICES,    /* struct model_plain */
	CACHES_DEPLOYMENTS, /* struct model_plain */
	CACHES_JOBS,        /* struct model_job, by ApprovedImage */
	CACHES_PODS,        /* struct model_pod, by Job: of Trustee and of the Jobs */
	CACHES_SECRETS, /* struct model_secret; only in the leader: no other replica holds keys */
	CACHES_N_KINDS, /* number of kinds above: those of a TrustedExecutionCluster's namespace */
	/* Kinds of a namespace with KbsConfigs, in addition to its Services and Deployments. */
	CACHES_KBSCONFIGS = CACHES_N_KINDS, /* struct model_kbsconfig */
	CACHES_INPUT_CONFIGMAPS,            /* struct model_input */
	CACHES_INPUT_SECRETS,               /* struct model_input; only in the leader */
	CACHES_TRUSTEECONFIGS,              /* struct model_trusteeconfig */
	CACHES_CLAIMS,                      /* struct model_plain */
	CACHES_N_ALL,
};
enum caches_need {
	CACHES_FOR_LISTENERS = 1,
	CACHES_FOR_REVOKING = 2,
	CACHES_FOR_ALL = 4,            /* all but the next: an older installation lacks those */
	CACHES_FOR_TRUSTEECONFIGS = 8, /* in addition to all */
};

struct caches_kind {
	const struct kobj_gvk *gvk;
	struct k8s_cache_type cache;
	const char *labels; /* selector; NULL: all objects */
	unsigned needs;     /* enum caches_need, or-ed */
	bool workload;      /* not in --standalone, where its empty cache counts as filled */
};
extern const struct caches_kind caches_kinds[CACHES_N_ALL]; /* by enum caches_of */

#endif
