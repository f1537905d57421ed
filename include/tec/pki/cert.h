/* SPDX-License-Identifier: MIT */
/* X.509 certificates: make the token signer's self-signed one, issue those of our own authority, and
 * read what rotation needs. Time is an argument. */
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
int pki_cert_not_before(const char *pem, size_t len, int64_t *out_s, struct err *err) MUST_CHECK;
/* Whether the first certificate is valid now and for more than this many days; false for an
 * unreadable one. */
bool pki_cert_lasts(const char *pem, size_t len, int64_t now_s, unsigned days);
/* Check that the text contains at least one certificate, only certificates, and that all of them
 * parse; append to text the certificates alone as PEM, so that no other reader finds a
 * certificate that this one did not; append to sha256 the SHA-256 of each DER in lower-case hex,
 * in order, separated by spaces. Both may be NULL. */
int pki_cert_read_bundle(const char *pem, size_t len, struct strbuf *text, struct strbuf *sha256,
	struct err *err) MUST_CHECK;

/* ---- certificates of our own authority: itself, servers, clients */

enum pki_issue_use { PKI_ISSUE_CA, PKI_ISSUE_SERVER, PKI_ISSUE_CLIENT };

struct pki_issue {
	enum pki_issue_use use;
	const char *common_name;
	const char *organization; /* NULL: none */
	/* Servers only: host names and IP addresses, NULL-terminated. */
	const char *const *names;
	int64_t now_s; /* an authority is valid from a day before it, others from where theirs is */
	unsigned days;
};

/*
 * Append the certificate of `key` as PEM, signed by the authority ca_pem with its ca_key. An
 * authority (PKI_ISSUE_CA) signs itself: pass `key` as ca_key, and NULL or its earlier certificate,
 * whose subject it keeps, as ca_pem. ERR_INVALID: a name that a certificate cannot contain, or
 * ca_pem does not match.
 */
int pki_issue(const struct pki_issue *what, const struct pki_key *key, const struct pki_key *ca_key,
	const char *ca_pem, struct strbuf *out, struct err *err) MUST_CHECK;

/* Whether the name is an IP address without brackets or a valid DNS host name. */
bool pki_issue_name_valid(const char *name);

/* Whether the first certificate of pem was issued for this key. */
bool pki_issue_fits(const char *pem, size_t len, const struct pki_key *key);
/* Whether the first certificate of pem is valid for every host name and address in names. */
bool pki_issue_names(const char *pem, size_t len, const char *const *names);
/* Whether this authority signed the first certificate. */
bool pki_issue_is_by(const char *pem, size_t len, const struct pki_key *ca_key);
/* Whether a server can keep the certificate: it fits the key, holds all names and lasts for more
 * than this many days. */
bool pki_issue_serves(const char *pem, size_t len, const struct pki_key *key,
	const char *const *names, int64_t now_s, unsigned days);

#endif
