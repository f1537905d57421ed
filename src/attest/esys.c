/* SPDX-License-Identifier: MIT */
/*
 * ESYS with ESYS_TR_PASSWORD and empty authorizations only: a quote opens no session, so no session
 * can leak. Each quote is parsed with tpm/quote.c, the parser that a broker uses, and compared with
 * the PCR values read after it. If they differ, a PCR was extended in between and the quote is
 * repeated.
 *
 * The attestation key (AK) is RSA 2048, a child of the endorsement key (TCG EK Credential Profile,
 * template L-1), so that TPM2_ActivateCredential can bind it to the EK certificate. A key is
 * created only if the handle is free: when two programs create one at the same time, the second
 * uses the key of the first.
 */
#include "config.h"

#include "tec/attest/esys.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <tss2/tss2_esys.h>
#include <tss2/tss2_mu.h>
#include <tss2/tss2_rc.h>
#include <tss2/tss2_tctildr.h>
#include <unistd.h>

#include "tec/base/bytes.h"
#include "tec/base/log.h"
#include "tec/rats/initdata.h"

struct attest_esys {
	ESYS_CONTEXT *ctx;       /* owned */
	TSS2_TCTI_CONTEXT *tcti; /* owned */
};

#define MODULUS_LEN 256
#define LOCK_FILE   "/run/tec-node.lock"
/* fixedTPM, fixedParent, sensitiveDataOrigin, userWithAuth, restricted, sign */
#define AK_ATTRIBUTES 0x00050072u
#define EK_ATTRIBUTES 0x000300b2u
#define IGNORED       TPMA_OBJECT_NODA /* irrelevant for quoting */
#define QUOTE_TRIES   5
#define INIT_DATA_PCR 8
#define RC_FMT1       0x080u /* format 1: further bits number a handle, parameter or session */

/* Return the signals that were blocked before, for the end of the scope. */
static sigset_t hold_signals(void)
{
	sigset_t set, before;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, &before);
	return before;
}

static void release_signals(const sigset_t *before)
{
	sigprocmask(SIG_SETMASK, before, NULL);
}
#define cleanup_signals __attribute__((cleanup(release_signals)))

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
static int fail(struct err *err, TSS2_RC rc, const char *what)
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
	cleanup_signals sigset_t before = hold_signals();
	cleanup_esys struct attest_esys *e = xcalloc(1, sizeof(*e));
	TSS2_RC rc;

	if (open_tcti(tcti, &e->tcti, err) < 0)
		return NULL;
	rc = Esys_Initialize(&e->ctx, e->tcti, NULL);
	if (rc != TSS2_RC_SUCCESS) {
		fail(err, rc, "open the TPM");
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

/* ---- the attestation key: templates */

/* PolicySecret(TPM_RH_ENDORSEMENT), from the profile. */
static const uint8_t ek_policy[SHA256_LEN] = {0x83, 0x71, 0x97, 0x67, 0x44, 0x84, 0xb3, 0xf8, 0x1a,
	0x90, 0xcc, 0x8d, 0x46, 0xa5, 0xd7, 0x24, 0xfd, 0x52, 0xd7, 0x6e, 0x06, 0x52, 0x0b, 0x64,
	0xf2, 0xa1, 0xda, 0x1b, 0x33, 0x14, 0x69, 0xaa};

/* Return template L-1 of the profile. Every member counts: TPM2_CreatePrimary derives the key from
 * the seed and this template, and only this one yields the key that the EK certificate names. */
static TPM2B_PUBLIC ek_template(void)
{
	TPM2B_PUBLIC t = {.publicArea = {.type = TPM2_ALG_RSA,
				  .nameAlg = TPM2_ALG_SHA256,
				  .objectAttributes = EK_ATTRIBUTES,
				  .authPolicy = {.size = SHA256_LEN},
				  .parameters.rsaDetail = {.symmetric = {.algorithm = TPM2_ALG_AES,
								   .keyBits.aes = 128,
								   .mode.aes = TPM2_ALG_CFB},
					  .scheme.scheme = TPM2_ALG_NULL,
					  .keyBits = 2048},
				  .unique.rsa.size = MODULUS_LEN}};

	memcpy(t.publicArea.authPolicy.buffer, ek_policy, SHA256_LEN);
	return t;
}

/*
 * Return a restricted signing key: it signs only data that the TPM itself produced, such as quotes.
 */
static TPM2B_PUBLIC ak_template(void)
{
	TPM2B_PUBLIC t = {.publicArea = {.type = TPM2_ALG_RSA,
				  .nameAlg = TPM2_ALG_SHA256,
				  .objectAttributes = AK_ATTRIBUTES,
				  .parameters.rsaDetail = {.symmetric.algorithm = TPM2_ALG_NULL,
					  .scheme = {.scheme = TPM2_ALG_RSASSA,
						  .details.rsassa.hashAlg = TPM2_ALG_SHA256},
					  .keyBits = 2048}}};

	return t;
}

/* ---- the attestation key: reading */

/* Check that a key has the type, scheme and attributes of an attestation key. Another tool may have
 * created it, so what does not affect quoting may differ. */
static bool is_ak(const TPMT_PUBLIC *p)
{
	const TPMS_RSA_PARMS *rsa = &p->parameters.rsaDetail;

	return p->type == TPM2_ALG_RSA && p->nameAlg == TPM2_ALG_SHA256 &&
	       (p->objectAttributes & ~IGNORED) == AK_ATTRIBUTES && rsa->keyBits == 2048 &&
	       rsa->scheme.scheme == TPM2_ALG_RSASSA &&
	       rsa->scheme.details.rsassa.hashAlg == TPM2_ALG_SHA256 &&
	       (rsa->exponent == 0 || rsa->exponent == 65537) && p->unique.rsa.size == MODULUS_LEN;
}

/* Encode SubjectPublicKeyInfo. For RSA 2048 all bytes except the modulus are constant. */
static int to_spki(const TPMT_PUBLIC *p, struct pki_spki *out, struct err *err)
{
	static const uint8_t before[] = {0x30, 0x82, 0x01, 0x22, 0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86,
		0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00, 0x03, 0x82, 0x01, 0x0f, 0x00,
		0x30, 0x82, 0x01, 0x0a, 0x02, 0x82, 0x01, 0x01, 0x00};
	static const uint8_t after[] = {0x02, 0x03, 0x01, 0x00, 0x01};
	uint8_t der[sizeof(before) + MODULUS_LEN + sizeof(after)];

	memcpy(der, before, sizeof(before));
	memcpy(der + sizeof(before), p->unique.rsa.buffer, MODULUS_LEN);
	memcpy(der + sizeof(before) + MODULUS_LEN, after, sizeof(after));
	return pki_spki_parse_der(der, sizeof(der), out, err);
}

/* TPM_RC_HANDLE, from the TPM itself or from the resource manager, means that the handle is free.
 * Any other code is an error. */
static int open_persistent(struct attest_esys *e, uint32_t handle, ESYS_TR *out, struct err *err)
{
	TSS2_RC rc = Esys_TR_FromTPMPublic(
		e->ctx, handle, ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE, out);

	if (rc == TSS2_RC_SUCCESS)
		return 0;
	if ((rc & TSS2_RC_LAYER_MASK & ~TSS2_RESMGR_TPM_RC_LAYER) == 0 &&
		(rc & 0x0bfu) == (TPM2_RC_HANDLE & 0x0bfu))
		return err_set(err, ERR_NOT_FOUND,
			"there is no attestation key at 0x%08x: make one with tec-node ak make",
			handle);
	return fail(err, rc, "read the attestation key");
}

/* Read and check the key at the handle. ERR_CONFLICT keeps us from quoting with a key that was made
 * for something else. */
int attest_esys_ak(struct attest_esys *e, uint32_t handle, struct pki_spki *out, struct err *err)
{
	cleanup_signals sigset_t before = hold_signals();
	TPM2B_PUBLIC *pub = NULL;
	ESYS_TR ak;
	TSS2_RC rc;
	int r;

	if (open_persistent(e, handle, &ak, err) < 0)
		return -1;
	rc = Esys_ReadPublic(
		e->ctx, ak, ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE, &pub, NULL, NULL);
	Esys_TR_Close(e->ctx, &ak);
	if (rc != TSS2_RC_SUCCESS)
		return fail(err, rc, "read the attestation key");
	if (is_ak(&pub->publicArea))
		r = to_spki(&pub->publicArea, out, err);
	else
		r = err_set(err, ERR_CONFLICT,
			"the key at handle 0x%08x is not an attestation key (RSA 2048, RSASSA, SHA-256, restricted): choose another handle with --ak-handle, or remove the key with tpm2_evictcontrol -c 0x%08x",
			handle, handle);
	Esys_Free(pub);
	return r;
}

/* ---- the attestation key: making */

/* Transient objects that occupy TPM slots until make_ak() flushes them. */
struct making {
	ESYS_TR ek, session, ak;
};

/*
 * Satisfy the EK's policy for the next command. The session stays open, but each command consumes
 * the policy state, so this is called before every use of the EK.
 */
static TSS2_RC authorize(struct attest_esys *e, struct making *m)
{
	TPMT_SYM_DEF none = {.algorithm = TPM2_ALG_NULL};
	TSS2_RC rc = TSS2_RC_SUCCESS;

	if (m->session == ESYS_TR_NONE) {
		rc = Esys_StartAuthSession(e->ctx, ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE,
			ESYS_TR_NONE, ESYS_TR_NONE, NULL, TPM2_SE_POLICY, &none, TPM2_ALG_SHA256,
			&m->session);
		if (rc == TSS2_RC_SUCCESS)
			rc = Esys_TRSess_SetAttributes(e->ctx, m->session,
				TPMA_SESSION_CONTINUESESSION, TPMA_SESSION_CONTINUESESSION);
	}
	if (rc != TSS2_RC_SUCCESS)
		return rc;
	return Esys_PolicySecret(e->ctx, ESYS_TR_RH_ENDORSEMENT, m->session, ESYS_TR_PASSWORD,
		ESYS_TR_NONE, ESYS_TR_NONE, NULL, NULL, NULL, 0, NULL, NULL);
}

/*
 * Recreate the EK as a transient object, then create the AK under it and load it. The EK is not
 * persisted: the template reproduces it at any time. Both commands on the AK need their own policy
 * authorization.
 */
static TSS2_RC make_keys(struct attest_esys *e, struct making *m, const char **what)
{
	TPM2B_SENSITIVE_CREATE none = {.size = 0};
	TPM2B_PUBLIC ek = ek_template(), ak = ak_template(), *pub = NULL;
	TPM2B_DATA outside = {.size = 0};
	TPML_PCR_SELECTION pcrs = {.count = 0};
	TPM2B_PRIVATE *wrapped = NULL;
	TSS2_RC rc =
		Esys_CreatePrimary(e->ctx, ESYS_TR_RH_ENDORSEMENT, ESYS_TR_PASSWORD, ESYS_TR_NONE,
			ESYS_TR_NONE, &none, &ek, &outside, &pcrs, &m->ek, NULL, NULL, NULL, NULL);

	if (rc != TSS2_RC_SUCCESS)
		return rc;
	*what = "create the attestation key";
	rc = authorize(e, m);
	if (rc == TSS2_RC_SUCCESS)
		rc = Esys_Create(e->ctx, m->ek, m->session, ESYS_TR_NONE, ESYS_TR_NONE, &none, &ak,
			&outside, &pcrs, &wrapped, &pub, NULL, NULL, NULL);
	if (rc == TSS2_RC_SUCCESS)
		rc = authorize(e, m);
	if (rc == TSS2_RC_SUCCESS)
		rc = Esys_Load(e->ctx, m->ek, m->session, ESYS_TR_NONE, ESYS_TR_NONE, wrapped, pub,
			&m->ak);
	Esys_Free(wrapped);
	Esys_Free(pub);
	return rc;
}

/* Flush a transient object. A failure is ignored: the error that led here matters more. */
static void flush(struct attest_esys *e, ESYS_TR *what)
{
	if (*what != ESYS_TR_NONE)
		Esys_FlushContext(e->ctx, *what);
	*what = ESYS_TR_NONE;
}

/* Create an AK and persist it at the handle. All transient objects are flushed, also on failure. */
static int make_ak(struct attest_esys *e, uint32_t handle, struct err *err)
{
	struct making m = {ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE};
	ESYS_TR kept = ESYS_TR_NONE;
	const char *what = "create the endorsement key";
	TSS2_RC rc = make_keys(e, &m, &what);

	if (rc == TSS2_RC_SUCCESS) {
		what = "store the attestation key at its handle";
		rc = Esys_EvictControl(e->ctx, ESYS_TR_RH_OWNER, m.ak, ESYS_TR_PASSWORD,
			ESYS_TR_NONE, ESYS_TR_NONE, handle, &kept);
		if (rc == TSS2_RC_SUCCESS)
			Esys_TR_Close(e->ctx, &kept);
		else if ((rc & TSS2_RC_LAYER_MASK & ~TSS2_RESMGR_TPM_RC_LAYER) == 0 &&
			 (rc & 0xfffu) == TPM2_RC_NV_DEFINED)
			rc = TSS2_RC_SUCCESS; /* another program was faster: use its key */
	}
	flush(e, &m.ak);
	flush(e, &m.session);
	flush(e, &m.ek);
	return rc == TSS2_RC_SUCCESS ? 0 : fail(err, rc, what);
}

/*
 * Serialize key creation. Without a resource manager, two concurrent creations need more object
 * slots than a TPM has. Return -1 if the lock file is unavailable; the caller then continues
 * without a lock.
 */
static int lock(void)
{
	int fd = open(LOCK_FILE, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	while (fd >= 0 && flock(fd, LOCK_EX) < 0)
		if (errno != EINTR) {
			close(fd);
			return -1;
		}
	return fd;
}

/* Take the lock before blocking signals, so that a person can interrupt the wait. */
int attest_esys_ak_make(
	struct attest_esys *e, uint32_t handle, struct pki_spki *out, struct err *err)
{
	int locked = lock(), rc;
	cleanup_signals sigset_t before = hold_signals();

	rc = attest_esys_ak(e, handle, out, err);
	if (rc < 0 && err->kind == ERR_NOT_FOUND) {
		err_clear(err);
		rc = make_ak(e, handle, err);
		if (rc == 0)
			rc = attest_esys_ak(e, handle, out, err);
	}
	if (locked >= 0)
		close(locked);
	return rc;
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
int attest_esys_pcrs(struct attest_esys *e, uint8_t out[TPM_PCR_COUNT][SHA256_LEN], struct err *err)
{
	cleanup_signals sigset_t before = hold_signals();
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
			return fail(err, rc, "read the PCRs");
		if (r < 0)
			return err_set(err, ERR_INVALID,
				"the TPM has no SHA-256 bank of 24 PCRs: enable it in the firmware settings");
	}
	return 0;
}

int attest_esys_extend(
	struct attest_esys *e, unsigned pcr, const uint8_t digest[SHA256_LEN], struct err *err)
{
	TPML_DIGEST_VALUES values = {.count = 1, .digests = {{.hashAlg = TPM2_ALG_SHA256}}};
	cleanup_signals sigset_t before = hold_signals();
	TSS2_RC rc;

	memcpy(values.digests[0].digest.sha256, digest, SHA256_LEN);
	rc = Esys_PCR_Extend(
		e->ctx, ESYS_TR_PCR0 + pcr, ESYS_TR_PASSWORD, ESYS_TR_NONE, ESYS_TR_NONE, &values);
	return rc == TSS2_RC_SUCCESS ? 0 : fail(err, rc, "extend a PCR");
}

/* TPM2_PCR_Event: the TPM computes the digest of each bank itself. */
int attest_esys_event(struct attest_esys *e, unsigned pcr, const char *text, struct err *err)
{
	TPM2B_EVENT event = {.size = (uint16_t)strlen(text)};
	TPML_DIGEST_VALUES *digests = NULL;
	cleanup_signals sigset_t before = hold_signals();
	TSS2_RC rc;

	if (strlen(text) > sizeof(event.buffer))
		return err_set(
			err, ERR_INVALID, "an event of more than %zu bytes", sizeof(event.buffer));
	memcpy(event.buffer, text, event.size);
	rc = Esys_PCR_Event(e->ctx, ESYS_TR_PCR0 + pcr, ESYS_TR_PASSWORD, ESYS_TR_NONE,
		ESYS_TR_NONE, &event, &digests);
	Esys_Free(digests);
	return rc == TSS2_RC_SUCCESS ? 0 : fail(err, rc, "extend a PCR");
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
}
#define cleanup_quoted __attribute__((cleanup(quoted_fini)))

/* Append the evidence as JSON. All its values are base64 or hex, so none needs quoting. */
static int write_evidence(const struct quoted *q, const struct pki_spki *ak,
	const uint8_t pcrs[TPM_PCR_COUNT][SHA256_LEN], struct strbuf *out, struct err *err)
{
	uint8_t signature[sizeof(TPMT_SIGNATURE)];
	char hex[SHA256_HEX_LEN + 1];
	size_t n = 0;
	TSS2_RC rc = Tss2_MU_TPMT_SIGNATURE_Marshal(q->signature, signature, sizeof(signature), &n);

	if (rc != TSS2_RC_SUCCESS)
		return fail(err, rc, "encode the signature");
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

/* Make one attempt: 1 if done, 0 if a PCR changed between the quote and the reading, -1 on error.
 * `extra` binds the quote to one handshake. The parser is strict, so a quote that a broker would
 * refuse is noticed here. */
static int try_quote(struct attest_esys *e, ESYS_TR ak, const struct pki_spki *key,
	const uint8_t extra[SHA256_LEN], struct strbuf *evidence, struct err *err)
{
	TPML_PCR_SELECTION all = all_registers();
	TPM2B_DATA data = {.size = SHA256_LEN};
	TPMT_SIG_SCHEME scheme = {
		.scheme = TPM2_ALG_RSASSA, .details = {.rsassa = {.hashAlg = TPM2_ALG_SHA256}}};
	cleanup_quoted struct quoted q = {NULL, NULL};
	uint8_t pcrs[TPM_PCR_COUNT][SHA256_LEN];
	struct tpm_quote parsed;
	TSS2_RC rc;

	memcpy(data.buffer, extra, SHA256_LEN);
	rc = Esys_Quote(e->ctx, ak, ESYS_TR_PASSWORD, ESYS_TR_NONE, ESYS_TR_NONE, &data, &scheme,
		&all, &q.message, &q.signature);
	if (rc != TSS2_RC_SUCCESS)
		return fail(err, rc, "quote the PCRs");
	if (attest_esys_pcrs(e, pcrs, err) < 0)
		return -1;
	if (tpm_quote_parse(q.message->attestationData, q.message->size, &parsed, err) < 0)
		return err_wrap(err, "the TPM's quote");
	if (!tpm_quote_covers(&parsed, (const uint8_t(*)[SHA256_LEN])pcrs))
		return 0;
	return write_evidence(&q, key, (const uint8_t(*)[SHA256_LEN])pcrs, evidence, err) < 0 ? -1
											      : 1;
}

/* Check the key first: quoting with a key of the wrong type would fail with an obscure code.
 * Signals are held over all attempts. */
int attest_esys_quote(struct attest_esys *e, uint32_t handle, const uint8_t extra[SHA256_LEN],
	struct strbuf *evidence, struct err *err)
{
	cleanup_signals sigset_t before = hold_signals();
	struct pki_spki key;
	ESYS_TR ak;
	int rc = 0;

	if (attest_esys_ak(e, handle, &key, err) < 0 || open_persistent(e, handle, &ak, err) < 0)
		return -1;
	for (unsigned i = 0; i < QUOTE_TRIES && rc == 0; i++)
		rc = try_quote(e, ak, &key, extra, evidence, err);
	Esys_TR_Close(e->ctx, &ak);
	if (rc == 0)
		err_set(err, ERR_TRANSIENT, "the PCRs changed while they were quoted (%u attempts)",
			QUOTE_TRIES);
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
		return fail(err, rc, "read the TPM's properties");
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
