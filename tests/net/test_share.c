/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include "tec/base/clock.h"
#include "tec/base/mem.h"
#include "tec/net/share.h"

static void join(struct share *s, struct share_place *p, unsigned host)
{
	const uint8_t source[ADDR_SOURCE_LEN] = {(uint8_t)host};

	share_join(s, p, source);
}

static struct share_place *victim(const struct share *s, unsigned host, bool *own)
{
	const uint8_t source[ADDR_SOURCE_LEN] = {(uint8_t)host};

	return share_victim(s, source, own);
}

Test(net_share, nobody_there_has_nothing_to_give_up)
{
	struct share *s = share_new();
	struct share_place p;
	bool own = true;

	cr_expect_null(victim(s, 1, &own));
	cr_expect_not(own);
	join(s, &p, 1);
	share_leave(s, &p);
	cr_expect_null(victim(s, 1, &own));
	share_free(s);
	share_free(NULL);
}

Test(net_share, the_greediest_source_gives_up_its_idlest_place)
{
	struct share *s = share_new();
	struct share_place a[3], b[2], c;
	bool own;

	for (size_t i = 0; i < 3; i++)
		join(s, &a[i], 1);
	for (size_t i = 0; i < 2; i++)
		join(s, &b[i], 2);
	join(s, &c, 3);
	cr_expect_eq(victim(s, 4, &own), &a[0]);
	cr_expect_not(own);
	share_active(s, &a[0]);
	cr_expect_eq(victim(s, 4, &own), &a[1]);
	cr_expect_eq(victim(s, 2, &own), &a[1]);
	cr_expect_not(own);
	cr_expect_eq(victim(s, 1, &own), &a[1]);
	cr_expect(own);
	share_leave(s, &a[1]);
	share_leave(s, &a[2]);
	cr_expect_eq(victim(s, 1, &own), &b[0]);
	cr_expect_not(own);
	cr_expect_eq(victim(s, 2, &own), &b[0]);
	cr_expect(own);
	share_leave(s, &a[0]);
	share_leave(s, &b[0]);
	share_leave(s, &b[1]);
	share_leave(s, &c);
	share_free(s);
}

Test(net_share, among_equals_the_longest_idle_goes_but_its_own_first)
{
	struct share *s = share_new();
	struct share_place p[4];
	bool own;

	for (unsigned i = 0; i < 4; i++)
		join(s, &p[i], i);
	cr_expect_eq(victim(s, 9, &own), &p[0]);
	share_active(s, &p[0]);
	cr_expect_eq(victim(s, 9, &own), &p[1]);
	cr_expect_eq(victim(s, 3, &own), &p[3]);
	cr_expect(own);
	for (unsigned i = 0; i < 4; i++)
		share_leave(s, &p[i]);
	share_free(s);
}

Test(net_share, says_what_one_source_holds)
{
	const uint8_t one[ADDR_SOURCE_LEN] = {1}, two[ADDR_SOURCE_LEN] = {2};
	struct share *s = share_new();
	struct share_place a[2], b;
	size_t n = 7;

	cr_expect_null(share_held(s, one, &n));
	cr_expect_eq(n, 0);
	join(s, &a[0], 1);
	join(s, &b, 2);
	join(s, &a[1], 1);
	cr_expect_eq(share_held(s, one, &n), &a[0]);
	cr_expect_eq(n, 2);
	cr_expect_eq(share_held(s, two, &n), &b);
	cr_expect_eq(n, 1);
	share_leave(s, &a[0]);
	cr_expect_eq(share_held(s, one, &n), &a[1]);
	share_leave(s, &a[1]);
	share_leave(s, &b);
	share_free(s);
}

Test(net_share, knows_since_when_a_place_is_idle)
{
	struct share *s = share_new();
	struct share_place p;

	clock_fake_start(1000, 0);
	join(s, &p, 1);
	cr_expect_eq(p.active_ms, 1000);
	clock_fake_advance(50);
	share_active(s, &p);
	cr_expect_eq(p.active_ms, 1050);
	share_leave(s, &p);
	share_free(s);
	clock_fake_stop();
}

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

enum { PLACES = 200, HOSTS = 9 };

/* What a plain count says. */
static void check(const struct share *s, const struct share_place *p, const unsigned *host,
	const uint64_t *at, unsigned newcomer)
{
	unsigned n[HOSTS + 1] = {0}, most = 0;
	uint64_t first = UINT64_MAX;
	size_t v;
	bool own;

	for (size_t i = 0; i < PLACES; i++)
		n[host[i]]++;
	for (unsigned h = 1; h <= HOSTS; h++)
		most = n[h] > most ? n[h] : most;
	if (most == 0) {
		cr_assert_null(victim(s, newcomer, &own));
		return;
	}
	v = (size_t)(victim(s, newcomer, &own) - p);
	cr_assert_eq(n[host[v]], most, "%u of %u", n[host[v]], most);
	cr_assert_eq(own, n[newcomer] == most);
	cr_assert(!own || host[v] == newcomer);
	for (size_t i = 0; i < PLACES; i++)
		if (host[i] == host[v] && at[i] < first)
			first = at[i];
	cr_assert_eq(at[v], first, "not the idlest of its source");
}

Test(net_share, agrees_with_a_plain_count_whatever_happens)
{
	struct share *s = share_new();
	struct share_place p[PLACES];
	unsigned host[PLACES] = {0};
	uint64_t at[PLACES] = {0};
	uint32_t rnd = 3;

	for (uint64_t t = 1; t < 20000; t++) {
		size_t i = next_random(&rnd) % PLACES;

		at[i] = t;
		if (!host[i]) {
			/* uneven, so that levels are far apart */
			host[i] = 1 + next_random(&rnd) % HOSTS * (next_random(&rnd) % 2);
			join(s, &p[i], host[i]);
		} else if (next_random(&rnd) % 2) {
			share_active(s, &p[i]);
		} else {
			share_leave(s, &p[i]);
			host[i] = 0;
		}
		check(s, p, host, at, 1 + next_random(&rnd) % HOSTS);
	}
	for (size_t i = 0; i < PLACES; i++)
		if (host[i])
			share_leave(s, &p[i]);
	share_free(s);
}
