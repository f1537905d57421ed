/* SPDX-License-Identifier: MIT */
/*
 * The two messages that a node sends in Trustee's RCAR handshake (request, challenge, attestation,
 * response; protocol 0.4.0). They are read strictly, except that unknown members are ignored, and
 * written again from the values read: a server behind this one never receives a byte that was not
 * understood here, so differences between two parsers cannot be exploited. Texts that the other
 * side hashes or compares keep every code point.
 *
 * A message owns the JSON it was read from, and everything else borrows from it: call *_fini in the
 * same turn of the loop. Fails with ERR_INVALID, a message that a node may receive, and a flaw.
 */
#ifndef TEC_RATS_RCAR_H
#define TEC_RATS_RCAR_H

#include <json-c/json.h>
#include <stddef.h>
#include <stdint.h>

#include "tec/base/err.h"
#include "tec/base/str.h"
#include "tec/pki/key.h"
#include "tec/rats/evidence.h"

#define RATS_RCAR_VERSION "0.4.0"
#define RATS_BINDING_LEN  SHA384_LEN

/* POST /kbs/v0/auth */
/* How the detail of a refusal begins, as in Trustee. */
#define RATS_AUTH_FAILED   "Attestation error: RCAR handshake Auth failed: "
#define RATS_ATTEST_FAILED "Attestation error: RCAR handshake Attest failed: "

struct rats_auth {
	struct json_object *o; /* owned */
	const char *tee;
	struct json_object *extra; /* extra-params; its numbers are small integers */
};
int rats_auth_read(const char *body, size_t len, struct rats_auth *out, enum rats_flaw *flaw,
	struct err *err) MUST_CHECK;
void rats_auth_write(const struct rats_auth *a, struct strbuf *out);
void rats_auth_fini(struct rats_auth *a);
#define cleanup_rats_auth __attribute__((cleanup(rats_auth_fini)))

/* POST /kbs/v0/attest */
struct rats_attest {
	struct json_object *o; /* owned */
	const char *nonce;
	struct pki_jwk key;     /* tee-pubkey: EC with crv, x, y or RSA with n, e */
	const char *init_data;  /* the TOML text; NULL: none */
	const char *additional; /* "": none */
	struct rats_evidence evidence;
};
/* max: largest body accepted, in bytes. */
int rats_attest_read(const char *body, size_t len, size_t max, struct rats_attest *out,
	enum rats_flaw *flaw, struct err *err) MUST_CHECK;
void rats_attest_write(const struct rats_attest *a, struct strbuf *out);
void rats_attest_fini(struct rats_attest *a);
#define cleanup_rats_attest __attribute__((cleanup(rats_attest_fini)))

/* What evidence is bound to: SHA-384 over the canonical JSON (RFC 8785) of the three values. The
 * extraData of a TPM quote is its first 32 bytes. */
void rats_binding(const struct pki_jwk *key, const char *nonce, const char *additional,
	uint8_t out[RATS_BINDING_LEN]);
/* Verify that the message answers this nonce, is bound to the key it brings, is signed by the
 * evidence's own key, and that PCR 8 matches the init-data. The policy decides whose key that is
 * and what booted. Fails with ERR_DENIED. */
int rats_attest_verify(const struct rats_attest *a, const char *nonce, enum rats_flaw *flaw,
	struct err *err) MUST_CHECK;

#endif
