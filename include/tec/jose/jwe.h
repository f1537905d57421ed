/* SPDX-License-Identifier: MIT */
/*
 * JWE, encrypting and opening.
 *
 * Flattened JWE (RFC 7516 section 7.2.2) to a public JWK (RFC 7517), as Trustee sends each
 * resource: the content is always A256GCM, and its key is wrapped with ECDH-ES+A256KW for EC keys
 * on P-256 or P-521, or RSA-OAEP-256 or RSA1_5 for RSA keys (RFC 7518). Everything else is refused,
 * including P-384 and RSA-OAEP with SHA-1. Nothing is opened with an RSA key here: RSA1_5 is weak only
 * where it is decrypted.
 *
 * Clients compute the additional authenticated data from a protected header that they encode again,
 * so its bytes are part of the format: alg, enc, then epk with crv, kty, x, y, without white space.
 */
#ifndef TEC_JOSE_JWE_H
#define TEC_JOSE_JWE_H

#include <json-c/json_types.h>
#include <stddef.h>

#include "tec/base/body.h"
#include "tec/base/err.h"
#include "tec/base/mem.h"
#include "tec/base/secret.h"
#include "tec/base/str.h"
#include "tec/pki/key.h"

#define JWE_MAX_LEN (8u << 20) /* of a JWE to open */

struct jwe_key;
/* ERR_INVALID: not a usable encryption key: a point that is not on its curve, coordinates of
 * another length, RSA below 2048 or above 4096 bits, or an exponent that is even or below 3. */
struct jwe_key *jwe_key_new(const struct pki_jwk *k, struct err *err) MUST_CHECK;
void jwe_key_free(struct jwe_key *k); /* NULL is fine */

/* Append {"protected","encrypted_key","iv","ciphertext","tag"}. ERR_BUG: OpenSSL refused. */
int jwe_encrypt(const struct jwe_key *k, const void *plain, size_t len, struct strbuf *out,
	struct err *err) MUST_CHECK;

/* The receiving end: a P-256 key pair that resources are encrypted to. */
struct jwe_own;
struct jwe_own *jwe_own_new(void);
void jwe_own_free(struct jwe_own *k);                              /* NULL is fine */
void jwe_own_public(const struct jwe_own *k, struct pki_jwk *out); /* borrowed from k */
struct secret *jwe_own_pem(const struct jwe_own *k); /* its private half; the caller frees */
DEFINE_CLEANUP(jwe_own_cleanup_, struct jwe_own *, jwe_own_free)
#define cleanup_jwe_own __attribute__((cleanup(jwe_own_cleanup_)))

/* Open what jwe_encrypt() made for this key and append it to out. ERR_INVALID: not such a JWE;
 * ERR_DENIED: changed, or encrypted to another key. */
int jwe_open(const struct jwe_own *k, const char *text, size_t len, struct body *out,
	struct err *err) MUST_CHECK;

/* A compact JWE (RFC 7516 section 7.1) with a content key that both sides have: alg "dir", enc
 * "A256GCM", a key of 32 bytes. header: the protected header as JSON, including alg and enc. */
int jwe_dir_seal(const struct secret *key, const char *header, const void *plain, size_t len,
	struct strbuf *out, struct err *err) MUST_CHECK;
/* The protected header; the caller puts it. Nothing is authenticated yet. */
struct json_object *jwe_dir_header(const char *text, size_t len, struct err *err) MUST_CHECK;
/* ERR_DENIED: changed, or encrypted with another key. */
int jwe_dir_open(const struct secret *key, const char *text, size_t len, struct body *out,
	struct err *err) MUST_CHECK;

#endif
