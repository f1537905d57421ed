/* SPDX-License-Identifier: MIT */
/*
 * fork, exec, three pipes and a pidfd. A child has ended when its pidfd is readable, not when its
 * output ends: the rest of the pipe is read then, and grandchildren that keep the pipe open are not
 * waited for. Exec failures are reported as an errno through a close-on-exec pipe. A child that
 * exceeds a limit is killed with its process group and reported at once; the struct then waits in
 * loop->dying until the child can be reaped. Output buffers are wiped, because credential plugins
 * print tokens.
 */
#include "config.h"

#include "tec/loop/child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loop_internal.h"
#include "tec/base/body.h"
#include "tec/base/mem.h"
#include "tec/base/secret.h"
#include "tec/base/str.h"
#include "tec/base/utf8.h"
#include "tec/loop/timer.h"

#define STDERR_KEEP 512

extern char **environ;

/* Our end of a pipe, watched by the loop. */
struct end {
	int fd;                /* owned; -1: closed */
	struct loop_fd *watch; /* owned */
};

struct child {
	struct op op; /* first */
	struct loop *loop;
	child_done_fn done;
	void (*said)(void *arg, const char *data, size_t len); /* may be NULL */
	void *arg;
	char *name; /* owned: argv[0], for error texts */
	pid_t pid;  /* 0: not started, or reaped */
	struct end pidfd, in, out, errs;
	int exec_fd; /* owned; delivers the errno of a failed exec; -1: closed */
	struct timer deadline;
	struct defer failed;     /* reports a failure to start, from the loop */
	struct err err;          /* of a child that may still run */
	struct body input, text; /* stdin and stdout; may hold secrets */
	size_t input_done, max_out;
	char tail[STDERR_KEEP]; /* last bytes of stderr */
	size_t tail_len;
	LIST_ENTRY(child) dying;
};

/* ---- release */

static void end_close(struct end *e)
{
	loop_fd_free(e->watch);
	e->watch = NULL;
	if (e->fd >= 0)
		close(e->fd);
	e->fd = -1;
}

/* Release everything but the pidfd and the pid, which are still needed to reap the child. */
static void child_release(struct child *c)
{
	end_close(&c->in);
	end_close(&c->out);
	end_close(&c->errs);
	if (c->exec_fd >= 0)
		close(c->exec_fd);
	c->exec_fd = -1;
	timer_fini(&c->deadline);
	defer_cancel(&c->failed);
	body_fini(&c->input);
	body_fini(&c->text);
	free(c->name);
	c->name = NULL;
}

/* The child is reaped, or was never started. */
static void child_free(struct child *c)
{
	child_release(c);
	end_close(&c->pidfd);
	c->loop->n_children--;
	free(c);
}

static void child_kill(const struct child *c)
{
	kill(-c->pid, SIGKILL); /* its group; the second call covers the time before setpgid() */
	kill(c->pid, SIGKILL);
}

/* An abandoned child has ended: reap it and free the struct. SIGKILL cannot be caught, but an
 * uninterruptible system call can delay it. */
static void on_dead(int fd, bool readable, bool writable, void *arg)
{
	struct child *c = arg;

	if (waitpid(c->pid, NULL, WNOHANG) == 0)
		return;
	LIST_REMOVE(c, dying);
	child_free(c);
}

/* Reap by blocking waits at teardown, so that a loop is never freed with zombies left. */
static void reap_dying(struct loop *l)
{
	while (!LIST_EMPTY(&l->dying)) {
		struct child *c = LIST_FIRST(&l->dying);

		LIST_REMOVE(c, dying);
		while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
			;
		child_free(c);
	}
}

/* Kill the child without waiting, and keep the struct until the child can be reaped. */
static void child_abandon(struct op *op)
{
	struct child *c = container_of(op, struct child, op);

	if (c->pid == 0) {
		child_free(c);
		return;
	}
	child_kill(c);
	child_release(c);
	loop_fd_free(c->pidfd.watch);
	LIST_INSERT_HEAD(&c->loop->dying, c, dying);
	c->loop->reap = reap_dying;
	c->pidfd.watch = loop_fd_new(c->loop, c->pidfd.fd, true, false, on_dead, c);
}

/* Report a failure of a child that may still run, then kill it. */
static void child_fail(void *child)
{
	struct child *c = child;

	op_finish(&c->op);
	c->done(c->arg, &c->err, "", 0);
	child_abandon(&c->op);
}

/* ---- output */

/* Read all stdout that is available; -1 if it exceeds max_out. */
static int read_out(struct child *c)
{
	char buf[4096];

	while (c->out.fd >= 0) {
		ssize_t n = read(c->out.fd, buf, sizeof(buf));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n <= 0) {
			end_close(&c->out);
			return 0;
		}
		body_add(&c->text, buf, (size_t)n, 0);
		secret_wipe(buf, (size_t)n);
		if (c->text.len > c->max_out)
			return -1;
	}
	return 0;
}

static void on_out(int fd, bool readable, bool writable, void *arg)
{
	struct child *c = arg;

	if (read_out(c) == 0)
		return;
	err_set(&c->err, ERR_INVALID, "%.64s wrote more than %zu bytes", c->name, c->max_out);
	child_fail(c);
}

static void on_errs(int fd, bool readable, bool writable, void *arg)
{
	struct child *c = arg;
	char buf[1024];

	/* Keep the last STDERR_KEEP bytes: the final message usually names the cause. At most 64 KiB
	 * per call: a child that floods stderr must not block the loop. */
	for (unsigned i = 0; i < 64 && c->errs.fd >= 0; i++) {
		ssize_t n = read(c->errs.fd, buf, sizeof(buf));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			end_close(&c->errs);
		} else if (c->said) {
			c->said(c->arg, buf, (size_t)n);
		} else {
			size_t more = n < STDERR_KEEP ? (size_t)n : STDERR_KEEP;
			size_t cut = c->tail_len + more > STDERR_KEEP
					     ? c->tail_len + more - STDERR_KEEP
					     : 0;

			memmove(c->tail, c->tail + cut, c->tail_len - cut);
			memcpy(c->tail + c->tail_len - cut, buf + n - more, more);
			c->tail_len += more - cut;
		}
	}
}

/* Write the input as the child reads it; closing our end is its end of file. */
static void on_in(int fd, bool readable, bool writable, void *arg)
{
	struct child *c = arg;
	ssize_t n = write(fd, c->input.data + c->input_done, c->input.len - c->input_done);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n > 0)
		c->input_done += (size_t)n;
	/* EPIPE is not an error: a child that does not read its input may still succeed. */
	if (n < 0 || c->input_done == c->input.len)
		end_close(&c->in);
}

/* ---- the end */

/* Format the tail of stderr as one line of printable text for an error. */
static void tail_text(struct child *c, char out[STDERR_KEEP + 1])
{
	size_t n = c->tail_len;
	bool utf8;

	while (n > 0 && (unsigned char)c->tail[n - 1] <= ' ')
		n--;
	utf8 = utf8_valid(c->tail, n);
	for (size_t i = 0; i < n; i++) {
		unsigned char b = (unsigned char)c->tail[i];

		out[i] = b < ' ' || b == 0x7f ? ' ' : b >= 0x80 && !utf8 ? '?' : (char)b;
	}
	out[n] = '\0';
}

/* Translate the exit status to an error; the error stays unset for exit status 0. */
static void judge(struct child *c, int status, struct err *err)
{
	char tail[STDERR_KEEP + 1];
	int e = 0;

	/* The pipe is close-on-exec: after a successful exec it is empty and closed. */
	if (read(c->exec_fd, &e, sizeof(e)) == (ssize_t)sizeof(e) && e != 0) {
		enum err_kind kind = e == ENOENT                 ? ERR_NOT_FOUND
				     : e == EACCES || e == EPERM ? ERR_DENIED
								 : ERR_TRANSIENT;

		err_set_errno(err, kind, e, "%.64s cannot be started", c->name);
		return;
	}
	tail_text(c, tail);
	if (WIFSIGNALED(status))
		err_set(err, ERR_TRANSIENT, "%.64s was killed by signal %d%s%s", c->name,
			WTERMSIG(status), *tail ? ": " : "", tail);
	else if (WEXITSTATUS(status) != 0)
		err_set(err, ERR_TRANSIENT, "%.64s failed with status %d%s%s", c->name,
			WEXITSTATUS(status), *tail ? ": " : "", tail);
}

/* The child has ended: collect its remaining output and report the result. */
static void on_exit_seen(int fd, bool readable, bool writable, void *arg)
{
	struct child *c = arg;
	struct err err = ERR_INIT;
	int status = 0;
	pid_t pid = waitpid(c->pid, &status, WNOHANG);

	if (pid == 0)
		return;
	if (read_out(c) < 0)
		err_set(&err, ERR_INVALID, "%.64s wrote more than %zu bytes", c->name, c->max_out);
	on_errs(c->errs.fd, true, false, c); /* the rest of stderr */
	if (!err_is_set(&err) && pid < 0)
		err_set_errno(&err, ERR_BUG, errno, "waiting for %.64s", c->name);
	else if (!err_is_set(&err))
		judge(c, status, &err);
	c->pid = 0; /* reaped: another process may have this pid now */
	op_finish(&c->op);
	if (err_is_set(&err) || !c->text.data)
		c->done(c->arg, &err, "", 0);
	else
		c->done(c->arg, &err, c->text.data, c->text.len);
	child_free(c);
}

/* The work took too long. A TPM or plugin that hangs must not block its owner forever. */
static void on_deadline(void *arg)
{
	struct child *c = arg;

	err_set(&c->err, ERR_TRANSIENT, "%.64s did not finish in time", c->name);
	child_fail(c);
}

/* ---- the start */

union pipes {
	struct {
		int in[2], out[2], errs[2], exec[2]; /* read end, write end; -1: closed */
	};
	int ends[8];
};

/* Set up and execute the program. Runs in the child after fork: only async-signal-safe calls. */
static _Noreturn void child_exec(
	const union pipes *p, const struct child_spec *spec, char **env, pid_t parent)
{
	/* Move the ends away from 0-2 first, so that no dup2 below closes one that is still needed. */
	int in = fcntl(p->in[0], F_DUPFD, 3), out = fcntl(p->out[1], F_DUPFD, 3);
	int errs = fcntl(p->errs[1], F_DUPFD, 3), report = fcntl(p->exec[1], F_DUPFD, 3), e;
	struct sigaction dfl = {.sa_handler = SIG_DFL};
	char *const *argv = (char *const *)(uintptr_t)spec->argv;
	sigset_t none;

	setpgid(0, 0);
	for (int signo = 1; signo < NSIG; signo++)
		sigaction(signo, &dfl, NULL); /* also undoes our SIG_IGN of SIGPIPE */
	sigemptyset(&none);
	/* getppid() differs if the parent died before prctl(); the death signal would then never
	 * come. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent &&
		sigprocmask(SIG_SETMASK, &none, NULL) == 0 && dup2(in, 0) == 0 &&
		dup2(out, 1) == 1 && dup2(errs, 2) == 2 &&
		close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) == 0) {
		environ = env;
		if (spec->file)
			execv(spec->file, argv);
		else
			execvp(argv[0], argv);
	}
	e = errno;
	if (write(report, &e, sizeof(e)) < 0)
		_exit(126);
	_exit(127);
}

/* Build the environment: ours, then theirs; a name of theirs replaces ours. The caller frees the
 * array, which borrows the strings. Done before the fork, as malloc is not async-signal-safe. */
static char **merge_env(const char *const *extra, bool bare)
{
	size_t n = 0, m = 0, k = 0;
	char **env;

	while (!bare && environ && environ[n])
		n++;
	while (extra && extra[m])
		m++;
	env = xcalloc(n + m + 1, sizeof(*env));
	for (size_t i = 0; i < n; i++) {
		size_t len = strcspn(environ[i], "=") + 1;
		bool replaced = false;

		for (size_t j = 0; j < m && !replaced; j++)
			replaced = strncmp(environ[i], extra[j], len) == 0;
		if (!replaced)
			env[k++] = environ[i];
	}
	for (size_t j = 0; j < m; j++)
		env[k++] = (char *)(uintptr_t)extra[j];
	return env;
}

static pid_t child_fork(const union pipes *p, const struct child_spec *spec)
{
	cleanup_free char **env = merge_env(spec->env, spec->bare_env);
	sigset_t all, old;
	pid_t parent = getpid(), pid;

	/* Block signals: a handler of ours that runs in the child would write to the loop's
	 * descriptors. child_exec() resets the handlers and unblocks. */
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old);
	pid = fork();
	if (pid == 0)
		child_exec(p, spec, env, parent);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return pid;
}

/* Take ownership of a descriptor and make it non-blocking for the loop. */
static int steal_fd(int *fd)
{
	int v = *fd;

	*fd = -1;
	fcntl(v, F_SETFL, O_NONBLOCK);
	return v;
}

/* Fork and watch the child. -1 with errno if nothing runs. */
static int child_spawn(struct child *c, const struct child_spec *spec, union pipes *p)
{
	if (spec->input_len > 0 ? pipe2(p->in, O_CLOEXEC) < 0
				: (p->in[0] = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0)
		return -1;
	if (pipe2(p->out, O_CLOEXEC) < 0 || pipe2(p->errs, O_CLOEXEC) < 0 ||
		pipe2(p->exec, O_CLOEXEC) < 0)
		return -1;
	c->pid = child_fork(p, spec);
	if (c->pid < 0) {
		c->pid = 0;
		return -1;
	}
	setpgid(c->pid, c->pid); /* parent and child both do it, as either may run first */
	c->pidfd.fd = pidfd_open(c->pid, 0);
	if (c->pidfd.fd < 0) {
		int e = errno;

		child_kill(c);
		while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
			;
		c->pid = 0;
		errno = e;
		return -1;
	}
	c->exec_fd = steal_fd(&p->exec[0]);
	c->out.fd = steal_fd(&p->out[0]);
	c->errs.fd = steal_fd(&p->errs[0]);
	c->pidfd.watch = loop_fd_new(c->loop, c->pidfd.fd, true, false, on_exit_seen, c);
	c->out.watch = loop_fd_new(c->loop, c->out.fd, true, false, on_out, c);
	c->errs.watch = loop_fd_new(c->loop, c->errs.fd, true, false, on_errs, c);
	if (spec->input_len > 0) {
		c->in.fd = steal_fd(&p->in[1]);
		c->in.watch = loop_fd_new(c->loop, c->in.fd, false, true, on_in, c);
	}
	return 0;
}

/* A failure to start is deferred, so that done never runs before this function returned. */
struct op *child_start(struct loop *l, struct op_scope *scope, const struct child_spec *spec,
	child_done_fn done, void *arg)
{
	union pipes p = {.ends = {-1, -1, -1, -1, -1, -1, -1, -1}};
	struct child *c = xcalloc(1, sizeof(*c));

	c->loop = l;
	l->n_children++;
	c->done = done;
	c->said = spec->said;
	c->arg = arg;
	c->name = xstrdup(spec->argv[0]);
	c->max_out = spec->max_out;
	c->pidfd.fd = c->in.fd = c->out.fd = c->errs.fd = c->exec_fd = -1;
	if (spec->input_len > 0)
		body_add(&c->input, spec->input, spec->input_len, spec->input_len);
	timer_init(&c->deadline, l, on_deadline, c);
	op_begin(&c->op, scope, child_abandon);
	if (child_spawn(c, spec, &p) < 0) {
		err_set_errno(&c->err, ERR_TRANSIENT, errno, "%.64s cannot be started", c->name);
		defer_call(&c->failed, l, child_fail, c);
	} else if (spec->deadline_ms > 0) {
		timer_set(&c->deadline, spec->deadline_ms);
	}
	/* Close the ends that were not stolen: the child's ends, and all of them after a failure. */
	for (unsigned i = 0; i < ARRAY_LEN(p.ends); i++)
		if (p.ends[i] >= 0)
			close(p.ends[i]);
	return &c->op;
}
