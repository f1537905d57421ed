/* SPDX-License-Identifier: MIT */
/*
 * One controller's engine: object changes -> keys -> queue -> step. Steps run only while the runner
 * is on (caches filled, leader). A change of any watched cache maps to keys in O(affected), never
 * by a scan; without a change, a key is stepped again within about an hour. While as many calls are
 * in flight as the API is worth (CTL_RUNNER_IN_FLIGHT), keys wait in the queue: a key costs far
 * less memory than a call, and its step will decide from newer state. But a key in the queue costs
 * some: when all objects are to be looked at, they come a slice at a time, the next when the one
 * before is worked, or after a second, so that other keys never hold them up.
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
/* Calls ctl_runner_wake for every key that the change may concern. was/now as in k8s/cache.h. */
typedef void (*ctl_map_fn)(void *self, const struct kobj *was, const struct kobj *now);

struct ctl_runner *ctl_runner_new(
	struct loop *l, const char *name, const char *ns, ctl_step_fn step, void *self);
void ctl_runner_free(struct ctl_runner *r);
/* The calls that count, borrowed for good. When one ends, its owner calls ctl_runner_wake or
 * ctl_runner_resume. */
void ctl_runner_bound(struct ctl_runner *r, const struct op_scope *ops);
void ctl_runner_resume(struct ctl_runner *r);
/* The cache, borrowed for good, whose names are the runner's keys: most of them, if not all. */
void ctl_runner_keys(struct ctl_runner *r, const struct k8s_cache *keys);
void ctl_runner_watch(struct ctl_runner *r, struct k8s_cache *cache, ctl_map_fn map);
void ctl_runner_wake(struct ctl_runner *r, const char *name);
/* With ctl_runner_keys: every object's name. */
void ctl_runner_wake_all(struct ctl_runner *r);
void ctl_runner_wake_after(struct ctl_runner *r, const char *name, uint32_t after_ms);
void ctl_runner_forget(struct ctl_runner *r, const char *name);
void ctl_runner_on(struct ctl_runner *r);
void ctl_runner_off(struct ctl_runner *r);

#endif
