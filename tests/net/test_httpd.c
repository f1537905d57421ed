/* SPDX-License-Identifier: MIT */
/* Requests and replies over real sockets, in one thread: the client runs the server's loop whenever
 * it waits. */
#include "config.h"

#include <stdlib.h>
#include <sys/un.h>

#include "httpd_fixture.h"

static void one_exchange(bool tls)
{
	struct srv s;
	struct cli c;
	struct cli_reply r;

	srv_start(&s, tls);
	c = srv_cli(&s);
	for (unsigned i = 0; i < 3; i++) {
		cli_send(&c, "\r\nGET /ping?x=1 HTTP/1.1\r\n" HOST "\r\n");
		cr_assert(cli_reply(&c, &r, false));
		cr_expect_eq(r.status, 200);
		cr_expect_str_eq(r.body, "pong");
		cr_expect_str_eq(cli_header(&r, "Content-Type"), "text/plain");
		cr_expect_str_eq(cli_header(&r, "Cache-Control"), "no-store");
		cr_expect_eq(strlen(cli_header(&r, "Date")), 29);
		cr_expect_null(cli_header(&r, "Connection"));
		cli_reply_fini(&r);
	}
	cr_expect(str_starts(s.seen, "/ping 127.0.0.1:"), "%s", s.seen);
	loop_drain(s.loop);
	cr_expect_eq(httpd_connections(s.h), 1);
	cr_expect_eq(httpd_in_flight(s.h), 0);
	cr_expect_eq(sample("tec_http_requests_total{route=\"/ping\",code=\"200\"} "), 3);
	cr_expect_eq(sample("tec_http_connections{listener=\"test\"} "), 1);
	cr_expect_eq(sample("tec_http_request_seconds_count{route=\"/ping\"} "), 3);
	cli_close(&c);
	loop_drain(s.loop);
	cr_expect_eq(httpd_connections(s.h), 0);
	cr_expect_eq(sample("tec_http_connections{listener=\"test\"} "), 0);
	srv_stop(&s);
}

Test(net_httpd, serves_kept_connections_plain)
{
	one_exchange(false);
}

Test(net_httpd, serves_kept_connections_over_tls)
{
	one_exchange(true);
}

Test(net_httpd, a_local_socket_tells_who_its_client_is)
{
	char dir[] = "/tmp/test_httpd.XXXXXX";
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	struct err err = ERR_INIT;
	struct srv s;
	struct cli c;

	srv_start(&s, false);
	cr_expect_eq(ask(&s, GET_PING), 200);
	cr_expect_not(s.is_local);
	cr_assert_not_null(mkdtemp(dir));
	snprintf(un.sun_path, sizeof(un.sun_path), "%s/s", dir);
	cr_assert_eq(
		httpd_listen_fd(s.h, addr_listen_local(un.sun_path, 0600, (gid_t)-1, &err), &err),
		0, "%s", err.text);
	c = (struct cli){.loop = s.loop, .fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
	cr_assert_eq(connect(c.fd, (struct sockaddr *)&un, sizeof(un)), 0);
	for (unsigned i = 0; i < 2; i++) {
		cli_send(&c, GET_PING);
		cr_expect_eq(cli_status(&c), 200);
	}
	cr_expect_str_eq(s.seen, "/ping local");
	cr_expect(s.is_local);
	cr_expect_eq(s.uid, getuid());
	cli_close(&c);
	srv_stop(&s);
	unlink(un.sun_path);
	rmdir(dir);
}

Test(net_httpd, routes_and_refusals_have_their_status)
{
	static const struct {
		int status;
		const char *request;
	} rows[] = {
		{200, GET_PING},
		{200, "GET /ping HTTP/1.0\r\n\r\n"},
		{200, "\r\n" GET_PING},
		{400, "\r\n\r\n" GET_PING},
		{200, "GET /ping HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n"},
		{404, "GET /pingx HTTP/1.1\r\n" HOST "\r\n"},
		{404, "GET /ping/ HTTP/1.1\r\n" HOST "\r\n"},
		{404, "GET /%70ing HTTP/1.1\r\n" HOST "\r\n"},
		{404, "GET //ping HTTP/1.1\r\n" HOST "\r\n"},
		{404, "GET / HTTP/1.1\r\n" HOST "\r\n"},
		{405, "DELETE /ping HTTP/1.1\r\n" HOST "\r\n"},
		{405, "OPTIONS /ping HTTP/1.1\r\n" HOST "\r\n"},
		{405, "TRACE /ping HTTP/1.1\r\n" HOST "\r\n"},
		{200, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nhi"},
		{200, "PUT /echo HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n"},
		{411, "POST /echo HTTP/1.1\r\n" HOST "\r\n"},
		{411, "POST /echo HTTP/1.1\r\n" HOST
		      "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n"},
		{413, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 16385\r\n\r\n"},
		{415, "PUT /json HTTP/1.1\r\n" HOST
		      "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}"},
		{415, "PUT /json HTTP/1.1\r\n" HOST
		      "Content-Type: application/json5\r\nContent-Length: 2\r\n\r\n{}"},
		{415, "PUT /echo HTTP/1.1\r\n" HOST
		      "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 3\r\n\r\na=b"},
		{200, "PUT /json HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\n{}"},
		{200, "PUT /json HTTP/1.1\r\n" HOST
		      "Content-Type: Application/JSON; charset=utf-8\r\nContent-Length: 2\r\n\r\n{}"},
		{417, "PUT /echo HTTP/1.1\r\n" HOST "Expect: tea\r\nContent-Length: 2\r\n\r\nhi"},
		{501, "BREW /ping HTTP/1.1\r\n" HOST "\r\n"},
		{505, "GET /ping HTTP/2.0\r\n" HOST "\r\n"},
		{400, "GET /ping HTTP/1.1\r\n\r\n"},
		{400, "GET /ping HTTP/1.1\r\n" HOST
		      "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"},
		{400, "GET /ping HTTP/1.1\r\n" HOST "X: a\r\n b\r\n\r\n"},
		{400, "GET /ping HTTP/1.1\r\n" HOST "X: a\x01\r\n\r\n"},
		{400, "GET /\r\n\r\n"},
		{400, "GET http://b/ping HTTP/1.1\r\n" HOST "\r\n"},
		{400, "\x16\x03\x01\x02"},
		{400, "SSH-2.0\n"},
	};
	struct srv s;

	srv_start(&s, false);
	for (size_t i = 0; i < ARRAY_LEN(rows) - 1; i++) {
		int status = ask(&s, rows[i].request);

		cr_expect_eq(status, rows[i].status, "%d instead of %d: %s", status, rows[i].status,
			rows[i].request);
	}
	cr_expect_eq(sample("tec_http_requests_total{route=\"unmatched\",code=\"404\"} "), 5);
	srv_stop(&s);
}

Test(net_httpd, oversized_heads_get_414_and_431)
{
	cleanup_strbuf struct strbuf line = STRBUF_INIT, fields = STRBUF_INIT, target = STRBUF_INIT;
	struct srv s;

	srv_start(&s, false);
	strbuf_adds(&line, "GET /");
	for (unsigned i = 0; i < 20000; i++)
		strbuf_addc(&line, 'a'); /* never ends */
	strbuf_adds(&fields, "GET /ping HTTP/1.1\r\n" HOST);
	for (unsigned i = 0; i < 4000; i++)
		strbuf_adds(&fields, "X: yz\r\n");
	strbuf_adds(&target, "GET /");
	strbuf_add(&target, line.data + 5, 2048);
	strbuf_adds(&target, " HTTP/1.1\r\n" HOST "\r\n");
	cr_expect_eq(ask(&s, line.data), 414);
	cr_expect_eq(ask(&s, fields.data), 431);
	cr_expect_eq(ask(&s, target.data), 414);
	cr_expect_eq(s.served, 0);
	srv_stop(&s);
}

Test(net_httpd, head_has_the_length_and_no_body)
{
	struct srv s;
	struct cli c;
	struct cli_reply r;

	srv_start(&s, false);
	c = srv_cli(&s);
	cli_send(&c, "HEAD /ping HTTP/1.1\r\n" HOST "\r\nHEAD /nowhere HTTP/1.1\r\n" HOST
		     "\r\n" GET_PING);
	cr_assert(cli_reply(&c, &r, true));
	cr_expect_eq(r.status, 200);
	cr_expect_str_eq(cli_header(&r, "Content-Length"), "4");
	cli_reply_fini(&r);
	cr_assert(cli_reply(&c, &r, true));
	cr_expect_eq(r.status, 404);
	cli_reply_fini(&r);
	cr_assert(cli_reply(&c, &r, false));
	cr_expect_str_eq(r.body, "pong", "nothing came between");
	cli_reply_fini(&r);
	cli_close(&c);
	srv_stop(&s);
}

Test(net_httpd, method_not_allowed_names_the_methods)
{
	struct srv s;
	struct cli c;
	struct cli_reply r;

	srv_start(&s, false);
	c = srv_cli(&s);
	cli_send(&c, "PATCH /echo HTTP/1.1\r\n" HOST "\r\n");
	cr_assert(cli_reply(&c, &r, false));
	cr_expect_eq(r.status, 405);
	cr_expect_str_eq(cli_header(&r, "Allow"), "POST, PUT");
	cr_expect_str_eq(cli_header(&r, "Content-Type"), "application/json");
	cli_reply_fini(&r);
	cli_close(&c);
	srv_stop(&s);
}

static void on_target(struct httpd_req *req, void *arg)
{
	struct srv *s = arg;

	snprintf(s->seen, sizeof(s->seen), "%s|%s", httpd_req_path(req), httpd_req_target(req));
	httpd_reply(req, 200, NULL, NULL, 0);
}

static void on_other_target(struct httpd_req *req, void *arg)
{
	struct srv *s = arg;

	snprintf(s->seen, sizeof(s->seen), "other|%s", httpd_req_target(req));
	httpd_reply(req, 200, NULL, NULL, 0);
}

Test(net_httpd, the_most_specific_route_alone_counts)
{
	static const struct httpd_route table[] = {
		{"/a/*", HTTPD_GET, .fn = on_target},
		{"/a/b/*", HTTPD_POST, .fn = on_target},
		{"/a/b/*", HTTPD_DELETE, .fn = on_other_target},
		{"/a/b/c", HTTPD_PUT, .fn = on_other_target},
		{"/star*", HTTPD_GET, .fn = on_target},
	};
	static const struct {
		const char *method, *target;
		int status;
		const char *seen, *allow;
	} rows[] = {
		{"GET", "/a/x", 200, "/a/x|/a/x", NULL},
		{"GET", "/a/", 200, "/a/|/a/", NULL},
		{"GET", "/a/x//y/..?q=/a/b/c&%20", 200, "/a/x//y/..|/a/x//y/..?q=/a/b/c&%20", NULL},
		{"GET", "/a?/b", 404, "", NULL},
		{"GET", "/a", 404, "", NULL},
		{"GET", "/ab/x", 404, "", NULL},
		{"GET", "/A/x", 404, "", NULL},
		{"POST", "/a/x", 405, "", "GET"},
		{"POST", "/a/b/x", 200, "/a/b/x|/a/b/x", NULL},
		{"DELETE", "/a/b/x?", 200, "other|/a/b/x?", NULL},
		{"GET", "/a/b/x", 405, "", "POST, DELETE"}, /* not the shorter prefix */
		{"GET", "/a/b", 200, "/a/b|/a/b", NULL},
		{"PUT", "/a/b/c", 200, "other|/a/b/c", NULL},
		{"PUT", "/a/b/c?x", 200, "other|/a/b/c?x", NULL},
		{"POST", "/a/b/c", 405, "", "PUT"}, /* nor a prefix of an exact one */
		{"PUT", "/a/b/c/", 405, "", "POST, DELETE"},
		{"GET", "/starry", 404, "", NULL}, /* only behind a slash */
		{"GET", "/star*", 200, "/star*|/star*", NULL},
	};
	struct srv s;

	srv_prepare(&s);
	s.conf.routes = table;
	s.conf.n_routes = ARRAY_LEN(table);
	s.conf.wipe = true;
	srv_listen(&s, false);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct cli c = srv_cli(&s);
		struct cli_reply r;
		char request[200];
		const char *allow;

		s.seen[0] = '\0';
		snprintf(request, sizeof(request), "%s %s HTTP/1.1\r\n" HOST "\r\n", rows[i].method,
			rows[i].target);
		cli_send(&c, request);
		cr_assert(cli_reply(&c, &r, false));
		allow = cli_header(&r, "Allow");
		cr_expect_eq(r.status, rows[i].status, "%d: %s", r.status, request);
		cr_expect_str_eq(s.seen, rows[i].seen, "%s: %s", s.seen, request);
		cr_expect(str_eq(allow, rows[i].allow), "%s: %s", allow ? allow : "-", request);
		cli_reply_fini(&r);
		cli_close(&c);
	}
	cr_expect_eq(sample("tec_http_requests_total{route=\"/a/b/*\",code=\"405\"} "), 2);
	srv_stop(&s);
}

Test(net_httpd, headers_and_bodies_reach_the_handler_unchanged)
{
	struct srv s;
	struct cli c;
	struct cli_reply r;
	char body[16384], head[128];

	srv_start(&s, true);
	c = srv_cli(&s);
	for (unsigned i = 0; i < sizeof(body); i++)
		body[i] = (char)(i * 7 + i / 256);
	snprintf(head, sizeof(head),
		"PUT /echo HTTP/1.1\r\n" HOST "X-TEST:\t a  b \t\r\nContent-Length: %zu\r\n\r\n",
		sizeof(body));
	cli_send(&c, head);
	cr_assert_eq(cli_send_some(&c, body, sizeof(body), 1000), sizeof(body));
	cr_assert(cli_reply(&c, &r, false));
	cr_assert_eq(r.body_len, sizeof(body));
	cr_expect_arr_eq(r.body, body, sizeof(body));
	cr_expect_str_eq(s.seen, "a  b");
	cli_reply_fini(&r);
	cli_close(&c);
	srv_stop(&s);
}

static void split_everywhere(bool tls)
{
	static const char request[] =
		"PUT /echo?q=/a/b HTTP/1.1\r\nHost: example:8000\r\nX-Test: v\r\n"
		"Content-Length: 6\r\n\r\nab\r\ncd";
	struct srv s;
	struct cli c;

	srv_prepare(&s);
	s.conf.requests_per_conn = 100000;
	srv_listen(&s, tls);
	c = srv_cli(&s);
	for (size_t cut = 1; cut < sizeof(request) - 1; cut++) {
		struct cli_reply r;

		cr_assert_eq(cli_send_some(&c, request, cut, 1000), cut);
		loop_drain(s.loop);
		cr_assert_eq(s.served, cut - 1, "answered before its last byte");
		cr_assert_gt(cli_send_some(&c, request + cut, sizeof(request) - 1 - cut, 1000), 0);
		cr_assert(cli_reply(&c, &r, false), "no answer when cut at %zu", cut);
		cr_expect_eq(r.status, 200, "%d when cut at %zu", r.status, cut);
		cr_expect_str_eq(r.body, "ab\r\ncd");
		cr_expect_str_eq(s.seen, "v");
		cli_reply_fini(&r);
	}
	cli_close(&c);
	srv_stop(&s);
}

Test(net_httpd, a_request_cut_at_every_byte_is_the_same_request)
{
	split_everywhere(false);
}

Test(net_httpd, a_request_cut_at_every_byte_over_tls)
{
	split_everywhere(true);
}

static void pipeline(bool tls)
{
	cleanup_strbuf struct strbuf many = STRBUF_INIT;
	struct srv s;
	struct cli c;

	srv_start(&s, tls);
	s.async_ms = 1;
	c = srv_cli(&s);
	for (unsigned i = 0; i < 20; i++)
		strbuf_adds(&many, i % 5 == 4   ? GET_ASYNC
				   : i % 5 == 3 ? "PUT /echo HTTP/1.1\r\n" HOST
						  "Content-Length: 3\r\n\r\nGET"
						: GET_PING);
	cli_send(&c, many.data);
	for (unsigned i = 0; i < 20; i++)
		cr_assert_eq(cli_status(&c), i % 5 == 4 ? 201 : 200, "answer %u", i);
	cr_expect_eq(c.in.len, 0);
	cli_close(&c);
	srv_stop(&s);
}

Test(net_httpd, twenty_pipelined_requests_are_answered_in_order)
{
	pipeline(false);
	pipeline(true);
}

Test(net_httpd, expect_gets_one_100_and_none_when_the_body_is_there)
{
	struct srv s;
	struct cli c;
	struct cli_reply r;

	srv_start(&s, false);
	c = srv_cli(&s);
	cli_send(&c,
		"PUT /echo HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 4\r\n\r\n");
	cr_assert_eq(cli_status(&c), 100);
	cli_send(&c, "ab");
	loop_drain(s.loop);
	cli_send(&c, "cd");
	cr_assert(cli_reply(&c, &r, false));
	cr_expect_eq(r.status, 200);
	cr_expect_str_eq(r.body, "abcd");
	cli_reply_fini(&r);
	cli_send(&c, "PUT /echo HTTP/1.1\r\n" HOST
		     "Expect: 100-continue\r\nContent-Length: 2\r\n\r\nef");
	cr_expect_eq(cli_status(&c), 200);
	cli_send(&c, "PUT /echo HTTP/1.1\r\n" HOST
		     "Expect: 100-continue\r\nContent-Length: 99999\r\n\r\n");
	cr_expect_eq(cli_status(&c), 413);
	cli_close(&c);
	srv_stop(&s);
}

Test(net_httpd, http10_closes_unless_asked_to_stay)
{
	struct srv s;
	struct cli c;
	struct cli_reply r;

	srv_start(&s, false);
	c = srv_cli(&s);
	cli_send(&c, "GET /ping HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
	cr_assert(cli_reply(&c, &r, false));
	cr_expect_str_eq(cli_header(&r, "Connection"), "keep-alive");
	cli_reply_fini(&r);
	cli_send(&c, "GET /ping HTTP/1.0\r\n\r\n");
	cr_assert(cli_reply(&c, &r, false));
	cr_expect_str_eq(cli_header(&r, "Connection"), "close");
	cli_reply_fini(&r);
	cr_expect(cli_wait_eof(&c) && !c.reset);
	cli_close(&c);
	srv_stop(&s);
}

static void last_request(bool tls)
{
	cleanup_strbuf struct strbuf more = STRBUF_INIT;
	struct srv s;
	struct cli c;
	struct cli_reply r;

	srv_prepare(&s);
	s.conf.requests_per_conn = 3;
	srv_listen(&s, tls);
	c = srv_cli(&s);
	while (more.len < 12 * 1024 * 1024) /* more than the kernel's buffers hold */
		strbuf_adds(&more, GET_PING);
	cr_expect_eq(cli_send_some(&c, more.data, more.len, 300), more.len, "reset while sending");
	for (unsigned i = 0; i < 3; i++) {
		cr_assert(cli_reply(&c, &r, false));
		cr_expect_eq(cli_header(&r, "Connection") != NULL, i == 2);
		cli_reply_fini(&r);
	}
	cr_expect(cli_wait_eof(&c) && !c.reset, "the last reply must not be reset away");
	cr_expect_eq(s.served, 3);
	cli_close(&c);
	srv_stop(&s);
}

Test(net_httpd, the_last_request_of_a_connection_says_close)
{
	last_request(false);
	last_request(true);
}

/* ---- replies that come later */

Test(net_httpd, a_reply_may_come_from_the_loop)
{
	struct srv s;
	struct cli c;

	srv_start(&s, true);
	s.async_ms = 20;
	c = srv_cli(&s);
	cli_send(&c, GET_ASYNC GET_PING);
	cr_expect_eq(cli_status(&c), 201);
	cr_expect_eq(s.gone, 1);
	cr_expect_eq(s.aborted, 0);
	cr_expect_eq(cli_status(&c), 200);
	cli_close(&c);
	srv_stop(&s);
}

/* Close, half-close and reset, with and without further input: the call is cancelled, nothing is
 * replied. */
static void disconnect(bool tls, int how, const char *more)
{
	struct linger hard = {.l_onoff = 1, .l_linger = 0};
	struct srv s;
	struct cli c;

	srv_start(&s, tls);
	c = srv_cli(&s);
	cli_send(&c, GET_ASYNC);
	cli_send(&c, more);
	for (uint64_t start = clock_boot_ms(); s.served == 0 && !cli_late(start);)
		loop_turn(s.loop, 1);
	cr_expect_eq(httpd_in_flight(s.h), 1);
	if (how == SHUT_WR)
		shutdown(c.fd, SHUT_WR);
	else if (how < 0)
		setsockopt(c.fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	if (how != SHUT_WR)
		cli_close(&c);
	for (uint64_t start = clock_boot_ms(); s.aborted == 0 && !cli_late(start);)
		loop_turn(s.loop, 1);
	cr_expect_eq(s.aborted, 1);
	cr_expect_eq(s.gone, 1);
	cr_expect_eq(httpd_connections(s.h), 0);
	if (how == SHUT_WR)
		cr_expect(cli_wait_eof(&c) && c.in.len == 0);
	cli_close(&c);
	srv_stop(&s);
}

Test(net_httpd, a_disconnect_cancels_what_the_handler_started)
{
	static const int hows[] = {SHUT_WR, SHUT_RDWR, -1};

	for (size_t i = 0; i < ARRAY_LEN(hows); i++) {
		disconnect(false, hows[i], "");
		disconnect(true, hows[i], "");
		disconnect(false, hows[i], GET_PING);
	}
}

Test(net_httpd, a_handler_that_takes_too_long_is_cancelled_with_408)
{
	struct srv s;
	struct cli c;

	srv_prepare(&s);
	s.conf.request_ms = 60;
	srv_listen(&s, false);
	c = srv_cli(&s);
	cli_send(&c, GET_ASYNC GET_PING);
	cr_expect_eq(cli_status(&c), 408);
	cr_expect_eq(s.aborted, 1);
	cr_expect(cli_wait_eof(&c));
	cr_expect_eq(s.served, 1, "nothing behind it is served");
	cli_close(&c);
	srv_stop(&s);
}

Test(net_httpd, a_half_closed_client_still_gets_a_reply_that_is_ready)
{
	for (unsigned tls = 0; tls < 2; tls++) {
		struct srv s;
		struct cli c;

		srv_start(&s, tls);
		c = srv_cli(&s);
		cli_send(&c, GET_BIG);
		for (uint64_t start = clock_boot_ms(); s.served == 0 && !cli_late(start);)
			loop_turn(s.loop, 1);
		if (tls)
			SSL_shutdown(c.ssl);
		shutdown(c.fd, SHUT_WR);
		cr_expect_eq(cli_status(&c), 200);
		cr_expect(cli_wait_eof(&c));
		cr_expect_eq(httpd_connections(s.h), 0);
		cli_close(&c);
		srv_stop(&s);
	}
}

Test(net_httpd, leaving_serves_on_and_ends_each_connection_with_its_reply)
{
	struct srv s;
	struct cli kept, fresh;
	struct cli_reply r;

	srv_start(&s, false);
	kept = srv_cli(&s);
	cli_send(&kept, GET_PING);
	cr_assert_eq(cli_status(&kept), 200);
	httpd_leave(s.h);
	fresh = srv_cli(&s);
	for (struct cli *c = &kept; c; c = c == &kept ? &fresh : NULL) {
		cli_send(c, GET_PING);
		cr_assert(cli_reply(c, &r, false));
		cr_expect_eq(r.status, 200);
		cr_expect_str_eq(cli_header(&r, "Connection"), "close");
		cli_reply_fini(&r);
		cr_expect(cli_wait_eof(c));
		cli_close(c);
	}
	srv_stop(&s);
}

Test(net_httpd, drain_finishes_what_is_in_flight_and_takes_nothing_new)
{
	struct srv s;
	struct cli idle, busy, late;
	struct cli_reply r;
	unsigned port;

	srv_start(&s, false);
	s.async_ms = 40;
	port = httpd_port(s.h);
	idle = srv_cli(&s);
	cli_send(&idle, GET_PING);
	cr_assert_eq(cli_status(&idle), 200);
	busy = srv_cli(&s);
	cli_send(&busy, GET_ASYNC);
	while (s.served < 2)
		loop_turn(s.loop, 1);
	httpd_drain(s.h);
	cr_expect_eq(httpd_in_flight(s.h), 1);
	cr_expect(cli_wait_eof(&idle));
	late = cli_open(s.loop, port);
	cr_expect(late.reset, "the port is closed");
	cr_assert(cli_reply(&busy, &r, false));
	cr_expect_eq(r.status, 201);
	cr_expect_str_eq(cli_header(&r, "Connection"), "close");
	cli_reply_fini(&r);
	cr_expect(cli_wait_eof(&busy));
	cr_expect_eq(httpd_in_flight(s.h), 0);
	cr_expect_eq(httpd_connections(s.h), 0);
	cli_close(&idle);
	cli_close(&busy);
	cli_close(&late);
	srv_stop(&s);
}

Test(net_httpd, free_ends_connections_in_every_state)
{
	static const char *const starts[] = {"", "GET /pi",
		"PUT /echo HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\nab", GET_ASYNC GET_PING,
		GET_BIG, "BREW / HTTP/1.1\r\n\r\n"};

	for (unsigned tls = 0; tls < 2; tls++) {
		struct cli c[ARRAY_LEN(starts)], shaking;
		struct srv s;

		srv_start(&s, tls);
		for (size_t i = 0; i < ARRAY_LEN(starts); i++) {
			c[i] = srv_cli(&s);
			cli_send(&c[i], starts[i]);
		}
		shaking = cli_open(s.loop, httpd_port(s.h));
		loop_drain(s.loop);
		cr_expect_eq(httpd_connections(s.h), ARRAY_LEN(starts) + 1);
		cr_expect_eq(s.served, 2);
		srv_stop(&s);
		cr_expect_eq(s.aborted, 1);
		for (size_t i = 0; i < ARRAY_LEN(starts); i++)
			cli_close(&c[i]);
		cli_close(&shaking);
	}
}

Test(net_httpd, a_route_serves_no_more_at_once_than_it_says)
{
	static const char get[] = "GET /two HTTP/1.1\r\n" HOST "\r\n";
	struct cli_reply r;
	struct cli c[3];
	struct srv s;

	srv_start(&s, false);
	s.async_ms = 30;
	for (unsigned i = 0; i < 3; i++) {
		c[i] = srv_cli(&s);
		cli_send(&c[i], get);
		loop_turn(s.loop, 1);
		loop_turn(s.loop, 1);
	}
	cr_assert(cli_reply(&c[2], &r, false));
	cr_expect_eq(r.status, 503);
	cr_expect_str_eq(cli_header(&r, "Retry-After"), "1");
	cr_expect_str_eq(cli_header(&r, "Connection"), "close");
	cli_reply_fini(&r);
	cr_expect_eq(ask(&s, GET_PING), 200, "other routes go on");
	cr_expect_eq(cli_status(&c[0]), 201);
	cr_expect_eq(cli_status(&c[1]), 201);
	for (unsigned i = 0; i < 2; i++)
		cli_send(&c[i], get); /* both places are free again */
	cli_close(&c[0]);             /* one of them by leaving */
	cr_expect_eq(cli_status(&c[1]), 201);
	for (unsigned i = 0; i < 4; i++)
		cr_expect_eq(ask(&s, get), 201, "%u", i);
	cli_close(&c[1]);
	cli_close(&c[2]);
	srv_stop(&s);
}
