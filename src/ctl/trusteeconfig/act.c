/* SPDX-License-Identifier: MIT */
/*
 * TrusteeConfig: the acts, each one request. A value that a write needs (from a TLS Secret, or the
 * file that a user edited) is read right before the write and kept in the act (`made`) until the
 * write ends.
 */
#include "config.h"

#include "trusteeconfig_internal.h"

#include <stdio.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/pki/key.h"
#include "tec/render/kbstls.h"

/* Each kind of act has one number per child. */
static enum render_trusteeconfig_child child_of(int d)
{
	return (enum render_trusteeconfig_child)((d - CTL_TRUSTEECONFIG_READ) % RENDER_N_CHILDREN);
}

/* ---- read */

/* The file that a user edited, or the TLS Secret that is to be copied. */
static struct op *start_read(
	struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *look, int d)
{
	const struct trusteeconfig_look *l = (const struct trusteeconfig_look *)look;
	enum render_trusteeconfig_child i = child_of(d);
	cleanup_free char *name = render_child_name(l->m, RENDER_CHILD_CONFIG);

	return i == RENDER_CHILD_CONFIG
		       ? ctl_kind_get(k, a, &kobj_input_configmap, name)
		       : ctl_kind_get(k, a, &kobj_input_secret, render_child_source(l->m, i));
}

/* Keep the value in the act, with the hash of its content, or with the version of the edited
 * file: the merged file is written only over that version. */
static void keep_value(struct ctl_act *a, enum render_trusteeconfig_child i, struct json_object *o)
{
	struct json_object *data = json_get_obj(o, "data"), *v = NULL;
	const char *key = i == RENDER_CHILD_CONFIG ? MODEL_KBSFILE_KEY : render_child_source_key(i);
	const char *text;
	size_t len;

	secret_free(steal_ptr(&a->made));
	if (!data || !json_object_object_get_ex(data, key, &v) ||
		!json_object_is_type(v, json_type_string))
		return;
	text = json_object_get_string(v);
	len = (size_t)json_object_get_string_len(v);
	if (i == RENDER_CHILD_CONFIG) {
		snprintf(a->made_sha256, sizeof(a->made_sha256), "%s",
			json_get_str(o, "metadata/resourceVersion"));
		a->made = len && len <= SECRET_MAX_LEN ? secret_new_copy(text, len) : NULL;
		return;
	}
	model_input_hash(data, a->made_sha256);
	a->made = len ? secret_from_b64(text, len) : NULL;
}

/* ---- make */

void trusteeconfig_act_unstick(struct ctl_trusteeconfig *c, const char *name)
{
	struct trusteeconfig_stuck *s = trusteeconfig_view_stuck(c, name);

	if (!s)
		return;
	LIST_REMOVE(s, link);
	free(s->of);
	free(s->rv);
	free(s);
}

/* Remember a write that cannot succeed, and why. It is not repeated until the TrusteeConfig or
 * the child changes; a refusal by the API is retried after a while. */
static void get_stuck(struct ctl_trusteeconfig *c, const struct model_trusteeconfig *m,
	enum render_trusteeconfig_child i, bool edited, const struct err *err)
{
	const struct kobj *o = trusteeconfig_view_child(c->kind.state, m, i);
	cleanup_free char *name = render_child_name(m, i);
	const char *kind = render_child_gvk(i)->kind;
	struct trusteeconfig_stuck *s = xcalloc(1, sizeof(*s));

	trusteeconfig_act_unstick(c, m->obj.name);
	LIST_INSERT_HEAD(&c->stuck, s, link);
	s->of = xstrdup(m->obj.name);
	s->rv = xstrdup(o ? o->rv : NULL);
	s->child = i;
	s->edited = edited;
	s->since_ms = clock_boot_ms();
	snprintf(s->text, sizeof(s->text),
		edited ? "The TLS settings of spec cannot be merged into %s %s: %s."
		       : "%s %s cannot be written: %s.",
		kind, name, err->text);
}

/* Write the user's file with the TLS lines of spec. */
static struct op *merge_config(struct ctl_trusteeconfig *c, struct ctl_act *a,
	const struct model_trusteeconfig *m, const struct model_input *in)
{
	cleanup_free char *text = xstrndup((const char *)secret_peek(a->made), secret_len(a->made));
	cleanup_strbuf struct strbuf merged = STRBUF_INIT;
	struct json_object *meta, *marks = json_obj();
	cleanup_json struct json_object *patch = ctl_patch_new(a->made_sha256, &meta);
	char tls[SHA256_HEX_LEN + 1];
	struct err err = ERR_INIT;

	json_add(meta, "annotations", marks);
	render_child_tls_hash(m, tls);
	json_add_str(marks, MODEL_INPUT_TLS, tls);
	if (render_kbstls_merge(text, render_child_tls(m), &merged, &err) < 0) {
		get_stuck(c, m, RENDER_CHILD_CONFIG, true, &err);
		return NULL;
	}
	json_add(patch, "data", json_add_str(json_obj(), MODEL_KBSFILE_KEY, strbuf_str(&merged)));
	return ctl_kind_patch(&c->kind, a, &kobj_input_configmap, in->obj.name, patch);
}

/* The admin key is generated here; TLS Secrets are copied. Created by POST only: an existing
 * Secret is never overwritten. */
static struct op *make_secret(struct ctl_trusteeconfig *c, struct ctl_act *a,
	const struct model_trusteeconfig *m, enum render_trusteeconfig_child i)
{
	cleanup_pki_key struct pki_key *key = i == RENDER_CHILD_AUTH ? pki_key_new_ed25519() : NULL;
	cleanup_secret struct secret *private = key ? pki_key_private_pem(key) : NULL;
	cleanup_strbuf struct strbuf public = STRBUF_INIT;
	struct secret *text;

	if (key)
		pki_key_public_pem(key, &public);
	text = render_child_secret(m, c->kind.env->ns, i, key ? private : a->made,
		key ? strbuf_str(&public) : NULL, render_child_is_copy(i) ? a->made_sha256 : NULL);
	return k8s_call_create_secret(c->kind.env->api, &c->kind.acts.ops, &kobj_input_secret,
		c->kind.env->ns, text, ctl_kind_done, a);
}

/* Create the KbsConfig, or patch only the fields that this profile sets. */
static struct op *make_kbsconfig(
	struct ctl_trusteeconfig *c, struct ctl_act *a, const struct model_trusteeconfig *m)
{
	const struct ctl_env *env = c->kind.env;
	const struct kobj *o = trusteeconfig_view_child(env->state, m, RENDER_CHILD_KBSCONFIG);
	cleanup_json struct json_object *patch =
		render_child_kbsconfig(m, env->ns, o ? model_kbsconfig(o) : NULL);

	if (!patch)
		return NULL;
	if (!o)
		return k8s_call_create(env->api, &c->kind.acts.ops, &kobj_kbsconfig, env->ns, patch,
			0, ctl_kind_done, a);
	json_add_str(json_get_obj(patch, "metadata"), "resourceVersion", o->rv);
	return ctl_kind_patch(&c->kind, a, &kobj_kbsconfig, o->name, patch);
}

/* One number per child; what is written depends on its kind and state. */
static struct op *start_make(
	struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *look, int d)
{
	struct ctl_trusteeconfig *c = (struct ctl_trusteeconfig *)k;
	const struct trusteeconfig_look *l = (const struct trusteeconfig_look *)look;
	enum render_trusteeconfig_child i = child_of(d);
	cleanup_json struct json_object *o = NULL;

	if (i == RENDER_CHILD_CONFIG && l->v.child[i] == CTL_CHILD_TLS)
		return merge_config(
			c, a, l->m, model_input(trusteeconfig_view_child(k->state, l->m, i)));
	if (render_child_is_configmap(i)) {
		o = render_child_configmap(l->m, k->env->ns, i);
		return k8s_call_apply(k->env->api, &k->acts.ops, &kobj_input_configmap, k->env->ns,
			o, ctl_kind_done, a);
	}
	if (render_child_is_secret(i))
		return make_secret(c, a, l->m, i);
	if (i == RENDER_CHILD_KBSCONFIG)
		return make_kbsconfig(c, a, l->m);
	o = render_child_claim(l->m, k->env->ns);
	return k8s_call_create(
		k->env->api, &k->acts.ops, &kobj_claim, k->env->ns, o, 0, ctl_kind_done, a);
}

static struct op *start_delete(
	struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *look, int d)
{
	const struct trusteeconfig_look *l = (const struct trusteeconfig_look *)look;
	enum render_trusteeconfig_child i = child_of(d);

	return ctl_kind_delete(
		k, a, render_child_gvk(i), trusteeconfig_view_child(k->state, l->m, i));
}

/* ---- ends */

/* INVALID and DENIED will not pass by waiting, so they are shown in the condition. */
bool trusteeconfig_act_ended(
	struct ctl_kind *k, struct ctl_act *a, const struct err *err, const struct k8s_result *r)
{
	struct ctl_trusteeconfig *c = (struct ctl_trusteeconfig *)k;
	const struct kobj *o = k8s_cache_find(k->state->trusteeconfigs, a->name);
	const struct model_trusteeconfig *m = o && !o->unreadable ? model_trusteeconfig(o) : NULL;
	enum render_trusteeconfig_child i = child_of(a->doing);
	struct err unusable = ERR_INIT;
	int d = a->doing;

	if (d == CTL_TRUSTEECONFIG_APPLY_STATUS)
		return false;
	if (err_is_set(err)) {
		/* Other errors may be temporary. */
		if (m && (err->kind == ERR_INVALID || err->kind == ERR_DENIED))
			get_stuck(c, m, i, false, err);
		return r && r->already_exists;
	}
	if (d < CTL_TRUSTEECONFIG_MAKE) {
		keep_value(a, i, r->object);
		if (i != RENDER_CHILD_CONFIG)
			json_wipe(json_get_obj(r->object, "data"));
		if (m && !a->made) { /* the value that was read is empty or too large */
			bool config = i == RENDER_CHILD_CONFIG;

			(void)err_set(&unusable, ERR_INVALID,
				"%s%s%s is empty%s or larger than 64 KiB",
				config ? MODEL_KBSFILE_KEY : render_child_source_key(i),
				config ? "" : " of Secret ",
				config ? "" : render_child_source(m, i),
				config ? ", not in data," : "");
			get_stuck(c, m, i, config, &unusable);
		}
		return true;
	}
	secret_free(steal_ptr(&a->made));
	trusteeconfig_act_unstick(c, a->name);
	if (m) { /* a log line only: children appear in the condition, and there are many */
		cleanup_free char *name = render_child_name(m, i);
		struct log_ctx lc = {render_child_gvk(i)->kind, k->env->ns, name, NULL};

		log_info(&lc, d >= CTL_TRUSTEECONFIG_DELETE ? "deleted" : "written", "trustee=%s",
			m->obj.name);
	}
	if (d < CTL_TRUSTEECONFIG_DELETE)
		ctl_take_answer(trusteeconfig_view_cache(k->state, i), r->object, true);
	return true;
}

/* Only Configured can warn: Ready changes with the Pods. */
void trusteeconfig_act_tell(struct ctl_kind *k, struct ctl_act *a, const struct kobj *o)
{
	for (int i = 0; i < TRUSTEECONFIG_N_CONDS; i++) {
		const struct kobj_cond_want *w = &a->want[i];
		bool warns = i == TRUSTEECONFIG_CONFIGURED && w->status != KOBJ_COND_TRUE;

		if (!(a->event_mask & 1u << i) ||
			str_eq(w->reason, model_trusteeconfig_reason(TRUSTEECONFIG_CONFIGURING)))
			continue;
		k8s_events_post(k->env->events, &kobj_trusteeconfig, o,
			warns ? K8S_EVENT_WARNING : K8S_EVENT_NORMAL, w->reason, w->reason, "%s",
			w->message);
	}
}

/* isReady, statusDescription and kbsConfigRef are fields of the upstream operator's API. */
void trusteeconfig_act_add_status(const struct ctl_look *look, struct json_object *status)
{
	const struct trusteeconfig_look *l = (const struct trusteeconfig_look *)look;
	struct json_object *ref;

	json_add_bool(status, "isReady", l->is_ready);
	json_add_str(status, "statusDescription", l->description);
	if (!l->kbs)
		return;
	ref = json_obj();
	json_add_str(ref, "apiVersion", "confidentialcontainers.org/v1alpha1");
	json_add_str(json_add_str(ref, "kind", "KbsConfig"), "name", l->kbs->obj.name);
	json_add(status, "kbsConfigRef", json_add_str(ref, "namespace", l->ns));
}

#define OF_CHILD(what)                                                                             \
	[CTL_TRUSTEECONFIG_##what... CTL_TRUSTEECONFIG_##what + RENDER_N_CHILDREN - 1]

const struct ctl_do trusteeconfig_acts[CTL_TRUSTEECONFIG_N_DO] = {
	OF_CHILD(READ) = {"read the source of an object", .start = start_read},
	OF_CHILD(MAKE) = {"write an object", .start = start_make},
	OF_CHILD(
		DELETE) = {"delete an object", .flags = CTL_DO_GONE_IS_FINE, .start = start_delete},
	[CTL_TRUSTEECONFIG_APPLY_STATUS] = {"write the status", .flags = CTL_DO_ANSWERS_SELF,
		.start = ctl_kind_start_status},
};
