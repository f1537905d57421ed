/* SPDX-License-Identifier: MIT */
/*
 * TrusteeConfig: where its objects are, look (read the caches), decide (pure), the conditions, the
 * acts, and which ones a change concerns. A value that a write needs (from a TLS Secret, or the file
 * that a user edited) is read right before the write and kept in the act (`made`) until the write
 * ends.
 */
#include "config.h"

#include "tec/ctl/trusteeconfig.h"

#include <stdio.h>
#include <string.h>

#include "ctl_internal.h"

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/model/plain.h"
#include "tec/pki/key.h"
#include "tec/render/kbstls.h"

/* Why the write of a child cannot succeed. Valid until its TrusteeConfig or the child changes. */
struct trusteeconfig_stuck {
	char *of, *rv; /* owned; name of the TrusteeConfig; version of the child */
	enum render_trusteeconfig_child child;
	bool edited;       /* because a user edited it; otherwise the API refused it: retried */
	uint64_t since_ms; /* boot clock */
	char text[256];
	LIST_ENTRY(trusteeconfig_stuck) link;
};

struct ctl_trusteeconfig {
	struct ctl_kind kind;
	LIST_HEAD(, trusteeconfig_stuck) stuck; /* owned; one for each TrusteeConfig at most */
};

/* Borrowed from the caches, valid for one step. */
struct trusteeconfig_look {
	struct ctl_look base;
	struct ctl_trusteeconfig_view v;
	const struct model_trusteeconfig *m;
	const struct model_kbsconfig *kbs; /* NULL: none, or another owner's */
	char description[sizeof(((struct kobj_cond_want *)NULL)->message) + 64];
	const char *ns;
	bool is_ready;
};

#define REFUSED_AGAIN_MS 30000 /* delay before a write that the API refused is retried */

/* ---- objects */

/* Children are of four kinds, each with its own cache. */
static struct k8s_cache *cache_of(const struct caches *s, enum render_trusteeconfig_child i)
{
	return render_child_is_configmap(i)  ? s->input_configmaps
	       : render_child_is_secret(i)   ? s->input_secrets
	       : i == RENDER_CHILD_KBSCONFIG ? s->kbsconfigs
					     : s->claims;
}

/* Names of children are fixed, so a child is found by name; its owner is checked by the look. */
static const struct kobj *child_at(const struct caches *s, const struct model_trusteeconfig *m,
	enum render_trusteeconfig_child i)
{
	cleanup_free char *name = render_child_name(m, i);

	return k8s_cache_find(cache_of(s, i), name);
}

/* NULL also if the child is not a copy of anything. */
static const struct model_input *source_of(const struct caches *s,
	const struct model_trusteeconfig *m, enum render_trusteeconfig_child i)
{
	const char *name = render_child_source(m, i);

	return name ? model_input(k8s_cache_find(s->input_secrets, name)) : NULL;
}

/* Return the write of this TrusteeConfig that cannot succeed, or NULL. */
static struct trusteeconfig_stuck *stuck_of(const struct ctl_trusteeconfig *c, const char *name)
{
	struct trusteeconfig_stuck *s;

	LIST_FOREACH (s, &c->stuck, link)
		if (str_eq(s->of, name))
			return s;
	return NULL;
}

/* ---- decide */

/* A copy needs its value first, so it is read right before the write. */
static int decide_child(const struct ctl_trusteeconfig_view *v, int i)
{
	bool copy = render_child_is_copy((enum render_trusteeconfig_child)i);

	switch (v->child[i]) {
	case CTL_CHILD_ABSENT:
		return copy && v->value != i ? CTL_TRUSTEECONFIG_READ : CTL_TRUSTEECONFIG_MAKE;
	case CTL_CHILD_TLS:
		return v->value != i ? CTL_TRUSTEECONFIG_READ : CTL_TRUSTEECONFIG_MAKE;
	case CTL_CHILD_STALE: /* a Secret is only ever created */
		return copy ? CTL_TRUSTEECONFIG_DELETE : CTL_TRUSTEECONFIG_MAKE;
	case CTL_CHILD_UNWANTED:
		return CTL_TRUSTEECONFIG_DELETE;
	case CTL_CHILD_FINE:
	case CTL_CHILD_N:
		break;
	}
	return CTL_TRUSTEECONFIG_NOTHING;
}

/*
 * Return in which of three rounds a child is handled. Stale copies are deleted first: while one of
 * a pair is missing, the Deployment does not change, so no Pod starts with a new key and an old
 * certificate. Unwanted children are deleted last, because the KbsConfig names them until then.
 */
static int turn_of(const struct ctl_trusteeconfig_view *v, int i)
{
	if (v->child[i] == CTL_CHILD_STALE &&
		render_child_is_copy((enum render_trusteeconfig_child)i))
		return 0;
	return v->child[i] == CTL_CHILD_UNWANTED ? 2 : 1;
}

/* Three rounds, see turn_of(). While spec cannot be followed, only the status is written. */
enum ctl_trusteeconfig_do ctl_trusteeconfig_decide(const struct ctl_trusteeconfig_view *v)
{
	if (!v->found || v->deleting)
		return CTL_TRUSTEECONFIG_NOTHING; /* the garbage collector deletes what it owns */
	for (int turn = 0; v->usable && turn < 3; turn++) {
		for (int i = 0; i < RENDER_N_CHILDREN; i++) {
			int d = turn_of(v, i) == turn ? decide_child(v, i) : 0;

			if (d)
				return (enum ctl_trusteeconfig_do)(d + i);
		}
	}
	return v->status_ok ? CTL_TRUSTEECONFIG_NOTHING : CTL_TRUSTEECONFIG_APPLY_STATUS;
}

/* ---- conditions */

#define WANT(l, which, state, r, ...)                                                              \
	kobj_cond_want(&(l)->base.want[which], model_trusteeconfig_cond_types[which], state,       \
		model_trusteeconfig_reason(r), __VA_ARGS__)
/* Set the condition to the reason why spec cannot be followed. False, so that a check can return
 * it. */
#define REFUSE(l, r, ...)                                                                          \
	(WANT(l, TRUSTEECONFIG_CONFIGURED, KOBJ_COND_FALSE, r, __VA_ARGS__), false)

static const char *owner_of(const struct kobj *o, enum render_trusteeconfig_child i)
{
	return i == RENDER_CHILD_KBSCONFIG ? model_kbsconfig(o)->owner_uid
	       : i == RENDER_CHILD_CLAIM   ? ((const struct model_plain *)o)->owner_uid
					   : model_input(o)->owner_uid;
}

/* Checks that need nothing but spec. */
static bool spec_is_usable(struct trusteeconfig_look *l)
{
	static const char restricted[] =
		"Profile Restricted needs spec.%s.tlsSecretName. Set it to a Secret of type kubernetes.io/tls.";
	const struct model_trusteeconfig *m = l->m;
	bool closed = m->profile == MODEL_PROFILE_RESTRICTED;

	if (m->problem)
		return REFUSE(l, TRUSTEECONFIG_INVALID_SPEC, "%s. Correct it.", m->problem);
	if (closed && !m->https_secret)
		return REFUSE(l, TRUSTEECONFIG_INPUT_MISSING, restricted, "httpsSpec");
	if (closed && !m->token_secret)
		return REFUSE(l, TRUSTEECONFIG_INPUT_MISSING, restricted,
			"attestationTokenVerificationSpec");
	return true;
}

/* Secrets of users: each must exist with the expected member before anything is copied. */
static bool source_is_there(
	struct trusteeconfig_look *l, const struct caches *s, enum render_trusteeconfig_child i)
{
	const char *name = render_child_source(l->m, i), *key = render_child_source_key(i);
	const struct model_input *in = source_of(s, l->m, i);
	const char *field =
		i <= RENDER_CHILD_HTTPS_CERT ? "httpsSpec" : "attestationTokenVerificationSpec";

	if (!name)
		return true;
	if (!in)
		return REFUSE(l, TRUSTEECONFIG_INPUT_MISSING,
			"Secret %s, which spec.%s.tlsSecretName names, does not exist. Create it as type kubernetes.io/tls.",
			name, field);
	if (in->obj.unreadable)
		return REFUSE(l, TRUSTEECONFIG_INPUT_MISSING,
			"Secret %s, which spec.%s.tlsSecretName names, is too large to be read.",
			name, field);
	if (!model_input_has(in, key))
		return REFUSE(l, TRUSTEECONFIG_INPUT_MISSING,
			"Secret %s has no key %s. Create it with type kubernetes.io/tls.", name,
			key);
	return true;
}

/* Returning false stops model_kbsfile_each() at the first name: only existence matters. */
static bool note_name(void *arg, const char *key)
{
	return false;
}

/* Check that kbs-config.toml, which a user may have edited, matches spec: otherwise Trustee
 * would not start with the objects created here. */
static bool config_fits(struct trusteeconfig_look *l, const struct model_input *in)
{
	const struct model_kbsfile *f = &in->file;
	bool token = !model_kbsfile_each(f, "attestation-key", note_name, NULL);
	const char *what =
		f->insecure_http != !l->m->https_secret
			? (l->m->https_secret
					  ? "spec.httpsSpec requires HTTPS, but the file sets plain HTTP"
					  : "the file sets HTTPS, but spec.httpsSpec is not set")
		: token != (l->m->token_secret != NULL)
			? (token ? "the file names a token key, but spec.attestationTokenVerificationSpec is not set"
				 : "the file does not name the key of spec.attestationTokenVerificationSpec")
			: NULL;

	if (!f->there)
		return REFUSE(l, TRUSTEECONFIG_EDITED,
			"ConfigMap %s has no key kbs-config.toml. Add it, or delete the ConfigMap to have it created again.",
			in->obj.name);
	if (!f->why && !what)
		return true;
	return REFUSE(l, TRUSTEECONFIG_EDITED,
		"ConfigMap %s was edited and does not match spec: %s. Correct it, or delete it to have it created again. Trustee keeps its current configuration.",
		in->obj.name, f->why ? f->why : what);
}

/* ---- children */

/* Compare hashes: content as rendered now, content as rendered earlier (unedited, so it is
 * updated), or edited by a user (kept; only its TLS lines may have to change). */
static enum ctl_child configmap_state(const struct model_trusteeconfig *m,
	const struct model_input *in, enum render_trusteeconfig_child i)
{
	cleanup_json struct json_object *data = render_child_data(m, i);
	char want[SHA256_HEX_LEN + 1], have[SHA256_HEX_LEN + 1], tls[SHA256_HEX_LEN + 1];

	model_input_hash(data, want);
	bytes_to_hex(in->sha256, sizeof(in->sha256), have);
	if (str_eq(want, have))
		return CTL_CHILD_FINE;
	if (str_eq(in->made, have))
		return CTL_CHILD_STALE;
	render_child_tls_hash(m, tls);
	return i == RENDER_CHILD_CONFIG && render_child_tls(m)[0] && !str_eq(in->tls, tls)
		       ? CTL_CHILD_TLS
		       : CTL_CHILD_FINE;
}

/* Look at one child. False: an object of another owner blocks it. */
static bool look_child(
	struct trusteeconfig_look *l, const struct caches *s, enum render_trusteeconfig_child i)
{
	const struct kobj *o = child_at(s, l->m, i);
	const struct model_plain *claim = (const struct model_plain *)o;
	bool wanted = render_child_wanted(l->m, i), ours;
	const struct model_input *source = source_of(s, l->m, i);
	const char *kind = render_child_gvk(i)->kind;
	char hash[SHA256_HEX_LEN + 1];

	l->v.child[i] = !o && wanted ? CTL_CHILD_ABSENT : CTL_CHILD_FINE;
	if (!o || o->deleting)
		return true;
	if (o->unreadable)
		return REFUSE(l, TRUSTEECONFIG_CONFLICT,
			"%s %s is too large to be read. Delete it.", kind, o->name);
	ours = str_eq(owner_of(o, i), l->m->obj.uid);
	if (!wanted) { /* policies are kept: they are not secret and may have been edited */
		l->v.child[i] =
			ours && !render_child_is_configmap(i) ? CTL_CHILD_UNWANTED : CTL_CHILD_FINE;
		return true;
	}
	if (owner_of(o, i) && !ours && i != RENDER_CHILD_SAMPLE)
		return REFUSE(l, TRUSTEECONFIG_CONFLICT,
			"%s %s belongs to another owner and is not changed. Delete it, or use another name.",
			kind, o->name);
	if (render_child_is_configmap(i))
		l->v.child[i] = configmap_state(l->m, model_input(o), i);
	else if (render_child_is_copy(i) && ours && source && !source->obj.unreadable) {
		/* A copy of a missing or unreadable source stays: Trustee keeps running with it. */
		bytes_to_hex(source->sha256, sizeof(source->sha256), hash);
		l->v.child[i] =
			str_eq(model_input(o)->made, hash) ? CTL_CHILD_FINE : CTL_CHILD_STALE;
	} else if (i == RENDER_CHILD_CLAIM && !str_eq(claim->volume, l->m->volume))
		return REFUSE(l, TRUSTEECONFIG_CONFLICT,
			"PersistentVolumeClaim %s uses volume %s, not that of spec.ibmSE.pvName. Delete the claim, or restore pvName.",
			o->name, claim->volume ? claim->volume : "\"\"");
	return true;
}

/* A write that failed for a lasting reason is not repeated in vain. After a refusal by the API
 * it is, with a delay: a quota or a right may have been changed. */
static bool look_stuck(const struct ctl_trusteeconfig *c, struct trusteeconfig_look *l)
{
	const struct trusteeconfig_stuck *s = stuck_of(c, l->m->obj.name);
	const struct kobj *o = s ? child_at(c->kind.caches, l->m, s->child) : NULL;

	if (!s || !str_eq(s->rv, o ? o->rv : NULL))
		return true; /* the child changed: try again */
	if (!s->edited) {
		uint64_t past = clock_boot_ms() - s->since_ms;

		if (past >= REFUSED_AGAIN_MS)
			return true;
		ctl_look_again(&l->base, REFUSED_AGAIN_MS - (int64_t)past, "write-refused");
	}
	return REFUSE(
		l, s->edited ? TRUSTEECONFIG_EDITED : TRUSTEECONFIG_WRITE_REFUSED, "%s", s->text);
}

/* The first reason wins, and sets the condition; the order is that of the dependencies. */
static bool is_usable(const struct caches *s, struct trusteeconfig_look *l)
{
	const struct kobj *config, *kbs;
	cleanup_json struct json_object *patch = NULL;

	if (!spec_is_usable(l))
		return false;
	for (enum render_trusteeconfig_child i = RENDER_CHILD_HTTPS_KEY;
		i <= RENDER_CHILD_TOKEN_CERT; i++)
		if (!source_is_there(l, s, i))
			return false;
	for (enum render_trusteeconfig_child i = 0; i < RENDER_CHILD_KBSCONFIG; i++)
		if (!look_child(l, s, i))
			return false;
	/* A file that a user edited is kept, so it has to match spec. */
	config = child_at(s, l->m, RENDER_CHILD_CONFIG);
	if (config && !config->deleting && l->v.child[RENDER_CHILD_CONFIG] != CTL_CHILD_STALE &&
		!config_fits(l, model_input(config)))
		return false;
	if (!look_child(l, s, RENDER_CHILD_KBSCONFIG))
		return false;
	/* An existing KbsConfig is patched only if a field of the profile differs. */
	kbs = child_at(s, l->m, RENDER_CHILD_KBSCONFIG);
	if (kbs && !kbs->deleting) {
		patch = render_child_kbsconfig(l->m, "", model_kbsconfig(kbs));
		l->v.child[RENDER_CHILD_KBSCONFIG] = patch ? CTL_CHILD_STALE : CTL_CHILD_FINE;
	}
	return true;
}

struct controller {
	const char *uid;
	const struct model_trusteeconfig *found;
};

static void find_controller(void *arg, const struct kobj *o)
{
	struct controller *c = arg;

	if (str_eq(o->uid, c->uid) && !o->unreadable && !o->deleting)
		c->found = model_trusteeconfig(o);
}

/* Absent objects need no look: the KbsConfig names them, and then waits for them, or it is stale. */
bool ctl_trusteeconfig_writes(const struct caches *s, const struct model_kbsconfig *kbs)
{
	struct controller c = {.uid = kbs->owner_uid};
	struct trusteeconfig_look l = {.ns = NULL};

	if (!c.uid)
		return false;
	k8s_cache_each(s->trusteeconfigs, find_controller, &c);
	l.m = c.found;
	if (!l.m || !is_usable(s, &l))
		return false;
	for (int i = 0; i < RENDER_N_CHILDREN; i++)
		if (l.v.child[i] == CTL_CHILD_STALE)
			return true;
	return false;
}

/* If spec cannot be followed, the condition was set with the reason. */
static void want_configured(const struct ctl_trusteeconfig *c, struct trusteeconfig_look *l)
{
	bool all = true;

	l->v.usable = is_usable(c->kind.caches, l) && look_stuck(c, l);
	for (int i = 0; i < RENDER_N_CHILDREN; i++)
		all &= l->v.child[i] == CTL_CHILD_FINE;
	if (l->v.usable && all)
		WANT(l, TRUSTEECONFIG_CONFIGURED, KOBJ_COND_TRUE, TRUSTEECONFIG_IS_CONFIGURED,
			"KbsConfig %s and the objects that it names exist.",
			l->kbs ? l->kbs->obj.name : "");
	else if (l->v.usable)
		WANT(l, TRUSTEECONFIG_CONFIGURED, KOBJ_COND_FALSE, TRUSTEECONFIG_CONFIGURING,
			"The KbsConfig and the objects that it names are being written.");
}

/* The first two descriptions are those of the upstream Trustee operator, which clients may compare.
 * A Trustee that runs as an earlier spec says is not ready. */
static void want_ready(struct trusteeconfig_look *l)
{
	const struct model_kbsconfig *kbs = l->kbs;
	const struct kobj_cond *c = kbs ? kbs->cond : NULL;

	l->is_ready = l->v.usable && kbs && kbs->is_ready;
	if (l->v.usable)
		snprintf(l->description, sizeof(l->description), "%s",
			l->is_ready
				? "TrusteeConfig is ready and KbsConfig is deployed successfully"
				: "TrusteeConfig reconciled but KbsConfig deployment is in progress");
	else
		snprintf(l->description, sizeof(l->description),
			"TrusteeConfig is not configured: %s",
			l->base.want[TRUSTEECONFIG_CONFIGURED].message);
	if (l->is_ready)
		WANT(l, TRUSTEECONFIG_READY, KOBJ_COND_TRUE, TRUSTEECONFIG_IS_READY,
			"KbsConfig %s is ready.", kbs->obj.name);
	else if (!kbs)
		WANT(l, TRUSTEECONFIG_READY, KOBJ_COND_FALSE, TRUSTEECONFIG_NOT_CONFIGURED,
			"There is no KbsConfig yet, see condition Configured.");
	else if (!l->v.usable)
		WANT(l, TRUSTEECONFIG_READY, KOBJ_COND_FALSE, TRUSTEECONFIG_NOT_CONFIGURED,
			"KbsConfig %s keeps its configuration, see condition Configured.",
			kbs->obj.name);
	else
		WANT(l, TRUSTEECONFIG_READY, KOBJ_COND_FALSE, TRUSTEECONFIG_NOT_READY,
			"KbsConfig %s is not ready (%s, %s), see its conditions.", kbs->obj.name,
			c[KBSCONFIG_INSTALLED].reason ? c[KBSCONFIG_INSTALLED].reason : "unknown",
			c[KBSCONFIG_READY].reason ? c[KBSCONFIG_READY].reason : "unknown");
}

/* ---- look */

/* v.value: a value that the last act read is still in the act, so the write can follow. */
static int look_at(struct ctl_kind *k, const char *name, struct ctl_act *act, struct ctl_look *out)
{
	struct ctl_trusteeconfig *c = (struct ctl_trusteeconfig *)k;
	struct trusteeconfig_look *l = (struct trusteeconfig_look *)out;
	const struct kobj *o = k8s_cache_find(k->caches->trusteeconfigs, name), *kbs;

	l->base.over = !o;
	if (!o || o->unreadable)
		return CTL_TRUSTEECONFIG_NOTHING;
	l->m = model_trusteeconfig(o);
	l->base.o = o;
	l->ns = k->env->ns;
	l->base.have = l->m->cond;
	l->v.found = true;
	l->v.deleting = o->deleting;
	l->v.value = act->made && act->last_ok >= CTL_TRUSTEECONFIG_READ &&
				     act->last_ok < CTL_TRUSTEECONFIG_MAKE
			     ? act->last_ok - CTL_TRUSTEECONFIG_READ
			     : -1;
	kbs = child_at(k->caches, l->m, RENDER_CHILD_KBSCONFIG);
	if (kbs && !kbs->unreadable && str_eq(model_kbsconfig(kbs)->owner_uid, o->uid))
		l->kbs = model_kbsconfig(kbs);
	want_configured(c, l);
	want_ready(l);
	/* Conditions and the three fields of the upstream API. */
	l->v.status_ok =
		kobj_cond_same(l->m->cond, l->base.want, TRUSTEECONFIG_N_CONDS, o->generation) &&
		l->m->has_status && l->m->is_ready == l->is_ready &&
		str_eq(l->m->description, l->description) &&
		str_eq(l->m->ref, l->kbs ? l->kbs->obj.name : NULL);
	return (int)ctl_trusteeconfig_decide(&l->v);
}

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

static void unstick(struct ctl_trusteeconfig *c, const char *name)
{
	struct trusteeconfig_stuck *s = stuck_of(c, name);

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
	const struct kobj *o = child_at(c->kind.caches, m, i);
	cleanup_free char *name = render_child_name(m, i);
	const char *kind = render_child_gvk(i)->kind;
	struct trusteeconfig_stuck *s = xcalloc(1, sizeof(*s));

	unstick(c, m->obj.name);
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
	const struct kobj *o = child_at(env->caches, m, RENDER_CHILD_KBSCONFIG);
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
		return merge_config(c, a, l->m, model_input(child_at(k->caches, l->m, i)));
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

	return ctl_kind_delete(k, a, render_child_gvk(i), child_at(k->caches, l->m, i));
}

/* ---- ends */

/* A refusal may not pass by waiting, so it is shown in the condition. */
static bool ended(
	struct ctl_kind *k, struct ctl_act *a, const struct err *err, const struct k8s_result *r)
{
	struct ctl_trusteeconfig *c = (struct ctl_trusteeconfig *)k;
	const struct kobj *o = k8s_cache_find(k->caches->trusteeconfigs, a->name);
	const struct model_trusteeconfig *m = o && !o->unreadable ? model_trusteeconfig(o) : NULL;
	enum render_trusteeconfig_child i = child_of(a->doing);
	struct err unusable = ERR_INIT;
	int d = a->doing;

	if (d == CTL_TRUSTEECONFIG_APPLY_STATUS)
		return false;
	if (err_is_set(err)) {
		if (m && ctl_err_is_refusal(err))
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
				"%s%s%s is empty%s or larger than 128 KiB",
				config ? MODEL_KBSFILE_KEY : render_child_source_key(i),
				config ? "" : " of Secret ",
				config ? "" : render_child_source(m, i),
				config ? ", not in data," : "");
			get_stuck(c, m, i, config, &unusable);
		}
		return true;
	}
	secret_free(steal_ptr(&a->made));
	unstick(c, a->name);
	if (m) { /* a log line only: children appear in the condition, and there are many */
		cleanup_free char *name = render_child_name(m, i);
		struct log_ctx lc = {render_child_gvk(i)->kind, k->env->ns, name, NULL};

		log_info(&lc, d >= CTL_TRUSTEECONFIG_DELETE ? "deleted" : "written", "trustee=%s",
			m->obj.name);
	}
	if (d < CTL_TRUSTEECONFIG_DELETE)
		ctl_take_answer(cache_of(k->caches, i), r->object, true);
	return true;
}

/* Only Configured can warn: Ready changes with the Pods. */
static void tell(struct ctl_kind *k, struct ctl_act *a, const struct kobj *o)
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
static void add_status(const struct ctl_look *look, struct json_object *status)
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

static const struct ctl_do acts[CTL_TRUSTEECONFIG_N_DO] = {
	OF_CHILD(READ) = {"read the source of an object", .start = start_read},
	OF_CHILD(MAKE) = {"write an object", .start = start_make},
	OF_CHILD(
		DELETE) = {"delete an object", .flags = CTL_DO_GONE_IS_FINE, .start = start_delete},
	[CTL_TRUSTEECONFIG_APPLY_STATUS] = {"write the status", .flags = CTL_DO_ANSWERS_SELF,
		.start = ctl_kind_start_status},
};

/* ---- which ones a change concerns */

/* A new spec may solve what the last write failed for. */
static void map_trusteeconfig(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_trusteeconfig *c = self;
	const char *name = was ? was->name : now->name;

	if (!was || !now || was->generation != now->generation)
		unstick(c, name);
	ctl_runner_wake(c->kind.runner, name);
}

struct concerned {
	struct ctl_kind *kind;
	const char *name;
};

/* Names of children begin with that of their TrusteeConfig; the others are named by spec or
 * shared. */
static void wake_if_concerned(void *arg, const struct kobj *o)
{
	const struct concerned *c = arg;
	const struct model_trusteeconfig *m = model_trusteeconfig(o);
	cleanup_free char *sample = render_child_name(m, RENDER_CHILD_SAMPLE);

	if (!o->unreadable && (str_starts(c->name, o->name) || str_eq(c->name, m->https_secret) ||
				      str_eq(c->name, m->token_secret) || str_eq(c->name, sample)))
		ctl_runner_wake(c->kind->runner, o->name);
}

/* Any object may be a child or a source by its name; there are few TrusteeConfigs, so all are
 * asked. */
static void map_child(void *self, const struct kobj *was, const struct kobj *now)
{
	struct concerned c = {self, was ? was->name : now->name};

	k8s_cache_each(c.kind->caches->trusteeconfigs, wake_if_concerned, &c);
}

/* A new leader tries every write again. */
static void forget(struct ctl_kind *k)
{
	struct ctl_trusteeconfig *c = (struct ctl_trusteeconfig *)k;

	while (!LIST_EMPTY(&c->stuck))
		unstick(c, LIST_FIRST(&c->stuck)->of);
}

struct ctl_kind *ctl_trusteeconfig_new(const struct ctl_env *env)
{
	static const struct ctl_watch watches[] = {
		{CACHES_TRUSTEECONFIGS, map_trusteeconfig},
		{CACHES_KBSCONFIGS, map_child},
		{CACHES_INPUT_CONFIGMAPS, map_child},
		{CACHES_INPUT_SECRETS, map_child},
		{CACHES_CLAIMS, map_child},
		{.map = NULL},
	};
	static const struct ctl_kind_conf conf = {
		.name = "trusteeconfig",
		.of = CACHES_TRUSTEECONFIGS,
		.size = sizeof(struct ctl_trusteeconfig),
		.look_size = sizeof(struct trusteeconfig_look),
		.n_conds = TRUSTEECONFIG_N_CONDS,
		.acts = acts,
		.status = CTL_TRUSTEECONFIG_APPLY_STATUS,
		.watches = watches,
		.look = look_at,
		.ended = ended,
		.tell = tell,
		.add_status = add_status,
		.forget = forget,
	};

	return ctl_kind_new(env, &conf);
}
