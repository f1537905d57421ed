/* SPDX-License-Identifier: MIT */
/* The HTTPS maker against a child process that speaks plain HTTP and accepts one token; TLS itself
 * is tested in net/test_httpc.c. */
#include "config.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tec/base/clock.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/metric.h"
#include "tec/base/str.h"
#include "tec/k8s/client.h"
#include "tec/loop/signal.h"
#include "tec/loop/timer.h"

static struct shared {
	atomic_int reqs, refused;
	char token[64]; /* what the server accepts */
	char head[4096], body[256];
} * sh;

static struct loop *l;
static struct httpc *http;
static struct k8s_transport *t;
static struct op_scope ops;
static pid_t server;
static int port;
static char dir[64], token_path[128];

/* ---- the server ---- */

static void say(int fd, const char *s)
{
	if (write(fd, s, strlen(s)) < 0)
		_exit(0);
}

static void reply(int fd, const char *status, const char *body)
{
	cleanup_free char *s = xasprintf(
		"HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n%s", status, strlen(body), body);

	say(fd, s);
}

/* Until the client goes away. */
static void hang(int fd)
{
	char c;

	while (read(fd, &c, 1) > 0)
		;
	_exit(0);
}

/* The signal is lost when the parent died before prctl. */
static void die_with(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
}

static void answer(int fd, const char *head)
{
	cleanup_free char *want = xasprintf("Authorization: Bearer %s\r\n", sh->token);

	if (!strstr(head, want)) {
		sh->refused++;
		reply(fd, "401 Unauthorized", "{\"kind\":\"Status\",\"reason\":\"Unauthorized\"}");
	} else if (strstr(head, "/hang")) {
		hang(fd);
	} else if (strstr(head, "/busy")) {
		reply(fd, "429 Busy\r\nRetry-After: 3", "{}");
	} else if (strstr(head, "/watch")) {
		say(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{}\n\r\n");
		hang(fd);
	} else {
		reply(fd, "200 OK", "{\"metadata\":{\"name\":\"x\"}}");
	}
}

static void serve(int fd)
{
	char buf[8192];
	int n = 0;
	ssize_t r;

	while ((r = read(fd, buf + n, sizeof(buf) - 1 - (size_t)n)) > 0) {
		char *end, *length;
		size_t body_len;

		n += (int)r;
		buf[n] = '\0';
		end = strstr(buf, "\r\n\r\n");
		length = strstr(buf, "Content-Length: ");
		body_len = length ? strtoul(length + 16, NULL, 10) : 0;
		if (!end || (size_t)(buf + n - end - 4) < body_len)
			continue;
		sh->reqs++;
		snprintf(sh->body, sizeof(sh->body), "%.200s", end + 4);
		end[2] = '\0';
		snprintf(sh->head, sizeof(sh->head), "%.4000s", buf);
		answer(fd, buf);
		n = 0;
	}
	_exit(0);
}

static void server_start(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	pid_t tests;

	cr_assert(bind(fd, (struct sockaddr *)&a, len) == 0 && listen(fd, 64) == 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	port = ntohs(a.sin_port);
	tests = getpid();
	server = fork();
	if (server == 0) {
		pid_t self = getpid();

		die_with(tests);
		signal(SIGCHLD, SIG_IGN);
		signal(SIGPIPE, SIG_IGN);
		for (;;) {
			int c = accept(fd, NULL, NULL);

			if (c >= 0 && fork() == 0) {
				die_with(self);
				serve(c);
			}
			close(c);
		}
	}
	close(fd);
}

/* ---- the client ---- */

static void write_token(const char *token)
{
	cleanup_free char *tmp = xasprintf("%s.new", token_path);
	FILE *f = fopen(tmp, "w");

	cr_assert(f);
	fputs(token, f);
	fclose(f);
	cr_assert_eq(rename(tmp, token_path), 0);
}

static struct k8s_kubeconfig *conf_new(void)
{
	struct k8s_kubeconfig *k = xcalloc(1, sizeof(*k));

	k->server = xasprintf("http://127.0.0.1:%d", port);
	return k;
}

static void setup(void)
{
	loop_ignore_sigpipe();
	log_setup(LOG_ERROR, LOG_TEXT);
	snprintf(dir, sizeof(dir), "/tmp/tec-client-XXXXXX");
	cr_assert(mkdtemp(dir));
	snprintf(token_path, sizeof(token_path), "%s/token", dir);
	sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(sh, MAP_FAILED);
	snprintf(sh->token, sizeof(sh->token), "one");
	write_token("one");
	server_start();
	l = loop_new();
	http = httpc_new(l);
}

static void client_with_token_file(void)
{
	struct k8s_kubeconfig *k = conf_new();

	k->token_file = xstrdup(token_path);
	t = k8s_client_new(l, http, k, "tec-operator/test", false);
}

static void client_with_plugin(const char *script)
{
	cleanup_free char *path = xasprintf("%s/plugin", dir),
			  *text = xasprintf("#!/bin/sh\ncd '%s'\n%s\n", dir, script);
	struct k8s_kubeconfig *k = conf_new();
	FILE *f = fopen(path, "w");

	cr_assert(f);
	fputs(text, f);
	fclose(f);
	chmod(path, 0700);
	k->exec_argv = xcalloc(2, sizeof(char *));
	k->exec_argv[0] = xstrdup(path);
	k->exec_api_version = xstrdup("client.authentication.k8s.io/v1");
	t = k8s_client_new(l, http, k, "tec-operator/test", false);
}

static void teardown(void)
{
	cleanup_free char *rm = xasprintf("rm -r '%s'", dir);

	op_scope_cancel(&ops);
	k8s_transport_free(t);
	httpc_free(http);
	loop_free(l);
	metric_reset_all();
	kill(server, SIGKILL);
	cr_assert_eq(secret_count(), 0);
	cr_assert_eq(system(rm), 0);
}

TestSuite(k8s_client, .init = setup, .fini = teardown, .timeout = 30);

static struct res {
	unsigned n;
	struct err err;
	int status;
	uint32_t retry_after_ms;
	char body[128];
	size_t data_len;
	struct op *op;
} res;

static void on_answer(void *arg, const struct err *err, const struct k8s_answer *a)
{
	struct res *r = arg;

	r->n++;
	r->err = *err;
	r->status = a->status;
	r->retry_after_ms = a->retry_after_ms;
	snprintf(r->body, sizeof(r->body), "%s", a->body);
}

static int on_data(void *arg, const char *data, size_t len, struct err *err)
{
	struct res *r = arg;

	r->data_len += len;
	return 0;
}

static void start(
	const char *method, const char *path, const char *body, uint32_t deadline_ms, struct res *r)
{
	struct k8s_request req = {.method = method,
		.path = xstrdup(path),
		.content_type = body ? "application/json" : NULL,
		.body = body ? body_of_text(xstrdup(body)) : (struct body)BODY_INIT,
		.deadline_ms = deadline_ms,
		.verb = "get",
		.resource = "x"};

	(void)op_hold(&r->op, k8s_transport_start(t, &ops, &req, NULL, on_answer, r));
	cr_assert_eq(r->n, 0, "done before the call returned");
}

static void wait_done(struct res *r)
{
	for (int i = 0; i < 500 && !r->n; i++)
		loop_turn(l, 100);
	cr_assert_eq(r->n, 1);
}

static void fetch(const char *method, const char *path, const char *body)
{
	memset(&res, 0, sizeof(res));
	start(method, path, body, 0, &res);
	wait_done(&res);
}

Test(k8s_client, a_request_carries_token_agent_and_types)
{
	client_with_token_file();
	fetch("PATCH", "/api/v1/x?a=b&c=d", "{\"a\":1}");
	cr_assert_eq(res.err.kind, ERR_NONE, "%s", res.err.text);
	cr_assert_eq(res.status, 200);
	cr_assert_str_eq(res.body, "{\"metadata\":{\"name\":\"x\"}}");
	cr_assert(str_starts(sh->head, "PATCH /api/v1/x?a=b&c=d HTTP/1.1\r\n"));
	cr_assert(strstr(sh->head, "Accept: application/json\r\n"));
	cr_assert(strstr(sh->head, "User-Agent: tec-operator/test\r\n"));
	cr_assert(strstr(sh->head, "Content-Type: application/json\r\n"));
	cr_assert_str_eq(sh->body, "{\"a\":1}");
	fetch("GET", "/api/v1/x", NULL);
	cr_assert_null(strstr(sh->head, "Content-"));
}

Test(k8s_client, after_401_the_new_token_is_read_and_the_request_sent_again)
{
	client_with_token_file();
	fetch("GET", "/x", NULL);
	snprintf(sh->token, sizeof(sh->token), "two");
	write_token("two");
	fetch("POST", "/x", "{\"b\":2}");
	cr_assert_eq(res.status, 200, "%s", res.err.text);
	cr_assert_str_eq(sh->body, "{\"b\":2}");
	cr_assert_eq(sh->refused, 1);
	cr_assert_eq(sh->reqs, 3);
}

Test(k8s_client, a_401_without_another_token_is_the_answer)
{
	client_with_token_file();
	snprintf(sh->token, sizeof(sh->token), "two");
	fetch("GET", "/x", NULL);
	cr_assert_eq(res.status, 401);
	cr_assert_eq(res.err.kind, ERR_NONE);
	cr_assert_eq(sh->reqs, 1);
}

Test(k8s_client, a_second_401_is_the_answer)
{
	client_with_token_file();
	fetch("GET", "/x", NULL);
	snprintf(sh->token, sizeof(sh->token), "three");
	write_token("two");
	fetch("GET", "/x", NULL);
	cr_assert_eq(res.status, 401);
	cr_assert_eq(sh->refused, 2);
}

Test(k8s_client, retry_after_is_reported_not_waited_for)
{
	client_with_token_file();
	fetch("GET", "/busy", NULL);
	cr_assert_eq(res.status, 429);
	cr_assert_eq(res.retry_after_ms, 3000);
	cr_assert_eq(sh->reqs, 1);
}

Test(k8s_client, a_plugin_is_waited_for_and_run_again_after_401)
{
	client_with_plugin(
		"printf '{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\","
		"\"status\":{\"token\":\"%s\"}}' $(cat token)");
	struct res r[4] = {0};

	for (size_t i = 0; i < ARRAY_LEN(r); i++)
		start("GET", "/x", NULL, 0, &r[i]);
	op_cancel(&r[1].op);
	for (size_t i = 0; i < ARRAY_LEN(r); i++)
		if (i != 1) {
			wait_done(&r[i]);
			cr_assert_eq(r[i].status, 200, "%s", r[i].err.text);
		}
	cr_assert_eq(r[1].n, 0);
}

Test(k8s_client, a_plugin_that_fails_is_the_error)
{
	client_with_plugin("echo sorry >&2; exit 1");
	fetch("GET", "/x", NULL);
	cr_assert_neq(res.err.kind, ERR_NONE);
	cr_assert(strstr(res.err.text, "sorry"), "%s", res.err.text);
	fetch("GET", "/x", NULL); /* the same at once */
	cr_assert(strstr(res.err.text, "sorry"), "%s", res.err.text);
	cr_assert_eq(sh->reqs, 0);
}

Test(k8s_client, the_deadline_covers_plugin_and_answer)
{
	struct res r = {0}, r2 = {0};

	client_with_plugin("exec sleep 1000");
	start("GET", "/x", NULL, 60, &r);
	wait_done(&r);
	cr_assert_eq(r.err.kind, ERR_TRANSIENT);
	cr_assert(strstr(r.err.text, "timed out waiting for credentials"), "%s", r.err.text);
	k8s_transport_free(t);
	client_with_token_file();
	start("GET", "/hang", NULL, 60, &r2);
	wait_done(&r2);
	cr_assert_eq(r2.err.kind, ERR_TRANSIENT);
	cr_assert(strstr(r2.err.text, "no answer within"), "%s", r2.err.text);
}

Test(k8s_client, a_stream_gives_data_and_can_be_cancelled)
{
	struct k8s_request req = {.method = "GET",
		.path = xstrdup("/watch"),
		.verb = "watch",
		.resource = "x",
		.silence_ms = 80};
	struct res silent = {0}, cancelled = {0};

	client_with_token_file();
	(void)op_hold(&silent.op, k8s_transport_start(t, &ops, &req, on_data, on_answer, &silent));
	wait_done(&silent);
	cr_assert_eq(silent.err.kind, ERR_TRANSIENT);
	cr_assert_leq(silent.data_len, 3); /* a busy machine may not get that far in 80 ms */
	req.silence_ms = 0;
	req.path = xstrdup("/watch");
	(void)op_hold(
		&cancelled.op, k8s_transport_start(t, &ops, &req, on_data, on_answer, &cancelled));
	while (!cancelled.data_len)
		loop_turn(l, 100);
	op_cancel(&cancelled.op);
	loop_drain(l);
	cr_assert_eq(cancelled.n, 0);
}

Test(k8s_client, a_stream_is_retried_after_401_too)
{
	struct k8s_request req = {
		.method = "GET", .path = xstrdup("/watch"), .verb = "watch", .resource = "x"};
	struct res r = {0};

	client_with_token_file();
	fetch("GET", "/x", NULL);
	snprintf(sh->token, sizeof(sh->token), "two");
	write_token("two");
	(void)op_hold(&r.op, k8s_transport_start(t, &ops, &req, on_data, on_answer, &r));
	for (int i = 0; i < 500 && !r.data_len && !r.n; i++)
		loop_turn(l, 100);
	cr_assert_eq(r.data_len, 3);
	cr_assert_eq(sh->refused, 1);
	op_cancel(&r.op);
}

Test(k8s_client, no_token_is_an_error_and_nothing_is_sent)
{
	client_with_token_file();
	unlink(token_path);
	fetch("GET", "/x", NULL);
	cr_assert_eq(res.err.kind, ERR_DENIED, "%s", res.err.text);
	cr_assert_eq(sh->reqs, 0);
	write_token("one");
	fetch("GET", "/x", NULL);
	cr_assert_eq(res.status, 200);
}

static void free_client(void *arg, const struct err *err, const struct k8s_answer *a)
{
	k8s_transport_free(t);
	t = NULL;
}

Test(k8s_client, done_may_free_the_client)
{
	struct k8s_request req = {
		.method = "GET", .path = xstrdup("/x"), .verb = "get", .resource = "x"};

	client_with_token_file();
	(void)k8s_transport_start(t, &ops, &req, NULL, free_client, NULL);
	for (int i = 0; i < 500 && t; i++)
		loop_turn(l, 100);
	cr_assert_null(t);
}
