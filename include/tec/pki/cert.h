/* SPDX-License-Identifier: MIT */
/* X.509 certificates: making the self-signed one of the token signer, and reading what rotation
 * needs. Time is an argument. */
#ifndef TEC_PKI_CERT_H
#define TEC_PKI_CERT_H

#include <stdint.h>

#include "tec/pki/key.h"

/* v3, CN = common_name, CA:FALSE-free self-signed leaf that is its own trust anchor; valid from now
 * - 5 min for `days`. PEM appended to out. */
int pki_cert_self_signed(const struct pki_key *key, const char *common_name, int64_t now_s,
	unsigned days, struct strbuf *out, struct err *err) MUST_CHECK;
/* notAfter of the first certificate in the PEM, seconds since the epoch. */
int pki_cert_not_after(const char *pem, size_t len, int64_t *out_s, struct err *err) MUST_CHECK;
/* At least one certificate, only certificates, all parse. */
int pki_cert_check_bundle(const char *pem, size_t len, struct err *err) MUST_CHECK;
/* The same, and appends to text the certificates alone, as PEM: another reader finds no certificate
 * in it that was not found here; and to sha256 the SHA-256 of each one's DER in lower-case hex, in
 * their order, with spaces between. NULL: not wanted. */
int pki_cert_read_bundle(const char *pem, size_t len, struct strbuf *text, struct strbuf *sha256,
	struct err *err) MUST_CHECK;

#endif
