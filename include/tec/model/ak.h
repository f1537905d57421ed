/* SPDX-License-Identifier: MIT */
/* AttestationKey. Indexes of its cache: 0 spec.uuid, 1 SPKI SHA-256 (hex, usable keys only), 2 uid
 * of the controlling owner. */
#ifndef TEC_MODEL_AK_H
#define TEC_MODEL_AK_H

#include <json-c/json.h>

#include "tec/kobj/condition.h"
#include "tec/kobj/meta.h"
#include "tec/rats/names.h"

#define MODEL_AK_SECRET_FINALIZER "trusted-execution-clusters.io/attestationkey-secret-finalizer"
#define MODEL_APPROVED_ANNOTATION "trusted-execution-clusters.io/approved"
/* Marks (mark.h), written when the Machine's bound-key names this key: an RFC 3339 time with
 * microseconds; "admin" or "operator". */
#define MODEL_APPROVED_AT_ANNOTATION "trusted-execution-clusters.io/approved-at"
#define MODEL_APPROVED_BY_ANNOTATION "trusted-execution-clusters.io/approved-by"
/* Mark: annotation approved was already set when the key was created, and was removed. */
#define MODEL_APPROVAL_IGNORED_ANNOTATION "trusted-execution-clusters.io/approval-ignored"
/* Written by version 0.1.0; replaced by bound-key. */
#define MODEL_APPROVED_SPKI_ANNOTATION "trusted-execution-clusters.io/approved-spki-sha256"
/* Written by the listener that accepted the key: the uid of the Machine with its spec.uuid that the
 * listener saw before it created the key, or MODEL_SEEN_NONE. Older listeners did not write it. */
#define MODEL_MACHINE_SEEN_ANNOTATION "trusted-execution-clusters.io/machine-seen"
#define MODEL_SEEN_NONE               "none"

enum model_ak_cond { AK_APPROVED, AK_DELIVERED, AK_N_CONDS };
extern const char *const model_ak_cond_types[AK_N_CONDS];
enum model_ak_reason {
	AK_MACHINE_CREATED,
	AK_APPROVED_MANUALLY,
	AK_REGISTRATION,
	AK_MACHINE_HAS_KEY,
	AK_MANUAL_APPROVAL,
	AK_ENDORSEMENT_FAILED,
	AK_DELIVERED_OK,
	AK_NOT_APPROVED,
	AK_NOT_AVAILABLE,
	AK_INVALID_KEY,
	AK_CONFLICT,
	AK_TOO_MANY_KEYS,
	AK_N_REASONS,
};
const char *model_ak_reason(enum model_ak_reason r);

struct model_ak {
	struct kobj obj;
	const char
		*text; /* spec.publicKey; NULL: it is the PEM that pki_spki_to_pem() makes of der */
	/* References (base/intern.h); NULL: not a usable public key (pki/spki.h). */
	const uint8_t *der;
	const char *spki_sha256;  /* hex, of the DER */
	uint64_t public_hash;     /* str_hash() of spec.publicKey, as in model_secret */
	const char *uuid;         /* NULL when unset */
	const char *machine_seen; /* annotation */
	const char *approved_at;  /* mark */
	const char *owner_uid;    /* controller */
	unsigned n_owners;
	uint16_t der_len;
	bool by_listener;
	bool approve_wanted;    /* annotation approved: "true" */
	bool approval_ignored;  /* mark */
	bool approved_by_admin; /* mark */
	bool withheld;          /* mark, see MODEL_WITHHELD_ANNOTATION */
	struct kobj_cond cond[AK_N_CONDS];
};

struct kobj *model_ak_extract(struct json_object *o, struct err *err);
const char *model_ak_index(const struct kobj *o, unsigned i);
static inline const struct model_ak *model_ak(const struct kobj *o)
{
	return (const struct model_ak *)o;
}
/*
 * The name that a listener gives a key: "ak-" and 32 hex digits of its SPKI hash, so that the API
 * server itself refuses a second one. A key without uuid has a separate name ("-any"): every client
 * can register a node's public key without uuid, which must not prevent the node from registering
 * it with one. The spare name ("-uuid") is for a key whose proper name was taken by one without
 * uuid, as listeners of version 0.1.0 did.
 */
enum model_ak_name_kind { MODEL_AK_NAME, MODEL_AK_NAME_ANY, MODEL_AK_NAME_SPARE };
#define MODEL_AK_NAME_LEN 40
void model_ak_name(
	const uint8_t sha256[32], enum model_ak_name_kind kind, char out[MODEL_AK_NAME_LEN + 1]);
/* The object that a listener creates; the caller releases it. */
struct json_object *model_ak_new_json(const char *name, const char *pem, const char *uuid);
/* Add the annotation that says which Machine the listener saw. */
void model_ak_note_seen(struct json_object *ak, const char *machine_seen);
/* Tell whether a key from a listener may be approved automatically for this Machine: the listener
 * saw the Machine first, or (older listeners) the Machine was created in an earlier second than the
 * key. Otherwise a client could wait for ids that can be predicted. */
bool model_ak_saw(const struct model_ak *a, const struct kobj *machine);

/* When an approved key was approved, in microseconds since the epoch; the creation time for a key
 * approved before approvals were marked. */
int64_t model_ak_approved_us(const struct model_ak *ak);
/* Owned by exactly this Machine. Not proof of anything: every client that may create a key can
 * write this. */
bool model_ak_is_of(const struct model_ak *ak, const char *machine_uid);
/* The key may have been declared to Trustee: it has our mark, or was approved by another
 * operator. */
bool model_ak_was_approved(const struct model_ak *ak);
/* Append spec.publicKey as stored. */
void model_ak_public_key(const struct model_ak *ak, struct strbuf *out);
/* Get the identity's name in Trustee; false: the key is not usable. */
bool model_ak_identity(const struct model_ak *ak, char out[RATS_IDENTITY_NAME_LEN + 1]);

#endif
