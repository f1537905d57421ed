/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/net/sessions.h"

#define LIFE_MS 300000

static const uint8_t one[ADDR_SOURCE_LEN] = {1}, two[ADDR_SOURCE_LEN] = {2};

static bool open_named(struct sessions *s, const uint8_t *source, uint64_t now, const char *cookie,
	uint32_t *retry_s)
{
	struct session *e = sessions_open(s, source, now, retry_s);

	if (e)
		session_named(s, e, cookie);
	return e != NULL;
}

Test(net_sessions, a_source_has_its_share_and_no_more)
{
	struct sessions *s = sessions_new(10, 3, LIFE_MS, NULL);
	uint32_t retry = 0;
	char cookie[8];

	for (int i = 0; i < 3; i++) {
		snprintf(cookie, sizeof(cookie), "a%d", i);
		cr_assert(open_named(s, one, 1000 + (uint64_t)i * 1000, cookie, &retry));
	}
	cr_assert_not(open_named(s, one, 11000, "x", &retry));
	cr_assert_eq(retry, 290);
	cr_assert(open_named(s, two, 11000, "b", &retry));
	sessions_end(s, sessions_find(s, "a1", 11000));
	cr_assert(open_named(s, one, 11000, "c", &retry));
	cr_assert_eq(sessions_count(s), 4);
	sessions_free(s);
}

Test(net_sessions, all_sources_together_have_a_limit)
{
	struct sessions *s = sessions_new(200, 3, LIFE_MS, NULL);
	uint8_t source[ADDR_SOURCE_LEN] = {0};
	uint32_t retry = 0;

	for (unsigned i = 0; i < 200; i++) {
		source[0] = (uint8_t)i;
		cr_assert(open_named(s, source, 5, NULL, &retry));
	}
	source[1] = 1;
	cr_assert_not(open_named(s, source, 5, NULL, &retry));
	cr_assert_eq(retry, 300);
	cr_assert(open_named(s, source, 5 + LIFE_MS, NULL, &retry));
	cr_assert_eq(sessions_count(s), 1);
	sessions_free(s);
}

Test(net_sessions, what_was_dropped_or_ended_gives_its_place_back)
{
	struct sessions *s = sessions_new(10, 1, LIFE_MS, NULL);
	uint32_t retry = 0;
	struct session *e = sessions_open(s, one, 0, &retry);

	cr_assert_null(sessions_open(s, one, 0, &retry));
	sessions_end(s, e);
	cr_assert(open_named(s, one, 0, "c", &retry));
	cr_assert_null(sessions_find(s, "another", 0));
	cr_assert(sessions_find(s, "c", 0));
	cr_assert_not(open_named(s, one, LIFE_MS - 1, "d", &retry));
	cr_assert_eq(retry, 1);
	cr_assert(open_named(s, one, LIFE_MS, "d", &retry));
	sessions_free(s);
}

/* A place that waits for Trustee is not taken away under it. */
Test(net_sessions, an_awaited_one_does_not_time_out)
{
	struct sessions *s = sessions_new(10, 2, LIFE_MS, NULL);
	uint32_t retry = 0;
	struct session *e = sessions_open(s, one, 0, &retry);

	cr_assert(open_named(s, one, LIFE_MS * 2, "x", &retry));
	cr_assert_not(open_named(s, one, LIFE_MS * 2, "y", &retry));
	session_named(s, e, "late");
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
	struct sessions *s = sessions_new(10, 10, LIFE_MS, release);
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
		{"xkbs-session-id=abc", NULL},
		{"kbs-session-id", NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		cleanup_free char *got = sessions_cookie(t[i].header);

		cr_expect(str_eq(got, t[i].value) || (!got && !t[i].value), "%zu: %s", i,
			got ? got : "none");
	}
}
