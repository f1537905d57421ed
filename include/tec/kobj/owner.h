/* SPDX-License-Identifier: MIT */
/* ownerReferences with one owner: controller=true, blockOwnerDeletion=true. */
#ifndef TEC_KOBJ_OWNER_H
#define TEC_KOBJ_OWNER_H

#include <json-c/json.h>
#include <stdbool.h>

#include "tec/kobj/gvk.h"
#include "tec/kobj/meta.h"

/* Build one ownerReference; the caller puts it. */
struct json_object *kobj_owner_json(const struct kobj_gvk *gvk, const char *name, const char *uid);
/* Add ownerReferences with this one owner to an object's metadata. */
void kobj_owner_add(
	struct json_object *meta, const struct kobj_gvk *gvk, const char *name, const char *uid);
/* {"apiVersion","kind","metadata":{"name"}}; the caller adds to *meta and puts the object. */
struct json_object *kobj_new(
	const struct kobj_gvk *gvk, const char *name, struct json_object **meta);
/* True if the controller with this uid is the only owner of o. */
bool kobj_owner_is_exactly(struct json_object *o, const char *uid);
/* The uid of the controlling owner, borrowed; NULL if there is none. */
const char *kobj_owner_controller(struct json_object *o);
size_t kobj_owner_count(struct json_object *o);

#endif
