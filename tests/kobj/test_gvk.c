/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tec/kobj/gvk.h"

#include <criterion/criterion.h>

#include "tec/base/mem.h"

static void expect_path(
	const struct kobj_gvk *gvk, const char *name, const char *sub, const char *want)
{
	cleanup_strbuf struct strbuf b = STRBUF_INIT;

	kobj_path(gvk, "ns-1", name, sub, &b);
	cr_expect_str_eq(strbuf_str(&b), want);
}

Test(kobj_gvk, paths_follow_the_api_conventions)
{
	expect_path(&kobj_secret, NULL, NULL, "/api/v1/namespaces/ns-1/secrets");
	expect_path(&kobj_secret, "x", NULL, "/api/v1/namespaces/ns-1/secrets/x");
	expect_path(&kobj_machine, "m", "status",
		"/apis/trusted-execution-clusters.io/v1alpha1/namespaces/ns-1/machines/m/status");
	expect_path(&kobj_cluster, NULL, NULL,
		"/apis/trusted-execution-clusters.io/v1alpha1/namespaces/ns-1/trustedexecutionclusters");
	expect_path(&kobj_deployment, "d", NULL, "/apis/apps/v1/namespaces/ns-1/deployments/d");
	expect_path(
		&kobj_lease, "l", NULL, "/apis/coordination.k8s.io/v1/namespaces/ns-1/leases/l");
	expect_path(&kobj_event, NULL, NULL, "/apis/events.k8s.io/v1/namespaces/ns-1/events");
}

Test(kobj_gvk, a_name_cannot_leave_its_segment)
{
	expect_path(&kobj_machine, "../secrets?x#", NULL,
		"/apis/trusted-execution-clusters.io/v1alpha1/namespaces/ns-1/machines/..%2Fsecrets%3Fx%23");
}

Test(kobj_gvk, api_version_has_a_group_unless_core)
{
	cleanup_strbuf struct strbuf b = STRBUF_INIT;

	kobj_api_version(&kobj_pod, &b);
	strbuf_addc(&b, ' ');
	kobj_api_version(&kobj_job, &b);
	cr_expect_str_eq(strbuf_str(&b), "v1 batch/v1");
}

Test(kobj_gvk, members_are_kept_by_name_or_by_its_beginning)
{
	static const char *const list[] = {"root", "ours/*", NULL};
	static const char *const none[] = {NULL};
	static const struct {
		const char *name;
		bool kept;
	} table[] = {
		{"root", true},
		{"roo", false},
		{"root2", false},
		{"", false},
		{"ours/", true},
		{"ours/a", true},
		{"ours", false},
		{"yours/a", false},
		{"*", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		const char *name = table[i].name;

		cr_expect_eq(kobj_keeps(list, name, strlen(name)), table[i].kept, "%s", name);
		cr_expect_not(kobj_keeps(none, name, strlen(name)));
	}
	cr_expect(kobj_keeps(list, "rootxyz", 4), "the length counts, not a terminator");
}
