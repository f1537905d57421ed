/* SPDX-License-Identifier: MIT */
/* Who has to go when a listener is full. */
#include "config.h"

#include "httpd_fixture.h"

#define REFUSED "tec_http_refused_connections_total{listener=\"test\",reason=\"limit\"} "
#define EVICTED "tec_http_evicted_connections_total{listener=\"test\"} "

static void full_start(struct srv *s, unsigned max)
{
	clock_fake_start(1000, 0);
	srv_prepare(s);
	s->conf.max_connections = max;
	srv_listen(s, false);
}

static void full_stop(struct srv *s, struct cli *c, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		cli_close(&c[i]);
	srv_stop(s);
	clock_fake_stop();
}

static void open_some(struct srv *s, struct cli *c, unsigned n, unsigned source)
{
	for (unsigned i = 0; i < n; i++) {
		c[i] = cli_open_from(s->loop, httpd_port(s->h), source);
		loop_drain(s->loop);
	}
}

static int ask_from(struct srv *s, unsigned source)
{
	struct cli c = cli_open_from(s->loop, httpd_port(s->h), source);
	int status;

	cli_send(&c, GET_PING);
	status = cli_status(&c);
	cli_close(&c);
	loop_drain(s->loop);
	return status;
}

static void count_lines(enum log_level level, const char *line, void *arg)
{
	if (strstr(line, "all connections are in use") && strstr(line, "peer=127.0.0.2:"))
		++*(unsigned *)arg;
}

Test(net_httpd_share, the_greediest_source_makes_room_for_others)
{
	unsigned lines = 0;
	struct srv s;
	struct cli c[9];

	log_capture(count_lines, &lines);
	full_start(&s, 8);
	open_some(&s, c, 5, 2);
	open_some(&s, c + 5, 3, 3);
	cli_send(&c[0], GET_PING); /* so that c[1] is the idlest */
	cr_assert_eq(cli_status(&c[0]), 200);
	open_some(&s, c + 8, 1, 4);
	cr_expect(cli_wait_eof(&c[1]) && c[1].in.len == 0);
	cli_send(&c[8], GET_PING);
	cr_expect_eq(cli_status(&c[8]), 200);
	for (unsigned i = 0; i < 8; i++) {
		cli_turn(&c[i]);
		cr_expect_eq(c[i].eof, i == 1, "%u", i);
	}
	cr_expect_eq(httpd_connections(s.h), 8);
	cr_expect_eq(sample(EVICTED), 1);
	cr_expect_eq(sample(REFUSED), -1);
	cr_expect_eq(lines, 1, "the log names who was greedy");
	full_stop(&s, c, 9);
	log_capture(NULL, NULL);
}

/* Many nodes stand behind one address. */
Test(net_httpd_share, one_source_may_have_all_places_and_is_not_torn_apart)
{
	struct srv s;
	struct cli c[4];

	full_start(&s, 4);
	open_some(&s, c, 4, 2);
	cr_expect_eq(ask_from(&s, 2), 0, "the others have just come");
	cr_expect_eq(sample(REFUSED), 1);
	clock_fake_advance(s.conf.yield_ms);
	cr_expect_eq(ask_from(&s, 2), 200, "in the place of an idle one");
	cr_expect(cli_wait_eof(&c[0]));
	for (unsigned i = 1; i < 4; i++) {
		cli_send(&c[i], GET_PING);
		cr_expect_eq(cli_status(&c[i]), 200, "%u", i);
	}
	full_stop(&s, c, 4);
}

Test(net_httpd_share, a_request_under_way_does_not_yield_to_its_own_source)
{
	struct srv s;
	struct cli c[2];

	full_start(&s, 2);
	open_some(&s, c, 2, 2);
	for (unsigned i = 0; i < 2; i++)
		cli_send(&c[i], GET_ASYNC);
	while (s.served < 2)
		loop_turn(s.loop, 1);
	clock_fake_advance(s.conf.yield_ms);
	cr_expect_eq(ask_from(&s, 2), 0);
	cr_expect_eq(ask_from(&s, 3), 200, "another source comes before it all the same");
	cr_expect_eq(s.aborted, 1);
	cr_expect_eq(sample(EVICTED), 1);
	full_stop(&s, c, 2);
}

Test(net_httpd_share, all_yield_at_once_when_told_so)
{
	struct srv s;
	struct cli c[4];

	srv_prepare(&s);
	s.conf.max_connections = 4;
	s.conf.yield_ms = 0;
	srv_listen(&s, false);
	open_some(&s, c, 4, 2);
	for (unsigned i = 0; i < 20; i++)
		cr_expect_eq(ask_from(&s, 2), 200, "%u", i);
	for (unsigned i = 0; i < 4; i++)
		cli_close(&c[i]);
	srv_stop(&s);
}

/* Every round each of them takes as many places as it gets; then somebody else asks. */
static void greedy_sources(unsigned n)
{
	enum { MAX = 40, EACH = 30, ROUNDS = 30 };
	struct cli c[8][EACH];
	struct srv s;

	full_start(&s, MAX);
	for (unsigned g = 0; g < n; g++)
		open_some(&s, c[g], EACH, 2 + g);
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned g = 0; g < n; g++) {
			cli_close(&c[g][round]);
			c[g][round] = cli_open_from(s.loop, httpd_port(s.h), 2 + g);
		}
		cr_expect_eq(ask_from(&s, 1), 200, "%u sources, round %u", n, round);
		cr_expect_leq(httpd_connections(s.h), MAX);
	}
	for (unsigned g = 0; g < n; g++)
		for (unsigned i = 0; i < EACH; i++)
			cli_close(&c[g][i]);
	srv_stop(&s);
	clock_fake_stop();
}

Test(net_httpd_share, greedy_sources_keep_nobody_out)
{
	for (unsigned n = 1; n <= 8; n++)
		greedy_sources(n);
}

/* Else a flood of connections would hold the loop, and a newcomer go before it was looked at. */
Test(net_httpd_share, a_turn_of_the_loop_accepts_a_bounded_number)
{
	struct srv s;
	struct cli c[200];
	size_t before = 0;

	srv_prepare(&s);
	s.conf.max_connections = 150;
	srv_listen(&s, false);
	for (unsigned i = 0; i < 200; i++) {
		c[i] = cli_open_from(s.loop, httpd_port(s.h), 2 + i % 2);
		cli_send(&c[i], GET_PING);
	}
	loop_drain(s.loop);
	for (unsigned i = 0; i < 200; i++)
		cli_close(&c[i]);
	loop_drain(s.loop);
	cr_expect_geq(s.served, 150);
	for (unsigned i = 0; i < 100; i++)
		c[i] = cli_open(s.loop, httpd_port(s.h));
	for (unsigned turns = 0; httpd_connections(s.h) < 100; turns++) {
		loop_turn(s.loop, 1);
		cr_assert_leq(httpd_connections(s.h) - before, 37, "a quarter of 150");
		before = httpd_connections(s.h);
		cr_assert_lt(turns, 100);
	}
	for (unsigned i = 0; i < 100; i++)
		cli_close(&c[i]);
	srv_stop(&s);
}
