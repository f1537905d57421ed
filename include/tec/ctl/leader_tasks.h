/* SPDX-License-Identifier: MIT */
/*
 * Decides what a replica must start or stop now. The watch of Secrets and the controllers run only
 * on the leader, and only once their lists are complete. Pure: whenever one of the facts may have
 * changed, the caller executes the decisions until it gets NOTHING.
 */
#ifndef TEC_CTL_LEADER_TASKS_H
#define TEC_CTL_LEADER_TASKS_H

#include <stdbool.h>

struct ctl_leader_tasks_view {
	bool leads;           /* holds the Lease, or leader election is off */
	bool draining;        /* the process shuts down: nothing is started */
	bool finishing;       /* draining, but ctl/trustee stays on until everything is sent */
	bool reads_secrets;   /* the Secret watch and ctl/adoption_cutoff are on */
	bool cutoff_known;    /* ctl/adoption_cutoff */
	bool all_filled;      /* every list that some controller reads is complete */
	bool revoking_filled; /* every list that a revoking controller reads is complete */
	bool all_on;          /* all controllers are on */
	bool revoking_on;     /* the revoking controllers are on, alone or with the others */
	bool waiting;         /* waiting for lists that only the other controllers need */
	bool waited;          /* the wait is over */
};

enum ctl_leader_tasks_do {
	CTL_LEADER_TASKS_NOTHING,
	CTL_LEADER_TASKS_STOP,           /* all controllers */
	CTL_LEADER_TASKS_FORGET,         /* stop reading Secrets, and forget them and the wait */
	CTL_LEADER_TASKS_READ,           /* start reading Secrets and ctl/adoption_cutoff */
	CTL_LEADER_TASKS_START_ALL,      /* controllers; those that revoke keys start again */
	CTL_LEADER_TASKS_START_REVOKING, /* only those that revoke keys */
	CTL_LEADER_TASKS_WAIT,           /* start the wait */
};

enum ctl_leader_tasks_do ctl_leader_tasks_decide(const struct ctl_leader_tasks_view *v);

#endif
