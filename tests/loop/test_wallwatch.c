/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include "tec/base/clock.h"
#include "tec/loop/wallwatch.h"

#define NOW 1800000000

static int64_t told;
static unsigned n_told;

static void tell(void *arg, int64_t by_s)
{
	cr_assert_eq(arg, (void *)&told);
	told = by_s;
	n_told++;
}

Test(loop_wallwatch, a_clock_that_is_set_is_told_once)
{
	struct wallwatch w = {.fn = NULL};
	struct loop *l;

	clock_fake_start(1000, NOW);
	l = loop_new();
	wallwatch_start(&w, l, tell, &told);
	loop_advance(l, 24 * 3600 * 1000);
	cr_expect_eq(n_told, 0, "time passes");
	clock_fake_set_wall(clock_wall_s() + 60);
	loop_advance(l, 120 * 1000);
	cr_expect_eq(n_told, 0, "a small step");
	clock_fake_set_wall(clock_wall_s() + 1);
	loop_advance(l, 30 * 1000);
	cr_expect_eq(n_told, 1, "steps that add up");
	clock_fake_set_wall(clock_wall_s() - 400 * 24 * 3600);
	loop_advance(l, 3600 * 1000);
	cr_expect_eq(n_told, 2);
	cr_expect_eq(told, -400 * 24 * 3600);
	wallwatch_stop(&w);
	loop_free(l);
	clock_fake_stop();
}
