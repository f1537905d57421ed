/* SPDX-License-Identifier: MIT */
/*
 * Keys are converted to OpenSSL objects first, and OpenSSL validates points and numbers. Every
 * intermediate secret of key wrapping is a struct secret.
 *
 * When a JWE is opened, the additional data is the protected header as it was sent, never a header
 * encoded again. The header may contain unknown members, but none listed as critical (RFC 7515
 * section 4.1.11), and no compression.
 */
#include "config.h"

#include "tec/jose/jwe.h"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/param_build.h>
#include <openssl/rsa.h>
#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/secret.h"
#include "tec/pki/openssl.h"

#define CEK_LEN     32
#define IV_LEN      12
#define TAG_LEN     16
#define WRAPPED_LEN (CEK_LEN + 8) /* RFC 3394 */
#define COORD_LEN   32            /* P-256 */
#define COORD_MAX   66            /* P-521 */
#define RSA_MAX_LEN 512
#define ALG_EC      "ECDH-ES+A256KW"
#define ALG_RSA     "RSA-OAEP-256"
#define ALG_RSA_OLD "RSA1_5"

static const struct json_limits limits = {.bytes = JWE_MAX_LEN, .depth = 16, .tokens = 4096};

struct curve {
	const char *name;
	size_t len; /* of a coordinate */
};

struct jwe_key {
	EVP_PKEY *evp;             /* owned */
	const struct curve *curve; /* NULL: RSA */
	bool pkcs1;                /* RSA: ALG_RSA_OLD */
};

/* The parts of a JWE as they were sent: base64url, borrowed. */
struct parts {
	const char *head, *iv, *text, *tag;
	size_t head_len, iv_len, text_len, tag_len;
};

/* The key pair with its public half already encoded for requests. */
struct jwe_own {
	struct pki_key *key; /* owned */
	struct strbuf x, y;  /* base64url */
};

static const struct curve curves[] = {{"P-256", 32}, {"P-521", 66}};

/* The error queue is cleared so that a later TLS session does not report our failure as its own.
 * ERR_BUG: OpenSSL refused checked input. */
static int refuse(struct err *err, enum err_kind kind, const char *text)
{
	ERR_clear_error();
	return err_set(err, kind, "%s", text);
}

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

/* Build the point in its uncompressed form (SEC 1 section 2.3.3): 4, x, y. */
static EVP_PKEY *ec_key(const struct pki_jwk *k, const struct curve *curve)
{
	uint8_t point[1 + 2 * COORD_MAX] = {4}; /* uncompressed */
	OSSL_PARAM params[3];

	if (!k->x || !decode(k->x, strlen(k->x), curve->len, point + 1) || !k->y ||
		!decode(k->y, strlen(k->y), curve->len, point + 1 + curve->len))
		return NULL;
	/* The parameters borrow point and name: they must live until from_params() returns. */
	params[0] = OSSL_PARAM_construct_utf8_string(
		OSSL_PKEY_PARAM_GROUP_NAME, (char *)curve->name, 0);
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
static EVP_PKEY *rsa_key(const struct pki_jwk *k)
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
struct jwe_key *jwe_key_new(const struct pki_jwk *k, struct err *err)
{
	const struct curve *curve = NULL;
	EVP_PKEY *evp = NULL;
	struct jwe_key *key;

	/* Member names and values are those of RFC 7518 sections 4.1 and 6. */
	if (str_eq(k->kty, "EC") && str_eq(k->alg, ALG_EC)) {
		for (size_t i = 0; i < ARRAY_LEN(curves); i++)
			if (str_eq(k->crv, curves[i].name))
				curve = &curves[i];
		evp = curve ? ec_key(k, curve) : NULL;
	} else if (str_eq(k->kty, "RSA") &&
		   (str_eq(k->alg, ALG_RSA) || str_eq(k->alg, ALG_RSA_OLD))) {
		evp = rsa_key(k);
	} else {
		refuse(err, ERR_INVALID,
			"The key must be an EC key with " ALG_EC " or an RSA key with " ALG_RSA
			" or " ALG_RSA_OLD ".");
		return NULL;
	}
	if (!evp) {
		refuse(err, ERR_INVALID,
			curve ? "The coordinates are not a point on the curve."
			: str_eq(k->kty, "EC")
				? "The curve must be P-256 or P-521."
				: "The RSA key must have 2048 to 4096 bits and an odd exponent above 1.");
		return NULL;
	}
	key = xcalloc(1, sizeof(*key));
	key->evp = evp;
	key->curve = curve;
	key->pkcs1 = str_eq(k->alg, ALG_RSA_OLD);
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
static void derive(const struct secret *z, uint8_t kek[CEK_LEN])
{
	static const uint8_t before[] = {0, 0, 0, 1}, id_len[] = {0, 0, 0, sizeof(ALG_EC) - 1},
			     after[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0};
	cleanup_sha256 struct bytes_sha256_run run;

	/* Concat KDF round: counter, Z, OtherInfo (NIST SP 800-56A section 5.8.1). */
	bytes_sha256_init(&run);
	bytes_sha256_add(&run, before, sizeof(before));
	bytes_sha256_add(&run, secret_peek(z), secret_len(z));
	bytes_sha256_add(&run, id_len, sizeof(id_len));
	bytes_sha256_add(&run, ALG_EC, sizeof(ALG_EC) - 1);
	bytes_sha256_add(&run, after, sizeof(after));
	bytes_sha256_end(&run, kek);
}

/* The result is the x coordinate, padded to the length of the field (RFC 7518 section 4.6.2). */
static struct secret *agree(EVP_PKEY *mine, EVP_PKEY *theirs, size_t len)
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
	       EVP_EncryptUpdate(ctx, out, &n, secret_peek(cek), CEK_LEN) == 1 && n == WRAPPED_LEN;
}

/* Wrap cek for an EC key: append the header with our ephemeral public key (epk), and the wrapped
 * key. */
static int wrap_ec(const struct jwe_key *k, const struct secret *cek, struct strbuf *header,
	struct strbuf *wrapped, struct err *err)
{
	cleanup_pkey EVP_PKEY *mine = EVP_EC_gen(k->curve->name);
	cleanup_secret struct secret *z = mine ? agree(mine, k->evp, k->curve->len) : NULL;
	cleanup_secret struct secret *kek = secret_new(CEK_LEN);
	uint8_t point[1 + 2 * COORD_MAX], out[WRAPPED_LEN];
	size_t n = 0, len = k->curve->len;

	if (!z ||
		EVP_PKEY_get_octet_string_param(
			mine, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof(point), &n) != 1 ||
		n != 1 + 2 * len)
		return refuse(err, ERR_BUG, "OpenSSL: ECDH failed");
	/* A fresh key pair per JWE, so the derived key wraps exactly one content key. */
	derive(z, secret_bytes(kek));
	if (!key_wrap(secret_peek(kek), cek, out))
		return refuse(err, ERR_BUG, "OpenSSL: AES key wrap failed");
	strbuf_addf(header,
		"{\"alg\":\"" ALG_EC
		"\",\"enc\":\"A256GCM\",\"epk\":{\"crv\":\"%s\",\"kty\":\"EC\",\"x\":\"",
		k->curve->name);
	bytes_to_b64url(header, point + 1, len);
	strbuf_adds(header, "\",\"y\":\"");
	bytes_to_b64url(header, point + 1 + len, len);
	strbuf_adds(header, "\"}}");
	bytes_to_b64url(wrapped, out, sizeof(out));
	return 0;
}

/* RSA-OAEP-256 uses SHA-256 for the OAEP digest and for MGF1 (RFC 7518 section 4.3). RSA1_5 has the
 * padding of PKCS #1 v1.5 (section 4.2): safe to make, and the node's choice. */
static bool set_padding(const struct jwe_key *k, EVP_PKEY_CTX *ctx)
{
	if (k->pkcs1)
		return EVP_PKEY_CTX_set_rsa_padding(ctx, RSA_PKCS1_PADDING) == 1;
	return EVP_PKEY_CTX_set_rsa_padding(ctx, RSA_PKCS1_OAEP_PADDING) == 1 &&
	       EVP_PKEY_CTX_set_rsa_oaep_md(ctx, EVP_sha256()) == 1 &&
	       EVP_PKEY_CTX_set_rsa_mgf1_md(ctx, EVP_sha256()) == 1;
}

static int wrap_rsa(const struct jwe_key *k, const struct secret *cek, struct strbuf *header,
	struct strbuf *wrapped, struct err *err)
{
	cleanup_pctx EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new(k->evp, NULL);
	uint8_t out[RSA_MAX_LEN];
	size_t n = sizeof(out);

	if (!ctx || EVP_PKEY_encrypt_init(ctx) != 1 || !set_padding(k, ctx) ||
		EVP_PKEY_encrypt(ctx, out, &n, secret_peek(cek), CEK_LEN) != 1)
		return refuse(err, ERR_BUG, "OpenSSL: RSA encryption failed");
	strbuf_addf(
		header, "{\"alg\":\"%s\",\"enc\":\"A256GCM\"}", k->pkcs1 ? ALG_RSA_OLD : ALG_RSA);
	bytes_to_b64url(wrapped, out, n);
	return 0;
}

/* ---- the content */

/* The IV is random: a content key encrypts once, or (alg dir) rarely enough for 96 random bits. */
static bool seal_content(const struct secret *cek, const struct strbuf *head, const void *plain,
	size_t len, uint8_t iv[IV_LEN], uint8_t tag[TAG_LEN], uint8_t *text)
{
	cleanup_cctx EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	int n = 0, rest = 0;

	/* A repeated IV under one key would break GCM; 96 random bits are the recommended
	 * length. */
	bytes_random(iv, IV_LEN);
	return ctx && EVP_EncryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, secret_peek(cek), iv) == 1 &&
	       EVP_EncryptUpdate(ctx, NULL, &n, (const uint8_t *)head->data, (int)head->len) == 1 &&
	       EVP_EncryptUpdate(ctx, text, &n, plain, (int)len) == 1 &&
	       EVP_EncryptFinal_ex(ctx, text + n, &rest) == 1 && (size_t)(n + rest) == len &&
	       EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, TAG_LEN, tag) == 1;
}

/* The additional data is the encoded header, without the ".aad" part (RFC 7516 section 5.1 step
 * 14). */
int jwe_encrypt(
	const struct jwe_key *k, const void *plain, size_t len, struct strbuf *out, struct err *err)
{
	cleanup_strbuf struct strbuf header = STRBUF_INIT, wrapped = STRBUF_INIT, aad = STRBUF_INIT;
	cleanup_secret struct secret *cek = secret_new_random(CEK_LEN);
	uint8_t iv[IV_LEN], tag[TAG_LEN];
	cleanup_free uint8_t *text = NULL;

	if ((k->curve ? wrap_ec(k, cek, &header, &wrapped, err)
		      : wrap_rsa(k, cek, &header, &wrapped, err)) < 0)
		return -1;
	/* The encoded header is both the "protected" member and the additional data. */
	bytes_to_b64url(&aad, header.data, header.len);
	/* GCM keeps the length; one byte more for an empty text. */
	text = xmalloc(len + 1);
	if (!seal_content(cek, &aad, plain, len, iv, tag, text))
		return refuse(err, ERR_BUG, "OpenSSL: AES-GCM failed");
	strbuf_addf(out, "{\"protected\":\"%s\",\"encrypted_key\":\"%s\",\"iv\":\"",
		strbuf_str(&aad), strbuf_str(&wrapped));
	bytes_to_b64url(out, iv, sizeof(iv));
	strbuf_adds(out, "\",\"ciphertext\":\"");
	bytes_to_b64url(out, text, len);
	strbuf_adds(out, "\",\"tag\":\"");
	bytes_to_b64url(out, tag, sizeof(tag));
	strbuf_adds(out, "\"}");
	return 0;
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

void jwe_own_public(const struct jwe_own *k, struct pki_jwk *out)
{
	*out = (struct pki_jwk){.kty = "EC",
		.crv = "P-256",
		.alg = ALG_EC,
		.x = strbuf_str(&k->x),
		.y = strbuf_str(&k->y)};
}

/* For handing the key to another process: it must be able to open what was encrypted to it. */
struct secret *jwe_own_pem(const struct jwe_own *k)
{
	return pki_key_private_pem(k->key);
}

/* ---- the content */

/* out is not authenticated until this returns true; the caller discards it otherwise. */
static bool decrypt(const struct secret *cek, const struct parts *p, const uint8_t *iv,
	uint8_t *tag, const uint8_t *text, size_t len, uint8_t *out)
{
	cleanup_cctx EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	int n = 0, rest = 0;

	return ctx && EVP_DecryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, secret_peek(cek), iv) == 1 &&
	       EVP_DecryptUpdate(ctx, NULL, &n, (const uint8_t *)p->head, (int)p->head_len) == 1 &&
	       EVP_DecryptUpdate(ctx, out, &n, text, (int)len) == 1 &&
	       EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, TAG_LEN, tag) == 1 &&
	       EVP_DecryptFinal_ex(ctx, out + n, &rest) == 1 && (size_t)(n + rest) == len;
}

/* The plain text is wiped on every path: it may be a disk key. */
static int decrypt_parts(
	const struct secret *cek, const struct parts *p, struct body *out, struct err *err)
{
	uint8_t iv[IV_LEN], tag[TAG_LEN];
	cleanup_free uint8_t *text = NULL;
	uint8_t *plain;
	size_t len = 0;
	bool ok;

	if (!decode(p->iv, p->iv_len, sizeof(iv), iv) ||
		!decode(p->tag, p->tag_len, sizeof(tag), tag) ||
		bytes_from_b64url(p->text, p->text_len, &text, &len) < 0)
		return refuse(
			err, ERR_INVALID, "iv, ciphertext or tag do not have the form of A256GCM.");
	plain = xmalloc(len + 1);
	/* plain holds unauthenticated bytes if this fails; they are wiped below. */
	ok = decrypt(cek, p, iv, tag, text, len, plain);
	if (ok)
		body_add(out, plain, len, len);
	secret_wipe(plain, len + 1);
	free(plain);
	if (ok)
		return 0;
	return refuse(err, ERR_DENIED, "The JWE was changed or encrypted with another key.");
}

/* Parse the protected header. crit and zip are refused: ignoring either one would misread the
 * content. */
static struct json_object *read_header(const char *b64, size_t len, struct err *err)
{
	cleanup_free uint8_t *bytes = NULL;
	struct json_object *o;
	size_t n = 0;

	if (bytes_from_b64url(b64, len, &bytes, &n) < 0) {
		refuse(err, ERR_INVALID, "The protected header is not base64url.");
		return NULL;
	}
	o = json_parse((const char *)bytes, n, &limits, err);
	if (!o) {
		err_wrap(err, "the protected header");
		return NULL;
	}
	if (str_eq(json_get_str(o, "enc"), "A256GCM") && !json_get(o, "crit") &&
		!json_get(o, "zip"))
		return o;
	json_object_put(o);
	refuse(err, ERR_INVALID, "The protected header lacks enc A256GCM, or has crit or zip.");
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
	     EVP_DecryptUpdate(ctx, out, &n, wrapped, WRAPPED_LEN) == 1 && n == CEK_LEN;
	if (ok)
		memcpy(secret_bytes(cek), out, CEK_LEN);
	secret_wipe(out, sizeof(out));
	return ok;
}

/* Recover the content encryption key. apu and apv are refused, because derive() assumes them
 * empty. */
static int unwrap(const struct jwe_own *k, struct json_object *header, const uint8_t *wrapped,
	struct secret *cek, struct err *err)
{
	struct json_object *epk = json_get_obj(header, "epk");
	struct pki_jwk jwk = pki_jwk_read(epk);
	cleanup_secret struct secret *z = NULL, *kek = secret_new(CEK_LEN);
	struct jwe_key *theirs;
	bool ok = false;

	/* The sender's ephemeral key must be on the curve of our key. */
	if (!str_eq(jwk.crv, "P-256") || json_get(header, "apu") || json_get(header, "apv"))
		return refuse(
			err, ERR_INVALID, "epk is not a P-256 key, or the header has apu or apv.");
	jwk.alg = ALG_EC;
	/* Validates the point: an invalid one could reveal our private key (invalid-curve
	 * attack). */
	theirs = jwe_key_new(&jwk, err);
	if (!theirs)
		return err_wrap(err, "epk");
	z = agree(pki_key_evp(k->key), theirs->evp, COORD_LEN);
	jwe_key_free(theirs);
	if (z) {
		derive(z, secret_bytes(kek));
		ok = key_unwrap(kek, wrapped, cek);
	}
	if (ok)
		return 0;
	return refuse(err, ERR_DENIED, "The JWE was not encrypted to this key.");
}

/* Parse the flattened JWE, unwrap the content key, then decrypt and authenticate the content. */
int jwe_open(
	const struct jwe_own *k, const char *text, size_t len, struct body *out, struct err *err)
{
	cleanup_json struct json_object *o = json_parse(text, len, &limits, err), *header = NULL;
	cleanup_secret struct secret *cek = secret_new(CEK_LEN);
	uint8_t wrapped[WRAPPED_LEN];
	struct parts p;
	const char *key;
	size_t key_len;

	if (!o)
		return -1;
	if (!take(o, "protected", &p.head, &p.head_len) || !take(o, "iv", &p.iv, &p.iv_len) ||
		!take(o, "ciphertext", &p.text, &p.text_len) ||
		!take(o, "tag", &p.tag, &p.tag_len) || !take(o, "encrypted_key", &key, &key_len) ||
		!decode(key, key_len, sizeof(wrapped), wrapped))
		return refuse(err, ERR_INVALID,
			"Not a flattened JWE: protected, encrypted_key, iv, ciphertext and tag are required.");
	/* alg is checked after crit: a critical extension could change its meaning. */
	header = read_header(p.head, p.head_len, err);
	if (header && !str_eq(json_get_str(header, "alg"), ALG_EC))
		return refuse(err, ERR_INVALID, "The alg is not " ALG_EC ".");
	if (!header || unwrap(k, header, wrapped, cek, err) < 0)
		return -1;
	return decrypt_parts(cek, &p, out, err);
}

/* ---- compact, with a shared key */

/* Split header.encrypted_key.iv.ciphertext.tag; alg dir requires an empty encrypted_key (RFC
 * 7518 section 4.5). */
static int split(const char *text, size_t len, struct parts *p, struct err *err)
{
	const char *part[5];
	size_t part_len[5], n = 0, start = 0;

	/* The loop runs once past the end, which terminates the fifth part. */
	for (size_t i = 0; i <= len; i++) {
		if (i < len && text[i] != '.')
			continue;
		if (n == 5)
			return refuse(err, ERR_INVALID,
				"Not a compact JWE: it does not have five parts.");
		part[n] = text + start;
		part_len[n++] = i - start;
		start = i + 1;
	}
	if (n != 5 || len > JWE_MAX_LEN)
		return refuse(err, ERR_INVALID, "Not a compact JWE: it does not have five parts.");
	if (part_len[1] != 0)
		return refuse(err, ERR_INVALID,
			"The JWE has an encrypted key, which alg dir does not permit.");
	*p = (struct parts){part[0], part[2], part[3], part[4], part_len[0], part_len[2],
		part_len[3], part_len[4]};
	return 0;
}

/* Accept alg "dir", and "ECDH-ES" without epk: the library of the Rust clevis pin writes that
 * name but uses the key directly. */
static struct json_object *read_dir(const struct parts *p, struct err *err)
{
	struct json_object *o = read_header(p->head, p->head_len, err);
	const char *alg = json_get_str(o, "alg");

	if (!o || str_eq(alg, "dir") || (str_eq(alg, "ECDH-ES") && !json_get(o, "epk")))
		return o;
	json_object_put(o);
	refuse(err, ERR_INVALID, "The alg is not dir.");
	return NULL;
}

struct json_object *jwe_dir_header(const char *text, size_t len, struct err *err)
{
	struct parts p;

	return split(text, len, &p, err) < 0 ? NULL : read_dir(&p, err);
}

/* A256GCM needs exactly 256 bits; another length is an error of the caller's configuration. */
static bool is_key(const struct secret *key, struct err *err)
{
	if (secret_len(key) == CEK_LEN)
		return true;
	err_set(err, ERR_INVALID, "The key is not 32 bytes long.");
	return false;
}

/* The header is authenticated as additional data, so it can be trusted after this succeeds. */
int jwe_dir_open(
	const struct secret *key, const char *text, size_t len, struct body *out, struct err *err)
{
	cleanup_json struct json_object *header = NULL;
	struct parts p;

	if (!is_key(key, err) || split(text, len, &p, err) < 0)
		return -1;
	header = read_dir(&p, err);
	return header ? decrypt_parts(key, &p, out, err) : -1;
}

/* encrypted_key is empty (RFC 7518 section 4.5), hence the two dots. */
int jwe_dir_seal(const struct secret *key, const char *header, const void *plain, size_t len,
	struct strbuf *out, struct err *err)
{
	cleanup_strbuf struct strbuf head = STRBUF_INIT;
	uint8_t iv[IV_LEN], tag[TAG_LEN];
	cleanup_free uint8_t *text = xmalloc(len + 1);

	if (!is_key(key, err))
		return -1;
	/* The caller's JSON is used as it is, which fixes the additional data. */
	bytes_to_b64url(&head, header, strlen(header));
	if (!seal_content(key, &head, plain, len, iv, tag, text))
		return refuse(err, ERR_BUG, "OpenSSL: AES-GCM failed");
	strbuf_add(out, head.data, head.len);
	strbuf_adds(out, "..");
	bytes_to_b64url(out, iv, sizeof(iv));
	strbuf_addc(out, '.');
	bytes_to_b64url(out, text, len);
	strbuf_addc(out, '.');
	bytes_to_b64url(out, tag, sizeof(tag));
	return 0;
}
