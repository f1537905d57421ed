/* SPDX-License-Identifier: MIT */
/*
 * Compact JWS (RFC 7515) with EdDSA over Ed25519 (RFC 8037), and no other algorithm: what a token
 * says about its own is only checked. Pure bytes: claims and times are the caller's business, both
 * ways. A signed token is a credential and therefore a struct secret. Fails with ERR_INVALID (a
 * token or key that is none) or ERR_DENIED (a signature that does not fit).
 */
#ifndef TEC_JOSE_JWS_H
#define TEC_JOSE_JWS_H

#include <stddef.h>

#include "tec/base/err.h"
#include "tec/base/secret.h"
#include "tec/pki/key.h"

#define JWS_MAX_LEN 16384 /* of a token, for verifying */

/* payload: the claims as JSON text. The caller frees; the token's last byte is a NUL, which
 * secret_len counts. Fails when the key is not an Ed25519 key. */
struct secret *jws_sign_eddsa(
	const struct pki_key *key, const char *payload, size_t len, struct err *err) MUST_CHECK;

/* A key to verify with. Reading one takes longer than verifying a token: it is read once. */
struct jws_public;
/* pem: one Ed25519 SPKI ("PUBLIC KEY"), nothing behind it. */
struct jws_public *jws_public_from_pem(const char *pem, size_t len, struct err *err) MUST_CHECK;
void jws_public_free(struct jws_public *k);
DEFINE_CLEANUP(jws_public_cleanup_, struct jws_public *, jws_public_free)
#define cleanup_jws_public __attribute__((cleanup(jws_public_cleanup_)))

/* payload: the claims' bytes as they were signed, NUL-terminated behind payload_len (no JSON was
 * parsed); the caller frees. */
int jws_verify_eddsa(const struct jws_public *key, const char *token, size_t token_len,
	char **payload, size_t *payload_len, struct err *err) MUST_CHECK;

#endif
