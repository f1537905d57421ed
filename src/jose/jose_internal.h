/* SPDX-License-Identifier: MIT */
/* Private to this folder: shared by encrypting (jwe.c) and opening (jwe_open.c) a JWE. */
#ifndef TEC_JOSE_INTERNAL_H
#define TEC_JOSE_INTERNAL_H

#include <openssl/bn.h>
#include <openssl/evp.h>

#include "tec/base/secret.h"
#include "tec/jose/jwe.h"

#define JWE_CEK_LEN 32
#define JWE_IV_LEN  12
#define JWE_TAG_LEN 16
#define JWE_ALG_EC  "ECDH-ES+A256KW"
#define JWE_ALG_RSA "RSA-OAEP-256"

struct jwe_curve {
	const char *name, *group;
	size_t len; /* of a coordinate */
};

struct jwe_key {
	EVP_PKEY *evp;                 /* owned */
	const struct jwe_curve *curve; /* NULL: RSA */
};

#define EVP_CLEANUP(name, type, release)                                                           \
	static inline void name(type **p)                                                          \
	{                                                                                          \
		release(*p);                                                                       \
	}
EVP_CLEANUP(pkey_cleanup_, EVP_PKEY, EVP_PKEY_free)
EVP_CLEANUP(pctx_cleanup_, EVP_PKEY_CTX, EVP_PKEY_CTX_free)
EVP_CLEANUP(cctx_cleanup_, EVP_CIPHER_CTX, EVP_CIPHER_CTX_free)
EVP_CLEANUP(bn_cleanup_, BIGNUM, BN_free)
#define cleanup_pkey __attribute__((cleanup(pkey_cleanup_)))
#define cleanup_pctx __attribute__((cleanup(pctx_cleanup_)))
#define cleanup_cctx __attribute__((cleanup(cctx_cleanup_)))
#define cleanup_bn   __attribute__((cleanup(bn_cleanup_)))

/* The ECDH shared secret of two keys on the same curve; NULL: OpenSSL refused. The caller frees. */
struct secret *jwe_agree(EVP_PKEY *mine, EVP_PKEY *theirs, size_t len);
/* Derive the key-wrapping key: Concat KDF (RFC 7518 section 4.6.2), one round, 256 bits, with
 * empty apu and apv. */
void jwe_derive(const struct secret *z, uint8_t kek[JWE_CEK_LEN]);

/* The parts of a JWE as they were sent: base64url, borrowed. */
struct jwe_parts {
	const char *head, *iv, *text, *tag;
	size_t head_len, iv_len, text_len, tag_len;
};
/* Decrypt A256GCM with the encoded header as additional data. ERR_DENIED: not made with this
 * key. */
int jwe_decrypt_parts(const struct secret *cek, const struct jwe_parts *p, struct body *out,
	struct err *err) MUST_CHECK;
/* Encrypt with A256GCM; head is the protected header in base64url, text has room for len bytes.
 * False: OpenSSL refused. */
bool jwe_seal_content(const struct secret *cek, const struct strbuf *head, const void *plain,
	size_t len, uint8_t iv[JWE_IV_LEN], uint8_t tag[JWE_TAG_LEN], uint8_t *text);

#endif
