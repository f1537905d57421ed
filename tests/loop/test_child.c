/* SPDX-License-Identifier: MIT */
/* Children are real; the deadline is fake time. Each test waits on the loop for the exit, never for
 * a time. */
#include "config.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tec/base/clock.h"
#include "tec/base/mem.h"
#include "tec/base/metric.h"
#include "tec/base/str.h"
#include "tec/loop/child.h"

static struct loop *loop;
static struct op_scope ops;
static struct op *handle;
static unsigned n_done;
static struct err got_err;
static struct strbuf got;

static void setup(void)
{
	alarm(60); /* ends a test that hangs; Criterion's .timeout leaks in its runner */
	clock_fake_start(1000, 0);
	loop = loop_new();
}

static void teardown(void)
{
	op_scope_cancel(&ops);
	loop_free(loop);
	strbuf_fini(&got);
	clock_fake_stop();
	cr_assert(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "a child was not reaped");
}

TestSuite(loop_child, .init = setup, .fini = teardown);

static void on_done(void *arg, const struct err *err, const char *out, size_t out_len)
{
	cr_assert_null(handle);
	n_done++;
	got_err = *err;
	strbuf_reset(&got);
	strbuf_add(&got, out, out_len);
	cr_assert_eq(out[out_len], '\0');
}

static void start(const struct child_spec *spec)
{
	op_hold(&handle, child_start(loop, &ops, spec, on_done, NULL));
	cr_assert_eq(n_done, 0);
}

static void finish(void)
{
	while (n_done == 0)
		loop_turn(loop, 10000);
	cr_assert_eq(n_done, 1);
}

static void run(const char *script, size_t max_out)
{
	const char *const argv[] = {"sh", "-c", script, NULL};

	start(&(struct child_spec){.argv = argv, .max_out = max_out});
	finish();
}

Test(loop_child, output_arrives_whole)
{
	run("printf 'a\\0b'; printf c", 100);
	cr_assert(!err_is_set(&got_err), "%s", got_err.text);
	cr_assert_eq(got.len, 4);
	cr_assert_eq(memcmp(got.data, "a\0bc", 4), 0);
}

Test(loop_child, no_output_is_empty)
{
	run("exit 0", 0);
	cr_assert(!err_is_set(&got_err));
	cr_assert_eq(got.len, 0);
}

Test(loop_child, much_output_and_an_exact_limit)
{
	run("head -c 300000 /dev/zero", 300000);
	cr_assert(!err_is_set(&got_err), "%s", got_err.text);
	cr_assert_eq(got.len, 300000);
}

Test(loop_child, too_much_output_kills_the_child)
{
	run("cat /dev/zero", 100000);
	cr_assert_eq(got_err.kind, ERR_INVALID);
	cr_assert_eq(got.len, 0);
}

Test(loop_child, one_byte_too_many_is_too_much)
{
	run("printf 12345", 4);
	cr_assert_eq(got_err.kind, ERR_INVALID);
}

Test(loop_child, input_is_written_and_ends)
{
	cleanup_free char *input = xmalloc(200000);
	const char *const argv[] = {"cat", NULL};

	for (size_t i = 0; i < 200000; i++)
		input[i] = (char)(i * 7);
	start(&(struct child_spec){
		.argv = argv, .input = input, .input_len = 200000, .max_out = 200000});
	finish();
	cr_assert(!err_is_set(&got_err), "%s", got_err.text);
	cr_assert_eq(got.len, 200000);
	cr_assert_eq(memcmp(got.data, input, 200000), 0);
}

Test(loop_child, a_child_need_not_read_its_input)
{
	cleanup_free char *input = xcalloc(1, 1000000);
	const char *const argv[] = {"true", NULL};

	signal(SIGPIPE, SIG_IGN);
	start(&(struct child_spec){
		.argv = argv, .input = input, .input_len = 1000000, .max_out = 10});
	finish();
	cr_assert(!err_is_set(&got_err), "%s", got_err.text);
}

Test(loop_child, without_input_stdin_is_empty)
{
	run("cat; echo end", 100);
	cr_assert_str_eq(strbuf_str(&got), "end\n");
}

Test(loop_child, failure_carries_status_and_stderr)
{
	run("echo secret-output; printf 'no\\tluck\\n\\n' >&2; exit 3", 100);
	cr_assert_eq(got_err.kind, ERR_TRANSIENT);
	cr_assert_str_eq(got_err.text, "sh failed with status 3: no luck");
	cr_assert_eq(got.len, 0);
}

Test(loop_child, only_the_end_of_stderr_is_kept)
{
	run("i=0; while [ $i -lt 20000 ]; do echo line $i >&2; i=$((i+1)); done; exit 1", 100);
	cr_assert_eq(got_err.kind, ERR_TRANSIENT);
	cr_assert_eq(strlen(got_err.text), ERR_TEXT_SIZE - 1);
}

Test(loop_child, stderr_of_a_success_is_dropped)
{
	run("echo warning >&2; echo out", 100);
	cr_assert(!err_is_set(&got_err));
	cr_assert_str_eq(strbuf_str(&got), "out\n");
}

Test(loop_child, a_signal_is_named)
{
	run("kill -9 $$", 100);
	cr_assert_eq(got_err.kind, ERR_TRANSIENT);
	cr_assert_str_eq(got_err.text, "sh was killed by signal 9");
}

Test(loop_child, missing_program_is_reported_through_done)
{
	const char *const argv[] = {"no-such-program-here", NULL};

	start(&(struct child_spec){.argv = argv, .max_out = 10});
	finish();
	cr_assert_eq(got_err.kind, ERR_NOT_FOUND);
	cr_assert_eq(got_err.sys, ENOENT);
}

Test(loop_child, a_file_that_is_no_program_is_denied)
{
	const char *const argv[] = {"/dev/null", NULL};

	start(&(struct child_spec){.argv = argv, .max_out = 10});
	finish();
	cr_assert_eq(got_err.kind, ERR_DENIED);
}

Test(loop_child, environment_is_ours_plus_theirs)
{
	const char *const argv[] = {"sh", "-c", "echo $A-$B-$C", NULL};
	const char *const env[] = {"B=new", "C=c", NULL};

	setenv("A", "a", 1);
	setenv("B", "old", 1);
	start(&(struct child_spec){.argv = argv, .env = env, .max_out = 100});
	finish();
	cr_assert_str_eq(strbuf_str(&got), "a-new-c\n");
}

Test(loop_child, spec_is_copied)
{
	char word[] = "before";
	char input[] = "input";
	const char *argv[] = {"sh", "-c", "cat; echo \" $0\"", word, NULL};

	start(&(struct child_spec){.argv = argv, .input = input, .input_len = 5, .max_out = 100});
	memset(word, 'x', 6);
	memset(input, 'x', 5);
	finish();
	cr_assert_str_eq(strbuf_str(&got), "input before\n");
}

Test(loop_child, the_child_has_three_descriptors_and_no_mask)
{
	sigset_t set;
	int leaked = open("/dev/null", O_RDONLY); /* not close-on-exec */
	const unsigned long libc_own = 3ul << 31;
	unsigned long blocked, ignored;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	/* Only shell built-ins look: a program would show its own descriptors. */
	run("for f in 0 1 2 3 4 5 6 7 8 9; do "
	    "if [ -e /proc/self/fd/$f ]; then printf '%s ' $f; fi; done; "
	    "grep -E '^Sig(Blk|Ign)' /proc/$$/status | tr -d '\\n'",
		1000);
	close(leaked);
	cr_assert(!err_is_set(&got_err), "%s", got_err.text);
	cr_assert_eq(sscanf(strbuf_str(&got), "0 1 2 SigBlk:\t%lxSigIgn:\t%lx", &blocked, &ignored),
		2, "%s", strbuf_str(&got));
	/* Signals 32 and 33 are the C library's own: what started us (make does) may leave them
	 * ignored, and nobody can change that. */
	cr_assert_eq(blocked & ~libc_own, 0);
	cr_assert_eq(ignored & ~libc_own, 0);
}

Test(loop_child, the_deadline_kills_the_whole_group)
{
	const char *const argv[] = {"sh", "-c", "sleep 1000 & sleep 1000", NULL};

	start(&(struct child_spec){.argv = argv, .max_out = 10, .deadline_ms = 5000});
	loop_advance(loop, 4999);
	cr_assert_eq(n_done, 0);
	loop_advance(loop, 1);
	cr_assert_eq(n_done, 1);
	cr_assert_eq(got_err.kind, ERR_TRANSIENT);
	cr_assert_str_eq(got_err.text, "sh did not finish in time");
}

Test(loop_child, a_cancelled_child_is_killed_and_silent)
{
	const char *const argv[] = {"sleep", "1000", NULL};

	start(&(struct child_spec){.argv = argv, .max_out = 10});
	op_cancel(&handle);
	cr_assert_null(handle);
	loop_turn(loop, 10000); /* reaps it */
	loop_drain(loop);
	cr_assert_eq(n_done, 0);
}

Test(loop_child, the_loop_reaps_what_was_cancelled_last)
{
	const char *const argv[] = {"sleep", "1000", NULL};

	start(&(struct child_spec){.argv = argv, .max_out = 10});
	child_start(loop, &ops, &(struct child_spec){.argv = argv, .max_out = 10}, on_done, NULL);
	op_scope_cancel(&ops);
	cr_assert_eq(n_done, 0);
}

Test(loop_child, a_grandchild_holding_the_pipe_is_not_waited_for)
{
	run("sleep 1000 & echo $!", 100);
	cr_assert(!err_is_set(&got_err), "%s", got_err.text);
	cr_assert_eq(kill(atoi(strbuf_str(&got)), SIGKILL), 0);
}

static void on_done_cancel(void *arg, const struct err *err, const char *out, size_t out_len)
{
	n_done++;
	op_scope_cancel(&ops); /* as the owner's _free does */
}

Test(loop_child, done_may_free_its_owner)
{
	const char *const quick[] = {"true", NULL}, *const slow[] = {"sleep", "1000", NULL};

	child_start(loop, &ops, &(struct child_spec){.argv = slow, .max_out = 10}, on_done_cancel,
		NULL);
	child_start(loop, &ops, &(struct child_spec){.argv = quick, .max_out = 10}, on_done_cancel,
		NULL);
	finish();
	loop_turn(loop, 10000);
	cr_assert_eq(n_done, 1);
}

Test(loop_child, several_run_at_once)
{
	const char *const argv[] = {"sh", "-c", "echo x", NULL};

	for (unsigned i = 0; i < 8; i++)
		child_start(loop, &ops, &(struct child_spec){.argv = argv, .max_out = 10}, on_done,
			NULL);
	while (n_done < 8)
		loop_turn(loop, 10000);
	cr_assert(op_scope_is_empty(&ops));
}

Test(loop_child, a_failed_fork_is_reported_from_the_loop)
{
	const char *const argv[] = {"true", NULL};
	int fds[1024], n = 0;

	while (n < 1024 && (fds[n] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		n++;
	if (n == 1024) { /* no descriptor limit to run into */
		while (n > 0)
			close(fds[--n]);
		cr_skip_test();
	}
	start(&(struct child_spec){.argv = argv, .max_out = 10});
	while (n > 0)
		close(fds[--n]);
	finish();
	cr_assert_eq(got_err.kind, ERR_TRANSIENT);
	cr_assert_eq(got_err.sys, EMFILE);
}

Test(loop_child, a_bare_environment_holds_what_was_given_alone)
{
	static const char *const argv[] = {"another name", "-c", "/usr/bin/env; echo $0", NULL};
	static const char *const env[] = {"A=b", NULL};

	setenv("TEC_TEST_SECRET", "x", 1);
	start(&(struct child_spec){
		.file = "/bin/bash", .argv = argv, .env = env, .bare_env = true, .max_out = 4096});
	finish();
	cr_assert(!err_is_set(&got_err), "%s", got_err.text);
	cr_assert(strstr(strbuf_str(&got), "A=b\n"), "%s", strbuf_str(&got));
	cr_assert(strstr(strbuf_str(&got), "another name\n"), "%s", strbuf_str(&got));
	cr_assert_null(strstr(strbuf_str(&got), "TEC_TEST_SECRET"));
	cr_assert_null(strstr(strbuf_str(&got), "HOME="));
}

Test(loop_child, a_file_that_is_not_there_is_told_by_the_name_of_argv)
{
	static const char *const argv[] = {"a name", NULL};

	start(&(struct child_spec){.file = "/no/such/file", .argv = argv});
	finish();
	cr_assert_eq(got_err.kind, ERR_NOT_FOUND);
	cr_assert(str_starts(got_err.text, "a name cannot be started"), "%s", got_err.text);
}

static struct strbuf said;

static void on_said(void *arg, const char *data, size_t len)
{
	cr_expect_eq(n_done, 0);
	strbuf_add(&said, data, len);
}

Test(loop_child, who_listens_gets_stderr_as_it_comes)
{
	const char *const argv[] = {
		"sh", "-c", "echo one >&2; echo out; echo two >&2; exit 3", NULL};

	start(&(struct child_spec){.argv = argv, .max_out = 100, .said = on_said});
	finish();
	cr_expect_str_eq(strbuf_str(&said), "one\ntwo\n");
	cr_expect_str_eq(got_err.text, "sh failed with status 3");
	strbuf_fini(&said);
}
