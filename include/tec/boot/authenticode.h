/* SPDX-License-Identifier: MIT */
/*
 * Authenticode: the digest of a PE image, and what its signatures (PKCS#7 SignedData with
 * SpcIndirectDataContent) say of themselves. Whether they are good, pki/pkcs7 tells. Bytes in,
 * digests and views out; ERR_INVALID names what is wrong.
 */
#ifndef TEC_BOOT_AUTHENTICODE_H
#define TEC_BOOT_AUTHENTICODE_H

#include "tec/base/bytes.h"
#include "tec/boot/pe.h"

#define AUTHENTICODE_STEP ((size_t)128 * 1024)
/*
 * len bytes of the image, AUTHENTICODE_STEP at most, from offset `from` on; valid until the next
 * call. NULL: err is set, and it was the last call. For an image that is better read than mapped;
 * where a NULL source is passed the bytes are pe->data.
 */
typedef const uint8_t *(*authenticode_source_fn)(
	void *arg, size_t from, size_t len, struct err *err);
/* What firmware measures into PCR 4 (as_measured, below). */
int authenticode_sha256(const struct pe *pe, authenticode_source_fn source, void *arg,
	uint8_t out[SHA256_LEN], struct err *err) MUST_CHECK;
/*
 * Both digests in one reading. Signers fill an unsigned file up with zeros to a multiple of 8,
 * firmware does not (EDK2 Tcg2Dxe; seen with OVMF 2022.11 and Debian's systemd-boot of 140,891
 * bytes, Secure Boot off). Of a signed file they are the same.
 */
struct authenticode_digests {
	uint8_t as_signed[SHA256_LEN], as_measured[SHA256_LEN];
};
int authenticode_digest(const struct pe *pe, authenticode_source_fn source, void *arg,
	struct authenticode_digests *out, struct err *err) MUST_CHECK;

#define AUTHENTICODE_CERTS_MAX 16
/* One embedded certificate: DER Names as they stand there. Borrowed from the signature's bytes. */
struct authenticode_cert {
	const uint8_t *der, *subject, *issuer;
	size_t der_len, subject_len, issuer_len;
};
struct authenticode_sig {
	bool has_sha256; /* digest algorithm of the DigestInfo is SHA-256 */
	uint8_t digest[SHA256_LEN];
	const uint8_t *content; /* what was signed: the value of the SpcIndirectDataContent */
	size_t content_len;
	size_t n_certs;
	struct authenticode_cert cert[AUTHENTICODE_CERTS_MAX];
};
int authenticode_read(
	const uint8_t *pkcs7, size_t len, struct authenticode_sig *out, struct err *err) MUST_CHECK;
/* Subject and issuer of one DER certificate; only zeros may follow it. */
int authenticode_cert_read(
	const uint8_t *der, size_t len, struct authenticode_cert *out, struct err *err) MUST_CHECK;
/*
 * The image's signatures agree with its bytes: every SHA-256 DigestInfo equals `digest`
 * (as_signed). 0, or -1 with ERR_INVALID; *n_signatures says how many there are (0: unsigned, no
 * error here).
 */
int authenticode_check(const struct pe *pe, const uint8_t digest[SHA256_LEN], size_t *n_signatures,
	struct err *err) MUST_CHECK;

#endif
