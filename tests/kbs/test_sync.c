/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "fake/kbs.h"
#include "kbs/thing.h"
#include "tec/base/intern.h"
#include "tec/base/mem.h"
#include "tec/kbs/sync.h"

static void sha(const char *value, uint8_t out[SHA256_LEN])
{
	bytes_sha256(value, strlen(value), out);
}

static unsigned told;
static char last[64];

static void on_tell(void *arg, enum kbs_kind kind, const char *name)
{
	told++;
	snprintf(last, sizeof(last), "%s", name ? name : "(all)");
}

static struct kbs_sync *s;

static void up(void)
{
	told = 0;
	s = kbs_sync_new();
	kbs_sync_listen(s, on_tell, NULL);
}

static void down(void)
{
	kbs_sync_free(s);
	cr_assert_eq(secret_count(), 0);
}

TestSuite(kbs_sync, .init = up, .fini = down);

static bool declare(const char *name, const char *value)
{
	struct kobj *o = thing_new(name, value);
	bool changed = kbs_sync_declare(s, KBS_RESOURCE, name, o, thing_render);

	kobj_unref(o); /* it keeps its own reference */
	return changed;
}

static void confirm(const char *target, const char *name, const char *value)
{
	uint8_t digest[SHA256_LEN];

	if (value)
		sha(value, digest);
	kbs_sync_confirm(s, target, KBS_RESOURCE, name, value ? digest : NULL);
}

static enum kbs_observed observed(const char *name)
{
	return kbs_sync_observed(s, KBS_RESOURCE, name);
}

Test(kbs_sync, without_a_target_nothing_can_be_there)
{
	cr_assert_eq(observed("a"), KBS_OBSERVED_NONE);
	declare("a", "1");
	cr_assert_eq(observed("a"), KBS_OBSERVED_NONE);
	cr_assert(kbs_sync_revoke(s, KBS_RESOURCE, "a"));
	cr_assert(kbs_sync_is_revoked(s, KBS_RESOURCE, "a")); /* a Trustee may be named later */
	kbs_sync_target_add(s, "x");
	cr_assert_eq(observed("a"), KBS_OBSERVED_UNKNOWN);
	kbs_sync_target_remove(s, "x"); /* the last one is gone, and with it what it held */
	cr_assert(!kbs_sync_is_revoked(s, KBS_RESOURCE, "a"));
}

Test(kbs_sync, unknown_until_every_target_was_asked)
{
	kbs_sync_target_add(s, "x");
	kbs_sync_target_add(s, "y");
	cr_assert_eq(observed("a"), KBS_OBSERVED_UNKNOWN);
	cr_assert(declare("a", "1"));
	cr_assert_eq(observed("a"), KBS_OBSERVED_UNKNOWN);
	confirm("x", "a", "1");
	cr_assert_eq(observed("a"), KBS_OBSERVED_UNKNOWN);
	confirm("y", "a", NULL);
	cr_assert_eq(observed("a"), KBS_OBSERVED_PENDING);
	confirm("y", "a", "2");
	cr_assert_eq(observed("a"), KBS_OBSERVED_PENDING);
	confirm("y", "a", "1");
	cr_assert_eq(observed("a"), KBS_OBSERVED_PRESENT);
	confirm("z", "a", NULL); /* not one of ours */
	cr_assert_eq(observed("a"), KBS_OBSERVED_PRESENT);
}

Test(kbs_sync, another_value_has_to_be_confirmed_anew)
{
	kbs_sync_target_add(s, "x");
	declare("a", "1");
	confirm("x", "a", "1");
	cr_assert(!declare("a", "1"));
	cr_assert_eq(observed("a"), KBS_OBSERVED_PRESENT);
	cr_assert(declare("a", "2"));
	cr_assert_eq(observed("a"), KBS_OBSERVED_PENDING);
	confirm("x", "a", "1"); /* an answer that was under way */
	cr_assert_eq(observed("a"), KBS_OBSERVED_PENDING);
	confirm("x", "a", "2");
	cr_assert_eq(observed("a"), KBS_OBSERVED_PRESENT);
}

Test(kbs_sync, a_revoked_name_is_absent_only_when_confirmed)
{
	kbs_sync_target_add(s, "x");
	declare("a", "1");
	confirm("x", "a", "1");
	cr_assert(kbs_sync_revoke(s, KBS_RESOURCE, "a"));
	cr_assert(!kbs_sync_revoke(s, KBS_RESOURCE, "a"));
	cr_assert_null(kbs_sync_object(s, KBS_RESOURCE, "a"));
	cr_assert_eq(secret_count(), 0);
	cr_assert_eq(observed("a"), KBS_OBSERVED_PENDING);
	confirm("x", "a", "1");
	cr_assert_eq(observed("a"), KBS_OBSERVED_PENDING);
	confirm("x", "a", NULL);
	cr_assert_eq(observed("a"), KBS_OBSERVED_ABSENT);
	cr_assert(kbs_sync_is_revoked(s, KBS_RESOURCE, "a"));
	kbs_sync_forget(s, KBS_RESOURCE, "a");
	cr_assert_eq(observed("a"), KBS_OBSERVED_UNKNOWN); /* not asked since */
}

Test(kbs_sync, a_name_never_declared_can_be_revoked)
{
	kbs_sync_target_add(s, "x");
	cr_assert(kbs_sync_revoke(s, KBS_RESOURCE, "a"));
	cr_assert_eq(observed("a"), KBS_OBSERVED_UNKNOWN);
	confirm("x", "a", NULL);
	cr_assert_eq(observed("a"), KBS_OBSERVED_ABSENT);
}

/* ---- lists */

static void share(const char *name, const char *object, const char *value, int64_t order)
{
	struct kobj *o = thing_new(object, value);

	kbs_sync_declare_in(s, KBS_REFVALUE, name, o, order, thing_render);
	kobj_unref(o);
}

static void withdraw(const char *name, const char *object)
{
	kbs_sync_withdraw(s, KBS_REFVALUE, name, object);
}

static void assert_value(const char *name, const char *value)
{
	uint8_t is[SHA256_LEN], want[SHA256_LEN];

	cr_assert(kbs_sync_desired(s, KBS_REFVALUE, name, is));
	sha(value, want);
	cr_assert_arr_eq(is, want, SHA256_LEN, "not %s", value);
}

static void confirm_value(const char *name, const char *value)
{
	uint8_t digest[SHA256_LEN];

	if (value)
		sha(value, digest);
	kbs_sync_confirm(s, "x", KBS_REFVALUE, name, value ? digest : NULL);
}

static enum kbs_observed observed_in(const char *name, const char *object)
{
	return kbs_sync_observed_in(s, KBS_REFVALUE, name, object);
}

Test(kbs_sync, a_list_is_in_its_order_whoever_comes_first)
{
	share("n", "c", "3", 7);
	assert_value("n", "[3]");
	share("n", "b", "2", 7);
	share("n", "a", "1", 9);
	assert_value("n", "[2,3,1]");
	share("n", "a", "0", -1); /* it is older than was thought */
	assert_value("n", "[0,2,3]");
	cr_assert_str_eq(kbs_sync_object(s, KBS_REFVALUE, "n")->name, "a");
	cr_assert_str_eq(kbs_sync_object_at(s, KBS_REFVALUE, "n", 2)->name, "c");
	cr_assert_null(kbs_sync_object_at(s, KBS_REFVALUE, "n", 3));
}

Test(kbs_sync, what_is_withdrawn_is_gone_when_a_list_without_it_is_confirmed)
{
	kbs_sync_target_add(s, "x");
	share("n", "a", "1", 1);
	share("n", "b", "2", 2);
	confirm_value("n", "[1,2]");
	cr_assert_eq(observed_in("n", "a"), KBS_OBSERVED_PRESENT);
	cr_assert_eq(observed_in("n", "b"), KBS_OBSERVED_PRESENT);
	cr_assert_eq(observed_in("n", "stranger"), KBS_OBSERVED_ABSENT);
	withdraw("n", "a");
	cr_assert_eq(observed_in("n", "a"), KBS_OBSERVED_PENDING);
	confirm_value("n", "[1,2]"); /* an answer that was under way */
	cr_assert_eq(observed_in("n", "a"), KBS_OBSERVED_PENDING);
	confirm_value("n", "[2]");
	cr_assert_eq(observed_in("n", "a"), KBS_OBSERVED_ABSENT);
	cr_assert_eq(observed_in("n", "b"), KBS_OBSERVED_PRESENT);
	withdraw("n", "b");
	cr_assert(kbs_sync_is_revoked(s, KBS_REFVALUE, "n"));
	cr_assert_eq(observed_in("n", "b"), KBS_OBSERVED_PENDING);
	confirm_value("n", NULL);
	cr_assert_eq(observed_in("n", "b"), KBS_OBSERVED_ABSENT);
	cr_assert_eq(observed_in("n", "a"), KBS_OBSERVED_ABSENT);
}

Test(kbs_sync, withdrawing_what_nobody_declared_leaves_a_tombstone)
{
	kbs_sync_target_add(s, "x");
	cr_assert(kbs_sync_withdraw(s, KBS_REFVALUE, "n", "a"));
	cr_assert(!kbs_sync_withdraw(s, KBS_REFVALUE, "n", "a"));
	cr_assert(kbs_sync_is_revoked(s, KBS_REFVALUE, "n"));
	cr_assert_eq(observed_in("n", "a"), KBS_OBSERVED_UNKNOWN);
	share("n", "b", "2", 2); /* replaces it */
	cr_assert(!kbs_sync_withdraw(s, KBS_REFVALUE, "n", "a"));
	cr_assert_eq(observed_in("n", "a"), KBS_OBSERVED_UNKNOWN);
	confirm_value("n", "[2]");
	cr_assert_eq(observed_in("n", "a"), KBS_OBSERVED_ABSENT);
}

Test(kbs_sync, a_list_holds_so_many_and_the_others_wait)
{
	cleanup_strbuf struct strbuf all = STRBUF_INIT, less = STRBUF_INIT;
	unsigned before;
	bool has_place;
	char name[8];

	kbs_sync_target_add(s, "x");
	for (int i = 0; i < KBS_LIST_MAX; i++) {
		strbuf_addf(&all, "%c%d", i ? ',' : '[', i);
		if (i)
			strbuf_addf(&less, "%c%d", i > 1 ? ',' : '[', i);
	}
	strbuf_adds(&all, "]");
	strbuf_addf(&less, ",%d]", KBS_LIST_MAX);
	for (int i = KBS_LIST_MAX + 9; i >= 0; i--) {
		char value[8];

		snprintf(name, sizeof(name), "o%d", i);
		snprintf(value, sizeof(value), "%d", i);
		share("n", name, value, i);
	}
	assert_value("n", strbuf_str(&all));
	confirm_value("n", strbuf_str(&all));
	snprintf(name, sizeof(name), "o%d", KBS_LIST_MAX);
	cr_assert(kbs_sync_object_in(s, KBS_REFVALUE, "n", name, &has_place));
	cr_assert(!has_place);
	cr_assert_eq(observed_in("n", name), KBS_OBSERVED_ABSENT);
	before = told;
	withdraw("n", "o40"); /* it waited: nobody sees a difference */
	cr_assert_eq(told, before);
	cr_assert_eq(kbs_sync_observed(s, KBS_REFVALUE, "n"), KBS_OBSERVED_PRESENT);
	withdraw("n", "o0");
	assert_value("n", strbuf_str(&less));
	cr_assert(kbs_sync_object_in(s, KBS_REFVALUE, "n", name, &has_place) && has_place);
}

Test(kbs_sync, sorts_do_not_mix)
{
	kbs_sync_target_add(s, "x");
	declare("a", "1");
	cr_assert_null(kbs_sync_object(s, KBS_REFVALUE, "a"));
	cr_assert(kbs_sync_object(s, KBS_RESOURCE, "a"));
}

Test(kbs_sync, a_new_target_makes_all_unknown_an_old_one_takes_its_answers_along)
{
	kbs_sync_target_add(s, "x");
	declare("a", "1");
	confirm("x", "a", "1");
	kbs_sync_target_add(s, "y");
	cr_assert_str_eq(last, "(all)");
	cr_assert_eq(observed("a"), KBS_OBSERVED_UNKNOWN);
	kbs_sync_target_remove(s, "x");
	cr_assert_eq(observed("a"), KBS_OBSERVED_UNKNOWN);
	confirm("y", "a", "1");
	cr_assert_eq(observed("a"), KBS_OBSERVED_PRESENT);
	kbs_sync_target_remove(s, "y");
	cr_assert_eq(observed("a"), KBS_OBSERVED_NONE);
	kbs_sync_target_add(s, "y"); /* the same name, perhaps another server */
	cr_assert_eq(observed("a"), KBS_OBSERVED_UNKNOWN);
	kbs_sync_target_add(s, "y");
	cr_assert_eq(kbs_sync_targets(s), 1);
}

Test(kbs_sync, removing_the_first_of_two_keeps_the_others_answers)
{
	kbs_sync_target_add(s, "x");
	kbs_sync_target_add(s, "y");
	declare("a", "1");
	confirm("y", "a", "1");
	kbs_sync_target_remove(s, "x");
	cr_assert_eq(observed("a"), KBS_OBSERVED_PRESENT);
}

Test(kbs_sync, wanted_is_the_hash_of_the_declared_value)
{
	uint8_t one[SHA256_LEN], is[SHA256_LEN];

	sha("1", one);
	cr_assert_not(kbs_sync_desired(s, KBS_RESOURCE, "a", is));
	declare("a", "1");
	cr_assert(kbs_sync_desired(s, KBS_RESOURCE, "a", is));
	cr_assert_arr_eq(is, one, SHA256_LEN);
	kbs_sync_revoke(s, KBS_RESOURCE, "a");
	cr_assert_not(kbs_sync_desired(s, KBS_RESOURCE, "a", is));
}

static void counts(size_t declared, size_t confirmed, size_t revoking)
{
	size_t d, c, r;

	kbs_sync_counts(s, &d, &c, &r);
	cr_assert(d == declared && c == confirmed && r == revoking, "%zu %zu %zu", d, c, r);
}

Test(kbs_sync, a_doubted_name_has_to_be_confirmed_again)
{
	cleanup_kobj const struct kobj *o = thing_new("o", "v");

	kbs_sync_target_add(s, "t");
	kbs_sync_declare(s, KBS_RESOURCE, "n", o, thing_render);
	kbs_sync_confirm(s, "t", KBS_RESOURCE, "n", NULL);
	kbs_sync_set_unknown(s, "t", KBS_RESOURCE, "n");
	kbs_sync_set_unknown(s, "t", KBS_RESOURCE, "unknown");
	kbs_sync_set_unknown(s, "elsewhere", KBS_RESOURCE, "n");
	kbs_sync_revoke(s, KBS_RESOURCE, "n");
	cr_assert_eq(kbs_sync_observed(s, KBS_RESOURCE, "n"), KBS_OBSERVED_UNKNOWN);
	kbs_sync_confirm(s, "t", KBS_RESOURCE, "n", NULL);
	cr_assert_eq(kbs_sync_observed(s, KBS_RESOURCE, "n"), KBS_OBSERVED_ABSENT);
}

struct named {
	unsigned n, declared;
};

static void count_and_forget(void *arg, const char *name)
{
	struct named *in = arg;
	uint8_t digest[SHA256_LEN], want[SHA256_LEN];

	in->n++;
	if (kbs_sync_desired(s, KBS_RESOURCE, name, digest)) {
		sha("v", want);
		cr_assert_arr_eq(digest, want, SHA256_LEN);
		in->declared++;
	}
	kbs_sync_forget(s, KBS_RESOURCE, name); /* it is a copy: the walk goes on */
}

Test(kbs_sync, names_are_those_declared_and_revoked)
{
	cleanup_kobj const struct kobj *o = thing_new("o", "v");
	struct named in = {0};
	char name[16];

	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		kbs_sync_declare(s, KBS_RESOURCE, name, o, thing_render);
	}
	kbs_sync_revoke(s, KBS_RESOURCE, "n7");
	kbs_sync_revoke(s, KBS_REFVALUE, "other");
	kbs_sync_names(s, KBS_RESOURCE, count_and_forget, &in);
	cr_assert_eq(in.n, 100);
	cr_assert_eq(in.declared, 99);
	kbs_sync_names(s, KBS_RESOURCE, count_and_forget, &in);
	cr_assert_eq(in.n, 100);
}

Test(kbs_sync, counts_follow_every_change)
{
	counts(0, 0, 0);
	kbs_sync_target_add(s, "x");
	declare("a", "1");
	declare("b", "1");
	counts(2, 0, 0);
	confirm("x", "a", "1");
	counts(2, 1, 0);
	kbs_sync_revoke(s, KBS_RESOURCE, "a");
	counts(1, 0, 1);
	confirm("x", "a", NULL);
	counts(1, 0, 0);
	kbs_sync_forget(s, KBS_RESOURCE, "a");
	declare("b", "2");
	confirm("x", "b", "2");
	counts(1, 1, 0);
	kbs_sync_target_add(s, "y");
	counts(1, 0, 0);
	kbs_sync_target_remove(s, "y");
	counts(1, 1, 0);
	kbs_sync_reset(s);
	counts(0, 0, 0);
	cr_assert_eq(kbs_sync_targets(s), 0);
}

Test(kbs_sync, thousands_of_names_and_only_changes_are_told)
{
	char name[32];

	kbs_sync_target_add(s, "x");
	told = 0;
	for (int i = 0; i < 5000; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		declare(name, "1");
		declare(name, "1");
	}
	cr_assert_eq(told, 5000);
	counts(5000, 0, 0);
	confirm("x", "n4711", "1");
	confirm("x", "n4711", "1");
	cr_assert_eq(told, 5001);
	cr_assert_str_eq(last, "n4711");
	cr_assert_eq(observed("n4711"), KBS_OBSERVED_PRESENT);
	cr_assert_eq(observed("n0"), KBS_OBSERVED_UNKNOWN);
}

#ifndef __SANITIZE_ADDRESS__
static void identity(char out[], size_t size, unsigned i)
{
	snprintf(out, size, "ak.%0240u", i);
}

Test(kbs_sync, an_identity_costs_no_second_copy_of_its_name)
{
	enum { N = 1000 };
	const char *known[N];
	struct kobj *o = thing_new("o", "v");
	size_t before, used;
	char name[300];

	for (unsigned i = 0; i < N; i++) {
		identity(name, sizeof(name), i);
		known[i] = intern_ref(name); /* as its Secret does */
	}
	kbs_sync_declare(s, KBS_REFVALUE, "first", o, thing_render); /* OpenSSL's own memory */
	before = mallinfo2().uordblks;
	for (unsigned i = 0; i < N; i++) {
		identity(name, sizeof(name), i);
		kbs_sync_declare(s, KBS_REFVALUE, name, o, thing_render);
	}
	used = mallinfo2().uordblks - before;
	cr_log_info("%zu bytes per identity", used / N);
	cr_expect_leq(used / N, 160);
	kobj_unref(o);
	for (unsigned i = 0; i < N; i++)
		intern_unref(known[i]);
	identity(name, sizeof(name), N - 1);
	cr_expect(kbs_sync_object(s, KBS_REFVALUE, name), "the entry keeps the name by itself");
}
#endif

Test(kbs_sync, as_many_targets_as_there_may_be_are_told_apart)
{
	char target[16];
	unsigned i;

	for (i = 0; i < 24; i++) {
		snprintf(target, sizeof(target), "t%u", i);
		kbs_sync_target_add(s, target);
	}
	declare("n", "v");
	for (i = 0; i < 24; i++) {
		cr_expect_neq(observed("n"), KBS_OBSERVED_PRESENT);
		snprintf(target, sizeof(target), "t%u", i);
		confirm(target, "n", "v");
		for (unsigned k = 0; k < 24; k++)
			cr_expect_eq(kbs_sync_target_differs(s, k, KBS_RESOURCE, "n"), k > i);
	}
	cr_expect_eq(observed("n"), KBS_OBSERVED_PRESENT);
	confirm("t23", "n", "other");
	cr_expect_eq(observed("n"), KBS_OBSERVED_PENDING);
	kbs_sync_set_unknown(s, "t0", KBS_RESOURCE, "n");
	cr_expect_eq(observed("n"), KBS_OBSERVED_UNKNOWN);
}

Test(kbs_sync, the_worst_state_of_all_counts)
{
	static const enum kbs_target_state better[] = {KBS_TARGET_IN_SYNC, KBS_TARGET_PROBING,
		KBS_TARGET_POPULATING, KBS_TARGET_UNREACHABLE, KBS_TARGET_REFUSED,
		KBS_TARGET_CONFLICT};

	cr_assert_eq(kbs_sync_state(s), KBS_TARGET_UNREACHABLE);
	kbs_sync_target_add(s, "x");
	kbs_sync_target_add(s, "y");
	cr_assert_eq(kbs_sync_state(s), KBS_TARGET_PROBING);
	for (size_t i = 0; i < ARRAY_LEN(better); i++) {
		for (size_t j = 0; j < ARRAY_LEN(better); j++) {
			kbs_sync_set_status(s, "x", better[i], "x", NULL);
			kbs_sync_set_status(s, "y", better[j], NULL, "y");
			cr_assert_eq(kbs_sync_state(s), better[i > j ? i : j]);
		}
	}
}

Test(kbs_sync, says_which_target_lacks_a_name_and_why)
{
	struct kbs_target_status t;

	cr_assert_not(kbs_sync_target(s, 0, &t));
	kbs_sync_target_add(s, "x");
	kbs_sync_target_add(s, "y");
	declare("a", "1");
	confirm("x", "a", "1");
	cr_assert_not(kbs_sync_target_differs(s, 0, KBS_RESOURCE, "a"));
	cr_assert(kbs_sync_target_differs(s, 1, KBS_RESOURCE, "a"));
	cr_assert(kbs_sync_target_differs(s, 0, KBS_RESOURCE, "unknown"));
	kbs_sync_target_remove(s, "x");
	kbs_sync_set_status(s, "y", KBS_TARGET_UNREACHABLE, "refused", NULL);
	cr_assert(kbs_sync_target(s, 0, &t));
	cr_assert_str_eq(t.name, "y");
	cr_assert_str_eq(t.error, "refused");
	cr_assert_null(t.text);
	cr_assert_not(kbs_sync_target(s, 1, &t));
}
