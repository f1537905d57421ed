/* SPDX-License-Identifier: MIT */
/*
 * EAR (EAT Attestation Result, draft-ietf-rats-ear): the claims of an attestation token, with the
 * members that Trustee writes. Text in, values out; jose signs. The reader accepts only tokens of
 * its own broker.
 */
#ifndef TEC_RATS_EAR_H
#define TEC_RATS_EAR_H

#include <json-c/json.h>
#include <stdint.h>

#include "tec/base/err.h"
#include "tec/rats/policy.h"
#include "tec/rats/rcar.h"

/* The claims as JSON text; the caller frees. */
char *rats_ear_make(const struct rats_attest *a, const struct rats_verdict *v, int64_t now_s,
	uint32_t life_s) MUST_CHECK;

struct rats_ear {
	struct json_object *o; /* owned; the rest is borrowed from it */
	int64_t exp_s;
	struct rats_holder holder;
	struct pki_jwk key; /* the node's */
};
/* ERR_INVALID: not the claims of an attestation token. */
int rats_ear_read(
	const char *payload, size_t len, struct rats_ear *out, struct err *err) MUST_CHECK;
void rats_ear_fini(struct rats_ear *e);
#define cleanup_rats_ear __attribute__((cleanup(rats_ear_fini)))

#endif
