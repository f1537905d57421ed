/* SPDX-License-Identifier: MIT */
/*
 * AttestationKey: the acts. Binding is one merge patch of the Machine under the resourceVersion
 * that was decided on, so that of two keys only one gets it; owner and marks of the key, and the
 * administrator's annotation consumed, are a second one. Secrets are created and deleted, and their
 * finalizer taken off; their data is never written.
 */
#include "config.h"

#include "ak_internal.h"

#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/model/mark.h"

/*
 * The DER of a key that was parsed when it was taken into the cache: the base64 lines of its PEM,
 * checked against the hash, so that the PEM parser need not run again. NULL: not so.
 */
static uint8_t *known_der(const struct model_ak *ak, size_t *len)
{
	static const char begin[] = "-----BEGIN PUBLIC KEY-----";
	const char *p = strstr(ak->public_key, begin), *end = p ? strstr(p, "-----END") : NULL;
	cleanup_strbuf struct strbuf b64 = STRBUF_INIT;
	cleanup_free uint8_t *der = NULL;
	uint8_t digest[SHA256_LEN];
	char hex[SHA256_HEX_LEN + 1];

	if (!end)
		return NULL;
	for (p += strlen(begin); p < end; p++)
		if (*p != '\n' && *p != '\r' && *p != ' ' && *p != '\t')
			strbuf_addc(&b64, *p);
	if (bytes_from_b64(strbuf_str(&b64), b64.len, &der, len) < 0)
		return NULL;
	bytes_sha256(der, *len, digest);
	bytes_to_hex(digest, SHA256_LEN, hex);
	return str_eq(hex, ak->spki_sha256) ? steal_ptr(&der) : NULL;
}

static struct secret *render_identity(const struct kobj *holder)
{
	const struct model_ak *ak = model_ak(holder);
	cleanup_strbuf struct strbuf value = STRBUF_INIT;
	size_t len = 0;
	cleanup_free uint8_t *der = known_der(ak, &len);

	if (!der)
		return NULL;
	rats_identity_value(der, len, ak->uuid, &value);
	return secret_new_copy(strbuf_str(&value), value.len);
}

bool ak_do_memory(struct ctl_ak *c, const struct ak_look *l, enum ctl_ak_do d)
{
	const struct ctl_env *env = c->env;
	struct log_ctx lc = {"AttestationKey", env->ns, NULL, NULL};
	const struct kobj *o = l->ak ? &l->ak->obj : l->secret ? &l->secret->obj : NULL;

	if (o) {
		lc.name = o->name;
		lc.uid = o->uid;
	}
	if (d == CTL_AK_DECLARE) {
		if (l->taken_by) /* approved later than this one: it has to look again */
			ctl_runner_wake(c->runner, l->taken_by->name);
		if (kbs_sync_declare(env->state->sync, KBS_REFVALUE, l->identity, &l->ak->obj,
			    render_identity))
			log_debug(&lc, "identity declared", "machine=%s", log_esc(l->ak->uuid));
		return true;
	}
	if (d == CTL_AK_REVOKE) {
		if (kbs_sync_revoke(env->state->sync, KBS_REFVALUE, l->identity))
			log_info(&lc, "identity is being revoked", NULL);
		return true;
	}
	return false;
}

/* ---- how acts end */

static void post_events(struct ctl_ak *c, struct ctl_act *a, const struct kobj *o)
{
	for (int i = 0; i < AK_N_CONDS; i++) {
		const struct kobj_cond_want *w = &a->want[i];
		bool good = w->status == KOBJ_COND_TRUE;
		/* What happens to every key is in its conditions; an Event is for what somebody has
		 * to know or do. */
		bool routine = str_eq(w->reason, model_ak_reason(AK_REGISTRATION)) ||
			       str_eq(w->reason, model_ak_reason(AK_MACHINE_CREATED)) ||
			       str_eq(w->reason, model_ak_reason(AK_NOT_APPROVED)) ||
			       str_eq(w->reason, model_ak_reason(AK_NOT_AVAILABLE)) ||
			       str_eq(w->reason, model_ak_reason(AK_DELIVERED_OK));

		if (!(a->event_mask & 1u << i) || routine)
			continue;
		k8s_events_post(c->env->events, &kobj_ak, o,
			good ? K8S_EVENT_NORMAL : K8S_EVENT_WARNING, w->reason,
			i == AK_APPROVED ? "Approve" : "Deliver", "%s", w->message);
	}
}

static void log_done(const struct log_ctx *lc, enum ctl_ak_do d)
{
	switch (d) {
	case CTL_AK_BIND:
		log_info(lc, "Machine bound to this key", NULL);
		break;
	case CTL_AK_APPROVE:
		log_info(lc, "attestation key approved", NULL);
		break;
	case CTL_AK_IGNORE:
		log_warn(lc, "approval ignored, it was set when the key was created", NULL);
		break;
	case CTL_AK_UNAPPROVE:
		log_info(
			lc, "attestation key no longer approved, another one took its place", NULL);
		break;
	case CTL_AK_DROP_SECRET_FINALIZER:
		log_info(lc, "attestation key released, Trustee holds nothing of it", NULL);
		break;
	case CTL_AK_EXPIRE:
		log_info(lc, "attestation key deleted, it was not approved in time", NULL);
		break;
	default:
		log_debug(lc, "done", "op=%s", log_esc(ctl_ak_do_name(d)));
	}
}

static void take_result(struct ctl_ak *c, struct ctl_act *a, struct json_object *o)
{
	const struct ctl_env *env = c->env;
	const struct kobj *k;

	switch ((enum ctl_ak_do)a->doing) {
	case CTL_AK_EXPIRE:
		return; /* the answer may be a Status; the watch tells */
	case CTL_AK_BIND:
		ctl_take_answer(env->state->machines, o, false);
		return;
	case CTL_AK_DELETE_SECRET:
		if (!json_get(o, "metadata/deletionTimestamp"))
			return; /* a Status: it is gone */
				/* fall through */
	case CTL_AK_READ_SECRET:
	case CTL_AK_CREATE_SECRET:
	case CTL_AK_ADD_SECRET_FINALIZER:
	case CTL_AK_DROP_SECRET_FINALIZER:
		a->must_read = false;
		ctl_live_set(&a->secret, o);
		ctl_take_answer(env->state->secrets, o,
			a->doing == CTL_AK_READ_SECRET || a->doing == CTL_AK_CREATE_SECRET);
		return;
	default:
		ctl_live_set(&a->self, o);
		ctl_take_answer(env->state->aks, o, false);
	}
	if (a->doing == CTL_AK_IGNORE && (k = k8s_cache_find(env->state->aks, a->name)))
		k8s_events_post(env->events, &kobj_ak, k, K8S_EVENT_WARNING, "ApprovalIgnored",
			"Approve", AK_APPROVAL_IGNORED ".", a->name, env->ns);
	k = k8s_cache_find(env->state->aks, a->name);
	if (a->doing == CTL_AK_APPLY_STATUS && k)
		post_events(c, a, k);
}

/* Answers that look like failures and are none. */
static bool is_fine(struct ctl_act *a, const struct err *err, const struct k8s_result *r)
{
	bool gone = err->kind == ERR_NOT_FOUND;

	switch ((enum ctl_ak_do)a->doing) {
	case CTL_AK_CREATE_SECRET:
		a->must_read = r && r->already_exists;
		return a->must_read;
	case CTL_AK_READ_SECRET:
		a->must_read &= !gone;
		return gone;
	case CTL_AK_EXPIRE:
	case CTL_AK_DELETE_SECRET:
	case CTL_AK_DROP_SECRET_FINALIZER:
		return gone;
	default:
		return false;
	}
}

static void on_done(void *arg, const struct err *err, const struct k8s_result *r)
{
	struct ctl_act *a = arg;
	struct ctl_ak *c = a->table->self;
	struct log_ctx lc = {.kind = "AttestationKey", .ns = c->env->ns, .name = a->name};
	struct err none = ERR_INIT;

	if (!err_is_set(err)) {
		if (a->doing != CTL_AK_APPLY_STATUS)
			log_done(&lc, (enum ctl_ak_do)a->doing);
		take_result(c, a, r->object);
	} else if (is_fine(a, err, r)) {
		err = &none;
	} else {
		struct err told = *err;

		err_wrap(&told, "%s", ctl_ak_do_name((enum ctl_ak_do)a->doing));
		log_err(err->kind == ERR_CONFLICT ? LOG_DEBUG : LOG_WARN, &lc, "act failed", &told);
	}
	free(steal_ptr(&a->want));
	ctl_act_end(a, err);
}

/* ---- how they start */

/* Later than every other approval of this Machine, whatever the wall clock does. */
static int64_t next_approval_us(const struct ctl_ak *c, const struct ak_look *l)
{
	int64_t at = clock_wall_us();

	for (const struct kobj *o = k8s_cache_first(c->env->state->aks, 2, l->machine->obj.uid); o;
		o = k8s_cache_next(c->env->state->aks, 2, o)) {
		if (o != &l->ak->obj && model_ak(o)->approved_at &&
			model_ak_approved_us(model_ak(o)) >= at)
			at = model_ak_approved_us(model_ak(o)) + 1;
	}
	return at;
}

/*
 * Every key delivered later is for the node that has this AttestationKey: the mark of that, and
 * with the first one the disk key's hash is fixed.
 */
static struct op *bind(struct ctl_ak *c, struct ctl_act *a, const struct ak_look *l)
{
	const struct model_machine *m = l->machine;
	const struct model_secret *s = state_secret(c->env->state, m->id);
	struct json_object *meta, *marks = json_obj();
	cleanup_json struct json_object *patch = ctl_patch_of(&m->obj, &meta);
	cleanup_free char *key = xasprintf("%s %s", l->ak->obj.uid, l->ak->spki_sha256);
	char now[CLOCK_RFC3339_LEN];

	clock_format(clock_wall_s(), now);
	ctl_add_mark(marks, &m->obj, MODEL_BOUND_KEY_ANNOTATION, key);
	if (!m->bound_at)
		ctl_add_mark(marks, &m->obj, MODEL_BOUND_AT_ANNOTATION, now);
	if (!model_machine_delivered(m) && state_machine_announces(m, s))
		ctl_add_mark(marks, &m->obj, MODEL_KEY_SHA256_ANNOTATION, s->key_sha256);
	json_add(meta, "annotations", marks);
	return k8s_call_merge_patch(c->env->api, &c->acts.ops, &kobj_machine, c->env->ns,
		m->obj.name, patch, on_done, a);
}

static void add_approval(const struct ctl_ak *c, const struct ak_look *l, struct json_object *meta)
{
	const struct model_ak *ak = l->ak;
	struct json_object *marks = json_obj();
	bool by_admin = l->v.asked || ak->approved_by_admin;
	char at[CLOCK_RFC3339_US_LEN];

	clock_format_us(next_approval_us(c, l), at);
	if (!ak->approved_at || l->v.asked)
		ctl_add_mark(marks, &ak->obj, MODEL_APPROVED_AT_ANNOTATION, at);
	ctl_add_mark(
		marks, &ak->obj, MODEL_APPROVED_BY_ANNOTATION, by_admin ? "admin" : "operator");
	json_add(marks, MODEL_APPROVED_SPKI_ANNOTATION, NULL);
	json_add(marks, MODEL_APPROVAL_IGNORED_ANNOTATION, NULL);
	if (l->v.asked)
		json_add(marks, MODEL_APPROVED_ANNOTATION, NULL); /* null: taken out */
	json_add(meta, "annotations", marks);
	json_add(meta, "ownerReferences",
		json_push(json_arr(),
			kobj_owner_json(&kobj_machine, l->machine->obj.name, l->machine->obj.uid)));
}

/* What is not approved any more: a mark with null is taken out. */
static void add_unapproval(struct json_object *meta)
{
	struct json_object *marks = json_obj();

	json_add(marks, MODEL_APPROVED_AT_ANNOTATION, NULL);
	json_add(marks, MODEL_APPROVED_BY_ANNOTATION, NULL);
	json_add(marks, MODEL_APPROVED_SPKI_ANNOTATION, NULL);
	json_add(meta, "annotations", marks);
	json_add(meta, "ownerReferences", json_arr());
}

static void add_ignored(const struct ak_look *l, struct json_object *meta)
{
	struct json_object *marks = json_obj();
	char now[CLOCK_RFC3339_LEN];

	clock_format(clock_wall_s(), now);
	json_add(marks, MODEL_APPROVED_ANNOTATION, NULL);
	ctl_add_mark(marks, &l->ak->obj, MODEL_APPROVAL_IGNORED_ANNOTATION, now);
	json_add(meta, "annotations", marks);
}

static struct op *patch_ak(
	struct ctl_ak *c, struct ctl_act *a, const struct ak_look *l, enum ctl_ak_do d)
{
	struct json_object *meta;
	cleanup_json struct json_object *patch = ctl_patch_of(&l->ak->obj, &meta);

	if (d == CTL_AK_APPROVE)
		add_approval(c, l, meta);
	else if (d == CTL_AK_UNAPPROVE)
		add_unapproval(meta);
	else
		add_ignored(l, meta);
	return k8s_call_merge_patch(
		c->env->api, &c->acts.ops, &kobj_ak, c->env->ns, a->name, patch, on_done, a);
}

static struct op *patch_secret(
	struct ctl_ak *c, struct ctl_act *a, const struct ak_look *l, bool add)
{
	struct json_object *meta;
	cleanup_json struct json_object *patch = ctl_patch_new(l->secret->obj.rv, &meta);

	json_add(meta, "finalizers",
		ctl_live_finalizers(&a->secret, MODEL_AK_SECRET_FINALIZER, add));
	return k8s_call_merge_patch(
		c->env->api, &c->acts.ops, &kobj_secret, c->env->ns, a->name, patch, on_done, a);
}

static struct op *create_secret(struct ctl_ak *c, struct ctl_act *a, const struct ak_look *l)
{
	cleanup_json struct json_object *o =
		model_ak_secret_json(a->name, l->ak->obj.uid, l->ak->public_key);

	return k8s_call_create(
		c->env->api, &c->acts.ops, &kobj_secret, c->env->ns, o, 0, on_done, a);
}

/* Bound to another key than before is worth an Event although the reason is the same. */
static unsigned other_key(const struct ak_look *l)
{
	const struct kobj_cond_want *w = &l->want[AK_APPROVED];

	return str_eq(w->reason, model_ak_reason(AK_MACHINE_HAS_KEY)) &&
			       l->ak->cond[AK_APPROVED].message_hash !=
				       kobj_message_hash(w->message)
		       ? 1u << AK_APPROVED
		       : 0;
}

static struct op *apply_status(struct ctl_ak *c, struct ctl_act *a, const struct ak_look *l)
{
	cleanup_json struct json_object *o =
		ctl_status_json(&kobj_ak, &l->ak->obj, l->ak->cond, l->want, AK_N_CONDS);

	/* The first condition makes an annotation count: only of a version without one. */
	if (l->ak->cond[AK_APPROVED].status == KOBJ_COND_ABSENT)
		json_add_str(json_get_obj(o, "metadata"), "resourceVersion", l->ak->obj.rv);
	a->event_mask = ctl_cond_changes(l->ak->cond, l->want, AK_N_CONDS) | other_key(l);
	free(a->want);
	a->want = xmemdup(l->want, sizeof(l->want));
	return k8s_call_apply_status(
		c->env->api, &c->acts.ops, &kobj_ak, c->env->ns, o, on_done, a);
}

void ak_start(struct ctl_ak *c, struct ctl_act *a, const struct ak_look *l, enum ctl_ak_do d)
{
	const struct ctl_env *env = c->env;
	struct op_scope *ops = &c->acts.ops;
	struct op *op = NULL;

	switch (d) {
	case CTL_AK_CONFIRM:
		op = k8s_call_get(env->api, ops, &kobj_ak, env->ns, a->name, on_done, a);
		break;
	case CTL_AK_BIND:
		op = bind(c, a, l);
		break;
	case CTL_AK_IGNORE:
	case CTL_AK_APPROVE:
	case CTL_AK_UNAPPROVE:
		op = patch_ak(c, a, l, d);
		break;
	case CTL_AK_READ_SECRET:
		op = k8s_call_get(env->api, ops, &kobj_secret, env->ns, a->name, on_done, a);
		break;
	case CTL_AK_CREATE_SECRET:
		op = create_secret(c, a, l);
		break;
	case CTL_AK_ADD_SECRET_FINALIZER:
	case CTL_AK_DROP_SECRET_FINALIZER:
		op = patch_secret(c, a, l, d == CTL_AK_ADD_SECRET_FINALIZER);
		break;
	case CTL_AK_DELETE_SECRET:
		op = k8s_call_delete(env->api, ops, &kobj_secret, env->ns, a->name,
			l->secret->obj.uid, on_done, a);
		break;
	case CTL_AK_EXPIRE:
		op = k8s_call_delete(
			env->api, ops, &kobj_ak, env->ns, a->name, l->ak->obj.uid, on_done, a);
		break;
	case CTL_AK_APPLY_STATUS:
		op = apply_status(c, a, l);
		break;
	case CTL_AK_NOTHING:
	case CTL_AK_DECLARE:
	case CTL_AK_REVOKE:
	case CTL_AK_N_DO:
		DIE("AttestationKey %s: act %d needs no request", a->name, (int)d);
	}
	op_hold(&a->op, op);
}
