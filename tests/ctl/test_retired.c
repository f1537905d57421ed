/* SPDX-License-Identifier: MIT */
/* spec.authority Retired: Trustee confirms that it holds nothing, finalizers go, everything else stays. */
#include "config.h"

#include <criterion/criterion.h>

#include "ctl/nodes.h"
#include "tec/model/machine.h"

#define SETTLE 30000

TestSuite(ctl_retired, .init = nodes_up, .fini = nodes_down);

static void up(void)
{
	world_cluster(&w, "tec", "{" ADDRESS "}");
	fake_api_put(w.api, &kobj_image, NS,
		"{\"metadata\":{\"name\":\"coreos\"},\"spec\":{\"image\":\"quay.io/a@sha256:"
		"0000000000000000000000000000000000000000000000000000000000000000\"}}");
	world_boot(&w, NULL);
	world_run(&w, SETTLE);
	join(SETTLE);
	cr_assert(resource(ID_A));
}

static void authority(const char *value)
{
	cleanup_free char *patch = xasprintf("{\"spec\":{\"authority\":\"%s\"}}", value);

	fake_api_merge(w.api, &kobj_cluster, NS, "tec", patch);
}

static bool held(const struct kobj_gvk *gvk, const char *name)
{
	struct json_object *list = json_get_arr(world_get(&w, gvk, name), "metadata/finalizers");

	return list && json_object_array_length(list) > 0;
}

static const char *says(void)
{
	return world_reason(&w, &kobj_cluster, "tec", "Authority");
}

static void has_retired(void)
{
	char name[300];

	cr_assert_str_eq(says(), "Retired");
	identity_of(test_pem[0], name);
	cr_assert_null(resource(ID_A));
	cr_assert(!fake_kbs_value(kbs, name) || strcmp(fake_kbs_value(kbs, name), "null") == 0 ||
		  strcmp(fake_kbs_value(kbs, name), "[]") == 0);
	cr_assert(world_get(&w, &kobj_secret, ID_A), "the disk key stays");
	cr_assert_not(held(&kobj_machine, "a"));
	cr_assert_not(held(&kobj_secret, "key"));
	cr_assert_not(held(&kobj_image, "coreos"));
}

Test(ctl_retired, keys_are_revoked_and_objects_stay)
{
	up();
	cr_assert(held(&kobj_machine, "a") && held(&kobj_secret, "key"));
	cr_assert(held(&kobj_image, "coreos"));
	authority("Retired");
	world_run(&w, SETTLE);
	has_retired();
	cr_assert(world_get(&w, &kobj_machine, "a"));
	cr_assert(world_get(&w, &kobj_ak, "key"));
	cr_assert(world_get(&w, &kobj_image, "coreos"));
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "Installed"), "Retired");
	/* For ever: nothing is made for what comes, nothing repaired. */
	world_machine(&w, "b", ID_B, "listener");
	fake_api_delete(w.api, &kobj_service, NS, "register-server");
	world_run(&w, SETTLE);
	fake_transport_forget(w.life->f);
	world_run(&w, 48 * 3600 * 1000);
	cr_assert_eq(fake_transport_writes(w.life->f), 0);
	cr_assert_null(world_get(&w, &kobj_secret, ID_B));
	cr_assert_null(world_get(&w, &kobj_service, "register-server"));
}

Test(ctl_retired, finalizers_wait_until_trustee_confirms)
{
	up();
	fake_kbs_down(kbs, true);
	authority("Retired");
	world_run(&w, 10 * SETTLE);
	cr_assert_str_eq(says(), "Retiring");
	cr_assert(held(&kobj_machine, "a") && held(&kobj_secret, "key"));
	/* A restart, which knows less, lets nothing go either. */
	world_kill(&w);
	world_boot(&w, NULL);
	world_run(&w, 10 * SETTLE);
	cr_assert_str_eq(says(), "Retiring");
	cr_assert(held(&kobj_machine, "a") && held(&kobj_secret, "key"));
	fake_kbs_down(kbs, false);
	world_run(&w, 10 * SETTLE);
	has_retired();
}

/* Without finalizers, as a copy that another hand made: it may be in Trustee all the same. */
Test(ctl_retired, what_has_no_finalizer_is_revoked_too)
{
	up();
	authority("Following");
	world_run(&w, SETTLE);
	fake_api_merge(w.api, &kobj_machine, NS, "a", "{\"metadata\":{\"finalizers\":null}}");
	fake_api_merge(w.api, &kobj_secret, NS, "key", "{\"metadata\":{\"finalizers\":null}}");
	world_kill(&w);
	authority("Retired");
	world_boot(&w, NULL);
	world_run(&w, SETTLE);
	has_retired();
}

Test(ctl_retired, what_is_being_deleted_goes)
{
	up();
	authority("Frozen");
	world_run(&w, SETTLE);
	fake_api_delete(w.api, &kobj_machine, NS, "a");
	world_run(&w, SETTLE);
	cr_assert(resource(ID_A));
	authority("Retired");
	world_run(&w, 2 * SETTLE);
	cr_assert_str_eq(says(), "Retired");
	cr_assert_null(resource(ID_A));
	cr_assert_null(world_get(&w, &kobj_machine, "a"));
	cr_assert_not(held(&kobj_secret, "key"));
}

Test(ctl_retired, a_kill_at_any_write_loses_nothing)
{
	for (unsigned n = 1; n <= 12; n++) {
		up();
		authority("Retired");
		fake_transport_die_after(w.life->f, n);
		world_run(&w, SETTLE);
		world_kill(&w);
		world_boot(&w, NULL);
		world_run(&w, 2 * SETTLE);
		has_retired();
		nodes_down();
		nodes_up();
	}
}

/* What is confirmed stays so: a Trustee that is away, or gone for good, takes nothing back. */
Test(ctl_retired, a_restart_beside_a_trustee_that_is_away_stays_retired)
{
	up();
	authority("Retired");
	world_run(&w, SETTLE);
	has_retired();
	world_kill(&w);
	fake_kbs_down(kbs, true);
	world_boot(&w, NULL);
	for (unsigned i = 0; i < 20; i++) {
		world_run(&w, 1000);
		cr_assert_str_eq(says(), "Retired", "after %u s", i);
	}
	cr_assert_str_eq(world_reason(&w, &kobj_machine, "a", "Delivered"), "NotAvailable");
	/* Of a backup of the API: the finalizer says that Trustee may have it. */
	world_kill(&w);
	fake_api_merge(w.api, &kobj_machine, NS, "a",
		"{\"metadata\":{\"finalizers\":[\"" MODEL_MACHINE_FINALIZER "\"]}}");
	world_boot(&w, NULL);
	world_run(&w, SETTLE);
	cr_assert_str_eq(says(), "Retiring");
	fake_kbs_down(kbs, false);
	world_run(&w, 10 * SETTLE);
	has_retired();
}

Test(ctl_retired, machines_and_keys_say_that_they_are_not_delivered)
{
	up();
	cr_assert_str_eq(world_cond(&w, &kobj_machine, "a", "Ready"), "True");
	fake_kbs_down(kbs, true);
	authority("Retired");
	world_run(&w, SETTLE);
	cr_assert_str_eq(world_reason(&w, &kobj_machine, "a", "Delivered"), "Revoking");
	cr_assert_str_eq(world_cond(&w, &kobj_machine, "a", "Ready"), "False");
	cr_assert_str_eq(world_reason(&w, &kobj_ak, "key", "Delivered"), "NotAvailable");
	fake_kbs_down(kbs, false);
	world_run(&w, 10 * SETTLE);
	has_retired();
	cr_assert_str_eq(world_reason(&w, &kobj_machine, "a", "Delivered"), "NotAvailable");
	cr_assert_str_eq(world_reason(&w, &kobj_machine, "a", "Ready"), "NotAvailable");
}

/* Trustee may have been restored meanwhile. */
Test(ctl_retired, a_restored_trustee_loses_the_key_again)
{
	char path[RATS_RESOURCE_PATH_MAX];

	up();
	authority("Retired");
	world_run(&w, SETTLE);
	has_retired();
	world_kill(&w);
	rats_resource_path(ID_A, path);
	fake_kbs_put_resource(kbs, path, "the key of a backup");
	world_boot(&w, NULL);
	world_run(&w, SETTLE);
	has_retired();
}
