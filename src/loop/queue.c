/* SPDX-License-Identifier: MIT */
/*
 * One entry per key, found by hash. An entry is in one place: the list of due keys (first come,
 * first worked), the heap of later deadlines, or neither (its act is in flight, only the backoff is
 * remembered). One timer serves the whole queue. An entry that knows nothing is freed. Refuses to
 * be freed from inside `work`.
 */
#include "config.h"

#include "tec/loop/queue.h"

#include <string.h>
#include <sys/queue.h>

#include "tec/base/clock.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/metric.h"
#include "tec/base/str.h"
#include "tec/loop/timer.h"

static struct metric depth_gauge =
	METRIC_GAUGE_INIT("tec_queue_depth", "Keys that are due in a work queue.", "queue", NULL);
static struct metric retries_total = METRIC_COUNTER_INIT(
	"tec_queue_retries_total", "Keys that asked for another try.", "queue", "reason");

static struct metric wait_seconds = METRIC_SECONDS_INIT(
	"tec_queue_wait_seconds", "Age of a key when its turn came.", "queue", NULL);

struct entry {
	struct entry *hash_next;
	TAILQ_ENTRY(entry) link; /* in `due` */
	uint64_t due_ms;
	uint32_t backoff_ms; /* of the last retry, 0: none */
	uint32_t slot;       /* in the heap + 1, 0: not there */
	uint32_t hash;
	bool is_due, forgotten;
	char key[];
};
TAILQ_HEAD(entry_list, entry);

struct queue {
	struct loop *loop;
	struct queue_conf conf;
	queue_work_fn work;
	void *arg;
	struct entry **buckets; /* owned; a power of two */
	size_t n_buckets, n_entries;
	struct entry **heap; /* owned array of borrowed entries */
	size_t n_heap, heap_cap;
	struct entry_list due;
	size_t n_due;
	struct entry *current; /* being worked on */
	struct timer timer;
	uint64_t jitter_seq;
	bool paused;
};

/* ---- hash table */

static uint32_t hash_of(const char *key)
{
	return (uint32_t)str_hash(key, strlen(key));
}

static struct entry **bucket_of(struct queue *q, uint32_t hash)
{
	return &q->buckets[hash & (q->n_buckets - 1)];
}

static struct entry *find(struct queue *q, const char *key, uint32_t hash)
{
	for (struct entry *e = *bucket_of(q, hash); e; e = e->hash_next) {
		if (e->hash == hash && strcmp(e->key, key) == 0)
			return e;
	}
	return NULL;
}

static void grow_buckets(struct queue *q)
{
	struct entry **old = q->buckets;
	size_t n_old = q->n_buckets;

	q->n_buckets *= 2;
	q->buckets = xcalloc(q->n_buckets, sizeof(*q->buckets));
	for (size_t i = 0; i < n_old; i++) {
		while (old[i]) {
			struct entry *e = old[i], **b = bucket_of(q, e->hash);

			old[i] = e->hash_next;
			e->hash_next = *b;
			*b = e;
		}
	}
	free(old);
}

static struct entry *find_or_add(struct queue *q, const char *key)
{
	uint32_t hash = hash_of(key);
	struct entry *e = find(q, key, hash), **b;
	size_t len;

	if (e)
		return e;
	if (q->n_entries >= q->n_buckets)
		grow_buckets(q);
	len = strlen(key);
	e = xcalloc(1, sizeof(*e) + len + 1);
	memcpy(e->key, key, len);
	e->hash = hash;
	b = bucket_of(q, hash);
	e->hash_next = *b;
	*b = e;
	q->n_entries++;
	return e;
}

/* ---- heap of later deadlines */

static void place(struct queue *q, size_t i, struct entry *e)
{
	q->heap[i] = e;
	e->slot = (uint32_t)(i + 1);
}

static void sift_up(struct queue *q, size_t i, struct entry *e)
{
	while (i > 0 && e->due_ms < q->heap[(i - 1) / 2]->due_ms) {
		place(q, i, q->heap[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	place(q, i, e);
}

static void sift_down(struct queue *q, size_t i, struct entry *e)
{
	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= q->n_heap)
			break;
		if (child + 1 < q->n_heap && q->heap[child + 1]->due_ms < q->heap[child]->due_ms)
			child++;
		if (q->heap[child]->due_ms >= e->due_ms)
			break;
		place(q, i, q->heap[child]);
		i = child;
	}
	place(q, i, e);
}

static void heap_add(struct queue *q, struct entry *e)
{
	if (q->n_heap == q->heap_cap) {
		q->heap_cap = q->heap_cap ? q->heap_cap * 2 : 16;
		q->heap = xreallocarray(q->heap, q->heap_cap, sizeof(*q->heap));
	}
	q->n_heap++;
	sift_up(q, q->n_heap - 1, e);
}

static void heap_remove(struct queue *q, struct entry *e)
{
	size_t i = e->slot - 1;
	struct entry *last = q->heap[--q->n_heap];

	e->slot = 0;
	if (i == q->n_heap)
		return;
	if (i > 0 && last->due_ms < q->heap[(i - 1) / 2]->due_ms)
		sift_up(q, i, last);
	else
		sift_down(q, i, last);
}

/* ---- places */

static void unschedule(struct queue *q, struct entry *e)
{
	if (e->slot)
		heap_remove(q, e);
	if (e->is_due) {
		TAILQ_REMOVE(&q->due, e, link);
		e->is_due = false;
		q->n_due--;
	}
}

/* Frees e when it is nowhere and remembers nothing. */
static void maybe_free(struct queue *q, struct entry *e)
{
	struct entry **pp;

	if (e->slot || e->is_due || e->backoff_ms || e == q->current)
		return;
	for (pp = bucket_of(q, e->hash); *pp != e; pp = &(*pp)->hash_next)
		;
	*pp = e->hash_next;
	q->n_entries--;
	free(e);
}

static void make_due(struct queue *q, struct entry *e, uint64_t due_ms)
{
	unschedule(q, e);
	e->due_ms = due_ms;
	e->is_due = true;
	TAILQ_INSERT_TAIL(&q->due, e, link);
	q->n_due++;
}

/* Keeps an earlier deadline. */
static void schedule(struct queue *q, struct entry *e, uint64_t after_ms)
{
	uint64_t now = clock_boot_ms(), at = now + after_ms;

	if (e->is_due || (e->slot && e->due_ms <= at))
		return;
	if (after_ms == 0) {
		make_due(q, e, now);
		return;
	}
	if (e->slot)
		heap_remove(q, e);
	e->due_ms = at;
	heap_add(q, e);
}

/* Wakes for what is due or comes first. */
static void arm(struct queue *q)
{
	uint64_t now;

	metric_set(&depth_gauge, q->conf.name, NULL, (double)q->n_due);
	if (q->paused || q->current) /* a run arms at its end */
		return;
	if (q->n_due > 0) {
		timer_set_earlier(&q->timer, 0);
		return;
	}
	if (q->n_heap == 0) {
		timer_cancel(&q->timer);
		return;
	}
	now = clock_boot_ms();
	timer_set(&q->timer, q->heap[0]->due_ms > now ? q->heap[0]->due_ms - now : 0);
}

/* ---- work */

/* Even spread over lo..hi. The keyed hash of a counter is random enough to keep keys apart. */
static uint64_t spread(struct queue *q, uint64_t lo, uint64_t hi)
{
	q->jitter_seq++;
	return lo + str_hash(&q->jitter_seq, sizeof(q->jitter_seq)) % (hi - lo + 1);
}

/* The next wait: doubling from min to max, drawn from the upper fifth, never outside min..max. */
static uint64_t next_backoff(struct queue *q, struct entry *e)
{
	uint64_t min = q->conf.backoff_min_ms, max = q->conf.backoff_max_ms, base, hi;

	base = e->backoff_ms ? (uint64_t)e->backoff_ms * 2 : min;
	if (base > max)
		base = max;
	e->backoff_ms = (uint32_t)base;
	hi = base + base / 4 < max ? base + base / 4 : max;
	return spread(q, hi - hi / 5 > min ? hi - hi / 5 : min, hi);
}

static void retry(struct queue *q, struct entry *e, const struct queue_next *next)
{
	uint64_t after = next->after_ms ? next->after_ms : next_backoff(q, e);
	const char *reason = next->reason ? next->reason : "unknown";

	metric_add(&retries_total, q->conf.name, reason, 1);
	log_at(next->after_ms ? LOG_DEBUG : LOG_INFO, NULL, "trying again later",
		"queue=%s key=%s reason=%s retry_ms=%llu", log_esc(q->conf.name), log_esc(e->key),
		log_esc(reason), (unsigned long long)after);
	schedule(q, e, after);
}

static void apply(struct queue *q, struct entry *e, const struct queue_next *next)
{
	bool forgotten = e->forgotten;

	e->forgotten = false;
	switch (next->verdict) {
	case QUEUE_SETTLED:
		e->backoff_ms = 0;
		if (q->conf.resync_ms && !forgotten)
			schedule(q, e,
				spread(q, (uint64_t)q->conf.resync_ms * 9 / 10,
					(uint64_t)q->conf.resync_ms * 11 / 10));
		return;
	case QUEUE_IN_FLIGHT:
		return;
	case QUEUE_RETRY:
		retry(q, e, next);
		return;
	}
	DIE("queue %s: unknown verdict %d", q->conf.name, (int)next->verdict);
}

static void work_one(struct queue *q)
{
	struct entry *e = TAILQ_FIRST(&q->due);
	struct queue_next next;

	metric_observe(
		&wait_seconds, q->conf.name, NULL, (double)(clock_boot_ms() - e->due_ms) / 1e3);
	unschedule(q, e); /* first: work may add the key again */
	q->current = e;
	next = q->work(q->arg, e->key);
	apply(q, e, &next);
	q->current = NULL;
	maybe_free(q, e);
}

static void on_timer(void *arg)
{
	struct queue *q = arg;
	uint64_t now = clock_boot_ms();
	unsigned n = 0;

	while (q->n_heap > 0 && q->heap[0]->due_ms <= now)
		make_due(q, q->heap[0], q->heap[0]->due_ms);
	while (q->n_due > 0 && n < q->conf.burst && !q->paused) {
		work_one(q);
		n++;
	}
	arm(q);
}

struct queue *queue_new(
	struct loop *l, const struct queue_conf *conf, queue_work_fn work, void *arg)
{
	struct queue *q = xcalloc(1, sizeof(*q));

	q->loop = l;
	q->conf = *conf;
	if (!q->conf.backoff_min_ms)
		q->conf.backoff_min_ms = 800;
	if (!q->conf.backoff_max_ms)
		q->conf.backoff_max_ms = 30000;
	if (!q->conf.burst)
		q->conf.burst = 64;
	if (q->conf.backoff_min_ms > q->conf.backoff_max_ms)
		DIE("queue %s: backoff from %u to %u ms", conf->name, q->conf.backoff_min_ms,
			q->conf.backoff_max_ms);
	q->work = work;
	q->arg = arg;
	q->n_buckets = 64;
	q->buckets = xcalloc(q->n_buckets, sizeof(*q->buckets));
	TAILQ_INIT(&q->due);
	timer_init(&q->timer, l, on_timer, q);
	return q;
}

void queue_free(struct queue *q)
{
	if (!q)
		return;
	if (q->current)
		DIE("queue %s freed by its own work", q->conf.name);
	timer_fini(&q->timer);
	for (size_t i = 0; i < q->n_buckets; i++) {
		while (q->buckets[i]) {
			struct entry *e = q->buckets[i];

			q->buckets[i] = e->hash_next;
			free(e);
		}
	}
	metric_drop(&depth_gauge, q->conf.name, NULL);
	free(q->buckets);
	free(q->heap);
	free(q);
}

void queue_add(struct queue *q, const char *key)
{
	queue_add_after(q, key, 0);
}

void queue_add_after(struct queue *q, const char *key, uint32_t after_ms)
{
	schedule(q, find_or_add(q, key), after_ms);
	arm(q);
}

void queue_forget(struct queue *q, const char *key)
{
	struct entry *e = find(q, key, hash_of(key));

	if (!e)
		return;
	unschedule(q, e);
	e->backoff_ms = 0;
	e->forgotten = e == q->current;
	maybe_free(q, e);
	arm(q);
}

void queue_forget_backoff(struct queue *q, const char *key)
{
	struct entry *e = find(q, key, hash_of(key));

	if (!e)
		return;
	e->backoff_ms = 0;
	maybe_free(q, e);
}

void queue_pause(struct queue *q)
{
	q->paused = true;
	timer_cancel(&q->timer);
}

void queue_resume(struct queue *q)
{
	q->paused = false;
	arm(q);
}

/* Due entries of the subtree at i that the timer has not moved yet. */
static size_t count_overdue(const struct queue *q, size_t i, uint64_t now, uint64_t *oldest)
{
	if (i >= q->n_heap || q->heap[i]->due_ms > now)
		return 0;
	if (q->heap[i]->due_ms < *oldest)
		*oldest = q->heap[i]->due_ms;
	return 1 + count_overdue(q, 2 * i + 1, now, oldest) +
	       count_overdue(q, 2 * i + 2, now, oldest);
}

size_t queue_depth(const struct queue *q)
{
	uint64_t oldest = UINT64_MAX;

	return q->n_due + count_overdue(q, 0, clock_boot_ms(), &oldest);
}

uint64_t queue_oldest_ms(const struct queue *q)
{
	uint64_t now = clock_boot_ms(), oldest = now;

	/* Not always the first: after a pause, overdue deadlines line up behind what was added
	 * meanwhile. */
	for (const struct entry *e = TAILQ_FIRST(&q->due); e; e = TAILQ_NEXT(e, link)) {
		if (e->due_ms < oldest)
			oldest = e->due_ms;
	}
	if (q->n_heap > 0 && q->heap[0]->due_ms < oldest)
		oldest = q->heap[0]->due_ms;
	return now - oldest;
}
