/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "tec/base/clock.h"
#include "tec/base/mem.h"
#include "tec/base/metric.h"
#include "tec/base/str.h"
#include "tec/loop/loop.h"
#include "tec/loop/timer.h"

static struct loop *loop;
static struct strbuf trace; /* one letter per call */

static void setup(void)
{
	alarm(60); /* ends a test that hangs; Criterion's .timeout leaks in its runner */
	clock_fake_start(1000, 0);
	loop = loop_new();
}

static void teardown(void)
{
	loop_free(loop);
	strbuf_fini(&trace);
	metric_reset_all();
	clock_fake_stop();
}

TestSuite(loop_loop, .init = setup, .fini = teardown);

struct note {
	struct defer defer, *other;
	char letter;
	unsigned again;
	bool cancel_other;
};

static void on_note(void *arg)
{
	struct note *n = arg;

	strbuf_addc(&trace, n->letter);
	if (n->again > 0) {
		n->again--;
		defer_call(&n->defer, loop, on_note, n);
	}
	if (n->other && n->cancel_other)
		defer_cancel(n->other);
	else if (n->other)
		defer_call(n->other, loop, on_note, container_of(n->other, struct note, defer));
}

Test(loop_loop, deferred_calls_run_once_in_order)
{
	struct note a = {.letter = 'a'}, b = {.letter = 'b'}, c = {.letter = 'c'};

	defer_call(&a.defer, loop, on_note, &a);
	defer_call(&b.defer, loop, on_note, &b);
	defer_call(&c.defer, loop, on_note, &c);
	defer_call(&a.defer, loop, on_note, &b); /* pending: changes nothing */
	cr_assert_eq(trace.len, 0);
	loop_turn(loop, 0);
	cr_assert_str_eq(strbuf_str(&trace), "abc");
	loop_turn(loop, 0);
	cr_assert_str_eq(strbuf_str(&trace), "abc");
}

Test(loop_loop, what_is_deferred_in_a_turn_runs_in_the_next)
{
	struct note a = {.letter = 'a', .again = 2}, b = {.letter = 'b'};

	defer_call(&a.defer, loop, on_note, &a);
	defer_call(&b.defer, loop, on_note, &b);
	loop_turn(loop, 0);
	cr_assert_str_eq(strbuf_str(&trace), "ab");
	loop_turn(loop, 0);
	cr_assert_str_eq(strbuf_str(&trace), "aba");
	loop_drain(loop);
	cr_assert_str_eq(strbuf_str(&trace), "abaa");
}

Test(loop_loop, a_cancelled_call_never_runs)
{
	struct note a = {.letter = 'a'}, b = {.letter = 'b'}, c = {.letter = 'c'};

	defer_call(&a.defer, loop, on_note, &a);
	defer_call(&b.defer, loop, on_note, &b);
	defer_call(&c.defer, loop, on_note, &c);
	defer_cancel(&c.defer); /* the last: the list's end moves back */
	defer_cancel(&c.defer);
	defer_cancel(&a.defer);
	defer_call(&c.defer, loop, on_note, &c);
	loop_drain(loop);
	cr_assert_str_eq(strbuf_str(&trace), "bc");
}

Test(loop_loop, a_call_may_cancel_its_siblings_of_the_same_turn)
{
	struct note a = {.letter = 'a', .cancel_other = true}, b = {.letter = 'b'},
		    c = {.letter = 'c'};

	a.other = &b.defer;
	defer_call(&a.defer, loop, on_note, &a);
	defer_call(&b.defer, loop, on_note, &b);
	defer_call(&c.defer, loop, on_note, &c);
	loop_drain(loop);
	cr_assert_str_eq(strbuf_str(&trace), "ac");
	defer_call(&b.defer, loop, on_note, &b); /* the lists are whole */
	loop_drain(loop);
	cr_assert_str_eq(strbuf_str(&trace), "acb");
}

static void free_it(void *arg)
{
	free(arg);
	strbuf_addc(&trace, 'f');
}

Test(loop_loop, a_call_may_free_its_owner)
{
	struct defer *d = xcalloc(1, sizeof(*d));

	defer_call(d, loop, free_it, d);
	loop_drain(loop);
	cr_assert_str_eq(strbuf_str(&trace), "f");
}

static void on_fd(int fd, bool readable, bool writable, void *arg)
{
	char c;

	if (readable && read(fd, &c, 1) == 1)
		strbuf_addc(&trace, c);
	if (writable)
		strbuf_addc(&trace, 'W');
}

Test(loop_loop, descriptors_are_level_triggered)
{
	int p[2];
	struct loop_fd *r;

	cr_assert_eq(pipe2(p, O_CLOEXEC | O_NONBLOCK), 0);
	r = loop_fd_new(loop, p[0], true, false, on_fd, NULL);
	loop_drain(loop);
	cr_assert_eq(trace.len, 0);
	cr_assert_eq(write(p[1], "xyz", 3), 3);
	loop_turn(loop, 0);
	cr_assert_str_eq(strbuf_str(&trace), "x");
	loop_drain(loop);
	cr_assert_str_eq(strbuf_str(&trace), "xyz");
	loop_fd_free(r);
	cr_assert_eq(write(p[1], "q", 1), 1);
	loop_drain(loop);
	cr_assert_str_eq(strbuf_str(&trace), "xyz");
	close(p[0]);
	close(p[1]);
}

Test(loop_loop, writable_and_no_interest)
{
	int p[2];
	struct loop_fd *w, *none;

	cr_assert_eq(pipe2(p, O_CLOEXEC | O_NONBLOCK), 0);
	none = loop_fd_new(loop, p[0], false, false, on_fd, NULL);
	w = loop_fd_new(loop, p[1], false, true, on_fd, NULL);
	loop_turn(loop, 0);
	cr_assert_str_eq(strbuf_str(&trace), "W");
	loop_fd_free(w);
	loop_fd_free(none);
	loop_fd_free(NULL);
	loop_drain(loop);
	close(p[0]);
	close(p[1]);
}

struct self_free {
	struct loop_fd *watch;
	int fd;
};

static void on_last(int fd, bool readable, bool writable, void *arg)
{
	struct self_free *s = arg;

	loop_fd_free(s->watch);
	close(s->fd);
	free(s);
	strbuf_addc(&trace, 'f');
}

Test(loop_loop, a_descriptor_call_may_free_its_owner)
{
	struct self_free *s = xcalloc(1, sizeof(*s));
	int p[2];

	cr_assert_eq(pipe2(p, O_CLOEXEC | O_NONBLOCK), 0);
	s->fd = p[0];
	s->watch = loop_fd_new(loop, p[0], true, false, on_last, s);
	close(p[1]);
	loop_drain(loop);
	cr_assert_str_eq(strbuf_str(&trace), "f");
}

static void on_stop(void *arg)
{
	strbuf_addc(&trace, 's');
	loop_stop(loop);
}

Test(loop_loop, run_ends_after_stop)
{
	struct defer d = {0};

	defer_call(&d, loop, on_stop, NULL);
	loop_run(loop);
	cr_assert_str_eq(strbuf_str(&trace), "s");
	loop_stop(loop); /* before the start it counts too */
	loop_run(loop);
	defer_call(&d, loop, on_stop, NULL);
	loop_run(loop);
	cr_assert_str_eq(strbuf_str(&trace), "ss");
}

static void on_tick(void *arg)
{
	struct timer *t = arg;

	strbuf_addf(&trace, "%llu,", (unsigned long long)clock_boot_ms());
	timer_set(t, 10000);
}

Test(loop_loop, advance_stops_at_every_deadline)
{
	struct timer t;

	timer_init(&t, loop, on_tick, &t);
	timer_set(&t, 10000);
	loop_advance(loop, 35000);
	cr_assert_str_eq(strbuf_str(&trace), "11000,21000,31000,");
	cr_assert_eq(clock_boot_ms(), 36000);
	cr_assert_eq(clock_wall_s(), 35);
	loop_advance(loop, 4999);
	cr_assert_str_eq(strbuf_str(&trace), "11000,21000,31000,");
	loop_advance(loop, 1);
	cr_assert_str_eq(strbuf_str(&trace), "11000,21000,31000,41000,");
	timer_fini(&t);
}

Test(loop_loop, a_year_of_seconds_takes_no_time)
{
	struct timer t;

	timer_init(&t, loop, on_tick, &t);
	timer_set(&t, 10000);
	loop_advance(loop, 86400000);
	cr_assert_eq(clock_boot_ms(), 86401000);
	timer_fini(&t);
}

Test(loop_loop, fake_time_never_waits)
{
	struct timer t;
	uint64_t before;

	timer_init(&t, loop, on_tick, &t);
	timer_set(&t, 3600000);
	clock_fake_stop();
	before = clock_boot_ms();
	clock_fake_start(1000, 0);
	loop_turn(loop, 3600000); /* nothing but a timer in an hour: no descriptor could wake us */
	clock_fake_stop();
	cr_assert_lt(clock_boot_ms() - before, 5000);
	timer_fini(&t);
}

static void on_due(void *arg)
{
	strbuf_addc(&trace, 't');
	loop_stop(loop);
}

Test(loop_loop, real_time_drives_timers_and_measures_them)
{
	struct timer t;
	cleanup_strbuf struct strbuf text = STRBUF_INIT;

	clock_fake_stop();
	timer_init(&t, loop, on_due, NULL);
	timer_set(&t, 2);
	loop_run(loop);
	cr_assert_str_eq(strbuf_str(&trace), "t");
	metric_render(&text);
	cr_assert_not_null(strstr(strbuf_str(&text), "tec_loop_lag_seconds_count 1\n"));
	cr_assert_not_null(strstr(strbuf_str(&text), "tec_loop_turn_seconds_count "));
	timer_fini(&t);
}

static void on_foreign(evutil_socket_t fd, short what, void *arg)
{
	unsigned *left = arg;

	strbuf_addc(&trace, 'e');
	if (--*left > 0)
		event_base_once(
			loop_base(loop), -1, EV_TIMEOUT, on_foreign, left, &(struct timeval){0, 0});
}

Test(loop_loop, drain_also_sees_events_that_are_not_ours)
{
	unsigned left = 5;

	event_base_once(
		loop_base(loop), -1, EV_TIMEOUT, on_foreign, &left, &(struct timeval){0, 0});
	loop_drain(loop);
	cr_assert_str_eq(strbuf_str(&trace), "eeeee");
}

static void on_byte(int fd, bool readable, bool writable, void *arg)
{
	strbuf_addc(&trace, 'R');
	loop_fd_free(*(struct loop_fd **)arg);
}

Test(loop_loop, deferred_calls_without_end_do_not_starve_descriptors)
{
	struct note a = {.letter = 'a', .again = 12};
	struct loop_fd *f;
	int fds[2];

	cr_assert_eq(pipe(fds), 0);
	cr_assert_eq(write(fds[1], "x", 1), 1);
	f = loop_fd_new(loop, fds[0], true, false, on_byte, &f);
	defer_call(&a.defer, loop, on_note, &a);
	loop_drain(loop);
	cr_assert_str_eq(strbuf_str(&trace), "aaaaRaaaaaaaaa");
	close(fds[0]);
	close(fds[1]);
}

static void on_reenter(void *arg)
{
	loop_turn(loop, 0);
}

Test(loop_loop, entering_from_a_callback_aborts, .signal = SIGABRT)
{
	struct defer d = {0};

	defer_call(&d, loop, on_reenter, NULL);
	loop_turn(loop, 0);
}

Test(loop_loop, freeing_with_a_deferred_call_aborts, .signal = SIGABRT)
{
	static struct defer d;

	defer_call(&d, loop, on_stop, NULL);
	loop_free(loop);
}

Test(loop_loop, freeing_with_a_timer_aborts, .signal = SIGABRT)
{
	static struct timer t;

	timer_init(&t, loop, on_tick, &t);
	timer_set(&t, 1);
	loop_free(loop);
}

Test(loop_loop, freeing_with_a_descriptor_aborts, .signal = SIGABRT)
{
	loop_fd_new(loop, 0, false, false, on_fd, NULL);
	loop_free(loop);
}

Test(loop_loop, advancing_real_time_aborts, .signal = SIGABRT)
{
	clock_fake_stop();
	loop_advance(loop, 1);
}
