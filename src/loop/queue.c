/* SPDX-License-Identifier: MIT */
/*
 * A table holds one entry per key. An entry is in exactly one of these places: a list of due keys
 * (FIFO; one for keys with a record, one for the others), waiting for a deadline in its own timer,
 * or neither (its operation is in flight, and only the backoff or a record is kept). An entry
 * without any state is freed, so settled keys without a resync cost nothing. A queue cannot be
 * freed from inside `work`.
 */
#include "config.h"

#include "tec/loop/queue.h"

#include <string.h>
#include <sys/queue.h>

#include "tec/base/backoff.h"
#include "tec/base/clock.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/metric.h"
#include "tec/base/str.h"
#include "tec/base/table.h"
#include "tec/loop/timer.h"

static struct metric depth_gauge =
	METRIC_GAUGE_INIT("tec_queue_depth", "Number of due keys in a work queue.", "queue", NULL);
static struct metric retries_total = METRIC_COUNTER_INIT(
	"tec_queue_retries_total", "Number of retries that keys requested.", "queue", "reason");

static struct metric wait_seconds = METRIC_SECONDS_INIT(
	"tec_queue_wait_seconds", "Time that a due key waited for its work.", "queue", NULL);

struct entry {
	struct table_link link;
	TAILQ_ENTRY(entry) due_link; /* in one of `due` */
	struct timer later;          /* deadline of a key that is not due */
	struct queue *queue;         /* borrowed */
	uint64_t due_ms;             /* boot clock: since when it is due */
	void *record; /* owned; NULL: none. Separate, because most keys are settled and have none */
	struct backoff backoff;
	bool is_due, fresh; /* fresh: in the second list of `due` */
	bool forgotten;     /* forgotten: queue_forget() ran during its own work */
	char key[];
};
TAILQ_HEAD(entry_list, entry);

struct queue {
	struct loop *loop;
	struct queue_conf conf;
	queue_work_fn work;
	void *arg;
	struct table entries;     /* owned */
	struct entry_list due[2]; /* with a record, worked first; without one */
	size_t n_due;
	struct entry *current; /* the key in work, NULL outside of it */
	struct defer run;      /* pending while keys are due and the queue is not paused */
	bool paused;
};

/* ---- entries */

static void make_due(void *entry);

static struct entry *find(const struct queue *q, const char *key)
{
	struct entry *e;

	TABLE_WITH_HASH (e, link, &q->entries, table_hash_str(key))
		if (strcmp(e->key, key) == 0)
			return e;
	return NULL;
}

/* Create an entry on first use. The caller must give it state (due, timer or record), or
 * maybe_free() never runs for it. */
static struct entry *find_or_add(struct queue *q, const char *key)
{
	struct entry *e = find(q, key);
	size_t len = strlen(key);

	if (e)
		return e;
	e = xcalloc(1, offsetof(struct entry, key) + len + 1);
	memcpy(e->key, key, len);
	e->queue = q;
	timer_init(&e->later, q->loop, make_due, e);
	table_add(&q->entries, &e->link, table_hash_str(key));
	return e;
}

/* Remove the key from the due list or cancel its deadline; its backoff and record stay. */
static void unschedule(struct queue *q, struct entry *e)
{
	timer_cancel(&e->later);
	if (e->is_due) {
		TAILQ_REMOVE(&q->due[e->fresh], e, due_link);
		e->is_due = false;
		q->n_due--;
	}
}

/* Detach the record first, so that record_fini finds none when it calls back into the queue. */
static void drop_record(struct queue *q, struct entry *e)
{
	void *record = steal_ptr(&e->record);

	if (record && q->conf.record_fini)
		q->conf.record_fini(record);
	free(record);
}

static void entry_free(struct queue *q, struct entry *e)
{
	unschedule(q, e);
	drop_record(q, e);
	timer_fini(&e->later);
	table_remove(&q->entries, &e->link);
	free(e);
}

/* Free e when it is not scheduled and has no state left. The current entry is kept: work_one()
 * still uses it. */
static void maybe_free(struct queue *q, struct entry *e)
{
	if (!timer_is_set(&e->later) && !e->is_due && !e->backoff.ms && !e->record &&
		e != q->current)
		entry_free(q, e);
}

static void work_due(void *arg);

/* Schedule a run if keys are due. During work nothing is armed: work_due() calls this at its
 * end. */
static void arm(struct queue *q)
{
	metric_set(&depth_gauge, q->conf.name, NULL, (double)q->n_due);
	if (!q->paused && !q->current && q->n_due > 0)
		defer_call(&q->run, q->loop, work_due, q);
}

/* Append to the due list; also the timer's callback. The time of becoming due feeds the wait metric. */
static void make_due(void *entry)
{
	struct entry *e = entry;
	struct queue *q = e->queue;

	unschedule(q, e);
	e->due_ms = clock_boot_ms();
	e->is_due = true;
	e->fresh = !e->record;
	TAILQ_INSERT_TAIL(&q->due[e->fresh], e, due_link);
	q->n_due++;
	arm(q);
}

/* Schedule the key after after_ms ms; an earlier deadline, or being due, wins. */
static void schedule(struct queue *q, struct entry *e, uint64_t after_ms)
{
	if (e->is_due)
		return;
	if (after_ms == 0)
		make_due(e);
	else
		timer_set_earlier(&e->later, after_ms);
}

/* ---- work */

/* Act on the verdict of work. A key forgotten during its work gets neither a retry nor a resync,
 * because its object is gone. */
static void apply(struct queue *q, struct entry *e, const struct queue_next *next)
{
	bool forgotten = e->forgotten;
	const char *reason = next->reason ? next->reason : "unknown";
	uint64_t after = next->after_ms;

	e->forgotten = false;
	switch (next->verdict) {
	case QUEUE_SETTLED:
		backoff_reset(&e->backoff);
		if (after && !forgotten)
			schedule(q, e, backoff_spread(after * 9 / 10, after * 11 / 10));
		return;
	case QUEUE_IN_FLIGHT:
		return;
	case QUEUE_RETRY:
		if (forgotten)
			return;
		if (after == 0)
			after = backoff_next(
				&e->backoff, q->conf.backoff_min_ms, q->conf.backoff_max_ms);
		metric_add(&retries_total, q->conf.name, reason, 1);
		/* With an explicit delay a retry is planned and logged at debug level; a backoff is a
		 * failure and logged at info level. */
		log_at(next->after_ms ? LOG_DEBUG : LOG_INFO, NULL, "retrying later",
			"queue=%s key=%s reason=%s retry_ms=%llu", log_esc(q->conf.name),
			log_esc(e->key), log_esc(reason), (unsigned long long)after);
		schedule(q, e, after);
		return;
	}
	DIE("queue %s: unknown verdict %d", q->conf.name, (int)next->verdict);
}

/* Run work for the first due key. Work may add any key, this one included, but may not free the
 * queue. */
static void work_one(struct queue *q)
{
	struct entry *e = TAILQ_FIRST(&q->due[TAILQ_EMPTY(&q->due[0])]);
	struct queue_next next;

	metric_observe(
		&wait_seconds, q->conf.name, NULL, (double)(clock_boot_ms() - e->due_ms) / 1e3);
	unschedule(q, e); /* before work, which may add the key again */
	q->current = e;
	next = q->work(q->arg, e->key);
	apply(q, e, &next);
	q->current = NULL;
	maybe_free(q, e);
}

/* Process at most `burst` keys, then return to the loop so that sockets are served; arm() continues
 * in the next turn. */
static void work_due(void *arg)
{
	struct queue *q = arg;

	for (unsigned n = 0; q->n_due > 0 && n < q->conf.burst && !q->paused; n++)
		work_one(q);
	arm(q);
}

struct queue *queue_new(
	struct loop *l, const struct queue_conf *conf, queue_work_fn work, void *arg)
{
	struct queue *q = xcalloc(1, sizeof(*q));

	q->loop = l;
	q->conf = *conf;
	if (!q->conf.backoff_min_ms)
		q->conf.backoff_min_ms = BACKOFF_MIN_MS;
	if (!q->conf.backoff_max_ms)
		q->conf.backoff_max_ms = BACKOFF_MAX_MS;
	if (!q->conf.burst)
		q->conf.burst = 64;
	if (q->conf.backoff_min_ms > q->conf.backoff_max_ms)
		DIE("queue %s: invalid backoff from %u to %u ms", conf->name,
			q->conf.backoff_min_ms, q->conf.backoff_max_ms);
	q->work = work;
	q->arg = arg;
	TAILQ_INIT(&q->due[0]);
	TAILQ_INIT(&q->due[1]);
	return q;
}

void queue_free(struct queue *q)
{
	struct entry *e;

	if (!q)
		return;
	if (q->current)
		DIE("queue %s freed by its own work", q->conf.name);
	defer_cancel(&q->run);
	TABLE_EACH (e, link, &q->entries)
		entry_free(q, e);
	table_fini(&q->entries);
	metric_drop(&depth_gauge, q->conf.name, NULL);
	free(q);
}

void queue_add(struct queue *q, const char *key)
{
	queue_add_after(q, key, 0);
}

/* With after_ms 0 the key is due at once even during a backoff, so that news about an object is not
 * delayed by its earlier failures. */
void queue_add_after(struct queue *q, const char *key, uint32_t after_ms)
{
	schedule(q, find_or_add(q, key), after_ms);
}

/* The entry survives if it has a record or is in work; in the latter case apply() is told through
 * `forgotten`. */
void queue_forget(struct queue *q, const char *key)
{
	struct entry *e = find(q, key);

	if (!e)
		return;
	unschedule(q, e);
	backoff_reset(&e->backoff);
	e->forgotten = e == q->current;
	maybe_free(q, e);
	arm(q);
}

/* Lets the next failure start with the shortest delay again. */
void queue_forget_backoff(struct queue *q, const char *key)
{
	struct entry *e = find(q, key);

	if (!e)
		return;
	backoff_reset(&e->backoff);
	maybe_free(q, e);
}

size_t queue_due(const struct queue *q)
{
	return q->n_due;
}

/* A key in work finishes; work_due() checks `paused` before each further key. */
void queue_pause(struct queue *q)
{
	q->paused = true;
	defer_cancel(&q->run);
}

void queue_resume(struct queue *q)
{
	q->paused = false;
	arm(q);
}

/* ---- records */

void *queue_record_find(const struct queue *q, const char *key)
{
	const struct entry *e = find(q, key);

	return e ? e->record : NULL;
}

/* The record outlives schedules and runs: an operation in flight keeps its state here. */
void *queue_record(struct queue *q, const char *key, const char **own_key)
{
	struct entry *e = find_or_add(q, key);

	if (!e->record)
		e->record = xcalloc(1, q->conf.record_size);
	*own_key = e->key;
	return e->record;
}

void queue_record_drop(struct queue *q, const char *key)
{
	struct entry *e = find(q, key);

	if (!e)
		return;
	drop_record(q, e);
	maybe_free(q, e);
}

/* For an owner that stops, for example when this process no longer leads. Entries that are still
 * scheduled stay. */
void queue_records_drop(struct queue *q)
{
	struct entry *e;

	TABLE_EACH (e, link, &q->entries) {
		drop_record(q, e);
		maybe_free(q, e);
	}
}
