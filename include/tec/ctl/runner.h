/* SPDX-License-Identifier: MIT */
/*
 * The engine of one controller: object changes -> keys -> queue -> step. Steps run only while the
 * runner is on (caches filled, leader). A change of a watched cache maps to the affected keys,
 * never by a scan; without a change, a key is stepped again within about an hour. While
 * CTL_RUNNER_IN_FLIGHT requests are in flight, keys wait in the queue: a key costs far less memory
 * than a request, and its step will decide from newer state. Queued keys cost memory, too: when
 * all objects must be stepped, they are queued in slices, the next one when the last had its steps.
 */
#ifndef TEC_CTL_RUNNER_H
#define TEC_CTL_RUNNER_H

#include "tec/k8s/cache.h"
#include "tec/kobj/key.h"
#include "tec/loop/loop.h"
#include "tec/loop/op.h"
#include "tec/loop/queue.h"

#define CTL_RUNNER_IN_FLIGHT 64

struct ctl_runner;
typedef struct queue_next (*ctl_step_fn)(void *self, const struct kobj_key *key);
/* Calls ctl_runner_wake() for every key that the change may concern. was, now: as in
 * k8s/cache.h. */
typedef void (*ctl_map_fn)(void *self, const struct kobj *was, const struct kobj *now);

/* conf: the name of the queue and the records of its keys (ctl/kind.c). */
struct ctl_runner *ctl_runner_new(struct loop *l, const struct queue_conf *conf, const char *ns,
	ctl_step_fn step, void *self);
void ctl_runner_free(struct ctl_runner *r);
/* The scope whose requests are counted, borrowed for life. When a request ends, its owner calls
 * ctl_runner_wake() or ctl_runner_resume(). */
void ctl_runner_bound(struct ctl_runner *r, const struct op_scope *ops);
void ctl_runner_resume(struct ctl_runner *r);
struct queue *ctl_runner_queue(struct ctl_runner *r);
/* A key is due, or not all those of ctl_runner_wake_all() are queued yet. */
bool ctl_runner_is_behind(const struct ctl_runner *r);
/* A cache whose names are keys of the runner, borrowed for life; at most two. */
void ctl_runner_keys(struct ctl_runner *r, const struct k8s_cache *keys);
void ctl_runner_watch(struct ctl_runner *r, struct k8s_cache *cache, ctl_map_fn map);
void ctl_runner_wake(struct ctl_runner *r, const char *name);
/* Requires ctl_runner_keys(): wakes the name of every object. */
void ctl_runner_wake_all(struct ctl_runner *r);
void ctl_runner_wake_after(struct ctl_runner *r, const char *name, uint32_t after_ms);
void ctl_runner_forget(struct ctl_runner *r, const char *name);
void ctl_runner_on(struct ctl_runner *r);
void ctl_runner_off(struct ctl_runner *r);

#endif
