/* SPDX-License-Identifier: MIT */
/* Members are read by name. Unknown ones are ignored, as Trustee does, and are not written again, so
 * that they cannot mean anything to a later reader. json_parse() refuses duplicates of any name. */
#include "config.h"

#include "tec/rats/rcar.h"

#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/rats/initdata.h"

#define EXACT_MAX (((int64_t)1 << 53) - 1)

/* Set *flaw and the message together: each refusal is counted by its flaw. */
static int refuse(struct err *err, enum rats_flaw *flaw, enum rats_flaw what, const char *text)
{
	*flaw = what;
	return err_set(err, ERR_INVALID, "%s", text);
}

/* Bound size, depth and tokens before parsing: the sender is not authenticated yet. */
static struct json_object *read_body(
	const char *body, size_t len, size_t max, enum rats_flaw *flaw, struct err *err)
{
	const struct json_limits limits = {.bytes = max, .depth = 8, .tokens = 256};
	struct json_object *o = json_parse(body, len, &limits, err);

	*flaw = RATS_FLAW_SYNTAX;
	if (o && !json_object_is_type(o, json_type_object)) {
		json_object_put(o);
		o = NULL;
		err_set(err, ERR_INVALID, "The body is not a JSON object.");
	}
	return o;
}

/* ---- auth */

/* Whether a number occurs at any depth that JSON readers may disagree about: a fraction, or an
 * integer that is not exact in double precision (RFC 8259 section 6). */
static bool has_odd_number(struct json_object *o)
{
	int64_t n = json_object_is_type(o, json_type_int) ? json_object_get_int64(o) : 0;
	bool found = json_object_is_type(o, json_type_double) || n > EXACT_MAX || n < -EXACT_MAX;

	for (size_t i = 0; !found && json_object_is_type(o, json_type_array) && i < json_len(o);
		i++)
		found = has_odd_number(json_at(o, i));
	json_each (o, name, value)
		found = found || has_odd_number(value);
	return found;
}

/* The version is compared exactly, because the handshake has no negotiation. */
int rats_auth_read(
	const char *body, size_t len, struct rats_auth *out, enum rats_flaw *flaw, struct err *err)
{
	const char *version;

	memset(out, 0, sizeof(*out));
	out->o = read_body(body, len, json_limits_public.bytes, flaw, err);
	if (!out->o)
		return -1;
	version = json_get_str(out->o, "version");
	out->tee = json_get_str(out->o, "tee");
	if (!version || !out->tee ||
		!json_object_object_get_ex(out->o, "extra-params", &out->extra))
		return refuse(err, flaw, RATS_FLAW_SYNTAX,
			"The request must have version, tee and extra-params.");
	/* Checked after the members: another version may have other members, and SYNTAX is then
	 * right as well. */
	if (!str_eq(version, RATS_RCAR_VERSION))
		return refuse(err, flaw, RATS_FLAW_VERSION,
			"The protocol version must be " RATS_RCAR_VERSION ".");
	if (has_odd_number(out->extra))
		return refuse(err, flaw, RATS_FLAW_SYNTAX,
			"extra-params must not contain fractions or integers above 2^53.");
	return 0;
}

void rats_auth_write(const struct rats_auth *a, struct strbuf *out)
{
	json_quote_after(out, "{\"version\":\"" RATS_RCAR_VERSION "\",\"tee\":", a->tee);
	strbuf_adds(out, ",\"extra-params\":");
	json_canonical(out, a->extra);
	strbuf_addc(out, '}');
}

void rats_auth_fini(struct rats_auth *a)
{
	json_object_put(a->o);
	a->o = NULL;
}

/* ---- attest: reading */

/* Only syntax is checked; jwe_key_new() validates the numbers when the key is used. Members of the
 * other type of key are dropped. */
static int read_key(struct json_object *o, struct pki_jwk *k, enum rats_flaw *flaw, struct err *err)
{
	*k = pki_jwk_read(o);
	if (k->alg && str_eq(k->kty, "EC") && k->crv && k->x && k->y)
		k->n = k->e = NULL;
	else if (k->alg && str_eq(k->kty, "RSA") && k->n && k->e)
		k->crv = k->x = k->y = NULL;
	else
		return refuse(err, flaw, RATS_FLAW_SYNTAX,
			"runtime-data.tee-pubkey must be an EC key with alg, crv, x and y or an RSA key with alg, n and e.");
	return 0;
}

/* rats_initdata_check() refuses what would abort the worker of a stock Trustee. */
static int read_init_data(
	struct json_object *o, struct rats_attest *out, enum rats_flaw *flaw, struct err *err)
{
	if (!o) /* absent and null are the same */
		return 0;
	out->init_data = json_get_str(o, "body");
	if (!out->init_data || !str_eq(json_get_str(o, "format"), "toml"))
		return refuse(err, flaw, RATS_FLAW_INIT_DATA,
			"init-data must have body and format, with format toml.");
	*flaw = RATS_FLAW_INIT_DATA;
	return rats_initdata_check(out->init_data, strlen(out->init_data), err);
}

/* The order of the checks decides which flaw is counted if there are several. The nonce is compared
 * with the session's later, in rats_attest_verify(). */
int rats_attest_read(const char *body, size_t len, size_t max, struct rats_attest *out,
	enum rats_flaw *flaw, struct err *err)
{
	struct json_object *runtime, *key, *evidence, *primary;

	memset(out, 0, sizeof(*out));
	out->o = read_body(body, len, max, flaw, err);
	if (!out->o)
		return -1;
	runtime = json_get_obj(out->o, "runtime-data");
	key = json_get_obj(runtime, "tee-pubkey");
	out->nonce = json_get_str(runtime, "nonce");
	if (!key || !out->nonce)
		return refuse(err, flaw, RATS_FLAW_SYNTAX,
			"runtime-data must have nonce and tee-pubkey.");
	if (read_key(key, &out->key, flaw, err) < 0 ||
		read_init_data(json_get(out->o, "init-data"), out, flaw, err) < 0)
		return -1;
	evidence = json_get_obj(out->o, "tee-evidence");
	primary = json_get(evidence, "primary_evidence");
	out->additional = json_get_str(evidence, "additional_evidence");
	if (!primary || !out->additional)
		return refuse(err, flaw, RATS_FLAW_SYNTAX,
			"tee-evidence must have primary_evidence and additional_evidence.");
	return rats_evidence_read(primary, &out->evidence, flaw, err);
}

/* ---- attest: writing */

/* Members are sorted by name as RFC 8785 section 3.2.3 requires: the binding is a digest of this
 * text. */
static void write_key(const struct pki_jwk *k, struct strbuf *out)
{
	const char *const members[][2] = {{",\"crv\":", k->crv}, {",\"e\":", k->e},
		{",\"kty\":", k->kty}, {",\"n\":", k->n}, {",\"x\":", k->x}, {",\"y\":", k->y}};

	json_quote_after(out, "{\"alg\":", k->alg);
	for (size_t i = 0; i < ARRAY_LEN(members); i++)
		if (members[i][1])
			json_quote_after(out, members[i][0], members[i][1]);
	strbuf_addc(out, '}');
}

/* Write only members that were read and checked, in the order of Trustee's own client. */
void rats_attest_write(const struct rats_attest *a, struct strbuf *out)
{
	strbuf_addc(out, '{');
	if (a->init_data) {
		json_quote_after(out, "\"init-data\":{\"format\":\"toml\",\"body\":", a->init_data);
		strbuf_adds(out, "},");
	}
	json_quote_after(out, "\"runtime-data\":{\"nonce\":", a->nonce);
	strbuf_adds(out, ",\"tee-pubkey\":");
	write_key(&a->key, out);
	strbuf_adds(out, "},\"tee-evidence\":{\"primary_evidence\":");
	rats_evidence_write(&a->evidence, out);
	json_quote_after(out, ",\"additional_evidence\":", a->additional);
	strbuf_adds(out, "}}");
}

void rats_attest_fini(struct rats_attest *a)
{
	json_object_put(a->o);
	a->o = NULL;
}

/* ---- verifying */

/* The members are written in sorted order, so the text is canonical without sorting. */
void rats_binding(const struct pki_jwk *key, const char *nonce, const char *additional,
	uint8_t out[RATS_BINDING_LEN])
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;

	json_quote_after(&text, "{\"additional-evidence\":", additional);
	json_quote_after(&text, ",\"nonce\":", nonce);
	strbuf_adds(&text, ",\"tee-pubkey\":");
	write_key(key, &text);
	strbuf_addc(&text, '}');
	bytes_sha384(text.data, text.len, out);
}

/* Check binding, signature, then init-data. extraData holds at most a TPM digest, hence 32 of 48
 * bytes. */
static int verify_tpm(const struct rats_attest *a, const uint8_t binding[RATS_BINDING_LEN],
	enum rats_flaw *flaw, struct err *err)
{
	const struct tpm_quote *q = &a->evidence.quote;
	uint8_t pcr8[SHA256_LEN];

	*flaw = RATS_FLAW_BINDING;
	if (q->extra_data_len != SHA256_LEN || memcmp(q->extra_data, binding, SHA256_LEN) != 0)
		return err_set(err, ERR_DENIED,
			"The quote was made for another session or another tee-pubkey.");
	*flaw = RATS_FLAW_SIGNATURE;
	if (rats_evidence_signed(&a->evidence, err) < 0)
		return -1;
	if (!a->init_data)
		return 0;
	/* Without init-data PCR 8 is not judged here. */
	rats_initdata_pcr8(a->init_data, strlen(a->init_data), pcr8);
	*flaw = RATS_FLAW_INIT_DATA;
	if (memcmp(pcr8, a->evidence.pcrs[8], SHA256_LEN) != 0)
		return err_set(err, ERR_DENIED,
			"PCR 8 does not match the init-data: it was not extended with exactly this text.");
	return 0;
}

/* The nonce makes evidence fresh; the binding ties it to the key that the response is encrypted
 * to. */
int rats_attest_verify(
	const struct rats_attest *a, const char *nonce, enum rats_flaw *flaw, struct err *err)
{
	cleanup_strbuf struct strbuf b64 = STRBUF_INIT;
	uint8_t binding[RATS_BINDING_LEN];

	*flaw = RATS_FLAW_BINDING;
	if (!str_eq(a->nonce, nonce))
		return err_set(err, ERR_DENIED, "The nonce does not belong to this session.");
	rats_binding(&a->key, nonce, a->additional, binding);
	if (a->evidence.tee == RATS_TEE_TPM)
		return verify_tpm(a, binding, flaw, err);
	/* Sample evidence carries the whole binding in base64. */
	bytes_to_b64(&b64, binding, sizeof(binding));
	if (!str_eq(a->evidence.report_data, strbuf_str(&b64)))
		return err_set(err, ERR_DENIED,
			"The sample evidence was made for another session or another tee-pubkey.");
	return 0;
}
