/* SPDX-License-Identifier: MIT */
/* Delivery by volumes: more than fits, from one delivery to the other, and further servers. */
#include "config.h"

#include "ctl/volumes.h"

TestSuite(ctl_volumes_limits, .init = volumes_up, .fini = nodes_down, .timeout = 120);

/* ---- size */

#define TOO_MANY 400 /* bare Machines, with the image below; without it 2,700 fit */

/* Takes most of the room that the Deployment has. */
static void little_room(void)
{
	static char image[1400 * 1024];

	memset(image, 'x', sizeof(image) - 1);
	w.life->env.images_ref.trustee = image;
}

Test(ctl_volumes_limits, too_many_are_refused_before_anything_is_written)
{
	world_cluster(&w, "tec", VOLUMES);
	world_boot(&w, "ma");
	machines(0, TOO_MANY);
	world_run(&w, 60000);
	little_room();
	ctl_trustee_on(w.life->trustee);
	ctl_cluster_on(w.life->cluster);
	world_run(&w, 60000);
	cr_assert_str_eq(synced(), "Refused");
	cr_assert(strstr(synced_message(), "AdminAPI"), "%s", synced_message());
	cr_assert(strstr(synced_message(), " 400 Machines are not delivered"), "%s",
		synced_message());
	cr_assert_null(deployment());
	cr_assert_null(world_get(&w, &kobj_configmap, "trustee-data"));
	cr_assert(world_get(&w, &kobj_service, "register-server"), "the rest is installed");
	fake_transport_forget(w.life->f);
	world_run(&w, 60000);
	cr_assert_eq(fake_transport_writes(w.life->f), 0);
}

Test(ctl_volumes_limits, when_it_is_full_what_goes_still_goes)
{
	cleanup_free char *expected = NULL;

	w.arm = little_room;
	install(VOLUMES);
	machines(0, 100);
	world_run(&w, 30000);
	roll_out();
	cr_assert_eq(n_mounted(), 100);
	machines(100, TOO_MANY - 100);
	world_run(&w, 60000);
	cr_assert_str_eq(synced(), "Refused");
	cr_assert_lt(n_mounted(), TOO_MANY);
	fake_api_delete(w.api, &kobj_machine, NS, "m-7");
	world_run(&w, 5000);
	cr_assert_not(mounts("00000000-0000-4000-9000-000000000007"));
	cr_assert_str_eq(synced(), "Refused");
	expected = xasprintf(" %zu Machines are not delivered", TOO_MANY - 1 - n_mounted());
	world_run(&w, 15000); /* counts are written a little later */
	cr_assert(strstr(synced_message(), expected), "%s: %s", expected, synced_message());
	roll_out();
	world_run(&w, 3000);
	cr_assert_null(world_get(&w, &kobj_machine, "m-7"));
}

Test(ctl_volumes_limits, a_spec_that_takes_the_last_room_stops_at_what_is_there)
{
	static char longer[4096];
	cleanup_free char *spec = NULL;

	w.arm = little_room;
	install(VOLUMES);
	machines(0, TOO_MANY);
	world_run(&w, 60000);
	roll_out();
	cr_assert_str_eq(synced(), "Refused");
	fake_transport_forget(w.life->f);
	w.life->env.images_ref.trustee = "small";
	fake_api_merge(w.api, &kobj_cluster, NS, "tec", "{\"spec\":{\"trusteeKbsPort\":8081}}");
	world_run(&w, 20000);
	cr_assert_eq(n_mounted(), TOO_MANY, "there is room again");
	cr_assert_str_neq(synced(), "Refused");
	little_room();
	memset(longer, 'y', sizeof(longer) - 1);
	spec = xasprintf("{\"spec\":{\"trusteeSecret\":\"%.200s\"}}", longer);
	fake_transport_forget(w.life->f);
	fake_api_merge(w.api, &kobj_cluster, NS, "tec", spec);
	world_run(&w, 20000);
	cr_assert_str_eq(synced(), "Refused");
	cr_assert(strstr(synced_message(), "nothing is written"), "%s", synced_message());
	cr_assert_eq(writes_of_deployments(), 0);
	cr_assert_eq(n_mounted(), TOO_MANY);
	fake_api_delete(w.api, &kobj_deployment, NS, "trustee-deployment");
	world_run(&w, 60000);
	cr_assert_null(deployment(), "not one that is too large");
}

/* ---- switching */

static void set_spec(const char *spec)
{
	cleanup_free char *patch = xasprintf("{\"spec\":%s}", spec);

	fake_api_merge(w.api, &kobj_cluster, NS, "tec", patch);
	world_run(&w, 5000);
}

Test(ctl_volumes_limits, to_volumes_and_back_without_touching_a_key)
{
	cleanup_free char *rv = NULL;
	char path[RATS_RESOURCE_PATH_MAX];

	rats_resource_path(ID_A, path);
	install(ADMIN);
	join(15000);
	cr_assert(delivered());
	rv = xstrdup(world_str(&w, &kobj_secret, ID_A, "metadata/resourceVersion"));

	set_spec(VOLUMES);
	world_run(&w, 10000);
	cr_assert(mounts(ID_A));
	cr_assert(mounts_ak("key"));
	cr_assert_not(delivered(), "what the other delivery confirmed does not count");
	cr_assert_str_eq(synced(), "Populating");
	fake_kbs_forget(kbs);
	roll_out();
	cr_assert(delivered());
	cr_assert_eq(fake_kbs_requests(kbs), 0);

	fake_kbs_down(kbs, true); /* the old Pod knows no admin API */
	fake_kbs_lose_store(kbs);
	set_spec(ADMIN);
	world_run(&w, 10000);
	cr_assert_not(mounts(ID_A));
	cr_assert_not(delivered());
	fake_kbs_down(kbs, false);
	world_run(&w, 60000);
	cr_assert(fake_kbs_resource(kbs, path));
	cr_assert(delivered());
	cr_assert_str_eq(world_str(&w, &kobj_secret, ID_A, "metadata/resourceVersion"), rv);
}

Test(ctl_volumes_limits, a_machine_that_goes_during_the_switch_waits_for_the_new_delivery)
{
	install(ADMIN);
	join(15000);
	fake_kbs_down(kbs, true);
	fake_api_delete(w.api, &kobj_machine, NS, "a");
	world_run(&w, 2000);
	set_spec(VOLUMES);
	world_run(&w, 30000);
	cr_assert_not(mounts(ID_A));
	cr_assert(world_get(&w, &kobj_machine, "a"), "the Pod of the admin API has it still");
	roll_out();
	world_run(&w, 3000);
	cr_assert_null(world_get(&w, &kobj_machine, "a"));
}

Test(ctl_volumes_limits, a_switch_that_would_be_too_large_changes_nothing)
{
	w.arm = little_room;
	install(ADMIN);
	machines(0, TOO_MANY);
	world_run(&w, 60000);
	fake_transport_forget(w.life->f);
	set_spec(VOLUMES);
	world_run(&w, 30000);
	cr_assert_str_eq(synced(), "Refused");
	cr_assert_eq(writes_of_deployments(), 0);
	cr_assert_eq(fake_transport_count(w.life->f, "apply", "configmaps"), 0);
	set_spec(ADMIN);
	world_run(&w, 60000);
	cr_assert_str_eq(synced(), "Synced");
}

/* ---- other servers */

Test(ctl_volumes_limits, further_servers_are_administered_all_the_same)
{
	char path[RATS_RESOURCE_PATH_MAX];

	rats_resource_path(ID_A, path);
	admin_key("far");
	install("{" ADDRESS ",\"trustee\":{\"delivery\":\"Volumes\",\"keyIsolation\":\"Shared\"},"
		"\"trusteeServers\":[{\"address\":\"far.example\",\"adminSecret\":\"far\"}]}");
	join(15000);
	cr_assert(fake_kbs_resource(kbs, path));
	cr_assert_not(delivered(), "its own Trustee has not restarted yet");
	roll_out();
	cr_assert(delivered());
	fake_api_delete(w.api, &kobj_machine, NS, "a");
	fake_kbs_down(kbs, true);
	world_run(&w, 3000);
	roll_out();
	world_run(&w, 10000);
	cr_assert(world_get(&w, &kobj_machine, "a"), "the further one has it");
	fake_kbs_down(kbs, false);
	world_run(&w, 60000);
	cr_assert_null(world_get(&w, &kobj_machine, "a"));
}
