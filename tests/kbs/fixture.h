/* SPDX-License-Identifier: MIT */
/* For every test of kbs that needs a loop: a fake clock, a loop, and one Trustee (fake/kbs); for
 * single requests also a connection to it. */
#ifndef TESTS_KBS_FIXTURE_H
#define TESTS_KBS_FIXTURE_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "fake/kbs.h"
#include "tec/base/bytes.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/metric.h"
#include "tec/base/secret.h"
#include "tec/base/str.h"

static struct loop *loop;
static struct fake_kbs *kbs;

static inline void fixture_begin(void)
{
	clock_fake_start(1000, 1700000000);
	log_setup(LOG_ERROR + 1, LOG_TEXT);
	loop = loop_new();
	kbs = fake_kbs_new(loop);
}

static inline void fixture_end(void)
{
	fake_kbs_free(kbs);
	loop_free(loop);
	metric_reset_all();
	clock_fake_stop();
	cr_assert_eq(secret_count(), 0);
}

/* ---- a connection */

static struct kbs_transport *t;
static struct op_scope ops;
static unsigned n_done;
static struct err last_err;
static int last_status;

static inline void connected(void)
{
	fixture_begin();
	t = fake_kbs_transport(kbs);
	n_done = 0;
}

static inline void disconnected(void)
{
	op_scope_cancel(&ops);
	kbs_transport_free(t);
	kbs_transport_free(NULL);
	fixture_end();
}

static inline void on_done(void *arg, const struct err *err, const struct kbs_answer *answer)
{
	(void)arg;
	n_done++;
	last_err = *err;
	last_status = answer->status;
}

#endif
