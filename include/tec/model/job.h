/* SPDX-License-Identifier: MIT */
/* Job compute-pcrs of an ApprovedImage, in compact form. */
#ifndef TEC_MODEL_JOB_H
#define TEC_MODEL_JOB_H

#include <json-c/json.h>
#include <stdbool.h>

#include "tec/kobj/meta.h"

/* Annotations written by render/pcrjob.h: the ApprovedImage's name; the number of its Jobs
 * including this one; the nonce that the Job's message must contain. */
#define MODEL_JOB_APP                "compute-pcrs" /* label app, and the container's name */
#define MODEL_JOB_IMAGE_ANNOTATION   "trusted-execution-clusters.io/approved-image"
#define MODEL_JOB_ATTEMPT_ANNOTATION "trusted-execution-clusters.io/attempt"
#define MODEL_JOB_NONCE_ANNOTATION   "trusted-execution-clusters.io/nonce"
/* On a Job that fetches the image itself: why it does not mount it. */
#define MODEL_JOB_FETCH_ANNOTATION "trusted-execution-clusters.io/fetches-because"

/* Index 0: the ApprovedImage's name. */
enum model_job_state { MODEL_JOB_RUNNING, MODEL_JOB_COMPLETE, MODEL_JOB_FAILED };
struct model_job {
	struct kobj obj;
	const char *owner_uid; /* controller */
	const char *image;     /* the ApprovedImage's name; NULL: not our Job */
	const char *nonce;     /* must be in its result; NULL: none */
	const char *fetch;     /* MODEL_JOB_FETCH_ANNOTATION; NULL: it mounts the image */
	bool mounts_image;     /* its Pods have an image volume */
	enum model_job_state state;
	unsigned attempt;
	const char *why;    /* why it failed: "reason: message" */
	int64_t finished_s; /* 0: not yet */
};
struct kobj *model_job_extract(struct json_object *o, struct err *err);
const char *model_job_index(const struct kobj *o, unsigned i);

#endif
