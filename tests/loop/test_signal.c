/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "tec/base/clock.h"
#include "tec/loop/signal.h"

static void setup(void)
{
	alarm(60); /* ends a test that hangs; Criterion's .timeout leaks in its runner */
}

TestSuite(loop_signal, .init = setup);

static int last;
static unsigned n_seen;

static void on_signal(int signo, void *arg)
{
	last = signo;
	n_seen++;
	loop_stop(arg);
}

Test(loop_signal, signals_arrive_as_calls_from_the_loop)
{
	struct loop *l = loop_new();
	struct loop_signal *hup = loop_signal_new(l, SIGHUP, on_signal, l), *term;

	term = loop_signal_new(l, SIGTERM, on_signal, l);
	raise(SIGHUP);
	cr_assert_eq(n_seen, 0);
	loop_run(l);
	cr_assert_eq(last, SIGHUP);
	raise(SIGTERM);
	loop_run(l);
	cr_assert_eq(last, SIGTERM);
	cr_assert_eq(n_seen, 2);
	loop_signal_free(hup);
	loop_signal_free(term);
	loop_signal_free(NULL);
	loop_free(l);
}

static struct loop_signal *own;

static void on_once(int signo, void *arg)
{
	loop_signal_free(own);
	n_seen++;
}

Test(loop_signal, the_function_may_free_its_signal)
{
	struct loop *l = loop_new();

	clock_fake_start(0, 0);
	own = loop_signal_new(l, SIGHUP, on_once, NULL);
	raise(SIGHUP);
	loop_drain(l);
	cr_assert_eq(n_seen, 1);
	loop_free(l);
}

Test(loop_signal, freed_signals_have_their_default_again, .signal = SIGHUP)
{
	struct loop *l;

	signal(SIGHUP, SIG_DFL); /* under nohup it is ignored, and that would come back */
	l = loop_new();
	loop_signal_free(loop_signal_new(l, SIGHUP, on_signal, l));
	loop_free(l);
	raise(SIGHUP);
}

Test(loop_signal, ignored_sigpipe_is_an_error_of_write)
{
	int p[2];

	loop_ignore_sigpipe();
	cr_assert_eq(pipe2(p, O_CLOEXEC), 0);
	close(p[0]);
	cr_assert_eq(write(p[1], "x", 1), -1);
	cr_assert_eq(errno, EPIPE);
	close(p[1]);
}

Test(loop_signal, freeing_the_loop_first_aborts, .signal = SIGABRT)
{
	struct loop *l = loop_new();

	loop_signal_new(l, SIGHUP, on_signal, l);
	loop_free(l);
}
