/* SPDX-License-Identifier: MIT */
/*
 * metadata.managedFields (Kubernetes, server-side apply): which writer owns which fields. A writer
 * that only ever used PUT and POST has entries of operation Update; its fields stay when another one
 * applies the object without them. To take such an object over, its fields are moved to the applier,
 * whose next apply then removes those that it does not set.
 */
#ifndef TEC_KOBJ_MANAGED_H
#define TEC_KOBJ_MANAGED_H

#include <json-c/json.h>

/*
 * The JSON patch (RFC 6902) of o, an object as it was read, that moves the fields of `from`'s Update
 * entries to the Apply entry of `to`. Entries of subresources, as of the status, stay. The patch also
 * removes the hash of the last rendering (kobj/subset.h), so that the object counts as stale until
 * it was applied, and is refused with 409 if o has changed. The caller puts it. NULL: `from` has none.
 */
struct json_object *kobj_managed_take(struct json_object *o, const char *from, const char *to);

/* Adds an operation to a JSON patch; take_value NULL: one without a value. */
void kobj_patch_op(struct json_object *patch, const char *op, const char *path,
	struct json_object *take_value);

#endif
