/* SPDX-License-Identifier: MIT */
/* ownerReferences: controller=true, blockOwnerDeletion=true, one owner. */
#ifndef TEC_KOBJ_OWNER_H
#define TEC_KOBJ_OWNER_H

#include <json-c/json.h>
#include <stdbool.h>

#include "tec/kobj/gvk.h"
#include "tec/kobj/meta.h"

/* One ownerReference object; the caller puts it. */
struct json_object *kobj_owner_json(const struct kobj_gvk *gvk, const char *name, const char *uid);
/* metadata.ownerReferences of o is exactly [controller uid]. */
bool kobj_owner_is_exactly(struct json_object *o, const char *uid);
/* uid of the controlling owner, borrowed; NULL if none. */
const char *kobj_owner_controller(struct json_object *o);
size_t kobj_owner_count(struct json_object *o);

#endif
