/* SPDX-License-Identifier: MIT */
/* The HTTPS maker over HTTP/2, and where the server does not choose it. */
#include "config.h"

#include "net/h2c_testing.h"
#include "tec/base/metric.h"
#include "tec/k8s/client.h"

static struct pair ca, leaf;
static struct k8s_transport *t;
static char token_path[64];

static void write_token(const char *token)
{
	cleanup_free char *tmp = xasprintf("%s.new", token_path);
	FILE *f = fopen(tmp, "w");

	cr_assert(f);
	fputs(token, f);
	fclose(f);
	cr_assert_eq(rename(tmp, token_path), 0);
}

static void setup(void)
{
	h2s_setup();
	log_setup(LOG_ERROR, LOG_TEXT);
	ca = make_pair("test ca", NULL, NULL, 86400);
	leaf = make_pair("server", &ca, "IP:127.0.0.1", 86400);
	h2s_listen(&leaf, NULL);
	snprintf(token_path, sizeof(token_path), "/tmp/tec-client-h2-%d", (int)getpid());
	write_token("one");
}

static void connect_with(bool http1_only)
{
	struct k8s_kubeconfig *k = xcalloc(1, sizeof(*k));

	k->server = xasprintf("https://127.0.0.1:%d", h2s.port);
	k->ca_data = secret_new_copy(ca.cert_pem, strlen(ca.cert_pem));
	k->token_file = xstrdup(token_path);
	t = k8s_client_new(l, c, k, "tec-operator/test", http1_only);
}

static void teardown(void)
{
	op_scope_cancel(&ops);
	k8s_transport_free(t);
	unlink(token_path);
	h2s_teardown();
	pair_free(&ca);
	pair_free(&leaf);
	metric_reset_all();
	cr_assert_eq(secret_count(), 0);
}

TestSuite(k8s_client_h2, .init = setup, .fini = teardown, .timeout = 60);

static void on_answer(void *arg, const struct err *err, const struct k8s_answer *a)
{
	struct res *r = arg;

	r->done = true;
	r->n_done++;
	r->err = *err;
	r->status = a->status;
	snprintf(r->body, sizeof(r->body), "%s", a->body);
}

static int on_bytes(void *arg, const char *data, size_t len, struct err *err)
{
	struct res *r = arg;

	snprintf(r->body, sizeof(r->body), "%.*s", (int)len, data);
	r->data_len += len;
	return 0;
}

static void ask(const char *method, const char *path, const char *body, bool stream, struct res *r)
{
	struct k8s_request req = {.method = method,
		.path = xstrdup(path),
		.content_type = body ? "application/json" : NULL,
		.body = body ? body_of_secret(secret_new_copy(body, strlen(body)))
			     : (struct body)BODY_INIT,
		.verb = "get"};

	memset(r, 0, sizeof(*r));
	(void)op_hold(
		&r->op, k8s_transport_start(t, &ops, &req, stream ? on_bytes : NULL, on_answer, r));
	cr_assert_eq(r->n_done, 0, "done before the call returned");
}

static bool shows(const char *protocol)
{
	cleanup_free char *want =
		xasprintf("tec_api_connection_info{protocol=\"%s\"} 1\n", protocol);
	struct strbuf b = STRBUF_INIT;
	bool found;

	metric_render(&b);
	found = strstr(strbuf_str(&b), want) != NULL;
	strbuf_fini(&b);
	return found;
}

Test(k8s_client_h2, requests_and_watches_share_one_connection)
{
	static struct res watch, r;

	connect_with(false);
	ask("GET", "/stream", NULL, true, &watch);
	for (int i = 0; i < 3; i++) {
		ask("POST", "/echo", "{\"a\":1}", false, &r);
		h2s_until(&r.done);
		cr_assert_eq(r.err.kind, ERR_NONE, "%s", r.err.text);
		cr_assert_eq(r.status, 201);
		cr_assert_str_eq(r.body, "{\"a\":1}");
	}
	h2s_say(h2s.conns[0], h2s.conns[0]->streams[0], "{}\n", false);
	for (int i = 0; i < 100000 && !watch.data_len; i++)
		h2s_turn();
	cr_assert_str_eq(watch.body, "{}\n");
	cr_assert_not(watch.done);
	cr_assert_eq(h2s.n_conns, 1);
	cr_assert(shows("h2"));
}

Test(k8s_client_h2, after_401_the_request_is_sent_again_with_its_body)
{
	const struct h2s_conn *conn;
	static struct res r;

	connect_with(false);
	ask("GET", "/ok", NULL, false, &r);
	h2s_until(&r.done);
	write_token("two");
	ask("POST", "/status/401", "{\"b\":2}", false, &r);
	h2s_until(&r.done);
	cr_assert_eq(r.status, 401);
	cr_assert_eq(h2s.n_conns, 1, "a new token needs no new connection");
	conn = h2s.conns[0];
	cr_assert_eq(conn->n_streams, 3);
	for (unsigned i = 1; i < 3; i++) {
		cr_assert_str_eq(conn->streams[i]->auth, i == 1 ? "Bearer one" : "Bearer two");
		cr_assert_str_eq(strbuf_str(&conn->streams[i]->in), "{\"b\":2}");
	}
}

/* The server of h2c_testing.h knows HTTP/2 only: the test writes what the fallback is answered. */
static void answer_http1(struct res *r, unsigned conn)
{
	for (int i = 0; i < 100000 && h2s.n_conns <= conn; i++)
		h2s_turn();
	cr_assert_gt(h2s.n_conns, conn);
	h2s_turns(200);
	strbuf_adds(&h2s.conns[conn]->out, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
	h2s_until(&r->done);
	cr_assert_eq(r->err.kind, ERR_NONE, "%s", r->err.text);
	cr_assert_eq(r->status, 200);
	cr_assert_str_eq(r->body, "{}");
	cr_assert(shows("http/1.1"));
}

Test(k8s_client_h2, a_server_without_it_gets_the_request_over_http1)
{
	static struct res r;

	h2s.alpn = "http/1.1";
	connect_with(false);
	ask("POST", "/x", "{\"c\":3}", false, &r);
	answer_http1(&r, 1);
	ask("POST", "/x", "{\"c\":4}", false, &r);
	answer_http1(&r, 1);
	cr_assert_eq(h2s.n_conns, 2, "the server's answer is remembered");
}

Test(k8s_client_h2, http1_only_does_not_try_it)
{
	static struct res r;

	connect_with(true);
	h2s.alpn = NULL;
	ask("GET", "/x", NULL, false, &r);
	answer_http1(&r, 0);
	cr_assert_eq(h2s.n_conns, 1);
}

Test(k8s_client_h2, a_lost_connection_is_transient_and_made_again)
{
	static struct res watch, r;

	connect_with(false);
	ask("GET", "/stream", NULL, true, &watch);
	ask("POST", "/hang", "{}", false, &r);
	for (int i = 0; i < 100000 && h2s.n_reqs < 2; i++)
		h2s_turn();
	h2s_close(h2s.conns[0]);
	h2s_until(&r.done);
	h2s_until(&watch.done);
	cr_assert_eq(r.err.kind, ERR_TRANSIENT);
	cr_assert_eq(watch.err.kind, ERR_TRANSIENT);
	ask("GET", "/ok", NULL, false, &r);
	h2s_until(&r.done);
	cr_assert_eq(r.status, 200);
	cr_assert_eq(h2s.n_conns, 2);
}

static void free_client(void *arg, const struct err *err, const struct k8s_answer *a)
{
	k8s_transport_free(t);
	t = NULL;
	*(bool *)arg = true;
}

Test(k8s_client_h2, done_may_free_the_client)
{
	struct k8s_request req = {.method = "GET", .path = xstrdup("/ok"), .verb = "get"};
	bool done = false;

	connect_with(false);
	(void)k8s_transport_start(t, &ops, &req, NULL, free_client, &done);
	h2s_until(&done);
	cr_assert_null(t);
}
