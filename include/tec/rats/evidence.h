/* SPDX-License-Identifier: MIT */
/*
 * The evidence of a node: the JSON object `primary_evidence` of an attestation. Its members define
 * its kind: {tpm_quote{signature, message, pcrs}, ak_public} is a TPM quote, {svn, report_data} a
 * sample, which proves nothing. Unknown members are ignored, as Trustee does. Everything else is
 * refused, including alternative encodings in base64, which is compared as text.
 *
 * All code that judges evidence uses this reader. It establishes that the evidence is well-formed
 * and consistent (one selection of PCR 0 to 23, values that match the digest); rats_attest_verify()
 * (rats/rcar.h) verifies the signature and the session.
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
const char *rats_tee_name(enum rats_tee tee); /* the name in the handshake, as "tpm" */

/* The defect of a message or its evidence; each one is a label value of a metric. */
enum rats_flaw {
	RATS_FLAW_NONE,
	RATS_FLAW_SYNTAX,     /* not the expected JSON */
	RATS_FLAW_VERSION,    /* unsupported protocol version */
	RATS_FLAW_TEE,        /* unsupported kind of evidence */
	RATS_FLAW_KEY,        /* unusable attestation key */
	RATS_FLAW_QUOTE,      /* not a quote over exactly PCR 0 to 23, SHA-256 */
	RATS_FLAW_PCRS,       /* values that the quote does not cover */
	RATS_FLAW_INIT_DATA,  /* malformed, or PCR 8 does not match */
	RATS_FLAW_ADDITIONAL, /* additional evidence is not accepted */
	RATS_FLAW_BINDING,    /* made for another session or key */
	RATS_FLAW_SIGNATURE,
};
const char *rats_flaw_name(enum rats_flaw flaw);
/* What the node is told of it: a fixed sentence, without values. RATS_FLAW_NONE: the evidence is
 * valid, but no policy could judge it. */
const char *rats_flaw_text(enum rats_flaw flaw);

#define RATS_QUOTE_MAX     512 /* real quotes are below 220 bytes */
#define RATS_SIGNATURE_MAX 520 /* TPMT_SIGNATURE of a 4096-bit RSA key */

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

/* *flaw is set with err, and out is then undefined except that out->ak.der_len is not 0 if the
 * key was accepted. */
int rats_evidence_read(struct json_object *o, struct rats_evidence *out, enum rats_flaw *flaw,
	struct err *err) MUST_CHECK;
/* Append the evidence as JSON, from the checked values only. */
void rats_evidence_write(const struct rats_evidence *e, struct strbuf *out);
/* Verify the quote's RSASSA signature with the evidence's own key. Fails with ERR_DENIED. */
int rats_evidence_signed(const struct rats_evidence *e, struct err *err) MUST_CHECK;

#endif
