/* SPDX-License-Identifier: MIT */
/*
 * AttestationKey: the acts. Binding is one merge patch of the Machine with the resourceVersion
 * that was decided on, so that only one of two keys wins. A second patch sets owner and marks of
 * the key and removes the administrator's annotation. Secrets are created, get and lose a
 * finalizer, and are deleted; their data is never written.
 */
#include "config.h"

#include "ak_internal.h"

#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/model/mark.h"

/* Called by kbs_sync when the value is sent. The value binds the public key to the UUID of its
 * Machine. */
static struct secret *render_identity(const struct kobj *declared)
{
	const struct model_ak *ak = model_ak(declared);
	cleanup_strbuf struct strbuf value = STRBUF_INIT;

	if (!ak->der)
		return NULL;
	rats_identity_value(ak->der, ak->der_len, ak->uuid, &value);
	return secret_new_copy(strbuf_str(&value), value.len);
}

/* An identity may have several keys under one name, so it is declared for this object. */
static void declare(struct ctl_kind *k, const struct ctl_look *look)
{
	const struct ak_look *l = (const struct ak_look *)look;
	struct log_ctx lc = {"AttestationKey", k->env->ns, look->o->name, look->o->uid};

	/* Places in the list of a name go to the oldest Machines: an attacker can only add
	 * new ones. */
	if (kbs_sync_declare_in(k->state->sync, KBS_REFVALUE, l->identity, &l->ak->obj,
		    l->machine->obj.created_s, render_identity))
		log_debug(&lc, "identity declared", "machine=%s", log_esc(l->ak->uuid));
}

/* Withdraw the identity of this key, or of the stale Secret that is left of a deleted one. */
static void revoke(struct ctl_kind *k, const struct ctl_look *look)
{
	const struct ak_look *l = (const struct ak_look *)look;
	const struct kobj *o = l->ak ? &l->ak->obj : &l->secret->obj;
	struct log_ctx lc = {"AttestationKey", k->env->ns, o->name, o->uid};

	if (kbs_sync_withdraw(k->state->sync, KBS_REFVALUE, l->identity, o->name))
		log_info(&lc, "identity is being revoked", NULL);
}

/* A restored backup of a Trustee would hold the identity again. */
static void record(struct ctl_kind *k, const struct ctl_look *look)
{
	const struct ak_look *l = (const struct ak_look *)look;

	ctl_record_add(k->env->record, MODEL_RECORD_VALUE, l->identity, clock_wall_s(), k->runner,
		l->secret->obj.name);
}

/* ---- how acts end */

/* Post an Event for each condition that changed, except for routine reasons. */
void ak_act_tell(struct ctl_kind *k, struct ctl_act *a, const struct kobj *o)
{
	for (int i = 0; i < AK_N_CONDS; i++) {
		const struct kobj_cond_want *w = &a->want[i];
		bool good = w->status == KOBJ_COND_TRUE;
		/* Conditions tell what happens to every key; Events are for what an administrator
		 * has to know or do. */
		bool routine = str_eq(w->reason, model_ak_reason(AK_REGISTRATION)) ||
			       str_eq(w->reason, model_ak_reason(AK_MACHINE_CREATED)) ||
			       str_eq(w->reason, model_ak_reason(AK_NOT_APPROVED)) ||
			       str_eq(w->reason, model_ak_reason(AK_NOT_AVAILABLE)) ||
			       str_eq(w->reason, model_ak_reason(AK_DELIVERED_OK));

		if (!(a->event_mask & 1u << i) || routine)
			continue;
		k8s_events_post(k->env->events, &kobj_ak, o,
			good ? K8S_EVENT_NORMAL : K8S_EVENT_WARNING, w->reason,
			i == AK_APPROVED ? "Approve" : "Deliver", "%s", w->message);
	}
}

/* Put the Secret of an answer into the cache, and remember its finalizers for the next patch. */
static void take_secret(struct ctl_kind *k, struct ctl_act *a, const struct k8s_result *r)
{
	struct json_object *o = r->object;

	if (r->cached) { /* of a create: without finalizers, which it made itself */
		a->must_read = false;
		return;
	}
	if (a->doing == CTL_AK_DELETE_SECRET && !json_get(o, "metadata/deletionTimestamp"))
		return; /* the answer is a Status: the Secret is gone */
	a->must_read = false;
	ctl_live_set(&a->secret, o);
	ctl_take_answer(k->state->secrets, o,
		a->doing == CTL_AK_READ_SECRET || a->doing == CTL_AK_CREATE_SECRET);
}

/* Take the answer of a request about another object than the key itself. */
bool ak_act_ended(
	struct ctl_kind *k, struct ctl_act *a, const struct err *err, const struct k8s_result *r)
{
	bool gone = err->kind == ERR_NOT_FOUND, good = !err_is_set(err);
	const struct kobj *o;

	switch ((enum ctl_ak_do)a->doing) {
	case CTL_AK_IGNORE:
		o = good ? k8s_cache_find(k->state->aks, a->name) : NULL;
		if (o)
			k8s_events_post(k->env->events, &kobj_ak, o, K8S_EVENT_WARNING,
				"ApprovalIgnored", "Approve", AK_APPROVAL_IGNORED ".", a->name,
				k->env->ns);
		return false;
	case CTL_AK_BIND:
		if (good && !r->cached)
			ctl_take_answer(k->state->machines, r->object, false);
		return false;
	case CTL_AK_READ_SECRET:
		a->must_read &= !gone;
		break;
	case CTL_AK_CREATE_SECRET:
		/* An existing Secret is not a failure: it has to be read. */
		a->must_read = !good && r && r->already_exists;
		break;
	case CTL_AK_ADD_SECRET_FINALIZER:
	case CTL_AK_DELETE_SECRET:
	case CTL_AK_DROP_SECRET_FINALIZER:
		break;
	default:
		return false;
	}
	if (good)
		take_secret(k, a, r);
	return a->doing == CTL_AK_CREATE_SECRET && a->must_read;
}

/* ---- how they start */

/* Return a time later than every other approval of this Machine, even if the wall clock went
 * back: the latest approval is the one that counts. */
static int64_t next_approval_us(const struct state *s, const struct ak_look *l)
{
	int64_t at = clock_wall_us();

	for (const struct kobj *o = k8s_cache_first(s->aks, 2, l->machine->obj.uid); o;
		o = k8s_cache_next(s->aks, 2, o)) {
		if (o != &l->ak->obj && model_ak(o)->approved_at &&
			model_ak_approved_us(model_ak(o)) >= at)
			at = model_ak_approved_us(model_ak(o)) + 1;
	}
	return at;
}

/*
 * Bind the Machine to this key: from now on its disk key is delivered to the node that has this
 * AttestationKey. The first binding also fixes the hash of the disk key.
 */
static struct op *bind(struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *look, int d)
{
	const struct ak_look *l = (const struct ak_look *)look;
	const struct model_machine *m = l->machine;
	const struct model_secret *s = state_secret(k->state, m->id);
	struct json_object *meta, *marks = json_obj();
	cleanup_json struct json_object *patch = ctl_patch_of(&m->obj, &meta);
	cleanup_free char *key = xasprintf("%s %s", l->ak->obj.uid, l->ak->spki_sha256);
	char now[CLOCK_RFC3339_LEN], hex[SHA256_HEX_LEN + 1];
	struct op *op;

	clock_format(clock_wall_s(), now);
	ctl_add_mark(marks, &m->obj, MODEL_BOUND_KEY_ANNOTATION, key);
	if (!m->bound_at)
		ctl_add_mark(marks, &m->obj, MODEL_BOUND_AT_ANNOTATION, now);
	if (!model_machine_delivered(m) && state_machine_announces(m, s))
		ctl_add_mark(marks, &m->obj, MODEL_KEY_SHA256_ANNOTATION,
			model_secret_key_sha256(s, hex));
	json_add(meta, "annotations", marks);
	op = ctl_kind_patch(k, a, &kobj_machine, m->obj.name, patch);
	k8s_call_unless_cached(op, k->state->machines);
	return op;
}

/* Owner, time and origin of the approval. The owner makes the garbage collector delete the key
 * with its Machine. */
static void add_approval(const struct state *s, const struct ak_look *l, struct json_object *meta,
	struct json_object *marks)
{
	const struct model_ak *ak = l->ak;
	bool by_admin = l->v.annotated || ak->approved_by_admin;
	char at[CLOCK_RFC3339_US_LEN];

	clock_format_us(next_approval_us(s, l), at);
	if (!ak->approved_at || l->v.annotated)
		ctl_add_mark(marks, &ak->obj, MODEL_APPROVED_AT_ANNOTATION, at);
	ctl_add_mark(
		marks, &ak->obj, MODEL_APPROVED_BY_ANNOTATION, by_admin ? "admin" : "operator");
	json_add(marks, MODEL_APPROVED_SPKI_ANNOTATION, NULL);
	json_add(marks, MODEL_APPROVAL_IGNORED_ANNOTATION, NULL);
	if (l->v.annotated)
		json_add(marks, MODEL_APPROVED_ANNOTATION, NULL);
	json_add(meta, "ownerReferences",
		json_push(json_arr(),
			kobj_owner_json(&kobj_machine, l->machine->obj.name, l->machine->obj.uid)));
}

/* Patch the key: approve it, withdraw the approval, or remove an annotation that does not count.
 * In a merge patch, null removes a member. */
static struct op *patch_ak(
	struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *look, int d)
{
	const struct ak_look *l = (const struct ak_look *)look;
	struct json_object *meta, *marks = json_obj();
	cleanup_json struct json_object *patch = ctl_patch_of(look->o, &meta);
	char now[CLOCK_RFC3339_LEN];

	if (d == CTL_AK_APPROVE) {
		add_approval(k->state, l, meta, marks);
	} else if (d == CTL_AK_UNAPPROVE) {
		json_add(marks, MODEL_APPROVED_AT_ANNOTATION, NULL);
		json_add(marks, MODEL_APPROVED_BY_ANNOTATION, NULL);
		json_add(marks, MODEL_APPROVED_SPKI_ANNOTATION, NULL);
		json_add(meta, "ownerReferences", json_arr());
	} else {
		clock_format(clock_wall_s(), now);
		json_add(marks, MODEL_APPROVED_ANNOTATION, NULL);
		ctl_add_mark(marks, look->o, MODEL_APPROVAL_IGNORED_ANNOTATION, now);
	}
	json_add(meta, "annotations", marks);
	return ctl_kind_patch(k, a, &kobj_ak, a->name, patch);
}

static struct op *read_secret(
	struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *l, int d)
{
	return ctl_kind_get(k, a, &kobj_secret, a->name);
}

/* Finalizers are one list, which a merge patch replaces: hence the resourceVersion and a live
 * copy. */
static struct op *patch_secret(
	struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *l, int d)
{
	struct json_object *meta;
	cleanup_json struct json_object *patch =
		ctl_patch_new(((const struct ak_look *)l)->secret->obj.rv, &meta);

	json_add(meta, "finalizers",
		ctl_live_finalizers(
			&a->secret, MODEL_AK_SECRET_FINALIZER, d == CTL_AK_ADD_SECRET_FINALIZER));
	return ctl_kind_patch(k, a, &kobj_secret, a->name, patch);
}

/* The Secret is rendered with its finalizer, so there is no moment in which Trustee could have
 * the key and nothing would remember it. ctl/follow uses this, too. */
struct op *ctl_ak_start_secret(
	struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *l, int d)
{
	cleanup_strbuf struct strbuf key = STRBUF_INIT;
	cleanup_json struct json_object *o = NULL;
	struct op *op;

	model_ak_public_key(model_ak(l->o), &key);
	o = model_ak_secret_json(a->name, l->o->uid, strbuf_str(&key));
	op = k8s_call_create(
		k->env->api, &k->acts.ops, &kobj_secret, k->env->ns, o, 0, ctl_kind_done, a);

	k8s_call_unless_cached(op, k->state->secrets);
	return op;
}

static struct op *delete_secret(
	struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *l, int d)
{
	return ctl_kind_delete(k, a, &kobj_secret, &((const struct ak_look *)l)->secret->obj);
}

/* Two exceptions to the common status: the resourceVersion of the first one, and one extra
 * Event. */
static struct op *apply_status(
	struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *l, int d)
{
	const struct kobj_cond *have = &l->have[AK_APPROVED];
	const struct kobj_cond_want *want = &l->want[AK_APPROVED];
	/* Once the condition exists, an annotation counts as an administrator's: so the first one is
	 * written only to the version that was looked at, which has none. */
	const char *rv = have->status == KOBJ_COND_ABSENT ? l->o->rv : NULL;
	/* Another bound key deserves an Event, although the reason is the same. */
	bool other_key = str_eq(want->reason, model_ak_reason(AK_MACHINE_HAS_KEY)) &&
			 have->message_hash != kobj_message_hash(want->message);

	return ctl_kind_apply_status(k, a, l, rv, other_key ? 1u << AK_APPROVED : 0);
}

const struct ctl_do ak_acts[CTL_AK_N_DO] = {
	[CTL_AK_CONFIRM] = {"read the AttestationKey", .flags = CTL_DO_ANSWERS_SELF | CTL_DO_FROZEN,
		.start = ctl_kind_start_confirm},
	[CTL_AK_IGNORE] = {"remove an approval that was set at creation",
		"approval ignored, it was set when the key was created",
		CTL_DO_ANSWERS_SELF | CTL_DO_WARNS, .start = patch_ak},
	[CTL_AK_BIND] = {"bind the Machine", "Machine bound to this key", .start = bind},
	[CTL_AK_APPROVE] = {"approve", "attestation key approved", CTL_DO_ANSWERS_SELF,
		.start = patch_ak},
	[CTL_AK_UNAPPROVE] = {"withdraw the approval",
		"attestation key no longer approved, another key replaced it", CTL_DO_ANSWERS_SELF,
		.start = patch_ak},
	[CTL_AK_READ_SECRET] = {"read the Secret",
		.flags = CTL_DO_GONE_IS_FINE | CTL_DO_FROZEN | CTL_DO_FOLLOWING | CTL_DO_RETIRED,
		.start = read_secret},
	[CTL_AK_CREATE_SECRET] = {"create the Secret", .start = ctl_ak_start_secret},
	[CTL_AK_ADD_SECRET_FINALIZER] = {"add the Secret's finalizer", .start = patch_secret},
	[CTL_AK_DECLARE] = {"declare the identity", .flags = CTL_DO_FROZEN | CTL_DO_FOLLOWING,
		.memory = declare},
	[CTL_AK_REVOKE] = {"revoke the identity", .flags = CTL_DO_RETIRED, .memory = revoke},
	[CTL_AK_RECORD] = {"record the revocation", .memory = record},
	[CTL_AK_DELETE_SECRET] = {"delete the Secret", .flags = CTL_DO_GONE_IS_FINE,
		.start = delete_secret},
	[CTL_AK_DROP_SECRET_FINALIZER] = {"remove the Secret's finalizer",
		"attestation key released, no Trustee holds it",
		CTL_DO_GONE_IS_FINE | CTL_DO_RETIRED, .start = patch_secret},
	[CTL_AK_EXPIRE] = {"delete the unapproved key",
		"attestation key deleted, it was not approved in time", CTL_DO_GONE_IS_FINE,
		.start = ctl_kind_start_expire},
	[CTL_AK_APPLY_STATUS] = {"write the status",
		.flags = CTL_DO_ANSWERS_SELF | CTL_DO_FROZEN | CTL_DO_RETIRED,
		.start = apply_status},
};
