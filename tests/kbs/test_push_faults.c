/* SPDX-License-Identifier: MIT */
/* Every kind of wrong answer at every request: it converges, and confirms nothing that is not so
 * (which the judges of the fixture look at), at a bounded number of requests. */
#include "config.h"

#include "kbs/push_fixture.h"

TestSuite(kbs_push_faults, .init = world_begin, .fini = world_end, .timeout = 60);

static const struct wrong {
	const char *name;
	enum fake_kbs_fault fault;
	int status;
	const char *type, *body;
	bool refused; /* a person is needed: slow */
} wrongs[] = {
	{"RvpsError", FAKE_KBS_REFUSE, 401, "RvpsError", NULL, false},
	{"PluginInternalError", FAKE_KBS_REFUSE, 401, "PluginInternalError", NULL, false},
	{"PolicyDeny", FAKE_KBS_REFUSE, 401, "PolicyDeny", NULL, false},
	{"AdminAuthAccess", FAKE_KBS_REFUSE, 401, "AdminAuthAccess", NULL, true},
	{"AdminAuthInitialization", FAKE_KBS_REFUSE, 401, "AdminAuthInitialization", NULL, true},
	{"ParsePolicyError", FAKE_KBS_REFUSE, 401, "ParsePolicyError", NULL, true},
	{"413", FAKE_KBS_REFUSE, 413, "", "payload reached size limit", true},
	{"500", FAKE_KBS_REFUSE, 500, "", "oops", false},
	{"404", FAKE_KBS_REFUSE, 404, "PluginNotFound", NULL, false},
	{"302", FAKE_KBS_REFUSE, 302, "", "", false},
	{"a page", FAKE_KBS_REFUSE, 200, "", "<!DOCTYPE html><html>log in</html>", false},
	{"a page with an error", FAKE_KBS_REFUSE, 502, "", "<html>Bad Gateway</html>", false},
	{"request lost", FAKE_KBS_LOST, 0, NULL, NULL, false},
	{"answer lost", FAKE_KBS_ANSWER_LOST, 0, NULL, NULL, false},
	{"half a message", FAKE_KBS_HALF, 401, "RvpsError", NULL, false},
};

static void act(int what)
{
	if (what == 0)
		return;
	revoke(KBS_REFVALUE, "ak.one");
	revoke(KBS_RESOURCE, KEY("one"));
	declare(KBS_RESOURCE, KEY("new"), "{\"key\":\"n\"}");
	declare(KBS_REFVALUE, "ak.new", IDENTITY("new"));
	if (what == 1)
		return;
	attestation = "package policy # newer";
	kbs_sync_policies(sync, attestation, resource_policy, shared);
}

/* The nth request goes wrong; false: there are not so many. */
static bool goes_wrong(const struct wrong *w, int what, unsigned n)
{
	cleanup_free char *when = xasprintf("%s at request %u of %d", w->name, n, what);

	if (what == 0)
		declare_some();
	else
		in_step();
	fake_kbs_fault(kbs, n, NULL, w->fault, w->status, w->type, w->body);
	if (what == 0)
		life_begin();
	act(what);
	run(25000); /* what was lost is noticed after 10 s, a message of values after 30 s */
	if (fake_kbs_requests(kbs) < n)
		return false;
	run(w->refused ? 305000 : 60000);
	assert_in_step(when);
	/* One fault costs little more than what was to be done. */
	cr_assert_lt(fake_kbs_requests(kbs), (size_t)30, "%s: %zu requests", when,
		fake_kbs_requests(kbs));
	return true;
}

static void all_wrong(int what)
{
	for (size_t i = 0; i < ARRAY_LEN(wrongs); i++) {
		unsigned n = 1;

		while (goes_wrong(&wrongs[i], what, n)) {
			n++;
			world_end();
			world_begin();
		}
		cr_assert_geq(n, 5);
		world_end();
		world_begin();
	}
}

Test(kbs_push_faults, while_filling)
{
	all_wrong(0);
}

Test(kbs_push_faults, while_delivering_and_revoking)
{
	all_wrong(1);
}

Test(kbs_push_faults, while_a_policy_changes)
{
	all_wrong(2);
}

/* Each request from now on gets the same answer. */
static void always(const char *method, enum fake_kbs_fault fault, int status, const char *type)
{
	for (unsigned n = 1; n <= 2000; n++)
		fake_kbs_fault(kbs, n, method, fault, status, type, NULL);
}

/* A cycle is a question and what follows it, at most every 24 s when it goes on. */
Test(kbs_push_faults, what_fails_for_an_hour_is_asked_ever_more_rarely)
{
	static const struct {
		const char *method;
		enum fake_kbs_fault fault;
		int status;
		const char *type;
	} forever[] = {
		{"GET", FAKE_KBS_REFUSE, 500, ""},
		{"POST", FAKE_KBS_REFUSE, 500, ""},
		{"POST", FAKE_KBS_REFUSE, 401, "RvpsError"},
		{"POST", FAKE_KBS_ANSWER_LOST, 0, NULL},
		{"POST", FAKE_KBS_HALF, 401, "RvpsError"},
		{"DELETE", FAKE_KBS_REFUSE, 500, ""},
		{"DELETE", FAKE_KBS_REFUSE, 401, "PluginInternalError"},
		{"DELETE", FAKE_KBS_ANSWER_LOST, 0, NULL},
		{NULL, FAKE_KBS_REFUSE, 503, ""},
	};

	for (size_t i = 0; i < ARRAY_LEN(forever); i++) {
		in_step();
		always(forever[i].method, forever[i].fault, forever[i].status, forever[i].type);
		revoke(KBS_RESOURCE, KEY("one"));
		revoke(KBS_REFVALUE, "ak.one");
		run(3600000);
		cr_assert_gt(fake_kbs_requests(kbs), (size_t)3600 / 31, "row %zu: %zu", i,
			fake_kbs_requests(kbs));
		cr_assert_lt(fake_kbs_requests(kbs), (size_t)(3600 / 24 + 10) * 5, "row %zu: %zu",
			i, fake_kbs_requests(kbs));
		world_end();
		world_begin();
	}
}

Test(kbs_push_faults, a_trustee_that_is_down_is_asked_ever_more_rarely_to_every_half_minute)
{
	in_step();
	fake_kbs_down(kbs, true);
	revoke(KBS_RESOURCE, KEY("one"));
	run(10000);
	/* Five until it counts as away (0 to 1.1 s), then probes every 0.2 s, from 0.8 s on after
	 * a quarter of the time that it was away. */
	cr_assert_geq(fake_kbs_requests(kbs), (size_t)15);
	cr_assert_leq(fake_kbs_requests(kbs), (size_t)25);
	run(3600000);
	cr_assert_geq(fake_kbs_requests(kbs), (size_t)3600 / 30);
	cr_assert_leq(fake_kbs_requests(kbs), (size_t)3600 / 24 + 25);
	cr_assert_eq(push_status().state, KBS_TARGET_UNREACHABLE);
	cr_assert_str_eq(push_status().error, "connection refused");
	fake_kbs_down(kbs, false);
	run(35000);
	assert_in_step("up again");
	fake_kbs_down(kbs, true); /* the next trouble begins with short waits again */
	fake_kbs_forget(kbs);
	revoke(KBS_RESOURCE, KEY("two"));
	run(10000);
	cr_assert_geq(fake_kbs_requests(kbs), (size_t)4);
}

static unsigned n_told;

static void count_told(void *arg, enum kbs_kind kind, const char *name)
{
	n_told += !name; /* every object is examined again */
}

Test(kbs_push_faults, while_it_is_down_nobody_is_told_twice)
{
	in_step();
	kbs_sync_listen(sync, count_told, NULL);
	fake_kbs_down(kbs, true);
	n_told = 0;
	revoke(KBS_RESOURCE, KEY("one"));
	run(10000);
	cr_assert_leq(n_told, 2, "%u", n_told); /* once per kind */
	n_told = 0;
	run(3600000);
	cr_assert_eq(n_told, 0, "%u", n_told);
	fake_kbs_down(kbs, false);
	run(35000);
	assert_in_step("up again");
	cr_assert_leq(n_told, 4, "%u", n_told);
}

Test(kbs_push_faults, a_refused_key_is_told_and_tried_slowly)
{
	in_step();
	fake_kbs_fault(kbs, 1, "POST", FAKE_KBS_REFUSE, 401, "AdminAuthAccess", NULL);
	declare(KBS_REFVALUE, "ak.new", IDENTITY("new"));
	run(19000);
	cr_assert_eq(fake_kbs_requests(kbs), 2);
	cr_assert_eq(push_status().state, KBS_TARGET_REFUSED);
	cr_assert(strstr(push_status().error, "AdminAuthAccess"));
	cr_assert_eq(kbs_sync_state(sync), KBS_TARGET_REFUSED);
	declare(KBS_REFVALUE, "ak.newer", IDENTITY("newer")); /* does not wake it */
	run(100);
	cr_assert_eq(fake_kbs_requests(kbs), 2);
	kbs_push_probe(push); /* a new Pod does */
	run(10000);
	assert_in_step("taken");
}

Test(kbs_push_faults, a_thousand_changes_in_an_hour_without_it_are_one_resync)
{
	static const char *const values[] = {"{\"key\":\"a\"}", "{\"key\":\"b\"}"};

	in_step();
	fake_kbs_down(kbs, true);
	for (int i = 0; i < 1000; i++) {
		if (i % 3)
			declare(KBS_RESOURCE, KEY("one"), values[i & 1]);
		else
			revoke(KBS_RESOURCE, KEY("one"));
		declare(KBS_REFVALUE, "ak.one", IDENTITY("one"));
		run(3600);
		cr_assert_leq(secret_count(), (size_t)1);
	}
	fake_kbs_forget(kbs);
	fake_kbs_down(kbs, false);
	run(60000);
	assert_in_step("up again");
	cr_assert_leq(fake_kbs_requests(kbs), (size_t)6);
}

Test(kbs_push_faults, a_message_that_is_too_large_is_halved_until_it_fits)
{
	char name[64];

	watched = false;
	fake_kbs_max_body(kbs, 4096);
	life_begin();
	for (int i = 0; i < 500; i++) {
		snprintf(name, sizeof(name), "ak.%d", i);
		declare_in(sync, KBS_REFVALUE, name, IDENTITY("x"));
	}
	run(20000);
	cr_assert_eq(push_status().state, KBS_TARGET_IN_SYNC, "%s", push_status().error);
	cr_assert_eq(fake_kbs_values(kbs), (size_t)502);
	cr_assert_lt(fake_kbs_requests(kbs), (size_t)40);
}

/* As LocalJson does when its file is damaged, and later replaced by an empty one. */
Test(kbs_push_faults, keys_of_a_damaged_storage_are_sent_again_when_it_is_repaired)
{
	conf.window = 32;
	in_step();
	fake_kbs_cannot_store(kbs, "default");
	declare(KBS_RESOURCE, KEY("three"), "{\"key\":\"3\"}");
	run(5000);
	cr_assert_eq(push_status().state, KBS_TARGET_IN_SYNC);
	cr_assert(push_status().error && strstr(push_status().error, "full or damaged"), "%s",
		push_status().error);
	store_lost = true;
	fake_kbs_lose_resources(kbs);
	fake_kbs_cannot_store(kbs, NULL);
	fake_kbs_forget(kbs);
	run(60000);
	store_lost = false;
	assert_in_step("repaired");
	cr_assert_null(push_status().error);
	cr_assert_eq(fake_kbs_most_in_flight(kbs), 1, "one by one");
	fake_kbs_forget(kbs);
	run(PROBE_MS + 1000);
	cr_assert_leq(fake_kbs_requests(kbs), (size_t)1, "only the probe");
}

Test(kbs_push_faults, a_damaged_storage_is_asked_ever_more_rarely_and_filled_when_it_is_repaired)
{
	static const char *const names[] = {
		KEY("3"), KEY("4"), KEY("5"), KEY("6"), KEY("7"), KEY("8")};

	in_step();
	fake_kbs_cannot_store(kbs, "default");
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		declare(KBS_RESOURCE, names[i], "{\"key\":\"k\"}");
	store_lost = true;
	run(3600000);
	cr_assert_eq(push_status().state, KBS_TARGET_UNREACHABLE);
	cr_assert_lt(fake_kbs_requests(kbs), (size_t)(3600 / 24 + 10) * 16);
	fake_kbs_lose_resources(kbs);
	fake_kbs_cannot_store(kbs, NULL);
	run(60000);
	store_lost = false;
	assert_in_step("repaired");
}

Test(kbs_push_faults, a_name_that_can_never_be_stored_makes_nothing_be_sent_again)
{
	in_step();
	fake_kbs_cannot_store(kbs, "poison");
	declare(KBS_RESOURCE, KEY("poison"), "{\"key\":\"p\"}");
	run(60000);
	fake_kbs_forget(kbs);
	declare(KBS_RESOURCE, KEY("three"), "{\"key\":\"3\"}");
	run(3600000);
	cr_assert_str_eq(fake_kbs_resource(kbs, KEY("three")), "{\"key\":\"3\"}");
	cr_assert_eq(fake_kbs_count(kbs, "POST", "/resource/" KEY("one")), 0);
	cr_assert_eq(observed(KBS_RESOURCE, KEY("one")), KBS_OBSERVED_PRESENT);
	cr_assert(strstr(push_status().error, "full or damaged"));
	fake_kbs_cannot_store(kbs, NULL);
	revoke(KBS_RESOURCE, KEY("poison"));
	run(60000);
	assert_in_step("without it");
}
