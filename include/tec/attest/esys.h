/* SPDX-License-Identifier: MIT */
/*
 * struct attest_esys: an open TPM 2.0 (tpm2-tss ESYS over the transport that a TctiLdr string
 * names), with its attestation key, PCRs and quotes.
 *
 * Every call blocks until the TPM has responded, with SIGTERM, SIGINT and SIGHUP blocked: an
 * interrupted command could leave a key or a session in one of the TPM's few slots. No call leaves
 * transient objects behind, whether it succeeds or fails. A quote uses the persistent key with its
 * empty authorization, so it needs no slot at all.
 *
 * Errors name the cause and the remedy. ERR_NOT_FOUND: no TPM, or no key at the handle;
 * ERR_CONFLICT: the handle holds a different key; ERR_DENIED: missing authorization, or lockout;
 * ERR_TRANSIENT: the TPM did not respond or is in use.
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

/* Read the attestation key at this persistent handle. */
int attest_esys_ak(
	struct attest_esys *e, uint32_t handle, struct pki_spki *out, struct err *err) MUST_CHECK;
/* The same, but create the key under the endorsement key if the handle is free. */
int attest_esys_ak_make(
	struct attest_esys *e, uint32_t handle, struct pki_spki *out, struct err *err) MUST_CHECK;

int attest_esys_pcrs(
	struct attest_esys *e, uint8_t out[TPM_PCR_COUNT][SHA256_LEN], struct err *err) MUST_CHECK;
/* Extend a PCR with this digest, in the SHA-256 bank only. */
int attest_esys_extend(struct attest_esys *e, unsigned pcr, const uint8_t digest[SHA256_LEN],
	struct err *err) MUST_CHECK;
/* Extend a PCR in every active bank, each with its own digest of the text. */
int attest_esys_event(
	struct attest_esys *e, unsigned pcr, const char *text, struct err *err) MUST_CHECK;
/* Bring PCR 8 to the value that a verifier expects for this init-data (rats/initdata.h): extend it
 * once, or leave it if that was done before. ERR_CONFLICT: it holds another value. */
int attest_esys_bind(struct attest_esys *e, const char *toml, struct err *err) MUST_CHECK;
/*
 * Quote all PCRs over `extra` and append the evidence as the JSON object `primary_evidence`
 * (rats/evidence.h). The quote is repeated if a PCR changes in the meantime.
 */
int attest_esys_quote(struct attest_esys *e, uint32_t handle, const uint8_t extra[SHA256_LEN],
	struct strbuf *evidence, struct err *err) MUST_CHECK;
/* Describe manufacturer and firmware version: "IBM, firmware 8217.4131". */
int attest_esys_about(struct attest_esys *e, char *out, size_t out_len, struct err *err) MUST_CHECK;

#endif
