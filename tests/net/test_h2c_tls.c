/* SPDX-License-Identifier: MIT */
/* h2c over TLS: who is trusted, what protocol is chosen, and which requests share a connection. */
#include "config.h"

#include "net/h2c_testing.h"

static struct pair ca, other_ca, leaf, client;

static struct httpc_tls *tls_of(
	const struct pair *authority, const struct pair *me, const char *name)
{
	struct err err = ERR_INIT;
	struct httpc_tls *t = httpc_tls_new(authority->cert_pem, strlen(authority->cert_pem),
		me ? me->cert_pem : NULL, me ? strlen(me->cert_pem) : 0, me ? me->key_pem : NULL,
		me ? strlen(me->key_pem) : 0, name, &err);

	cr_assert(t, "%s", err.text);
	return t;
}

static struct httpc_tls *trust;

static void setup(void)
{
	h2s_setup();
	ca = make_pair("test ca", NULL, NULL, 86400);
	other_ca = make_pair("test ca", NULL, NULL, 86400); /* the same name, another key */
	leaf = make_pair("server", &ca, "IP:127.0.0.1,DNS:api.test", 86400);
	client = make_pair("client", &ca, NULL, 86400);
	trust = tls_of(&ca, NULL, NULL);
}

static void teardown(void)
{
	httpc_tls_unref(trust);
	h2s_teardown();
	pair_free(&ca);
	pair_free(&other_ca);
	pair_free(&leaf);
	pair_free(&client);
}

TestSuite(h2c_tls, .init = setup, .fini = teardown, .timeout = 60);

static struct res get(const char *path, struct httpc_tls *tls)
{
	struct res r = {0};

	h2_get(path, tls, false, &r);
	h2s_until(&r.done);
	return r;
}

Test(h2c_tls, the_right_authority_is_accepted_and_the_connection_kept)
{
	h2s_listen(&leaf, NULL);
	for (int i = 0; i < 5; i++) {
		struct res r = get("/ok", trust);

		cr_assert_eq(r.status, 200, "%s", r.err.text);
		cr_assert_str_eq(r.body, "ok");
	}
	cr_assert_eq(h2s.n_conns, 1);
}

static void expect_denied(struct httpc_tls *take_tls)
{
	struct res r = get("/ok", take_tls);

	cr_assert_eq(r.err.kind, ERR_DENIED, "%s", r.err.text);
	cr_assert_eq(r.status, 0);
	cr_assert_eq(h2s.n_reqs, 0);
	httpc_tls_unref(take_tls);
}

Test(h2c_tls, a_wrong_authority_is_refused)
{
	h2s_listen(&leaf, NULL);
	expect_denied(tls_of(&other_ca, NULL, NULL));
}

Test(h2c_tls, a_wrong_name_is_refused)
{
	h2s_listen(&leaf, NULL);
	expect_denied(tls_of(&ca, NULL, "other.test"));
}

Test(h2c_tls, a_server_name_takes_the_place_of_the_address)
{
	struct httpc_tls *t = tls_of(&ca, NULL, "api.test");
	struct res r;

	h2s_listen(&leaf, NULL);
	r = get("/ok", t);
	cr_assert_eq(r.status, 200, "%s", r.err.text);
	httpc_tls_unref(t);
}

Test(h2c_tls, connect_to_verifies_the_name_of_the_url)
{
	static const char *const urls[] = {
		"https://api.test:8443/ok", "https://api.test/ok", "https://evil.test/ok"};
	char to[32];

	h2s_listen(&leaf, NULL);
	snprintf(to, sizeof(to), "127.0.0.1:%d", h2s.port);
	for (unsigned i = 0; i < 3; i++) {
		struct httpc_request req = {.url = urls[i], .connect_to = to, .tls = trust};
		struct res r = {0};

		h2_send(&req, false, &r);
		h2s_until(&r.done);
		cr_assert_eq(r.err.kind, i < 2 ? ERR_NONE : ERR_DENIED, "%s", r.err.text);
	}
	cr_assert_eq(h2s.n_conns, 3);
}

Test(h2c_tls, an_expired_certificate_is_refused)
{
	struct pair old = make_pair("server", &ca, "IP:127.0.0.1", -3600);

	h2s_listen(&old, NULL);
	expect_denied(httpc_tls_ref(trust));
	pair_free(&old);
}

Test(h2c_tls, insecure_accepts_and_shares_nothing_with_those_who_check)
{
	struct err err = ERR_INIT;
	struct httpc_tls *t = httpc_tls_new(NULL, 0, NULL, 0, NULL, 0, NULL, &err);
	struct res r;

	httpc_tls_skip_verify(t);
	h2s_listen(&leaf, NULL);
	expect_denied(tls_of(&other_ca, NULL, NULL));
	r = get("/ok", t);
	cr_assert_eq(r.status, 200, "%s", r.err.text);
	httpc_tls_unref(t);
	t = tls_of(&other_ca, NULL, NULL);
	r = get("/ok", t);
	cr_assert_eq(r.err.kind, ERR_DENIED);
	httpc_tls_unref(t);
}

Test(h2c_tls, a_client_certificate_is_shown)
{
	struct httpc_tls *t = tls_of(&ca, &client, NULL);
	struct res r;

	h2s_listen(&leaf, &ca);
	r = get("/ok", t);
	cr_assert_eq(r.status, 200, "%s", r.err.text);
	r = get("/ok", trust); /* none */
	cr_assert_eq(r.err.kind, ERR_DENIED, "%s", r.err.text);
	httpc_tls_unref(t);
}

Test(h2c_tls, a_new_token_needs_no_new_connection)
{
	char url[64];

	h2s_listen(&leaf, NULL);
	snprintf(url, sizeof(url), "https://127.0.0.1:%d/ok", h2s.port);
	for (int i = 0; i < 3; i++) {
		struct httpc_request req = {
			.url = url, .tls = trust, .bearer = i ? "second" : "first"};
		struct res r = {0};

		h2_send(&req, false, &r);
		h2s_until(&r.done);
		cr_assert_str_eq(
			h2s.conns[0]->streams[i]->auth, i ? "Bearer second" : "Bearer first");
	}
	cr_assert_eq(h2s.n_conns, 1);
}

Test(h2c_tls, another_identity_is_another_connection)
{
	struct httpc_tls *t = tls_of(&ca, NULL, NULL); /* the same bytes */

	h2s_listen(&leaf, NULL);
	cr_assert_eq(get("/ok", trust).status, 200);
	cr_assert_eq(get("/ok", t).status, 200);
	cr_assert_eq(h2s.n_conns, 2);
	httpc_tls_unref(t);
}

Test(h2c_tls, a_big_body_passes_in_records)
{
	size_t len = 3 * 1024 * 1024;
	cleanup_free char *body = xcalloc(1, len), *url = NULL;
	struct res r = {0};
	struct httpc_request req = {
		.method = "POST", .tls = trust, .body = body, .body_len = len, .max_body = len};

	h2s_listen(&leaf, NULL);
	memset(body, 'x', len);
	req.url = url = xasprintf("https://127.0.0.1:%d/echo", h2s.port);
	h2_send(&req, false, &r);
	h2s_until(&r.done);
	cr_assert_eq(r.body_len, len, "%s", r.err.text);
	cr_assert_eq(h2s.conns[0]->streams[0]->in.len, len);
}

/* ---- who speaks what */

Test(h2c_tls, http1_is_reported_and_probed_after_its_time)
{
	static const char *const protocols[] = {NULL, "http/1.1"};
	struct res r = {0}, r2 = {0};

	h2s_listen(&leaf, NULL);
	for (unsigned i = 0; i < 2; i++) {
		h2s.alpn = protocols[i];
		for (int j = 0; j < 3; j++) {
			memset(&r, 0, sizeof(r));
			memset(&r2, 0, sizeof(r2));
			h2_get("/ok", trust, false, &r);
			h2_get("/ok", trust, true, &r2);
			h2s_until(&r.done);
			h2s_until(&r2.done);
			cr_assert_eq(r.err.kind, ERR_TRANSIENT);
			cr_assert_eq(r.status, H2C_NO_H2);
			cr_assert_eq(r2.status, H2C_NO_H2);
		}
		cr_assert_eq(h2s.n_conns, i + 1);
		loop_advance(l, H2C_PROBE_MS);
	}
	h2s.alpn = "h2";
	cr_assert_eq(get("/ok", trust).status, 200);
	cr_assert_eq(h2s.n_conns, 3);
}

/* ---- connecting */

Test(h2c_tls, a_closed_port_is_transient)
{
	struct res r;

	h2s_listen(&leaf, NULL);
	close(h2s.listener);
	h2s.listener = -1;
	r = get("/ok", trust);
	cr_assert_eq(r.err.kind, ERR_TRANSIENT);
	cr_assert(str_ends(r.err.text, ": Connection refused"), "%s", r.err.text);
	cr_assert(str_starts(r.err.text, "GET https://127.0.0.1:"), "%s", r.err.text);
}

Test(h2c_tls, a_name_is_resolved_and_each_of_its_addresses_tried)
{
	struct pair named = make_pair("server", &ca, "DNS:localhost", 86400);
	char url[64];
	struct httpc_request req = {.url = url, .tls = trust};
	struct res r = {0};

	h2s_listen(&named, NULL); /* on 127.0.0.1, not on ::1 */
	snprintf(url, sizeof(url), "https://localhost:%d/ok", h2s.port);
	h2_send(&req, false, &r);
	while (!r.done) {
		loop_turn(l, 10); /* the name is looked up by a thread */
		h2s_turn();
	}
	cr_assert_eq(r.status, 200, "%s", r.err.text);
	pair_free(&named);
}

Test(h2c_tls, an_unknown_name_is_transient)
{
	struct httpc_request req = {.url = "https://nowhere.invalid/ok", .tls = trust};
	struct res r = {0};

	h2_send(&req, false, &r);
	while (!r.done)
		loop_turn(l, 10);
	cr_assert_eq(r.err.kind, ERR_TRANSIENT);
	cr_assert(str_starts(r.err.text, "GET https://nowhere.invalid: "), "%s", r.err.text);
}

Test(h2c_tls, a_silent_listener_is_given_up)
{
	struct res r = {0}, r2 = {0};

	h2s_listen(&leaf, NULL);
	h2_get("/ok", trust, false, &r);
	h2_get("/ok", trust, false, &r2);
	for (int i = 0; i < 100; i++)
		loop_turn(l, 0);
	loop_advance(l, H2C_DIAL_MS + 1000);
	cr_assert(r.done && r2.done);
	cr_assert(str_ends(r.err.text, ": no answer in time"), "%s", r.err.text);
}

Test(h2c_tls, a_queued_request_can_end_before_the_connection_is_made)
{
	char url[64];
	struct httpc_request req = {.url = url, .tls = trust, .deadline_ms = 100};
	struct res r = {0}, r2 = {0};

	h2s_listen(&leaf, NULL);
	snprintf(url, sizeof(url), "https://127.0.0.1:%d/ok", h2s.port);
	h2_send(&req, false, &r);
	h2_get("/ok", trust, false, &r2);
	loop_turn(l, 0);
	op_cancel(&r2.op);
	loop_advance(l, 100);
	cr_assert(r.done);
	cr_assert(str_ends(r.err.text, ": no answer within 100 ms, waiting for a connection"), "%s",
		r.err.text);
	cr_assert_not(r2.done);
	h2s_turns(20);
	cr_assert_eq(h2s.n_reqs, 0);
}

Test(h2c_tls, bytes_that_are_no_tls_are_refused)
{
	int fd;
	struct res r = {0};

	h2s_listen(&leaf, NULL);
	h2_get("/ok", trust, false, &r);
	do
		loop_turn(l, 0);
	while ((fd = accept(h2s.listener, NULL, NULL)) < 0);
	cr_assert_eq(write(fd, "HTTP/1.1 400 Bad Request\r\n\r\n", 28), 28);
	h2s_until(&r.done);
	cr_assert_eq(r.err.kind, ERR_DENIED, "%s", r.err.text);
	close(fd);
}

Test(h2c_tls, a_handshake_cut_off_is_transient)
{
	int fd;
	struct res r = {0};

	h2s_listen(&leaf, NULL);
	h2_get("/ok", trust, false, &r);
	do
		loop_turn(l, 0);
	while ((fd = accept(h2s.listener, NULL, NULL)) < 0);
	shutdown(fd, SHUT_WR);
	h2s_until(&r.done);
	cr_assert_eq(r.err.kind, ERR_TRANSIENT, "%s", r.err.text);
	close(fd);
}

/* ---- more than one connection */

Test(h2c_tls, goaway_retries_refused_requests_on_a_new_connection)
{
	struct h2s_conn *k;
	struct res early = {0}, late[3] = {0}, next = {0};

	h2s_listen(&leaf, NULL);
	h2_get("/hang", trust, false, &early);
	h2s_turns(30);
	k = h2s.conns[0];
	cr_assert_eq(k->n_streams, 1);
	/* The server looks at nothing that comes from now on. */
	nghttp2_submit_goaway(k->session, 0, k->streams[0]->id, NGHTTP2_NO_ERROR, NULL, 0);
	for (unsigned i = 0; i < 3; i++)
		h2_get("/ok", trust, false, &late[i]);
	loop_turn(l, 0); /* they are written before the GOAWAY is read */
	for (unsigned i = 0; i < 3; i++) {
		h2s_until(&late[i].done);
		cr_assert_eq(late[i].status, 200, "%s", late[i].err.text);
	}
	cr_assert_eq(h2s.n_conns, 2);
	cr_assert_not(early.done);
	h2s_head(k, k->streams[0], "200", NULL, NULL);
	h2s_say(k, k->streams[0], "early", true);
	h2s_until(&early.done);
	cr_assert_str_eq(early.body, "early");
	h2_get("/ok", trust, false, &next);
	h2s_until(&next.done);
	h2s_turns(10);
	cr_assert_eq(h2s.n_conns, 2);
	cr_assert_eq(k->fd, -1, "the old connection goes with its last request");
}

Test(h2c_tls, watches_that_take_every_place_do_not_stop_requests)
{
	static struct res watches[3] = {0}, r = {0}, r2 = {0};

	h2s.max_streams = 1;
	h2s_listen(&leaf, NULL);
	for (unsigned i = 0; i < 3; i++)
		h2_get("/stream", trust, true, &watches[i]);
	h2_get("/ok", trust, false, &r);
	h2_get("/ok", trust, false, &r2);
	h2s_until(&r.done);
	h2s_until(&r2.done);
	cr_assert_eq(r.status, 200, "%s", r.err.text);
	cr_assert_eq(r2.status, 200, "%s", r2.err.text);
	h2s_turns(50);
	cr_assert_eq(h2s.n_reqs, 5);
	cr_assert_eq(h2s.n_conns, 4);
}

Test(h2c_tls, a_server_that_rejects_everybody_is_not_dialled_endlessly)
{
	struct res r = {0}, r2 = {0};

	h2s.rejects = true;
	h2s_listen(&leaf, NULL);
	h2_get("/ok", trust, false, &r);
	h2_get("/stream", trust, true, &r2);
	h2s_until(&r.done);
	h2s_until(&r2.done);
	cr_assert_eq(r.err.kind, ERR_TRANSIENT);
	cr_assert(str_ends(r.err.text, ": the server closed the connection"), "%s", r.err.text);
	h2s_turns(20);
	cr_assert_eq(h2s.n_conns, 1);
}
