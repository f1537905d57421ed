/* SPDX-License-Identifier: MIT */
/*
 * The peer: the operator that was followed before, which an administrator may have made the
 * deciding one in the meantime. In doubt the peer decides, so that of two operators that see each
 * other at most one does.
 */
#include "config.h"

#include "follow_internal.h"

#include <stdio.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/log.h"
#include "tec/ctl/authority.h"

#define TELL_S 3600 /* interval of Events about the same problem */

/* Derive the state of the peer. What can be read outranks what an administrator confirmed;
 * without either, the former state stays. */
enum state_peer ctl_follow_peer(const struct ctl_follow_peer_view *v, enum state_peer was)
{
	if (v->read)
		return v->yields ? STATE_PEER_DECIDES : STATE_PEER_FINE;
	if (v->confirmed)
		return STATE_PEER_FINE;
	/* A peer that decided and is unreachable now may be lost for good: only an administrator
	 * knows. */
	return was == STATE_PEER_DECIDES ? STATE_PEER_UNKNOWN : was;
}

/* Only Self and Frozen have a peer: Following has a source, Retired decides nothing. */
const struct model_cluster *follow_peer_of(const struct ctl_follow *f)
{
	const struct model_cluster *c = state_cluster(f->env->state);

	if (!f->on || !c || !model_cluster_peer(c))
		return NULL;
	return c->authority == MODEL_AUTHORITY_SELF || c->authority == MODEL_AUTHORITY_FROZEN
		       ? c
		       : NULL;
}

/* The UID must be that of the peer: at the same address another cluster may exist now. */
const struct model_cluster *follow_peer_read(const struct ctl_follow *f)
{
	const struct model_cluster *here = follow_peer_of(f), *there;
	char why[512];

	if (!here || !follow_source_filled(&f->source) || follow_source_problem(&f->source, why))
		return NULL;
	there = state_cluster(&f->source.state);
	return there && str_eq(there->obj.uid, model_cluster_peer(here)) ? there : NULL;
}

/* `confirmed`: since the last check, spec.authority became Self or spec.epoch rose while Self.
 * Both are done by an administrator who knows that the peer does not decide. */
void follow_peer_view(const struct ctl_follow *f, struct ctl_follow_peer_view *out)
{
	const struct model_cluster *here = follow_peer_of(f), *there = follow_peer_read(f);

	*out = (struct ctl_follow_peer_view){.known = here != NULL, .read = there != NULL};
	if (!here)
		return;
	out->self = here->authority == MODEL_AUTHORITY_SELF;
	out->confirmed = out->self && str_eq(f->was.uid, here->obj.uid) &&
			 (f->was.authority != MODEL_AUTHORITY_SELF || here->epoch > f->was.epoch);
	if (!there)
		return;
	out->retired = there->authority == MODEL_AUTHORITY_RETIRED;
	out->decides = there->authority == MODEL_AUTHORITY_SELF;
	out->yields = model_cluster_yields(here, there);
}

/* ---- Events */

/* The same reason is posted once per TELL_S; another reason at once. */
static void post(struct ctl_follow *f, const char *reason, const char *message)
{
	const struct model_cluster *here = follow_peer_of(f);
	int64_t now_s = clock_wall_s();

	if (!here || (str_eq(f->told_peer, reason) && now_s - f->told_peer_s < TELL_S))
		return;
	f->told_peer = reason;
	f->told_peer_s = now_s;
	k8s_events_post(f->env->events, &kobj_cluster, &here->obj, K8S_EVENT_WARNING, reason,
		"Decide", "%s", message);
}

/* While the connection is being established, an unknown peer is not worth an Event yet. */
void follow_peer_tell(struct ctl_follow *f)
{
	const struct model_cluster *here = follow_peer_of(f);
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	enum model_cluster_reason r;

	if (!here || here->authority != MODEL_AUTHORITY_SELF)
		return;
	r = ctl_authority_self(f->state->peer, &f->is, here->epoch, &text);
	if (f->is.decides_too)
		post(f, "PeerDecidesToo", strbuf_str(&text));
	else if (r == CLUSTER_PEER_UNKNOWN && f->is.is != CTL_FOLLOW_CONNECTING)
		post(f, model_cluster_reason(r), strbuf_str(&text));
}

/* Update state->peer and wake everything whose permission to decide may have changed. */
void follow_peer_check(struct ctl_follow *f)
{
	static const char *const words[] = {[STATE_PEER_FINE] = "Fine",
		[STATE_PEER_UNKNOWN] = "Unknown",
		[STATE_PEER_DECIDES] = "Decides",
		[STATE_PEER_TOLD] = "Told"};
	const struct model_cluster *c = state_cluster(f->env->state);
	enum state_peer was = f->state->peer, now;
	struct ctl_follow_peer_view v;

	if (!f->on || !c)
		return;
	follow_peer_view(f, &v);
	now = v.known ? ctl_follow_peer(&v, was) : was;
	snprintf(f->was.uid, sizeof(f->was.uid), "%s", c->obj.uid);
	f->was.authority = c->authority;
	f->was.epoch = c->epoch;
	if (now == was)
		return;
	f->state->peer = now;
	log_info(NULL, "peer state changed", "from=%s to=%s", words[was], words[now]);
	for (unsigned i = 0; i < f->n_peer_listeners; i++)
		f->peer_listener[i].fn(f->peer_listener[i].arg);
	for (unsigned i = 0; i < f->n_listeners; i++)
		f->listener[i].fn(f->listener[i].arg);
	ctl_kind_wake_all(f->cluster);
}

/* For the peer, IN_STEP means that it can be read now. */
enum ctl_follow_is follow_peer_is(const struct ctl_follow *f, char why[512])
{
	const struct model_cluster *there = state_cluster(&f->source.state);

	if (follow_source_problem(&f->source, why))
		return CTL_FOLLOW_UNREACHABLE;
	if (!follow_source_filled(&f->source))
		return CTL_FOLLOW_CONNECTING;
	if (follow_peer_read(f))
		return CTL_FOLLOW_IN_STEP;
	snprintf(why, 512, "%s",
		there ? "The TrustedExecutionCluster in that namespace is not the same as before. Correct spec.follow."
		      : "No readable TrustedExecutionCluster exists in that namespace.");
	return there ? CTL_FOLLOW_OTHER : CTL_FOLLOW_UNREACHABLE;
}
