/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include "net_testing.h"

#include "tec/net/tls.h"

static struct tls_ctx *make(const char *cert, const char *key, struct err *err)
{
	return tls_ctx_new(cert, strlen(cert), key, strlen(key), err);
}

static void assert_refused(const char *cert, const char *key, const char *what)
{
	struct err err = ERR_INIT;

	cr_assert_null(make(cert, key, &err), "%s", what);
	cr_assert_eq(err.kind, ERR_INVALID, "%s", what);
	cr_assert_null(strstr(err.text, "-----"), "%s", err.text);
	cr_assert_eq(ERR_peek_error(), 0, "%s leaves an OpenSSL error behind", what);
}

Test(net_tls, takes_a_certificate_and_its_key)
{
	struct testing_pem pem = testing_make_pem(1, 3600);
	struct err err = ERR_INIT;
	struct tls_ctx *c = make(pem.cert, pem.key, &err);
	int64_t left;

	cr_assert_not_null(c, "%s", err.text);
	left = tls_ctx_not_after(c) - clock_wall_s();
	cr_assert(left > 3500 && left <= 3600, "%lld", (long long)left);
	cr_assert_eq(SSL_CTX_get_min_proto_version(tls_ctx_ssl(c)), TLS1_2_VERSION);
	cr_assert_eq(SSL_CTX_get_num_tickets(tls_ctx_ssl(c)), 0);
	cr_assert(SSL_CTX_get_mode(tls_ctx_ssl(c)) & SSL_MODE_RELEASE_BUFFERS);
	cr_assert_eq(SSL_CTX_get_session_cache_mode(tls_ctx_ssl(c)), SSL_SESS_CACHE_OFF);
	cr_assert_eq(ERR_peek_error(), 0);
	tls_ctx_unref(c);
	testing_pem_fini(&pem);
}

Test(net_tls, takes_a_chain)
{
	struct testing_pem leaf = testing_make_pem(1, 3600), ca = testing_make_pem(2, 3600);
	cleanup_free char *both = xasprintf("%s\n# intermediate\n%s", leaf.cert, ca.cert);
	struct err err = ERR_INIT;
	struct tls_ctx *c = make(both, leaf.key, &err);
	STACK_OF(X509) *chain = NULL;

	cr_assert_not_null(c, "%s", err.text);
	SSL_CTX_get0_chain_certs(tls_ctx_ssl(c), &chain);
	cr_assert_eq(sk_X509_num(chain), 1);
	tls_ctx_unref(c);
	testing_pem_fini(&leaf);
	testing_pem_fini(&ca);
}

Test(net_tls, serves_a_chain_in_the_wrong_order_in_the_right_one)
{
	struct testing_pem leaf = testing_make_pem(1, 3600), ca = testing_make_pem(2, 7200);
	cleanup_free char *both = xasprintf("%s%s", ca.cert, leaf.cert);
	struct err err = ERR_INIT;
	struct tls_ctx *c = make(both, leaf.key, &err);
	STACK_OF(X509) *chain = NULL;

	cr_assert_not_null(c, "%s", err.text);
	cr_assert_leq(tls_ctx_not_after(c) - clock_wall_s(), 3600);
	SSL_CTX_get0_chain_certs(tls_ctx_ssl(c), &chain);
	cr_assert_eq(sk_X509_num(chain), 1);
	tls_ctx_unref(c);
	testing_pem_fini(&leaf);
	testing_pem_fini(&ca);
}

Test(net_tls, refuses_a_key_that_does_not_fit_and_garbage)
{
	struct testing_pem a = testing_make_pem(1, 3600), b = testing_make_pem(2, 3600);
	cleanup_free char *cut = xstrndup(a.cert, strlen(a.cert) / 2);
	cleanup_free char *bad_chain = xasprintf("%s%s", a.cert, cut);
	cleanup_free char *huge = xmalloc(1024 * 1024 + 2);

	assert_refused(a.cert, b.key, "another key");
	assert_refused("", a.key, "no certificate");
	assert_refused(a.cert, "", "no key");
	assert_refused("garbage", a.key, "garbage certificate");
	assert_refused(a.cert, "garbage", "garbage key");
	assert_refused(cut, a.key, "half a certificate");
	assert_refused(bad_chain, a.key, "half an intermediate");
	assert_refused(a.key, a.key, "a key as certificate");
	assert_refused(a.cert, a.cert, "a certificate as key");
	memset(huge, 'x', 1024 * 1024 + 1);
	huge[1024 * 1024 + 1] = '\0';
	assert_refused(huge, a.key, "a megabyte");
	testing_pem_fini(&a);
	testing_pem_fini(&b);
}

Test(net_tls, never_asks_for_a_pass_phrase)
{
	struct testing_pem pem = testing_make_pem(1, 3600);
	BIO *in = BIO_new_mem_buf(pem.key, -1), *out = BIO_new(BIO_s_mem());
	EVP_PKEY *key = PEM_read_bio_PrivateKey(in, NULL, NULL, NULL);
	cleanup_free char *locked = NULL;

	PEM_write_bio_PKCS8PrivateKey(out, key, EVP_aes_128_cbc(), "pw", 2, NULL, NULL);
	locked = testing_pem_text(out);
	assert_refused(pem.cert, locked, "an encrypted key");
	EVP_PKEY_free(key);
	BIO_free(in);
	testing_pem_fini(&pem);
}

/* Ask for certificates of the n CAs that cas concatenates, followed by text. */
static int ask(const char *cas, size_t n, const char *text, struct err *err)
{
	struct testing_pem pem = testing_make_pem(1, 3600);
	struct err ignored = ERR_INIT;
	struct tls_ctx *c = make(pem.cert, pem.key, &ignored);
	cleanup_free char *all = xasprintf("%s%s", cas, text);
	int rc = tls_ctx_ask_clients(c, all, strlen(all), err);

	cr_assert_eq(ERR_peek_error(), 0);
	if (rc == 0)
		cr_assert_eq(sk_X509_NAME_num(SSL_CTX_get_client_CA_list(tls_ctx_ssl(c))), n);
	tls_ctx_unref(c);
	testing_pem_fini(&pem);
	return rc;
}

Test(net_tls, takes_every_ca_of_clients_or_none)
{
	cleanup_strbuf struct strbuf cas = STRBUF_INIT;
	struct err err = ERR_INIT;

	cr_assert_eq(ask("", 0, "", &err), -1);
	cr_assert_eq(err.kind, ERR_INVALID);
	for (size_t n = 1; n <= 17; n++) {
		struct testing_pem ca = testing_make_pem((long)n, 3600);

		strbuf_adds(&cas, ca.cert);
		testing_pem_fini(&ca);
		err = (struct err)ERR_INIT;
		cr_assert_eq(ask(strbuf_str(&cas), n, "# the end\n", &err), n <= 16 ? 0 : -1,
			"%zu: %s", n, err.text);
		cr_assert_eq(err.kind, n <= 16 ? ERR_NONE : ERR_INVALID);
	}
}

Test(net_tls, refuses_a_malformed_ca_of_clients)
{
	static const char *const malformed[] = {
		"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
		"-----BEGIN CERTIFICATE-----\n*\n-----END CERTIFICATE-----\n",
		"-----BEGIN CERTIFICATE-----\nMIIB\n",
	};
	struct testing_pem ca = testing_make_pem(2, 3600);

	for (size_t i = 0; i < ARRAY_LEN(malformed); i++) {
		cleanup_free char *text = xasprintf("%s%s", malformed[i], ca.cert);
		struct err err = ERR_INIT;

		cr_assert_eq(ask(ca.cert, 1, text, &err), -1, "%zu", i);
		cr_assert_eq(err.kind, ERR_INVALID);
	}
	testing_pem_fini(&ca);
}

Test(net_tls, lives_as_long_as_its_last_reference)
{
	struct testing_pem pem = testing_make_pem(1, 3600);
	struct err err = ERR_INIT;
	struct tls_ctx *c = make(pem.cert, pem.key, &err);

	cr_assert_eq(tls_ctx_ref(c), c);
	tls_ctx_unref(c);
	cr_assert_gt(tls_ctx_not_after(c), 0);
	tls_ctx_unref(c);
	tls_ctx_unref(NULL);
	testing_pem_fini(&pem);
}
