/* SPDX-License-Identifier: MIT */
/*
 * struct timer: one deadline on the boot clock, embedded by its owner (timer_init/timer_fini). It
 * fires once per timer_set(). Its function may set it again or free its owner.
 */
#ifndef TEC_LOOP_TIMER_H
#define TEC_LOOP_TIMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tec/loop/loop.h"

struct timer {
	struct loop *loop; /* borrowed */
	loop_fn fn;
	void *arg;
	uint64_t at_ms; /* boot clock */
	size_t slot;    /* index in the heap + 1; 0: not set */
};

void timer_init(struct timer *t, struct loop *l, loop_fn fn, void *arg);
void timer_fini(struct timer *t);
void timer_set(struct timer *t, uint64_t after_ms);         /* replaces an earlier setting */
void timer_set_earlier(struct timer *t, uint64_t after_ms); /* keeps an earlier deadline */
void timer_cancel(struct timer *t);
static inline bool timer_is_set(const struct timer *t)
{
	return t->slot != 0;
}

#endif
