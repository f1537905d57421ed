/* SPDX-License-Identifier: MIT */
/*
 * struct queue: a keyed, de-duplicated, timed work queue, as client-go's workqueue. `work` runs for a
 * key at most once at a time; a key added during its own work runs again afterwards; of two deadlines
 * the earlier one wins. Keys are copied.
 *
 * `work` observes the current state and returns what to do next:
 *   SETTLED    nothing to do; the backoff is reset. Runs again after `after_ms` with 10 % jitter, or
 *              with after_ms = 0 only when the key is added again.
 *   IN_FLIGHT  an operation was started whose end calls queue_add(). The backoff is kept.
 *   RETRY      run again after `after_ms`, or with after_ms = 0 after a backoff of 0.8-30 s with
 *              jitter that doubles per key.
 * A turn of the loop processes at most `burst` keys, so that listeners are never starved.
 *
 * A key may have one record for the queue's user (conf.record_size). It is zeroed when created, owned
 * by the queue, and kept until it is dropped, independently of what the key's work returns. A key
 * that becomes due with a record is worked before those without: what was begun is completed first.
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
	size_t record_size;                      /* bytes; 0: the queue has no records */
	void (*record_fini)(void *record);       /* releases what a record owns; may be NULL */
};

struct queue *queue_new(
	struct loop *l, const struct queue_conf *conf, queue_work_fn work, void *arg);
void queue_free(struct queue *q); /* pending keys and records are dropped */
void queue_add(struct queue *q, const char *key);
void queue_add_after(struct queue *q, const char *key, uint32_t after_ms);
/* The object was deleted: drop the key's deadline and backoff. Called by the key's own work, it also
 * makes the verdict have no effect. */
void queue_forget(struct queue *q, const char *key);
void queue_forget_backoff(struct queue *q, const char *key); /* an operation for it succeeded */
size_t queue_due(const struct queue *q); /* number of due keys, without the one in work */
void queue_pause(struct queue *q);       /* keeps keys but runs none (not the leader) */
void queue_resume(struct queue *q);

/* The key's record, or NULL. */
void *queue_record_find(const struct queue *q, const char *key);
/* Find or create the record. *own_key is the queue's copy of the key and lives as long as the record. */
void *queue_record(struct queue *q, const char *key, const char **own_key);
void queue_record_drop(struct queue *q, const char *key);
void queue_records_drop(struct queue *q); /* all of them */

#endif
