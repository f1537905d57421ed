/* SPDX-License-Identifier: MIT */
/* TrusteeConfig: where its objects are, look (read the caches), decide (pure) and the conditions. */
#include "config.h"

#include "trusteeconfig_internal.h"

#include "tec/base/clock.h"
#include "tec/base/json.h"

#define REFUSED_AGAIN_MS 30000 /* delay before a write that the API refused is retried */

/* ---- objects */

/* Children are of four kinds, each with its own cache. */
struct k8s_cache *trusteeconfig_view_cache(const struct state *s, enum render_trusteeconfig_child i)
{
	return render_child_is_configmap(i)  ? s->input_configmaps
	       : render_child_is_secret(i)   ? s->input_secrets
	       : i == RENDER_CHILD_KBSCONFIG ? s->kbsconfigs
					     : s->claims;
}

/* Names of children are fixed, so a child is found by name; its owner is checked by the look. */
const struct kobj *trusteeconfig_view_child(const struct state *s,
	const struct model_trusteeconfig *m, enum render_trusteeconfig_child i)
{
	cleanup_free char *name = render_child_name(m, i);

	return k8s_cache_find(trusteeconfig_view_cache(s, i), name);
}

/* NULL also if the child is not a copy of anything. */
const struct model_input *trusteeconfig_view_source(const struct state *s,
	const struct model_trusteeconfig *m, enum render_trusteeconfig_child i)
{
	const char *name = render_child_source(m, i);

	return name ? model_input(k8s_cache_find(s->input_secrets, name)) : NULL;
}

/* Return the write of this TrusteeConfig that cannot succeed, or NULL. */
struct trusteeconfig_stuck *trusteeconfig_view_stuck(
	const struct ctl_trusteeconfig *c, const char *name)
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
	struct trusteeconfig_look *l, const struct state *s, enum render_trusteeconfig_child i)
{
	const char *name = render_child_source(l->m, i), *key = render_child_source_key(i);
	const struct model_input *in = trusteeconfig_view_source(s, l->m, i);
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
	struct trusteeconfig_look *l, const struct state *s, enum render_trusteeconfig_child i)
{
	const struct kobj *o = trusteeconfig_view_child(s, l->m, i);
	const struct model_plain *claim = (const struct model_plain *)o;
	bool wanted = render_child_wanted(l->m, i), ours;
	const struct model_input *source = trusteeconfig_view_source(s, l->m, i);
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

/* An existing KbsConfig is patched only if a field of the profile differs. */
static bool look_kbsconfig(struct trusteeconfig_look *l, const struct state *s)
{
	const struct kobj *o = trusteeconfig_view_child(s, l->m, RENDER_CHILD_KBSCONFIG);
	struct json_object *patch;

	if (!look_child(l, s, RENDER_CHILD_KBSCONFIG))
		return false;
	if (!o || o->deleting)
		return true;
	patch = render_child_kbsconfig(l->m, "", model_kbsconfig(o));
	l->v.child[RENDER_CHILD_KBSCONFIG] = patch ? CTL_CHILD_STALE : CTL_CHILD_FINE;
	json_object_put(patch);
	return true;
}

/* A write that failed for a lasting reason is not repeated in vain. After a refusal by the API
 * it is, with a delay: a quota or a right may have been changed. */
static bool look_stuck(const struct ctl_trusteeconfig *c, struct trusteeconfig_look *l)
{
	const struct trusteeconfig_stuck *s = trusteeconfig_view_stuck(c, l->m->obj.name);
	const struct kobj *o = s ? trusteeconfig_view_child(c->kind.state, l->m, s->child) : NULL;

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
static bool is_usable(const struct ctl_trusteeconfig *c, struct trusteeconfig_look *l)
{
	const struct state *s = c->kind.state;
	const struct kobj *config;

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
	config = trusteeconfig_view_child(s, l->m, RENDER_CHILD_CONFIG);
	if (config && !config->deleting && l->v.child[RENDER_CHILD_CONFIG] != CTL_CHILD_STALE &&
		!config_fits(l, model_input(config)))
		return false;
	return look_kbsconfig(l, s) && look_stuck(c, l);
}

/* If spec cannot be followed, is_usable() has set the condition already. */
static void want_configured(const struct ctl_trusteeconfig *c, struct trusteeconfig_look *l)
{
	bool all = true;

	l->v.usable = is_usable(c, l);
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

/* The descriptions are those of the upstream Trustee operator, which clients may compare. */
static void want_ready(struct trusteeconfig_look *l)
{
	const struct model_kbsconfig *kbs = l->kbs;
	const struct kobj_cond *c = kbs ? kbs->cond : NULL;

	l->is_ready = kbs && kbs->is_ready;
	l->description = l->is_ready
				 ? "TrusteeConfig is ready and KbsConfig is deployed successfully"
			 : kbs ? "TrusteeConfig reconciled but KbsConfig deployment is in progress"
			       : "TrusteeConfig is not configured, see its condition Configured";
	if (l->is_ready)
		WANT(l, TRUSTEECONFIG_READY, KOBJ_COND_TRUE, TRUSTEECONFIG_IS_READY,
			"KbsConfig %s is ready.", kbs->obj.name);
	else if (!kbs)
		WANT(l, TRUSTEECONFIG_READY, KOBJ_COND_FALSE, TRUSTEECONFIG_NOT_CONFIGURED,
			"There is no KbsConfig yet, see condition Configured.");
	else
		WANT(l, TRUSTEECONFIG_READY, KOBJ_COND_FALSE, TRUSTEECONFIG_NOT_READY,
			"KbsConfig %s is not ready (%s, %s), see its conditions.", kbs->obj.name,
			c[KBSCONFIG_INSTALLED].reason ? c[KBSCONFIG_INSTALLED].reason : "unknown",
			c[KBSCONFIG_READY].reason ? c[KBSCONFIG_READY].reason : "unknown");
}

/* ---- look */

/* v.value: a value that the last act read is still in the act, so the write can follow. */
int trusteeconfig_view_look(
	struct ctl_kind *k, const char *name, struct ctl_act *act, struct ctl_look *out)
{
	struct ctl_trusteeconfig *c = (struct ctl_trusteeconfig *)k;
	struct trusteeconfig_look *l = (struct trusteeconfig_look *)out;
	const struct kobj *o = k8s_cache_find(k->state->trusteeconfigs, name), *kbs;

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
	kbs = trusteeconfig_view_child(k->state, l->m, RENDER_CHILD_KBSCONFIG);
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
