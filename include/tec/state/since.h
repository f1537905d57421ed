/* SPDX-License-Identifier: MIT */
/*
 * What existed before this operator, and may be adopted without its marks. The time of the marker
 * counts (ctl/since), or a later one that an administrator set on the cluster served (annotation
 * adopt-before), once it has passed.
 */
#ifndef TEC_STATE_SINCE_H
#define TEC_STATE_SINCE_H

#include "tec/state/state.h"

/* False: nothing may be adopted, and no Machine may be created, since it would seem older. */
bool state_since_known(const struct state *s);
/* Wall clock; INT64_MIN: unknown. */
int64_t state_since_s(const struct state *s);
bool state_since_is_older(const struct state *s, const struct kobj *o);
/* The object comes from a backup: what happened to it after that is unknown. */
bool state_since_was_restored(const struct state *s, const struct kobj *o);

#endif
