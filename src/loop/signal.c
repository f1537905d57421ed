/* SPDX-License-Identifier: MIT */
/* Signals through libevent: its handler only writes to a descriptor of libevent, and the function
 * given here runs later, from the loop. So it may do anything, not just async-signal-safe calls. */
#include "config.h"

#include "tec/loop/signal.h"

#include <event2/event.h>
#include <signal.h>

#include "loop_internal.h"
#include "tec/base/mem.h"

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
