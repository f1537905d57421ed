/* SPDX-License-Identifier: MIT */
/* ApprovedImage: one bootable image, by digest. */
#ifndef TEC_MODEL_IMAGE_H
#define TEC_MODEL_IMAGE_H

#include <json-c/json.h>

#include "tec/kobj/condition.h"
#include "tec/kobj/meta.h"

#define MODEL_IMAGE_FINALIZER "finalizer.approved-image.trusted-execution-clusters.io"

enum model_image_cond { IMAGE_COMMITTED, IMAGE_N_CONDS };
extern const char *const model_image_cond_types[IMAGE_N_CONDS]; /* Committed */
enum model_image_reason {
	IMAGE_IMAGE_COMMITTED,
	IMAGE_COMPUTING,
	IMAGE_NO_DIGEST_GIVEN,
	IMAGE_COMPUTATION_FAILED,
	IMAGE_POD_PENDING,
	IMAGE_REVOKING,
	IMAGE_N_REASONS,
};
const char *model_image_reason(enum model_image_reason r);

struct model_image {
	struct kobj obj;
	const char *image;    /* spec.image as written; oci/ref parses it */
	bool digest_ok;       /* it ends in a whole SHA-256 digest */
	bool any_secure_boot; /* values with Secure Boot off are approved too */
	bool has_finalizer;
	const char *owner_uid; /* controller, NULL: none */
	unsigned n_owners;
	struct kobj_cond cond[IMAGE_N_CONDS];
};

struct kobj *model_image_extract(struct json_object *o, struct err *err);
static inline const struct model_image *model_image(const struct kobj *o)
{
	return (const struct model_image *)o;
}

#endif
