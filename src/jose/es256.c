/* SPDX-License-Identifier: MIT */
/* OpenSSL's ECDSA signatures are DER; JWS concatenates r and s, 32 bytes each. The header is
 * compared as text, because a given key always writes the same one. */
#include "config.h"

#include "tec/jose/es256.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/mem.h"
#include "tec/base/secret.h"

#define NUMBER_LEN 32
#define DER_MAX    80

/* Append the only header this key writes. Member order matters: es256_verify() compares the
 * bytes. */
static int add_header(struct strbuf *out, EVP_PKEY *evp, struct err *err)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	uint8_t point[1 + 2 * NUMBER_LEN];
	size_t n = 0;

	/* A struct pki_key is either P-256 or Ed25519. */
	if (!EVP_PKEY_is_a(evp, "EC") ||
		EVP_PKEY_get_octet_string_param(
			evp, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof(point), &n) != 1 ||
		n != sizeof(point) || point[0] != 4) {
		ERR_clear_error();
		return err_set(err, ERR_INVALID,
			"The signing key of attestation tokens must be a P-256 key.");
	}
	/* Not parsed again: es256_verify() compares these bytes. */
	strbuf_adds(&text,
		"{\"typ\":\"JWT\",\"alg\":\"ES256\",\"jwk\":{\"alg\":\"ES256\",\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"");
	bytes_to_b64url(&text, point + 1, NUMBER_LEN);
	strbuf_adds(&text, "\",\"y\":\"");
	bytes_to_b64url(&text, point + 1 + NUMBER_LEN, NUMBER_LEN);
	strbuf_adds(&text, "\"}}");
	bytes_to_b64url(out, text.data, text.len);
	return 0;
}

/* Sign and convert DER to r || s, each padded with zeros to 32 bytes (RFC 7518 section 3.4). */
static bool sign(EVP_PKEY *evp, const void *data, size_t len, uint8_t raw[2 * NUMBER_LEN])
{
	EVP_MD_CTX *md = EVP_MD_CTX_new();
	uint8_t der[DER_MAX];
	const uint8_t *p = der;
	size_t n = sizeof(der);
	ECDSA_SIG *sig = NULL;
	bool ok = md && EVP_DigestSignInit(md, NULL, EVP_sha256(), NULL, evp) == 1 &&
		  EVP_DigestSign(md, der, &n, data, len) == 1;

	/* DER drops leading zeros of r and s; padding restores the fixed length. */
	if (ok)
		sig = d2i_ECDSA_SIG(NULL, &p, (long)n);
	ok = sig && BN_bn2binpad(ECDSA_SIG_get0_r(sig), raw, NUMBER_LEN) == NUMBER_LEN &&
	     BN_bn2binpad(ECDSA_SIG_get0_s(sig), raw + NUMBER_LEN, NUMBER_LEN) == NUMBER_LEN;
	ECDSA_SIG_free(sig);
	EVP_MD_CTX_free(md);
	return ok;
}

/* A token grants access to resources, so its buffer is wiped when the scope ends. */
struct secret *es256_sign(
	const struct pki_key *key, const char *payload, size_t len, struct err *err)
{
	cleanup_wiped_strbuf struct strbuf token = STRBUF_INIT;
	uint8_t raw[2 * NUMBER_LEN];

	if (add_header(&token, pki_key_evp(key), err) < 0)
		return NULL;
	strbuf_addc(&token, '.');
	bytes_to_b64url(&token, payload, len);
	if (!sign(pki_key_evp(key), token.data, token.len, raw))
		DIE("cannot sign with ECDSA");
	strbuf_addc(&token, '.');
	bytes_to_b64url(&token, raw, sizeof(raw));
	/* With the NUL, so that the caller can use it as a string. */
	return secret_new_copy(token.data, token.len + 1);
}

/* Encode r || s as DER again for OpenSSL, and verify. */
static bool is_signed(EVP_PKEY *evp, const void *data, size_t len, const uint8_t *raw)
{
	EVP_MD_CTX *md = EVP_MD_CTX_new();
	ECDSA_SIG *sig = ECDSA_SIG_new();
	BIGNUM *r = BN_bin2bn(raw, NUMBER_LEN, NULL),
	       *s = BN_bin2bn(raw + NUMBER_LEN, NUMBER_LEN, NULL);
	unsigned char *der = NULL;
	int n = -1;
	bool ok;

	if (!md || !sig || !r || !s || ECDSA_SIG_set0(sig, r, s) != 1)
		DIE("out of memory: a signature");
	n = i2d_ECDSA_SIG(sig, &der);
	ok = n > 0 && EVP_DigestVerifyInit(md, NULL, EVP_sha256(), NULL, evp) == 1 &&
	     EVP_DigestVerify(md, der, (size_t)n, data, len) == 1;
	OPENSSL_free(der);
	ECDSA_SIG_free(sig);
	EVP_MD_CTX_free(md);
	ERR_clear_error();
	return ok;
}

/* The header is compared before the signature is checked, so `alg` and `jwk` of a foreign token
 * are never interpreted. */
int es256_verify(const struct pki_key *key, const char *token, size_t token_len, char **payload,
	size_t *payload_len, struct err *err)
{
	cleanup_strbuf struct strbuf header = STRBUF_INIT;
	cleanup_free uint8_t *raw = NULL;
	const char *first, *second, *end = token + token_len;
	uint8_t *bytes;
	size_t n = 0;

	*payload = NULL;
	*payload_len = 0;
	if (token_len == 0 || token_len > ES256_MAX_LEN)
		return err_set(err, ERR_INVALID, "The token is empty or too long.");
	first = memchr(token, '.', token_len);
	second = first ? memchr(first + 1, '.', (size_t)(end - first - 1)) : NULL;
	/* Everything before the second dot is signed, exactly as sent. */
	if (!second) /* a third dot is not base64url */
		return err_set(err, ERR_INVALID, "The token does not have three parts.");
	if (add_header(&header, pki_key_evp(key), err) < 0)
		return -1;
	/* A token of another broker has another key in its header. */
	if ((size_t)(first - token) != header.len || memcmp(token, header.data, header.len) != 0)
		return err_set(err, ERR_DENIED, "The token was not issued by this broker.");
	/* Non-canonical base64url is refused as well. */
	if (bytes_from_b64url(second + 1, (size_t)(end - second - 1), &raw, &n) < 0 ||
		n != 2 * NUMBER_LEN)
		return err_set(err, ERR_INVALID, "The token's signature is not 64 bytes.");
	if (!is_signed(pki_key_evp(key), token, (size_t)(second - token), raw))
		return err_set(err, ERR_DENIED, "The token's signature does not match the key.");
	if (bytes_from_b64url(first + 1, (size_t)(second - first - 1), &bytes, payload_len) < 0)
		return err_set(err, ERR_INVALID, "The token's payload is not base64url.");
	*payload = (char *)bytes;
	return 0;
}
