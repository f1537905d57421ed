/* SPDX-License-Identifier: MIT */
/*
 * Keys leave memory with the leadership. Controllers that revoke keys do not wait forever for lists
 * that only the others read: what they have not seen counts as existing.
 */
#include "config.h"

#include "tec/ctl/leader_tasks.h"

/* Each call returns one step; the caller repeats until NOTHING, so the order below is the order
 * of events. */
enum ctl_leader_tasks_do ctl_leader_tasks_decide(const struct ctl_leader_tasks_view *v)
{
	if (!v->leads || (v->draining && !v->finishing)) {
		if (v->revoking_on)
			return CTL_LEADER_TASKS_STOP;
		if (v->reads_secrets || v->waiting || v->waited)
			return CTL_LEADER_TASKS_FORGET;
		return CTL_LEADER_TASKS_NOTHING;
	}
	if (v->finishing)
		return CTL_LEADER_TASKS_NOTHING;
	if (!v->reads_secrets)
		return CTL_LEADER_TASKS_READ;
	if (!v->cutoff_known || v->all_on)
		return CTL_LEADER_TASKS_NOTHING;
	if (v->all_filled)
		return CTL_LEADER_TASKS_START_ALL;
	if (v->revoking_on || !v->revoking_filled)
		return CTL_LEADER_TASKS_NOTHING;
	if (v->waited)
		return CTL_LEADER_TASKS_START_REVOKING;
	return v->waiting ? CTL_LEADER_TASKS_NOTHING : CTL_LEADER_TASKS_WAIT;
}
