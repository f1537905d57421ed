/* SPDX-License-Identifier: MIT */
/* ApprovedImage as a compact struct. A reference without a complete digest is kept and marked: the
 * API's pattern admits ":sha256:" followed by anything, and the controller must report it. */
#include "config.h"

#include "tec/model/image.h"

#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/json.h"
#include "tec/kobj/owner.h"
#include "tec/model/mark.h"
#include "tec/model/plain.h"

#define AT(m) offsetof(struct model_image, m)

const char *const model_image_cond_types[IMAGE_N_CONDS] = {
	[IMAGE_COMMITTED] = "Committed",
};

const char *model_image_reason(enum model_image_reason r)
{
	static const char *const names[IMAGE_N_REASONS] = {
		[IMAGE_IMAGE_COMMITTED] = "ImageCommitted",
		[IMAGE_COMPUTING] = "Computing",
		[IMAGE_NO_DIGEST_GIVEN] = "NoDigestGiven",
		[IMAGE_COMPUTATION_FAILED] = "ComputationFailed",
		[IMAGE_POD_PENDING] = "PodPending",
		[IMAGE_REVOKING] = "Revoking",
		[IMAGE_TOO_MANY_EVENTS] = "TooManyEvents",
		[IMAGE_TOO_MANY_STATES] = "TooManyStates",
		[IMAGE_VALUES_CHANGED] = "ValuesChanged",
		[IMAGE_HAND_IN_AWAITED] = "ValuesAwaited",
	};

	return names[r];
}

/* Only "@sha256:" and 64 hex digits at the very end pin the content; a tag before it does not
 * matter. */
const char *model_image_digest(const char *reference)
{
	static const char at[] = "@sha256:";
	size_t len = strlen(reference), tail = sizeof(at) - 1 + SHA256_HEX_LEN;
	const char *hex = reference + len - SHA256_HEX_LEN;
	uint8_t digest[SHA256_LEN];

	if (len <= tail || strncmp(reference + len - tail, at, sizeof(at) - 1) != 0 ||
		bytes_from_hex(hex, SHA256_HEX_LEN, digest) < 0)
		return NULL;
	return hex;
}

/* An unknown secureBoot or bootPath takes the stricter default. */
struct kobj *model_image_extract(struct json_object *o, struct err *err)
{
	cleanup_kobj_pack struct kobj_pack pack = KOBJ_PACK_INIT;
	struct model_image m = {0};
	const char *image;

	if (kobj_meta_read(&pack, o, &m.obj, err) < 0 ||
		!(image = model_plain_needed(o, "image", err)))
		return NULL;
	m.digest_ok = model_image_digest(image) != NULL;
	m.handed_in = str_eq(kobj_annotation(o, MODEL_IMAGE_VALUES), MODEL_IMAGE_HANDED_IN);
	m.any_secure_boot = str_eq(json_get_str(o, "spec/secureBoot"), "Any");
	m.boot_path = pcr_boot_path_parse(json_get_str(o, "spec/bootPath"));
	m.has_finalizer = kobj_has_finalizer(o, MODEL_IMAGE_FINALIZER);
	m.n_owners = (unsigned)kobj_owner_count(o);
	kobj_pack_str(&pack, AT(image), image);
	kobj_pack_str(&pack, AT(owner_uid), kobj_owner_controller(o));
	kobj_pack_str(&pack, AT(pcrs_sha256), model_mark(o, MODEL_IMAGE_PCRS_MARK));
	kobj_pack_str(&pack, AT(job_nonce), model_mark(o, MODEL_IMAGE_JOB_MARK));
	kobj_cond_read(&pack, o, model_image_cond_types, IMAGE_N_CONDS, m.cond, AT(cond));
	return kobj_pack_finish(&pack, &m, sizeof(m));
}
