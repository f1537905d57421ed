/* SPDX-License-Identifier: MIT */
/* AttestationKey. Indexes of its cache: 0 spec.uuid, 1 SPKI SHA-256 (hex, only usable keys), 2 uid
 * of its controlling owner. */
#ifndef TEC_MODEL_AK_H
#define TEC_MODEL_AK_H

#include <json-c/json.h>

#include "tec/kobj/condition.h"
#include "tec/kobj/meta.h"

#define MODEL_AK_SECRET_FINALIZER "trusted-execution-clusters.io/attestationkey-secret-finalizer"
#define MODEL_APPROVED_ANNOTATION "trusted-execution-clusters.io/approved"
/* Marks (mark.h), written once the Machine's bound-key names this key: RFC 3339 time with
 * microseconds; "admin" or "operator". */
#define MODEL_APPROVED_AT_ANNOTATION "trusted-execution-clusters.io/approved-at"
#define MODEL_APPROVED_BY_ANNOTATION "trusted-execution-clusters.io/approved-by"
/* Mark: the annotation above was there when the key was made, and was taken off. */
#define MODEL_APPROVAL_IGNORED_ANNOTATION "trusted-execution-clusters.io/approval-ignored"
/* Of version 0.1.0; bound-key says it now. */
#define MODEL_APPROVED_SPKI_ANNOTATION "trusted-execution-clusters.io/approved-spki-sha256"

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
	AK_NAME_TAKEN,
	AK_N_REASONS,
};
const char *model_ak_reason(enum model_ak_reason r);

struct model_ak {
	struct kobj obj;
	const char *public_key;  /* as stored */
	const char *uuid;        /* NULL when unset */
	const char *spki_sha256; /* hex of the DER, NULL: not a usable public key (pki/spki.h) */
	bool by_listener;
	bool approve_wanted;     /* annotation approved: "true" */
	bool approval_ignored;   /* mark */
	const char *approved_at; /* mark */
	bool approved_by_admin;  /* mark */
	const char *owner_uid;   /* controller */
	unsigned n_owners;
	struct kobj_cond cond[AK_N_CONDS];
};

struct kobj *model_ak_extract(struct json_object *o, struct err *err);
const char *model_ak_index(const struct kobj *o, unsigned i);
static inline const struct model_ak *model_ak(const struct kobj *o)
{
	return (const struct model_ak *)o;
}
#define MODEL_AK_NAME_LEN 35 /* "ak-" + 32 hex */
void model_ak_name(const uint8_t sha256[32], char out[MODEL_AK_NAME_LEN + 1]);
struct json_object *model_ak_new_json(const char *name, const char *pem, const char *uuid);

#endif
