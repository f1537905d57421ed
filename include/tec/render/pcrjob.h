/* SPDX-License-Identifier: MIT */
/*
 * The Job that computes the PCR values of one image: the image is mounted read-only, or fetched by
 * another container of the Pod if it cannot be mounted; the result is the container's termination
 * message (model/pcrmsg.h). Its Pods have no token and comply with the restricted Pod security
 * profile; the ServiceAccount exists for its imagePullSecrets only. A Job never changes after its
 * creation: it is created or deleted; other firmware variables of a platform are another Job.
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
/* The Pod fetches the image from its registry because it cannot mount it. */
struct render_pcrjob_fetch {
	const char *why; /* the reason, for people; kept with the Job */
	/* Values of the options of these names; NULL: none. */
	const char *registry_mirror, *insecure_registry;
	const char *const *env; /* NULL-terminated "NAME=value" of the proxies; NULL: none */
};
#define RENDER_PCRJOB_FETCH_LABEL "trusted-execution-clusters.io/fetch" /* "true": such a Pod */

/* Depends on the ApprovedImage object (not only its name and reference) and on the platforms. p
 * NULL: no platforms; fetch NULL: the Pod mounts the image. */
void render_pcrjob_name(const struct model_image *i, const struct render_pcrjob_platforms *p,
	const struct render_pcrjob_fetch *fetch, char out[RENDER_PCRJOB_NAME_LEN + 1]);
/* The body of a create; the caller puts it. tool: the image that contains tec-compute-pcrs. */
struct json_object *render_pcrjob(const struct model_image *i,
	const struct render_pcrjob_platforms *p, const struct render_pcrjob_fetch *fetch,
	const char *ns, const char *tool, const char *nonce, unsigned attempt);

#endif
