/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include <netinet/in.h>
#include <stdio.h>

#include "tec/base/clock.h"
#include "tec/net/addr.h"
#include "tec/net/ratelimit.h"

static bool take(struct ratelimit *r, const char *host, uint32_t *retry_s)
{
	struct err err = ERR_INIT;
	struct addr a;
	char text[ADDR_TEXT_LEN];

	snprintf(text, sizeof(text), "%s:1", host);
	cr_assert_eq(addr_parse(text, &a, &err), 0, "%s", err.text);
	return ratelimit_take(r, (struct sockaddr *)&a.ss, retry_s);
}

static unsigned take_all(struct ratelimit *r, const char *host)
{
	uint32_t retry_s;
	unsigned n = 0;

	while (n < 100000 && take(r, host, &retry_s))
		n++;
	return n;
}

Test(net_ratelimit, burst_then_refusal_then_refill)
{
	struct ratelimit *r = ratelimit_new(20, 5, 100);
	uint32_t retry_s;

	clock_fake_start(1000, 0);
	cr_assert_eq(take_all(r, "10.0.0.1"), 20);
	cr_assert_not(take(r, "10.0.0.1", &retry_s));
	cr_assert_eq(retry_s, 1);
	clock_fake_advance(199);
	cr_assert_not(take(r, "10.0.0.1", &retry_s));
	clock_fake_advance(1);
	cr_assert(take(r, "10.0.0.1", &retry_s));
	clock_fake_advance(1000);
	cr_assert_eq(take_all(r, "10.0.0.1"), 5);
	clock_fake_advance(3600000);
	cr_assert_eq(take_all(r, "10.0.0.1"), 20);
	ratelimit_free(r);
	clock_fake_stop();
}

Test(net_ratelimit, slow_rate_says_how_long)
{
	struct ratelimit *r = ratelimit_new(1, 1, 10);
	uint32_t retry_s;

	clock_fake_start(1000, 0);
	cr_assert(take(r, "10.0.0.1", &retry_s));
	cr_assert_eq(retry_s, 0);
	cr_assert_not(take(r, "10.0.0.1", &retry_s));
	cr_assert_eq(retry_s, 1);
	ratelimit_free(r);
	clock_fake_stop();
}

Test(net_ratelimit, sources_are_apart_and_ipv6_counts_by_64)
{
	struct ratelimit *r = ratelimit_new(10, 1, 100);
	uint32_t retry_s;

	clock_fake_start(1000, 0);
	cr_assert_eq(take_all(r, "10.0.0.1"), 10);
	cr_assert_eq(take_all(r, "10.0.0.2"), 10);
	cr_assert_not(take(r, "[::ffff:10.0.0.1]", &retry_s), "mapped is the same as IPv4");
	cr_assert_eq(take_all(r, "[2001:db8:0:1::1]"), 10);
	cr_assert_not(take(r, "[2001:db8:0:1:ffff::2]", &retry_s));
	cr_assert(take(r, "[2001:db8:0:2::1]", &retry_s));
	ratelimit_free(r);
	clock_fake_stop();
}

Test(net_ratelimit, full_table_reuses_the_longest_idle_source)
{
	struct ratelimit *r = ratelimit_new(2, 1, 100);
	uint32_t retry_s;
	char host[32];

	clock_fake_start(1000, 0);
	cr_assert_eq(take_all(r, "192.0.2.1"), 2);
	cr_assert_eq(take_all(r, "192.0.2.2"), 2);
	for (unsigned i = 0; i < 98; i++) {
		snprintf(host, sizeof(host), "10.0.0.%u", i);
		cr_assert(take(r, host, &retry_s));
	}
	cr_assert_not(take(r, "192.0.2.1", &retry_s), "still known");
	cr_assert(take(r, "10.0.1.1", &retry_s), "takes the bucket of 192.0.2.2");
	cr_assert_not(take(r, "192.0.2.1", &retry_s), "not that of a source seen since");
	cr_assert(take(r, "192.0.2.2", &retry_s), "forgotten, so it starts again");
	for (unsigned i = 0; i < 100000; i++) {
		snprintf(host, sizeof(host), "10.%u.%u.%u", i >> 16, i >> 8 & 255, i & 255);
		cr_assert(take(r, host, &retry_s));
	}
	ratelimit_free(r);
	clock_fake_stop();
}

Test(net_ratelimit, none_allows_everything)
{
	uint32_t retry_s = 9;

	cr_assert(ratelimit_take(NULL, NULL, &retry_s));
	cr_assert_eq(retry_s, 0);
	ratelimit_free(NULL);
}

Test(net_ratelimit, slower_than_one_a_second_and_given_back)
{
	static const uint8_t source[ADDR_SOURCE_LEN] = {1}, other[ADDR_SOURCE_LEN] = {2};
	struct ratelimit *r = ratelimit_new_slow(5, 5, 300000, 10);
	uint32_t retry_s;

	clock_fake_start(1000, 0);
	for (int i = 0; i < 5; i++)
		cr_assert(ratelimit_take_source(r, source, &retry_s));
	cr_assert_not(ratelimit_take_source(r, source, &retry_s));
	cr_assert_eq(retry_s, 60);
	cr_assert(ratelimit_take_source(r, other, &retry_s));
	clock_fake_advance(59999);
	cr_assert_not(ratelimit_take_source(r, source, &retry_s));
	cr_assert_eq(retry_s, 1);
	clock_fake_advance(1);
	cr_assert(ratelimit_take_source(r, source, &retry_s));
	cr_assert_not(ratelimit_take_source(r, source, &retry_s));
	ratelimit_give_source(r, source);
	cr_assert(ratelimit_take_source(r, source, &retry_s));
	for (int i = 0; i < 9; i++)
		ratelimit_give_source(r, other);
	for (int i = 0; i < 5; i++)
		cr_assert(ratelimit_take_source(r, other, &retry_s));
	cr_assert_not(ratelimit_take_source(r, other, &retry_s), "more than a full bucket");
	ratelimit_free(r);
	clock_fake_stop();
}
