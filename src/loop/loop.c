/* SPDX-License-Identifier: MIT */
/*
 * A turn runs the calls deferred in the previous turn, then due timers, then libevent once. While more
 * deferred calls are pending, libevent runs only in every fourth turn, as each run costs a system
 * call. libevent waits for our earliest deadline with one timer of its own; with a fake clock it waits
 * for descriptors only. What a callback defers, or sets for "now", runs in the next turn, so that no
 * callback can starve the others. The loop cannot be entered from its own callbacks.
 *
 * Timers are in a binary heap ordered by (deadline, order of setting). A heap entry holds the key, and
 * the timer its index in the heap, so setting and cancelling are O(log n). A timer leaves the heap
 * before its function runs. libevent's handler of signals only writes to a descriptor of libevent, and
 * the function given here runs later, from the loop. So it may do anything, not just async-signal-safe
 * calls.
 */
#include "config.h"

#include "tec/loop/loop.h"

#include <event2/event.h>
#include <event2/util.h>
#include <signal.h>
#include <time.h>

#include "loop_internal.h"
#include "tec/base/clock.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/metric.h"
#include "tec/loop/signal.h"
#include "tec/loop/timer.h"

#define IDLE_TURNS_MAX 1000000 /* loop_drain() aborts after so many busy turns */
#define WAIT_MAX_MS    3600000
#define POLL_TURNS     4 /* descriptors are polled at least once in so many turns */

static struct metric turn_seconds = METRIC_SECONDS_INIT("tec_loop_turn_seconds",
	"Busy time of one event loop turn: its CPU time, or the duration of its deferred calls.",
	NULL, NULL);

static struct metric lag_seconds = METRIC_SECONDS_INIT(
	"tec_loop_lag_seconds", "Delay between a timer's deadline and its run.", NULL, NULL);

struct loop_fd {
	struct loop *loop;
	struct event *ev; /* owned; NULL: neither reading nor writing is wanted */
	loop_fd_fn fn;
	void *arg;
};

/* ---- timers */

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
void timer_set(struct timer *t, uint64_t after_ms)
{
	struct loop *l = t->loop;

	if (!l)
		DIE("setting a timer that was not initialised");
	timer_cancel(t);
	ARRAY_GROW(l->heap, l->n_timers);
	t->at_ms = deadline(after_ms);
	sift_up(l, l->n_timers++, (struct timer_entry){t->at_ms, l->timer_seq++, t});
}

/* For a timer that several reasons may set, such as a queue's key with a retry and a resync. */
void timer_set_earlier(struct timer *t, uint64_t after_ms)
{
	if (!timer_is_set(t) || deadline(after_ms) < t->at_ms)
		timer_set(t, after_ms);
}

void timer_cancel(struct timer *t)
{
	if (t->slot)
		remove_at(t->loop, t->slot - 1);
}

/* The loop waits for this deadline; with a fake clock loop_advance() jumps to it. */
static uint64_t timer_next_ms(const struct loop *l)
{
	return l->n_timers > 0 ? l->heap[0].at_ms : UINT64_MAX;
}

static unsigned timer_run_due(struct loop *l)
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

/* ---- the loop */

/* Route libevent's own messages through the logger, so that stderr holds only log lines. */
static void on_libevent_log(int severity, const char *msg)
{
	enum log_level level = severity == EVENT_LOG_ERR    ? LOG_ERROR
			       : severity == EVENT_LOG_WARN ? LOG_WARN
							    : LOG_DEBUG;

	log_at(level, NULL, "libevent", "lib=libevent text=%s", log_esc(msg));
}

/* libevent expects this not to return: abort, as for every impossible state. */
static void on_libevent_fatal(int code)
{
	DIE("libevent failed (%d)", code);
}

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
	/* Nothing to do: the event only ends libevent's wait. */
}

/* CPU time of the calling thread in microseconds. It excludes waiting, unlike the boot clock. */
static uint64_t cpu_us(void)
{
	struct timespec ts = {0};

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* NOLOCK: the base is used by one thread only, so libevent need not lock. */
struct loop *loop_new(void)
{
	struct loop *l = xcalloc(1, sizeof(*l));
	struct event_config *cfg;

	event_set_log_callback(on_libevent_log);
	event_set_fatal_callback(on_libevent_fatal);
	cfg = event_config_new();
	if (!cfg)
		DIE("out of memory (event_config)");
	event_config_set_flag(cfg, EVENT_BASE_FLAG_NOLOCK);
	l->base = event_base_new_with_config(cfg);
	event_config_free(cfg);
	if (!l->base)
		DIE("cannot create the event base");
	l->wake = evtimer_new(l->base, on_wake, NULL);
	if (!l->wake)
		DIE("out of memory (event)");
	l->pending_tail = &l->pending;
	l->cpu_us = cpu_us();
	return l;
}

/* Abort if anything still refers to the loop: the owner's _free should have cancelled it, and a
 * late callback would use freed memory. */
void loop_free(struct loop *l)
{
	if (!l)
		return;
	if (!LIST_EMPTY(&l->dying))
		l->reap(l); /* blocks, but not for long: they were killed */
	if (l->in_turn || l->n_timers || l->pending || l->running || l->n_fds || l->n_signals ||
		l->n_children)
		DIE("freeing a loop with %zu timers, %d deferred calls, %zu descriptors, %zu "
		    "signals, %zu children",
			l->n_timers, l->pending || l->running, l->n_fds, l->n_signals,
			l->n_children);
	event_free(l->wake);
	event_base_free(l->base);
	free(l->heap);
	free(l);
}

struct event_base *loop_base(struct loop *l)
{
	return l->base;
}

/* May be called at any time, also before loop_run() and from callbacks; the current turn is
 * completed. */
void loop_stop(struct loop *l)
{
	l->stop = true;
}

/* Run the calls that were pending when the turn began. They move to a list of their own, so that
 * what they defer waits for the next turn; defer_cancel() works on either list. */
static unsigned run_deferred(struct loop *l)
{
	unsigned n = 0;

	l->running = l->pending;
	if (l->running)
		l->running->prevp = &l->running;
	l->pending = NULL;
	l->pending_tail = &l->pending;
	while (l->running) {
		struct defer *d = l->running;
		loop_fn fn = d->fn;
		void *arg = d->arg;

		defer_cancel(d); /* before the call: it may free d */
		fn(arg);
		n++;
	}
	return n;
}

/* Return how long libevent may wait, in ms: not at all while deferred calls or due timers are
 * pending. */
static uint64_t wait_ms(const struct loop *l, uint32_t max_wait_ms)
{
	uint64_t now, next;

	if (l->pending || l->stop || max_wait_ms == 0)
		return 0;
	if (clock_is_fake()) {
		/* Waiting does not advance the fake clock; without a descriptor nothing can happen. */
		if (timer_next_ms(l) <= clock_boot_ms())
			return 0;
		return event_base_get_num_events(l->base, EVENT_BASE_COUNT_ADDED) > 0 ? max_wait_ms
										      : 0;
	}
	next = timer_next_ms(l);
	now = clock_boot_ms();
	if (next <= now)
		return 0;
	return next - now < max_wait_ms ? next - now : max_wait_ms;
}

/* Run libevent once: poll descriptors and signals, and run their callbacks. */
static void run_events(struct loop *l, uint32_t max_wait_ms)
{
	uint64_t wait = wait_ms(l, max_wait_ms);
	int flags =
		EVLOOP_ONCE | EVLOOP_NONBLOCK; /* without ONCE it repeats until nothing is active */

	if (wait > 0) {
		struct timeval tv;

		if (wait > WAIT_MAX_MS)
			wait = WAIT_MAX_MS;
		tv.tv_sec = (time_t)(wait / 1000);
		tv.tv_usec = (suseconds_t)(wait % 1000 * 1000);
		event_add(l->wake, &tv);
		flags = EVLOOP_ONCE;
	}
	if (event_base_loop(l->base, flags) < 0)
		DIE("the event loop failed");
	event_del(l->wake);
	/* The maximum that was active at a time: not 0 if any callback ran. */
	l->n_ran += (unsigned)event_base_get_max_events(l->base, EVENT_BASE_COUNT_ACTIVE, 1);
}

/* Deferred calls run first, so that the work of the previous turn ends before new input is read. */
void loop_turn(struct loop *l, uint32_t max_wait_ms)
{
	uint64_t start = clock_boot_us(), cpu, took;

	if (l->in_turn)
		DIE("the loop was entered from one of its callbacks");
	l->in_turn = true;
	l->n_ran = run_deferred(l);
	l->n_ran += timer_run_due(l);
	l->deferred_us += clock_boot_us() - start;
	if (!l->pending || ++l->n_unpolled >= POLL_TURNS) {
		run_events(l, max_wait_ms);
		l->n_unpolled = 0;
	}
	l->in_turn = false;
	if (l->n_unpolled > 0 || clock_is_fake())
		return;
	/* The busy time since the last poll. The CPU clock is a system call, so it is read once per
	 * poll. If deferred calls blocked, their wall time exceeds the CPU time and is recorded
	 * instead. */
	cpu = cpu_us();
	took = cpu - l->cpu_us > l->deferred_us ? cpu - l->cpu_us : l->deferred_us;
	l->cpu_us = cpu;
	l->deferred_us = 0;
	metric_observe(&turn_seconds, NULL, NULL, (double)took / 1e6);
}

void loop_run(struct loop *l)
{
	while (!l->stop)
		loop_turn(l, WAIT_MAX_MS);
	l->stop = false; /* reset only here, so that a stop before loop_run() is honoured */
}

/* For tests. A chain of callbacks that never ends is a bug, so it aborts instead of looping
 * forever. */
void loop_drain(struct loop *l)
{
	for (unsigned i = 0; i < IDLE_TURNS_MAX; i++) {
		loop_turn(l, 0);
		if (l->n_ran == 0 && !l->pending && timer_next_ms(l) > clock_boot_ms())
			return;
	}
	DIE("the loop does not become idle");
}

/* Drain at every deadline, so that timers fire in order and see the fake time they were set for. */
void loop_advance(struct loop *l, uint64_t ms)
{
	uint64_t target;

	if (!clock_is_fake())
		DIE("advancing a loop on the real clock");
	target = clock_boot_ms() + ms;
	for (;;) {
		uint64_t now, next;

		loop_drain(l);
		now = clock_boot_ms();
		if (now >= target)
			return;
		next = timer_next_ms(l);
		clock_fake_advance((next < target ? next : target) - now);
	}
}

/* ---- deferred calls, descriptors, signals */

/* Append in order: calls deferred in one turn run in the order in which they were deferred. */
void defer_call(struct defer *d, struct loop *l, loop_fn fn, void *arg)
{
	if (d->loop)
		return;
	d->loop = l;
	d->fn = fn;
	d->arg = arg;
	d->next = NULL;
	d->prevp = l->pending_tail;
	*l->pending_tail = d;
	l->pending_tail = &d->next;
}

/* Unlink from whichever list holds it. The tail is corrected only for the pending list, as the
 * running list is never appended to. */
void defer_cancel(struct defer *d)
{
	if (!d->loop)
		return;
	if (d->next)
		d->next->prevp = d->prevp;
	if (d->loop->pending_tail == &d->next)
		d->loop->pending_tail = d->prevp;
	*d->prevp = d->next;
	d->next = NULL;
	d->prevp = NULL;
	d->loop = NULL;
}

/* Translate libevent's flags for the owner's function, which may free f. */
static void on_fd(evutil_socket_t fd, short what, void *arg)
{
	struct loop_fd *f = arg;

	f->fn(fd, (what & EV_READ) != 0, (what & EV_WRITE) != 0, f->arg);
}

/* A descriptor without a wanted event (curl's CURL_POLL_NONE) is only counted, not watched. */
struct loop_fd *loop_fd_new(
	struct loop *l, int fd, bool want_read, bool want_write, loop_fd_fn fn, void *arg)
{
	struct loop_fd *f = xcalloc(1, sizeof(*f));
	short what = (short)((want_read ? EV_READ : 0) | (want_write ? EV_WRITE : 0));

	f->loop = l;
	f->fn = fn;
	f->arg = arg;
	l->n_fds++;
	if (what == 0)
		return f;
	f->ev = event_new(l->base, fd, (short)(what | EV_PERSIST), on_fd, f);
	if (!f->ev || event_add(f->ev, NULL) < 0)
		DIE("cannot watch descriptor %d", fd);
	return f;
}

void loop_fd_free(struct loop_fd *f)
{
	if (!f)
		return;
	if (f->ev)
		event_free(f->ev);
	f->loop->n_fds--;
	free(f);
}

struct loop_signal {
	struct loop *loop;
	struct event *ev; /* owned */
	loop_signal_fn fn;
	void *arg;
};

static void on_signal(evutil_socket_t signo, short what, void *arg)
{
	struct loop_signal *s = arg;

	s->fn((int)signo, s->arg);
}

/* libevent keeps one handler per signal and base, so a signal should have one owner. */
struct loop_signal *loop_signal_new(struct loop *l, int signo, loop_signal_fn fn, void *arg)
{
	struct loop_signal *s = xcalloc(1, sizeof(*s));

	s->loop = l;
	s->fn = fn;
	s->arg = arg;
	s->ev = evsignal_new(l->base, signo, on_signal, s);
	if (!s->ev || event_add(s->ev, NULL) < 0)
		DIE("cannot handle signal %d", signo);
	l->n_signals++;
	return s;
}

void loop_signal_free(struct loop_signal *s)
{
	if (!s)
		return;
	event_free(s->ev);
	s->loop->n_signals--;
	free(s);
}

/* OpenSSL writes without MSG_NOSIGNAL, so a peer that closed early would otherwise kill the
 * process. */
void loop_ignore_sigpipe(void)
{
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		DIE("cannot ignore SIGPIPE");
}
