/* SPDX-License-Identifier: MIT */
/*
 * The kinds that are kept in caches: which objects, what is kept of each, and who cannot work
 * without them. One table for all who create caches, so that a reader's cast always fits what was
 * stored.
 */
#ifndef TEC_STATE_KINDS_H
#define TEC_STATE_KINDS_H

#include "tec/k8s/cache.h"
#include "tec/kobj/gvk.h"

enum state_of {
	STATE_CLUSTERS,    /* struct model_cluster */
	STATE_MACHINES,    /* struct model_machine */
	STATE_AKS,         /* struct model_ak */
	STATE_IMAGES,      /* struct model_image */
	STATE_CONFIGMAPS,  /* struct model_configmap */
	STATE_SERVICES,    /* struct model_plain */
	STATE_DEPLOYMENTS, /* struct model_plain */
	STATE_JOBS,        /* struct model_job, by ApprovedImage */
	STATE_PODS,        /* struct model_pod, by Job: of Trustee and of the Jobs */
	STATE_SECRETS, /* struct model_secret; only in the leader: no other replica holds keys */
	STATE_N_KINDS, /* number of kinds above: those of a TrustedExecutionCluster's namespace */
	/* Kinds of a namespace with KbsConfigs, in addition to its Services and Deployments. */
	STATE_KBSCONFIGS = STATE_N_KINDS, /* struct model_kbsconfig */
	STATE_INPUT_CONFIGMAPS,           /* struct model_input */
	STATE_INPUT_SECRETS,              /* struct model_input; only in the leader */
	STATE_TRUSTEECONFIGS,             /* struct model_trusteeconfig */
	STATE_CLAIMS,                     /* struct model_plain */
	STATE_N_ALL,
};
enum state_need {
	STATE_FOR_LISTENERS = 1,
	STATE_FOR_REVOKING = 2,
	STATE_FOR_ALL = 4,            /* all but the next: an older installation lacks those */
	STATE_FOR_TRUSTEECONFIGS = 8, /* in addition to all */
};

struct state_kind {
	const struct kobj_gvk *gvk;
	struct k8s_cache_type cache;
	const char *labels; /* selector; NULL: all objects */
	unsigned needs;     /* enum state_need, or-ed */
	bool workload;      /* not in --standalone, where its empty cache counts as filled */
};
extern const struct state_kind state_kinds[STATE_N_ALL]; /* by enum state_of */

#endif
