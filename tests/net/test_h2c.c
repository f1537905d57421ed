/* SPDX-License-Identifier: MIT */
/* h2c with an ordinary server: requests, streams, order of delivery, limits, resets and time. */
#include "config.h"

#include "net/h2c_testing.h"

TestSuite(h2c, .init = h2s_setup, .fini = h2s_teardown, .timeout = 60);

Test(h2c, a_request_is_sent_and_its_answer_delivered)
{
	static const struct httpc_header headers[] = {{"X-Extra", "some"}, {"Accept", ""}};
	struct httpc_request req = {.method = "POST",
		.url = "http://test/echo?a=b#c",
		.headers = headers,
		.n_headers = 2,
		.bearer = "t0ken",
		.body = "{\"a\":1}",
		.body_len = 7};
	struct h2s_conn *k = h2s_plain(false);
	static struct res r = {0};

	h2_send(&req, false, &r);
	h2s_until(&r.done);
	cr_assert_eq(r.err.kind, ERR_NONE, "%s", r.err.text);
	cr_assert_eq(r.status, 201);
	cr_assert_str_eq(r.body, "{\"a\":1}");
	cr_assert_str_eq(r.type, "application/json");
	cr_assert_str_eq(k->streams[0]->method, "POST");
	cr_assert_str_eq(k->streams[0]->path, "/echo?a=b");
	cr_assert_str_eq(k->streams[0]->auth, "Bearer t0ken");
	cr_assert_str_eq(k->streams[0]->extra, "some");
	cr_assert_eq(h2s.n_resets, 0);
}

Test(h2c, requests_share_a_connection)
{
	struct h2s_conn *k = h2s_plain(false);

	for (int i = 0; i < 20; i++) {
		struct res r = {0};

		h2_get("/ok", NULL, false, &r);
		h2s_until(&r.done);
		cr_assert_eq(r.status, 200);
		cr_assert_str_eq(r.body, "ok");
	}
	cr_assert_eq(k->n_streams, 20);
	cr_assert_eq(h2s.n_conns, 1);
}

/* ---- sizes and windows */

static char *big_body(size_t len)
{
	char *body = xmalloc(len);

	for (size_t i = 0; i < len; i++)
		body[i] = (char)('a' + i % 26);
	return body;
}

static void post(const char *path, const char *body, size_t len, struct res *r)
{
	char url[128];
	struct httpc_request req = {.method = "POST", .url = url, .body = body, .body_len = len};

	snprintf(url, sizeof(url), "http://test%s", path);
	req.max_body = len + 1;
	h2_send(&req, false, r);
}

Test(h2c, a_big_body_passes_in_both_directions)
{
	size_t len = 6 * 1024 * 1024; /* more than a stream's window */
	cleanup_free char *body = big_body(len);
	struct h2s_conn *k = h2s_plain(false);
	static struct res r = {0};

	post("/echo", body, len, &r);
	h2s_until(&r.done);
	cr_assert_eq(r.status, 201, "%s", r.err.text);
	cr_assert_eq(r.body_len, len);
	cr_assert_eq(k->streams[0]->in.len, len);
	cr_assert_arr_eq(k->streams[0]->in.data, body, len);
}

Test(h2c, a_window_of_one_byte_is_filled_byte_by_byte)
{
	static struct res r[3] = {0};

	h2s.window = 1;
	h2s_plain(false);
	for (int i = 0; i < 3; i++)
		post("/echo", "{\"many\":\"bytes\"}", 16, &r[i]);
	for (int i = 0; i < 3; i++) {
		h2s_until(&r[i].done);
		cr_assert_str_eq(r[i].body, "{\"many\":\"bytes\"}");
	}
}

Test(h2c, an_empty_body_is_a_body)
{
	struct h2s_conn *k = h2s_plain(false);
	static struct res r = {0};

	post("/echo", "", 0, &r);
	h2s_until(&r.done);
	cr_assert_eq(r.status, 201);
	cr_assert_eq(k->streams[0]->in.len, 0);
}

Test(h2c, an_answer_above_its_limit_is_invalid)
{
	static struct res r = {0}, r2 = {0};
	struct httpc_request req = {.url = "http://test/big/9000000", .max_body = 4999};

	h2s_plain(false);
	h2_send(&req, false, &r);
	h2s_until(&r.done);
	cr_assert_eq(r.err.kind, ERR_INVALID);
	cr_assert_str_eq(r.err.text, "GET http://test: the answer is larger than 4999 bytes");
	h2s_turns(5);
	cr_assert_eq(h2s.n_resets, 1);
	req.url = "http://test/big/5000";
	req.max_body = 5000;
	h2_send(&req, false, &r2);
	h2s_until(&r2.done);
	cr_assert_eq(r2.body_len, 5000, "%s", r2.err.text);
}

/* ---- places */

static void many(unsigned n, uint32_t limit)
{
	struct res *r = xcalloc(n, sizeof(*r));
	struct h2s_conn *k;

	h2s.max_streams = limit;
	k = h2s_plain(false);
	for (unsigned i = 0; i < n; i++)
		h2_get("/ok", NULL, false, &r[i]);
	for (unsigned i = 0; i < n; i++) {
		h2s_until(&r[i].done);
		cr_assert_eq(r[i].status, 200, "%u: %s", i, r[i].err.text);
	}
	cr_assert_eq(h2s.n_conns, 1);
	cr_assert_eq(h2s.n_reqs, n); /* none was refused and sent again */
	cr_assert_eq(k->max_open, limit < 16 ? limit : 16);
	free(r);
}

Test(h2c, three_hundred_requests_pass_one_place)
{
	many(300, 1);
}

Test(h2c, three_hundred_requests_are_sent_sixteen_at_a_time)
{
	many(300, 100);
}

static void send_hanging(unsigned n, bool yields, struct res *r)
{
	struct httpc_request req = {.url = "http://test/hang", .yields = yields};

	for (unsigned i = 0; i < n; i++)
		h2_send(&req, false, &r[i]);
	h2s_turns(10);
}

static void end_hang(struct h2s_conn *k, unsigned i)
{
	h2s_head(k, k->streams[i], "200", NULL, NULL);
	h2s_say(k, k->streams[i], "ok", true);
	h2s_turns(10);
}

Test(h2c, who_yields_does_not_stand_in_the_way)
{
	struct h2s_conn *k = h2s_plain(false);
	static struct res r[20], first[2];

	send_hanging(20, true, r);
	cr_assert_eq(k->n_streams, 16);
	send_hanging(2, false, first); /* sent at once */
	cr_assert_eq(k->n_streams, 18);
	for (unsigned i = 0; i < 12; i++)
		end_hang(k, i);
	cr_assert_eq(k->n_streams, 18, "4 of them go on, no new ones are sent");
	end_hang(k, 12);
	cr_assert_eq(k->n_streams, 19);
	end_hang(k, 16);
	end_hang(k, 17);
	cr_assert(first[0].done && first[1].done);
	end_hang(k, 13);
	cr_assert_eq(k->n_streams, 20, "another one may follow at once");
	loop_advance(l, 50);
	end_hang(k, 14);
	cr_assert_eq(k->n_streams, 22, "all of them");
	op_scope_cancel(&ops);
}

Test(h2c, requests_wait_while_the_server_allows_none)
{
	static struct res r = {0};
	struct h2s_conn *k = h2s_plain(true);
	struct httpc_request req = {.url = "http://test/ok", .deadline_ms = 1000};
	static const char settings[] = "\0\0\6\4\0\0\0\0\0\0\3\0\0\0\0";

	strbuf_add(&k->out, settings, sizeof(settings) - 1);
	h2_send(&req, false, &r);
	h2s_turns(10);
	loop_advance(l, 1000);
	cr_assert_eq(r.err.kind, ERR_TRANSIENT);
	cr_assert_str_eq(r.err.text,
		"GET http://test: no answer within 1000 ms, waiting for earlier requests");
	cr_assert_eq(h2s.n_conns, 1);
}

/* ---- streams, and the order in which things are told */

static struct strbuf trace;

static int trace_data(void *arg, const void *data, size_t len, struct err *err)
{
	strbuf_addf(&trace, "%s:%.*s ", (const char *)arg, (int)len, (const char *)data);
	return 0;
}

static void trace_done(void *arg, const struct err *err, const struct httpc_answer *a)
{
	strbuf_addf(&trace, "%s=%d ", (const char *)arg, a->status);
}

static void trace_get(const char *name, const char *url, bool stream, bool in_pieces)
{
	struct httpc_request req = {.method = "GET", .url = url, .stream = stream};

	(void)h2c_start(h2, &ops, &req, in_pieces ? trace_data : NULL, trace_done, (void *)name);
}

Test(h2c, answers_come_first_and_data_before_its_end)
{
	struct h2s_conn *k = h2s_plain(false);

	trace_get("watch", "http://test/stream", true, true);
	trace_get("list", "http://test/stream", true, true);
	trace_get("post", "http://test/hang", false, false);
	trace_get("patch", "http://test/stream", false, true);
	h2s_turns(10);
	cr_assert_eq(trace.len, 0);
	/* All of this is one read. */
	h2s_say(k, k->streams[0], "event1", false);
	h2s_say(k, k->streams[1], "items", true);
	h2s_head(k, k->streams[2], "201", NULL, NULL);
	h2s_say(k, k->streams[2], "made", true);
	h2s_say(k, k->streams[3], "changed", true);
	h2s_serve(k);
	h2s_say(k, k->streams[0], "event2", false);
	h2s_turns(10);
	cr_assert_str_eq(strbuf_str(&trace),
		"patch:changed patch=200 post=201 watch:event1 list:items list=200 watch:event2 ");
	strbuf_fini(&trace);
}

Test(h2c, data_that_is_refused_ends_the_stream)
{
	struct h2s_conn *k = h2s_plain(false);
	static struct res r = {.fail_at = 4};

	h2_get("/stream", NULL, true, &r);
	h2s_turns(10);
	h2s_say(k, k->streams[0], "bad", false);
	h2s_turns(10);
	cr_assert_not(r.done);
	h2s_say(k, k->streams[0], "line", false);
	h2s_until(&r.done);
	cr_assert_eq(r.err.kind, ERR_GONE);
	cr_assert_str_eq(r.err.text, "the line is bad");
	h2s_turns(5);
	cr_assert(k->streams[0]->reset);
}

Test(h2c, an_error_to_a_stream_is_collected)
{
	static struct res r = {0};

	h2s_plain(false);
	h2_get("/status/410", NULL, true, &r);
	h2s_until(&r.done);
	cr_assert_eq(r.err.kind, ERR_NONE);
	cr_assert_eq(r.status, 410);
	cr_assert_eq(r.data_len, 0);
	cr_assert_str_eq(r.body, "ok");
	cr_assert_eq(r.retry_after_ms, 7000);
}

Test(h2c, an_endless_error_to_a_stream_is_cut)
{
	struct h2s_conn *k = h2s_plain(false);
	static struct res r = {0};

	h2_get("/hang", NULL, true, &r);
	h2s_turns(10);
	h2s_head(k, k->streams[0], "500", NULL, NULL);
	for (int i = 0; i < 300; i++)
		h2s_say(k, k->streams[0],
			"a page of more than three hundred times what fits it "
			"and that has no end, as it seems, however long one "
			"may read in it, which is more than anybody wants to "
			"do, least of all somebody who only asked whether "
			"there are Machines",
			false);
	h2s_until(&r.done);
	cr_assert_eq(r.err.kind, ERR_NONE);
	cr_assert_eq(r.status, 500);
	cr_assert_eq(r.body_len, HTTPC_RESULT_MAX);
}

/* ---- cancelling */

Test(h2c, a_cancelled_request_is_reset)
{
	struct h2s_conn *k = h2s_plain(false);
	static struct res r = {0};

	h2_get("/hang", NULL, false, &r);
	h2s_turns(10);
	op_cancel(&r.op);
	h2s_turns(10);
	cr_assert(k->streams[0]->reset);
	cr_assert_eq(k->streams[0]->reset_code, NGHTTP2_CANCEL);
	cr_assert_not(r.done);
	cr_assert_eq(k->n_open, 0);
}

Test(h2c, a_cancelled_body_is_not_read_any_more)
{
	size_t len = 1024 * 1024;
	char *body = big_body(len);
	struct h2s_conn *k = h2s_plain(false);
	static struct res r = {0}, r2 = {0};

	post("/echo", body, len, &r);
	h2s_turns(5);
	cr_assert(k->streams[0]->in.len > 0 && k->streams[0]->in.len < len);
	op_cancel(&r.op);
	secret_wipe(body, len);
	free(body);
	h2s_turns(50);
	cr_assert(k->streams[0]->reset);
	h2_get("/ok", NULL, false, &r2);
	h2s_until(&r2.done);
	cr_assert_eq(r2.status, 200);
}

Test(h2c, a_request_cancelled_in_the_queue_is_never_sent)
{
	static struct res r = {0}, r2 = {0};

	h2s.max_streams = 1;
	h2s_plain(false);
	h2_get("/hang", NULL, false, &r);
	h2_get("/ok", NULL, false, &r2);
	h2s_turns(10);
	op_cancel(&r2.op);
	op_cancel(&r.op);
	h2s_turns(10);
	cr_assert_eq(h2s.n_reqs, 1);
	cr_assert_eq(h2s.n_resets, 1);
}

Test(h2c, on_data_may_cancel_its_own_stream)
{
	struct h2s_conn *k = h2s_plain(false);
	static struct res r = {0};

	r.kill = &r.op;
	h2_get("/stream", NULL, true, &r);
	h2s_turns(10);
	h2s_say(k, k->streams[0], "data", true);
	h2s_turns(10);
	cr_assert_eq(r.data_len, 4);
	cr_assert_not(r.done);
}

Test(h2c, on_data_may_cancel_the_next_delivery)
{
	struct h2s_conn *k = h2s_plain(false);
	static struct res r = {0}, r2 = {0};

	r.kill = &r2.op;
	h2_get("/stream", NULL, true, &r);
	h2_get("/stream", NULL, true, &r2);
	h2s_turns(10);
	h2s_say(k, k->streams[0], "data", true);
	h2s_say(k, k->streams[1], "data", true);
	h2s_until(&r.done);
	h2s_turns(10);
	cr_assert_eq(r2.data_len, 0);
	cr_assert_not(r2.done);
}

static void free_all(void *arg, const struct err *err, const struct httpc_answer *a)
{
	op_scope_cancel(&ops);
	h2c_free(steal_ptr(&h2));
	*(bool *)arg = true;
}

Test(h2c, done_may_free_everything)
{
	struct httpc_request req = {.method = "GET", .url = "http://test/ok"};
	static struct res r = {0}, r2 = {0};
	bool freed = false;

	h2s_plain(false);
	(void)h2c_start(h2, &ops, &req, NULL, free_all, &freed);
	h2_get("/ok", NULL, false, &r);
	h2_get("/stream", NULL, true, &r2);
	h2s_until(&freed);
	h2s_turns(10);
	cr_assert_not(r.done || r2.done);
}

/* ---- time */

Test(h2c, a_deadline_ends_a_request)
{
	struct h2s_conn *k = h2s_plain(false);
	struct httpc_request req = {.url = "http://test/hang", .deadline_ms = 500};
	static struct res r = {0};

	h2_send(&req, false, &r);
	h2s_turns(10);
	loop_advance(l, 499);
	cr_assert_not(r.done);
	loop_advance(l, 1);
	cr_assert_str_eq(r.err.text, "GET http://test: no answer within 500 ms");
	cr_assert_eq(r.err.kind, ERR_TRANSIENT);
	h2s_turns(5);
	cr_assert(k->streams[0]->reset);
}

Test(h2c, a_silent_stream_ends)
{
	struct h2s_conn *k = h2s_plain(false);
	struct httpc_request req = {
		.url = "http://test/stream", .silence_ms = 5000, .stream = true};
	static struct res r = {0};

	h2_send(&req, true, &r);
	h2s_turns(10);
	loop_advance(l, 4000);
	h2s_say(k, k->streams[0], "data", false);
	h2s_turns(10);
	loop_advance(l, 4999);
	cr_assert_not(r.done);
	loop_advance(l, 1);
	cr_assert_str_eq(r.err.text, "GET http://test: silent for 5000 ms");
	h2s_turns(5);
	cr_assert(k->streams[0]->reset);
}

Test(h2c, a_silent_connection_is_pinged_and_kept_when_it_answers)
{
	struct h2s_conn *k = h2s_plain(false);
	static struct res r = {0};

	h2_get("/stream", NULL, true, &r);
	h2s_turns(10);
	for (unsigned i = 1; i <= 3; i++) {
		loop_advance(l, 29999);
		h2s_turns(5);
		cr_assert_eq(k->n_pings, i - 1);
		loop_advance(l, 1);
		h2s_turns(5);
		cr_assert_eq(k->n_pings, i);
	}
	loop_advance(l, 15000);
	cr_assert_not(r.done);
}

Test(h2c, a_connection_that_does_not_answer_is_lost)
{
	struct h2s_conn *k = h2s_plain(false);
	static struct res r = {0}, r2 = {0};

	h2_get("/stream", NULL, true, &r);
	h2_get("/hang", NULL, false, &r2);
	h2s_turns(10);
	k->mute = true;
	loop_advance(l, 44999);
	cr_assert_not(r.done);
	loop_advance(l, 1);
	cr_assert(r.done && r2.done);
	cr_assert_eq(r.err.kind, ERR_TRANSIENT);
	cr_assert_str_eq(r.err.text, "GET http://test: connection lost: no answer to a PING");
	h2s_turns(5);
	cr_assert_eq(k->fd, -1);
}

Test(h2c, an_idle_connection_is_closed)
{
	struct h2s_conn *k = h2s_plain(false);
	static struct res r = {0};

	h2_get("/ok", NULL, false, &r);
	h2s_until(&r.done);
	h2s_turns(5);
	loop_advance(l, 59000);
	h2s_turns(5);
	cr_assert_neq(k->fd, -1);
	loop_advance(l, 2000);
	h2s_turns(5);
	cr_assert_eq(k->fd, -1);
	cr_assert_eq(k->n_pings, 0);
}

Test(h2c, a_server_that_never_begins_is_given_up)
{
	struct h2s_conn *k = h2s_plain(true);
	static struct res r = {0};

	h2_get("/ok", NULL, false, &r);
	h2s_turns(5);
	loop_advance(l, 10000);
	cr_assert_eq(r.err.kind, ERR_TRANSIENT);
	cr_assert_str_eq(r.err.text, "GET http://test: no answer in time");
	h2s_turns(5);
	cr_assert_eq(k->fd, -1);
}

/* ---- refusals */

Test(h2c, every_reset_ends_its_request_alone)
{
	static struct res other = {0};

	h2s_plain(false);
	h2_get("/stream", NULL, true, &other);
	for (int code = 0; code < 16; code++) {
		char path[16];
		struct res r = {0};

		snprintf(path, sizeof(path), "/rst/%d", code);
		h2_get(path, NULL, code % 2, &r);
		h2s_until(&r.done);
		cr_assert_eq(r.err.kind, ERR_TRANSIENT, "%d", code);
		cr_assert_eq(r.status, code == NGHTTP2_HTTP_1_1_REQUIRED ? H2C_NO_H2 : 0);
	}
	cr_assert_eq(h2s.n_reqs, 1 + 15 + H2C_TRIES); /* REFUSED_STREAM is retried */
	cr_assert_eq(h2s.n_conns, 1);
	cr_assert_not(other.done);
}

Test(h2c, a_lost_connection_ends_what_was_sent)
{
	struct h2s_conn *k = h2s_plain(false);
	static struct res r = {0}, r2 = {0};

	h2_get("/stream", NULL, true, &r);
	h2_get("/hang", NULL, false, &r2);
	h2s_turns(10);
	h2s_say(k, k->streams[0], "data", false);
	h2s_serve(k);
	h2s_close(k);
	h2s_turns(10);
	cr_assert(r.done && r2.done);
	cr_assert_eq(r.data_len, 4, "what came is told");
	cr_assert_eq(r.err.kind, ERR_TRANSIENT);
	cr_assert_eq(r2.err.kind, ERR_TRANSIENT);
	cr_assert_str_eq(r2.err.text, "GET http://test: the server closed the connection");
}

Test(h2c, unusable_requests_are_invalid)
{
	static const char *const urls[] = {"", "test/", "http://", "http:///x", "http://:1/",
		"http://u:p@test/", "http://test/a b", "http://test/\r\nX: y", "ftp://test/",
		"https://test/", "http://[::1/"};
	static const struct httpc_header bad[] = {{"", "x"}, {"a:", "x"}, {"a b", "x"},
		{"a\r\nb", "x"}, {"a", "x\r\ny: z"}, {"a", "\x7f"}};
	static const char *const bearers[] = {"", "a b", "a\r\nX: y", "a\x01"};

	h2s_plain(false);
	for (size_t i = 0; i < ARRAY_LEN(urls) + ARRAY_LEN(bad) + ARRAY_LEN(bearers); i++) {
		struct httpc_request req = {.url = "http://test/"};
		struct res r = {0};

		if (i < ARRAY_LEN(urls)) {
			req.url = urls[i];
		} else if (i < ARRAY_LEN(urls) + ARRAY_LEN(bad)) {
			req.headers = &bad[i - ARRAY_LEN(urls)];
			req.n_headers = 1;
		} else {
			req.bearer = bearers[i - ARRAY_LEN(urls) - ARRAY_LEN(bad)];
		}
		h2_send(&req, i % 2, &r);
		h2s_until(&r.done);
		cr_assert_eq(r.err.kind, ERR_INVALID, "%zu", i);
	}
	for (int i = 0; i < 2; i++) {
		struct httpc_request req = {
			.method = i ? "" : "ALONGMETHODINDEED", .url = "http://test/"};
		struct res r = {0};

		h2_send(&req, false, &r);
		h2s_until(&r.done);
		cr_assert_eq(r.err.kind, ERR_INVALID);
	}
	cr_assert_eq(h2s.n_reqs, 0);
}

Test(h2c, a_token_is_not_kept_once_an_answer_has_begun)
{
	struct httpc_request req = {.url = "http://test/stream", .bearer = "t0ken", .stream = true};
	struct h2c_site *s;
	static struct res r = {0};

	h2s_plain(false);
	s = TAILQ_FIRST(&h2->sites);
	h2_send(&req, true, &r);
	cr_assert(TAILQ_FIRST(&s->queue)->text);
	h2s_turns(10);
	cr_assert_null(TAILQ_FIRST(&TAILQ_FIRST(&s->conns)->calls)->text);
	cr_assert_not(r.done);
}

Test(h2c, a_control_character_is_found_wherever_it_is)
{
	static const char bad[] = {1, 0x1f, '\n', 0x7f};
	char value[21] = "~!~!~!~!~\xff\x80~!~!~!~!~";
	struct httpc_header header = {"a", value};
	struct httpc_request req = {.url = "http://test/", .headers = &header, .n_headers = 1};
	static struct res good = {0};

	h2s_plain(false);
	h2_send(&req, false, &good);
	h2s_until(&good.done);
	cr_assert_eq(good.status, 200, "%s", good.err.text);
	for (size_t i = 0; i < (sizeof(value) - 1) * ARRAY_LEN(bad); i++) {
		char *at = &value[i / ARRAY_LEN(bad)], was = *at;
		struct res r = {0};

		*at = bad[i % ARRAY_LEN(bad)];
		h2_send(&req, false, &r);
		h2s_until(&r.done);
		cr_assert_eq(r.err.kind, ERR_INVALID, "%zu", i);
		*at = was;
	}
}

Test(h2c, plain_http_without_a_connection_is_for_httpc)
{
	static struct res r = {0}, r2 = {0};
	struct httpc_request req = {.url = "http://127.0.0.1:1/"};

	h2_send(&req, false, &r);
	h2s_until(&r.done);
	cr_assert_eq(r.status, H2C_NO_H2);
	h2_send(&req, false, &r2);
	op_cancel(&r2.op);
	loop_drain(l);
	cr_assert_not(r2.done);
}
