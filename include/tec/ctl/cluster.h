/* SPDX-License-Identifier: MIT */
/*
 * TrustedExecutionCluster: installs and repairs Trustee and the listeners' Services, one act per
 * step, and is the only writer of its status. An object is read again when its resourceVersion
 * differs from the one last compared (one GET), so a settled cluster makes no request. What Trustee
 * reads only at its start (certificate, token signers) is followed with one restart for each real
 * change.
 */
#ifndef TEC_CTL_CLUSTER_H
#define TEC_CTL_CLUSTER_H

#include "tec/ctl/env.h"
#include "tec/ctl/install.h"

/* All that decide looks at. */
struct ctl_cluster_view {
	bool found, deleting;
	bool served;   /* the oldest of its namespace */
	bool lost;     /* of spec, which the annotation still has: a person must confirm */
	bool mirrored; /* the annotation matches spec */
	int todo; /* enum ctl_cluster_do: what the first object needs; 0: none needs anything */
	bool status_ok; /* or not due yet */
};

enum ctl_cluster_do {
	/* Of an object: as in ctl/install.h, so that each is the other by a cast. */
	CTL_CLUSTER_NOTHING = CTL_INSTALL_NOTHING,
	CTL_CLUSTER_READ = CTL_INSTALL_READ,
	CTL_CLUSTER_CREATE = CTL_INSTALL_CREATE,
	CTL_CLUSTER_APPLY = CTL_INSTALL_APPLY,
	CTL_CLUSTER_DELETE = CTL_INSTALL_DELETE,
	/* Of the cluster object itself. */
	CTL_CLUSTER_ANNOUNCE, /* patch: the hash of a Secret to be created or taken over */
	CTL_CLUSTER_TIDY,     /* patch: removes announcements and a time that are invalid */
	CTL_CLUSTER_MIRROR,
	CTL_CLUSTER_APPLY_STATUS,
	CTL_CLUSTER_N_DO,
};
enum ctl_cluster_do ctl_cluster_decide(const struct ctl_cluster_view *v);

struct ctl_cluster;
struct ctl_cluster *ctl_cluster_new(const struct ctl_env *env);
void ctl_cluster_free(struct ctl_cluster *c);
void ctl_cluster_on(struct ctl_cluster *c);  /* caches filled and leader */
void ctl_cluster_off(struct ctl_cluster *c); /* cancels what is in flight */

/* What ctl_env.follow shows has changed. */
void ctl_cluster_look_again(struct ctl_cluster *c);

#endif
