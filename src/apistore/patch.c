/* SPDX-License-Identifier: MIT */
/* Merges member by member. The recursion is as deep as the patch, whose parser bounds it. */
#include "config.h"

#include "tec/apistore/patch.h"

#include "tec/base/json.h"

/* A null removes a member (RFC 7386). A value that is no object replaces; an object is merged, into
 * an empty one if there is none, which drops the nulls inside it. */
void apistore_patch_merge(struct json_object *o, struct json_object *patch)
{
	json_each (patch, name, value) {
		struct json_object *have = NULL;

		if (!value) {
			json_drop(o, name);
			continue;
		}
		if (!json_object_is_type(value, json_type_object)) {
			json_add(o, name, json_copy(value));
			continue;
		}
		if (!json_object_object_get_ex(o, name, &have) ||
			!json_object_is_type(have, json_type_object))
			json_add(o, name, have = json_obj());
		apistore_patch_merge(have, value);
	}
}
