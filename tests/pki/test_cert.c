/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <time.h>

#include "tec/base/bytes.h"
#include "tec/base/mem.h"
#include "tec/pki/cert.h"

#define NOW  INT64_C(1790000000)
#define DAYS 3650

static void make(struct strbuf *out)
{
	cleanup_pki_key struct pki_key *k = pki_key_new_p256();
	struct err err = ERR_INIT;

	cr_assert_eq(pki_cert_self_signed(k, "tec token signer", NOW, DAYS, out, &err), 0, "%s",
		err.text);
}

static X509 *parse(const struct strbuf *pem)
{
	BIO *bio = BIO_new_mem_buf(pem->data, (int)pem->len);
	X509 *x = PEM_read_bio_X509(bio, NULL, NULL, NULL);

	cr_assert(x);
	BIO_free(bio);
	return x;
}

static int verify(X509 *x, int64_t at)
{
	X509_STORE *store = X509_STORE_new();
	X509_STORE_CTX *ctx = X509_STORE_CTX_new();
	X509_VERIFY_PARAM *param;
	int ok;

	X509_STORE_add_cert(store, x);
	X509_STORE_CTX_init(ctx, store, x, NULL);
	param = X509_STORE_CTX_get0_param(ctx);
	X509_VERIFY_PARAM_set_time(param, (time_t)at);
	ok = X509_verify_cert(ctx);
	X509_STORE_CTX_free(ctx);
	X509_STORE_free(store);
	return ok;
}

Test(pki_cert, self_signed_is_its_own_anchor_while_it_is_valid)
{
	cleanup_strbuf struct strbuf pem = STRBUF_INIT;
	X509 *x;

	make(&pem);
	x = parse(&pem);
	cr_assert_eq(verify(x, NOW), 1);
	cr_assert_eq(verify(x, NOW - 299), 1, "five minutes of skew");
	cr_assert_neq(verify(x, NOW - 301), 1);
	cr_assert_eq(verify(x, NOW + DAYS * INT64_C(86400) - 1), 1);
	cr_assert_neq(verify(x, NOW + DAYS * INT64_C(86400) + 1), 1);
	X509_free(x);
}

Test(pki_cert, self_signed_is_v3_without_basic_constraints)
{
	cleanup_strbuf struct strbuf pem = STRBUF_INIT;
	char cn[64] = "";
	X509 *x;

	make(&pem);
	x = parse(&pem);
	cr_assert_eq(X509_get_version(x), X509_VERSION_3);
	cr_assert_lt(X509_get_ext_by_NID(x, NID_basic_constraints, -1), 0);
	cr_assert_geq(X509_get_ext_by_NID(x, NID_subject_key_identifier, -1), 0);
	X509_NAME_get_text_by_NID(X509_get_subject_name(x), NID_commonName, cn, sizeof(cn));
	cr_assert_str_eq(cn, "tec token signer");
	cr_assert_eq(X509_NAME_cmp(X509_get_subject_name(x), X509_get_issuer_name(x)), 0);
	cr_assert_eq(ASN1_INTEGER_get(X509_get0_serialNumber(x)), -1, "a long serial number");
	X509_free(x);
	ERR_clear_error();
}

Test(pki_cert, self_signed_takes_ed25519)
{
	cleanup_pki_key struct pki_key *k = pki_key_new_ed25519();
	cleanup_strbuf struct strbuf pem = STRBUF_INIT;
	struct err err = ERR_INIT;
	X509 *x;

	cr_assert_eq(pki_cert_self_signed(k, "a", NOW, 1, &pem, &err), 0, "%s", err.text);
	x = parse(&pem);
	cr_assert_eq(verify(x, NOW), 1);
	X509_free(x);
}

Test(pki_cert, self_signed_refuses_names_that_do_not_fit)
{
	cleanup_pki_key struct pki_key *k = pki_key_new_p256();
	cleanup_strbuf struct strbuf pem = STRBUF_INIT;
	cleanup_free char *longer = xasprintf("%065d", 0);
	struct err err = ERR_INIT, err2 = ERR_INIT, err3 = ERR_INIT;

	cr_assert_eq(pki_cert_self_signed(k, longer, NOW, 1, &pem, &err), -1);
	cr_assert_eq(pki_cert_self_signed(k, "", NOW, 1, &pem, &err2), -1);
	cr_assert_eq(pki_cert_self_signed(k, "a", NOW, 0, &pem, &err3), -1);
	cr_assert_eq(err.kind, ERR_INVALID);
	cr_assert_eq(pem.len, 0);
}

Test(pki_cert, not_after_is_read_to_the_second)
{
	cleanup_strbuf struct strbuf pem = STRBUF_INIT;
	struct err err = ERR_INIT;
	int64_t s = 0;

	make(&pem);
	cr_assert_eq(pki_cert_not_after(pem.data, pem.len, &s, &err), 0, "%s", err.text);
	cr_assert_eq(s, NOW + DAYS * INT64_C(86400));
}

/* "c" a certificate, "k" a private key, "x" a broken certificate, "t" free text, "h" half a block,
 * "0" a NUL. */
static void compose(const char *recipe, struct strbuf *out)
{
	for (; *recipe; recipe++) {
		cleanup_pki_key struct pki_key *k = pki_key_new_ed25519();
		cleanup_secret struct secret *pem = pki_key_private_pem(k);
		cleanup_strbuf struct strbuf cert = STRBUF_INIT;

		make(&cert);
		if (*recipe == 'c')
			strbuf_add(out, cert.data, cert.len);
		else if (*recipe == 'k')
			strbuf_add(out, secret_peek(pem), secret_len(pem));
		else if (*recipe == 'x')
			strbuf_adds(out,
				"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
		else if (*recipe == 't')
			strbuf_adds(out, "# some CA\n");
		else if (*recipe == 'h')
			strbuf_add(out, cert.data, cert.len / 2);
		else
			strbuf_addc(out, '\0');
	}
}

Test(pki_cert, bundle_is_certificates_and_nothing_else)
{
	static const struct {
		const char *recipe;
		int result;
	} cases[] = {
		{"c", 0},
		{"ccc", 0},
		{"tctc", 0},
		{"", -1},
		{"t", -1},
		{"k", -1},
		{"ck", -1},
		{"kc", -1},
		{"cx", -1},
		{"ch", -1},
		{"h", -1},
		{"c0", -1},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_strbuf struct strbuf b = STRBUF_INIT;
		struct err err = ERR_INIT;

		compose(cases[i].recipe, &b);
		cr_assert_eq(pki_cert_read_bundle(strbuf_str(&b), b.len, NULL, NULL, &err),
			cases[i].result, "%s: %s", cases[i].recipe, err.text);
		cr_assert_eq(err_is_set(&err), cases[i].result != 0);
		cr_assert_eq(ERR_peek_error(), 0);
	}
}

/* What another reader might take for a certificate is not passed on. */
Test(pki_cert, what_is_read_of_a_bundle_is_the_certificates_alone)
{
	cleanup_strbuf struct strbuf one = STRBUF_INIT, two = STRBUF_INIT, mixed = STRBUF_INIT,
				     text = STRBUF_INIT, sha256 = STRBUF_INIT, want = STRBUF_INIT,
				     hex = STRBUF_INIT;
	const struct strbuf *both[] = {&one, &two};
	struct err err = ERR_INIT;

	make(&one);
	make(&two);
	strbuf_addf(&mixed, "# a comment\r%s \n -----BEGIN CERTIFICATE-----\r\nAAAA\n%s\n",
		strbuf_str(&one), strbuf_str(&two));
	cr_assert_eq(pki_cert_read_bundle(mixed.data, mixed.len, &text, &sha256, &err), 0, "%s",
		err.text);
	cr_assert_eq(text.len, two.len);
	cr_assert_str_eq(strbuf_str(&text), strbuf_str(&two));
	strbuf_fini(&text);
	strbuf_fini(&sha256);

	strbuf_addf(&want, "%s%s", strbuf_str(&one), strbuf_str(&two));
	cr_assert_eq(pki_cert_read_bundle(want.data, want.len, &text, &sha256, &err), 0);
	cr_assert_str_eq(strbuf_str(&text), strbuf_str(&want));
	for (size_t i = 0; i < 2; i++) {
		char digest_hex[SHA256_HEX_LEN + 1];
		uint8_t digest[SHA256_LEN], *der = NULL;
		X509 *x = parse(both[i]);
		int len = i2d_X509(x, &der);

		bytes_sha256(der, (size_t)len, digest);
		bytes_to_hex(digest, SHA256_LEN, digest_hex);
		strbuf_addf(&hex, "%s%s", i ? " " : "", digest_hex);
		OPENSSL_free(der);
		X509_free(x);
	}
	cr_assert_str_eq(strbuf_str(&sha256), strbuf_str(&hex));
}

Test(pki_cert, not_after_needs_a_certificate_first)
{
	static const char *const bad[] = {"", "t", "k", "x", "h"};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		cleanup_strbuf struct strbuf b = STRBUF_INIT;
		struct err err = ERR_INIT;
		int64_t s;

		compose(bad[i], &b);
		cr_assert_eq(pki_cert_not_after(strbuf_str(&b), b.len, &s, &err), -1, "%s", bad[i]);
		cr_assert_eq(err.kind, ERR_INVALID);
	}
}

Test(pki_cert, bundle_of_more_than_a_mebibyte_is_refused)
{
	size_t len = ((size_t)1 << 20) + 1;
	cleanup_free char *big = xmalloc(len);
	struct err err = ERR_INIT;

	memset(big, ' ', len);
	cr_assert_eq(pki_cert_read_bundle(big, len, NULL, NULL, &err), -1);
}
