/* SPDX-License-Identifier: MIT */
/*
 * X509V3_EXT_conf_nid() parses extension values as text, where a comma starts another value. Names
 * are therefore checked byte by byte first, and no other outside text is ever part of such a value.
 */
#include "config.h"

#include "tec/pki/issue.h"

#include <limits.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <string.h>

#include "pki_internal.h"
#include "tec/base/mem.h"
#include "tec/pki/cert.h"

#define NAME_MAX_LEN 253
#define LABEL_CHARS  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

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

/* Weaker than pki_issue_name_valid(): refuse only what could break out of the extension's text. */
static bool name_is_safe(const char *name)
{
	size_t n = strspn(name, LABEL_CHARS ".");

	return is_ip(name) || (n > 0 && n <= NAME_MAX_LEN && name[n] == '\0');
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
		if (!name_is_safe(*names))
			return false;
		strbuf_addf(&text, "%s%s:%s", text.len ? "," : "", is_ip(*names) ? "IP" : "DNS",
			*names);
	}
	return text.len == 0 || pki_x509_add_ext(x, NULL, NID_subject_alt_name, text.data);
}

/* pathlen:0 keeps a leaf key that leaks from being used as an intermediate CA. */
static bool add_extensions(X509 *x, X509 *issuer, const struct pki_issue *what)
{
	bool ca = what->use == PKI_ISSUE_CA;

	if (!pki_x509_add_ext(x, issuer, NID_basic_constraints,
		    ca ? "critical,CA:TRUE,pathlen:0" : "critical,CA:FALSE") ||
		!pki_x509_add_ext(x, issuer, NID_key_usage,
			ca ? "critical,keyCertSign,cRLSign" : "critical,digitalSignature") ||
		!pki_x509_add_ext(x, issuer, NID_subject_key_identifier, "hash") ||
		!pki_x509_add_ext(x, issuer, NID_authority_key_identifier, "keyid:always"))
		return false;
	if (ca)
		return true;
	return pki_x509_add_ext(x, issuer, NID_ext_key_usage,
		       what->use == PKI_ISSUE_SERVER ? "serverAuth" : "clientAuth") &&
	       add_names(x, what->names);
}

/* A renewed CA keeps its subject, because certificates it signed earlier name that subject as
 * issuer. */
static bool add_subject(X509 *x, const struct pki_issue *what, X509 *ca)
{
	X509_NAME *name = X509_get_subject_name(x);

	if (ca && what->use == PKI_ISSUE_CA)
		return X509_set_subject_name(x, X509_get_subject_name(ca)) == 1;
	return (!what->organization || pki_x509_add_name(name, "O", what->organization)) &&
	       pki_x509_add_name(name, "CN", what->common_name);
}

/* ca is the issuer of a leaf; for a CA it is the earlier certificate, and the new one signs
 * itself. */
static bool fill_in(X509 *x, const struct pki_issue *what, EVP_PKEY *key, X509 *ca)
{
	/* The authority key identifier of a CA points to itself. */
	X509 *issuer = ca && what->use != PKI_ISSUE_CA ? ca : x;

	return pki_x509_begin(x, what->now_s, what->days) && add_subject(x, what, ca) &&
	       X509_set_issuer_name(x, X509_get_subject_name(issuer)) == 1 &&
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
	ok = fill_in(x, what, pki_key_evp(key), ca) && pki_x509_end(x, signer, out);
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

/* Names are matched as a TLS client matches them, so a wildcard in the certificate counts. */
bool pki_issue_names(const char *pem, size_t len, const char *const *names)
{
	cleanup_x509 X509 *x = pki_x509_read_first(pem, len);
	bool ok = x;

	ERR_set_mark();
	for (; ok && *names; names++)
		ok = is_ip(*names) ? X509_check_ip_asc(x, *names, 0) == 1
				   : X509_check_host(x, *names, 0, 0, NULL) == 1;
	ERR_pop_to_mark();
	return ok;
}

bool pki_issue_serves(const char *pem, size_t len, const struct pki_key *key,
	const char *const *names, int64_t now_s, unsigned days)
{
	return pki_issue_fits(pem, len, key) && pki_cert_lasts(pem, len, now_s, days) &&
	       pki_issue_names(pem, len, names);
}
