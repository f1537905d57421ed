/* SPDX-License-Identifier: MIT */
/*
 * DER for tests: Names, certificates and Authenticode signatures around a digest that OpenSSL
 * verifies. A name has one key (P-256, its scalar is the name's SHA-256), so whoever has that name
 * has signed. Roots are deterministic, signatures are not.
 */
#ifndef TEC_TESTS_DER_BUILDER_H
#define TEC_TESTS_DER_BUILDER_H

#include <criterion/criterion.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/obj_mac.h>
#include <openssl/param_build.h>
#include <stdint.h>
#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/str.h"

/* Puts tag and length before what stands behind `from`. */
__attribute__((unused)) static void der_wrap(struct strbuf *b, size_t from, uint8_t tag)
{
	size_t len = b->len - from, n = 0;
	uint8_t head[6] = {tag};

	if (len < 0x80) {
		head[1] = (uint8_t)len;
		n = 2;
	} else {
		size_t bytes = len < 0x100 ? 1 : len < 0x10000 ? 2 : 3;

		head[1] = (uint8_t)(0x80 | bytes);
		for (size_t i = 0; i < bytes; i++)
			head[2 + i] = (uint8_t)(len >> 8 * (bytes - 1 - i));
		n = 2 + bytes;
	}
	strbuf_add(b, head, n);
	memmove(b->data + from + n, b->data + from, len);
	memcpy(b->data + from, head, n);
}

__attribute__((unused)) static void der_add(
	struct strbuf *b, uint8_t tag, const void *data, size_t len)
{
	size_t from = b->len;

	strbuf_add(b, data, len);
	der_wrap(b, from, tag);
}
#define DER_OID(b, ...)                                                                            \
	der_add((b), 0x06, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

/* One RDN: CN as UTF8String. */
__attribute__((unused)) static void der_name(struct strbuf *b, const char *cn)
{
	size_t from = b->len;

	DER_OID(b, 0x55, 0x04, 0x03);
	der_add(b, 0x0c, cn, strlen(cn));
	der_wrap(b, from, 0x30);
	der_wrap(b, from, 0x31);
	der_wrap(b, from, 0x30);
}

static void der_alg_ecdsa(struct strbuf *b)
{
	size_t from = b->len;

	DER_OID(b, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02); /* ecdsa-with-SHA256 */
	der_wrap(b, from, 0x30);
}

#define DER_POINT_LEN 65
/* The caller frees; point: its public half, uncompressed. */
static EVP_PKEY *der_key(const char *name, uint8_t point[DER_POINT_LEN])
{
	EC_GROUP *group = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1);
	EC_POINT *public_half = EC_POINT_new(group);
	OSSL_PARAM_BLD *bld = OSSL_PARAM_BLD_new();
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
	uint8_t digest[SHA256_LEN];
	EVP_PKEY *key = NULL;
	OSSL_PARAM *params;
	BIGNUM *scalar;

	bytes_sha256(name, strlen(name), digest);
	digest[0] &= 0x7f; /* below the group's order */
	scalar = BN_bin2bn(digest, sizeof(digest), NULL);
	cr_assert(EC_POINT_mul(group, public_half, scalar, NULL, NULL, NULL));
	cr_assert_eq(EC_POINT_point2oct(group, public_half, POINT_CONVERSION_UNCOMPRESSED, point,
			     DER_POINT_LEN, NULL),
		DER_POINT_LEN);
	OSSL_PARAM_BLD_push_utf8_string(bld, OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0);
	OSSL_PARAM_BLD_push_BN(bld, OSSL_PKEY_PARAM_PRIV_KEY, scalar);
	OSSL_PARAM_BLD_push_octet_string(bld, OSSL_PKEY_PARAM_PUB_KEY, point, DER_POINT_LEN);
	params = OSSL_PARAM_BLD_to_param(bld);
	EVP_PKEY_fromdata_init(ctx);
	cr_assert_eq(EVP_PKEY_fromdata(ctx, &key, EVP_PKEY_KEYPAIR, params), 1);
	OSSL_PARAM_free(params);
	OSSL_PARAM_BLD_free(bld);
	EVP_PKEY_CTX_free(ctx);
	EC_POINT_free(public_half);
	EC_GROUP_free(group);
	BN_free(scalar);
	return key;
}

/* Appends the signature itself. */
static void der_sign(struct strbuf *b, const char *name, const void *data, size_t len)
{
	uint8_t point[DER_POINT_LEN], sig[80];
	EVP_PKEY *key = der_key(name, point);
	EVP_MD_CTX *md = EVP_MD_CTX_new();
	size_t n = sizeof(sig);

	cr_assert_eq(EVP_DigestSignInit(md, NULL, EVP_sha256(), NULL, key), 1);
	cr_assert_eq(EVP_DigestSign(md, sig, &n, data, len), 1);
	strbuf_add(b, sig, n);
	EVP_MD_CTX_free(md);
	EVP_PKEY_free(key);
}

static void der_spki(struct strbuf *b, const char *name)
{
	uint8_t point[DER_POINT_LEN];
	size_t all = b->len, from;

	EVP_PKEY_free(der_key(name, point));
	DER_OID(b, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01);
	DER_OID(b, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07);
	der_wrap(b, all, 0x30);
	from = b->len;
	strbuf_addc(b, 0);
	strbuf_add(b, point, sizeof(point));
	der_wrap(b, from, 0x03);
	der_wrap(b, all, 0x30);
}

__attribute__((unused)) static void der_cert(
	struct strbuf *b, const char *subject, const char *issuer)
{
	struct strbuf sig = STRBUF_INIT;
	size_t cert = b->len, from;

	/* Of version 3 only what has extensions is an authority; of version 1 every root is. */
	if (strcmp(subject, issuer) != 0) {
		der_add(b, 0x02, "\x02", 1);
		der_wrap(b, cert, 0xa0);
	}
	der_add(b, 0x02, "\x07", 1);
	der_alg_ecdsa(b);
	der_name(b, issuer);
	from = b->len;
	der_add(b, 0x17, "220101000000Z", 13);
	der_add(b, 0x17, "420101000000Z", 13);
	der_wrap(b, from, 0x30);
	der_name(b, subject);
	der_spki(b, subject);
	der_wrap(b, cert, 0x30);
	if (strcmp(subject, issuer) != 0)
		der_sign(&sig, issuer, b->data + cert, b->len - cert);
	else /* nobody looks at a root's own: so that lists of roots are deterministic */
		der_add(&sig, 0x30, "\x02\x01\x01\x02\x01\x01", 6);
	der_alg_ecdsa(b);
	from = b->len;
	strbuf_addc(b, 0);
	strbuf_add(b, sig.data, sig.len);
	der_wrap(b, from, 0x03);
	der_wrap(b, cert, 0x30);
	strbuf_fini(&sig);
}

/* What a test may want to be different. */
struct der_signature {
	const uint8_t *digest;
	size_t digest_len;
	bool sha1;               /* the DigestInfo's algorithm; otherwise SHA-256 */
	bool not_indirect;       /* the content is plain data */
	bool forged;             /* another key than the first certificate's signed */
	const char *cert[20][2]; /* subject, issuer; until NULL */
};

static void der_digest_alg(struct strbuf *b, bool sha1)
{
	size_t from = b->len;

	if (sha1)
		DER_OID(b, 0x2b, 0x0e, 0x03, 0x02, 0x1a);
	else
		DER_OID(b, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01);
	der_add(b, 0x05, "", 0);
	der_wrap(b, from, 0x30);
}

/* content: what is signed. */
static void der_indirect(struct strbuf *b, const struct der_signature *s, struct strbuf *content)
{
	size_t spc = b->len, from;

	DER_OID(b, 0x2b, 0x06, 0x01, 0x04, 0x01, 0x82, 0x37, 0x02, 0x01,
		0x0f); /* SPC_PE_IMAGE_DATA */
	der_wrap(b, spc, 0x30);
	from = b->len;
	der_digest_alg(b, s->sha1);
	der_add(b, 0x04, s->digest, s->digest_len);
	der_wrap(b, from, 0x30);
	strbuf_add(content, b->data + spc, b->len - spc);
	der_wrap(b, spc, 0x30);
	der_wrap(b, spc, 0xa0);
}

/* One SignerInfo without attributes, of the first certificate. */
static void der_signer(
	struct strbuf *b, const struct der_signature *s, const struct strbuf *content)
{
	struct strbuf sig = STRBUF_INIT;
	size_t all = b->len, from;

	der_add(b, 0x02, "\x01", 1);
	from = b->len;
	der_name(b, s->cert[0][1]);
	der_add(b, 0x02, "\x07", 1);
	der_wrap(b, from, 0x30);
	der_digest_alg(b, false);
	der_alg_ecdsa(b);
	der_sign(&sig, s->forged ? "a forger" : s->cert[0][0], strbuf_str(content), content->len);
	der_add(b, 0x04, sig.data, sig.len);
	der_wrap(b, all, 0x30);
	strbuf_fini(&sig);
}

__attribute__((unused)) static void der_pkcs7(struct strbuf *b, const struct der_signature *s)
{
	struct strbuf content = STRBUF_INIT;
	size_t all = b->len, sd, from;

	DER_OID(b, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x02);
	sd = b->len;
	der_add(b, 0x02, "\x01", 1);
	from = b->len;
	der_digest_alg(b, s->sha1);
	der_wrap(b, from, 0x31);
	from = b->len;
	if (s->not_indirect)
		DER_OID(b, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x01);
	else
		DER_OID(b, 0x2b, 0x06, 0x01, 0x04, 0x01, 0x82, 0x37, 0x02, 0x01, 0x04);
	der_indirect(b, s, &content);
	der_wrap(b, from, 0x30);
	from = b->len;
	for (size_t i = 0; s->cert[i][0]; i++)
		der_cert(b, s->cert[i][0], s->cert[i][1]);
	if (b->len > from)
		der_wrap(b, from, 0xa0);
	from = b->len;
	if (s->cert[0][0])
		der_signer(b, s, &content);
	der_wrap(b, from, 0x31);
	strbuf_fini(&content);
	der_wrap(b, sd, 0x30);
	der_wrap(b, sd, 0xa0);
	der_wrap(b, all, 0x30);
}

#endif
