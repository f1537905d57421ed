/* SPDX-License-Identifier: MIT */
/* States, order and number of requests of one Trustee that behaves. */
#include "config.h"

#include "kbs/push_fixture.h"

#define OLD_SENTINEL "{\"cluster\":\"c-1\",\"session\":\"\",\"sum\":\"00\"}"

TestSuite(kbs_push, .init = world_begin, .fini = world_end);

static bool nobody(void *arg)
{
	return *(bool *)arg;
}

static void assert_asked(size_t i, const char *method, const char *path)
{
	const struct fake_kbs_request *r = fake_kbs_request(kbs, i);

	cr_assert(str_eq(r->method, method) && strstr(r->path, path), "request %zu: %s %s", i,
		r->method, r->path);
}

Test(kbs_push, an_empty_trustee_is_filled_in_the_order_that_is_always_closed)
{
	declare_some();
	life_begin();
	run(1000);
	cr_assert_eq(fake_kbs_requests(kbs), 8);
	assert_asked(0, "GET", "/reference-value/" KBS_SENTINEL);
	assert_asked(1, "POST", "/reference-value"); /* the dirty sentinel, alone */
	assert_asked(2, "POST", "/resource-policy");
	assert_asked(3, "POST", "/attestation-policy");
	assert_asked(4, "GET", "/reference-value/" KBS_SENTINEL); /* still the same store */
	assert_asked(5, "POST", "/reference-value");
	assert_asked(6, "POST", "/resource/default/");
	assert_asked(7, "POST", "/resource/default/");
	cr_assert_eq(push_status().state, KBS_TARGET_IN_SYNC);
	run(5000); /* the sentinel comes last, when nothing has changed for a while */
	cr_assert_eq(fake_kbs_requests(kbs), 10);
	assert_asked(8, "GET", "/reference-value/" KBS_SENTINEL);
	assert_asked(9, "POST", "/reference-value");
	assert_in_step("filled");
}

Test(kbs_push, a_trustee_with_another_content_gets_values_before_policies)
{
	fake_kbs_put_value(kbs, KBS_SENTINEL,
		"{\"cluster\":\"c-1\",\"session\":\"\",\"sum\":\"00\",\"policy\":\"reads-lists\"}");
	declare_some();
	life_begin();
	run(1000);
	assert_asked(1, "POST", "/reference-value");
	assert_asked(2, "POST", "/resource-policy");
	assert_asked(3, "POST", "/attestation-policy");
	run(5000);
	assert_in_step("filled");
}

/* ---- after an upgrade from a version whose policy reads no lists */

/* What version 0.2.0 left. */
static void filled_by_old(void)
{
	fake_kbs_put_value(kbs, KBS_SENTINEL, OLD_SENTINEL);
	fake_kbs_put_value(kbs, "ak.one", "{\"ak\":\"one\",\"machine\":\"m\"}");
	declare_some();
}

static bool no_list_yet(void)
{
	return fake_kbs_value(kbs, "ak.one")[0] == '{' && !fake_kbs_value(kbs, "ak.two");
}

static bool policy_reads_lists(void)
{
	return str_eq(fake_kbs_policy(kbs, false), attestation);
}

Test(kbs_push, an_old_trustee_gets_policies_before_lists)
{
	filled_by_old();
	life_begin();
	run(1000);
	assert_asked(1, "POST", "/reference-value"); /* the dirty sentinel, alone */
	assert_asked(2, "POST", "/resource-policy");
	assert_asked(3, "POST", "/attestation-policy");
	assert_asked(4, "GET", "/reference-value/" KBS_SENTINEL);
	assert_asked(5, "POST", "/reference-value");
	run(5000);
	assert_in_step("filled");
	cr_assert(strstr(fake_kbs_value(kbs, KBS_SENTINEL), "\"policy\":\"reads-lists\""));
}

/* However often it is killed, and whatever fails. */
Test(kbs_push, a_kill_after_any_request_leaves_no_list_before_the_policy)
{
	for (unsigned n = 1; n < 9; n++) {
		filled_by_old();
		fake_kbs_latency(kbs, 100);
		life_begin();
		run(500 + n * 100 - 50);
		cr_assert(policy_reads_lists() || no_list_yet(), "after %u requests", n);
		life_end();
		life_begin();
		for (unsigned i = 0; i < 30; i++) {
			run(50);
			cr_assert(policy_reads_lists() || no_list_yet(), "in the second life");
		}
		run(10000);
		assert_in_step("filled");
		world_end();
		world_begin();
	}
}

Test(kbs_push, lists_wait_for_a_policy_that_is_refused_at_first)
{
	filled_by_old();
	fake_kbs_fault(kbs, 4, "POST", FAKE_KBS_REFUSE, 500, "", "attestation-policy");
	life_begin();
	for (unsigned i = 0; i < 100; i++) {
		run(50);
		cr_assert(policy_reads_lists() || no_list_yet());
	}
	run(60000);
	assert_in_step("filled");
}

/* The keys are isolated in another way at the same time. */
Test(kbs_push, an_old_trustee_gets_policies_first_when_the_mode_changes_too)
{
	filled_by_old();
	shared = true;
	life_begin();
	run(500);
	shared = false;
	attestation = "package policy # other";
	kbs_sync_policies(sync, attestation, resource_policy, shared);
	for (unsigned i = 0; i < 100; i++) {
		run(50);
		cr_assert(policy_reads_lists() || no_list_yet());
	}
	run(10000);
	assert_in_step("filled");
}

Test(kbs_push, of_another_cluster_the_same_sum_means_nothing)
{
	in_step();
	life_end();
	conf.cluster_uid = "c-2";
	life_begin();
	run(1000);
	cr_assert_gt(fake_kbs_requests(kbs), 1);
}

Test(kbs_push, an_equal_sentinel_costs_one_request_in_all)
{
	in_step();
	life_end();
	life_begin();
	run(100000);
	cr_assert_eq(fake_kbs_requests(kbs), 1);
	assert_in_step("after a restart");
}

Test(kbs_push, nothing_is_asked_while_what_is_wanted_still_grows_but_not_forever)
{
	char name[64];

	watched = false;
	life_begin();
	for (int i = 0; i < 55; i++) {
		snprintf(name, sizeof(name), KEY("%d"), i);
		declare_in(sync, KBS_RESOURCE, name, "x");
		run(200);
		cr_assert_eq(fake_kbs_count(kbs, "POST", NULL) > 0, i >= 50, "after %d", i);
		cr_assert_eq(fake_kbs_count(kbs, "GET", NULL) > 0, i >= 50, "after %d", i);
	}
	life_end();
	fake_kbs_forget(kbs);
	life_begin();
	declare_in(sync, KBS_RESOURCE, KEY("0"), "x");
	run(499);
	cr_assert_eq(fake_kbs_requests(kbs), 0);
	run(1);
	cr_assert_gt(fake_kbs_requests(kbs), 0);
}

Test(kbs_push, without_policies_nothing_is_asked)
{
	attestation = resource_policy = NULL;
	declare_some();
	life_begin();
	run(60000);
	cr_assert_eq(fake_kbs_requests(kbs), 0);
	attestation = "a";
	resource_policy = "r";
	kbs_sync_policies(sync, attestation, resource_policy, false);
	run(10000);
	assert_in_step("with policies");
}

Test(kbs_push, at_rest_one_question_per_interval)
{
	in_step();
	run(10 * 180000);
	cr_assert_eq(fake_kbs_requests(kbs), 10);
	cr_assert_eq(fake_kbs_count(kbs, "GET", KBS_SENTINEL), 10);
}

Test(kbs_push, a_lost_store_is_noticed_by_the_probe_and_filled)
{
	in_step();
	store_lost = true;
	fake_kbs_lose_store(kbs);
	run(190000);
	assert_in_step("filled again");
	assert_asked(2, "POST", "/resource-policy");
	assert_asked(3, "POST", "/attestation-policy");
	/* A requested probe does not wait for the interval. */
	fake_kbs_lose_store(kbs);
	kbs_push_probe(push);
	run(10000);
	assert_in_step("filled once more");
}

Test(kbs_push, what_somebody_else_wrote_over_the_sentinel_is_looked_behind)
{
	static const char *const texts[] = {"null", "{}", "[]", "\"x\"", "1", "not JSON",
		"{\"sum\":1}", "{\"cluster\":\"c-1\",\"sum\":\"\"}",
		"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["};

	in_step();
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		fake_kbs_put_resource(kbs, KEY("one"), "stolen");
		store_lost = true;
		fake_kbs_put_value(kbs, KBS_SENTINEL, texts[i]);
		kbs_push_probe(push);
		run(10000);
		store_lost = false;
		assert_in_step(texts[i]);
	}
}

Test(kbs_push, a_machine_costs_five_requests_two_of_them_questions)
{
	in_step();
	declare(KBS_RESOURCE, KEY("new"), "{\"key\":\"n\"}");
	declare(KBS_REFVALUE, "ak.new", IDENTITY("new"));
	run(100);
	cr_assert_eq(fake_kbs_requests(kbs), 3);
	cr_assert_eq(observed(KBS_RESOURCE, KEY("new")), KBS_OBSERVED_PRESENT);
	cr_assert_eq(observed(KBS_REFVALUE, "ak.new"), KBS_OBSERVED_PRESENT);
	run(10000);
	cr_assert_eq(fake_kbs_requests(kbs), 5);
	cr_assert_eq(fake_kbs_count(kbs, "GET", KBS_SENTINEL), 2);
	assert_in_step("delivered");
}

Test(kbs_push, what_is_taken_back_before_the_first_word_costs_no_request)
{
	in_step();
	declare(KBS_RESOURCE, KEY("one"), "{\"key\":\"1\"}");
	run(10000);
	cr_assert_eq(fake_kbs_requests(kbs), 0);
}

Test(kbs_push, without_the_lease_nothing_is_sent)
{
	struct kbs_transport *t = fake_kbs_transport(kbs);
	bool may = false;

	in_step();
	t->may_send = nobody;
	t->may_send_arg = &may;
	kbs_push_set_transport(push, t, NULL);
	revoke(KBS_RESOURCE, KEY("one"));
	run(120000);
	cr_assert_eq(fake_kbs_requests(kbs), 0);
	cr_assert_eq(observed(KBS_RESOURCE, KEY("one")), KBS_OBSERVED_PENDING);
	cr_assert_eq(push_status().state, KBS_TARGET_UNREACHABLE);
	may = true;
	run(40000);
	assert_in_step("with the lease");
}

Test(kbs_push, a_transport_taken_away_and_back)
{
	in_step();
	fake_kbs_latency(kbs, 100);
	revoke(KBS_RESOURCE, KEY("one"));
	declare(KBS_RESOURCE, KEY("two"), "{\"key\":\"2b\"}");
	run(150); /* in the middle of it */
	kbs_push_set_transport(push, NULL, "it has no address.");
	cr_assert_eq(push_status().state, KBS_TARGET_UNREACHABLE);
	cr_assert_str_eq(push_status().text, "it has no address.");
	cr_assert_eq(fake_kbs_in_flight(kbs), 0);
	cr_assert_neq(observed(KBS_RESOURCE, KEY("one")), KBS_OBSERVED_ABSENT);
	fake_kbs_forget(kbs);
	kbs_push_probe(push);
	run(3600000);
	cr_assert_eq(fake_kbs_requests(kbs), 0);
	kbs_push_set_transport(push, fake_kbs_transport(kbs), NULL);
	run(20000);
	assert_in_step("back");
}

Test(kbs_push, another_policy_goes_alone_and_behind_a_dirty_sentinel)
{
	in_step();
	attestation = "package policy # newer";
	kbs_sync_policies(sync, attestation, resource_policy, false);
	run(10000);
	assert_in_step("with the new policy");
	cr_assert_eq(fake_kbs_requests(kbs), 5);
	assert_asked(0, "GET", "/reference-value/" KBS_SENTINEL);
	assert_asked(1, "POST", "/reference-value");
	assert_asked(2, "POST", "/attestation-policy");
}

Test(kbs_push, a_policy_that_changes_while_one_is_under_way_is_sent_after_it)
{
	in_step();
	fake_kbs_latency(kbs, 1000);
	attestation = "package policy # newer";
	kbs_sync_policies(sync, attestation, resource_policy, false);
	run(2500);
	cr_assert_eq(fake_kbs_count(kbs, "POST", "/attestation-policy"), 1);
	attestation = "package policy # newest";
	kbs_sync_policies(sync, attestation, resource_policy, false);
	run(20000);
	assert_in_step("with the newest policy");
}

Test(kbs_push, a_policy_taken_back_after_its_answer_was_lost_is_sent_again)
{
	const char *first;

	in_step();
	first = attestation;
	fake_kbs_fault(kbs, 2, "POST", FAKE_KBS_ANSWER_LOST, 0, NULL, NULL);
	attestation = "package policy # newer";
	kbs_sync_policies(sync, attestation, resource_policy, false);
	run(100);
	cr_assert_str_eq(fake_kbs_policy(kbs, false), attestation);
	attestation = first;
	kbs_sync_policies(sync, attestation, resource_policy, false);
	run(20000);
	assert_in_step("with the first policy");
}

Test(kbs_push, shared_and_back)
{
	in_step();
	for (int i = 0; i < 2; i++) {
		shared = true;
		attestation = "package policy # shared";
		kbs_sync_policies(sync, attestation, resource_policy, shared);
		run(10000);
		assert_in_step("shared");
		cr_assert_str_eq(fake_kbs_value(kbs, "trusted_aks"), "[\"one\",\"two\"]");
		revoke(KBS_REFVALUE, "ak.two");
		run(10000);
		assert_in_step("shared, one revoked");
		cr_assert_str_eq(fake_kbs_value(kbs, "trusted_aks"), "[\"one\"]");
		fake_kbs_forget(kbs);
		shared = false;
		attestation = "package policy # attestation";
		kbs_sync_policies(sync, attestation, resource_policy, shared);
		run(10000);
		assert_in_step("per machine");
		/* the identities, then who reads them */
		assert_asked(1, "POST", "/reference-value");
		assert_asked(2, "POST", "/attestation-policy");
		declare(KBS_REFVALUE, "ak.two", IDENTITY("two"));
		run(10000);
		assert_in_step("two again");
	}
}

Test(kbs_push, shared_from_the_start_survives_a_restart)
{
	shared = true;
	in_step();
	cr_assert_str_eq(fake_kbs_value(kbs, "trusted_aks"), "[\"one\",\"two\"]");
	life_end();
	life_begin();
	run(20000);
	cr_assert_eq(fake_kbs_requests(kbs), 1);
	declare(KBS_REFVALUE, "ak.three", IDENTITY("three"));
	run(20000);
	assert_in_step("one more");
	cr_assert_eq(fake_kbs_requests(kbs), 5);
}

Test(kbs_push, of_two_trustees_one_is_down)
{
	struct fake_kbs *other = fake_kbs_new(loop);
	struct kbs_push_conf second = {.target = "other.test", .cluster_uid = "c-1"};
	struct kbs_target_status status;
	struct kbs_push *p;

	fake_kbs_serve(other);
	fake_kbs_down(other, true);
	in_step();
	p = kbs_push_new(loop, sync, &second, fake_kbs_transport(other));
	declare(KBS_RESOURCE, KEY("new"), "{\"key\":\"n\"}");
	run(60000);
	cr_assert_str_eq(fake_kbs_resource(kbs, KEY("new")), "{\"key\":\"n\"}");
	cr_assert_eq(observed(KBS_RESOURCE, KEY("new")), KBS_OBSERVED_UNKNOWN);
	revoke(KBS_RESOURCE, KEY("one"));
	run(60000);
	cr_assert_null(fake_kbs_resource(kbs, KEY("one")));
	cr_assert_neq(
		observed(KBS_RESOURCE, KEY("one")), KBS_OBSERVED_ABSENT); /* one has not said so */
	cr_assert_not(kbs_sync_target_differs(sync, 0, KBS_RESOURCE, KEY("one")));
	cr_assert(kbs_sync_target_differs(sync, 1, KBS_RESOURCE, KEY("one")));
	cr_assert_eq(kbs_sync_state(sync), KBS_TARGET_UNREACHABLE);
	cr_assert(kbs_sync_target(sync, 1, &status));
	cr_assert_str_eq(status.name, "other.test");
	cr_assert_str_eq(status.error, "connection refused");
	fake_kbs_down(other, false);
	run(40000);
	assert_in_step("both");
	cr_assert_eq(kbs_sync_state(sync), KBS_TARGET_IN_SYNC);
	cr_assert_str_eq(fake_kbs_resource(other, KEY("new")), "{\"key\":\"n\"}");
	kbs_push_free(p);
	fake_kbs_free(other);
}

Test(kbs_push, a_removed_trustee_takes_its_answers_along)
{
	in_step();
	kbs_push_free(push);
	push = NULL;
	cr_assert_eq(kbs_sync_targets(sync), 0);
	cr_assert_eq(observed(KBS_RESOURCE, KEY("one")), KBS_OBSERVED_NONE);
	push = kbs_push_new(loop, sync, &conf, fake_kbs_transport(kbs));
	cr_assert_eq(observed(KBS_RESOURCE, KEY("one")), KBS_OBSERVED_UNKNOWN);
	run(10000);
	assert_in_step("named again");
}

Test(kbs_push, leadership_lost_in_the_middle_forgets_everything)
{
	in_step();
	fake_kbs_latency(kbs, 1000);
	declare(KBS_RESOURCE, KEY("new"), "{\"key\":\"n\"}");
	declare(KBS_REFVALUE, "ak.new", IDENTITY("new"));
	run(2100); /* it is asked, and told the identity; the key is under way */
	declare(KBS_REFVALUE, "ak.newer", IDENTITY("newer"));
	run(100);
	cr_assert_eq(fake_kbs_in_flight(kbs), 2);
	kbs_push_free(push);
	push = NULL;
	kbs_sync_reset(sync);
	cr_assert_eq(secret_count(), 0);
	cr_assert_eq(fake_kbs_in_flight(kbs), 0);
}
