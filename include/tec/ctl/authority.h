/* SPDX-License-Identifier: MIT */
/* What the condition Authority says of an operator that follows another one. Pure. */
#ifndef TEC_CTL_AUTHORITY_H
#define TEC_CTL_AUTHORITY_H

#include "tec/base/str.h"
#include "tec/ctl/follow.h"
#include "tec/model/cluster.h"

/* The reason, and the message, which is appended. s NULL: nothing is known yet. */
enum model_cluster_reason ctl_authority_following(
	const struct ctl_follow_state *s, int64_t now_s, struct strbuf *message);

#endif
