/* SPDX-License-Identifier: MIT */
/*
 * The acts of one controller, each stored as the record of its key in the queue; helpers for their
 * requests and answers; and the step of all kinds: look, decide, act.
 *
 * An act that succeeds without a visible effect is not repeated at once. An act that changes memory
 * only is followed by another look at once; their number is limited, so that a mistake cannot spin.
 * The answer of a request goes into the cache, so that the next look sees it, and wakes the key.
 */
#include "config.h"

#include "ctl_internal.h"

#include <assert.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/model/mark.h"

#define STATUS_WAIT_MS 150 /* a status is written when its key was quiet for so long */
/* While acts and registrations are in flight, a status waits for them, too, up to this time. */
#define STATUS_YIELDS_MS 10000
#define CONFLICT_MS      50
#define LOOKS_MAX        4 /* in one step */
#define RECHECK_MAX_MS   (60 * 60 * 1000)

/* ---- answers that prove a version */

static void live_clear(struct ctl_live *l)
{
	free(l->rv);
	free(l->finalizers);
	l->rv = l->finalizers = NULL;
}

static void live_set(struct ctl_live *l, struct json_object *o)
{
	struct json_object *f = json_get_arr(o, "metadata/finalizers");

	live_clear(l);
	l->rv = xstrdup(json_get_str(o, "metadata/resourceVersion"));
	l->finalizers = f ? json_text(f) : xstrdup("[]");
}

/* ---- acts */

/* Also called when the act is freed, so the list never holds a freed act. */
static void act_wait_none(struct ctl_act *a)
{
	if (!a || a->n_wait == 0)
		return;
	a->n_wait = 0;
	LIST_REMOVE(a, waiting);
}

/* Called by the queue; the op was cancelled before. */
static void act_fini(void *record)
{
	struct ctl_act *a = record;

	assert(!a->op);
	a->table->n_deciding -= a->decides;
	act_wait_none(a);
	live_clear(&a->self);
	live_clear(&a->secret);
	secret_free(a->made);
	free(a->want);
	free(a->refused);
}

/* One runner for one table, which bounds the requests in flight. */
struct ctl_runner *ctl_acts_init(struct ctl_acts *t, const struct ctl_env *env, const char *name,
	ctl_step_fn step, void *self)
{
	const struct queue_conf conf = {
		.name = name, .record_size = sizeof(struct ctl_act), .record_fini = act_fini};

	memset(t, 0, sizeof(*t));
	t->self = self;
	t->runner = ctl_runner_new(env->loop, &conf, env->ns, step, self);
	LIST_INIT(&t->waiting);
	ctl_runner_bound(t->runner, &t->ops);
	return t->runner;
}

/* Cancelling comes first: freeing a record asserts that nothing is in flight. */
void ctl_acts_clear(struct ctl_acts *t)
{
	op_scope_cancel(&t->ops);
	queue_records_drop(ctl_runner_queue(t->runner));
}

struct ctl_act *ctl_act_find(const struct ctl_acts *t, const char *name)
{
	return queue_record_find(ctl_runner_queue(t->runner), name);
}

/* The record exists as long as the key is in the queue or waits; its name is that of the queue. */
struct ctl_act *ctl_act_get(struct ctl_acts *t, const char *name)
{
	const char *own;
	struct ctl_act *a = queue_record(ctl_runner_queue(t->runner), name, &own);

	a->table = t;
	a->name = own;
	return a;
}

/* Dropping an act ends its request, so a bounded runner may continue. */
void ctl_act_drop(struct ctl_act *a)
{
	if (!a)
		return;
	op_cancel(&a->op);
	ctl_runner_resume(a->table->runner);
	queue_record_drop(ctl_runner_queue(a->table->runner), a->name);
}

uint64_t ctl_version(const struct kobj *o)
{
	return o ? str_hash(o->rv, strlen(o->rv)) : 0;
}

/* Guard against loops: an act that just succeeded must not be due again, and a key must settle
 * within CTL_ACTS_MAX acts. The caller then retries with backoff instead. */
bool ctl_act_begin(struct ctl_act *a, int doing, uint64_t content)
{
	bool again = a->last_ok == doing && a->content == content;

	assert(!a->op);
	if (again || a->n_acts >= CTL_ACTS_MAX) {
		a->last_ok = 0;
		a->n_acts = 0;
		return false;
	}
	if (a->last_ok && a->failed) { /* a request succeeded since: forget the backoff */
		a->failed = false;
		queue_forget_backoff(ctl_runner_queue(a->table->runner), a->name);
	}
	a->n_acts++;
	a->fit = CTL_DECLARED_WHOLE;
	a->doing = doing;
	a->content = content;
	a->status_due_ms = 0;
	return true;
}

/*
 * A status is written when its key was quiet for a moment. It also yields to acts and registrations
 * of all keys: in a burst, the API server is what everything waits for, and a transitional state
 * need not be written. False: *out is the answer of the step. The first call sets the time; a
 * request of the key resets it (ctl_act_begin), so a busy key writes its status only when it has
 * settled.
 */
static bool act_status_due(const struct ctl_env *env, struct ctl_act *a, struct queue_next *out)
{
	uint64_t now = clock_boot_ms(), late, left;

	if (!a->status_due_ms)
		a->status_due_ms = now + STATUS_WAIT_MS;
	if (now < a->status_due_ms) {
		*out = ctl_retry((uint32_t)(a->status_due_ms - now), "status-unsettled");
		return false;
	}
	late = now - a->status_due_ms;
	if (late >= STATUS_YIELDS_MS || !env->in_flight || !env->in_flight(env->in_flight_arg))
		return true;
	left = STATUS_YIELDS_MS - late;
	late += STATUS_WAIT_MS; /* the waits double: thousands of keys may wait */
	*out = ctl_retry((uint32_t)(late < left ? late : left), "status-yields");
	return false;
}

/* ---- what a CRD declares of a status */

/* The Event is the only sign that people see of it where the CRD has no conditions. */
struct op *ctl_act_apply_status(struct ctl_act *a, const struct ctl_env *env,
	const struct kobj_gvk *gvk, const struct kobj *about, struct json_object *o,
	k8s_result_fn done)
{
	struct ctl_declared *d = &a->table->declared;
	cleanup_strbuf struct strbuf advice = STRBUF_INIT;
	cleanup_free char *text = NULL;
	uint64_t hash;

	a->fit = ctl_declared_fit(d, gvk, o);
	if (a->fit == CTL_DECLARED_CUT) {
		text = json_text(json_get_obj(o, "status"));
		hash = str_hash(text, strlen(text));
		if (a->sent == hash && !a->event_mask)
			return NULL;
		a->sent = hash;
		ctl_declared_advice(d, gvk, &advice);
		k8s_events_post_once(env->events, gvk, about, K8S_EVENT_WARNING, "CRDOutdated",
			"WriteStatus", strbuf_str(&advice), "%s", strbuf_str(&advice));
	}
	return k8s_call_apply_status(env->api, &a->table->ops, gvk, env->ns, o, done, a);
}

bool ctl_act_status_refused(struct ctl_act *a, const struct kobj_gvk *gvk, const struct err *err,
	const struct k8s_result *r)
{
	if (!err_is_set(err)) {
		ctl_declared_accepted(&a->table->declared, gvk, a->fit);
		return false;
	}
	a->sent = 0;
	if (!ctl_declared_refused(&a->table->declared, gvk, a->fit, r ? r->message : NULL))
		return false;
	a->fit = CTL_DECLARED_CUT; /* the next write will be */
	return true;
}

/* Of what an Event tells; 0: nothing. */
static uint64_t cond_hash(const struct kobj_cond_want *w)
{
	return w->reason ? str_hash(w->reason, strlen(w->reason)) + (uint64_t)w->status : 0;
}

/* HTTP 500 is the answer of a server that cannot do it (a webhook, a schema), and may pass; with
 * the other 5xx nobody has decided anything. */
bool ctl_err_is_refusal(const struct err *err)
{
	return err->kind == ERR_INVALID || err->kind == ERR_DENIED || err->http == 500;
}

/* The next step sees the result; nothing is decided here. A status that told of a refusal is no
 * progress: the refused request keeps its error and its backoff. */
void ctl_act_end(struct ctl_act *a, const struct err *err, const char *what)
{
	bool told = a->err != ERR_NONE && !err_is_set(err);

	a->table->n_deciding -= a->decides;
	a->decides = false;
	/* A status that was cut is expected to stay wanted. */
	a->last_ok = told || err_is_set(err) || a->fit == CTL_DECLARED_CUT ? 0 : a->doing;
	if (!told) {
		a->err = err->kind;
		a->retry_after_ms = err->retry_after_ms;
		free(steal_ptr(&a->refused));
		if (what && ctl_err_is_refusal(err))
			a->refused = xasprintf("The operator cannot %s: %s.", what, err->text);
	}
	/*
	 * After a refusal, live copies no longer prove anything. A transient failure says nothing
	 * about the object, and clearing them would make acts that need a proof start over.
	 */
	if (err_is_set(err) && err->kind != ERR_TRANSIENT) {
		live_clear(&a->self);
		live_clear(&a->secret);
	}
	ctl_runner_wake(a->table->runner, a->name);
}

/* A failure is reported once, as a retry with backoff; the next step looks again. */
bool ctl_act_busy(struct ctl_act *a, struct queue_next *out)
{
	if (!a)
		return false;
	if (a->op) {
		*out = ctl_in_flight();
		return true;
	}
	if (a->err == ERR_NONE)
		return false;
	/* After a first conflict, the watch has the other version at once. */
	*out = ctl_retry(a->err == ERR_CONFLICT && !a->failed ? CONFLICT_MS : a->retry_after_ms,
		err_kind_name(a->err));
	a->failed = true;
	a->err = ERR_NONE;
	return true;
}

bool ctl_act_tells(const struct ctl_act *a, int status)
{
	return a && !a->op && a->err != ERR_NONE && a->refused && a->doing != status;
}

/* A key that waits for Trustee keeps its record, because the record holds what it waits for. */
void ctl_act_settled(struct ctl_act *a)
{
	if (!a)
		return;
	queue_forget_backoff(ctl_runner_queue(a->table->runner), a->name);
	if (a->n_wait) {
		a->last_ok = 0;
		a->n_acts = 0;
	} else {
		ctl_act_drop(a);
	}
}

/* ---- waiting for Trustee */

/* A collision only wakes a key without need. */
static uint64_t wait_hash(enum kbs_kind kind, const char *name)
{
	return str_hash(name, strlen(name)) + (uint64_t)kind;
}

/* Called during each look, after act_wait_none(): the set always matches the last look. */
void ctl_act_wait(struct ctl_act *a, enum kbs_kind kind, const char *name)
{
	if (a->n_wait == 0)
		LIST_INSERT_HEAD(&a->table->waiting, a, waiting);
	if (a->n_wait < CTL_WAIT_MAX)
		a->wait[a->n_wait] = wait_hash(kind, name);
	if (a->n_wait <= CTL_WAIT_MAX) /* MAX + 1: waits for too many names, so every change
					  wakes it */
		a->n_wait++;
}

/* name NULL: anything may have changed, so every waiting key is woken. */
static void acts_wake_waiting(struct ctl_acts *t, enum kbs_kind kind, const char *name)
{
	uint64_t hash = name ? wait_hash(kind, name) : 0;
	struct ctl_act *a;

	LIST_FOREACH (a, &t->waiting, waiting) {
		bool hit = !name || a->n_wait > CTL_WAIT_MAX;

		for (unsigned i = 0; !hit && i < a->n_wait; i++)
			hit = a->wait[i] == hash;
		if (hit)
			ctl_runner_wake(t->runner, a->name);
	}
}

struct queue_next ctl_settled(void)
{
	return (struct queue_next){.verdict = QUEUE_SETTLED};
}

struct queue_next ctl_in_flight(void)
{
	return (struct queue_next){.verdict = QUEUE_IN_FLIGHT, .reason = "a call is in flight"};
}

/* after_ms 0: after the backoff of the key, which grows with each retry. The reason appears in
 * the log. */
struct queue_next ctl_retry(uint32_t after_ms, const char *static_reason)
{
	return (struct queue_next){
		.verdict = QUEUE_RETRY, .after_ms = after_ms, .reason = static_reason};
}

/* ---- objects in answers */

/* An equal resourceVersion is the proof; the cache may still be older than the API. */
bool ctl_live_is(const struct ctl_live *l, const struct kobj *o)
{
	return l->rv && o && str_eq(l->rv, o->rv);
}

/* All finalizers are sent, because a merge patch replaces the list. */
struct json_object *ctl_live_finalizers(const struct ctl_live *l, const char *finalizer, bool add)
{
	struct err err = ERR_INIT;
	cleanup_json struct json_object *have =
		json_parse(l->finalizers, strlen(l->finalizers), &json_limits_object, &err);
	struct json_object *out = json_arr();

	for (size_t i = 0; have && i < json_object_array_length(have); i++) {
		const char *s = json_object_get_string(json_object_array_get_idx(have, i));

		if (!str_eq(s, finalizer))
			json_push_str(out, s);
	}
	return add ? json_push_str(out, finalizer) : out;
}

/* Answers arrive before or after the watch events of the same write. An object that the cache
 * does not know may have been deleted already, and would stay in the cache. */
void ctl_take_answer(struct k8s_cache *cache, struct json_object *o, bool created)
{
	const char *name = json_get_str(o, "metadata/name"), *uid = json_get_str(o, "metadata/uid");
	const struct kobj *have = name ? k8s_cache_find(cache, name) : NULL;

	if (!name || (have ? !str_eq(have->uid, uid) : !created))
		return;
	k8s_cache_put(cache, o);
}

/* The API refuses the patch with 409 if the object changed since that version. */
struct json_object *ctl_patch_new(const char *rv, struct json_object **meta)
{
	*meta = json_add_str(json_obj(), "resourceVersion", rv);
	return json_add(json_obj(), "metadata", *meta);
}

struct json_object *ctl_patch_of(const struct kobj *o, struct json_object **meta)
{
	struct json_object *patch = ctl_patch_new(o->rv, meta);

	json_add_str(*meta, "uid", o->uid);
	return patch;
}

/* A mark contains the UID of its object: copied to another object, it counts for nothing. */
void ctl_add_mark(struct json_object *annotations, const struct kobj *o, const char *annotation,
	const char *payload)
{
	cleanup_free char *text = model_mark_text(o->uid, payload);

	json_add_str(annotations, annotation, text);
}

struct json_object *ctl_configmap_new(const char *name, const char *ns)
{
	struct json_object *meta, *o = kobj_new(&kobj_configmap, name, &meta);

	json_add_str(meta, "namespace", ns);
	json_add(meta, "labels",
		json_add_str(json_obj(), "app.kubernetes.io/managed-by", "tec-operator"));
	return o;
}

/* The UID makes the API refuse the apply if the object was replaced by another one. */
struct json_object *ctl_apply_new(
	const struct kobj_gvk *gvk, const struct kobj *o, struct json_object **meta)
{
	struct json_object *out = kobj_new(gvk, o->name, meta);

	json_add_str(*meta, "uid", o->uid);
	return out;
}

struct json_object *ctl_status_json(const struct kobj_gvk *gvk, const struct kobj *o,
	const struct kobj_cond *have, const struct kobj_cond_want *want, size_t n)
{
	struct json_object *meta, *out = ctl_apply_new(gvk, o, &meta);
	struct json_object *conditions =
		kobj_cond_json(have, want, n, o->generation, clock_wall_s());

	return json_add(out, "status", json_add(json_obj(), "conditions", conditions));
}

/* A changed message alone is no event. */
unsigned ctl_cond_changes(const struct kobj_cond *have, const struct kobj_cond_want *want, size_t n)
{
	unsigned mask = 0;

	for (size_t i = 0; i < n; i++)
		if (have[i].status != want[i].status || !str_eq(have[i].reason, want[i].reason))
			mask |= 1u << i;
	return mask;
}

/* ---- the step of a kind */

/* Zero the look, except the texts of conditions: they are most of its size. */
static void look_clear(struct ctl_kind *k)
{
	struct ctl_look *l = k->look;
	size_t after = offsetof(struct ctl_look, want) + sizeof(l->want);

	memset(l, 0, offsetof(struct ctl_look, want));
	for (size_t i = 0; i < CTL_CONDS_MAX; i++)
		memset(&l->want[i], 0, offsetof(struct kobj_cond_want, message) + 1);
	memset((char *)l + after, 0, k->conf->look_size - after);
}

/* Tell whether spec.authority allows the act. This is the only place that enforces it, whatever
 * a kind decides. */
static bool may_do(const struct ctl_kind *k, const struct ctl_do *todo)
{
	switch (caches_cluster_authority(k->caches)) {
	case MODEL_AUTHORITY_FOLLOWING:
		return todo->flags & CTL_DO_FOLLOWING;
	case MODEL_AUTHORITY_FROZEN:
		return todo->flags & CTL_DO_FROZEN;
	case MODEL_AUTHORITY_RETIRED:
		return todo->flags & CTL_DO_RETIRED;
	case MODEL_AUTHORITY_SELF:
		break;
	}
	return true;
}

/* A refusal that the conditions show already is not written again. */
static bool shows_all(const struct ctl_kind *k, const struct ctl_look *l)
{
	return !l->o || !may_do(k, &k->conf->acts[k->conf->status]) ||
	       kobj_cond_same(l->have, l->want, k->conf->n_conds, l->o->generation);
}

/* The answer of a step whose act needed no request, or cannot make one now. */
static struct queue_next not_started(const struct ctl_kind *k, struct ctl_act *a, int d)
{
	struct queue_next next;

	if (k->conf->acts[d].flags & CTL_DO_OR_MEMORY)
		return ctl_retry(1, "memory-changed");
	if (d != k->conf->status)
		return ctl_retry(0, "not-started");
	return ctl_act_busy(a, &next) ? next : ctl_retry(CTL_DECLARED_AGAIN_MS, "crd-outdated");
}

/* Look, decide, and start one request. A status waits until the key is quiet, unless it says why a
 * request was refused; an act that is repeated without effect ends in a retry with backoff. */
static struct queue_next step(void *self, const struct kobj_key *key)
{
	struct ctl_kind *k = self;
	struct ctl_act *a = ctl_act_get(&k->acts, key->name);
	struct ctl_look *l = k->look;
	const struct ctl_do *todo;
	struct queue_next next;
	struct op *op;
	bool tells = k->conf->status > 0 && ctl_act_tells(a, k->conf->status);
	int d, looks = 0;

	if (!tells && ctl_act_busy(a, &next))
		return next;
	do {
		look_clear(k);
		act_wait_none(a);
		l->refused = a->refused;
		d = k->conf->look(k, key->name, a, l);
		if (!may_do(k, &k->conf->acts[d]))
			d = 0;
		todo = &k->conf->acts[d];
		if (todo->memory)
			todo->memory(k, l);
	} while (todo->memory && ++looks < LOOKS_MAX);
	if (l->over) {
		ctl_act_drop(a);
		ctl_runner_forget(k->runner, key->name);
		return ctl_settled();
	}
	if (tells && shows_all(k, l)) {
		ctl_act_busy(a, &next);
		return next;
	}
	if (tells) {
		d = k->conf->status;
		todo = &k->conf->acts[d];
	}
	if (d == 0) {
		ctl_act_settled(a);
		return l->recheck_ms ? ctl_retry(l->recheck_ms, l->recheck_why) : ctl_settled();
	}
	if (d == k->conf->status && !tells && !act_status_due(k->env, a, &next))
		return next;
	if (todo->memory || !ctl_act_begin(a, d, l->content + ctl_version(l->o)))
		return ctl_retry(0, "no-effect");
	op = todo->start(k, a, l, d);
	if (!op)
		return not_started(k, a, d);
	if (k->conf->knows_cached && (todo->flags & CTL_DO_ANSWERS_SELF))
		k8s_call_unless_cached(op, k->caches->cache[k->conf->of]);
	else if ((todo->flags & CTL_DO_SECRET) && (todo->flags & CTL_DO_CREATES))
		k8s_call_unless_cached(op, k->caches->secrets);
	op_hold(&a->op, op);
	a->decides = !(todo->flags & CTL_DO_FROZEN);
	k->acts.n_deciding += a->decides;
	return ctl_in_flight();
}

/* ---- requests */

/* The answer proves the current version, and shows the object before the watch does. */
static void take_self(
	struct ctl_kind *k, struct ctl_act *a, const struct k8s_result *r, bool created)
{
	const struct kobj *now;

	if (r->cached) {
		live_clear(&a->self);
		a->self.rv = xstrdup(r->cached->rv); /* the cache does not keep finalizers */
	} else {
		live_set(&a->self, r->object);
		ctl_take_answer(k->caches->cache[k->conf->of], r->object, created);
	}
	now = k8s_cache_find(k->caches->cache[k->conf->of], a->name);
	if (a->doing == k->conf->status && now)
		k->conf->tell(k, a, now);
}

/* Show the Secret before the watch does, and remember its finalizers for the next patch. Return
 * true if a create met a Secret that exists, which is no failure: it has to be read. */
static bool take_secret(struct ctl_kind *k, struct ctl_act *a, const struct ctl_do *todo,
	const struct err *err, const struct k8s_result *r)
{
	bool creates = todo->flags & CTL_DO_CREATES;

	a->must_read = err_is_set(err) &&
		       (creates ? r->already_exists : a->must_read && err->kind != ERR_NOT_FOUND);
	if (!err_is_set(err)) {
		secret_free(steal_ptr(&a->made));
		if (r->object) { /* of a delete: a Status without a name, if nothing holds it */
			live_set(&a->secret, r->object);
			ctl_take_answer(k->caches->secrets, r->object,
				creates || todo->flags & CTL_DO_READS);
		}
	}
	return creates && a->must_read;
}

/* True: it was written, or the next step writes the rest of it. */
static bool status_done(
	struct ctl_kind *k, struct ctl_act *a, const struct err *err, const struct k8s_result *r)
{
	bool refused = ctl_act_status_refused(a, caches_kinds[k->conf->of].gvk, err, r);

	for (size_t i = 0; !err_is_set(err) && i < k->conf->n_conds; i++)
		a->told[i] = a->fit == CTL_DECLARED_CUT ? cond_hash(&a->want[i]) : 0;
	return refused || !err_is_set(err);
}

/* Every request of a kind ends here. A conflict is routine: somebody else wrote first. */
void ctl_kind_done(void *arg, const struct err *err, const struct k8s_result *r)
{
	struct ctl_act *a = arg;
	struct ctl_kind *k = a->table->self;
	const struct ctl_do *todo = &k->conf->acts[a->doing];
	const struct kobj_gvk *gvk = caches_kinds[k->conf->of].gvk;
	struct log_ctx lc = {.kind = gvk->kind, .ns = k->env->ns, .name = a->name};
	struct err none = ERR_INIT;
	bool fine = !err_is_set(err);

	if (fine && a->doing != k->conf->status) {
		if (!todo->done) /* routine */
			log_debug(&lc, "done", "op=%s", log_esc(todo->name));
		else if (todo->flags & CTL_DO_WARNS)
			log_warn(&lc, todo->done, NULL);
		else
			log_info(&lc, todo->done, NULL);
	}
	if (fine && (todo->flags & CTL_DO_ANSWERS_SELF))
		take_self(k, a, r, todo->flags & CTL_DO_CREATES);
	if (a->doing == k->conf->status)
		fine = status_done(k, a, err, r);
	if ((todo->flags & CTL_DO_SECRET) && take_secret(k, a, todo, err, r))
		fine = true;
	if (!fine && (todo->flags & CTL_DO_GONE_IS_FINE) && err->kind == ERR_NOT_FOUND)
		fine = true;
	if (k->conf->ended && k->conf->ended(k, a, err, r))
		fine = true;
	if (!fine) {
		struct err wrapped = *err;

		err_wrap(&wrapped, "%s", todo->name);
		log_err(err->kind == ERR_CONFLICT ? LOG_DEBUG : LOG_WARN, &lc, "request failed",
			&wrapped);
	}
	free(steal_ptr(&a->want));
	ctl_act_end(a, fine ? &none : err, a->doing == k->conf->status ? NULL : todo->name);
}

struct op *ctl_kind_get(
	struct ctl_kind *k, struct ctl_act *a, const struct kobj_gvk *gvk, const char *name)
{
	return k8s_call_get(k->env->api, &k->acts.ops, gvk, k->env->ns, name, ctl_kind_done, a);
}

struct op *ctl_kind_create(
	struct ctl_kind *k, struct ctl_act *a, const struct kobj_gvk *gvk, struct json_object *o)
{
	return k8s_call_create(k->env->api, &k->acts.ops, gvk, k->env->ns, o, 0, ctl_kind_done, a);
}

struct op *ctl_kind_create_secret(struct ctl_kind *k, struct ctl_act *a, struct secret *take_text)
{
	return k8s_call_create_secret(
		k->env->api, &k->acts.ops, &kobj_secret, k->env->ns, take_text, ctl_kind_done, a);
}

struct op *ctl_kind_patch(struct ctl_kind *k, struct ctl_act *a, const struct kobj_gvk *gvk,
	const char *name, struct json_object *patch)
{
	return k8s_call_merge_patch(
		k->env->api, &k->acts.ops, gvk, k->env->ns, name, patch, ctl_kind_done, a);
}

/* With the UID, so that a later object of the same name is safe. */
struct op *ctl_kind_delete(
	struct ctl_kind *k, struct ctl_act *a, const struct kobj_gvk *gvk, const struct kobj *o)
{
	return k8s_call_delete(k->env->api, &k->acts.ops, gvk, k->env->ns, o->name, o->uid, NULL,
		ctl_kind_done, a);
}

/* Server-side apply treats finalizers as a set. */
struct op *ctl_kind_add_finalizer(
	struct ctl_kind *k, struct ctl_act *a, const struct kobj *o, const char *finalizer)
{
	const struct kobj_gvk *gvk = caches_kinds[k->conf->of].gvk;
	struct json_object *meta;
	cleanup_json struct json_object *apply = ctl_apply_new(gvk, o, &meta);

	json_add(meta, "finalizers", json_push_str(json_arr(), finalizer));
	return k8s_call_apply(k->env->api, &k->acts.ops, gvk, k->env->ns, apply, ctl_kind_done, a);
}

struct op *ctl_kind_start_confirm(
	struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *l, int d)
{
	return ctl_kind_get(k, a, caches_kinds[k->conf->of].gvk, a->name);
}

struct op *ctl_kind_start_read_secret(
	struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *l, int d)
{
	return ctl_kind_get(k, a, &kobj_secret, l->secret_name);
}

struct op *ctl_kind_start_delete_secret(
	struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *l, int d)
{
	return ctl_kind_delete(k, a, &kobj_secret, &l->secret->obj);
}

struct op *ctl_kind_start_delete(
	struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *l, int d)
{
	return ctl_kind_delete(k, a, caches_kinds[k->conf->of].gvk, l->o);
}

/* With the resourceVersion that was confirmed: whatever changed in between prevents the
 * deletion. */
struct op *ctl_kind_start_expire(
	struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *l, int d)
{
	return k8s_call_delete(k->env->api, &k->acts.ops, caches_kinds[k->conf->of].gvk, k->env->ns,
		l->o->name, l->o->uid, l->o->rv, ctl_kind_done, a);
}

/* The conditions are copied into the act, because Events are posted only once the API has
 * accepted them. */
struct op *ctl_kind_apply_status(struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *l,
	const char *rv, unsigned more_events)
{
	const struct kobj_gvk *gvk = caches_kinds[k->conf->of].gvk;
	size_t n = k->conf->n_conds;
	cleanup_json struct json_object *o = ctl_status_json(gvk, l->o, l->have, l->want, n);

	if (rv)
		json_add_str(json_get_obj(o, "metadata"), "resourceVersion", rv);
	if (k->conf->add_status)
		k->conf->add_status(l, json_get_obj(o, "status"));
	a->event_mask = ctl_cond_changes(l->have, l->want, n);
	for (size_t i = 0; i < n; i++)
		if (a->told[i] && a->told[i] == cond_hash(&l->want[i]))
			a->event_mask &= ~(1u << i);
	a->event_mask |= more_events;
	free(a->want);
	a->want = xmemdup(l->want, n * sizeof(l->want[0]));
	return ctl_act_apply_status(a, k->env, gvk, l->o, o, ctl_kind_done);
}

struct op *ctl_kind_start_status(
	struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *l, int d)
{
	return ctl_kind_apply_status(k, a, l, NULL, 0);
}

/* ---- looks */

/* At least 1 ms, because 0 means that there is no timer. */
void ctl_look_again(struct ctl_look *l, int64_t ms, const char *static_reason)
{
	uint32_t in = ms < 1 ? 1 : ms < RECHECK_MAX_MS ? (uint32_t)ms : RECHECK_MAX_MS;

	if (l->recheck_ms && l->recheck_ms <= in)
		return;
	l->recheck_ms = in;
	l->recheck_why = static_reason;
}

/* A TTL of 0 or less disables expiry. */
bool ctl_look_is_overdue(struct ctl_look *l, const struct model_cluster *policy, int64_t since_s)
{
	int64_t left_ms;

	if (!policy || policy->pending_ttl_ms <= 0)
		return false;
	left_ms = since_s * 1000 + policy->pending_ttl_ms - clock_wall_s() * 1000;
	if (left_ms > 0)
		ctl_look_again(l, left_ms, "pending-ttl");
	return left_ms <= 0;
}

size_t ctl_kind_in_flight(const struct ctl_kind *k)
{
	return k->acts.n_deciding;
}

/* ---- which keys a change concerns */

void ctl_kind_wake_index(
	struct ctl_kind *k, const struct k8s_cache *cache, unsigned index, const char *value)
{
	for (const struct kobj *o = value ? k8s_cache_first(cache, index, value) : NULL; o;
		o = k8s_cache_next(cache, index, o))
		ctl_runner_wake(k->runner, o->name);
}

/* Queued in slices by the runner, so that it is cheap even with many objects. */
void ctl_kind_wake_all(struct ctl_kind *k)
{
	ctl_runner_wake_all(k->runner);
}

/* Most changes of a cluster are status writes, which concern no other controller. */
void ctl_kind_map_cluster(void *kind, const struct kobj *was, const struct kobj *now)
{
	if (!model_cluster_means_the_same(was, now))
		ctl_kind_wake_all(kind);
}

/* While off, the caches of this replica are current, but it must not act on them. */
static void on_sync(void *arg, enum kbs_kind kind, const char *name)
{
	struct ctl_kind *k = arg;

	if (!k->on)
		return;
	acts_wake_waiting(&k->acts, kind, name);
	if (k->conf->on_sync)
		k->conf->on_sync(k, kind, name);
}

/* ---- life */

/* Everything but the runner's switch is set up once: maps run while off, too. */
struct ctl_kind *ctl_kind_new(const struct ctl_env *env, const struct ctl_kind_conf *conf)
{
	struct ctl_kind *k = xcalloc(1, conf->size);

	k->conf = conf;
	k->env = env;
	k->caches = env->caches;
	k->look = xcalloc(1, conf->look_size);
	k->runner = ctl_acts_init(&k->acts, env, conf->name, step, k);
	ctl_runner_keys(k->runner, env->caches->cache[conf->of]);
	for (const struct ctl_watch *w = conf->watches; w && w->map; w++)
		ctl_runner_watch(k->runner, env->caches->cache[w->of], w->map);
	if (env->caches->sync)
		kbs_sync_listen(env->caches->sync, on_sync, k);
	return k;
}

/* What is in flight was decided while leading, and must not be continued by a former leader. */
static void forget(struct ctl_kind *k)
{
	ctl_acts_clear(&k->acts);
	if (k->conf->forget)
		k->conf->forget(k);
}

void ctl_kind_free(struct ctl_kind *k)
{
	if (!k)
		return;
	k->on = false;
	forget(k);
	ctl_runner_free(k->runner);
	free(k->look);
	free(k);
}

/* `started` may wake keys, so it runs after the runner is on. */
void ctl_kind_on(struct ctl_kind *k)
{
	if (k->on)
		return;
	k->on = true;
	ctl_runner_on(k->runner);
	if (k->conf->started)
		k->conf->started(k);
}

/* What is in flight is cancelled; the API may have received it, which the next leader finds out. */
void ctl_kind_off(struct ctl_kind *k)
{
	k->on = false;
	ctl_runner_off(k->runner);
	forget(k);
}
