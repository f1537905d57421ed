/* SPDX-License-Identifier: MIT */
/* Shared inside src/pki: cleanup attributes for OpenSSL objects, and the parts that every
 * certificate made here has in common (cert.c). */
#ifndef TEC_PKI_INTERNAL_H
#define TEC_PKI_INTERNAL_H

#include <openssl/bio.h>
#include <openssl/x509.h>

#include "tec/base/str.h"

static inline void pki_bio_cleanup_(BIO **b)
{
	BIO_free_all(*b);
}
#define cleanup_bio __attribute__((cleanup(pki_bio_cleanup_)))

static inline void pki_x509_cleanup_(X509 **x)
{
	X509_free(*x);
}
#define cleanup_x509 __attribute__((cleanup(pki_x509_cleanup_)))

/* Set version, serial number and validity: `days` days from shortly before now_s. False: days is
 * out of range. */
bool pki_x509_begin(X509 *x, int64_t now_s, unsigned days);
bool pki_x509_add_name(X509_NAME *name, const char *field, const char *value);
bool pki_x509_add_ext(X509 *x, X509 *issuer, int nid, const char *value);
/* The first certificate of a PEM text; NULL: none. The caller frees. */
X509 *pki_x509_read_first(const char *pem, size_t len);
/* Sign and append the certificate to out as PEM. */
bool pki_x509_end(X509 *x, EVP_PKEY *signer, struct strbuf *out);

#endif
