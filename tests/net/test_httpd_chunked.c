/* SPDX-License-Identifier: MIT */
/* Chunked bodies over real sockets, on a server that takes them. */
#include "config.h"

#include "httpd_fixture.h"

#define CHUNKED "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"

static void start(struct srv *s, uint32_t request_ms)
{
	srv_prepare(s);
	s->conf.limits.chunked = true;
	s->conf.wipe = true;
	if (request_ms)
		s->conf.request_ms = request_ms;
	srv_listen(s, false);
}

static void expect_echo(struct cli *c, const char *want)
{
	struct cli_reply r;

	cr_assert(cli_reply(c, &r, false));
	cr_expect_eq(r.status, 200);
	cr_expect_eq(r.body_len, strlen(want), "%zu", r.body_len);
	cr_expect(r.body_len == strlen(want) && memcmp(r.body, want, r.body_len) == 0);
	cli_reply_fini(&r);
}

/* Each body is its content, and the next request begins right behind it: at once and byte by byte. */
Test(net_httpd_chunked, requests_one_behind_the_other)
{
	static const char all[] =
		CHUNKED "2\r\nhi\r\n6\r\n there\r\n0\r\n\r\n" CHUNKED "0\r\n\r\n" GET_PING CHUNKED
			"1\r\n!\r\n0\r\n\r\n"
			"POST /echo HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nok";
	struct srv s;

	start(&s, 0);
	for (unsigned step = 0; step < 2; step++) {
		struct cli c = srv_cli(&s);

		for (size_t i = 0; step && i < sizeof(all) - 1; i++) {
			cli_send_some(&c, all + i, 1, 2000);
			cli_turn(&c);
		}
		if (!step)
			cli_send(&c, all);
		expect_echo(&c, "hi there");
		expect_echo(&c, "");
		cr_expect_eq(cli_status(&c), 200);
		expect_echo(&c, "!");
		expect_echo(&c, "ok");
		cli_close(&c);
	}
	srv_stop(&s);
}

Test(net_httpd_chunked, hostile_bodies_end_the_connection)
{
	static const struct {
		int status;
		const char *request;
	} rows[] = {
		{400, CHUNKED "2;a=b\r\nhi\r\n0\r\n\r\n" GET_PING},
		{400, CHUNKED "0\r\nHost: b\r\n\r\n" GET_PING},
		{400, CHUNKED "2\nhi\n0\n\n" GET_PING},
		{400, CHUNKED "2\r\nhi!\r\n0\r\n\r\n" GET_PING},
		{413, CHUNKED "4001\r\n" GET_PING},
		{413, CHUNKED "fffffffffffffffe\r\n" GET_PING},
		{400, "POST /echo HTTP/1.1\r\n" HOST
		      "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n" GET_PING},
		{400, "POST /echo HTTP/1.1\r\n" HOST
		      "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" GET_PING},
		{501, "POST /echo HTTP/1.1\r\n" HOST
		      "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" GET_PING},
	};
	struct srv s;

	start(&s, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct cli c = srv_cli(&s);

		cli_send(&c, rows[i].request);
		cr_expect_eq(cli_status(&c), rows[i].status, "%zu", i);
		cr_expect(cli_wait_eof(&c) && c.in.len == 0, "%zu: nothing behind it is served", i);
		cli_close(&c);
	}
	cr_expect_eq(s.served, 0);
	srv_stop(&s);
}

/* In sum, not only at once; and a body that never ends has a request's time. */
Test(net_httpd_chunked, many_small_chunks_are_bounded)
{
	cleanup_strbuf struct strbuf many = STRBUF_INIT;
	struct srv s;
	struct cli c;

	start(&s, 0);
	strbuf_adds(&many, CHUNKED);
	for (unsigned i = 0; i < 16385; i++)
		strbuf_adds(&many, "1\r\nx\r\n");
	c = srv_cli(&s);
	cli_send(&c, many.data);
	cr_expect_eq(cli_status(&c), 413);
	cli_close(&c);
	srv_stop(&s);
}

Test(net_httpd_chunked, a_body_that_does_not_end_gets_408)
{
	struct srv s;
	struct cli c;

	start(&s, 80);
	c = srv_cli(&s);
	cli_send(&c, CHUNKED "2\r\nhi\r\n");
	cr_expect_eq(cli_status(&c), 408);
	cr_expect(cli_wait_eof(&c) && !c.reset);
	cr_expect_eq(s.served, 0);
	cli_close(&c);
	srv_stop(&s);
}
