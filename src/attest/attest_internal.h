/* SPDX-License-Identifier: MIT */
/* Private to this folder. */
#ifndef TEC_ATTEST_INTERNAL_H
#define TEC_ATTEST_INTERNAL_H

#include <signal.h>
#include <tss2/tss2_esys.h>

#include "tec/attest/esys.h"

struct attest_esys {
	ESYS_CONTEXT *ctx;       /* owned */
	TSS2_TCTI_CONTEXT *tcti; /* owned */
};

/* Set "cannot WHAT: ..." from an ESYS return code, with a remedy if one is known. Return -1. */
int attest_esys_fail(struct err *err, TSS2_RC rc, const char *what);
/* Open a persistent handle as an ESYS object, which the caller closes. ERR_NOT_FOUND:
 * handle free. */
int attest_esys_persistent(
	struct attest_esys *e, uint32_t handle, ESYS_TR *out, struct err *err) MUST_CHECK;

/* Block the signals that would end the process in the middle of a TPM command, and restore them. */
void attest_signals_hold(sigset_t *before);
void attest_signals_release(const sigset_t *before);

#endif
