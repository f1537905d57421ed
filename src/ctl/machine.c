/* SPDX-License-Identifier: MIT */
/*
 * Machine: look (read the caches), decide (pure), the conditions and the acts. decide keeps the promise that
 * matters: a key is announced only where none was ever delivered, only an announced key is
 * delivered, and an object is released only when no Trustee can still hold its key.
 *
 * The life of a key: ANNOUNCE (finalizer and hash on the Machine), CREATE_SECRET, MARK_DELIVERED,
 * DECLARE. The end, after the deletion of the Machine: REVOKE, wait for every Trustee, RECORD,
 * DROP_FINALIZER. The operator may be killed after any of these steps; the next look finds where
 * to continue.
 *
 * An act is one request, or a change of memory only. The bytes of a new key stay
 * in the secret arena from before their announcement until their create is answered, and go from
 * there into the text of the request (an arena buffer, too). The Machine is written by merge
 * patches with the UID and the resourceVersion that decide saw: an apply would remove what another
 * operator wrote in the meantime. One thing is done outside a step: what a Machine declared is
 * withdrawn when its object disappears, because no step can do that any more.
 */
#include "config.h"

#include "tec/ctl/machine.h"

#include <string.h>

#include "ctl_internal.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/uuid.h"
#include "tec/ctl/trustee.h"
#include "tec/model/mark.h"

/* Borrowed from the caches, valid for one step. */
struct machine_look {
	struct ctl_look base;
	struct ctl_machine_view v;
	const struct model_machine *m;
	const struct model_machine *id_owner; /* the Machine to which this ID belongs */
	const struct model_ak *ak;            /* the bound key; NULL: none */
	char path[RATS_RESOURCE_PATH_MAX];    /* in Trustee; "": the ID is not a UUID */
	bool owns_path;                       /* the resource at path belongs to this Machine */
	struct ctl_machine_notes notes;       /* to be recorded before the finalizer is removed */
	const char *problem;                  /* why recording fails; NULL: it does not */
	enum kbs_observed observed_identity;  /* of ak */
	/* An identity that some Trustee has not confirmed yet; "": none. */
	char lacking[RATS_IDENTITY_NAME_LEN + 1];
};

/* ---- decide */

/* Revoke, wait for every Trustee, record, release: in this order, so that a kill loses nothing. */
static enum ctl_machine_do decide_deleting(const struct ctl_machine_view *v)
{
	bool has_path = v->id_ok && v->owns_id; /* a duplicate does not touch the other's key */

	if (!v->has_finalizer)
		return CTL_MACHINE_NOTHING; /* only finalizers of others are left */
	if (!v->revoked)
		return CTL_MACHINE_REVOKE;
	if ((has_path && !caches_trustee_gone(v->observed_key)) ||
		!caches_trustee_gone(v->observed_ids)) /* unknown counts as present */
		return v->status_ok ? CTL_MACHINE_NOTHING : CTL_MACHINE_APPLY_STATUS;
	switch (v->recorded) {
	case CTL_RECORD_MISSING:
		return CTL_MACHINE_RECORD;
	case CTL_RECORD_WAITS: /* the write is about to end and wakes this key */
		return CTL_MACHINE_NOTHING;
	case CTL_RECORD_FAILS:
		return v->status_ok ? CTL_MACHINE_NOTHING : CTL_MACHINE_APPLY_STATUS;
	case CTL_RECORDED:
	case CTL_RECORDED_N:
		break;
	}
	return CTL_MACHINE_DROP_FINALIZER;
}

/* Revoke what Trustee holds and remove the finalizer; the Machine and its Secret with the disk key
 * stay. */
static enum ctl_machine_do decide_retired(const struct ctl_machine_view *v)
{
	if (!v->revoked)
		return CTL_MACHINE_REVOKE;
	if (v->has_finalizer && caches_trustee_gone(v->observed_key) &&
		caches_trustee_gone(v->observed_ids)) /* unknown counts as present */
		return CTL_MACHINE_DROP_FINALIZER;
	return v->status_ok ? CTL_MACHINE_NOTHING : CTL_MACHINE_APPLY_STATUS;
}

/* Decide about the disk key by the state of its Secret. A key that was delivered is never
 * replaced: the disk may be encrypted with it. */
static enum ctl_machine_do decide_key(const struct ctl_machine_view *v)
{
	switch (v->luks) {
	case CACHES_LUKS_ABSENT:
		if (v->must_read) /* the API has a Secret that the cache does not show */
			return CTL_MACHINE_READ_SECRET;
		if (v->delivered)
			return v->can_restore ? CTL_MACHINE_RESTORE_SECRET
					      : CTL_MACHINE_NOTHING; /* else KeyLost */
		if (v->lost)
			return CTL_MACHINE_NOTHING;
		return v->in_hand ? CTL_MACHINE_CREATE_SECRET : CTL_MACHINE_ANNOUNCE;
	case CACHES_LUKS_OK:
		if (!v->key_ours)
			return v->inherits ? CTL_MACHINE_INHERIT : CTL_MACHINE_NOTHING;
		if (v->must_mark)
			return CTL_MACHINE_MARK_DELIVERED;
		return v->may_deliver && !v->declared ? CTL_MACHINE_DECLARE : CTL_MACHINE_NOTHING;
	case CACHES_LUKS_DELETING:
		/* Declaring it keeps the key in memory, to restore the Secret once it is gone. */
		return v->key_ours && v->may_deliver && !v->declared ? CTL_MACHINE_DECLARE
								     : CTL_MACHINE_NOTHING;
	case CACHES_LUKS_MALFORMED:
	case CACHES_LUKS_FOREIGN:
	case CACHES_LUKS_UNREADABLE:
	case CACHES_LUKS_N:
		break;
	}
	return CTL_MACHINE_NOTHING; /* never overwritten; the condition explains it */
}

/* Revoke a delivered key that no node can attest for, so that no Trustee keeps it without need. */
static enum ctl_machine_do decide_recall(const struct ctl_machine_view *v)
{
	if (!v->recall)
		return CTL_MACHINE_NOTHING;
	if (!v->path_revoked)
		return CTL_MACHINE_RECALL;
	return caches_trustee_gone(v->observed_key) ? CTL_MACHINE_NOTE_RECALL : CTL_MACHINE_NOTHING;
}

/*
 * Choose the next act; the order is the priority. An act that spec.authority forbids is never
 * returned in place of one that it allows: see may_do() in ctl/kind.
 */
enum ctl_machine_do ctl_machine_decide(const struct ctl_machine_view *v)
{
	bool self = v->authority == MODEL_AUTHORITY_SELF;
	enum ctl_machine_do d = CTL_MACHINE_NOTHING;

	if (!v->found)
		return CTL_MACHINE_NOTHING;
	if (v->authority == MODEL_AUTHORITY_FOLLOWING) /* ctl/follow does the rest */
		return !v->deleting && v->id_ok && v->owns_id ? decide_key(v) : CTL_MACHINE_NOTHING;
	if (v->authority == MODEL_AUTHORITY_RETIRED)
		return decide_retired(v);
	if (v->deleting)
		return decide_deleting(v);
	if (self && v->overdue &&
		(!v->bound || v->never_attested)) /* before anything is created for it */
		return v->confirmed ? CTL_MACHINE_EXPIRE : CTL_MACHINE_CONFIRM;
	if (v->id_ok && v->owns_id) { /* else InvalidID, DuplicateID: no effect */
		if (self && v->adopt)
			return CTL_MACHINE_ADOPT;
		if (self && !v->has_finalizer && (v->announced || v->delivered))
			return CTL_MACHINE_ADD_FINALIZER; /* another client removed it */
		d = decide_key(v);
		if (d == CTL_MACHINE_NOTHING)
			d = decide_recall(v);
	}
	if (d == CTL_MACHINE_NOTHING && !v->status_ok)
		return CTL_MACHINE_APPLY_STATUS;
	return d;
}

/* ---- look */

/* Tell whether everything of this Machine must leave Trustee. */
static bool revokes(const struct machine_look *l)
{
	return l->v.deleting || l->v.authority == MODEL_AUTHORITY_RETIRED;
}

/* Look at the identities of all keys that were ever approved for this Machine. */
static void look_identities(const struct caches *s, struct machine_look *l, struct ctl_act *act)
{
	char name[RATS_IDENTITY_NAME_LEN + 1];

	l->v.observed_ids = KBS_OBSERVED_NONE;
	for (const struct kobj *o = k8s_cache_first(s->aks, 2, l->m->obj.uid); o;
		o = k8s_cache_next(s->aks, 2, o)) {
		enum kbs_observed observed;

		if (!model_ak_was_approved(model_ak(o)) || !model_ak_identity(model_ak(o), name))
			continue;
		observed = caches_trustee_observed_key(s, name, o->name);
		if (model_ak(o) == l->ak)
			l->observed_identity = observed;
		if (!revokes(l)) {
			if (model_ak(o) == l->ak && observed != KBS_OBSERVED_PRESENT)
				memcpy(l->lacking, name, sizeof(name));
			continue;
		}
		if (caches_trustee_gone(l->v.observed_ids)) /* the worst of all counts */
			l->v.observed_ids = observed;
		if (!caches_trustee_gone(observed))
			memcpy(l->lacking, name, sizeof(name));
		if (observed != KBS_OBSERVED_NONE && !caches_trustee_withdrawn(s, name, o->name))
			l->v.revoked = false;
		ctl_act_wait(act, KBS_REFVALUE, name);
	}
}

/* Find out what the Trustees hold of this Machine, and register for the answers that the
 * decision depends on. */
static void look_trustee(const struct caches *s, struct machine_look *l, struct ctl_act *act)
{
	const struct kobj *declared;

	l->v.revoked = true;
	look_identities(s, l, act);
	if (!l->path[0])
		return;
	declared = kbs_sync_object(s->sync, KBS_RESOURCE, l->path);
	/* This Machine withdraws what it declared, even if the ID belongs to another one now. */
	l->owns_path = l->id_owner == l->m ||
		       (declared && str_eq(model_secret(declared)->owner_uid, l->m->obj.uid));
	l->v.observed_key = caches_trustee_observed(s, KBS_RESOURCE, l->path);
	l->v.declared = declared && declared == (const struct kobj *)l->base.secret;
	l->v.path_revoked = kbs_sync_is_revoked(s->sync, KBS_RESOURCE, l->path);
	l->v.can_restore = declared && model_secret(declared)->root &&
			   caches_machine_announces(l->m, model_secret(declared)) &&
			   str_eq(model_secret(declared)->owner_uid, l->m->obj.uid);
	if (!revokes(l) || !l->owns_path)
		return;
	l->v.owns_id = true;
	if (declared || (l->v.observed_key != KBS_OBSERVED_NONE && !l->v.path_revoked))
		l->v.revoked = false;
	ctl_act_wait(act, KBS_RESOURCE, l->path);
}

/* Find out what must be recorded before the Machine goes. A key that was never delivered is in no
 * backup of a Trustee, and an ID that another Machine has stays in use: neither is recorded. */
static void look_record(const struct ctl_kind *k, struct machine_look *l)
{
	const struct ctl_record *r = k->env->record;

	if (!l->v.deleting || !l->v.has_finalizer || !l->path[0])
		return;
	l->notes.path = l->owns_path && l->v.delivered && ctl_record_is_wanted(r) &&
			l->v.observed_key != KBS_OBSERVED_NONE;
	l->notes.id = l->id_owner == l->m && ctl_record_id_counts(r, l->m->id) &&
		      !caches_machine_is_expired(k->caches, l->m);
	l->v.recorded = ctl_machine_recorded(r, &l->notes, l->path, l->m);
	if (l->v.recorded == CTL_RECORD_FAILS)
		l->problem = ctl_record_problem(r);
}

/* Compare the Secret with the announcements on the Machine. */
static void look_key(const struct caches *s, struct machine_look *l, const struct ctl_act *act)
{
	bool shared = caches_cluster_shares_keys(s);

	l->base.secret_name = l->m->id;
	l->base.secret = l->m->id_valid ? caches_secret(s, l->m->id) : NULL;
	l->v.luks = caches_machine_luks(s, l->m);
	l->v.must_read = !l->base.secret && act->must_read;
	l->v.in_hand = act->made && model_mark_announces(l->m->announced, act->made_sha256);
	l->v.key_ours = caches_machine_announces(l->m, l->base.secret);
	l->v.inherits = caches_machine_inherits(s, l->m, l->base.secret);
	l->v.lost = caches_machine_lost_key(s, l->m);
	/*
	 * With keyIsolation PerMachine, the disk key is not delivered before a key of its node is
	 * bound. The marks say what was delivered; a key that was delivered without need (keys were
	 * shared then, or another operator delivered all) is revoked, see look().
	 */
	l->v.announced = l->m->announced != NULL;
	l->v.delivered = model_machine_delivered(l->m);
	l->v.must_mark = shared && (!l->v.delivered || (!l->m->bound_at && l->m->recalled));
	l->v.may_deliver = !caches_cluster_withholds(s, l->m->withheld) &&
			   (l->m->bound_at || (shared && !l->v.must_mark));
}

/* Apply pendingTTL, only to Machines that a listener created, and only where nodes can register
 * keys at all. */
static void look_age(const struct caches *s, struct machine_look *l)
{
	const struct model_cluster *policy = caches_cluster_policy(s);

	l->v.bound = l->m->bound_at || l->ak ||
		     k8s_cache_unreadable(s->aks); /* one of these may be bound to it */
	l->v.never_attested = caches_machine_never_attested(s, l->m);
	l->v.overdue = caches_machine_may_expire(s, l->m) && (!l->v.bound || l->v.never_attested) &&
		       policy && policy->public_ak_addr &&
		       ctl_look_is_overdue(&l->base, policy, caches_machine_waits_since_s(l->m));
}

/* ---- conditions */

#define WANT(l, c, status, r, ...)                                                                 \
	kobj_cond_want(&(l)->base.want[c], model_machine_cond_types[c],                            \
		(status) ? KOBJ_COND_TRUE : KOBJ_COND_FALSE, model_machine_reason(r), __VA_ARGS__)

/* Explain a Secret of the right name whose content this operator did not announce. */
static void want_key_other(const char *ns, struct machine_look *l)
{
	enum model_machine_cond c = MACHINE_KEY_READY;
	bool whole = l->v.luks == CACHES_LUKS_OK || l->v.luks == CACHES_LUKS_DELETING;

	if (l->v.delivered && l->v.can_restore)
		WANT(l, c, false, MACHINE_CONFLICT,
			"Secret %s does not hold the key that was created for this Machine. It is neither delivered nor changed. "
			"Delete it, and the operator restores the right one: kubectl delete secret %s -n %s",
			l->m->id, l->m->id, ns);
	else if (l->v.delivered || (l->v.lost && !whole))
		WANT(l, c, false, MACHINE_KEY_MALFORMED,
			"Secret %s does not hold the key that was created for this Machine. It is neither delivered nor changed. "
			"Put back the Secret with the key that the disk was encrypted with, or delete the Machine and install "
			"the node again.",
			l->m->id);
	else
		WANT(l, c, false, MACHINE_CONFLICT,
			"Secret %s exists, but this operator did not create it for this Machine. It is neither used nor changed. "
			"If no disk is encrypted with it, delete it, and the operator creates a new key: kubectl delete secret %s -n %s.%s",
			l->m->id, l->m->id, ns,
			whole ? " If another operator created it, adopt that operator's objects with annotation " MODEL_ADOPT_BEFORE_ANNOTATION
				" on the TrustedExecutionCluster."
			      : "");
}

/* The condition KeyReady: whether the Secret holds the key that was announced. */
static void want_key(const char *ns, struct machine_look *l)
{
	enum model_machine_cond c = MACHINE_KEY_READY;
	const struct model_machine *m = l->m;

	if (!m->id_valid)
		WANT(l, c, false, MACHINE_INVALID_ID,
			"spec.id is not a UUID in lower case, so this Machine has no effect.");
	else if (l->id_owner != m)
		WANT(l, c, false, MACHINE_DUPLICATE_ID,
			"Machine %s already uses this id, so this Machine has no effect. Delete the wrong one.",
			l->id_owner->obj.name);
	else if (l->v.luks == CACHES_LUKS_ABSENT && !l->v.delivered && !l->v.lost)
		WANT(l, c, false, MACHINE_KEY_PENDING, "%s",
			l->base.refused ? l->base.refused : "The disk key is being created.");
	else if (l->v.luks == CACHES_LUKS_ABSENT) /* final until an administrator acts */
		WANT(l, c, false, MACHINE_KEY_LOST,
			"Secret %s is gone and its key is no longer in memory. No new key is created, because the disk may be encrypted "
			"with the old one. Restore the Secret from a backup, or delete the Machine and install the node again.",
			m->id);
	else if (l->v.luks == CACHES_LUKS_UNREADABLE)
		WANT(l, c, false, MACHINE_KEY_MALFORMED,
			"Secret %s is larger than 2 MiB and cannot be read; reduce its size. A delivered key stays in Trustee.",
			m->id);
	else if (l->v.key_ours)
		WANT(l, c, true, MACHINE_KEY_MADE, "The disk key exists.");
	else if (l->v.inherits)
		WANT(l, c, false, MACHINE_KEY_PENDING, "The disk key is being taken over.");
	else
		want_key_other(ns, l);
}

/* A binding outlives its AttestationKey, so that not just any key can follow it. */
static void want_bound(const struct caches *s, const char *ns, struct machine_look *l)
{
	enum model_machine_cond c = MACHINE_AK_BOUND;
	const struct model_cluster *served = caches_cluster(s);

	if (l->ak)
		WANT(l, c, true, MACHINE_BOUND, "AttestationKey %s is approved.", l->ak->obj.name);
	else if (l->m->bound_at)
		WANT(l, c, false, MACHINE_NO_KEY_APPROVED,
			"The AttestationKey of this Machine is gone (SPKI SHA-256 %.64s). Another key replaces it only after an "
			"administrator approves it: kubectl annotate attestationkey NAME -n %s " MODEL_APPROVED_ANNOTATION
			"=true.",
			l->m->bound_spki ? l->m->bound_spki : "unknown", ns);
	else if (served && served->extended_lost && !l->v.deleting)
		WANT(l, c, false, MACHINE_CONFLICT,
			"No AttestationKey is approved while spec of TrustedExecutionCluster %s lacks %s. See its condition Installed.",
			served->obj.name, served->extended_lost);
	else
		WANT(l, c, false, MACHINE_NO_KEY_APPROVED,
			"No AttestationKey is approved for this Machine.");
}

/* Name the Trustees that lack the key, or, once all have the key, those that lack the identity. */
static const char *lacking(
	const struct caches *s, const struct machine_look *l, bool key_is_right, struct strbuf *out)
{
	const struct model_cluster *served = caches_cluster(s);

	return key_is_right && l->lacking[0]
		       ? ctl_trustee_lacking(s->sync, served, KBS_REFVALUE, l->lacking, out)
		       : ctl_trustee_lacking(s->sync, served, KBS_RESOURCE, l->path, out);
}

/* While Trustee is being probed or filled, a True stays: it would flap for every Machine. */
static void want_delivered(const struct caches *s, struct machine_look *l)
{
	enum model_machine_cond c = MACHINE_DELIVERED;
	cleanup_strbuf struct strbuf why = STRBUF_INIT;

	if (l->problem)
		WANT(l, c, false, MACHINE_REVOKING,
			"Every Trustee confirmed that the key and the identity are deleted, but the deletion cannot be recorded: %s. "
			"Retried automatically.",
			l->problem);
	else if (l->v.deleting && (l->owns_path || !caches_trustee_gone(l->v.observed_ids)))
		WANT(l, c, false, MACHINE_REVOKING,
			"Waiting until every Trustee confirms that the key and the identity are deleted. %s",
			lacking(s, l, !l->owns_path || caches_trustee_gone(l->v.observed_key),
				&why));
	else if (l->v.authority == MODEL_AUTHORITY_RETIRED && l->m->has_finalizer)
		WANT(l, c, false, MACHINE_REVOKING,
			"spec.authority is Retired. Waiting until every Trustee confirms that the key and the identity are deleted. %s",
			lacking(s, l, !l->owns_path || caches_trustee_gone(l->v.observed_key),
				&why));
	else if (l->v.authority == MODEL_AUTHORITY_RETIRED)
		WANT(l, c, false, MACHINE_NOT_AVAILABLE,
			"spec.authority is Retired: the key and the identity are no longer delivered.");
	else if (l->base.want[MACHINE_KEY_READY].status != KOBJ_COND_TRUE || !l->ak)
		WANT(l, c, false, MACHINE_WAITING,
			"Waiting for the disk key and an approved AttestationKey.");
	else if ((l->v.observed_key == KBS_OBSERVED_PRESENT &&
			 l->observed_identity == KBS_OBSERVED_PRESENT) ||
		 (caches_trustee_is_catching_up(s) && l->m->cond[c].status == KOBJ_COND_TRUE))
		WANT(l, c, true, MACHINE_DELIVERED_OK,
			"Every administered Trustee has the key and the identity.");
	else
		WANT(l, c, false, MACHINE_NOT_AVAILABLE,
			"The key and the identity are not delivered yet. %s",
			lacking(s, l, l->v.observed_key == KBS_OBSERVED_PRESENT, &why));
}

/* Ready repeats the first condition that is not True; while keys are revoked, what that waits for. */
static void want_ready(struct machine_look *l)
{
	const struct kobj_cond_want *w = l->base.want;

	if (str_eq(w[MACHINE_DELIVERED].reason, model_machine_reason(MACHINE_REVOKING)))
		w += MACHINE_DELIVERED;
	while (w < &l->base.want[MACHINE_READY] && w->status == KOBJ_COND_TRUE)
		w++;
	if (w == &l->base.want[MACHINE_READY])
		WANT(l, MACHINE_READY, true, MACHINE_ALL_READY,
			"The node can boot and get its disk key.");
	else
		kobj_cond_want(&l->base.want[MACHINE_READY],
			model_machine_cond_types[MACHINE_READY], KOBJ_COND_FALSE, w->reason, "%s",
			w->message);
}

/* The look: everything that decide needs from the caches, from kbs_sync and from the act. Its
 * order matters, because later parts use what earlier ones found. */
static int look(struct ctl_kind *k, const char *name, struct ctl_act *act, struct ctl_look *out)
{
	const struct caches *s = k->caches;
	const struct kobj *o = k8s_cache_find(s->machines, name);
	struct machine_look *l = (struct machine_look *)out;

	l->v.found = o && !o->unreadable; /* nothing is done for an unreadable one */
	l->base.over = !l->v.found;
	if (!l->v.found)
		return CTL_MACHINE_NOTHING;
	l->base.o = o;
	l->m = model_machine(o);
	l->base.have = l->m->cond;
	l->v.deleting = o->deleting;
	l->v.authority = caches_cluster_authority(s);
	l->v.has_finalizer = l->m->has_finalizer;
	l->v.id_ok = l->m->id_valid;
	l->v.confirmed = ctl_live_is(&act->self, o);
	l->id_owner = caches_machine_of_id(s, l->m->id);
	l->v.owns_id = l->id_owner == l->m;
	l->v.adopt = l->m->by_listener && l->m->n_owners == 0 && caches_cluster_policy(s);
	if (l->m->id_valid)
		rats_resource_path(l->m->id, l->path);
	l->ak = caches_ak_of_machine(s, l->m);
	look_age(s, l);
	look_key(s, l, act);
	look_trustee(s, l, act);
	/* A delivered key has to be taken back: nothing is bound, keys are not shared, and some
	 * Trustee may hold it. */
	if (!l->v.deleting && l->m->delivered_at && !l->m->recalled && !l->v.may_deliver &&
		!l->ak && caches_cluster_policy(s) && l->v.observed_key != KBS_OBSERVED_NONE) {
		l->v.recall = true;
		ctl_act_wait(act, KBS_RESOURCE, l->path);
	}
	look_record(k, l);
	want_key(k->env->ns, l);
	want_bound(s, k->env->ns, l);
	want_delivered(s, l);
	want_ready(l);
	l->v.status_ok = kobj_cond_same(l->m->cond, l->base.want, MACHINE_N_CONDS, o->generation);
	return ctl_machine_decide(&l->v);
}

/* ---- acts */

/* Called by kbs_sync when the value is sent; NULL while the Secret has no valid key. */
static struct secret *render_root(const struct kobj *declared)
{
	const struct secret *root = model_secret(declared)->root;

	return root ? secret_new_copy(secret_peek(root), secret_len(root)) : NULL;
}

/* The Secret is the declared object, so kbs_sync follows its content without another call. */
static void declare(struct ctl_kind *k, const struct ctl_look *look)
{
	const struct machine_look *l = (const struct machine_look *)look;
	struct log_ctx lc = {"Machine", k->env->ns, look->o->name, look->o->uid};

	if (kbs_sync_declare(
		    k->caches->sync, KBS_RESOURCE, l->path, &l->base.secret->obj, render_root))
		log_debug(&lc, "key declared", "resource=%s", log_esc(l->path));
}

/* Revoke the disk key only: the Machine stays, and gets the key back once an AttestationKey is
 * bound. */
static void recall(struct ctl_kind *k, const struct ctl_look *look)
{
	const struct machine_look *l = (const struct machine_look *)look;
	struct log_ctx lc = {"Machine", k->env->ns, look->o->name, look->o->uid};

	kbs_sync_revoke(k->caches->sync, KBS_RESOURCE, l->path);
	log_info(&lc, "key is being revoked", "reason=\"no key is bound\"");
}

/* Revoke the disk key and withdraw the identities of all keys that were ever approved for this
 * Machine. A duplicate leaves the path alone, because it is the other Machine's. */
static void revoke(struct ctl_kind *k, const struct ctl_look *look)
{
	const struct machine_look *l = (const struct machine_look *)look;
	const struct caches *s = k->caches;
	struct log_ctx lc = {"Machine", k->env->ns, look->o->name, look->o->uid};
	char name[RATS_IDENTITY_NAME_LEN + 1];

	if (l->path[0] && l->owns_path)
		kbs_sync_revoke(s->sync, KBS_RESOURCE, l->path);
	/* The same keys as look_identities(). */
	for (const struct kobj *o = k8s_cache_first(s->aks, 2, l->m->obj.uid); o;
		o = k8s_cache_next(s->aks, 2, o)) {
		if (model_ak_was_approved(model_ak(o)) && model_ak_identity(model_ak(o), name))
			kbs_sync_withdraw(s->sync, KBS_REFVALUE, name, o->name);
	}
	log_info(&lc, "key and identity are being revoked", "reason=%s",
		l->v.deleting ? "deleted" : "retired");
}

enum ctl_recorded ctl_machine_recorded(const struct ctl_record *r,
	const struct ctl_machine_notes *n, const char *path, const struct model_machine *m)
{
	enum ctl_recorded of_path = CTL_RECORDED, of_id = CTL_RECORDED;

	if (n->path)
		of_path = ctl_record_state(r, MODEL_RECORD_RESOURCE, path, 0);
	if (n->id)
		of_id = ctl_record_state(r, MODEL_RECORD_ID, m->id, m->deleted_s);
	return of_path > of_id ? of_path : of_id;
}

void ctl_machine_record(struct ctl_kind *k, const struct ctl_machine_notes *n, const char *path,
	const struct model_machine *m)
{
	if (n->path)
		ctl_record_add(k->env->record, MODEL_RECORD_RESOURCE, path, clock_wall_s(),
			k->runner, m->obj.name);
	if (n->id)
		ctl_record_add(k->env->record, MODEL_RECORD_ID, m->id, m->deleted_s, k->runner,
			m->obj.name);
}

/* Backups of a Trustee may hold the key, and nodes may hold a valid ID: both outlive this
 * object. */
static void record(struct ctl_kind *k, const struct ctl_look *look)
{
	const struct machine_look *l = (const struct machine_look *)look;

	ctl_machine_record(k, &l->notes, l->path, l->m);
}

/* ---- how acts end */

/* Losing a key, or waiting for Trustee on deletion, needs attention; everything else is routine. */
static void tell(struct ctl_kind *k, struct ctl_act *a, const struct kobj *o)
{
	/* Conditions tell what happens to every Machine; Events are for what an administrator has to
	 * know or do. */
	const struct kobj_cond_want *key = &a->want[MACHINE_KEY_READY],
				    *delivered = &a->want[MACHINE_DELIVERED];

	if ((a->event_mask & 1u << MACHINE_KEY_READY) && key->status != KOBJ_COND_TRUE &&
		!str_eq(key->reason, model_machine_reason(MACHINE_KEY_PENDING)))
		k8s_events_post(k->env->events, &kobj_machine, o, K8S_EVENT_WARNING, key->reason,
			"MakeKey", "%s", key->message);
	if ((a->event_mask & 1u << MACHINE_DELIVERED) &&
		str_eq(delivered->reason, model_machine_reason(MACHINE_REVOKING)))
		k8s_events_post(k->env->events, &kobj_machine, o, K8S_EVENT_NORMAL,
			"WaitingForTrustee", "Revoke", "%s", delivered->message);
}

/* ---- how they start */

/* POST the announced key, or the delivered key that kbs_sync still has. A POST never overwrites:
 * of two operators only one creates the Secret. */
static struct op *make_secret(
	struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *look, int d)
{
	const struct machine_look *l = (const struct machine_look *)look;
	cleanup_secret struct secret *root = NULL;

	if (d == CTL_MACHINE_RESTORE_SECRET)
		root = render_root(kbs_sync_object(k->caches->sync, KBS_RESOURCE, l->path));
	return ctl_kind_create_secret(k, a,
		model_luks_secret_text(l->m->id, l->m->obj.name, l->m->obj.uid,
			d == CTL_MACHINE_RESTORE_SECRET ? root : a->made));
}

/* Announce the hash of a new key. After a failed patch the same key is announced again, so that
 * a patch which reached the API after all matches. */
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

/* Mark the key as delivered, and reduce the announcement to its hash: other announced keys were
 * never delivered, and must not be accepted later. */
static void mark_delivered(
	const struct machine_look *l, struct json_object *marks, const char *suffix)
{
	cleanup_free char *text = NULL;
	char now[CLOCK_RFC3339_LEN], hex[SHA256_HEX_LEN + 1];

	clock_format(clock_wall_s(), now);
	text = xasprintf("%s%s", l->m->delivered_at ? l->m->delivered_at : now, suffix);
	ctl_add_mark(marks, &l->m->obj, MODEL_DELIVERED_AT_ANNOTATION, text);
	if (l->v.key_ours || l->v.inherits)
		ctl_add_mark(marks, &l->m->obj, MODEL_KEY_SHA256_ANNOTATION,
			model_secret_key_sha256(l->base.secret, hex));
}

/* Several acts are one merge patch of metadata; lists (owners, finalizers) are sent whole. */
static struct op *patch(struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *look, int d)
{
	const struct machine_look *l = (const struct machine_look *)look;
	struct json_object *meta, *marks = json_obj();
	cleanup_json struct json_object *patch = ctl_patch_of(look->o, &meta);
	bool held = d == CTL_MACHINE_ADD_FINALIZER || d == CTL_MACHINE_ANNOUNCE ||
		    d == CTL_MACHINE_INHERIT;
	const struct model_cluster *cluster;

	if (d == CTL_MACHINE_ANNOUNCE)
		announce(a, l, marks);
	else if (d == CTL_MACHINE_NOTE_RECALL)
		mark_delivered(l, marks, MODEL_DELIVERED_REVOKED);
	else if (d == CTL_MACHINE_INHERIT || d == CTL_MACHINE_MARK_DELIVERED)
		mark_delivered(l, marks, "");
	if (json_object_object_length(marks) > 0)
		json_add(meta, "annotations", marks);
	else
		json_object_put(marks);
	if (d == CTL_MACHINE_ADOPT) {
		cluster = caches_cluster(k->caches);
		json_add(meta, "ownerReferences",
			json_push(json_arr(), kobj_owner_json(&kobj_cluster, cluster->obj.name,
						      cluster->obj.uid)));
	} else if (held || d == CTL_MACHINE_DROP_FINALIZER) {
		json_add(meta, "finalizers",
			kobj_finalizers(l->m->finalizers, held ? MODEL_MACHINE_FINALIZER : NULL));
	}
	return ctl_kind_patch(k, a, &kobj_machine, a->name, patch);
}

/* An apply with the UID: a later Machine of the same name must not inherit the time. */
struct json_object *ctl_machine_attested_json(const struct model_machine *m, int64_t now_s)
{
	struct json_object *meta, *marks = json_obj();
	struct json_object *o = ctl_apply_new(&kobj_machine, &m->obj, &meta);
	char now[CLOCK_RFC3339_LEN];

	clock_format(now_s, now);
	ctl_add_mark(marks, &m->obj, MODEL_LAST_ATTESTED_ANNOTATION, now);
	json_add(meta, "annotations", marks);
	return o;
}

static const struct ctl_do acts[CTL_MACHINE_N_DO] = {
	[CTL_MACHINE_CONFIRM] = {"read the Machine", .flags = CTL_DO_ANSWERS_SELF | CTL_DO_FROZEN,
		.start = ctl_kind_start_confirm},
	[CTL_MACHINE_ADD_FINALIZER] = {"add the finalizer", .flags = CTL_DO_ANSWERS_SELF,
		.start = patch},
	[CTL_MACHINE_ADOPT] = {"set the cluster as owner", .flags = CTL_DO_ANSWERS_SELF,
		.start = patch},
	[CTL_MACHINE_READ_SECRET] = {"read the Secret",
		.flags = CTL_DO_SECRET | CTL_DO_READS | CTL_DO_GONE_IS_FINE | CTL_DO_FROZEN |
			 CTL_DO_FOLLOWING,
		.start = ctl_kind_start_read_secret},
	[CTL_MACHINE_ANNOUNCE] = {"announce the key", .flags = CTL_DO_ANSWERS_SELF, .start = patch},
	[CTL_MACHINE_CREATE_SECRET] = {"create the key", "key made", CTL_DO_SECRET | CTL_DO_CREATES,
		.start = make_secret},
	[CTL_MACHINE_RESTORE_SECRET] = {"restore the key",
		"key restored, its Secret had been deleted",
		CTL_DO_SECRET | CTL_DO_CREATES | CTL_DO_WARNS, .start = make_secret},
	[CTL_MACHINE_INHERIT] = {"take over the key", "key of another operator taken over",
		CTL_DO_ANSWERS_SELF, .start = patch},
	[CTL_MACHINE_MARK_DELIVERED] = {"mark the key as delivered",
		.flags = CTL_DO_ANSWERS_SELF | CTL_DO_FROZEN, .start = patch},
	[CTL_MACHINE_DECLARE] = {"declare the key", .flags = CTL_DO_FROZEN | CTL_DO_FOLLOWING,
		.memory = declare},
	[CTL_MACHINE_RECALL] = {"revoke the key", .memory = recall},
	[CTL_MACHINE_NOTE_RECALL] = {"mark the key as revoked", "key revoked until a key is bound",
		CTL_DO_ANSWERS_SELF, .start = patch},
	[CTL_MACHINE_REVOKE] = {"revoke", .flags = CTL_DO_RETIRED, .memory = revoke},
	[CTL_MACHINE_RECORD] = {"record the deletion", .memory = record},
	[CTL_MACHINE_DROP_FINALIZER] = {"remove the finalizer",
		"Machine released, no Trustee holds its key",
		CTL_DO_ANSWERS_SELF | CTL_DO_GONE_IS_FINE | CTL_DO_RETIRED, .start = patch},
	[CTL_MACHINE_EXPIRE] = {"delete the unclaimed Machine",
		"Machine deleted, no key was approved for it in time", CTL_DO_GONE_IS_FINE,
		.start = ctl_kind_start_expire},
	[CTL_MACHINE_APPLY_STATUS] = {"write the status",
		.flags = CTL_DO_ANSWERS_SELF | CTL_DO_FROZEN | CTL_DO_RETIRED,
		.start = ctl_kind_start_status},
};

/* ---- which keys a change concerns */

/* Several Machines may claim one ID; a change of one of them may concern all. */
static void wake_id(struct ctl_kind *k, const char *id)
{
	ctl_kind_wake_index(k, k->caches->machines, 0, id);
}

/* Withdraw what a deleted Machine declared. If someone removed its finalizer by force, revoke
 * the key: no step of this Machine will. */
static void on_gone(struct ctl_kind *k, const struct model_machine *was)
{
	struct kbs_sync *sync = k->caches->sync;
	char path[RATS_RESOURCE_PATH_MAX];
	const struct kobj *declared;

	if (!k->on || !was->id_valid)
		return;
	rats_resource_path(was->id, path);
	declared = kbs_sync_object(sync, KBS_RESOURCE, path);
	if (declared && str_eq(model_secret(declared)->owner_uid, was->obj.uid))
		kbs_sync_revoke(sync, KBS_RESOURCE, path);
	if (k8s_cache_first(k->caches->machines, 0, was->id))
		return; /* the next one with this id decides */
	if (caches_trustee_gone(caches_trustee_observed(k->caches, KBS_RESOURCE, path)))
		kbs_sync_forget(sync, KBS_RESOURCE, path);
	else if (was->has_finalizer)
		kbs_sync_revoke(sync, KBS_RESOURCE, path);
}

/* Wake the Machine, and those with the same ID when it may belong to another one now. */
static void map_machine(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_kind *k = self;
	const struct model_machine *a = was ? model_machine(was) : NULL,
				   *b = now ? model_machine(now) : NULL;

	ctl_runner_wake(k->runner, was ? was->name : now->name);
	if (a && (!b || !str_eq(was->uid, now->uid)))
		on_gone(k, a);
	/* The ID may now belong to another Machine. */
	if (!a || !b || !str_eq(was->uid, now->uid) || !str_eq(a->announced, b->announced) ||
		model_machine_delivered(a) != model_machine_delivered(b)) {
		wake_id(k, a ? a->id : NULL);
		wake_id(k, b ? b->id : NULL);
	}
}

/* Wake the Machine only for changes that its look depends on: a status write of a key is not
 * one. */
static void map_ak(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_kind *k = self;
	const struct model_ak *a = was ? model_ak(was) : NULL, *b = now ? model_ak(now) : NULL;

	if (a && b && str_eq(a->owner_uid, b->owner_uid) && a->n_owners == b->n_owners &&
		str_eq(a->approved_at, b->approved_at) &&
		a->cond[AK_APPROVED].status == b->cond[AK_APPROVED].status &&
		str_eq(a->uuid, b->uuid) && str_eq(was->uid, now->uid) &&
		was->deleting == now->deleting)
		return;
	wake_id(k, a ? a->uuid : NULL);
	if (b && (!a || !str_eq(a->uuid, b->uuid)))
		wake_id(k, b->uuid);
}

/* The Secret of a disk key is named like the ID of its Machine. */
static void map_secret(void *self, const struct kobj *was, const struct kobj *now)
{
	wake_id(self, was ? was->name : now->name);
}

/* Wake what a change in a Trustee concerns. While Trustee is being filled, answers arrive for
 * every name; those keys are woken when the filling ends. name NULL: anything may have changed. */
static void on_sync(struct ctl_kind *k, enum kbs_kind kind, const char *name)
{
	char id[UUID_TEXT_LEN + 1];
	const struct kobj *declared;

	if (!name) {
		ctl_kind_wake_all(k);
		return;
	}
	if (caches_trustee_is_filling(k->caches, kind, name))
		return;
	if (kind == KBS_REFVALUE) {
		if (!rats_is_identity_name(name))
			return;
		for (unsigned i = 0; i <= KBS_LIST_MAX; i++) {
			declared = kbs_sync_object_at(k->caches->sync, kind, name, i);
			if (!declared)
				return;
			wake_id(k, model_ak(declared)->uuid);
		}
	} else if (rats_resource_id(name, id)) {
		wake_id(k, id);
		if (!k8s_cache_first(k->caches->machines, 0, id) &&
			caches_trustee_gone(caches_trustee_observed(k->caches, kind, name)))
			kbs_sync_forget(k->caches->sync, kind, name);
	}
}

struct ctl_kind *ctl_machine_new(const struct ctl_env *env)
{
	static const struct ctl_watch watches[] = {
		{CACHES_MACHINES, map_machine},
		{CACHES_AKS, map_ak},
		{CACHES_SECRETS, map_secret},
		{CACHES_CLUSTERS, ctl_kind_map_cluster},
		{.map = NULL},
	};
	static const struct ctl_kind_conf conf = {
		.name = "machine",
		.of = CACHES_MACHINES,
		.size = sizeof(struct ctl_kind),
		.look_size = sizeof(struct machine_look),
		.n_conds = MACHINE_N_CONDS,
		.acts = acts,
		.status = CTL_MACHINE_APPLY_STATUS,
		.knows_cached = true,
		.watches = watches,
		.look = look,
		.tell = tell,
		.on_sync = on_sync,
	};

	return ctl_kind_new(env, &conf);
}
