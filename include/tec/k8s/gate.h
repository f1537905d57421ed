/* SPDX-License-Identifier: MIT */
/*
 * The controllers' door to another transport: their requests yield to those of the others, for whom
 * somebody waits (k8s_request.yields), and writes pass only while may_write() says so: the lease's
 * renew deadline. Otherwise a write ends with err_set_lease_lost(), and nothing is sent. Reads and
 * watches always pass, and what has passed is the other transport's alone.
 */
#ifndef TEC_K8S_GATE_H
#define TEC_K8S_GATE_H

#include <stdbool.h>

#include "tec/k8s/transport.h"

/* `to` is borrowed and must outlive it. may_write NULL: it always may. */
struct k8s_transport *k8s_gate_new(
	struct k8s_transport *to, bool (*may_write)(void *arg), void *arg);

#endif
