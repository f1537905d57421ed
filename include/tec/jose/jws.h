/* SPDX-License-Identifier: MIT */
/*
 * Compact JWS (RFC 7515) with two algorithms, each by keys of its own: a token's own `alg` is only
 * checked. EdDSA over Ed25519 (RFC 8037) is for Trustee's admin API. ES256 (RFC 7518 section 3.4)
 * by one fixed P-256 key is for attestation tokens; the header carries the public key as `jwk`, as
 * clients of Trustee expect, but it is never used to verify.
 *
 * Pure bytes: the caller handles claims and times, both ways. A signed token is a credential and
 * therefore a struct secret. Fails with ERR_INVALID (malformed token or key) or ERR_DENIED (the
 * signature does not match).
 */
#ifndef TEC_JOSE_JWS_H
#define TEC_JOSE_JWS_H

#include <stddef.h>

#include "tec/base/err.h"
#include "tec/base/secret.h"
#include "tec/pki/key.h"

#define JWS_MAX_LEN       16384 /* of a token, for verifying */
#define JWS_ES256_MAX_LEN 65536

/* payload: the claims as JSON text. The caller frees; the last byte of the token is a NUL, which
 * secret_len counts. Fails if the key is of another type. */
struct secret *jws_sign_eddsa(
	const struct pki_key *key, const char *payload, size_t len, struct err *err) MUST_CHECK;
struct secret *jws_sign_es256(
	const struct pki_key *key, const char *payload, size_t len, struct err *err) MUST_CHECK;

/* A key to verify with. Parsing one takes longer than verifying a token, so parse it once. */
struct jws_public;
/* pem: one Ed25519 SPKI ("PUBLIC KEY") without trailing data. */
struct jws_public *jws_public_from_pem(const char *pem, size_t len, struct err *err) MUST_CHECK;
void jws_public_free(struct jws_public *k);
DEFINE_CLEANUP(jws_public_cleanup_, struct jws_public *, jws_public_free)
#define cleanup_jws_public __attribute__((cleanup(jws_public_cleanup_)))

/* payload: the bytes that were signed, not parsed, followed by a NUL that payload_len does not
 * count; the caller frees. */
int jws_verify_eddsa(const struct jws_public *key, const char *token, size_t token_len,
	char **payload, size_t *payload_len, struct err *err) MUST_CHECK;
int jws_verify_es256(const struct pki_key *key, const char *token, size_t token_len, char **payload,
	size_t *payload_len, struct err *err) MUST_CHECK;

#endif
