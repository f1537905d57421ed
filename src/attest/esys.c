/* SPDX-License-Identifier: MIT */
/*
 * ESYS with ESYS_TR_PASSWORD and empty authorizations only: a quote opens no session, so no session
 * can leak. Each quote is parsed with tpm/quote.c, the parser that a broker uses, and compared with
 * the PCR values read after it. If they differ, a PCR was extended in between and the quote is
 * repeated.
 */
#include "config.h"

#include "tec/attest/esys.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <tss2/tss2_mu.h>
#include <tss2/tss2_rc.h>
#include <tss2/tss2_tctildr.h>

#include "attest_internal.h"
#include "tec/base/bytes.h"
#include "tec/base/log.h"
#include "tec/rats/initdata.h"

#define QUOTE_TRIES   5
#define INIT_DATA_PCR 8
#define RC_FMT1       0x080u /* format 1: further bits number a handle, parameter or session */

void attest_signals_hold(sigset_t *before)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, before);
}

void attest_signals_release(const sigset_t *before)
{
	sigprocmask(SIG_SETMASK, before, NULL);
}

/* ---- errors */

/* Reduce a response code to its error number, without the number of the handle or parameter (TPM
 * 2.0 Part 2, 6.6). */
static TSS2_RC tpm_code(TSS2_RC rc)
{
	return rc & RC_FMT1 ? rc & 0x0bfu : rc & 0xfffu;
}

struct advice {
	TSS2_RC rc;
	enum err_kind kind;
	const char *text;
};
static const struct advice advices[] = {
	{TPM2_RC_LOCKOUT, ERR_DENIED,
		"the TPM is in lockout after failed authorizations: wait until it ends, or clear it with tpm2_dictionarylockout --clear-lockout"},
	{TPM2_RC_AUTH_FAIL, ERR_DENIED,
		"the TPM's owner or endorsement hierarchy has a password: clear it with tpm2_changeauth"},
	{TPM2_RC_BAD_AUTH, ERR_DENIED,
		"the TPM's owner or endorsement hierarchy has a password: clear it with tpm2_changeauth"},
	{TPM2_RC_HIERARCHY, ERR_DENIED,
		"the TPM hierarchy is disabled: enable the TPM in the firmware settings"},
	{TPM2_RC_INITIALIZE, ERR_TRANSIENT,
		"the TPM was not started: the firmware has to do this; a software TPM needs its startup option"},
	{TPM2_RC_FAILURE, ERR_TRANSIENT, "the TPM is in failure mode: power-cycle the machine"},
	{TPM2_RC_OBJECT_MEMORY, ERR_TRANSIENT,
		"all object slots of the TPM are in use: use /dev/tpmrm0, or run tpm2_flushcontext -t"},
	{TPM2_RC_SESSION_MEMORY, ERR_TRANSIENT,
		"all session slots of the TPM are in use: use /dev/tpmrm0, or run tpm2_flushcontext -l"},
	{TPM2_RC_NV_SPACE, ERR_DENIED,
		"the TPM has no space for another persistent key: remove one with tpm2_evictcontrol"},
};

/* Codes that are known causes of trouble on real machines get a remedy; others are decoded by
 * tpm2-tss. */
int attest_esys_fail(struct err *err, TSS2_RC rc, const char *what)
{
	TSS2_RC layer = rc & TSS2_RC_LAYER_MASK, code = tpm_code(rc);

	if (layer == 0 || layer == TSS2_RESMGR_TPM_RC_LAYER)
		for (size_t i = 0; i < ARRAY_LEN(advices); i++)
			if (tpm_code(advices[i].rc) == code)
				return err_set(err, advices[i].kind, "cannot %s: %s", what,
					advices[i].text);
	/* BAD_SEQUENCE: an earlier command received no response. */
	if (layer == TSS2_TCTI_RC_LAYER ||
		(layer != 0 && (rc & 0xffffu) == TSS2_BASE_RC_BAD_SEQUENCE))
		return err_set(err, ERR_TRANSIENT,
			"cannot %s: the TPM did not respond (%s); check that it is still present",
			what, Tss2_RC_Decode(rc));
	return err_set(err, ERR_INVALID, "cannot %s: %s", what, Tss2_RC_Decode(rc));
}

/* ---- opening */

/* Open the transport. TctiLdr returns the same code for a busy and for a missing device; only the
 * errno of its open() tells them apart. */
static int open_tcti(const char *tcti, TSS2_TCTI_CONTEXT **out, struct err *err)
{
	errno = 0;
	if (Tss2_TctiLdr_Initialize(tcti, out) == TSS2_RC_SUCCESS)
		return 0;
	if (errno == EBUSY)
		return err_set(err, ERR_TRANSIENT,
			"the TPM %s is in use by another program: use /dev/tpmrm0, which programs can share",
			log_esc(tcti));
	if (errno == EACCES || errno == EPERM)
		return err_set(err, ERR_DENIED,
			"no permission to open the TPM %s: run as root, or as a member of the group tss",
			log_esc(tcti));
	return err_set(err, ERR_NOT_FOUND,
		"there is no TPM at %s: enable it in the firmware settings, or specify another with --tcti",
		log_esc(tcti));
}

/* Signals are blocked here as well; opening may already talk to the TPM. */
struct attest_esys *attest_esys_open(const char *tcti, struct err *err)
{
	cleanup_esys struct attest_esys *e = xcalloc(1, sizeof(*e));
	sigset_t before;
	TSS2_RC rc = TSS2_RC_SUCCESS;
	int r;

	attest_signals_hold(&before);
	r = open_tcti(tcti, &e->tcti, err);
	if (r == 0)
		rc = Esys_Initialize(&e->ctx, e->tcti, NULL);
	attest_signals_release(&before);
	if (r < 0)
		return NULL;
	if (rc != TSS2_RC_SUCCESS) {
		attest_esys_fail(err, rc, "open the TPM");
		return NULL;
	}
	return steal_ptr(&e);
}

void attest_esys_free(struct attest_esys *e)
{
	if (!e)
		return;
	if (e->ctx)
		Esys_Finalize(&e->ctx);
	if (e->tcti)
		Tss2_TctiLdr_Finalize(&e->tcti);
	free(e);
}

/* ---- registers */

static TPML_PCR_SELECTION all_registers(void)
{
	TPML_PCR_SELECTION s = {.count = 1,
		.pcrSelections = {{.hash = TPM2_ALG_SHA256,
			.sizeofSelect = 3,
			.pcrSelect = {0xff, 0xff, 0xff}}}};

	return s;
}

/*
 * Copy the PCRs of one response and clear them in `want`. TPM2_PCR_Read returns at most 8 digests:
 * the lowest of the requested PCRs, in ascending order.
 */
static int take_digests(const TPML_PCR_SELECTION *got, const TPML_DIGEST *values,
	TPML_PCR_SELECTION *want, uint8_t out[TPM_PCR_COUNT][SHA256_LEN])
{
	uint32_t n = 0;

	if (got->count != 1 || got->pcrSelections[0].hash != TPM2_ALG_SHA256)
		return -1;
	for (unsigned i = 0; i < TPM_PCR_COUNT; i++) {
		uint8_t bit = (uint8_t)(1u << i % 8);

		if (!(got->pcrSelections[0].pcrSelect[i / 8] & bit))
			continue;
		if (n >= values->count || values->digests[n].size != SHA256_LEN)
			return -1;
		memcpy(out[i], values->digests[n++].buffer, SHA256_LEN);
		want->pcrSelections[0].pcrSelect[i / 8] &= (uint8_t)~bit;
	}
	return n > 0 ? 0 : -1;
}

/* Read all 24 PCRs. This takes several commands, so the values may be from different moments. */
static int read_registers(
	struct attest_esys *e, uint8_t out[TPM_PCR_COUNT][SHA256_LEN], struct err *err)
{
	TPML_PCR_SELECTION want = all_registers();
	TPMS_PCR_SELECTION *left = &want.pcrSelections[0];

	while (left->pcrSelect[0] | left->pcrSelect[1] | left->pcrSelect[2]) {
		TPML_PCR_SELECTION *got = NULL;
		TPML_DIGEST *values = NULL;
		TSS2_RC rc = Esys_PCR_Read(e->ctx, ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE, &want,
			NULL, &got, &values);
		int r = rc == TSS2_RC_SUCCESS ? take_digests(got, values, &want, out) : 0;

		Esys_Free(got);
		Esys_Free(values);
		if (rc != TSS2_RC_SUCCESS)
			return attest_esys_fail(err, rc, "read the PCRs");
		if (r < 0)
			return err_set(err, ERR_INVALID,
				"the TPM has no SHA-256 bank of 24 PCRs: enable it in the firmware settings");
	}
	return 0;
}

int attest_esys_pcrs(struct attest_esys *e, uint8_t out[TPM_PCR_COUNT][SHA256_LEN], struct err *err)
{
	sigset_t before;
	int rc;

	attest_signals_hold(&before);
	rc = read_registers(e, out, err);
	attest_signals_release(&before);
	return rc;
}

int attest_esys_extend(
	struct attest_esys *e, unsigned pcr, const uint8_t digest[SHA256_LEN], struct err *err)
{
	TPML_DIGEST_VALUES values = {.count = 1, .digests = {{.hashAlg = TPM2_ALG_SHA256}}};
	sigset_t before;
	TSS2_RC rc;

	memcpy(values.digests[0].digest.sha256, digest, SHA256_LEN);
	attest_signals_hold(&before);
	rc = Esys_PCR_Extend(
		e->ctx, ESYS_TR_PCR0 + pcr, ESYS_TR_PASSWORD, ESYS_TR_NONE, ESYS_TR_NONE, &values);
	attest_signals_release(&before);
	return rc == TSS2_RC_SUCCESS ? 0 : attest_esys_fail(err, rc, "extend a PCR");
}

/* The PCR is extended only if it is zero. An unexpected value cannot be undone before a reboot. */
int attest_esys_bind(struct attest_esys *e, const char *toml, struct err *err)
{
	static const uint8_t zero[SHA256_LEN];
	uint8_t pcrs[TPM_PCR_COUNT][SHA256_LEN], wanted[SHA256_LEN], digest[SHA256_LEN];

	if (attest_esys_pcrs(e, pcrs, err) < 0)
		return -1;
	rats_initdata_pcr8(toml, strlen(toml), wanted);
	if (memcmp(pcrs[INIT_DATA_PCR], wanted, SHA256_LEN) == 0)
		return 0;
	if (memcmp(pcrs[INIT_DATA_PCR], zero, SHA256_LEN) != 0)
		return err_set(err, ERR_CONFLICT,
			"cannot bind init-data: PCR 8 already holds another value, as on every machine booted by GRUB; remove initdata");
	bytes_sha256(toml, strlen(toml), digest);
	return attest_esys_extend(e, INIT_DATA_PCR, digest, err);
}

/* ---- quotes */

struct quoted {
	TPM2B_ATTEST *message;
	TPMT_SIGNATURE *signature;
};

static void quoted_fini(struct quoted *q)
{
	Esys_Free(q->message);
	Esys_Free(q->signature);
	*q = (struct quoted){NULL, NULL};
}
#define cleanup_quoted __attribute__((cleanup(quoted_fini)))

/* Quote all PCRs over `extra`, which binds the quote to one handshake. */
static int ask_quote(struct attest_esys *e, ESYS_TR ak, const uint8_t extra[SHA256_LEN],
	struct quoted *out, struct err *err)
{
	TPML_PCR_SELECTION all = all_registers();
	TPM2B_DATA data = {.size = SHA256_LEN};
	TPMT_SIG_SCHEME scheme = {
		.scheme = TPM2_ALG_RSASSA, .details = {.rsassa = {.hashAlg = TPM2_ALG_SHA256}}};
	TSS2_RC rc;

	memcpy(data.buffer, extra, SHA256_LEN);
	rc = Esys_Quote(e->ctx, ak, ESYS_TR_PASSWORD, ESYS_TR_NONE, ESYS_TR_NONE, &data, &scheme,
		&all, &out->message, &out->signature);
	return rc == TSS2_RC_SUCCESS ? 0 : attest_esys_fail(err, rc, "quote the PCRs");
}

/* Append the evidence as JSON. All its values are base64 or hex, so none needs quoting. */
static int write_evidence(const struct quoted *q, const struct pki_spki *ak,
	const uint8_t pcrs[TPM_PCR_COUNT][SHA256_LEN], struct strbuf *out, struct err *err)
{
	uint8_t signature[sizeof(TPMT_SIGNATURE)];
	char hex[SHA256_HEX_LEN + 1];
	size_t n = 0;
	TSS2_RC rc = Tss2_MU_TPMT_SIGNATURE_Marshal(q->signature, signature, sizeof(signature), &n);

	if (rc != TSS2_RC_SUCCESS)
		return attest_esys_fail(err, rc, "encode the signature");
	strbuf_adds(out, "{\"tpm_quote\":{\"signature\":\"");
	bytes_to_b64(out, signature, n);
	strbuf_adds(out, "\",\"message\":\"");
	bytes_to_b64(out, q->message->attestationData, q->message->size);
	strbuf_adds(out, "\",\"pcrs\":[");
	for (unsigned i = 0; i < TPM_PCR_COUNT; i++) {
		bytes_to_hex(pcrs[i], SHA256_LEN, hex);
		strbuf_addf(out, "%s\"%s\"", i ? "," : "", hex);
	}
	strbuf_adds(out, "]},\"ak_public\":\"");
	bytes_to_b64(out, ak->der, ak->der_len);
	strbuf_adds(out, "\"}");
	return 0;
}

/* Return 1 if done, 0 if a PCR changed between the quote and the reading, -1 on error. */
/* Make one attempt. The parser is strict, so a quote that a broker would refuse is noticed here. */
static int try_quote(struct attest_esys *e, ESYS_TR ak, const struct pki_spki *key,
	const uint8_t extra[SHA256_LEN], struct strbuf *evidence, struct err *err)
{
	cleanup_quoted struct quoted q = {NULL, NULL};
	uint8_t pcrs[TPM_PCR_COUNT][SHA256_LEN];
	struct tpm_quote parsed;

	if (ask_quote(e, ak, extra, &q, err) < 0 || read_registers(e, pcrs, err) < 0)
		return -1;
	if (tpm_quote_parse(q.message->attestationData, q.message->size, &parsed, err) < 0)
		return err_wrap(err, "the TPM's quote");
	if (!tpm_quote_covers(&parsed, (const uint8_t(*)[SHA256_LEN])pcrs))
		return 0;
	return write_evidence(&q, key, (const uint8_t(*)[SHA256_LEN])pcrs, evidence, err) < 0 ? -1
											      : 1;
}

/* Check the key first: quoting with a key of the wrong type would fail with an obscure code. */
int attest_esys_quote(struct attest_esys *e, uint32_t handle, const uint8_t extra[SHA256_LEN],
	struct strbuf *evidence, struct err *err)
{
	struct pki_spki key;
	sigset_t before;
	ESYS_TR ak;
	int rc = 0;

	if (attest_esys_ak(e, handle, &key, err) < 0)
		return -1;
	attest_signals_hold(&before);
	rc = attest_esys_persistent(e, handle, &ak, err);
	if (rc == 0) {
		for (unsigned i = 0; i < QUOTE_TRIES && rc == 0; i++)
			rc = try_quote(e, ak, &key, extra, evidence, err);
		Esys_TR_Close(e->ctx, &ak);
		if (rc == 0)
			err_set(err, ERR_TRANSIENT,
				"the PCRs changed while they were quoted (%u attempts)",
				QUOTE_TRIES);
	}
	attest_signals_release(&before);
	return rc == 1 ? 0 : -1;
}

/* ---- description */

/* Read one TPM property; 0 if the TPM does not have it. */
static int property(struct attest_esys *e, uint32_t what, uint32_t *out, struct err *err)
{
	TPMS_CAPABILITY_DATA *data = NULL;
	TPMI_YES_NO more;
	TSS2_RC rc = Esys_GetCapability(e->ctx, ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE,
		TPM2_CAP_TPM_PROPERTIES, what, 1, &more, &data);

	if (rc != TSS2_RC_SUCCESS)
		return attest_esys_fail(err, rc, "read the TPM's properties");
	*out = data->data.tpmProperties.count > 0 ? data->data.tpmProperties.tpmProperty[0].value
						  : 0;
	Esys_Free(data);
	return 0;
}

/* The manufacturer is four ASCII characters in one number; unprintable ones are dropped. */
int attest_esys_about(struct attest_esys *e, char *out, size_t out_len, struct err *err)
{
	uint32_t maker = 0, firmware = 0, flags = 0;
	char name[5] = "";

	if (property(e, TPM2_PT_MANUFACTURER, &maker, err) < 0 ||
		property(e, TPM2_PT_FIRMWARE_VERSION_1, &firmware, err) < 0 ||
		property(e, TPM2_PT_PERMANENT, &flags, err) < 0)
		return -1;
	for (unsigned i = 0; i < 4; i++) {
		char c = (char)(maker >> (24 - 8 * i));

		name[i] = c > ' ' && c < 0x7f ? c : '\0';
	}
	snprintf(out, out_len, "%s, firmware %u.%u%s", name, firmware >> 16, firmware & 0xffffu,
		flags & TPMA_PERMANENT_INLOCKOUT ? ", in lockout" : "");
	return 0;
}
