/* SPDX-License-Identifier: MIT */
/*
 * Public keys as SubjectPublicKeyInfo (RFC 5280 section 4.1.2.7, PEM by RFC 7468): the attestation
 * key that a node registers and sends with its evidence. Accepts exactly one "PUBLIC KEY" block
 * surrounded by nothing but white space, or DER without trailing bytes: rsaEncryption with NULL
 * parameters, 2048 to 4096 bits, exponent 65537 (Trustee's TPM verifier accepts no other).
 */
#ifndef TEC_PKI_SPKI_H
#define TEC_PKI_SPKI_H

#include <stddef.h>
#include <stdint.h>

#include "tec/base/bytes.h"
#include "tec/base/err.h"

#define PKI_SPKI_MAX_DER 800

struct pki_spki {
	uint8_t der[PKI_SPKI_MAX_DER];
	size_t der_len;
	unsigned bits;
	uint8_t sha256[SHA256_LEN]; /* of der */
};

/* ERR_INVALID with a message that may be sent to the client: it never quotes the input. */
int pki_spki_parse_pem(
	const char *pem, size_t len, struct pki_spki *out, struct err *err) MUST_CHECK;
int pki_spki_parse_der(
	const uint8_t *der, size_t len, struct pki_spki *out, struct err *err) MUST_CHECK;
/* Verify RSASSA-PKCS1-v1_5 with SHA-256 (RFC 8017 section 8.2) over the message. ERR_DENIED: the
 * signature was not made with this key. */
int pki_spki_verify(const struct pki_spki *k, const void *message, size_t len, const uint8_t *sig,
	size_t sig_len, struct err *err) MUST_CHECK;
/* Append the canonical PEM: 64 columns, \n, one trailing newline. */
void pki_spki_to_pem(const struct pki_spki *k, struct strbuf *out);

#endif
