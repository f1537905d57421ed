/* SPDX-License-Identifier: MIT */
/* For test_httpd.c and test_httpd_guard.c: a listener with a few routes, and what its handlers saw.
 */
#ifndef TESTS_NET_HTTPD_FIXTURE_H
#define TESTS_NET_HTTPD_FIXTURE_H

#include <criterion/criterion.h>

#include "net_testing.h"

#include "tec/base/log.h"
#include "tec/base/metric.h"
#include "tec/loop/op.h"
#include "tec/loop/signal.h"
#include "tec/loop/timer.h"
#include "tec/net/httpd.h"

#define HOST      "Host: a\r\n"
#define GET_PING  "GET /ping HTTP/1.1\r\n" HOST "\r\n"
#define GET_ASYNC "GET /async HTTP/1.1\r\n" HOST "\r\n"
#define GET_BIG   "GET /big HTTP/1.1\r\n" HOST "\r\n"
#define BIG_LEN   (4 * 1024 * 1024)

struct srv {
	struct loop *loop;
	struct httpd *h;
	struct httpd_conf conf;
	struct testing_pem pem;
	struct tls_ctx *tls;
	unsigned served, aborted, gone;
	uint32_t async_ms;
	char *big;
	char seen[256]; /* what the last handler saw */
	bool is_local;
	uint32_t uid;
};

/* A call of a handler that ends when its timer does. */
struct call {
	struct op op;
	struct timer timer;
	struct srv *srv;
	struct httpd_req *req;
};

static inline void call_end(struct call *c)
{
	timer_fini(&c->timer);
	free(c);
}

static inline void call_abort(struct op *op)
{
	struct call *c = (struct call *)op;

	c->srv->aborted++;
	call_end(c);
}

static inline void call_done(void *arg)
{
	struct call *c = arg;

	op_finish(&c->op);
	httpd_reply(c->req, 201, "text/plain", "late", 4);
	call_end(c);
}

static inline void on_gone(void *arg)
{
	((struct srv *)arg)->gone++;
}

static inline void on_async(struct httpd_req *req, void *arg)
{
	struct srv *s = arg;
	struct call *c = xcalloc(1, sizeof(*c));

	s->served++;
	c->srv = s;
	c->req = req;
	op_begin(&c->op, httpd_req_ops(req), call_abort);
	timer_init(&c->timer, s->loop, call_done, c);
	if (s->async_ms)
		timer_set(&c->timer, s->async_ms);
	httpd_req_on_gone(req, on_gone, s);
}

static inline void on_ping(struct httpd_req *req, void *arg)
{
	struct srv *s = arg;

	s->served++;
	s->is_local = httpd_req_local(req, &s->uid);
	snprintf(s->seen, sizeof(s->seen), "%s %s", httpd_req_path(req), httpd_req_peer(req));
	httpd_reply_header(req, "Cache-Control", "no-store");
	httpd_reply(req, 200, "text/plain", "pong", 4);
}

static inline void on_echo(struct httpd_req *req, void *arg)
{
	struct srv *s = arg;
	const char *x = httpd_req_header(req, "x-test");
	size_t len;
	const char *body = httpd_req_body(req, &len);

	s->served++;
	snprintf(s->seen, sizeof(s->seen), "%s", x ? x : "(none)");
	httpd_reply(req, 200, NULL, body, len);
}

static inline void on_big(struct httpd_req *req, void *arg)
{
	struct srv *s = arg;

	s->served++;
	httpd_reply(req, 200, "text/plain", s->big, BIG_LEN);
}

static const struct httpd_route routes[] = {
	{"/ping", HTTPD_GET | HTTPD_HEAD, .fn = on_ping},
	{"/echo", HTTPD_PUT | HTTPD_POST, true, .fn = on_echo},
	{"/json", HTTPD_PUT, true, "application/json", .fn = on_echo},
	{"/async", HTTPD_GET, .fn = on_async},
	{"/two", HTTPD_GET, .fn = on_async, .at_once = 2},
	{"/big", HTTPD_GET, .fn = on_big},
};

static inline const char *error_body(struct strbuf *out, int status, const char *message)
{
	strbuf_addf(out, "{\"code\":%d,\"message\":\"%s\"}", status, message);
	return "application/json";
}

static inline void srv_prepare(struct srv *s)
{
	*s = (struct srv){.conf = httpd_conf_default};
	loop_ignore_sigpipe();
	s->loop = loop_new();
	s->conf.name = "test";
	s->conf.routes = routes;
	s->conf.n_routes = ARRAY_LEN(routes);
	s->conf.arg = s;
	s->conf.error_body = error_body;
	s->big = xmalloc(BIG_LEN);
	memset(s->big, 'b', BIG_LEN);
}

static inline struct tls_ctx *srv_make_tls(struct srv *s, long serial)
{
	struct err err = ERR_INIT;
	struct tls_ctx *tls;

	testing_pem_fini(&s->pem);
	s->pem = testing_make_pem(serial, 3600);
	tls = tls_ctx_new(s->pem.cert, strlen(s->pem.cert), s->pem.key, strlen(s->pem.key), &err);
	cr_assert_not_null(tls, "%s", err.text);
	return tls;
}

static inline void srv_listen(struct srv *s, bool tls)
{
	struct err err = ERR_INIT;

	s->h = httpd_new(s->loop, &s->conf);
	if (tls) {
		s->tls = srv_make_tls(s, 1);
		httpd_set_tls(s->h, s->tls);
	}
	cr_assert_eq(httpd_listen(s->h, "127.0.0.1:0", &err), 0, "%s", err.text);
}

static inline void srv_start(struct srv *s, bool tls)
{
	srv_prepare(s);
	srv_listen(s, tls);
}

/* Everything is torn down, so that a leak or a forgotten timer fails the test. */
static inline void srv_stop(struct srv *s)
{
	httpd_free(s->h);
	loop_free(s->loop);
	tls_ctx_unref(s->tls);
	testing_pem_fini(&s->pem);
	free(s->big);
	metric_reset_all();
}

static inline struct cli srv_cli(struct srv *s)
{
	struct cli c = cli_open(s->loop, httpd_port(s->h));

	if (s->tls)
		cr_assert(cli_handshake(&c, TLS1_3_VERSION, TLS1_3_VERSION, NULL));
	return c;
}

/* Value of one sample line of /metrics, -1 if absent. */
static inline double sample(const char *line_start)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	const char *p;

	metric_render(&out);
	p = strstr(strbuf_str(&out), line_start);
	return p ? strtod(p + strlen(line_start), NULL) : -1;
}

/* One connection, one request: the first reply's status; the connection must then close if it says
 * so. */
static inline int ask(struct srv *s, const char *request)
{
	struct cli c = srv_cli(s);
	struct cli_reply r;
	int status = 0;

	cli_send(&c, request);
	if (cli_reply(&c, &r, strncmp(request, "HEAD", 4) == 0)) {
		const char *connection = cli_header(&r, "Connection");

		status = r.status;
		if (status >= 400)
			cr_expect(r.body_len > 0 && r.body[0] == '{', "%s: %s", request, r.body);
		if (connection && strcmp(connection, "close") == 0)
			cr_expect(cli_wait_eof(&c) && !c.reset, "%s", request);
	}
	cli_reply_fini(&r);
	cli_close(&c);
	return status;
}

#endif
