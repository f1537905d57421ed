/* SPDX-License-Identifier: MIT */
/*
 * AttestationKey: look (read the caches), decide (pure) and the conditions. An identity is declared
 * only for a live approved key, and only once its Secret has our finalizer: so an object in the API
 * remembers everything that Trustee may hold.
 *
 * The life of a key: BIND (the mark on the Machine), APPROVE (owner and marks of the key),
 * CREATE_SECRET, DECLARE. The end: the AttestationKey disappears without a finalizer, its Secret is
 * found STALE; REVOKE, wait for every Trustee, DELETE_SECRET, RECORD, DROP_SECRET_FINALIZER.
 */
#include "config.h"

#include "ak_internal.h"

#include <stdio.h>
#include <string.h>

#include "tec/ctl/trustee.h"

/* ---- decide */

/* Only a live key gets a status; a deleted one has nobody to read it. */
static enum ctl_ak_do status_of(const struct ctl_ak_view *v)
{
	return !v->found || v->deleting || v->status_ok ? CTL_AK_NOTHING : CTL_AK_APPLY_STATUS;
}

/* Remove the Secret: revoke, wait for every Trustee, delete, record, and only then release it. */
static enum ctl_ak_do decide_release(const struct ctl_ak_view *v)
{
	if (!v->revoked)
		return CTL_AK_REVOKE;
	if (!state_trustee_gone(v->observed))
		return status_of(v); /* unknown counts as present */
	if (!v->secret_deleting)
		return CTL_AK_DELETE_SECRET; /* before the finalizer is removed: a kill in
						between leaves no orphan */
	if (!v->secret_held)
		return status_of(v);
	if (v->recorded == CTL_RECORD_MISSING)
		return CTL_AK_RECORD;
	if (v->recorded != CTL_RECORDED)
		return status_of(v);
	return v->secret_live ? CTL_AK_DROP_SECRET_FINALIZER : CTL_AK_READ_SECRET;
}

/* Revoke the identity and release the Secret, but do not delete it. */
static enum ctl_ak_do decide_retired(const struct ctl_ak_view *v)
{
	if (!v->revoked)
		return CTL_AK_REVOKE;
	if (!state_trustee_gone(v->observed) || !v->secret_held)
		return status_of(v); /* unknown counts as present */
	return v->secret_live ? CTL_AK_DROP_SECRET_FINALIZER : CTL_AK_READ_SECRET;
}

/* Approve the key, or bind its Machine first. A key older than this operator that Trustee cannot
 * verify is approved without binding: nothing is delivered for it, and it does not occupy its
 * Machine. */
static enum ctl_ak_do decide_grant(const struct ctl_ak_view *v)
{
	if (!v->verifiable || (v->approved && v->usable))
		return CTL_AK_APPROVE;
	return v->bindable ? CTL_AK_BIND : CTL_AK_NOTHING;
}

/* An administrator's annotation comes first; it outranks every reason against an automatic
 * approval. An unapproved key expires only after a live GET: the cache may miss an annotation. */
static enum ctl_ak_do decide_approval(const struct ctl_ak_view *v)
{
	if (v->ignored)
		return CTL_AK_IGNORE; /* before our first condition, which would make it look like
					 an administrator's */
	if (v->machine && v->annotated && !v->invalid)
		return decide_grant(v);
	if (v->left_over)
		return CTL_AK_UNAPPROVE;
	if (v->approved)
		return v->stamped ? CTL_AK_NOTHING : CTL_AK_APPROVE;
	if (v->machine && v->allowed)
		return decide_grant(v);
	if (!v->annotated && v->overdue)
		return v->confirmed ? CTL_AK_EXPIRE : CTL_AK_CONFIRM;
	return CTL_AK_NOTHING;
}

/* Decide about the Secret and the identity of an approved key. */
static enum ctl_ak_do decide_delivery(const struct ctl_ak_view *v)
{
	switch (v->secret) {
	case CTL_AK_SECRET_ABSENT:
		return v->must_read ? CTL_AK_READ_SECRET : CTL_AK_CREATE_SECRET;
	case CTL_AK_SECRET_OURS:
		if (v->secret_deleting)
			return decide_release(
				v); /* a user deleted it: created again once it is gone */
		if (!v->secret_held)
			return v->secret_live ? CTL_AK_ADD_SECRET_FINALIZER : CTL_AK_READ_SECRET;
		if (v->declared && (!v->usable || v->duplicate))
			return CTL_AK_REVOKE;
		if (!v->fresh && v->usable && !v->duplicate && !v->withheld &&
			(v->declared || v->others_clear))
			return CTL_AK_DECLARE;
		break;
	case CTL_AK_SECRET_STALE:
		return decide_release(v);
	case CTL_AK_SECRET_FOREIGN:
	case CTL_AK_SECRET_N:
		break;
	}
	return status_of(v);
}

/* Choose the next act; the order is the priority. Without a live approved key, only revocation
 * is left. */
enum ctl_ak_do ctl_ak_decide(const struct ctl_ak_view *v)
{
	bool alive = v->found && !v->deleting;
	enum ctl_ak_do d;

	if (v->authority == MODEL_AUTHORITY_RETIRED)
		return decide_retired(v);
	if (v->authority == MODEL_AUTHORITY_FOLLOWING) /* ctl/follow does the rest */
		return alive && v->approved && v->secret == CTL_AK_SECRET_OURS && v->secret_held &&
				       !v->secret_deleting
			       ? decide_delivery(v)
			       : CTL_AK_NOTHING;
	if (alive) {
		d = v->authority == MODEL_AUTHORITY_SELF ? decide_approval(v) : CTL_AK_NOTHING;
		if (d != CTL_AK_NOTHING)
			return d;
		if (v->approved)
			return decide_delivery(v);
		if (v->inherited)
			return status_of(v);
	}
	if (v->secret == CTL_AK_SECRET_STALE || (v->found && v->secret == CTL_AK_SECRET_OURS))
		return decide_release(v);
	if (v->declared)
		return CTL_AK_REVOKE; /* its Secret is gone or is not ours */
	return status_of(v);
}

/* ---- look: approval */

struct uid_search {
	const char *uid;
	bool found;
};

/* Clusters have no index by UID; there are very few. */
static void match_uid(void *arg, const struct kobj *o)
{
	struct uid_search *s = arg;

	s->found |= str_eq(o->uid, s->uid);
}

/* Tell whether the key has no owner, or a cluster owns it. A key of another Machine is deleted
 * with that Machine and is not taken from it. */
static bool is_free(const struct state *s, const struct model_ak *ak)
{
	struct uid_search search = {.uid = ak->owner_uid, .found = ak->owner_uid == NULL};

	if (ak->owner_uid)
		k8s_cache_each(s->clusters, match_uid, &search);
	return search.found;
}

/* Tell whether the Machine can be bound. Binding marks its disk key as delivered, which requires
 * that the key exists: otherwise the Machine would report a lost key next. */
static bool is_bindable(const struct state *s, const struct model_machine *m)
{
	return model_machine_delivered(m) ||
	       (state_machine_luks(s, m) == STATE_LUKS_OK &&
		       state_machine_announces(m, state_secret(s, m->id))) ||
	       (state_machine_luks(s, m) == STATE_LUKS_ABSENT && state_machine_lost_key(s, m));
}

/* Tell whether a listener created this Machine for an ID whose earlier Machine was deleted: its
 * node registered again, and an administrator should know. */
static bool is_of_deleted(const struct state *s, const struct model_machine *m)
{
	const struct model_record_entry *e = state_record_of_id(s, m->id);

	return m->by_listener && e && m->obj.created_s >= e->at_s;
}

/* Return the reason why the Machine's history forbids an automatic approval of a usable key. */
static enum ak_why why_bound(const struct state *s, const struct ak_look *l)
{
	const struct model_machine *m = l->machine;

	if (l->current && l->current != l->ak)
		return AK_WHY_HAS_KEY;
	if (m->bound_at && !str_eq(m->bound_key, l->ak->obj.uid))
		return AK_WHY_HAD_KEY;
	if (!m->bound_at && !l->v.inherited && state_adoption_cutoff_is_after(s, &m->obj))
		return AK_WHY_WAS_THERE;
	if (!m->bound_at && !l->v.inherited && state_adoption_cutoff_was_restored(s, &m->obj))
		return AK_WHY_RESTORED;
	return AK_WHY_NOT;
}

/* Return the first reason against an automatic approval, which the condition shows. */
static enum ak_why why_not(const struct state *s, const struct ak_look *l)
{
	const struct model_cluster *policy = state_cluster_policy(s);
	enum ak_why why;

	if (l->v.invalid)
		return AK_WHY_INVALID;
	if (!l->machine)
		return AK_WHY_NO_MACHINE;
	if (!is_free(s, l->ak) && !model_ak_is_of(l->ak, l->machine->obj.uid))
		return AK_WHY_OTHER_OWNER;
	if (!policy)
		return AK_WHY_NO_CLUSTER;
	if (l->v.usable && (why = why_bound(s, l)) != AK_WHY_NOT)
		return why;
	if (l->v.inherited)
		return l->v.bindable ? AK_WHY_NOT : AK_WHY_NO_DISK_KEY;
	if (policy->approval != MODEL_APPROVAL_AUTOMATIC)
		return AK_WHY_MANUAL;
	if (l->ak->by_listener && !model_ak_saw(l->ak, &l->machine->obj))
		return AK_WHY_YOUNG_MACHINE;
	if (is_of_deleted(s, l->machine))
		return AK_WHY_DELETED_ID;
	return l->v.usable && !l->v.bindable ? AK_WHY_NO_DISK_KEY : AK_WHY_NOT;
}

/* Compare the key with the binding of its Machine. The binding decides; owner and marks of the
 * key only follow it. */
static void look_bound(const struct state *s, struct ak_look *l, const struct model_machine *m)
{
	const struct model_ak *ak = l->ak;
	bool named = str_eq(m->bound_key, ak->obj.uid);
	bool owned = model_ak_is_of(ak, m->obj.uid);

	l->v.usable = l->v.verifiable && (!named || str_eq(m->bound_spki, ak->spki_sha256));
	l->v.approved = named || (!l->v.verifiable && !l->v.invalid && owned);
	l->v.stamped = owned && ak->approved_at;
	l->v.bindable = is_bindable(s, m);
	l->v.inherited = !named && state_ak_is_inherited(s, ak, m) && l->current == ak;
	l->v.left_over =
		!l->v.approved && !l->v.inherited && (ak->approved_at || (m->bound_at && owned));
}

/* `judged` is how an administrator's annotation is told from one that came with the object:
 * whoever creates keys could approve them otherwise. */
static void look_approval(const struct state *s, struct ak_look *l)
{
	const struct model_ak *ak = l->ak;
	const struct model_machine *m = ak->uuid ? state_machine_of_id(s, ak->uuid) : NULL;
	bool judged = ak->cond[AK_APPROVED].status != KOBJ_COND_ABSENT;

	l->v.verifiable = l->v.usable = ak->spki_sha256 != NULL;
	l->v.withheld = state_cluster_withholds(s, ak->withheld);
	l->v.invalid = !l->v.verifiable && !state_adoption_cutoff_is_after(s, &ak->obj);
	l->v.annotated = ak->approve_wanted && judged;
	l->v.ignored = ak->approve_wanted && !judged;
	if (m && m->id_valid && !m->obj.deleting) {
		l->machine = m;
		l->current = state_ak_of_machine(s, m);
		look_bound(s, l, m);
	}
	l->v.machine = l->machine != NULL;
	l->why = why_not(s, l);
	l->v.allowed = l->why == AK_WHY_NOT;
	l->v.overdue = ak->by_listener && !l->v.approved && !l->v.annotated &&
		       ctl_look_is_overdue(&l->base, state_cluster_policy(s), ak->obj.created_s);
}

/* ---- look: Secret and Trustee */

/* Classify the Secret of this name: ours, left over from a deleted key, or foreign. */
static void look_secret(struct ak_look *l, const struct ctl_act *act)
{
	const struct model_secret *secret = l->secret;
	bool mine;

	l->v.secret = CTL_AK_SECRET_ABSENT;
	if (!secret) {
		l->v.must_read = act->must_read;
		return;
	}
	l->v.secret_held = secret->has_ak_finalizer;
	l->v.secret_deleting = secret->obj.deleting;
	l->v.secret_live = ctl_live_is(&act->secret, &secret->obj);
	mine = l->ak && secret->n_owners == 1 && str_eq(secret->owner_uid, l->ak->obj.uid);
	if (secret->shape == MODEL_SECRET_AK && mine)
		l->v.secret = l->ak->public_hash == secret->public_hash ? CTL_AK_SECRET_OURS
									: CTL_AK_SECRET_FOREIGN;
	else if (secret->has_ak_finalizer &&
		 (secret->shape == MODEL_SECRET_AK || secret->obj.deleting))
		/* A Secret of another shape cannot be ours: it is released only while it is being
		 * deleted. */
		l->v.secret = CTL_AK_SECRET_STALE;
	else
		l->v.secret = CTL_AK_SECRET_FOREIGN;
}

/* Tell whether a Trustee may still hold this key under that name; if so, wait for its answer.
 * ak: the name of the AttestationKey. */
static bool may_hold(
	const struct state *s, const char *identity, const char *ak, struct ctl_act *act)
{
	if (state_trustee_gone(state_trustee_observed_key(s, identity, ak)))
		return false;
	ctl_act_wait(act, KBS_REFVALUE, identity);
	return true;
}

/* Tell whether every other key of the Machine is gone from Trustee. Declared identities and
 * Secrets with our finalizer are what remembers them. */
static bool others_clear(const struct state *s, struct ak_look *l, struct ctl_act *act)
{
	char name[RATS_IDENTITY_NAME_LEN + 1];
	bool clear = true;

	for (const struct kobj *o = k8s_cache_first(s->aks, 0, l->ak->uuid); o;
		o = k8s_cache_next(s->aks, 0, o)) {
		const struct model_secret *secret = state_secret(s, o->name);

		if (o == &l->ak->obj)
			continue;
		clear &= !secret || !secret->obj.unreadable;
		if (secret && secret->shape == MODEL_SECRET_AK && secret->has_ak_finalizer &&
			secret->identity && may_hold(s, secret->identity, o->name, act))
			clear = false;
		if (model_ak_identity(model_ak(o), name) &&
			kbs_sync_object_in(s->sync, KBS_REFVALUE, name, o->name, NULL) &&
			may_hold(s, name, o->name, act))
			clear = false;
	}
	return clear;
}

/* Find an AttestationKey with the same public key that was approved earlier for its Machine:
 * only the first one counts, because a token names one Machine. NULL: this key is the first. */
static const struct kobj *same_key(const struct state *s, const struct model_ak *ak)
{
	int64_t theirs, mine = model_ak_approved_us(ak);

	for (const struct kobj *o = k8s_cache_first(s->aks, 1, ak->spki_sha256); o;
		o = k8s_cache_next(s->aks, 1, o)) {
		const struct model_ak *other = model_ak(o);
		const struct model_machine *m =
			other->uuid ? state_machine_of_id(s, other->uuid) : NULL;

		if (o == &ak->obj || o->deleting || !other->approved_at || !m || m->obj.deleting ||
			state_ak_of_machine(s, m) != other)
			continue;
		theirs = model_ak_approved_us(other);
		if (theirs < mine || (theirs == mine && strcmp(o->name, ak->obj.name) < 0))
			return o;
	}
	return NULL;
}

/* Find out which identity this key, or its stale Secret, has in Trustee, and register for the
 * answers that the decision depends on. */
static void look_trustee(
	const struct state *s, const char *key, struct ak_look *l, struct ctl_act *act)
{
	bool stale = l->v.secret == CTL_AK_SECRET_STALE, has_place;
	const struct kobj *declared;

	l->v.revoked = true;
	l->v.observed = KBS_OBSERVED_NONE;
	l->v.others_clear = true;
	if (stale && l->secret->identity)
		memcpy(l->identity, l->secret->identity, strlen(l->secret->identity) + 1);
	else if (stale || !l->ak || !model_ak_identity(l->ak, l->identity))
		return;
	declared = kbs_sync_object_in(s->sync, KBS_REFVALUE, l->identity, key, &has_place);
	l->v.declared = declared && !stale && str_eq(declared->uid, l->ak->obj.uid);
	l->v.fresh = l->v.declared && declared == &l->ak->obj;
	l->no_place = l->v.declared && !has_place;
	l->v.observed = state_trustee_observed_key(s, l->identity, key);
	l->v.revoked = !declared && (l->v.observed == KBS_OBSERVED_NONE ||
					    state_trustee_withdrawn(s, l->identity, key));
	/* A declared identity needs no registration: on_sync() finds the key by it. */
	if (!declared && (stale || l->v.secret == CTL_AK_SECRET_OURS ||
				 l->v.authority == MODEL_AUTHORITY_RETIRED))
		ctl_act_wait(act, KBS_REFVALUE, l->identity);
}

/* Before the last trace of an identity goes, its revocation is recorded: a Trustee that is
 * restored from a backup holds it again. */
static void look_record(const struct ctl_kind *k, struct ak_look *l)
{
	const struct ctl_record *r = k->env->record;

	if (l->v.secret_held && l->v.secret_deleting && l->identity[0] &&
		l->v.observed != KBS_OBSERVED_NONE && ctl_record_is_wanted(r))
		l->v.recorded = ctl_record_state(r, MODEL_RECORD_VALUE, l->identity, 0);
}

static void ak_wants(const struct state *s, const char *ns, struct ak_look *l);

/* Look at the AttestationKey and the Secret of this name; either may be missing. An unreadable
 * object is left alone entirely: treating it as missing would revoke its identity. */
int ak_view_look(struct ctl_kind *k, const char *name, struct ctl_act *act, struct ctl_look *out)
{
	const struct state *s = k->state;
	const struct kobj *o = k8s_cache_find(s->aks, name);
	struct ak_look *l = (struct ak_look *)out;

	out->over = true;
	if (o && o->unreadable)
		return CTL_AK_NOTHING; /* unreadable is not absent: nothing is revoked */
	l->secret = state_secret(s, name);
	l->v.found = o != NULL;
	l->v.authority = state_cluster_authority(s);
	if (o) {
		out->o = o;
		l->ak = model_ak(o);
		out->have = l->ak->cond;
		l->v.deleting = o->deleting;
		l->v.confirmed = ctl_live_is(&act->self, o);
		look_approval(s, l);
		/* An unreadable Machine may be the one that it names. */
		if (!o->deleting && !l->v.machine && k8s_cache_unreadable(s->machines)) {
			out->recheck_ms = 0;
			return CTL_AK_NOTHING;
		}
	}
	look_secret(l, act);
	look_trustee(s, name, l, act);
	look_record(k, l);
	/* Without a stale Secret nothing of a deleted key is left that belongs to it. */
	out->over = !o && l->v.secret != CTL_AK_SECRET_STALE;
	if (o) {
		if (l->v.approved && l->v.usable) {
			l->same_key = same_key(s, l->ak);
			l->v.duplicate = l->same_key != NULL;
			l->v.others_clear = l->v.declared || others_clear(s, l, act);
		}
		ak_wants(s, k->env->ns, l);
		l->v.status_ok = kobj_cond_same(l->ak->cond, out->want, AK_N_CONDS, o->generation);
	}
	return ctl_ak_decide(&l->v);
}

/* ---- conditions */

static void want(
	struct ak_look *l, enum model_ak_cond c, enum model_ak_reason r, const char *message)
{
	bool good = r == AK_MACHINE_CREATED || r == AK_APPROVED_MANUALLY || r == AK_DELIVERED_OK;

	kobj_cond_want(&l->base.want[c], model_ak_cond_types[c],
		good ? KOBJ_COND_TRUE : KOBJ_COND_FALSE, model_ak_reason(r), "%s", message);
}

#define TEXT_OF(n)     #n
#define TEXT(n)        TEXT_OF(n)
#define TOO_MANY       TEXT(KBS_LIST_MAX)
#define HOW_TO_APPROVE "To approve it, set the annotation " MODEL_APPROVED_ANNOTATION "=true."

/* All four reasons end with the same advice: an administrator has to approve the key. */
static void add_bound_text(const struct ak_look *l, struct strbuf *s)
{
	const struct model_machine *m = l->machine;

	if (l->why == AK_WHY_HAS_KEY)
		strbuf_addf(s,
			"Machine %s is bound to another key, %s. Only an administrator can approve this key in its place. ",
			m->obj.name, l->current->obj.name);
	else if (l->why == AK_WHY_HAD_KEY)
		strbuf_addf(s,
			"Machine %s was bound to another key, with the SPKI SHA-256 %s, that is gone. Only an administrator can approve "
			"this key, %s, in its place. ",
			m->obj.name, m->bound_spki ? m->bound_spki : "unknown", l->ak->obj.name);
	else if (l->why == AK_WHY_RESTORED)
		strbuf_addf(s,
			"Machine %s was restored from a backup and may have had a key that is not in the backup. Only an administrator can approve a "
			"key for it. ",
			m->obj.name);
	else
		strbuf_addf(s,
			"Machine %s existed before this operator was installed and may have had a key. Only an administrator can approve a key for it. ",
			m->obj.name);
	strbuf_adds(s, HOW_TO_APPROVE);
}

/* Append the reason against an approval, with what to do, and return the condition's reason. */
static enum model_ak_reason why_text(const struct ak_look *l, struct strbuf *s)
{
	switch (l->why) {
	case AK_WHY_INVALID:
		strbuf_adds(s,
			"spec.publicKey cannot be verified, so this key is never approved. Accepted is one PEM block PUBLIC KEY with an RSA "
			"key of 2048 to 4096 bits and exponent 65537. Delete this AttestationKey.");
		return AK_INVALID_KEY;
	case AK_WHY_NO_MACHINE:
		strbuf_adds(s, l->ak->uuid
				       ? "Waiting for a Machine whose spec.id equals spec.uuid."
				       : "spec.uuid is not set, so the key belongs to no Machine.");
		return AK_REGISTRATION;
	case AK_WHY_NO_CLUSTER:
		strbuf_adds(s,
			"No TrustedExecutionCluster is served, so nothing is approved automatically. " HOW_TO_APPROVE);
		return AK_REGISTRATION;
	case AK_WHY_OTHER_OWNER:
		strbuf_adds(s, "The key belongs to another object. " HOW_TO_APPROVE);
		return AK_REGISTRATION;
	case AK_WHY_MANUAL:
		strbuf_adds(s,
			"In this cluster, an administrator has to approve each key. " HOW_TO_APPROVE);
		return AK_MANUAL_APPROVAL;
	case AK_WHY_YOUNG_MACHINE:
		strbuf_adds(s,
			"The key was registered before its Machine existed, so it may not come from the Machine's node. " HOW_TO_APPROVE);
		return AK_MANUAL_APPROVAL;
	case AK_WHY_DELETED_ID:
		strbuf_adds(s,
			"An earlier Machine with this ID was deleted, and its node registered again. " HOW_TO_APPROVE);
		return AK_MANUAL_APPROVAL;
	case AK_WHY_HAS_KEY:
	case AK_WHY_HAD_KEY:
	case AK_WHY_WAS_THERE:
	case AK_WHY_RESTORED:
		add_bound_text(l, s);
		return AK_MACHINE_HAS_KEY;
	case AK_WHY_NO_DISK_KEY:
		strbuf_addf(s,
			"Waiting for the disk key of Machine %s; see its condition KeyReady.",
			l->machine->obj.name);
		return AK_REGISTRATION;
	case AK_WHY_NOT:
		break;
	}
	strbuf_adds(s, "The key is being approved.");
	return AK_REGISTRATION;
}

/* An approval that was ignored is mentioned until an administrator sets it again. */
static void want_approved(const char *ns, struct ak_look *l)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	enum model_ak_reason r;

	if (l->v.approved) {
		if (l->ak->approved_by_admin)
			want(l, AK_APPROVED, AK_APPROVED_MANUALLY,
				"An administrator approved this key for its Machine.");
		else
			want(l, AK_APPROVED, AK_MACHINE_CREATED,
				"The Machine with this id exists and has no other key.");
		return;
	}
	if (l->v.inherited) { /* unchanged from the other operator, until it is bound */
		want(l, AK_APPROVED, AK_MACHINE_CREATED,
			"The key was approved before this operator took over.");
		return;
	}
	r = why_text(l, &text);
	if (l->ak->approval_ignored && !l->v.invalid)
		strbuf_addf(&text, " " AK_APPROVAL_IGNORED, l->ak->obj.name, ns);
	want(l, AK_APPROVED, r, strbuf_str(&text));
}

/* The first obstacle wins, in the order in which it can be removed. */
static void want_delivered(const struct state *s, struct ak_look *l)
{
	const struct ctl_ak_view *v = &l->v;
	char text[640];

	if (!v->approved && !v->inherited) {
		want(l, AK_DELIVERED, AK_NOT_APPROVED,
			"The key is not approved, so it is not delivered to Trustee.");
	} else if (v->authority == MODEL_AUTHORITY_RETIRED) {
		want(l, AK_DELIVERED, AK_NOT_AVAILABLE,
			"spec.authority is Retired: the key is no longer delivered.");
	} else if (!v->usable) {
		want(l, AK_DELIVERED, AK_INVALID_KEY,
			l->ak->spki_sha256
				? "spec.publicKey is not the key that was approved."
				: "spec.publicKey is not a public key that Trustee can verify (RSA, 2048 to 4096 bits).");
	} else if (l->secret && l->secret->obj.unreadable) {
		want(l, AK_DELIVERED, AK_CONFLICT,
			"The Secret with this key's name is larger than 2 MiB and cannot be read; reduce its size. A delivered key stays in Trustee.");
	} else if (v->secret == CTL_AK_SECRET_FOREIGN) {
		snprintf(text, sizeof(text),
			"Secret %.253s exists and does not belong to this key. The operator does not change it. Delete it if it is not needed, or register "
			"the key under another name.",
			l->ak->obj.name);
		want(l, AK_DELIVERED, AK_CONFLICT, text);
	} else if (v->duplicate) {
		snprintf(text, sizeof(text),
			"AttestationKey %.253s has the same public key and was approved earlier for its Machine. Delete the wrong one.",
			l->same_key->name);
		want(l, AK_DELIVERED, AK_CONFLICT, text);
	} else if (l->no_place) {
		want(l, AK_DELIVERED, AK_TOO_MANY_KEYS,
			"Trustee looks up this key by the first 1,440 bits of its modulus. " TOO_MANY
			" approved keys of older Machines start with the same bits, which is the maximum. Delete the forged ones: "
			"such keys never collide by accident.");
	} else if (v->declared &&
		   (v->observed == KBS_OBSERVED_PRESENT ||
			   (state_trustee_is_probing(s) &&
				   l->ak->cond[AK_DELIVERED].status == KOBJ_COND_TRUE))) {
		want(l, AK_DELIVERED, AK_DELIVERED_OK, "Every administered Trustee has the key.");
	} else {
		cleanup_strbuf struct strbuf why = STRBUF_INIT;

		snprintf(text, sizeof(text), "%s%.500s",
			v->secret == CTL_AK_SECRET_STALE || !v->others_clear
				? "Waiting until Trustee confirms that an earlier key is deleted. "
				: "",
			ctl_trustee_lacking(s->sync, KBS_REFVALUE, l->identity, &why));
		want(l, AK_DELIVERED, AK_NOT_AVAILABLE, text);
	}
}

static void ak_wants(const struct state *s, const char *ns, struct ak_look *l)
{
	want_approved(ns, l);
	want_delivered(s, l);
}
