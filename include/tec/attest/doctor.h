/* SPDX-License-Identifier: MIT */
/*
 * Check what an attestation of this machine needs: TPM, measured boot, the seal, attestation key,
 * clock, and each server. Prints one line per check, with a remedy if it failed. The TPM checks
 * finish before attest_doctor_start() returns. Nothing is created or changed.
 */
#ifndef TEC_ATTEST_DOCTOR_H
#define TEC_ATTEST_DOCTOR_H

#include "tec/attest/fetch.h"

struct attest_doctor_request {
	struct httpc *client;               /* borrowed, as all here */
	const struct attest_source *source; /* tcti NULL: skip the TPM */
	const struct attest_config *config; /* the servers, and the resource if path is set */
	bool seal;                          /* every boot has to be sealed (attest/seal.h) */
	const char *root;                   /* before /etc, /proc and /sys; "" except in tests */
	void (*say)(void *arg, const char *line);
};
/* fault: the first check that failed; ATTEST_OK: none did. */
typedef void (*attest_doctor_fn)(void *arg, enum attest_fault fault);

struct op *attest_doctor_start(struct op_scope *scope, const struct attest_doctor_request *r,
	attest_doctor_fn done, void *arg);

#endif
