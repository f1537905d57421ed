/* SPDX-License-Identifier: MIT */
/*
 * struct queue: keyed, de-duplicated, timed work. Each key is handed to `work` at most once at a
 * time; a key added while it is being worked on runs again afterwards; of two deadlines the earlier
 * wins. Keys are copied.
 *
 * `work` decides from what it sees and says what next:
 *   SETTLED    nothing to do (backoff forgotten); looked at again after `after_ms` with 10 % jitter,
 *              with after_ms = 0 when it is added again
 *   IN_FLIGHT  an act was started; queue_add() when it ends. The key's backoff stays as it is.
 *   RETRY      again after `after_ms`, or with after_ms = 0 after a backoff of 0.8-30 s with
 *              jitter, doubling per key
 * A turn of the loop works at most `burst` keys, so listeners are never starved.
 *
 * A key may have one record of its user (conf.record_size): zeroed when it is made, owned by the
 * queue, there until it is dropped, whatever the key's work says.
 */
#ifndef TEC_LOOP_QUEUE_H
#define TEC_LOOP_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include "tec/loop/loop.h"

enum queue_verdict { QUEUE_SETTLED, QUEUE_IN_FLIGHT, QUEUE_RETRY };
struct queue_next {
	enum queue_verdict verdict;
	uint32_t after_ms;  /* not for IN_FLIGHT; RETRY: 0 = backoff */
	const char *reason; /* static text, for logs and metrics; NULL when settled */
};

struct queue;
typedef struct queue_next (*queue_work_fn)(void *arg, const char *key);

struct queue_conf {
	const char *name;                        /* static; label in metrics and logs */
	uint32_t backoff_min_ms, backoff_max_ms; /* 0: 800 and 30,000 */
	unsigned burst;                          /* 0: 64 */
	size_t record_size;
	void (*record_fini)(void *record); /* what it owns goes; NULL: nothing */
};

struct queue *queue_new(
	struct loop *l, const struct queue_conf *conf, queue_work_fn work, void *arg);
void queue_free(struct queue *q); /* pending keys and records are dropped */
void queue_add(struct queue *q, const char *key);
void queue_add_after(struct queue *q, const char *key, uint32_t after_ms);
void queue_forget(
	struct queue *q, const char *key); /* its object is gone: no deadline, no backoff */
void queue_forget_backoff(struct queue *q, const char *key); /* an act for it worked */
size_t queue_due(
	const struct queue *q);    /* how many keys are due, without the one being worked on */
void queue_pause(struct queue *q); /* keeps keys, runs none (not the leader) */
void queue_resume(struct queue *q);

/* The key's record; NULL: it has none. */
void *queue_record_find(const struct queue *q, const char *key);
/* Found or made. *own_key: the queue's copy of the key, there as long as the record is. */
void *queue_record(struct queue *q, const char *key, const char **own_key);
void queue_record_drop(struct queue *q, const char *key);
void queue_records_drop(struct queue *q); /* all of them */

#endif
