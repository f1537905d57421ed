/* SPDX-License-Identifier: MIT */
/*
 * Deletion and garbage collection. An object with finalizers gets a deletionTimestamp and stays
 * until the last finalizer is removed. Its dependents are deleted after it (Background) or before
 * it (Foreground), or stay without this owner (Orphan). An object whose owners are all gone is
 * deleted by garbage collection: on demand, or automatically while a struct apistore_gc exists,
 * which also deletes old Events.
 *
 * Only hints where to look are kept in memory; what to do is read from the database each time.
 * After a restart or a failure everything is looked at, so no work is lost.
 */
#ifndef TEC_APISTORE_GC_H
#define TEC_APISTORE_GC_H

#include "tec/apistore/objects.h"

struct apistore_gc;

/* Start automatic collection. At most one for these objects, which must have a loop; free it
 * first. */
struct apistore_gc *apistore_gc_new(struct apistore_objects *s);
void apistore_gc_free(struct apistore_gc *gc); /* NULL is fine */

enum apistore_policy {
	APISTORE_POLICY_DEFAULT, /* by the finalizers that the object already has */
	APISTORE_BACKGROUND,
	APISTORE_FOREGROUND,
	APISTORE_ORPHAN,
};
/* Delete an object, or mark it as being deleted. Returns its last state, which the caller puts.
 * NULL: not found. */
struct json_object *apistore_gc_delete(
	struct apistore_objects *s, const struct apistore_key *key, enum apistore_policy policy);
/* Set deletionTimestamp and the finalizers of the policy in o, without storing it. */
void apistore_gc_mark(struct json_object *o, enum apistore_policy policy);
/* Collect until nothing changes. Returns the number of objects deleted, marked or changed. */
size_t apistore_gc_collect(struct apistore_objects *s);

#endif
