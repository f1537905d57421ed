/* SPDX-License-Identifier: MIT */
/* The table of cached kinds. WORKLOAD kinds do not exist in --standalone. */
#include "config.h"

#include "tec/caches/kinds.h"

#include "tec/model/ak.h"
#include "tec/model/cluster.h"
#include "tec/model/image.h"
#include "tec/model/input.h"
#include "tec/model/job.h"
#include "tec/model/kbsconfig.h"
#include "tec/model/machine.h"
#include "tec/model/pod.h"
#include "tec/model/trusteeconfig.h"
#include "tec/caches/caches.h"

#define KIND(gvk, type, index, n, labels, needs)                                                   \
	{                                                                                          \
		&gvk, {type##_extract, sizeof(struct type), index, n}, labels,                     \
			CACHES_FOR_ALL | (needs)                                                   \
	}
#define WORKLOAD(gvk, type, index, n, labels)                                                      \
	{                                                                                          \
		&gvk, {type##_extract, sizeof(struct type), index, n}, labels, CACHES_FOR_ALL,     \
			true                                                                       \
	}

const struct caches_kind caches_kinds[CACHES_N_ALL] = {
	[CACHES_CLUSTERS] = KIND(kobj_cluster, model_cluster, model_cluster_index, 1, NULL,
		CACHES_FOR_LISTENERS | CACHES_FOR_REVOKING),
	[CACHES_MACHINES] = KIND(kobj_machine, model_machine, model_machine_index, 1, NULL,
		CACHES_FOR_LISTENERS | CACHES_FOR_REVOKING),
	[CACHES_AKS] = KIND(kobj_ak, model_ak, model_ak_index, 3, NULL,
		CACHES_FOR_LISTENERS | CACHES_FOR_REVOKING),
	[CACHES_IMAGES] = KIND(kobj_image, model_image, NULL, 0, NULL, 0),
	[CACHES_CONFIGMAPS] = KIND(kobj_configmap, model_configmap, NULL, 0, NULL, 0),
	[CACHES_SERVICES] = WORKLOAD(kobj_service, model_plain, NULL, 0, NULL),
	[CACHES_DEPLOYMENTS] = WORKLOAD(kobj_plain_deployment, model_plain, NULL, 0, NULL),
	[CACHES_JOBS] = WORKLOAD(kobj_job, model_job, model_job_index, 1, "app=" MODEL_JOB_APP),
	[CACHES_PODS] =
		WORKLOAD(kobj_pod, model_pod, model_pod_index, 1, "app in (kbs," MODEL_JOB_APP ")"),
	[CACHES_SECRETS] = KIND(kobj_secret, model_secret, NULL, 0, NULL, CACHES_FOR_REVOKING),
	[CACHES_KBSCONFIGS] =
		KIND(kobj_kbsconfig, model_kbsconfig, model_kbsconfig_index, 2, NULL, 0),
	[CACHES_INPUT_CONFIGMAPS] = {&kobj_input_configmap,
		{model_input_configmap_extract, sizeof(struct model_input), NULL, 0}, NULL,
		CACHES_FOR_ALL},
	[CACHES_INPUT_SECRETS] = {&kobj_input_secret,
		{model_input_secret_extract, sizeof(struct model_input), NULL, 0}, NULL,
		CACHES_FOR_ALL},
	[CACHES_TRUSTEECONFIGS] = {&kobj_trusteeconfig,
		{model_trusteeconfig_extract, sizeof(struct model_trusteeconfig), NULL, 0}, NULL,
		CACHES_FOR_TRUSTEECONFIGS},
	[CACHES_CLAIMS] = {&kobj_claim, {model_plain_extract, sizeof(struct model_plain), NULL, 0},
		NULL, CACHES_FOR_TRUSTEECONFIGS},
};

_Static_assert(
	offsetof(struct caches, secrets) == offsetof(struct caches, cache) +
						    CACHES_SECRETS * sizeof(struct k8s_cache *) &&
		offsetof(struct caches, claims) ==
			offsetof(struct caches, cache) + CACHES_CLAIMS * sizeof(struct k8s_cache *),
	"the members of struct caches are in the order of enum caches_of");

/* Caches that this role does not have are skipped. */
bool caches_filled(const struct caches *s, enum caches_need need)
{
	for (int i = 0; i < CACHES_N_ALL; i++)
		if (s->cache[i] && (caches_kinds[i].needs & need) && !k8s_cache_filled(s->cache[i]))
			return false;
	return true;
}
