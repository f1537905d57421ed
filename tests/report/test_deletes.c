/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "report_testing.h"
#include "tec/report/deletes.h"

#define HELD(name, uid)                                                                            \
	"{\"metadata\":{\"name\":\"" name "\",\"uid\":\"" uid                                      \
	"\",\"annotations\":{\"trusted-execution-clusters.io/withheld\":\"2026-01-02T03:00:05Z\"}}}"
#define FREE(name, uid) "{" META(name, uid) "}"

static struct report_world to, from;

static void up(void)
{
	world_of(&to, "{\"machine\":[" HELD("a", "u1") "," FREE("b", "u2") "," FREE(
			      "c", "u3") "],"
					 "\"key\":[" HELD("k", "u4") "," FREE(
						 "l", "u5") "],"
							    "\"image\":[" FREE("i", "u6") "]}");
	world_of(&from, "{\"machine\":[" FREE("b", "x") "],\"key\":[" FREE("k", "y") "]}");
}

static void down(void)
{
	report_world_fini(&to);
	report_world_fini(&from);
}

TestSuite(report_deletes, .init = up, .fini = down);

static const char *text_of(const struct report_deletes *d)
{
	static struct strbuf text;

	strbuf_fini(&text);
	report_deletes_text(d, &text);
	return strbuf_str(&text);
}

Test(report_deletes, what_is_withheld_or_what_the_source_lacks)
{
	cleanup_show_deletes struct report_deletes held, lacks;

	report_deletes_find(NULL, &to, &held);
	cr_expect_eq(held.all, 2);
	cr_expect_str_eq(text_of(&held), "1 Machine (a), 1 AttestationKey (k)");
	report_deletes_find(&from, &to, &lacks);
	cr_expect_eq(lacks.all, 4);
	cr_expect_str_eq(
		text_of(&lacks), "2 Machines (a, c), 1 AttestationKey (l), 1 ApprovedImage (i)");
}

Test(report_deletes, an_object_of_the_same_name_made_meanwhile_is_another)
{
	cleanup_show_deletes struct report_deletes d;
	cleanup_show_world struct report_world now;

	report_deletes_find(NULL, &to, &d);
	cr_expect_eq(report_deletes_left(&d, &to), 2);
	world_of(&now, "{\"machine\":[" FREE("a", "v1") "],\"key\":[" HELD("k", "u4") "]}");
	cr_expect_eq(report_deletes_left(&d, &now), 1);
}

Test(report_deletes, twenty_names_are_shown)
{
	cleanup_strbuf struct strbuf many = STRBUF_INIT;
	cleanup_show_deletes struct report_deletes d;
	cleanup_show_world struct report_world w, none;

	strbuf_adds(&many, "{\"machine\":[");
	for (unsigned i = 0; i < 19; i++)
		strbuf_addf(&many, "%s{\"metadata\":{\"name\":\"m%02u\",\"uid\":\"u%u\"}}",
			i ? "," : "", i, i);
	strbuf_adds(&many, "],\"key\":[" FREE("k1", "x") "," FREE("k2", "y") "," FREE(
				   "k3", "z") "],"
					      "\"image\":[" FREE("i", "w") "]}");
	world_of(&w, strbuf_str(&many));
	world_of(&none, "{}");
	report_deletes_find(&none, &w, &d);
	cr_expect_eq(d.all, 23);
	cr_expect(strstr(text_of(&d),
			  "m18), 3 AttestationKeys (k1 and 2 more), 1 ApprovedImage (1 more)"),
		"%s", text_of(&d));
}

Test(report_deletes, who_may)
{
	const struct report_authority self = {
		.is = MODEL_AUTHORITY_SELF, .known = true, .uid = "s"};
	const struct report_authority good = {.is = MODEL_AUTHORITY_FOLLOWING,
		.known = true,
		.observed = true,
		.uid = "t",
		.peer_uid = "s",
		.reason = "SourceWentBack"};
	struct report_authority to_is = good, from_is = self;

#define ACT(from, want)                                                                            \
	cr_expect_eq(report_deletes_next(from, &to_is).act, REPORT_DO_##want, "line %d", __LINE__)
	ACT(NULL, DONE);
	ACT(&from_is, DONE);
	from_is.uid = "other";
	ACT(&from_is, REFUSE);
	from_is = self;
	from_is.is = MODEL_AUTHORITY_FOLLOWING;
	ACT(&from_is, REFUSE);
	to_is.reason = "SourceUnreachable";
	ACT(NULL, REFUSE);
	to_is.reason = "SourceDiffers";
	ACT(NULL, REFUSE);
	to_is.reason = "FollowingBehind";
	ACT(NULL, DONE);
	to_is.observed = false;
	ACT(NULL, REFUSE);
	to_is = good;
	to_is.peer_uid = NULL;
	ACT(NULL, REFUSE);
	to_is = good;
	to_is.is = MODEL_AUTHORITY_SELF;
	ACT(NULL, REFUSE);
#undef ACT
}
