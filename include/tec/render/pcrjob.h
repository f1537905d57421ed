/* SPDX-License-Identifier: MIT */
/*
 * The Job that computes one image's PCR values: the image is mounted read-only, or fetched by another
 * container of the Pod where that cannot be; the result is the
 * termination message of its container (model/pcrmsg.h). Its Pods have no token and keep the
 * restricted Pod security profile; the ServiceAccount is there for its imagePullSecrets alone. A
 * Job never changes after it was made: create, or delete; other firmware variables of a platform
 * are another Job.
 */
#ifndef TEC_RENDER_PCRJOB_H
#define TEC_RENDER_PCRJOB_H

#include <json-c/json.h>

#include "tec/model/image.h"
#include "tec/model/job.h"
#include "tec/model/platforms.h"

#define RENDER_PCRJOB_SERVICE_ACCOUNT "compute-pcrs"
#define RENDER_PCRJOB_NAME_LEN        29 /* compute-pcrs-<16 hex> */

/* The ConfigMaps to mount, each with the digest of its variables (pcr/platform.h). */
struct render_pcrjob_platforms {
	struct {
		const char *name; /* borrowed */
		uint8_t variables[SHA256_LEN];
	} v[MODEL_PLATFORMS_MAX];
	size_t n;
};
/* The Pod fetches the image from its registry, because it cannot mount it. */
struct render_pcrjob_fetch {
	const char *why; /* a sentence; kept with the Job */
	/* As for the options of these names; NULL: none. */
	const char *registry_mirror, *insecure_registry;
};
#define RENDER_PCRJOB_FETCH_LABEL "trusted-execution-clusters.io/fetch" /* "true": such a Pod */

/* Another ApprovedImage object, even of the same name and reference, has another Job, and so have
 * other platforms. p NULL: none; fetch NULL: its Pod mounts the image. */
void render_pcrjob_name(const struct model_image *i, const struct render_pcrjob_platforms *p,
	const struct render_pcrjob_fetch *fetch, char out[RENDER_PCRJOB_NAME_LEN + 1]);
/* The body of a create; the caller puts it. tool: the image with the program compute-pcrs. */
struct json_object *render_pcrjob(const struct model_image *i,
	const struct render_pcrjob_platforms *p, const struct render_pcrjob_fetch *fetch,
	const char *ns, const char *tool, const char *nonce, unsigned attempt);

#endif
