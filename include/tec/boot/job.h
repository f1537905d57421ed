/* SPDX-License-Identifier: MIT */
/*
 * What the operator's Job says of an image (model/pcrmsg.h), from what was predicted: the values of
 * the likeliest variant, those of the others, and PCR 7 on each platform of its nodes.
 */
#ifndef TEC_BOOT_JOB_H
#define TEC_BOOT_JOB_H

#include "tec/boot/predict.h"
#include "tec/model/platforms.h"

/*
 * Adds the platform `name`, whose firmware variables are in efivars_fd, to out, which has room for
 * it. 0: its PCR 7 is there. -1: err says why not; the platform is there with that reason if its
 * variables could be read, as only they say which platform it is. Refused is one without Secure
 * Boot: its PCR 7 does not depend on who signed what it boots. explain may be NULL.
 */
int boot_job_platform(int rootfs_fd, int efivars_fd, const char *name, struct model_platforms *out,
	struct strbuf *explain, struct err *err) MUST_CHECK;
/* Appends the message; ERR_INVALID: it would be too long. v has one variant at least. */
int boot_job_message(const struct boot_variants *v, const struct model_platforms *platforms,
	const char *nonce, const char *digest, struct strbuf *out, struct err *err) MUST_CHECK;

#endif
