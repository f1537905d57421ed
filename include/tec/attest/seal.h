/* SPDX-License-Identifier: MIT */
/*
 * Seal this boot: PCR 15 is extended before the root file system is entered, and a cluster with
 * release OncePerBoot gives a disk key only while it is zero. All functions block.
 */
#ifndef TEC_ATTEST_SEAL_H
#define TEC_ATTEST_SEAL_H

#include <stdbool.h>
#include <stdint.h>

#include "tec/base/err.h"
#include "tec/base/mem.h"

#define ATTEST_SEAL_PCR 15
#define ATTEST_SEAL_MS  10000

/*
 * Extend PCR 15, in all banks, with the digest of "tec-node:sealed:UUID"; uuid NULL: "-". A PCR 15
 * that is not zero in the SHA-256 bank, the only one that decides, is left alone (*already: true).
 * A TPM that is missing or fails is tried again for `patience_ms`, and its kernel modules are
 * loaded. 0 means that PCR 15 was read and is not zero.
 */
int attest_seal(const char *tcti, const char *uuid, uint32_t patience_ms, bool *already,
	struct err *err) MUST_CHECK;

/* End the other processes of this program that decrypt: SIGTERM, and SIGKILL after two seconds. */
void attest_seal_end_pins(void);

/* Reboot the machine at once, after a few seconds for a person to read why. If that fails, wait for
 * ever: what called must not go on. */
_Noreturn void attest_seal_reboot(void);

#endif
