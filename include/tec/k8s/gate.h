/* SPDX-License-Identifier: MIT */
/*
 * A transport for controllers that guards another one. Its requests yield to those of other
 * callers, which people or nodes wait for (k8s_request.yields). Writes pass only while may_write()
 * returns true, that is until the renew deadline of the lease; otherwise a write ends with
 * err_set_lease_lost(), and nothing is sent. Reads and watches always pass. A request that has
 * passed belongs to the other transport.
 */
#ifndef TEC_K8S_GATE_H
#define TEC_K8S_GATE_H

#include <stdbool.h>

#include "tec/k8s/transport.h"

/* `to` is borrowed and must outlive it. may_write NULL: writes always pass. */
struct k8s_transport *k8s_gate_new(
	struct k8s_transport *to, bool (*may_write)(void *arg), void *arg);

#endif
