/* SPDX-License-Identifier: MIT */
/* Each function appends complete sentences: what is the case, and what an administrator can do. */
#include "config.h"

#include "tec/ctl/authority.h"

#include <inttypes.h>

/* Only IN_STEP means that this operator could take over without losing keys. */
enum model_cluster_reason ctl_authority_following(
	const struct ctl_follow_state *s, int64_t now_s, struct strbuf *out)
{
	switch (s ? s->is : CTL_FOLLOW_OFF) {
	case CTL_FOLLOW_IN_STEP:
		strbuf_addf(out,
			"The operator at %s decides. Everything is copied: its nodes can attest here.%s%s",
			s->peer, s->why[0] ? " " : "", s->why);
		return CLUSTER_FOLLOWING;
	case CTL_FOLLOW_COPYING:
		/* The lag in objects and, once something was read completely, in seconds. */
		strbuf_addf(
			out, "%zu objects still have to be copied from %s.", s->behind, s->peer);
		if (s->seen_s > 0 && now_s >= s->seen_s)
			strbuf_addf(out, " The last complete read was %" PRId64 " seconds ago.",
				now_s - s->seen_s);
		if (s->why[0])
			strbuf_addf(out, " %s", s->why);
		return CLUSTER_FOLLOWING_BEHIND;
	case CTL_FOLLOW_UNREACHABLE:
		strbuf_addf(out,
			"The operator that decides%s%s cannot be read: %s Copied keys are still served. Check that API "
			"server and the network path to it; to replace the credentials: tecctl follow.",
			s->peer[0] ? " at " : "", s->peer, s->why);
		return CLUSTER_SOURCE_UNREACHABLE;
	case CTL_FOLLOW_OTHER:
		strbuf_addf(
			out, "%s is not the cluster that was followed before: %s", s->peer, s->why);
		return CLUSTER_SOURCE_DIFFERS;
	case CTL_FOLLOW_WENT_BACK:
		strbuf_addf(out,
			"%s lacks many objects that were copied from it, so nothing is deleted or revoked here: %s",
			s->peer, s->why);
		return CLUSTER_SOURCE_WENT_BACK;
	case CTL_FOLLOW_CONFLICT:
		strbuf_addf(out,
			"An object has the name of a copy but different content, and is not changed: %s",
			s->why);
		return CLUSTER_CONFLICT;
	case CTL_FOLLOW_OFF:
	case CTL_FOLLOW_CONNECTING:
		break;
	}
	strbuf_adds(out, "Waiting for the objects of the operator that decides.");
	return CLUSTER_FOLLOWING_BEHIND;
}

/* The epochs are shown because the higher one wins when both operators claim to decide. */
static void add_decides(const struct ctl_follow_state *s, int64_t epoch, struct strbuf *out)
{
	strbuf_addf(out,
		"The operator at %s decides with epoch %" PRId64 " (here %" PRId64
		"). To follow it: tecctl follow --from ITS_KUBECONFIG --to THIS_KUBECONFIG.",
		s->peer, s->epoch, epoch);
}

/* With a doubtful peer the reason is not Self, and this operator does not decide. */
enum model_cluster_reason ctl_authority_self(
	enum caches_peer peer, const struct ctl_follow_state *s, int64_t epoch, struct strbuf *out)
{
	if (s && peer == CACHES_PEER_UNKNOWN) {
		strbuf_addf(out,
			"The other operator, at %s, may decide, but was not read since this one started. Until it is read, nothing is "
			"created, approved or deleted here; registered nodes still get their keys. If it is lost for good: tecctl "
			"promote --from-lost --to THIS_KUBECONFIG. %s",
			s->peer, s->why[0] ? s->why : "The connection is being established.");
		return CLUSTER_PEER_UNKNOWN;
	}
	if (s && peer == CACHES_PEER_DECIDES) {
		add_decides(s, epoch, out);
		return CLUSTER_PEER_DECIDES;
	}
	strbuf_adds(out, "This operator decides.");
	if (s && s->decides_too)
		strbuf_addf(out,
			" Warning: the operator at %s decides too, with epoch %" PRId64
			" (here %" PRId64
			"). Make it follow this one: tecctl follow --from THIS_KUBECONFIG --to "
			"ITS_KUBECONFIG.",
			s->peer, s->epoch, epoch);
	return CLUSTER_SELF;
}

/* A peer that decides is worth more attention than the fact that spec says Frozen. */
enum model_cluster_reason ctl_authority_frozen(
	enum caches_peer peer, const struct ctl_follow_state *s, int64_t epoch, struct strbuf *out)
{
	if (s && peer == CACHES_PEER_DECIDES) {
		add_decides(s, epoch, out);
		return CLUSTER_PEER_DECIDES;
	}
	strbuf_adds(out,
		"spec.authority is Frozen: nothing is created, approved or deleted. Trustee keeps its keys, and registered nodes still get "
		"them.");
	return CLUSTER_FROZEN;
}
