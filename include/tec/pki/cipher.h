/* SPDX-License-Identifier: MIT */
/* Names of TLS cipher suites. */
#ifndef TEC_PKI_CIPHER_H
#define TEC_PKI_CIPHER_H

#include <stdbool.h>

/* A name as OpenSSL's settings take it, without a separator in it. */
bool pki_cipher_is_name(const char *name);
/*
 * OpenSSL's name of a suite: what begins with TLS_ is the IANA's and is translated (TLS 1.3 suites
 * have one name only), any other one is OpenSSL's already. NULL: OpenSSL knows no such suite, or the
 * name holds what no name does. Static or the argument itself.
 */
const char *pki_cipher_openssl_name(const char *name);

#endif
