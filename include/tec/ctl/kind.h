/* SPDX-License-Identifier: MIT */
/*
 * The controller of one kind (created by ctl/machine.h, ctl/ak.h, ctl/image.h and others). It
 * looks at a key, decides on one act, starts it and returns; the next step finds the next act. At
 * most one request per key is in flight, and one that succeeded without a visible effect is not
 * repeated at once.
 */
#ifndef TEC_CTL_KIND_H
#define TEC_CTL_KIND_H

#include <stddef.h>

struct ctl_kind;
void ctl_kind_free(struct ctl_kind *k); /* NULL is allowed */
void ctl_kind_on(struct ctl_kind *k);   /* caches filled and leader */
void ctl_kind_off(struct ctl_kind *k);  /* cancels what is in flight */
/* The number of unanswered requests that would not be made while spec.authority is Frozen. */
size_t ctl_kind_in_flight(const struct ctl_kind *k);
void ctl_kind_wake_all(struct ctl_kind *k); /* steps each key again */

#endif
