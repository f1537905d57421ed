/* SPDX-License-Identifier: MIT */
/*
 * What the operator's Job says of an image (model/pcrmsg.h), from what was predicted: the values of
 * the likeliest variant, those of the others, and what is other on each platform of its nodes.
 */
#ifndef TEC_BOOT_JOB_H
#define TEC_BOOT_JOB_H

#include "tec/boot/predict.h"
#include "tec/model/platforms.h"

/*
 * Adds the platform `name`, whose variables are in dir_fd (pcr/platform.h), to out, which has room
 * for it. 0: it has PCR 7 if there are variables of the firmware, PCR 14 if there are some of shim,
 * and, where shim's validation is off, PCR 4. -1: err says why not; the platform is there with that
 * reason if its variables could be read, as only they say which platform it is. Refused is one
 * without Secure Boot, whose PCR 7 does not depend on who signed what it boots, and one whose shim
 * validates nothing, unless that is asked for beside its variables. explain may be NULL.
 */
int boot_job_platform(int rootfs_fd, int dir_fd, const char *name, struct model_platforms *out,
	struct strbuf *explain, struct err *err) MUST_CHECK;
/* Appends the message; ERR_INVALID: it would be too long. v has one variant at least. */
int boot_job_message(const struct boot_variants *v, const struct model_platforms *platforms,
	const char *nonce, const char *digest, struct strbuf *out, struct err *err) MUST_CHECK;

#endif
