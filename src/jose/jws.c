/* SPDX-License-Identifier: MIT */
/*
 * A token is header.payload.signature, each in base64url; the signature covers the first two as
 * they were sent, so nothing is encoded again. EdDSA: refused before the signature is checked are an
 * `alg` other than EdDSA, `crit` (RFC 7515 section 4.1.11: no critical member is understood here),
 * duplicate names in the header, padding, and non-canonical base64url. ES256: the header is compared
 * as text, because a given key always writes the same one. OpenSSL's ECDSA signatures are DER; JWS
 * concatenates r and s, 32 bytes each.
 */
#include "config.h"

#include "tec/jose/jws.h"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/secret.h"
#include "tec/base/str.h"
#include "tec/pki/openssl.h"

#define SIGNATURE_LEN 64 /* RFC 8032, and RFC 7518 section 3.4 */
#define NUMBER_LEN    32
#define DER_MAX       80
#define PEM_MAX_LEN   4096

static const char eddsa_header[] = "{\"typ\":\"JWT\",\"alg\":\"EdDSA\"}";

/* ---- signing */

/* Append the only header that an ES256 key writes. Member order matters: verifying compares the
 * bytes and never parses them again. */
static int add_es256_header(struct strbuf *out, EVP_PKEY *evp, struct err *err)
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
	strbuf_adds(&text,
		"{\"typ\":\"JWT\",\"alg\":\"ES256\",\"jwk\":{\"alg\":\"ES256\",\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"");
	bytes_to_b64url(&text, point + 1, NUMBER_LEN);
	strbuf_adds(&text, "\",\"y\":\"");
	bytes_to_b64url(&text, point + 1 + NUMBER_LEN, NUMBER_LEN);
	strbuf_adds(&text, "\"}}");
	bytes_to_b64url(out, text.data, text.len);
	return 0;
}

/* Convert DER to r || s. DER drops leading zeros; padding restores the fixed length (RFC 7518
 * section 3.4). */
static bool from_der(const uint8_t *der, size_t len, uint8_t raw[SIGNATURE_LEN])
{
	cleanup_ecdsa ECDSA_SIG *sig = d2i_ECDSA_SIG(NULL, &der, (long)len);

	return sig && BN_bn2binpad(ECDSA_SIG_get0_r(sig), raw, NUMBER_LEN) == NUMBER_LEN &&
	       BN_bn2binpad(ECDSA_SIG_get0_s(sig), raw + NUMBER_LEN, NUMBER_LEN) == NUMBER_LEN;
}

/* Append payload and signature to the encoded header. The result has a NUL, so that the caller can use
 * it as a string. */
static struct secret *sign(EVP_PKEY *evp, struct strbuf *token, const char *payload, size_t len)
{
	bool ec = EVP_PKEY_is_a(evp, "EC");
	cleanup_md EVP_MD_CTX *md = EVP_MD_CTX_new();
	uint8_t made[DER_MAX], raw[SIGNATURE_LEN];
	size_t n = sizeof(made);

	strbuf_addc(token, '.');
	bytes_to_b64url(token, payload, len);
	if (!md || EVP_DigestSignInit(md, NULL, ec ? EVP_sha256() : NULL, NULL, evp) != 1 ||
		EVP_DigestSign(md, made, &n, (const uint8_t *)token->data, token->len) != 1 ||
		(ec && !from_der(made, n, raw)))
		DIE("cannot sign with %s", ec ? "ECDSA" : "Ed25519");
	strbuf_addc(token, '.');
	bytes_to_b64url(token, ec ? raw : made, SIGNATURE_LEN);
	return secret_new_copy(token->data, token->len + 1);
}

/* The token is a bearer credential for Trustee's admin API, so its buffer is wiped. */
struct secret *jws_sign_eddsa(
	const struct pki_key *key, const char *payload, size_t len, struct err *err)
{
	cleanup_wiped_strbuf struct strbuf token = STRBUF_INIT;

	if (!pki_key_is_ed25519(key))
		return err_null(
			err, ERR_INVALID, "The signing key of a token must be an Ed25519 key.");
	bytes_to_b64url(&token, eddsa_header, sizeof(eddsa_header) - 1);
	return sign(pki_key_evp(key), &token, payload, len);
}

/* A token grants access to resources, so its buffer is wiped when the scope ends. */
struct secret *jws_sign_es256(
	const struct pki_key *key, const char *payload, size_t len, struct err *err)
{
	cleanup_wiped_strbuf struct strbuf token = STRBUF_INIT;

	if (add_es256_header(&token, pki_key_evp(key), err) < 0)
		return NULL;
	return sign(pki_key_evp(key), &token, payload, len);
}

/* ---- verifying */

struct jws_public {
	EVP_PKEY *evp; /* owned */
};

void jws_public_free(struct jws_public *k)
{
	if (!k)
		return;
	EVP_PKEY_free(k->evp);
	free(k);
}

/* Trailing data is refused: a second key there would be ignored silently. */
struct jws_public *jws_public_from_pem(const char *pem, size_t len, struct err *err)
{
	cleanup_bio BIO *bio = NULL;
	cleanup_pkey EVP_PKEY *evp = NULL;
	struct jws_public *k;

	if (len == 0 || len > PEM_MAX_LEN)
		return err_null(err, ERR_INVALID, "The public key is empty or too long.");
	bio = BIO_new_mem_buf(pem, (int)len);
	if (!bio)
		DIE("out of memory: a BIO");
	ERR_set_mark();
	evp = PEM_read_bio_PUBKEY(bio, NULL, NULL, NULL);
	ERR_pop_to_mark();
	if (!evp || !EVP_PKEY_is_a(evp, "ED25519"))
		return err_null(err, ERR_INVALID, "The public key is not an Ed25519 key in PEM.");
	if (!pki_bio_ends(bio))
		return err_null(err, ERR_INVALID, "Trailing data after the public key.");
	k = xcalloc(1, sizeof(*k));
	k->evp = steal_ptr(&evp);
	return k;
}

/* `alg` is compared with the only accepted value, never used to choose an algorithm (RFC 8725
 * section 3.1). */
static int check_eddsa_header(const char *b64, size_t len, struct err *err)
{
	static const struct json_limits limits = {.bytes = 4096, .depth = 4, .tokens = 64};
	cleanup_free uint8_t *text = NULL;
	cleanup_json struct json_object *header = NULL;
	struct err why = ERR_INIT;
	size_t text_len;

	if (len == 0 || bytes_from_b64url(b64, len, &text, &text_len) < 0)
		return err_set(err, ERR_INVALID, "The token's header is not base64url.");
	/* The parser refuses duplicate names, which two readers could resolve differently. */
	header = json_parse((const char *)text, text_len, &limits, &why);
	if (!json_object_is_type(header, json_type_object))
		return err_set(err, ERR_INVALID, "The token's header is not a JSON object.");
	if (!str_eq(json_get_str(header, "alg"), "EdDSA"))
		return err_set(err, ERR_INVALID, "The token's algorithm must be EdDSA.");
	if (json_object_object_get_ex(header, "crit", NULL))
		return err_set(err, ERR_INVALID,
			"The token's header has critical members, which are not supported.");
	return 0;
}

/* A token of another broker has another key in its header. The header is compared before the signature
 * is checked, so `alg` and `jwk` of a foreign token are never interpreted. */
static int check_es256_header(EVP_PKEY *evp, const char *b64, size_t len, struct err *err)
{
	cleanup_strbuf struct strbuf header = STRBUF_INIT;

	if (add_es256_header(&header, evp, err) < 0)
		return -1;
	if (len != header.len || memcmp(b64, header.data, len) != 0)
		return err_set(err, ERR_DENIED, "The token was not issued by this broker.");
	return 0;
}

/* r || s are encoded as DER again for OpenSSL. */
static bool is_signed(EVP_PKEY *evp, const char *data, size_t len, const uint8_t raw[SIGNATURE_LEN])
{
	cleanup_md EVP_MD_CTX *md = EVP_MD_CTX_new();
	cleanup_ecdsa ECDSA_SIG *sig = NULL;
	unsigned char *der = NULL;
	int n = SIGNATURE_LEN;
	bool ec = EVP_PKEY_is_a(evp, "EC"), ok;

	if (ec) {
		BIGNUM *r = BN_bin2bn(raw, NUMBER_LEN, NULL),
		       *s = BN_bin2bn(raw + NUMBER_LEN, NUMBER_LEN, NULL);

		sig = ECDSA_SIG_new();
		if (!sig || !r || !s || ECDSA_SIG_set0(sig, r, s) != 1)
			DIE("out of memory: a signature");
		n = i2d_ECDSA_SIG(sig, &der);
	}
	if (!md)
		DIE("out of memory: a signature");
	ERR_set_mark();
	ok = n > 0 && EVP_DigestVerifyInit(md, NULL, ec ? EVP_sha256() : NULL, NULL, evp) == 1 &&
	     EVP_DigestVerify(md, ec ? der : raw, (size_t)n, (const uint8_t *)data, len) == 1;
	ERR_pop_to_mark();
	OPENSSL_free(der);
	return ok;
}

/* Verify with one fixed algorithm, that of the key. A signature of another length is malformed
 * (ERR_INVALID), not a forgery (ERR_DENIED). The payload is decoded only after the signature is
 * verified. */
static int verify(EVP_PKEY *evp, bool es256, const char *token, size_t token_len, char **payload,
	size_t *payload_len, struct err *err)
{
	const char *first, *second, *end = token + token_len;
	cleanup_free uint8_t *sig = NULL;
	uint8_t *bytes;
	size_t n = 0;

	*payload = NULL;
	*payload_len = 0;
	if (token_len == 0 || token_len > (es256 ? JWS_ES256_MAX_LEN : JWS_MAX_LEN))
		return err_set(err, ERR_INVALID, "The token is empty or too long.");
	first = memchr(token, '.', token_len);
	second = first ? memchr(first + 1, '.', (size_t)(end - first - 1)) : NULL;
	if (!second) /* a third dot is not base64url */
		return err_set(err, ERR_INVALID, "The token does not have three parts.");
	if ((es256 ? check_es256_header(evp, token, (size_t)(first - token), err)
		   : check_eddsa_header(token, (size_t)(first - token), err)) < 0)
		return -1;
	if (bytes_from_b64url(second + 1, (size_t)(end - second - 1), &sig, &n) < 0 ||
		n != SIGNATURE_LEN)
		return err_set(err, ERR_INVALID, "The token's signature is not 64 bytes.");
	/* The signature covers header.payload as sent, including the dot. */
	if (!is_signed(evp, token, (size_t)(second - token), sig))
		return err_set(err, ERR_DENIED, "The token's signature does not match the key.");
	if (bytes_from_b64url(first + 1, (size_t)(second - first - 1), &bytes, payload_len) < 0)
		return err_set(err, ERR_INVALID, "The token's payload is not base64url.");
	*payload = (char *)bytes;
	return 0;
}

int jws_verify_eddsa(const struct jws_public *key, const char *token, size_t token_len,
	char **payload, size_t *payload_len, struct err *err)
{
	return verify(key->evp, false, token, token_len, payload, payload_len, err);
}

int jws_verify_es256(const struct pki_key *key, const char *token, size_t token_len, char **payload,
	size_t *payload_len, struct err *err)
{
	return verify(pki_key_evp(key), true, token, token_len, payload, payload_len, err);
}
