/* SPDX-License-Identifier: MIT */
/* Port 8081 over real sockets. */
#include "config.h"

#include "srv/srv_testing.h"
#include "tec/srv/health.h"

TestSuite(srv_health, .timeout = SUITE_LIMIT);

struct health {
	struct rig rig; /* its loop and sockets' helpers */
	struct srv_health *s;
	unsigned port, asked;
	const char *why; /* NULL: ready */
};

static bool ready(void *arg, const char **why)
{
	struct health *t = arg;

	t->asked++;
	if (t->why)
		*why = t->why;
	return !t->why;
}

static void health_open(struct health *t)
{
	struct err err = ERR_INIT;

	memset(t, 0, sizeof(*t));
	rig_open(&t->rig, NULL);
	t->s = srv_health_new(t->rig.loop, ready, t);
	cr_assert_eq(httpd_listen(srv_health_httpd(t->s), "127.0.0.1:0", &err), 0, "%s", err.text);
	t->port = httpd_port(srv_health_httpd(t->s));
}

static void health_close(struct health *t)
{
	srv_health_free(t->s);
	rig_close(&t->rig);
}

static void expect(struct health *t, const char *line, int status, const char *body)
{
	cleanup_free char *text = xasprintf("%s HTTP/1.1\r\nHost: x\r\n\r\n", line);
	struct cli_reply a;

	rig_ask(&t->rig, t->port, text, &a);
	cr_assert_eq(a.status, status, "%s: %d", line, a.status);
	if (body)
		cr_assert_str_eq(a.body, body, "%s", line);
	cr_assert(str_starts(cli_header(&a, "Content-Type"), "text/plain"), "%s", line);
	cli_reply_fini(&a);
}

Test(srv_health, healthz_says_that_the_loop_turns_ready_or_not)
{
	struct health t;

	health_open(&t);
	expect(&t, "GET /healthz", 200, "ok\n");
	t.why = "objects are being listed";
	expect(&t, "GET /healthz", 200, "ok\n");
	cr_assert_eq(t.asked, 0);
	health_close(&t);
}

Test(srv_health, readyz_gives_the_reason)
{
	static const char *const reasons[] = {
		"objects are being listed", "TLS Secrets are being read", "shutting down"};
	struct health t;

	health_open(&t);
	expect(&t, "GET /readyz", 200, "ok\n");
	for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
		cleanup_free char *body = xasprintf("not ready: %s\n", reasons[i]);

		t.why = reasons[i];
		expect(&t, "GET /readyz", 503, body);
	}
	t.why = NULL;
	expect(&t, "GET /readyz", 200, "ok\n");
	health_close(&t);
}

Test(srv_health, head_has_the_headers_only)
{
	struct health t;
	struct cli_reply a;
	struct cli c;

	health_open(&t);
	c = cli_open(t.rig.loop, t.port);
	cli_send(&c, "HEAD /healthz HTTP/1.1\r\nHost: x\r\n\r\nHEAD /readyz HTTP/1.1\r\nHost: x\r\n"
		     "Connection: close\r\n\r\n");
	for (int i = 0; i < 2; i++) {
		cr_assert(cli_reply(&c, &a, true));
		cr_assert_eq(a.status, 200);
		cr_assert_str_eq(cli_header(&a, "Content-Length"), "3");
		cli_reply_fini(&a);
	}
	cr_assert(cli_wait_eof(&c));
	cr_assert_eq(c.in.len, 0, "a body followed");
	cli_close(&c);
	health_close(&t);
}

Test(srv_health, nothing_else_is_there)
{
	struct health t;

	health_open(&t);
	expect(&t, "GET /", 404, "no such path\n");
	expect(&t, "GET /metrics/", 404, "no such path\n");
	expect(&t, "GET /ignition", 404, "no such path\n");
	expect(&t, "DELETE /metrics", 405, "allowed methods: GET, HEAD\n");
	health_close(&t);
}

Test(srv_health, metrics_has_the_type_prometheus_wants)
{
	struct health t;
	struct cli_reply a;

	health_open(&t);
	rig_ask(&t.rig, t.port, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", &a);
	cr_assert_eq(a.status, 200);
	cr_assert_str_eq(
		cli_header(&a, "Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
	cr_assert(strstr(a.body, "\ntec_build_info{"), "%s", a.body);
	cli_reply_fini(&a);
	health_close(&t);
}

/* Another name for every client of the port: more connections than there are places, all silent. */
Test(srv_health, a_probe_gets_through_however_many_sit_there)
{
	enum { SITTING = 100 };
	struct cli c[SITTING];
	struct health t;

	health_open(&t);
	for (unsigned i = 0; i < SITTING; i++) /* the kubelet's own address is among them */
		c[i] = cli_open_from(t.rig.loop, t.port, 1 + i % 3);
	loop_drain(t.rig.loop);
	for (unsigned i = 0; i < 20; i++)
		expect(&t, "GET /healthz", 200, "ok\n");
	for (unsigned i = 0; i < SITTING; i++)
		cli_close(&c[i]);
	health_close(&t);
}

Test(srv_health, silent_connections_end_soon)
{
	struct health t;
	struct cli c;

	health_open(&t);
	c = cli_open(t.rig.loop, t.port);
	loop_drain(t.rig.loop);
	loop_advance(t.rig.loop, 5000);
	cr_assert(cli_wait_eof(&c));
	cli_close(&c);
	health_close(&t);
}

/* Scrapers that read nothing: their share is taken, the probes' is not. */
Test(srv_health, scrapers_that_do_not_read_leave_the_probes_alone)
{
	enum { DEAF = 60 };
	cleanup_strbuf struct strbuf many = STRBUF_INIT;
	struct cli c[DEAF];
	struct health t;

	health_open(&t);
	for (unsigned i = 0; i < 100; i++)
		strbuf_adds(&many, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
	for (unsigned i = 0; i < DEAF; i++) {
		int small = 2048;

		c[i] = cli_open_from(t.rig.loop, t.port, 2);
		setsockopt(c[i].fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
		cli_send_some(&c[i], many.data, many.len, 5);
	}
	loop_drain(t.rig.loop);
	for (unsigned i = 0; i < 20; i++) {
		expect(&t, "GET /healthz", 200, "ok\n");
		expect(&t, "GET /readyz", 200, "ok\n");
	}
	for (unsigned i = 0; i < DEAF; i++)
		cli_close(&c[i]);
	loop_drain(t.rig.loop);
	expect(&t, "GET /metrics", 200, NULL);
	health_close(&t);
}
