/* SPDX-License-Identifier: MIT */
/*
 * The guard as a state machine: the input is a program of three clients over real sockets and of
 * what happens to the listener meanwhile (turns, time, replies that come late, certificates,
 * closing, draining). A byte is a step: its low half says what, its high half who or which.
 * Whatever happens, no handler runs in plain text when TLS is to be spoken, limits hold, each
 * client sees nothing but whole replies in a row, and all ends when the clients are gone.
 */
#include "config.h"

#include <stdint.h>

#include "net/net_testing.h"
#include "tec/base/log.h"
#include "tec/loop/signal.h"
#include "tec/net/httpd.h"

#define CLIENTS 3
#define MAX     2 /* one place fewer than clients, so that they evict one another */
#define CALLS   8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct call {
	struct op op;
	struct httpd_req *req;
	bool waits;
};

struct play {
	struct loop *loop;
	struct httpd *h;
	struct cli c[CLIENTS];
	bool open[CLIENTS];
	struct call calls[CALLS];
	bool tls, closed, waiting, drained;
};

static struct play play;
static struct tls_ctx *identity;

/* ---- handlers */

static void see(struct httpd_req *r)
{
	size_t len;

	httpd_req_body(r, &len);
	if (httpd_req_path(r)[0] != '/' || httpd_req_target(r)[0] != '/' || len > 64)
		DIE("path or body");
	if (play.closed || (play.tls && !httpd_req_is_tls(r)))
		DIE("served although %s", play.closed ? "closed" : "TLS is to be spoken");
	if (httpd_req_header(r, "Transfer-Encoding") || httpd_req_ms_left(r) > 1000)
		DIE("header or deadline");
}

static void at_once(struct httpd_req *r, void *arg)
{
	size_t len;
	const char *body = httpd_req_body(r, &len);

	see(r);
	httpd_reply(r, 200, "text/plain", body, len);
}

static void on_abort(struct op *op)
{
	struct call *c = (struct call *)op;

	c->waits = false;
}

static void later(struct httpd_req *r, void *arg)
{
	see(r);
	for (size_t i = 0; i < CALLS; i++) {
		struct call *c = &play.calls[i];

		if (c->waits)
			continue;
		c->waits = true;
		c->req = r;
		op_begin(&c->op, httpd_req_ops(r), on_abort);
		return;
	}
	DIE("more requests under way than connections");
}

static void answer_calls(void)
{
	for (size_t i = 0; i < CALLS; i++) {
		struct call *c = &play.calls[i];

		if (!c->waits)
			continue;
		if (play.tls && !httpd_req_is_tls(c->req))
			DIE("an answer in plain text");
		c->waits = false;
		op_finish(&c->op);
		httpd_reply(c->req, 201, "text/plain", "late", 4);
	}
}

/* ---- steps */

static void receive(unsigned i)
{
	if (play.open[i])
		cli_receive(&play.c[i]);
}

static void open_client(unsigned i)
{
	struct linger reset = {.l_onoff = 1}; /* or all ports would be in TIME_WAIT */

	if (play.open[i] || play.drained)
		return;
	play.c[i] = cli_open_from(play.loop, httpd_port(play.h), 1 + i);
	setsockopt(play.c[i].fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	play.open[i] = true;
}

static void send_bytes(unsigned i, const void *data, size_t len)
{
	open_client(i);
	if (play.open[i])
		(void)!send(play.c[i].fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Replies one behind the other; the last may be cut off where the connection was. */
static void check_replies(const struct cli *c)
{
	const char *p = c->in.data, *end = p + c->in.len;

	while (p < end) {
		const char *head = memmem(p, (size_t)(end - p), "\r\n\r\n", 4), *length;
		size_t body = 0;

		if ((size_t)(end - p) >= 9 && memcmp(p, "HTTP/1.1 ", 9) != 0)
			DIE("no reply begins here: %.40s", p);
		if (!head)
			return;
		length = memmem(p, (size_t)(head - p), "Content-Length: ", 16);
		if (length)
			body = strtoul(length + 16, NULL, 10);
		p = head + 4;
		if ((size_t)(end - p) < 9 || memcmp(p, "HTTP/1.1 ", 9) != 0) /* else: to HEAD */
			p += body < (size_t)(end - p) ? body : (size_t)(end - p);
	}
}

static void close_client(unsigned i)
{
	if (!play.open[i])
		return;
	receive(i);
	if (play.c[i].in.len > 0)
		check_replies(&play.c[i]);
	cli_close(&play.c[i]);
	play.open[i] = false;
}

static void send_canned(unsigned i, unsigned which)
{
	static const char *const canned[] = {
		"GET /now HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /late HTTP/1.1\r\nHost: a\r\n\r\n",
		"PUT /now HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n",
		"HEAD /now HTTP/1.1\r\nHost: a\r\n\r\n",
		"12345",
		"\r\n",
		"PUT /now HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
		"GET http://a/two HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
	};
	const char *text = canned[which % ARRAY_LEN(canned)];

	send_bytes(i, text, strlen(text));
}

static void change_listener(unsigned which)
{
	switch (which % 4) {
	case 0:
		play.tls = !play.tls;
		httpd_set_tls(play.h, play.tls ? identity : NULL);
		return;
	case 1:
		play.closed = !play.closed;
		httpd_set_closed(play.h, play.closed ? "closed" : NULL);
		return;
	case 2:
		play.waiting = !play.waiting;
		httpd_set_waiting(play.h, play.waiting ? "starting" : NULL);
		return;
	case 3:
		play.drained = true;
		httpd_drain(play.h);
		return;
	}
}

/* Returns how many bytes of the input the step took besides its own. */
static size_t step(uint8_t op, const uint8_t *rest, size_t left)
{
	unsigned high = op >> 4, who = high % CLIENTS;
	size_t len = high < left ? high : left;

	switch (op & 15) {
	case 0:
		open_client(who);
		return 0;
	case 1:
	case 2:
		send_bytes((op & 15) - 1, rest, len);
		return len;
	case 3:
	case 4:
	case 5:
		send_canned((op & 15) - 3, high);
		return 0;
	case 6:
	case 7:
		loop_drain(play.loop);
		return 0;
	case 8:
		loop_turn(play.loop, 0);
		return 0;
	case 9:
		loop_advance(play.loop, high * 60);
		return 0;
	case 10:
		if (play.open[who])
			shutdown(play.c[who].fd, SHUT_WR);
		return 0;
	case 11:
		close_client(who);
		return 0;
	case 12:
		answer_calls();
		return 0;
	case 13:
		receive(who);
		return 0;
	default:
		change_listener(high);
		return 0;
	}
}

/* ---- a play */

static void drop_line(enum log_level level, const char *line, void *arg)
{
}

static void begin(void)
{
	static const struct httpd_route routes[] = {
		{"/now", HTTPD_GET | HTTPD_HEAD | HTTPD_PUT, .fn = at_once},
		{"/late", HTTPD_GET, .fn = later},
		{"/two", HTTPD_GET, .fn = later, .at_once = 1},
	};
	struct httpd_conf conf = httpd_conf_default;
	struct err err = ERR_INIT;

	memset(&play, 0, sizeof(play));
	clock_fake_start(1000000, 1700000000);
	play.loop = loop_new();
	conf.name = "fuzz";
	conf.limits = (struct httphead_limits){
		.head = 512, .body = 64, .lines = 8, .line = 200, .target = 100};
	conf.request_ms = 1000;
	conf.idle_ms = 500;
	conf.requests_per_conn = 4;
	conf.max_connections = MAX;
	conf.yield_ms = 100;
	conf.routes = routes;
	conf.n_routes = ARRAY_LEN(routes);
	conf.wipe = true;
	play.h = httpd_new(play.loop, &conf);
	if (httpd_listen(play.h, "127.0.0.1:0", &err) < 0)
		DIE("%s", err.text);
}

static void finish(void)
{
	for (unsigned i = 0; i < CLIENTS; i++)
		close_client(i);
	loop_advance(play.loop, 5000);
	if (httpd_connections(play.h) != 0)
		DIE("%zu connections outlived their clients", httpd_connections(play.h));
	for (size_t i = 0; i < CALLS; i++)
		if (play.calls[i].waits)
			DIE("a call outlived its request");
	httpd_free(play.h);
	loop_free(play.loop);
	if (ERR_peek_error() != 0)
		DIE("OpenSSL's error queue is not empty");
	clock_fake_stop();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!identity) {
		struct testing_pem pem = testing_make_pem(1, 3600);
		struct err err = ERR_INIT;

		loop_ignore_sigpipe();
		log_capture(drop_line, NULL);
		identity = tls_ctx_new(pem.cert, strlen(pem.cert), pem.key, strlen(pem.key), &err);
		testing_pem_fini(&pem);
		if (!identity)
			DIE("%s", err.text);
	}
	begin();
	for (size_t i = 0, steps = 0; i < size && steps < 200; steps++) {
		i += step(data[i], data + i + 1, size - i - 1) + 1;
		if (httpd_connections(play.h) > MAX || httpd_in_flight(play.h) > MAX)
			DIE("more than %d connections", MAX);
	}
	finish();
	return 0;
}
