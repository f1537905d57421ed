/* SPDX-License-Identifier: MIT */
/*
 * The message of the operator's Job about an image (model/pcrmsg.h): the values of the most likely
 * variant, those of the other variants, and what differs on each platform of the nodes.
 */
#ifndef TEC_MEASURE_JOB_H
#define TEC_MEASURE_JOB_H

#include "tec/measure/predict.h"
#include "tec/model/platforms.h"

/*
 * Add the platform `name`, whose variables are in dir_fd (pcr/platform.h), to out, which must have
 * room for it. It gets PCR 7 if there are firmware variables, PCR 14 if there are variables of
 * shim, and PCR 4 if shim's validation is off. On failure (-1) the platform is still added, with
 * the reason, if its variables could be read: they identify it. A platform without Secure Boot is
 * refused, because its PCR 7 does not depend on who signed what it boots. So is one whose shim
 * validates nothing, unless a file next to its variables allows that. explain may be NULL.
 */
int measure_job_platform(int rootfs_fd, int dir_fd, const char *name, struct model_platforms *out,
	struct strbuf *explain, struct err *err) MUST_CHECK;
/* Append the message. ERR_INVALID: it would be too long. v has at least one variant. */
int measure_job_message(const struct measure_variants *v, const struct model_platforms *platforms,
	const char *nonce, const char *digest, struct strbuf *out, struct err *err) MUST_CHECK;

#endif
