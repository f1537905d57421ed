/* SPDX-License-Identifier: MIT */
/* Events for objects that cannot be read, so that an administrator makes them smaller. */
#ifndef TEC_CTL_UNREADABLE_H
#define TEC_CTL_UNREADABLE_H

#include "tec/k8s/event.h"
#include "tec/caches/caches.h"

/* Posts an Event for every unreadable object in the caches. events is borrowed and outlives the
 * caches; free this after them. */
struct ctl_unreadable;
struct ctl_unreadable *ctl_unreadable_new(const struct caches *s, struct k8s_events *events);
void ctl_unreadable_free(struct ctl_unreadable *u);

#endif
