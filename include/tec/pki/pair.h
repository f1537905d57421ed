/* SPDX-License-Identifier: MIT */
/* Whether a TLS server can use a certificate and a private key, and whether nodes accept what it
 * serves: the one place where a TLS Secret is judged. Time is an argument. */
#ifndef TEC_PKI_PAIR_H
#define TEC_PKI_PAIR_H

#include <stddef.h>
#include <stdint.h>

#include "tec/base/err.h"
#include "tec/base/str.h"

/* In the order in which they are looked for. */
enum pki_pair_fault {
	PKI_PAIR_OK,
	PKI_PAIR_BAD_CERT,  /* missing or malformed */
	PKI_PAIR_BAD_KEY,   /* likewise */
	PKI_PAIR_ENCRYPTED, /* the key needs a pass phrase */
	PKI_PAIR_MISMATCH,  /* the key belongs to no certificate of the chain */
	PKI_PAIR_EXPIRED,
	PKI_PAIR_EARLY,    /* not valid yet */
	PKI_PAIR_NO_CA,    /* ca.crt has no usable certificate */
	PKI_PAIR_OTHER_CA, /* ca.crt does not verify the chain */
	PKI_PAIR_NAME,     /* a name is not covered */
	PKI_PAIR_ORDER,    /* only the order is wrong: the chain that is handed out is right */
};

/* What is judged. A text may be "" (the member is missing), NULL is not judged. */
struct pki_pair {
	const void *cert; /* tls.crt: PEM; NULL: ca alone is judged */
	size_t cert_len;
	const void *key; /* tls.key: PEM */
	size_t key_len;
	const char *ca;   /* ca.crt: PEM */
	const char *name; /* host name or address, without brackets */
	int64_t now_s;    /* 0: validity periods are not judged */
};

/* Append to chain (may be NULL) the certificates alone as PEM, the server's own first, each followed
 * by its issuer; only if the result is PKI_PAIR_EXPIRED or a later one. why gets a sentence that
 * names the member and the remedy, unless the result is PKI_PAIR_OK. */
enum pki_pair_fault pki_pair_judge(
	const struct pki_pair *p, struct strbuf *chain, struct err *why) MUST_CHECK;

#endif
