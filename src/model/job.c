/* SPDX-License-Identifier: MIT */
/* A Job belongs to the ApprovedImage that its annotation names. Anybody who may create Jobs can
 * write that, so the controller checks owner and nonce as well. */
#include "config.h"

#include "tec/model/job.h"

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/kobj/owner.h"
#include "tec/kobj/subset.h"
#include "tec/model/plain.h"

#define AT(m) offsetof(struct model_job, m)

/* Only conditions with status True count: a Job controller may also list others. */
static void read_job_condition(struct kobj_pack *pack, struct model_job *j, struct json_object *c)
{
	const char *type = json_get_str(c, "type"), *at = json_get_str(c, "lastTransitionTime");
	int64_t us;

	if (!str_eq(json_get_str(c, "status"), "True"))
		return;
	if (str_eq(type, "Complete")) {
		j->state = MODEL_JOB_COMPLETE;
	} else if (str_eq(type, "Failed")) {
		cleanup_free char *why = model_plain_why(c);

		j->state = MODEL_JOB_FAILED;
		kobj_pack_str(pack, AT(why), why);
	} else {
		return;
	}
	if (at && clock_parse(at, &us) == 0)
		j->finished_s = us / 1000000;
}

/* Without a Complete or Failed condition the Job counts as running, whatever its Pods do. */
struct kobj *model_job_extract(struct json_object *o, struct err *err)
{
	cleanup_kobj_pack struct kobj_pack pack = KOBJ_PACK_INIT;
	struct model_job j = {.state = MODEL_JOB_RUNNING};
	struct json_object *conditions = json_get_arr(o, "status/conditions");
	struct json_object *volumes = json_get_arr(o, "spec/template/spec/volumes");
	const char *attempt = kobj_annotation(o, MODEL_JOB_ATTEMPT_ANNOTATION);
	uint64_t n = 0;

	if (kobj_meta_read(&pack, o, &j.obj, err) < 0)
		return NULL;
	for (size_t i = 0; i < json_len(conditions); i++)
		read_job_condition(&pack, &j, json_at(conditions, i));
	if (attempt && str_to_u64(attempt, 1000000, &n) == 0)
		j.attempt = (unsigned)n;
	/* Check the stored template, not ours: an API server that does not support image volumes, or
	 * has them disabled, drops them silently. */
	for (size_t i = 0; i < json_len(volumes); i++)
		j.mounts_image |= json_get_obj(json_at(volumes, i), "image") != NULL;
	kobj_pack_str(&pack, AT(fetch), kobj_annotation(o, MODEL_JOB_FETCH_ANNOTATION));
	kobj_pack_str(&pack, AT(owner_uid), kobj_owner_controller(o));
	kobj_pack_str(&pack, AT(image), kobj_annotation(o, MODEL_JOB_IMAGE_ANNOTATION));
	kobj_pack_str(&pack, AT(nonce), kobj_annotation(o, MODEL_JOB_NONCE_ANNOTATION));
	return kobj_pack_finish(&pack, &j, sizeof(j));
}

const char *model_job_index(const struct kobj *o, unsigned i)
{
	return i == 0 ? ((const struct model_job *)o)->image : NULL;
}
