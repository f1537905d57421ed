/* SPDX-License-Identifier: MIT */
/*
 * Which parts run, and what is known of the source and of the peer. One function, check(), brings
 * all of it up to date; every event only schedules it. Keys are looked at only while the source is
 * being read and may be copied; each look updates the notes on keys that are not in step. Most
 * keys have no note, so memory and time depend on the number of problems, not of objects.
 *
 * The source is a second API server, read by watches of the kinds that are copied. Its address and
 * credentials come from a kubeconfig in a Secret. Everybody who can write Secrets here can write
 * it, so a kubeconfig that would make this process read a file or start a program is refused.
 *
 * The peer is the operator that was followed before, which an administrator may have made the
 * deciding one in the meantime. In doubt the peer decides, so that of two operators that see each
 * other at most one does.
 */
#include "config.h"

#include "follow_internal.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/ctl/authority.h"
#include "tec/kobj/key.h"

#define TICK_MS      5000 /* interval of checks while nothing else happens */
#define SOON_MS      500  /* delay of a check, or of a notification, after changes of many keys */
#define SEEN_S       10   /* interval of notifications if only seen_s changes */
#define TELL_S       3600 /* interval of Events about the same problem */
#define MISSING_MIN  3    /* this many missing copies, and 1 / MISSING_PART of all, are too many */
#define MISSING_PART 20
#define NAMES_SHOWN  3
#define KUBECONFIG   "kubeconfig" /* member of the Secret */
#define RETRY_MS     5000         /* maximum backoff while the source is unreachable */
#define PEER_FRESH_S 20           /* a silent connection to a peer is tested after this time */

/* ---- notes on keys that are not in step */

struct follow_note {
	struct table_link link;
	enum follow_lag lag;
	bool deleted; /* the source deleted it, and its copy must still be deleted */
	char name[];
};

/* A new note counts as in step until its lag is set. NULL: there is none, and add is false. */
static struct follow_note *note_of(struct follow_notes *n, const char *name, bool add)
{
	struct follow_note *note;

	TABLE_WITH_HASH (note, link, &n->table, table_hash_str(name))
		if (strcmp(note->name, name) == 0)
			return note;
	if (!add)
		return NULL;
	note = xcalloc(1, sizeof(*note) + strlen(name) + 1);
	memcpy(note->name, name, strlen(name));
	table_add(&n->table, &note->link, table_hash_str(name));
	n->n[FOLLOW_IN_STEP]++;
	return note;
}

/* Keeps the table as small as the number of problems. */
static void drop_if_empty(struct follow_notes *n, struct follow_note *note)
{
	if (note->deleted || note->lag != FOLLOW_IN_STEP)
		return;
	n->n[FOLLOW_IN_STEP]--;
	table_remove(&n->table, &note->link);
	free(note);
}

static bool is_deleted(struct follow_notes *n, const char *name)
{
	const struct follow_note *note = note_of(n, name, false);

	return note && note->deleted;
}

/* Clearing a note that does not exist is the common case, and costs one lookup. */
static void set_deleted(struct follow_notes *n, const char *name, bool deleted)
{
	struct follow_note *note = note_of(n, name, deleted);

	if (!note)
		return;
	note->deleted = deleted;
	drop_if_empty(n, note);
}

/* Called at the end of each look; only a change schedules a check. Counts by lag are updated here
 * and nowhere else. */
void follow_kind_lags(struct ctl_kind *k, const char *name, enum follow_lag lag)
{
	struct follow_notes *n = &follow_kind(k)->notes;
	struct follow_note *note = note_of(n, name, lag != FOLLOW_IN_STEP);

	if (!note || note->lag == lag)
		return;
	n->n[note->lag]--;
	n->n[lag]++;
	note->lag = lag;
	drop_if_empty(n, note);
	follow_kind_check(follow_kind(k)->f);
}

void follow_kind_forget(struct ctl_kind *k)
{
	struct follow_notes *n = &follow_kind(k)->notes;
	struct follow_note *note;

	TABLE_EACH (note, link, &n->table)
		free(note);
	table_fini(&n->table);
	memset(n, 0, sizeof(*n));
}

/* ---- what the kinds share */

/* Find both objects of a key. An unreadable one counts as neither present nor absent: nothing is
 * done. */
struct follow_pair follow_kind_look(struct ctl_kind *k, const char *name, struct ctl_look *l)
{
	struct follow_kind *fk = follow_kind(k);
	const struct kobj *there = k8s_cache_find(fk->f->source.caches.cache[k->conf->of], name);
	const struct kobj *here = k8s_cache_find(k->caches->cache[k->conf->of], name);
	bool may_copy =
		fk->f->may_copy && !(there && there->unreadable) && !(here && here->unreadable);

	l->o = here;
	l->over = !there && !here;
	if (!here)
		set_deleted(&fk->notes, name, false);
	return (struct follow_pair){
		.there = there && !there->unreadable && !there->deleting ? there : NULL,
		.here = here && !here->unreadable ? here : NULL,
		.may_copy = may_copy,
		.may_take = may_copy && !fk->f->went_back,
		.deleted = (there && there->deleting) || is_deleted(&fk->notes, name),
	};
}

void follow_kind_wake(void *kind, const struct kobj *o)
{
	ctl_runner_wake(((struct ctl_kind *)kind)->runner, o->name);
}

void follow_kind_map(void *kind, const struct kobj *was, const struct kobj *now)
{
	follow_kind_wake(kind, was ? was : now);
}

/* Note a deletion when it is seen, since later the object is only missing: either a watch event, or
 * another UID under the same name. An object that a new list merely lacks is not known to be
 * deleted. */
void follow_kind_map_source(void *kind, const struct kobj *was, const struct kobj *now)
{
	struct ctl_kind *k = kind;
	struct follow_kind *fk = follow_kind(k);
	struct k8s_cache *cache = fk->f->source.caches.cache[k->conf->of];

	if (k->on && was && (now ? !str_eq(was->uid, now->uid) : k8s_cache_saw_delete(cache)))
		set_deleted(&fk->notes, was->name, true);
	follow_kind_map(kind, was, now);
}

struct ctl_kind *follow_kind_new(
	struct ctl_follow *f, const struct ctl_kind_conf *conf, const struct follow_watch *watches)
{
	struct ctl_kind *k = ctl_kind_new(f->env, conf);

	follow_kind(k)->f = f;
	/* Objects of either side may need an act. All clusters are looked at under our own names. */
	if (conf->of != CACHES_CLUSTERS)
		ctl_runner_keys(k->runner, f->source.caches.cache[conf->of]);
	for (const struct follow_watch *w = watches; w->here; w++) {
		ctl_runner_watch(k->runner, k->caches->cache[w->of], w->here);
		if (w->there)
			ctl_runner_watch(k->runner, f->source.caches.cache[w->of], w->there);
	}
	return k;
}

/* ---- too many copies missing at once */

struct missing {
	struct ctl_kind *k;
	const struct k8s_cache *source;
	size_t of,
		n; /* of: copies that a Trustee holds something of; n: of these, missing at the source
		      and not withheld yet */
};

/* Each missing Machine or AttestationKey is woken, too, since no event names it. */
static void count_one(void *arg, const struct kobj *o)
{
	struct missing *m = arg;
	bool machine = m->k->conf->of == CACHES_MACHINES;
	bool withheld = machine ? model_machine(o)->withheld : model_ak(o)->withheld;
	bool held = machine ? model_machine_delivered(model_machine(o))
			    : model_ak(o)->approved_at != NULL;

	if (o->unreadable || o->deleting)
		return;
	m->of += held;
	if (k8s_cache_find(m->source, o->name) || is_deleted(&follow_kind(m->k)->notes, o->name))
		return;
	m->n += held && !withheld;
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
	const struct caches *source = &f->source.caches, *ours = f->env->caches;
	struct missing machines = {.k = f->kind[FOLLOW_MACHINE], .source = source->machines};
	struct missing aks = {.k = f->kind[FOLLOW_AK], .source = source->aks};
	bool before = f->went_back;

	k8s_cache_each(ours->machines, count_one, &machines);
	k8s_cache_each(ours->aks, count_one, &aks);
	f->went_back = is_too_many(&machines) || is_too_many(&aks);
	if (f->went_back)
		snprintf(f->went_back_why, sizeof(f->went_back_why),
			"%zu of %zu Machines with a key and %zu of %zu approved AttestationKeys of this namespace are "
			"suddenly missing at the source, so nothing is deleted or revoked here. If the source was restored from an "
			"older backup, delete what it lacks: tecctl follow --accept-source",
			machines.n, machines.of, aks.n, aks.of);
	if (before && !f->went_back) /* the source's spec counts again */
		ctl_kind_wake_all(f->kind[FOLLOW_CLUSTER]);
	if (f->went_back && !before)
		log_warn(NULL, "many objects are suddenly missing at the followed operator",
			"machine=%zu ak=%zu", machines.n, aks.n);
}

/* Missing copies are counted before any key is looked at. */
static void on_listed(void *arg)
{
	struct ctl_follow *f = arg;

	if (f->may_copy)
		count_missing(f);
	follow_kind_check(f);
}

static const enum caches_of follow_kinds[FOLLOW_N_WATCHES] = {CACHES_CLUSTERS, CACHES_MACHINES,
	CACHES_AKS, CACHES_IMAGES, CACHES_CONFIGMAPS, CACHES_SECRETS};

/* ---- the source: connecting */

/* Refuse a kubeconfig that names programs or files, or does not verify the server. */
static int check_config(const struct k8s_kubeconfig *k, const char *ns, struct err *err)
{
	const char *bad = NULL;

	if (k->exec_argv)
		bad = "names a program (exec); use a token or a client certificate instead";
	else if (k->ca_file || k->cert_file || k->key_file || k->token_file)
		bad = "names a file; embed the data instead (kubectl config view --flatten)";
	else if (k->insecure || !str_starts(k->server, "https://"))
		bad = "does not verify the server's certificate, but disk keys are sent over this connection";
	else if (!ns)
		bad = "names no namespace; set spec.follow.namespace";
	else if (!kobj_label_valid(ns, strlen(ns)))
		bad = "names an invalid namespace";
	return bad ? err_set(err, ERR_INVALID, "member " KUBECONFIG " %s", bad) : 0;
}

/* Start the watches. Of a peer, only the cluster is read, and a dead connection must be noticed
 * soon. */
static void start_watches(struct follow_source *s, const char *ns, bool all)
{
	static const char *const labels[FOLLOW_N_WATCHES] = {"followed trustedexecutionclusters",
		"followed machines", "followed attestationkeys", "followed approvedimages",
		"followed configmaps", "followed secrets"}; /* as follow_kinds */

	s->n = all ? FOLLOW_N_WATCHES : 1;
	for (int i = 0; i < s->n; i++) {
		enum caches_of of = follow_kinds[i];
		const struct k8s_watch_conf conf = {.gvk = caches_kinds[of].gvk,
			.ns = ns,
			.fresh_s = all ? 0 : PEER_FRESH_S,
			.secret = of == CACHES_SECRETS,
			.label = labels[i],
			.backoff_max_ms = RETRY_MS};

		s->watch[i] = k8s_watch_new(s->env->loop, s->api, s->caches.cache[of], &conf);
		k8s_watch_on_state(s->watch[i], on_listed, s->f);
		k8s_watch_start(s->watch[i]);
	}
}

/* On failure nothing is left open; the message is for the condition Authority. */
static int connect_to(struct follow_source *s, const struct secret *text, struct err *err)
{
	const struct model_cluster *c = caches_cluster(s->env->caches);
	struct k8s_kubeconfig *k = k8s_kubeconfig_parse(
		(const char *)secret_peek(text), secret_len(text), "/", NULL, err);
	cleanup_free char *ns = NULL;

	if (!k)
		return -1;
	ns = xstrdup(c && c->follow_namespace ? c->follow_namespace : k->namespace_);
	if (check_config(k, ns, err) < 0) {
		k8s_kubeconfig_free(k);
		return -1;
	}
	snprintf(s->peer, sizeof(s->peer), "%s %s", k->server, ns);
	free(s->ns);
	s->ns = xstrdup(ns);
	s->api = s->env->follow_connect(s->env->follow_connect_arg, k, err);
	if (!s->api)
		return -1;
	log_info(NULL, "connecting to another operator", "peer=%s", log_esc(s->peer));
	start_watches(s, ns, c && c->authority == MODEL_AUTHORITY_FOLLOWING);
	return 0;
}

/* ---- the source: the Secret */

/* The answer of the API about the Secret of spec.follow: connect, or explain why not. All members
 * of the answer are wiped, since only the kubeconfig is needed. */
static void on_read(void *arg, const struct err *read_err, const struct k8s_result *r)
{
	struct follow_source *s = arg;
	const char *b64 = r->object ? json_get_str(r->object, "data/" KUBECONFIG) : NULL;
	cleanup_secret struct secret *text = NULL;
	struct err err = *read_err;

	s->problem[0] = '\0';
	if (b64 && strlen(b64) <= SECRET_MAX_LEN)
		text = secret_from_b64(b64, strlen(b64));
	json_wipe(r->object ? json_get_obj(r->object, "data") : NULL);
	if (!err_is_set(&err) && !text)
		(void)err_set(&err, ERR_INVALID, "it has no member " KUBECONFIG);
	if (err_is_set(&err) || connect_to(s, text, &err) < 0) {
		snprintf(s->problem, sizeof(s->problem),
			"The Secret of spec.follow cannot be used: %s.", err.text);
		log_err(LOG_WARN, NULL, "cannot connect to the followed operator", &err);
	}
	if (!err_is_set(read_err))
		follow_kind_check(s->f);
	else /* the next tick reads it again */
		free(steal_ptr(&s->from));
}

/* ---- the source: state */

/* All watches in use have delivered a complete list at least once. */
static bool source_filled(const struct follow_source *s)
{
	for (int i = 0; i < s->n; i++)
		if (!k8s_cache_filled(s->caches.cache[follow_kinds[i]]))
			return false;
	return s->n > 0;
}

/* A problem of the connection outranks those of single watches. */
static bool source_problem(const struct follow_source *s, char why[512])
{
	if (s->problem[0]) {
		snprintf(why, 512, "%.511s", s->problem);
		return true;
	}
	for (int i = 0; i < s->n; i++) {
		const char *problem = k8s_watch_problem(s->watch[i]);

		if (*problem) {
			snprintf(why, 512, "%s.", problem);
			return true;
		}
	}
	return false;
}

/* The oldest of the watches counts: the copy is as current as its oldest part. */
static int64_t source_seen_s(const struct follow_source *s)
{
	int64_t seen_s = INT64_MAX;

	for (int i = 0; i < s->n; i++) {
		int64_t one_s = k8s_watch_seen_s(s->watch[i]);

		seen_s = one_s < seen_s ? one_s : seen_s;
	}
	return s->n > 0 ? seen_s : 0;
}

static bool follows(const struct model_cluster *c)
{
	return c && c->authority == MODEL_AUTHORITY_FOLLOWING;
}

/* Start or stop the kinds. Nothing is copied from a peer, of which only the cluster is read. */
static void kinds_set(struct ctl_follow *f, const struct model_cluster *c)
{
	bool filled = c && source_filled(&f->source), copies = filled && follows(c);

	for (int i = 0; i < FOLLOW_N_KINDS; i++) {
		if (i == FOLLOW_CLUSTER ? filled : copies)
			ctl_kind_on(f->kind[i]);
		else if (f->kind[i]->on)
			ctl_kind_off(f->kind[i]);
	}
}

/* ---- the source: life */

static void on_cluster(void *arg, const struct kobj *was, const struct kobj *now)
{
	follow_kind_check(arg);
}

/* Take the source's marker (ctl/adoption_cutoff.h): objects older than it may have had keys that were never
 * recorded. */
static void on_configmap(void *arg, const struct kobj *was, const struct kobj *now)
{
	struct follow_source *s = arg;

	if (now && str_eq(now->name, "tec-operator-since"))
		s->caches.marker_s = now->created_s;
}

/* The kinds stop first, because they read the caches that are cleared here. */
static void source_close(struct follow_source *s)
{
	kinds_set(s->f, NULL);
	s->f->is.peer[0] = '\0';
	op_cancel(&s->read);
	for (int i = 0; i < FOLLOW_N_WATCHES; i++) {
		k8s_watch_free(s->watch[i]);
		s->watch[i] = NULL;
		k8s_cache_clear(s->caches.cache[follow_kinds[i]]);
	}
	s->n = 0;
	k8s_transport_free(steal_ptr(&s->api));
	free(steal_ptr(&s->ns));
	free(steal_ptr(&s->from));
	s->problem[0] = s->peer[0] = '\0';
	s->caches.marker_s = INT64_MIN;
}

/* `from` identifies all inputs of the connection; while it is the same, nothing is done. */
static void source_want(struct follow_source *s, const struct model_cluster *c)
{
	const struct model_secret *secret = caches_secret(s->env->caches, c->follow_secret);
	cleanup_free char *from = xasprintf("%s %s %s %s %d", c->follow_secret,
		secret ? secret->obj.uid : "", secret ? secret->obj.rv : "",
		c->follow_namespace ? c->follow_namespace : "",
		c->authority == MODEL_AUTHORITY_FOLLOWING);

	if (str_eq(from, s->from))
		return;
	source_close(s);
	if (!secret) {
		snprintf(s->problem, sizeof(s->problem),
			"Secret %.253s, which spec.follow names, does not exist.",
			c->follow_secret);
		return;
	}
	s->from = steal_ptr(&from);
	op_hold(&s->read, k8s_call_get(s->env->api, &s->ops, &kobj_input_secret, s->env->ns,
				  c->follow_secret, on_read, s));
}

/* ---- the peer */

/* Derive the state of the peer. What can be read outranks what an administrator confirmed;
 * without either, the former state stays. */
enum caches_peer ctl_follow_peer(const struct ctl_follow_peer_view *v, enum caches_peer was)
{
	if (v->read)
		return v->yields ? CACHES_PEER_DECIDES : CACHES_PEER_FINE;
	if (v->confirmed)
		return CACHES_PEER_FINE;
	/* A peer that decided and is unreachable now may be lost for good: only an administrator
	 * knows. */
	return was == CACHES_PEER_DECIDES ? CACHES_PEER_UNKNOWN : was;
}

/* The cluster here whose peer must be read; NULL: it has none, or it follows. Only Self and Frozen
 * have a peer: Following has a source, Retired decides nothing. */
static const struct model_cluster *peer_of(const struct ctl_follow *f)
{
	const struct model_cluster *c = caches_cluster(f->env->caches);

	if (!f->on || !c || !model_cluster_peer(c))
		return NULL;
	return c->authority == MODEL_AUTHORITY_SELF || c->authority == MODEL_AUTHORITY_FROZEN
		       ? c
		       : NULL;
}

/* The cluster of the peer, if it can be read now. The UID must be that of the peer: at the same
 * address another cluster may exist now. */
static const struct model_cluster *peer_read(const struct ctl_follow *f)
{
	const struct model_cluster *here = peer_of(f), *there;
	char why[512];

	if (!here || !source_filled(&f->source) || source_problem(&f->source, why))
		return NULL;
	there = caches_cluster(&f->source.caches);
	return there && str_eq(there->obj.uid, model_cluster_peer(here)) ? there : NULL;
}

/* `confirmed`: since the last check, spec.authority became Self or spec.epoch rose while Self.
 * Both are done by an administrator who knows that the peer does not decide. */
void follow_peer_view(const struct ctl_follow *f, struct ctl_follow_peer_view *out)
{
	const struct model_cluster *here = peer_of(f), *there = peer_read(f);

	*out = (struct ctl_follow_peer_view){.known = here != NULL, .read = there != NULL};
	if (!here)
		return;
	out->self = here->authority == MODEL_AUTHORITY_SELF;
	out->confirmed = out->self && str_eq(f->was.uid, here->obj.uid) &&
			 (f->was.authority != MODEL_AUTHORITY_SELF || here->epoch > f->was.epoch);
	if (!there)
		return;
	out->retired = there->authority == MODEL_AUTHORITY_RETIRED;
	out->decides = there->authority == MODEL_AUTHORITY_SELF;
	out->yields = model_cluster_yields(here, there);
}

/* The same reason is posted once per TELL_S; another reason at once. */
static void post(struct ctl_follow *f, const char *reason, const char *message)
{
	const struct model_cluster *here = peer_of(f);
	int64_t now_s = clock_wall_s();

	if (!here || (str_eq(f->told_peer, reason) && now_s - f->told_peer_s < TELL_S))
		return;
	f->told_peer = reason;
	f->told_peer_s = now_s;
	k8s_events_post(f->env->events, &kobj_cluster, &here->obj, K8S_EVENT_WARNING, reason,
		"Decide", "%s", message);
}

/* Post an Event about a problem, once an hour. While the connection is being established, an
 * unknown peer is not worth an Event yet. */
static void peer_tell(struct ctl_follow *f)
{
	const struct model_cluster *here = peer_of(f);
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	enum model_cluster_reason r;

	if (!here || here->authority != MODEL_AUTHORITY_SELF)
		return;
	r = ctl_authority_self(f->caches->peer, &f->is, here->epoch, &text);
	if (f->is.decides_too)
		post(f, "PeerDecidesToo", strbuf_str(&text));
	else if (r == CLUSTER_PEER_UNKNOWN && f->is.is != CTL_FOLLOW_CONNECTING)
		post(f, model_cluster_reason(r), strbuf_str(&text));
}

static void call(const struct follow_listeners *l)
{
	for (unsigned i = 0; i < l->n; i++)
		l->v[i].fn(l->v[i].arg);
}

/* Update caches->peer and wake everything whose permission to decide may have changed. */
static void peer_check(struct ctl_follow *f)
{
	static const char *const words[] = {[CACHES_PEER_FINE] = "Fine",
		[CACHES_PEER_UNKNOWN] = "Unknown",
		[CACHES_PEER_DECIDES] = "Decides",
		[CACHES_PEER_TOLD] = "Told"};
	const struct model_cluster *c = caches_cluster(f->env->caches);
	enum caches_peer was = f->caches->peer, now;
	struct ctl_follow_peer_view v;

	if (!f->on || !c)
		return;
	follow_peer_view(f, &v);
	now = v.known ? ctl_follow_peer(&v, was) : was;
	snprintf(f->was.uid, sizeof(f->was.uid), "%s", c->obj.uid);
	f->was.authority = c->authority;
	f->was.epoch = c->epoch;
	if (now == was)
		return;
	f->caches->peer = now;
	log_info(NULL, "peer state changed", "from=%s to=%s", words[was], words[now]);
	call(&f->peer_listeners);
	call(&f->listeners);
	ctl_kind_wake_all(f->kind[FOLLOW_CLUSTER]);
}

/* The state of reading the peer, and why it cannot be read. For the peer, IN_STEP means that it can be read now. */
static enum ctl_follow_is peer_is(const struct ctl_follow *f, char why[512])
{
	const struct model_cluster *there = caches_cluster(&f->source.caches);

	if (source_problem(&f->source, why))
		return CTL_FOLLOW_UNREACHABLE;
	if (!source_filled(&f->source))
		return CTL_FOLLOW_CONNECTING;
	if (peer_read(f))
		return CTL_FOLLOW_IN_STEP;
	snprintf(why, 512, "%s",
		there ? "The TrustedExecutionCluster in that namespace is not the same as before. Correct spec.follow."
		      : "No readable TrustedExecutionCluster exists in that namespace.");
	return there ? CTL_FOLLOW_OTHER : CTL_FOLLOW_UNREACHABLE;
}

/* ---- what is known of the source */

/* The cluster here whose source or peer must be read, or NULL. */
static const struct model_cluster *connected(const struct ctl_follow *f)
{
	const struct model_cluster *c = caches_cluster(f->env->caches);

	if (f->on && c && c->authority == MODEL_AUTHORITY_FOLLOWING)
		return c->follow_secret ? c : NULL;
	return peer_of(f);
}

/* Return why the source must not be copied, or NULL if it may. */
static const char *why_not(const struct ctl_follow *f, enum ctl_follow_is *is)
{
	const struct model_cluster *there = caches_cluster(&f->source.caches);
	const struct model_cluster *here = caches_cluster_policy(f->env->caches);

	*is = CTL_FOLLOW_CONNECTING;
	if (!source_filled(&f->source))
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
static bool trustees_in_step(const struct caches *s)
{
	size_t declared, confirmed, revoking;

	if (!caches_trustee_is_administered(s)) /* the source's is ours, too */
		return true;
	if (kbs_sync_state(s->sync) != KBS_TARGET_IN_SYNC)
		return false;
	kbs_sync_counts(s->sync, &declared, &confirmed, &revoking);
	return declared == confirmed && revoking == 0;
}

static const struct follow_notes *notes(const struct ctl_follow *f, int kind)
{
	return &follow_kind(f->kind[kind])->notes;
}

/* Sum over all kinds of objects. */
static size_t count(const struct ctl_follow *f, enum follow_lag lag)
{
	size_t n = 0;

	for (int i = 0; i < FOLLOW_N_KINDS; i++)
		n += notes(f, i)->n[lag];
	return n;
}

/* Append up to NAMES_SHOWN names. The order is that of the table: arbitrary, but stable while
 * nothing changes. */
static void add_names(const struct follow_notes *n, enum follow_lag lag, struct strbuf *out)
{
	const struct follow_note *note;
	size_t shown = 0;

	TABLE_EACH (note, link, &n->table) {
		if (note->lag != lag)
			continue;
		if (shown == NAMES_SHOWN) {
			strbuf_addf(out, " and %zu more", n->n[lag] - shown);
			return;
		}
		strbuf_addf(out, "%s%s", shown++ ? ", " : "", note->name);
	}
}

/* Name some objects of each kind that have this lag. */
static void say_names(
	const struct ctl_follow *f, enum follow_lag lag, const char *text, char out[512])
{
	cleanup_strbuf struct strbuf names = STRBUF_INIT;

	for (int i = FOLLOW_MACHINE; i < FOLLOW_N_KINDS; i++) {
		if (notes(f, i)->n[lag] == 0)
			continue;
		strbuf_addf(&names, "%s%s ", names.len ? ", " : "",
			caches_kinds[f->kind[i]->conf->of].gvk->kind);
		add_names(notes(f, i), lag, &names);
	}
	snprintf(out, 512, "%.300s: %s", strbuf_str(&names), text);
}

/* While keys wait to be looked at, the counts are incomplete. */
static bool is_looking(const struct ctl_follow *f)
{
	return ctl_runner_is_behind(f->kind[FOLLOW_MACHINE]->runner) ||
	       ctl_runner_is_behind(f->kind[FOLLOW_AK]->runner);
}

/* Determine the state of following; the first problem found wins, and `why` explains it. */
static enum ctl_follow_is find_out(const struct ctl_follow *f, char why[512])
{
	const char *reason;
	enum ctl_follow_is is;

	if (source_problem(&f->source, why))
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
	if (notes(f, FOLLOW_CLUSTER)->n[FOLLOW_CONFLICT] > 0) {
		snprintf(why, 512, "%s", f->spec_why);
		return CTL_FOLLOW_CONFLICT;
	}
	if (count(f, FOLLOW_CONFLICT) > 0) {
		say_names(f, FOLLOW_CONFLICT,
			"the copy or its Secret differs from the source and is never overwritten. Delete the wrong one.",
			why);
		return CTL_FOLLOW_CONFLICT;
	}
	/* BEHIND counts only keys that were looked at; keys in the queue may add to it. */
	if (count(f, FOLLOW_BEHIND) > 0 || is_looking(f)) {
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
	if (!trustees_in_step(f->env->caches)) {
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
		now_s - f->told_stale_s < TELL_S)
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

/* Publish the state. Listeners write it into status and look at the whole cluster, so a change of
 * seen_s alone is told at most every SEEN_S, and one of `behind`, which each key makes, at most
 * every SOON_MS. */
static void tell(struct ctl_follow *f, const struct ctl_follow_state *now)
{
	bool other = now->is != f->is.is || !str_eq(now->peer, f->is.peer) ||
		     !str_eq(now->uid, f->is.uid) || now->epoch != f->is.epoch ||
		     now->decides_too != f->is.decides_too || !str_eq(now->why, f->is.why);
	bool counts = now->behind != f->told_behind;

	if (now->is != f->is.is)
		log_info(NULL, "following", "state=%d count=%zu reason=%s", (int)now->is,
			now->behind, log_esc(now->why));
	f->is = *now;
	if (!other && counts && clock_boot_ms() - f->told_ms < SOON_MS) {
		follow_kind_check_soon(f);
		return;
	}
	if (!other && !counts && now->seen_s - f->told_seen_s < SEEN_S)
		return;
	f->told_behind = now->behind;
	f->told_ms = clock_boot_ms();
	f->told_seen_s = now->seen_s;
	call(&f->listeners);
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
	now->seen_s = source_seen_s(&f->source);
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
		remember(f, c, caches_cluster(&f->source.caches), &now);
	}
	if (c && !follows(c)) {
		follow_peer_view(f, &v);
		now.is = peer_is(f, now.why);
		now.decides_too =
			v.self && v.read && v.decides && f->caches->peer != CACHES_PEER_DECIDES;
	} else if (c) {
		now.is = find_out(f, now.why);
		now.behind = count(f, FOLLOW_BEHIND) + count(f, FOLLOW_MISSING) +
			     count(f, FOLLOW_CONFLICT);
	}
	tell(f, &now);
	if (follows(c))
		tell_stale(f, c);
}

/* ---- check */

/* Bring connection, kinds and state up to date; deferred to the next turn of the loop by
 * follow_kind_check(). */
static void check(void *arg)
{
	struct ctl_follow *f = arg;
	const struct model_cluster *c = connected(f);
	enum ctl_follow_is ignored;
	bool may_copy;

	if (c) {
		source_want(&f->source, c);
		timer_set(&f->tick, TICK_MS);
		if (f->source.peer[0])
			memcpy(f->is.peer, f->source.peer, sizeof(f->is.peer));
	} else {
		source_close(&f->source);
		timer_cancel(&f->tick);
	}
	may_copy = follows(c) && !why_not(f, &ignored);
	kinds_set(f, c);
	if (!may_copy) {
		f->went_back = false;
	} else if (!f->may_copy) {
		count_missing(f);
		for (int i = 0; i < FOLLOW_N_KINDS; i++)
			ctl_kind_wake_all(f->kind[i]);
	}
	f->may_copy = may_copy;
	peer_check(f);
	update(f, c);
	peer_tell(f);
	/* A look that finds its key in step schedules nothing, not even the last one. */
	if (is_looking(f))
		follow_kind_check_soon(f);
}

/* Deferred, so that many changes in one turn of the loop cause one check. */
void follow_kind_check(void *arg)
{
	struct ctl_follow *f = arg;

	if (f->on)
		defer_call(&f->check, f->env->loop, check, f);
}

/* For events that come in large numbers: the tick is only moved forward. */
void follow_kind_check_soon(struct ctl_follow *f)
{
	if (f->on)
		timer_set_earlier(&f->tick, SOON_MS);
}

/* Missing objects may have come back, or been accepted by an administrator, without a new list. */
static void on_tick(void *arg)
{
	struct ctl_follow *f = arg;

	if (f->went_back && f->may_copy)
		count_missing(f);
	follow_kind_check(f);
}

/* ---- life */

/* The kubeconfig may have changed. */
static void on_our_secret(void *arg, const struct kobj *was, const struct kobj *now)
{
	struct ctl_follow *f = arg;
	const struct model_cluster *c = connected(f);

	if (c && str_eq(was ? was->name : now->name, c->follow_secret))
		follow_kind_check(f);
}

/* Leave out the Secrets of AttestationKeys, half of all: the keys are in the AttestationKeys, too. */
static struct kobj *extract_secret(struct json_object *o, struct err *err)
{
	struct kobj *secret = model_secret_extract(o, err);

	if (!secret || model_secret(secret)->shape != MODEL_SECRET_AK)
		return secret;
	kobj_unref(secret);
	return NULL;
}

/* Of the source, AttestationKeys are found by UUID only; the other indexes are for who decides. */
static const struct k8s_cache_type *source_type(enum caches_of of)
{
	static const struct k8s_cache_type secrets = {
		extract_secret, sizeof(struct model_secret), NULL, 0};
	static const struct k8s_cache_type aks = {
		model_ak_extract, sizeof(struct model_ak), model_ak_index, 1};

	return of == CACHES_SECRETS ? &secrets : of == CACHES_AKS ? &aks : &caches_kinds[of].cache;
}

/* All four kinds exist for life and are switched on and off by check(). */
struct ctl_follow *ctl_follow_new(const struct ctl_env *env, struct caches *caches)
{
	struct ctl_follow *f = xcalloc(1, sizeof(*f));
	struct caches *theirs = &f->source.caches;

	f->env = env;
	f->caches = caches;
	f->is.epoch = -1;
	timer_init(&f->tick, env->loop, on_tick, f);
	f->source = (struct follow_source){.env = env, .f = f, .caches = CACHES_INIT};
	/* The caches exist for life, so that listeners need not be added at each connection. */
	for (int i = 0; i < FOLLOW_N_WATCHES; i++)
		theirs->cache[follow_kinds[i]] = k8s_cache_new(source_type(follow_kinds[i]));
	k8s_cache_listen(theirs->configmaps, on_configmap, &f->source);
	k8s_cache_listen(theirs->clusters, on_cluster, f);
	f->kind[FOLLOW_CLUSTER] = follow_cluster_new(f);
	f->kind[FOLLOW_MACHINE] = follow_machine_new(f);
	f->kind[FOLLOW_AK] = follow_ak_new(f);
	f->kind[FOLLOW_IMAGE] = follow_image_new(f);
	k8s_cache_listen(env->caches->secrets, on_our_secret, f);
	k8s_cache_listen(env->caches->clusters, on_cluster, f);
	return f;
}

/* What another leader wrote about the peer is old; this process has to read the peer itself. */
void ctl_follow_leads(struct ctl_follow *f)
{
	if (f->caches->peer == CACHES_PEER_TOLD)
		f->caches->peer = CACHES_PEER_UNKNOWN;
}

/* What was confirmed while another replica led is not known here. */
void ctl_follow_on(struct ctl_follow *f)
{
	f->on = true;
	f->caches->peer = CACHES_PEER_UNKNOWN;
	memset(&f->was, 0, sizeof(f->was));
	follow_kind_check(f);
}

/* CACHES_PEER_TOLD: from now on the leader's status tells what is known of the peer. */
void ctl_follow_off(struct ctl_follow *f)
{
	f->on = false;
	f->caches->peer = CACHES_PEER_TOLD;
	defer_cancel(&f->check);
	check(f);
}

/* Listeners are dropped first: their owners may be gone already. */
void ctl_follow_free(struct ctl_follow *f)
{
	if (!f)
		return;
	f->listeners.n = f->peer_listeners.n = 0;
	ctl_follow_off(f); /* closes the source, too */
	for (int i = 0; i < FOLLOW_N_KINDS; i++)
		ctl_kind_free(f->kind[i]);
	op_scope_cancel(&f->source.ops);
	for (int i = 0; i < FOLLOW_N_WATCHES; i++)
		k8s_cache_free(f->source.caches.cache[follow_kinds[i]]);
	timer_fini(&f->tick);
	free(f);
}

const struct ctl_follow_state *ctl_follow_state(const struct ctl_follow *f)
{
	return &f->is;
}

static void listen(struct follow_listeners *l, void (*fn)(void *arg), void *arg)
{
	assert(l->n < CTL_FOLLOW_LISTENERS);
	l->v[l->n].fn = fn;
	l->v[l->n++].arg = arg;
}

void ctl_follow_listen(struct ctl_follow *f, void (*fn)(void *arg), void *arg)
{
	listen(&f->listeners, fn, arg);
}

void ctl_follow_listen_peer(struct ctl_follow *f, void (*fn)(void *arg), void *arg)
{
	listen(&f->peer_listeners, fn, arg);
}
