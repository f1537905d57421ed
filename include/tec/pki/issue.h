/* SPDX-License-Identifier: MIT */
/* Certificates of an authority of our own: the authority itself, servers, clients. Time is an
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
	/* Of a server: host names and IP addresses, NULL-terminated. */
	const char *const *names;
	int64_t now_s; /* valid from 5 minutes before it */
	unsigned days;
};

/*
 * Appends the certificate of `key` as PEM, signed by the authority ca_pem with its ca_key; use CA signs
 * itself: ca_key is key then, and ca_pem NULL, or its earlier certificate, whose subject it keeps.
 * ERR_INVALID: a name that cannot stand in a certificate, or no authority in ca_pem.
 */
int pki_issue(const struct pki_issue *what, const struct pki_key *key, const struct pki_key *ca_key,
	const char *ca_pem, struct strbuf *out, struct err *err) MUST_CHECK;

/* Whether it is an IP address, without brackets, or a host name as DNS has them. */
bool pki_issue_name_valid(const char *name);

/* Whether the first certificate of pem is for this key. */
bool pki_issue_fits(const char *pem, size_t len, const struct pki_key *key);
/* Whether it names every one of names, as a server's does. */
bool pki_issue_names(const char *pem, size_t len, const char *const *names);

#endif
