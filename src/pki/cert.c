/* SPDX-License-Identifier: MIT */
/*
 * X.509 with OpenSSL. The self-signed certificate has a subject key identifier and no
 * basicConstraints: it is leaf and trust anchor in one, and OpenSSL (Trustee's verifier) accepts a
 * leaf that is itself in the trust store. Bundles with any block other than a certificate are
 * refused, so that a private key pasted into ca.crt never reaches a node.
 *
 * X509V3_EXT_conf_nid() parses extension values as text, where a comma starts another value. Names
 * are therefore checked byte by byte first, and no other outside text is ever part of such a value.
 */
#include "config.h"

#include "tec/pki/cert.h"

#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <time.h>

#include "tec/base/bytes.h"
#include "tec/base/mem.h"
#include "tec/pki/openssl.h"

#define SKEW_S       300 /* how far a verifier's clock may be behind ours */
#define DAY_S        86400
#define BUNDLE_MAX   ((size_t)1 << 20)
#define NAME_MAX_LEN 253
#define LABEL_CHARS  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

/* Set version, serial number and validity: `days` days from SKEW_S before now_s, as a node's clock
 * may run behind ours. False: days is out of range. */
static bool begin(X509 *x, int64_t now_s, unsigned days)
{
	cleanup_bn BIGNUM *serial = NULL;
	uint8_t bytes[16];

	if (days == 0 || days > INT_MAX || RAND_bytes(bytes, sizeof(bytes)) != 1)
		return false;
	/* 126 random bits: positive and never zero (RFC 5280 section 4.1.2.2). */
	bytes[0] = (bytes[0] & 0x7f) | 0x40;
	serial = BN_bin2bn(bytes, sizeof(bytes), NULL);
	return serial && BN_to_ASN1_INTEGER(serial, X509_get_serialNumber(x)) &&
	       X509_set_version(x, X509_VERSION_3) == 1 &&
	       ASN1_TIME_adj(X509_getm_notBefore(x), (time_t)now_s, 0, -SKEW_S) &&
	       ASN1_TIME_adj(X509_getm_notAfter(x), (time_t)now_s, (int)days, 0);
}

static bool add_name(X509_NAME *name, const char *field, const char *value)
{
	return X509_NAME_add_entry_by_txt(
		       name, field, MBSTRING_UTF8, (const unsigned char *)value, -1, -1, 0) == 1;
}

/* value is in the syntax of openssl.cnf, where a comma separates values: pass constants or
 * checked text. */
static bool add_ext(X509 *x, X509 *issuer, int nid, const char *value)
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

bool pki_x509_add_pem(struct strbuf *out, X509 *x)
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
static bool finish(X509 *x, EVP_PKEY *signer, struct strbuf *out)
{
	const EVP_MD *md = EVP_PKEY_is_a(signer, "ED25519") ? NULL : EVP_sha256();

	return X509_sign(x, signer, md) > 0 && pki_x509_add_pem(out, x);
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
	ok = begin(x, now_s, days) && add_name(name, "CN", common_name) &&
	     X509_set_issuer_name(x, name) == 1 && X509_set_pubkey(x, evp) == 1 &&
	     add_ext(x, x, NID_subject_key_identifier, "hash") && finish(x, evp, out);
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

	if (len > BUNDLE_MAX || (len > 0 && memchr(pem, '\0', len)))
		return err_null(
			err, ERR_INVALID, "the certificates exceed 1 MiB or contain a NUL byte");
	bio = BIO_new_mem_buf(len ? pem : "", (int)len);
	if (!bio)
		DIE("no memory for a BIO");
	return bio;
}

/* One end of the period in which the first certificate is valid. */
static int validity(const char *pem, size_t len, const ASN1_TIME *(*of)(const X509 *x),
	int64_t *out_s, struct err *err)
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
	if (ASN1_TIME_to_tm(of(x), &tm) != 1)
		return err_set(err, ERR_INVALID, "a date of the certificate is malformed");
	*out_s = (int64_t)timegm(&tm);
	return 0;
}

int pki_cert_not_after(const char *pem, size_t len, int64_t *out_s, struct err *err)
{
	return validity(pem, len, X509_get0_notAfter, out_s, err);
}

int pki_cert_not_before(const char *pem, size_t len, int64_t *out_s, struct err *err)
{
	return validity(pem, len, X509_get0_notBefore, out_s, err);
}

bool pki_cert_lasts(const char *pem, size_t len, int64_t now_s, unsigned days)
{
	struct err err = ERR_INIT;
	int64_t begin, end;

	return pki_cert_not_before(pem, len, &begin, &err) == 0 && begin <= now_s &&
	       pki_cert_not_after(pem, len, &end, &err) == 0 && end - now_s > (int64_t)days * DAY_S;
}

/* Certificates are encoded again instead of copied: comments and text between the blocks are
 * dropped. */
int pki_cert_read_bundle(
	const char *pem, size_t len, struct strbuf *text, struct strbuf *sha256, struct err *err)
{
	cleanup_bio BIO *bio = open_bundle(pem, len, err);
	uint8_t digest[SHA256_LEN];
	char hex[SHA256_HEX_LEN + 1];
	bool end = false;
	size_t n = 0;

	if (!bio)
		return -1;
	ERR_set_mark();
	/* Read on after the first certificate: one bad block spoils the bundle. */
	while (!end && !err_is_set(err)) {
		cleanup_x509 X509 *x = next_cert(bio, &end, err);

		n += x != NULL;
		if (x && sha256) {
			if (X509_digest(x, EVP_sha256(), digest, NULL) != 1)
				DIE("cannot compute the SHA-256 of a certificate");
			bytes_to_hex(digest, SHA256_LEN, hex);
			strbuf_addf(sha256, "%s%s", sha256->len ? " " : "", hex);
		}
		if (x && text && !pki_x509_add_pem(text, x))
			err_set(err, ERR_INVALID, "a certificate cannot be encoded as PEM");
	}
	ERR_pop_to_mark();
	if (err_is_set(err))
		return -1;
	if (n == 0)
		return err_set(err, ERR_INVALID, "no certificate in PEM");
	return 0;
}

/* ---- certificates of our own authority */

/* The empty password keeps OpenSSL from prompting on the terminal for an encrypted block. */
X509 *pki_x509_read_first(const char *pem, size_t len)
{
	cleanup_bio BIO *bio = len && len <= INT_MAX ? BIO_new_mem_buf(pem, (int)len) : NULL;
	X509 *x = NULL;

	ERR_set_mark();
	if (bio)
		x = PEM_read_bio_X509(bio, NULL, NULL, (void *)"");
	ERR_pop_to_mark();
	return x;
}

/* Accept IPv4 and IPv6 addresses as OpenSSL reads them, without brackets or zone. */
static bool is_ip(const char *name)
{
	ASN1_OCTET_STRING *ip = a2i_IPADDRESS(name);
	bool ok = ip;

	ASN1_OCTET_STRING_free(ip);
	return ok;
}

/* Accept labels of letters, digits, '-' and '_' between single dots. A last label of digits only
 * is refused: resolvers would read the name as an IPv4 address. */
bool pki_issue_name_valid(const char *name)
{
	const char *label = name;
	size_t len = strlen(name), n = 0;

	if (is_ip(name))
		return true;
	if (len == 0 || len > NAME_MAX_LEN)
		return false;
	for (;; label += n + 1) {
		n = strspn(label, LABEL_CHARS);
		if (n == 0 || n > 63 || label[0] == '-' || label[n - 1] == '-')
			return false;
		if (label[n] == '\0')
			return strspn(label, "0123456789") != n;
		if (label[n] != '.')
			return false;
	}
}

/* Add the subjectAltName. Clients ignore the CN (RFC 9525), so a server needs at least one name. */
static bool add_names(X509 *x, const char *const *names)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;

	for (; names && *names; names++) {
		size_t n = strspn(*names, LABEL_CHARS ".");
		bool ip = is_ip(*names);

		/* Weaker than pki_issue_name_valid(): refuse only what could break out of the
		 * extension's text. */
		if (!ip && (n == 0 || n > NAME_MAX_LEN || (*names)[n] != '\0'))
			return false;
		strbuf_addf(&text, "%s%s:%s", text.len ? "," : "", ip ? "IP" : "DNS", *names);
	}
	return text.len == 0 || add_ext(x, NULL, NID_subject_alt_name, text.data);
}

/* pathlen:0 keeps a leaf key that leaks from being used as an intermediate CA. */
static bool add_extensions(X509 *x, X509 *issuer, const struct pki_issue *what)
{
	bool ca = what->use == PKI_ISSUE_CA;

	if (!add_ext(x, issuer, NID_basic_constraints,
		    ca ? "critical,CA:TRUE,pathlen:0" : "critical,CA:FALSE") ||
		!add_ext(x, issuer, NID_key_usage,
			ca ? "critical,keyCertSign,cRLSign" : "critical,digitalSignature") ||
		!add_ext(x, issuer, NID_subject_key_identifier, "hash") ||
		!add_ext(x, issuer, NID_authority_key_identifier, "keyid:always"))
		return false;
	if (ca)
		return true;
	return add_ext(x, issuer, NID_ext_key_usage,
		       what->use == PKI_ISSUE_SERVER ? "serverAuth" : "clientAuth") &&
	       add_names(x, what->names);
}

/* ca is the issuer of a leaf; for a CA it is the earlier certificate, and the new one signs
 * itself. */
static bool fill_in(X509 *x, const struct pki_issue *what, EVP_PKEY *key, X509 *ca)
{
	bool is_ca = what->use == PKI_ISSUE_CA;
	/* The authority key identifier of a CA points to itself. */
	X509 *issuer = ca && !is_ca ? ca : x;
	X509_NAME *name = X509_get_subject_name(x);

	if (!begin(x, what->now_s, what->days) ||
		!(is_ca ? ASN1_TIME_adj(X509_getm_notBefore(x), (time_t)what->now_s, -1, 0) != NULL
			: !ca || X509_set1_notBefore(x, X509_get0_notBefore(ca)) == 1))
		return false;
	/* A renewed CA keeps its subject, because certificates it signed earlier name that subject
	 * as issuer. */
	if (ca && is_ca ? X509_set_subject_name(x, X509_get_subject_name(ca)) != 1
			: (what->organization && !add_name(name, "O", what->organization)) ||
				  !add_name(name, "CN", what->common_name))
		return false;
	return X509_set_issuer_name(x, X509_get_subject_name(issuer)) == 1 &&
	       X509_set_pubkey(x, key) == 1 && add_extensions(x, issuer, what);
}

/* Check that ca_pem and ca_key match first: otherwise the result would fail only at the
 * verifier. */
int pki_issue(const struct pki_issue *what, const struct pki_key *key, const struct pki_key *ca_key,
	const char *ca_pem, struct strbuf *out, struct err *err)
{
	EVP_PKEY *signer = pki_key_evp(ca_key);
	cleanup_x509 X509 *x = X509_new();
	cleanup_x509 X509 *ca = ca_pem ? pki_x509_read_first(ca_pem, strlen(ca_pem)) : NULL;
	bool ok;

	if (!x)
		DIE("no memory for a certificate");
	if (ca_pem && (!ca || X509_check_private_key(ca, signer) != 1)) {
		ERR_clear_error();
		return err_set(
			err, ERR_INVALID, "the CA's certificate and private key do not match");
	}
	ERR_set_mark();
	ok = fill_in(x, what, pki_key_evp(key), ca) && finish(x, signer, out);
	ERR_pop_to_mark();
	if (!ok)
		return err_set(err, ERR_INVALID, "cannot make a certificate for these names");
	return 0;
}

bool pki_issue_fits(const char *pem, size_t len, const struct pki_key *key)
{
	cleanup_x509 X509 *x = pki_x509_read_first(pem, len);
	bool ok;

	ERR_set_mark();
	ok = x && X509_check_private_key(x, pki_key_evp(key)) == 1;
	ERR_pop_to_mark();
	return ok;
}

/* A wildcard in the certificate counts. */
bool pki_x509_covers(X509 *x, const char *name)
{
	return is_ip(name) ? X509_check_ip_asc(x, name, 0) == 1
			   : X509_check_host(x, name, 0, 0, NULL) == 1;
}

bool pki_issue_names(const char *pem, size_t len, const char *const *names)
{
	cleanup_x509 X509 *x = pki_x509_read_first(pem, len);
	bool ok = x;

	ERR_set_mark();
	for (; ok && *names; names++)
		ok = pki_x509_covers(x, *names);
	ERR_pop_to_mark();
	return ok;
}

bool pki_issue_is_by(const char *pem, size_t len, const struct pki_key *ca_key)
{
	cleanup_x509 X509 *x = pki_x509_read_first(pem, len);
	bool ok;

	ERR_set_mark();
	ok = x && X509_verify(x, pki_key_evp(ca_key)) == 1;
	ERR_pop_to_mark();
	return ok;
}

bool pki_issue_serves(const char *pem, size_t len, const struct pki_key *key,
	const char *const *names, int64_t now_s, unsigned days)
{
	return pki_issue_fits(pem, len, key) && pki_cert_lasts(pem, len, now_s, days) &&
	       pki_issue_names(pem, len, names);
}
