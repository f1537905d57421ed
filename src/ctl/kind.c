/* SPDX-License-Identifier: MIT */
/*
 * The step of all kinds: look, decide, act. An act that changes memory only is followed by another
 * look at once; their number is limited, so that a mistake cannot spin. The answer of a request
 * goes into the cache, so that the next look sees it, and wakes the key.
 */
#include "config.h"

#include "ctl_internal.h"

#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"

#define LOOKS_MAX      4 /* in one step */
#define RECHECK_MAX_MS (60 * 60 * 1000)

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
	switch (state_cluster_authority(k->state)) {
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

/* Look, decide, and start one request. A status waits until the key is quiet; an act that is
 * repeated without effect ends in a retry with backoff. */
static struct queue_next step(void *self, const struct kobj_key *key)
{
	struct ctl_kind *k = self;
	struct ctl_act *a = ctl_act_get(&k->acts, key->name);
	struct ctl_look *l = k->look;
	const struct ctl_do *todo;
	struct queue_next next;
	struct op *op;
	int d, looks = 0;

	if (ctl_act_busy(a, &next))
		return next;
	do {
		look_clear(k);
		ctl_act_wait_none(a);
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
	if (d == 0) {
		ctl_act_settled(a);
		return l->recheck_ms ? ctl_retry(l->recheck_ms, l->recheck_why) : ctl_settled();
	}
	if (d == k->conf->status && !ctl_act_status_due(a, &next))
		return next;
	if (todo->memory || !ctl_act_begin(a, d, l->content + ctl_version(l->o)))
		return ctl_retry(0, "no-effect");
	op = todo->start(k, a, l, d);
	if (!op && todo->flags & CTL_DO_OR_MEMORY)
		return ctl_retry(1, "memory-changed");
	if (!op)
		return ctl_retry(0, "not-started");
	if (k->conf->knows_cached && (todo->flags & CTL_DO_ANSWERS_SELF))
		k8s_call_unless_cached(op, k->state->cache[k->conf->of]);
	else if ((todo->flags & CTL_DO_SECRET) && (todo->flags & CTL_DO_CREATES))
		k8s_call_unless_cached(op, k->state->secrets);
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
		ctl_live_clear(&a->self);
		a->self.rv = xstrdup(r->cached->rv); /* the cache does not keep finalizers */
	} else {
		ctl_live_set(&a->self, r->object);
		ctl_take_answer(k->state->cache[k->conf->of], r->object, created);
	}
	now = k8s_cache_find(k->state->cache[k->conf->of], a->name);
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
			ctl_live_set(&a->secret, r->object);
			ctl_take_answer(k->state->secrets, r->object,
				creates || todo->flags & CTL_DO_READS);
		}
	}
	return creates && a->must_read;
}

/* Every request of a kind ends here. A conflict is routine: somebody else wrote first. */
void ctl_kind_done(void *arg, const struct err *err, const struct k8s_result *r)
{
	struct ctl_act *a = arg;
	struct ctl_kind *k = a->table->self;
	const struct ctl_do *todo = &k->conf->acts[a->doing];
	const struct kobj_gvk *gvk = state_kinds[k->conf->of].gvk;
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
	ctl_act_end(a, fine ? &none : err);
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
	const struct kobj_gvk *gvk = state_kinds[k->conf->of].gvk;
	struct json_object *meta;
	cleanup_json struct json_object *apply = ctl_apply_new(gvk, o, &meta);

	json_add(meta, "finalizers", json_push_str(json_arr(), finalizer));
	return k8s_call_apply(k->env->api, &k->acts.ops, gvk, k->env->ns, apply, ctl_kind_done, a);
}

struct op *ctl_kind_start_confirm(
	struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *l, int d)
{
	return ctl_kind_get(k, a, state_kinds[k->conf->of].gvk, a->name);
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
	return ctl_kind_delete(k, a, state_kinds[k->conf->of].gvk, l->o);
}

/* With the resourceVersion that was confirmed: whatever changed in between prevents the
 * deletion. */
struct op *ctl_kind_start_expire(
	struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *l, int d)
{
	return k8s_call_delete(k->env->api, &k->acts.ops, state_kinds[k->conf->of].gvk, k->env->ns,
		l->o->name, l->o->uid, l->o->rv, ctl_kind_done, a);
}

/* The conditions are copied into the act, because Events are posted only once the API has
 * accepted them. */
struct op *ctl_kind_apply_status(struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *l,
	const char *rv, unsigned more_events)
{
	const struct kobj_gvk *gvk = state_kinds[k->conf->of].gvk;
	size_t n = k->conf->n_conds;
	cleanup_json struct json_object *o = ctl_status_json(gvk, l->o, l->have, l->want, n);

	if (rv)
		json_add_str(json_get_obj(o, "metadata"), "resourceVersion", rv);
	if (k->conf->add_status)
		k->conf->add_status(l, json_get_obj(o, "status"));
	a->event_mask = ctl_cond_changes(l->have, l->want, n) | more_events;
	free(a->want);
	a->want = xmemdup(l->want, n * sizeof(l->want[0]));
	return k8s_call_apply_status(
		k->env->api, &k->acts.ops, gvk, k->env->ns, o, ctl_kind_done, a);
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
	ctl_acts_wake_waiting(&k->acts, kind, name);
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
	k->state = env->state;
	k->look = xcalloc(1, conf->look_size);
	k->runner = ctl_acts_init(&k->acts, env, conf->name, step, k);
	ctl_runner_keys(k->runner, env->state->cache[conf->of]);
	for (const struct ctl_watch *w = conf->watches; w && w->map; w++)
		ctl_runner_watch(k->runner, env->state->cache[w->of], w->map);
	if (env->state->sync)
		kbs_sync_listen(env->state->sync, on_sync, k);
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
