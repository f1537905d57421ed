/* SPDX-License-Identifier: MIT */
/* spec.authority Following: what was copied goes to Trustee, and nothing else is done with it. */
#include "config.h"

#include <criterion/criterion.h>

#include "ctl/nodes.h"

#define SETTLE 30000

TestSuite(ctl_following, .init = nodes_up, .fini = nodes_down);

/* A node with its key, as ctl/follow leaves a copy too: with marks, finalizers and Secrets. */
static void up_and_following(void)
{
	world_cluster(&w, "tec", "{" ADDRESS "}");
	world_boot(&w, NULL);
	world_run(&w, SETTLE);
	join(SETTLE);
	cr_assert(resource(ID_A));
	fake_api_merge(w.api, &kobj_cluster, NS, "tec",
		"{\"spec\":{\"authority\":\"Following\",\"follow\":{\"kubeconfigSecret\":\"there\"}}}");
	world_run(&w, SETTLE);
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "RegistrationOpen"), "Following");
}

static const char *version(const struct kobj_gvk *gvk, const char *name)
{
	return world_str(&w, gvk, name, "metadata/resourceVersion");
}

Test(ctl_following, the_copies_are_written_by_nobody_else)
{
	cleanup_free char *machine = NULL, *key = NULL;

	up_and_following();
	world_machine(&w, "b", ID_B, "listener");
	world_ak(&w, "other", test_pem[1], ID_B, NULL);
	machine = xstrdup(version(&kobj_machine, "b"));
	key = xstrdup(version(&kobj_ak, "other"));
	world_run(&w, 48 * 3600 * 1000);
	cr_assert_null(world_get(&w, &kobj_secret, ID_B));
	cr_assert_str_eq(version(&kobj_machine, "b"), machine, "neither marked nor expired");
	cr_assert_str_eq(version(&kobj_ak, "other"), key);
	cr_assert_null(resource(ID_B));
}

Test(ctl_following, a_trustee_that_lost_everything_gets_it_again)
{
	cleanup_free char *key = NULL;

	up_and_following();
	key = xstrdup(resource(ID_A));
	world_kill(&w);
	fake_kbs_lose_store(kbs);
	world_boot(&w, NULL);
	world_run(&w, SETTLE);
	cr_assert_str_eq(resource(ID_A), key);
	cr_assert(identity_declared(&w, test_pem[0]));
}

Test(ctl_following, what_is_deleted_is_left_to_the_one_who_copies)
{
	cleanup_free char *rv = NULL;

	up_and_following();
	fake_api_delete(w.api, &kobj_machine, NS, "a");
	rv = xstrdup(version(&kobj_machine, "a"));
	world_run(&w, 10 * SETTLE);
	cr_assert_str_eq(version(&kobj_machine, "a"), rv);
	cr_assert(resource(ID_A));
}

/* Never attested, and long after pendingTTL: it is the other operator that deletes it. */
Test(ctl_following, an_overdue_machine_keeps_its_key_after_a_restart)
{
	up_and_following();
	world_run(&w, 72ull * 3600 * 1000);
	world_kill(&w);
	fake_kbs_lose_store(kbs);
	world_boot(&w, NULL);
	world_run(&w, SETTLE);
	cr_assert(world_get(&w, &kobj_machine, "a"));
	cr_assert(resource(ID_A));
}
