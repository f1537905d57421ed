/* SPDX-License-Identifier: MIT */
/* A connection that loses requests and answers: only what failed is sent again, each key by its own
 * clock, and what takes something away goes first. */
#include "config.h"

#include "kbs/push_fixture.h"

TestSuite(kbs_push_network, .init = world_begin, .fini = world_end, .timeout = 60);

/* One request of `one_of` is lost from now on, before or after it was done; the same ones each
 * time.
 */
static void lose(unsigned one_of, enum fake_kbs_fault fault, unsigned requests)
{
	uint32_t die = 12345;

	for (unsigned n = 1; n <= requests; n++) {
		die = die * 1664525 + 1013904223;
		if ((die >> 8) % one_of == 0)
			fake_kbs_fault(kbs, n, NULL, fault, 0, NULL, NULL);
	}
}

static void machine(unsigned i, bool wanted)
{
	char key[64], identity[64], value[64];
	struct kobj *o;

	snprintf(key, sizeof(key), "default/%u/root", i);
	snprintf(identity, sizeof(identity), "ak.%u", i);
	snprintf(value, sizeof(value), "{\"ak\":\"%u\",\"machine\":\"m\"}", i);
	if (!wanted) {
		kbs_sync_revoke(sync, KBS_RESOURCE, key);
		kbs_sync_revoke(sync, KBS_REFVALUE, identity);
		return;
	}
	o = thing_new(key, value);
	kbs_sync_declare(sync, KBS_RESOURCE, key, o, thing_render);
	kbs_sync_declare_in(sync, KBS_REFVALUE, identity, o, 0, thing_render);
	kobj_unref(o);
}

static bool all_far(enum kbs_observed want, unsigned n)
{
	char name[64];

	for (unsigned i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "default/%u/root", i);
		if (observed(KBS_RESOURCE, name) != want)
			return false;
		snprintf(name, sizeof(name), "ak.%u", i);
		if (observed(KBS_REFVALUE, name) != want)
			return false;
	}
	return true;
}

/* How long until all are so. */
static unsigned took(enum kbs_observed want, unsigned n)
{
	unsigned ms = 0;

	for (; !all_far(want, n) && ms < 3600000; ms += 50)
		run(50);
	return ms;
}

/* No life's judges: the names are not wishes. */
static void at_loss(unsigned one_of, enum fake_kbs_fault fault, unsigned within_ms)
{
	unsigned ms;

	in_step();
	watched = false;
	fake_kbs_latency(kbs, 20);
	lose(one_of, fault, 2000);
	for (unsigned i = 0; i < 30; i++)
		machine(i, true);
	ms = took(KBS_OBSERVED_PRESENT, 30);
	cr_assert_leq(ms, within_ms, "1 of %u, fault %d: delivered after %u ms", one_of, fault, ms);
	for (unsigned i = 0; i < 30; i++)
		machine(i, false);
	ms = took(KBS_OBSERVED_ABSENT, 30);
	cr_assert_leq(ms, within_ms, "1 of %u, fault %d: revoked after %u ms", one_of, fault, ms);
	cr_assert_eq(fake_kbs_resources(kbs), (size_t)2);
}

Test(kbs_push_network, thirty_machines_are_there_and_gone_in_time)
{
	static const struct {
		unsigned one_of, within_ms;
	} rows[] = {{20, 3000}, {10, 3000}, {5, 6000}, {3, 15000}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		at_loss(rows[i].one_of, FAKE_KBS_ANSWER_LOST, rows[i].within_ms);
		world_end();
		world_begin();
	}
	/* Noticed after its deadline only, each: the others go on meanwhile. */
	at_loss(20, FAKE_KBS_LOST, 50000);
}

/* Of a hundred requests so many are lost, half of them before they were done and half after. */
static void lose_both_ways(uint32_t seed, unsigned percent, enum fake_kbs_fault before)
{
	for (unsigned n = 1; n <= 3000; n++) {
		uint32_t die = (seed * 3000 + n) * 2654435761u;

		die = (die ^ die >> 15) * 2246822519u;
		die = (die ^ die >> 13) * 3266489917u;
		die ^= die >> 16;
		if (die % 100 < percent)
			fake_kbs_fault(kbs, n, NULL, die / 100 % 2 ? before : FAKE_KBS_ANSWER_LOST,
				502, NULL, "");
	}
}

static void judge_policies(void *arg)
{
	cr_assert(!fake_kbs_resources(kbs) || str_eq(fake_kbs_policy(kbs, true), resource_policy),
		"a key in a store without our policy");
}

/* How long it takes until an empty Trustee has 30 machines. */
static unsigned first_fill(uint32_t seed, unsigned percent, enum fake_kbs_fault before)
{
	unsigned ms;

	watched = false;
	fake_kbs_on_change(kbs, judge_policies, NULL);
	fake_kbs_latency(kbs, 20);
	lose_both_ways(seed, percent, before);
	life_begin();
	for (unsigned i = 0; i < 30; i++)
		machine(i, true);
	ms = took(KBS_OBSERVED_PRESENT, 30);
	world_end();
	world_begin();
	return ms;
}

Test(kbs_push_network, a_first_fill_ends_although_most_requests_are_lost)
{
	static const struct {
		unsigned percent;
		enum fake_kbs_fault before;
		unsigned within_ms;
	} rows[] = {
		{50, FAKE_KBS_REFUSE, 30000},
		{75, FAKE_KBS_REFUSE, 900000}, /* half of each way */
		{80, FAKE_KBS_REFUSE, 1800000},
		/* Noticed after the deadline of 10 or 30 s only. */
		{50, FAKE_KBS_LOST, 900000},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		for (uint32_t seed = 1; seed <= 20; seed++) {
			unsigned ms = first_fill(seed, rows[i].percent, rows[i].before);

			cr_assert_leq(ms, rows[i].within_ms, "%u %%, seed %u: %u ms",
				rows[i].percent, seed, ms);
		}
	}
}

static void count_lost_stores(enum log_level level, const char *line, void *arg)
{
	(void)level;
	*(unsigned *)arg += strstr(line, "was lost or changed") != NULL;
}

/* The first requests do not arrive, so nothing is there that could be lost. */
Test(kbs_push_network, a_first_fill_goes_on_where_it_was_and_speaks_of_no_loss)
{
	unsigned lines = 0;

	log_setup(LOG_WARN, LOG_TEXT);
	log_capture(count_lost_stores, &lines);
	/* The sentinel twice, each policy, the values: each is lost once. */
	for (unsigned n = 1; n < 12; n += n < 3 ? 1 : 2)
		fake_kbs_fault(kbs, n, "POST", FAKE_KBS_REFUSE, 502, NULL, "");
	declare_some();
	life_begin();
	run(20000);
	assert_in_step("filled");
	cr_assert_eq(fake_kbs_count(kbs, "POST", "/resource-policy"), (size_t)2);
	cr_assert_eq(fake_kbs_count(kbs, "POST", "/attestation-policy"), (size_t)2);
	cr_assert_eq(lines, 0);
	store_lost = true;
	fake_kbs_lose_store(kbs);
	kbs_push_probe(push);
	run(20000);
	assert_in_step("filled again");
	cr_assert_eq(lines, 1);
	log_capture(NULL, NULL);
}

static unsigned changes_left;

static void lose_after_changes(void *arg)
{
	judge_policies(arg);
	if (changes_left && --changes_left == 0)
		fake_kbs_lose_store(kbs);
}

/* No request fails: another process answers. */
Test(kbs_push_network, a_store_that_is_lost_between_two_policies_gets_no_key_without_them)
{
	for (unsigned n = 1; n <= 3; n++) {
		store_lost = true;
		changes_left = n;
		fake_kbs_on_change(kbs, lose_after_changes, NULL);
		declare_some();
		life_begin();
		run(20000);
		cr_assert_eq(changes_left, 0);
		assert_in_step("filled");
		world_end();
		world_begin();
	}
}

Test(kbs_push_network, an_answer_that_came_counts_and_only_what_failed_is_sent_again)
{
	in_step();
	fake_kbs_latency(kbs, 50);
	fake_kbs_fault(kbs, 3, "POST", FAKE_KBS_ANSWER_LOST, 0, NULL, NULL);
	declare(KBS_RESOURCE, KEY("a"), "{\"key\":\"a\"}");
	declare(KBS_RESOURCE, KEY("b"), "{\"key\":\"b\"}");
	declare(KBS_RESOURCE, KEY("c"), "{\"key\":\"c\"}");
	run(160); /* a question and the dirty sentinel go first */
	cr_assert_eq(observed(KBS_RESOURCE, KEY("a")), KBS_OBSERVED_PRESENT);
	cr_assert_eq(
		observed(KBS_RESOURCE, KEY("b")), KBS_OBSERVED_UNKNOWN); /* it may have been done */
	cr_assert_eq(observed(KBS_RESOURCE, KEY("c")), KBS_OBSERVED_PRESENT);
	cr_assert_eq(push_status().state, KBS_TARGET_IN_SYNC);
	run(200);
	cr_assert_eq(observed(KBS_RESOURCE, KEY("b")), KBS_OBSERVED_PRESENT);
	/* and a probe before it: another process might have answered */
	cr_assert_eq(fake_kbs_requests(kbs), (size_t)7);
	cr_assert_eq(fake_kbs_count(kbs, "GET", KBS_SENTINEL), (size_t)2);
	run(10000);
	assert_in_step("delivered");
}

/* A process that was replaced comes back without anything, with policies that are open. */
Test(kbs_push_network, after_a_loss_no_key_goes_into_another_store)
{
	for (unsigned ms = 10; ms < 4000; ms += ms / 2) {
		in_step();
		watched = false;
		fake_kbs_latency(kbs, 10);
		fake_kbs_down(kbs, true);
		for (unsigned i = 0; i < 4; i++)
			machine(i, true);
		run(ms);
		fake_kbs_lose_store(kbs);
		fake_kbs_on_change(kbs, judge_policies, NULL);
		fake_kbs_down(kbs, false);
		machine(4, true);
		run(20000);
		cr_assert(all_far(KBS_OBSERVED_PRESENT, 5));
		cr_assert_eq(fake_kbs_resources(kbs), (size_t)7);
		world_end();
		world_begin();
	}
}

Test(kbs_push_network, a_key_that_is_never_taken_delays_no_other)
{
	in_step();
	revoke(KBS_RESOURCE, KEY("one"));
	for (unsigned n = 1; n <= 300; n++)
		fake_kbs_fault(kbs, n, "DELETE", FAKE_KBS_REFUSE, 500, "", NULL);
	for (int i = 0; i < 60; i++) {
		declare(KBS_RESOURCE, KEY("x"), i & 1 ? "{\"key\":\"a\"}" : "{\"key\":\"b\"}");
		run(1000);
		cr_assert_eq(
			observed(KBS_RESOURCE, KEY("x")), KBS_OBSERVED_PRESENT, "after %d s", i);
		cr_assert_eq(push_status().state, KBS_TARGET_IN_SYNC);
	}
	cr_assert_neq(observed(KBS_RESOURCE, KEY("one")), KBS_OBSERVED_ABSENT);
	/* 0.1 s doubling to 30 s */
	cr_assert_leq(fake_kbs_count(kbs, "DELETE", NULL), (size_t)13);
}

Test(kbs_push_network, what_is_revoked_goes_before_what_is_delivered)
{
	conf.window = 1;
	in_step();
	watched = false;
	declare(KBS_REFVALUE, "ak.two", IDENTITY("new")); /* the sentinel is dirty from here on */
	run(100);
	fake_kbs_latency(kbs, 10);
	for (unsigned i = 0; i < 100; i++)
		machine(i, true);
	revoke(KBS_RESOURCE, KEY("one"));
	kbs_sync_revoke(sync, KBS_RESOURCE, "default/99/root");
	run(60);
	cr_assert_eq(observed(KBS_RESOURCE, KEY("one")), KBS_OBSERVED_ABSENT);
	cr_assert_eq(observed(KBS_RESOURCE, "default/99/root"), KBS_OBSERVED_ABSENT);
	cr_assert_neq(observed(KBS_RESOURCE, "default/98/root"), KBS_OBSERVED_PRESENT);
}

Test(kbs_push_network, while_it_is_away_no_window_is_opened)
{
	in_step();
	watched = false;
	fake_kbs_down(kbs, true);
	for (unsigned i = 0; i < 100; i++)
		machine(i, true);
	run(60000);
	/* What was in flight when it went away, then one probe at a time. */
	cr_assert_leq(fake_kbs_count(kbs, "POST", NULL), (size_t)40);
	cr_assert_eq(push_status().state, KBS_TARGET_UNREACHABLE);
	fake_kbs_forget(kbs);
	fake_kbs_down(kbs, false);
	run(35000);
	cr_assert(all_far(KBS_OBSERVED_PRESENT, 100));
}

Test(kbs_push_network, the_window_shrinks_with_losses_and_grows_with_answers)
{
	in_step();
	watched = false;
	fake_kbs_latency(kbs, 100);
	for (unsigned n = 2; n <= 5; n++)
		fake_kbs_fault(kbs, n, "POST", FAKE_KBS_ANSWER_LOST, 0, NULL, NULL);
	for (unsigned i = 0; i < 200; i++)
		machine(i, true);
	run(250);
	cr_assert_geq(fake_kbs_in_flight(kbs), (size_t)32);
	run(100);
	fake_kbs_forget(kbs); /* the most from here on */
	run(100);
	cr_assert_lt(fake_kbs_most_in_flight(kbs), (size_t)33);
	run(5000);
	cr_assert_geq(fake_kbs_most_in_flight(kbs), (size_t)30);
	cr_assert(all_far(KBS_OBSERVED_PRESENT, 200));
}

Test(kbs_push_network, a_lost_store_is_noticed_within_twenty_seconds)
{
	conf.probe_ms = 0; /* as it is by default */
	in_step();
	run(100000);
	cr_assert_leq(fake_kbs_requests(kbs), (size_t)10); /* one in ten seconds */
	store_lost = true;
	fake_kbs_lose_store(kbs);
	run(18000);
	cr_assert_null(store_differs());
}

/* What was in flight then and failed is sent to the new store like any other. */
Test(kbs_push_network, a_key_in_flight_when_the_store_was_lost_is_confirmed_by_its_next_try)
{
	in_step();
	fake_kbs_fault(kbs, 2, "POST", FAKE_KBS_LOST, 0, NULL, NULL);
	declare(KBS_RESOURCE, KEY("new"), "{\"key\":\"n\"}");
	run(100);
	store_lost = true;
	fake_kbs_lose_store(kbs);
	kbs_push_probe(push);
	run(20000);
	cr_assert_eq(observed(KBS_RESOURCE, KEY("new")), KBS_OBSERVED_PRESENT);
	cr_assert_eq(fake_kbs_count(kbs, "POST", KEY("new")), (size_t)2);
	assert_in_step("filled again");
}

Test(kbs_push_network, a_probe_that_is_lost_is_sent_again_and_nothing_else)
{
	in_step();
	fake_kbs_fault(kbs, 1, "GET", FAKE_KBS_ANSWER_LOST, 0, NULL, NULL);
	run(PROBE_MS + 5000);
	cr_assert_eq(fake_kbs_requests(kbs), (size_t)2);
	cr_assert_eq(push_status().state, KBS_TARGET_IN_SYNC);
	assert_in_step("probed");
}

/* As when its clock is hours away from ours. */
Test(kbs_push_network, a_refused_token_is_tried_again_within_half_a_minute)
{
	in_step();
	for (unsigned n = 1; n <= 20; n++)
		fake_kbs_fault(kbs, n, NULL, FAKE_KBS_REFUSE, 401, "AdminAuthAccess", NULL);
	declare(KBS_RESOURCE, KEY("new"), "{\"key\":\"n\"}");
	run(19 * 20000);
	cr_assert_eq(push_status().state, KBS_TARGET_REFUSED);
	run(25000);
	cr_assert_eq(observed(KBS_RESOURCE, KEY("new")), KBS_OBSERVED_PRESENT);
	run(10000);
	assert_in_step("taken");
}

Test(kbs_push_network, a_process_that_ends_leaves_the_clean_sentinel)
{
	in_step();
	fake_kbs_latency(kbs, 100);
	declare(KBS_RESOURCE, KEY("new"), "{\"key\":\"n\"}");
	declare(KBS_REFVALUE, "ak.new", IDENTITY("new"));
	revoke(KBS_RESOURCE, KEY("one"));
	run(0);
	kbs_push_finish(push);
	cr_assert_not(kbs_push_is_finished(push));
	run(1000); /* not the three seconds that it rests otherwise */
	cr_assert(kbs_push_is_finished(push));
	assert_in_step("finished");
	forget_gone();
	life_end();
	fake_kbs_forget(kbs);
	life_begin();
	run(10000);
	cr_assert_eq(fake_kbs_requests(kbs), (size_t)1); /* a probe */
	assert_in_step("the next life");
}

Test(kbs_push_network, a_process_that_ends_does_not_wait_for_a_trustee_that_is_away)
{
	in_step();
	fake_kbs_down(kbs, true);
	declare(KBS_RESOURCE, KEY("new"), "{\"key\":\"n\"}");
	run(10000);
	kbs_push_finish(push);
	cr_assert(kbs_push_is_finished(push));
	fake_kbs_down(kbs, false);
	run(60000);
}

/* Acknowledged, and not there: as of LocalJson, which several writes at once get the better of. */
Test(kbs_push_network, what_was_confirmed_and_is_not_there_is_found_once_and_sent_again)
{
	conf.read_back = true;
	fake_kbs_lists(kbs, true);
	store_lost = true; /* what is confirmed need not be true here */
	fake_kbs_forgets(kbs, KEY("two"));
	fake_kbs_forgets(kbs, "ak.one");
	fake_kbs_forgets(kbs, "boot.4.14");
	declare_some();
	life_begin();
	run(10000);
	store_lost = false;
	assert_in_step("read back");
	cr_assert_eq(fake_kbs_count(kbs, "GET", "/kbs/v0/resource"), (size_t)1);
	cr_assert_eq(fake_kbs_count(kbs, "POST", KEY("two")), (size_t)2);
	cr_assert_eq(fake_kbs_count(kbs, "POST", KEY("one")), (size_t)1);
	fake_kbs_forget(kbs);
	run(100000);
	cr_assert_eq(fake_kbs_requests(kbs), (size_t)0); /* once */
}

Test(kbs_push_network, a_trustee_that_lists_nothing_is_not_filled_again)
{
	conf.read_back = true;
	declare_some();
	life_begin();
	run(10000);
	assert_in_step("read back");
	cr_assert_eq(fake_kbs_count(kbs, "POST", KEY("two")), (size_t)1);
}

/* A Trustee that comes back empty while it is read back: what was there when it was asked for is lost too. */
Test(kbs_push_network, a_store_that_is_lost_while_it_is_read_back_is_filled_again)
{
	conf.read_back = true;
	store_lost = true;
	for (size_t n = 0; n < 3; n++) { /* of the values that are read back */
		size_t sent;

		fake_kbs_latency(kbs, 100);
		declare_some();
		life_begin();
		while (push_status().state != KBS_TARGET_IN_SYNC)
			run(20);
		sent = fake_kbs_requests(kbs);
		while (fake_kbs_requests(kbs) < sent + n)
			run(20);
		fake_kbs_lose_store(kbs);
		run(60000);
		assert_in_step("read back");
		life_end();
		fake_kbs_lose_store(kbs);
	}
	store_lost = false;
}

/* No request fails then, as of a Trustee that restarts between two of them. */
Test(kbs_push_network, a_store_that_is_lost_around_a_change_is_filled_again)
{
	for (unsigned ms = 0; ms < 4000; ms += 100) {
		in_step();
		if (ms)
			declare(KBS_REFVALUE, "ak.new", IDENTITY("new"));
		run(ms);
		store_lost = true;
		fake_kbs_lose_store(kbs);
		run(10000);
		declare(KBS_REFVALUE, "ak.newer", IDENTITY("newer"));
		declare(KBS_RESOURCE, KEY("newer"), "{\"key\":\"n\"}");
		run(20000);
		assert_in_step("filled again");
		world_end();
		world_begin();
	}
}

/* It has forgotten the policies too: no key is sent to it before they are there again. */
Test(kbs_push_network, no_key_is_sent_to_a_store_that_was_lost_unnoticed)
{
	size_t i = 0;

	in_step();
	store_lost = true;
	fake_kbs_lose_store(kbs);
	declare(KBS_RESOURCE, KEY("new"), "{\"key\":\"n\"}");
	run(10000);
	while (!strstr(fake_kbs_request(kbs, i)->path, "/resource/"))
		i++;
	cr_assert_eq(fake_kbs_count(kbs, "POST", "-policy"), (size_t)2);
	cr_assert_geq(i, (size_t)4); /* a question, two policies, the values */
	assert_in_step("filled again");
}
