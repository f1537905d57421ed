/* SPDX-License-Identifier: MIT */
/* X.509 certificates: make the token signer's self-signed one, and read what rotation needs.
 * Time is an argument. */
#ifndef TEC_PKI_CERT_H
#define TEC_PKI_CERT_H

#include <stdbool.h>
#include <stdint.h>

#include "tec/pki/key.h"

/* Append a v3 certificate as PEM: self-signed, CN = common_name, without basicConstraints, its
 * own trust anchor, valid for `days` from 5 minutes before now_s. */
int pki_cert_self_signed(const struct pki_key *key, const char *common_name, int64_t now_s,
	unsigned days, struct strbuf *out, struct err *err) MUST_CHECK;
/* notAfter of the first certificate in the PEM, seconds since the epoch. */
int pki_cert_not_after(const char *pem, size_t len, int64_t *out_s, struct err *err) MUST_CHECK;
/* Whether the first certificate is valid for more than this many days; false for an unreadable
 * one. */
bool pki_cert_lasts(const char *pem, size_t len, int64_t now_s, unsigned days);
/* Check that the text contains at least one certificate, only certificates, and that all of them
 * parse. */
int pki_cert_check_bundle(const char *pem, size_t len, struct err *err) MUST_CHECK;
/* Check as above; append to text the certificates alone as PEM, so that no other reader finds a
 * certificate that this one did not; append to sha256 the SHA-256 of each DER in lower-case hex,
 * in order, separated by spaces. Both may be NULL. */
int pki_cert_read_bundle(const char *pem, size_t len, struct strbuf *text, struct strbuf *sha256,
	struct err *err) MUST_CHECK;

#endif
