/* SPDX-License-Identifier: MIT */
/*
 * What was here before this operator, and may be taken over without its marks. The marker's time
 * counts (ctl/since), or a later one that an administrator set on the cluster served (annotation
 * adopt-before), once it has passed.
 */
#ifndef TEC_STATE_SINCE_H
#define TEC_STATE_SINCE_H

#include "tec/state/state.h"

/* False: nothing may be taken over, and no Machine may be made, which would seem older. */
bool state_since_known(const struct state *s);
/* Wall clock; INT64_MIN: not known. */
int64_t state_since_s(const struct state *s);
bool state_since_is_older(const struct state *s, const struct kobj *o);
/* It comes from a backup: what happened to it after that is not known. */
bool state_since_was_restored(const struct state *s, const struct kobj *o);

#endif
