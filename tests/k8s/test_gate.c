/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include "fake/transport.h"
#include "tec/base/mem.h"
#include "tec/base/metric.h"
#include "tec/base/str.h"
#include "tec/k8s/gate.h"

static struct loop *l;
static struct fake_transport *f;
static struct k8s_transport *gate;
static struct op_scope ops;
static struct err got;
static int status;
static unsigned n_done;
static bool open_;

static void on_answer(void *arg, const struct err *err, const struct k8s_answer *a)
{
	got = *err;
	status = a->status;
	n_done++;
}

static bool is_open(void *arg)
{
	return *(bool *)arg;
}

static void setup(void)
{
	l = loop_new();
	f = fake_transport_new(l);
	gate = k8s_gate_new(fake_transport_seam(f), is_open, &open_);
}

static void teardown(void)
{
	op_scope_cancel(&ops);
	k8s_transport_free(gate);
	fake_transport_free(f);
	loop_free(l);
	metric_reset_all();
}

TestSuite(k8s_gate, .init = setup, .fini = teardown);

static struct op *send(const char *method)
{
	struct k8s_request req = {
		.method = method, .path = xstrdup("/api/v1/x"), .verb = "create", .resource = "x"};

	return k8s_transport_start(gate, &ops, &req, NULL, on_answer, NULL);
}

Test(k8s_gate, shut_it_refuses_writes_and_lets_reads_pass)
{
	static const char *const methods[] = {"POST", "PUT", "PATCH", "DELETE"};
	struct strbuf metrics = STRBUF_INIT;

	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		status = -1;
		(void)send(methods[i]);
		cr_assert_eq(n_done, (unsigned)i, "done before the call returned");
		loop_drain(l);
		cr_assert_eq(n_done, (unsigned)i + 1);
		cr_assert_eq(got.kind, ERR_CONFLICT);
		cr_assert_str_eq(got.text, "not sent: this process no longer holds the lease");
		cr_assert_eq(status, 0);
	}
	cr_assert_eq(fake_transport_requests(f), 0);
	metric_render(&metrics);
	cr_assert(strstr(strbuf_str(&metrics),
		"tec_api_requests_total{verb=\"create\",code=\"denied\"} 4\n"));
	strbuf_fini(&metrics);
	fake_expect_answer(fake_transport_expect(f, "GET", "/api/v1/x"), 200, "{}");
	(void)send("GET");
	loop_drain(l);
	cr_assert_eq(got.kind, ERR_NONE);
}

Test(k8s_gate, open_it_lets_all_pass)
{
	struct op *op;

	open_ = true;
	fake_expect_answer(fake_transport_expect(f, "POST", "/api/v1/x"), 201, "{}");
	op = send("POST");
	cr_assert(((struct k8s_exchange *)op)->req.yields);
	open_ = false; /* what has passed is sent */
	loop_drain(l);
	cr_assert_eq(status, 201);
}

Test(k8s_gate, a_cancelled_write_never_answers)
{
	struct op *op = NULL;

	(void)op_hold(&op, send("POST"));
	op_cancel(&op);
	loop_drain(l);
	cr_assert_eq(n_done, 0);
}
