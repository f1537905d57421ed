/* SPDX-License-Identifier: MIT */
/*
 * Machine: look (read the caches), decide (pure) and the conditions. decide keeps the promise that
 * matters: a key is announced only where none was ever delivered, only an announced key is
 * delivered, and an object is released only when no Trustee can still hold its key.
 *
 * The life of a key: ANNOUNCE (finalizer and hash on the Machine), CREATE_SECRET, MARK_DELIVERED,
 * DECLARE. The end, after the deletion of the Machine: REVOKE, wait for every Trustee, RECORD,
 * DROP_FINALIZER. The operator may be killed after any of these steps; the next look finds where
 * to continue.
 */
#include "config.h"

#include "machine_internal.h"

#include <string.h>

#include "tec/ctl/trustee.h"
#include "tec/model/mark.h"

/* ---- decide */

/* Revoke, wait for every Trustee, record, release: in this order, so that a kill loses nothing. */
static enum ctl_machine_do decide_deleting(const struct ctl_machine_view *v)
{
	bool has_path = v->id_ok && v->owns_id; /* a duplicate does not touch the other's key */

	if (!v->has_finalizer)
		return CTL_MACHINE_NOTHING; /* only finalizers of others are left */
	if (!v->revoked)
		return CTL_MACHINE_REVOKE;
	if ((has_path && !state_trustee_gone(v->observed_key)) ||
		!state_trustee_gone(v->observed_ids)) /* unknown counts as present */
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
	if (v->has_finalizer && state_trustee_gone(v->observed_key) &&
		state_trustee_gone(v->observed_ids)) /* unknown counts as present */
		return CTL_MACHINE_DROP_FINALIZER;
	return v->status_ok ? CTL_MACHINE_NOTHING : CTL_MACHINE_APPLY_STATUS;
}

/* Decide about the disk key by the state of its Secret. A key that was delivered is never
 * replaced: the disk may be encrypted with it. */
static enum ctl_machine_do decide_key(const struct ctl_machine_view *v)
{
	switch (v->luks) {
	case STATE_LUKS_ABSENT:
		if (v->must_read) /* the API has a Secret that the cache does not show */
			return CTL_MACHINE_READ_SECRET;
		if (v->delivered)
			return v->can_restore ? CTL_MACHINE_RESTORE_SECRET
					      : CTL_MACHINE_NOTHING; /* else KeyLost */
		if (v->lost)
			return CTL_MACHINE_NOTHING;
		return v->in_hand ? CTL_MACHINE_CREATE_SECRET : CTL_MACHINE_ANNOUNCE;
	case STATE_LUKS_OK:
		if (!v->key_ours)
			return v->inherits ? CTL_MACHINE_INHERIT : CTL_MACHINE_NOTHING;
		if (v->must_mark)
			return CTL_MACHINE_MARK_DELIVERED;
		return v->may_deliver && !v->declared ? CTL_MACHINE_DECLARE : CTL_MACHINE_NOTHING;
	case STATE_LUKS_DELETING:
		/* Declaring it keeps the key in memory, to restore the Secret once it is gone. */
		return v->key_ours && v->may_deliver && !v->declared ? CTL_MACHINE_DECLARE
								     : CTL_MACHINE_NOTHING;
	case STATE_LUKS_MALFORMED:
	case STATE_LUKS_FOREIGN:
	case STATE_LUKS_UNREADABLE:
	case STATE_LUKS_N:
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
	return state_trustee_gone(v->observed_key) ? CTL_MACHINE_NOTE_RECALL : CTL_MACHINE_NOTHING;
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

/* Return the worse of two observations: anything but gone wins, because unknown counts as
 * present. */
static enum kbs_observed worse(enum kbs_observed a, enum kbs_observed b)
{
	return state_trustee_gone(a) ? b : a;
}

/* Tell whether everything of this Machine must leave Trustee. */
static bool revokes(const struct machine_look *l)
{
	return l->v.deleting || l->v.authority == MODEL_AUTHORITY_RETIRED;
}

/* Look at the identities of all keys that were ever approved for this Machine. */
static void look_identities(const struct state *s, struct machine_look *l, struct ctl_act *act)
{
	char name[RATS_IDENTITY_NAME_LEN + 1];

	l->v.observed_ids = KBS_OBSERVED_NONE;
	for (const struct kobj *o = k8s_cache_first(s->aks, 2, l->m->obj.uid); o;
		o = k8s_cache_next(s->aks, 2, o)) {
		enum kbs_observed observed;

		if (!model_ak_was_approved(model_ak(o)) || !model_ak_identity(model_ak(o), name))
			continue;
		observed = state_trustee_observed_key(s, name, o->name);
		if (model_ak(o) == l->ak)
			l->observed_identity = observed;
		if (!revokes(l)) {
			if (model_ak(o) == l->ak && observed != KBS_OBSERVED_PRESENT)
				memcpy(l->lacking, name, sizeof(name));
			continue;
		}
		l->v.observed_ids = worse(l->v.observed_ids, observed);
		if (!state_trustee_gone(observed))
			memcpy(l->lacking, name, sizeof(name));
		if (observed != KBS_OBSERVED_NONE && !state_trustee_withdrawn(s, name, o->name))
			l->v.revoked = false;
		ctl_act_wait(act, KBS_REFVALUE, name);
	}
}

/* Find out what the Trustees hold of this Machine, and register for the answers that the
 * decision depends on. */
static void look_trustee(const struct state *s, struct machine_look *l, struct ctl_act *act)
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
	l->v.observed_key = state_trustee_observed(s, KBS_RESOURCE, l->path);
	l->v.declared = declared && declared == (const struct kobj *)l->secret;
	l->v.path_revoked = kbs_sync_is_revoked(s->sync, KBS_RESOURCE, l->path);
	l->v.can_restore = declared && model_secret(declared)->root &&
			   state_machine_announces(l->m, model_secret(declared)) &&
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
		      !state_machine_is_expired(k->state, l->m);
	l->v.recorded = ctl_machine_recorded(r, &l->notes, l->path, l->m);
	if (l->v.recorded == CTL_RECORD_FAILS)
		l->problem = ctl_record_problem(r);
}

/* Compare the Secret with the announcements on the Machine. */
static void look_key(const struct state *s, struct machine_look *l, const struct ctl_act *act)
{
	bool shared = state_cluster_shares_keys(s);

	l->secret = l->m->id_valid ? state_secret(s, l->m->id) : NULL;
	l->v.luks = state_machine_luks(s, l->m);
	l->v.must_read = !l->secret && act->must_read;
	l->v.in_hand = act->made && model_mark_announces(l->m->announced, act->made_sha256);
	l->v.key_ours = state_machine_announces(l->m, l->secret);
	l->v.inherits = state_machine_inherits(s, l->m, l->secret);
	l->v.lost = state_machine_lost_key(s, l->m);
	/*
	 * With keyIsolation PerMachine, the disk key is not delivered before a key of its node is
	 * bound. The marks say what was delivered; a key that was delivered without need (keys were
	 * shared then, or another operator delivered all) is revoked, see look_recall().
	 */
	l->v.announced = l->m->announced != NULL;
	l->v.delivered = model_machine_delivered(l->m);
	l->v.must_mark = shared && (!l->v.delivered || (!l->m->bound_at && l->m->recalled));
	l->v.may_deliver = !state_cluster_withholds(s, l->m->withheld) &&
			   (l->m->bound_at || (shared && !l->v.must_mark));
}

/* Tell whether a delivered key has to be taken back: nothing is bound, keys are not shared, and
 * some Trustee may hold it. */
static void look_recall(const struct state *s, struct machine_look *l, struct ctl_act *act)
{
	if (l->v.deleting || !l->m->delivered_at || l->m->recalled || l->v.may_deliver || l->ak ||
		!state_cluster_policy(s) || l->v.observed_key == KBS_OBSERVED_NONE)
		return;
	l->v.recall = true;
	ctl_act_wait(act, KBS_RESOURCE, l->path);
}

/* Apply pendingTTL, only to Machines that a listener created, and only where nodes can register
 * keys at all. */
static void look_age(const struct state *s, struct machine_look *l)
{
	const struct model_cluster *policy = state_cluster_policy(s);

	l->v.bound = l->m->bound_at || l->ak ||
		     k8s_cache_unreadable(s->aks); /* one of these may be bound to it */
	l->v.never_attested = state_machine_never_attested(s, l->m);
	l->v.overdue = state_machine_may_expire(s, l->m) && (!l->v.bound || l->v.never_attested) &&
		       policy && policy->public_ak_addr &&
		       ctl_look_is_overdue(&l->base, policy, state_machine_waits_since_s(l->m));
}

static void machine_wants(const struct state *s, const char *ns, struct machine_look *l);

/* The look: everything that decide needs from the caches, from kbs_sync and from the act. Its
 * order matters, because later parts use what earlier ones found. */
int machine_view_look(
	struct ctl_kind *k, const char *name, struct ctl_act *act, struct ctl_look *out)
{
	const struct state *s = k->state;
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
	l->v.authority = state_cluster_authority(s);
	l->v.has_finalizer = l->m->has_finalizer;
	l->v.id_ok = l->m->id_valid;
	l->v.confirmed = ctl_live_is(&act->self, o);
	l->id_owner = state_machine_of_id(s, l->m->id);
	l->v.owns_id = l->id_owner == l->m;
	l->v.adopt = l->m->by_listener && l->m->n_owners == 0 && state_cluster_policy(s);
	if (l->m->id_valid)
		rats_resource_path(l->m->id, l->path);
	l->ak = state_ak_of_machine(s, l->m);
	look_age(s, l);
	look_key(s, l, act);
	look_trustee(s, l, act);
	look_recall(s, l, act);
	look_record(k, l);
	machine_wants(s, k->env->ns, l);
	l->v.status_ok = kobj_cond_same(l->m->cond, l->base.want, MACHINE_N_CONDS, o->generation);
	return ctl_machine_decide(&l->v);
}

/* ---- conditions */

#define WANT(l, c, status, r, ...)                                                                 \
	kobj_cond_want(&(l)->base.want[c], model_machine_cond_types[c],                            \
		(status) ? KOBJ_COND_TRUE : KOBJ_COND_FALSE, model_machine_reason(r), __VA_ARGS__)

/* KeyLost is final until an administrator acts: no key may replace the lost one. */
static void want_key_absent(struct machine_look *l)
{
	enum model_machine_cond c = MACHINE_KEY_READY;

	if (!l->v.delivered && !l->v.lost)
		WANT(l, c, false, MACHINE_KEY_PENDING, "The disk key is being created.");
	else
		WANT(l, c, false, MACHINE_KEY_LOST,
			"Secret %s is gone and its key is no longer in memory. No new key is created, because the disk may be encrypted "
			"with the old one. Restore the Secret from a backup, or delete the Machine and install the node again.",
			l->m->id);
}

/* Explain a Secret of the right name whose content this operator did not announce. */
static void want_key_other(const char *ns, struct machine_look *l)
{
	enum model_machine_cond c = MACHINE_KEY_READY;
	bool whole = l->v.luks == STATE_LUKS_OK || l->v.luks == STATE_LUKS_DELETING;

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
	else if (l->v.luks == STATE_LUKS_ABSENT)
		want_key_absent(l);
	else if (l->v.luks == STATE_LUKS_UNREADABLE)
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
static void want_bound(const char *ns, struct machine_look *l)
{
	enum model_machine_cond c = MACHINE_AK_BOUND;

	if (l->ak)
		WANT(l, c, true, MACHINE_BOUND, "AttestationKey %s is approved.", l->ak->obj.name);
	else if (l->m->bound_at)
		WANT(l, c, false, MACHINE_NO_KEY_APPROVED,
			"The AttestationKey of this Machine is gone (SPKI SHA-256 %.64s). Another key replaces it only after an "
			"administrator approves it: kubectl annotate attestationkey NAME -n %s " MODEL_APPROVED_ANNOTATION
			"=true.",
			l->m->bound_spki ? l->m->bound_spki : "unknown", ns);
	else
		WANT(l, c, false, MACHINE_NO_KEY_APPROVED,
			"No AttestationKey is approved for this Machine.");
}

/* Name the Trustees that lack the key, or, once all have the key, those that lack the identity. */
static const char *lacking(
	const struct state *s, const struct machine_look *l, bool key_is_right, struct strbuf *out)
{
	return key_is_right && l->lacking[0]
		       ? ctl_trustee_lacking(s->sync, KBS_REFVALUE, l->lacking, out)
		       : ctl_trustee_lacking(s->sync, KBS_RESOURCE, l->path, out);
}

/* While Trustee is being probed after a start, a True stays: it would flap for every Machine. */
static void want_delivered(const struct state *s, struct machine_look *l)
{
	enum model_machine_cond c = MACHINE_DELIVERED;
	cleanup_strbuf struct strbuf why = STRBUF_INIT;

	if (l->problem)
		WANT(l, c, false, MACHINE_REVOKING,
			"Every Trustee confirmed that the key and the identity are deleted, but the deletion cannot be recorded: %s. "
			"Retried automatically.",
			l->problem);
	else if (l->v.deleting && (l->owns_path || !state_trustee_gone(l->v.observed_ids)))
		WANT(l, c, false, MACHINE_REVOKING,
			"Waiting until every Trustee confirms that the key and the identity are deleted. %s",
			lacking(s, l, !l->owns_path || state_trustee_gone(l->v.observed_key),
				&why));
	else if (l->v.authority == MODEL_AUTHORITY_RETIRED && l->m->has_finalizer)
		WANT(l, c, false, MACHINE_REVOKING,
			"spec.authority is Retired. Waiting until every Trustee confirms that the key and the identity are deleted.");
	else if (l->v.authority == MODEL_AUTHORITY_RETIRED)
		WANT(l, c, false, MACHINE_NOT_AVAILABLE,
			"spec.authority is Retired: the key and the identity are no longer delivered.");
	else if (l->base.want[MACHINE_KEY_READY].status != KOBJ_COND_TRUE || !l->ak)
		WANT(l, c, false, MACHINE_WAITING,
			"Waiting for the disk key and an approved AttestationKey.");
	else if ((l->v.observed_key == KBS_OBSERVED_PRESENT &&
			 l->observed_identity == KBS_OBSERVED_PRESENT) ||
		 (state_trustee_is_probing(s) && l->m->cond[c].status == KOBJ_COND_TRUE))
		WANT(l, c, true, MACHINE_DELIVERED_OK,
			"Every administered Trustee has the key and the identity.");
	else
		WANT(l, c, false, MACHINE_NOT_AVAILABLE,
			"The key and the identity are not delivered yet. %s",
			lacking(s, l, l->v.observed_key == KBS_OBSERVED_PRESENT, &why));
}

/* Ready repeats the first condition that is not True. */
static void machine_wants(const struct state *s, const char *ns, struct machine_look *l)
{
	want_key(ns, l);
	want_bound(ns, l);
	want_delivered(s, l);
	for (int i = 0; i < MACHINE_READY; i++) {
		if (l->base.want[i].status == KOBJ_COND_TRUE)
			continue;
		/* The first condition that is not True gives the reason. */
		kobj_cond_want(&l->base.want[MACHINE_READY],
			model_machine_cond_types[MACHINE_READY], KOBJ_COND_FALSE,
			l->base.want[i].reason, "%s", l->base.want[i].message);
		return;
	}
	WANT(l, MACHINE_READY, true, MACHINE_ALL_READY, "The node can boot and get its disk key.");
}
