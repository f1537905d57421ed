/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <time.h>

#include "tec/base/mem.h"
#include "tec/pki/cert.h"

#define NOW  INT64_C(1790000000)
#define DAYS 365

static struct pki_key *ca_key;
static struct strbuf ca;

static void up(void)
{
	struct pki_issue what = {PKI_ISSUE_CA, "tec-operator CA", NULL, NULL, NOW, DAYS * 10};
	struct err err = ERR_INIT;

	ca_key = pki_key_new_p256();
	cr_assert_eq(pki_issue(&what, ca_key, ca_key, NULL, &ca, &err), 0, "%s", err.text);
}

static void down(void)
{
	pki_key_free(ca_key);
	strbuf_fini(&ca);
}

TestSuite(pki_issue, .init = up, .fini = down);

static X509 *parse(const struct strbuf *pem)
{
	BIO *bio = BIO_new_mem_buf(pem->data, (int)pem->len);
	X509 *x = PEM_read_bio_X509(bio, NULL, NULL, NULL);

	cr_assert(x);
	BIO_free(bio);
	return x;
}

/* The verdict of OpenSSL at a time, for a purpose. */
static bool verifies(
	const struct strbuf *leaf, const struct strbuf *anchor, int64_t at, int purpose)
{
	X509_STORE *store = X509_STORE_new();
	X509_STORE_CTX *ctx = X509_STORE_CTX_new();
	X509 *x = parse(leaf), *a = parse(anchor);
	bool ok;

	X509_STORE_add_cert(store, a);
	X509_STORE_CTX_init(ctx, store, x, NULL);
	X509_STORE_CTX_set_purpose(ctx, purpose);
	X509_VERIFY_PARAM_set_time(X509_STORE_CTX_get0_param(ctx), (time_t)at);
	ok = X509_verify_cert(ctx) == 1;
	X509_STORE_CTX_free(ctx);
	X509_STORE_free(store);
	X509_free(x);
	X509_free(a);
	ERR_clear_error();
	return ok;
}

static void issue(enum pki_issue_use use, const char *const *names, const struct pki_key *key,
	struct strbuf *out)
{
	struct pki_issue what = {use, "admin", "system:masters", names, NOW, DAYS};
	struct err err = ERR_INIT;

	cr_assert_eq(pki_issue(&what, key, ca_key, ca.data, out, &err), 0, "%s", err.text);
	cr_expect_eq(ERR_peek_error(), 0);
}

Test(pki_issue, a_certificate_serves_its_purpose_and_time_alone)
{
	static const char *const names[] = {"localhost", "127.0.0.1", "::1", NULL};
	cleanup_pki_key struct pki_key *key = pki_key_new_p256(), *other = pki_key_new_p256();
	cleanup_strbuf struct strbuf server = STRBUF_INIT, client = STRBUF_INIT;
	int64_t end = 0;
	struct err err = ERR_INIT;

	issue(PKI_ISSUE_SERVER, names, key, &server);
	issue(PKI_ISSUE_CLIENT, NULL, key, &client);
	cr_expect(verifies(&server, &ca, NOW, X509_PURPOSE_SSL_SERVER));
	cr_expect(verifies(&client, &ca, NOW, X509_PURPOSE_SSL_CLIENT));
	cr_expect_not(verifies(&server, &ca, NOW, X509_PURPOSE_SSL_CLIENT));
	cr_expect_not(verifies(&client, &ca, NOW, X509_PURPOSE_SSL_SERVER));
	cr_expect_not(
		verifies(&client, &server, NOW, X509_PURPOSE_SSL_CLIENT), "a leaf signs nothing");
	cr_expect_not(verifies(&client, &ca, NOW - 86401, X509_PURPOSE_SSL_CLIENT));
	cr_expect_not(verifies(&client, &ca, NOW + DAYS * 86400 + 1, X509_PURPOSE_SSL_CLIENT));
	cr_expect_eq(pki_cert_not_after(client.data, client.len, &end, &err), 0);
	cr_expect_eq(end, NOW + DAYS * 86400);
	cr_expect(pki_issue_fits(client.data, client.len, key));
	cr_expect_not(pki_issue_fits(client.data, client.len, other));
	cr_expect_not(pki_issue_fits("", 0, key));
}

Test(pki_issue, a_server_keeps_what_fits_and_lasts)
{
	static const char *const names[] = {"localhost", "127.0.0.1", NULL};
	static const char *const more[] = {"localhost", "10.0.0.1", NULL};
	cleanup_pki_key struct pki_key *key = pki_key_new_p256(), *other = pki_key_new_p256();
	cleanup_strbuf struct strbuf pem = STRBUF_INIT;
	const int64_t end = NOW + DAYS * 86400;

	issue(PKI_ISSUE_SERVER, names, key, &pem);
	cr_expect(pki_issue_serves(pem.data, pem.len, key, names, NOW, 60));
	cr_expect(pki_issue_serves(pem.data, pem.len, key, names, end - 60 * 86400 - 1, 60));
	cr_expect_not(pki_issue_serves(pem.data, pem.len, key, names, end - 60 * 86400, 60));
	cr_expect_not(pki_issue_serves(pem.data, pem.len, other, names, NOW, 60));
	cr_expect_not(pki_issue_serves(pem.data, pem.len, key, more, NOW, 60));
	cr_expect_not(pki_issue_serves("", 0, key, names, NOW, 60));
	cr_expect(pki_cert_lasts(pem.data, pem.len, NOW, DAYS - 1));
	cr_expect_not(pki_cert_lasts(pem.data, pem.len, NOW, DAYS));
	cr_expect_not(pki_cert_lasts("x", 1, NOW, 0));
}

/* A node whose clock is late believes in what was made just now; what was made while the clock was
 * ahead does not last. */
Test(pki_issue, a_leaf_begins_with_its_authority)
{
	static const char *const names[] = {"localhost", NULL};
	const struct pki_issue later = {PKI_ISSUE_SERVER, "s", NULL, names, NOW + 40 * 86400, DAYS};
	cleanup_pki_key struct pki_key *key = pki_key_new_p256();
	cleanup_strbuf struct strbuf leaf = STRBUF_INIT;
	struct err err = ERR_INIT;
	int64_t ca_s, leaf_s;

	cr_assert_eq(pki_issue(&later, key, ca_key, ca.data, &leaf, &err), 0, "%s", err.text);
	cr_assert_eq(pki_cert_not_before(ca.data, ca.len, &ca_s, &err), 0);
	cr_assert_eq(pki_cert_not_before(leaf.data, leaf.len, &leaf_s, &err), 0);
	cr_expect_eq(ca_s, NOW - 86400);
	cr_expect_eq(leaf_s, ca_s);
	cr_expect(pki_cert_lasts(ca.data, ca.len, ca_s, 0));
	cr_expect_not(pki_cert_lasts(ca.data, ca.len, ca_s - 1, 0));
	cr_expect_eq(pki_cert_not_before("x", 1, &leaf_s, &err), -1);
}

Test(pki_issue, names_are_those_asked_for)
{
	static const char *const names[] = {"localhost", "127.0.0.1", "::1", NULL};
	static const char *const more[] = {"localhost", "10.0.0.1", NULL};
	static const char *const bad[][2] = {
		{"a,DNS:b", NULL}, {"", NULL}, {"a b", NULL}, {"*.x", NULL}, {"a\n", NULL}};
	cleanup_pki_key struct pki_key *key = pki_key_new_p256();
	cleanup_strbuf struct strbuf server = STRBUF_INIT;

	issue(PKI_ISSUE_SERVER, names, key, &server);
	cr_expect(pki_issue_names(server.data, server.len, names));
	cr_expect_not(pki_issue_names(server.data, server.len, more));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct pki_issue what = {PKI_ISSUE_SERVER, "a", NULL, bad[i], NOW, DAYS};
		struct err err = ERR_INIT;

		cr_expect_eq(
			pki_issue(&what, key, ca_key, ca.data, &server, &err), -1, "%s", bad[i][0]);
		cr_expect_eq(err.kind, ERR_INVALID);
	}
}

Test(pki_issue, host_names_are_known_from_what_is_none)
{
	static const char *const good[] = {"a", "kbs-service.ns.svc", "1.example.org", "10.0.0.1",
		"fd00::1", "a_b.example", "x-1"};
	static const char *const bad[] = {"", ".", "a.", ".a", "a..b", "-a", "a-", "a.-b", "a b",
		"a:80", "[::1]", "https://a", "a/b", "*.a", "a,DNS:b", "a\n", "1.2.3", "300.1.1.1",
		"b\xc3\xbc.example", "10.0.0.1/8"};
	char longest[65];

	memset(longest, 'a', 64);
	longest[64] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		cr_expect(pki_issue_name_valid(good[i]), "%s", good[i]);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		cr_expect_not(pki_issue_name_valid(bad[i]), "%s", bad[i]);
	cr_expect_not(pki_issue_name_valid(longest));
	cr_expect(pki_issue_name_valid(longest + 1));
}

Test(pki_issue, another_authority_is_refused)
{
	cleanup_pki_key struct pki_key *key = pki_key_new_p256();
	struct pki_issue what = {PKI_ISSUE_CLIENT, "a", NULL, NULL, NOW, DAYS};
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	struct err err = ERR_INIT;

	cr_expect_eq(
		pki_issue(&what, key, key, ca.data, &out, &err), -1, "a key that is not the CA's");
	err = (struct err)ERR_INIT;
	cr_expect_eq(pki_issue(&what, key, ca_key, "garbage", &out, &err), -1);
	cr_expect_eq(out.len, 0);
	cr_expect_eq(ERR_peek_error(), 0);
}
