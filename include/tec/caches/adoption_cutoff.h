/* SPDX-License-Identifier: MIT */
/*
 * What existed before this operator, and may be adopted without its marks. The time of the marker
 * counts (ctl/adoption_cutoff), or a later one that an administrator set on the cluster served (annotation
 * adopt-before), once it has passed.
 */
#ifndef TEC_CACHES_ADOPTION_CUTOFF_H
#define TEC_CACHES_ADOPTION_CUTOFF_H

#include "tec/caches/caches.h"

/* False: nothing may be adopted, and no Machine may be created, since it would seem older. */
bool caches_adoption_cutoff_known(const struct caches *s);
/* Wall clock; INT64_MIN: unknown. */
int64_t caches_adoption_cutoff_s(const struct caches *s);
bool caches_adoption_cutoff_is_after(const struct caches *s, const struct kobj *o);
/* The object comes from a backup: what happened to it after that is unknown. */
bool caches_adoption_cutoff_was_restored(const struct caches *s, const struct kobj *o);

#endif
