/* SPDX-License-Identifier: MIT */
/*
 * Authenticode: the digest of a PE image, and the contents of its signatures (PKCS#7 SignedData
 * with SpcIndirectDataContent). pki/pkcs7 verifies them. Bytes in, digests and views out;
 * ERR_INVALID names the problem.
 */
#ifndef TEC_MEASURE_AUTHENTICODE_H
#define TEC_MEASURE_AUTHENTICODE_H

#include "tec/base/bytes.h"
#include "tec/measure/pe.h"

#define AUTHENTICODE_STEP ((size_t)128 * 1024)
/*
 * Return len bytes of the image at offset `from`, at most AUTHENTICODE_STEP; valid until the next
 * call. After NULL (err is set) it is not called again. A source serves images that should be read
 * rather than mapped; with a NULL source the bytes come from pe->data.
 */
typedef const uint8_t *(*authenticode_source_fn)(
	void *arg, size_t from, size_t len, struct err *err);
/* Add the bytes from (included) to (excluded) of an image to a digest. */
int authenticode_add(struct bytes_sha256_run *run, const uint8_t *data,
	authenticode_source_fn source, void *arg, size_t from, size_t to,
	struct err *err) MUST_CHECK;
/*
 * What signatures cover, and what firmware measures into PCR 4, in one pass. Signers pad an unsigned file with zeros to a multiple of 8, but
 * firmware does not (EDK2 Tcg2Dxe; observed with OVMF 2022.11 and Debian's systemd-boot of 140,891
 * bytes, Secure Boot off). For a signed file both are equal.
 */
struct authenticode_digests {
	uint8_t as_signed[SHA256_LEN], as_measured[SHA256_LEN];
};
int authenticode_digest(const struct pe *pe, authenticode_source_fn source, void *arg,
	struct authenticode_digests *out, struct err *err) MUST_CHECK;

#define AUTHENTICODE_CERTS_MAX 16
/* An embedded certificate and its DER Names. Borrowed from the bytes of the signature. */
struct authenticode_cert {
	const uint8_t *der, *subject, *issuer;
	size_t der_len, subject_len, issuer_len;
};
struct authenticode_sig {
	bool has_sha256; /* digest algorithm of the DigestInfo is SHA-256 */
	uint8_t digest[SHA256_LEN];
	const uint8_t *content; /* the signed bytes: the value of SpcIndirectDataContent */
	size_t content_len;
	size_t n_certs;
	struct authenticode_cert cert[AUTHENTICODE_CERTS_MAX];
};
int authenticode_read(
	const uint8_t *pkcs7, size_t len, struct authenticode_sig *out, struct err *err) MUST_CHECK;
/* Read subject and issuer of a DER certificate; only zeros may follow it. */
int authenticode_cert_read(
	const uint8_t *der, size_t len, struct authenticode_cert *out, struct err *err) MUST_CHECK;
/*
 * Check that the signatures match the image: every SHA-256 DigestInfo must equal `digest`
 * (as_signed). ERR_INVALID: one does not. *n_signatures: how many there are; an unsigned file (0)
 * is accepted here.
 */
int authenticode_check(const struct pe *pe, const uint8_t digest[SHA256_LEN], size_t *n_signatures,
	struct err *err) MUST_CHECK;

#endif
