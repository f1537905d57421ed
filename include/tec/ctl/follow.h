/* SPDX-License-Identifier: MIT */
/*
 * Follows another operator: while spec.authority is Following, what that one decided is copied into
 * this namespace, so that this one's Trustee can serve the same nodes, and this operator can decide
 * in its place at any time. It reads the other cluster and writes nothing there; of this one it is
 * the only part that writes the copies while it runs.
 */
#ifndef TEC_CTL_FOLLOW_H
#define TEC_CTL_FOLLOW_H

#include "tec/ctl/env.h"

enum ctl_follow_is {
	CTL_FOLLOW_OFF,         /* authority is not Following */
	CTL_FOLLOW_CONNECTING,  /* nothing complete was read of the other one yet */
	CTL_FOLLOW_COPYING,     /* something is still to be copied */
	CTL_FOLLOW_IN_STEP,     /* what was read last is copied, and in every Trustee of ours */
	CTL_FOLLOW_UNREACHABLE, /* why says it: no kubeconfig, no connection, no rights */
	CTL_FOLLOW_OTHER,       /* it is not the cluster that was followed before */
	CTL_FOLLOW_WENT_BACK, /* much of what was copied is missing there at once: nothing is taken away */
	CTL_FOLLOW_CONFLICT, /* an object of ours has a copy's name and another content */
};

struct ctl_follow_state {
	enum ctl_follow_is is;
	char peer[256]; /* "https://host:port namespace", "" while it is not known */
	char uid[64];   /* of the TrustedExecutionCluster there, likewise */
	size_t behind;  /* objects that are not copied yet, or still to be taken away */
	int64_t seen_s; /* wall clock: when the other one was last known to be as we read it; 0: never */
	char why[512]; /* for people, "" where there is nothing to say */
};

struct ctl_follow;
struct ctl_follow *ctl_follow_new(const struct ctl_env *env);
void ctl_follow_free(struct ctl_follow *f);
void ctl_follow_on(struct ctl_follow *f); /* it looks at spec.authority itself */
void ctl_follow_off(struct ctl_follow *f);
/* Stays the same object for life; changes are told by fn. */
const struct ctl_follow_state *ctl_follow_state(const struct ctl_follow *f);
void ctl_follow_listen(struct ctl_follow *f, void (*fn)(void *arg), void *arg);

#endif
