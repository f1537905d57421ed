/* SPDX-License-Identifier: MIT */
/*
 * struct attest_esys: an open TPM 2.0 (tpm2-tss ESYS over the transport that a TctiLdr text names), the
 * attestation key in it, its registers and its quotes.
 *
 * Every call blocks until the TPM has answered, with SIGTERM, SIGINT and SIGHUP held back: a command
 * that is interrupted could leave a key or a session in one of the TPM's few slots. Nothing transient
 * is left when a call returns, whether it succeeded or not. A quote uses the persistent key with its
 * empty authorization, so it takes no slot at all.
 *
 * Errors name the cause and what to do about it. ERR_NOT_FOUND: no TPM, or no key at the handle;
 * ERR_CONFLICT: another key is at the handle; ERR_DENIED: an authorization or the lockout;
 * ERR_TRANSIENT: the TPM did not answer or is in use.
 */
#ifndef TEC_ATTEST_ESYS_H
#define TEC_ATTEST_ESYS_H

#include <stdint.h>

#include "tec/base/err.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/pki/spki.h"
#include "tec/tpm/quote.h"

#define ATTEST_TCTI      "device:/dev/tpmrm0"
#define ATTEST_AK_HANDLE 0x81010002u

struct attest_esys;
/* tcti: "device:/dev/tpmrm0", "swtpm:path=/run/sock"... */
struct attest_esys *attest_esys_open(const char *tcti, struct err *err) MUST_CHECK;
void attest_esys_free(struct attest_esys *e); /* NULL is fine */
DEFINE_CLEANUP(attest_esys_cleanup_, struct attest_esys *, attest_esys_free)
#define cleanup_esys __attribute__((cleanup(attest_esys_cleanup_)))

/* The attestation key at this persistent handle. */
int attest_esys_ak(
	struct attest_esys *e, uint32_t handle, struct pki_spki *out, struct err *err) MUST_CHECK;
/* The same; made under the endorsement key when the handle is free. */
int attest_esys_ak_make(
	struct attest_esys *e, uint32_t handle, struct pki_spki *out, struct err *err) MUST_CHECK;

int attest_esys_pcrs(
	struct attest_esys *e, uint8_t out[TPM_PCR_COUNT][SHA256_LEN], struct err *err) MUST_CHECK;
/* Extends a register's SHA-256 bank with this digest. */
int attest_esys_extend(struct attest_esys *e, unsigned pcr, const uint8_t digest[SHA256_LEN],
	struct err *err) MUST_CHECK;
/* PCR 8 as the verifier of this init-data expects it (rats/initdata.h): extended once, unless it was.
 * ERR_CONFLICT: it holds something else. */
int attest_esys_bind(struct attest_esys *e, const char *toml, struct err *err) MUST_CHECK;
/*
 * The key's quote of all registers over `extra`, appended as the JSON object `primary_evidence`
 * (rats/evidence.h). Registers that change meanwhile are quoted again.
 */
int attest_esys_quote(struct attest_esys *e, uint32_t handle, const uint8_t extra[SHA256_LEN],
	struct strbuf *evidence, struct err *err) MUST_CHECK;
/* Manufacturer and firmware version as text: "IBM, firmware 8217.4131". */
int attest_esys_about(struct attest_esys *e, char *out, size_t out_len, struct err *err) MUST_CHECK;

#endif
