/* SPDX-License-Identifier: MIT */
/* What is encrypted is opened here by OpenSSL's own single-step KDF, key unwrap and OAEP. */
#include "config.h"

#include <criterion/criterion.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/rsa.h>
#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/jose/jwe.h"

static char *b64url(const void *p, size_t len)
{
	struct strbuf out = STRBUF_INIT;

	bytes_to_b64url(&out, p, len);
	return strbuf_steal(&out);
}

static uint8_t *unb64(struct json_object *o, const char *name, size_t *len)
{
	const char *text = json_get_str(o, name);
	uint8_t *out = NULL;

	cr_assert(text, "%s", name);
	cr_assert_eq(bytes_from_b64url(text, strlen(text), &out, len), 0, "%s", name);
	return out;
}

/* The private half and its public JWK, whose texts live as long as it. */
struct pair {
	EVP_PKEY *evp;
	char *x, *y;
	struct pki_jwk jwk;
};

static struct pair ec_pair(const char *crv, size_t len)
{
	struct pair p = {.evp = EVP_EC_gen(crv)};
	uint8_t point[160];
	size_t n = 0;

	cr_assert_eq(EVP_PKEY_get_octet_string_param(
			     p.evp, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof(point), &n),
		1);
	p.x = b64url(point + 1, len);
	p.y = b64url(point + 1 + len, len);
	p.jwk = (struct pki_jwk){
		.kty = "EC", .crv = crv, .alg = "ECDH-ES+A256KW", .x = p.x, .y = p.y};
	return p;
}

static struct pair rsa_pair(unsigned bits)
{
	struct pair p = {.evp = EVP_RSA_gen(bits)};
	BIGNUM *n = NULL, *e = NULL;
	uint8_t bytes[1024];

	EVP_PKEY_get_bn_param(p.evp, OSSL_PKEY_PARAM_RSA_N, &n);
	EVP_PKEY_get_bn_param(p.evp, OSSL_PKEY_PARAM_RSA_E, &e);
	p.x = b64url(bytes, (size_t)BN_bn2bin(n, bytes));
	p.y = b64url(bytes, (size_t)BN_bn2bin(e, bytes));
	BN_free(n);
	BN_free(e);
	p.jwk = (struct pki_jwk){.kty = "RSA", .alg = "RSA-OAEP-256", .n = p.x, .e = p.y};
	return p;
}

static void pair_fini(struct pair *p)
{
	EVP_PKEY_free(p->evp);
	free(p->x);
	free(p->y);
}

static void unwrap_ec(struct pair *p, struct json_object *header, const uint8_t *wrapped,
	size_t len, uint8_t cek[32])
{
	static const char info[] = "\0\0\0\x0e"
				   "ECDH-ES+A256KW"
				   "\0\0\0\0\0\0\0\0\0\0\1\0";
	size_t nx, ny, z_len = 80;
	cleanup_free uint8_t *x = unb64(header, "epk/x", &nx), *y = unb64(header, "epk/y", &ny);
	uint8_t point[160] = {4}, z[80], kek[32];
	OSSL_PARAM params[4], make[3];
	EVP_PKEY *peer = NULL;
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
	EVP_KDF *kdf = EVP_KDF_fetch(NULL, "SSKDF", NULL);
	EVP_KDF_CTX *kctx = EVP_KDF_CTX_new(kdf);
	EVP_CIPHER_CTX *cctx = EVP_CIPHER_CTX_new();
	int n = 0;

	memcpy(point + 1, x, nx);
	memcpy(point + 1 + nx, y, ny);
	make[0] = OSSL_PARAM_construct_utf8_string("group", (char *)p->jwk.crv, 0);
	make[1] = OSSL_PARAM_construct_octet_string("pub", point, 1 + nx + ny);
	make[2] = OSSL_PARAM_construct_end();
	cr_assert_eq(EVP_PKEY_fromdata_init(ctx), 1);
	cr_assert_eq(EVP_PKEY_fromdata(ctx, &peer, EVP_PKEY_PUBLIC_KEY, make), 1);
	EVP_PKEY_CTX_free(ctx);
	ctx = EVP_PKEY_CTX_new(p->evp, NULL);
	cr_assert_eq(EVP_PKEY_derive_init(ctx), 1);
	cr_assert_eq(EVP_PKEY_derive_set_peer(ctx, peer), 1);
	cr_assert_eq(EVP_PKEY_derive(ctx, z, &z_len), 1);
	params[0] = OSSL_PARAM_construct_utf8_string("digest", (char *)"SHA256", 0);
	params[1] = OSSL_PARAM_construct_octet_string("key", z, z_len);
	params[2] = OSSL_PARAM_construct_octet_string("info", (void *)info, sizeof(info) - 1);
	params[3] = OSSL_PARAM_construct_end();
	cr_assert_eq(EVP_KDF_derive(kctx, kek, sizeof(kek), params), 1);
	EVP_CIPHER_CTX_set_flags(cctx, EVP_CIPHER_CTX_FLAG_WRAP_ALLOW);
	cr_assert_eq(EVP_DecryptInit_ex(cctx, EVP_aes_256_wrap(), NULL, kek, NULL), 1);
	cr_assert_eq(EVP_DecryptUpdate(cctx, cek, &n, wrapped, (int)len), 1);
	cr_assert_eq(n, 32);
	EVP_CIPHER_CTX_free(cctx);
	EVP_KDF_CTX_free(kctx);
	EVP_KDF_free(kdf);
	EVP_PKEY_CTX_free(ctx);
	EVP_PKEY_free(peer);
}

static void unwrap_rsa(struct pair *p, const uint8_t *wrapped, size_t len, uint8_t cek[32])
{
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new(p->evp, NULL);
	uint8_t out[1024];
	size_t n = sizeof(out);

	cr_assert_eq(EVP_PKEY_decrypt_init(ctx), 1);
	if (str_eq(p->jwk.alg, "RSA1_5")) {
		cr_assert_eq(EVP_PKEY_CTX_set_rsa_padding(ctx, RSA_PKCS1_PADDING), 1);
	} else {
		cr_assert_eq(EVP_PKEY_CTX_set_rsa_padding(ctx, RSA_PKCS1_OAEP_PADDING), 1);
		cr_assert_eq(EVP_PKEY_CTX_set_rsa_oaep_md(ctx, EVP_sha256()), 1);
	}
	cr_assert_eq(EVP_PKEY_decrypt(ctx, out, &n, wrapped, len), 1);
	cr_assert_eq(n, 32);
	memcpy(cek, out, 32);
	EVP_PKEY_CTX_free(ctx);
}

/* The plain text, NUL-terminated; the caller frees. */
static char *open_jwe(struct pair *p, const char *text, struct strbuf *header_text)
{
	struct err err = ERR_INIT;
	cleanup_json struct json_object *o = json_parse(text, strlen(text), &json_limits_api, &err);
	cleanup_json struct json_object *header = NULL;
	size_t nh, nw, ni, nc, nt;
	cleanup_free uint8_t *h = unb64(o, "protected", &nh), *w = unb64(o, "encrypted_key", &nw),
			     *iv = unb64(o, "iv", &ni), *c = unb64(o, "ciphertext", &nc),
			     *tag = unb64(o, "tag", &nt);
	const char *aad = json_get_str(o, "protected");
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	char *plain = xcalloc(1, nc + 1);
	uint8_t cek[32];
	int n = 0;

	cr_assert_eq(json_object_object_length(o), 5);
	cr_assert_eq(ni, 12);
	cr_assert_eq(nt, 16);
	strbuf_add(header_text, h, nh);
	header = json_parse((char *)h, nh, &json_limits_public, &err);
	if (p->jwk.crv)
		unwrap_ec(p, header, w, nw, cek);
	else
		unwrap_rsa(p, w, nw, cek);
	cr_assert_eq(EVP_DecryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, cek, iv), 1);
	cr_assert_eq(EVP_DecryptUpdate(ctx, NULL, &n, (const uint8_t *)aad, (int)strlen(aad)), 1);
	cr_assert_eq(EVP_DecryptUpdate(ctx, (uint8_t *)plain, &n, c, (int)nc), 1);
	cr_assert_eq(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, 16, tag), 1);
	cr_assert_eq(EVP_DecryptFinal_ex(ctx, (uint8_t *)plain + n, &n), 1);
	EVP_CIPHER_CTX_free(ctx);
	return plain;
}

static void round_trip(struct pair *p, const char *header_begins)
{
	static const char *const texts[] = {"", "k", "{\"key_type\":\"oct\",\"key\":\"x\"}"};
	struct err err = ERR_INIT;
	struct jwe_key *key = jwe_key_new(&p->jwk, &err);

	cr_assert(key, "%s", err.text);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		cleanup_strbuf struct strbuf out = STRBUF_INIT, header = STRBUF_INIT;
		cleanup_free char *plain = NULL;

		cr_assert_eq(jwe_encrypt(key, texts[i], strlen(texts[i]), &out, &err), 0);
		plain = open_jwe(p, strbuf_str(&out), &header);
		cr_expect_str_eq(plain, texts[i]);
		cr_expect(
			str_starts(strbuf_str(&header), header_begins), "%s", strbuf_str(&header));
	}
	jwe_key_free(key);
	pair_fini(p);
}

Test(jose_jwe, ec_keys_open_what_is_encrypted_to_them)
{
	struct pair p256 = ec_pair("P-256", 32), p521 = ec_pair("P-521", 66);

	round_trip(&p256,
		"{\"alg\":\"ECDH-ES+A256KW\",\"enc\":\"A256GCM\",\"epk\":{\"crv\":\"P-256\",\"kty\":\"EC\",\"x\":\"");
	round_trip(&p521,
		"{\"alg\":\"ECDH-ES+A256KW\",\"enc\":\"A256GCM\",\"epk\":{\"crv\":\"P-521\",\"kty\":\"EC\",\"x\":\"");
}

Test(jose_jwe, rsa_keys_open_what_is_encrypted_to_them)
{
	struct pair p = rsa_pair(2048), old = rsa_pair(2048);

	round_trip(&p, "{\"alg\":\"RSA-OAEP-256\",\"enc\":\"A256GCM\"}");
	old.jwk.alg = "RSA1_5";
	round_trip(&old, "{\"alg\":\"RSA1_5\",\"enc\":\"A256GCM\"}");
}

Test(jose_jwe, refuses_keys_that_are_weak_or_none)
{
	struct pair ec = ec_pair("P-256", 32), p384 = ec_pair("P-384", 48), weak = rsa_pair(1024);
	cleanup_free char *zero = b64url("\0\0\0", 3), *padded = xasprintf("%s=", ec.x);
	const struct pki_jwk t[] = {
		{0},
		{.kty = "EC", .alg = "ECDH-ES+A256KW", .x = ec.x, .y = ec.y},
		{.kty = "EC", .crv = "P-384", .alg = "ECDH-ES+A256KW", .x = p384.x, .y = p384.y},
		{.kty = "EC", .crv = "P-521", .alg = "ECDH-ES+A256KW", .x = ec.x, .y = ec.y},
		{.kty = "EC", .crv = "P-256", .alg = "ECDH-ES+A256KW", .x = ec.y, .y = ec.x},
		{.kty = "EC", .crv = "P-256", .alg = "ECDH-ES+A256KW", .x = padded, .y = ec.y},
		{.kty = "EC", .crv = "P-256", .alg = "ECDH-ES+A256KW", .x = "", .y = ""},
		{.kty = "EC", .crv = "P-256", .alg = "ECDH-ES", .x = ec.x, .y = ec.y},
		{.kty = "EC", .crv = "P-256", .alg = "RSA-OAEP-256", .x = ec.x, .y = ec.y},
		{.kty = "EC", .crv = "P-256", .x = ec.x, .y = ec.y},
		{.kty = "RSA", .alg = "RSA-OAEP-256", .n = weak.x, .e = weak.y},
		{.kty = "RSA", .alg = "RSA-OAEP", .n = weak.x, .e = weak.y},
		{.kty = "RSA", .alg = "RSA1_5", .n = weak.x, .e = weak.y},
		{.kty = "RSA", .alg = "RSA-OAEP-256", .n = zero, .e = zero},
		{.kty = "RSA", .alg = "RSA-OAEP-256", .e = weak.y},
		{.kty = "AKP", .alg = "ML-KEM-768+A192KW"},
		{.kty = "oct", .alg = "A256KW"},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct err err = ERR_INIT;

		cr_expect_null(jwe_key_new(&t[i], &err), "%zu", i);
		cr_expect_eq(err.kind, ERR_INVALID, "%zu", i);
	}
	pair_fini(&ec);
	pair_fini(&p384);
	pair_fini(&weak);
}

Test(jose_jwe, a_refusal_speaks_of_the_kind_of_key_that_was_given)
{
	struct pair ec = ec_pair("P-256", 32), weak = rsa_pair(1024);
	const struct pki_jwk no_curve = {
		.kty = "EC", .alg = "ECDH-ES+A256KW", .x = ec.x, .y = ec.y};
	const struct pki_jwk rsa = {
		.kty = "RSA", .crv = "P-256", .alg = "RSA-OAEP-256", .n = weak.x, .e = weak.y};
	struct err err = ERR_INIT, other = ERR_INIT;

	cr_assert_null(jwe_key_new(&no_curve, &err));
	cr_expect_not_null(strstr(err.text, "The curve must be"), "%s", err.text);
	cr_assert_null(jwe_key_new(&rsa, &other));
	cr_expect_not_null(strstr(other.text, "The RSA key must"), "%s", other.text);
	pair_fini(&ec);
	pair_fini(&weak);
}
