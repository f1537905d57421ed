/* SPDX-License-Identifier: MIT */
/* PCR 7 of the platforms that the operator's Job was given (--platform), one by one. */
#ifndef TEC_CMD_PCRS_PLATFORMS_H
#define TEC_CMD_PCRS_PLATFORMS_H

#include "pcrs_options.h"
#include "tec/model/platforms.h"

/*
 * One that has no value is there with the reason; one whose variables cannot be read is said on
 * standard error and left out. Neither costs the others anything. out is new.
 */
int pcrs_platforms_predict(
	const struct pcrs_options *o, struct model_platforms *out, struct err *err) MUST_CHECK;

#endif
