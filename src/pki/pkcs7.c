/* SPDX-License-Identifier: MIT */
/*
 * Calls PKCS7_verify with detached content, because OpenSSL's CMS functions refuse content that is
 * not an OCTET STRING. EDK2 (CryptPkcs7Verify.c) and shim call the same function with the same
 * flags.
 */
#include "config.h"

#include "tec/pki/pkcs7.h"

#include <limits.h>
#include <openssl/err.h>
#include <openssl/pkcs7.h>
#include <openssl/x509v3.h>

#include "tec/pki/openssl.h"

DEFINE_CLEANUP(pkcs7_cleanup_, PKCS7 *, PKCS7_free)
DEFINE_CLEANUP(store_cleanup_, X509_STORE *, X509_STORE_free)
#define cleanup_pkcs7 __attribute__((cleanup(pkcs7_cleanup_)))
#define cleanup_store __attribute__((cleanup(store_cleanup_)))

/* PARTIAL_CHAIN: `trusted` may be an intermediate or leaf, as in the UEFI db variable.
 * NO_CHECK_TIME and PURPOSE_ANY: firmware has no trustworthy clock and ignores extended key
 * usage. */
bool pki_pkcs7_leads_to(const uint8_t *pkcs7, size_t len, const uint8_t *content,
	size_t content_len, const uint8_t *trusted, size_t trusted_len)
{
	const uint8_t *at = pkcs7, *cert_at = trusted;
	cleanup_pkcs7 PKCS7 *p7 = NULL;
	cleanup_x509 X509 *cert = NULL;
	cleanup_store X509_STORE *store = X509_STORE_new();
	cleanup_bio BIO *data = NULL;
	bool good;

	if (!store || len > INT_MAX || content_len > INT_MAX || trusted_len > INT_MAX)
		return false;
	p7 = d2i_PKCS7(NULL, &at, (long)len);
	cert = d2i_X509(NULL, &cert_at, (long)trusted_len);
	data = BIO_new_mem_buf(content, (int)content_len);
	good = p7 && cert && data && PKCS7_type_is_signed(p7) && X509_STORE_add_cert(store, cert) &&
	       X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_NO_CHECK_TIME) &&
	       X509_STORE_set_purpose(store, X509_PURPOSE_ANY) &&
	       PKCS7_verify(p7, NULL, store, data, NULL, PKCS7_BINARY) == 1;
	ERR_clear_error();
	return good;
}
