/* SPDX-License-Identifier: MIT */
/* Keep just enough of an object to report it, whatever its spec. */
#include "config.h"

#include "tec/model/unmanaged.h"

#include "tec/base/json.h"

/* The uid replaces the name in the cache, so the name is kept in `plain`. */
struct kobj *model_unmanaged_extract(struct json_object *o, struct err *err)
{
	cleanup_kobj_pack struct kobj_pack pack = KOBJ_PACK_INIT;
	struct json_object *status = json_get_obj(o, "status");
	struct model_unmanaged m = {.told = status && json_len(status)};
	const char *name = json_get_str(o, "metadata/name"),
		   *ns = json_get_str(o, "metadata/namespace");

	if (kobj_meta_read(&pack, o, &m.obj, err) < 0)
		return NULL;
	if (!ns) {
		err_set(err, ERR_INVALID, "metadata.namespace of %s is missing", name);
		return NULL;
	}
	kobj_pack_str(&pack, offsetof(struct model_unmanaged, ns), ns);
	kobj_pack_str(&pack, offsetof(struct model_unmanaged, plain), name);
	/* Packed after kobj_meta_read() packed the name, so this one counts. */
	kobj_pack_str(&pack, offsetof(struct kobj, name), json_get_str(o, "metadata/uid"));
	return kobj_pack_finish(&pack, &m, sizeof(m));
}
