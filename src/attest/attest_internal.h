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

/* "cannot WHAT: ..." for what ESYS answered, with the way out where there is one; -1. */
int attest_esys_fail(struct err *err, TSS2_RC rc, const char *what);
/* An ESYS object for a persistent handle: ERR_NOT_FOUND when nothing is there. The caller closes it. */
int attest_esys_persistent(
	struct attest_esys *e, uint32_t handle, ESYS_TR *out, struct err *err) MUST_CHECK;

/* Signals that would end the process in the middle of a command. */
void attest_signals_hold(sigset_t *before);
void attest_signals_release(const sigset_t *before);

#endif
