/* SPDX-License-Identifier: MIT */
/* Removal of objects of kinds that only earlier versions served, from a store or backup of such a
 * version. */
#ifndef TEC_APIREQ_UNSERVED_H
#define TEC_APIREQ_UNSERVED_H

#include "tec/store/objects.h"

/*
 * Delete these objects, and RoleBindings to roles that no longer exist, regardless of their
 * finalizers. One log line names and counts them, without those that the operator created itself:
 * Services of its TrustedExecutionCluster, Jobs of an ApprovedImage and their Pods, definitions of
 * kinds that are served. Objects that they own stay. The garbage collector completes the deletions;
 * the caller commits. -1: the database failed.
 */
int apireq_unserved_drop(struct store_objects *s, struct err *err) MUST_CHECK;

#endif
