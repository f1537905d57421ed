/* SPDX-License-Identifier: MIT */
/* Events for objects that cannot be read, so that a person reduces them. */
#ifndef TEC_CTL_UNREADABLE_H
#define TEC_CTL_UNREADABLE_H

#include "tec/k8s/event.h"
#include "tec/state/state.h"

/* From here on an Event says of every object in the caches that cannot be read what to do. events
 * is borrowed and outlives the caches; free after them. */
struct ctl_unreadable;
struct ctl_unreadable *ctl_unreadable_new(const struct state *s, struct k8s_events *events);
void ctl_unreadable_free(struct ctl_unreadable *u);

#endif
