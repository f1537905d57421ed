/* SPDX-License-Identifier: MIT */
/* Tells when the wall clock was set, as by a time service long after the start. */
#ifndef TEC_LOOP_WALLWATCH_H
#define TEC_LOOP_WALLWATCH_H

#include "tec/loop/timer.h"

#define WALLWATCH_MIN_S 60 /* smaller steps, and slewing, are not told */

struct wallwatch {
	struct timer timer;
	int64_t offset_us; /* wall clock minus boot clock, as last told */
	void (*fn)(void *arg, int64_t by_s);
	void *arg;
};

/* Calls fn with the seconds, negative for a clock that was set back, once for each step, within half
 * a minute. */
void wallwatch_start(
	struct wallwatch *w, struct loop *l, void (*fn)(void *arg, int64_t by_s), void *arg);
void wallwatch_stop(struct wallwatch *w);

#endif
