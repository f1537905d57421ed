/* SPDX-License-Identifier: MIT */
/* h2c with a hostile or broken server: cut off, altered, wrong frames of every kind, floods. */
#include "config.h"

#include "net/h2c_testing.h"

TestSuite(h2c_hostile, .init = h2s_setup, .fini = h2s_teardown, .timeout = 120);

/* ---- bytes */

static void put_frame(struct strbuf *b, unsigned type, unsigned flags, uint32_t stream,
	const void *payload, size_t len)
{
	const char head[9] = {(char)(len >> 16), (char)(len >> 8), (char)len, (char)type,
		(char)flags, (char)(stream >> 24), (char)(stream >> 16), (char)(stream >> 8),
		(char)stream};

	strbuf_add(b, head, sizeof(head));
	if (len)
		strbuf_add(b, payload, len);
}

#define END_STREAM  NGHTTP2_FLAG_END_STREAM
#define END_HEADERS NGHTTP2_FLAG_END_HEADERS

/* A server of which the test writes every byte; it began well, and has our request as stream 1. */
static struct h2s_conn *begin(struct res *r)
{
	struct h2s_conn *k = h2s_plain(true);

	put_frame(&k->out, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
	h2_get("/x", NULL, false, r);
	h2s_turns(5);
	cr_assert_not(r->done);
	return k;
}

/* ---- an exchange, cut off and altered at every byte */

#define PARTS 3

struct end {
	unsigned n;
	struct err err;
	int status;
};

static int take_data(void *arg, const void *data, size_t len, struct err *err)
{
	return 0;
}

static void on_end(void *arg, const struct err *err, const struct httpc_answer *a)
{
	struct end *e = arg;

	e->n++;
	e->err = *err;
	e->status = a->status;
}

static void exchange(struct end e[PARTS])
{
	static const char *const urls[PARTS] = {
		"http://test/echo", "http://test/ok", "http://test/status/404"};

	for (int i = 0; i < PARTS; i++) {
		struct httpc_request req = {.method = i ? "GET" : "POST",
			.url = urls[i],
			.body = i ? NULL : "body",
			.body_len = i ? 0 : 4,
			.deadline_ms = 20000};

		(void)h2c_start(h2, &ops, &req, i == 1 ? take_data : NULL, on_end, &e[i]);
	}
}

static struct strbuf record_exchange(void)
{
	struct strbuf record = STRBUF_INIT;
	struct end r[PARTS] = {0};

	h2s.record = &record;
	h2s_plain(false);
	exchange(r);
	h2s_turns(20);
	h2s.record = NULL;
	cr_assert_gt(record.len, 100);
	return record;
}

/* Its SETTINGS first: before them nothing is asked. */
static void replay(struct h2s_conn *k, const char *data, size_t len)
{
	size_t first = len < 9 ? len : 9;

	strbuf_add(&k->out, data, first);
	h2s_turns(4);
	strbuf_add(&k->out, data + first, len - first);
	h2s_turns(4);
}

static void expect_end(const struct end r[PARTS], bool whole, size_t at)
{
	for (int i = 0; i < PARTS; i++) {
		cr_assert_eq(r[i].n, 1, "%zu: request %d ended %u times", at, i, r[i].n);
		if (!err_is_set(&r[i].err))
			cr_assert_geq(r[i].status, 100, "%zu", at);
		if (whole)
			cr_assert_eq(r[i].err.kind, ERR_NONE, "%s", r[i].err.text);
	}
}

Test(h2c_hostile, a_connection_may_end_at_every_byte)
{
	cleanup_strbuf struct strbuf record = record_exchange();

	for (size_t at = 0; at <= record.len; at++) {
		struct end r[PARTS] = {0};
		struct h2s_conn *k;

		h2s_teardown();
		h2s_setup();
		k = h2s_plain(true);
		exchange(r);
		replay(k, record.data, at);
		h2s_close(k);
		h2s_turns(4);
		loop_advance(l, 30000); /* what was not sent yet looks for another connection */
		h2s_turns(4);
		expect_end(r, at == record.len, at);
	}
}

Test(h2c_hostile, every_byte_may_be_another)
{
	static const unsigned char flips[] = {0x01, 0x04, 0x80, 0xff};
	cleanup_strbuf struct strbuf record = record_exchange();

	for (size_t at = 0; at < record.len * ARRAY_LEN(flips); at++) {
		struct end r[PARTS] = {0};
		size_t i = at / ARRAY_LEN(flips);
		struct h2s_conn *k;

		h2s_teardown();
		h2s_setup();
		k = h2s_plain(true);
		exchange(r);
		record.data[i] = (char)(record.data[i] ^ flips[at % ARRAY_LEN(flips)]);
		replay(k, record.data, record.len);
		record.data[i] = (char)(record.data[i] ^ flips[at % ARRAY_LEN(flips)]);
		h2s_close(k);
		loop_advance(l, 30000);
		h2s_turns(4);
		expect_end(r, false, i);
	}
}

/* ---- wrong frames */

static const struct {
	const char *name;
	unsigned type, flags;
	uint32_t stream;
	size_t len;
	const char *payload;
	enum err_kind kind; /* of our request; NONE: it still waits */
	bool lost;          /* the connection is closed */
} frames[] = {
	{"DATA on stream 0", NGHTTP2_DATA, 0, 0, 1, "x", ERR_TRANSIENT, true},
	{"DATA before HEADERS", NGHTTP2_DATA, END_STREAM, 1, 1, "x", ERR_TRANSIENT, true},
	{"DATA on a stream to come", NGHTTP2_DATA, 0, 3, 1, "x", ERR_TRANSIENT, true},
	{"DATA padded beyond its end", NGHTTP2_DATA, NGHTTP2_FLAG_PADDED, 1, 2, "\x09x",
		ERR_TRANSIENT, true},
	{"HEADERS on stream 0", NGHTTP2_HEADERS, END_HEADERS, 0, 1, "\x88", ERR_TRANSIENT, true},
	{"HEADERS on a stream of the server", NGHTTP2_HEADERS, END_HEADERS, 2, 1, "\x88",
		ERR_TRANSIENT, true},
	{"HEADERS of index 0", NGHTTP2_HEADERS, END_HEADERS, 1, 1, "\x80", ERR_TRANSIENT, true},
	{"HEADERS of an index that is not there", NGHTTP2_HEADERS, END_HEADERS, 1, 1, "\xfe",
		ERR_TRANSIENT, true},
	{"HEADERS with an integer without end", NGHTTP2_HEADERS, END_HEADERS, 1, 8,
		"\xff\xff\xff\xff\xff\xff\xff\xff", ERR_TRANSIENT, true},
	{"HEADERS with a table larger than agreed", NGHTTP2_HEADERS, END_HEADERS, 1, 4,
		"\x3f\xff\xff\x03", ERR_TRANSIENT, true},
	{"HEADERS without status", NGHTTP2_HEADERS, END_HEADERS | END_STREAM, 1, 5, "\0\1a\1b",
		ERR_TRANSIENT, false},
	{"HEADERS with nothing", NGHTTP2_HEADERS, END_HEADERS | END_STREAM, 1, 0, NULL,
		ERR_TRANSIENT, false},
	{"HEADERS with a name in capitals", NGHTTP2_HEADERS, END_HEADERS | END_STREAM, 1, 6,
		"\x88\0\1A\1b", ERR_TRANSIENT, false},
	{"HEADERS with a field of the connection", NGHTTP2_HEADERS, END_HEADERS | END_STREAM, 1, 15,
		"\x88\0\x0a"
		"connection\1b",
		ERR_TRANSIENT, false},
	{"HEADERS with status 1000", NGHTTP2_HEADERS, END_HEADERS | END_STREAM, 1, 6,
		"\x08\4"
		"1000",
		ERR_TRANSIENT, false},
	{"HEADERS with status abc", NGHTTP2_HEADERS, END_HEADERS | END_STREAM, 1, 5,
		"\x08\3"
		"abc",
		ERR_TRANSIENT, false},
	{"HEADERS with status 099", NGHTTP2_HEADERS, END_HEADERS | END_STREAM, 1, 5,
		"\x08\3"
		"099",
		ERR_INVALID, false},
	{"HEADERS with status 600", NGHTTP2_HEADERS, END_HEADERS | END_STREAM, 1, 5,
		"\x08\3"
		"600",
		ERR_INVALID, false},
	{"HEADERS of an interim answer that ends", NGHTTP2_HEADERS, END_HEADERS | END_STREAM, 1, 5,
		"\x08\3"
		"103",
		ERR_TRANSIENT, false},
	{"HEADERS that depend on themselves", NGHTTP2_HEADERS, END_HEADERS | NGHTTP2_FLAG_PRIORITY,
		1, 6, "\0\0\0\1\0\x88", ERR_NONE, false},
	{"HEADERS with less body than announced", NGHTTP2_HEADERS, END_HEADERS | END_STREAM, 1, 5,
		"\x88\x0f\x0d\1"
		"5",
		ERR_TRANSIENT, false},
	{"PRIORITY of wrong length", NGHTTP2_PRIORITY, 0, 1, 4, "\0\0\0\0", ERR_TRANSIENT, true},
	{"RST_STREAM on stream 0", NGHTTP2_RST_STREAM, 0, 0, 4, "\0\0\0\1", ERR_TRANSIENT, true},
	{"RST_STREAM on a stream to come", NGHTTP2_RST_STREAM, 0, 7, 4, "\0\0\0\1", ERR_TRANSIENT,
		true},
	{"RST_STREAM of wrong length", NGHTTP2_RST_STREAM, 0, 1, 3, "\0\0\0", ERR_TRANSIENT, true},
	{"SETTINGS on a stream", NGHTTP2_SETTINGS, 0, 1, 0, NULL, ERR_TRANSIENT, true},
	{"SETTINGS of wrong length", NGHTTP2_SETTINGS, 0, 0, 5, "\0\3\0\0\0", ERR_TRANSIENT, true},
	{"SETTINGS acknowledged with a payload", NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0, 6,
		"\0\3\0\0\0\1", ERR_TRANSIENT, true},
	{"SETTINGS with a window too large", NGHTTP2_SETTINGS, 0, 0, 6, "\0\4\x80\0\0\0",
		ERR_TRANSIENT, true},
	{"SETTINGS with a frame size too small", NGHTTP2_SETTINGS, 0, 0, 6, "\0\5\0\0\0\1",
		ERR_TRANSIENT, true},
	{"SETTINGS that are unknown", NGHTTP2_SETTINGS, 0, 0, 6, "\xfe\xfe\0\0\0\1", ERR_NONE,
		false},
	{"PUSH_PROMISE", NGHTTP2_PUSH_PROMISE, END_HEADERS, 1, 5, "\0\0\0\2\x82", ERR_TRANSIENT,
		true},
	{"PING of wrong length", NGHTTP2_PING, 0, 0, 7, "1234567", ERR_TRANSIENT, true},
	{"PING on a stream", NGHTTP2_PING, 0, 1, 8, "12345678", ERR_TRANSIENT, true},
	{"an answer to no PING", NGHTTP2_PING, NGHTTP2_FLAG_ACK, 0, 8, "12345678", ERR_NONE, false},
	{"GOAWAY on a stream", NGHTTP2_GOAWAY, 0, 1, 8, "\0\0\0\1\0\0\0\0", ERR_TRANSIENT, true},
	{"GOAWAY of wrong length", NGHTTP2_GOAWAY, 0, 0, 4, "\0\0\0\1", ERR_TRANSIENT, true},
	{"GOAWAY that spares our request", NGHTTP2_GOAWAY, 0, 0, 8, "\0\0\0\1\0\0\0\0", ERR_NONE,
		false},
	{"WINDOW_UPDATE of 0", NGHTTP2_WINDOW_UPDATE, 0, 0, 4, "\0\0\0\0", ERR_TRANSIENT, true},
	{"WINDOW_UPDATE beyond the limit", NGHTTP2_WINDOW_UPDATE, 0, 0, 4, "\x7f\xff\xff\xff",
		ERR_TRANSIENT, true},
	{"WINDOW_UPDATE beyond the limit of a stream", NGHTTP2_WINDOW_UPDATE, 0, 1, 4,
		"\x7f\xff\xff\xff", ERR_TRANSIENT, false},
	{"CONTINUATION of nothing", NGHTTP2_CONTINUATION, END_HEADERS, 1, 1, "\x88", ERR_TRANSIENT,
		true},
	{"a frame of an unknown type", 0xee, 0xff, 1, 3, "abc", ERR_NONE, false},
};

Test(h2c_hostile, wrong_frames_end_what_they_touch)
{
	static struct res r; /* the last one's call is cancelled in the teardown */

	for (size_t i = 0; i < ARRAY_LEN(frames); i++) {
		struct h2s_conn *k;

		h2s_teardown();
		h2s_setup();
		memset(&r, 0, sizeof(r));
		k = begin(&r);
		put_frame(&k->out, frames[i].type, frames[i].flags, frames[i].stream,
			frames[i].payload, frames[i].len);
		h2s_turns(6);
		cr_assert_eq(r.err.kind, frames[i].kind, "%s: %s", frames[i].name, r.err.text);
		cr_assert_eq(r.n_done, frames[i].kind != ERR_NONE, "%s", frames[i].name);
		cr_assert_eq(k->fd < 0, frames[i].lost, "%s", frames[i].name);
	}
}

Test(h2c_hostile, what_is_not_http2_is_refused)
{
	static const char *const texts[] = {"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n",
		"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n"};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct h2s_conn *k = h2s_plain(true);
		struct res r = {0};

		h2_get("/x", NULL, false, &r);
		strbuf_adds(&k->out, texts[i]);
		h2s_until(&r.done);
		cr_assert_eq(r.err.kind, ERR_TRANSIENT, "%s", r.err.text);
		h2s_turns(5);
		cr_assert_eq(k->fd, -1);
	}
}

Test(h2c_hostile, an_interim_answer_is_passed_over)
{
	static struct res r = {0};
	struct h2s_conn *k = begin(&r);

	put_frame(&k->out, NGHTTP2_HEADERS, END_HEADERS, 1,
		"\x08\3"
		"103\x0f\x10\1a",
		9);
	put_frame(&k->out, NGHTTP2_HEADERS, END_HEADERS, 1, "\x88", 1);
	put_frame(&k->out, NGHTTP2_DATA, 0, 1, "ok", 2);
	/* trailers */
	put_frame(&k->out, NGHTTP2_HEADERS, END_HEADERS | END_STREAM, 1, "\x0f\x10\1b", 4);
	h2s_until(&r.done);
	cr_assert_eq(r.err.kind, ERR_NONE, "%s", r.err.text);
	cr_assert_eq(r.status, 200);
	cr_assert_str_eq(r.body, "ok");
	cr_assert_str_eq(r.type, "");
}

/* ---- floods and bombs */

Test(h2c_hostile, a_header_bomb_is_stopped)
{
	cleanup_strbuf struct strbuf head = STRBUF_INIT, more = STRBUF_INIT;
	static struct res r = {0}, next = {0};
	struct h2s_conn *k = begin(&r);

	strbuf_add(&head, "\x88\x40\1a\x7f\xa1\x1e", 7); /* 127 + 33 + 30 * 128 = 4000 bytes */
	for (int i = 0; i < 4000; i++)
		strbuf_addc(&head, 'x');
	for (int i = 0; i < 16000; i++)
		strbuf_addc(&more, '\xbe'); /* the same field again */
	put_frame(&k->out, NGHTTP2_HEADERS, 0, 1, head.data, head.len);
	put_frame(&k->out, NGHTTP2_CONTINUATION, 0, 1, more.data, more.len);
	put_frame(&k->out, NGHTTP2_CONTINUATION, END_HEADERS, 1, more.data, more.len);
	h2s_until(&r.done);
	cr_assert_eq(r.err.kind, ERR_INVALID);
	cr_assert_str_eq(r.err.text, "GET http://test: the answer's header is larger than 64 KiB");
	/* The others on the connection are as before. */
	h2_get("/y", NULL, false, &next);
	h2s_turns(5);
	put_frame(&k->out, NGHTTP2_HEADERS, END_HEADERS | END_STREAM, 3, "\x88", 1);
	h2s_until(&next.done);
	cr_assert_eq(next.status, 200, "%s", next.err.text);
}

static void expect_flooded(unsigned type, unsigned flags, uint32_t stream, size_t len, unsigned n)
{
	static struct res r = {0};
	struct h2s_conn *k = begin(&r);

	if (type == NGHTTP2_CONTINUATION)
		put_frame(&k->out, NGHTTP2_HEADERS, 0, 1, "\x88", 1);
	for (unsigned i = 0; i < n; i++)
		put_frame(&k->out, type, flags, stream, "12345678", len);
	h2s_until(&r.done);
	cr_assert_eq(r.err.kind, ERR_TRANSIENT, "%s", r.err.text);
	h2s_turns(20);
	cr_assert_eq(k->fd, -1);
}

Test(h2c_hostile, a_flood_of_continuations_ends_the_connection)
{
	expect_flooded(NGHTTP2_CONTINUATION, 0, 1, 0, 10000);
}

Test(h2c_hostile, a_flood_of_pings_ends_the_connection)
{
	expect_flooded(NGHTTP2_PING, 0, 0, 8, 10000);
}

Test(h2c_hostile, a_flood_of_settings_ends_the_connection)
{
	expect_flooded(NGHTTP2_SETTINGS, 0, 0, 0, 10000);
}

Test(h2c_hostile, a_server_that_does_not_read_holds_nothing_but_one_record)
{
	size_t len = 8 * 1024 * 1024;
	cleanup_free char *body = xcalloc(1, len);
	struct httpc_request req = {
		.method = "POST", .url = "http://test/x", .body = body, .body_len = len};
	struct h2s_conn *k = h2s_plain(true);
	struct h2c_conn *n = TAILQ_FIRST(&TAILQ_FIRST(&h2->sites)->conns);
	static struct res r = {0};

	put_frame(&k->out, NGHTTP2_SETTINGS, 0, 0, "\0\4\x40\0\0\0", 6);
	put_frame(&k->out, NGHTTP2_WINDOW_UPDATE, 0, 0, "\x40\0\0\0", 4);
	h2s_flush(k);
	h2_send(&req, false, &r);
	for (int i = 0; i < 1000; i++)
		loop_turn(l, 0);
	cr_assert_gt(n->wire.out.len, 0);
	cr_assert_leq(n->wire.out.len, H2C_RECORD_LEN);
	cr_assert_leq(TAILQ_FIRST(&n->calls)->sent, len / 2);
	h2s_turns(3000);
	cr_assert_eq(n->wire.out.len, 0);
	cr_assert_eq(TAILQ_FIRST(&n->calls)->sent, len);
	cr_assert_not(r.done);
}
