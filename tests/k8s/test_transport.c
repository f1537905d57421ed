/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include "fake/transport.h"
#include "tec/base/bytes.h"
#include "tec/base/mem.h"
#include "tec/base/metric.h"
#include "tec/base/str.h"
#include "tec/base/utf8.h"
#include "tec/k8s/transport.h"

static struct loop *l;
static struct fake_transport *f;
static struct k8s_transport *t;
static struct op_scope ops;
static struct err got;
static int status;
static unsigned n_done, n_data;

static void on_answer(void *arg, const struct err *err, const struct k8s_answer *a)
{
	got = *err;
	status = a ? a->status : 0;
	n_done++;
}

static struct op **kill_on_data;
static int on_data(void *arg, const char *data, size_t len, struct err *err)
{
	n_data++;
	if (kill_on_data)
		op_cancel(kill_on_data);
	return 0;
}

static void setup(void)
{
	l = loop_new();
	f = fake_transport_new(l);
	t = fake_transport_seam(f);
}

static void teardown(void)
{
	op_scope_cancel(&ops);
	fake_transport_free(f);
	loop_free(l);
	metric_reset_all();
}

TestSuite(k8s_transport, .init = setup, .fini = teardown);

static double counted(const char *verb, const char *code)
{
	struct strbuf b = STRBUF_INIT;
	cleanup_free char *want =
		xasprintf("tec_api_requests_total{verb=\"%s\",code=\"%s\"} ", verb, code);
	double v = 0;
	char *at;

	metric_render(&b);
	at = strstr(strbuf_str(&b), want);
	if (at)
		v = strtod(at + strlen(want), NULL);
	strbuf_fini(&b);
	return v;
}

static struct op *send(const char *method, const char *verb, k8s_data_fn data)
{
	struct k8s_request req = {
		.method = method, .path = xstrdup("/api/v1/x"), .verb = verb, .resource = "x"};

	return k8s_transport_start(t, &ops, &req, data, on_answer, NULL);
}

Test(k8s_transport, answers_are_counted_by_verb_and_code)
{
	fake_expect_answer(fake_transport_expect(f, "GET", "/api/v1/x"), 200, "{}");
	fake_expect_answer(fake_transport_expect(f, "GET", "/api/v1/x"), 404, "{}");
	fake_expect_fail(fake_transport_expect(f, "GET", "/api/v1/x"), ERR_TRANSIENT, "no route");
	for (int i = 0; i < 3; i++) {
		(void)send("GET", "get", NULL);
		cr_assert_eq(n_done, (unsigned)i);
		loop_drain(l);
	}
	cr_assert_eq(n_done, 3);
	cr_assert_eq(got.kind, ERR_TRANSIENT);
	cr_assert_eq(counted("get", "200"), 1);
	cr_assert_eq(counted("get", "404"), 1);
	cr_assert_eq(counted("get", "error"), 1);
}

Test(k8s_transport, cancelled_calls_never_answer)
{
	struct op *op = NULL;

	(void)fake_transport_expect(f, "GET", "/api/v1/x");
	(void)op_hold(&op, send("GET", "get", NULL));
	loop_drain(l);
	cr_assert_eq(fake_transport_in_flight(f), 1);
	op_cancel(&op);
	cr_assert_eq(fake_transport_in_flight(f), 0);
	loop_drain(l);
	cr_assert_eq(n_done, 0);
}

Test(k8s_transport, on_data_may_cancel_its_stream)
{
	struct fake_expect *e = fake_transport_expect(f, "GET", "/api/v1/x");
	struct op *op = NULL;

	(void)op_hold(&op, send("GET", "watch", on_data));
	kill_on_data = &op;
	fake_stream_send(e, "{}\n");
	loop_drain(l);
	cr_assert_eq(n_data, 1);
	cr_assert_eq(n_done, 0);
	kill_on_data = NULL;
}

static unsigned n_fini;
static void own_fini(void *arg)
{
	cr_assert_str_eq(arg, "mine");
	n_fini++;
}

static void own_answer(void *arg, const struct err *err, const struct k8s_answer *a)
{
	cr_assert_str_eq(arg, "mine");
	cr_assert_eq(n_fini, 0);
	on_answer(arg, err, a);
}

static struct op *send_own(void)
{
	static const struct k8s_receiver to = {NULL, own_answer, own_fini};
	struct k8s_request req = {.method = "POST",
		.path = xstrdup("/api/v1/x"),
		.body = body_of_secret(secret_new_copy("key", 3))};
	struct op *op = k8s_transport_start_own(t, &ops, &req, &to, "mine", 5);

	cr_assert_null(req.path);
	cr_assert_null(req.body.data);
	return op;
}

Test(k8s_transport, what_a_receiver_owns_ends_with_the_exchange)
{
	struct op *op = NULL;

	n_fini = 0;
	fake_expect_answer(fake_transport_expect(f, "POST", "/api/v1/x"), 201, "{}");
	(void)send_own();
	cr_assert_eq(secret_count(), 1);
	loop_drain(l);
	cr_assert_eq(n_done, 1);
	cr_assert_eq(n_fini, 1);
	cr_assert_eq(secret_count(), 0);
	(void)fake_transport_expect(f, "POST", "/api/v1/x");
	(void)op_hold(&op, send_own());
	op_cancel(&op);
	cr_assert_eq(n_done, 1);
	cr_assert_eq(n_fini, 2);
	cr_assert_eq(secret_count(), 0);
}

Test(k8s_answer, kinds_by_status)
{
	static const struct {
		int status;
		enum err_kind kind;
	} rows[] = {{404, ERR_NOT_FOUND}, {409, ERR_CONFLICT}, {410, ERR_GONE}, {401, ERR_DENIED},
		{403, ERR_DENIED}, {400, ERR_INVALID}, {405, ERR_INVALID}, {406, ERR_INVALID},
		{413, ERR_INVALID}, {415, ERR_INVALID}, {422, ERR_INVALID}, {302, ERR_INVALID},
		{408, ERR_TRANSIENT}, {429, ERR_TRANSIENT}, {500, ERR_TRANSIENT},
		{503, ERR_TRANSIENT}, {504, ERR_TRANSIENT}, {0, ERR_BUG}, {100, ERR_BUG},
		{999, ERR_BUG}};
	struct err none = ERR_INIT;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct k8s_answer a = {.status = rows[i].status, .body = "", .retry_after_ms = 5};
		struct err err = ERR_INIT;

		cr_assert_eq(k8s_answer_check(&none, &a, &err), -1);
		cr_assert_eq(err.kind, rows[i].kind, "%d", rows[i].status);
		cr_assert_eq(err.http, rows[i].status);
		cr_assert_eq(err.retry_after_ms, 5);
	}
}

Test(k8s_answer, good_answers_and_transport_errors)
{
	struct err none = ERR_INIT, bad = ERR_INIT, err = ERR_INIT;
	struct k8s_answer a = {.status = 201, .body = ""};

	cr_assert_eq(k8s_answer_check(&none, &a, &err), 0);
	cr_assert_eq(k8s_answer_check(NULL, &a, &err), 0);
	err_set(&bad, ERR_TRANSIENT, "no route");
	cr_assert_eq(k8s_answer_check(&bad, &a, &err), -1);
	cr_assert_str_eq(err.text, "no route");
	err_clear(&err);
	cr_assert_eq(k8s_answer_check(&none, NULL, &err), -1);
	cr_assert_eq(err.kind, ERR_BUG);
}

Test(k8s_answer, the_status_object_is_told_but_bounded)
{
	static const struct {
		const char *body, *want;
	} rows[] = {
		{"{\"kind\":\"Status\",\"reason\":\"AlreadyExists\",\"message\":\"secrets \\\"a\\\" exists\"}",
			"HTTP 409 AlreadyExists: secrets \"a\" exists"},
		{"{\"kind\":\"Status\",\"reason\":5,\"message\":\"a\\nb\\u001b[1m\"}",
			"HTTP 409: a b [1m"},
		{"{\"kind\":\"Pod\",\"message\":\"x\"}", "HTTP 409"},
		{"<html>", "HTTP 409"},
		{"{\"kind\":", "HTTP 409"},
		{"{}", "HTTP 409"},
		{"[]", "HTTP 409"},
	};
	struct err none = ERR_INIT;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct k8s_answer a = {
			.status = 409, .body = rows[i].body, .body_len = strlen(rows[i].body)};
		struct err err = ERR_INIT;

		cr_assert_eq(k8s_answer_check(&none, &a, &err), -1);
		cr_assert_str_eq(err.text, rows[i].want);
	}
	struct strbuf b = STRBUF_INIT;
	struct err err = ERR_INIT;

	strbuf_adds(
		&b, "{\"kind\":\"Status\",\"details\":{\"retryAfterSeconds\":7},\"message\":\"");
	for (int i = 0; i < 1000; i++)
		strbuf_adds(&b, "\xc3\xa4");
	strbuf_adds(&b, "\"}");
	struct k8s_answer a = {.status = 503, .body = strbuf_str(&b), .body_len = b.len};

	cr_assert_eq(k8s_answer_check(&none, &a, &err), -1);
	cr_assert_eq(err.retry_after_ms, 7000);
	cr_assert(utf8_valid(err.text, strlen(err.text)));
	strbuf_fini(&b);
}
