/* SPDX-License-Identifier: MIT */
/*
 * The certificate authority that nodes pin, stored as one PEM file with its certificate and private
 * key. Each authority has a subject of its own, so that a program given two can tell them apart.
 */
#ifndef TEC_PKI_CA_H
#define TEC_PKI_CA_H

#include <stdint.h>

#include "tec/pki/key.h"

#define PKI_CA_DAYS      7300
#define PKI_CA_LEAF_DAYS 365
#define PKI_CA_FILE_MAX  65536

struct pki_ca {
	struct pki_key *key; /* owned */
	struct strbuf cert;  /* PEM of the certificate alone */
	int64_t end_s;       /* its notAfter */
};
void pki_ca_fini(struct pki_ca *ca); /* wipes the key; {0} is fine */
#define cleanup_pki_ca __attribute__((cleanup(pki_ca_fini)))

/* Append the authority's certificate. Its subject is derived from the key, or taken from
 * earlier_pem (may be NULL), so that the pinned certificate also verifies what the renewed
 * authority signs. */
int pki_ca_issue(const struct pki_key *key, const char *earlier_pem, int64_t now_s,
	struct strbuf *out, struct err *err) MUST_CHECK;
/* Read exactly one certificate and one private key, in any order. ERR_INVALID: another kind of
 * block, no key, a key that does not match, a certificate that is not a self-signed CA, or a
 * validity period that does not contain now_s. */
int pki_ca_read(
	const char *pem, size_t len, int64_t now_s, struct pki_ca *out, struct err *err) MUST_CHECK;

#endif
