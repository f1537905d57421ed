/* SPDX-License-Identifier: MIT */
/* Names of TLS cipher suites. */
#ifndef TEC_PKI_CIPHER_H
#define TEC_PKI_CIPHER_H

#include <stdbool.h>

/* Whether the text can be a single name in OpenSSL's settings: it contains no separator. */
bool pki_cipher_is_name(const char *name);
/* OpenSSL's name of a suite. Names that begin with TLS_ are IANA's and are translated (TLS 1.3
 * suites have one name only); any other name is taken as OpenSSL's. NULL: unknown suite or
 * invalid characters. The result is static or the argument itself. */
const char *pki_cipher_openssl_name(const char *name);

#endif
