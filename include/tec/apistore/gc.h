/* SPDX-License-Identifier: MIT */
/*
 * Deletion: an object with finalizers gets a deletionTimestamp and stays until the last one is
 * removed; an object all of whose owners are gone goes by garbage collection, on demand.
 */
#ifndef TEC_APISTORE_GC_H
#define TEC_APISTORE_GC_H

#include "tec/apistore/objects.h"

/* The object as it is now, or as it was last; the caller puts it. NULL: there is none. */
struct json_object *apistore_gc_delete(
	struct apistore_objects *s, const char *collection, const char *name);
/* Until nothing changes; the number of objects deleted or marked. */
size_t apistore_gc_collect(struct apistore_objects *s);

#endif
