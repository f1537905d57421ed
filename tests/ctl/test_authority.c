/* SPDX-License-Identifier: MIT */
/* What the condition Authority and status.authority say. */
#include "config.h"

#include <criterion/criterion.h>

#include "ctl/nodes.h"
#include "tec/base/clock.h"
#include "tec/base/metric.h"
#include "tec/ctl/authority.h"
#include "tec/caches/digest.h"

#define SETTLE 30000

TestSuite(ctl_authority, .init = nodes_up, .fini = nodes_down);

static struct ctl_follow_state followed;

static void follows(void)
{
	w.life->env.follow = &followed;
}

static bool metric(const char *line)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;

	metric_render(&text);
	return strstr(strbuf_str(&text), line) != NULL;
}

static void authority(const char *value)
{
	cleanup_free char *patch = xasprintf("{\"spec\":{\"authority\":\"%s\"}}", value);

	fake_api_merge(w.api, &kobj_cluster, NS, "tec", patch);
	world_run(&w, SETTLE);
}

static void up(void)
{
	world_cluster(&w, "tec", "{" ADDRESS "}");
	memset(&followed, 0, sizeof(followed));
	w.arm = follows;
	world_boot(&w, NULL);
	world_run(&w, SETTLE);
	join(SETTLE);
}

/* With a CustomResourceDefinition of a version that had no status.authority. */
Test(ctl_authority, conditions_are_written_although_authority_is_not_declared)
{
	struct fake_expect *e;

	up();
	e = fake_transport_expect(w.life->f, "PATCH",
		"/apis/trusted-execution-clusters.io/v1alpha1/namespaces/" NS
		"/trustedexecutionclusters/tec/status*");
	fake_expect_answer(e, 500,
		"{\"kind\":\"Status\",\"message\":\"failed to create typed patch object (tec/tec): "
		".status.authority: field not declared in schema\",\"code\":500}");
	fake_api_merge(w.api, &kobj_cluster, NS, "tec", "{\"spec\":{\"authority\":\"Frozen\"}}");
	for (int ms = 0; ms < SETTLE && !*world_cond(&w, &kobj_cluster, "tec", "CRDOutdated");
		ms += 100)
		world_run(&w, 100);
	cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "CRDOutdated"), "True");
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "Authority"), "Frozen");
	cr_assert_str_eq(authority_status("digest"), "-");
	cr_assert_eq(world_events(&w, "status.authority"), 1);
	world_run(&w, SETTLE);
	cr_assert_str_neq(authority_status("digest"), "-");
	cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "CRDOutdated"), "");
}

Test(ctl_authority, a_frozen_operator_shows_its_digest)
{
	struct caches_digest d;

	up();
	cr_assert_str_eq(authority_status("digest"), "-", "absent while it decides");
	authority("Frozen");
	caches_digest(&w.life->caches, &d);
	cr_assert_str_eq(authority_status("digest"), d.hex);
	cr_assert_str_eq(authority_status("machines"), "1");
	cr_assert_str_eq(authority_status("attestationKeys"), "1");
	cr_assert_str_eq(authority_status("images"), "0");
	cr_assert(metric("tec_authority{state=\"Frozen\"} 1"));
	cr_assert(metric("tec_authority{state=\"Self\"} 0"));
	/* Another object is another digest, and rest writes nothing. */
	world_machine(&w, "b", ID_B, NULL);
	world_run(&w, SETTLE);
	cr_assert_str_neq(authority_status("digest"), d.hex);
	cr_assert_str_eq(authority_status("machines"), "2");
	fake_transport_forget(w.life->f);
	world_run(&w, 3600 * 1000);
	cr_assert_eq(fake_transport_writes(w.life->f), 0);
	authority("Self");
	cr_assert_str_eq(authority_status("digest"), "-");
}

Test(ctl_authority, a_follower_shows_whom_and_how_far_behind)
{
	up();
	followed = (struct ctl_follow_state){.is = CTL_FOLLOW_COPYING,
		.peer = "https://127.0.0.1:6443 tec",
		.uid = "u",
		.behind = 3};
	authority("Following");
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "Authority"), "FollowingBehind");
	cr_assert_str_eq(authority_status("peer"), "https://127.0.0.1:6443 tec");
	cr_assert_str_eq(authority_status("behind"), "3");
	cr_assert_str_eq(authority_status("digest"), "-", "not all is copied");
	cr_assert(metric("\ntec_follow_behind_objects 3"));
	cr_assert_not(metric("\ntec_follow_behind_seconds "), "never read");
	followed.is = CTL_FOLLOW_IN_STEP;
	followed.behind = 0;
	followed.seen_s = clock_wall_s();
	ctl_cluster_look_again(w.life->cluster);
	world_run(&w, SETTLE);
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "Authority"), "Following");
	cr_assert_str_eq(authority_status("behind"), "0");
	cr_assert_str_neq(authority_status("seen"), "-");
	cr_assert_eq(strlen(authority_status("digest")), 64);
	/* It goes away: nothing wakes the operator, and the seconds are counted all the same. */
	fake_transport_forget(w.life->f);
	world_run(&w, 600 * 1000);
	cr_assert_eq(fake_transport_writes(w.life->f), 0);
	cr_assert_not(metric("\ntec_follow_behind_seconds 0"));
	cr_assert(metric("\ntec_follow_behind_seconds 6"), "600 and some");
	authority("Self");
	cr_assert_not(metric("\ntec_follow_behind_objects "));
}

Test(ctl_authority, numbers_alone_are_written_every_ten_seconds_at_most)
{
	up();
	followed = (struct ctl_follow_state){
		.is = CTL_FOLLOW_COPYING, .peer = "https://a b", .behind = 1000};
	authority("Following");
	fake_transport_forget(w.life->f);
	for (int i = 0; i < 600; i++) {
		followed.behind--;
		ctl_cluster_look_again(w.life->cluster);
		world_run(&w, 100);
	}
	cr_assert_leq(fake_transport_writes(w.life->f), 7, "a minute");
	cr_assert_geq(fake_transport_writes(w.life->f), 5);
}

Test(ctl_authority, each_state_of_a_follower_has_its_words)
{
	static const struct {
		enum ctl_follow_is is;
		const char *reason, *part;
	} cases[] = {
		{CTL_FOLLOW_OFF, "FollowingBehind", "Waiting for"},
		{CTL_FOLLOW_CONNECTING, "FollowingBehind", "Waiting for"},
		{CTL_FOLLOW_COPYING, "FollowingBehind", "7 objects still have to be copied from P"},
		{CTL_FOLLOW_IN_STEP, "Following", "The operator at P decides"},
		{CTL_FOLLOW_UNREACHABLE, "SourceUnreachable", "at P cannot be read: WHY"},
		{CTL_FOLLOW_OTHER, "SourceDiffers", "WHY"},
		{CTL_FOLLOW_WENT_BACK, "SourceWentBack", "nothing is deleted or revoked"},
		{CTL_FOLLOW_CONFLICT, "Conflict", "WHY"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ctl_follow_state s = {
			.is = cases[i].is, .peer = "P", .behind = 7, .seen_s = 90, .why = "WHY"};
		cleanup_strbuf struct strbuf text = STRBUF_INIT;
		enum model_cluster_reason r = ctl_authority_following(&s, 100, &text);

		cr_assert_str_eq(model_cluster_reason(r), cases[i].reason);
		cr_assert(strstr(strbuf_str(&text), cases[i].part), "%s", strbuf_str(&text));
	}
}
