/* SPDX-License-Identifier: MIT */
/* httpc over plain HTTP: requests, streams, broken answers, deadlines, cancelling. TLS is in
 * test_httpc_tls.c. */
#include "config.h"

#include "net/httpc_testing.h"

#include <curl/curl.h>
#include <dlfcn.h>

static void setup_plain(void)
{
	srv = (struct server){0};
	server_start(&srv, NULL, NULL);
	setup_client();
}

static void teardown_plain(void)
{
	teardown_client();
	server_stop(&srv);
}

TestSuite(httpc, .init = setup_plain, .fini = teardown_plain, .timeout = 60);

Test(httpc, get_brings_status_body_and_type)
{
	struct res r;

	fetch("/ok", NULL, &r);
	cr_assert_eq(r.err.kind, ERR_NONE, "%s", r.err.text);
	cr_assert_eq(r.status, 200);
	cr_assert_str_eq(r.body, "ok");
	cr_assert_str_eq(r.type, "text/plain; charset=utf-8");
	cr_assert_null(r.op);
	cr_assert(strstr(srv.sh->head, "GET /ok HTTP/1.1\r\n") == srv.sh->head);
	cr_assert_null(strstr(srv.sh->head, "Accept-Encoding"));
}

Test(httpc, every_method_sends_its_body_and_headers)
{
	static const char *const methods[] = {"POST", "PUT", "PATCH", "DELETE"};
	struct httpc_header h[] = {
		{"Content-Type", "application/merge-patch+json"}, {"X-Empty", ""}};

	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		struct res r = {0};
		struct httpc_request req = {.method = methods[i],
			.url = url_of("/echo"),
			.headers = h,
			.n_headers = 2,
			.bearer = "to.k-en",
			.body = "{\"a\":1}",
			.body_len = 7,
			.deadline_ms = 5000};

		(void)start_req(&req, false, &r);
		wait_for(&r.done);
		cr_assert_eq(r.status, 201, "%s", r.err.text);
		cr_assert_str_eq(r.body, "{\"a\":1}");
		cr_assert(str_starts(srv.sh->head, methods[i]));
		cr_assert(strstr(srv.sh->head, "Authorization: Bearer to.k-en\r\n"));
		cr_assert(strstr(srv.sh->head, "Content-Type: application/merge-patch+json\r\n"));
		cr_assert(strstr(srv.sh->head, "X-Empty:"));
		cr_assert_null(strstr(srv.sh->head, "Expect"));
	}
	cr_assert_eq(srv.sh->conns, 1);
}

Test(httpc, a_body_without_type_gets_none_and_no_body_gets_length_zero)
{
	struct res r = {0}, r2 = {0};
	struct httpc_request req = {
		.method = "PUT", .url = url_of("/echo"), .body = "x", .body_len = 1};

	(void)start_req(&req, false, &r);
	wait_for(&r.done);
	cr_assert_null(strstr(srv.sh->head, "Content-Type"));
	req.method = "POST";
	req.body = NULL;
	req.body_len = 0;
	(void)start_req(&req, false, &r2);
	wait_for(&r2.done);
	cr_assert(strstr(srv.sh->head, "Content-Length: 0\r\n"));
}

static struct body back;
static void take_back(void *arg, const struct err *err, const struct httpc_answer *a)
{
	back = body_move(a->sent);
	*(bool *)arg = true;
}

Test(httpc, a_body_taken_is_given_back_to_who_wants_it)
{
	bool done = false;
	struct body body = body_of_text(xstrdup("{\"a\":1}"));
	const char *at = body.data;
	struct httpc_request req = {
		.method = "PUT", .url = url_of("/ok"), .take_body = &body, .deadline_ms = 5000};

	(void)httpc_start(c, &ops, &req, NULL, take_back, &done);
	cr_assert_null(body.data);
	wait_for(&done);
	cr_assert_eq(back.data, at);
	body_fini(&back);
}

Test(httpc, requests_that_cannot_be_sent_are_invalid)
{
	static const struct httpc_header bad[] = {
		{"A", "b\r\nC: d"}, {"A\n", "b"}, {"A:", "b"}, {"", "b"}};
	static const char *const urls[] = {"", "127.0.0.1", "http://", "http:///x",
		"http://u:p@127.0.0.1/", "http://127.0.0.1/a b", "http://127.0.0.1/\r\nX: y",
		"ftp://127.0.0.1/", "file:///etc/passwd", "https://127.0.0.1/", "http://[::1/",
		"http://[::1/]", "http://[::1?]:80/"};
	static const char *const bearers[] = {"", "a b", "a\r\nX: y", "a\x01"};

	for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
		struct res r = {0};
		struct httpc_request req = {.url = urls[i], .deadline_ms = 5000};

		(void)start_req(&req, false, &r);
		wait_for(&r.done);
		cr_assert_eq(r.err.kind, ERR_INVALID, "%s: %s", urls[i], r.err.text);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad) + ARRAY_LEN(bearers); i++) {
		struct res r = {0};
		struct httpc_request req = {.url = url_of("/ok"), .deadline_ms = 5000};

		if (i < ARRAY_LEN(bad)) {
			req.headers = &bad[i];
			req.n_headers = 1;
		} else {
			req.bearer = bearers[i - ARRAY_LEN(bad)];
		}
		(void)start_req(&req, false, &r);
		wait_for(&r.done);
		cr_assert_eq(r.err.kind, ERR_INVALID, "%zu", i);
	}
	cr_assert_eq(srv.sh->reqs, 0);
}

static bool add_fails;

/* Replaces libcurl's function in this program. */
CURLMcode curl_multi_add_handle(CURLM *multi, CURL *easy)
{
	union {
		void *symbol;
		CURLMcode (*fn)(CURLM *multi, CURL *easy);
	} real = {.symbol = dlsym(RTLD_NEXT, "curl_multi_add_handle")};

	return add_fails ? CURLM_OUT_OF_MEMORY : real.fn(multi, easy);
}

Test(httpc, a_transfer_that_curl_refuses_says_why)
{
	struct res r = {0};
	struct httpc_request req = {.url = url_of("/ok"), .deadline_ms = 5000};

	add_fails = true;
	(void)start_req(&req, false, &r);
	wait_for(&r.done);
	cr_assert_eq(r.err.kind, ERR_INVALID);
	cr_assert_not_null(
		strstr(r.err.text, curl_multi_strerror(CURLM_OUT_OF_MEMORY)), "%s", r.err.text);
	add_fails = false;
}

Test(httpc, an_unusable_request_can_be_cancelled)
{
	struct res r = {0};
	struct httpc_request req = {.url = "nothing"};

	(void)start_req(&req, false, &r);
	op_cancel(&r.op);
	loop_drain(l);
	cr_assert_not(r.done);
}

Test(httpc, connections_are_reused)
{
	struct res r;

	for (int i = 0; i < 20; i++) {
		fetch("/ok", NULL, &r);
		cr_assert_eq(r.status, 200);
	}
	cr_assert_eq(srv.sh->conns, 1);
}

Test(httpc, a_stale_connection_is_replaced)
{
	struct res r;

	for (int i = 0; i < 5; i++) {
		struct res p = {0};
		struct httpc_request req = {.method = "POST",
			.url = url_of("/ok-close"),
			.body = "x",
			.body_len = 1,
			.deadline_ms = 5000};

		(void)start_req(&req, false, &p);
		wait_for(&p.done);
		cr_assert_eq(p.status, 200, "%s", p.err.text);
	}
	fetch("/ok", NULL, &r);
	cr_assert_eq(r.status, 200);
	cr_assert_eq(srv.sh->reqs, 6);
}

Test(httpc, a_stream_gives_its_data)
{
	struct res r = {0};

	start("/chunks", NULL, true, 0, &r);
	wait_for(&r.done);
	cr_assert_eq(r.err.kind, ERR_NONE, "%s", r.err.text);
	cr_assert_eq(r.status, 200);
	cr_assert_eq(r.data_len, 600);
	cr_assert_eq(r.body_len, 0);
}

Test(httpc, on_data_can_end_the_stream_with_its_error)
{
	struct res r = {.fail_at = 10};

	start("/endless-200", NULL, true, 0, &r);
	wait_for(&r.done);
	cr_assert_eq(r.err.kind, ERR_GONE);
	cr_assert_str_eq(r.err.text, "the line is bad");
}

Test(httpc, an_error_answer_to_a_stream_is_collected)
{
	struct res r = {0}, r2 = {0};

	start("/retry/7", NULL, true, 0, &r);
	wait_for(&r.done);
	cr_assert_eq(r.err.kind, ERR_NONE);
	cr_assert_eq(r.status, 503);
	cr_assert_eq(r.data_len, 0);
	cr_assert_str_eq(r.body, "later");
	cr_assert_eq(r.retry_after_ms, 7000);
	start("/endless-500", NULL, true, 0, &r2);
	wait_for(&r2.done);
	cr_assert_eq(r2.err.kind, ERR_NONE, "%s", r2.err.text);
	cr_assert_eq(r2.status, 500);
	cr_assert_eq(r2.body_len, 65536);
}

Test(httpc, retry_after_table)
{
	for (size_t i = 0; i < ARRAY_LEN(retry_answers); i++) {
		struct res r;

		fetch(retry_answers[i].path, NULL, &r);
		cr_assert_eq(r.err.kind, ERR_NONE);
		cr_assert_eq(r.retry_after_ms, retry_answers[i].ms, "%s: %u", retry_answers[i].path,
			r.retry_after_ms);
	}
}

Test(httpc, a_redirect_is_an_answer)
{
	struct res r;

	fetch("/redirect", NULL, &r);
	cr_assert_eq(r.err.kind, ERR_NONE);
	cr_assert_eq(r.status, 302);
	cr_assert_str_eq(r.location, url_of("/ok"));
	cr_assert_eq(srv.sh->reqs, 1);
	fetch("/elsewhere", NULL, &r);
	cr_assert(str_starts(r.location, "https://other.test:444/a?b=c"), "%s", r.location);
	fetch("/nowhere", NULL, &r);
	cr_assert_str_eq(r.location, "(none)");
	fetch("/ok", NULL, &r);
	cr_assert_str_eq(r.location, "(none)");
}

Test(httpc, the_challenges_of_a_401_are_joined)
{
	struct res r;

	fetch("/challenge", NULL, &r);
	cr_assert_eq(r.status, 401);
	cr_assert_str_eq(r.challenge, "Basic realm=\"a\", Bearer b");
	fetch("/ok", NULL, &r);
	cr_assert_str_eq(r.challenge, "(none)");
}

Test(httpc, headers_that_are_too_long_are_left_out)
{
	struct res r;

	fetch("/big-challenge", NULL, &r);
	cr_assert_eq(r.err.kind, ERR_NONE, "%s", r.err.text);
	cr_assert_eq(r.status, 401);
	cr_assert_str_eq(r.challenge, "(none)");
	cr_assert_str_eq(r.location, "(none)");
}

Test(httpc, proxies_of_the_environment_are_ignored)
{
	struct res r;

	setenv("http_proxy", "http://127.0.0.1:1", 1);
	setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
	fetch("/ok", NULL, &r);
	cr_assert_eq(r.status, 200, "%s", r.err.text);
}

Test(httpc, an_answer_that_is_too_large_is_invalid)
{
	static const char *const paths[] = {"/big", "/endless-200"};

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		struct res r = {0};
		struct httpc_request req = {
			.url = url_of(paths[i]), .max_body = 299999, .deadline_ms = 5000};

		(void)start_req(&req, false, &r);
		wait_for(&r.done);
		cr_assert_eq(r.err.kind, ERR_INVALID, "%s", r.err.text);
	}
	struct res r = {0};
	struct httpc_request req = {.url = url_of("/big"), .max_body = 300000, .deadline_ms = 5000};

	(void)start_req(&req, false, &r);
	wait_for(&r.done);
	cr_assert_eq(r.err.kind, ERR_NONE);
	cr_assert_eq(r.body_len, 300000);
}

Test(httpc, broken_answers_end_with_an_error)
{
	static const struct {
		const char *path;
		enum err_kind kind;
	} t[] = {
		{"/half", ERR_TRANSIENT},
		{"/close", ERR_TRANSIENT},
		{"/cut-chunk", ERR_TRANSIENT},
		{"/junk", ERR_INVALID},
		{"/junk-status", ERR_INVALID},
		{"/junk-version", ERR_INVALID},
		{"/junk-header", ERR_NONE /* any */},
		{"/junk-chunk", ERR_NONE},
		{"/big-header", ERR_NONE},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		for (int stream = 0; stream < 2; stream++) {
			struct res r = {0};

			start(t[i].path, NULL, stream, 5000, &r);
			wait_for(&r.done);
			cr_assert_neq(r.err.kind, ERR_NONE, "%s", t[i].path);
			if (t[i].kind)
				cr_assert_eq(
					r.err.kind, t[i].kind, "%s: %s", t[i].path, r.err.text);
		}
}

Test(httpc, nobody_listening_is_transient)
{
	int port, fd = listen_any(&port, 1);
	char url[64];
	struct res r = {0};
	struct httpc_request req = {.url = url, .deadline_ms = 5000};

	close(fd);
	snprintf(url, sizeof(url), "http://127.0.0.1:%d/", port);
	(void)start_req(&req, false, &r);
	wait_for(&r.done);
	cr_assert_eq(r.err.kind, ERR_TRANSIENT, "%s", r.err.text);
	cr_assert_eq(r.status, 0);
	cr_assert(strstr(r.err.text, "127.0.0.1"));
	/* The same words each time: no milliseconds. */
	cr_assert(str_ends(r.err.text, ": Connection refused"), "%s", r.err.text);
}

/* The name is the certificate's, the address is where the trouble is; they need not be one server's. */
Test(httpc, an_error_names_the_address_and_whom_it_expected_there)
{
	static const struct {
		const char *url, *as;
	} table[] = {
		{"http://trustee.example.org:8080/x", "trustee.example.org"},
		{"http://[2001:db8::1]:8080/x", "[2001:db8::1]"},
		{"http://trustee.example.org/x", "trustee.example.org"},
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		int port, fd = listen_any(&port, 1);
		cleanup_free char *to = xasprintf("127.0.0.1:%d", port);
		cleanup_free char *want =
			xasprintf("GET http://%s as %s: Connection refused", to, table[i].as);
		struct res r = {0};
		struct httpc_request req = {
			.url = table[i].url, .connect_to = to, .deadline_ms = 5000};

		close(fd);
		(void)start_req(&req, false, &r);
		wait_for(&r.done);
		cr_expect_str_eq(r.err.text, want);
	}
}

/* ---- deadlines and cancelling ---- */

Test(httpc, the_deadline_ends_it_at_each_phase)
{
	static const char *const paths[] = {"/hang", "/head-hang", "/body-hang"};

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		struct res r = {0};
		uint64_t t0 = clock_boot_ms();

		start(paths[i], NULL, i == 2, 60, &r);
		wait_for(&r.done);
		cr_assert_eq(r.err.kind, ERR_TRANSIENT);
		cr_assert(strstr(r.err.text, "no answer within 60 ms"), "%s", r.err.text);
		cr_assert(clock_boot_ms() - t0 >= 60);
		cr_assert_leq(r.data_len, i == 2 ? 5 : 0);
	}
}

Test(httpc, after_a_black_hole_the_next_request_works)
{
	struct res bad[20] = {0};
	struct res r;

	for (size_t i = 0; i < 20; i++)
		start("/hang", NULL, false, 100, &bad[i]);
	for (size_t i = 0; i < 20; i++)
		wait_for(&bad[i].done);
	fetch("/ok", NULL, &r);
	cr_assert_eq(r.status, 200, "%s", r.err.text);
}

Test(httpc, a_silent_stream_ends)
{
	struct res r = {0}, r2 = {0};
	struct httpc_request req = {.url = url_of("/body-hang"), .silence_ms = 60};

	(void)start_req(&req, true, &r);
	wait_for(&r.done);
	cr_assert_eq(r.err.kind, ERR_TRANSIENT);
	cr_assert(strstr(r.err.text, "silent for 60 ms"), "%s", r.err.text);
	req.url = url_of("/hang");
	(void)start_req(&req, true, &r2);
	wait_for(&r2.done);
	cr_assert_eq(r2.err.kind, ERR_TRANSIENT);
}

static int full_listener(int *port, int fds[4])
{
	int fd = listen_any(port, 0);
	struct sockaddr_in a = {.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons((uint16_t)*port)};

	for (int i = 0; i < 4; i++) {
		fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		(void)connect(fds[i], (struct sockaddr *)&a, sizeof(a));
	}
	return fd;
}

Test(httpc, connecting_has_its_own_limit)
{
	int port, fds[4], fd = full_listener(&port, fds);
	char url[64];
	struct res r = {0};
	struct httpc_request req = {.url = url, .deadline_ms = 8000, .connect_ms = 80};

	snprintf(url, sizeof(url), "http://127.0.0.1:%d/", port);
	(void)start_req(&req, false, &r);
	wait_for(&r.done);
	cr_assert_eq(r.err.kind, ERR_TRANSIENT);
	cr_assert(str_ends(r.err.text, ": no answer in time"), "%s", r.err.text);
	close(fd);
	for (int i = 0; i < 4; i++)
		close(fds[i]);
}

Test(httpc, cancel_works_at_each_phase_and_done_never_runs)
{
	int port, fds[4], fd = full_listener(&port, fds);
	char connecting[64];
	const char *urls[] = {
		"http://name.invalid/", connecting, url_of("/hang"), url_of("/head-hang")};

	snprintf(connecting, sizeof(connecting), "http://127.0.0.1:%d/", port);
	for (size_t i = 0; i < ARRAY_LEN(urls); i++)
		for (int turns = 0; turns < 6; turns++) {
			struct res r = {0};
			struct httpc_request req = {.url = urls[i], .deadline_ms = 5000};

			(void)start_req(&req, turns % 2, &r);
			for (int t = 0; t < turns && !r.done; t++)
				loop_turn(l, 2);
			if (!r.done)
				op_cancel(&r.op);
			cr_assert_null(r.op);
			loop_turn(l, 0);
			cr_assert(i == 0 || !r.done);
		}
	struct res r = {0};

	start("/body-hang", NULL, true, 0, &r);
	while (!r.data_len)
		loop_turn(l, 100);
	op_cancel(&r.op);
	loop_drain(l);
	cr_assert_not(r.done);
	close(fd);
	for (int i = 0; i < 4; i++)
		close(fds[i]);
}

Test(httpc, on_data_may_cancel_itself)
{
	struct res r = {0}, ok;

	r.kill = &r.op;
	start("/endless-200", NULL, true, 0, &r);
	while (!r.data_len)
		loop_turn(l, 100);
	loop_drain(l);
	cr_assert_not(r.done);
	fetch("/ok", NULL, &ok);
	cr_assert_eq(ok.status, 200);
}

Test(httpc, on_data_may_cancel_a_sibling_of_either_pool)
{
	for (int stream = 0; stream < 2; stream++) {
		struct res a = {0}, b = {0};

		start("/hang", NULL, stream, 0, &b);
		a.kill = &b.op;
		start("/chunks", NULL, true, 5000, &a);
		wait_for(&a.done);
		cr_assert_eq(a.err.kind, ERR_NONE);
		cr_assert_null(b.op);
		cr_assert_not(b.done);
	}
}

Test(httpc, on_data_may_start_another_and_cancel_it_at_once)
{
	struct res a = {0}, b = {0};

	a.start_next = &b;
	start("/chunks", NULL, true, 5000, &a);
	wait_for(&a.done);
	if (!b.done)
		wait_for(&b.done);
	cr_assert_eq(b.status, 200);

	struct res a2 = {0}, b2 = {0};

	a2.start_next = &b2;
	a2.kill = &b2.op;
	start("/body-hang", NULL, true, 200, &a2);
	wait_for(&a2.done);
	cr_assert_not(b2.done);
}

static bool freed;
static void free_all(void *arg, const struct err *err, const struct httpc_answer *a)
{
	httpc_free(c);
	c = httpc_new(l);
	freed = true;
}

Test(httpc, done_may_free_the_client)
{
	struct httpc_request req = {.method = "GET", .url = url_of("/ok"), .deadline_ms = 5000};

	(void)httpc_start(c, &ops, &req, NULL, free_all, NULL);
	wait_for(&freed);
}

Test(httpc, many_requests_share_few_connections)
{
	static struct res r[300];
	unsigned n = 0;

	for (size_t i = 0; i < ARRAY_LEN(r); i++)
		start("/ok", NULL, false, 20000, &r[i]);
	for (size_t i = 0; i < ARRAY_LEN(r); i += 7)
		op_cancel(&r[i].op);
	for (size_t i = 0; i < ARRAY_LEN(r); i++)
		if (i % 7) {
			wait_for(&r[i].done);
			cr_assert_eq(r[i].status, 200);
			n++;
		}
	for (size_t i = 0; i < ARRAY_LEN(r); i++)
		cr_assert_eq(r[i].n_done, i % 7 ? 1 : 0);
	cr_assert_leq(srv.sh->max_open, 16);
	/* Of those cancelled, only what was connecting already may have reached it. */
	cr_assert_leq(srv.sh->reqs, n + 16);
}

Test(httpc, a_request_in_line_has_its_deadline_too)
{
	struct res hang_[16] = {0}, r = {0}, s = {0};

	for (size_t i = 0; i < ARRAY_LEN(hang_); i++)
		start("/hang", NULL, false, 0, &hang_[i]);
	start("/ok", NULL, false, 60, &r);
	start("/ok", NULL, true, 5000, &s);
	wait_for(&s.done); /* a stream does not stand in that line */
	cr_assert_eq(s.status, 200);
	wait_for(&r.done);
	cr_assert(strstr(r.err.text, "waiting for earlier requests"), "%s", r.err.text);
	op_scope_cancel(&ops);
}

static void start_yielding(struct res *r, size_t n)
{
	struct httpc_request req = {.url = url_of("/ok"), .deadline_ms = 20000, .yields = true};

	for (size_t i = 0; i < n; i++)
		(void)start_req(&req, false, &r[i]);
}

Test(httpc, who_yields_waits_behind_the_others)
{
	struct res r[200] = {0}, first = {0};
	size_t n = 0;

	start_yielding(r, ARRAY_LEN(r));
	start("/ok", NULL, false, 20000, &first);
	wait_for(&first.done);
	for (size_t i = 0; i < ARRAY_LEN(r); i++)
		n += r[i].done;
	cr_assert_leq(n, 100, "%zu that yield came first", n);
	wait_for(&r[ARRAY_LEN(r) - 1].done);
}

Test(httpc, few_that_yield_go_on_beside_another)
{
	struct res r[20] = {0}, hang_ = {0};

	start("/hang", NULL, false, 0, &hang_);
	start_yielding(r, ARRAY_LEN(r));
	for (size_t i = 0; i < ARRAY_LEN(r); i++) {
		wait_for(&r[i].done);
		cr_assert_eq(r[i].status, 200);
	}
	cr_assert_leq(srv.sh->max_open, 5);
	op_scope_cancel(&ops);
}

Test(httpc, connect_to_changes_only_where_it_connects)
{
	struct res r = {0};
	char to[32];
	struct httpc_request req = {
		.url = "http://far.example:8080/ok", .connect_to = to, .deadline_ms = 5000};

	snprintf(to, sizeof(to), "127.0.0.1:%d", srv.port);
	(void)start_req(&req, false, &r);
	wait_for(&r.done);
	cr_assert_eq(r.status, 200, "%s", r.err.text);
	cr_assert(strstr(srv.sh->head, "Host: far.example:8080\r\n"));
}

/* ---- which addresses ---- */

static struct res reach(unsigned mask, const char *url)
{
	struct res r = {0};
	struct httpc_request req = {.url = url, .deadline_ms = 5000, .reach = mask};

	(void)start_req(&req, false, &r);
	wait_for(&r.done);
	return r;
}

Test(httpc, an_address_outside_of_the_reach_is_not_connected_to)
{
	cleanup_free char *name = xasprintf("http://localhost:%d/ok", srv.port);
	const char *urls[] = {url_of("/ok"), name};

	for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
		struct res r = reach(ADDR_REACH_ALL & ~ADDR_REACH(ADDR_LOOPBACK), urls[i]);

		cr_assert_eq(r.err.kind, ERR_DENIED, "%s", r.err.text);
		cr_assert(strstr(r.err.text, "its address is loopback"), "%s", r.err.text);
	}
	cr_assert_eq(srv.sh->conns, 0);
}

Test(httpc, a_connection_outside_of_the_reach_is_not_used_again)
{
	struct res r = reach(ADDR_REACH(ADDR_LOOPBACK), url_of("/ok"));

	cr_assert_eq(r.status, 200, "%s", r.err.text);
	r = reach(ADDR_REACH(ADDR_PUBLIC) | ADDR_REACH(ADDR_PRIVATE), url_of("/ok"));
	cr_assert_eq(r.err.kind, ERR_DENIED, "%s", r.err.text);
	cr_assert(strstr(r.err.text, "its address is loopback"), "%s", r.err.text);
	cr_assert_eq(srv.sh->reqs, 1);
	r = reach(ADDR_REACH_ALL, url_of("/ok"));
	cr_assert_eq(r.status, 200, "%s", r.err.text);
}
