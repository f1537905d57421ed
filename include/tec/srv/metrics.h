/* SPDX-License-Identifier: MIT */
/*
 * GET /metrics: everything in base/metric.h, the process (RSS, CPU, descriptors, start time), build
 * information, and tec_objects{kind,state}, which is counted as caches change, never by a scan.
 */
#ifndef TEC_SRV_METRICS_H
#define TEC_SRV_METRICS_H

#include "tec/base/str.h"
#include "tec/k8s/cache.h"

void srv_metrics_render(struct strbuf *out);

/* The state label of an object (static strings). */
typedef const char *(*srv_metrics_state_fn)(const struct kobj *o);
/* Counts the cache's objects from now on; kind is static. */
void srv_metrics_count(struct k8s_cache *cache, const char *kind, srv_metrics_state_fn state);

const char *srv_metrics_machine_state(
	const struct kobj *o); /* ready, keyless, waiting, deleting ... */
const char *srv_metrics_ak_state(const struct kobj *o);

#endif
