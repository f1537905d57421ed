/* SPDX-License-Identifier: MIT */
/*
 * How a process ends after SIGTERM. Pure: the caller executes the decisions until it gets WAIT or
 * END; after WAIT it asks again shortly.
 *
 * Two things happen in parallel. The controllers send what they know and release the Lease at
 * once, so that another replica can continue their work. The listeners need no Lease. They keep
 * serving during the delay, in which the Service learns that this replica is not ready; then they
 * accept no further connections and complete the requests in flight.
 */
#ifndef TEC_CTL_SHUTDOWN_H
#define TEC_CTL_SHUTDOWN_H

#include <stdbool.h>
#include <stdint.h>

#define CTL_SHUTDOWN_FINISH_MS 10000 /* for the controllers, and then for the requests in flight */

struct ctl_shutdown_view {
	uint64_t since_ms; /* how long ago the process was told to end */
	uint64_t delay_ms;
	bool controllers;  /* the controllers are on */
	bool controls_end; /* they have sent everything */
	bool releasing;    /* the release of the Lease was sent, or there is none */
	bool released;     /* the release was answered */
	bool draining;     /* the listeners accept no further connections */
	bool in_flight;    /* requests of nodes are in flight */
};

enum ctl_shutdown_do {
	CTL_SHUTDOWN_WAIT,
	CTL_SHUTDOWN_STOP,    /* the controllers */
	CTL_SHUTDOWN_RELEASE, /* the Lease */
	CTL_SHUTDOWN_DRAIN,   /* the listeners */
	CTL_SHUTDOWN_END,
};

enum ctl_shutdown_do ctl_shutdown_decide(const struct ctl_shutdown_view *v);

#endif
