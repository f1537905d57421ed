/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/x509.h>

#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/pki/spki.h"

#define BEGIN "-----BEGIN PUBLIC KEY-----\n"
#define END   "-----END PUBLIC KEY-----\n"

/* A public key with a random odd modulus of exactly `bits` bits: no prime is needed to be encoded.
 */
static EVP_PKEY *make_rsa(const char *type, int bits, unsigned long e)
{
	OSSL_PARAM_BLD *bld = OSSL_PARAM_BLD_new();
	BIGNUM *n = BN_new(), *ebn = BN_new();
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
	EVP_PKEY *pkey = NULL;
	OSSL_PARAM *params;

	cr_assert(BN_rand(n, bits, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ODD));
	cr_assert(BN_set_word(ebn, e));
	cr_assert(OSSL_PARAM_BLD_push_BN(bld, OSSL_PKEY_PARAM_RSA_N, n));
	cr_assert(OSSL_PARAM_BLD_push_BN(bld, OSSL_PKEY_PARAM_RSA_E, ebn));
	params = OSSL_PARAM_BLD_to_param(bld);
	cr_assert_eq(EVP_PKEY_fromdata_init(ctx), 1);
	cr_assert_eq(EVP_PKEY_fromdata(ctx, &pkey, EVP_PKEY_PUBLIC_KEY, params), 1);
	OSSL_PARAM_free(params);
	OSSL_PARAM_BLD_free(bld);
	EVP_PKEY_CTX_free(ctx);
	BN_free(n);
	BN_free(ebn);
	return pkey;
}

struct der {
	uint8_t *p;
	size_t len;
};

static struct der take_der(EVP_PKEY *take)
{
	unsigned char *p = NULL;
	int len = i2d_PUBKEY(take, &p);
	struct der d;

	cr_assert_gt(len, 0);
	d.p = xmemdup(p, (size_t)len);
	d.len = (size_t)len;
	OPENSSL_free(p);
	EVP_PKEY_free(take);
	return d;
}

static char *pem_of(const uint8_t *der, size_t len, const char *eol)
{
	struct strbuf out = STRBUF_INIT;
	cleanup_strbuf struct strbuf b64 = STRBUF_INIT;

	bytes_to_b64(&b64, der, len);
	strbuf_addf(&out, "-----BEGIN PUBLIC KEY-----%s", eol);
	for (size_t i = 0; i < b64.len; i += 64)
		strbuf_addf(&out, "%.64s%s", b64.data + i, eol);
	strbuf_addf(&out, "-----END PUBLIC KEY-----%s", eol);
	return strbuf_steal(&out);
}

static int parse(const char *pem, struct pki_spki *k, struct err *err)
{
	*err = (struct err)ERR_INIT;
	return pki_spki_parse_pem(pem, strlen(pem), k, err);
}

/* OpenSSL reads the same key out of it and writes the same bytes. */
static void assert_openssl_agrees(const struct pki_spki *k)
{
	const unsigned char *p = k->der;
	EVP_PKEY *pkey = d2i_PUBKEY(NULL, &p, (long)k->der_len);
	unsigned char *again = NULL;
	int len;

	cr_assert(pkey && p == k->der + k->der_len);
	cr_assert_eq(EVP_PKEY_get_base_id(pkey), EVP_PKEY_RSA);
	cr_assert_eq((unsigned)EVP_PKEY_get_bits(pkey), k->bits);
	len = i2d_PUBKEY(pkey, &again);
	cr_assert_eq((size_t)len, k->der_len);
	cr_assert_eq(memcmp(again, k->der, k->der_len), 0);
	OPENSSL_free(again);
	EVP_PKEY_free(pkey);
}

static void assert_refused(const char *pem, size_t len, const char *part, const char *what)
{
	struct err err = ERR_INIT;
	struct pki_spki k;

	cr_assert_eq(pki_spki_parse_pem(pem, len, &k, &err), -1, "%s was accepted", what);
	cr_assert_eq(err.kind, ERR_INVALID);
	cr_assert(strstr(err.text, part), "%s: \"%s\" lacks \"%s\"", what, err.text, part);
	cr_assert(strstr(err.text, "2048 to 4096 bits"), "%s: says what would do", err.text);
	cr_assert_eq(err.text[strlen(err.text) - 1], '.', "a whole sentence: %s", err.text);
}

Test(pki_spki, accepts_rsa_of_every_legal_size)
{
	static const int bits[] = {2048, 2049, 3072, 4095, 4096};

	for (size_t i = 0; i < ARRAY_LEN(bits); i++) {
		struct der d = take_der(make_rsa("RSA", bits[i], 65537));
		cleanup_free char *pem = pem_of(d.p, d.len, "\n");
		cleanup_strbuf struct strbuf again = STRBUF_INIT;
		struct pki_spki k;
		struct err err;
		uint8_t digest[SHA256_LEN];

		cr_assert_eq(parse(pem, &k, &err), 0, "%d: %s", bits[i], err.text);
		cr_assert_eq(k.bits, (unsigned)bits[i]);
		cr_assert_eq(k.der_len, d.len);
		cr_assert_eq(memcmp(k.der, d.p, d.len), 0);
		bytes_sha256(d.p, d.len, digest);
		cr_assert_eq(memcmp(digest, k.sha256, SHA256_LEN), 0);
		assert_openssl_agrees(&k);
		pki_spki_to_pem(&k, &again);
		cr_assert_str_eq(again.data, pem);
		free(d.p);
	}
}

Test(pki_spki, accepts_other_line_ends_and_white_space_around)
{
	struct der d = take_der(make_rsa("RSA", 2048, 65537));
	cleanup_free char *lf = pem_of(d.p, d.len, "\n"), *crlf = pem_of(d.p, d.len, "\r\n");
	cleanup_free char *around = xasprintf("\n \t\r\n%s\n\n  ", lf);
	cleanup_free char *bare = xstrndup(lf, strlen(lf) - 1);
	const char *const texts[] = {crlf, around, bare};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		cleanup_strbuf struct strbuf again = STRBUF_INIT;
		struct pki_spki k;
		struct err err;

		cr_assert_eq(parse(texts[i], &k, &err), 0, "%zu: %s", i, err.text);
		pki_spki_to_pem(&k, &again);
		cr_assert_str_eq(again.data, lf, "one canonical text");
	}
	free(d.p);
}

Test(pki_spki, accepts_lines_of_any_width)
{
	struct der d = take_der(make_rsa("RSA", 2048, 65537));
	cleanup_strbuf struct strbuf b64 = STRBUF_INIT;
	cleanup_free char *pem = NULL;
	struct pki_spki k;
	struct err err;

	bytes_to_b64(&b64, d.p, d.len);
	pem = xasprintf(BEGIN "%s\n" END, b64.data);
	cr_assert_eq(parse(pem, &k, &err), 0, "%s", err.text);
	free(d.p);
}

Test(pki_spki, refuses_keys_that_trustee_cannot_verify)
{
	const struct {
		EVP_PKEY *key;
		const char *part;
	} cases[] = {
		{make_rsa("RSA", 1024, 65537), "has 1024 bits"},
		{make_rsa("RSA", 2047, 65537), "has 2047 bits"},
		{make_rsa("RSA", 4097, 65537), "has 4097 bits"},
		{make_rsa("RSA", 5000, 65537), "has 5000 bits"},
		{make_rsa("RSA", 2048, 3), "exponent"},
		{make_rsa("RSA", 2048, 17), "exponent"},
		{make_rsa("RSA", 2048, 65539), "exponent"},
		{make_rsa("RSA", 2048, 0x1000001), "exponent"},
		{make_rsa("RSA-PSS", 2048, 65537), "RSASSA-PSS"},
		{EVP_EC_gen("P-256"), "elliptic curve"},
		{EVP_PKEY_Q_keygen(NULL, NULL, "ED25519"), "rsaEncryption"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct der d = take_der(cases[i].key);
		cleanup_free char *pem = pem_of(d.p, d.len, "\n");

		assert_refused(pem, strlen(pem), cases[i].part, cases[i].part);
		free(d.p);
	}
}

/* What stands instead of a clean block. %s is a good PEM, $ its base64 body. */
Test(pki_spki, refuses_text_that_is_not_one_clean_block)
{
	struct der d = take_der(make_rsa("RSA", 2048, 65537));
	cleanup_free char *pem = pem_of(d.p, d.len, "\n");
	const char *body = pem + strlen(BEGIN);
	const struct {
		char *text;
		const char *part;
	} cases[] = {
		{xstrdup(""), "is empty"},
		{xstrdup(" \r\n\t"), "is empty"},
		{xstrdup("hello"), "does not begin"},
		{xasprintf("key: %s", pem), "does not begin"},
		{xasprintf("%s%s", pem, pem), "more than one"},
		{xasprintf("%sx", pem), "more than one"},
		{xstrndup(pem, 100), "no end line"},
		{xstrndup(pem, strlen(pem) - strlen(END)), "no end line"},
		{xstrdup(BEGIN), "trailing data"},
		{xstrdup(BEGIN END), "SubjectPublicKeyInfo"},
		{xasprintf("-----BEGIN PUBLIC KEY----- \n%s", body), "trailing data"},
		{xasprintf("-----BEGIN PUBLIC KEY-----\r%s", body), "trailing data"},
		{xasprintf(BEGIN "\n%s", body), "empty line"},
		{xasprintf(BEGIN "Proc-Type: 4,ENCRYPTED\n\n%s", body), "header lines"},
		{xasprintf(BEGIN "Comment: a\n%s", body), "header lines"},
		{xasprintf(BEGIN " %s", body), "not base64"},
		{xasprintf(BEGIN "!!!!\n%s", body), "not base64"},
		{xasprintf(BEGIN "=%s", body), "not base64"},
		{xasprintf("-----BEGIN RSA PUBLIC KEY-----\n%s", body), "PKCS #1"},
		{xasprintf("-----BEGIN CERTIFICATE-----\n%s", body), "a certificate"},
		{xasprintf("-----BEGIN EC PARAMETERS-----\n%s", body), "curve parameters"},
		{xasprintf("-----BEGIN PRIVATE KEY-----\n%s", body), "must stay"},
		{xasprintf("-----BEGIN RSA PRIVATE KEY-----\n%s", body), "must stay"},
		{xasprintf("-----BEGIN ENCRYPTED PRIVATE KEY-----\n%s", body), "must stay"},
		{xasprintf("-----BEGIN OPENSSH PRIVATE KEY-----\n%s", body), "must stay"},
		{xstrdup("-----BEGIN "), "does not begin"},
		{xstrdup("-----BEGIN PUBLIC KEY"), "not a public key"},
		{xstrdup("-----BEGIN GARBAGE-----\n"), "not a public key"},
		{xasprintf("-----BEGIN SSH2 PUBLIC KEY-----\n%s", body), "not a public key"},
		{xasprintf(BEGIN "%8300d\n%s", 1, body), "too long"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_free char *text = cases[i].text;

		assert_refused(text, strlen(text), cases[i].part, text);
	}
	free(d.p);
}

Test(pki_spki, refuses_nul_bytes)
{
	struct der d = take_der(make_rsa("RSA", 2048, 65537));
	cleanup_free char *pem = pem_of(d.p, d.len, "\n");

	assert_refused(pem, strlen(pem) + 1, "NUL", "a NUL behind");
	pem[60] = '\0';
	assert_refused(pem, strlen(pem) + 100, "NUL", "a NUL within");
	free(d.p);
}

/* Where DER of RSA-2048 has its parts: 4 SPKI, 15 algorithm, 5 bit string, 4 RSAPublicKey, 4 n,
 * 257, 2 e, 3. */
Test(pki_spki, refuses_der_that_is_not_the_one_encoding)
{
	struct der d = take_der(make_rsa("RSA", 2048, 65537));
	const struct {
		size_t at;
		int insert; /* bytes of 0x00 put in; -1: one is taken out */
		uint8_t value;
		const char *what;
	} cases[] = {
		{d.len, 1, 0, "a byte behind"},
		{d.len, 100, 0, "100 bytes behind"},
		{d.len - 1, -1, 0, "one byte less"},
		{1, 0, 0x83, "three length bytes"},
		{1, 0, 0x80, "indefinite length"},
		{2, 0, 0, "a length with a zero in front"},
		{0, 0, 0x31, "a SET"},
		{17, 0, 0x04, "parameters that are not NULL"},
		{23, 0, 0x01, "unused bits"},
		{32, 0, 0x80, "a negative modulus"},
		{d.len - 1, 0, 0x00, "an even exponent"},
		{d.len - 4, 0, 0x02, "a cut exponent"},
		{d.len - 6, 0, 0x00, "an even modulus"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		size_t len = cases[i].insert < 0 ? d.len - 1 : d.len + (size_t)cases[i].insert;
		cleanup_free uint8_t *der = xcalloc(1, len + 1);
		cleanup_free char *pem = NULL;

		memcpy(der, d.p, len < d.len ? len : d.len);
		if (cases[i].insert == 0)
			der[cases[i].at] = cases[i].value;
		pem = pem_of(der, len, "\n");
		assert_refused(pem, strlen(pem), "", cases[i].what);
	}
	free(d.p);
}

Test(pki_spki, agrees_with_openssl_on_every_single_bit_error)
{
	struct der d = take_der(make_rsa("RSA", 2048, 65537));
	size_t accepted = 0;

	for (size_t i = 0; i < d.len * 8; i++) {
		cleanup_free char *pem = NULL;
		struct pki_spki k;
		struct err err;

		if (i / 8 > 60 && i / 8 + 20 < d.len)
			continue; /* the middle of the modulus: any value is a key */
		d.p[i / 8] ^= (uint8_t)(1u << i % 8);
		pem = pem_of(d.p, d.len, "\n");
		if (parse(pem, &k, &err) == 0) {
			assert_openssl_agrees(&k);
			accepted++;
		}
		d.p[i / 8] ^= (uint8_t)(1u << i % 8);
	}
	cr_assert_gt(accepted, 0);
	free(d.p);
}

Test(pki_spki, leaves_openssls_error_queue_alone)
{
	struct pki_spki k;
	struct err err;

	ERR_clear_error();
	cr_assert_eq(parse("garbage", &k, &err), -1);
	cr_assert_eq(ERR_peek_error(), 0);
}
