/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include "tec/base/mem.h"
#include "tec/ctl/shutdown.h"

#define DELAY .delay_ms = 5000
#define GONE  .releasing = true, .released = true

Test(ctl_shutdown, decides_by_what_is_left)
{
	static const struct {
		const char *what;
		struct ctl_shutdown_view v;
		enum ctl_shutdown_do want;
	} table[] = {
		{"controllers still write", {DELAY, .controllers = true}, CTL_SHUTDOWN_WAIT},
		{"they have written", {DELAY, .controllers = true, .controls_end = true},
			CTL_SHUTDOWN_STOP},
		{"they take too long", {DELAY, .since_ms = 10000, .controllers = true},
			CTL_SHUTDOWN_STOP},
		{"the Lease goes back at once, not after the delay", {DELAY}, CTL_SHUTDOWN_RELEASE},
		{"its answer is waited for", {DELAY, .releasing = true}, CTL_SHUTDOWN_WAIT},
		{"the delay is not over", {DELAY, GONE, .since_ms = 4999}, CTL_SHUTDOWN_WAIT},
		{"the delay is over", {DELAY, GONE, .since_ms = 5000}, CTL_SHUTDOWN_DRAIN},
		{"no delay", {GONE}, CTL_SHUTDOWN_DRAIN},
		{"the delay does not wait for controllers",
			{DELAY, .since_ms = 5000, .controllers = true}, CTL_SHUTDOWN_DRAIN},
		{"controllers still write, listeners are done",
			{DELAY, .since_ms = 6000, .controllers = true, .draining = true},
			CTL_SHUTDOWN_WAIT},
		{"the Lease is not answered, listeners are done",
			{DELAY, .since_ms = 6000, .releasing = true, .draining = true},
			CTL_SHUTDOWN_WAIT},
		{"requests are in flight",
			{DELAY, GONE, .since_ms = 14999, .draining = true, .in_flight = true},
			CTL_SHUTDOWN_WAIT},
		{"they had their time",
			{DELAY, GONE, .since_ms = 15000, .draining = true, .in_flight = true},
			CTL_SHUTDOWN_END},
		{"nothing is left", {DELAY, GONE, .since_ms = 5000, .draining = true},
			CTL_SHUTDOWN_END},
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		cr_expect_eq(ctl_shutdown_decide(&table[i].v), table[i].want, "%s: %d",
			table[i].what, ctl_shutdown_decide(&table[i].v));
}

/* Whatever answers late, every start ends within the delay and twice the time to finish. */
Test(ctl_shutdown, every_start_ends)
{
	for (unsigned bits = 0; bits < 16; bits++) {
		struct ctl_shutdown_view v = {.delay_ms = bits & 1 ? 5000 : 0,
			.controllers = bits & 2,
			.in_flight = bits & 4};
		unsigned steps[CTL_SHUTDOWN_END + 1] = {0};
		enum ctl_shutdown_do act;

		while ((act = ctl_shutdown_decide(&v)) != CTL_SHUTDOWN_END) {
			cr_assert_leq(v.since_ms, 25000, "%u", bits);
			steps[act]++;
			v.controllers = v.controllers && act != CTL_SHUTDOWN_STOP;
			v.releasing = v.releasing || act == CTL_SHUTDOWN_RELEASE;
			v.draining = v.draining || act == CTL_SHUTDOWN_DRAIN;
			if (act != CTL_SHUTDOWN_WAIT)
				continue;
			v.since_ms += 50;
			v.released = v.releasing;
			v.controls_end = bits & 8;
		}
		cr_expect_eq(steps[CTL_SHUTDOWN_STOP], bits & 2 ? 1u : 0u, "%u", bits);
		cr_expect_eq(steps[CTL_SHUTDOWN_RELEASE], 1, "%u", bits);
		cr_expect_eq(steps[CTL_SHUTDOWN_DRAIN], 1, "%u", bits);
		cr_expect(v.since_ms >= v.delay_ms, "%u", bits);
	}
}
