/* SPDX-License-Identifier: MIT */
/*
 * What a node proves itself with: the JSON object `primary_evidence` of an attestation. Its exact
 * member set says what it is: {tpm_quote{signature, message, pcrs}, ak_public} a TPM quote,
 * {svn, report_data} a sample, which proves nothing. Anything else is refused, as is every second
 * spelling of a value (base64 is canonical, hexadecimal lower case).
 *
 * One reader for everything that judges evidence. It says that the evidence is well-formed and
 * consistent (one selection of PCR 0 to 23, values that fit the digest); whose key signed it and
 * for which session is asked by rats_attest_verify() (rats/rcar.h).
 */
#ifndef TEC_RATS_EVIDENCE_H
#define TEC_RATS_EVIDENCE_H

#include <json-c/json.h>
#include <stddef.h>
#include <stdint.h>

#include "tec/base/err.h"
#include "tec/base/str.h"
#include "tec/pki/spki.h"
#include "tec/tpm/quote.h"

enum rats_tee { RATS_TEE_TPM, RATS_TEE_SAMPLE };
const char *rats_tee_name(enum rats_tee tee); /* "tpm": as the handshake spells it */

/* What is wrong with a message or its evidence: one label of metrics each. */
enum rats_flaw {
	RATS_FLAW_NONE,
	RATS_FLAW_SYNTAX,     /* not the JSON that it should be */
	RATS_FLAW_VERSION,    /* another version of the protocol */
	RATS_FLAW_TEE,        /* evidence of a kind that is not accepted */
	RATS_FLAW_KEY,        /* not a usable attestation key */
	RATS_FLAW_QUOTE,      /* not a quote over exactly PCR 0 to 23, SHA-256 */
	RATS_FLAW_PCRS,       /* values that the quote does not cover */
	RATS_FLAW_INIT_DATA,  /* malformed, or not what PCR 8 says */
	RATS_FLAW_ADDITIONAL, /* additional evidence where none is accepted */
	RATS_FLAW_BINDING,    /* made for another session or key */
	RATS_FLAW_SIGNATURE,
};
const char *rats_flaw_name(enum rats_flaw flaw);

#define RATS_QUOTE_MAX     512 /* a TPM's are below 220 bytes */
#define RATS_SIGNATURE_MAX 520 /* of an RSA key of 4096 bits, with its head */

struct rats_evidence {
	enum rats_tee tee;
	/* Borrowed from the JSON object, as sent. */
	const char *ak_public, *message, *signature; /* tpm */
	const char *svn, *report_data;               /* sample */
	/* tpm */
	struct pki_spki ak;
	uint8_t pcrs[TPM_PCR_COUNT][SHA256_LEN];
	struct tpm_quote quote;
	/* message and the signature in it, decoded */
	uint8_t attest[RATS_QUOTE_MAX], rsa[RATS_SIGNATURE_MAX];
	size_t attest_len, rsa_len;
};

/* *flaw is set with err; out is then of no use, but that out->ak.der_len is not 0 when the key
 * could be read. */
int rats_evidence_read(struct json_object *o, struct rats_evidence *out, enum rats_flaw *flaw,
	struct err *err) MUST_CHECK;
/* As JSON, from what was checked. */
void rats_evidence_write(const struct rats_evidence *e, struct strbuf *out);
/* RSASSA of the quote by the evidence's own key. ERR_DENIED. */
int rats_evidence_signed(const struct rats_evidence *e, struct err *err) MUST_CHECK;

#endif
