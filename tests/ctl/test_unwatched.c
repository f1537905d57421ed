/* SPDX-License-Identifier: MIT */
/* KbsConfigs where nobody works: told once, after a moment, and only if nobody else has. */
#include "config.h"

#include <criterion/criterion.h>
#include <string.h>

#include "fake/transport.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/ctl/unwatched.h"
#include "tec/kobj/gvk.h"

static struct {
	struct loop *loop;
	struct fake_api *api;
	struct fake_transport *f;
	struct k8s_transport *seam;
	struct k8s_cache *kbsconfigs, *trusteeconfigs;
	struct ctl_unwatched *e;
} t;

static void quiet(enum log_level level, const char *line, void *arg)
{
}

static bool watched(void *arg, const char *ns)
{
	return str_eq(ns, "watched");
}

static void up(void)
{
	clock_fake_start(1000000, 1800000000);
	log_capture(quiet, NULL);
	t.loop = loop_new();
	t.api = fake_api_new(t.loop);
	t.f = fake_transport_new(t.loop);
	fake_transport_set_api(t.f, t.api);
	t.seam = fake_transport_seam(t.f);
	t.kbsconfigs = k8s_cache_new(&ctl_unwatched_type);
	t.trusteeconfigs = k8s_cache_new(&ctl_unwatched_type);
	t.e = ctl_unwatched_new(t.loop, t.seam, t.kbsconfigs, t.trusteeconfigs, watched, NULL);
}

static void down(void)
{
	ctl_unwatched_free(t.e);
	k8s_cache_free(t.kbsconfigs);
	k8s_cache_free(t.trusteeconfigs);
	k8s_transport_free(t.seam);
	fake_api_free(t.api);
	loop_free(t.loop);
	log_capture(NULL, NULL);
	clock_fake_stop();
}

TestSuite(ctl_unwatched, .init = up, .fini = down);

/* In the API, and as the watch of all namespaces shows it. */
static void show(struct k8s_cache *c, const struct kobj_gvk *gvk, const char *ns, const char *name)
{
	struct err err = ERR_INIT;

	if (!fake_api_get(t.api, gvk, ns, name)) {
		cleanup_free char *text =
			xasprintf("{\"metadata\":{\"name\":\"%s\"},\"spec\":{}}", name);

		fake_api_put(t.api, gvk, ns, text);
	}
	cr_assert_eq(k8s_cache_put_event(c, fake_api_get(t.api, gvk, ns, name), &err), 0, "%s",
		err.text);
}

static const char *reason(const struct kobj_gvk *gvk, const char *ns, const char *type)
{
	const char *s = fake_api_condition(t.api, gvk, ns, "k", type, "reason");

	return s ? s : "";
}

Test(ctl_unwatched, each_is_told_once_by_its_namespace)
{
	show(t.kbsconfigs, &kobj_kbsconfig, "a", "k");
	show(t.kbsconfigs, &kobj_kbsconfig, "b", "k"); /* the same name */
	show(t.kbsconfigs, &kobj_kbsconfig, "watched", "k");
	show(t.trusteeconfigs, &kobj_trusteeconfig, "a", "k");
	loop_advance(t.loop, 60 * 1000);
	cr_assert_eq(fake_transport_requests(t.f), 0, "another one leads");
	ctl_unwatched_set(t.e, true);
	for (int i = 0; i < 50; i++) { /* what is written comes back by the watch */
		loop_advance(t.loop, 100);
		show(t.kbsconfigs, &kobj_kbsconfig, "a", "k");
		show(t.kbsconfigs, &kobj_kbsconfig, "b", "k");
		show(t.trusteeconfigs, &kobj_trusteeconfig, "a", "k");
	}
	cr_assert_str_eq(reason(&kobj_kbsconfig, "a", "Installed"), "NotWatched");
	cr_assert_str_eq(reason(&kobj_kbsconfig, "b", "Installed"), "NotWatched");
	cr_assert_str_eq(reason(&kobj_kbsconfig, "b", "Ready"), "NotInstalled");
	cr_assert_str_eq(reason(&kobj_trusteeconfig, "a", "Configured"), "NotWatched");
	cr_assert_str_eq(reason(&kobj_kbsconfig, "watched", "Installed"), "");
	cr_assert_eq(fake_transport_requests(t.f), 3, "%zu", fake_transport_requests(t.f));
}

Test(ctl_unwatched, another_operator_has_a_moment_to_say_something)
{
	ctl_unwatched_set(t.e, true);
	show(t.kbsconfigs, &kobj_kbsconfig, "a", "k");
	loop_advance(t.loop, (CTL_UNWATCHED_WAIT_S - 2) * 1000);
	cr_assert_eq(fake_transport_requests(t.f), 0);
	fake_api_merge(t.api, &kobj_kbsconfig, "a", "k", "{\"status\":{\"isReady\":false}}");
	show(t.kbsconfigs, &kobj_kbsconfig, "a", "k");
	loop_advance(t.loop, 60 * 60 * 1000);
	cr_assert_eq(fake_transport_requests(t.f), 0);
}

Test(ctl_unwatched, one_that_is_refused_does_not_hold_up_the_others)
{
	struct fake_expect *e = fake_transport_expect(t.f, "PATCH",
		"/apis/confidentialcontainers.org/v1alpha1/namespaces/a/kbsconfigs/k/status*");

	fake_expect_times(e, 0);
	fake_expect_answer(e, 403,
		"{\"kind\":\"Status\",\"code\":403,\"reason\":\"Forbidden\",\"message\":\"no\"}");
	show(t.kbsconfigs, &kobj_kbsconfig, "a", "k");
	show(t.kbsconfigs, &kobj_kbsconfig, "b", "k");
	ctl_unwatched_set(t.e, true);
	for (int i = 0; i < 200; i++) {
		loop_advance(t.loop, 1000);
		show(t.kbsconfigs, &kobj_kbsconfig, "b", "k");
	}
	cr_assert_str_eq(reason(&kobj_kbsconfig, "b", "Installed"), "NotWatched");
	cr_assert_leq(fake_transport_requests(t.f), 12, "%zu", fake_transport_requests(t.f));
}

/* Where the kinds are the Trustee operator's, without conditions. */
Test(ctl_unwatched, what_the_kind_does_not_declare_is_left_out)
{
	struct fake_expect *e = fake_transport_expect(t.f, "PATCH",
		"/apis/confidentialcontainers.org/v1alpha1/namespaces/a/kbsconfigs/k/status*");

	fake_expect_answer(e, 500,
		"{\"kind\":\"Status\",\"message\":\"failed to create typed patch object (a/k): "
		".status.conditions: field not declared in schema\",\"code\":500}");
	show(t.kbsconfigs, &kobj_kbsconfig, "a", "k");
	ctl_unwatched_set(t.e, true);
	for (int i = 0; i < 60; i++) {
		loop_advance(t.loop, 1000);
		show(t.kbsconfigs, &kobj_kbsconfig, "a", "k");
	}
	cr_assert_str_eq(reason(&kobj_kbsconfig, "a", "Installed"), "");
	cr_assert_not(json_get_bool(
		fake_api_get(t.api, &kobj_kbsconfig, "a", "k"), "status/isReady", true));
	cr_assert_eq(fake_transport_requests(t.f), 2, "%zu", fake_transport_requests(t.f));
}
