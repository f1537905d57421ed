/* SPDX-License-Identifier: MIT */
/*
 * Compact JWS with ES256 (RFC 7518 section 3.4) by one fixed P-256 key: attestation tokens. The
 * header carries the public key as `jwk`, as clients of Trustee expect, but it is never used to
 * verify: a verifier uses the one key it has. Pure bytes; the caller reads and writes the claims.
 * Fails with ERR_INVALID (not such a token) or ERR_DENIED (signed by another key).
 */
#ifndef TEC_JOSE_ES256_H
#define TEC_JOSE_ES256_H

#include <stddef.h>

#include "tec/base/err.h"
#include "tec/base/secret.h"
#include "tec/pki/key.h"

#define ES256_MAX_LEN 65536 /* of a token, for verifying */

/* The last byte of the token is a NUL, which secret_len counts. key: P-256. */
struct secret *es256_sign(
	const struct pki_key *key, const char *payload, size_t len, struct err *err) MUST_CHECK;
/* payload: followed by a NUL that payload_len does not count; the caller frees. */
int es256_verify(const struct pki_key *key, const char *token, size_t token_len, char **payload,
	size_t *payload_len, struct err *err) MUST_CHECK;

#endif
