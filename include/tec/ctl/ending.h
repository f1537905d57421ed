/* SPDX-License-Identifier: MIT */
/*
 * How a process ends after SIGTERM. Pure: the caller does what is decided and asks again until it is
 * WAIT or END; after WAIT it asks again in a moment.
 *
 * Two things happen side by side. The controllers write what they know and hand back the Lease at
 * once: nothing of theirs is gained by waiting, and another replica goes on with their work. The
 * listeners need no Lease. They go on serving for the delay, in which the Service learns that this
 * replica is not ready; then they accept nothing more and finish what is in flight.
 */
#ifndef TEC_CTL_ENDING_H
#define TEC_CTL_ENDING_H

#include <stdbool.h>
#include <stdint.h>

#define CTL_ENDING_FINISH_MS 10000 /* for the controllers, and then for the requests in flight */

struct ctl_ending_view {
	uint64_t since_ms; /* how long ago the process was told to end */
	uint64_t delay_ms;
	bool controllers;  /* are on */
	bool controls_end; /* ... and have written all they know */
	bool releasing;    /* the Lease was handed back, or there is none ... */
	bool released;     /* ... and that was answered */
	bool draining;     /* the listeners accept nothing more */
	bool in_flight;    /* requests of nodes */
};

enum ctl_ending_do {
	CTL_ENDING_WAIT,
	CTL_ENDING_STOP,    /* the controllers */
	CTL_ENDING_RELEASE, /* the Lease */
	CTL_ENDING_DRAIN,   /* the listeners */
	CTL_ENDING_END,
};

enum ctl_ending_do ctl_ending_decide(const struct ctl_ending_view *v);

#endif
