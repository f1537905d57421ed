/* SPDX-License-Identifier: MIT */
/*
 * The acts of one controller, each stored as the record of its key in the queue, and helpers for
 * their requests and answers. An act that succeeds without a visible effect is not repeated at
 * once.
 */
#include "config.h"

#include "ctl_internal.h"

#include <assert.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/model/mark.h"

#define STATUS_WAIT_MS 150 /* a status is written when its key was quiet for so long */
/* While other keys have requests in flight, a status waits for them, too, up to this time. */
#define STATUS_YIELDS_MS 1000

/* Called by the queue; the op was cancelled before. */
static void act_fini(void *record)
{
	struct ctl_act *a = record;

	assert(!a->op);
	a->table->n_deciding -= a->decides;
	ctl_act_wait_none(a);
	ctl_live_clear(&a->self);
	ctl_live_clear(&a->secret);
	secret_free(a->made);
	free(a->want);
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
	a->doing = doing;
	a->content = content;
	a->status_due_ms = 0;
	return true;
}

/* The first call sets the time; a request of the key resets it (ctl_act_begin), so a busy key
 * writes its status only when it has settled. */
bool ctl_act_status_due(struct ctl_act *a, struct queue_next *out)
{
	uint64_t now = clock_boot_ms();

	if (!a->status_due_ms)
		a->status_due_ms = now + STATUS_WAIT_MS;
	if (now >= a->status_due_ms + (a->table->ops.n > 0 ? STATUS_YIELDS_MS : 0))
		return true;
	*out = ctl_retry(
		now < a->status_due_ms ? (uint32_t)(a->status_due_ms - now) : STATUS_WAIT_MS,
		"status-unsettled");
	return false;
}

/* The next step sees the result; nothing is decided here. */
void ctl_act_end(struct ctl_act *a, const struct err *err)
{
	a->table->n_deciding -= a->decides;
	a->decides = false;
	a->last_ok = err_is_set(err) ? 0 : a->doing;
	a->err = err->kind;
	a->retry_after_ms = err->retry_after_ms;
	/*
	 * After a refusal, live copies no longer prove anything. A transient failure says nothing
	 * about the object, and clearing them would make acts that need a proof start over.
	 */
	if (err_is_set(err) && err->kind != ERR_TRANSIENT) {
		ctl_live_clear(&a->self);
		ctl_live_clear(&a->secret);
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
	a->failed = true;
	*out = ctl_retry(a->retry_after_ms, err_kind_name(a->err));
	a->err = ERR_NONE;
	return true;
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

/* Also called when the act is freed, so the list never holds a freed act. */
void ctl_act_wait_none(struct ctl_act *a)
{
	if (!a || a->n_wait == 0)
		return;
	a->n_wait = 0;
	LIST_REMOVE(a, waiting);
}

/* Called during each look, after ctl_act_wait_none(): the set always matches the last look. */
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
void ctl_acts_wake_waiting(struct ctl_acts *t, enum kbs_kind kind, const char *name)
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

void ctl_live_clear(struct ctl_live *l)
{
	free(l->rv);
	free(l->finalizers);
	l->rv = l->finalizers = NULL;
}

void ctl_live_set(struct ctl_live *l, struct json_object *o)
{
	struct json_object *f = json_get_arr(o, "metadata/finalizers");

	ctl_live_clear(l);
	l->rv = xstrdup(json_get_str(o, "metadata/resourceVersion"));
	l->finalizers = f ? json_text(f) : xstrdup("[]");
}

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
