/* SPDX-License-Identifier: MIT */
/*
 * What a replica has to start or stop now: the watch of Secrets and the controllers run only on the
 * leader, and only when their lists are there. Pure: the caller does what is decided and asks again
 * until it is NOTHING, whenever one of the facts may have changed.
 */
#ifndef TEC_CTL_DUTY_H
#define TEC_CTL_DUTY_H

#include <stdbool.h>

struct ctl_duty_view {
	bool leads;           /* holds the Lease, or there is none */
	bool draining;        /* the process shuts down: nothing is started */
	bool finishing;       /* draining, with ctl/trustee on until it has written what it knows */
	bool reads_secrets;   /* the Secret watch and ctl/since are on */
	bool since_known;     /* ctl/since */
	bool all_filled;      /* every list that some controller reads is there */
	bool revoking_filled; /* ... that a controller reads which revokes keys */
	bool all_on;          /* controllers */
	bool revoking_on;     /* ... those that revoke keys, alone or with the others */
	bool waiting;         /* for the lists that only the others need */
	bool waited;          /* long enough */
};

enum ctl_duty_do {
	CTL_DUTY_NOTHING,
	CTL_DUTY_STOP,           /* all controllers */
	CTL_DUTY_FORGET,         /* stop reading Secrets, and forget them and the wait */
	CTL_DUTY_READ,           /* start reading Secrets and ctl/since */
	CTL_DUTY_START_ALL,      /* controllers; those that revoke keys start again */
	CTL_DUTY_START_REVOKING, /* only those that revoke keys */
	CTL_DUTY_WAIT,           /* start the wait */
};

enum ctl_duty_do ctl_duty_decide(const struct ctl_duty_view *v);

#endif
