/* SPDX-License-Identifier: MIT */
/* Large bodies: which are not waited for, and what they take of memory together. */
#include "config.h"

#include "httpd_fixture.h"

#define MIB     ((size_t)1 << 20)
#define REFUSED "tec_http_refused_bodies_total{listener=\"test\"} "
#define HELD    "tec_http_body_bytes{sender=\"%s\"} "

/* By a header that a client would not send. */
static enum httpd_standing standing(struct httpd_req *req, void *arg)
{
	const char *x = httpd_req_header(req, "X-Standing");

	return !x ? HTTPD_STRANGER : str_eq(x, "known") ? HTTPD_KNOWN : HTTPD_REFUSED;
}

static void start(struct srv *s)
{
	srv_prepare(s);
	s->conf.limits.body = 8 * MIB;
	s->conf.limits.chunked = true;
	s->conf.standing = standing;
	srv_listen(s, false);
}

static double held(const char *sender)
{
	cleanup_free char *line = xasprintf(HELD, sender);
	double n = sample(line);

	return n < 0 ? 0 : n;
}

/* A POST of so many bytes from 127.0.0.SOURCE, with more lines, of which `sent` bytes are sent. */
static struct cli post(struct srv *s, unsigned source, const char *more, size_t len, size_t sent)
{
	struct cli c = cli_open_from(s->loop, httpd_port(s->h), source);
	cleanup_free char *head = xasprintf(
		"POST /echo HTTP/1.1\r\n" HOST "%sContent-Length: %zu\r\n\r\n", more, len);
	cleanup_free char *body = xcalloc(1, sent + 1);
	const char *sender = *more ? "known" : "stranger";
	double before = held(sender), refused = sample(REFUSED);
	uint64_t begin = clock_boot_ms();

	cli_send(&c, head);
	cr_assert_eq(cli_send_some(&c, body, sent, 2000), sent);
	while (sent < len && held(sender) < before + (double)sent && sample(REFUSED) == refused &&
		!cli_late(begin))
		cli_turn(&c);
	return c;
}

static void end(struct cli *c, int status)
{
	struct cli_reply r;

	cr_assert(cli_reply(c, &r, false));
	cr_expect_eq(r.status, status, "%d", r.status);
	cr_expect_eq(status == 503, cli_header(&r, "Retry-After") != NULL);
	cli_reply_fini(&r);
	cli_close(c);
}

Test(net_httpd_body, a_request_that_is_refused_anyway_is_refused_from_its_head)
{
	static const struct {
		const char *head;
		int status;
	} t[] = {
		{"POST /nothing HTTP/1.1\r\n" HOST "Content-Length: 100000\r\n\r\n", 404},
		{"POST /nothing HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n", 404},
		{"POST /ping HTTP/1.1\r\n" HOST "Content-Length: 100000\r\n\r\n", 405},
		{"PUT /json HTTP/1.1\r\n" HOST
		 "Content-Type: text/plain\r\nContent-Length: 100000\r\n\r\n",
			415},
		{"POST /echo HTTP/1.1\r\n" HOST "Content-Length: 8388609\r\n\r\n", 413},
		{"POST /nothing HTTP/1.1\r\n" HOST
		 "Expect: 100-continue\r\nContent-Length: 100000\r\n\r\n",
			404},
	};
	struct srv s;

	start(&s);
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		cr_expect_eq(ask(&s, t[i].head), t[i].status, "%s", t[i].head);
	cr_expect_eq(s.served, 0);
	srv_stop(&s);
}

/* The handler refuses; what comes of the body is neither read nor the next request. */
Test(net_httpd_body, a_sender_who_is_refused_is_served_without_the_body)
{
	struct srv s;
	struct cli c;
	struct cli_reply r;

	start(&s);
	c = cli_open(s.loop, httpd_port(s.h));
	cli_send(&c, "POST /echo HTTP/1.1\r\n" HOST "X-Standing: refused\r\n"
		     "Content-Length: 100000\r\n\r\n" GET_PING);
	cr_assert(cli_reply(&c, &r, false));
	cr_expect_eq(r.body_len, 0);
	cr_expect_str_eq(cli_header(&r, "Connection"), "close");
	cr_expect(cli_wait_eof(&c) && !c.reset);
	cr_expect_eq(s.served, 1);
	cli_reply_fini(&r);
	cli_close(&c);
	srv_stop(&s);
}

Test(net_httpd_body, a_small_body_keeps_its_connection)
{
	struct srv s;
	struct cli c;

	start(&s);
	c = cli_open(s.loop, httpd_port(s.h));
	cli_send(&c, "POST /nothing HTTP/1.1\r\n" HOST "Content-Length: 4\r\n\r\n");
	cli_send(&c, "body" GET_PING);
	cr_expect_eq(cli_status(&c), 404);
	cr_expect_eq(cli_status(&c), 200);
	cli_close(&c);
	srv_stop(&s);
}

Test(net_httpd_body, of_strangers_the_source_with_the_most_bodies_loses_one)
{
	struct srv s;
	struct cli greedy[5], c;

	start(&s);
	for (size_t i = 0; i < 5; i++)
		greedy[i] = post(&s, 2, "", 2 * MIB, MIB * 3 / 2);
	cr_expect_eq(sample(REFUSED), -1);
	c = post(&s, 3, "", MIB, MIB);
	end(&c, 200);
	cr_expect_eq(sample(REFUSED), 1);
	end(&greedy[0], 503);
	c = post(&s, 2, "", MIB * 5 / 2, MIB * 5 / 2);
	end(&c, 200);
	end(&greedy[1], 503);
	for (size_t i = 2; i < 5; i++)
		cli_close(&greedy[i]);
	c = post(&s, 3, "", 8 * MIB, 8 * MIB);
	end(&c, 200);
	srv_stop(&s);
}

/* As large as one may be, among four sources that hold all there is and send nothing more. */
Test(net_httpd_body, one_large_upload_is_not_starved)
{
	struct srv s;
	struct cli slow[4], c;

	start(&s);
	for (unsigned i = 0; i < 4; i++)
		slow[i] = post(&s, 10 + i, "", 8 * MIB, 2 * MIB);
	c = post(&s, 2, "", 8 * MIB, 8 * MIB);
	end(&c, 200);
	for (unsigned i = 0; i < 4; i++)
		end(&slow[i], 503);
	cr_expect_eq(sample(REFUSED), 4);
	srv_stop(&s);
}

Test(net_httpd_body, known_senders_have_their_own_part)
{
	static const char known[] = "X-Standing: known\r\n";
	struct srv s;
	struct cli strangers[4], k[5], c;

	start(&s);
	for (unsigned i = 0; i < 4; i++)
		strangers[i] = post(&s, 2, "", 8 * MIB, 2 * MIB);
	for (unsigned i = 0; i < 4; i++)
		k[i] = post(&s, 3, known, 8 * MIB, 8 * MIB - 1);
	k[4] = post(&s, 4, known, MIB, 32 * 1024);
	end(&k[4], 503);
	c = post(&s, 5, known, 5, 5);
	end(&c, 200);
	cli_send(&k[0], "x");
	end(&k[0], 200);
	c = post(&s, 4, known, 8 * MIB, 8 * MIB);
	end(&c, 200);
	cr_expect_eq(sample(REFUSED), 1);
	for (unsigned i = 1; i < 4; i++)
		cli_close(&k[i]);
	for (unsigned i = 0; i < 4; i++)
		cli_close(&strangers[i]);
	srv_stop(&s);
}
