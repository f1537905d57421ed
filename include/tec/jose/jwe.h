/* SPDX-License-Identifier: MIT */
/*
 * A flattened JWE (RFC 7516 section 7.2.2) to a public JWK (RFC 7517), as Trustee makes one of each
 * resource: content is always A256GCM, and the key to it is wrapped with ECDH-ES+A256KW for EC keys
 * of P-256 or P-521, or RSA-OAEP-256 for RSA keys (RFC 7518). Everything else is refused: P-384,
 * RSA1_5 and RSA-OAEP with SHA-1 among it.
 *
 * Clients compute the additional authenticated data from a protected header that they write again,
 * so its bytes are part of the format: alg, enc, then epk with crv, kty, x, y, without white space.
 */
#ifndef TEC_JOSE_JWE_H
#define TEC_JOSE_JWE_H

#include <stddef.h>

#include "tec/base/err.h"
#include "tec/base/str.h"

/* Members of a public JWK, as sent; NULL: absent. */
struct jwe_jwk {
	const char *kty, *crv, *alg, *x, *y, *n, *e;
};

struct jwe_key;
/* ERR_INVALID: not a key that can be encrypted to; a point that is not on its curve, coordinates of
 * another length, RSA below 2048 or above 4096 bits, with an exponent that is even or below 3. */
struct jwe_key *jwe_key_new(const struct jwe_jwk *k, struct err *err) MUST_CHECK;
void jwe_key_free(struct jwe_key *k); /* NULL is fine */

/* Appends {"protected","encrypted_key","iv","ciphertext","tag"}. ERR_BUG: OpenSSL refused. */
int jwe_encrypt(const struct jwe_key *k, const void *plain, size_t len, struct strbuf *out,
	struct err *err) MUST_CHECK;

#endif
