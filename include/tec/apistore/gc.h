/* SPDX-License-Identifier: MIT */
/*
 * Deletion: an object with finalizers gets a deletionTimestamp and stays until the last one is
 * removed; what depends on it goes after it (Background), before it (Foreground) or stays without
 * its owner (Orphan). An object all of whose owners are gone goes by garbage collection: on demand,
 * or automatically while a struct apistore_gc exists, which also drops old Events.
 *
 * Only where to look is remembered: what is to be done is seen in the database each time, so it goes
 * on after a restart and after a failure, which look everywhere.
 */
#ifndef TEC_APISTORE_GC_H
#define TEC_APISTORE_GC_H

#include "tec/apistore/objects.h"

struct apistore_gc;

/* From here on by itself. One for these objects, which have a loop; free it before them. */
struct apistore_gc *apistore_gc_new(struct apistore_objects *s);
void apistore_gc_free(struct apistore_gc *gc); /* NULL is fine */

enum apistore_policy {
	APISTORE_POLICY_DEFAULT, /* as the finalizers say that it has */
	APISTORE_BACKGROUND,
	APISTORE_FOREGROUND,
	APISTORE_ORPHAN,
};
/* The object as it is now, or as it was last; the caller puts it. NULL: there is none. */
struct json_object *apistore_gc_delete(
	struct apistore_objects *s, const struct apistore_key *key, enum apistore_policy policy);
/* What a deletion makes of o, in place. */
void apistore_gc_mark(struct json_object *o, enum apistore_policy policy);
/* Until nothing changes; the number of objects deleted, marked or changed. */
size_t apistore_gc_collect(struct apistore_objects *s);

#endif
