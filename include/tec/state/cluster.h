/* SPDX-License-Identifier: MIT */
/* Which TrustedExecutionCluster is served, and what it allows. Borrowed for the turn. */
#ifndef TEC_STATE_CLUSTER_H
#define TEC_STATE_CLUSTER_H

#include "tec/model/cluster.h"
#include "tec/state/state.h"

/* The oldest that can be read and is not being deleted (creationTimestamp, then name). */
const struct model_cluster *state_cluster_oldest(const struct state *s);
/* The cluster served: the same, and NULL while it is unknown. */
const struct model_cluster *state_cluster(const struct state *s);
/* One of them cannot be read, so it is not known which one is served and what it says. */
bool state_cluster_unknown(const struct state *s);
/* The cluster whose policy holds now: served, and nothing of its extended spec lost. NULL: nothing
 * happens by itself (fail closed). */
const struct model_cluster *state_cluster_policy(const struct state *s);
/* spec.authority of the cluster served; Self when there is none. Frozen in place of Self while its peer
 * decides, or may do so. */
enum model_authority state_cluster_authority(const struct state *s);
/* That is Self: the operator makes, approves and deletes; so does one that looks after
 * Trustees alone. Every controller asks this, or the value, before it does anything else. */
bool state_cluster_decides(const struct state *s);
/* An object with this mark (MODEL_WITHHELD_ANNOTATION) or without it is not to be delivered now. */
bool state_cluster_withholds(const struct state *s, bool withheld);
/* Disk keys are for every attested node (Shared, and delivery by volumes) and not only for the one
 * their Machine is bound to. */
bool state_cluster_shares_keys(const struct state *s);

#endif
