/* SPDX-License-Identifier: MIT */
/* Our side is killed after every request of everything it does. */
#include "config.h"

#include "kbs/push_fixture.h"

TestSuite(kbs_push_kill, .init = world_begin, .fini = world_end, .timeout = 60);

static void nothing(void)
{
}

static void deliver(void)
{
	declare(KBS_RESOURCE, KEY("new"), "{\"key\":\"n\"}");
	declare(KBS_REFVALUE, "ak.new", IDENTITY("new"));
	declare(KBS_REFVALUE, "boot.4.14", "{\"images\":[\"coreos\",\"other\"]}");
}

static void withdraw(void)
{
	revoke(KBS_REFVALUE, "ak.one");
	revoke(KBS_RESOURCE, KEY("one"));
}

static void replace(void)
{
	declare(KBS_RESOURCE, KEY("one"), "{\"key\":\"1b\"}");
	revoke(KBS_REFVALUE, "ak.two");
	declare(KBS_REFVALUE, "ak.three", IDENTITY("three"));
}

static void deliver_and_withdraw(void)
{
	declare(KBS_RESOURCE, KEY("new"), "{\"key\":\"n\"}");
	declare(KBS_REFVALUE, "ak.new", IDENTITY("new"));
	run(120);
	revoke(KBS_RESOURCE, KEY("new"));
	revoke(KBS_REFVALUE, "ak.new");
}

/* What is wanted when the next life begins may be something else again. */
static void none_of_new(void)
{
	revoke(KBS_RESOURCE, KEY("new"));
	revoke(KBS_REFVALUE, "ak.new");
}

static void other_policies(void)
{
	attestation = "package policy # newer";
	resource_policy = "package policy # newer too";
	if (sync)
		kbs_sync_policies(sync, attestation, resource_policy, shared);
}

static void become_shared(void)
{
	shared = true;
	other_policies();
}

static const struct row {
	const char *name;
	bool empty; /* Trustee is */
	void (*act)(void), (*meanwhile)(void);
} rows[] = {
	{"populate", true, nothing, nothing},
	{"populate, then revoke", true, nothing, withdraw},
	{"deliver", false, deliver, nothing},
	{"deliver, then not wanted", false, deliver, none_of_new},
	{"revoke", false, withdraw, nothing},
	{"revoke, then wanted again", false, withdraw, declare_some},
	{"replace", false, replace, nothing},
	{"deliver and revoke", false, deliver_and_withdraw, nothing},
	{"policies", false, other_policies, nothing},
	{"shared", false, become_shared, nothing},
};

/* Killed after n requests of the act; false: there were not so many. */
static bool killed_after(const struct row *r, unsigned n, uint32_t latency_ms)
{
	cleanup_free char *when = xasprintf("%s, killed after %u", r->name, n);
	bool dead;

	if (r->empty)
		declare_some();
	else
		in_step();
	fake_kbs_latency(kbs, latency_ms);
	fake_kbs_die_after(kbs, n);
	if (r->empty)
		life_begin();
	r->act();
	run(60000);
	dead = fake_kbs_is_dead(kbs);
	life_end();
	fake_kbs_revive(kbs);
	r->meanwhile();
	life_begin();
	run(120000);
	assert_in_step(when);
	forget_gone();
	fake_kbs_forget(kbs);
	run(170000);
	cr_assert_leq(fake_kbs_requests(kbs), 1, "%s: not at rest", when);
	return dead;
}

static void kill_everywhere(uint32_t latency_ms)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		unsigned n = 1;

		while (killed_after(&rows[i], n, latency_ms)) {
			n++;
			world_end();
			world_begin();
		}
		cr_assert_gt(n, 2, "%s: %u", rows[i].name, n);
		world_end();
		world_begin();
	}
}

Test(kbs_push_kill, after_every_request_the_next_life_makes_it_whole)
{
	kill_everywhere(0);
}

Test(kbs_push_kill, and_when_answers_are_slow)
{
	kill_everywhere(50);
}

Test(kbs_push_kill, twice_in_a_row)
{
	for (unsigned n = 1; n < 12; n++)
		for (unsigned m = 1; m < 12; m++) {
			in_step();
			fake_kbs_die_after(kbs, n);
			replace();
			run(60000);
			life_end();
			fake_kbs_revive(kbs);
			fake_kbs_die_after(kbs, m);
			life_begin();
			withdraw();
			run(60000);
			life_end();
			fake_kbs_revive(kbs);
			life_begin();
			run(60000);
			assert_in_step("killed twice");
			world_end();
			world_begin();
		}
}

/* Both the clean sentinel and the tombstone are older than what stands there: a name that a life
 * before put behind the clean sentinel. An equal sum says nothing about it. */
Test(kbs_push_kill, a_tombstone_is_never_confirmed_by_a_sum)
{
	in_step();
	life_end();
	watched = false;
	fake_kbs_put_resource(kbs, KEY("new"), "{\"key\":\"n\"}");
	watched = true;
	revoke(KBS_RESOURCE, KEY("new"));
	life_begin();
	run(60000);
	cr_assert_null(fake_kbs_resource(kbs, KEY("new")));
	assert_in_step("revoked");
}
