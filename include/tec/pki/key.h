/* SPDX-License-Identifier: MIT */
/* Key pairs that this system makes: Ed25519 for Trustee's admin API, P-256 for its token signer.
 * Private keys leave this module as struct secret only. */
#ifndef TEC_PKI_KEY_H
#define TEC_PKI_KEY_H

#include <json-c/json_types.h>
#include <stdbool.h>

#include "tec/base/err.h"
#include "tec/base/secret.h"
#include "tec/base/str.h"

struct pki_key; /* a private key; pki_key_free wipes it */

struct pki_key *pki_key_new_ed25519(void);
struct pki_key *pki_key_new_p256(void);
struct pki_key *pki_key_from_pem(const struct secret *pem, struct err *err) MUST_CHECK;
bool pki_key_is_ed25519(const struct pki_key *k); /* otherwise P-256 */
void pki_key_free(struct pki_key *k);
struct secret *pki_key_private_pem(const struct pki_key *k);          /* PKCS#8 "PRIVATE KEY" */
void pki_key_public_pem(const struct pki_key *k, struct strbuf *out); /* SPKI "PUBLIC KEY" */
void *pki_key_evp(const struct pki_key *k); /* EVP_PKEY *, borrowed: pki, jose and net only */

/* The members of a public JWK (RFC 7517), as sent; NULL: absent. */
struct pki_jwk {
	const char *kty, *crv, *alg, *x, *y, *n, *e;
};
struct pki_jwk pki_jwk_read(struct json_object *o); /* borrows from o */

DEFINE_CLEANUP(pki_key_cleanup_, struct pki_key *, pki_key_free)
#define cleanup_pki_key __attribute__((cleanup(pki_key_cleanup_)))

#endif
