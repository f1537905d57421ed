/* SPDX-License-Identifier: MIT */
/* h2c with an ordinary server: requests, streams, their order, places, refusals and time. */
#include "config.h"

#include "net/h2c_testing.h"

TestSuite(h2c, .init = h2s_setup, .fini = h2s_teardown, .timeout = 60);

Test(h2c, a_request_is_sent_and_its_answer_told)
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
	struct res r = {0};

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
