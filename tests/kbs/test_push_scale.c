/* SPDX-License-Identifier: MIT */
/* Thousands of machines: the window, batches, and requests in proportion to changes. */
#include "config.h"

#include "kbs/push_fixture.h"

#define MANY 2000u

static void up(void)
{
	world_begin();
	watched = false;
}

TestSuite(kbs_push_scale, .init = up, .fini = world_end, .timeout = 120);

/* As long as real ones. */
static void machine(unsigned i, bool wanted)
{
	char path[64], name[300], value[600];

	snprintf(path, sizeof(path), KEY("00000000-0000-4000-8000-%012u"), i);
	snprintf(name, sizeof(name), "ak.%0240u", i);
	snprintf(value, sizeof(value), "[{\"ak\":\"%0392u\",\"machine\":\"%036u\"}]", i, i);
	if (wanted) {
		declare_in(sync, KBS_RESOURCE, path, "{\"key_type\":\"oct\",\"key\":\"x\"}");
		declare_in(sync, KBS_REFVALUE, name, value);
	} else {
		kbs_sync_revoke(sync, KBS_RESOURCE, path);
		kbs_sync_revoke(sync, KBS_REFVALUE, name);
	}
}

static void machines(unsigned n, bool wanted)
{
	for (unsigned i = 0; i < n; i++)
		machine(i, wanted);
}

static size_t largest_body(void)
{
	size_t most = 0;

	for (size_t i = 0; i < fake_kbs_requests(kbs); i++)
		if (fake_kbs_request(kbs, i)->body_len > most)
			most = fake_kbs_request(kbs, i)->body_len;
	return most;
}

static void filled(unsigned n)
{
	fake_kbs_latency(kbs, 20);
	life_begin();
	machines(n, true);
	run(60000);
	cr_assert_eq(push_status().state, KBS_TARGET_IN_SYNC, "%s", push_status().error);
	cr_assert_eq(fake_kbs_resources(kbs), n);
}

Test(kbs_push_scale, thousands_are_one_request_each_and_a_few_messages)
{
	size_t messages;

	filled(MANY);
	messages = fake_kbs_count(kbs, "POST", "/reference-value");
	/* 2,000 of 700 bytes in messages of 512 KiB of base64: 4, and two of a sentinel. */
	cr_assert_geq(messages, (size_t)5);
	cr_assert_leq(messages, (size_t)7);
	cr_assert_eq(fake_kbs_requests(kbs), MANY + messages + 5);
	cr_assert_leq(largest_body(), 512u * 1024);
	cr_assert_gt(largest_body(), 500u * 1024);
	cr_assert_eq(fake_kbs_most_in_flight(kbs), (size_t)32);
}

Test(kbs_push_scale, the_window_is_what_was_asked_for_and_deletes_stay_in_it)
{
	conf.window = 5;
	filled(200);
	cr_assert_eq(fake_kbs_most_in_flight(kbs), (size_t)5);
	fake_kbs_forget(kbs);
	machines(200, false);
	run(60000);
	cr_assert_eq(fake_kbs_resources(kbs), (size_t)0);
	/* and one message of values beside them */
	cr_assert_geq(fake_kbs_most_in_flight(kbs), (size_t)5);
	cr_assert_leq(fake_kbs_most_in_flight(kbs), (size_t)6);
}

Test(kbs_push_scale, one_among_thousands_is_five_requests_and_a_restart_one)
{
	filled(MANY);
	fake_kbs_forget(kbs);
	machine(MANY, true);
	run(10000);
	cr_assert_eq(fake_kbs_requests(kbs), (size_t)5);
	machine(MANY, false);
	run(10000);
	cr_assert_leq(fake_kbs_requests(kbs), (size_t)10);
	life_end();
	fake_kbs_forget(kbs);
	life_begin();
	machines(MANY, true);
	run(60000);
	cr_assert_eq(fake_kbs_requests(kbs), (size_t)1);
	cr_assert_eq(push_status().state, KBS_TARGET_IN_SYNC);
}

Test(kbs_push_scale, with_every_answer_taking_long_the_probe_does_not_starve_the_work)
{
	fake_kbs_latency(kbs, 5000);
	life_begin();
	machines(2000, true);
	run(600000); /* 2000 / 32 * 5 s = 313 s */
	cr_assert_eq(push_status().state, KBS_TARGET_IN_SYNC);
	cr_assert_eq(fake_kbs_resources(kbs), (size_t)2000);
	cr_assert_leq(fake_kbs_requests(kbs), (size_t)2000 + 14);
}

Test(kbs_push_scale, shared_is_one_array_in_one_message)
{
	shared = true;
	conf.max_body = 100000; /* of other values: the array is one value */
	fake_kbs_max_body(kbs, 8u << 20);
	filled(3000);
	cr_assert_eq(fake_kbs_count(kbs, "POST", "/reference-value"), (size_t)3);
	cr_assert_eq(strlen(fake_kbs_value(kbs, "trusted_aks")), 3000 * (392 + 3) + (size_t)1);
}

Test(kbs_push_scale, a_shared_array_that_no_trustee_takes_is_refused_in_words)
{
	shared = true;
	fake_kbs_max_body(kbs, 8u << 20);
	fake_kbs_latency(kbs, 0);
	life_begin();
	machines(14000, true); /* 14,000 * 395 / 3 * 4 = 7.4 MB */
	run(60000);
	cr_assert_eq(push_status().state, KBS_TARGET_REFUSED);
	cr_assert(strstr(push_status().error, "PerMachine"));
	cr_assert_lt(fake_kbs_requests(kbs), (size_t)6);
}
