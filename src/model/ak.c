/* SPDX-License-Identifier: MIT */
/*
 * AttestationKey as a compact struct. The key is parsed here, once: a reader that sees spki_sha256
 * knows that the key is usable. Of a PEM in the form that all our writers use, only the DER is
 * kept, which is two thirds of its size; of any other spelling, the text is kept as well. The DER
 * and its hash are shared with the same key of a followed operator and with the Machine. A publicKey that is not a usable key is legal (keys created through the API are matched by uuid
 * alone) and is kept as stored.
 */
#include "config.h"

#include "tec/model/ak.h"

#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/intern.h"
#include "tec/base/json.h"
#include "tec/kobj/gvk.h"
#include "tec/kobj/owner.h"
#include "tec/model/machine.h"
#include "tec/model/mark.h"
#include "tec/model/plain.h"
#include "tec/pki/spki.h"

#define AT(m) offsetof(struct model_ak, m)

const char *const model_ak_cond_types[AK_N_CONDS] = {
	[AK_APPROVED] = "Approved",
	[AK_DELIVERED] = "Delivered",
};

/* Reasons are part of the API: clients and tecctl match them. */
const char *model_ak_reason(enum model_ak_reason r)
{
	static const char *const names[AK_N_REASONS] = {
		[AK_MACHINE_CREATED] = "MachineCreated",
		[AK_APPROVED_MANUALLY] = "ApprovedManually",
		[AK_REGISTRATION] = "Registration",
		[AK_MACHINE_HAS_KEY] = "MachineHasKey",
		[AK_MANUAL_APPROVAL] = "ManualApproval",
		[AK_ENDORSEMENT_FAILED] = "EndorsementFailed",
		[AK_DELIVERED_OK] = "Delivered",
		[AK_NOT_APPROVED] = "NotApproved",
		[AK_NOT_AVAILABLE] = "NotAvailable",
		[AK_INVALID_KEY] = "InvalidKey",
		[AK_CONFLICT] = "Conflict",
		[AK_TOO_MANY_KEYS] = "TooManyKeys",
	};

	return names[r];
}

/* Keep the DER of a usable key, and the text unless it can be rebuilt from the DER. */
static void pack_key(struct kobj_pack *pack, const char *text, struct model_ak *a)
{
	struct err ignored = ERR_INIT;
	cleanup_strbuf struct strbuf pem = STRBUF_INIT;
	char hex[SHA256_HEX_LEN + 1];
	struct pki_spki spki;

	a->public_hash = str_hash(text, strlen(text));
	if (pki_spki_parse_pem(text, strlen(text), &spki, &ignored) == 0) {
		a->der_len = (uint16_t)spki.der_len;
		a->der = intern_ref_bytes(spki.der, spki.der_len);
		bytes_to_hex(spki.sha256, SHA256_LEN, hex);
		a->spki_sha256 = intern_ref(hex);
		pki_spki_to_pem(&spki, &pem);
	}
	if (!str_eq(pem.data, text))
		kobj_pack_str(pack, AT(text), text);
}

/* The fini of struct kobj. */
static void release(struct kobj *o)
{
	intern_unref(model_ak(o)->der);
	intern_unref(model_ak(o)->spki_sha256);
}

/* Only a missing publicKey is refused: an unusable one is a fact that the controller reports. Marks
 * count only with this object's uid; approved is a plain annotation, written by people. */
struct kobj *model_ak_extract(struct json_object *o, struct err *err)
{
	cleanup_kobj_pack struct kobj_pack pack = KOBJ_PACK_INIT;
	struct model_ak a = {0};
	const char *key;

	if (kobj_meta_read(&pack, o, &a.obj, err) < 0 ||
		!(key = model_plain_needed(o, "publicKey", err)))
		return NULL;
	a.by_listener =
		str_eq(kobj_annotation(o, MODEL_CREATED_BY_ANNOTATION), MODEL_CREATED_BY_LISTENER);
	a.n_owners = (unsigned)kobj_owner_count(o);
	kobj_pack_str(&pack, AT(uuid), model_plain_text(o, "spec/uuid"));
	kobj_pack_str(&pack, AT(machine_seen), kobj_annotation(o, MODEL_MACHINE_SEEN_ANNOTATION));
	kobj_pack_str(&pack, AT(owner_uid), kobj_owner_controller(o));
	pack_key(&pack, key, &a);
	a.approve_wanted = str_eq(kobj_annotation(o, MODEL_APPROVED_ANNOTATION), "true");
	a.approval_ignored = model_mark(o, MODEL_APPROVAL_IGNORED_ANNOTATION) != NULL;
	a.approved_by_admin = str_eq(model_mark(o, MODEL_APPROVED_BY_ANNOTATION), "admin");
	a.withheld = model_mark(o, MODEL_WITHHELD_ANNOTATION) != NULL;
	kobj_pack_str(&pack, AT(approved_at), model_mark(o, MODEL_APPROVED_AT_ANNOTATION));
	kobj_cond_read(&pack, o, model_ak_cond_types, AK_N_CONDS, a.cond, AT(cond));
	a.obj.fini = release;
	return kobj_pack_finish(&pack, &a, sizeof(a));
}

/* NULL keeps a key out of an index: without a uuid, not usable, or not owned. */
const char *model_ak_index(const struct kobj *o, unsigned i)
{
	const struct model_ak *a = model_ak(o);
	const char *const values[] = {a->uuid, a->spki_sha256, a->owner_uid};

	return i < ARRAY_LEN(values) ? values[i] : NULL;
}

void model_ak_name(
	const uint8_t sha256[32], enum model_ak_name_kind kind, char out[MODEL_AK_NAME_LEN + 1])
{
	static const char *const ends[] = {[MODEL_AK_NAME] = "",
		[MODEL_AK_NAME_ANY] = "-any",
		[MODEL_AK_NAME_SPARE] = "-uuid"};

	memcpy(out, "ak-", 3);
	bytes_to_hex(sha256, 16, out + 3);
	memcpy(out + 35, ends[kind], strlen(ends[kind]) + 1);
}

/* Without the annotation (listeners of 0.1.0) the creation times decide. They have a resolution of
 * one second, so equal times do not suffice. */
bool model_ak_saw(const struct model_ak *a, const struct kobj *machine)
{
	if (a->machine_seen)
		return str_eq(a->machine_seen, machine->uid);
	return machine->created_s < a->obj.created_s;
}

void model_ak_note_seen(struct json_object *ak, const char *machine_seen)
{
	json_add_str(json_get_obj(ak, "metadata/annotations"), MODEL_MACHINE_SEEN_ANNOTATION,
		machine_seen);
}

/* The annotation created-by makes the key subject to the rules for keys from listeners: pending
 * limits and automatic approval. */
struct json_object *model_ak_new_json(const char *name, const char *pem, const char *uuid)
{
	struct json_object *meta, *o = kobj_new(&kobj_ak, name, &meta);

	json_add(meta, "annotations",
		json_add_str(json_obj(), MODEL_CREATED_BY_ANNOTATION, MODEL_CREATED_BY_LISTENER));
	return json_add(
		o, "spec", json_add_str(json_add_str(json_obj(), "publicKey", pem), "uuid", uuid));
}

/* An unreadable time counts as the oldest approval. */
int64_t model_ak_approved_us(const struct model_ak *ak)
{
	int64_t us;

	if (!ak->approved_at)
		return ak->obj.created_s * 1000000;
	return clock_parse(ak->approved_at, &us) == 0 ? us : 0;
}

/* A second owner would keep the key when the Machine is deleted, so such a key is not the
 * Machine's. */
bool model_ak_is_of(const struct model_ak *ak, const char *machine_uid)
{
	return ak->n_owners == 1 && str_eq(ak->owner_uid, machine_uid);
}

/* The condition alone is the trace of an operator without marks. */
bool model_ak_was_approved(const struct model_ak *ak)
{
	return ak->approved_at || ak->cond[AK_APPROVED].status == KOBJ_COND_TRUE;
}

/* Without a text, the PEM was in canonical form, so the DER gives exactly spec.publicKey again. */
void model_ak_public_key(const struct model_ak *ak, struct strbuf *out)
{
	struct pki_spki spki;

	if (ak->text) {
		strbuf_adds(out, ak->text);
		return;
	}
	memcpy(spki.der, ak->der, ak->der_len);
	spki.der_len = ak->der_len;
	pki_spki_to_pem(&spki, out);
}

bool model_ak_identity(const struct model_ak *ak, char out[RATS_IDENTITY_NAME_LEN + 1])
{
	return ak->der && rats_identity_name(ak->der, ak->der_len, out) == 0;
}
