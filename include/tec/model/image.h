/* SPDX-License-Identifier: MIT */
/* ApprovedImage: the reference only, for counting and adoption; its controller comes with the
 * reference values. */
#ifndef TEC_MODEL_IMAGE_H
#define TEC_MODEL_IMAGE_H

#include <json-c/json.h>

#include "tec/kobj/meta.h"

struct model_image {
	struct kobj obj;
	const char *image;
};

struct kobj *model_image_extract(struct json_object *o, struct err *err);
static inline const struct model_image *model_image(const struct kobj *o)
{
	return (const struct model_image *)o;
}

#endif
