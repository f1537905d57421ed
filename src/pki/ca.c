/* SPDX-License-Identifier: MIT */
/*
 * Finds the PEM blocks by their BEGIN and END lines, then hands each one to the strict reader of
 * its kind (cert.c, key.c). The text contains a private key, so the only copy made of it is a
 * struct secret.
 */
#include "config.h"

#include "tec/pki/ca.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/mem.h"
#include "tec/pki/cert.h"
#include "tec/pki/openssl.h"

#define BEGIN    "-----BEGIN "
#define NAME     "tec-operator CA for nodes"
#define NAME_HEX 16 /* digits of the key's SHA-256 that make a subject distinct */
#define MAKE_ONE "; next step: tecctl bootstrap ca --out FILE"

void pki_ca_fini(struct pki_ca *ca)
{
	pki_key_free(ca->key);
	strbuf_fini(&ca->cert);
	ca->key = NULL;
}

/* ---- making */

/* The subject contains a digest of the public key. Verifiers look up an issuer by its subject,
 * so two authorities with the same subject would be indistinguishable. */
int pki_ca_issue(const struct pki_key *key, const char *earlier_pem, int64_t now_s,
	struct strbuf *out, struct err *err)
{
	cleanup_strbuf struct strbuf public = STRBUF_INIT;
	uint8_t digest[SHA256_LEN];
	char hex[SHA256_HEX_LEN + 1];
	cleanup_free char *name = NULL;

	pki_key_public_pem(key, &public);
	bytes_sha256(public.data, public.len, digest);
	bytes_to_hex(digest, SHA256_LEN, hex);
	name = xasprintf(NAME " %.*s", NAME_HEX, hex);
	return pki_issue(&(struct pki_issue){PKI_ISSUE_CA, name, NULL, NULL, now_s, PKI_CA_DAYS},
		key, key, earlier_pem, out, err);
}

/* ---- reading */

/* A PEM block with its BEGIN and END lines, inside the caller's text. */
struct block {
	const char *text;
	size_t len;
};

/* Take the block that begins at text. False: the label differs or the END line is missing. */
static bool take_block(const char *text, const char *label, struct block *out)
{
	cleanup_free char *begin = xasprintf(BEGIN "%s-----", label),
			  *end = xasprintf("-----END %s-----", label);
	const char *at = str_starts(text, begin) ? strstr(text, end) : NULL;

	if (!at)
		return false;
	*out = (struct block){text, (size_t)(at - text) + strlen(end)};
	return true;
}

/* Refuse every block that is not expected: a chain or a second key would leave open which one
 * signs. */
static int find_blocks(const char *pem, struct block *cert, struct block *key, struct err *err)
{
	for (const char *at = pem; (at = strstr(at, BEGIN)); at += strlen(BEGIN)) {
		struct block b;
		/* "EC PRIVATE KEY" is the older form (RFC 5915), which pki_key_from_pem() reads
		 * as well. */
		bool is_cert = take_block(at, "CERTIFICATE", &b);

		if (!is_cert && !take_block(at, "PRIVATE KEY", &b) &&
			!take_block(at, "EC PRIVATE KEY", &b))
			return err_set(err, ERR_INVALID,
				"a PEM block is truncated, or is neither a certificate nor an unencrypted private key");
		if (is_cert ? cert->text : key->text)
			return err_set(err, ERR_INVALID,
				"more than one %s; a CA file contains one certificate and one private key",
				is_cert ? "certificate" : "private key");
		*(is_cert ? cert : key) = b;
	}
	if (!cert->text)
		return err_set(err, ERR_INVALID, "no certificate in PEM" MAKE_ONE);
	if (!key->text)
		return err_set(err, ERR_INVALID,
			"the CA's private key is missing; next step: pass the file written by tecctl bootstrap ca");
	return 0;
}

/* Check that the certificate may sign now. */
static int check_cert(X509 *x, int64_t now_s, int64_t end_s, struct err *err)
{
	time_t now = (time_t)now_s;
	char when[CLOCK_RFC3339_LEN];

	/* Require the CA extensions and verify the self-signature: OpenSSL does not check the
	 * signature of a trust anchor. */
	if ((X509_get_extension_flags(x) & (EXFLAG_INVALID | EXFLAG_CA | EXFLAG_SS)) !=
			(EXFLAG_CA | EXFLAG_SS) ||
		!(X509_get_key_usage(x) & KU_KEY_CERT_SIGN) ||
		X509_verify(x, X509_get0_pubkey(x)) != 1)
		return err_set(err, ERR_INVALID,
			"the certificate is not a self-signed CA certificate" MAKE_ONE);
	if (X509_cmp_time(X509_get0_notBefore(x), &now) > 0)
		return err_set(
			err, ERR_INVALID, "the CA is not valid yet; next step: compare the clocks");
	clock_format(end_s, when);
	if (end_s <= now_s)
		return err_set(err, ERR_INVALID, "the CA expired at %s" MAKE_ONE, when);
	return 0;
}

/* Read both blocks and check that they belong together. On failure, the caller releases what was
 * read. */
static int read_blocks(const struct block *cert, const struct block *key, int64_t now_s,
	struct pki_ca *out, struct err *err)
{
	cleanup_secret struct secret *pem = NULL;
	cleanup_x509 X509 *x = NULL;

	if (pki_cert_read_bundle(cert->text, cert->len, &out->cert, NULL, err) < 0 ||
		pki_cert_not_after(cert->text, cert->len, &out->end_s, err) < 0)
		return -1;
	if (key->len > SECRET_MAX_LEN)
		return err_set(err, ERR_INVALID, "the private key is too long");
	pem = secret_new_copy(key->text, key->len);
	out->key = pki_key_from_pem(pem, err);
	if (!out->key)
		return -1;
	x = pki_x509_read_first(cert->text, cert->len);
	if (!x || check_cert(x, now_s, out->end_s, err) < 0)
		return -1;
	return pki_issue_fits(strbuf_str(&out->cert), out->cert.len, out->key)
		       ? 0
		       : err_set(err, ERR_INVALID,
				 "the private key does not belong to the CA's certificate");
}

/* A NUL byte is refused because the block search below uses C strings. */
int pki_ca_read(const char *pem, size_t len, int64_t now_s, struct pki_ca *out, struct err *err)
{
	struct block cert = {NULL, 0}, key = {NULL, 0};
	int rc;

	*out = (struct pki_ca){NULL, STRBUF_INIT, 0};
	if (len > PKI_CA_FILE_MAX || memchr(pem, '\0', len))
		return err_set(err, ERR_INVALID, "the file is not PEM text of at most %d bytes",
			PKI_CA_FILE_MAX);
	if (find_blocks(pem, &cert, &key, err) < 0)
		return -1;
	/* Errors of rejected input must not stay in OpenSSL's queue. */
	ERR_set_mark();
	rc = read_blocks(&cert, &key, now_s, out, err);
	ERR_pop_to_mark();
	if (rc < 0)
		pki_ca_fini(out);
	return rc;
}
