/* SPDX-License-Identifier: MIT */
/*
 * What the modules of src/loop share: the loop's inside. Only loop.c and timer.c touch the heap,
 * only child.c the list of killed children; the counts are there for loop_free()'s assertions.
 */
#ifndef TEC_LOOP_INTERNAL_H
#define TEC_LOOP_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tec/loop/loop.h"

struct timer;
struct event;
struct child;

/* Binary heap by deadline, then by the order of setting. */
struct timer_entry {
	uint64_t at_ms, seq;
	struct timer *timer; /* borrowed; its slot leads back here */
};

struct loop {
	struct event_base *base;
	struct event *wake;       /* libevent's timer for our earliest deadline */
	struct timer_entry *heap; /* owned array */
	size_t n_timers;
	uint64_t timer_seq;
	struct defer *pending, **pending_tail; /* for the next turn */
	struct defer *running;                 /* of this turn */
	struct child *dying;                   /* killed, not yet reaped; owned */
	size_t n_fds, n_signals, n_children;
	unsigned n_ran;       /* callbacks of this turn */
	unsigned n_unpolled;  /* turns since descriptors were looked at */
	uint64_t cpu_us;      /* processor time until then */
	uint64_t deferred_us; /* time in deferred calls and timers since then */
	bool in_turn, stop;
};

/* Runs what is due now and was set before this call. Returns how many. */
unsigned timer_run_due(struct loop *l);
/* The earliest deadline, UINT64_MAX if there is none. */
uint64_t timer_next_ms(const struct loop *l);
/* Waits for the killed children (teardown). */
void child_reap_dying(struct loop *l);

#endif
