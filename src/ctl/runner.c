/* SPDX-License-Identifier: MIT */
/*
 * Cache changes run the controller's map at all times, so that it can follow what went away, but
 * keys are taken only while the runner is on. Turning it on maps every object there is as if it had
 * just been added, which makes up for everything missed. A settled key is looked at again within
 * about an hour: the objects of `keys` minute by minute, a sixtieth of them each time, so that
 * nothing is kept for a settled key; any other key by a deadline of its own.
 */
#include "config.h"

#include "ctl_internal.h"

#include <assert.h>
#include <string.h>

#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/loop/timer.h"

#define CACHES_MAX 8
#define RESYNC_MS  (60 * 60 * 1000)
#define N_SLICES   60 /* of a walk through all keys, which takes RESYNC_MS */

struct watched {
	struct ctl_runner *runner;
	struct k8s_cache *cache;
	ctl_map_fn map;
};

struct ctl_runner {
	char *ns;
	ctl_step_fn step;
	void *self;
	struct queue *queue; /* owned */
	struct watched watched[CACHES_MAX];
	size_t n_watched;
	const struct k8s_cache *keys; /* borrowed; NULL: keys are no objects */
	struct timer walk;            /* while on, with `keys` */
	unsigned slice;               /* the next one of the walk */
	const struct op_scope *ops;   /* borrowed; NULL: without bound */
	bool on, full;
};

static struct queue_next work(void *arg, const char *key)
{
	struct ctl_runner *r = arg;
	const struct kobj_key k = {.ns = r->ns, .name = key};
	struct queue_next next = r->step(r->self, &k);

	if (next.verdict == QUEUE_SETTLED && !(r->keys && k8s_cache_find(r->keys, key)))
		next.after_ms = RESYNC_MS;
	if (r->on && r->ops && r->ops->n >= CTL_RUNNER_IN_FLIGHT) {
		r->full = true;
		queue_pause(r->queue);
	}
	return next;
}

/* A name stays in its slice, so that each is looked at once in RESYNC_MS. */
static void wake_in_slice(void *arg, const struct kobj *o)
{
	struct ctl_runner *r = arg;

	if (str_hash(o->name, strlen(o->name)) % N_SLICES == r->slice)
		ctl_runner_wake(r, o->name);
}

static void walk_slice(void *arg)
{
	struct ctl_runner *r = arg;

	k8s_cache_each(r->keys, wake_in_slice, r);
	r->slice = (r->slice + 1) % N_SLICES;
	timer_set(&r->walk, RESYNC_MS / N_SLICES);
}

struct ctl_runner *ctl_runner_new(
	struct loop *l, const char *name, const char *ns, ctl_step_fn step, void *self)
{
	const struct queue_conf conf = {
		.name = name, .record_size = sizeof(struct ctl_act), .record_fini = ctl_act_fini};
	struct ctl_runner *r = xcalloc(1, sizeof(*r));

	r->ns = xstrdup(ns);
	r->step = step;
	r->self = self;
	r->queue = queue_new(l, &conf, work, r);
	timer_init(&r->walk, l, walk_slice, r);
	queue_pause(r->queue);
	return r;
}

void ctl_runner_free(struct ctl_runner *r)
{
	if (!r)
		return;
	timer_fini(&r->walk);
	queue_free(r->queue);
	free(r->ns);
	free(r);
}

static void on_change(void *arg, const struct kobj *was, const struct kobj *now)
{
	const struct watched *w = arg;

	w->map(w->runner->self, was, now);
}

void ctl_runner_watch(struct ctl_runner *r, struct k8s_cache *cache, ctl_map_fn map)
{
	struct watched *w = &r->watched[r->n_watched];

	assert(r->n_watched < CACHES_MAX);
	r->n_watched++;
	*w = (struct watched){.runner = r, .cache = cache, .map = map};
	k8s_cache_listen(cache, on_change, w);
}

void ctl_runner_keys(struct ctl_runner *r, const struct k8s_cache *keys)
{
	r->keys = keys;
}

void ctl_runner_bound(struct ctl_runner *r, const struct op_scope *ops)
{
	r->ops = ops;
}

struct queue *ctl_runner_queue(struct ctl_runner *r)
{
	return r->queue;
}

void ctl_runner_resume(struct ctl_runner *r)
{
	if (!r->full || r->ops->n >= CTL_RUNNER_IN_FLIGHT)
		return;
	r->full = false;
	queue_resume(r->queue);
}

void ctl_runner_wake(struct ctl_runner *r, const char *name)
{
	if (!r->on)
		return;
	queue_add(r->queue, name);
	ctl_runner_resume(r);
}

void ctl_runner_wake_after(struct ctl_runner *r, const char *name, uint32_t after_ms)
{
	if (r->on)
		queue_add_after(r->queue, name, after_ms);
}

void ctl_runner_forget(struct ctl_runner *r, const char *name)
{
	queue_forget(r->queue, name);
}

static void map_one(void *arg, const struct kobj *o)
{
	on_change(arg, NULL, o);
}

void ctl_runner_on(struct ctl_runner *r)
{
	if (r->on)
		return;
	r->on = true;
	for (size_t i = 0; i < r->n_watched; i++)
		k8s_cache_each(r->watched[i].cache, map_one, &r->watched[i]);
	if (r->keys)
		timer_set(&r->walk, RESYNC_MS / N_SLICES);
	queue_resume(r->queue);
}

void ctl_runner_off(struct ctl_runner *r)
{
	r->on = r->full = false;
	timer_cancel(&r->walk);
	queue_pause(r->queue);
}
