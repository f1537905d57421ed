/* SPDX-License-Identifier: MIT */
/* Members are read by name; unknown ones are ignored and never written again. The key is checked
 * first, so that a refusal can name it. */
#include "config.h"

#include "tec/rats/evidence.h"

#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"

const char *rats_tee_name(enum rats_tee tee)
{
	return tee == RATS_TEE_TPM ? "tpm" : "sample";
}

/* The names are values of a metric's label: a change breaks dashboards. */
const char *rats_flaw_name(enum rats_flaw flaw)
{
	static const char *const names[] = {
		[RATS_FLAW_NONE] = "none",
		[RATS_FLAW_SYNTAX] = "syntax",
		[RATS_FLAW_VERSION] = "version",
		[RATS_FLAW_TEE] = "tee",
		[RATS_FLAW_KEY] = "key",
		[RATS_FLAW_QUOTE] = "quote",
		[RATS_FLAW_PCRS] = "pcrs",
		[RATS_FLAW_INIT_DATA] = "init_data",
		[RATS_FLAW_ADDITIONAL] = "additional_evidence",
		[RATS_FLAW_BINDING] = "binding",
		[RATS_FLAW_SIGNATURE] = "signature",
	};

	return names[flaw];
}

const char *rats_flaw_text(enum rats_flaw flaw)
{
	static const char *const texts[] = {
		[RATS_FLAW_NONE] = "The stored attestation policy cannot be evaluated.",
		[RATS_FLAW_SYNTAX] = "The request is malformed.",
		[RATS_FLAW_VERSION] = "The protocol version is not supported.",
		[RATS_FLAW_TEE] = "This kind of evidence is not accepted.",
		[RATS_FLAW_KEY] = "The attestation key is unusable.",
		[RATS_FLAW_QUOTE] =
			"The evidence is not a quote over exactly PCR 0 to 23 (SHA-256).",
		[RATS_FLAW_PCRS] = "The PCR values do not match the quote.",
		[RATS_FLAW_INIT_DATA] = "The init-data is malformed or does not match PCR 8.",
		[RATS_FLAW_ADDITIONAL] = "Additional evidence is not accepted.",
		[RATS_FLAW_BINDING] = "The evidence was not made for this session and key.",
		[RATS_FLAW_SIGNATURE] = "The signature of the quote is invalid.",
	};

	return texts[flaw];
}

/* Decode base64 of at most `size` bytes into out and set *len. */
static int decode(
	const char *text, const char *what, uint8_t *out, size_t size, size_t *len, struct err *err)
{
	cleanup_free uint8_t *bytes = NULL;

	if (bytes_from_b64(text, strlen(text), &bytes, len) < 0)
		return err_set(err, ERR_INVALID, "%s is not canonical base64.", what);
	if (*len > size)
		return err_set(err, ERR_INVALID, "%s has %zu bytes; the maximum is %zu.", what,
			*len, size);
	memcpy(out, bytes, *len);
	return 0;
}

/* Decode the quote and its signature without verifying: rats_evidence_signed() does that later. */
static int read_quote(struct rats_evidence *e, struct err *err)
{
	uint8_t sig[RATS_SIGNATURE_MAX];
	const uint8_t *rsa;
	size_t len;

	if (decode(e->message, "tpm_quote.message", e->attest, sizeof(e->attest), &e->attest_len,
		    err) < 0 ||
		decode(e->signature, "tpm_quote.signature", sig, sizeof(sig), &len, err) < 0 ||
		tpm_quote_parse(e->attest, e->attest_len, &e->quote, err) < 0 ||
		tpm_quote_signature(sig, len, &rsa, &e->rsa_len, err) < 0)
		return -1;
	/* RFC 8017 section 8.2.2 step 1. */
	if (e->rsa_len != (e->ak.bits + 7) / 8)
		return err_set(err, ERR_INVALID,
			"The signature has %zu bytes, which is not the length of the key.",
			e->rsa_len);
	memcpy(e->rsa, rsa, e->rsa_len);
	return 0;
}

/* Read the PCR values and compare their digest with the one in the quote (TPM 2.0 Part 2,
 * TPMS_QUOTE_INFO). */
static int read_pcrs(struct json_object *a, struct rats_evidence *e, struct err *err)
{
	if (json_len(a) != TPM_PCR_COUNT)
		return err_set(err, ERR_INVALID, "tpm_quote.pcrs is not a list of %d values.",
			TPM_PCR_COUNT);
	for (size_t i = 0; i < TPM_PCR_COUNT; i++) {
		struct json_object *v = json_at(a, i);
		const char *hex =
			json_object_is_type(v, json_type_string) ? json_object_get_string(v) : "";

		if (strlen(hex) != SHA256_HEX_LEN ||
			bytes_from_hex_any(hex, SHA256_HEX_LEN, e->pcrs[i]) < 0)
			return err_set(err, ERR_INVALID,
				"tpm_quote.pcrs[%zu] is not 64 hexadecimal digits.", i);
	}
	/* The quote signs a digest of the values, not the values themselves. */
	if (!tpm_quote_covers(&e->quote, (const uint8_t(*)[SHA256_LEN])e->pcrs))
		return err_set(
			err, ERR_INVALID, "The PCR values do not match the digest in the quote.");
	return 0;
}

/* Check in the order key, quote, PCRs; *flaw names the first one that fails. */
static int read_tpm(
	struct json_object *o, struct rats_evidence *e, enum rats_flaw *flaw, struct err *err)
{
	struct json_object *quote = json_get_obj(o, "tpm_quote"),
			   *pcrs = json_get_arr(quote, "pcrs");
	cleanup_free uint8_t *der = NULL;
	size_t len;

	e->tee = RATS_TEE_TPM;
	e->ak_public = json_get_str(o, "ak_public");
	e->signature = json_get_str(quote, "signature");
	e->message = json_get_str(quote, "message");
	*flaw = RATS_FLAW_SYNTAX;
	if (!e->ak_public || !e->signature || !e->message || !pcrs)
		return err_set(err, ERR_INVALID,
			"TPM evidence must have ak_public and tpm_quote with signature, message and pcrs.");
	/* der_len stays 0 unless the key is accepted: callers use it as "the key is known". */
	*flaw = RATS_FLAW_KEY;
	if (bytes_from_b64(e->ak_public, strlen(e->ak_public), &der, &len) < 0)
		return err_set(err, ERR_INVALID, "ak_public is not canonical base64.");
	if (pki_spki_parse_der(der, len, &e->ak, err) < 0)
		return -1;
	*flaw = RATS_FLAW_QUOTE;
	if (read_quote(e, err) < 0)
		return -1;
	*flaw = RATS_FLAW_PCRS;
	return read_pcrs(pcrs, e, err);
}

/* One member of TPM evidence is enough to judge the object as TPM evidence, so that the error is
 * useful. */
int rats_evidence_read(
	struct json_object *o, struct rats_evidence *out, enum rats_flaw *flaw, struct err *err)
{
	memset(out, 0, sizeof(*out));
	if (json_get(o, "tpm_quote") || json_get(o, "ak_public"))
		return read_tpm(o, out, flaw, err);
	out->tee = RATS_TEE_SAMPLE;
	out->svn = json_get_str(o, "svn");
	out->report_data = json_get_str(o, "report_data");
	if (out->svn && out->report_data)
		return 0;
	*flaw = RATS_FLAW_TEE;
	return err_set(
		err, ERR_INVALID, "The evidence is neither TPM evidence nor sample evidence.");
}

/* Member order is Trustee's. ak_public, message and signature are written as sent: they are
 * canonical. */
void rats_evidence_write(const struct rats_evidence *e, struct strbuf *out)
{
	char hex[SHA256_HEX_LEN + 1];

	if (e->tee == RATS_TEE_SAMPLE) {
		json_quote_after(out, "{\"svn\":", e->svn);
		json_quote_after(out, ",\"report_data\":", e->report_data);
		strbuf_addc(out, '}');
		return;
	}
	json_quote_after(out, "{\"tpm_quote\":{\"signature\":", e->signature);
	json_quote_after(out, ",\"message\":", e->message);
	strbuf_adds(out, ",\"pcrs\":[");
	for (size_t i = 0; i < TPM_PCR_COUNT; i++) {
		bytes_to_hex(e->pcrs[i], SHA256_LEN, hex);
		strbuf_addf(out, "%s\"%s\"", i ? "," : "", hex);
	}
	json_quote_after(out, "]},\"ak_public\":", e->ak_public);
	strbuf_addc(out, '}');
}

int rats_evidence_signed(const struct rats_evidence *e, struct err *err)
{
	return pki_spki_verify(&e->ak, e->attest, e->attest_len, e->rsa, e->rsa_len, err);
}
