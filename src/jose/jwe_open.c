/* SPDX-License-Identifier: MIT */
/*
 * Opens a JWE. The additional data is the protected header as it was sent, never a header encoded
 * again. The header may contain unknown members, but none listed as critical (RFC 7515 section
 * 4.1.11), and no compression.
 */
#include "config.h"

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <string.h>

#include "jose_internal.h"
#include "tec/base/bytes.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/pki/key.h"

#define COORD_LEN   32
#define WRAPPED_LEN (JWE_CEK_LEN + 8)

static const struct json_limits limits = {.bytes = JWE_MAX_LEN, .depth = 16, .tokens = 4096};

/* The key pair with its public half already encoded for requests. */
struct jwe_own {
	struct pki_key *key; /* owned */
	struct strbuf x, y;  /* base64url */
};

/* As in jwe.c: leave no entry in OpenSSL's error queue. */
static int refuse(struct err *err, const char *text)
{
	ERR_clear_error();
	return err_set(err, ERR_INVALID, "%s", text);
}

/* ---- the key to open with */

/* The coordinates are encoded once: the public key is part of every attestation. */
struct jwe_own *jwe_own_new(void)
{
	struct jwe_own *k = xcalloc(1, sizeof(*k));
	uint8_t point[1 + 2 * COORD_LEN];
	size_t n = 0;

	k->key = pki_key_new_p256();
	if (EVP_PKEY_get_octet_string_param(
		    pki_key_evp(k->key), OSSL_PKEY_PARAM_PUB_KEY, point, sizeof(point), &n) != 1 ||
		n != sizeof(point))
		DIE("a new P-256 key has no point");
	bytes_to_b64url(&k->x, point + 1, COORD_LEN);
	bytes_to_b64url(&k->y, point + 1 + COORD_LEN, COORD_LEN);
	return k;
}

void jwe_own_free(struct jwe_own *k)
{
	if (!k)
		return;
	pki_key_free(k->key);
	strbuf_fini(&k->x);
	strbuf_fini(&k->y);
	free(k);
}

void jwe_own_public(const struct jwe_own *k, struct jwe_jwk *out)
{
	*out = (struct jwe_jwk){.kty = "EC",
		.crv = "P-256",
		.alg = JWE_ALG_EC,
		.x = strbuf_str(&k->x),
		.y = strbuf_str(&k->y)};
}

/* For handing the key to another process: it must be able to open what was encrypted to it. */
struct secret *jwe_own_pem(const struct jwe_own *k)
{
	return pki_key_private_pem(k->key);
}

/* ---- the content */

/* Decode base64url of exactly `want` bytes. */
static bool decode(const char *text, size_t len, size_t want, uint8_t *out)
{
	cleanup_free uint8_t *bytes = NULL;
	size_t n = 0;

	if (bytes_from_b64url(text, len, &bytes, &n) < 0 || n != want)
		return false;
	memcpy(out, bytes, want);
	return true;
}

/* out is not authenticated until this returns true; the caller discards it otherwise. */
static bool decrypt(const struct secret *cek, const struct jwe_parts *p, const uint8_t *iv,
	uint8_t *tag, const uint8_t *text, size_t len, uint8_t *out)
{
	cleanup_cctx EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	int n = 0, rest = 0;

	return ctx && EVP_DecryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, secret_peek(cek), iv) == 1 &&
	       EVP_DecryptUpdate(ctx, NULL, &n, (const uint8_t *)p->head, (int)p->head_len) == 1 &&
	       EVP_DecryptUpdate(ctx, out, &n, text, (int)len) == 1 &&
	       EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, JWE_TAG_LEN, tag) == 1 &&
	       EVP_DecryptFinal_ex(ctx, out + n, &rest) == 1 && (size_t)(n + rest) == len;
}

/* The plain text is wiped on every path: it may be a disk key. */
int jwe_decrypt_parts(
	const struct secret *cek, const struct jwe_parts *p, struct body *out, struct err *err)
{
	uint8_t iv[JWE_IV_LEN], tag[JWE_TAG_LEN];
	cleanup_free uint8_t *text = NULL;
	uint8_t *plain;
	size_t len = 0;
	bool ok;

	if (!decode(p->iv, p->iv_len, sizeof(iv), iv) ||
		!decode(p->tag, p->tag_len, sizeof(tag), tag) ||
		bytes_from_b64url(p->text, p->text_len, &text, &len) < 0)
		return refuse(err, "iv, ciphertext or tag do not have the form of A256GCM.");
	plain = xmalloc(len + 1);
	/* plain holds unauthenticated bytes if this fails; they are wiped below. */
	ok = decrypt(cek, p, iv, tag, text, len, plain);
	if (ok)
		body_add(out, plain, len, len);
	secret_wipe(plain, len + 1);
	free(plain);
	if (ok)
		return 0;
	ERR_clear_error();
	return err_set(err, ERR_DENIED, "The JWE was changed or encrypted with another key.");
}

/* Parse the protected header. crit and zip are refused: ignoring either one would misread the
 * content. */
static struct json_object *read_header(const char *b64, size_t len, struct err *err)
{
	cleanup_free uint8_t *bytes = NULL;
	struct json_object *o;
	size_t n = 0;

	if (bytes_from_b64url(b64, len, &bytes, &n) < 0) {
		refuse(err, "The protected header is not base64url.");
		return NULL;
	}
	o = json_parse((const char *)bytes, n, &limits, err);
	if (!o) {
		err_wrap(err, "the protected header");
		return NULL;
	}
	if (json_object_is_type(o, json_type_object) && str_eq(json_get_str(o, "enc"), "A256GCM") &&
		!json_get(o, "crit") && !json_get(o, "zip"))
		return o;
	json_object_put(o);
	refuse(err, "The protected header lacks enc A256GCM, or has crit or zip.");
	return NULL;
}

/* ---- flattened, to our key */

/* Borrow a string member; false: absent. */
static bool take(struct json_object *o, const char *name, const char **text, size_t *len)
{
	*text = json_get_str(o, name);
	*len = *text ? strlen(*text) : 0;
	return *text != NULL;
}

/* OpenSSL checks the integrity value of RFC 3394: a wrong key fails here, not in the content. */
static bool key_unwrap(
	const struct secret *kek, const uint8_t wrapped[WRAPPED_LEN], struct secret *cek)
{
	cleanup_cctx EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	uint8_t out[WRAPPED_LEN];
	int n = 0;
	bool ok;

	if (!ctx)
		return false;
	EVP_CIPHER_CTX_set_flags(ctx, EVP_CIPHER_CTX_FLAG_WRAP_ALLOW);
	ok = EVP_DecryptInit_ex(ctx, EVP_aes_256_wrap(), NULL, secret_peek(kek), NULL) == 1 &&
	     EVP_DecryptUpdate(ctx, out, &n, wrapped, WRAPPED_LEN) == 1 && n == JWE_CEK_LEN;
	if (ok)
		memcpy(secret_bytes(cek), out, JWE_CEK_LEN);
	secret_wipe(out, sizeof(out));
	return ok;
}

/* Recover the content encryption key. apu and apv are refused, because jwe_derive() assumes them
 * empty. */
static int unwrap(const struct jwe_own *k, struct json_object *header, const uint8_t *wrapped,
	struct secret *cek, struct err *err)
{
	struct json_object *epk = json_get_obj(header, "epk");
	struct jwe_jwk jwk = {.kty = json_get_str(epk, "kty"),
		.crv = json_get_str(epk, "crv"),
		.alg = JWE_ALG_EC,
		.x = json_get_str(epk, "x"),
		.y = json_get_str(epk, "y")};
	cleanup_secret struct secret *z = NULL, *kek = secret_new(JWE_CEK_LEN);
	struct jwe_key *theirs;
	bool ok = false;

	/* The sender's ephemeral key must be on the curve of our key. */
	if (!str_eq(jwk.crv, "P-256") || json_get(header, "apu") || json_get(header, "apv"))
		return refuse(err, "epk is not a P-256 key, or the header has apu or apv.");
	/* Validates the point: an invalid one could reveal our private key (invalid-curve
	 * attack). */
	theirs = jwe_key_new(&jwk, err);
	if (!theirs)
		return err_wrap(err, "epk");
	z = jwe_agree(pki_key_evp(k->key), theirs->evp, COORD_LEN);
	jwe_key_free(theirs);
	if (z) {
		jwe_derive(z, secret_bytes(kek));
		ok = key_unwrap(kek, wrapped, cek);
	}
	if (ok)
		return 0;
	ERR_clear_error();
	return err_set(err, ERR_DENIED, "The JWE was not encrypted to this key.");
}

/* Parse the flattened JWE, unwrap the content key, then decrypt and authenticate the content. */
int jwe_open(
	const struct jwe_own *k, const char *text, size_t len, struct body *out, struct err *err)
{
	cleanup_json struct json_object *o = json_parse(text, len, &limits, err), *header = NULL;
	cleanup_secret struct secret *cek = secret_new(JWE_CEK_LEN);
	uint8_t wrapped[WRAPPED_LEN];
	struct jwe_parts p;
	const char *key;
	size_t key_len;

	if (!o)
		return -1;
	if (!take(o, "protected", &p.head, &p.head_len) || !take(o, "iv", &p.iv, &p.iv_len) ||
		!take(o, "ciphertext", &p.text, &p.text_len) ||
		!take(o, "tag", &p.tag, &p.tag_len) || !take(o, "encrypted_key", &key, &key_len) ||
		!decode(key, key_len, sizeof(wrapped), wrapped))
		return refuse(err,
			"Not a flattened JWE: protected, encrypted_key, iv, ciphertext and tag are required.");
	/* alg is checked after crit: a critical extension could change its meaning. */
	header = read_header(p.head, p.head_len, err);
	if (header && !str_eq(json_get_str(header, "alg"), JWE_ALG_EC))
		return refuse(err, "The alg is not " JWE_ALG_EC ".");
	if (!header || unwrap(k, header, wrapped, cek, err) < 0)
		return -1;
	return jwe_decrypt_parts(cek, &p, out, err);
}

/* ---- compact, with a shared key */

/* Split header.encrypted_key.iv.ciphertext.tag; alg dir requires an empty encrypted_key (RFC
 * 7518 section 4.5). */
static int split(const char *text, size_t len, struct jwe_parts *p, struct err *err)
{
	const char *part[5];
	size_t part_len[5], n = 0, start = 0;

	/* The loop runs once past the end, which terminates the fifth part. */
	for (size_t i = 0; i <= len; i++) {
		if (i < len && text[i] != '.')
			continue;
		if (n == 5)
			return refuse(err, "Not a compact JWE: it does not have five parts.");
		part[n] = text + start;
		part_len[n++] = i - start;
		start = i + 1;
	}
	if (n != 5 || len > JWE_MAX_LEN)
		return refuse(err, "Not a compact JWE: it does not have five parts.");
	if (part_len[1] != 0)
		return refuse(err, "The JWE has an encrypted key, which alg dir does not permit.");
	*p = (struct jwe_parts){part[0], part[2], part[3], part[4], part_len[0], part_len[2],
		part_len[3], part_len[4]};
	return 0;
}

/* Accept alg "dir", and "ECDH-ES" without epk: the library of the Rust clevis pin writes that
 * name but uses the key directly. */
static struct json_object *read_dir(const struct jwe_parts *p, struct err *err)
{
	struct json_object *o = read_header(p->head, p->head_len, err);
	const char *alg = json_get_str(o, "alg");

	if (!o || str_eq(alg, "dir") || (str_eq(alg, "ECDH-ES") && !json_get(o, "epk")))
		return o;
	json_object_put(o);
	refuse(err, "The alg is not dir.");
	return NULL;
}

struct json_object *jwe_dir_header(const char *text, size_t len, struct err *err)
{
	struct jwe_parts p;

	return split(text, len, &p, err) < 0 ? NULL : read_dir(&p, err);
}

/* A256GCM needs exactly 256 bits; another length is an error of the caller's configuration. */
static bool is_key(const struct secret *key, struct err *err)
{
	if (secret_len(key) == JWE_CEK_LEN)
		return true;
	err_set(err, ERR_INVALID, "The key is not 32 bytes long.");
	return false;
}

/* The header is authenticated as additional data, so it can be trusted after this succeeds. */
int jwe_dir_open(
	const struct secret *key, const char *text, size_t len, struct body *out, struct err *err)
{
	cleanup_json struct json_object *header = NULL;
	struct jwe_parts p;

	if (!is_key(key, err) || split(text, len, &p, err) < 0)
		return -1;
	header = read_dir(&p, err);
	return header ? jwe_decrypt_parts(key, &p, out, err) : -1;
}

/* encrypted_key is empty (RFC 7518 section 4.5), hence the two dots. */
int jwe_dir_seal(const struct secret *key, const char *header, const void *plain, size_t len,
	struct strbuf *out, struct err *err)
{
	cleanup_strbuf struct strbuf head = STRBUF_INIT;
	uint8_t iv[JWE_IV_LEN], tag[JWE_TAG_LEN];
	cleanup_free uint8_t *text = xmalloc(len + 1);

	if (!is_key(key, err))
		return -1;
	/* The caller's JSON is used as it is, which fixes the additional data. */
	bytes_to_b64url(&head, header, strlen(header));
	if (!jwe_seal_content(key, &head, plain, len, iv, tag, text)) {
		ERR_clear_error();
		return err_set(err, ERR_BUG, "OpenSSL: AES-GCM failed");
	}
	strbuf_add(out, head.data, head.len);
	strbuf_adds(out, "..");
	bytes_to_b64url(out, iv, sizeof(iv));
	strbuf_addc(out, '.');
	bytes_to_b64url(out, text, len);
	strbuf_addc(out, '.');
	bytes_to_b64url(out, tag, sizeof(tag));
	return 0;
}
