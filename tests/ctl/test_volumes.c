/* SPDX-License-Identifier: MIT */
/*
 * Delivery by volumes, on an in-memory API: what Trustee's Deployment mounts, how often it is
 * written, and what counts as delivered. The tests play the Deployment's controller and the
 * kubelet.
 */
#include "config.h"

#include "ctl/volumes.h"

TestSuite(ctl_volumes, .init = volumes_up, .fini = nodes_down, .timeout = 120);

Test(ctl_volumes, it_is_installed_and_nothing_is_sent)
{
	install(VOLUMES);
	world_run(&w, 20000);
	cr_assert_str_eq(
		world_reason(&w, &kobj_cluster, "tec", "Installed"), "InstallationCompleted");
	cr_assert_str_eq(synced(), "Synced", "%s", synced_message());
	cr_assert(strstr(world_str(&w, &kobj_configmap, "trustee-data", "data/kbs-config.toml"),
		"trusted_ak_keys_dir"));
	cr_assert(world_get(&w, &kobj_configmap, "trustee-policies"));
	cr_assert_eq(fake_kbs_requests(kbs), 0);
	fake_transport_forget(w.life->f);
	world_run(&w, 60000);
	cr_assert_eq(fake_transport_requests(w.life->f), 0, "it rests");
}

Test(ctl_volumes, a_node_is_mounted_and_counts_when_the_new_pod_serves_it)
{
	install(VOLUMES);
	join(15000);
	cr_assert(mounts(ID_A));
	cr_assert(mounts_ak("key"));
	cr_assert_not(delivered());
	cr_assert_str_eq(synced(), "Populating");
	/* One thing after another: none of them is enough alone. */
	status(json_get_int(deployment(), "metadata/generation", 0), 1, 0, 1);
	world_run(&w, 3000);
	cr_assert_not(delivered(), "the Pod is of the template before");
	status(json_get_int(deployment(), "metadata/generation", 0), 1, 1, 1);
	world_run(&w, 3000);
	cr_assert_not(delivered(), "no Pod has these contents");
	current_pod("trustee-2");
	world_run(&w, 3000);
	cr_assert_not(delivered(), "an older one is left");
	fake_api_delete(w.api, &kobj_pod, NS, POD);
	world_run(&w, 3000);
	cr_assert_not(delivered(), "it is going, but not gone");
	fake_api_merge(w.api, &kobj_pod, NS, POD, "{\"metadata\":{\"finalizers\":null}}");
	world_run(&w, 3000);
	cr_assert(delivered());
	cr_assert_str_eq(world_cond(&w, &kobj_machine, "a", "Ready"), "True");
	world_run(&w, 15000);
	cr_assert_str_eq(synced(), "Synced");
	cr_assert_eq(fake_kbs_requests(kbs), 0);
}

Test(ctl_volumes, an_old_generation_confirms_nothing)
{
	install(VOLUMES);
	join(15000);
	current_pod(POD);
	status(json_get_int(deployment(), "metadata/generation", 0) - 1, 1, 1, 1);
	world_run(&w, 3000);
	cr_assert_not(delivered());
	status(json_get_int(deployment(), "metadata/generation", 0), 1, 1, 0);
	world_run(&w, 3000);
	cr_assert_not(delivered(), "not available");
	status(json_get_int(deployment(), "metadata/generation", 0), 1, 0, 1);
	world_run(&w, 3000);
	cr_assert_not(delivered(), "not updated");
	roll_out();
	cr_assert(delivered());
}

Test(ctl_volumes, without_a_pod_nothing_is_confirmed)
{
	install(VOLUMES);
	join(15000);
	pod_gone(POD);
	status(json_get_int(deployment(), "metadata/generation", 0), 1, 1, 1);
	world_run(&w, 5000);
	cr_assert_not(delivered());
	current_pod("trustee-2");
	world_run(&w, 5000);
	cr_assert(delivered());
}

static struct secret *any_value(const struct kobj *holder)
{
	return secret_new_copy(holder->name, strlen(holder->name));
}

Test(ctl_volumes, a_write_without_an_answer_may_have_been_done)
{
	static const char made[] = "{\"metadata\":{\"name\":\"" ID_B "\"},\"type\":\"Opaque\"}";
	char path[RATS_RESOURCE_PATH_MAX];
	const struct kobj *secret;

	rats_resource_path(ID_B, path);
	install(VOLUMES);
	world_run(&w, 20000);
	world_kill(&w);
	world_boot(&w, "c"); /* declared and revoked by hand */
	fake_api_put(w.api, &kobj_secret, NS, made);
	world_run(&w, 20000);
	fake_transport_forget(w.life->f);
	secret = k8s_cache_find(w.life->caches.cache[CACHES_SECRETS], ID_B);
	kbs_sync_declare(w.life->caches.sync, KBS_RESOURCE, path, secret, any_value);
	fake_api_hold_watches(w.api, true);
	fake_transport_fault(w.life->f, FAKE_FAULT_CUT, 2); /* it is read, then written */
	world_run(&w, 1100);
	cr_assert(mounts(ID_B));
	cr_assert_eq(writes_of_deployments(), 1);
	kbs_sync_revoke(w.life->caches.sync, KBS_RESOURCE, path);
	cr_assert_neq(
		kbs_sync_observed(w.life->caches.sync, KBS_RESOURCE, path), KBS_OBSERVED_ABSENT);
	world_run(&w, 300);
	cr_assert_neq(
		kbs_sync_observed(w.life->caches.sync, KBS_RESOURCE, path), KBS_OBSERVED_ABSENT);
	fake_transport_fault(w.life->f, FAKE_FAULT_CUT, 0);
	fake_api_hold_watches(w.api, false);
	world_run(&w, 30000);
	cr_assert_not(mounts(ID_B));
	cr_assert_neq(
		kbs_sync_observed(w.life->caches.sync, KBS_RESOURCE, path), KBS_OBSERVED_ABSENT);
	roll_out();
	cr_assert_eq(
		kbs_sync_observed(w.life->caches.sync, KBS_RESOURCE, path), KBS_OBSERVED_ABSENT);
}

Test(ctl_volumes, what_is_revoked_before_it_was_written_is_never_written)
{
	install(VOLUMES);
	world_run(&w, 20000);
	fake_transport_forget(w.life->f);
	fake_transport_latency(w.life->f, 400);
	world_machine(&w, "b", ID_B, "listener");
	while (!fake_transport_count(w.life->f, "get", "deployments"))
		world_run(&w, 50);
	fake_api_delete(w.api, &kobj_machine, NS, "b");
	for (unsigned i = 0; i < 100; i++) {
		world_run(&w, 100);
		cr_assert_not(mounts(ID_B));
	}
	cr_assert_null(world_get(&w, &kobj_machine, "b"));
	cr_assert_eq(writes_of_deployments(), 0);
}

Test(ctl_volumes, a_hundred_nodes_cost_a_handful_of_restarts)
{
	install(VOLUMES);
	fake_transport_forget(w.life->f);
	for (unsigned i = 0; i < 10; i++) { /* over five seconds */
		machines(10 * i, 10);
		world_run(&w, 500);
	}
	world_run(&w, 30000);
	cr_assert_eq(n_mounted(), 100);
	cr_assert_leq(writes_of_deployments(), 3, "%zu", writes_of_deployments());
	cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "Installed"), "True");
}

Test(ctl_volumes, additions_are_ten_seconds_apart)
{
	install(VOLUMES);
	world_run(&w, 20000);
	fake_transport_forget(w.life->f);
	for (unsigned i = 0; i < 60; i++) { /* one per second, for a minute */
		machines(i, 1);
		world_run(&w, 1000);
	}
	cr_assert_leq(writes_of_deployments(), 7, "%zu", writes_of_deployments());
	world_run(&w, 15000);
	cr_assert_eq(n_mounted(), 60);
}

Test(ctl_volumes, what_is_deleted_is_unmounted_at_once_and_released_when_the_pod_is_gone)
{
	install(VOLUMES);
	join(15000);
	world_machine(&w, "b", ID_B, "listener");
	world_run(&w, 15000);
	roll_out();
	cr_assert(delivered());
	fake_transport_forget(w.life->f);
	fake_api_delete(w.api, &kobj_machine, NS, "a");
	world_run(&w, 500);
	cr_assert_not(mounts(ID_A));
	cr_assert_not(mounts_ak("key"));
	cr_assert(mounts(ID_B));
	fake_api_delete(w.api, &kobj_machine, NS, "b"); /* soon after a restart, and yet */
	world_run(&w, 2000);
	cr_assert_not(mounts(ID_B));
	cr_assert_eq(writes_of_deployments(), 2);
	world_run(&w, 60000);
	cr_assert(world_get(&w, &kobj_machine, "a"), "the old Pod may still serve it");
	cr_assert(world_get(&w, &kobj_secret, ID_A));
	cr_assert(world_get(&w, &kobj_secret, "key"), "... and trust its key");
	roll_out();
	world_run(&w, 3000);
	cr_assert_null(world_get(&w, &kobj_machine, "a"));
	cr_assert_null(world_get(&w, &kobj_machine, "b"));
}

Test(ctl_volumes, a_pod_that_stays_is_named)
{
	install(VOLUMES);
	join(15000);
	pod("stuck", "of.before", true);
	fake_api_delete(w.api, &kobj_pod, NS, "stuck"); /* its node does not answer */
	roll_out();
	world_run(&w, 15000);
	cr_assert_not(delivered());
	cr_assert_str_eq(synced(), "Populating");
	cr_assert(strstr(synced_message(), "kubectl delete pod stuck --force"), "%s",
		synced_message());
	pod("a-foreign-one", NULL, true);
	world_run(&w, 15000);
	cr_assert(strstr(synced_message(), "Pod a-foreign-one (label app=kbs)"), "%s",
		synced_message());
	cr_assert(strstr(synced_message(), "first of 2"), "%s", synced_message());
	pod_gone("a-foreign-one");
	fake_api_merge(w.api, &kobj_pod, NS, "stuck", "{\"metadata\":{\"finalizers\":null}}");
	world_run(&w, 15000);
	cr_assert_str_eq(synced(), "Synced", "%s", synced_message());
	cr_assert(delivered());
	current_pod(POD);
	fake_api_merge(w.api, &kobj_pod, NS, POD, "{\"status\":{\"conditions\":null}}");
	fake_api_merge(w.api, &kobj_machine, NS, "a", "{\"metadata\":{\"labels\":{\"x\":\"y\"}}}");
	world_run(&w, 15000);
	cr_assert(strstr(synced_message(), "Pod " POD " has the current files but is not ready"),
		"%s", synced_message());
}

Test(ctl_volumes, a_hundred_that_go_are_a_handful_of_restarts)
{
	install(VOLUMES);
	machines(0, 100);
	world_run(&w, 30000);
	roll_out();
	fake_transport_forget(w.life->f);
	for (unsigned i = 0; i < 100; i++) {
		cleanup_free char *name = xasprintf("m-%u", i);

		fake_api_delete(w.api, &kobj_machine, NS, name);
		world_run(&w, 50);
	}
	world_run(&w, 10000);
	cr_assert_eq(n_mounted(), 0);
	cr_assert_leq(writes_of_deployments(), 5, "%zu", writes_of_deployments());
}

Test(ctl_volumes, a_restart_writes_nothing_and_looks_before_it_believes)
{
	install(VOLUMES);
	join(15000);
	machines(0, 20);
	world_run(&w, 30000);
	roll_out();
	cr_assert(delivered());
	world_run(&w, 20000);
	world_kill(&w);
	status(json_get_int(deployment(), "metadata/generation", 0), 1, 1, 0);
	world_boot(&w, NULL);
	cr_assert_neq(observed_key(&w, ID_A), KBS_OBSERVED_PRESENT);
	world_run(&w, 20000);
	cr_assert_neq(observed_key(&w, ID_A), KBS_OBSERVED_PRESENT, "its Pod is not available");
	cr_assert_eq(writes_of_deployments(), 0);
	status(json_get_int(deployment(), "metadata/generation", 0), 1, 1, 1);
	world_run(&w, 20000);
	cr_assert_eq(observed_key(&w, ID_A), KBS_OBSERVED_PRESENT);
	cr_assert_eq(writes_of_deployments(), 0);
	cr_assert(delivered());
	cr_assert(mounts(ID_A));
}

Test(ctl_volumes, nothing_is_unmounted_before_its_controller_has_run)
{
	install(VOLUMES);
	join(15000);
	roll_out();
	world_kill(&w);
	world_boot(&w, "c"); /* as if the others were slow */
	world_machine(&w, "b", ID_B, "listener");
	world_run(&w, 60000);
	cr_assert(mounts(ID_A));
	cr_assert(mounts_ak("key"));
	cr_assert_eq(writes_of_deployments(), 0);
	/* ... unless its Secret is gone. */
	fake_api_merge(w.api, &kobj_secret, NS, "key", "{\"metadata\":{\"finalizers\":null}}");
	fake_api_delete(w.api, &kobj_secret, NS, "key");
	world_run(&w, 15000);
	cr_assert_not(mounts_ak("key"));
	cr_assert(mounts(ID_A));
}

Test(ctl_volumes, what_went_while_nobody_looked_is_unmounted)
{
	install(VOLUMES);
	join(15000);
	roll_out();
	world_kill(&w);
	fake_api_delete(w.api, &kobj_machine, NS, "a");
	world_boot(&w, NULL);
	world_run(&w, 15000);
	cr_assert_not(mounts(ID_A));
	cr_assert(world_get(&w, &kobj_machine, "a"));
	roll_out();
	world_run(&w, 3000);
	cr_assert_null(world_get(&w, &kobj_machine, "a"));
}

Test(ctl_volumes, another_content_of_the_same_file_is_a_restart)
{
	cleanup_free char *root = NULL, *contents = NULL;
	cleanup_volumes struct render_volumes l = RENDER_VOLUMES_INIT;

	install(VOLUMES);
	join(15000);
	roll_out();
	cr_assert(render_volumes_read(deployment(), &l));
	contents = xstrdup(l.contents);
	root = xstrdup(world_str(&w, &kobj_secret, ID_A, "data/root"));
	/* While nobody looks the Machine is forced away and comes back; it gets another key. */
	world_kill(&w);
	fake_api_merge(w.api, &kobj_machine, NS, "a", "{\"metadata\":{\"finalizers\":null}}");
	fake_api_delete(w.api, &kobj_machine, NS, "a");
	fake_api_collect(w.api);
	world_boot(&w, "m");
	world_machine(&w, "a2", ID_A, "listener");
	world_run(&w, 5000);
	cr_assert_str_neq(world_str(&w, &kobj_secret, ID_A, "data/root"), root);
	ctl_trustee_on(w.life->trustee);
	ctl_cluster_on(w.life->cluster);
	for (unsigned i = 0; i < 100; i++) {
		world_run(&w, 200);
		cr_assert_neq(observed_key(&w, ID_A), KBS_OBSERVED_PRESENT,
			"the old Pod has the old key");
	}
	cr_assert(mounts(ID_A));
	render_volumes_fini(&l);
	cr_assert(render_volumes_read(deployment(), &l));
	cr_assert_str_neq(l.contents, contents);
	roll_out();
	cr_assert_eq(observed_key(&w, ID_A), KBS_OBSERVED_PRESENT);
}

Test(ctl_volumes, a_key_whose_secret_is_torn_away_is_not_gone_before_the_pod_is)
{
	char name[300];

	install(VOLUMES);
	join(15000);
	roll_out();
	identity_of(test_pem[0], name);
	fake_api_delete(w.api, &kobj_ak, NS, "key");
	fake_api_merge(w.api, &kobj_secret, NS, "key", "{\"metadata\":{\"finalizers\":null}}");
	fake_api_delete(w.api, &kobj_secret, NS, "key");
	for (unsigned i = 0; i < 50; i++) {
		world_run(&w, 200);
		cr_assert(kbs_sync_is_revoked(w.life->caches.sync, KBS_REFVALUE, name), "%u", i);
		cr_assert_neq(kbs_sync_observed(w.life->caches.sync, KBS_REFVALUE, name),
			KBS_OBSERVED_ABSENT);
	}
	cr_assert_not(mounts_ak("key"));
	roll_out();
	cr_assert_neq(
		kbs_sync_observed(w.life->caches.sync, KBS_REFVALUE, name), KBS_OBSERVED_PENDING);
}

Test(ctl_volumes, of_two_keys_of_one_name_each_is_a_file_and_let_go_alone)
{
	cleanup_free char *pem = same_name_as_first(0);
	char name[300];

	install(VOLUMES);
	join(15000);
	world_machine(&w, "b", ID_B, "listener");
	world_run(&w, 2000);
	world_ak(&w, "twin", pem, ID_B, "listener");
	world_run(&w, 20000);
	identity_of(pem, name);
	cr_assert(mounts_ak("key") && mounts_ak("twin"));
	roll_out();
	cr_assert_eq(
		kbs_sync_observed(w.life->caches.sync, KBS_REFVALUE, name), KBS_OBSERVED_PRESENT);
	fake_api_delete(w.api, &kobj_machine, NS, "b");
	world_run(&w, 20000);
	cr_assert(mounts_ak("key") && !mounts_ak("twin"));
	cr_assert(world_get(&w, &kobj_machine, "b"), "the old Pod may still trust its key");
	roll_out();
	cr_assert_null(world_get(&w, &kobj_machine, "b"));
	cr_assert_eq(
		kbs_sync_observed(w.life->caches.sync, KBS_REFVALUE, name), KBS_OBSERVED_PRESENT);
	cr_assert(delivered());
}

Test(ctl_volumes, a_secret_that_is_restored_is_no_restart)
{
	install(VOLUMES);
	join(15000);
	roll_out();
	fake_transport_forget(w.life->f);
	fake_api_delete(w.api, &kobj_secret, NS, ID_A);
	world_run(&w, 20000);
	cr_assert(world_get(&w, &kobj_secret, ID_A));
	cr_assert_eq(writes_of_deployments(), 0);
	cr_assert(delivered());
}

Test(ctl_volumes, the_deployment_is_repaired)
{
	install(VOLUMES);
	join(15000);
	roll_out();
	fake_api_merge(w.api, &kobj_deployment, NS, "trustee-deployment",
		"{\"spec\":{\"template\":{\"spec\":{\"volumes\":[]}}}}");
	world_run(&w, 5000);
	cr_assert(mounts(ID_A));
	fake_api_delete(w.api, &kobj_deployment, NS, "trustee-deployment");
	world_run(&w, 5000);
	cr_assert(mounts(ID_A));
	cr_assert(mounts_ak("key"));
}

/* ---- reference values */

Test(ctl_volumes, an_image_is_a_restart_and_goes_when_the_old_file_is_gone)
{
	cleanup_volumes struct render_volumes l = RENDER_VOLUMES_INIT;
	cleanup_free char *before = NULL;

	install(VOLUMES);
	cr_assert(render_volumes_read(deployment(), &l));
	before = xstrdup(l.contents);
	commit("a", REF_A, false);
	world_run(&w, 15000);
	render_volumes_fini(&l);
	cr_assert(render_volumes_read(deployment(), &l));
	cr_assert_str_neq(l.contents, before);
	cr_assert_str_eq(synced(), "Populating");
	roll_out();
	world_run(&w, 15000);
	cr_assert_str_eq(synced(), "Synced", "%s", synced_message());
	fake_api_delete(w.api, &kobj_image, NS, "a");
	world_run(&w, 60000);
	cr_assert(world_get(&w, &kobj_image, "a"), "the old Pod may still accept it");
	cr_assert_not(in_file(PCR4_A));
	roll_out();
	world_run(&w, 5000);
	cr_assert_null(world_get(&w, &kobj_image, "a"));
	world_run(&w, 15000);
	cr_assert_str_eq(synced(), "Synced", "%s", synced_message());
}

/* Nobody has to know whether that Trustee reads its policy once or each time. */
Test(ctl_volumes, another_policy_is_a_restart)
{
	cleanup_volumes struct render_volumes l = RENDER_VOLUMES_INIT, again = l;
	struct json_object *policy = NULL;

	install(VOLUMES);
	render_volumes_read(deployment(), &l);
	fake_api_merge(w.api, &kobj_cluster, NS, "tec",
		"{\"spec\":{\"attestation\":{\"platformConfigMaps\":[\"p\"],\"pcr7\":\"Require\"}}}");
	world_run(&w, 15000);
	render_volumes_read(deployment(), &again);
	cr_assert_str_neq(l.contents, again.contents);
	cr_assert(json_object_object_get_ex(
		json_get_obj(world_get(&w, &kobj_configmap, "trustee-policies"), "data"),
		"default_cpu.rego", &policy));
	cr_assert_str_eq(json_object_get_string(policy), render_etc("tpm-v017-pcr7.rego"));
}

/* The Deployment mounts nothing any more, and that counts when no Pod with the keys is left. */
Test(ctl_volumes, a_retired_operator_unmounts_everything)
{
	install(VOLUMES);
	join(15000);
	roll_out();
	cr_assert(delivered() && mounts(ID_A) && mounts_ak("key"));
	fake_api_merge(w.api, &kobj_cluster, NS, "tec", "{\"spec\":{\"authority\":\"Retired\"}}");
	world_run(&w, 15000);
	cr_assert_not(mounts(ID_A) || mounts_ak("key"));
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "Authority"), "Retiring");
	cr_assert(json_get(world_get(&w, &kobj_machine, "a"), "metadata/finalizers"));
	cr_assert_str_eq(world_reason(&w, &kobj_machine, "a", "Delivered"), "Revoking");
	pod_gone(POD);
	current_pod("trustee-2");
	status(json_get_int(deployment(), "metadata/generation", 0), 1, 1, 1);
	world_run(&w, 15000);
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "Authority"), "Retired");
	cr_assert_not(json_get(world_get(&w, &kobj_machine, "a"), "metadata/finalizers"));
	cr_assert(world_get(&w, &kobj_secret, ID_A), "the disk key stays");
	cr_assert_str_eq(world_reason(&w, &kobj_machine, "a", "Delivered"), "NotAvailable");
	/* A restart, while Trustee's Pod is gone, mounts nothing and stays Retired. */
	world_kill(&w);
	pod_gone("trustee-2");
	status(json_get_int(deployment(), "metadata/generation", 0), 0, 0, 0);
	world_boot(&w, NULL);
	world_run(&w, 15000);
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "Authority"), "Retired");
	cr_assert_not(mounts(ID_A));
}
