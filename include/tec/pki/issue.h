/* SPDX-License-Identifier: MIT */
/* Issue certificates of our own authority: the authority itself, servers, clients. Time is an
 * argument. */
#ifndef TEC_PKI_ISSUE_H
#define TEC_PKI_ISSUE_H

#include <stdint.h>

#include "tec/pki/key.h"

enum pki_issue_use { PKI_ISSUE_CA, PKI_ISSUE_SERVER, PKI_ISSUE_CLIENT };

struct pki_issue {
	enum pki_issue_use use;
	const char *common_name;
	const char *organization; /* NULL: none */
	/* Servers only: host names and IP addresses, NULL-terminated. */
	const char *const *names;
	int64_t now_s; /* valid from 5 minutes before it */
	unsigned days;
};

/*
 * Append the certificate of `key` as PEM, signed by the authority ca_pem with its ca_key. An
 * authority (PKI_ISSUE_CA) signs itself: pass `key` as ca_key, and NULL or its earlier certificate,
 * whose subject it keeps, as ca_pem. ERR_INVALID: a name that a certificate cannot contain, or
 * ca_pem is no match.
 */
int pki_issue(const struct pki_issue *what, const struct pki_key *key, const struct pki_key *ca_key,
	const char *ca_pem, struct strbuf *out, struct err *err) MUST_CHECK;

/* Whether the name is an IP address without brackets or a valid DNS host name. */
bool pki_issue_name_valid(const char *name);

/* Whether the first certificate of pem was issued for this key. */
bool pki_issue_fits(const char *pem, size_t len, const struct pki_key *key);
/* Whether the first certificate of pem is valid for every host name and address in names. */
bool pki_issue_names(const char *pem, size_t len, const char *const *names);
/* Whether a server can keep the certificate: it fits the key, holds all names and lasts for more
 * than this many days. */
bool pki_issue_serves(const char *pem, size_t len, const struct pki_key *key,
	const char *const *names, int64_t now_s, unsigned days);

#endif
