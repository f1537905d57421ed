/* SPDX-License-Identifier: MIT */
/*
 * A TPM2_Quote as a node sends it: a TPMS_ATTEST without a preceding size (TPM 2.0 Library, Part 2,
 * section 10.12.12) and a TPMT_SIGNATURE (11.3.4). Bytes in, values out; no TPM is accessed.
 *
 * Parsing is strict. Stock Trustee ignores the selection, so a node could quote resettable PCRs and
 * pass off digests of its choice as PCR 4 and 14. Here a quote must have exactly one selection, of
 * PCR 0 to 23 in the SHA-256 bank.
 */
#ifndef TEC_TPM_QUOTE_H
#define TEC_TPM_QUOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tec/base/bytes.h"
#include "tec/base/err.h"

#define TPM_PCR_COUNT      24
#define TPM_EXTRA_DATA_MAX 64

struct tpm_quote {
	uint8_t extra_data
		[TPM_EXTRA_DATA_MAX]; /* data that the caller of TPM2_Quote had signed as well */
	size_t extra_data_len;
	uint8_t pcr_digest[SHA256_LEN];
	uint32_t reset_count, restart_count;
};

/* ERR_INVALID describes the first problem in a sentence. */
int tpm_quote_parse(
	const uint8_t *attest, size_t len, struct tpm_quote *out, struct err *err) MUST_CHECK;
/* Check that the quote covers exactly these values. */
bool tpm_quote_covers(const struct tpm_quote *q, const uint8_t pcrs[TPM_PCR_COUNT][SHA256_LEN]);

/* Return the bytes of an RSASSA signature with SHA-256, borrowed from `sig`. ERR_INVALID: another
 * scheme or digest, or trailing data. */
int tpm_quote_signature(const uint8_t *sig, size_t len, const uint8_t **rsa, size_t *rsa_len,
	struct err *err) MUST_CHECK;

#endif
