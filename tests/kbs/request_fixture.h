/* SPDX-License-Identifier: MIT */
/* For the tests of single requests: one fake Trustee, what was asked, and how it ended. */
#ifndef TESTS_KBS_REQUEST_FIXTURE_H
#define TESTS_KBS_REQUEST_FIXTURE_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "fake/kbs.h"
#include "tec/base/clock.h"
#include "tec/base/mem.h"
#include "tec/base/metric.h"
#include "tec/base/str.h"
#include "tec/kbs/resource.h"

static struct loop *loop;
static struct fake_kbs *kbs;
static struct kbs_transport *t;
static struct op_scope ops;
static unsigned n_done;
static struct err last_err;

static inline void one_begin(void)
{
	clock_fake_start(1000, 1700000000);
	loop = loop_new();
	kbs = fake_kbs_new(loop);
	t = fake_kbs_transport(kbs);
	n_done = 0;
}

static inline void one_end(void)
{
	op_scope_cancel(&ops);
	kbs_transport_free(t);
	fake_kbs_free(kbs);
	loop_free(loop);
	metric_reset_all();
	clock_fake_stop();
	cr_assert_eq(secret_count(), 0);
}

static inline void on_done(void *arg, const struct err *err)
{
	(void)arg;
	n_done++;
	last_err = *err;
}

/* It ended, once, and never before the call returned. */
static inline void assert_ends(enum err_kind kind)
{
	cr_assert_eq(n_done, 0);
	loop_advance(loop, 60000);
	cr_assert_eq(n_done, 1);
	cr_assert_eq(last_err.kind, kind, "%s", last_err.text);
	n_done = 0;
}

/* Request i was this one, to the byte; body NULL: none. */
static inline void assert_sent(size_t i, const char *method, const char *path, const char *body)
{
	const struct fake_kbs_request *r = fake_kbs_request(kbs, i);

	cr_assert_str_eq(r->method, method);
	cr_assert_str_eq(r->path, path);
	if (!body) {
		cr_assert_null(r->body);
		return;
	}
	cr_assert_eq(r->body_len, strlen(body));
	cr_assert_str_eq(r->body, body);
}

#endif
