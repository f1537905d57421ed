/* SPDX-License-Identifier: MIT */
/* The boot clock never jumps, so the difference of the two changes when the wall clock is set. */
#include "config.h"

#include "tec/loop/wallwatch.h"

#include "tec/base/clock.h"

#define EVERY_MS (30 * 1000)

static int64_t offset_us(void)
{
	return clock_wall_us() - (int64_t)clock_boot_us();
}

static void on_time(void *arg)
{
	struct wallwatch *w = arg;
	int64_t now_us = offset_us(), by_s = (now_us - w->offset_us) / 1000000;

	timer_set(&w->timer, EVERY_MS);
	if (by_s >= -WALLWATCH_MIN_S && by_s <= WALLWATCH_MIN_S)
		return;
	w->offset_us = now_us;
	w->fn(w->arg, by_s);
}

void wallwatch_start(
	struct wallwatch *w, struct loop *l, void (*fn)(void *arg, int64_t by_s), void *arg)
{
	*w = (struct wallwatch){.offset_us = offset_us(), .fn = fn, .arg = arg};
	timer_init(&w->timer, l, on_time, w);
	timer_set(&w->timer, EVERY_MS);
}

void wallwatch_stop(struct wallwatch *w)
{
	timer_fini(&w->timer);
}
