/* SPDX-License-Identifier: MIT */
/* ApprovedImage as a compact struct: the reference as written. It is not parsed here; oci/ref does
 * that. */
#include "config.h"

#include "tec/model/image.h"

#include "tec/base/json.h"

struct kobj *model_image_extract(struct json_object *o, struct err *err)
{
	cleanup_kobj_pack struct kobj_pack pack = KOBJ_PACK_INIT;
	struct model_image m = {0};
	const char *image = json_get_str(o, "spec/image");

	if (kobj_meta_read(&pack, o, &m.obj, err) < 0)
		return NULL;
	if (!image) {
		err_set(err, ERR_INVALID, "spec/image of %s is missing or not a text",
			json_get_str(o, "metadata/name"));
		return NULL;
	}
	kobj_pack_str(&pack, offsetof(struct model_image, image), image);
	return kobj_pack_finish(&pack, &m, sizeof(m));
}
