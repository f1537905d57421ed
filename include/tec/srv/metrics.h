/* SPDX-License-Identifier: MIT */
/*
 * GET /metrics: everything in base/metric.h, process figures (RSS, CPU, descriptors, start time),
 * build information, and tec_objects{kind,state}, which is updated on cache changes, never by a
 * scan.
 */
#ifndef TEC_SRV_METRICS_H
#define TEC_SRV_METRICS_H

#include "tec/base/str.h"
#include "tec/caches/caches.h"

void srv_metrics_render(struct strbuf *out);

/* From now on counts Machines (ready, keyless, unbound, undelivered, deleting) and
 * AttestationKeys (delivered, approved, waiting, deleting). */
void srv_metrics_count(const struct caches *caches);
/* From now on counts KbsConfigs (ready, installed, waiting, deleting) and TrusteeConfigs (ready,
 * configured, waiting, deleting) of a namespace, whose name is borrowed for the life of the
 * caches. */
void srv_metrics_count_trustees(const struct caches *caches, const char *ns);

#endif
