/* SPDX-License-Identifier: MIT */
/* Read and build ownerReferences. Owners are identified by uid only: after a deletion the same name
 * may belong to a different object. */
#include "config.h"

#include "tec/kobj/owner.h"

#include "tec/base/json.h"

/* blockOwnerDeletion makes a foreground deletion of the owner wait for this object. */
struct json_object *kobj_owner_json(const struct kobj_gvk *gvk, const char *name, const char *uid)
{
	cleanup_strbuf struct strbuf version = STRBUF_INIT;
	struct json_object *r = json_obj();

	kobj_api_version(gvk, &version);
	json_add_str(r, "apiVersion", strbuf_str(&version));
	json_add_str(r, "kind", gvk->kind);
	json_add_str(r, "name", name);
	json_add_str(r, "uid", uid);
	json_add_bool(r, "controller", true);
	json_add_bool(r, "blockOwnerDeletion", true);
	return r;
}

void kobj_owner_add(
	struct json_object *meta, const struct kobj_gvk *gvk, const char *name, const char *uid)
{
	json_add(meta, "ownerReferences", json_push(json_arr(), kobj_owner_json(gvk, name, uid)));
}

struct json_object *kobj_new(
	const struct kobj_gvk *gvk, const char *name, struct json_object **meta)
{
	cleanup_strbuf struct strbuf version = STRBUF_INIT;
	struct json_object *o = json_obj();

	kobj_api_version(gvk, &version);
	*meta = json_add_str(json_obj(), "name", name);
	json_add_str(json_add_str(o, "apiVersion", strbuf_str(&version)), "kind", gvk->kind);
	return json_add(o, "metadata", *meta);
}

size_t kobj_owner_count(struct json_object *o)
{
	return json_len(json_get_arr(o, "metadata/ownerReferences"));
}

/* The API server allows at most one reference with controller=true, so the first one is the
 * controller. */
const char *kobj_owner_controller(struct json_object *o)
{
	struct json_object *a = json_get_arr(o, "metadata/ownerReferences");

	for (size_t i = 0; i < json_len(a); i++)
		if (json_get_bool(json_at(a, i), "controller", false))
			return json_get_str(json_at(a, i), "uid");
	return NULL;
}

/* An object with further owners is not ours alone and must not be changed or deleted. */
bool kobj_owner_is_exactly(struct json_object *o, const char *uid)
{
	return uid && kobj_owner_count(o) == 1 && str_eq(kobj_owner_controller(o), uid);
}
