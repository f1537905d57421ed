/* SPDX-License-Identifier: MIT */
/*
 * The marker: ConfigMap tec-operator-since, created without an owner by the first leader in a
 * namespace. Objects older than the marker existed before this operator and may be adopted;
 * younger ones count only if this operator announced them. Controllers start when the time is
 * known.
 *
 * The time is kept in struct caches and never becomes later while the process runs, whatever
 * happens to the ConfigMap. `known` is called once, from the loop.
 */
#ifndef TEC_CTL_ADOPTION_CUTOFF_H
#define TEC_CTL_ADOPTION_CUTOFF_H

#include <stdbool.h>
#include <stdint.h>

#include "tec/ctl/env.h"

#define CTL_ADOPTION_CUTOFF_CONFIGMAP "tec-operator-since"

struct ctl_adoption_cutoff;
/* Writes state->marker_s; known(arg) is called when it is set for the first time. */
struct ctl_adoption_cutoff *ctl_adoption_cutoff_new(
	const struct ctl_env *env, struct caches *caches, void (*known)(void *arg), void *arg);
void ctl_adoption_cutoff_free(struct ctl_adoption_cutoff *s);
/* On: this replica leads. Reads the ConfigMap and creates it if there is none. */
void ctl_adoption_cutoff_on(struct ctl_adoption_cutoff *s);
void ctl_adoption_cutoff_off(
	struct ctl_adoption_cutoff *s); /* cancels what is in flight; the time stays */

#endif
