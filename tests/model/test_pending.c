/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include "tec/model/pending.h"

Test(model_pending, is_what_a_listener_made_and_nothing_matched)
{
	struct model_machine m = {0};
	struct model_ak a = {0};

	cr_assert_not(model_pending_machine(NULL));
	cr_assert_not(model_pending_ak(NULL));
	cr_assert_not(model_pending_machine(&m));
	cr_assert_not(model_pending_ak(&a));
	m.by_listener = a.by_listener = true;
	cr_assert(model_pending_machine(&m));
	cr_assert(model_pending_ak(&a));
	m.bound_at = "2026-01-02T03:04:05Z";
	a.owner_uid = "m-1";
	cr_assert_not(model_pending_machine(&m));
	cr_assert_not(model_pending_ak(&a));
}

Test(model_pending, a_key_alone_is_enough_with_an_id_of_version_8)
{
	static const struct {
		const char *id;
		bool valid, by_listener, by_key;
	} t[] = {
		{"00000000-0000-8000-8000-000000000001", true, true, true},
		{"00000000-0000-8000-8000-000000000001", true, false, false},
		{"00000000-0000-4000-8000-000000000001", true, true, false},
		{"8", false, true, false},
	};

	cr_assert_not(model_pending_by_key(NULL));
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct model_machine m = {
			.id = t[i].id, .id_valid = t[i].valid, .by_listener = t[i].by_listener};

		cr_expect_eq(model_pending_by_key(&m), t[i].by_key, "%zu", i);
		m.bound_at = "2026-01-02T03:04:05Z";
		cr_expect_eq(model_pending_by_key(&m), t[i].by_key, "%zu", i);
	}
}

Test(model_pending, each_limit_has_its_own_room)
{
	static const struct {
		struct model_pending p;
		enum model_pending_limit first;
		bool all, machines, keys;
	} t[] = {
		{{0, 0, 0, 0}, MODEL_PENDING_NONE, false, false, false},
		{{9, 9, 19, 0}, MODEL_PENDING_NONE, false, false, false},
		{{10, 0, 10, 0}, MODEL_PENDING_MACHINES, false, true, false},
		{{0, 10, 0, 0}, MODEL_PENDING_KEYS, false, false, true},
		{{11, 11, 11, 0}, MODEL_PENDING_MACHINES, false, true, true},
		{{0, 0, 11, 9}, MODEL_PENDING_NONE, false, false, false},
		{{0, 0, 11, 10}, MODEL_PENDING_NEVER_ATTESTED, false, false, false},
		{{0, 0, 20, 0}, MODEL_PENDING_ALL_MACHINES, true, false, false},
		{{10, 10, 20, 0}, MODEL_PENDING_ALL_MACHINES, true, true, true},
	};
	struct model_cluster c = {.pending_limit = 10, .machine_limit = 20};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		const struct model_pending *p = &t[i].p;

		cr_expect_eq(model_pending_reached(&c, p), t[i].first, "%zu", i);
		cr_expect_eq(model_pending_is_reached(&c, p, MODEL_PENDING_ALL_MACHINES), t[i].all);
		cr_expect_eq(
			model_pending_is_reached(&c, p, MODEL_PENDING_MACHINES), t[i].machines);
		cr_expect_eq(model_pending_is_reached(&c, p, MODEL_PENDING_KEYS), t[i].keys);
	}
}

Test(model_pending, a_source_has_a_quarter_and_16_at_least)
{
	static const struct {
		int pending, machines;
		size_t share;
	} t[] = {{1, 50000, 16}, {64, 50000, 16}, {68, 50000, 17}, {10000, 50000, 2500},
		{1000000, 1000000, 250000}, {10000, 100, 25}, {10000, 10, 16}, {100, 100, 25}};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct model_cluster c = {
			.pending_limit = t[i].pending, .machine_limit = t[i].machines};

		cr_expect_eq(model_pending_share(&c), t[i].share, "%zu", i);
	}
}
