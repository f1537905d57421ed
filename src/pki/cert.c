/* SPDX-License-Identifier: MIT */
/*
 * X.509 with OpenSSL. The self-signed certificate has a subject key identifier and no
 * basicConstraints: it is leaf and trust anchor in one, and OpenSSL (Trustee's verifier) accepts a
 * leaf that is itself in the trust store. Bundles with any block other than a certificate are
 * refused, so that a private key pasted into ca.crt never reaches a node.
 */
#include "config.h"

#include "tec/pki/cert.h"

#include <limits.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <time.h>

#include "pki_internal.h"
#include "tec/base/bytes.h"
#include "tec/base/mem.h"

#define SKEW_S     300 /* how far a verifier's clock may be behind ours */
#define DAY_S      86400
#define BUNDLE_MAX ((size_t)1 << 20)

/* 126 random bits: positive and never zero (RFC 5280 section 4.1.2.2). */
static bool set_serial(X509 *x)
{
	uint8_t bytes[16];
	BIGNUM *bn;
	bool ok;

	if (RAND_bytes(bytes, sizeof(bytes)) != 1)
		return false;
	bytes[0] = (bytes[0] & 0x7f) | 0x40;
	bn = BN_bin2bn(bytes, sizeof(bytes), NULL);
	ok = bn && BN_to_ASN1_INTEGER(bn, X509_get_serialNumber(x));
	BN_free(bn);
	return ok;
}

/* notBefore is SKEW_S earlier than now: a node's clock may run behind ours. */
bool pki_x509_begin(X509 *x, int64_t now_s, unsigned days)
{
	return days > 0 && days <= INT_MAX && X509_set_version(x, X509_VERSION_3) == 1 &&
	       set_serial(x) && ASN1_TIME_adj(X509_getm_notBefore(x), (time_t)now_s, 0, -SKEW_S) &&
	       ASN1_TIME_adj(X509_getm_notAfter(x), (time_t)now_s, (int)days, 0);
}

bool pki_x509_add_name(X509_NAME *name, const char *field, const char *value)
{
	return X509_NAME_add_entry_by_txt(
		       name, field, MBSTRING_UTF8, (const unsigned char *)value, -1, -1, 0) == 1;
}

/* value is in the syntax of openssl.cnf, where a comma separates values: pass constants or
 * checked text. */
bool pki_x509_add_ext(X509 *x, X509 *issuer, int nid, const char *value)
{
	X509_EXTENSION *ext;
	X509V3_CTX ctx;
	bool ok;

	X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
	ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	ok = ext && X509_add_ext(x, ext, -1) == 1;
	X509_EXTENSION_free(ext);
	return ok;
}

/* Append to out in PEM; false: OpenSSL cannot encode the certificate. */
static bool add_pem(struct strbuf *out, X509 *x)
{
	cleanup_bio BIO *bio = BIO_new(BIO_s_mem());
	char *data = NULL;
	long len;

	if (!bio)
		DIE("no memory for a certificate");
	if (PEM_write_bio_X509(bio, x) != 1)
		return false;
	len = BIO_get_mem_data(bio, &data);
	strbuf_add(out, data, (size_t)len);
	return true;
}

/* Ed25519 has its digest built in (RFC 8032), so OpenSSL requires NULL for it. */
bool pki_x509_end(X509 *x, EVP_PKEY *signer, struct strbuf *out)
{
	const EVP_MD *md = EVP_PKEY_is_a(signer, "ED25519") ? NULL : EVP_sha256();

	return X509_sign(x, signer, md) > 0 && add_pem(out, x);
}

/* OpenSSL fails here only for the caller's input: a common name longer than 64 characters
 * (X.520) or a validity period out of range. */
int pki_cert_self_signed(const struct pki_key *key, const char *common_name, int64_t now_s,
	unsigned days, struct strbuf *out, struct err *err)
{
	EVP_PKEY *evp = pki_key_evp(key);
	cleanup_x509 X509 *x = X509_new();
	X509_NAME *name;
	bool ok;

	if (!x)
		DIE("no memory for a certificate");
	name = X509_get_subject_name(x);
	ERR_set_mark();
	ok = pki_x509_begin(x, now_s, days) && pki_x509_add_name(name, "CN", common_name) &&
	     X509_set_issuer_name(x, name) == 1 && X509_set_pubkey(x, evp) == 1 &&
	     pki_x509_add_ext(x, x, NID_subject_key_identifier, "hash") &&
	     pki_x509_end(x, evp, out);
	ERR_pop_to_mark();
	if (!ok)
		return err_set(err, ERR_INVALID,
			"cannot make a certificate for this name (1 to 64 characters) and validity period");
	return 0;
}

/* Read the next PEM block as a certificate; NULL: end of the text (*end), or err is set. Text
 * between blocks is skipped. */
static X509 *next_cert(BIO *bio, bool *end, struct err *err)
{
	char *name = NULL, *header = NULL;
	unsigned char *data = NULL;
	const unsigned char *p;
	X509 *x = NULL;
	long len = 0;

	*end = false;
	if (PEM_read_bio(bio, &name, &header, &data, &len) != 1) {
		/* The only error that means "no further block"; any other is a damaged one. */
		*end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
		if (!*end)
			err_set(err, ERR_INVALID, "a PEM block is malformed or truncated");
		return NULL;
	}
	p = data;
	if (!str_eq(name, PEM_STRING_X509))
		err_set(err, ERR_INVALID, "a PEM block is not a CERTIFICATE");
	else if (header[0] || !(x = d2i_X509(NULL, &p, len)) || p != data + len)
		err_set(err, ERR_INVALID, "a certificate is malformed");
	if (err_is_set(err)) {
		X509_free(x);
		x = NULL;
	}
	OPENSSL_free(name);
	OPENSSL_free(header);
	OPENSSL_clear_free(data, (size_t)len); /* may have been a private key */
	return x;
}

/* The BIO borrows pem. A NUL byte is refused: a reader of C strings would take only the text
 * before it. */
static BIO *open_bundle(const char *pem, size_t len, struct err *err)
{
	BIO *bio;

	if (len > BUNDLE_MAX || (len > 0 && memchr(pem, '\0', len))) {
		err_set(err, ERR_INVALID, "the certificates exceed 1 MiB or contain a NUL byte");
		return NULL;
	}
	bio = BIO_new_mem_buf(len ? pem : "", (int)len);
	if (!bio)
		DIE("no memory for a BIO");
	return bio;
}

int pki_cert_not_after(const char *pem, size_t len, int64_t *out_s, struct err *err)
{
	cleanup_bio BIO *bio = open_bundle(pem, len, err);
	cleanup_x509 X509 *x = NULL;
	struct tm tm;
	bool end;

	if (!bio)
		return -1;
	ERR_set_mark();
	x = next_cert(bio, &end, err);
	ERR_pop_to_mark();
	if (!x)
		return end ? err_set(err, ERR_INVALID, "no certificate in PEM") : -1;
	if (ASN1_TIME_to_tm(X509_get0_notAfter(x), &tm) != 1)
		return err_set(err, ERR_INVALID, "the certificate's end date is malformed");
	*out_s = (int64_t)timegm(&tm);
	return 0;
}

bool pki_cert_lasts(const char *pem, size_t len, int64_t now_s, unsigned days)
{
	struct err err = ERR_INIT;
	int64_t end;

	return pki_cert_not_after(pem, len, &end, &err) == 0 && end - now_s > (int64_t)days * DAY_S;
}

/* Append the fingerprint of the DER, the form that administrators compare. */
static void add_sha256(struct strbuf *out, const X509 *x)
{
	uint8_t digest[SHA256_LEN];
	char hex[SHA256_HEX_LEN + 1];

	if (X509_digest(x, EVP_sha256(), digest, NULL) != 1)
		DIE("cannot compute the SHA-256 of a certificate");
	bytes_to_hex(digest, SHA256_LEN, hex);
	strbuf_addf(out, "%s%s", out->len ? " " : "", hex);
}

/* Certificates are encoded again instead of copied: comments and text between the blocks are
 * dropped. */
int pki_cert_read_bundle(
	const char *pem, size_t len, struct strbuf *text, struct strbuf *sha256, struct err *err)
{
	cleanup_bio BIO *bio = open_bundle(pem, len, err);
	bool end = false;
	size_t n = 0;

	if (!bio)
		return -1;
	ERR_set_mark();
	/* Read on after the first certificate: one bad block spoils the bundle. */
	while (!end && !err_is_set(err)) {
		cleanup_x509 X509 *x = next_cert(bio, &end, err);

		n += x != NULL;
		if (x && sha256)
			add_sha256(sha256, x);
		if (x && text && !add_pem(text, x))
			err_set(err, ERR_INVALID, "a certificate cannot be encoded as PEM");
	}
	ERR_pop_to_mark();
	if (err_is_set(err))
		return -1;
	if (n == 0)
		return err_set(err, ERR_INVALID, "no certificate in PEM");
	return 0;
}

int pki_cert_check_bundle(const char *pem, size_t len, struct err *err)
{
	return pki_cert_read_bundle(pem, len, NULL, NULL, err);
}
