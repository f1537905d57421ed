/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/net/ratelimit.h"
#include "tec/net/sessions.h"

#define LIFE_MS 300000

static struct metric evicted = METRIC_COUNTER_INIT("test_evicted", "Evicted.", NULL, NULL);

static const uint8_t one[ADDR_SOURCE_LEN] = {1}, two[ADDR_SOURCE_LEN] = {2};

static bool open_named(struct sessions *s, const uint8_t *source, uint64_t now, const char *cookie,
	uint32_t *retry_s)
{
	struct session *e = sessions_open(s, source, now, retry_s);

	if (e)
		session_named(s, e, cookie);
	return e != NULL;
}

Test(net_sessions, a_source_has_its_share_and_then_gives_up_its_oldest)
{
	struct sessions *s = sessions_new(10, 3, LIFE_MS, &evicted, NULL);
	uint32_t retry = 0;
	char cookie[8];

	for (int i = 0; i < 3; i++) {
		snprintf(cookie, sizeof(cookie), "a%d", i);
		cr_assert(open_named(s, one, 1000 + (uint64_t)i * 1000, cookie, &retry));
	}
	cr_assert_not(open_named(s, one, 3500, "x", &retry), "the oldest is 2.5 s old");
	cr_assert_eq(retry, 8);
	cr_assert(open_named(s, two, 3500, "b", &retry));
	cr_assert_eq(metric_value(&evicted, NULL, NULL), 0);
	cr_assert(open_named(s, one, 11000, "y", &retry));
	cr_assert_null(sessions_find(s, "a0", 11000));
	cr_assert(sessions_find(s, "a1", 11000));
	cr_assert_eq(metric_value(&evicted, NULL, NULL), 1);
	sessions_end(s, sessions_find(s, "a1", 11000));
	cr_assert(open_named(s, one, 11000, "c", &retry));
	cr_assert_eq(sessions_count(s), 4);
	sessions_free(s);
}

Test(net_sessions, when_full_the_oldest_of_the_source_with_the_most_goes)
{
	static const uint8_t three[ADDR_SOURCE_LEN] = {3}, four[ADDR_SOURCE_LEN] = {4};
	struct sessions *s = sessions_new(6, 6, LIFE_MS, &evicted, NULL);
	uint32_t retry = 0;

	cr_assert(open_named(s, two, 5, "b0", &retry));
	cr_assert(open_named(s, one, 6, "a0", &retry));
	cr_assert(open_named(s, one, 7, "a1", &retry));
	cr_assert(open_named(s, one, 8, "a2", &retry));
	cr_assert(open_named(s, two, 9, "b1", &retry));
	cr_assert(open_named(s, three, 9, "c0", &retry));
	cr_assert_not(open_named(s, one, 10, "a3", &retry), "it has the most, and all are young");
	cr_assert_eq(retry, 10);
	cr_assert(open_named(s, four, 10, "d0", &retry));
	cr_assert_null(sessions_find(s, "a0", 10));
	cr_assert(sessions_find(s, "b0", 10), "older, but of a source with fewer");
	cr_assert_not(open_named(s, one, 10, "a3", &retry), "no other source has more");
	cr_assert(open_named(s, one, 20000, "a3", &retry));
	cr_assert_null(sessions_find(s, "a1", 20000));
	cr_assert_eq(sessions_count(s), 6);
	cr_assert_eq(metric_value(&evicted, NULL, NULL), 2);
	sessions_free(s);
}

Test(net_sessions, an_attested_one_never_gives_way_to_one_that_is_not)
{
	struct sessions *s = sessions_new(3, 3, LIFE_MS, &evicted, NULL);
	uint32_t retry = 0;
	char cookie[8];

	for (int i = 0; i < 4; i++) {
		snprintf(cookie, sizeof(cookie), "a%d", i);
		cr_assert(open_named(s, one, (uint64_t)i, cookie, &retry));
		session_attested(s, sessions_find(s, cookie, 3));
	}
	cr_assert_eq(sessions_count(s), 3, "attested ones are bounded too");
	cr_assert_null(sessions_find(s, "a0", 3));
	for (unsigned i = 0; i < 20; i++) {
		const uint8_t source[ADDR_SOURCE_LEN] = {9, (uint8_t)i};

		cr_assert(open_named(s, source, 4, NULL, &retry));
	}
	cr_assert_eq(sessions_count(s), 6);
	cr_assert(sessions_find(s, "a1", 4));
	cr_assert(open_named(s, two, 5, "b", &retry));
	session_attested(s, sessions_find(s, "b", 5));
	cr_assert(sessions_find(s, "b", 5), "of the source with the fewest");
	cr_assert_null(sessions_find(s, "a1", 5));
	cr_assert(sessions_find(s, "a2", 5));
	sessions_free(s);
}

/* Its owner learns of it when it names or ends it. */
Test(net_sessions, an_awaited_one_is_evicted_without_its_owner)
{
	struct sessions *s = sessions_new(2, 2, LIFE_MS, &evicted, NULL);
	static const uint8_t three[ADDR_SOURCE_LEN] = {3};
	uint32_t retry = 0;
	struct session *e[2];

	for (int i = 0; i < 2; i++)
		e[i] = sessions_open(s, one, 0, &retry);
	cr_assert(open_named(s, two, 1, "b", &retry));
	cr_assert(open_named(s, three, 2, "c", &retry));
	cr_assert_eq(sessions_count(s), 2);
	session_named(s, e[0], "a");
	cr_assert_null(sessions_find(s, "a", 2));
	sessions_end(s, e[1]);
	cr_assert_eq(sessions_count(s), 2);
	sessions_free(s);
}

Test(net_sessions, what_was_dropped_or_ended_gives_its_place_back)
{
	struct sessions *s = sessions_new(10, 1, LIFE_MS, &evicted, NULL);
	uint32_t retry = 0;
	struct session *e = sessions_open(s, one, 0, &retry);

	cr_assert_null(sessions_open(s, one, 0, &retry));
	sessions_end(s, e);
	cr_assert(open_named(s, one, 0, "c", &retry));
	cr_assert_null(sessions_find(s, "another", 0));
	cr_assert(sessions_find(s, "c", 0));
	cr_assert_not(open_named(s, one, SESSIONS_YIELD_MS - 1, "d", &retry));
	cr_assert_eq(retry, 1);
	cr_assert(open_named(s, one, SESSIONS_YIELD_MS, "d", &retry));
	cr_assert_null(sessions_find(s, "d", SESSIONS_YIELD_MS + LIFE_MS));
	sessions_free(s);
}

/* A place that waits for Trustee is not taken away under it. */
Test(net_sessions, an_awaited_one_does_not_time_out)
{
	struct sessions *s = sessions_new(10, 2, LIFE_MS, &evicted, NULL);
	uint32_t retry = 0;
	struct session *e = sessions_open(s, one, 0, &retry);

	sessions_sweep(s, LIFE_MS * 2);
	cr_assert_eq(sessions_count(s), 1);
	session_named(s, e, "late");
	sessions_sweep(s, LIFE_MS * 2);
	cr_assert_eq(sessions_count(s), 0);
	cr_assert(open_named(s, one, LIFE_MS * 2, "y", &retry));
	sessions_free(s);
}

static unsigned released;

static void release(void *data)
{
	cr_expect_eq(*(int *)data, 7);
	released++;
}

Test(net_sessions, data_goes_with_its_session)
{
	struct sessions *s = sessions_new(10, 10, LIFE_MS, &evicted, release);
	static int seven = 7;
	uint32_t retry = 0;

	for (int i = 0; i < 3; i++) {
		struct session *e = sessions_open(s, one, (uint64_t)i * 1000, &retry);

		session_named(s, e, i == 0 ? "a" : i == 1 ? "b" : "c");
		if (i != 2)
			session_set_data(e, &seven);
	}
	cr_assert_eq(session_data(sessions_find(s, "a", 2000)), &seven);
	cr_assert_null(session_data(sessions_find(s, "c", 2000)));
	cr_assert_null(sessions_find(s, "a", LIFE_MS));
	cr_assert_eq(released, 1);
	sessions_free(s);
	cr_assert_eq(released, 2);
}

Test(net_sessions, reads_the_cookie_of_both_headers)
{
	static const struct {
		const char *header, *value;
	} t[] = {
		{NULL, NULL},
		{"", NULL},
		{"kbs-session-id=abc", "abc"},
		{"kbs-session-id=abc; Expires=Wed, 21 Oct 2026 07:28:00 GMT", "abc"},
		{"a=b; kbs-session-id=abc;c=d", "abc"},
		{"a=b;kbs-session-id=", ""},
		{"a=b; kbs-session-id=\"abc\"; c=d", "abc"},
		{"kbs-session-id=\"\"", ""},
		{"kbs-session-id=\"", "\""},
		{"kbs-session-id=\"abc", "\"abc"},
		{"xkbs-session-id=abc", NULL},
		{"kbs-session-id", NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		cleanup_free char *got = sessions_cookie(t[i].header);

		cr_expect(str_eq(got, t[i].value) || (!got && !t[i].value), "%zu: %s", i,
			got ? got : "none");
	}
}

/* ---- a crowd: sources that begin as many as the rate limit lets them and finish none */

#define TICK_MS   20
#define ATTEST_MS 2000 /* from a node's first request to its second */
#define AGAIN_MS  5000 /* from a refusal to a node's next try */
#define CROWD_MS  60000
#define NODES_MAX 1000

struct node {
	uint8_t source[ADDR_SOURCE_LEN];
	char cookie[24]; /* "": not begun */
	uint64_t at_ms;  /* of its next request; 0: none */
	unsigned tries;
	bool attested;
};

struct crowd {
	const char *name;
	unsigned greedy; /* sources */
	bool neighbour;  /* one more has the nodes' address, and leaves them half of the rate */
	unsigned nodes;  /* honest ones */
	bool site;       /* behind one address */
	uint32_t from_ms, ms; /* when they begin, spread over so long */
	unsigned tries;       /* of each */
};

struct world {
	struct sessions *s;
	struct ratelimit *rate;
	struct node nodes[NODES_MAX];
	unsigned n_cookies;
};

static bool begin(struct world *w, const uint8_t source[ADDR_SOURCE_LEN], char cookie[24])
{
	uint32_t retry_s;
	struct session *e;

	if (!ratelimit_take_source(w->rate, source, &retry_s))
		return false;
	e = sessions_open(w->s, source, clock_boot_ms(), &retry_s);
	if (!e)
		return false;
	snprintf(cookie, 24, "%u", w->n_cookies++);
	session_named(w->s, e, cookie);
	return true;
}

static void go_on(struct world *w, struct node *n, unsigned tries)
{
	uint64_t now = clock_boot_ms();
	struct session *e;
	uint32_t retry_s;

	if (!n->cookie[0] && begin(w, n->source, n->cookie)) {
		n->at_ms = now + ATTEST_MS;
		return;
	}
	if (n->cookie[0] && ratelimit_take_source(w->rate, n->source, &retry_s) &&
		(e = sessions_find(w->s, n->cookie, now))) {
		session_attested(w->s, e);
		n->attested = true;
		n->at_ms = 0;
		return;
	}
	n->cookie[0] = '\0';
	n->at_ms = ++n->tries < tries ? now + AGAIN_MS : 0;
}

static void crowd_start(struct world *w, const struct crowd *c)
{
	*w = (struct world){.s = sessions_new(10000, 1024, LIFE_MS, &evicted, NULL),
		.rate = ratelimit_new(200, 50, 16384)};
	for (unsigned i = 0; i < c->nodes; i++) {
		struct node *n = &w->nodes[i];

		n->source[0] = 2;
		if (!c->site)
			memcpy(n->source + 4, &i, sizeof(i));
		n->at_ms = 1 + c->from_ms + (uint64_t)c->ms * i / c->nodes;
	}
}

static void crowd_turn(struct world *w, const struct crowd *c)
{
	uint64_t now = clock_boot_ms();
	char cookie[24];

	for (unsigned i = 0; i < c->greedy; i++) {
		const uint8_t source[ADDR_SOURCE_LEN] = {1, (uint8_t)i};

		while (begin(w, source, cookie))
			;
	}
	if (c->neighbour && now % 40 == 0)
		begin(w, w->nodes[0].source, cookie);
	for (unsigned i = 0; i < c->nodes; i++)
		if (w->nodes[i].at_ms && now >= w->nodes[i].at_ms)
			go_on(w, &w->nodes[i], c->tries);
}

/* How many of a hundred honest nodes attest. */
static double crowd_share(const struct crowd *c)
{
	static struct world w;
	unsigned n = 0;

	clock_fake_start(0, 0);
	crowd_start(&w, c);
	for (unsigned t = 0; t < CROWD_MS; t += TICK_MS) {
		clock_fake_advance(TICK_MS);
		crowd_turn(&w, c);
	}
	for (unsigned i = 0; i < c->nodes; i++)
		n += w.nodes[i].attested;
	sessions_free(w.s);
	ratelimit_free(w.rate);
	clock_fake_stop();
	return 100.0 * n / c->nodes;
}

/* Without eviction ten sources fill the table in 20 s, and nobody attests until theirs time out. */
Test(net_sessions, honest_nodes_attest_among_greedy_sources, .timeout = 60)
{
	static const struct crowd t[] = {
		{"nodes and 1 greedy source", 1, false, 1000, false, 0, 55000, 1},
		{"nodes and 10", 10, false, 1000, false, 0, 55000, 1},
		{"nodes and 100", 100, false, 1000, false, 0, 55000, 1},
		{"a site and 1", 1, false, 500, true, 25000, 30000, 1},
		{"a site and 10", 10, false, 500, true, 25000, 30000, 1},
		{"a site and 100", 100, false, 500, true, 25000, 30000, 1},
		{"a site at once and 100", 100, false, 500, true, 15000, 0, 8},
		{"a site with a greedy host", 0, true, 200, true, 42000, 15000, 1},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		double share = crowd_share(&t[i]);

		cr_expect_geq(share, 99, "%s: %.1f %%", t[i].name, share);
	}
}
