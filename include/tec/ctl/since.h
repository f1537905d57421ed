/* SPDX-License-Identifier: MIT */
/*
 * The marker: ConfigMap tec-operator-since, made by the first leader there ever was in a namespace
 * and without an owner. What is older than it was there before this operator and may be taken over;
 * what is younger counts only when this operator announced it. Controllers start when the time is
 * known.
 *
 * The time is kept in struct state and never becomes later while the process runs, whatever happens
 * to the ConfigMap. `known` is called once, from the loop.
 */
#ifndef TEC_CTL_SINCE_H
#define TEC_CTL_SINCE_H

#include <stdbool.h>
#include <stdint.h>

#include "tec/ctl/env.h"

#define CTL_SINCE_CONFIGMAP "tec-operator-since"

struct ctl_since;
/* state->marker_s is written from here on; known(arg) is called when it is for the first time. */
struct ctl_since *ctl_since_new(
	const struct ctl_env *env, struct state *state, void (*known)(void *arg), void *arg);
void ctl_since_free(struct ctl_since *s);
/* On: leader. Reads the ConfigMap, and makes it when there is none. */
void ctl_since_on(struct ctl_since *s);
void ctl_since_off(struct ctl_since *s); /* cancels what is in flight; the time stays */

#endif
