/* SPDX-License-Identifier: MIT */
/*
 * struct queue: keyed, de-duplicated, timed work. Each key is handed to `work` at most once at a
 * time; a key added while it is being worked on runs again afterwards; of two deadlines the earlier
 * wins. Keys are copied.
 *
 * `work` decides from what it sees and says what next:
 *   SETTLED       nothing to do (backoff forgotten); looked at again after resync_ms with 10 %
 * jitter IN_FLIGHT     an act was started; queue_add() when it ends. The key's backoff stays as it
 * is. RETRY         again after `after_ms`, or with after_ms = 0 after a backoff of 0.8-30 s with
 * jitter, doubling per key A turn of the loop works at most `burst` keys, so listeners are never
 * starved.
 */
#ifndef TEC_LOOP_QUEUE_H
#define TEC_LOOP_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include "tec/loop/loop.h"

enum queue_verdict { QUEUE_SETTLED, QUEUE_IN_FLIGHT, QUEUE_RETRY };
struct queue_next {
	enum queue_verdict verdict;
	uint32_t after_ms;  /* RETRY only; 0 = backoff */
	const char *reason; /* static text, for logs and metrics; NULL when settled */
};

struct queue;
typedef struct queue_next (*queue_work_fn)(void *arg, const char *key);

struct queue_conf {
	const char *name;                        /* static; label in metrics and logs */
	uint32_t resync_ms;                      /* 0: keys are forgotten when settled */
	uint32_t backoff_min_ms, backoff_max_ms; /* 0: 800 and 30,000 */
	unsigned burst;                          /* 0: 64 */
};

struct queue *queue_new(
	struct loop *l, const struct queue_conf *conf, queue_work_fn work, void *arg);
void queue_free(struct queue *q); /* pending keys are dropped */
void queue_add(struct queue *q, const char *key);
void queue_add_after(struct queue *q, const char *key, uint32_t after_ms);
void queue_forget(struct queue *q, const char *key); /* its object is gone: no resync, no backoff */
void queue_forget_backoff(struct queue *q, const char *key); /* an act for it worked */
void queue_pause(struct queue *q); /* keeps keys, runs none (not the leader) */
void queue_resume(struct queue *q);
size_t queue_depth(const struct queue *q);       /* keys due now */
uint64_t queue_oldest_ms(const struct queue *q); /* age of the oldest due key, 0 if none */

#endif
