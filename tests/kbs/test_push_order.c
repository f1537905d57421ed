/* SPDX-License-Identifier: MIT */
/* One name: the last word wins, never two requests at once (fake/kbs.c asserts that), and what was
 * revoked early in a term is revoked once more. */
#include "config.h"

#include "kbs/push_fixture.h"

TestSuite(kbs_push_order, .init = world_begin, .fini = world_end, .timeout = 60);

/* Bits of `moves`, lowest first: a pause, then a word about the one name. */
static void say(unsigned moves, unsigned n, const char *a, const char *b, enum kbs_kind kind,
	const char *name)
{
	static const uint32_t pauses[] = {0, 30, 60, 110};

	for (unsigned i = 0; i < n; i++, moves /= 12) {
		run(pauses[moves % 4]);
		switch (moves / 4 % 3) {
		case 0:
			declare(kind, name, a);
			break;
		case 1:
			declare(kind, name, b);
			break;
		case 2:
			revoke(kind, name);
			break;
		}
		/* Gone means gone: what is under way may still put it there. */
		if (observed(kind, name) == KBS_OBSERVED_ABSENT)
			forget_gone();
	}
}

Test(kbs_push_order, of_a_key_the_last_word_wins)
{
	in_step();
	fake_kbs_latency(kbs, 50);
	for (unsigned moves = 0; moves < 12 * 12 * 12 * 12; moves += 7) {
		say(moves, 4, "{\"key\":\"a\"}", "{\"key\":\"b\"}", KBS_RESOURCE, KEY("x"));
		run(moves % 3 ? 6000 : 400);
		if (moves % 3)
			assert_in_step("said");
	}
	run(10000);
	assert_in_step("all said");
}

Test(kbs_push_order, of_an_identity_the_last_word_wins)
{
	in_step();
	fake_kbs_latency(kbs, 50);
	for (unsigned moves = 0; moves < 12 * 12 * 12 * 12; moves += 7) {
		say(moves, 4, IDENTITY("a"), IDENTITY("b"), KBS_REFVALUE, "ak.x");
		run(moves % 3 ? 6000 : 400);
		if (moves % 3)
			assert_in_step("said");
	}
	run(10000);
	assert_in_step("all said");
}

/* Confirmed gone, delivered again, and revoked while that is under way. */
Test(kbs_push_order, what_is_under_way_is_not_gone)
{
	in_step();
	revoke(KBS_RESOURCE, KEY("one"));
	run(5000);
	cr_assert_eq(observed(KBS_RESOURCE, KEY("one")), KBS_OBSERVED_ABSENT);
	fake_kbs_latency(kbs, 1000);
	declare(KBS_RESOURCE, KEY("one"), "{\"key\":\"1\"}");
	run(2500);
	cr_assert_str_eq(fake_kbs_resource(kbs, KEY("one")), "{\"key\":\"1\"}");
	revoke(KBS_RESOURCE, KEY("one"));
	cr_assert_eq(observed(KBS_RESOURCE, KEY("one")), KBS_OBSERVED_PENDING);
	run(30000);
	assert_in_step("revoked");
}

/* An old leader's last request comes late: Trustee has no fencing. */
static void old_leader_writes(void)
{
	watched = false;
	fake_kbs_put_resource(kbs, KEY("one"), "{\"key\":\"1\"}");
	fake_kbs_put_value(kbs, "ak.one", IDENTITY("one"));
}

static void revoke_one(void)
{
	conf.repeat_revoked_ms = 100000;
	in_step();
	revoke(KBS_RESOURCE, KEY("one"));
	revoke(KBS_REFVALUE, "ak.one");
	run(5000);
	assert_in_step("revoked");
}

static void assert_one_is_gone(void)
{
	cr_assert_null(fake_kbs_resource(kbs, KEY("one")));
	cr_assert_str_eq(fake_kbs_value(kbs, "ak.one"), "null");
}

Test(kbs_push_order, what_was_revoked_early_is_revoked_once_more)
{
	revoke_one();
	forget_gone();
	old_leader_writes();
	run(80000);
	cr_assert_str_eq(fake_kbs_resource(kbs, KEY("one")), "{\"key\":\"1\"}");
	run(20000);
	assert_one_is_gone();
	watched = true;
	run(5000);
	assert_in_step("repeated");
	fake_kbs_forget(kbs);
	old_leader_writes(); /* once */
	run(170000);
	cr_assert_leq(fake_kbs_requests(kbs), (size_t)1);
}

/* An identity that two keys share: what an old leader sends late has both. */
Test(kbs_push_order, a_list_that_something_was_taken_out_of_is_sent_once_more)
{
	struct kobj *o = thing_new("other", "{\"ak\":\"other\",\"machine\":\"m\"}");

	conf.repeat_revoked_ms = 100000;
	in_step();
	kbs_sync_declare_in(sync, KBS_REFVALUE, "ak.one", o, 7, thing_render);
	kobj_unref(o);
	watched = false;
	run(5000);
	cr_assert(strstr(fake_kbs_value(kbs, "ak.one"), "other"));
	kbs_sync_withdraw(sync, KBS_REFVALUE, "ak.one", "other");
	run(5000);
	cr_assert_str_eq(fake_kbs_value(kbs, "ak.one"), IDENTITY("one"));
	fake_kbs_put_value(kbs, "ak.one", "[{\"ak\":\"other\",\"machine\":\"m\"}]");
	run(100000);
	cr_assert_str_eq(fake_kbs_value(kbs, "ak.one"), IDENTITY("one"));
	watched = true;
	run(5000);
	assert_in_step("sent once more");
}

Test(kbs_push_order, also_when_its_tombstone_still_stands)
{
	revoke_one();
	old_leader_writes();
	run(100000);
	assert_one_is_gone();
}

Test(kbs_push_order, also_when_it_was_revoked_twice)
{
	revoke_one();
	declare(KBS_REFVALUE, "ak.one", IDENTITY("one"));
	declare(KBS_RESOURCE, KEY("one"), "{\"key\":\"1\"}");
	run(5000);
	revoke(KBS_REFVALUE, "ak.one");
	revoke(KBS_RESOURCE, KEY("one"));
	run(5000);
	forget_gone();
	fake_kbs_forget(kbs);
	old_leader_writes();
	run(100000);
	assert_one_is_gone();
	cr_assert_eq(fake_kbs_count(kbs, "DELETE", KEY("one")), 1);
}

Test(kbs_push_order, what_was_declared_again_is_not_revoked_once_more)
{
	revoke_one();
	declare(KBS_REFVALUE, "ak.one", IDENTITY("one"));
	declare(KBS_RESOURCE, KEY("one"), "{\"key\":\"1\"}");
	run(5000);
	fake_kbs_forget(kbs);
	run(100000);
	assert_in_step("declared again");
	cr_assert_eq(fake_kbs_count(kbs, "DELETE", NULL), 0);
}

/* The repetition is under way when the machine comes back. */
Test(kbs_push_order, a_repetition_never_overtakes_a_delivery)
{
	for (uint32_t ms = 0; ms < 1200; ms += 50) {
		revoke_one();
		forget_gone();
		fake_kbs_latency(kbs, 100);
		run(84990 - 50 + ms); /* 15 s have passed; the repetition starts at 100 s */
		declare(KBS_RESOURCE, KEY("one"), "{\"key\":\"1\"}");
		declare(KBS_REFVALUE, "ak.one", IDENTITY("one"));
		run(20000);
		assert_in_step("came back");
		world_end();
		world_begin();
	}
}

Test(kbs_push_order, repetitions_survive_errors_and_fit_into_messages)
{
	char name[300];

	watched = false;
	conf.repeat_revoked_ms = 100000;
	conf.max_body = 20000;
	fake_kbs_max_body(kbs, 20001);
	life_begin();
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "ak.%0240d", i);
		kbs_sync_revoke(sync, KBS_REFVALUE, name);
	}
	run(20000);
	cr_assert_eq(push_status().state, KBS_TARGET_IN_SYNC);
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "ak.%0240d", i);
		fake_kbs_put_value(kbs, name, "1");
	}
	run(70000);
	fake_kbs_forget(kbs);
	fake_kbs_fault(kbs, 3, "POST", FAKE_KBS_REFUSE, 500, "", NULL);
	run(30000);
	cr_assert_eq(push_status().state, KBS_TARGET_IN_SYNC, "%s", push_status().error);
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "ak.%0240d", i);
		cr_assert_str_eq(fake_kbs_value(kbs, name), "null");
	}
}

/* ---- a store that was set back */

static const char *past[8];

static bool past_known;

static bool each_past(
	void *arg, void (*fn)(void *fn_arg, enum kbs_kind kind, const char *name), void *fn_arg)
{
	for (size_t i = 0; past_known && past[i]; i++)
		fn(fn_arg, strchr(past[i], '/') ? KBS_RESOURCE : KBS_REFVALUE, past[i]);
	return past_known;
}

static void set_back(void)
{
	watched = false;
	fake_kbs_put_resource(kbs, KEY("old"), "{\"key\":\"0\"}");
	fake_kbs_put_value(kbs, "ak.old", IDENTITY("old"));
	fake_kbs_put_value(
		kbs, KBS_SENTINEL, "{\"cluster\":\"c\",\"session\":\"\",\"sum\":\"00\"}");
}

static void assert_old_is_gone(void)
{
	cr_assert_null(fake_kbs_resource(kbs, KEY("old")));
	cr_assert_str_eq(fake_kbs_value(kbs, "ak.old"), "null");
	cr_assert_eq(push_status().state, KBS_TARGET_IN_SYNC);
}

Test(kbs_push_order, what_was_revoked_lately_is_revoked_in_a_store_that_was_set_back)
{
	static const char *const names[] = {KEY("old"), "ak.old", KEY("one"), "ak.one", NULL};

	memcpy(past, names, sizeof(names));
	conf.each_revoked = each_past;
	life_begin();
	run(60000);
	cr_assert_eq(push_status().state, KBS_TARGET_POPULATING, "the past is not known");
	life_end();
	past_known = true;
	in_step();
	run(30000);
	assert_in_step("what is wanted again stays");
	set_back();
	run(PROBE_MS + 20000);
	assert_old_is_gone();
	watched = true;
	run(1000);
	assert_in_step("set back");
	/* Once: neither the next probe nor the next life repeats it. */
	fake_kbs_forget(kbs);
	run(2 * PROBE_MS);
	cr_assert_eq(fake_kbs_count(kbs, "POST", NULL) + fake_kbs_count(kbs, "DELETE", NULL), 0);
	life_end();
	life_begin();
	run(30000);
	cr_assert_eq(fake_kbs_count(kbs, "DELETE", NULL), 0);
	cr_assert_eq(push_status().state, KBS_TARGET_IN_SYNC);
}

Test(kbs_push_order, a_set_back_store_is_not_in_sync_before_and_errors_lose_no_revocation)
{
	static const char *const names[] = {
		KEY("old"), "ak.old", KEY("b"), KEY("c"), "ak.b", "ak.c", NULL};

	memcpy(past, names, sizeof(names));
	conf.each_revoked = each_past;
	past_known = true;
	in_step();
	for (unsigned every = 2; every < 6; every++) {
		set_back();
		fake_kbs_put_resource(kbs, KEY("b"), "{}");
		fake_kbs_put_value(kbs, "ak.c", "1");
		fake_kbs_fault(kbs, every, "DELETE", FAKE_KBS_REFUSE, 500, "", NULL);
		for (int i = 0; i < 2400 && fake_kbs_resource(kbs, KEY("old")); i++) {
			cr_assert(i < 1900 || push_status().state != KBS_TARGET_IN_SYNC);
			run(100);
		}
		run(60000);
		assert_old_is_gone();
		cr_assert_null(fake_kbs_resource(kbs, KEY("b")));
		cr_assert_str_eq(fake_kbs_value(kbs, "ak.c"), "null");
	}
}

/* It was given up, and deletions were completed without it. */
Test(kbs_push_order, a_server_that_was_given_up_gets_no_key_before_its_revocations)
{
	static const char *const names[] = {KEY("old"), "ak.old", KEY("b"), NULL};

	for (int lists = 0; lists < 2; lists++) {
		memcpy(past, names, sizeof(names));
		conf.each_revoked = each_past;
		conf.revoke_first = true;
		past_known = false;
		set_back();
		fake_kbs_put_resource(kbs, KEY("b"), "{}");
		if (lists)
			fake_kbs_put_value(kbs, KBS_SENTINEL,
				"{\"cluster\":\"c\",\"session\":\"\",\"sum\":\"00\",\"policy\":\"reads-lists\"}");
		life_begin();
		declare(KBS_RESOURCE, KEY("new"), "{\"key\":\"2\"}");
		declare(KBS_REFVALUE, "ak.new", IDENTITY("new"));
		for (unsigned i = 1; i < 5; i++)
			fake_kbs_fault(kbs, i, "DELETE", FAKE_KBS_REFUSE, 500, "", NULL);
		for (int i = 0; i < 3000; i++) {
			bool old = fake_kbs_resource(kbs, KEY("old")) ||
				   fake_kbs_resource(kbs, KEY("b")) ||
				   strcmp(fake_kbs_value(kbs, "ak.old"), "null") != 0;

			past_known = i > 500; /* the record is loaded late */
			cr_assert_not(old && fake_kbs_resource(kbs, KEY("new")), "step %d", i);
			cr_assert_not(old && fake_kbs_value(kbs, "ak.new"), "step %d", i);
			run(100);
		}
		run(60000);
		assert_old_is_gone();
		cr_assert_str_eq(fake_kbs_resource(kbs, KEY("new")), "{\"key\":\"2\"}");
		cr_assert(fake_kbs_value(kbs, "ak.new"));
		life_end();
		fake_kbs_lose_store(kbs);
	}
}
