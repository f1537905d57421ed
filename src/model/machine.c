/* SPDX-License-Identifier: MIT */
/*
 * Machine as a compact struct. An id that is not a lower-case UUID is kept and marked: the API
 * server may have accepted it (the Rust operator's CRD has no pattern), and the controller must
 * report it.
 */
#include "config.h"

#include "tec/model/machine.h"

#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/intern.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/uuid.h"
#include "tec/kobj/gvk.h"
#include "tec/kobj/owner.h"
#include "tec/model/mark.h"
#include "tec/model/plain.h"

#define AT(m) offsetof(struct model_machine, m)

const char *const model_machine_cond_types[MACHINE_N_CONDS] = {
	[MACHINE_KEY_READY] = "KeyReady",
	[MACHINE_AK_BOUND] = "AttestationKeyBound",
	[MACHINE_DELIVERED] = "Delivered",
	[MACHINE_READY] = "Ready",
};

/* Reasons are part of the API: clients and tecctl match them. */
const char *model_machine_reason(enum model_machine_reason r)
{
	static const char *const names[MACHINE_N_REASONS] = {
		[MACHINE_KEY_MADE] = "KeyMade",
		[MACHINE_KEY_LOST] = "KeyLost",
		[MACHINE_KEY_MALFORMED] = "KeyMalformed",
		[MACHINE_CONFLICT] = "Conflict",
		[MACHINE_DUPLICATE_ID] = "DuplicateID",
		[MACHINE_INVALID_ID] = "InvalidID",
		[MACHINE_KEY_PENDING] = "KeyPending",
		[MACHINE_BOUND] = "Bound",
		[MACHINE_NO_KEY_APPROVED] = "NoApprovedKey",
		[MACHINE_DELIVERED_OK] = "Delivered",
		[MACHINE_NOT_AVAILABLE] = "NotAvailable",
		[MACHINE_REVOKING] = "Revoking",
		[MACHINE_WAITING] = "Waiting",
		[MACHINE_ALL_READY] = "AllReady",
		[MACHINE_NOT_READY] = "NotReady",
	};

	return names[r];
}

/* A hash announces itself only when it has exactly the form of one hash. */
static bool is_hash(const char *s)
{
	return s && model_mark_announces(s, s);
}

static void pack_part(struct kobj_pack *pack, size_t field, const char *text, size_t len)
{
	cleanup_free char *part = text ? xstrndup(text, len) : NULL;

	kobj_pack_str(pack, field, part);
}

/* Only marks with this object's uid count (mark.h). bound-key and delivered-at consist of two
 * parts, which are stored separately. */
static void pack_marks(struct kobj_pack *pack, struct json_object *o, struct model_machine *m)
{
	const char *key = model_mark(o, MODEL_BOUND_KEY_ANNOTATION);
	const char *sent = model_mark(o, MODEL_DELIVERED_AT_ANNOTATION);
	const char *old = kobj_annotation(o, MODEL_KEY_SHA256_ANNOTATION);
	const char *spki = key ? strchr(key, ' ') : NULL;

	m->recalled = sent && str_ends(sent, MODEL_DELIVERED_REVOKED);
	kobj_pack_str(pack, AT(announced), model_mark(o, MODEL_KEY_SHA256_ANNOTATION));
	kobj_pack_str(pack, AT(bound_at), model_mark(o, MODEL_BOUND_AT_ANNOTATION));
	if (spki && is_hash(spki + 1)) {
		pack_part(pack, AT(bound_key), key, (size_t)(spki - key));
		m->bound_spki = intern_ref(spki + 1);
	}
	pack_part(pack, AT(delivered_at), sent,
		sent ? strlen(sent) - (m->recalled ? strlen(MODEL_DELIVERED_REVOKED) : 0) : 0);
	kobj_pack_str(pack, AT(old_key_sha256), is_hash(old) ? old : NULL);
}

/* The fini of struct kobj. */
static void release(struct kobj *o)
{
	intern_unref(model_machine(o)->bound_spki);
	intern_unref(model_machine(o)->owner_uid);
}

/* Parse a time; 0 when it is absent or not RFC 3339. */
static int64_t seconds_of(const char *time)
{
	int64_t us;

	return time && clock_parse(time, &us) == 0 ? us / 1000000 : 0;
}

/* Only a missing spec.id is refused. Conditions are read to compare them with what would be
 * written. */
struct kobj *model_machine_extract(struct json_object *o, struct err *err)
{
	cleanup_kobj_pack struct kobj_pack pack = KOBJ_PACK_INIT;
	struct model_machine m = {0};
	const char *id;

	if (kobj_meta_read(&pack, o, &m.obj, err) < 0 || !(id = model_plain_needed(o, "id", err)))
		return NULL;
	m.id_valid = uuid_valid(id, strlen(id));
	m.has_finalizer = kobj_has_finalizer(o, MODEL_MACHINE_FINALIZER);
	m.by_listener =
		str_eq(kobj_annotation(o, MODEL_CREATED_BY_ANNOTATION), MODEL_CREATED_BY_LISTENER);
	m.deleted_s = seconds_of(json_get_str(o, "metadata/deletionTimestamp"));
	m.attested_s = seconds_of(model_mark(o, MODEL_LAST_ATTESTED_ANNOTATION));
	m.withheld = model_mark(o, MODEL_WITHHELD_ANNOTATION) != NULL;
	m.n_owners = (unsigned)kobj_owner_count(o);
	kobj_pack_str(&pack, AT(id), id);
	pack_marks(&pack, o, &m);
	kobj_pack_other_finalizers(&pack, AT(finalizers), o, MODEL_MACHINE_FINALIZER);
	m.owner_uid = intern_ref(kobj_owner_controller(o));
	kobj_cond_read(&pack, o, model_machine_cond_types, MACHINE_N_CONDS, m.cond, AT(cond));
	m.obj.fini = release;
	return kobj_pack_finish(&pack, &m, sizeof(m));
}

/* Invalid ids are indexed as well, so that Machines with equal ones find each other. */
const char *model_machine_index(const struct kobj *o, unsigned i)
{
	return i == 0 ? model_machine(o)->id : NULL;
}

char *model_machine_name(const char *uuid)
{
	return xasprintf("machine-%s", uuid);
}

/* The name contains the uuid, so the API server refuses a second Machine for the same uuid. */
struct json_object *model_machine_new_json(
	const char *uuid, const char *cluster_name, const char *cluster_uid, bool held)
{
	cleanup_free char *name = model_machine_name(uuid);
	struct json_object *meta, *o = kobj_new(&kobj_machine, name, &meta);

	json_add(meta, "annotations",
		json_add_str(json_obj(), MODEL_CREATED_BY_ANNOTATION, MODEL_CREATED_BY_LISTENER));
	if (held)
		json_add(meta, "finalizers", kobj_finalizers(NULL, MODEL_MACHINE_FINALIZER));
	if (cluster_uid)
		kobj_owner_add(meta, &kobj_cluster, cluster_name, cluster_uid);
	return json_add(o, "spec", json_add_str(json_obj(), "id", uuid));
}
