/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include "tec/base/clock.h"
#include "tec/base/mem.h"
#include "tec/srv/share.h"

#define MINUTE_MS (60 * 1000)

static struct sources *s;

static void open_share(void)
{
	clock_fake_start(5000, 1790000000);
	s = srv_share_new(4);
}

static void close_share(void)
{
	sources_free(s);
	clock_fake_stop();
}

TestSuite(srv_share, .init = open_share, .fini = close_share);

Test(srv_share, counts_for_an_hour_whatever_became_of_them)
{
	for (int i = 0; i < 6; i++) {
		srv_share_add(s, "192.0.2.1:1000");
		clock_fake_advance(10 * MINUTE_MS);
	}
	cr_assert_eq(srv_share_count(s, "192.0.2.1:2000"), 6, "another port, the same source");
	clock_fake_advance(10 * MINUTE_MS);
	cr_assert_eq(srv_share_count(s, "192.0.2.1:1"), 5);
	srv_share_add(s, "192.0.2.1:1");
	cr_assert_eq(srv_share_count(s, "192.0.2.1:1"), 6);
	clock_fake_advance(49 * MINUTE_MS);
	cr_assert_geq(srv_share_count(s, "192.0.2.1:1"), 1, "within the hour");
	clock_fake_advance(22 * MINUTE_MS);
	cr_assert_eq(srv_share_count(s, "192.0.2.1:1"), 0);
	clock_fake_advance(UINT64_C(100000) * MINUTE_MS);
	srv_share_add(s, "192.0.2.1:1");
	cr_assert_eq(srv_share_count(s, "192.0.2.1:1"), 1);
}

Test(srv_share, sources_are_addresses_and_networks_of_64_bits)
{
	static const struct {
		const char *a, *b;
		bool same;
	} t[] = {
		{"192.0.2.1:1", "192.0.2.2:1", false},
		{"[2001:db8:0:1::1]:1", "[2001:db8:0:1:ffff::2]:2", true},
		{"[2001:db8:0:1::1]:1", "[2001:db8:0:2::1]:1", false},
		{"192.0.2.1:1", "[::ffff:192.0.2.1]:1", true},
		{"?", "garbage", true},
		{"?", "192.0.2.1:1", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		srv_share_add(s, t[i].a);
		cr_expect_eq(srv_share_count(s, t[i].b), t[i].same, "%s %s", t[i].a, t[i].b);
		srv_share_give_back(s, t[i].a);
		cr_expect_eq(srv_share_count(s, t[i].a), 0);
	}
}

Test(srv_share, forgets_who_made_nothing_for_the_longest_time)
{
	srv_share_add(s, "192.0.2.1:1");
	srv_share_add(s, "192.0.2.2:1");
	srv_share_add(s, "192.0.2.3:1");
	srv_share_add(s, "192.0.2.4:1");
	srv_share_add(s, "192.0.2.1:1");
	srv_share_add(s, "192.0.2.5:1");
	cr_assert_eq(srv_share_count(s, "192.0.2.1:1"), 2);
	cr_assert_eq(srv_share_count(s, "192.0.2.2:1"), 0);
	cr_assert_eq(srv_share_count(s, "192.0.2.5:1"), 1);
}

Test(srv_share, what_was_not_made_is_given_back_once)
{
	srv_share_give_back(s, "192.0.2.9:1");
	srv_share_add(s, "192.0.2.1:1");
	srv_share_add(s, "192.0.2.1:1");
	srv_share_give_back(s, "192.0.2.1:1");
	cr_assert_eq(srv_share_count(s, "192.0.2.1:1"), 1);
	srv_share_give_back(s, "192.0.2.1:1");
	srv_share_give_back(s, "192.0.2.1:1");
	cr_assert_eq(srv_share_count(s, "192.0.2.1:1"), 0);
}
