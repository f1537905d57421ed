/* SPDX-License-Identifier: MIT */
/*
 * A KbsConfig or TrusteeConfig in any namespace, as far as needed to report that no operator works
 * on it. Its name in a cache is its uid, because names are unique within one namespace only.
 */
#ifndef TEC_MODEL_UNMANAGED_H
#define TEC_MODEL_UNMANAGED_H

#include <json-c/json.h>

#include "tec/kobj/meta.h"

struct model_unmanaged {
	struct kobj obj;
	const char *ns, *plain; /* plain: metadata.name */
	bool told;              /* some operator has written its status */
};

struct kobj *model_unmanaged_extract(struct json_object *o, struct err *err);
static inline const struct model_unmanaged *model_unmanaged(const struct kobj *o)
{
	return (const struct model_unmanaged *)o;
}

#endif
