/* SPDX-License-Identifier: MIT */
/* Pure. Nothing waits forever: the request for the Lease has a timeout of 2 s. */
#include "config.h"

#include "tec/ctl/shutdown.h"

/* The order is the priority; both halves (controllers, listeners) advance independently. */
enum ctl_shutdown_do ctl_shutdown_decide(const struct ctl_shutdown_view *v)
{
	if (v->controllers && (v->controls_end || v->since_ms >= CTL_SHUTDOWN_FINISH_MS))
		return CTL_SHUTDOWN_STOP;
	if (!v->controllers && !v->releasing)
		return CTL_SHUTDOWN_RELEASE;
	if (!v->draining && v->since_ms >= v->delay_ms)
		return CTL_SHUTDOWN_DRAIN;
	if (v->controllers || !v->released || !v->draining)
		return CTL_SHUTDOWN_WAIT;
	if (v->in_flight && v->since_ms < v->delay_ms + CTL_SHUTDOWN_FINISH_MS)
		return CTL_SHUTDOWN_WAIT;
	return CTL_SHUTDOWN_END;
}
