/* SPDX-License-Identifier: MIT */
/* What the condition Authority says of an operator that follows another one, or knows one. Pure. */
#ifndef TEC_CTL_AUTHORITY_H
#define TEC_CTL_AUTHORITY_H

#include "tec/base/str.h"
#include "tec/ctl/follow.h"
#include "tec/model/cluster.h"

/* The reason, and the message, which is appended. s NULL: nothing is known yet. */
enum model_cluster_reason ctl_authority_following(
	const struct ctl_follow_state *s, int64_t now_s, struct strbuf *message);

/* The same of one whose spec.authority is Self. What is known of its peer, or NULL where it has none; its
 * own epoch. */
enum model_cluster_reason ctl_authority_self(enum state_peer peer, const struct ctl_follow_state *s,
	int64_t epoch, struct strbuf *message);
/* ... and of one that is Frozen, with nothing in flight. */
enum model_cluster_reason ctl_authority_frozen(enum state_peer peer,
	const struct ctl_follow_state *s, int64_t epoch, struct strbuf *message);

#endif
