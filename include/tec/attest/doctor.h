/* SPDX-License-Identifier: MIT */
/*
 * What an attestation of this machine needs, looked at one by one: TPM, measured boot, attestation key,
 * clock, each server. A line for each, with what to do where it is not well. The TPM is asked before
 * attest_doctor_start() returns. Nothing is made.
 */
#ifndef TEC_ATTEST_DOCTOR_H
#define TEC_ATTEST_DOCTOR_H

#include "tec/attest/fetch.h"

struct attest_doctor_request {
	struct httpc *client;               /* borrowed, as all here */
	const struct attest_source *source; /* tcti NULL: no TPM is looked at */
	const struct attest_config *config; /* its servers, and the resource when it has a path */
	void (*say)(void *arg, const char *line);
};
/* The first thing that is not well; ATTEST_OK: none. */
typedef void (*attest_doctor_fn)(void *arg, enum attest_fault fault);

struct op *attest_doctor_start(struct op_scope *scope, const struct attest_doctor_request *r,
	attest_doctor_fn done, void *arg);

#endif
