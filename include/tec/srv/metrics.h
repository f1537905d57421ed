/* SPDX-License-Identifier: MIT */
/*
 * GET /metrics: everything in base/metric.h, the process (RSS, CPU, descriptors, start time), build
 * information, and tec_objects{kind,state}, which is counted as caches change, never by a scan.
 */
#ifndef TEC_SRV_METRICS_H
#define TEC_SRV_METRICS_H

#include "tec/base/str.h"
#include "tec/state/state.h"

void srv_metrics_render(struct strbuf *out);

/* Counts the Machines (ready, keyless, unbound, undelivered, deleting) and AttestationKeys
 * (delivered, approved, waiting, deleting) from now on. */
void srv_metrics_count(const struct state *state);
/* The KbsConfigs (ready, installed, waiting, deleting) and TrusteeConfigs (ready, configured,
 * waiting, deleting) of a namespace, whose name is borrowed for the life of the caches. */
void srv_metrics_count_trustees(const struct state *state, const char *ns);

#endif
