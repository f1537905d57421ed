/* SPDX-License-Identifier: MIT */
/*
 * The HTTP/2 client against a server of which the input is every byte: a program of requests,
 * cancellations, time and frames, over a socket pair. A byte is a step: its low half says what, its
 * high half which or how much. Whatever happens, each request ends exactly once or was cancelled,
 * streams get data only while they are open, and nothing is left in the end.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../src/net/h2c_internal.h"
#include "tec/base/clock.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"

#define CALLS  8
#define ORIGIN "http://127.0.0.1:1" /* refuses what is dialled */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct call {
	struct op *op; /* NULL: at rest */
	bool running;
	unsigned data_calls;
	char *body;
	size_t body_len;
};

static struct play {
	struct h2c *h2;
	struct op_scope ops;
	struct call calls[CALLS];
	int fd; /* the server's end, -1: none */
} play;
static struct loop *loop;
static struct httpc *http;

/* ---- requests */

static void end(struct call *c)
{
	if (!c->running)
		DIE("a request ended twice");
	c->running = false;
	if (c->body)
		secret_wipe(c->body, c->body_len);
	free(steal_ptr(&c->body));
}

static void on_done(void *arg, const struct err *err, const struct httpc_answer *a)
{
	struct call *c = arg;

	if (!err_is_set(err) && (a->status < 200 || a->status > 599))
		DIE("status %d", a->status);
	if (a->body[a->body_len] != '\0' || a->body_len > HTTPC_RESULT_MAX)
		DIE("body of %zu", a->body_len);
	end(c);
}

static int on_data(void *arg, const void *data, size_t len, struct err *err)
{
	struct call *c = arg, *other = &play.calls[len % CALLS];

	if (!c->running || !len)
		DIE("data for a stream that is not open");
	if (++c->data_calls % 7 == 6)
		return err_set(err, ERR_INVALID, "enough");
	if (c->data_calls % 5 == 4 && other->op) {
		op_cancel(&other->op); /* maybe itself */
		end(other);
	}
	return 0;
}

static void start(unsigned which)
{
	static const struct httpc_header headers[] = {{"Accept", "a"}, {"User-Agent", "fuzz"}};
	struct call *c = &play.calls[which % CALLS];
	struct httpc_request req = {.method = which & 1 ? "POST" : "GET",
		.url = ORIGIN "/path?query",
		.headers = headers,
		.n_headers = ARRAY_LEN(headers),
		.bearer = "token",
		.deadline_ms = which & 2 ? 5000 : 0,
		.silence_ms = 3000,
		.stream = which & 4};

	if (c->running)
		return;
	memset(c, 0, sizeof(*c));
	c->running = true;
	if (which & 1) {
		c->body_len = which & 8 ? 300000 : 10;
		req.body = c->body = xcalloc(1, c->body_len);
		req.body_len = c->body_len;
	}
	(void)op_hold(&c->op,
		h2c_start(play.h2, &play.ops, &req, which & 4 ? on_data : NULL, on_done, c));
}

static void cancel(unsigned which)
{
	struct call *c = &play.calls[which % CALLS];

	if (!c->op)
		return;
	op_cancel(&c->op);
	end(c);
}

/* ---- the server */

static void hang_up(void)
{
	if (play.fd >= 0)
		close(play.fd);
	play.fd = -1;
}

static void connect_pair(void)
{
	int fd[2];

	hang_up();
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fd) < 0)
		DIE("socketpair: %d", errno);
	play.fd = fd[1];
	h2c_adopt(play.h2, ORIGIN, fd[0]);
}

static void say(const void *data, size_t len)
{
	if (play.fd >= 0 && len)
		(void)!send(play.fd, data, len, MSG_NOSIGNAL);
}

static void hear(void)
{
	char buf[16384];

	while (play.fd >= 0 && recv(play.fd, buf, sizeof(buf), 0) > 0)
		;
}

static void say_frame(unsigned type, unsigned flags, unsigned stream, const uint8_t *p, size_t len)
{
	const uint8_t head[9] = {
		0, 0, (uint8_t)len, (uint8_t)type, (uint8_t)flags, 0, 0, 0, (uint8_t)stream};

	say(head, sizeof(head));
	say(p, len);
}

static void say_canned(unsigned which)
{
	static const uint8_t ok[] = {0x88}, status[] = {0x08, 3, '4', '0', '4'},
			     places[] = {0, 3, 0, 0, 0, 2}, away[8] = {0, 0, 0, 3},
			     refused[] = {0, 0, 0, 7}, window[] = {0, 4, 0, 0, 0, 1};
	unsigned stream = which / 2 * 2 + 1;

	switch (which % 8) {
	case 0:
		say_frame(NGHTTP2_SETTINGS, 0, 0, NULL, 0);
		break;
	case 1:
		say_frame(NGHTTP2_SETTINGS, 0, 0, places, sizeof(places));
		break;
	case 2:
		say_frame(NGHTTP2_HEADERS, 4, stream, ok, sizeof(ok));
		break;
	case 3:
		say_frame(NGHTTP2_HEADERS, 5, stream - 2, status, sizeof(status));
		break;
	case 4:
		say_frame(NGHTTP2_DATA, 1, stream, ok, sizeof(ok));
		break;
	case 5:
		say_frame(NGHTTP2_GOAWAY, 0, 0, away, sizeof(away));
		break;
	case 6:
		say_frame(NGHTTP2_RST_STREAM, 0, stream, refused, sizeof(refused));
		break;
	case 7:
		say_frame(NGHTTP2_SETTINGS, 0, 0, window, sizeof(window));
		break;
	}
}

/* Returns how many bytes of the input the step took besides its own. */
static size_t step(uint8_t op, const uint8_t *rest, size_t left)
{
	unsigned high = op >> 4;
	size_t len;

	switch (op & 15) {
	case 0:
	case 1:
		start(high);
		return 0;
	case 2:
		cancel(high);
		return 0;
	case 3:
	case 4:
		len = high * 4 < left ? high * 4 : left;
		say(rest, len);
		return len;
	case 5:
	case 6:
	case 7:
		if (left < 3)
			return 0;
		len = high < left - 3 ? high : left - 3;
		say_frame(rest[0] % 11, rest[1], rest[2], rest + 3, len);
		return len + 3;
	case 8:
	case 9:
		say_canned(high);
		return 0;
	case 10:
		loop_turn(loop, 0);
		return 0;
	case 11:
		loop_drain(loop);
		return 0;
	case 12:
		hear();
		return 0;
	case 13:
		loop_advance(loop, high * high * 100);
		return 0;
	case 14:
		for (unsigned i = 0; left && i < high * 20; i++)
			say_frame(rest[0] % 11, 0, 0, (const uint8_t *)"12345678", 8);
		return left ? 1 : 0;
	default:
		if (high < 4)
			connect_pair();
		else if (high < 8)
			hang_up();
		return 0;
	}
}

/* ---- a play */

static void drop_line(enum log_level level, const char *line, void *arg)
{
}

static void finish(void)
{
	hang_up();
	loop_advance(loop, 20000); /* queued requests get no connection */
	for (unsigned i = 0; i < CALLS; i++)
		if (play.calls[i].running)
			DIE("request %u has not ended", i);
	h2c_free(play.h2);
	loop_drain(loop);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!loop) {
		log_capture(drop_line, NULL);
		clock_fake_start(1000000, 1700000000);
		loop = loop_new();
		http = httpc_new(loop);
	}
	memset(&play, 0, sizeof(play));
	play.fd = -1;
	play.h2 = h2c_new(loop, http);
	connect_pair();
	for (size_t i = 0, steps = 0; i < size && steps < 200; steps++)
		i += step(data[i], data + i + 1, size - i - 1) + 1;
	finish();
	return 0;
}
