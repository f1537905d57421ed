/* SPDX-License-Identifier: MIT */
/*
 * The kinds that controllers and listeners keep in caches: which objects, and what is kept of one.
 * One table for all who make caches, so that a reader's cast and what was put in cannot differ.
 */
#ifndef TEC_CTL_KINDS_H
#define TEC_CTL_KINDS_H

#include "tec/k8s/cache.h"
#include "tec/k8s/event.h"
#include "tec/kobj/gvk.h"

struct ctl_kind {
	const struct kobj_gvk *gvk;
	struct k8s_cache_type cache;
};

extern const struct ctl_kind ctl_kind_cluster;    /* struct model_cluster */
extern const struct ctl_kind ctl_kind_machine;    /* struct model_machine */
extern const struct ctl_kind ctl_kind_ak;         /* struct model_ak */
extern const struct ctl_kind ctl_kind_image;      /* struct model_image */
extern const struct ctl_kind ctl_kind_secret;     /* struct model_secret */
extern const struct ctl_kind ctl_kind_configmap;  /* struct ctl_configmap */
extern const struct ctl_kind ctl_kind_service;    /* struct ctl_plain */
extern const struct ctl_kind ctl_kind_deployment; /* struct ctl_plain */
extern const struct ctl_kind ctl_kind_job;        /* struct ctl_job, by ApprovedImage */
extern const struct ctl_kind ctl_kind_pod;        /* struct ctl_pod, by Job */

/* From here on an Event says of every object of this kind that cannot be read what to do. All are
 * borrowed and outlive the cache. */
struct ctl_unreadable {
	const struct ctl_kind *kind;
	struct k8s_events *events;
};
void ctl_unreadable_tell(struct ctl_unreadable *u, struct k8s_cache *cache);

#endif
