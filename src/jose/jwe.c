/* SPDX-License-Identifier: MIT */
/* Keys are converted to OpenSSL objects first, and OpenSSL validates points and numbers. Every
 * intermediate secret of key wrapping is a struct secret. */
#include "config.h"

#include "tec/jose/jwe.h"

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/param_build.h>
#include <openssl/rsa.h>
#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/mem.h"
#include "tec/base/secret.h"

#include "jose_internal.h"

#define WRAPPED_LEN (JWE_CEK_LEN + 8) /* RFC 3394 */
#define COORD_MAX   66                /* P-521 */
#define RSA_MAX_LEN 512

static const struct jwe_curve curves[] = {{"P-256", "P-256", 32}, {"P-521", "P-521", 66}};

/* The error queue is cleared so that a later TLS session does not report our failure as its own. */
static int refuse(struct err *err, const char *text)
{
	ERR_clear_error();
	return err_set(err, ERR_INVALID, "%s", text);
}

/* OpenSSL refused checked input: report it as a bug, with the step that failed. */
static int failed(struct err *err, const char *what)
{
	ERR_clear_error();
	return err_set(err, ERR_BUG, "OpenSSL: %s failed", what);
}

/* ---- keys */

/* Build a public key and validate it: the node chose the numbers. */
static EVP_PKEY *from_params(const char *type, OSSL_PARAM *params)
{
	cleanup_pctx EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
	/* The quick check suffices: for EC it verifies that the point is on the curve. */
	cleanup_pctx EVP_PKEY_CTX *check = NULL;
	cleanup_pkey EVP_PKEY *key = NULL;

	if (!ctx || EVP_PKEY_fromdata_init(ctx) != 1 ||
		EVP_PKEY_fromdata(ctx, &key, EVP_PKEY_PUBLIC_KEY, params) != 1)
		return NULL;
	check = EVP_PKEY_CTX_new(key, NULL);
	if (!check || EVP_PKEY_public_check_quick(check) != 1)
		return NULL;
	return steal_ptr(&key);
}

/* Decode one coordinate of exactly len bytes into out (RFC 7518 section 6.2.1.2). */
static bool coordinate(const char *b64, size_t len, uint8_t *out)
{
	cleanup_free uint8_t *bytes = NULL;
	size_t n = 0;

	if (!b64 || bytes_from_b64url(b64, strlen(b64), &bytes, &n) < 0 || n != len)
		return false;
	memcpy(out, bytes, len);
	return true;
}

/* Build the point in its uncompressed form (SEC 1 section 2.3.3): 4, x, y. */
static EVP_PKEY *ec_key(const struct jwe_jwk *k, const struct jwe_curve *curve)
{
	uint8_t point[1 + 2 * COORD_MAX] = {4}; /* uncompressed */
	OSSL_PARAM params[3];

	if (!coordinate(k->x, curve->len, point + 1) ||
		!coordinate(k->y, curve->len, point + 1 + curve->len))
		return NULL;
	/* The parameters borrow point and name: they must live until from_params() returns. */
	params[0] = OSSL_PARAM_construct_utf8_string(
		OSSL_PKEY_PARAM_GROUP_NAME, (char *)curve->group, 0);
	params[1] = OSSL_PARAM_construct_octet_string(
		OSSL_PKEY_PARAM_PUB_KEY, point, 1 + 2 * curve->len);
	params[2] = OSSL_PARAM_construct_end();
	return from_params("EC", params);
}

/* Decode a Base64urlUInt; leading zero bytes are refused (RFC 7518 section 2). */
static BIGNUM *number(const char *b64)
{
	cleanup_free uint8_t *bytes = NULL;
	size_t n = 0;

	if (!b64 || bytes_from_b64url(b64, strlen(b64), &bytes, &n) < 0 || n == 0 ||
		n > RSA_MAX_LEN || bytes[0] == 0)
		return NULL;
	return BN_bin2bn(bytes, (int)n, NULL);
}

/* An exponent of at most 33 bits is the limit of Trustee's RSA library. */
static EVP_PKEY *rsa_key(const struct jwe_jwk *k)
{
	cleanup_bn BIGNUM *n = number(k->n), *e = number(k->e);
	OSSL_PARAM_BLD *bld = OSSL_PARAM_BLD_new();
	OSSL_PARAM *params = NULL;
	EVP_PKEY *key = NULL;

	/* The lower bound is that of RFC 7518 section 4.3. */
	if (n && e && bld && BN_num_bits(n) >= 2048 && BN_num_bits(e) <= 33 && BN_is_odd(e) &&
		!BN_is_one(e) && OSSL_PARAM_BLD_push_BN(bld, OSSL_PKEY_PARAM_RSA_N, n) &&
		OSSL_PARAM_BLD_push_BN(bld, OSSL_PKEY_PARAM_RSA_E, e))
		params = OSSL_PARAM_BLD_to_param(bld);
	if (params)
		key = from_params("RSA", params);
	OSSL_PARAM_free(params);
	OSSL_PARAM_BLD_free(bld);
	return key;
}

/* `alg` must match the key type: it decides how the content key is wrapped. */
struct jwe_key *jwe_key_new(const struct jwe_jwk *k, struct err *err)
{
	const struct jwe_curve *curve = NULL;
	EVP_PKEY *evp = NULL;
	struct jwe_key *key;

	/* Member names and values are those of RFC 7518 sections 4.1 and 6. */
	if (str_eq(k->kty, "EC") && str_eq(k->alg, JWE_ALG_EC)) {
		for (size_t i = 0; i < ARRAY_LEN(curves); i++)
			if (str_eq(k->crv, curves[i].name))
				curve = &curves[i];
		evp = curve ? ec_key(k, curve) : NULL;
	} else if (str_eq(k->kty, "RSA") && str_eq(k->alg, JWE_ALG_RSA)) {
		evp = rsa_key(k);
	} else {
		refuse(err, "The key must be an EC key with " JWE_ALG_EC
			    " or an RSA key with " JWE_ALG_RSA ".");
		return NULL;
	}
	if (!evp) {
		refuse(err,
			curve ? "The coordinates are not a point on the curve."
			: str_eq(k->kty, "EC")
				? "The curve must be P-256 or P-521."
				: "The RSA key must have 2048 to 4096 bits and an odd exponent above 1.");
		return NULL;
	}
	key = xcalloc(1, sizeof(*key));
	key->evp = evp;
	key->curve = curve;
	return key;
}

void jwe_key_free(struct jwe_key *k)
{
	if (!k)
		return;
	EVP_PKEY_free(k->evp);
	free(k);
}

/* ---- wrapping the content encryption key */

/* OtherInfo is AlgorithmID (length and text), empty PartyUInfo and PartyVInfo, and the key
 * length of 256 bits. `before` is the round counter. */
void jwe_derive(const struct secret *z, uint8_t kek[JWE_CEK_LEN])
{
	static const uint8_t before[] = {0, 0, 0, 1}, id_len[] = {0, 0, 0, sizeof(JWE_ALG_EC) - 1},
			     after[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0};
	cleanup_sha256 struct bytes_sha256_run run;

	/* Concat KDF round: counter, Z, OtherInfo (NIST SP 800-56A section 5.8.1). */
	bytes_sha256_init(&run);
	bytes_sha256_add(&run, before, sizeof(before));
	bytes_sha256_add(&run, secret_peek(z), secret_len(z));
	bytes_sha256_add(&run, id_len, sizeof(id_len));
	bytes_sha256_add(&run, JWE_ALG_EC, sizeof(JWE_ALG_EC) - 1);
	bytes_sha256_add(&run, after, sizeof(after));
	bytes_sha256_end(&run, kek);
}

/* The result is the x coordinate, padded to the length of the field (RFC 7518 section 4.6.2). */
struct secret *jwe_agree(EVP_PKEY *mine, EVP_PKEY *theirs, size_t len)
{
	cleanup_pctx EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new(mine, NULL);
	cleanup_secret struct secret *z = secret_new(len);
	size_t n = len;

	if (!ctx || EVP_PKEY_derive_init(ctx) != 1 || EVP_PKEY_derive_set_peer(ctx, theirs) != 1 ||
		EVP_PKEY_derive(ctx, secret_bytes(z), &n) != 1 || n != len)
		return NULL;
	return steal_ptr(&z);
}

/* AES key wrap (RFC 3394). OpenSSL refuses wrap ciphers unless this flag is set. */
static bool key_wrap(const uint8_t *kek, const struct secret *cek, uint8_t out[WRAPPED_LEN])
{
	cleanup_cctx EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	int n = 0;

	if (!ctx)
		return false;
	EVP_CIPHER_CTX_set_flags(ctx, EVP_CIPHER_CTX_FLAG_WRAP_ALLOW);
	return EVP_EncryptInit_ex(ctx, EVP_aes_256_wrap(), NULL, kek, NULL) == 1 &&
	       EVP_EncryptUpdate(ctx, out, &n, secret_peek(cek), JWE_CEK_LEN) == 1 &&
	       n == WRAPPED_LEN;
}

/* Wrap cek for an EC key: append the header with our ephemeral public key (epk), and the wrapped
 * key. */
static int wrap_ec(const struct jwe_key *k, const struct secret *cek, struct strbuf *header,
	struct strbuf *wrapped, struct err *err)
{
	cleanup_pkey EVP_PKEY *mine = EVP_EC_gen(k->curve->group);
	cleanup_secret struct secret *z = mine ? jwe_agree(mine, k->evp, k->curve->len) : NULL;
	cleanup_secret struct secret *kek = secret_new(JWE_CEK_LEN);
	uint8_t point[1 + 2 * COORD_MAX], out[WRAPPED_LEN];
	size_t n = 0, len = k->curve->len;

	if (!z ||
		EVP_PKEY_get_octet_string_param(
			mine, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof(point), &n) != 1 ||
		n != 1 + 2 * len)
		return failed(err, "ECDH");
	/* A fresh key pair per JWE, so the derived key wraps exactly one content key. */
	jwe_derive(z, secret_bytes(kek));
	if (!key_wrap(secret_peek(kek), cek, out))
		return failed(err, "AES key wrap");
	strbuf_addf(header,
		"{\"alg\":\"" JWE_ALG_EC
		"\",\"enc\":\"A256GCM\",\"epk\":{\"crv\":\"%s\",\"kty\":\"EC\",\"x\":\"",
		k->curve->name);
	bytes_to_b64url(header, point + 1, len);
	strbuf_adds(header, "\",\"y\":\"");
	bytes_to_b64url(header, point + 1 + len, len);
	strbuf_adds(header, "\"}}");
	bytes_to_b64url(wrapped, out, sizeof(out));
	return 0;
}

/* RSA-OAEP-256 uses SHA-256 for the OAEP digest and for MGF1 (RFC 7518 section 4.3). */
static int wrap_rsa(const struct jwe_key *k, const struct secret *cek, struct strbuf *header,
	struct strbuf *wrapped, struct err *err)
{
	cleanup_pctx EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new(k->evp, NULL);
	uint8_t out[RSA_MAX_LEN];
	size_t n = sizeof(out);

	if (!ctx || EVP_PKEY_encrypt_init(ctx) != 1 ||
		EVP_PKEY_CTX_set_rsa_padding(ctx, RSA_PKCS1_OAEP_PADDING) != 1 ||
		EVP_PKEY_CTX_set_rsa_oaep_md(ctx, EVP_sha256()) != 1 ||
		EVP_PKEY_CTX_set_rsa_mgf1_md(ctx, EVP_sha256()) != 1 ||
		EVP_PKEY_encrypt(ctx, out, &n, secret_peek(cek), JWE_CEK_LEN) != 1)
		return failed(err, "RSA-OAEP");
	strbuf_adds(header, "{\"alg\":\"" JWE_ALG_RSA "\",\"enc\":\"A256GCM\"}");
	bytes_to_b64url(wrapped, out, n);
	return 0;
}

/* ---- the content */

/* The IV is random: a content key encrypts once, or (alg dir) rarely enough for 96 random bits. */
bool jwe_seal_content(const struct secret *cek, const struct strbuf *head, const void *plain,
	size_t len, uint8_t iv[JWE_IV_LEN], uint8_t tag[JWE_TAG_LEN], uint8_t *text)
{
	cleanup_cctx EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	int n = 0, rest = 0;

	/* A repeated IV under one key would break GCM; 96 random bits are the recommended
	 * length. */
	bytes_random(iv, JWE_IV_LEN);
	return ctx && EVP_EncryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, secret_peek(cek), iv) == 1 &&
	       EVP_EncryptUpdate(ctx, NULL, &n, (const uint8_t *)head->data, (int)head->len) == 1 &&
	       EVP_EncryptUpdate(ctx, text, &n, plain, (int)len) == 1 &&
	       EVP_EncryptFinal_ex(ctx, text + n, &rest) == 1 && (size_t)(n + rest) == len &&
	       EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, JWE_TAG_LEN, tag) == 1;
}

/* Append `before`, then bytes in base64url; the caller closes the quotes. */
static void member(struct strbuf *out, const char *before, const void *bytes, size_t len)
{
	strbuf_adds(out, before);
	bytes_to_b64url(out, bytes, len);
}

/* The additional data is the encoded header, without the ".aad" part (RFC 7516 section 5.1 step
 * 14). */
int jwe_encrypt(
	const struct jwe_key *k, const void *plain, size_t len, struct strbuf *out, struct err *err)
{
	cleanup_strbuf struct strbuf header = STRBUF_INIT, wrapped = STRBUF_INIT, aad = STRBUF_INIT;
	cleanup_secret struct secret *cek = secret_new_random(JWE_CEK_LEN);
	uint8_t iv[JWE_IV_LEN], tag[JWE_TAG_LEN];
	cleanup_free uint8_t *text = NULL;
	int rc = k->curve ? wrap_ec(k, cek, &header, &wrapped, err)
			  : wrap_rsa(k, cek, &header, &wrapped, err);

	if (rc < 0)
		return -1;
	/* The encoded header is both the "protected" member and the additional data. */
	bytes_to_b64url(&aad, header.data, header.len);
	/* GCM keeps the length; one byte more for an empty text. */
	text = xmalloc(len + 1);
	if (jwe_seal_content(cek, &aad, plain, len, iv, tag, text)) {
		strbuf_addf(out, "{\"protected\":\"%s\",\"encrypted_key\":\"%s\"", strbuf_str(&aad),
			strbuf_str(&wrapped));
		member(out, ",\"iv\":\"", iv, sizeof(iv));
		member(out, "\",\"ciphertext\":\"", text, len);
		member(out, "\",\"tag\":\"", tag, sizeof(tag));
		strbuf_adds(out, "\"}");
	} else {
		rc = failed(err, "AES-GCM");
	}
	return rc;
}
