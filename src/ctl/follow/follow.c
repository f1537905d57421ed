/* SPDX-License-Identifier: MIT */
/*
 * Which parts run, and what is known of the source. One function, check(), brings both up to date;
 * every event only schedules it. Keys are looked at only while the source is being read and may be
 * copied; each look updates the count of keys that are not in step.
 */
#include "config.h"

#include "follow_internal.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"

#define TICK_MS      5000 /* interval of checks while nothing else happens */
#define SEEN_S       10   /* interval of notifications if only seen_s changes */
#define STALE_S      3600 /* interval of Events while the source is unreachable */
#define MISSING_MIN  3    /* this many missing copies, and 1 / MISSING_PART of all, are too many */
#define MISSING_PART 20

/* ---- too many copies missing at once */

struct missing {
	struct ctl_kind *k;
	const struct k8s_cache *source;
	size_t of,
		n; /* of: copies that a Trustee holds something of; n: of these, missing at the source
		      and not withheld yet */
};

/* Each missing Machine is woken, too, since no event names it. */
static void count_machine(void *arg, const struct kobj *o)
{
	struct missing *m = arg;
	const struct model_machine *machine = model_machine(o);

	if (o->unreadable || o->deleting)
		return;
	m->of += model_machine_delivered(machine);
	if (k8s_cache_find(m->source, o->name) ||
		follow_note_deleted(&follow_kind(m->k)->notes, o->name))
		return;
	m->n += model_machine_delivered(machine) && !machine->withheld;
	ctl_runner_wake(m->k->runner, o->name);
}

/* As count_machine(), for approved keys. */
static void count_ak(void *arg, const struct kobj *o)
{
	struct missing *m = arg;
	const struct model_ak *ak = model_ak(o);

	if (o->unreadable || o->deleting)
		return;
	m->of += ak->approved_at != NULL;
	if (k8s_cache_find(m->source, o->name) ||
		follow_note_deleted(&follow_kind(m->k)->notes, o->name))
		return;
	m->n += ak->approved_at && !ak->withheld;
	ctl_runner_wake(m->k->runner, o->name);
}

/* Tell whether so many copies are missing that the source was probably restored or emptied. An
 * empty list is never trusted. */
static bool is_too_many(const struct missing *m)
{
	return (m->n >= MISSING_MIN && m->n * MISSING_PART > m->of) ||
	       (m->n > 0 && k8s_cache_count(m->source) == 0);
}

/* Runs before keys are looked at: a source that was restored from an old backup must not lead to
 * deletions here. */
static void count_missing(struct ctl_follow *f)
{
	const struct state *source = &f->source.state, *ours = f->env->state;
	struct missing machines = {.k = f->machine, .source = source->machines};
	struct missing aks = {.k = f->ak, .source = source->aks};
	bool before = f->went_back;

	k8s_cache_each(ours->machines, count_machine, &machines);
	k8s_cache_each(ours->aks, count_ak, &aks);
	f->went_back = is_too_many(&machines) || is_too_many(&aks);
	if (f->went_back)
		snprintf(f->went_back_why, sizeof(f->went_back_why),
			"%zu of %zu Machines with a key and %zu of %zu approved AttestationKeys of this namespace are "
			"suddenly missing at the source, so nothing is deleted or revoked here. If the source was restored from an "
			"older backup, delete what it lacks: tecctl follow --accept-source",
			machines.n, machines.of, aks.n, aks.of);
	if (before && !f->went_back) /* the source's spec counts again */
		ctl_kind_wake_all(f->cluster);
	if (f->went_back && !before)
		log_warn(NULL, "many objects are suddenly missing at the followed operator",
			"machine=%zu ak=%zu", machines.n, aks.n);
}

/* ---- what is known of the source */

/* The cluster that follows, or NULL. */
static const struct model_cluster *followed(const struct ctl_follow *f)
{
	const struct model_cluster *c = state_cluster(f->env->state);

	return f->on && c && c->authority == MODEL_AUTHORITY_FOLLOWING && c->follow_secret ? c
											   : NULL;
}

/* The cluster here whose source or peer must be read, or NULL. */
static const struct model_cluster *connected(const struct ctl_follow *f)
{
	const struct model_cluster *c = followed(f);

	return c ? c : follow_peer_of(f);
}

/* Return why the source must not be copied, or NULL if it may. */
static const char *why_not(const struct ctl_follow *f, enum ctl_follow_is *is)
{
	const struct model_cluster *there = state_cluster(&f->source.state);
	const struct model_cluster *here = state_cluster_policy(f->env->state);

	*is = CTL_FOLLOW_CONNECTING;
	if (!follow_source_filled(&f->source))
		return "The other operator's objects are being read.";
	*is = CTL_FOLLOW_UNREACHABLE;
	if (!there)
		return "No readable TrustedExecutionCluster exists in that namespace.";
	if (here && here->followed_uid && !str_eq(here->followed_uid, there->obj.uid)) {
		*is = CTL_FOLLOW_OTHER;
		return "The TrustedExecutionCluster there is not the one that was followed before. Correct spec.follow, or "
		       "remove the annotation " MODEL_CLUSTER_FOLLOWED_MARK " to follow this one.";
	}
	if (there->authority == MODEL_AUTHORITY_FOLLOWING)
		return "The operator there follows another operator, too, so it decides nothing. Set spec.authority to Self on "
		       "one side.";
	*is = CTL_FOLLOW_CONNECTING;
	return here && here->followed_uid ? NULL : "The cluster to follow is being recorded.";
}

/* Copied is not enough: a takeover must not find a Trustee that lacks keys. */
static bool trustees_in_step(const struct state *s)
{
	size_t declared, confirmed, revoking;

	if (kbs_sync_state(s->sync) != KBS_TARGET_IN_SYNC)
		return false;
	kbs_sync_counts(s->sync, &declared, &confirmed, &revoking);
	return declared == confirmed && revoking == 0;
}

static const struct follow_notes *notes(const struct ctl_kind *k)
{
	return &((const struct follow_kind *)k)->notes;
}

/* Sum over all kinds of objects. */
static size_t count(const struct ctl_follow *f, enum follow_lag lag)
{
	return notes(f->cluster)->n[lag] + notes(f->machine)->n[lag] + notes(f->ak)->n[lag] +
	       notes(f->image)->n[lag];
}

/* Name up to three objects of each kind that have this lag. */
static void say_names(
	const struct ctl_follow *f, enum follow_lag lag, const char *text, char out[512])
{
	cleanup_strbuf struct strbuf names = STRBUF_INIT;

	if (notes(f->machine)->n[lag] > 0)
		strbuf_adds(&names, "Machine ");
	follow_note_names(notes(f->machine), lag, &names);
	if (notes(f->ak)->n[lag] > 0)
		strbuf_addf(&names, "%sAttestationKey ", names.len ? ", " : "");
	follow_note_names(notes(f->ak), lag, &names);
	if (notes(f->image)->n[lag] > 0)
		strbuf_addf(&names, "%sApprovedImage ", names.len ? ", " : "");
	follow_note_names(notes(f->image), lag, &names);
	snprintf(out, 512, "%.300s: %s", strbuf_str(&names), text);
}

/* While keys wait to be looked at, the counts are incomplete. */
static bool is_looking(const struct ctl_follow *f)
{
	return queue_due(ctl_runner_queue(f->machine->runner)) > 0 ||
	       queue_due(ctl_runner_queue(f->ak->runner)) > 0;
}

/* BEHIND counts only keys that were looked at; keys in the queue may add to it. */
static bool is_working(const struct ctl_follow *f)
{
	return count(f, FOLLOW_BEHIND) > 0 || is_looking(f);
}

/* Determine the state of following; the first problem found wins, and `why` explains it. */
static enum ctl_follow_is find_out(const struct ctl_follow *f, char why[512])
{
	const char *reason;
	enum ctl_follow_is is;

	if (follow_source_problem(&f->source, why))
		return CTL_FOLLOW_UNREACHABLE;
	reason = why_not(f, &is);
	if (reason) {
		snprintf(why, 512, "%s", reason);
		return is;
	}
	if (f->went_back) {
		snprintf(why, 512, "%s", f->went_back_why);
		return CTL_FOLLOW_WENT_BACK;
	}
	if (notes(f->cluster)->n[FOLLOW_CONFLICT] > 0) {
		snprintf(why, 512, "%s", f->spec_why);
		return CTL_FOLLOW_CONFLICT;
	}
	if (count(f, FOLLOW_CONFLICT) > 0) {
		say_names(f, FOLLOW_CONFLICT,
			"the copy or its Secret differs from the source and is never overwritten. Delete the wrong one.",
			why);
		return CTL_FOLLOW_CONFLICT;
	}
	if (is_working(f)) {
		snprintf(why, 512, "%s", f->spec_why);
		return CTL_FOLLOW_COPYING;
	}
	if (count(f, FOLLOW_MISSING) > 0) {
		say_names(f, FOLLOW_MISSING,
			"missing at the source, no deletion was observed. A key is revoked here until the source lists it "
			"again; an image stays approved. To delete it: tecctl follow --confirm-deletes, for an image "
			"--accept-source.",
			why);
		return CTL_FOLLOW_COPYING;
	}
	if (!trustees_in_step(f->env->state)) {
		snprintf(why, 512,
			"Waiting until every Trustee of this cluster has everything that was copied.");
		return CTL_FOLLOW_COPYING;
	}
	if (count(f, FOLLOW_UNUSED) > 0)
		say_names(f, FOLLOW_UNUSED,
			"missing at the source, and no Trustee ever had its key. To delete it here: tecctl follow "
			"--confirm-deletes.",
			why);
	return CTL_FOLLOW_IN_STEP;
}

/* ---- notifications */

/* Repeat the Event each hour while the source is unreachable for longer than spec.follow allows. */
static void tell_stale(struct ctl_follow *f, const struct model_cluster *c)
{
	int64_t now_s = clock_wall_s(), away_s = now_s - f->is.seen_s;
	int64_t unit_s = away_s >= 3600 ? 3600 : away_s >= 60 ? 60 : 1;

	if (f->is.seen_s == 0 || away_s * 1000 <= c->follow_stale_ms ||
		now_s - f->told_stale_s < STALE_S)
		return;
	f->told_stale_s = now_s;
	k8s_events_post(f->env->events, &kobj_cluster, &c->obj, K8S_EVENT_WARNING, "SourceAway",
		"Follow",
		"The operator at %s was last read %lld %s ago. Nodes still receive the keys known at that time. %s",
		f->is.peer, (long long)(away_s / unit_s),
		unit_s == 3600 ? "hours"
		: unit_s == 60 ? "minutes"
			       : "seconds",
		f->is.why);
}

/* Publish the state. Listeners write it into status, so a change of seen_s alone is told at most
 * every SEEN_S. */
static void tell(struct ctl_follow *f, const struct ctl_follow_state *now)
{
	bool other = now->is != f->is.is || now->behind != f->is.behind ||
		     !str_eq(now->peer, f->is.peer) || !str_eq(now->uid, f->is.uid) ||
		     now->epoch != f->is.epoch || now->decides_too != f->is.decides_too ||
		     !str_eq(now->why, f->is.why);

	if (now->is != f->is.is)
		log_info(NULL, "following", "state=%d count=%zu reason=%s", (int)now->is,
			now->behind, log_esc(now->why));
	f->is = *now;
	if (!other && now->seen_s - f->told_seen_s < SEEN_S)
		return;
	f->told_seen_s = now->seen_s;
	for (unsigned i = 0; i < f->n_listeners; i++)
		f->listener[i].fn(f->listener[i].arg);
}

/* Carry over what was known before a start or before the connection ended: from memory, or from
 * status. */
static void remember(struct ctl_follow *f, const struct model_cluster *c,
	const struct model_cluster *there, struct ctl_follow_state *now)
{
	const char *uid = there ? there->obj.uid : c->followed_uid;
	bool same = f->is.uid[0] && str_eq(f->is.uid, uid);

	snprintf(now->uid, sizeof(now->uid), "%s", uid ? uid : "");
	if (!now->peer[0] && c->followed_uid && c->authority_peer)
		snprintf(now->peer, sizeof(now->peer), "%s", c->authority_peer);
	now->seen_s = follow_source_seen_s(&f->source);
	if (now->seen_s == 0)
		now->seen_s = same ? f->is.seen_s : c->followed_uid ? c->peer_seen_s : 0;
	now->epoch = there             ? there->epoch
		     : same            ? f->is.epoch
		     : c->followed_uid ? c->peer_epoch
				       : -1;
}

/* Compute the published state from scratch; tell() finds out whether it changed. */
static void update(struct ctl_follow *f, const struct model_cluster *c)
{
	struct ctl_follow_state now = {.is = CTL_FOLLOW_OFF, .epoch = -1};
	struct ctl_follow_peer_view v;

	if (c) {
		memcpy(now.peer, f->is.peer, sizeof(now.peer));
		remember(f, c, state_cluster(&f->source.state), &now);
	}
	if (c && c->authority != MODEL_AUTHORITY_FOLLOWING) {
		follow_peer_view(f, &v);
		now.is = follow_peer_is(f, now.why);
		now.decides_too =
			v.self && v.read && v.decides && f->state->peer != STATE_PEER_DECIDES;
	} else if (c) {
		now.is = find_out(f, now.why);
		now.behind = count(f, FOLLOW_BEHIND) + count(f, FOLLOW_MISSING) +
			     count(f, FOLLOW_CONFLICT);
	}
	tell(f, &now);
	if (c && c->authority == MODEL_AUTHORITY_FOLLOWING)
		tell_stale(f, c);
}

/* ---- check */

/* Objects of either side may need an act: names of both are woken. */
static void wake_all(struct ctl_follow *f)
{
	struct ctl_kind *const kinds[] = {f->machine, f->ak, f->image};

	ctl_kind_wake_all(f->cluster);
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		k8s_cache_each(
			f->source.state.cache[kinds[i]->conf->of], follow_kind_wake, kinds[i]);
		ctl_kind_wake_all(kinds[i]);
	}
}

/* Both are harmless if the state is the same already. */
static void kind_set(struct ctl_kind *k, bool on)
{
	if (on)
		ctl_kind_on(k);
	else
		ctl_kind_off(k);
}

/* Start or stop the kinds. Nothing is copied from a peer, of which only the cluster is read. */
static void kinds_set(struct ctl_follow *f, const struct model_cluster *c)
{
	bool filled = c && follow_source_filled(&f->source);
	bool copies = filled && c->authority == MODEL_AUTHORITY_FOLLOWING;

	if (f->kinds_on == filled && f->copies_on == copies)
		return;
	f->kinds_on = filled;
	f->copies_on = copies;
	kind_set(f->cluster, filled);
	kind_set(f->machine, copies);
	kind_set(f->ak, copies);
	kind_set(f->image, copies);
}

/* Bring connection, kinds and state up to date; deferred to the next turn of the loop by
 * follow_kind_check(). */
static void check(void *arg)
{
	struct ctl_follow *f = arg;
	const struct model_cluster *c = connected(f);
	enum ctl_follow_is ignored;
	bool may_copy;

	if (c) {
		follow_source_want(&f->source, c);
		timer_set(&f->tick, TICK_MS);
		if (f->source.peer[0])
			memcpy(f->is.peer, f->source.peer, sizeof(f->is.peer));
	} else {
		follow_source_close(&f->source);
		timer_cancel(&f->tick);
	}
	may_copy = followed(f) && !why_not(f, &ignored);
	kinds_set(f, c);
	if (!may_copy) {
		f->went_back = false;
	} else if (!f->may_copy) {
		count_missing(f);
		wake_all(f);
	}
	f->may_copy = may_copy;
	follow_peer_check(f);
	update(f, c);
	follow_peer_tell(f);
	/* A look that finds its key in step schedules nothing, not even the last one. */
	if (is_looking(f))
		follow_kind_check_soon(f);
}

/* Missing objects may have come back, or been accepted by an administrator, without a new list. */
static void on_tick(void *arg)
{
	struct ctl_follow *f = arg;

	if (f->went_back && f->may_copy)
		count_missing(f);
	follow_kind_check(f);
}

/* ---- the source */

/* Missing copies are counted before any key is looked at. */
static void on_listed(void *arg)
{
	struct ctl_follow *f = arg;

	if (f->may_copy)
		count_missing(f);
	follow_kind_check(f);
}

static void on_closing(void *arg)
{
	struct ctl_follow *f = arg;

	kinds_set(f, NULL);
	f->is.peer[0] = '\0';
}

static const struct follow_source_listener of_source = {
	.changed = follow_kind_check, .listed = on_listed, .closing = on_closing};

/* ---- life */

/* The kubeconfig may have changed. */
static void on_our_secret(void *arg, const struct kobj *was, const struct kobj *now)
{
	struct ctl_follow *f = arg;
	const struct model_cluster *c = connected(f);

	if (c && str_eq(was ? was->name : now->name, c->follow_secret))
		follow_kind_check(f);
}

static void on_our_cluster(void *arg, const struct kobj *was, const struct kobj *now)
{
	follow_kind_check(arg);
}

/* All four kinds exist for life and are switched on and off by check(). */
struct ctl_follow *ctl_follow_new(const struct ctl_env *env, struct state *state)
{
	struct ctl_follow *f = xcalloc(1, sizeof(*f));

	f->env = env;
	f->state = state;
	f->is.epoch = -1;
	timer_init(&f->tick, env->loop, on_tick, f);
	f->check_fn = check;
	follow_source_init(&f->source, env, &of_source, f);
	f->cluster = follow_cluster_new(f);
	f->machine = follow_machine_new(f);
	f->ak = follow_ak_new(f);
	f->image = follow_image_new(f);
	k8s_cache_listen(env->state->secrets, on_our_secret, f);
	k8s_cache_listen(env->state->clusters, on_our_cluster, f);
	return f;
}

/* What another leader wrote about the peer is old; this process has to read the peer itself. */
void ctl_follow_leads(struct ctl_follow *f)
{
	if (f->state->peer == STATE_PEER_TOLD)
		f->state->peer = STATE_PEER_UNKNOWN;
}

/* What was confirmed while another replica led is not known here. */
void ctl_follow_on(struct ctl_follow *f)
{
	f->on = true;
	f->state->peer = STATE_PEER_UNKNOWN;
	memset(&f->was, 0, sizeof(f->was));
	follow_kind_check(f);
}

/* STATE_PEER_TOLD: from now on the leader's status tells what is known of the peer. */
void ctl_follow_off(struct ctl_follow *f)
{
	f->on = false;
	f->state->peer = STATE_PEER_TOLD;
	defer_cancel(&f->check);
	check(f);
}

/* Listeners are dropped first: their owners may be gone already. */
void ctl_follow_free(struct ctl_follow *f)
{
	if (!f)
		return;
	f->n_listeners = f->n_peer_listeners = 0;
	ctl_follow_off(f);
	ctl_kind_free(f->cluster);
	ctl_kind_free(f->machine);
	ctl_kind_free(f->ak);
	ctl_kind_free(f->image);
	follow_source_fini(&f->source);
	timer_fini(&f->tick);
	free(f);
}

const struct ctl_follow_state *ctl_follow_state(const struct ctl_follow *f)
{
	return &f->is;
}

void ctl_follow_listen(struct ctl_follow *f, void (*fn)(void *arg), void *arg)
{
	assert(f->n_listeners < CTL_FOLLOW_LISTENERS);
	f->listener[f->n_listeners].fn = fn;
	f->listener[f->n_listeners++].arg = arg;
}

void ctl_follow_listen_peer(struct ctl_follow *f, void (*fn)(void *arg), void *arg)
{
	assert(f->n_peer_listeners < CTL_FOLLOW_LISTENERS);
	f->peer_listener[f->n_peer_listeners].fn = fn;
	f->peer_listener[f->n_peer_listeners++].arg = arg;
}
