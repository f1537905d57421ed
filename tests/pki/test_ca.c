/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <string.h>

#include "tec/base/mem.h"
#include "tec/pki/ca.h"
#include "tec/pki/cert.h"

#define NOW INT64_C(1790000000)
#define DAY INT64_C(86400)

static X509 *parse(const struct strbuf *pem)
{
	BIO *bio = BIO_new_mem_buf(pem->data, (int)pem->len);
	X509 *x = PEM_read_bio_X509(bio, NULL, NULL, NULL);

	cr_assert(x);
	BIO_free(bio);
	return x;
}

static void subject(const struct strbuf *pem, char out[200])
{
	X509 *x = parse(pem);

	X509_NAME_oneline(X509_get_subject_name(x), out, 200);
	X509_free(x);
}

static void make(const struct pki_key *key, int64_t now_s, struct strbuf *out)
{
	struct err err = ERR_INIT;

	cr_assert_eq(pki_ca_issue(key, NULL, now_s, out, &err), 0, "%s", err.text);
}

/* The file of tecctl bootstrap ca. */
static void make_file(const struct pki_key *key, int64_t now_s, struct strbuf *out)
{
	cleanup_secret struct secret *pem = pki_key_private_pem(key);

	make(key, now_s, out);
	strbuf_add(out, secret_peek(pem), secret_len(pem));
}

Test(pki_ca, each_has_a_subject_of_its_own_and_keeps_it)
{
	cleanup_pki_key struct pki_key *a = pki_key_new_p256(), *b = pki_key_new_p256();
	cleanup_strbuf struct strbuf one = STRBUF_INIT, two = STRBUF_INIT, again = STRBUF_INIT;
	char of_one[200], of_two[200], of_again[200];
	struct err err = ERR_INIT;
	int64_t end;

	make(a, NOW, &one);
	make(b, NOW, &two);
	subject(&one, of_one);
	subject(&two, of_two);
	cr_expect(str_starts(of_one, "/CN=tec-operator CA for nodes "), "%s", of_one);
	cr_expect_str_neq(of_one, of_two);
	cr_assert_eq(pki_ca_issue(a, one.data, NOW + 7000 * DAY, &again, &err), 0, "%s", err.text);
	subject(&again, of_again);
	cr_expect_str_eq(of_one, of_again);
	cr_expect_eq(pki_cert_not_after(again.data, again.len, &end, &err), 0);
	cr_expect_eq(end, NOW + 7000 * DAY + PKI_CA_DAYS * DAY);
	cr_expect_eq(pki_ca_issue(b, one.data, NOW, &again, &err), -1, "a CA of another key");
}

Test(pki_ca, a_subject_of_another_program_is_kept_too)
{
	struct pki_issue what = {PKI_ISSUE_CA, "tec-operator CA for nodes", "Acme", NULL, NOW, 900};
	cleanup_pki_key struct pki_key *key = pki_key_new_p256(), *leaf = pki_key_new_p256();
	static const char *const names[] = {"kbs.example.org", NULL};
	struct pki_issue server = {PKI_ISSUE_SERVER, "kbs", NULL, names, NOW + 800 * DAY, 90};
	cleanup_strbuf struct strbuf old = STRBUF_INIT, new = STRBUF_INIT, cert = STRBUF_INIT;
	struct err err = ERR_INIT;
	X509 *pinned, *x;

	cr_assert_eq(pki_issue(&what, key, key, NULL, &old, &err), 0);
	cr_assert_eq(pki_ca_issue(key, old.data, NOW + 800 * DAY, &new, &err), 0, "%s", err.text);
	cr_assert_eq(pki_issue(&server, leaf, key, new.data, &cert, &err), 0, "%s", err.text);
	pinned = parse(&old);
	x = parse(&cert);
	cr_expect_eq(X509_check_issued(pinned, x), X509_V_OK);
	cr_expect_eq(X509_verify(x, X509_get0_pubkey(pinned)), 1);
	X509_free(pinned);
	X509_free(x);
}

Test(pki_ca, a_file_of_certificate_and_key_is_read)
{
	cleanup_pki_key struct pki_key *key = pki_key_new_p256();
	cleanup_strbuf struct strbuf cert = STRBUF_INIT, text = STRBUF_INIT;
	cleanup_secret struct secret *pem = pki_key_private_pem(key);
	cleanup_pki_ca struct pki_ca ca = {.key = NULL};
	struct err err = ERR_INIT;

	make(key, NOW, &cert);
	strbuf_adds(&text, "# key first, and text around\n");
	strbuf_add(&text, secret_peek(pem), secret_len(pem));
	strbuf_adds(&text, "subject=x\n");
	strbuf_add(&text, cert.data, cert.len);
	cr_assert_eq(pki_ca_read(text.data, text.len, NOW, &ca, &err), 0, "%s", err.text);
	cr_expect_str_eq(strbuf_str(&ca.cert), strbuf_str(&cert));
	cr_expect_null(strstr(ca.cert.data, "PRIVATE"));
	cr_expect(pki_issue_fits(ca.cert.data, ca.cert.len, ca.key));
	cr_expect_eq(ca.end_s, NOW + PKI_CA_DAYS * DAY);
}

static void refused(const struct strbuf *text, int64_t now_s, const char *why)
{
	struct pki_ca ca;
	struct err err = ERR_INIT;

	cr_expect_eq(pki_ca_read(strbuf_str(text), text->len, now_s, &ca, &err), -1, "%s", why);
	cr_expect_eq(err.kind, ERR_INVALID);
	cr_expect(strstr(err.text, why), "%s: %s", why, err.text);
	cr_expect(!ca.key && !ca.cert.data);
	cr_expect_eq(ERR_peek_error(), 0);
}

Test(pki_ca, what_is_no_authority_with_its_key_is_refused)
{
	cleanup_pki_key struct pki_key *key = pki_key_new_p256(), *other = pki_key_new_p256();
	cleanup_strbuf struct strbuf cert = STRBUF_INIT, file = STRBUF_INIT, bad = STRBUF_INIT;
	cleanup_secret struct secret *pem = pki_key_private_pem(other);
	static const char *const names[] = {"a", NULL};
	struct pki_issue server = {PKI_ISSUE_SERVER, "a", NULL, names, NOW, 10};
	struct err err = ERR_INIT;

	make(key, NOW, &cert);
	make_file(key, NOW, &file);
	refused(&bad, NOW, "no certificate in PEM");
	strbuf_adds(&bad, "garbage\n");
	refused(&bad, NOW, "no certificate in PEM");
	refused(&cert, NOW, "private key is missing");
	refused(&file, NOW + PKI_CA_DAYS * DAY, "expired at 20");
	refused(&file, NOW - 2 * DAY, "not valid yet");
	strbuf_reset(&bad);
	strbuf_add(&bad, file.data, file.len);
	strbuf_add(&bad, cert.data, cert.len);
	refused(&bad, NOW, "more than one certificate");
	strbuf_reset(&bad);
	strbuf_add(&bad, cert.data, cert.len);
	strbuf_add(&bad, secret_peek(pem), secret_len(pem));
	refused(&bad, NOW, "does not belong");
	strbuf_add(&bad, secret_peek(pem), secret_len(pem));
	refused(&bad, NOW, "more than one private key");
	strbuf_reset(&bad);
	strbuf_add(&bad, file.data, file.len - 10);
	refused(&bad, NOW, "truncated");
	strbuf_adds(&file, "-----BEGIN ENCRYPTED PRIVATE KEY-----\n");
	refused(&file, NOW, "neither a certificate");
	strbuf_reset(&bad);
	strbuf_add(&bad, cert.data, cert.len);
	strbuf_adds(&bad, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n");
	refused(&bad, NOW, "no unencrypted private key");
	strbuf_addc(&bad, '\0');
	refused(&bad, NOW, "not PEM text");
	strbuf_reset(&bad);
	cr_assert_eq(pki_issue(&server, other, key, cert.data, &bad, &err), 0);
	strbuf_add(&bad, secret_peek(pem), secret_len(pem));
	refused(&bad, NOW, "not a self-signed CA certificate");
	strbuf_reset(&bad);
	cr_assert_eq(pki_cert_self_signed(other, "a", NOW, 10, &bad, &err), 0);
	strbuf_add(&bad, secret_peek(pem), secret_len(pem));
	refused(&bad, NOW, "not a self-signed CA certificate");
}
