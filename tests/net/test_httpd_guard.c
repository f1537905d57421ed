/* SPDX-License-Identifier: MIT */
/* The guard over real sockets: deadlines, limits, TLS, certificates. */
#include "config.h"

#include <malloc.h>
#include <sys/resource.h>

#include "httpd_fixture.h"

Test(net_httpd_guard, slow_head_and_slow_body_get_408)
{
	static const char *const starts[] = {"GET /ping HTTP/1.1\r\nHo",
		"PUT /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nab"};
	struct srv s;

	srv_prepare(&s);
	s.conf.request_ms = 80;
	srv_listen(&s, false);
	for (size_t i = 0; i < ARRAY_LEN(starts); i++) {
		struct cli c = srv_cli(&s);

		cli_send(&c, starts[i]);
		cr_expect_eq(cli_status(&c), 408);
		cr_expect(cli_wait_eof(&c) && !c.reset);
		cli_close(&c);
	}
	srv_stop(&s);
}

/* One byte at a time never restarts the clock, in the first request nor in a later one. */
Test(net_httpd_guard, dripping_bytes_does_not_move_the_deadline)
{
	struct srv s;
	struct cli c;
	uint64_t start;
	unsigned sent = 0;

	srv_prepare(&s);
	s.conf.request_ms = 150;
	srv_listen(&s, false);
	c = srv_cli(&s);
	cli_send(&c, GET_PING);
	cr_assert_eq(cli_status(&c), 200);
	start = clock_boot_ms();
	cli_send(&c, "G");
	for (uint64_t last = start; c.in.len == 0 && !cli_late(start); cli_turn(&c)) {
		if (clock_boot_ms() - last < 5)
			continue;
		last = clock_boot_ms();
		cli_send_some(&c, "E", 1, 1);
		sent++;
	}
	cr_expect_eq(cli_status(&c), 408);
	cr_expect_geq(sent, 5);
	cr_expect_lt(clock_boot_ms() - start, 1500);
	cli_close(&c);
	srv_stop(&s);
}

Test(net_httpd_guard, idle_connections_and_unfinished_handshakes_are_closed)
{
	struct srv s;
	struct cli idle, fresh, shaking;

	srv_prepare(&s);
	s.conf.idle_ms = 60;
	s.conf.request_ms = 120;
	srv_listen(&s, true);
	idle = srv_cli(&s);
	cli_send(&idle, GET_PING);
	cr_assert_eq(cli_status(&idle), 200);
	fresh = srv_cli(&s);
	shaking = cli_open(s.loop, httpd_port(s.h));
	cli_send(&shaking, "\x16\x03\x01\x01");
	cr_expect(cli_wait_eof(&idle) && idle.in.len == 0, "no 408 for an idle one");
	cr_expect(cli_wait_eof(&fresh) && fresh.in.len == 0);
	cr_expect(cli_wait_eof(&shaking) && shaking.in.len == 0);
	cr_expect_eq(httpd_connections(s.h), 0);
	cr_expect_eq(
		sample("tec_http_refused_connections_total{listener=\"test\",reason=\"handshake_timeout\"} "),
		1);
	cli_close(&idle);
	cli_close(&fresh);
	cli_close(&shaking);
	srv_stop(&s);
}

Test(net_httpd_guard, connections_over_the_cap_are_closed_at_accept)
{
	struct srv s;
	struct cli c[5];

	srv_prepare(&s);
	s.conf.max_connections = 3;
	srv_listen(&s, false);
	for (unsigned i = 0; i < 5; i++)
		c[i] = srv_cli(&s);
	for (unsigned i = 3; i < 5; i++)
		cr_expect(cli_wait_eof(&c[i]) && c[i].in.len == 0);
	cr_expect_eq(httpd_connections(s.h), 3);
	cr_expect_eq(
		sample("tec_http_refused_connections_total{listener=\"test\",reason=\"limit\"} "),
		2);
	for (unsigned i = 0; i < 3; i++) {
		cli_send(&c[i], GET_PING);
		cr_expect_eq(cli_status(&c[i]), 200);
	}
	for (unsigned i = 0; i < 5; i++)
		cli_close(&c[i]);
	loop_drain(s.loop);
	cr_expect_eq(ask(&s, GET_PING), 200, "there is room again");
	srv_stop(&s);
}

#define RESET    "tec_http_refused_connections_total{listener=\"test\",reason=\"rate\"} "
#define ANSWERED "tec_http_refused_connections_total{listener=\"test\",reason=\"rate_answered\"} "

/* A listener whose only source has used up its tokens. */
static void srv_exhausted(struct srv *s, struct ratelimit *rate, bool tls)
{
	const struct sockaddr_in sa = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	uint32_t retry_s;

	s->conf.rate = rate;
	srv_listen(s, tls);
	while (ratelimit_take(rate, (const struct sockaddr *)&sa, &retry_s))
		;
}

/* Whether the connection is told the status, and then closed without a reset. */
static void expect_told(struct cli *c, int status, const char *retry)
{
	struct cli_reply r;

	cr_assert(cli_reply(c, &r, false));
	cr_expect_eq(r.status, status);
	cr_expect_str_eq(cli_header(&r, "Retry-After"), retry);
	cr_expect_str_eq(cli_header(&r, "Connection"), "close");
	cr_expect(strstr(r.body, "too many requests from this address"), "%s", r.body);
	cr_expect(cli_wait_eof(c) && !c->reset);
	cli_reply_fini(&r);
}

Test(net_httpd_guard, a_source_over_its_rate_gets_429)
{
	struct ratelimit *rate = ratelimit_new(3, 1, 10);
	struct srv s;
	struct cli c, late;

	srv_prepare(&s);
	s.conf.rate = rate;
	srv_listen(&s, false);
	c = srv_cli(&s);
	for (unsigned i = 0; i < 3; i++) { /* accept paid for the first */
		cli_send(&c, GET_PING);
		cr_expect_eq(cli_status(&c), 200);
	}
	cli_send(&c, GET_PING);
	expect_told(&c, 429, "1");
	late = srv_cli(&s);
	cli_send(&late, GET_PING);
	expect_told(&late, 429, "1");
	cr_expect_eq(s.served, 3);
	cr_expect_eq(sample(ANSWERED), 1);
	cr_expect_eq(sample(RESET), -1);
	cli_close(&late);
	cli_close(&c);
	srv_stop(&s);
	ratelimit_free(rate);
}

/* The body is not waited for, and the answer comes although the client sends it. */
Test(net_httpd_guard, a_new_connection_over_the_rate_is_told_without_its_body)
{
	struct ratelimit *rate = ratelimit_new_slow(1, 1, 7000, 10);
	char *body = xcalloc(1, 30001);
	struct srv s;
	struct cli c;

	memset(body, 'x', 30000);
	for (unsigned tls = 0; tls < 2; tls++) {
		srv_prepare(&s);
		s.conf.rate_status = 503;
		s.conf.limits.body = 60000;
		srv_exhausted(&s, rate, tls);
		c = srv_cli(&s);
		cli_send(&c, "PUT /echo HTTP/1.1\r\n" HOST "Content-Length: 60000\r\n\r\n");
		cli_send(&c, body);
		expect_told(&c, 503, "7");
		cr_expect_eq(s.served, 0);
		cli_close(&c);
		srv_stop(&s);
	}
	free(body);
	ratelimit_free(rate);
}

Test(net_httpd_guard, an_endless_body_over_the_rate_is_cut_off)
{
	struct ratelimit *rate = ratelimit_new_slow(1, 1, 60000, 10);
	const size_t many = 1 << 20;
	char *body = xcalloc(1, many);
	struct srv s;
	struct cli c;

	srv_prepare(&s);
	s.conf.limits.body = 60000;
	srv_exhausted(&s, rate, false);
	c = srv_cli(&s);
	cli_send(&c, "PUT /echo HTTP/1.1\r\n" HOST "Content-Length: 60000\r\n\r\n");
	cr_expect_eq(cli_status(&c), 429);
	for (unsigned i = 0; i < 16 && cli_send_some(&c, body, many, 50) == many; i++)
		;
	cr_expect_eq(httpd_connections(s.h), 0);
	cli_close(&c);
	free(body);
	srv_stop(&s);
	ratelimit_free(rate);
}

/* 8 places: two at most for connections that are only answered, while two others are free. */
Test(net_httpd_guard, a_flood_over_the_rate_is_reset)
{
	struct ratelimit *rate = ratelimit_new_slow(1, 1, 60000, 10);
	struct srv s;
	struct cli c[4], other[6];

	srv_prepare(&s);
	s.conf.max_connections = 8;
	srv_exhausted(&s, rate, false);
	for (unsigned i = 0; i < 4; i++)
		c[i] = srv_cli(&s);
	for (unsigned i = 2; i < 4; i++)
		cr_expect(cli_wait_eof(&c[i]) && c[i].in.len == 0);
	cr_expect_eq(sample(RESET), 2);
	cr_expect_eq(httpd_connections(s.h), 2);
	for (unsigned i = 0; i < 2; i++) {
		cli_send(&c[i], GET_PING);
		expect_told(&c[i], 429, "60");
	}
	for (unsigned i = 0; i < 4; i++)
		cli_close(&c[i]);
	loop_drain(s.loop);
	cr_expect_eq(ask(&s, GET_PING), 429, "there is room again");
	loop_drain(s.loop);
	for (unsigned i = 0; i < 6; i++) /* a quarter of the places is free */
		other[i] = cli_open_from(s.loop, httpd_port(s.h), 10 + i);
	while (httpd_connections(s.h) < 6)
		loop_turn(s.loop, 1);
	c[0] = srv_cli(&s);
	cr_expect(cli_wait_eof(&c[0]) && c[0].in.len == 0);
	cr_expect_eq(sample(RESET), 3);
	cli_close(&c[0]);
	for (unsigned i = 0; i < 6; i++)
		cli_close(&other[i]);
	srv_stop(&s);
	ratelimit_free(rate);
}

Test(net_httpd_guard, answers_to_connections_over_the_rate_have_a_budget)
{
	struct ratelimit *rate = ratelimit_new_slow(1, 1, 60000, 10);
	struct srv s;
	unsigned told = 0, reset = 0;

	clock_fake_start(1000, 0);
	srv_prepare(&s);
	srv_exhausted(&s, rate, false);
	for (unsigned i = 0; i < HTTPD_UNPAID_BURST + 20; i++)
		*(ask(&s, GET_PING) == 429 ? &told : &reset) += 1;
	cr_expect_eq(told, HTTPD_UNPAID_BURST);
	cr_expect_eq(reset, 20);
	clock_fake_advance(1000);
	told = 0;
	for (unsigned i = 0; i < HTTPD_UNPAID_PER_S + 5; i++)
		told += ask(&s, GET_PING) == 429;
	cr_expect_eq(told, HTTPD_UNPAID_PER_S);
	srv_stop(&s);
	clock_fake_stop();
	ratelimit_free(rate);
}

/* The connection was accepted without a token, and one came back before its head was complete. */
Test(net_httpd_guard, a_token_that_comes_back_in_time_pays)
{
	struct ratelimit *rate = ratelimit_new(1, 1, 10);
	struct srv s;
	struct cli c;

	clock_fake_start(1000, 0);
	srv_prepare(&s);
	srv_exhausted(&s, rate, false);
	c = srv_cli(&s);
	cli_send(&c, "PUT /echo HTTP/1.1\r\n");
	loop_drain(s.loop);
	clock_fake_advance(1000);
	cli_send(&c, HOST "Content-Length: 2\r\n\r\n");
	loop_drain(s.loop);
	clock_fake_advance(5000); /* it has the time of any other request now */
	loop_drain(s.loop);
	cli_send(&c, "ok");
	cr_expect_eq(cli_status(&c), 200);
	cli_send(&c, GET_PING);
	cr_expect_eq(cli_status(&c), 200);
	cli_send(&c, GET_PING);
	expect_told(&c, 429, "1");
	cli_close(&c);
	srv_stop(&s);
	clock_fake_stop();
	ratelimit_free(rate);
}

Test(net_httpd_guard, a_connection_over_the_rate_has_two_seconds)
{
	struct ratelimit *rate = ratelimit_new_slow(1, 1, 60000, 10);
	struct srv s;
	struct cli idle, slow;

	clock_fake_start(1000, 0);
	srv_prepare(&s);
	srv_exhausted(&s, rate, false);
	idle = srv_cli(&s);
	slow = srv_cli(&s);
	cli_send(&slow, "GET /ping HTTP/1.1\r\n");
	loop_drain(s.loop);
	clock_fake_advance(1999);
	loop_drain(s.loop);
	cr_expect_eq(httpd_connections(s.h), 2);
	clock_fake_advance(1);
	loop_drain(s.loop);
	cr_assert_eq(httpd_connections(s.h), 1, "which lingers");
	cr_expect(cli_wait_eof(&idle) && idle.in.len == 0);
	expect_told(&slow, 429, "58");
	cli_close(&idle);
	cli_close(&slow);
	srv_stop(&s);
	clock_fake_stop();
	ratelimit_free(rate);
}

Test(net_httpd_guard, closed_answers_503_until_open_again)
{
	struct srv s;
	struct cli c;
	struct cli_reply r;

	srv_start(&s, false);
	httpd_set_closed(s.h, "no certificate yet");
	c = srv_cli(&s);
	cli_send(&c, GET_PING);
	cr_assert(cli_reply(&c, &r, false));
	cr_expect_eq(r.status, 503);
	cr_expect_str_eq(cli_header(&r, "Retry-After"), "5");
	cr_expect(strstr(r.body, "no certificate yet"));
	cli_reply_fini(&r);
	httpd_set_closed(s.h, NULL);
	cli_send(&c, GET_PING);
	cr_expect_eq(cli_status(&c), 200);
	cli_close(&c);
	srv_stop(&s);
}

/* Sends requests and reads nothing: the server stops taking bytes long before they are many. */
static void non_reader(bool tls, const char *request)
{
	cleanup_strbuf struct strbuf many = STRBUF_INIT;
	struct srv s;
	struct cli c;
	size_t sent, kept;
	int small = 4096;

	srv_prepare(&s);
	s.conf.requests_per_conn = 1000000;
	srv_listen(&s, tls);
	c = srv_cli(&s);
	setsockopt(c.fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	while (many.len < 32 * 1024 * 1024)
		strbuf_adds(&many, request);
	sent = cli_send_some(&c, many.data, many.len, 300);
	kept = s.served * strlen(request);
	cr_expect_lt(sent, many.len, "everything was taken");
	cr_expect_lt(sent - kept, 9 * 1024 * 1024, "%zu bytes sent, %u served", sent, s.served);
	cr_expect_eq(httpd_in_flight(s.h), 1);
	cli_close(&c);
	loop_drain(s.loop);
	srv_stop(&s);
}

Test(net_httpd_guard, a_client_that_never_reads_is_bounded)
{
	non_reader(false, GET_BIG);
	non_reader(true, GET_BIG);
	non_reader(false, GET_ASYNC);
}

/* Reading had stopped when the oversized head is found: it must go on, or the refusal is reset
 * away. */
Test(net_httpd_guard, an_oversized_head_behind_a_slow_request_is_refused_in_full)
{
	cleanup_strbuf struct strbuf much = STRBUF_INIT;
	struct srv s;
	struct cli c;

	srv_start(&s, false);
	s.async_ms = 30;
	c = srv_cli(&s);
	strbuf_adds(&much, GET_ASYNC "GET / HTTP/1.1\r\n");
	while (much.len < 12 * 1024 * 1024)
		strbuf_adds(&much, "X: y\r\n");
	cr_assert_eq(cli_send_some(&c, much.data, much.len, 2000), much.len);
	cr_expect_eq(cli_status(&c), 201);
	cr_expect_eq(cli_status(&c), 431);
	cr_expect(cli_wait_eof(&c) && !c.reset);
	cli_close(&c);
	srv_stop(&s);
}

Test(net_httpd_guard, out_of_descriptors_pauses_instead_of_spinning)
{
	struct srv s;
	struct cli c[8];
	struct rlimit old, low;
	unsigned turns = 0;
	int top;

	srv_start(&s, false);
	for (unsigned i = 0; i < 8; i++)
		c[i] = cli_open(s.loop, httpd_port(s.h));
	top = dup(0);
	close(top);
	getrlimit(RLIMIT_NOFILE, &old);
	low = old;
	low.rlim_cur = (rlim_t)top + 2;
	setrlimit(RLIMIT_NOFILE, &low);
	for (uint64_t start = clock_boot_ms(); clock_boot_ms() - start < 300; turns++)
		loop_turn(s.loop, 50);
	setrlimit(RLIMIT_NOFILE, &old);
	cr_expect_eq(httpd_connections(s.h), 2);
	cr_expect_lt(turns, 50);
	cr_expect_geq(
		sample("tec_http_refused_connections_total{listener=\"test\",reason=\"accept\"} "),
		1);
	for (unsigned i = 0; i < 8; i++) {
		cli_send(&c[i], GET_PING);
		cr_expect_eq(cli_status(&c[i]), 200);
		cli_close(&c[i]);
	}
	srv_stop(&s);
}

/* ---- TLS */

Test(net_httpd_guard, tls_versions_and_alpn)
{
	static const struct {
		bool ok;
		int min, max;
		const char *alpn;
	} rows[] = {
		{true, TLS1_3_VERSION, TLS1_3_VERSION, NULL},
		{true, TLS1_2_VERSION, TLS1_2_VERSION, NULL},
		{false, TLS1_VERSION, TLS1_VERSION, NULL},
		{false, TLS1_1_VERSION, TLS1_1_VERSION, NULL},
		{true, TLS1_2_VERSION, TLS1_3_VERSION, "\x08http/1.1"},
		{true, TLS1_2_VERSION, TLS1_3_VERSION, "\x02h2\x08http/1.1"},
		{false, TLS1_2_VERSION, TLS1_3_VERSION, "\x02h2"},
		{false, TLS1_2_VERSION, TLS1_2_VERSION, "\x08http/1.0"},
	};
	struct srv s;

	srv_start(&s, true);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct cli c = cli_open(s.loop, httpd_port(s.h));
		bool ok = cli_handshake(&c, rows[i].min, rows[i].max, rows[i].alpn);

		cr_expect_eq(ok, rows[i].ok, "row %zu", i);
		if (ok) {
			cli_send(&c, GET_PING);
			cr_expect_eq(cli_status(&c), 200, "row %zu", i);
		}
		cli_close(&c);
	}
	srv_stop(&s);
}

static void count_lines(enum log_level level, const char *line, void *arg)
{
	if (strstr(line, "TLS handshake failed"))
		++*(unsigned *)arg;
}

Test(net_httpd_guard, garbage_instead_of_a_handshake_is_closed_and_counted)
{
	static const char *const garbage[] = {GET_PING, "\x16\x03\x01\x00\x05zzzzz",
		"\xff\xff\xff\xff\xff\xff\xff", "\x80\x2e\x01\x00\x02",
		"\x15\x03\x01\x00\x02\x02\x28"};
	unsigned lines = 0;
	struct srv s;
	struct cli good;

	log_capture(count_lines, &lines);
	srv_start(&s, true);
	good = srv_cli(&s);
	for (size_t i = 0; i < ARRAY_LEN(garbage) * 4; i++) {
		struct cli c = cli_open(s.loop, httpd_port(s.h));

		cli_send(&c, garbage[i % ARRAY_LEN(garbage)]);
		shutdown(c.fd, SHUT_WR);
		cr_expect(cli_wait_eof(&c), "%zu", i);
		cli_close(&c);
		cli_send(&good, GET_PING);
		cr_expect_eq(cli_status(&good), 200, "an error of one connection reached another");
	}
	cr_expect_eq(
		sample("tec_http_refused_connections_total{listener=\"test\",reason=\"handshake\"} "),
		ARRAY_LEN(garbage) * 4);
	cr_expect_eq(lines, 1, "%u lines", lines);
	cr_expect_eq(ERR_peek_error(), 0);
	cli_close(&good);
	srv_stop(&s);
	log_capture(NULL, NULL);
}

static long serial_of(struct cli *c)
{
	X509 *x = SSL_get1_peer_certificate(c->ssl);
	long serial = ASN1_INTEGER_get(X509_get_serialNumber(x));

	X509_free(x);
	return serial;
}

Test(net_httpd_guard, a_new_certificate_leaves_open_connections_alone)
{
	struct srv s;
	struct cli old, pending, fresh;
	struct tls_ctx *next;

	srv_start(&s, true);
	s.async_ms = 60;
	old = srv_cli(&s);
	pending = srv_cli(&s);
	cli_send(&pending, GET_ASYNC);
	while (s.served == 0)
		loop_turn(s.loop, 1);
	next = srv_make_tls(&s, 2);
	httpd_set_tls(s.h, next);
	tls_ctx_unref(s.tls);
	s.tls = next;
	fresh = srv_cli(&s);
	cr_expect_eq(serial_of(&old), 1);
	cr_expect_eq(serial_of(&fresh), 2);
	cr_expect_eq(cli_status(&pending), 201);
	cli_send(&old, GET_PING);
	cr_expect_eq(cli_status(&old), 200);
	cli_send(&fresh, GET_PING);
	cr_expect_eq(cli_status(&fresh), 200);
	for (unsigned i = 0; i < 20; i++)
		httpd_set_tls(s.h, i % 2 ? s.tls : NULL);
	cli_close(&old);
	cli_close(&pending);
	cli_close(&fresh);
	srv_stop(&s);
}

Test(net_httpd_guard, tls_ends_plain_connections_whatever_they_wait_for)
{
	struct srv s;
	struct cli c[4];

	srv_start(&s, false);
	for (unsigned i = 0; i < 4; i++)
		c[i] = srv_cli(&s);
	cli_send(&c[0], GET_PING);
	cr_assert_eq(cli_status(&c[0]), 200);
	cli_send(&c[1], "GET /ping HTTP/1.1\r\nHo");
	cli_send(&c[2], "PUT /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nab");
	cli_send(&c[3], GET_ASYNC);
	while (s.served < 2)
		loop_turn(s.loop, 1);
	loop_drain(s.loop);
	s.tls = srv_make_tls(&s, 1);
	httpd_set_tls(s.h, s.tls);
	cr_expect_eq(httpd_connections(s.h), 0);
	cr_expect_eq(s.aborted, 1);
	cr_expect_eq(s.gone, 1);
	for (unsigned i = 0; i < 4; i++) {
		cr_expect(cli_wait_eof(&c[i]) && c[i].in.len == 0);
		cli_close(&c[i]);
	}
	cr_expect_eq(ask(&s, GET_PING), 200, "over TLS");
	srv_stop(&s);
}

Test(net_httpd_guard, nobody_is_let_in_before_it_is_known_what_to_speak)
{
	struct srv s;
	struct cli c;

	srv_start(&s, false);
	httpd_set_waiting(s.h, "starting");
	c = srv_cli(&s);
	cli_send(&c, GET_PING);
	cr_expect(cli_wait_eof(&c) && c.in.len == 0);
	cli_close(&c);
	cr_expect_eq(s.served, 0);
	cr_expect_eq(
		sample("tec_http_refused_connections_total{listener=\"test\",reason=\"starting\"} "),
		1);
	httpd_set_waiting(s.h, NULL);
	cr_expect_eq(ask(&s, GET_PING), 200);
	srv_stop(&s);
}

Test(net_httpd_guard, listens_on_more_than_one_address)
{
	struct err err = ERR_INIT;
	struct srv s;

	srv_start(&s, false);
	for (unsigned i = 0; i < 3; i++)
		cr_expect_eq(httpd_listen(s.h, "127.0.0.1:0", &err), 0, "%s", err.text);
	cr_expect_eq(httpd_listen(s.h, "127.0.0.1:0", &err), -1);
	err_clear(&err);
	cr_expect_eq(httpd_listen(s.h, "localhost:80", &err), -1);
	cr_expect_eq(err.kind, ERR_INVALID);
	cr_expect_eq(ask(&s, GET_PING), 200);
	srv_stop(&s);
}

/* A read costs libevent a chain of 32 KiB however few its bytes: they must not be kept as they
 * come. */
Test(net_httpd_guard, a_byte_per_record_costs_a_byte_of_memory)
{
	struct srv s;
	struct cli c;
	size_t before, grown;

	srv_start(&s, true);
	c = srv_cli(&s);
	cli_send(&c, GET_PING);
	cr_assert_eq(cli_status(&c), 200);
	cli_send(&c, "GET /");
	loop_drain(s.loop);
	before = mallinfo2().uordblks + mallinfo2().hblkhd;
	for (unsigned i = 0; i < 2000; i++) {
		cli_send(&c, "a");
		loop_drain(s.loop);
	}
	grown = mallinfo2().uordblks + mallinfo2().hblkhd - before;
	cr_expect_lt(grown, 64 * 1024, "%zu bytes for 2,000", grown);
	cli_close(&c);
	srv_stop(&s);
}

/* Replies that the socket refuses at first go out later, in order and whole. */
static void full_socket(bool tls)
{
	cleanup_strbuf struct strbuf many = STRBUF_INIT;
	struct srv s;
	struct cli c;
	size_t sent;
	unsigned n;

	srv_prepare(&s);
	s.conf.requests_per_conn = 1000000;
	srv_listen(&s, tls);
	c = srv_cli(&s);
	for (n = 0; many.len < 32 * 1024 * 1024; n++)
		strbuf_addf(&many,
			"PUT /echo HTTP/1.1\r\n" HOST "Content-Length: 9000\r\n\r\n%09000u", n);
	sent = cli_send_some(&c, many.data, many.len, 300);
	cr_expect_lt(sent, many.len, "the server's socket was never full");
	n = (unsigned)(sent / (many.len / n));
	cr_expect_lt(s.served, n, "all of %u were served", n);
	for (unsigned i = 0; i < n; i++) {
		struct cli_reply r;

		cr_assert(cli_reply(&c, &r, false), "%u of %u", i, n);
		cr_assert_eq(r.status, 200);
		cr_assert_eq(r.body_len, 9000);
		cr_assert_eq(strtoul(r.body, NULL, 10), i);
		cli_reply_fini(&r);
	}
	cli_close(&c);
	srv_stop(&s);
}

Test(net_httpd_guard, replies_to_a_slow_reader_stay_whole)
{
	full_socket(false);
	full_socket(true);
}

Test(net_httpd_guard, garbage_right_behind_the_handshake_closes)
{
	struct srv s;
	struct cli c;

	srv_start(&s, true);
	c = srv_cli(&s); /* the server has not seen the end of the handshake */
	cr_assert_eq(send(c.fd, "\x17\x03\x03\x00\x05zzzzz", 10, MSG_NOSIGNAL), 10);
	cr_expect(cli_wait_eof(&c));
	loop_drain(s.loop);
	cr_expect_eq(httpd_connections(s.h), 0);
	cr_expect_eq(ERR_peek_error(), 0);
	cli_close(&c);
	srv_stop(&s);
}

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

/* Whatever comes in whatever pieces, every connection ends and the next one is served. */
Test(net_httpd_guard, random_pieces_of_requests_do_no_harm)
{
	static const char *const pieces[] = {GET_PING, GET_ASYNC, GET_BIG, "GET /p", "\r\n",
		"\r\n\r\n", "PUT /echo HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\n", "123456789",
		"\xff\x01", "Expect: 100-continue\r\n", "Connection: close\r\n", "HTTP/1.1\r\n",
		HOST, "GET /ping HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n"};
	uint32_t rnd = 7;
	struct srv s;

	srv_prepare(&s);
	s.conf.requests_per_conn = 5;
	s.conf.request_ms = 300;
	s.async_ms = 1;
	srv_listen(&s, false);
	for (unsigned i = 0; i < 400; i++) {
		struct cli c = srv_cli(&s);

		for (unsigned n = next_random(&rnd) % 8; n > 0; n--) {
			const char *piece = pieces[next_random(&rnd) % ARRAY_LEN(pieces)];
			size_t len = strlen(piece);

			if (next_random(&rnd) % 4 == 0)
				len = next_random(&rnd) % len + 1;
			cli_send_some(&c, piece, len, 3);
			if (next_random(&rnd) % 2)
				cli_turn(&c);
		}
		if (next_random(&rnd) % 2)
			shutdown(c.fd, SHUT_WR);
		for (unsigned n = next_random(&rnd) % 4; n > 0; n--)
			cli_turn(&c);
		cli_close(&c);
	}
	cr_expect_eq(ask(&s, GET_PING), 200);
	for (uint64_t start = clock_boot_ms(); httpd_connections(s.h) > 0 && !cli_late(start);)
		loop_turn(s.loop, 10);
	cr_expect_eq(httpd_connections(s.h), 0);
	cr_expect_geq(s.served, 50);
	srv_stop(&s);
}
