/* SPDX-License-Identifier: MIT */
/*
 * KbsConfigs and TrusteeConfigs in namespaces that are not watched: each gets a status that says
 * so, once, unless another client has written one within a short time. Nothing else in these
 * namespaces is read or written. This requires cluster-wide rights for the two kinds; without them
 * nothing happens.
 */
#ifndef TEC_CTL_ELSEWHERE_H
#define TEC_CTL_ELSEWHERE_H

#include "tec/k8s/cache.h"
#include "tec/k8s/transport.h"

#define CTL_ELSEWHERE_WAIT_S 15 /* gives another operator time to write a status */

struct ctl_elsewhere;
extern const struct k8s_cache_type ctl_elsewhere_type; /* of both caches */

/* Off at first. The caches are borrowed; watched tells which namespaces other controllers
 * handle. */
struct ctl_elsewhere *ctl_elsewhere_new(struct loop *l, struct k8s_transport *api,
	struct k8s_cache *kbsconfigs, struct k8s_cache *trusteeconfigs,
	bool (*watched)(void *arg, const char *ns), void *arg);
void ctl_elsewhere_free(struct ctl_elsewhere *e); /* NULL is fine */
void ctl_elsewhere_set(struct ctl_elsewhere *e, bool on);

#endif
