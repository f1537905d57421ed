/* SPDX-License-Identifier: MIT */
/*
 * The loop's timers: a binary heap ordered by (deadline, order of setting). A heap entry holds the
 * key, and the timer its index in the heap, so setting and cancelling are O(log n). A timer leaves
 * the heap before its function runs.
 */
#include "config.h"

#include "tec/loop/timer.h"

#include "loop_internal.h"
#include "tec/base/clock.h"
#include "tec/base/mem.h"
#include "tec/base/metric.h"

static struct metric lag_seconds = METRIC_SECONDS_INIT(
	"tec_loop_lag_seconds", "Delay between a timer's deadline and its run.", NULL, NULL);

/* Compare by deadline; equal deadlines fire in the order in which they were set. */
static bool before(const struct timer_entry *a, const struct timer_entry *b)
{
	return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->seq < b->seq;
}

/* Store an entry and its index in the timer, which timer_cancel() needs. */
static void place(struct loop *l, size_t i, struct timer_entry e)
{
	l->heap[i] = e;
	e.timer->slot = i + 1;
}

/* Place e at index i or above, moving later entries down. */
static void sift_up(struct loop *l, size_t i, struct timer_entry e)
{
	while (i > 0 && before(&e, &l->heap[(i - 1) / 2])) {
		place(l, i, l->heap[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	place(l, i, e);
}

/* Place e at index i or below, moving earlier entries up. */
static void sift_down(struct loop *l, size_t i, struct timer_entry e)
{
	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= l->n_timers)
			break;
		if (child + 1 < l->n_timers && before(&l->heap[child + 1], &l->heap[child]))
			child++;
		if (!before(&l->heap[child], &e))
			break;
		place(l, i, l->heap[child]);
		i = child;
	}
	place(l, i, e);
}

/* Remove entry i by moving the last entry into its place, which may have to move either way. */
static void remove_at(struct loop *l, size_t i)
{
	struct timer_entry last;

	l->heap[i].timer->slot = 0;
	last = l->heap[--l->n_timers];
	if (i == l->n_timers)
		return;
	if (i > 0 && before(&last, &l->heap[(i - 1) / 2]))
		sift_up(l, i, last);
	else
		sift_down(l, i, last);
}

void timer_init(struct timer *t, struct loop *l, loop_fn fn, void *arg)
{
	*t = (struct timer){.loop = l, .fn = fn, .arg = arg};
}

/* The owner's _fini; the timer cannot be set afterwards. */
void timer_fini(struct timer *t)
{
	timer_cancel(t);
	t->loop = NULL;
}

/* Saturate just below UINT64_MAX, the value of timer_next_ms() for "no timer". */
static uint64_t deadline(uint64_t after_ms)
{
	uint64_t at;

	return __builtin_add_overflow(clock_boot_ms(), after_ms, &at) ? UINT64_MAX - 1 : at;
}

/* Setting again counts as new: the timer moves after others with an equal deadline. */
static void set_at(struct timer *t, uint64_t at_ms)
{
	struct loop *l = t->loop;

	if (!l)
		DIE("setting a timer that was not initialised");
	timer_cancel(t);
	ARRAY_GROW(l->heap, l->n_timers);
	t->at_ms = at_ms;
	sift_up(l, l->n_timers++, (struct timer_entry){at_ms, l->timer_seq++, t});
}

void timer_set(struct timer *t, uint64_t after_ms)
{
	set_at(t, deadline(after_ms));
}

/* For a timer that several reasons may set, such as a queue's key with a retry and a resync. */
void timer_set_earlier(struct timer *t, uint64_t after_ms)
{
	uint64_t at = deadline(after_ms);

	if (!timer_is_set(t) || at < t->at_ms)
		set_at(t, at);
}

void timer_cancel(struct timer *t)
{
	if (t->slot)
		remove_at(t->loop, t->slot - 1);
}

/* The loop waits for this deadline; with a fake clock loop_advance() jumps to it. */
uint64_t timer_next_ms(const struct loop *l)
{
	return l->n_timers > 0 ? l->heap[0].at_ms : UINT64_MAX;
}

unsigned timer_run_due(struct loop *l)
{
	uint64_t now = clock_boot_ms(), limit = l->timer_seq;
	unsigned n = 0;

	/* A timer that a function sets for "now" has a sequence number of at least `limit` and sorts
	 * after all timers that were due before: it runs in the next turn. */
	while (l->n_timers > 0 && l->heap[0].at_ms <= now && l->heap[0].seq < limit) {
		struct timer *t = l->heap[0].timer;

		if (!clock_is_fake()) {
			uint64_t us = clock_boot_us(), at_us = t->at_ms * 1000;

			metric_observe(&lag_seconds, NULL, NULL,
				us > at_us ? (double)(us - at_us) / 1e6 : 0);
		}
		remove_at(l, 0);
		t->fn(t->arg);
		n++;
	}
	return n;
}
