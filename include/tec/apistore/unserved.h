/* SPDX-License-Identifier: MIT */
/* Objects of kinds that earlier versions served, in a store or backup that such a version wrote. */
#ifndef TEC_APISTORE_UNSERVED_H
#define TEC_APISTORE_UNSERVED_H

#include "tec/apistore/objects.h"

/*
 * Deletes them, and RoleBindings to roles that are gone, whatever finalizers hold them, and logs one
 * line that names and counts them. What the operator itself made is not counted: Services of its
 * TrustedExecutionCluster, Jobs of an ApprovedImage and their Pods, definitions of kinds that are served.
 * What they own stays. The garbage collector has the last step; the caller commits. -1: the database failed.
 */
int apistore_unserved_drop(struct apistore_objects *s, struct err *err) MUST_CHECK;

#endif
