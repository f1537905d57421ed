/* SPDX-License-Identifier: MIT */
/*
 * The endpoint for local workloads, with the TPM in a child process. After a signal no new
 * request is accepted; running ones may finish, so that a child that uses the TPM is not killed,
 * but for less time than a service manager waits.
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

#define FIRST_FD    3 /* SD_LISTEN_FDS_START of sd_listen_fds(3) */
#define SOCKETS_MAX 4
#define DESCRIPTORS 2048
#define LEAVE_MS    20000 /* for running requests; systemd waits 90 s by default */
#define LOOK_MS     50
#define REST_MS     2000 /* of silence before memory is given back */

struct serve {
	struct loop *loop;
	struct attest_cdh *cdh;
	struct timer look, leave, rest;
	const char *socket; /* borrowed; NULL: no socket file of ours to remove */
};

/* Give memory back between requests: they are rare, and the service runs on every node. */
static void on_rest(void *arg)
{
	malloc_trim(0);
	confine_drop_code();
}

/* Restart the timer with each request: memory is given back only after a pause. */
static void on_idle(void *arg)
{
	struct serve *s = arg;

	timer_set(&s->rest, REST_MS);
}

/* Requests did not finish in time. */
static void on_leave(void *arg)
{
	struct serve *s = arg;

	loop_stop(s->loop);
}

/* Stop as soon as no request and no child is left. */
static void on_look(void *arg)
{
	struct serve *s = arg;

	if (attest_cdh_busy(s->cdh) || httpd_in_flight(attest_cdh_httpd(s->cdh)) > 0)
		timer_set(&s->look, LOOK_MS);
	else
		loop_stop(s->loop);
}

/* Stop accepting, then wait for running requests. */
static void on_signal(int signo, void *arg)
{
	struct serve *s = arg;

	if (timer_is_set(&s->leave)) /* the second signal: stop now */
		loop_stop(s->loop);
	httpd_drain(attest_cdh_httpd(s->cdh));
	timer_set(&s->look, 0);
	timer_set_earlier(&s->leave, LEAVE_MS);
}

/* The number of sockets that a service manager passes (sd_listen_fds(3)); LISTEN_PID must be
 * this process. -1: not a number, or too many. */
static int passed_sockets(struct err *err)
{
	const char *pid = secure_getenv("LISTEN_PID"), *n = secure_getenv("LISTEN_FDS");
	uint64_t value;

	if (!pid || !n || str_to_u64(pid, INT32_MAX, &value) < 0 || (pid_t)value != getpid())
		return 0;
	if (str_to_u64(n, SOCKETS_MAX, &value) < 0)
		return err_set(err, ERR_INVALID, "LISTEN_FDS is not a number up to %d: %s",
			SOCKETS_MAX, log_esc(n));
	return (int)value;
}

/* The socket file is ours from here on, and is removed at the end. */
static int listen_local(struct serve *s, const struct node_options *o, struct err *err)
{
	int fd = addr_listen_local(o->socket, o->socket_mode, o->socket_group, err);

	if (fd < 0)
		return -1;
	s->socket = o->socket;
	if (httpd_listen_fd(attest_cdh_httpd(s->cdh), fd, err) < 0) {
		close(fd);
		return -1;
	}
	return 0;
}

/* Passed sockets replace --listen and --socket. */
static int listen_at(struct serve *s, const struct node_options *o, struct err *err)
{
	struct httpd *httpd = attest_cdh_httpd(s->cdh);
	int n = passed_sockets(err);

	for (int i = 0; i < n; i++)
		if (httpd_listen_fd(httpd, FIRST_FD + i, err) < 0)
			return -1;
	if (n != 0)
		return n > 0 ? 0 : -1;
	if (!*o->listen && !o->socket)
		return err_set(err, ERR_INVALID, "option --listen is empty: --socket is required");
	if (*o->listen && httpd_listen(httpd, o->listen, err) < 0)
		return -1;
	return o->socket ? listen_local(s, o, err) : 0;
}

/* Each use of the TPM is a child of this program, so that a TPM that hangs blocks no other
 * request. */
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
	s.cdh = attest_cdh_new(client, &source, &o->config, &o->cdh);
	attest_cdh_on_idle(s.cdh, on_idle, &s);
	if (listen_at(&s, o, &err) == 0) {
		on_rest(&s);
		loop_run(s.loop);
	} else {
		fprintf(stderr, "tec-node: %s\n", err.text);
		status = ATTEST_USAGE;
	}
	attest_cdh_free(s.cdh);
	if (s.socket)
		unlink(s.socket);
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
