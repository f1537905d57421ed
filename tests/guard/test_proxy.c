/* SPDX-License-Identifier: MIT */
/*
 * The guard over real sockets, all in one loop: a client of the test, the guard, and a listener that
 * plays Trustee and notes what reached it.
 */
#include "config.h"

#include <criterion/criterion.h>

#include "net/net_testing.h"
#include "rats/fixture.h"

#include "tec/base/json.h"
#include "tec/base/metric.h"
#include "tec/guard/proxy.h"
#include "tec/loop/signal.h"

struct world {
	struct loop *loop;
	struct httpc *http;
	struct httpd *trustee;
	struct guard *guard;
	struct guard_conf conf;
	char upstream[64];
	/* What reached Trustee last. */
	unsigned n;
	char path[512], cookie[64], token[64], forwarded[128], type[64];
	char *body;
	bool silent;
	int status;
};

static void note(char *out, size_t size, const char *value)
{
	snprintf(out, size, "%s", value ? value : "");
}

static void on_trustee(struct httpd_req *r, void *arg)
{
	struct world *w = arg;
	size_t len;
	const char *body = httpd_req_body(r, &len);

	if (str_eq(httpd_req_target(r), "/healthz")) { /* the look */
		httpd_reply(r, w->status, NULL, "", 0);
		return;
	}
	w->n++;
	note(w->path, sizeof(w->path), httpd_req_target(r));
	note(w->cookie, sizeof(w->cookie), httpd_req_header(r, "Cookie"));
	note(w->token, sizeof(w->token), httpd_req_header(r, "Authorization"));
	note(w->forwarded, sizeof(w->forwarded), httpd_req_header(r, "Forwarded"));
	note(w->type, sizeof(w->type), httpd_req_header(r, "Content-Type"));
	free(w->body);
	w->body = xstrndup(body, len);
	if (w->silent)
		return; /* until its deadline */
	if (str_starts(w->path, "/kbs/v0/auth"))
		httpd_reply_header(r, "Set-Cookie", "kbs-session-id=0123; Expires=x");
	if (w->status / 100 == 2)
		httpd_reply(r, w->status, "application/json", "{\"a\":1}", 7);
	else
		httpd_reply(r, w->status, NULL, "{\"type\":\"t\"}", 12);
}

static const struct httpd_route trustee_routes[] = {
	{.path = "/*", .methods = HTTPD_GET | HTTPD_POST | HTTPD_DELETE, .fn = on_trustee},
};

static void world_prepare(struct world *w)
{
	struct httpd_conf conf = httpd_conf_default;
	struct err err = ERR_INIT;

	memset(w, 0, sizeof(*w));
	loop_ignore_sigpipe();
	w->loop = loop_new();
	w->http = httpc_new(w->loop);
	w->status = 200;
	conf.name = "trustee";
	conf.routes = trustee_routes;
	conf.n_routes = ARRAY_LEN(trustee_routes);
	conf.limits.body = 4 << 20;
	conf.arg = w;
	w->trustee = httpd_new(w->loop, &conf);
	cr_assert_eq(httpd_listen(w->trustee, "127.0.0.1:0", &err), 0, "%s", err.text);
	snprintf(w->upstream, sizeof(w->upstream), "http://127.0.0.1:%u", httpd_port(w->trustee));
	w->conf = (struct guard_conf){.upstream = w->upstream,
		.attest_max = 65536,
		.sessions = 100,
		.sessions_per_source = 3,
		.session_ms = 300000,
		.max_connections = 100,
		.look_ms = 20};
}

static void world_start(struct world *w)
{
	struct err err = ERR_INIT;

	w->guard = guard_new(w->loop, w->http, &w->conf);
	cr_assert_eq(httpd_listen(guard_node_httpd(w->guard), "127.0.0.1:0", &err), 0);
	cr_assert_eq(httpd_listen(guard_admin_httpd(w->guard), "127.0.0.1:0", &err), 0);
}

static void world_stop(struct world *w)
{
	guard_free(w->guard);
	if (w->trustee)
		httpd_free(w->trustee);
	httpc_free(w->http);
	loop_free(w->loop);
	free(w->body);
	metric_reset_all();
}

/* One request on one connection; the reply is the caller's. */
static struct cli_reply send_to(struct world *w, struct httpd *h, const char *method,
	const char *path, const char *headers, const char *body)
{
	cleanup_free char *text =
		xasprintf("%s %s HTTP/1.1\r\nHost: a\r\n%s", method, path, headers);
	struct cli c = cli_open(w->loop, httpd_port(h));
	struct cli_reply r;

	cli_send(&c, text);
	if (body) {
		cleanup_free char *rest =
			xasprintf("Content-Length: %zu\r\n\r\n%s", strlen(body), body);

		cli_send(&c, rest);
	} else {
		cli_send(&c, "\r\n");
	}
	cr_assert(cli_reply(&c, &r, false), "%s %s", method, path);
	cli_close(&c);
	return r;
}

static int ask(struct world *w, const char *method, const char *path, const char *headers,
	const char *body)
{
	struct cli_reply r = send_to(w, guard_node_httpd(w->guard), method, path, headers, body);
	int status = r.status;

	if (status >= 400 && w->status == 200)
		cr_expect(
			strstr(r.body,
				"{\"type\":\"https://github.com/confidential-containers/kbs/errors/") ==
				r.body,
			"%s: %s", path, r.body);
	cli_reply_fini(&r);
	return status;
}

#define AUTH                                                                                       \
	"{\"tee\":\"tpm\",\"version\":\"0.4.0\",\"extra-params\":{\"supported-hash-algorithms\":[\"sha384\"]}}"

Test(guard_proxy, auth_goes_through_and_its_cookie_comes_back)
{
	struct world w;
	struct cli_reply r;

	world_prepare(&w);
	world_start(&w);
	r = send_to(&w, guard_node_httpd(w.guard), "POST", "/kbs/v0/auth",
		"X-Forwarded-For: 9.9.9.9\r\nForwarded: for=9.9.9.9\r\n", AUTH);
	cr_assert_eq(r.status, 200);
	cr_assert_str_eq(cli_header(&r, "Set-Cookie"), "kbs-session-id=0123; Expires=x");
	cr_assert_str_eq(r.body, "{\"a\":1}");
	cr_assert_str_eq(w.path, "/kbs/v0/auth");
	cr_assert_str_eq(w.type, "application/json");
	cr_assert_str_eq(w.forwarded, "for=\"127.0.0.1\";proto=http");
	cr_assert_str_eq(w.body,
		"{\"version\":\"0.4.0\",\"tee\":\"tpm\",\"extra-params\":{\"supported-hash-algorithms\":[\"sha384\"]}}");
	cli_reply_fini(&r);
	world_stop(&w);
}

Test(guard_proxy, only_the_kinds_of_evidence_that_are_accepted_begin)
{
	struct world w;

	world_prepare(&w);
	world_start(&w);
	cr_expect_eq(ask(&w, "POST", "/kbs/v0/auth", "",
			     "{\"tee\":\"sample\",\"version\":\"0.4.0\",\"extra-params\":{}}"),
		401);
	cr_expect_eq(ask(&w, "POST", "/kbs/v0/auth", "",
			     "{\"tee\":\"snp\",\"version\":\"0.4.0\",\"extra-params\":{}}"),
		401);
	cr_expect_eq(ask(&w, "POST", "/kbs/v0/auth", "", "{}"), 401);
	cr_expect_eq(ask(&w, "POST", "/kbs/v0/auth", "", NULL), 401);
	cr_assert_eq(w.n, 0);
	world_stop(&w);
}

Test(guard_proxy, handshakes_of_one_source_are_bounded_until_they_are_attested)
{
	struct world w;
	cleanup_json struct json_object *o = fixture_attest(false);
	cleanup_free char *body = json_text(o);

	world_prepare(&w);
	w.conf.sessions_per_source = 1;
	world_start(&w);
	cr_assert_eq(ask(&w, "POST", "/kbs/v0/auth", "", AUTH), 200);
	w.n = 0;
	cr_assert_eq(ask(&w, "POST", "/kbs/v0/auth", "", AUTH), 429);
	cr_assert_eq(w.n, 0);
	cr_assert_eq(
		ask(&w, "POST", "/kbs/v0/attest", "Cookie: kbs-session-id=0123\r\n", body), 200);
	cr_assert_str_eq(w.cookie, "kbs-session-id=0123");
	cr_assert_eq(ask(&w, "POST", "/kbs/v0/auth", "", AUTH), 200);
	world_stop(&w);
}

Test(guard_proxy, a_handshake_that_trustee_refused_does_not_count)
{
	struct world w;

	world_prepare(&w);
	w.conf.sessions_per_source = 1;
	world_start(&w);
	w.status = 401;
	for (int i = 0; i < 3; i++)
		cr_assert_eq(ask(&w, "POST", "/kbs/v0/auth", "", AUTH), 401);
	w.status = 200;
	cr_assert_eq(ask(&w, "POST", "/kbs/v0/auth", "", AUTH), 200);
	world_stop(&w);
}

Test(guard_proxy, what_is_forwarded_is_written_from_what_was_checked)
{
	struct world w;
	cleanup_json struct json_object *o = fixture_attest(true), *got = NULL;
	cleanup_free char *body = json_text(o), *spaced = xasprintf(" %s\n", body);
	struct err err = ERR_INIT;

	world_prepare(&w);
	world_start(&w);
	cr_assert_eq(ask(&w, "POST", "/kbs/v0/attest", "Authorization: Bearer t\r\n", spaced), 200);
	cr_assert_str_eq(w.token, "Bearer t");
	cr_assert_neq(w.body[0], ' ');
	got = json_parse(w.body, strlen(w.body), &json_limits_api, &err);
	json_object_object_del(json_get(o, "runtime-data/tee-pubkey"), "kid");
	cr_assert(json_object_equal(got, o), "%s", w.body);
	world_stop(&w);
}

/* The forgery that stock Trustee cannot see. */
Test(guard_proxy, a_quote_over_chosen_registers_never_reaches_trustee)
{
	static const uint8_t chosen[] = {0, 0, 0, 3, 0, 11, 3, 0x0f, 0, 1, 0, 11, 3, 0xe0, 0x3f,
		0x80, 0, 11, 3, 0, 0x80, 0xff};
	static const uint8_t extra[SHA256_LEN] = {1};
	struct world w;
	struct fixture_quote q;
	cleanup_json struct json_object *o = fixture_attest(false);
	cleanup_free char *body = NULL;
	struct cli_reply r;

	fixture_quote(extra, &q);
	fixture_quote_select(&q, chosen, sizeof(chosen));
	json_add(json_get(o, "tee-evidence"), "primary_evidence", fixture_evidence(&q));
	body = json_text(o);
	world_prepare(&w);
	world_start(&w);
	r = send_to(&w, guard_node_httpd(w.guard), "POST", "/kbs/v0/attest", "", body);
	cr_assert_eq(r.status, 401);
	cr_assert(
		strstr(r.body,
			"Attest failed: The evidence is not a quote over exactly PCR 0 to 23 (SHA-256).\"}"),
		"%s", r.body);
	cr_assert_eq(w.n, 0);
	cli_reply_fini(&r);
	world_stop(&w);
}

Test(guard_proxy, samples_and_additional_evidence_pass_only_when_asked_for)
{
	for (int allow = 0; allow < 2; allow++) {
		struct world w;
		cleanup_json struct json_object *o = fixture_attest(false),
						*sample = fixture_attest(false);
		cleanup_free char *body = NULL, *other = NULL;

		json_add_str(json_get(o, "tee-evidence"), "additional_evidence", "{}");
		body = json_text(o);
		json_add(json_get(sample, "tee-evidence"), "primary_evidence",
			json_add_str(json_add_str(json_obj(), "svn", "1"), "report_data", "AA=="));
		other = json_text(sample);
		world_prepare(&w);
		w.conf.additional = w.conf.sample = allow;
		world_start(&w);
		cr_expect_eq(ask(&w, "POST", "/kbs/v0/attest", "", body), allow ? 200 : 401);
		cr_expect_eq(ask(&w, "POST", "/kbs/v0/attest", "", other), allow ? 200 : 401);
		cr_expect_eq(w.n, allow ? 2 : 0);
		world_stop(&w);
	}
}

Test(guard_proxy, only_plain_resource_paths_pass)
{
	static const struct {
		const char *path, *forwarded;
	} t[] = {
		{"default/u/root", "/kbs/v0/resource/default/u/root"},
		{"/default/u/root", "/kbs/v0/resource/default/u/root"},
		{"a_b/c-d/e.f", "/kbs/v0/resource/a_b/c-d/e.f"},
		{"//default/u/root", NULL},
		{"default//root", NULL},
		{"default/u", NULL},
		{"default/u/root/", "/kbs/v0/resource/default/u/root"},
		{"default/u/root//", NULL},
		{"default/u/root/x", NULL},
		{"default/../root", NULL},
		{"./u/root", NULL},
		{"default/.u/root", NULL},
		{"default/u/root?x=1", "/kbs/v0/resource/default/u/root"},
		{"default/u/root?", "/kbs/v0/resource/default/u/root"},
		{"default/u/roo%74", "/kbs/v0/resource/default/u/root"},
		{"default%2fu/x/root", NULL},
		{"default/u/ro%00ot", NULL},
		{"default/u/r:t", NULL},
		{"", NULL},
	};
	struct world w;
	char path[300];

	world_prepare(&w);
	world_start(&w);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		w.n = 0;
		snprintf(path, sizeof(path), "/kbs/v0/resource/%s", t[i].path);
		cr_expect_eq(ask(&w, "GET", path, "Cookie: kbs-session-id=1\r\n", NULL),
			t[i].forwarded ? 200 : 404, "%s", path);
		cr_expect_eq(w.n, t[i].forwarded ? 1 : 0, "%s", path);
		if (t[i].forwarded)
			cr_expect_str_eq(w.path, t[i].forwarded);
	}
	snprintf(path, sizeof(path), "/kbs/v0/resource/a/%0250d/c", 1);
	cr_expect_eq(ask(&w, "GET", path, "", NULL), 200);
	snprintf(path, sizeof(path), "/kbs/v0/resource/a/%0252d/c", 1);
	cr_expect_eq(ask(&w, "GET", path, "", NULL), 404);
	world_stop(&w);
}

Test(guard_proxy, the_admin_api_is_not_on_the_node_listener)
{
	static const struct {
		const char *method, *path;
		int status;
	} t[] = {{"POST", "/kbs/v0/resource/a/b/c", 404}, {"DELETE", "/kbs/v0/resource/a/b/c", 404},
		{"POST", "/kbs/v0/resource-policy", 404}, {"GET", "/kbs/v0/resource-policy", 404},
		{"POST", "/kbs/v0/reference-value", 404}, {"GET", "/kbs/v0/reference-value/x", 404},
		{"POST", "/kbs/v0/attestation-policy", 404}, {"GET", "/metrics", 404},
		{"GET", "/", 404}, {"GET", "/kbs/v0", 404}, {"GET", "/kbs/v0/auth", 404},
		{"POST", "/kbs/v0/auth/x", 404}, {"POST", "//kbs/v0/auth", 404}};
	struct world w;

	world_prepare(&w);
	world_start(&w);
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		cr_expect_eq(ask(&w, t[i].method, t[i].path, "", NULL), t[i].status, "%s %s",
			t[i].method, t[i].path);
	cr_expect_eq(w.n, 0);
	world_stop(&w);
}

static int admin(struct world *w, const char *method, const char *path, const char *body)
{
	struct cli_reply r = send_to(w, guard_admin_httpd(w->guard), method, path,
		"Authorization: Bearer t\r\nContent-Type: application/x\r\n", body);
	int status = r.status;

	cli_reply_fini(&r);
	return status;
}

Test(guard_proxy, the_admin_listener_passes_the_admin_api_and_nothing_of_the_nodes)
{
	static const struct {
		const char *method, *path, *body;
		int status;
	} t[] = {
		{"POST", "/kbs/v0/resource/default/u/root", "key", 200},
		{"DELETE", "/kbs/v0/resource/default/u/root", NULL, 200},
		{"POST", "/kbs/v0/reference-value", "{}", 200},
		{"GET", "/kbs/v0/reference-value/a/b", NULL, 200},
		{"POST", "/kbs/v0/attestation-policy", "{}", 200},
		{"POST", "/kbs/v0/resource-policy", "{}", 200},
		{"GET", "/kbs/v0/resource-policy", NULL, 200},
		{"GET", "/kbs/v0/resource", NULL, 200},
		{"GET", "/kbs/v0/resource/default/u/root", NULL, 405},
		{"POST", "/kbs/v0/auth", AUTH, 404},
		{"POST", "/kbs/v0/attest", "{}", 404},
		{"GET", "/metrics", NULL, 404},
	};
	struct world w;

	world_prepare(&w);
	world_start(&w);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		w.n = 0;
		cr_expect_eq(admin(&w, t[i].method, t[i].path, t[i].body), t[i].status, "%s %s",
			t[i].method, t[i].path);
		cr_expect_eq(w.n, t[i].status == 200 ? 1 : 0);
		if (t[i].status != 200)
			continue;
		cr_expect_str_eq(w.path, t[i].path);
		cr_expect_str_eq(w.token, "Bearer t");
		cr_expect_str_eq(w.body, t[i].body ? t[i].body : "");
	}
	world_stop(&w);
}

Test(guard_proxy, an_answer_of_trustee_keeps_its_status_and_body)
{
	struct world w;
	struct cli_reply r;

	world_prepare(&w);
	world_start(&w);
	w.status = 401;
	r = send_to(&w, guard_node_httpd(w.guard), "GET", "/kbs/v0/resource/a/b/c", "", NULL);
	cr_assert_eq(r.status, 401);
	cr_assert_str_eq(r.body, "{\"type\":\"t\"}");
	cr_assert_null(cli_header(&r, "Content-Type"));
	cli_reply_fini(&r);
	world_stop(&w);
}

static bool wait_for_health(struct world *w, int status)
{
	for (unsigned i = 0; i < 500; i++)
		if (ask(w, "GET", "/healthz", "", NULL) == status)
			return true;
	return false;
}

Test(guard_proxy, without_trustee_the_answer_says_so_and_nothing_is_repeated)
{
	struct world w;

	world_prepare(&w);
	world_start(&w);
	cr_assert(wait_for_health(&w, 200));
	httpd_free(w.trustee);
	w.trustee = NULL;
	cr_assert_eq(ask(&w, "POST", "/kbs/v0/auth", "", AUTH), 502);
	cr_assert_eq(ask(&w, "GET", "/kbs/v0/resource/a/b/c", "", NULL), 502);
	cr_assert(wait_for_health(&w, 503));
	world_stop(&w);
}

Test(guard_proxy, before_v0_21_any_answer_is_health)
{
	struct world w;

	world_prepare(&w);
	world_start(&w);
	w.status = 404;
	cr_assert(wait_for_health(&w, 200));
	world_stop(&w);
}

/* The client goes away first: what it waited for ends, and its session still counts. */
Test(guard_proxy, a_client_that_leaves_ends_its_request)
{
	cleanup_free char *text = NULL;
	struct world w;
	struct cli c;

	world_prepare(&w);
	w.conf.sessions_per_source = 1;
	world_start(&w);
	w.silent = true;
	c = cli_open(w.loop, httpd_port(guard_node_httpd(w.guard)));
	text = xasprintf("POST /kbs/v0/auth HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n%s",
		strlen(AUTH), AUTH);
	cli_send(&c, text);
	for (unsigned i = 0; i < 1000 && w.n == 0; i++)
		cli_turn(&c);
	cr_assert_eq(w.n, 1);
	cli_close(&c);
	for (unsigned i = 0; i < 1000 && httpd_in_flight(guard_node_httpd(w.guard)); i++)
		loop_turn(w.loop, 1);
	cr_assert_eq(httpd_in_flight(guard_node_httpd(w.guard)), 0);
	w.silent = false;
	cr_assert_eq(ask(&w, "POST", "/kbs/v0/auth", "", AUTH), 429);
	world_stop(&w);
}

Test(guard_proxy, plain_http_goes_to_this_machine_only)
{
	static const struct {
		const char *url;
		bool ok;
	} t[] = {{"http://127.0.0.1:8080", true}, {"http://127.0.0.1", true},
		{"http://[::1]:8080", true}, {"https://trustee.example:8443", true},
		{"http://10.0.0.1:8080", false}, {"http://trustee.example", false},
		{"http://localhost:8080", false}, {"http://127.0.0.1:8080/x", false},
		{"http://u@127.0.0.1:8080", false}, {"ftp://127.0.0.1", false}, {"", false}};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct err err = ERR_INIT;

		cr_expect_eq(guard_upstream_check(t[i].url, &err) == 0, t[i].ok, "%s", t[i].url);
	}
}
