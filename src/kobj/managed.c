/* SPDX-License-Identifier: MIT */
/* The same move as csaupgrade of client-go makes, for a writer without server-side apply. */
#include "config.h"

#include "tec/kobj/managed.h"

#include "tec/base/json.h"
#include "tec/kobj/meta.h"
#include "tec/kobj/subset.h"

/* "/" in a name is written "~1" in a path (RFC 6901). */
#define HASH_PATH "/metadata/annotations/trusted-execution-clusters.io~1render-hash"

static bool is_entry(struct json_object *e, const char *manager, const char *operation)
{
	return str_eq(json_get_str(e, "manager"), manager) &&
	       str_eq(json_get_str(e, "operation"), operation) && !json_get_str(e, "subresource");
}

/* The paths of fields are objects in objects, and a member that both have is the same field. */
static void unite(struct json_object *to, struct json_object *from)
{
	json_object_object_foreach (from, name, value) {
		struct json_object *have = NULL;

		if (!json_object_object_get_ex(to, name, &have))
			json_add(to, name, json_object_get(value));
		else if (json_object_is_type(have, json_type_object) &&
			 json_object_is_type(value, json_type_object))
			unite(have, value);
	}
}

/* The applier has one entry for each version of the API. */
static struct json_object *entry_of(
	struct json_object *entries, const char *manager, const char *api_version)
{
	for (size_t i = 0; i < json_len(entries); i++) {
		struct json_object *e = json_at(entries, i);

		if (is_entry(e, manager, "Apply") &&
			str_eq(json_get_str(e, "apiVersion"), api_version) &&
			json_get_obj(e, "fieldsV1"))
			return e;
	}
	return NULL;
}

void kobj_patch_op(
	struct json_object *patch, const char *op, const char *path, struct json_object *take_value)
{
	struct json_object *o = json_add_str(json_add_str(json_obj(), "op", op), "path", path);

	json_push(patch, take_value ? json_add(o, "value", take_value) : o);
}

/* The entries of `o` stay as they are: the new list has copies. */
struct json_object *kobj_managed_take(struct json_object *o, const char *from, const char *to)
{
	struct json_object *have = json_get_arr(o, "metadata/managedFields");
	struct json_object *entries = json_arr(), *patch;
	bool found = false;

	for (size_t i = 0; i < json_len(have); i++)
		if (!is_entry(json_at(have, i), from, "Update"))
			json_object_array_add(entries, json_copy(json_at(have, i)));
	for (size_t i = 0; i < json_len(have); i++) {
		struct json_object *e = json_at(have, i), *mine;

		if (!is_entry(e, from, "Update") || !json_get_obj(e, "fieldsV1"))
			continue;
		found = true;
		mine = entry_of(entries, to, json_get_str(e, "apiVersion"));
		if (mine) {
			unite(json_get_obj(mine, "fieldsV1"), json_get_obj(e, "fieldsV1"));
			continue;
		}
		mine = json_copy(e);
		json_add_str(json_add_str(mine, "manager", to), "operation", "Apply");
		json_object_array_add(entries, mine);
	}
	if (!found) {
		json_object_put(entries);
		return NULL;
	}
	patch = json_arr();
	kobj_patch_op(patch, "replace", "/metadata/managedFields", entries);
	kobj_patch_op(patch, "replace", "/metadata/resourceVersion",
		json_object_new_string(json_get_str(o, "metadata/resourceVersion")));
	if (kobj_annotation(o, KOBJ_RENDER_HASH_ANNOTATION))
		kobj_patch_op(patch, "remove", HASH_PATH, NULL);
	return patch;
}
