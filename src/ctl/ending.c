/* SPDX-License-Identifier: MIT */
/* Pure. Nothing waits forever: the request for the Lease has a timeout of 2 s. */
#include "config.h"

#include "tec/ctl/ending.h"

/* The order is the priority; both halves (controllers, listeners) advance independently. */
enum ctl_ending_do ctl_ending_decide(const struct ctl_ending_view *v)
{
	if (v->controllers && (v->controls_end || v->since_ms >= CTL_ENDING_FINISH_MS))
		return CTL_ENDING_STOP;
	if (!v->controllers && !v->releasing)
		return CTL_ENDING_RELEASE;
	if (!v->draining && v->since_ms >= v->delay_ms)
		return CTL_ENDING_DRAIN;
	if (v->controllers || !v->released || !v->draining)
		return CTL_ENDING_WAIT;
	if (v->in_flight && v->since_ms < v->delay_ms + CTL_ENDING_FINISH_MS)
		return CTL_ENDING_WAIT;
	return CTL_ENDING_END;
}
