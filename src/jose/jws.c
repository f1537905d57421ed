/* SPDX-License-Identifier: MIT */
/*
 * A token is header.payload.signature, each in base64url; the signature covers the first two as
 * they were sent, so nothing is encoded again. Refused before the signature is checked: an `alg`
 * other than EdDSA, `crit` (RFC 7515 section 4.1.11: no critical member is understood here),
 * duplicate names in the header, padding, and non-canonical base64url.
 */
#include "config.h"

#include "tec/jose/jws.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/secret.h"
#include "tec/base/str.h"

#define SIGNATURE_LEN 64 /* RFC 8032 */
#define PEM_MAX_LEN   4096

static const char header_text[] = "{\"typ\":\"JWT\",\"alg\":\"EdDSA\"}";

static inline void evp_cleanup_(EVP_PKEY **k)
{
	EVP_PKEY_free(*k);
}
#define cleanup_evp __attribute__((cleanup(evp_cleanup_)))

static inline void md_cleanup_(EVP_MD_CTX **c)
{
	EVP_MD_CTX_free(*c);
}
#define cleanup_md __attribute__((cleanup(md_cleanup_)))

static inline void bio_cleanup_(BIO **b)
{
	BIO_free_all(*b);
}
#define cleanup_bio __attribute__((cleanup(bio_cleanup_)))

/* The token is a bearer credential for Trustee's admin API, so its buffer is wiped. */
struct secret *jws_sign_eddsa(
	const struct pki_key *key, const char *payload, size_t len, struct err *err)
{
	cleanup_wiped_strbuf struct strbuf token = STRBUF_INIT;
	cleanup_md EVP_MD_CTX *md = EVP_MD_CTX_new();
	EVP_PKEY *evp = pki_key_evp(key);
	uint8_t sig[SIGNATURE_LEN];
	size_t sig_len = sizeof(sig);

	if (!md)
		DIE("out of memory: a signature");
	if (!EVP_PKEY_is_a(evp, "ED25519")) {
		err_set(err, ERR_INVALID, "The signing key of a token must be an Ed25519 key.");
		return NULL;
	}
	bytes_to_b64url(&token, header_text, sizeof(header_text) - 1);
	strbuf_addc(&token, '.');
	bytes_to_b64url(&token, payload, len);
	if (EVP_DigestSignInit(md, NULL, NULL, NULL, evp) != 1 ||
		EVP_DigestSign(md, sig, &sig_len, (const uint8_t *)token.data, token.len) != 1)
		DIE("cannot sign with Ed25519");
	strbuf_addc(&token, '.');
	bytes_to_b64url(&token, sig, sig_len);
	return secret_new_copy(token.data, token.len + 1);
}

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
	cleanup_evp EVP_PKEY *evp = NULL;
	struct jws_public *k;
	char c;

	if (len == 0 || len > PEM_MAX_LEN) {
		err_set(err, ERR_INVALID, "The public key is empty or too long.");
		return NULL;
	}
	bio = BIO_new_mem_buf(pem, (int)len);
	if (!bio)
		DIE("out of memory: a BIO");
	ERR_set_mark();
	evp = PEM_read_bio_PUBKEY(bio, NULL, NULL, NULL);
	ERR_pop_to_mark();
	if (!evp || !EVP_PKEY_is_a(evp, "ED25519")) {
		err_set(err, ERR_INVALID, "The public key is not an Ed25519 key in PEM.");
		return NULL;
	}
	while (BIO_read(bio, &c, 1) == 1) {
		if (c != ' ' && c != '\t' && c != '\r' && c != '\n') {
			err_set(err, ERR_INVALID, "Trailing data after the public key.");
			return NULL;
		}
	}
	k = xcalloc(1, sizeof(*k));
	k->evp = steal_ptr(&evp);
	return k;
}

/* `alg` is compared with the only accepted value, never used to choose an algorithm (RFC 8725
 * section 3.1). */
static int check_header(const char *b64, size_t len, struct err *err)
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
	if (!header || !json_object_is_type(header, json_type_object))
		return err_set(err, ERR_INVALID, "The token's header is not a JSON object.");
	if (!str_eq(json_get_str(header, "alg"), "EdDSA"))
		return err_set(err, ERR_INVALID, "The token's algorithm must be EdDSA.");
	if (json_object_object_get_ex(header, "crit", NULL))
		return err_set(err, ERR_INVALID,
			"The token's header has critical members, which are not supported.");
	return 0;
}

/* A signature of another length is malformed (ERR_INVALID), not a forgery (ERR_DENIED). */
static int check_signature(EVP_PKEY *evp, const char *signed_text, size_t signed_len,
	const char *b64, size_t len, struct err *err)
{
	cleanup_md EVP_MD_CTX *md = EVP_MD_CTX_new();
	cleanup_free uint8_t *sig = NULL;
	size_t sig_len;
	bool good;

	if (!md)
		DIE("out of memory: a signature");
	if (bytes_from_b64url(b64, len, &sig, &sig_len) < 0 || sig_len != SIGNATURE_LEN)
		return err_set(err, ERR_INVALID, "The token's signature is not 64 bytes.");
	ERR_set_mark();
	good = EVP_DigestVerifyInit(md, NULL, NULL, NULL, evp) == 1 &&
	       EVP_DigestVerify(md, sig, sig_len, (const uint8_t *)signed_text, signed_len) == 1;
	ERR_pop_to_mark();
	if (!good)
		return err_set(err, ERR_DENIED, "The token's signature does not match the key.");
	return 0;
}

/* The payload is decoded only after the signature is verified. */
int jws_verify_eddsa(const struct jws_public *key, const char *token, size_t token_len,
	char **payload, size_t *payload_len, struct err *err)
{
	const char *first, *second, *end = token + token_len;
	uint8_t *bytes;

	*payload = NULL;
	*payload_len = 0;
	if (token_len == 0 || token_len > JWS_MAX_LEN)
		return err_set(err, ERR_INVALID, "The token is empty or too long.");
	first = memchr(token, '.', token_len);
	second = first ? memchr(first + 1, '.', (size_t)(end - first - 1)) : NULL;
	if (!second) /* a third dot is not base64url */
		return err_set(err, ERR_INVALID, "The token does not have three parts.");
	/* The signature covers header.payload as sent, including the dot. */
	if (check_header(token, (size_t)(first - token), err) < 0 ||
		check_signature(key->evp, token, (size_t)(second - token), second + 1,
			(size_t)(end - second - 1), err) < 0)
		return -1;
	if (bytes_from_b64url(first + 1, (size_t)(second - first - 1), &bytes, payload_len) < 0)
		return err_set(err, ERR_INVALID, "The token's payload is not base64url.");
	*payload = (char *)bytes;
	return 0;
}
