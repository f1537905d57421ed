/* SPDX-License-Identifier: MIT */
/*
 * A KbsConfig or TrusteeConfig of any namespace, as far as it matters that nobody works on it. Its
 * name in a cache is its uid, as names are those of one namespace only.
 */
#ifndef TEC_MODEL_STRAY_H
#define TEC_MODEL_STRAY_H

#include <json-c/json.h>

#include "tec/kobj/meta.h"

struct model_stray {
	struct kobj obj;
	const char *ns, *plain; /* plain: its name */
	bool told;              /* an operator, this one or another, has written its status */
};

struct kobj *model_stray_extract(struct json_object *o, struct err *err);
static inline const struct model_stray *model_stray(const struct kobj *o)
{
	return (const struct model_stray *)o;
}

#endif
