/* SPDX-License-Identifier: MIT */
/* The loop's internals, shared by loop.c and child.c, which has the list of killed children. The counts
 * are for the assertions of loop_free(). */
#ifndef TEC_LOOP_INTERNAL_H
#define TEC_LOOP_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "tec/loop/loop.h"

struct timer;
struct event;
struct child;

/* Binary heap, ordered by deadline and then by the order of setting. */
struct timer_entry {
	uint64_t at_ms, seq;
	struct timer *timer; /* borrowed; timer->slot is this entry's index + 1 */
};

struct loop {
	struct event_base *base;
	struct event *wake;       /* libevent's timer for our earliest deadline */
	struct timer_entry *heap; /* owned array */
	size_t n_timers;
	uint64_t timer_seq;
	struct defer *pending, **pending_tail; /* run in the next turn */
	struct defer *running;                 /* still to run in this turn */
	LIST_HEAD(, child) dying;              /* child.c's: killed, not yet reaped; owned */
	void (*reap)(struct loop *l);          /* child.c's: waits for all of them */
	size_t n_fds, n_signals, n_children;
	unsigned n_ran;       /* callbacks run in this turn */
	unsigned n_unpolled;  /* turns since descriptors were last polled */
	uint64_t cpu_us;      /* CPU time of the thread at that poll */
	uint64_t deferred_us; /* wall time in deferred calls and timers since that poll */
	bool in_turn, stop;
};

#endif
