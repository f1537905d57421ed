/* SPDX-License-Identifier: MIT */
/* spec.authority Frozen: nothing is made, approved or deleted, and nodes go on getting their keys. */
#include "config.h"

#include <criterion/criterion.h>

#include "ctl/nodes.h"

#define SETTLE 30000

TestSuite(ctl_frozen, .init = nodes_up, .fini = nodes_down);

static void authority(const char *value)
{
	cleanup_free char *patch = xasprintf("{\"spec\":{\"authority\":\"%s\"}}", value);

	fake_api_merge(w.api, &kobj_cluster, NS, "tec", patch);
	world_run(&w, SETTLE);
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "Authority"), value);
}

static void up_and_frozen(void)
{
	world_cluster(&w, "tec", "{" ADDRESS "}");
	world_boot(&w, NULL);
	world_run(&w, SETTLE);
	cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "Authority"), "True");
	join(SETTLE);
	cr_assert(resource(ID_A));
	authority("Frozen");
}

static bool has(const struct kobj_gvk *gvk, const char *name)
{
	return world_get(&w, gvk, name) != NULL;
}

Test(ctl_frozen, nothing_is_made_or_approved_until_it_decides_again)
{
	up_and_frozen();
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "RegistrationOpen"), "Frozen");
	world_machine(&w, "b", ID_B, NULL);
	world_ak(&w, "other", test_pem[1], ID_B, NULL);
	fake_transport_forget(w.life->f);
	world_run(&w, 24 * 3600 * 1000);
	cr_assert_not(has(&kobj_secret, ID_B));
	cr_assert_null(resource(ID_B));
	cr_assert_str_neq(world_cond(&w, &kobj_ak, "other", "Approved"), "True");
	cr_assert_leq(fake_transport_writes(w.life->f), 2, "conditions and their Event");
	authority("Self");
	cr_assert(has(&kobj_secret, ID_B));
	cr_assert_str_eq(world_cond(&w, &kobj_ak, "other", "Approved"), "True");
	cr_assert(resource(ID_B));
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "RegistrationOpen"), "Open");
}

/* What was sent before is waited for; its answer leads to nothing more. */
Test(ctl_frozen, it_is_frozen_when_nothing_is_in_flight_any_more)
{
	world_cluster(&w, "tec", "{" ADDRESS "}");
	world_boot(&w, NULL);
	world_run(&w, SETTLE);
	fake_transport_latency(w.life->f, 3000);
	world_machine(&w, "b", ID_B, "listener");
	world_run(&w, 10);
	cr_assert_eq(ctl_kind_in_flight(w.life->machine), 1);
	fake_transport_latency(w.life->f, 0);
	fake_api_merge(w.api, &kobj_cluster, NS, "tec", "{\"spec\":{\"authority\":\"Frozen\"}}");
	world_run(&w, 1000);
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "Authority"), "Freezing");
	world_run(&w, 2500);
	cr_assert_eq(ctl_kind_in_flight(w.life->machine), 0);
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "Authority"), "Frozen");
	cr_assert_not(has(&kobj_secret, ID_B));
	/* A status is no decision. */
	world_ak(&w, "other", test_pem[1], ID_B, NULL);
	fake_transport_latency(w.life->f, 3000);
	world_run(&w, 10000);
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "Authority"), "Frozen");
}

Test(ctl_frozen, what_is_deleted_stays_until_it_decides_again)
{
	cleanup_free char *key = NULL;

	up_and_frozen();
	key = xstrdup(resource(ID_A));
	fake_api_delete(w.api, &kobj_machine, NS, "a");
	fake_api_delete(w.api, &kobj_ak, NS, "key");
	world_run(&w, SETTLE);
	cr_assert(has(&kobj_machine, "a"));
	cr_assert_str_eq(resource(ID_A), key);
	/* A restart, which knows less, takes nothing back either. */
	world_kill(&w);
	world_boot(&w, NULL);
	world_run(&w, SETTLE);
	cr_assert(has(&kobj_machine, "a"));
	cr_assert_str_eq(resource(ID_A), key);
	authority("Self");
	cr_assert_not(has(&kobj_machine, "a"));
	cr_assert_null(resource(ID_A));
}

Test(ctl_frozen, a_trustee_that_lost_everything_gets_it_again)
{
	cleanup_free char *key = NULL;

	up_and_frozen();
	key = xstrdup(resource(ID_A));
	fake_kbs_lose_store(kbs);
	world_run(&w, 10 * 60 * 1000);
	cr_assert_str_eq(resource(ID_A), key);
	/* As well by an operator that starts frozen. */
	world_kill(&w);
	fake_kbs_lose_store(kbs);
	world_boot(&w, NULL);
	world_run(&w, SETTLE);
	cr_assert_str_eq(resource(ID_A), key);
	cr_assert_str_eq(world_cond(&w, &kobj_ak, "key", "Approved"), "True");
}

/* A definition that does not know the field drops it: that is not the administrator's word. */
Test(ctl_frozen, it_stays_frozen_when_the_field_is_lost)
{
	up_and_frozen();
	fake_api_merge(w.api, &kobj_cluster, NS, "tec", "{\"spec\":{\"authority\":null}}");
	fake_api_delete(w.api, &kobj_machine, NS, "a");
	world_run(&w, SETTLE);
	cr_assert(has(&kobj_machine, "a"));
	cr_assert(resource(ID_A));
	cr_assert(
		strstr(fake_api_condition(w.api, &kobj_cluster, NS, "tec", "Installed", "message"),
			"spec no longer has authority"));
}

Test(ctl_frozen, an_uninstalled_cluster_takes_all_back)
{
	up_and_frozen();
	fake_api_delete(w.api, &kobj_cluster, NS, "tec");
	fake_api_delete(w.api, &kobj_machine, NS, "a");
	world_run(&w, 10 * SETTLE);
	cr_assert_not(has(&kobj_machine, "a"));
}
