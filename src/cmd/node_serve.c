/* SPDX-License-Identifier: MIT */
/*
 * The endpoint with the TPM in a child. At a signal no new request is taken; what is under way may end,
 * so that a child with the TPM is not killed, but not for longer than a service manager waits.
 */
#include "config.h"

#include "node_serve.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tec/attest/cdh.h"
#include "tec/base/confine.h"
#include "tec/base/log.h"
#include "tec/base/metric.h"
#include "tec/loop/signal.h"
#include "tec/loop/timer.h"

#define FIRST_FD    3 /* sd_listen_fds(3) */
#define DESCRIPTORS 2048
#define LEAVE_MS    20000
#define LOOK_MS     50
#define REST_MS     2000

struct serve {
	struct loop *loop;
	struct attest_cdh *cdh;
	struct timer look, leave, rest;
};

/* Between requests, which are rare, the service holds what it needs to wait for the next one. */
static void on_rest(void *arg)
{
	malloc_trim(0);
	confine_drop_code();
}

static void on_idle(void *arg)
{
	struct serve *s = arg;

	timer_set(&s->rest, REST_MS);
}

static void on_leave(void *arg)
{
	struct serve *s = arg;

	loop_stop(s->loop);
}

static void on_look(void *arg)
{
	struct serve *s = arg;

	if (attest_cdh_busy(s->cdh) || httpd_in_flight(attest_cdh_httpd(s->cdh)) > 0)
		timer_set(&s->look, LOOK_MS);
	else
		loop_stop(s->loop);
}

static void on_signal(int signo, void *arg)
{
	struct serve *s = arg;

	if (timer_is_set(&s->leave)) /* somebody does not want to wait */
		loop_stop(s->loop);
	httpd_drain(attest_cdh_httpd(s->cdh));
	timer_set(&s->look, 0);
	timer_set_earlier(&s->leave, LEAVE_MS);
}

/* Whether a service manager passes a socket; -1: more than one. */
static int passed_sockets(struct err *err)
{
	const char *pid = secure_getenv("LISTEN_PID"), *n = secure_getenv("LISTEN_FDS");
	uint64_t value;

	if (!pid || !n || str_to_u64(pid, INT32_MAX, &value) < 0 || (pid_t)value != getpid())
		return 0;
	if (str_to_u64(n, 1, &value) < 0)
		return err_set(err, ERR_INVALID, "LISTEN_FDS is not 0 or 1: %s", log_esc(n));
	return (int)value;
}

static int listen_at(const struct serve *s, const char *where, struct err *err)
{
	int n = passed_sockets(err);

	if (n < 0)
		return -1;
	return n == 1 ? httpd_listen_fd(attest_cdh_httpd(s->cdh), FIRST_FD, err)
		      : httpd_listen(attest_cdh_httpd(s->cdh), where, err);
}

int node_serve(const struct node_options *o)
{
	struct serve s = {.loop = loop_new()};
	struct httpc *client = httpc_new(s.loop);
	struct attest_source source =
		o->sample ? attest_source_sample(s.loop)
			  : attest_source_child(s.loop, "/proc/self/exe", o->tcti, o->ak_handle);
	struct loop_signal *term = loop_signal_new(s.loop, SIGTERM, on_signal, &s);
	struct loop_signal *intr = loop_signal_new(s.loop, SIGINT, on_signal, &s);
	struct err err = ERR_INIT;
	int status = 0;

	log_setup(LOG_INFO, LOG_TEXT);
	loop_ignore_sigpipe();
	confine_raise_descriptors(DESCRIPTORS);
	timer_init(&s.look, s.loop, on_look, &s);
	timer_init(&s.leave, s.loop, on_leave, &s);
	timer_init(&s.rest, s.loop, on_rest, &s);
	s.cdh = attest_cdh_new(client, &source, &o->config);
	attest_cdh_on_idle(s.cdh, on_idle, &s);
	if (listen_at(&s, o->listen, &err) == 0) {
		on_rest(&s);
		loop_run(s.loop);
	} else {
		fprintf(stderr, "tec-node: %s\n", err.text);
		status = ATTEST_USAGE;
	}
	attest_cdh_free(s.cdh);
	timer_fini(&s.look);
	timer_fini(&s.leave);
	timer_fini(&s.rest);
	loop_signal_free(term);
	loop_signal_free(intr);
	httpc_free(client);
	loop_free(s.loop);
	metric_reset_all();
	return status;
}
