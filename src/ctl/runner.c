/* SPDX-License-Identifier: MIT */
/*
 * Cache changes always run the controller's map, so that it sees deletions, but keys are queued
 * only while the runner is on. Turning it on maps every existing object as if it had just been
 * added, which makes up for everything missed. A settled key is stepped again within about an
 * hour: the objects of `keys` by a walk in slices, one about every minute, so that a settled key
 * costs no memory; any other key by its own deadline. When all objects of `keys` must be stepped,
 * as at the start, the walk makes one round as fast as the queue is worked off: the next slice is
 * queued when every key that was due with the last one had a step. So a key that needs several
 * has them before most others have their first one, and few keys have an act at any time. A name is
 * in the same slice of every cache.
 */
#include "config.h"

#include "tec/ctl/runner.h"

#include <assert.h>
#include <string.h>

#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/loop/timer.h"

#define CACHES_MAX 8
#define KEYS_MAX   2
#define RESYNC_MS  (60 * 60 * 1000)
#define N_SLICES   64 /* slices of a walk, which takes RESYNC_MS; a power of two */
#define TURN       64 /* keys worked per turn of the loop (loop/queue.h) */

struct watched {
	struct ctl_runner *runner;
	struct k8s_cache *cache;
	ctl_map_fn map;
};

enum runner_state {
	RUNNER_OFF,
	RUNNER_STARTS, /* all objects are being mapped; the walk handles those of `keys` */
	RUNNER_ON,
};

struct ctl_runner {
	const char *ns; /* borrowed for life */
	ctl_step_fn step;
	void *self;
	struct queue *queue; /* owned */
	struct watched watched[CACHES_MAX];
	size_t n_watched;
	const struct k8s_cache *keys[KEYS_MAX]; /* borrowed */
	size_t n_keys;                          /* 0: keys are not names of objects */
	struct timer walk;                      /* while on, with `keys` */
	unsigned slice;                         /* the next slice of the walk */
	unsigned hurry;                         /* slices left of a fast round */
	size_t ahead;                           /* steps before the next slice of a fast round */
	const struct op_scope *ops;             /* borrowed; NULL: no bound on requests in flight */
	enum runner_state state;
	bool full; /* paused, because too many requests are in flight */
};

/* Tell whether the walk comes to this key. */
static bool is_walked(const struct ctl_runner *r, const char *name)
{
	for (size_t i = 0; i < r->n_keys; i++)
		if (k8s_cache_find(r->keys[i], name))
			return true;
	return false;
}

/* Run one step. Pauses the queue when too many requests are in flight, and lets a fast walk
 * continue. */
static struct queue_next work(void *arg, const char *key)
{
	struct ctl_runner *r = arg;
	const struct kobj_key k = {.ns = r->ns, .name = key};
	struct queue_next next = r->step(r->self, &k);

	if (next.verdict == QUEUE_SETTLED && !is_walked(r, key))
		next.after_ms = RESYNC_MS;
	if (r->state == RUNNER_ON && r->ops && r->ops->n >= CTL_RUNNER_IN_FLIGHT) {
		r->full = true;
		queue_pause(r->queue);
	}
	r->ahead -= r->ahead > 0;
	if (r->hurry > 0 && (r->ahead == 0 || queue_due(r->queue) == 0))
		timer_set(&r->walk, 0);
	return next;
}

static void wake_one(void *arg, const struct kobj *o)
{
	ctl_runner_wake(arg, o->name);
}

/* Queue the next slice. A fast walk queues slices until there is work for a turn, so that few
 * objects are not spread over many turns. */
static void walk_on(void *arg)
{
	struct ctl_runner *r = arg;

	do {
		for (size_t i = 0; i < r->n_keys; i++)
			k8s_cache_each_in(r->keys[i], r->slice, N_SLICES, wake_one, r);
		r->slice = (r->slice + 1) % N_SLICES;
		r->hurry -= r->hurry > 0;
	} while (r->hurry > 0 && queue_due(r->queue) < TURN);
	r->ahead = queue_due(r->queue);
	timer_set(&r->walk, RESYNC_MS / N_SLICES);
}

/* The queue is paused until the runner is turned on. */
struct ctl_runner *ctl_runner_new(
	struct loop *l, const struct queue_conf *conf, const char *ns, ctl_step_fn step, void *self)
{
	struct ctl_runner *r = xcalloc(1, sizeof(*r));

	r->ns = ns;
	r->step = step;
	r->self = self;
	r->queue = queue_new(l, conf, work, r);
	timer_init(&r->walk, l, walk_on, r);
	queue_pause(r->queue);
	return r;
}

void ctl_runner_free(struct ctl_runner *r)
{
	if (!r)
		return;
	timer_fini(&r->walk);
	queue_free(r->queue);
	free(r);
}

/* Runs while the runner is off, too; ctl_runner_wake() then drops the key. */
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
	assert(r->n_keys < KEYS_MAX);
	r->keys[r->n_keys++] = keys;
}

void ctl_runner_bound(struct ctl_runner *r, const struct op_scope *ops)
{
	r->ops = ops;
}

struct queue *ctl_runner_queue(struct ctl_runner *r)
{
	return r->queue;
}

bool ctl_runner_is_behind(const struct ctl_runner *r)
{
	return queue_due(r->queue) > 0 || r->hurry > 0;
}

/* Called whenever a request ends. */
void ctl_runner_resume(struct ctl_runner *r)
{
	if (!r->full || r->ops->n >= CTL_RUNNER_IN_FLIGHT)
		return;
	r->full = false;
	queue_resume(r->queue);
}

/* While starting, keys of objects are left to the walk: otherwise all would be queued at once. */
void ctl_runner_wake(struct ctl_runner *r, const char *name)
{
	if (r->state == RUNNER_OFF || (r->state == RUNNER_STARTS && is_walked(r, name)))
		return;
	queue_add(r->queue, name);
	ctl_runner_resume(r);
}

/* Starts a fast round of the walk; a round in progress starts over. */
void ctl_runner_wake_all(struct ctl_runner *r)
{
	assert(r->n_keys > 0);
	if (r->state != RUNNER_ON)
		return;
	r->hurry = N_SLICES;
	walk_on(r);
}

/* For changes that come in large numbers: the earliest deadline of a key wins. */
void ctl_runner_wake_after(struct ctl_runner *r, const char *name, uint32_t after_ms)
{
	if (r->state != RUNNER_OFF)
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

/* The walk is started first; then the maps queue the keys that are not names of objects. */
void ctl_runner_on(struct ctl_runner *r)
{
	if (r->state != RUNNER_OFF)
		return;
	r->state = RUNNER_ON;
	if (r->n_keys > 0)
		ctl_runner_wake_all(r);
	r->state = RUNNER_STARTS;
	for (size_t i = 0; i < r->n_watched; i++)
		k8s_cache_each(r->watched[i].cache, map_one, &r->watched[i]);
	r->state = RUNNER_ON;
	queue_resume(r->queue);
}

/* Queued keys stay queued but are not worked; turning on again maps everything anyway. */
void ctl_runner_off(struct ctl_runner *r)
{
	r->state = RUNNER_OFF;
	r->full = false;
	r->hurry = 0;
	timer_cancel(&r->walk);
	queue_pause(r->queue);
}
