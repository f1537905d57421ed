/* SPDX-License-Identifier: MIT */
/* ApprovedImage: one bootable image, by digest. */
#ifndef TEC_MODEL_IMAGE_H
#define TEC_MODEL_IMAGE_H

#include <json-c/json.h>

#include "tec/kobj/condition.h"
#include "tec/kobj/meta.h"
#include "tec/pcr/bootpath.h"

#define MODEL_IMAGE_FINALIZER "finalizer.approved-image.trusted-execution-clusters.io"
/* Marks (model/mark.h): hashes of the entries that the operator wrote, or is about to write, into
 * ConfigMap image-pcrs; and the hash of the nonce of the one Job whose result is accepted. */
#define MODEL_IMAGE_PCRS_MARK "trusted-execution-clusters.io/pcrs-sha256"
#define MODEL_IMAGE_JOB_MARK  "trusted-execution-clusters.io/pcrs-job"

/* An annotation written by people. "HandedIn": its author computes the values and hands them in
 * (tecctl image approve --rootfs); the image is not fetched. */
#define MODEL_IMAGE_VALUES    "trusted-execution-clusters.io/values"
#define MODEL_IMAGE_HANDED_IN "HandedIn"

enum model_image_cond { IMAGE_COMMITTED, IMAGE_N_CONDS };
extern const char *const model_image_cond_types[IMAGE_N_CONDS]; /* Committed */
enum model_image_reason {
	IMAGE_IMAGE_COMMITTED,
	IMAGE_COMPUTING,
	IMAGE_NO_DIGEST_GIVEN,
	IMAGE_COMPUTATION_FAILED,
	IMAGE_POD_PENDING,
	IMAGE_REVOKING,
	IMAGE_TOO_MANY_EVENTS, /* more than the Job's message holds */
	IMAGE_TOO_MANY_STATES, /* with it, all images have more states than can be kept */
	IMAGE_VALUES_CHANGED,  /* its entry differs from what the operator wrote */
	IMAGE_HAND_IN_AWAITED, /* the values must be handed in */
	IMAGE_N_REASONS,
};
const char *model_image_reason(enum model_image_reason r);

struct model_image {
	struct kobj obj;
	const char *image;    /* spec.image as written; oci/ref parses it */
	bool digest_ok;       /* ends in a complete SHA-256 digest */
	bool handed_in;       /* its values are handed in, not computed */
	bool any_secure_boot; /* values with Secure Boot off are approved too */
	enum pcr_boot_path boot_path;
	bool has_finalizer;
	const char *owner_uid;   /* controller, NULL: none */
	const char *pcrs_sha256; /* payloads of its marks; NULL: no valid mark */
	const char *job_nonce;
	unsigned n_owners;
	struct kobj_cond cond[IMAGE_N_CONDS];
};

/* Return the digest of a reference that ends in a complete one: 64 hex digits, borrowed; NULL: it
 * does not. */
const char *model_image_digest(const char *reference);
struct kobj *model_image_extract(struct json_object *o, struct err *err);
static inline const struct model_image *model_image(const struct kobj *o)
{
	return (const struct model_image *)o;
}

#endif
