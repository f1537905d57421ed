/* SPDX-License-Identifier: MIT */
/* Which TrustedExecutionCluster is served, and what it permits. Results are borrowed until the
 * caller returns to the loop. */
#ifndef TEC_CACHES_CLUSTER_H
#define TEC_CACHES_CLUSTER_H

#include "tec/model/cluster.h"
#include "tec/caches/caches.h"

/* The oldest one that can be read and is not being deleted (creationTimestamp, then name). */
const struct model_cluster *caches_cluster_oldest(const struct caches *s);
/* The cluster served: the oldest one, but NULL while that is unknown. */
const struct model_cluster *caches_cluster(const struct caches *s);
/* One of them cannot be read, so it is unknown which one is served and what it says. */
bool caches_cluster_unknown(const struct caches *s);
/* The cluster whose policy is in force: served, with nothing of its extended spec lost. NULL:
 * nothing is done automatically (fail closed). */
const struct model_cluster *caches_cluster_policy(const struct caches *s);
/* spec.authority of the cluster served; Self when there is none. Frozen instead of Self while its
 * peer decides, or may decide. */
enum model_authority caches_cluster_authority(const struct caches *s);
/* The authority is Self: the operator creates, approves and deletes; so does one that only looks
 * after Trustees. Every controller checks this, or the value, before it does anything else. */
bool caches_cluster_decides(const struct caches *s);
/* Tell whether an object with this mark (MODEL_WITHHELD_ANNOTATION), or without it, must not be
 * delivered now. */
bool caches_cluster_withholds(const struct caches *s, bool withheld);
/* Disk keys are available to every attested node (Shared, and delivery by volumes) and not only to
 * the one to which their Machine is bound. */
bool caches_cluster_shares_keys(const struct caches *s);

#endif
