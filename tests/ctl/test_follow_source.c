/* SPDX-License-Identifier: MIT */
/*
 * spec.authority Following, and what may be wrong with the cluster that is followed: each ends in a
 * condition that says what to do, takes nothing away, and is over when the cause is.
 */
#include "config.h"

#include <criterion/criterion.h>

#include "ctl/followed.h"
#include "tec/base/clock.h"

static void look(void *arg)
{
	ctl_cluster_look_again(arg);
}

/* As cmd/parts does. */
static void shown(void)
{
	w.life->env.follow = ctl_follow_state(w.life->follow);
	ctl_follow_listen(w.life->follow, look, w.life->cluster);
}

static void up_shown(void)
{
	up();
	w.arm = shown;
}

TestSuite(ctl_follow_source, .init = up_shown, .fini = down, .timeout = 300);

static void is_in_step(void)
{
	in_step();
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "Authority"), "Following");
}

/* The condition, its reason and each part of its message. */
static void says(const char *reason, const char *a, const char *b)
{
	const char *message =
		fake_api_condition(w.api, &kobj_cluster, NS, "tec", "Authority", "message");

	cr_assert_str_eq(
		world_reason(&w, &kobj_cluster, "tec", "Authority"), reason, "%s", message);
	cr_assert(strstr(message, a) && strstr(message, b), "%s", message);
	cr_assert(resource(ID_A), "its nodes get their keys");
}

#define NEXT "to replace the credentials: tecctl follow"

Test(ctl_follow_source, away_for_an_hour)
{
	source_with_nodes();
	follow();
	is_in_step();
	fake_transport_fault(w.source_f, FAKE_FAULT_500, 1);
	fake_api_drop_watches(src.api);
	world_run(&w, 60000);
	says("SourceUnreachable", "https://source.test:6443", "Copied keys are still served");
	fake_transport_forget(w.life->f);
	fake_transport_forget(w.source_f);
	world_run(&w, 3600 * 1000);
	says("SourceUnreachable", "https://source.test:6443", "Copied keys are still served");
	cr_assert_eq(fake_transport_writes(w.life->f), 0);
	cr_assert_leq(fake_transport_requests(w.source_f), 6 * 3600 / 2, "it is not pressed");
	/* A node that joined there meanwhile. */
	world_ak(&src, "other", test_pem[1], ID_B, NULL);
	world_run(&src, SETTLE);
	fake_transport_fault(w.source_f, FAKE_FAULT_500, 0);
	world_run(&w, 120000);
	is_in_step();
	cr_assert(resource(ID_B));
}

Test(ctl_follow_source, every_second_answer_is_410)
{
	source_with_nodes();
	follow();
	is_in_step();
	fake_transport_fault(w.source_f, FAKE_FAULT_410, 2);
	for (unsigned i = 0; i < 20; i++) {
		fake_api_forget_history(src.api);
		fake_api_drop_watches(src.api);
		world_run(&w, 5000);
		cr_assert(resource(ID_A));
	}
	fake_transport_fault(w.source_f, FAKE_FAULT_410, 0);
	world_ak(&src, "other", test_pem[1], ID_B, NULL);
	world_run(&w, 120000);
	is_in_step();
	cr_assert(resource(ID_B));
}

/* The answer to each read of these from now on, until it is 200 again. */
static struct fake_expect *answers(const char *path, int status, const char *reason)
{
	cleanup_free char *body = xasprintf(
		"{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"reason\":\"%s\",\"code\":%d,"
		"\"message\":\"%s\"}",
		reason, status, reason);
	struct fake_expect *e = fake_transport_expect(w.source_f, "GET", path);

	fake_expect_answer(e, status, body);
	fake_expect_times(e, 0);
	fake_api_drop_watches(src.api);
	world_run(&w, 60000);
	return e;
}

Test(ctl_follow_source, its_token_has_expired)
{
	source_with_nodes();
	follow();
	is_in_step();
	(void)answers("/*", 401, "Unauthorized");
	says("SourceUnreachable", "Unauthorized", NEXT);
	/* tecctl follow writes another kubeconfig. */
	put_config("token: another");
	world_run(&w, 60000);
	is_in_step();
}

Test(ctl_follow_source, it_may_not_read_secrets)
{
	source_with_nodes();
	follow();
	is_in_step();
	(void)answers("/api/v1/namespaces/" NS "/secrets*", 403, "Forbidden");
	says("SourceUnreachable", "Forbidden", NEXT);
	cr_assert(world_get(&w, &kobj_secret, ID_A));
	put_config("token: another");
	world_run(&w, 60000);
	is_in_step();
}

static void decides_with_a_clock_that_is_off(int64_t s)
{
	cleanup_free char *a = NULL;

	source_with_nodes();
	a = xstrdup(world_str(&src, &kobj_secret, ID_A, "data/root"));
	clock_fake_set_wall(clock_wall_s() + s);
	follow();
	is_in_step();
	world_kill(&src);
	fake_api_merge(w.api, &kobj_cluster, NS, "tec", "{\"spec\":{\"authority\":\"Self\"}}");
	world_run(&w, 10 * SETTLE);
	cr_assert_str_eq(world_str(&w, &kobj_secret, ID_A, "data/root"), a);
	cr_assert_str_eq(world_cond(&w, &kobj_machine, "a", "Ready"), "True");
	cr_assert_str_eq(world_cond(&w, &kobj_ak, "key", "Approved"), "True");
	cr_assert(resource(ID_A));
}

Test(ctl_follow_source, its_clock_is_ten_minutes_ahead)
{
	decides_with_a_clock_that_is_off(-600);
}

Test(ctl_follow_source, its_clock_is_ten_minutes_late)
{
	decides_with_a_clock_that_is_off(600);
}
