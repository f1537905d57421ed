/* SPDX-License-Identifier: MIT */
/* Cleanup attributes for OpenSSL's objects. For pki, jose and net only. */
#ifndef TEC_PKI_OPENSSL_H
#define TEC_PKI_OPENSSL_H

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <stdbool.h>

#include "tec/base/mem.h"
#include "tec/base/str.h"

DEFINE_CLEANUP(bio_cleanup_, BIO *, BIO_free_all)
DEFINE_CLEANUP(bn_cleanup_, BIGNUM *, BN_free)
DEFINE_CLEANUP(ecdsa_cleanup_, ECDSA_SIG *, ECDSA_SIG_free)
DEFINE_CLEANUP(pkey_cleanup_, EVP_PKEY *, EVP_PKEY_free)
DEFINE_CLEANUP(pctx_cleanup_, EVP_PKEY_CTX *, EVP_PKEY_CTX_free)
DEFINE_CLEANUP(cctx_cleanup_, EVP_CIPHER_CTX *, EVP_CIPHER_CTX_free)
DEFINE_CLEANUP(md_cleanup_, EVP_MD_CTX *, EVP_MD_CTX_free)
DEFINE_CLEANUP(x509_cleanup_, X509 *, X509_free)
#define cleanup_bio   __attribute__((cleanup(bio_cleanup_)))
#define cleanup_bn    __attribute__((cleanup(bn_cleanup_)))
#define cleanup_ecdsa __attribute__((cleanup(ecdsa_cleanup_)))
#define cleanup_pkey  __attribute__((cleanup(pkey_cleanup_)))
#define cleanup_pctx  __attribute__((cleanup(pctx_cleanup_)))
#define cleanup_cctx  __attribute__((cleanup(cctx_cleanup_)))
#define cleanup_md    __attribute__((cleanup(md_cleanup_)))
#define cleanup_x509  __attribute__((cleanup(x509_cleanup_)))

/* Whether only white space follows: a second key in the text would be ignored silently. */
bool pki_bio_ends(BIO *bio);

/* The first certificate of a PEM text; NULL: none. The caller frees. */
X509 *pki_x509_read_first(const char *pem, size_t len);
/* Append as PEM. false: OpenSSL cannot encode the certificate. */
bool pki_x509_add_pem(struct strbuf *out, X509 *x);
/* Whether the certificate is valid for this host name or address, as a TLS client matches it. */
bool pki_x509_covers(X509 *x, const char *name);

#endif
