/* SPDX-License-Identifier: MIT */
/*
 * Copies AttestationKeys and creates their Secrets. A copy is approved once our copy of its
 * Machine is bound to it. A deleted AttestationKey is gone at once, so its Secret with our
 * finalizer remembers it until every Trustee has confirmed the revocation.
 */
#include "config.h"

#include "follow_internal.h"

#include <stdio.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/model/mark.h"

/* Borrowed from the caches, valid for one step. */
struct ak_look {
	struct ctl_look base;
	struct ctl_follow_ak_view v;
	const struct model_ak *there, *here;        /* NULL: there is none */
	const struct model_machine *machine;        /* our copy of its Machine */
	const struct model_machine *source_machine; /* the live one with its UUID */
	char identity[RATS_IDENTITY_NAME_LEN + 1];  /* to be revoked; "": none */
};

/* ---- decide */

/* Revoke and release a key that was deleted or withdrawn here already. This continues even if
 * the source went back to an older state. */
static enum ctl_follow_ak_do release(const struct ctl_follow_ak_view *v)
{
	if (!v->revoked)
		return CTL_FOLLOW_AK_REVOKE;
	if (!v->gone) /* unknown counts as present */
		return CTL_FOLLOW_AK_NOTHING;
	if (!v->secret_deleting)
		return CTL_FOLLOW_AK_DELETE_SECRET; /* before the finalizer */
	if (!v->secret_held)
		return CTL_FOLLOW_AK_NOTHING;
	if (v->recorded == CTL_RECORD_MISSING)
		return CTL_FOLLOW_AK_RECORD;
	if (v->recorded != CTL_RECORDED)
		return CTL_FOLLOW_AK_NOTHING;
	return v->secret_live ? CTL_FOLLOW_AK_DROP_SECRET_FINALIZER : CTL_FOLLOW_AK_READ_SECRET;
}

/* As decide_delivery() in ctl/ak, but the finalizer is part of the Secret from its creation. */
static enum ctl_follow_ak_do decide_secret(const struct ctl_follow_ak_view *v)
{
	switch (v->secret) {
	case CTL_AK_SECRET_ABSENT:
		return v->must_read ? CTL_FOLLOW_AK_READ_SECRET : CTL_FOLLOW_AK_CREATE_SECRET;
	case CTL_AK_SECRET_OURS:
		return v->secret_deleting ? release(v) : CTL_FOLLOW_AK_NOTHING;
	case CTL_AK_SECRET_STALE:
		return release(v);
	case CTL_AK_SECRET_FOREIGN: /* reported as a conflict */
	case CTL_AK_SECRET_N:
		break;
	}
	return CTL_FOLLOW_AK_NOTHING;
}

/* Bring a copy up to date. What takes a key from a node (UNAPPROVE) requires may_take. */
static enum ctl_follow_ak_do decide_copy(const struct ctl_follow_ak_view *v)
{
	if (!v->same)
		return CTL_FOLLOW_AK_NOTHING;
	if (!v->patched)
		return CTL_FOLLOW_AK_PATCH;
	if (v->unapproved) {
		if (v->stamped)
			return v->may_take ? CTL_FOLLOW_AK_UNAPPROVE : CTL_FOLLOW_AK_NOTHING;
		return v->secret == CTL_AK_SECRET_OURS || v->secret == CTL_AK_SECRET_STALE
			       ? release(v)
			       : CTL_FOLLOW_AK_NOTHING;
	}
	if (!v->approved || !v->bound)
		return CTL_FOLLOW_AK_NOTHING;
	return v->stamped ? decide_secret(v) : CTL_FOLLOW_AK_APPROVE;
}

/* A key that is deleted at the source is deleted here; one that is merely missing is only
 * withheld. */
enum ctl_follow_ak_do ctl_follow_ak_decide(const struct ctl_follow_ak_view *v)
{
	if (!v->may_copy)
		return CTL_FOLLOW_AK_NOTHING;
	if (!v->here && v->secret == CTL_AK_SECRET_STALE)
		return release(v);
	if (!v->here)
		return v->there && v->creatable ? CTL_FOLLOW_AK_CREATE : CTL_FOLLOW_AK_NOTHING;
	if (v->deleted)
		return v->may_take ? CTL_FOLLOW_AK_DELETE : CTL_FOLLOW_AK_NOTHING;
	if (v->there)
		return decide_copy(v);
	if (!v->may_take)
		return CTL_FOLLOW_AK_NOTHING;
	if (!v->withheld) /* before the revocation, or ctl/ak would declare it again */
		return CTL_FOLLOW_AK_WITHHOLD;
	return v->revoked ? CTL_FOLLOW_AK_NOTHING : CTL_FOLLOW_AK_REVOKE;
}

/* Classify the key for the counts: an act or a pending step means behind. */
static enum follow_lag lag_of(const struct ctl_follow_ak_view *v, enum ctl_follow_ak_do d)
{
	if (d != CTL_FOLLOW_AK_NOTHING || (v->here && v->deleted))
		return FOLLOW_BEHIND;
	if (!v->here)
		return v->there || v->secret == CTL_AK_SECRET_STALE ? FOLLOW_BEHIND
								    : FOLLOW_IN_STEP;
	if (!v->there)
		return v->unused ? FOLLOW_UNUSED : FOLLOW_MISSING;
	if (!v->same || (v->bound && v->secret == CTL_AK_SECRET_FOREIGN))
		return FOLLOW_CONFLICT;
	if (v->unapproved)
		return v->stamped || v->secret == CTL_AK_SECRET_OURS ? FOLLOW_BEHIND
								     : FOLLOW_IN_STEP;
	return v->approved && (!v->bound || v->secret != CTL_AK_SECRET_OURS || v->secret_deleting)
		       ? FOLLOW_BEHIND
		       : FOLLOW_IN_STEP;
}

/* ---- look */

/* Find out whether the source approved this key: both marks must agree, the Machine's and the
 * key's. */
static void look_source(const struct caches *source, struct ak_look *l)
{
	const struct model_ak *ak = l->there;
	const struct model_machine *m = ak->uuid ? caches_machine_of_id(source, ak->uuid) : NULL;

	if (!m || !m->id_valid || m->obj.deleting || m->obj.unreadable)
		return;
	l->source_machine = m;
	l->v.approved = str_eq(m->bound_key, ak->obj.uid) && ak->approved_at &&
			str_eq(m->bound_spki, ak->spki_sha256) && model_ak_is_of(ak, m->obj.uid);
	l->v.unapproved = m->bound_key && !str_eq(m->bound_key, ak->obj.uid);
}

/* Compare our copy with the original. The copy of the Machine must exist before that of its key. */
static void look_copy(const struct caches *source, const struct caches *ours, struct ak_look *l)
{
	const struct model_ak *a = l->there, *b = l->here;
	const struct kobj *m;

	look_source(source, l);
	m = l->source_machine ? k8s_cache_find(ours->machines, l->source_machine->obj.name) : NULL;
	l->machine = m && !m->unreadable && !m->deleting ? model_machine(m) : NULL;
	l->v.creatable = !l->source_machine || l->machine;
	if (!b)
		return;
	l->v.same = a->public_hash == b->public_hash && str_eq(a->spki_sha256, b->spki_sha256) &&
		    (!b->uuid || str_eq(a->uuid, b->uuid));
	l->v.patched = !b->withheld && (b->uuid || !a->uuid);
	l->v.bound = l->v.approved && l->machine && str_eq(l->machine->bound_key, b->obj.uid) &&
		     str_eq(l->machine->bound_spki, b->spki_sha256);
	l->v.stamped = b->approved_at &&
		       (l->v.unapproved || (l->machine && model_ak_is_of(b, l->machine->obj.uid)));
}

/* As in ctl/ak, for the key here or for the Secret that it left. */
static void look_trustee(
	const struct ctl_kind *k, const char *name, struct ak_look *l, struct ctl_act *act)
{
	const struct caches *s = k->caches;
	enum kbs_observed observed;

	l->v.revoked = l->v.gone = true;
	if (l->v.secret == CTL_AK_SECRET_STALE && l->base.secret->identity)
		snprintf(l->identity, sizeof(l->identity), "%s", l->base.secret->identity);
	else if (!l->here || !model_ak_identity(l->here, l->identity))
		l->identity[0] = '\0';
	if (!l->identity[0])
		return;
	observed = caches_trustee_observed_key(s, l->identity, name);
	l->v.revoked =
		observed == KBS_OBSERVED_NONE || caches_trustee_withdrawn(s, l->identity, name);
	l->v.gone = caches_trustee_gone(observed);
	/* A Trustee that is restored from a backup holds it again. */
	if (l->v.secret_held && l->v.secret_deleting && observed != KBS_OBSERVED_NONE &&
		ctl_record_is_wanted(k->env->record))
		l->v.recorded =
			ctl_record_state(k->env->record, MODEL_RECORD_VALUE, l->identity, 0);
	ctl_act_wait(act, KBS_REFVALUE, l->identity);
}

/* Trustee is asked about the identity only when something has to be revoked or released: a copy
 * that is in step costs no lookup. */
static int look(struct ctl_kind *k, const char *name, struct ctl_act *act, struct ctl_look *out)
{
	struct ak_look *l = (struct ak_look *)out;
	struct follow_pair p = follow_kind_look(k, name, out);
	enum ctl_follow_ak_do d;

	out->secret_name = name;
	out->secret = caches_secret(k->caches, name);
	l->base.over &= !(l->base.secret && l->base.secret->has_ak_finalizer);
	l->v.may_copy = p.may_copy && !(l->base.secret && l->base.secret->obj.unreadable);
	l->v.may_take = l->v.may_copy && p.may_take;
	l->v.deleted = p.deleted;
	l->there = p.there ? model_ak(p.there) : NULL;
	l->here = p.here ? model_ak(p.here) : NULL;
	l->v.there = l->there != NULL;
	l->v.here = l->here != NULL;
	if (l->there)
		look_copy(&follow_kind(k)->f->source.caches, k->caches, l);
	l->v.secret = ctl_ak_secret_of(l->here, l->base.secret);
	l->v.must_read = !l->base.secret && act->must_read;
	if (l->base.secret) {
		l->v.secret_held = l->base.secret->has_ak_finalizer;
		l->v.secret_deleting = l->base.secret->obj.deleting;
		l->v.secret_live = ctl_live_is(&act->secret, &l->base.secret->obj);
	}
	l->v.withheld = l->here && l->here->withheld;
	l->v.unused = l->here && !l->here->approved_at;
	if (!l->v.there || l->v.unapproved || l->v.secret == CTL_AK_SECRET_STALE ||
		l->v.secret_deleting)
		look_trustee(k, name, l, act);
	d = ctl_follow_ak_decide(&l->v);
	follow_kind_lags(k, name, lag_of(&l->v, d));
	return d;
}

/* ---- acts */

/* Create the copy. The listener's note says which Machine it saw; its UID is replaced by that of
 * our copy. */
static struct op *create(struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *look, int d)
{
	const struct ak_look *l = (const struct ak_look *)look;
	const struct model_ak *ak = l->there;
	cleanup_strbuf struct strbuf key = STRBUF_INIT;
	cleanup_json struct json_object *o = NULL;

	model_ak_public_key(ak, &key);
	o = model_ak_new_json(ak->obj.name, strbuf_str(&key), ak->uuid);
	if (!ak->by_listener)
		json_drop(json_get_obj(o, "metadata"), "annotations");
	else if (ak->machine_seen)
		model_ak_note_seen(
			o, l->machine && str_eq(ak->machine_seen, l->source_machine->obj.uid)
				   ? l->machine->obj.uid
				   : ak->machine_seen);
	return ctl_kind_create(k, a, &kobj_ak, o);
}

/* One merge patch with the UID and resourceVersion that were looked at; null removes an
 * annotation. */
static struct op *patch(struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *look, int d)
{
	const struct ak_look *l = (const struct ak_look *)look;
	struct json_object *meta, *marks = json_obj();
	cleanup_json struct json_object *patch = ctl_patch_of(look->o, &meta);
	char now[CLOCK_RFC3339_LEN];

	clock_format(clock_wall_s(), now);
	if (d == CTL_FOLLOW_AK_APPROVE) {
		/* Time and origin, so that both operators agree on which key came first. */
		ctl_add_mark(marks, look->o, MODEL_APPROVED_AT_ANNOTATION, l->there->approved_at);
		ctl_add_mark(marks, look->o, MODEL_APPROVED_BY_ANNOTATION,
			l->there->approved_by_admin ? "admin" : "operator");
		json_add(meta, "ownerReferences",
			json_push(json_arr(), kobj_owner_json(&kobj_machine, l->machine->obj.name,
						      l->machine->obj.uid)));
	} else if (d == CTL_FOLLOW_AK_UNAPPROVE) {
		json_add(marks, MODEL_APPROVED_AT_ANNOTATION, NULL);
		json_add(marks, MODEL_APPROVED_BY_ANNOTATION, NULL);
		json_add(meta, "ownerReferences", json_arr());
	} else if (d == CTL_FOLLOW_AK_WITHHOLD) {
		ctl_add_mark(marks, look->o, MODEL_WITHHELD_ANNOTATION, now);
	} else {
		json_add(marks, MODEL_WITHHELD_ANNOTATION, NULL);
		if (!l->here->uuid && l->there->uuid)
			json_add(patch, "spec", json_add_str(json_obj(), "uuid", l->there->uuid));
	}
	json_add(meta, "annotations", marks);
	return ctl_kind_patch(k, a, &kobj_ak, a->name, patch);
}

static void revoke(struct ctl_kind *k, const struct ctl_look *look)
{
	const struct ak_look *l = (const struct ak_look *)look;
	const struct kobj *o = l->here ? &l->here->obj : &l->base.secret->obj;
	struct log_ctx lc = {"AttestationKey", k->env->ns, o->name, o->uid};

	if (kbs_sync_withdraw(k->caches->sync, KBS_REFVALUE, l->identity, o->name))
		log_info(&lc, "identity is being revoked", "reason=\"the source revoked it\"");
}

/* Before the finalizer goes: a Trustee that is restored from a backup would hold the identity
 * again. */
static void record(struct ctl_kind *k, const struct ctl_look *look)
{
	const struct ak_look *l = (const struct ak_look *)look;

	ctl_record_add(k->env->record, MODEL_RECORD_VALUE, l->identity, clock_wall_s(), k->runner,
		l->base.secret->obj.name);
}

static const struct ctl_do acts[CTL_FOLLOW_AK_N_DO] = {
	[CTL_FOLLOW_AK_CREATE] = {"copy the AttestationKey",
		.flags = CTL_DO_FOLLOWING | CTL_DO_ANSWERS_SELF | CTL_DO_CREATES, .start = create},
	[CTL_FOLLOW_AK_PATCH] = {"correct the copy",
		.flags = CTL_DO_FOLLOWING | CTL_DO_ANSWERS_SELF, .start = patch},
	[CTL_FOLLOW_AK_APPROVE] = {"approve as the source did", "attestation key approved",
		CTL_DO_FOLLOWING | CTL_DO_ANSWERS_SELF, .start = patch},
	[CTL_FOLLOW_AK_UNAPPROVE] = {"withdraw the approval",
		"attestation key no longer approved, the source withdrew the approval",
		CTL_DO_FOLLOWING | CTL_DO_ANSWERS_SELF, .start = patch},
	[CTL_FOLLOW_AK_READ_SECRET] = {"read the Secret",
		.flags = CTL_DO_FOLLOWING | CTL_DO_SECRET | CTL_DO_READS | CTL_DO_GONE_IS_FINE,
		.start = ctl_kind_start_read_secret},
	[CTL_FOLLOW_AK_CREATE_SECRET] = {"create the Secret",
		.flags = CTL_DO_FOLLOWING | CTL_DO_SECRET | CTL_DO_CREATES,
		.start = ctl_ak_start_secret},
	[CTL_FOLLOW_AK_WITHHOLD] = {"withhold the identity",
		"identity withheld, the followed operator no longer lists the key",
		CTL_DO_FOLLOWING | CTL_DO_ANSWERS_SELF | CTL_DO_WARNS, .start = patch},
	[CTL_FOLLOW_AK_DELETE] = {"delete the copy",
		"attestation key deleted, the source deleted it",
		CTL_DO_FOLLOWING | CTL_DO_GONE_IS_FINE, .start = ctl_kind_start_delete},
	[CTL_FOLLOW_AK_REVOKE] = {"revoke the identity", .flags = CTL_DO_FOLLOWING,
		.memory = revoke},
	[CTL_FOLLOW_AK_DELETE_SECRET] = {"delete the Secret",
		.flags = CTL_DO_FOLLOWING | CTL_DO_SECRET | CTL_DO_GONE_IS_FINE,
		.start = ctl_kind_start_delete_secret},
	[CTL_FOLLOW_AK_RECORD] = {"record the revocation", .flags = CTL_DO_FOLLOWING,
		.memory = record},
	[CTL_FOLLOW_AK_DROP_SECRET_FINALIZER] = {"remove the Secret's finalizer",
		"attestation key released, no Trustee holds it",
		CTL_DO_FOLLOWING | CTL_DO_SECRET | CTL_DO_GONE_IS_FINE,
		.start = ctl_ak_start_finalizer},
};

/* ---- which keys a change concerns */

/* Called for Machines of both sides: a binding changes, or a copy appears. */
static void map_machine(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_kind *k = self;
	const char *id = model_machine(now ? now : was)->id;

	ctl_kind_wake_index(k, k->caches->aks, 0, id);
	ctl_kind_wake_index(k, follow_kind(k)->f->source.caches.aks, 0, id);
}

/* Secrets of other clients are ignored unless an AttestationKey has their name. */
static void map_secret(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_kind *k = self;
	const char *name = was ? was->name : now->name;

	if ((was && model_secret(was)->has_ak_finalizer) ||
		(now && model_secret(now)->has_ak_finalizer) ||
		k8s_cache_find(k->caches->aks, name))
		ctl_runner_wake(k->runner, name);
}

struct ctl_kind *follow_ak_new(struct ctl_follow *f)
{
	static const struct follow_watch watches[] = {
		{CACHES_AKS, follow_kind_map, follow_kind_map_source},
		{CACHES_MACHINES, map_machine, map_machine},
		{CACHES_SECRETS, map_secret, NULL},
		{.here = NULL},
	};
	static const struct ctl_kind_conf conf = {
		.name = "follow_ak",
		.of = CACHES_AKS,
		.size = sizeof(struct follow_kind),
		.look_size = sizeof(struct ak_look),
		.acts = acts,
		.status = -1,
		.knows_cached = true,
		.look = look,
		.forget = follow_kind_forget,
	};

	return follow_kind_new(f, &conf, watches);
}
