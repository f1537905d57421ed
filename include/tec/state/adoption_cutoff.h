/* SPDX-License-Identifier: MIT */
/*
 * What existed before this operator, and may be adopted without its marks. The time of the marker
 * counts (ctl/adoption_cutoff), or a later one that an administrator set on the cluster served (annotation
 * adopt-before), once it has passed.
 */
#ifndef TEC_STATE_ADOPTION_CUTOFF_H
#define TEC_STATE_ADOPTION_CUTOFF_H

#include "tec/state/state.h"

/* False: nothing may be adopted, and no Machine may be created, since it would seem older. */
bool state_adoption_cutoff_known(const struct state *s);
/* Wall clock; INT64_MIN: unknown. */
int64_t state_adoption_cutoff_s(const struct state *s);
bool state_adoption_cutoff_is_after(const struct state *s, const struct kobj *o);
/* The object comes from a backup: what happened to it after that is unknown. */
bool state_adoption_cutoff_was_restored(const struct state *s, const struct kobj *o);

#endif
