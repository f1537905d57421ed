/* SPDX-License-Identifier: MIT */
/*
 * Keys leave memory with the leadership. Controllers that revoke keys do not wait forever for lists
 * that only the others read: what they have not seen counts as existing.
 */
#include "config.h"

#include "tec/ctl/duty.h"

/* Each call returns one step; the caller repeats until NOTHING, so the order below is the order
 * of events. */
enum ctl_duty_do ctl_duty_decide(const struct ctl_duty_view *v)
{
	if (!v->leads || (v->draining && !v->finishing)) {
		if (v->revoking_on)
			return CTL_DUTY_STOP;
		if (v->reads_secrets || v->waiting || v->waited)
			return CTL_DUTY_FORGET;
		return CTL_DUTY_NOTHING;
	}
	if (v->finishing)
		return CTL_DUTY_NOTHING;
	if (!v->reads_secrets)
		return CTL_DUTY_READ;
	if (!v->since_known || v->all_on)
		return CTL_DUTY_NOTHING;
	if (v->all_filled)
		return CTL_DUTY_START_ALL;
	if (v->revoking_on || !v->revoking_filled)
		return CTL_DUTY_NOTHING;
	if (v->waited)
		return CTL_DUTY_START_REVOKING;
	return v->waiting ? CTL_DUTY_NOTHING : CTL_DUTY_WAIT;
}
