/* SPDX-License-Identifier: MIT */
/* Machine: one node. Index 0 of its cache is spec.id. */
#ifndef TEC_MODEL_MACHINE_H
#define TEC_MODEL_MACHINE_H

#include <json-c/json.h>

#include "tec/kobj/condition.h"
#include "tec/kobj/meta.h"

#define MODEL_MACHINE_FINALIZER     "finalizer.machine.trusted-execution-clusters.io"
#define MODEL_KEY_SHA256_ANNOTATION "trusted-execution-clusters.io/luks-key-sha256"
/* Marks (mark.h). luks-key-sha256: the announced disk keys; the single valid one when one of the
 * next two marks is present. delivered-at ends in " revoked" when all of Trustee confirmed the
 * revocation. */
#define MODEL_BOUND_AT_ANNOTATION "trusted-execution-clusters.io/bound-at" /* RFC 3339 time */
#define MODEL_BOUND_KEY_ANNOTATION                                                                 \
	"trusted-execution-clusters.io/bound-key" /* "uid spki-sha256"                             \
						   */
#define MODEL_DELIVERED_AT_ANNOTATION                                                              \
	"trusted-execution-clusters.io/delivered-at" /* RFC 3339, then " revoked" */
#define MODEL_LAST_ATTESTED_ANNOTATION                                                             \
	"trusted-execution-clusters.io/last-attested" /* RFC 3339 time, by the embedded broker */
/* Mark on Machines and AttestationKeys: the operator that is followed does not list the object any
 * more. Counts only while following: nothing of the object is delivered. */
#define MODEL_WITHHELD_ANNOTATION   "trusted-execution-clusters.io/withheld"
#define MODEL_CREATED_BY_ANNOTATION "trusted-execution-clusters.io/created-by"
#define MODEL_CREATED_BY_LISTENER   "listener"

#define MODEL_DELIVERED_REVOKED " revoked"

enum model_machine_cond {
	MACHINE_KEY_READY,
	MACHINE_AK_BOUND,
	MACHINE_DELIVERED,
	MACHINE_READY,
	MACHINE_N_CONDS
};
extern const char *const model_machine_cond_types[MACHINE_N_CONDS]; /* KeyReady AttestationKeyBound
								       Delivered Ready */
enum model_machine_reason {
	MACHINE_KEY_MADE,
	MACHINE_KEY_LOST,
	MACHINE_KEY_MALFORMED,
	MACHINE_CONFLICT,
	MACHINE_DUPLICATE_ID,
	MACHINE_INVALID_ID,
	MACHINE_KEY_PENDING,
	MACHINE_BOUND,
	MACHINE_NO_KEY_APPROVED,
	MACHINE_DELIVERED_OK,
	MACHINE_NOT_AVAILABLE,
	MACHINE_REVOKING,
	MACHINE_WAITING,
	MACHINE_ALL_READY,
	MACHINE_NOT_READY,
	MACHINE_N_REASONS,
};
const char *model_machine_reason(enum model_machine_reason r);

struct model_machine {
	struct kobj obj;
	const char *id; /* spec.id; any text that passed the API server */
	bool id_valid;
	bool has_finalizer;
	bool by_listener;
	bool withheld;     /* mark */
	int64_t deleted_s; /* deletionTimestamp; 0: not being deleted */
	/* From marks with this object's uid; NULL: absent. */
	const char *announced; /* hashes of disk keys, model_mark_announces() */
	const char *bound_at;  /* when a key was first bound to it */
	/* uid of the AttestationKey; SHA-256 of its SPKI, a reference (base/intern.h) */
	const char *bound_key, *bound_spki;
	const char *delivered_at; /* set: the disk key may have been delivered */
	bool recalled;            /* ... and was revoked everywhere */
	int64_t attested_s; /* when its disk key was last given to a node, to a day; 0: unknown */
	/* Written by version 0.1.0, a hash without a uid: proves nothing. */
	const char *old_key_sha256;
	const char *finalizers; /* JSON array of finalizers other than ours; NULL: none */
	const char *owner_uid;  /* controller, a reference: the same for most; NULL: none */
	unsigned n_owners;
	struct kobj_cond cond[MACHINE_N_CONDS];
};

struct kobj *model_machine_extract(struct json_object *o, struct err *err);
const char *model_machine_index(const struct kobj *o, unsigned i);
static inline const struct model_machine *model_machine(const struct kobj *o)
{
	return (const struct model_machine *)o;
}
/* The disk key may have left this operator: it is never generated again, and no other key is
 * accepted. */
static inline bool model_machine_delivered(const struct model_machine *m)
{
	return m->bound_at || m->delivered_at;
}
char *model_machine_name(const char *uuid); /* name for a listener's Machine; the caller frees it */
/* The object that a listener creates; the caller releases it. owner_uid NULL: no owner. held: with
 * our finalizer from the start, so that the object stays until the controller has seen its
 * deletion. */
struct json_object *model_machine_new_json(
	const char *uuid, const char *cluster_name, const char *cluster_uid, bool held);

#endif
