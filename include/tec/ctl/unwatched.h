/* SPDX-License-Identifier: MIT */
/*
 * KbsConfigs and TrusteeConfigs in namespaces that are not watched: each gets a status that says
 * so, once, unless another client has written one within a short time. Nothing else in these
 * namespaces is read or written. This requires cluster-wide rights for the two kinds; without them
 * nothing happens.
 */
#ifndef TEC_CTL_UNWATCHED_H
#define TEC_CTL_UNWATCHED_H

#include "tec/k8s/cache.h"
#include "tec/k8s/transport.h"

#define CTL_UNWATCHED_WAIT_S 15 /* gives another operator time to write a status */

struct ctl_unwatched;
extern const struct k8s_cache_type ctl_unwatched_type; /* of both caches */

/* Off at first. The caches are borrowed; watched tells which namespaces other controllers
 * handle. */
struct ctl_unwatched *ctl_unwatched_new(struct loop *l, struct k8s_transport *api,
	struct k8s_cache *kbsconfigs, struct k8s_cache *trusteeconfigs,
	bool (*watched)(void *arg, const char *ns), void *arg);
void ctl_unwatched_free(struct ctl_unwatched *u); /* NULL is fine */
void ctl_unwatched_set(struct ctl_unwatched *u, bool on);

#endif
