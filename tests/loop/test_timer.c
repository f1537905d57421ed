/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <unistd.h>

#include "tec/base/clock.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/loop/timer.h"

static struct loop *loop;
static struct strbuf trace;

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
	clock_fake_stop();
}

TestSuite(loop_timer, .init = setup, .fini = teardown);

struct alarm_clock {
	struct timer timer;
	struct timer *cancel; /* by the call */
	char letter;
	unsigned again;
	uint64_t after_ms, fired_at;
};

static void on_alarm(void *arg)
{
	struct alarm_clock *a = arg;

	cr_assert(!timer_is_set(&a->timer));
	strbuf_addc(&trace, a->letter);
	a->fired_at = clock_boot_ms();
	if (a->cancel)
		timer_cancel(a->cancel);
	if (a->again > 0) {
		a->again--;
		timer_set(&a->timer, a->after_ms);
	}
}

static void alarm_init(struct alarm_clock *a, char letter)
{
	*a = (struct alarm_clock){.letter = letter};
	timer_init(&a->timer, loop, on_alarm, a);
}

Test(loop_timer, fires_once_at_its_deadline)
{
	struct alarm_clock a;

	alarm_init(&a, 'a');
	cr_assert(!timer_is_set(&a.timer));
	timer_set(&a.timer, 50);
	cr_assert(timer_is_set(&a.timer));
	loop_advance(loop, 49);
	cr_assert_eq(trace.len, 0);
	loop_advance(loop, 1000);
	cr_assert_str_eq(strbuf_str(&trace), "a");
	cr_assert_eq(a.fired_at, 1050);
	cr_assert(!timer_is_set(&a.timer));
	timer_fini(&a.timer);
}

Test(loop_timer, order_is_by_deadline_then_by_setting)
{
	struct alarm_clock a, b, c, d;

	alarm_init(&a, 'a');
	alarm_init(&b, 'b');
	alarm_init(&c, 'c');
	alarm_init(&d, 'd');
	timer_set(&a.timer, 20);
	timer_set(&b.timer, 10);
	timer_set(&c.timer, 20);
	timer_set(&d.timer, 10);
	loop_advance(loop, 20);
	cr_assert_str_eq(strbuf_str(&trace), "bdac");
}

Test(loop_timer, setting_replaces_and_earlier_keeps)
{
	struct alarm_clock a;

	alarm_init(&a, 'a');
	timer_set(&a.timer, 10);
	timer_set(&a.timer, 100);
	loop_advance(loop, 99);
	cr_assert_eq(trace.len, 0);
	timer_set_earlier(&a.timer, 50); /* later than what is set */
	loop_advance(loop, 1);
	cr_assert_str_eq(strbuf_str(&trace), "a");
	timer_set_earlier(&a.timer, 100); /* nothing set: sets */
	timer_set_earlier(&a.timer, 5);
	loop_advance(loop, 5);
	cr_assert_str_eq(strbuf_str(&trace), "aa");
	loop_advance(loop, 1000);
	cr_assert_str_eq(strbuf_str(&trace), "aa");
}

Test(loop_timer, cancelled_never_fires)
{
	struct alarm_clock a;

	alarm_init(&a, 'a');
	timer_cancel(&a.timer);
	timer_set(&a.timer, 10);
	timer_cancel(&a.timer);
	timer_cancel(&a.timer);
	loop_advance(loop, 100);
	cr_assert_eq(trace.len, 0);
	timer_set(&a.timer, 10);
	timer_fini(&a.timer);
	timer_fini(&a.timer);
	loop_advance(loop, 100);
	cr_assert_eq(trace.len, 0);
}

Test(loop_timer, a_due_sibling_can_still_be_cancelled)
{
	struct alarm_clock a, b;

	alarm_init(&a, 'a');
	alarm_init(&b, 'b');
	a.cancel = &b.timer;
	timer_set(&a.timer, 10);
	timer_set(&b.timer, 10);
	loop_advance(loop, 10);
	cr_assert_str_eq(strbuf_str(&trace), "a");
}

Test(loop_timer, set_for_now_fires_in_the_next_turn)
{
	struct alarm_clock a, b;

	alarm_init(&a, 'a');
	alarm_init(&b, 'b');
	a.again = 2;
	timer_set(&a.timer, 0);
	timer_set(&b.timer, 0);
	loop_turn(loop, 0);
	cr_assert_str_eq(strbuf_str(&trace), "ab");
	loop_turn(loop, 0);
	cr_assert_str_eq(strbuf_str(&trace), "aba");
	loop_drain(loop);
	cr_assert_str_eq(strbuf_str(&trace), "abaa");
}

Test(loop_timer, a_very_late_deadline_does_not_wrap)
{
	struct alarm_clock a;

	alarm_init(&a, 'a');
	timer_set(&a.timer, UINT64_MAX);
	loop_advance(loop, 1000000000);
	cr_assert_eq(trace.len, 0);
	timer_fini(&a.timer);
}

struct owner {
	struct timer timer, other;
};

static void on_free_owner(void *arg)
{
	struct owner *o = arg;

	timer_fini(&o->timer);
	timer_fini(&o->other);
	free(o);
	strbuf_addc(&trace, 'f');
}

Test(loop_timer, the_function_may_free_its_owner)
{
	struct owner *o = xcalloc(1, sizeof(*o));

	timer_init(&o->timer, loop, on_free_owner, o);
	timer_init(&o->other, loop, on_free_owner, o);
	timer_set(&o->timer, 10);
	timer_set(&o->other, 10);
	loop_advance(loop, 100);
	cr_assert_str_eq(strbuf_str(&trace), "f");
}

/* The heap against a model: after random sets and cancels everything fires, in order, at its time.
 */
Test(loop_timer, many_timers_keep_their_order)
{
	enum { N = 2000 };
	static struct alarm_clock a[N];
	uint64_t want[N], seed = 12345;

	for (unsigned i = 0; i < N; i++)
		alarm_init(&a[i], 'x');
	for (unsigned round = 0; round < 3 * N; round++) {
		unsigned i, after;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		i = (unsigned)(seed >> 33) % N;
		after = (unsigned)(seed >> 20) % 5000;
		if (round % 5 == 4)
			timer_cancel(&a[i].timer);
		else
			timer_set(&a[i].timer, after);
	}
	for (unsigned i = 0; i < N; i++)
		want[i] = timer_is_set(&a[i].timer) ? a[i].timer.at_ms : 0;
	loop_advance(loop, 5000);
	for (unsigned i = 0; i < N; i++) {
		cr_assert(!timer_is_set(&a[i].timer));
		cr_assert_eq(a[i].fired_at, want[i]);
	}
}

Test(loop_timer, setting_without_init_aborts, .signal = SIGABRT)
{
	struct timer t = {0};

	timer_set(&t, 1);
}
