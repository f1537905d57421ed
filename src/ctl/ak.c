/* SPDX-License-Identifier: MIT */
/*
 * AttestationKey: look (read the caches), decide (pure), the conditions and the acts. An identity is declared
 * only for a live approved key, and only once its Secret has our finalizer: so an object in the API
 * remembers everything that Trustee may hold.
 *
 * The life of a key: BIND (the mark on the Machine), APPROVE (owner and marks of the key),
 * CREATE_SECRET, DECLARE. The end: the AttestationKey disappears without a finalizer, its Secret is
 * found STALE; REVOKE, wait for every Trustee, DELETE_SECRET, RECORD, DROP_SECRET_FINALIZER.
 *
 * Binding is one merge patch of the Machine with the resourceVersion
 * that was decided on, so that only one of two keys wins. A second patch sets owner and marks of
 * the key and removes the administrator's annotation. Secrets are created, get and lose a
 * finalizer, and are deleted; their data is never written.
 *
 * A key of the queue is the name of
 * an AttestationKey, of a Secret, or of both: a deleted AttestationKey leaves its Secret.
 */
#include "config.h"

#include "tec/ctl/ak.h"

#include <string.h>

#include "ctl_internal.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/ctl/trustee.h"
#include "tec/model/mark.h"

/* printf: the key's name, the namespace. */
#define AK_APPROVAL_IGNORED                                                                         \
	"approved=true was set when the key was created and does not count. Set it again: kubectl " \
	"annotate attestationkey %s -n %s " MODEL_APPROVED_ANNOTATION "=true"

/* Why a key is not approved automatically. */
enum ak_why {
	AK_WHY_NOT, /* it may be approved */
	AK_WHY_INVALID,
	AK_WHY_NO_MACHINE,
	AK_WHY_NO_CLUSTER,
	AK_WHY_SPEC_LOST, /* the cluster's spec lost fields, perhaps restrictions */
	AK_WHY_OTHER_OWNER,
	AK_WHY_MANUAL,
	AK_WHY_YOUNG_MACHINE,
	AK_WHY_DELETED_ID, /* an earlier Machine with this id was deleted */
	AK_WHY_HAS_KEY,
	AK_WHY_HAD_KEY,     /* the Machine was bound to another key, which is gone */
	AK_WHY_WAS_THERE,   /* it may have been, before this operator was installed */
	AK_WHY_RESTORED,    /* it may have been, after the backup that it was restored from */
	AK_WHY_NO_DISK_KEY, /* the Machine has no disk key yet that could be delivered */
};

/* Borrowed from the caches, valid for one step. */
struct ak_look {
	struct ctl_look base;
	struct ctl_ak_view v;
	const struct model_ak *ak;           /* NULL: gone */
	const struct model_machine *machine; /* the live Machine with the ID; NULL: none */
	const struct model_ak *current;      /* the key that the Machine is bound to */
	const struct kobj
		*same_key; /* another Machine's key with the same public key, approved earlier */
	bool no_place;     /* declared, but the list of its name is full */
	char identity[RATS_IDENTITY_NAME_LEN +
		      1]; /* name of the identity to declare or revoke; "": none */
	enum ak_why why;
};

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
	if (!caches_trustee_gone(v->observed))
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
	if (!caches_trustee_gone(v->observed) || !v->secret_held)
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

/* Clusters have no index by UID; there are very few. */
static void drop_if_cluster(void *arg, const struct kobj *o)
{
	const char **uid = arg;

	if (str_eq(o->uid, *uid))
		*uid = NULL;
}

/* Return the reason why the Machine's history forbids an automatic approval of a usable key. */
static enum ak_why why_bound(const struct caches *s, const struct ak_look *l)
{
	const struct model_machine *m = l->machine;

	if (l->current && l->current != l->ak)
		return AK_WHY_HAS_KEY;
	if (m->bound_at && !str_eq(m->bound_key, l->ak->obj.uid))
		return AK_WHY_HAD_KEY;
	if (!m->bound_at && !l->v.inherited && caches_adoption_cutoff_is_after(s, &m->obj))
		return AK_WHY_WAS_THERE;
	if (!m->bound_at && !l->v.inherited && caches_adoption_cutoff_was_restored(s, &m->obj))
		return AK_WHY_RESTORED;
	return AK_WHY_NOT;
}

/* Return the first reason against an automatic approval, which the condition shows. */
static enum ak_why why_not(const struct caches *s, const struct ak_look *l)
{
	const struct model_cluster *policy = caches_cluster_policy(s);
	const struct model_record_entry *deleted;
	const char *owner = l->ak->owner_uid;
	enum ak_why why;

	if (l->v.invalid)
		return AK_WHY_INVALID;
	if (!l->machine)
		return AK_WHY_NO_MACHINE;
	/* A key of another Machine is deleted with that Machine and is not taken from it. */
	k8s_cache_each(s->clusters, drop_if_cluster, &owner);
	if (owner && !model_ak_is_of(l->ak, l->machine->obj.uid))
		return AK_WHY_OTHER_OWNER;
	if (!policy)
		return caches_cluster(s) ? AK_WHY_SPEC_LOST : AK_WHY_NO_CLUSTER;
	if (l->v.usable && (why = why_bound(s, l)) != AK_WHY_NOT)
		return why;
	if (l->v.inherited)
		return l->v.bindable ? AK_WHY_NOT : AK_WHY_NO_DISK_KEY;
	if (policy->approval != MODEL_APPROVAL_AUTOMATIC)
		return AK_WHY_MANUAL;
	if (l->ak->by_listener && !model_ak_saw(l->ak, &l->machine->obj))
		return AK_WHY_YOUNG_MACHINE;
	/* The node of a deleted Machine registered again, and an administrator should know. */
	deleted = l->machine->by_listener ? caches_record_of_id(s, l->machine->id) : NULL;
	if (deleted && l->machine->obj.created_s >= deleted->at_s)
		return AK_WHY_DELETED_ID;
	return l->v.usable && !l->v.bindable ? AK_WHY_NO_DISK_KEY : AK_WHY_NOT;
}

/* Compare the key with the binding of its Machine. The binding decides; owner and marks of the
 * key only follow it. */
static void look_bound(const struct caches *s, struct ak_look *l, const struct model_machine *m)
{
	const struct model_ak *ak = l->ak;
	enum caches_luks luks = caches_machine_luks(s, m);
	bool named = str_eq(m->bound_key, ak->obj.uid);
	bool owned = model_ak_is_of(ak, m->obj.uid);

	l->v.usable = l->v.verifiable && (!named || str_eq(m->bound_spki, ak->spki_sha256));
	l->v.approved = named || (!l->v.verifiable && !l->v.invalid && owned);
	l->v.stamped = owned && ak->approved_at;
	/* Binding marks its disk key as delivered, which requires that the key exists: otherwise
	 * the Machine would report a lost key next. */
	l->v.bindable =
		model_machine_delivered(m) ||
		(luks == CACHES_LUKS_OK && caches_machine_announces(m, caches_secret(s, m->id))) ||
		(luks == CACHES_LUKS_ABSENT && caches_machine_lost_key(s, m));
	l->v.inherited = !named && caches_ak_is_inherited(s, ak, m) && l->current == ak;
	l->v.left_over =
		!l->v.approved && !l->v.inherited && (ak->approved_at || (m->bound_at && owned));
}

/* `judged` is how an administrator's annotation is told from one that came with the object:
 * whoever creates keys could approve them otherwise. */
static void look_approval(const struct caches *s, struct ak_look *l)
{
	const struct model_ak *ak = l->ak;
	const struct model_machine *m = ak->uuid ? caches_machine_of_id(s, ak->uuid) : NULL;
	bool judged = ak->cond[AK_APPROVED].status != KOBJ_COND_ABSENT;

	l->v.verifiable = l->v.usable = ak->spki_sha256 != NULL;
	l->v.withheld = caches_cluster_withholds(s, ak->withheld);
	l->v.invalid = !l->v.verifiable && !caches_adoption_cutoff_is_after(s, &ak->obj);
	l->v.annotated = ak->approve_wanted && judged;
	l->v.ignored = ak->approve_wanted && !judged;
	if (m && m->id_valid && !m->obj.deleting) {
		l->machine = m;
		l->current = caches_ak_of_machine(s, m);
		look_bound(s, l, m);
	}
	l->v.machine = l->machine != NULL;
	l->why = why_not(s, l);
	l->v.allowed = l->why == AK_WHY_NOT;
	l->v.overdue = ak->by_listener && !l->v.approved && !l->v.annotated &&
		       ctl_look_is_overdue(&l->base, caches_cluster_policy(s), ak->obj.created_s);
}

/* ---- look: Secret and Trustee */

/* A Secret of another shape cannot be ours: it is released only while it is being deleted. */
enum ctl_ak_secret ctl_ak_secret_of(const struct model_ak *ak, const struct model_secret *secret)
{
	if (!secret)
		return CTL_AK_SECRET_ABSENT;
	if (ak && secret->shape == MODEL_SECRET_AK && secret->n_owners == 1 &&
		str_eq(secret->owner_uid, ak->obj.uid))
		return ak->public_hash == secret->public_hash ? CTL_AK_SECRET_OURS
							      : CTL_AK_SECRET_FOREIGN;
	return secret->has_ak_finalizer &&
			       (secret->shape == MODEL_SECRET_AK || secret->obj.deleting)
		       ? CTL_AK_SECRET_STALE
		       : CTL_AK_SECRET_FOREIGN;
}

/* Tell whether a Trustee may still hold this key under that name; if so, wait for its answer.
 * ak: the name of the AttestationKey. */
static bool may_hold(
	const struct caches *s, const char *identity, const char *ak, struct ctl_act *act)
{
	if (caches_trustee_gone(caches_trustee_observed_key(s, identity, ak)))
		return false;
	ctl_act_wait(act, KBS_REFVALUE, identity);
	return true;
}

/* Tell whether every other key of the Machine is gone from Trustee. Declared identities and
 * Secrets with our finalizer are what remembers them. */
static bool others_clear(const struct caches *s, struct ak_look *l, struct ctl_act *act)
{
	char name[RATS_IDENTITY_NAME_LEN + 1];
	bool clear = true;

	for (const struct kobj *o = k8s_cache_first(s->aks, 0, l->ak->uuid); o;
		o = k8s_cache_next(s->aks, 0, o)) {
		const struct model_secret *secret = caches_secret(s, o->name);

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
static const struct kobj *same_key(const struct caches *s, const struct model_ak *ak)
{
	int64_t theirs, mine = model_ak_approved_us(ak);

	for (const struct kobj *o = k8s_cache_first(s->aks, 1, ak->spki_sha256); o;
		o = k8s_cache_next(s->aks, 1, o)) {
		const struct model_ak *other = model_ak(o);
		const struct model_machine *m =
			other->uuid ? caches_machine_of_id(s, other->uuid) : NULL;

		if (o == &ak->obj || o->deleting || !other->approved_at || !m || m->obj.deleting ||
			caches_ak_of_machine(s, m) != other)
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
	const struct caches *s, const char *key, struct ak_look *l, struct ctl_act *act)
{
	bool stale = l->v.secret == CTL_AK_SECRET_STALE, has_place;
	const struct kobj *declared;

	l->v.revoked = true;
	l->v.observed = KBS_OBSERVED_NONE;
	l->v.others_clear = true;
	if (stale && l->base.secret->identity)
		memcpy(l->identity, l->base.secret->identity, strlen(l->base.secret->identity) + 1);
	else if (stale || !l->ak || !model_ak_identity(l->ak, l->identity))
		return;
	declared = kbs_sync_object_in(s->sync, KBS_REFVALUE, l->identity, key, &has_place);
	l->v.declared = declared && !stale && str_eq(declared->uid, l->ak->obj.uid);
	l->v.fresh = l->v.declared && declared == &l->ak->obj;
	l->no_place = l->v.declared && !has_place;
	l->v.observed = caches_trustee_observed_key(s, l->identity, key);
	l->v.revoked = !declared && (l->v.observed == KBS_OBSERVED_NONE ||
					    caches_trustee_withdrawn(s, l->identity, key));
	/* A declared identity needs no registration: on_sync() finds the key by it. */
	if (!declared && (stale || l->v.secret == CTL_AK_SECRET_OURS ||
				 l->v.authority == MODEL_AUTHORITY_RETIRED))
		ctl_act_wait(act, KBS_REFVALUE, l->identity);
}

/* ---- conditions */

#define WANT(l, c, r, ...)                                                                         \
	kobj_cond_want(&(l)->base.want[c], model_ak_cond_types[c],                                 \
		is_good(r) ? KOBJ_COND_TRUE : KOBJ_COND_FALSE, model_ak_reason(r), __VA_ARGS__)

static bool is_good(enum model_ak_reason r)
{
	return r == AK_MACHINE_CREATED || r == AK_APPROVED_MANUALLY || r == AK_DELIVERED_OK;
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
	case AK_WHY_SPEC_LOST:
		strbuf_adds(s,
			"spec of the TrustedExecutionCluster lost fields, so nothing is approved automatically: see its condition Installed. " HOW_TO_APPROVE);
		return AK_CONFLICT;
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
			WANT(l, AK_APPROVED, AK_APPROVED_MANUALLY,
				"An administrator approved this key for its Machine.");
		else
			WANT(l, AK_APPROVED, AK_MACHINE_CREATED,
				"The Machine with this id exists and has no other key.");
		return;
	}
	if (l->v.inherited) { /* unchanged from the other operator, until it is bound */
		WANT(l, AK_APPROVED, AK_MACHINE_CREATED,
			"The key was approved before this operator took over.");
		return;
	}
	r = why_text(l, &text);
	if (l->ak->approval_ignored && !l->v.invalid)
		strbuf_addf(&text, " " AK_APPROVAL_IGNORED, l->ak->obj.name, ns);
	WANT(l, AK_APPROVED, r, "%s", strbuf_str(&text));
}

/* The first obstacle wins, in the order in which it can be removed. */
static void want_delivered(const struct caches *s, struct ak_look *l)
{
	const struct ctl_ak_view *v = &l->v;

	if (!v->approved && !v->inherited) {
		WANT(l, AK_DELIVERED, AK_NOT_APPROVED,
			"The key is not approved, so it is not delivered to Trustee.");
	} else if (v->authority == MODEL_AUTHORITY_RETIRED) {
		WANT(l, AK_DELIVERED, AK_NOT_AVAILABLE,
			"spec.authority is Retired: the key is no longer delivered.");
	} else if (!v->usable) {
		WANT(l, AK_DELIVERED, AK_INVALID_KEY,
			l->ak->spki_sha256
				? "spec.publicKey is not the key that was approved."
				: "spec.publicKey is not a public key that Trustee can verify (RSA, 2048 to 4096 bits).");
	} else if (l->base.secret && l->base.secret->obj.unreadable) {
		WANT(l, AK_DELIVERED, AK_CONFLICT,
			"The Secret with this key's name is larger than 2 MiB and cannot be read; reduce its size. A delivered key stays in Trustee.");
	} else if (v->secret == CTL_AK_SECRET_FOREIGN) {
		WANT(l, AK_DELIVERED, AK_CONFLICT,
			"Secret %.253s exists and does not belong to this key. The operator does not change it. Delete it if it is not needed, or register "
			"the key under another name.",
			l->ak->obj.name);
	} else if (v->duplicate) {
		WANT(l, AK_DELIVERED, AK_CONFLICT,
			"AttestationKey %.253s has the same public key and was approved earlier for its Machine. Delete the wrong one.",
			l->same_key->name);
	} else if (l->no_place) {
		WANT(l, AK_DELIVERED, AK_TOO_MANY_KEYS,
			"Trustee looks up this key by the first 1,440 bits of its modulus. " TOO_MANY
			" approved keys of older Machines start with the same bits, which is the maximum. Delete the forged ones: "
			"such keys never collide by accident.");
	} else if (v->declared &&
		   (v->observed == KBS_OBSERVED_PRESENT ||
			   (caches_trustee_is_catching_up(s) &&
				   l->ak->cond[AK_DELIVERED].status == KOBJ_COND_TRUE))) {
		WANT(l, AK_DELIVERED, AK_DELIVERED_OK, "Every administered Trustee has the key.");
	} else if (l->base.refused) {
		WANT(l, AK_DELIVERED, AK_NOT_AVAILABLE, "%s", l->base.refused);
	} else {
		cleanup_strbuf struct strbuf why = STRBUF_INIT;

		WANT(l, AK_DELIVERED, AK_NOT_AVAILABLE, "%s%.500s",
			v->secret == CTL_AK_SECRET_STALE || !v->others_clear
				? "Waiting until Trustee confirms that an earlier key is deleted. "
				: "",
			ctl_trustee_lacking(
				s->sync, caches_cluster(s), KBS_REFVALUE, l->identity, &why));
	}
}

/* Look at the AttestationKey and the Secret of this name; either may be missing. An unreadable
 * object is left alone entirely: treating it as missing would revoke its identity. */
static int look(struct ctl_kind *k, const char *name, struct ctl_act *act, struct ctl_look *out)
{
	const struct caches *s = k->caches;
	const struct kobj *o = k8s_cache_find(s->aks, name);
	struct ak_look *l = (struct ak_look *)out;

	out->over = true;
	if (o && o->unreadable)
		return CTL_AK_NOTHING; /* unreadable is not absent: nothing is revoked */
	l->base.secret_name = name;
	l->base.secret = caches_secret(s, name);
	l->v.found = o != NULL;
	l->v.authority = caches_cluster_authority(s);
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
	l->v.secret = ctl_ak_secret_of(l->ak, out->secret);
	l->v.must_read = !out->secret && act->must_read;
	if (out->secret) {
		l->v.secret_held = out->secret->has_ak_finalizer;
		l->v.secret_deleting = out->secret->obj.deleting;
		l->v.secret_live = ctl_live_is(&act->secret, &out->secret->obj);
	}
	look_trustee(s, name, l, act);
	/* Before the last trace of an identity goes, its revocation is recorded: a Trustee that is
	 * restored from a backup holds it again. */
	if (l->v.secret_held && l->v.secret_deleting && l->identity[0] &&
		l->v.observed != KBS_OBSERVED_NONE && ctl_record_is_wanted(k->env->record))
		l->v.recorded =
			ctl_record_state(k->env->record, MODEL_RECORD_VALUE, l->identity, 0);
	/* Without a stale Secret nothing of a deleted key is left that belongs to it. */
	out->over = !o && l->v.secret != CTL_AK_SECRET_STALE;
	if (o) {
		if (l->v.approved && l->v.usable) {
			l->same_key = same_key(s, l->ak);
			l->v.duplicate = l->same_key != NULL;
			l->v.others_clear = l->v.declared || others_clear(s, l, act);
		}
		want_approved(k->env->ns, l);
		want_delivered(s, l);
		l->v.status_ok = kobj_cond_same(l->ak->cond, out->want, AK_N_CONDS, o->generation);
	}
	return ctl_ak_decide(&l->v);
}

/* ---- acts */

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
	if (kbs_sync_declare_in(k->caches->sync, KBS_REFVALUE, l->identity, &l->ak->obj,
		    l->machine->obj.created_s, render_identity))
		log_debug(&lc, "identity declared", "machine=%s", log_esc(l->ak->uuid));
}

/* Withdraw the identity of this key, or of the stale Secret that is left of a deleted one. */
static void revoke(struct ctl_kind *k, const struct ctl_look *look)
{
	const struct ak_look *l = (const struct ak_look *)look;
	const struct kobj *o = l->ak ? &l->ak->obj : &l->base.secret->obj;
	struct log_ctx lc = {"AttestationKey", k->env->ns, o->name, o->uid};

	if (kbs_sync_withdraw(k->caches->sync, KBS_REFVALUE, l->identity, o->name))
		log_info(&lc, "identity is being revoked", NULL);
}

/* A restored backup of a Trustee would hold the identity again. */
static void record(struct ctl_kind *k, const struct ctl_look *look)
{
	const struct ak_look *l = (const struct ak_look *)look;

	ctl_record_add(k->env->record, MODEL_RECORD_VALUE, l->identity, clock_wall_s(), k->runner,
		l->base.secret->obj.name);
}

/* ---- how acts end */

/* Post an Event for each condition that changed, except for routine reasons. */
static void tell(struct ctl_kind *k, struct ctl_act *a, const struct kobj *o)
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

/* Take the answer about the Machine; report an ignored approval once it is removed. */
static bool ended(
	struct ctl_kind *k, struct ctl_act *a, const struct err *err, const struct k8s_result *r)
{
	const struct kobj *o = k8s_cache_find(k->caches->aks, a->name);

	if (err_is_set(err))
		return false;
	if (a->doing == CTL_AK_IGNORE && o)
		k8s_events_post(k->env->events, &kobj_ak, o, K8S_EVENT_WARNING, "ApprovalIgnored",
			"Approve", AK_APPROVAL_IGNORED ".", a->name, k->env->ns);
	if (a->doing == CTL_AK_BIND && !r->cached)
		ctl_take_answer(k->caches->machines, r->object, false);
	return false;
}

/* ---- how they start */

/* Return a time later than every other approval of this Machine, even if the wall clock went
 * back: the latest approval is the one that counts. */
static int64_t next_approval_us(const struct caches *s, const struct ak_look *l)
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
	const struct model_secret *s = caches_secret(k->caches, m->id);
	struct json_object *meta, *marks = json_obj();
	cleanup_json struct json_object *patch = ctl_patch_of(&m->obj, &meta);
	cleanup_free char *key = xasprintf("%s %s", l->ak->obj.uid, l->ak->spki_sha256);
	char now[CLOCK_RFC3339_LEN], hex[SHA256_HEX_LEN + 1];
	struct op *op;

	clock_format(clock_wall_s(), now);
	ctl_add_mark(marks, &m->obj, MODEL_BOUND_KEY_ANNOTATION, key);
	if (!m->bound_at)
		ctl_add_mark(marks, &m->obj, MODEL_BOUND_AT_ANNOTATION, now);
	if (!model_machine_delivered(m) && caches_machine_announces(m, s))
		ctl_add_mark(marks, &m->obj, MODEL_KEY_SHA256_ANNOTATION,
			model_secret_key_sha256(s, hex));
	json_add(meta, "annotations", marks);
	op = ctl_kind_patch(k, a, &kobj_machine, m->obj.name, patch);
	k8s_call_unless_cached(op, k->caches->machines);
	return op;
}

/* Owner, time and origin of the approval. The owner makes the garbage collector delete the key
 * with its Machine. */
static void add_approval(const struct caches *s, const struct ak_look *l, struct json_object *meta,
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
		add_approval(k->caches, l, meta, marks);
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

/* Finalizers are one list, which a merge patch replaces: hence the resourceVersion and a live
 * copy. ctl/follow uses this and the next, too. */
struct op *ctl_ak_start_finalizer(
	struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *l, int d)
{
	struct json_object *meta;
	cleanup_json struct json_object *patch = ctl_patch_new(l->secret->obj.rv, &meta);

	json_add(meta, "finalizers",
		ctl_live_finalizers(
			&a->secret, MODEL_AK_SECRET_FINALIZER, !l->secret->has_ak_finalizer));
	return ctl_kind_patch(k, a, &kobj_secret, a->name, patch);
}

/* The Secret is rendered with its finalizer, so there is no moment in which Trustee could have
 * the key and nothing would remember it. */
struct op *ctl_ak_start_secret(
	struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *l, int d)
{
	cleanup_strbuf struct strbuf key = STRBUF_INIT;
	cleanup_json struct json_object *o = NULL;

	model_ak_public_key(model_ak(l->o), &key);
	o = model_ak_secret_json(a->name, l->o->uid, strbuf_str(&key));
	return ctl_kind_create(k, a, &kobj_secret, o);
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

static const struct ctl_do acts[CTL_AK_N_DO] = {
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
		.flags = CTL_DO_SECRET | CTL_DO_READS | CTL_DO_GONE_IS_FINE | CTL_DO_FROZEN |
			 CTL_DO_FOLLOWING | CTL_DO_RETIRED,
		.start = ctl_kind_start_read_secret},
	[CTL_AK_CREATE_SECRET] = {"create the Secret", .flags = CTL_DO_SECRET | CTL_DO_CREATES,
		.start = ctl_ak_start_secret},
	[CTL_AK_ADD_SECRET_FINALIZER] = {"add the Secret's finalizer", .flags = CTL_DO_SECRET,
		.start = ctl_ak_start_finalizer},
	[CTL_AK_DECLARE] = {"declare the identity", .flags = CTL_DO_FROZEN | CTL_DO_FOLLOWING,
		.memory = declare},
	[CTL_AK_REVOKE] = {"revoke the identity", .flags = CTL_DO_RETIRED, .memory = revoke},
	[CTL_AK_RECORD] = {"record the revocation", .memory = record},
	[CTL_AK_DELETE_SECRET] = {"delete the Secret", .flags = CTL_DO_SECRET | CTL_DO_GONE_IS_FINE,
		.start = ctl_kind_start_delete_secret},
	[CTL_AK_DROP_SECRET_FINALIZER] = {"remove the Secret's finalizer",
		"attestation key released, no Trustee holds it",
		CTL_DO_SECRET | CTL_DO_GONE_IS_FINE | CTL_DO_RETIRED,
		.start = ctl_ak_start_finalizer},
	[CTL_AK_EXPIRE] = {"delete the unapproved key",
		"attestation key deleted, it was not approved in time", CTL_DO_GONE_IS_FINE,
		.start = ctl_kind_start_expire},
	[CTL_AK_APPLY_STATUS] = {"write the status",
		.flags = CTL_DO_ANSWERS_SELF | CTL_DO_FROZEN | CTL_DO_RETIRED,
		.start = apply_status},
};

/* ---- which keys a change concerns */

/* All keys that name one Machine compete for it. */
static void wake_uuid(struct ctl_kind *k, const char *uuid)
{
	ctl_kind_wake_index(k, k->caches->aks, 0, uuid);
}

/* Withdraw the identity of a deleted key at once. If the operator is killed before, the Secret
 * with its finalizer leads to the same revocation. */
static void on_gone(struct ctl_kind *k, const struct model_ak *was)
{
	char name[RATS_IDENTITY_NAME_LEN + 1];
	const struct kobj *declared;

	if (!k->on || !model_ak_identity(was, name))
		return;
	declared = kbs_sync_object_in(k->caches->sync, KBS_REFVALUE, name, was->obj.name, NULL);
	if (declared && str_eq(declared->uid, was->obj.uid))
		kbs_sync_withdraw(k->caches->sync, KBS_REFVALUE, name, was->obj.name);
	else if (!kbs_sync_object(k->caches->sync, KBS_REFVALUE, name) &&
		 caches_trustee_gone(caches_trustee_observed(k->caches, KBS_REFVALUE, name)))
		kbs_sync_forget(k->caches->sync, KBS_REFVALUE, name);
}

/* Wake the key itself, and, when something changed that its competitors depend on, the other
 * keys of the Machine and those with the same public key. */
static void map_ak(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_kind *k = self;
	const struct model_ak *a = was ? model_ak(was) : NULL, *b = now ? model_ak(now) : NULL;

	ctl_runner_wake(k->runner, was ? was->name : now->name);
	if (a && (!b || !str_eq(was->uid, now->uid)))
		on_gone(k, a);
	/* The other keys of the Machine depend on these members only. */
	if (a && b && str_eq(was->uid, now->uid) && str_eq(a->owner_uid, b->owner_uid) &&
		a->n_owners == b->n_owners && str_eq(a->approved_at, b->approved_at) &&
		a->cond[AK_APPROVED].status == b->cond[AK_APPROVED].status &&
		str_eq(a->uuid, b->uuid) && was->deleting == now->deleting)
		return;
	wake_uuid(k, a ? a->uuid : NULL);
	wake_uuid(k, b ? b->uuid : NULL);
	ctl_kind_wake_index(k, k->caches->aks, 1, a ? a->spki_sha256 : b->spki_sha256);
}

/* A name may be that of a key's own Secret, or of a disk key (which is the UUID of a Machine). */
static void map_secret(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_kind *k = self;
	const char *name = was ? was->name : now->name;
	const struct kobj *ak = k8s_cache_find(k->caches->aks, name);
	const char *identity;
	bool held = (was && model_secret(was)->has_ak_finalizer) ||
		    (now && model_secret(now)->has_ak_finalizer);

	if (ak || held)
		ctl_runner_wake(k->runner, name);
	if (!was || !now || was->deleting != now->deleting || was->unreadable != now->unreadable)
		wake_uuid(k, name); /* a disk key: binding waits for it */
	if (ak && (!now || (was && was->unreadable)))
		wake_uuid(k, model_ak(ak)->uuid); /* a later key may wait until this Secret
						     is gone */
	/* This Secret was the last trace of the identity, and Trustee confirmed the deletion. */
	if (k->on && !ak && !now && (identity = model_secret(was)->identity) &&
		kbs_sync_is_revoked(k->caches->sync, KBS_REFVALUE, identity) &&
		caches_trustee_gone(caches_trustee_observed(k->caches, KBS_REFVALUE, identity)))
		kbs_sync_forget(k->caches->sync, KBS_REFVALUE, identity);
}

/* Wake the keys of a Machine when something changes that approval depends on: ID, binding, disk
 * key. */
static void map_machine(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_kind *k = self;
	const struct model_machine *a = was ? model_machine(was) : NULL,
				   *b = now ? model_machine(now) : NULL;

	if (a && b && str_eq(was->uid, now->uid) && was->deleting == now->deleting &&
		str_eq(a->id, b->id) && str_eq(a->announced, b->announced) &&
		str_eq(a->bound_at, b->bound_at) && str_eq(a->bound_key, b->bound_key) &&
		str_eq(a->bound_spki, b->bound_spki) &&
		model_machine_delivered(a) == model_machine_delivered(b))
		return;
	wake_uuid(k, a ? a->id : NULL);
	wake_uuid(k, b ? b->id : NULL);
	ctl_kind_wake_index(k, k->caches->aks, 2, was ? was->uid : now->uid);
}

/* Wake the keys whose identity changed in a Trustee. name NULL: anything may have changed. */
static void on_sync(struct ctl_kind *k, enum kbs_kind kind, const char *name)
{
	const struct kobj *declared;

	if (kind != KBS_REFVALUE)
		return;
	if (!name) {
		ctl_kind_wake_all(k);
		return;
	}
	if (caches_trustee_is_filling(k->caches, kind, name) || !rats_is_identity_name(name))
		return;
	/* The keys in the list, and the first one that waits for a place. */
	for (unsigned i = 0; i <= KBS_LIST_MAX; i++) {
		declared = kbs_sync_object_at(k->caches->sync, kind, name, i);
		if (!declared)
			return;
		ctl_runner_wake(k->runner, declared->name);
	}
}

struct ctl_kind *ctl_ak_new(const struct ctl_env *env)
{
	static const struct ctl_watch watches[] = {
		{CACHES_AKS, map_ak},
		{CACHES_SECRETS, map_secret},
		{CACHES_MACHINES, map_machine},
		{CACHES_CLUSTERS, ctl_kind_map_cluster},
		{.map = NULL},
	};
	static const struct ctl_kind_conf conf = {
		.name = "ak",
		.of = CACHES_AKS,
		.size = sizeof(struct ctl_kind),
		.look_size = sizeof(struct ak_look),
		.n_conds = AK_N_CONDS,
		.acts = acts,
		.status = CTL_AK_APPLY_STATUS,
		.knows_cached = true,
		.watches = watches,
		.look = look,
		.ended = ended,
		.tell = tell,
		.on_sync = on_sync,
	};

	return ctl_kind_new(env, &conf);
}
