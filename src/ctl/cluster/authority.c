/* SPDX-License-Identifier: MIT */
/*
 * Which operator decides: the condition Authority, status.authority and its metrics. Computing the
 * digest visits all objects, so this is done only while the operator does not decide, nothing is in
 * flight, and no input of the digest has changed for a second; until then status has no digest.
 */
#include "config.h"

#include "cluster_internal.h"

#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/metric.h"
#include "tec/ctl/authority.h"
#include "tec/model/configmap.h"
#include "tec/model/image.h"

#define FREEZING_MS 50 /* polling interval while requests are in flight */
#define RETIRING_MS 1000
#define BEHIND_MS   10000 /* update interval of the lag in seconds */
#define QUIET_MS    1000  /* the digest waits until its inputs are unchanged for so long */

static struct metric authority_metric = METRIC_GAUGE_INIT(
	"tec_authority", "1 for the current value of spec.authority.", "state", NULL);

static struct metric peer_metric = METRIC_GAUGE_INIT("tec_authority_peer",
	"1 for the state of the peer operator that may decide in place of this one; all 0 if it does not.",
	"state", NULL);
static struct metric behind_objects = METRIC_GAUGE_INIT("tec_follow_behind_objects",
	"Objects of the followed operator that still have to be copied, or deleted here.", NULL,
	NULL);
static struct metric behind_seconds = METRIC_GAUGE_INIT("tec_follow_behind_seconds",
	"Seconds since this operator's view of the followed operator was last known to be current.",
	NULL, NULL);

/* ---- inputs of the digest */

/* Note that the digest is out of date. Self never shows a digest, so only the other values of
 * spec.authority need a step. */
static void touched(struct ctl_cluster *c)
{
	const struct model_cluster *served = caches_cluster(c->env->caches);

	c->authority.dirty = true;
	c->authority.changed_ms = clock_boot_ms();
	if (served && served->authority != MODEL_AUTHORITY_SELF)
		ctl_runner_wake_after(c->runner, served->obj.name, QUIET_MS);
}

/* Tell whether an object appeared, disappeared, was replaced, or changed readability. */
static bool is_another(const struct kobj *was, const struct kobj *now)
{
	return !was || !now || !str_eq(was->uid, now->uid) || was->deleting != now->deleting ||
	       was->unreadable != now->unreadable;
}

/* The listeners compare the members that caches_digest() covers, and no others. */
static void on_machine(void *c, const struct kobj *was, const struct kobj *now)
{
	const struct model_machine *a = model_machine(was), *b = model_machine(now);

	if (is_another(was, now) || !str_eq(a->id, b->id) || !str_eq(a->announced, b->announced) ||
		!str_eq(a->bound_spki, b->bound_spki) || a->withheld != b->withheld ||
		model_machine_delivered(a) != model_machine_delivered(b))
		touched(c);
}

static void on_ak(void *c, const struct kobj *was, const struct kobj *now)
{
	const struct model_ak *a = model_ak(was), *b = model_ak(now);

	if (is_another(was, now) || !str_eq(a->spki_sha256, b->spki_sha256) ||
		!str_eq(a->uuid, b->uuid) || !a->approved_at != !b->approved_at ||
		a->withheld != b->withheld)
		touched(c);
}

/* A new generation means a new spec; status writes do not count. */
static void on_image(void *c, const struct kobj *was, const struct kobj *now)
{
	if (is_another(was, now) || was->generation != now->generation)
		touched(c);
}

/* Only Secrets with disk or public keys count for the digest, in their old or new form. */
static void on_secret(void *c, const struct kobj *was, const struct kobj *now)
{
	if (model_secret(now ? now : was)->shape != MODEL_SECRET_OTHER)
		touched(c);
}

/* The digest covers the values of approved images. */
static void on_configmap(void *c, const struct kobj *was, const struct kobj *now)
{
	if (str_eq((was ? was : now)->name, MODEL_PCRS_CONFIGMAP))
		touched(c);
}

static void on_cluster(void *c, const struct kobj *was, const struct kobj *now)
{
	if (!model_cluster_means_the_same(was, now))
		touched(c);
}

/* These listeners run also while the controller is off, so that the digest is never taken for
 * current after a change that was not seen. */
void cluster_authority_watch(struct ctl_cluster *c)
{
	const struct caches *s = c->env->caches;

	c->authority.dirty = true;
	k8s_cache_listen(s->machines, on_machine, c);
	k8s_cache_listen(s->aks, on_ak, c);
	k8s_cache_listen(s->images, on_image, c);
	k8s_cache_listen(s->secrets, on_secret, c);
	k8s_cache_listen(s->configmaps, on_configmap, c);
	k8s_cache_listen(s->clusters, on_cluster, c);
}

/* ---- status.authority */

/* Acts of all controllers, and registrations that listeners have accepted. */
static size_t in_flight(const struct ctl_cluster *c)
{
	return c->env->in_flight ? c->env->in_flight(c->env->in_flight_arg) : 0;
}

/* Tell whether the objects of this operator are stable: nothing in flight while Frozen, or all
 * copied while Following. */
static bool is_settled(const struct ctl_cluster *c, const struct model_cluster *served)
{
	const struct ctl_follow_state *f = c->env->follow;

	if (served->authority == MODEL_AUTHORITY_FROZEN)
		return in_flight(c) == 0;
	return served->authority == MODEL_AUTHORITY_FOLLOWING && f && f->is == CTL_FOLLOW_IN_STEP;
}

/* Return what ctl/follow knows of the peer, or NULL if the cluster never had one. */
static const struct ctl_follow_state *peer_of(
	const struct ctl_cluster *c, const struct model_cluster *served)
{
	return model_cluster_peer(served) ? c->env->follow : NULL;
}

/* Render the peer. While the peer is being watched, its time changes constantly and is left out, to
 * avoid a status write for each change. */
static void add_peer(struct json_object *o, const struct ctl_follow_state *f, bool follows)
{
	char seen[CLOCK_RFC3339_LEN];

	if (f->peer[0])
		json_add_str(o, "peer", f->peer);
	if (f->uid[0])
		json_add_str(o, "peerUID", f->uid);
	if (f->epoch >= 0)
		json_add_int(o, "peerEpoch", f->epoch);
	if (follows)
		json_add_int(o, "behind", (int64_t)f->behind);
	if (f->seen_s <= 0 || (!follows && f->is == CTL_FOLLOW_IN_STEP))
		return;
	clock_format(f->seen_s, seen);
	json_add_str(o, "seen", seen);
}

/* The lag metrics exist only while Following, those of the peer only while it is being observed, with
 * Self or Frozen: an absent sample is better than a stale one in alerts. */
static void set_metrics(const struct ctl_cluster *c, const struct model_cluster *served)
{
	const struct ctl_follow_state *f = c->env->follow, *peer = peer_of(c, served);
	enum caches_peer is = c->env->caches->peer;
	bool follows = served->authority == MODEL_AUTHORITY_FOLLOWING && f;

	metric_drop(&behind_objects, NULL, NULL);
	metric_drop(&behind_seconds, NULL, NULL);
	metric_drop(&peer_metric, NULL, NULL);
	if (follows)
		metric_set(&behind_objects, NULL, NULL, (double)f->behind);
	if (follows && f->seen_s > 0)
		metric_set(&behind_seconds, NULL, NULL, (double)(clock_wall_s() - f->seen_s));
	for (int a = MODEL_AUTHORITY_SELF; a <= MODEL_AUTHORITY_RETIRED; a++)
		metric_set(&authority_metric, model_authority_name((enum model_authority)a), NULL,
			(int)served->authority == a);
	if (!peer || (served->authority != MODEL_AUTHORITY_SELF &&
			     served->authority != MODEL_AUTHORITY_FROZEN))
		return;
	metric_set(&peer_metric, "Unknown", NULL, is == CACHES_PEER_UNKNOWN);
	metric_set(&peer_metric, "Decides", NULL, is == CACHES_PEER_DECIDES);
	metric_set(&peer_metric, "DecidesToo", NULL, peer->decides_too);
}

void cluster_authority_fini(struct ctl_cluster *c)
{
	json_object_put(steal_ptr(&c->authority.status));
	free(steal_ptr(&c->authority.facts));
	free(steal_ptr(&c->authority.counts));
}

/* Rebuild status.authority from what is known now. model_cluster_authority_texts() splits it
 * into facts, which are written at once, and counts, which may wait (see view.c). */
void cluster_authority_refresh(struct ctl_cluster *c, const struct model_cluster *served)
{
	struct cluster_authority *a = &c->authority;
	bool settled = is_settled(c, served);
	struct json_object *o = json_obj();

	set_metrics(c, served);
	cluster_authority_fini(c);
	if (settled && a->dirty && clock_boot_ms() - a->changed_ms >= QUIET_MS) {
		caches_digest(c->env->caches, &a->digest);
		a->dirty = false;
	}
	if (settled && !a->dirty) {
		json_add_str(o, "digest", a->digest.hex);
		json_add_int(o, "machines", (int64_t)a->digest.machines);
		json_add_int(o, "attestationKeys", (int64_t)a->digest.aks);
		json_add_int(o, "images", (int64_t)a->digest.images);
	}
	if (served->authority == MODEL_AUTHORITY_FOLLOWING && c->env->follow)
		add_peer(o, c->env->follow, true);
	else if (served->authority != MODEL_AUTHORITY_RETIRED && peer_of(c, served))
		add_peer(o, c->env->follow, false);
	model_cluster_authority_texts(o, &a->facts, &a->counts);
	if (json_len(o) > 0)
		a->status = o;
	else
		json_object_put(o);
}

/* ---- the condition */

/* ---- Retired
 *
 * The other controllers revoke again after each start, and a name that they have not handled yet
 * counts as left. Once every Trustee has confirmed, the condition keeps that fact: a restart while a
 * Trustee is unreachable does not undo it. */

struct left {
	const struct caches *caches;
	bool any;
	bool was_confirmed; /* the condition was Retired: only objects with our finalizer count */
};

/* A Machine is left while it has our finalizer, or a Trustee may still hold its disk key. */
static void left_machine(void *arg, const struct kobj *o)
{
	struct left *l = arg;
	const struct model_machine *m = model_machine(o);
	char path[RATS_RESOURCE_PATH_MAX];

	l->any |= o->unreadable || m->has_finalizer;
	if (l->any || l->was_confirmed || !m->id_valid)
		return;
	rats_resource_path(m->id, path);
	l->any = !caches_trustee_gone(caches_trustee_observed(l->caches, KBS_RESOURCE, path));
}

/* An AttestationKey is left while a Trustee may still hold its identity. */
static void left_ak(void *arg, const struct kobj *o)
{
	struct left *l = arg;
	char name[RATS_IDENTITY_NAME_LEN + 1];

	l->any |= o->unreadable;
	if (!l->any && !l->was_confirmed && model_ak_identity(model_ak(o), name))
		l->any =
			!caches_trustee_gone(caches_trustee_observed_key(l->caches, name, o->name));
}

/* Only Secrets of attestation keys have a finalizer of this operator. */
static void left_secret(void *arg, const struct kobj *o)
{
	struct left *l = arg;

	l->any |= !o->unreadable && model_secret(o)->has_ak_finalizer;
}

static void left_image(void *arg, const struct kobj *o)
{
	struct left *l = arg;

	l->any |= o->unreadable || model_image(o)->has_finalizer;
}

/* The cheap counts come first: the walk over all objects happens only near the end. */
static bool is_retired(const struct ctl_cluster *c, const struct model_cluster *served)
{
	const struct caches *s = c->env->caches;
	bool was = str_eq(
		served->cond[CLUSTER_AUTHORITY].reason, model_cluster_reason(CLUSTER_RETIRED));
	struct left l = {.caches = s, .was_confirmed = was};
	size_t declared, confirmed, revoking;

	kbs_sync_counts(s->sync, &declared, &confirmed, &revoking);
	if (declared > 0 || (revoking > 0 && !was))
		return false;
	k8s_cache_each(s->images, left_image, &l);
	k8s_cache_each(s->machines, left_machine, &l);
	if (!l.any)
		k8s_cache_each(s->secrets, left_secret, &l);
	if (!l.any)
		k8s_cache_each(s->aks, left_ak, &l);
	return !l.any;
}

/* A cluster that is not served decides nothing, whatever its spec.authority. Some messages change
 * without any change of an object, hence the periodic steps: the lag of Following, the last
 * confirmation of Retired, and the end of the requests that were sent before Frozen. */
void cluster_authority_want(const struct ctl_cluster *c, struct cluster_look *l)
{
	enum caches_peer peer = c->env->caches->peer;
	uint64_t since = clock_boot_ms() - c->authority.changed_ms;
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	enum model_cluster_reason r = CLUSTER_NOT_SERVED;

	if (l->v.deleting || !l->v.served) {
		CLUSTER_WANT(l, CLUSTER_AUTHORITY, false, r, "This cluster is not served.");
		return;
	}
	if (c->authority.dirty && is_settled(c, l->c))
		cluster_recheck(l, since < QUIET_MS ? QUIET_MS - since : 1);
	switch (l->c->authority) {
	case MODEL_AUTHORITY_FOLLOWING:
		r = ctl_authority_following(c->env->follow, clock_wall_s(), &text);
		cluster_recheck(l, BEHIND_MS);
		break;
	case MODEL_AUTHORITY_FROZEN:
		r = ctl_authority_frozen(peer, peer_of(c, l->c), l->c->epoch, &text);
		if (in_flight(c) == 0)
			break;
		r = CLUSTER_FREEZING;
		strbuf_reset(&text);
		strbuf_adds(&text,
			"spec.authority is Frozen. Requests that were sent before are still in flight.");
		cluster_recheck(l, FREEZING_MS);
		break;
	case MODEL_AUTHORITY_RETIRED:
		if (is_retired(c, l->c)) {
			r = CLUSTER_RETIRED;
			strbuf_adds(&text,
				"Every Trustee confirmed that it no longer holds keys or identities of this operator. The objects remain; delete the "
				"namespace once its disk keys are no longer needed.");
			break;
		}
		r = CLUSTER_RETIRING;
		strbuf_adds(&text,
			"spec.authority is Retired. Waiting until every Trustee confirms that all keys and identities are deleted; see condition "
			"TrusteeSynced.");
		cluster_recheck(l, RETIRING_MS);
		break;
	case MODEL_AUTHORITY_SELF:
		r = ctl_authority_self(peer, peer_of(c, l->c), l->c->epoch, &text);
		break;
	}
	CLUSTER_WANT(l, CLUSTER_AUTHORITY, r == CLUSTER_SELF, r, "%s", strbuf_str(&text));
}
