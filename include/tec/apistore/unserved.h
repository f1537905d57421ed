/* SPDX-License-Identifier: MIT */
/* Objects of kinds that earlier versions served, in a store that such a version wrote. */
#ifndef TEC_APISTORE_UNSERVED_H
#define TEC_APISTORE_UNSERVED_H

#include "tec/apistore/objects.h"

/*
 * Deletes them all, whatever finalizers hold them, and logs one line that names and counts them;
 * Services that the operator made for its TrustedExecutionCluster are not counted. The caller
 * commits. -1: the database failed.
 */
int apistore_unserved_drop(struct apistore_objects *s, struct err *err) MUST_CHECK;

#endif
