/* SPDX-License-Identifier: MIT */
/*
 * Machine: what is so (machine_look, from the caches alone), what follows (decide, pure) and what
 * people are told (machine_wants). decide holds the one promise that matters: a key is born only
 * where none was ever made, and nothing that Trustee may still hold is let go.
 */
#include "config.h"

#include "machine_internal.h"

#include <string.h>

#include "tec/base/clock.h"

#define RECHECK_MAX_MS (60 * 60 * 1000)

/* ---- decide */

static enum ctl_machine_do decide_deleting(const struct ctl_machine_view *v)
{
	bool has_path = v->id_ok && v->is_holder; /* a duplicate leaves the holder's things alone */

	if (!v->has_finalizer)
		return CTL_MACHINE_NOTHING; /* ours is done; others still hold it */
	if (!v->revoked)
		return CTL_MACHINE_REVOKE;
	if ((has_path && !ctl_far_gone(v->far_key)) ||
		!ctl_far_gone(v->far_ids)) /* unknown counts as present */
		return v->status_ok ? CTL_MACHINE_NOTHING : CTL_MACHINE_APPLY_STATUS;
	/* The live list of finalizers is needed to take one out of it. */
	return v->confirmed ? CTL_MACHINE_DROP_FINALIZER : CTL_MACHINE_CONFIRM;
}

static enum ctl_machine_do decide_key(const struct ctl_machine_view *v)
{
	switch (v->luks) {
	case CTL_LUKS_ABSENT:
		if (v->must_read) /* the API has one: never a second one on top of it */
			return CTL_MACHINE_READ_SECRET;
		if (!v->key_made)
			return v->confirmed ? CTL_MACHINE_CREATE_SECRET : CTL_MACHINE_CONFIRM;
		return v->can_restore ? CTL_MACHINE_RESTORE_SECRET
				      : CTL_MACHINE_NOTHING; /* else KeyLost */
	case CTL_LUKS_OK:
		if (!v->key_made)
			return CTL_MACHINE_NOTE_KEY; /* before the first delivery */
		return v->key_matches && !v->declared ? CTL_MACHINE_DECLARE : CTL_MACHINE_NOTHING;
	case CTL_LUKS_DELETING:
		/* Declared, it stays in memory, from which it is restored once it is gone. */
		return v->key_made && v->key_matches && !v->declared ? CTL_MACHINE_DECLARE
								     : CTL_MACHINE_NOTHING;
	case CTL_LUKS_MALFORMED:
	case CTL_LUKS_FOREIGN:
	case CTL_LUKS_UNREADABLE:
	case CTL_LUKS_N:
		break;
	}
	return CTL_MACHINE_NOTHING; /* never written; the status says so */
}

enum ctl_machine_do ctl_machine_decide(const struct ctl_machine_view *v)
{
	enum ctl_machine_do d = CTL_MACHINE_NOTHING;

	if (!v->found)
		return CTL_MACHINE_NOTHING;
	if (v->deleting)
		return decide_deleting(v);
	if (v->overdue && !v->bound) /* before anything is made for it */
		return v->confirmed ? CTL_MACHINE_EXPIRE : CTL_MACHINE_CONFIRM;
	if (v->id_ok && v->is_holder) { /* else InvalidID, DuplicateID: no effect */
		if (v->adopt)
			return CTL_MACHINE_ADOPT;
		if (!v->has_finalizer)
			return CTL_MACHINE_ADD_FINALIZER; /* before any effect in Trustee */
		d = decide_key(v);
		if (d == CTL_MACHINE_NOTHING && v->must_bind)
			d = CTL_MACHINE_BIND;
	}
	if (d == CTL_MACHINE_NOTHING && !v->status_ok)
		return CTL_MACHINE_APPLY_STATUS;
	return d;
}

const char *ctl_machine_do_name(enum ctl_machine_do d)
{
	static const char *const names[CTL_MACHINE_N_DO] = {
		[CTL_MACHINE_NOTHING] = "nothing",
		[CTL_MACHINE_CONFIRM] = "read the Machine",
		[CTL_MACHINE_ADD_FINALIZER] = "add the finalizer",
		[CTL_MACHINE_ADOPT] = "set the cluster as owner",
		[CTL_MACHINE_READ_SECRET] = "read the Secret",
		[CTL_MACHINE_CREATE_SECRET] = "make the key",
		[CTL_MACHINE_RESTORE_SECRET] = "restore the key",
		[CTL_MACHINE_NOTE_KEY] = "note the key",
		[CTL_MACHINE_BIND] = "mark it as bound",
		[CTL_MACHINE_DECLARE] = "declare the key",
		[CTL_MACHINE_REVOKE] = "revoke",
		[CTL_MACHINE_DROP_FINALIZER] = "drop the finalizer",
		[CTL_MACHINE_EXPIRE] = "delete what nobody claimed",
		[CTL_MACHINE_APPLY_STATUS] = "write the status",
	};

	return d < CTL_MACHINE_N_DO ? names[d] : "?";
}

/* ---- look */

/* The worse of two: anything but gone wins, as unknown counts as present. */
static enum kbs_far worse(enum kbs_far a, enum kbs_far b)
{
	return ctl_far_gone(a) ? b : a;
}

static void wait_for(
	struct machine_look *l, struct ctl_act *act, enum kbs_sort sort, const char *name)
{
	l->waits = true;
	if (act)
		ctl_act_wait(act, sort, name);
}

/* Identities of all keys this Machine owns. */
static void look_identities(const struct ctl_env *env, struct machine_look *l, struct ctl_act *act)
{
	char name[RATS_IDENTITY_NAME_LEN + 1];

	l->v.far_ids = KBS_FAR_NONE;
	for (const struct kobj *o = k8s_cache_first(env->aks, 2, l->m->obj.uid); o;
		o = k8s_cache_next(env->aks, 2, o)) {
		enum kbs_far far;
		bool taken;

		if (!ctl_ak_identity(model_ak(o), name))
			continue;
		far = ctl_far(env, KBS_REFVALUE, name);
		/* Held there for another key object of the same name: not ours to revoke, and what
		 * is there is that one's as soon as it is confirmed. */
		taken = ctl_taken_by(env, name, o->uid) != NULL;
		if (taken && far == KBS_FAR_PRESENT)
			far = KBS_FAR_ABSENT;
		if (model_ak(o) == l->ak)
			l->far_identity = far;
		if (!l->v.deleting) {
			if (model_ak(o) == l->ak && far != KBS_FAR_PRESENT)
				memcpy(l->lacking, name, sizeof(name));
			continue;
		}
		l->v.far_ids = worse(l->v.far_ids, far);
		if (!ctl_far_gone(far))
			memcpy(l->lacking, name, sizeof(name));
		if (!taken && far != KBS_FAR_NONE &&
			!kbs_sync_is_revoked(env->sync, KBS_REFVALUE, name))
			l->v.revoked = false;
		wait_for(l, act, KBS_REFVALUE, name);
	}
}

static void look_far(const struct ctl_env *env, struct machine_look *l, struct ctl_act *act)
{
	const struct kobj *holder;

	l->v.revoked = true;
	look_identities(env, l, act);
	if (!l->path[0])
		return;
	holder = kbs_sync_holder(env->sync, KBS_RESOURCE, l->path);
	/* What this Machine declared is its own to withdraw, whoever holds the id by now. */
	l->owns_path = l->holder == l->m ||
		       (holder && str_eq(model_secret(holder)->owner_uid, l->m->obj.uid));
	l->v.far_key = ctl_far(env, KBS_RESOURCE, l->path);
	l->v.declared = holder && holder == (const struct kobj *)l->secret;
	l->v.can_restore = l->v.key_made && holder && model_secret(holder)->root &&
			   str_eq(model_secret(holder)->key_sha256, l->m->key_sha256) &&
			   str_eq(model_secret(holder)->owner_uid, l->m->obj.uid);
	if (!l->v.deleting || !l->owns_path)
		return;
	l->v.is_holder = true;
	if (holder || (l->v.far_key != KBS_FAR_NONE &&
			      !kbs_sync_is_revoked(env->sync, KBS_RESOURCE, l->path)))
		l->v.revoked = false;
	wait_for(l, act, KBS_RESOURCE, l->path);
}

static void look_secret(
	const struct ctl_env *env, struct machine_look *l, const struct ctl_act *act)
{
	const struct model_secret *s = l->m->id_valid ? ctl_secret(env, l->m->id) : NULL;

	l->secret = s;
	if (!s) {
		l->v.luks = CTL_LUKS_ABSENT;
		l->v.must_read = act && act->must_read;
	} else if (s->obj.unreadable) {
		l->v.luks = CTL_LUKS_UNREADABLE;
	} else if (s->n_owners != 1 || !str_eq(s->owner_uid, l->m->obj.uid) ||
		   (s->shape != MODEL_SECRET_LUKS && s->shape != MODEL_SECRET_LUKS_BAD)) {
		l->v.luks = CTL_LUKS_FOREIGN;
	} else if (s->shape == MODEL_SECRET_LUKS_BAD) {
		l->v.luks = CTL_LUKS_MALFORMED;
	} else {
		l->v.luks = s->obj.deleting ? CTL_LUKS_DELETING : CTL_LUKS_OK;
		l->v.key_matches = l->v.key_made && str_eq(s->key_sha256, l->m->key_sha256);
	}
}

/* pendingTTL: only what a listener made, and only where keys can be registered at all. */
static void look_age(const struct ctl_env *env, struct machine_look *l)
{
	const struct model_cluster *policy = ctl_policy(env);
	int64_t left_ms;

	l->v.bound = l->m->bound_at || k8s_cache_first(env->aks, 2, l->m->obj.uid) ||
		     k8s_cache_unreadable(env->aks); /* one of them may be its */
	if (!l->m->by_listener || l->v.bound || !policy || !policy->public_ak_addr ||
		policy->pending_ttl_ms <= 0)
		return;
	left_ms = l->m->obj.created_s * 1000 + policy->pending_ttl_ms - clock_wall_s() * 1000;
	l->v.overdue = left_ms <= 0;
	if (left_ms > 0)
		l->recheck_ms = left_ms < RECHECK_MAX_MS ? (uint32_t)left_ms : RECHECK_MAX_MS;
}

void machine_look(
	const struct ctl_env *env, const char *name, struct ctl_act *act, struct machine_look *l)
{
	const struct kobj *o = k8s_cache_find(env->machines, name);

	memset(l, 0, sizeof(*l));
	ctl_act_wait_none(act);
	l->v.found = o && !o->unreadable; /* else nothing follows */
	if (!l->v.found)
		return;
	l->m = model_machine(o);
	l->v.deleting = o->deleting;
	l->v.has_finalizer = l->m->has_finalizer;
	l->v.id_ok = l->m->id_valid;
	l->v.confirmed = act && ctl_live_is(&act->self, o);
	l->v.key_made = l->m->key_sha256 != NULL;
	l->holder = ctl_holder(env, l->m->id);
	l->v.is_holder = l->holder == l->m;
	l->v.adopt = l->m->by_listener && l->m->n_owners == 0 && ctl_policy(env);
	if (l->m->id_valid)
		rats_resource_path(l->m->id, l->path);
	l->ak = ctl_ak_of_machine(env, o->uid);
	l->v.must_bind = l->ak && ctl_ak_usable(l->ak) && !l->m->bound_at;
	look_age(env, l);
	look_secret(env, l, act);
	look_far(env, l, act);
	machine_wants(env, l);
	l->v.status_ok = kobj_cond_same(l->m->cond, l->want, MACHINE_N_CONDS, o->generation);
}

/* ---- what people are told */

static void want(struct machine_look *l, enum model_machine_cond c, bool status,
	enum model_machine_reason r, const char *message)
{
	kobj_cond_want(&l->want[c], model_machine_cond_types[c],
		status ? KOBJ_COND_TRUE : KOBJ_COND_FALSE, model_machine_reason(r), "%s", message);
}

static void want_key(struct machine_look *l)
{
	enum model_machine_cond c = MACHINE_KEY_READY;
	const struct model_machine *m = l->m;

	if (!m->id_valid)
		want(l, c, false, MACHINE_INVALID_ID,
			"spec.id is not a UUID in lower case, so this Machine has no effect.");
	else if (l->holder != m)
		kobj_cond_want(&l->want[c], model_machine_cond_types[c], KOBJ_COND_FALSE,
			model_machine_reason(MACHINE_DUPLICATE_ID),
			"Machine %s has the same id and holds it, so this one has no effect. Delete the one that is wrong.",
			l->holder->obj.name);
	else if (l->v.luks == CTL_LUKS_FOREIGN)
		kobj_cond_want(&l->want[c], model_machine_cond_types[c], KOBJ_COND_FALSE,
			model_machine_reason(MACHINE_KEY_MALFORMED),
			"Secret %s exists and is not this Machine's disk key (another owner or another content). It is not "
			"touched. If nobody needs it, delete it.",
			m->id);
	else if (l->v.luks == CTL_LUKS_UNREADABLE)
		kobj_cond_want(&l->want[c], model_machine_cond_types[c], KOBJ_COND_FALSE,
			model_machine_reason(MACHINE_KEY_MALFORMED),
			"Secret %s is larger than 2 MiB and cannot be read; reduce it. What was delivered stays.",
			m->id);
	else if (l->v.luks == CTL_LUKS_MALFORMED)
		kobj_cond_want(&l->want[c], model_machine_cond_types[c], KOBJ_COND_FALSE,
			model_machine_reason(MACHINE_KEY_MALFORMED),
			"Secret %s does not hold a disk key of the known form. It is not touched. Put back the key that the disk "
			"was encrypted with, or delete the Machine and install the node anew.",
			m->id);
	else if (l->v.luks == CTL_LUKS_ABSENT && l->v.key_made)
		kobj_cond_want(&l->want[c], model_machine_cond_types[c], KOBJ_COND_FALSE,
			model_machine_reason(MACHINE_KEY_LOST),
			"Secret %s is gone and its key is no longer in memory. No new key is made, as the disk may be encrypted "
			"with the old one. Restore the Secret from a backup, or delete the Machine and install the node anew.",
			m->id);
	else if (l->v.luks == CTL_LUKS_ABSENT || !l->v.key_made)
		want(l, c, false, MACHINE_KEY_PENDING, "The disk key is being made.");
	else if (!l->v.key_matches)
		kobj_cond_want(&l->want[c], model_machine_cond_types[c], KOBJ_COND_FALSE,
			model_machine_reason(MACHINE_KEY_MALFORMED),
			"Secret %s holds another key than the one that was made for this Machine. It is not handed out. Put back "
			"the key that the disk was encrypted with.",
			m->id);
	else
		want(l, c, true, MACHINE_KEY_MADE, "The disk key is made.");
}

static void want_bound(struct machine_look *l)
{
	enum model_machine_cond c = MACHINE_AK_BOUND;

	if (l->ak)
		kobj_cond_want(&l->want[c], model_machine_cond_types[c], KOBJ_COND_TRUE,
			model_machine_reason(MACHINE_BOUND), "AttestationKey %s is approved.",
			l->ak->obj.name);
	else
		want(l, c, false, MACHINE_NO_KEY_APPROVED,
			"No AttestationKey is approved for this Machine.");
}

/* Who has not confirmed it: the key, or with a key that is as wanted, the identity. */
static const char *lacking(
	const struct ctl_env *env, const struct machine_look *l, bool key_is_right)
{
	return key_is_right && l->lacking[0] ? kbs_sync_lacking(env->sync, KBS_REFVALUE, l->lacking)
					     : kbs_sync_lacking(env->sync, KBS_RESOURCE, l->path);
}

static void want_delivered(const struct ctl_env *env, struct machine_look *l)
{
	enum model_machine_cond c = MACHINE_DELIVERED;

	if (l->v.deleting && (l->owns_path || !ctl_far_gone(l->v.far_ids)))
		kobj_cond_want(&l->want[c], model_machine_cond_types[c], KOBJ_COND_FALSE,
			model_machine_reason(MACHINE_REVOKING),
			"Waits until every Trustee has confirmed that key and identity are gone. %s",
			lacking(env, l, !l->owns_path || ctl_far_gone(l->v.far_key)));
	else if (l->want[MACHINE_KEY_READY].status != KOBJ_COND_TRUE || !l->ak)
		want(l, c, false, MACHINE_WAITING,
			"Waits for the disk key and an approved AttestationKey.");
	else if ((l->v.far_key == KBS_FAR_PRESENT && l->far_identity == KBS_FAR_PRESENT) ||
		 (ctl_asking(env) && l->m->cond[c].status == KOBJ_COND_TRUE))
		want(l, c, true, MACHINE_DELIVERED_OK,
			"Every administered Trustee has key and identity.");
	else
		kobj_cond_want(&l->want[c], model_machine_cond_types[c], KOBJ_COND_FALSE,
			model_machine_reason(MACHINE_NOT_AVAILABLE),
			"Key and identity are not delivered yet. %s",
			lacking(env, l, l->v.far_key == KBS_FAR_PRESENT));
}

void machine_wants(const struct ctl_env *env, struct machine_look *l)
{
	want_key(l);
	want_bound(l);
	want_delivered(env, l);
	for (int i = 0; i < MACHINE_READY; i++) {
		if (l->want[i].status == KOBJ_COND_TRUE)
			continue;
		/* The first that is missing gives the reason. */
		kobj_cond_want(&l->want[MACHINE_READY], model_machine_cond_types[MACHINE_READY],
			KOBJ_COND_FALSE, l->want[i].reason, "%s", l->want[i].message);
		return;
	}
	want(l, MACHINE_READY, true, MACHINE_ALL_READY, "The node can boot and get its disk key.");
}
