/* SPDX-License-Identifier: MIT */
/*
 * Machine: the acts. Each is one request, or a change of memory only. The key's bytes stay in the
 * arena from before they are announced until their create is answered, and go from there into the
 * request's text (an arena buffer too). What is written to the Machine is a merge patch with the
 * uid and the resourceVersion that decide has seen: an apply would take off what another operator
 * wrote meanwhile.
 */
#include "config.h"

#include "machine_internal.h"

#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/secret.h"
#include "tec/model/mark.h"

static struct secret *render_root(const struct kobj *holder)
{
	const struct secret *root = model_secret(holder)->root;

	return root ? secret_new_copy(secret_peek(root), secret_len(root)) : NULL;
}

static void revoke_all(const struct ctl_env *env, const struct machine_look *l)
{
	char name[RATS_IDENTITY_NAME_LEN + 1];

	if (l->path[0] && l->owns_path)
		kbs_sync_revoke(env->state->sync, KBS_RESOURCE, l->path);
	/* The same keys as look_identities(). */
	for (const struct kobj *o = k8s_cache_first(env->state->aks, 2, l->m->obj.uid); o;
		o = k8s_cache_next(env->state->aks, 2, o)) {
		if (model_ak_was_approved(model_ak(o)) && model_ak_identity(model_ak(o), name) &&
			!state_trustee_taken_by(env->state, name, o->uid))
			kbs_sync_revoke(env->state->sync, KBS_REFVALUE, name);
	}
}

bool machine_do_memory(
	const struct ctl_env *env, const struct machine_look *l, enum ctl_machine_do d)
{
	struct log_ctx lc = {
		"Machine", env->ns, l->m ? l->m->obj.name : NULL, l->m ? l->m->obj.uid : NULL};

	if (d == CTL_MACHINE_DECLARE) {
		if (kbs_sync_declare(
			    env->state->sync, KBS_RESOURCE, l->path, &l->secret->obj, render_root))
			log_debug(&lc, "key declared", "resource=%s", log_esc(l->path));
		return true;
	}
	if (d == CTL_MACHINE_RECALL) {
		kbs_sync_revoke(env->state->sync, KBS_RESOURCE, l->path);
		log_info(&lc, "key is being revoked", "reason=\"no key is bound\"");
		return true;
	}
	if (d == CTL_MACHINE_REVOKE) {
		revoke_all(env, l);
		log_info(&lc, "key and identity are being revoked", "reason=deleted");
		return true;
	}
	return false;
}

/* ---- how acts end */

static void post_events(struct ctl_machine *c, struct ctl_act *a, const struct kobj *o)
{
	for (int i = 0; i < MACHINE_READY; i++) {
		const struct kobj_cond_want *w = &a->want[i];
		bool revoking = str_eq(w->reason, model_machine_reason(MACHINE_REVOKING));
		/* What happens to every Machine is in its conditions; an Event is for what somebody
		 * has to know or do. */
		if (!(a->event_mask & 1u << i) || w->status == KOBJ_COND_TRUE)
			continue;
		if (i == MACHINE_KEY_READY &&
			!str_eq(w->reason, model_machine_reason(MACHINE_KEY_PENDING)))
			k8s_events_post(c->env->events, &kobj_machine, o, K8S_EVENT_WARNING,
				w->reason, "MakeKey", "%s", w->message);
		else if (i == MACHINE_DELIVERED && revoking)
			k8s_events_post(c->env->events, &kobj_machine, o, K8S_EVENT_NORMAL,
				"WaitingForTrustee", "Revoke", "%s", w->message);
	}
}

static void log_done(const struct log_ctx *lc, enum ctl_machine_do d)
{
	switch (d) {
	case CTL_MACHINE_CREATE_SECRET:
		log_info(lc, "key made", NULL);
		break;
	case CTL_MACHINE_INHERIT:
		log_info(lc, "key of another operator taken over", NULL);
		break;
	case CTL_MACHINE_NOTE_RECALL:
		log_info(lc, "key revoked until a key is bound", NULL);
		break;
	case CTL_MACHINE_RESTORE_SECRET:
		log_warn(lc, "key restored, its Secret was gone", NULL);
		break;
	case CTL_MACHINE_DROP_FINALIZER:
		log_info(lc, "Machine released, Trustee holds nothing of it", NULL);
		break;
	case CTL_MACHINE_EXPIRE:
		log_info(lc, "Machine deleted, no key was approved for it in time", NULL);
		break;
	default:
		log_debug(lc, "done", "op=%s", log_esc(ctl_machine_do_name(d)));
	}
}

/* What an act's success shows. */
static void take_result(struct ctl_machine *c, struct ctl_act *a, struct json_object *o)
{
	const struct kobj *m;

	switch ((enum ctl_machine_do)a->doing) {
	case CTL_MACHINE_READ_SECRET:
	case CTL_MACHINE_CREATE_SECRET:
	case CTL_MACHINE_RESTORE_SECRET:
		a->must_read = false;
		secret_free(steal_ptr(&a->made));
		ctl_take_answer(c->env->state->secrets, o, true);
		break;
	case CTL_MACHINE_EXPIRE:
		break; /* the answer may be a Status; the watch tells */
	default:
		ctl_live_set(&a->self, o);
		ctl_take_answer(c->env->state->machines, o, false);
	}
	m = k8s_cache_find(c->env->state->machines, a->name);
	if (a->doing == CTL_MACHINE_APPLY_STATUS && m)
		post_events(c, a, m);
}

/* Answers that look like failures and are none. */
static bool is_fine(struct ctl_act *a, const struct err *err, const struct k8s_result *r)
{
	bool gone = err->kind == ERR_NOT_FOUND;

	switch ((enum ctl_machine_do)a->doing) {
	case CTL_MACHINE_CREATE_SECRET:
	case CTL_MACHINE_RESTORE_SECRET:
		a->must_read = r && r->already_exists;
		return a->must_read;
	case CTL_MACHINE_READ_SECRET:
		a->must_read = !gone;
		return gone;
	case CTL_MACHINE_EXPIRE:
	case CTL_MACHINE_DROP_FINALIZER:
		return gone;
	default:
		return false;
	}
}

static void on_done(void *arg, const struct err *err, const struct k8s_result *r)
{
	struct ctl_act *a = arg;
	struct ctl_machine *c = a->table->self;
	struct log_ctx lc = {.kind = "Machine", .ns = c->env->ns, .name = a->name};
	struct err none = ERR_INIT;

	if (!err_is_set(err)) {
		if (a->doing != CTL_MACHINE_APPLY_STATUS)
			log_done(&lc, (enum ctl_machine_do)a->doing);
		take_result(c, a, r->object);
	} else if (is_fine(a, err, r)) {
		err = &none;
	} else {
		struct err told = *err;

		err_wrap(&told, "%s", ctl_machine_do_name((enum ctl_machine_do)a->doing));
		log_err(err->kind == ERR_CONFLICT ? LOG_DEBUG : LOG_WARN, &lc, "act failed", &told);
	}
	free(steal_ptr(&a->want));
	ctl_act_end(a, err);
}

/* ---- how they start */

static struct op *start_secret(
	struct ctl_machine *c, struct ctl_act *a, const struct machine_look *l, bool restore)
{
	const struct ctl_env *env = c->env;
	cleanup_secret struct secret *root = NULL;
	cleanup_secret struct secret *text = NULL;

	if (restore)
		root = render_root(kbs_sync_holder(env->state->sync, KBS_RESOURCE, l->path));
	text = model_luks_secret_text(
		l->m->id, l->m->obj.name, l->m->obj.uid, restore ? root : a->made);
	return k8s_call_create_secret(
		env->api, &c->acts.ops, env->ns, steal_ptr(&text), on_done, a);
}

/* A key that was made and not announced yet is announced again, not made again. */
static void announce(struct ctl_act *a, const struct machine_look *l, struct json_object *marks)
{
	cleanup_free char *hashes = NULL;
	uint8_t digest[SHA256_LEN];

	if (!a->made) {
		a->made = model_luks_root_new();
		secret_sha256(a->made, digest);
		bytes_to_hex(digest, SHA256_LEN, a->made_sha256);
	}
	hashes = model_mark_announce(l->m->announced, a->made_sha256);
	ctl_add_mark(marks, &l->m->obj, MODEL_KEY_SHA256_ANNOTATION, hashes);
}

/* The hash is fixed with it: what else was announced was never delivered. */
static void mark_delivered(
	const struct machine_look *l, struct json_object *marks, const char *suffix)
{
	cleanup_free char *text = NULL;
	char now[CLOCK_RFC3339_LEN];

	clock_format(clock_wall_s(), now);
	text = xasprintf("%s%s", l->m->delivered_at ? l->m->delivered_at : now, suffix);
	ctl_add_mark(marks, &l->m->obj, MODEL_DELIVERED_AT_ANNOTATION, text);
	if (l->v.key_ours || l->v.inherits)
		ctl_add_mark(marks, &l->m->obj, MODEL_KEY_SHA256_ANNOTATION, l->secret->key_sha256);
}

/* True: the finalizer goes on. */
static bool add_marks(struct ctl_act *a, const struct machine_look *l, enum ctl_machine_do d,
	struct json_object *marks)
{
	switch (d) {
	case CTL_MACHINE_ANNOUNCE:
		announce(a, l, marks);
		return true;
	case CTL_MACHINE_INHERIT:
		mark_delivered(l, marks, "");
		return true;
	case CTL_MACHINE_MARK_DELIVERED:
		mark_delivered(l, marks, "");
		return false;
	case CTL_MACHINE_NOTE_RECALL:
		mark_delivered(l, marks, MODEL_DELIVERED_REVOKED);
		return false;
	default:
		return d == CTL_MACHINE_ADD_FINALIZER;
	}
}

static struct op *start_patch(struct ctl_machine *c, struct ctl_act *a,
	const struct machine_look *l, enum ctl_machine_do d)
{
	const struct ctl_env *env = c->env;
	struct json_object *meta, *marks = json_obj();
	cleanup_json struct json_object *patch = ctl_patch_of(&l->m->obj, &meta);
	bool held = add_marks(a, l, d, marks);
	const struct model_cluster *cluster;

	if (json_object_object_length(marks) > 0)
		json_add(meta, "annotations", marks);
	else
		json_object_put(marks);
	if (d == CTL_MACHINE_ADOPT) {
		cluster = state_cluster(env->state);
		json_add(meta, "ownerReferences",
			json_push(json_arr(), kobj_owner_json(&kobj_cluster, cluster->obj.name,
						      cluster->obj.uid)));
	} else if (held || d == CTL_MACHINE_DROP_FINALIZER) {
		json_add(meta, "finalizers",
			kobj_finalizers(l->m->finalizers, held ? MODEL_MACHINE_FINALIZER : NULL));
	}
	return k8s_call_merge_patch(
		env->api, &c->acts.ops, &kobj_machine, env->ns, a->name, patch, on_done, a);
}

static struct op *start_status(
	struct ctl_machine *c, struct ctl_act *a, const struct machine_look *l)
{
	cleanup_json struct json_object *o =
		ctl_status_json(&kobj_machine, &l->m->obj, l->m->cond, l->want, MACHINE_N_CONDS);

	a->event_mask = ctl_cond_changes(l->m->cond, l->want, MACHINE_N_CONDS);
	free(a->want);
	a->want = xmemdup(l->want, sizeof(l->want));
	return k8s_call_apply_status(
		c->env->api, &c->acts.ops, &kobj_machine, c->env->ns, o, on_done, a);
}

void machine_start(struct ctl_machine *c, struct ctl_act *a, const struct machine_look *l,
	enum ctl_machine_do d)
{
	const struct ctl_env *env = c->env;
	struct op *op = NULL;

	switch (d) {
	case CTL_MACHINE_CONFIRM:
		op = k8s_call_get(
			env->api, &c->acts.ops, &kobj_machine, env->ns, a->name, on_done, a);
		break;
	case CTL_MACHINE_READ_SECRET:
		op = k8s_call_get(
			env->api, &c->acts.ops, &kobj_secret, env->ns, l->m->id, on_done, a);
		break;
	case CTL_MACHINE_CREATE_SECRET:
	case CTL_MACHINE_RESTORE_SECRET:
		op = start_secret(c, a, l, d == CTL_MACHINE_RESTORE_SECRET);
		break;
	case CTL_MACHINE_ADD_FINALIZER:
	case CTL_MACHINE_ADOPT:
	case CTL_MACHINE_ANNOUNCE:
	case CTL_MACHINE_INHERIT:
	case CTL_MACHINE_MARK_DELIVERED:
	case CTL_MACHINE_NOTE_RECALL:
	case CTL_MACHINE_DROP_FINALIZER:
		op = start_patch(c, a, l, d);
		break;
	case CTL_MACHINE_EXPIRE:
		op = k8s_call_delete(env->api, &c->acts.ops, &kobj_machine, env->ns, a->name,
			l->m->obj.uid, on_done, a);
		break;
	case CTL_MACHINE_APPLY_STATUS:
		op = start_status(c, a, l);
		break;
	case CTL_MACHINE_NOTHING:
	case CTL_MACHINE_DECLARE:
	case CTL_MACHINE_RECALL:
	case CTL_MACHINE_REVOKE:
	case CTL_MACHINE_N_DO:
		DIE("Machine %s: act %d needs no request", a->name, (int)d);
	}
	op_hold(&a->op, op);
}
