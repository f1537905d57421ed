/* SPDX-License-Identifier: MIT */
/*
 * The controller of TrustedExecutionCluster. It installs and repairs Trustee and the listeners'
 * Services, one act per step, and is the only writer of the cluster's status. An object is read
 * again (one GET) when its resourceVersion differs from the one last compared, so a settled
 * cluster makes no request. Inputs that Trustee reads only at its start (certificate, token
 * signers) cause one restart per real change.
 */
#ifndef TEC_CTL_CLUSTER_H
#define TEC_CTL_CLUSTER_H

#include "tec/ctl/env.h"
#include "tec/ctl/install.h"

/* The input of decide. */
struct ctl_cluster_view {
	bool found, deleting;
	bool served; /* it is the oldest of its namespace */
	bool lost; /* spec lost fields that the annotation still has: an administrator must confirm */
	bool mirrored; /* the annotation matches spec */
	int todo; /* enum ctl_cluster_do: the act for the first object that needs one; 0: none */
	bool status_ok; /* written, or not due yet */
};

enum ctl_cluster_do {
	/* On an object: the values of ctl/install.h, so that a cast converts them. */
	CTL_CLUSTER_NOTHING = CTL_INSTALL_NOTHING,
	CTL_CLUSTER_READ = CTL_INSTALL_READ,
	CTL_CLUSTER_CREATE = CTL_INSTALL_CREATE,
	CTL_CLUSTER_APPLY = CTL_INSTALL_APPLY,
	CTL_CLUSTER_DELETE = CTL_INSTALL_DELETE,
	/* On the cluster object itself. */
	CTL_CLUSTER_ANNOUNCE, /* patch: add the hash of a Secret that will be created or adopted */
	CTL_CLUSTER_TIDY, /* patch: remove what is not needed: announcements, lost servers that are back, an invalid time */
	CTL_CLUSTER_MIRROR, /* patch: copy spec into the annotation */
	CTL_CLUSTER_APPLY_STATUS,
	CTL_CLUSTER_N_DO,
};
enum ctl_cluster_do ctl_cluster_decide(const struct ctl_cluster_view *v);

struct ctl_cluster;
struct ctl_cluster *ctl_cluster_new(const struct ctl_env *env);
void ctl_cluster_free(struct ctl_cluster *c);
void ctl_cluster_on(struct ctl_cluster *c);  /* caches filled and leader */
void ctl_cluster_off(struct ctl_cluster *c); /* cancels what is in flight */

/* ctl_env.follow has changed. */
void ctl_cluster_look_again(struct ctl_cluster *c);

#endif
