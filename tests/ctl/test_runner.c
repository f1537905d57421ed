/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/caches/kinds.h"
#include "tec/ctl/runner.h"

static struct {
	struct loop *loop;
	struct ctl_runner *r;
	struct k8s_cache *cache, *other;
	unsigned steps, maps;
	char last[64];
	struct op_scope ops;
	struct op *call;    /* every step starts the next of these; NULL: none does */
	unsigned again;     /* so many steps of a key follow each other at once; 0: one */
	uint8_t had[5000];  /* by the number in the name */
	unsigned last_ones; /* steps that seemed to be the last */
} t;

static void no_abort(struct op *op)
{
}

static struct queue_next step(void *self, const struct kobj_key *key)
{
	t.steps++;
	t.last_ones += !ctl_runner_is_behind(t.r);
	cr_assert_str_eq(key->ns, "ns");
	snprintf(t.last, sizeof(t.last), "%s", key->name);
	if (t.call)
		op_begin(t.call++, &t.ops, no_abort);
	if (t.again && ++t.had[strtoul(key->name + 1, NULL, 10)] % t.again)
		ctl_runner_wake(t.r, key->name);
	return (struct queue_next){.verdict = QUEUE_SETTLED};
}

static void map(void *self, const struct kobj *was, const struct kobj *now)
{
	t.maps++;
	ctl_runner_wake(t.r, was ? was->name : now->name);
}

static void put_into(struct k8s_cache *cache, const char *name, const char *rv)
{
	struct json_object *o = json_obj(), *m = json_obj();

	json_add_str(
		json_add_str(json_add_str(m, "name", name), "uid", name), "resourceVersion", rv);
	json_add(o, "metadata", m);
	k8s_cache_put(cache, o);
	json_object_put(o);
}

static void put(const char *name, const char *rv)
{
	put_into(t.cache, name, rv);
}

static void up(void)
{
	clock_fake_start(1000, 1800000000);
	memset(&t, 0, sizeof(t));
	t.loop = loop_new();
	t.cache = k8s_cache_new(&caches_kinds[CACHES_SERVICES].cache);
	t.other = k8s_cache_new(&caches_kinds[CACHES_SERVICES].cache);
	t.r = ctl_runner_new(t.loop, &(struct queue_conf){.name = "test"}, "ns", step, &t);
	ctl_runner_watch(t.r, t.cache, map);
}

static void down(void)
{
	ctl_runner_free(t.r);
	k8s_cache_free(t.cache);
	k8s_cache_free(t.other);
	loop_free(t.loop);
	clock_fake_stop();
}

TestSuite(ctl_runner, .init = up, .fini = down);

Test(ctl_runner, is_off_at_first_and_on_makes_up_for_what_was_missed)
{
	put("a", "1");
	put("b", "2");
	loop_advance(t.loop, 5000);
	cr_assert_eq(t.steps, 0);
	ctl_runner_on(t.r);
	loop_drain(t.loop);
	cr_assert_eq(t.steps, 2);
}

Test(ctl_runner, a_change_is_one_step_however_often_it_is_told)
{
	ctl_runner_on(t.r);
	put("a", "1");
	put("a", "2");
	ctl_runner_wake(t.r, "a");
	loop_drain(t.loop);
	cr_assert_eq(t.steps, 1);
	cr_assert_str_eq(t.last, "a");
	k8s_cache_remove(t.cache, "a", NULL);
	loop_drain(t.loop);
	cr_assert_eq(t.steps, 2);
}

Test(ctl_runner, off_runs_nothing_but_still_maps)
{
	ctl_runner_on(t.r);
	ctl_runner_off(t.r);
	put("a", "1");
	loop_advance(t.loop, 5000);
	cr_assert_eq(t.steps, 0);
	cr_assert_eq(t.maps, 1);
	ctl_runner_on(t.r);
	loop_drain(t.loop);
	cr_assert_eq(t.steps, 1);
}

Test(ctl_runner, looks_again_within_about_an_hour_unless_forgotten)
{
	ctl_runner_on(t.r);
	put("a", "1");
	loop_drain(t.loop);
	loop_advance(t.loop, 67 * 60 * 1000);
	cr_assert_eq(t.steps, 2);
	ctl_runner_forget(t.r, "a");
	loop_advance(t.loop, 3 * 3600 * 1000);
	cr_assert_eq(t.steps, 2);
	ctl_runner_wake_after(t.r, "a", 1000);
	loop_advance(t.loop, 999);
	cr_assert_eq(t.steps, 2);
	loop_advance(t.loop, 1);
	cr_assert_eq(t.steps, 3);
}

static void fill_cache_with(int n)
{
	char name[16];

	for (int i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "o%d", i);
		put(name, "1");
	}
	ctl_runner_keys(t.r, t.cache);
}

/* 200 objects, whose names are keys, and a key of no object. */
static void fill_cache(void)
{
	fill_cache_with(200);
}

static void step_all(void)
{
	fill_cache();
	ctl_runner_on(t.r);
	ctl_runner_wake(t.r, "of-no-object");
	loop_drain(t.loop);
	cr_assert_eq(t.steps, 201);
}

Test(ctl_runner, each_object_is_looked_at_once_an_hour_a_few_at_a_time)
{
	unsigned most = 0;

	step_all();
	for (int m = 0; m < 60; m++) {
		unsigned before = t.steps;

		loop_advance(t.loop, 60 * 1000);
		if (t.steps - before > most)
			most = t.steps - before;
	}
	cr_assert(t.steps == 401 || t.steps == 402, "%u",
		t.steps); /* 54 to 66 min: the one without */
	cr_assert_leq(most, 20);
	loop_advance(t.loop, 7 * 60 * 1000);
	k8s_cache_remove(t.cache, "o7", NULL);
	loop_drain(t.loop);
	ctl_runner_forget(t.r, "o7"); /* as its step does */
	t.steps = 0;
	loop_advance(t.loop, 60 * 60 * 1000);
	cr_assert(t.steps >= 199 && t.steps <= 201, "%u", t.steps);
}

Test(ctl_runner, a_settled_object_costs_the_queue_nothing)
{
	size_t before;

	fill_cache();
	before = mallinfo2().uordblks;
	ctl_runner_on(t.r);
	for (int i = 0; i < 3; i++) {
		loop_advance(t.loop, 60 * 60 * 1000);
		cr_assert_leq(mallinfo2().uordblks, before + 8000, "%zu bytes",
			mallinfo2().uordblks - before); /* the table's buckets */
	}
}

/* A key that is due takes more than 100 bytes. */
Test(ctl_runner, many_objects_are_due_a_slice_at_a_time)
{
	size_t before, most;

	fill_cache_with(5000);
	most = before = mallinfo2().uordblks;
	ctl_runner_on(t.r);
	for (int i = 0; i < 1000 && t.steps < 10000; i++) {
		if (t.steps == 5000)
			ctl_runner_wake_all(t.r);
		most = mallinfo2().uordblks > most ? mallinfo2().uordblks : most;
		loop_turn(t.loop, 0);
	}
	cr_assert_eq(t.steps, 10000, "%u", t.steps);
	cr_assert_leq(most, before + 100000, "%zu bytes", most - before);
}

/* Of 5000 names, half are in both caches; none is settled by a deadline of its own. */
Test(ctl_runner, names_of_two_caches_are_due_a_slice_at_a_time)
{
	size_t before, most;
	char name[16];

	fill_cache_with(3750);
	for (int i = 1250; i < 5000; i++) {
		snprintf(name, sizeof(name), "o%d", i);
		put_into(t.other, name, "1");
	}
	ctl_runner_keys(t.r, t.other);
	ctl_runner_watch(t.r, t.other, map);
	most = before = mallinfo2().uordblks;
	ctl_runner_on(t.r);
	cr_assert(ctl_runner_is_behind(t.r));
	for (int i = 0; i < 1000 && ctl_runner_is_behind(t.r); i++) {
		most = mallinfo2().uordblks > most ? mallinfo2().uordblks : most;
		loop_turn(t.loop, 0);
	}
	cr_assert_eq(t.steps, 5000, "%u", t.steps);
	cr_assert_eq(t.last_ones, 1, "%u", t.last_ones);
	cr_assert_leq(most, before + 100000, "%zu bytes", most - before);
	loop_advance(t.loop, 60 * 60 * 1000);
	cr_assert(t.steps >= 9900 && t.steps <= 10100, "%u", t.steps);
	cr_assert_leq(
		mallinfo2().uordblks, before + 20000, "%zu bytes", mallinfo2().uordblks - before);
}

/* Each key needs ten steps, as a copy does. */
Test(ctl_runner, a_key_has_all_its_steps_before_most_have_one)
{
	unsigned most = 0;

	fill_cache_with(5000);
	t.again = 10;
	ctl_runner_on(t.r);
	for (int i = 0; i < 5000 && ctl_runner_is_behind(t.r); i++) {
		unsigned due = (unsigned)queue_due(ctl_runner_queue(t.r));

		most = due > most ? due : most;
		loop_turn(t.loop, 0);
	}
	cr_assert_eq(t.steps, 50000, "%u", t.steps);
	cr_assert_leq(most, 1200, "%u", most);
}

Test(ctl_runner, keys_that_stay_due_do_not_stop_the_walk)
{
	fill_cache_with(5000);
	t.again = 256;
	ctl_runner_on(t.r);
	while (t.steps < 200000)
		loop_turn(t.loop, 0);
	for (size_t i = 0; i < ARRAY_LEN(t.had); i++)
		cr_assert_gt(t.had[i], 0, "o%zu", i);
}

Test(ctl_runner, the_next_slice_comes_also_when_the_queue_stands)
{
	struct op *calls = calloc(5000, sizeof(*calls));

	fill_cache_with(5000);
	t.call = calls;
	ctl_runner_bound(t.r, &t.ops);
	ctl_runner_on(t.r);
	loop_advance(t.loop, 60 * 1000);
	cr_assert_leq(queue_due(ctl_runner_queue(t.r)), 400);
	loop_advance(t.loop, 65 * 60 * 1000);
	cr_assert_eq(t.steps, CTL_RUNNER_IN_FLIGHT);
	cr_assert_geq(queue_due(ctl_runner_queue(t.r)), 5000 - CTL_RUNNER_IN_FLIGHT);
	op_scope_cancel(&t.ops);
	free(calls);
}

Test(ctl_runner, while_off_nothing_is_looked_at)
{
	step_all();
	ctl_runner_off(t.r);
	loop_advance(t.loop, 3 * 60 * 60 * 1000);
	cr_assert_eq(t.steps, 201);
	ctl_runner_on(t.r);
	loop_drain(t.loop);
	cr_assert_eq(t.steps, 402);
}

/* 100 keys, whose steps start a call each. */
static void fill(struct op calls[100])
{
	char name[16];

	t.call = calls;
	ctl_runner_bound(t.r, &t.ops);
	ctl_runner_on(t.r);
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "k%d", i);
		ctl_runner_wake(t.r, name);
	}
	loop_drain(t.loop);
}

Test(ctl_runner, keys_wait_while_many_calls_are_in_flight)
{
	struct op calls[110];

	fill(calls);
	cr_assert_eq(t.steps, CTL_RUNNER_IN_FLIGHT);
	ctl_runner_wake(t.r, "k0"); /* nothing has ended */
	loop_drain(t.loop);
	cr_assert_eq(t.steps, CTL_RUNNER_IN_FLIGHT);
	op_finish(&calls[0]);
	ctl_runner_resume(t.r);
	loop_drain(t.loop);
	cr_assert_eq(t.steps, CTL_RUNNER_IN_FLIGHT + 1);
	op_scope_cancel(&t.ops);
	t.call = NULL;
	ctl_runner_wake(t.r, "k0");
	loop_drain(t.loop);
	cr_assert_eq(t.steps, 101); /* k0 twice */
}

Test(ctl_runner, on_again_starts_with_room)
{
	struct op calls[110];

	fill(calls);
	ctl_runner_off(t.r);
	op_scope_cancel(&t.ops);
	t.call = NULL;
	ctl_runner_resume(t.r);
	loop_drain(t.loop);
	cr_assert_eq(t.steps, CTL_RUNNER_IN_FLIGHT);
	ctl_runner_on(t.r);
	loop_drain(t.loop);
	cr_assert_eq(t.steps, 100);
}
