/* SPDX-License-Identifier: MIT */
/*
 * Copies Machines with the marks of the source (only UIDs differ), and the Secrets with their disk
 * keys. A complete copy is in the state in which ctl/machine finds nothing to do. The
 * deletionTimestamp of our own object remembers a deletion; its finalizer is removed when every
 * Trustee has confirmed.
 */
#include "config.h"

#include "follow_internal.h"

#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/model/mark.h"

/* Borrowed from the caches, valid for one step. */
struct machine_look {
	struct ctl_look base;
	struct ctl_follow_machine_view v;
	const struct model_machine *there, *here; /* NULL: there is none */
	const struct model_secret *key;           /* the source's Secret; NULL: none to copy */
	const char *hashes;                       /* for the mark; NULL: the source has none yet */
	char hex[SHA256_HEX_LEN + 1];
	const char *bound_key; /* UID for the mark */
	bool ever_bound;
	char path[RATS_RESOURCE_PATH_MAX];
	struct ctl_machine_notes notes; /* to be recorded before the finalizer is removed */
};

/* ---- decide */

/* The same order as in ctl/machine: revoke, wait for every Trustee, record, release. */
static enum ctl_follow_machine_do decide_deleting(const struct ctl_follow_machine_view *v)
{
	if (!v->held) /* only finalizers of others are left */
		return CTL_FOLLOW_MACHINE_NOTHING;
	if (!v->revoked)
		return CTL_FOLLOW_MACHINE_REVOKE;
	if (!v->gone) /* unknown counts as present */
		return CTL_FOLLOW_MACHINE_NOTHING;
	if (v->recorded == CTL_RECORD_MISSING)
		return CTL_FOLLOW_MACHINE_RECORD;
	return v->recorded == CTL_RECORDED ? CTL_FOLLOW_MACHINE_DROP_FINALIZER
					   : CTL_FOLLOW_MACHINE_NOTHING;
}

/* Create the copy, then its marks, then its Secret: without marks the key would not count. */
static enum ctl_follow_machine_do decide_copy(const struct ctl_follow_machine_view *v)
{
	if (!v->here)
		return CTL_FOLLOW_MACHINE_CREATE;
	if (!v->same || v->secret == CTL_FOLLOW_SECRET_OTHER) /* reported as a conflict */
		return CTL_FOLLOW_MACHINE_NOTHING;
	if (v->withheld || (v->ready && !v->waits && !v->marked))
		return CTL_FOLLOW_MACHINE_MARK;
	if (!v->ready || v->waits || !v->has_key || v->secret != CTL_FOLLOW_SECRET_ABSENT)
		return CTL_FOLLOW_MACHINE_NOTHING;
	return v->must_read ? CTL_FOLLOW_MACHINE_READ_SECRET : CTL_FOLLOW_MACHINE_CREATE_SECRET;
}

/* A Machine deleted at the source is deleted here; one that is merely missing is only withheld. */
enum ctl_follow_machine_do ctl_follow_machine_decide(const struct ctl_follow_machine_view *v)
{
	if (!v->may_copy)
		return CTL_FOLLOW_MACHINE_NOTHING;
	if (v->here && v->deleting) /* if someone deleted it here, it is copied again afterwards */
		return decide_deleting(v);
	if (v->here && v->deleted)
		return v->may_take ? CTL_FOLLOW_MACHINE_DELETE : CTL_FOLLOW_MACHINE_NOTHING;
	if (v->there)
		return decide_copy(v);
	if (!v->here || !v->may_take)
		return CTL_FOLLOW_MACHINE_NOTHING;
	if (!v->withheld) /* before the revocation, or ctl/machine would declare it again */
		return CTL_FOLLOW_MACHINE_WITHHOLD;
	return v->revoked ? CTL_FOLLOW_MACHINE_NOTHING : CTL_FOLLOW_MACHINE_REVOKE;
}

/* Classify the Machine for the counts: an act or a pending step means behind. */
static enum follow_lag lag_of(const struct ctl_follow_machine_view *v, enum ctl_follow_machine_do d)
{
	if (d != CTL_FOLLOW_MACHINE_NOTHING || (v->here && (v->deleting || v->deleted)))
		return FOLLOW_BEHIND;
	if (!v->here)
		return FOLLOW_IN_STEP;
	if (!v->there)
		return v->unused ? FOLLOW_UNUSED : FOLLOW_MISSING;
	if (!v->same || v->secret == CTL_FOLLOW_SECRET_OTHER)
		return FOLLOW_CONFLICT;
	return v->ready && (v->waits || v->secret == CTL_FOLLOW_SECRET_DELETING) ? FOLLOW_BEHIND
										 : FOLLOW_IN_STEP;
}

/* ---- look */

/* Find the disk key to copy and the hashes for the mark. Only an announced key counts: any
 * client could have written the Secret. */
static void look_key(const struct caches *source, struct machine_look *l)
{
	const struct model_machine *m = l->there;
	const struct model_secret *secret = caches_secret(source, m->id);
	enum caches_luks luks = caches_machine_luks(source, m);

	if ((luks == CACHES_LUKS_OK || luks == CACHES_LUKS_DELETING) &&
		caches_machine_announces(m, secret)) {
		l->key = secret;
		l->hashes = model_secret_key_sha256(secret, l->hex);
	} else if (model_machine_delivered(m)) { /* the key is lost there and is never replaced */
		l->hashes = m->announced;
	}
	l->v.ready = l->hashes || caches_machine_lost_key(source, m);
	l->v.has_key = l->key != NULL;
	/* For a Machine older than its operator, the source approves no key automatically, and
	 * neither do we. */
	l->ever_bound = m->bound_at || caches_adoption_cutoff_is_after(source, &m->obj);
}

/* Find the UID of our copy of the AttestationKey that the source's Machine is bound to. */
static void look_bound_key(
	const struct caches *source, const struct caches *ours, struct machine_look *l)
{
	const struct model_machine *m = l->there;

	if (!m->bound_key)
		return;
	for (const struct kobj *o = k8s_cache_first(source->aks, 0, m->id); o;
		o = k8s_cache_next(source->aks, 0, o)) {
		const struct kobj *copy = k8s_cache_find(ours->aks, o->name);

		if (!str_eq(o->uid, m->bound_key) || o->deleting)
			continue;
		l->v.waits = !copy || copy->unreadable || copy->deleting ||
			     !str_eq(model_ak(copy)->spki_sha256, m->bound_spki);
		l->bound_key = l->v.waits ? NULL : copy->uid;
		return;
	}
	/* The key is gone there: the mark keeps recording that one was bound, with a UID that no
	 * object has. */
	l->bound_key = l->here && str_eq(l->here->bound_spki, m->bound_spki) ? l->here->bound_key
									     : m->bound_key;
}

/* Anything that is not exactly the announced key, owned by our copy, is foreign and never
 * touched. */
static enum ctl_follow_secret look_secret(const struct caches *ours, const struct machine_look *l)
{
	const struct model_secret *secret = caches_secret(ours, l->here->id);
	char hex[SHA256_HEX_LEN + 1];

	if (!secret)
		return CTL_FOLLOW_SECRET_ABSENT;
	if (secret->obj.unreadable || secret->n_owners != 1 ||
		!str_eq(secret->owner_uid, l->here->obj.uid) || secret->shape != MODEL_SECRET_LUKS)
		return CTL_FOLLOW_SECRET_OTHER;
	if (!model_mark_announces(l->hashes, model_secret_key_sha256(secret, hex)))
		return CTL_FOLLOW_SECRET_OTHER;
	return secret->obj.deleting ? CTL_FOLLOW_SECRET_DELETING : CTL_FOLLOW_SECRET_SAME;
}

/* A copy with another delivered key is a conflict: one of the two disks would be lost. */
static void look_copy(const struct ctl_kind *k, struct machine_look *l)
{
	const struct caches *source = &follow_kind((struct ctl_kind *)k)->f->source.caches;
	const struct model_machine *a = l->there, *b = l->here;
	bool other_key;

	look_key(source, l);
	if (!b)
		return;
	look_bound_key(source, k->caches, l);
	other_key =
		model_machine_delivered(b) && l->key && !model_mark_announces(b->announced, l->hex);
	l->v.same = str_eq(b->id, a->id) && !other_key;
	if (!l->v.ready)
		return;
	/* Every mark that ctl/machine reads; UIDs are those of our copies. */
	l->v.marked = b->has_finalizer && (!l->hashes || str_eq(b->announced, l->hashes)) &&
		      (b->bound_at || !l->ever_bound) && (b->attested_s || !l->ever_bound) &&
		      (!a->bound_key || (str_eq(b->bound_key, l->bound_key) &&
						str_eq(b->bound_spki, a->bound_spki))) &&
		      (!a->delivered_at || (str_eq(b->delivered_at, a->delivered_at) &&
						   b->recalled == a->recalled));
	l->v.secret = look_secret(k->caches, l);
}

/* Look at what Trustees hold of our copy. A Machine that is only withheld keeps its identities:
 * without the disk key they release nothing. */
static void look_trustee(const struct ctl_kind *k, struct machine_look *l, struct ctl_act *act)
{
	const struct caches *s = k->caches;
	const struct model_machine *m = l->here;
	const struct kobj *declared;
	char name[RATS_IDENTITY_NAME_LEN + 1];
	enum kbs_observed observed;

	l->v.revoked = l->v.gone = true;
	for (const struct kobj *o = l->v.deleting ? k8s_cache_first(s->aks, 2, m->obj.uid) : NULL;
		o; o = k8s_cache_next(s->aks, 2, o)) {
		if (!model_ak_was_approved(model_ak(o)) || !model_ak_identity(model_ak(o), name))
			continue;
		observed = caches_trustee_observed_key(s, name, o->name);
		if (observed != KBS_OBSERVED_NONE && !caches_trustee_withdrawn(s, name, o->name))
			l->v.revoked = false;
		l->v.gone &= caches_trustee_gone(observed);
		ctl_act_wait(act, KBS_REFVALUE, name);
	}
	if (!m->id_valid)
		return;
	rats_resource_path(m->id, l->path);
	declared = kbs_sync_object(s->sync, KBS_RESOURCE, l->path);
	if (caches_machine_of_id(s, m->id) != m &&
		!(declared && str_eq(model_secret(declared)->owner_uid, m->obj.uid))) {
		l->path[0] = '\0'; /* it belongs to another Machine */
		return;
	}
	observed = caches_trustee_observed(s, KBS_RESOURCE, l->path);
	if (declared || (observed != KBS_OBSERVED_NONE &&
				!kbs_sync_is_revoked(s->sync, KBS_RESOURCE, l->path)))
		l->v.revoked = false;
	l->v.gone &= caches_trustee_gone(observed);
	l->notes.path = l->v.deleting && model_machine_delivered(m) &&
			observed != KBS_OBSERVED_NONE && ctl_record_is_wanted(k->env->record);
	ctl_act_wait(act, KBS_RESOURCE, l->path);
}

/* Trustees are asked only about Machines that have to leave them. */
static int look(struct ctl_kind *k, const char *name, struct ctl_act *act, struct ctl_look *out)
{
	struct machine_look *l = (struct machine_look *)out;
	struct follow_pair p = follow_kind_look(k, name, out);
	enum ctl_follow_machine_do d;

	l->v.may_copy = p.may_copy;
	l->v.may_take = p.may_take;
	l->v.deleted = p.deleted;
	l->there = p.there && model_machine(p.there)->id_valid ? model_machine(p.there) : NULL;
	l->here = p.here ? model_machine(p.here) : NULL;
	l->v.there = l->there != NULL;
	l->v.here = l->here != NULL;
	out->secret_name = l->there ? l->there->id : NULL;
	l->v.must_read = act->must_read;
	if (l->there)
		look_copy(k, l);
	if (l->here) {
		l->v.deleting = l->here->obj.deleting;
		l->v.held = l->here->has_finalizer;
		l->v.withheld = l->here->withheld;
		l->v.unused = !model_machine_delivered(l->here);
		if (l->v.deleting || !l->v.there) {
			look_trustee(k, l, act);
			/* As in ctl/machine: a Trustee that is restored from a backup would hold the
			 * key, and a listener of this operator would accept the ID once it decides. */
			l->notes.id = l->v.deleting && l->here->id_valid &&
				      caches_machine_of_id(k->caches, l->here->id) == l->here &&
				      ctl_record_id_counts(k->env->record, l->here->id) &&
				      !caches_machine_is_expired(k->caches, l->here);
			l->v.recorded =
				ctl_machine_recorded(k->env->record, &l->notes, l->path, l->here);
		}
	}
	d = ctl_follow_machine_decide(&l->v);
	follow_kind_lags(k, name, lag_of(&l->v, d));
	return d;
}

/* ---- acts */

/* A listener's Machine gets our cluster as owner; expiry applies to it once this operator
 * decides. */
static struct op *create(struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *look, int d)
{
	const struct model_machine *m = ((const struct machine_look *)look)->there;
	const struct model_cluster *c = caches_cluster(k->caches);
	cleanup_json struct json_object *o =
		model_machine_new_json(m->id, c->obj.name, c->obj.uid, false);
	struct json_object *meta = json_get_obj(o, "metadata");

	json_add_str(meta, "name", m->obj.name);
	if (!m->by_listener) { /* an administrator created it: it has no owner */
		json_drop(meta, "annotations");
		json_drop(meta, "ownerReferences");
	}
	return ctl_kind_create(k, a, &kobj_machine, o);
}

/* Translate the marks of the source: times and hashes are the same, UIDs are those of our
 * copies. */
static void add_marks(const struct machine_look *l, struct json_object *marks)
{
	const struct model_machine *m = l->there;
	const struct kobj *o = &l->here->obj;
	cleanup_free char *bound = xasprintf(
		"%s %s", l->bound_key ? l->bound_key : "", m->bound_spki ? m->bound_spki : "");
	cleanup_free char *sent = xasprintf("%s%s", m->delivered_at ? m->delivered_at : "",
		m->recalled ? MODEL_DELIVERED_REVOKED : "");
	char created[CLOCK_RFC3339_LEN], attested[CLOCK_RFC3339_LEN];

	clock_format(m->obj.created_s, created);
	if (l->hashes)
		ctl_add_mark(marks, o, MODEL_KEY_SHA256_ANNOTATION, l->hashes);
	if (l->ever_bound)
		ctl_add_mark(
			marks, o, MODEL_BOUND_AT_ANNOTATION, m->bound_at ? m->bound_at : created);
	if (m->bound_key)
		ctl_add_mark(marks, o, MODEL_BOUND_KEY_ANNOTATION, bound);
	if (m->delivered_at)
		ctl_add_mark(marks, o, MODEL_DELIVERED_AT_ANNOTATION, sent);
	/* Older sources do not record this, but a Machine that never attested would expire. */
	clock_format(m->attested_s ? m->attested_s : clock_wall_s(), attested);
	if (l->ever_bound && !l->here->attested_s)
		ctl_add_mark(marks, o, MODEL_LAST_ATTESTED_ANNOTATION, attested);
}

/* Finalizer and marks in one patch: there is no moment with a key but without a finalizer. */
static struct op *patch(struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *look, int d)
{
	const struct machine_look *l = (const struct machine_look *)look;
	struct json_object *meta, *marks = json_obj();
	cleanup_json struct json_object *patch = ctl_patch_of(look->o, &meta);
	bool held = d != CTL_FOLLOW_MACHINE_DROP_FINALIZER;
	char now[CLOCK_RFC3339_LEN];

	clock_format(clock_wall_s(), now);
	if (d == CTL_FOLLOW_MACHINE_WITHHOLD) {
		ctl_add_mark(marks, look->o, MODEL_WITHHELD_ANNOTATION, now);
	} else if (held) {
		if (l->v.ready && !l->v.waits)
			add_marks(l, marks);
		json_add(marks, MODEL_WITHHELD_ANNOTATION, NULL);
	}
	json_add(meta, "annotations", marks);
	if (d != CTL_FOLLOW_MACHINE_WITHHOLD)
		json_add(meta, "finalizers",
			kobj_finalizers(
				l->here->finalizers, held ? MODEL_MACHINE_FINALIZER : NULL));
	return ctl_kind_patch(k, a, &kobj_machine, a->name, patch);
}

/* The key goes from the source's cache into the request without a copy in ordinary memory. */
static struct op *create_secret(
	struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *look, int d)
{
	const struct machine_look *l = (const struct machine_look *)look;

	return ctl_kind_create_secret(k, a,
		model_luks_secret_text(
			l->here->id, l->here->obj.name, l->here->obj.uid, l->key->root));
}

/* Identities are withdrawn only with the deletion; withholding revokes the disk key alone. */
static void revoke(struct ctl_kind *k, const struct ctl_look *look)
{
	const struct machine_look *l = (const struct machine_look *)look;
	struct log_ctx lc = {"Machine", k->env->ns, look->o->name, look->o->uid};
	const struct caches *s = k->caches;
	char name[RATS_IDENTITY_NAME_LEN + 1];

	if (l->path[0])
		kbs_sync_revoke(s->sync, KBS_RESOURCE, l->path);
	for (const struct kobj *o = l->v.deleting ? k8s_cache_first(s->aks, 2, look->o->uid) : NULL;
		o; o = k8s_cache_next(s->aks, 2, o)) {
		if (model_ak_was_approved(model_ak(o)) && model_ak_identity(model_ak(o), name))
			kbs_sync_withdraw(s->sync, KBS_REFVALUE, name, o->name);
	}
	log_info(&lc, "key is being revoked", "reason=\"the followed operator %s\"",
		l->v.deleting ? "deleted the Machine" : "no longer lists the Machine");
}

/* The same records as ctl/machine writes. */
static void record(struct ctl_kind *k, const struct ctl_look *look)
{
	const struct machine_look *l = (const struct machine_look *)look;

	ctl_machine_record(k, &l->notes, l->path, l->here);
}

static const struct ctl_do acts[CTL_FOLLOW_MACHINE_N_DO] = {
	[CTL_FOLLOW_MACHINE_CREATE] = {"copy the Machine",
		.flags = CTL_DO_FOLLOWING | CTL_DO_ANSWERS_SELF | CTL_DO_CREATES, .start = create},
	[CTL_FOLLOW_MACHINE_MARK] = {"copy the marks",
		.flags = CTL_DO_FOLLOWING | CTL_DO_ANSWERS_SELF, .start = patch},
	[CTL_FOLLOW_MACHINE_READ_SECRET] = {"read the Secret",
		.flags = CTL_DO_FOLLOWING | CTL_DO_SECRET | CTL_DO_READS | CTL_DO_GONE_IS_FINE,
		.start = ctl_kind_start_read_secret},
	[CTL_FOLLOW_MACHINE_CREATE_SECRET] = {"copy the key", "key copied",
		CTL_DO_FOLLOWING | CTL_DO_SECRET | CTL_DO_CREATES, .start = create_secret},
	[CTL_FOLLOW_MACHINE_WITHHOLD] = {"withhold the key",
		"key withheld, the followed operator no longer lists the Machine",
		CTL_DO_FOLLOWING | CTL_DO_ANSWERS_SELF | CTL_DO_WARNS, .start = patch},
	/* A copy with marks has our finalizer, too, which holds it until it is revoked; without marks
	 * nothing was delivered. */
	[CTL_FOLLOW_MACHINE_DELETE] = {"delete the copy", "Machine deleted, the source deleted it",
		CTL_DO_FOLLOWING | CTL_DO_ANSWERS_SELF | CTL_DO_GONE_IS_FINE,
		.start = ctl_kind_start_delete},
	[CTL_FOLLOW_MACHINE_REVOKE] = {"revoke", .flags = CTL_DO_FOLLOWING, .memory = revoke},
	[CTL_FOLLOW_MACHINE_RECORD] = {"record the deletion", .flags = CTL_DO_FOLLOWING,
		.memory = record},
	[CTL_FOLLOW_MACHINE_DROP_FINALIZER] = {"remove the finalizer",
		"Machine released, no Trustee holds its key",
		CTL_DO_FOLLOWING | CTL_DO_ANSWERS_SELF | CTL_DO_GONE_IS_FINE, .start = patch},
};

/* ---- which keys a change concerns */

/* Machines of both sides: the ID may exist on one side only. */
static void wake_id(struct ctl_kind *k, const char *id)
{
	ctl_kind_wake_index(k, k->caches->machines, 0, id);
	ctl_kind_wake_index(k, follow_kind(k)->f->source.caches.machines, 0, id);
}

/* A Machine waits for the copy of its AttestationKey, whose UID its mark names. */
static void map_ak(void *self, const struct kobj *was, const struct kobj *now)
{
	const char *a = was ? model_ak(was)->uuid : NULL, *b = now ? model_ak(now)->uuid : NULL;

	wake_id(self, a);
	if (!str_eq(a, b))
		wake_id(self, b);
}

static void map_secret(void *self, const struct kobj *was, const struct kobj *now)
{
	wake_id(self, was ? was->name : now->name);
}

/* Trustees count for "in step", hence the check. */
static void on_sync(struct ctl_kind *k, enum kbs_kind kind, const char *name)
{
	follow_kind_check_soon(follow_kind(k)->f);
}

struct ctl_kind *follow_machine_new(struct ctl_follow *f)
{
	static const struct follow_watch watches[] = {
		{CACHES_MACHINES, follow_kind_map, follow_kind_map_source},
		{CACHES_AKS, map_ak, map_ak},
		{CACHES_SECRETS, map_secret, map_secret},
		{.here = NULL},
	};
	static const struct ctl_kind_conf conf = {
		.name = "follow_machine",
		.of = CACHES_MACHINES,
		.size = sizeof(struct follow_kind),
		.look_size = sizeof(struct machine_look),
		.acts = acts,
		.status = -1,
		.knows_cached = true,
		.look = look,
		.on_sync = on_sync,
		.forget = follow_kind_forget,
	};

	return follow_kind_new(f, &conf, watches);
}
