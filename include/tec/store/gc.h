/* SPDX-License-Identifier: MIT */
/*
 * Deletion and garbage collection. An object with finalizers gets a deletionTimestamp and stays
 * until the last finalizer is removed. Its dependents are deleted after it (Background) or before
 * it (Foreground), or stay without this owner (Orphan). An object whose owners are all gone is
 * deleted by garbage collection: on demand, or automatically while a struct store_gc exists,
 * which also deletes old Events.
 *
 * Only hints where to look are kept in memory; what to do is read from the database each time.
 * After a restart or a failure everything is looked at, so no work is lost.
 */
#ifndef TEC_STORE_GC_H
#define TEC_STORE_GC_H

#include "tec/store/objects.h"

struct store_gc;

/* Start automatic collection. At most one for these objects, which must have a loop; free it
 * first. */
struct store_gc *store_gc_new(struct store_objects *s);
void store_gc_free(struct store_gc *gc); /* NULL is fine */

enum store_policy {
	STORE_POLICY_DEFAULT, /* by the finalizers that the object already has */
	STORE_BACKGROUND,
	STORE_FOREGROUND,
	STORE_ORPHAN,
};
/* Delete an object, or mark it as being deleted. Returns its last state, which the caller puts.
 * NULL: not found. */
struct json_object *store_gc_delete(
	struct store_objects *s, const struct store_key *key, enum store_policy policy);
/* Set deletionTimestamp and the finalizers of the policy in o, without storing it. */
void store_gc_mark(struct json_object *o, enum store_policy policy);
/* Collect until nothing changes. Returns the number of objects deleted, marked or changed. */
size_t store_gc_collect(struct store_objects *s);

#endif
