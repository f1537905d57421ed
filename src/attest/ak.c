/* SPDX-License-Identifier: MIT */
/*
 * The attestation key (AK): RSA 2048, a child of the endorsement key (TCG EK Credential Profile,
 * template L-1), so that TPM2_ActivateCredential can bind it to the EK certificate. A key is
 * created only if the handle is free: when two programs create one at the same time, the second
 * uses the key of the first.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "attest_internal.h"
#include "tec/attest/esys.h"
#include "tec/base/bytes.h"

#define MODULUS_LEN 256
#define LOCK_FILE   "/run/tec-node.lock"
/* fixedTPM, fixedParent, sensitiveDataOrigin, userWithAuth, restricted, sign */
#define AK_ATTRIBUTES 0x00050072u
#define EK_ATTRIBUTES 0x000300b2u
#define IGNORED       TPMA_OBJECT_NODA /* irrelevant for quoting */

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

/* ---- reading */

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
int attest_esys_persistent(struct attest_esys *e, uint32_t handle, ESYS_TR *out, struct err *err)
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
	return attest_esys_fail(err, rc, "read the attestation key");
}

/* Read and check the key at the handle. ERR_CONFLICT keeps us from quoting with a key that was made
 * for something else. */
static int read_ak(struct attest_esys *e, uint32_t handle, struct pki_spki *out, struct err *err)
{
	TPM2B_PUBLIC *pub = NULL;
	ESYS_TR ak;
	TSS2_RC rc;
	int r;

	if (attest_esys_persistent(e, handle, &ak, err) < 0)
		return -1;
	rc = Esys_ReadPublic(
		e->ctx, ak, ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE, &pub, NULL, NULL);
	Esys_TR_Close(e->ctx, &ak);
	if (rc != TSS2_RC_SUCCESS)
		return attest_esys_fail(err, rc, "read the attestation key");
	if (is_ak(&pub->publicArea))
		r = to_spki(&pub->publicArea, out, err);
	else
		r = err_set(err, ERR_CONFLICT,
			"the key at handle 0x%08x is not an attestation key (RSA 2048, RSASSA, SHA-256, restricted): choose another handle with --ak-handle, or remove the key with tpm2_evictcontrol -c 0x%08x",
			handle, handle);
	Esys_Free(pub);
	return r;
}

int attest_esys_ak(struct attest_esys *e, uint32_t handle, struct pki_spki *out, struct err *err)
{
	sigset_t before;
	int rc;

	attest_signals_hold(&before);
	rc = read_ak(e, handle, out, err);
	attest_signals_release(&before);
	return rc;
}

/* ---- making */

/* Transient objects that occupy TPM slots until make_ak() flushes them. */
struct making {
	ESYS_TR ek, session, ak;
};

/* Recreate the EK as a transient object. It is not persisted: the template reproduces it at any
 * time. */
static TSS2_RC make_ek(struct attest_esys *e, struct making *m)
{
	TPM2B_SENSITIVE_CREATE none = {.size = 0};
	TPM2B_PUBLIC template = ek_template();
	TPM2B_DATA outside = {.size = 0};
	TPML_PCR_SELECTION pcrs = {.count = 0};

	return Esys_CreatePrimary(e->ctx, ESYS_TR_RH_ENDORSEMENT, ESYS_TR_PASSWORD, ESYS_TR_NONE,
		ESYS_TR_NONE, &none, &template, &outside, &pcrs, &m->ek, NULL, NULL, NULL, NULL);
}

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

/* Create the AK under the EK and load it. Both commands need their own policy authorization. */
static TSS2_RC make_under_ek(struct attest_esys *e, struct making *m)
{
	TPM2B_SENSITIVE_CREATE none = {.size = 0};
	TPM2B_PUBLIC template = ak_template(), *pub = NULL;
	TPM2B_DATA outside = {.size = 0};
	TPML_PCR_SELECTION pcrs = {.count = 0};
	TPM2B_PRIVATE *wrapped = NULL;
	TSS2_RC rc = authorize(e, m);

	if (rc == TSS2_RC_SUCCESS)
		rc = Esys_Create(e->ctx, m->ek, m->session, ESYS_TR_NONE, ESYS_TR_NONE, &none,
			&template, &outside, &pcrs, &wrapped, &pub, NULL, NULL, NULL);
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
	TSS2_RC rc = make_ek(e, &m);

	if (rc == TSS2_RC_SUCCESS) {
		what = "create the attestation key";
		rc = make_under_ek(e, &m);
	}
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
	return rc == TSS2_RC_SUCCESS ? 0 : attest_esys_fail(err, rc, what);
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
	struct err none = ERR_INIT;
	sigset_t before;
	int rc, locked;

	locked = lock();
	attest_signals_hold(&before);
	rc = read_ak(e, handle, out, &none);
	if (rc < 0 && none.kind == ERR_NOT_FOUND) {
		rc = make_ak(e, handle, err);
		if (rc == 0)
			rc = read_ak(e, handle, out, err);
	} else if (rc < 0) {
		*err = none;
	}
	attest_signals_release(&before);
	if (locked >= 0)
		close(locked);
	return rc;
}
