/* SPDX-License-Identifier: MIT */
/* The listener over real sockets: what it answers by itself, headers, limits. */
#include "config.h"

#include <criterion/criterion.h>

#include "attest_world.h"
#include "broker_fixture.h"

#include "tec/base/log.h"

#define V0  "/kbs/v0/"
#define RES V0 "resource/"
#define RV  V0 "reference-value"

static void expect_status(
	struct broker *b, const char *method, const char *target, const char *body, int status)
{
	struct cli_reply r =
		broker_ask(b, method, target, b->bearer, body, body ? strlen(body) : 0);

	cr_expect_eq(r.status, status, "%s %s: %d", method, target, r.status);
	cli_reply_fini(&r);
}

/* type: what the body says; "" for none. */
static void expect_refusal(struct broker *b, const char *method, const char *target, int status,
	const char *type, const char *header)
{
	struct cli_reply r = broker_ask(b, method, target, NULL, NULL, 0);

	cr_expect_eq(r.status, status, "%s %s: %d", method, target, r.status);
	cr_expect(*type ? strstr(r.body, type) != NULL : r.body[0] == '\0', "%s %s: %s", method,
		target, r.body);
	cr_expect_eq(str_eq(cli_header(&r, "Content-Type"), "application/json"), !b->quirks);
	if (header)
		cr_expect_eq(cli_header(&r, header) != NULL, !b->quirks, "%s", header);
	cli_reply_fini(&r);
}

static void refusals(bool quirks)
{
	static const struct {
		const char *method, *target;
		int status;
		const char *type, *header;
	} rows[] = {
		{"GET", "/", 404, "InvalidRequestPath", NULL},
		{"GET", "/metrics", 404, "InvalidRequestPath", NULL},
		{"GET", "/kbs/v0", 404, "InvalidRequestPath", NULL},
		{"POST", "/kbs/v1/resource/a/b/c", 404, "InvalidRequestPath", NULL},
		{"POST", "/healthz", 405, "HttpError", NULL},
		{"PATCH", V0 "resource-policy", 405, "HttpError", "Allow"},
		{"GET", V0 "resource-policy", 401, "AdminAuthAccess", "WWW-Authenticate"},
	};
	struct cli_reply r;
	struct broker b;

	broker_start(&b, quirks, NULL, NULL);
	broker_listen(&b, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		expect_refusal(&b, rows[i].method, rows[i].target, rows[i].status,
			quirks && rows[i].status != 401 ? "" : rows[i].type, rows[i].header);
	expect_status(&b, "GET", "/healthz", NULL, 200);
	expect_status(&b, "HEAD", V0 "resource-policy", NULL, 405);
	r = broker_ask(&b, "GET", V0 "resource-policy", b.bearer, NULL, 0);
	cr_expect_str_eq(r.body, "[\"resource-policy\"]");
	cli_reply_fini(&r);
	cr_expect_not_null(strstr(strbuf_str(&b.seen), "healthz 200 ;"));
	broker_stop(&b);
}

Test(broker_kbsd, refusals_over_the_wire)
{
	refusals(false);
	refusals(true);
}

Test(broker_kbsd, bodies_above_the_limit_are_plain_text_413)
{
	char body[1001];
	struct cli_reply r;
	struct broker b;

	memset(body, 'x', sizeof(body));
	for (unsigned quirks = 0; quirks < 2; quirks++) {
		broker_start(&b, quirks, NULL, NULL);
		broker_listen(&b, 1000);
		r = broker_ask(&b, "POST", RES "a/b/c", b.bearer, body, 1001);
		cr_expect_eq(r.status, 413);
		cr_expect_str_eq(cli_header(&r, "Content-Type"), "text/plain");
		cr_expect_str_eq(r.body, "payload reached size limit");
		cli_reply_fini(&r);
		r = broker_ask(&b, "POST", RES "a/b/c", b.bearer, body, 1000);
		cr_expect_eq(r.status, 200);
		cli_reply_fini(&r);
		broker_stop(&b);
	}
}

static int head_alone(struct broker *b, const char *target, const char *token)
{
	struct cli c = cli_open(b->loop, httpd_port(broker_kbsd_httpd(b->kbsd)));
	cleanup_free char *head = xasprintf(
		"POST %s HTTP/1.1\r\nHost: a\r\n%s%s%sContent-Length: 100000\r\n\r\n", target,
		token ? "Authorization: " : "", token ? token : "", token ? "\r\n" : "");
	int status;

	cli_send(&c, head);
	status = cli_status(&c);
	cr_expect(cli_wait_eof(&c));
	cli_close(&c);
	return status;
}

Test(broker_kbsd, a_large_body_without_a_token_is_not_waited_for)
{
	struct broker b;

	broker_start(&b, false, NULL, NULL);
	broker_listen(&b, 0);
	cr_expect_eq(head_alone(&b, RES "a/b/c", NULL), 401);
	cr_expect_eq(head_alone(&b, RES "a/b/c", "Bearer a.b.c"), 401);
	cr_expect_eq(head_alone(&b, V0 "nothing", NULL), 404);
	broker_stop(&b);
}

Test(broker_kbsd, a_connection_serves_a_whole_population)
{
	struct broker_store_value v;
	struct err err = ERR_INIT;
	struct broker b;
	struct cli c;

	broker_start(&b, false, NULL, NULL);
	broker_listen(&b, 0);
	c = cli_open(b.loop, httpd_port(broker_kbsd_httpd(b.kbsd)));
	for (unsigned i = 0; i < 300; i++) {
		cleanup_free char *request =
			xasprintf("POST " RES "default/m%u/root HTTP/1.1\r\nHost: a\r\n"
				  "Authorization: %s\r\nContent-Length: 1\r\n\r\nx",
				i, b.bearer);

		cli_send(&c, request);
		cr_assert_eq(cli_status(&c), 200, "%u", i);
	}
	cli_close(&c);
	cr_expect_eq(
		broker_store_get(b.store, BROKER_STORE_REPOSITORY, "default/m299/root", &v, &err),
		0);
	broker_stop(&b);
}

Test(broker_kbsd, a_lost_store_is_empty_for_the_same_listener)
{
	struct broker b;
	struct err err = ERR_INIT;

	broker_start(&b, false, NULL, NULL);
	broker_listen(&b, 0);
	expect_status(&b, "POST", RES "a/b/c", "x", 200);
	broker_store_memory_lose(b.store);
	cr_assert_eq(broker_admin_seed(b.store, &err), 0);
	expect_status(&b, "DELETE", RES "a/b/c", NULL, 404);
	broker_stop(&b);
}

static struct strbuf logged;

static void keep_line(enum log_level level, const char *line, void *arg)
{
	strbuf_adds(&logged, line);
}

Test(broker_kbsd, no_token_and_no_key_is_ever_said_again)
{
	struct broker b;
	struct cli_reply r;

	broker_start(&b, false, NULL, NULL);
	broker_listen(&b, 0);
	log_setup(LOG_DEBUG, LOG_TEXT);
	log_capture(keep_line, NULL);
	r = broker_ask(&b, "POST", RES "a/b/c/d", b.bearer, "topsecret", 9);
	cr_expect_eq(r.status, 400);
	cr_expect_null(strstr(r.body, "topsecret"));
	cli_reply_fini(&r);
	r = broker_ask(&b, "POST", RV, b.bearer, "{\"topsecret\":1}", 15);
	cr_expect_null(strstr(r.body, "topsecret"), "%s", r.body);
	cli_reply_fini(&r);
	cr_expect_null(strstr(strbuf_str(&logged), "topsecret"));
	cr_expect_null(strstr(strbuf_str(&logged), b.bearer + strlen("Bearer ")));
	log_capture(NULL, NULL);
	strbuf_fini(&logged);
	broker_stop(&b);
}

/* ---- a resource that is held until its owner says */

struct holder {
	struct world w;
	struct broker_held *held;
	char path[64];
	char *bearer;
	struct loop *loop;
	struct broker_kbsd *kbsd;
};

static void on_held(void *arg, struct broker_held *h)
{
	struct holder *x = arg;

	x->held = h;
	snprintf(x->path, sizeof(x->path), "%s", h->path);
}

static void holder_start(struct holder *x)
{
	struct broker_kbsd_conf conf = {.name = "kbs", .on_held = on_held, .arg = x};
	cleanup_free char *token = NULL;
	struct err err = ERR_INIT;

	*x = (struct holder){.loop = loop_new()};
	world_start(&x->w);
	approve(&x->w);
	x->w.node.now_s = clock_wall_s();
	cr_assert_eq(auth(&x->w), 200);
	cr_assert_eq(attest(&x->w, NULL, &token), 200);
	x->bearer = xasprintf("Authorization: Bearer %s\r\n", token);
	conf.attest = x->w.b;
	x->kbsd = broker_kbsd_new(x->loop, &conf);
	cr_assert_eq(httpd_listen(broker_kbsd_httpd(x->kbsd), "127.0.0.1:0", &err), 0);
}

static void holder_stop(struct holder *x)
{
	broker_kbsd_free(x->kbsd);
	world_stop(&x->w);
	free(x->bearer);
	loop_free(x->loop);
}

static struct cli ask_for(struct holder *x, const char *path)
{
	struct cli c = cli_open(x->loop, httpd_port(broker_kbsd_httpd(x->kbsd)));
	cleanup_free char *request =
		xasprintf("GET " RES "%s HTTP/1.1\r\nHost: a\r\n%s\r\n", path, x->bearer);

	x->held = NULL;
	cli_send(&c, request);
	for (int i = 0; i < 200 && !x->held; i++)
		loop_turn(x->loop, 10);
	return c;
}

Test(broker_kbsd, a_held_resource_goes_out_when_its_owner_says_so)
{
	static const struct {
		enum err_kind kind;
		int status;
	} rows[] = {{ERR_NONE, 200}, {ERR_NOT_FOUND, 404}, {ERR_TRANSIENT, 503}};
	struct holder x;

	holder_start(&x);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err err = ERR_INIT;
		struct cli c = ask_for(&x, i == 0 ? "/" OWN_PATH : OWN_PATH);

		cr_assert(x.held);
		cr_expect_str_eq(x.path, OWN_PATH);
		if (rows[i].kind != ERR_NONE)
			(void)!err_set(&err, rows[i].kind, "later");
		broker_held_end(x.held, rows[i].kind == ERR_NONE ? NULL : &err);
		cr_expect_eq(cli_status(&c), rows[i].status);
		cli_close(&c);
	}
	holder_stop(&x);
}

Test(broker_kbsd, what_is_refused_is_not_held_and_a_node_that_left_ends_it)
{
	struct holder x;
	struct cli c;

	holder_start(&x);
	c = ask_for(&x, OTHER_PATH);
	cr_expect_not(x.held);
	cr_expect_eq(cli_status(&c), 401);
	cli_close(&c);
	c = ask_for(&x, OWN_PATH);
	cr_assert(x.held);
	cli_close(&c);
	for (int i = 0; i < 20; i++) /* freed with the request: ASan sees it otherwise */
		loop_turn(x.loop, 5);
	holder_stop(&x);
}
