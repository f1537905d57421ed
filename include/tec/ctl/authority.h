/* SPDX-License-Identifier: MIT */
/* Reason and message of the condition Authority, for an operator that follows another one or has
 * a peer. Pure. */
#ifndef TEC_CTL_AUTHORITY_H
#define TEC_CTL_AUTHORITY_H

#include "tec/base/str.h"
#include "tec/ctl/follow.h"
#include "tec/model/cluster.h"

/* Following: returns the reason and appends the message. s NULL: nothing is known yet. */
enum model_cluster_reason ctl_authority_following(
	const struct ctl_follow_state *s, int64_t now_s, struct strbuf *message);

/* Self. s: what is known of the peer; NULL: there is none. epoch: of this cluster. */
enum model_cluster_reason ctl_authority_self(enum caches_peer peer,
	const struct ctl_follow_state *s, int64_t epoch, struct strbuf *message);
/* Frozen, with no request in flight. */
enum model_cluster_reason ctl_authority_frozen(enum caches_peer peer,
	const struct ctl_follow_state *s, int64_t epoch, struct strbuf *message);

#endif
