/* SPDX-License-Identifier: MIT */
/* Two clusters with one Trustee: one goes on, the other one stops. */
#include "config.h"

#include "kbs/push_fixture.h"

#define POLICY_2   "package policy # attestation of the second"
#define RESOURCE_2 "package policy # resource of the second"
#define MARK_OF_2  "{\"cluster\":\"c-2\",\"session\":\"\",\"sum\":\"00\"}"

static const char *replaceable; /* the cluster whose sentinel the first one may replace; static */
static unsigned n_replaced;
static struct kbs_sync *sync_2;
static struct kbs_push *push_2;

static bool may_replace(void *arg, const char *cluster)
{
	return str_eq(cluster, arg ? NULL : replaceable);
}

static void did_replace(void *arg, const char *cluster)
{
	cr_assert_not(arg);
	cr_assert_str_eq(cluster, replaceable);
	cr_assert(strstr(fake_kbs_value(kbs, KBS_SENTINEL), "\"c-1\""), "not yet");
	n_replaced++;
}

static void begin(void)
{
	world_begin();
	replaceable = NULL;
	n_replaced = 0;
	conf.may_replace = may_replace;
	conf.did_replace = did_replace;
	conf.probe_ms = 15000;
	conf.max_body = 1; /* a message for each value */
}

static void end_2(void)
{
	kbs_push_free(push_2);
	kbs_sync_free(sync_2);
	push_2 = NULL;
	sync_2 = NULL;
}

static void end(void)
{
	end_2();
	world_end();
}

TestSuite(kbs_push_clusters, .init = begin, .fini = end);

/* The second one replaces no other's sentinel. What it wants differs in all that can. */
static void begin_2(void)
{
	struct kbs_push_conf c = conf;

	c.cluster_uid = "c-2";
	c.replace_arg = &sync_2;
	sync_2 = kbs_sync_new();
	kbs_sync_policies(sync_2, POLICY_2, RESOURCE_2, false);
	push_2 = kbs_push_new(loop, sync_2, &c, fake_kbs_transport(kbs));
	declare_in(sync_2, KBS_REFVALUE, "ak.three", IDENTITY("three"));
	declare_in(sync_2, KBS_REFVALUE, "boot.4.14", "{\"images\":[\"other\"]}");
	declare_in(sync_2, KBS_RESOURCE, KEY("three"), "{\"key\":\"3\"}");
	watched = false;
}

static enum kbs_target_state state_2(void)
{
	struct kbs_target_status s = {0};

	kbs_sync_target(sync_2, 0, &s);
	return s.state;
}

/* All that it wants is there, after all else that was written. */
static void assert_complete_2(const char *when)
{
	cr_assert_eq(state_2(), KBS_TARGET_IN_SYNC, "%s", when);
	cr_assert_str_eq(fake_kbs_policy(kbs, false), POLICY_2, "%s", when);
	cr_assert_str_eq(fake_kbs_policy(kbs, true), RESOURCE_2, "%s", when);
	cr_assert_str_eq(fake_kbs_value(kbs, "ak.three"), IDENTITY("three"), "%s", when);
	cr_assert_str_eq(fake_kbs_value(kbs, "boot.4.14"), "{\"images\":[\"other\"]}", "%s", when);
	cr_assert_str_eq(fake_kbs_resource(kbs, KEY("three")), "{\"key\":\"3\"}", "%s", when);
	cr_assert(strstr(fake_kbs_value(kbs, KBS_SENTINEL), "\"c-2\""), "%s", when);
}

static void assert_complete_1(const char *when)
{
	cr_assert_eq(push_status().state, KBS_TARGET_IN_SYNC, "%s", when);
	cr_assert_str_eq(fake_kbs_policy(kbs, false), attestation, "%s", when);
	cr_assert_str_eq(fake_kbs_policy(kbs, true), resource_policy, "%s", when);
	for (size_t i = 0; i < n_wishes; i++)
		cr_assert(holds(&wishes[i], wishes[i].value), "%s: %s", when, wishes[i].name);
	cr_assert(strstr(fake_kbs_value(kbs, KBS_SENTINEL), "\"c-1\""), "%s", when);
}

static size_t writes(void)
{
	return fake_kbs_requests(kbs) - fake_kbs_count(kbs, "GET", NULL);
}

Test(kbs_push_clusters, nothing_is_written_to_anothers_trustee)
{
	fake_kbs_put_value(kbs, KBS_SENTINEL, MARK_OF_2);
	declare_some();
	life_begin();
	run(1000);
	cr_assert_eq(push_status().state, KBS_TARGET_CONFLICT);
	cr_assert(strstr(push_status().error, "c-2"), "%s", push_status().error);
	cr_assert_eq(kbs_sync_state(sync), KBS_TARGET_CONFLICT);
	/* Changes wait; one question per interval. */
	revoke(KBS_RESOURCE, KEY("one"));
	declare(KBS_REFVALUE, "ak.new", IDENTITY("new"));
	attestation = "package policy # newer";
	kbs_sync_policies(sync, attestation, resource_policy, false);
	run(600000);
	cr_assert_eq(writes(), 0);
	cr_assert_leq(fake_kbs_requests(kbs), 42);
	cr_assert_geq(fake_kbs_requests(kbs), 40);
	cr_assert_eq(observed(KBS_RESOURCE, KEY("one")), KBS_OBSERVED_UNKNOWN);
	cr_assert(kbs_push_is_finished(push)); /* the end of the process waits for nothing */
}

Test(kbs_push_clusters, a_conflict_ends_by_permission_at_once_and_by_release_in_an_interval)
{
	fake_kbs_put_value(kbs, KBS_SENTINEL, MARK_OF_2);
	declare_some();
	life_begin();
	run(20000);
	cr_assert_eq(push_status().state, KBS_TARGET_CONFLICT);
	replaceable = "c-3";
	kbs_push_probe(push);
	run(20000);
	cr_assert_eq(writes(), 0);
	replaceable = "c-2";
	fake_kbs_fault(kbs, 2, NULL, FAKE_KBS_REFUSE, 500, "", ""); /* our first write */
	kbs_push_probe(push);
	run(50);
	cr_assert_eq(n_replaced, 0);
	run(5000);
	assert_in_step("permitted");
	cr_assert_eq(n_replaced, 1);
	/* Another one took it over meanwhile, and is gone. */
	fake_kbs_put_value(
		kbs, KBS_SENTINEL, "{\"cluster\":\"c-3\",\"session\":\"\",\"sum\":\"\"}");
	store_lost = true;
	run(20000);
	cr_assert_eq(push_status().state, KBS_TARGET_CONFLICT);
	fake_kbs_put_value(kbs, KBS_SENTINEL, "{\"cluster\":\"\",\"session\":\"\",\"sum\":\"\"}");
	run(20000);
	store_lost = false;
	run(10000);
	assert_in_step("released");
}

Test(kbs_push_clusters, away_and_back_is_a_conflict_still)
{
	fake_kbs_put_value(kbs, KBS_SENTINEL, MARK_OF_2);
	declare_some();
	life_begin();
	run(1000);
	fake_kbs_down(kbs, true);
	run(60000);
	cr_assert_eq(push_status().state, KBS_TARGET_UNREACHABLE);
	fake_kbs_down(kbs, false);
	run(60000);
	cr_assert_eq(push_status().state, KBS_TARGET_CONFLICT);
	cr_assert_eq(writes(), 0);
}

/* However the two interleave, on an empty store. */
Test(kbs_push_clusters, of_two_that_start_at_once_one_fills_and_one_stops, .timeout = 120)
{
	unsigned first = 0, second = 0;
	char when[64];

	for (unsigned seed = 0; seed < 200; seed++) {
		snprintf(when, sizeof(when), "seed %u", seed);
		watched = false;
		declare_some();
		life_begin();
		run(seed % 50 * 8);
		begin_2();
		/* An answer may take long, so that the two overtake each other. */
		for (unsigned i = 0; i < 400; i++) {
			fake_kbs_latency(kbs, (seed * 31 + i) * 7919 % 5 ? 20 : 300);
			run(10);
		}
		run(90000);
		if (push_status().state == KBS_TARGET_CONFLICT) {
			assert_complete_2(when);
			second++;
		} else {
			cr_assert_eq(state_2(), KBS_TARGET_CONFLICT, "%s", when);
			assert_complete_1(when);
			first++;
		}
		fake_kbs_forget(kbs);
		run(300000);
		cr_assert_eq(writes(), 0, "%s: %zu", when, writes());
		end();
		begin();
	}
	/* Both happen, or the other half was not tested. */
	cr_assert_gt(first, 0);
	cr_assert_gt(second, 0);
}

/* It has marked the store already. What it wrote last, the other one writes again. */
Test(kbs_push_clusters, who_is_replaced_while_filling_stops_and_the_other_sends_everything_again)
{
	char key[64], value[64];

	for (unsigned at = 1000; at < 3000; at += 100) {
		watched = false;
		declare_some();
		fake_kbs_latency(kbs, 100);
		life_begin();
		for (int i = 0; i < 200; i++) {
			snprintf(key, sizeof(key), KEY("%d"), i);
			declare_in(sync, KBS_RESOURCE, key, "x");
		}
		run(at);
		fake_kbs_put_value(kbs, KBS_SENTINEL, MARK_OF_2);
		begin_2();
		/* While the first one does not know yet, it replaces what the second one wrote. */
		for (int i = 0; i < 12; i++) {
			snprintf(value, sizeof(value), "{\"images\":[\"%d\"]}", i);
			declare_in(sync, KBS_REFVALUE, "boot.4.14", value);
			run(1000);
		}
		run(90000);
		cr_assert_eq(push_status().state, KBS_TARGET_CONFLICT, "at %u", at);
		assert_complete_2("at last");
		end();
		begin();
	}
}

Test(kbs_push_clusters, who_is_replaced_at_rest_writes_nothing)
{
	in_step();
	run(60000);
	fake_kbs_forget(kbs);
	fake_kbs_put_value(kbs, KBS_SENTINEL, MARK_OF_2);
	store_lost = true;
	run(60000);
	cr_assert_eq(push_status().state, KBS_TARGET_CONFLICT);
	cr_assert_eq(writes(), 0);
	cr_assert_eq(observed(KBS_RESOURCE, KEY("one")), KBS_OBSERVED_UNKNOWN);
}

/* ---- release */

static void revoke_all(void)
{
	for (size_t i = 0; i < n_wishes; i++)
		revoke(wishes[i].kind, wishes[i].name);
}

Test(kbs_push_clusters, who_ends_leaves_the_trustee_to_the_one_that_waits)
{
	in_step();
	begin_2();
	run(20000);
	cr_assert_eq(state_2(), KBS_TARGET_CONFLICT);
	fake_kbs_latency(kbs, 500);
	revoke_all();
	kbs_push_release(push);
	run(700);
	/* Something still has to be taken back. */
	cr_assert(!kbs_push_is_released(push));
	cr_assert(strstr(fake_kbs_value(kbs, KBS_SENTINEL), "\"c-1\""));
	fake_kbs_latency(kbs, 0);
	for (unsigned i = 0; i < 500 && !kbs_push_is_released(push); i++)
		run(10);
	cr_assert(kbs_push_is_released(push));
	for (size_t i = 0; i < n_wishes; i++)
		cr_assert(holds(&wishes[i], NULL), "%s", wishes[i].name);
	cr_assert(strstr(fake_kbs_value(kbs, KBS_SENTINEL), "\"cluster\":\"\""));
	run(16000);
	assert_complete_2("within an interval");
	fake_kbs_forget(kbs);
	run(100000); /* the first one is still there, and sends nothing */
	cr_assert_eq(writes(), 0);
}

Test(kbs_push_clusters, who_ends_in_a_conflict_is_not_waited_for)
{
	fake_kbs_put_value(kbs, KBS_SENTINEL, MARK_OF_2);
	declare_some();
	life_begin();
	kbs_push_release(push);
	run(500);
	cr_assert(kbs_push_is_released(push));
	cr_assert_eq(writes(), 0);
}

Test(kbs_push_clusters, a_release_whose_answer_is_lost_is_repeated)
{
	in_step();
	revoke_all();
	run(10000);
	fake_kbs_fault(kbs, 1, "POST", FAKE_KBS_ANSWER_LOST, 0, NULL, NULL);
	kbs_push_release(push);
	run(60000);
	cr_assert(kbs_push_is_released(push));
	cr_assert(strstr(fake_kbs_value(kbs, KBS_SENTINEL), "\"cluster\":\"\""));
}
