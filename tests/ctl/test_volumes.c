/* SPDX-License-Identifier: MIT */
/*
 * Delivery by volumes, on an in-memory API: what Trustee's Deployment mounts, how often it is
 * written, and what counts as delivered. The tests play the Deployment's controller and the
 * kubelet.
 */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "ctl/images.h"
#include "ctl/keys.h"
#include "ctl/world.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/uuid.h"
#include "tec/rats/names.h"
#include "tec/render/trustee.h"
#include "tec/render/volumes.h"

#define ADDRESS                                                                                    \
	"\"publicTrusteeAddr\":\"kbs-service\",\"publicAttestationKeyRegisterAddr\":\"reg:8001\""
#define VOLUMES "{" ADDRESS ",\"trustee\":{\"delivery\":\"Volumes\",\"keyIsolation\":\"Shared\"}}"
#define ADMIN   "{" ADDRESS ",\"trustee\":{\"delivery\":\"AdminAPI\",\"keyIsolation\":\"Shared\"}}"
#define POD     "trustee-1"

static struct fake_kbs *kbs;

static void up(void)
{
	world_start(&w);
	w.image_label = ask;
	w.kbs = kbs = fake_kbs_new(w.loop);
	fake_kbs_serve(kbs);
}

static void down(void)
{
	world_kill(&w);
	fake_kbs_free(kbs);
	world_stop(&w);
}

TestSuite(ctl_volumes, .init = up, .fini = down, .timeout = 120);

/* ---- what is there */

static struct json_object *deployment(void)
{
	return world_get(&w, &kobj_deployment, "trustee-deployment");
}

static bool mounts(const char *id)
{
	cleanup_volumes_list struct render_volumes_list l = RENDER_VOLUMES_LIST_INIT;

	return deployment() && render_volumes_read(deployment(), &l) &&
	       render_volumes_has_machine(&l, id);
}

static bool mounts_ak(const char *name)
{
	cleanup_volumes_list struct render_volumes_list l = RENDER_VOLUMES_LIST_INIT;

	return deployment() && render_volumes_read(deployment(), &l) &&
	       render_volumes_has_ak(&l, name);
}

static size_t n_mounted(void)
{
	cleanup_volumes_list struct render_volumes_list l = RENDER_VOLUMES_LIST_INIT;

	cr_assert(render_volumes_read(deployment(), &l));
	return l.n_machines;
}

static size_t writes_of_deployments(void)
{
	return fake_transport_count(w.life->f, "apply", "deployments");
}

/* ---- the Deployment's controller and the kubelet */

static void status(int64_t generation, int replicas, int updated, int available)
{
	cleanup_free char *text = xasprintf(
		"{\"status\":{\"observedGeneration\":%lld,\"replicas\":%d,\"updatedReplicas\":%d,"
		"\"availableReplicas\":%d}}",
		(long long)generation, replicas, updated, available);

	fake_api_merge(w.api, &kobj_deployment, NS, "trustee-deployment", text);
}

static void pod(const char *name, const char *contents, bool ready)
{
	struct json_object *o = json_obj(), *meta = json_obj(), *st = json_obj(), *c = json_obj();
	cleanup_free char *ready_text = xstrdup(ready ? "True" : "False");

	json_add_str(meta, "name", name);
	json_add(meta, "labels", json_add_str(json_obj(), "app", "kbs"));
	json_add(meta, "annotations",
		json_add_str(json_obj(), MODEL_POD_CONTENTS_ANNOTATION, contents));
	json_add(meta, "finalizers", json_push_str(json_arr(), "test/kubelet"));
	json_add_str(json_add_str(c, "type", "Ready"), "status", ready_text);
	json_add(st, "conditions", json_push(json_arr(), c));
	json_add_str(st, "phase", "Running");
	fake_api_put_json(
		w.api, &kobj_pod, NS, json_add(json_add(o, "metadata", meta), "status", st));
}

static void pod_gone(const char *name)
{
	fake_api_merge(w.api, &kobj_pod, NS, name, "{\"metadata\":{\"finalizers\":null}}");
	fake_api_delete(w.api, &kobj_pod, NS, name);
}

static void pod_of_now(const char *name)
{
	cleanup_volumes_list struct render_volumes_list l = RENDER_VOLUMES_LIST_INIT;

	render_volumes_read(deployment(), &l);
	pod(name, l.contents, true);
}

static void roll_out(void)
{
	pod_of_now(POD);
	status(json_get_int(deployment(), "metadata/generation", 0), 1, 1, 1);
	world_run(&w, 3000);
}

static void install(const char *spec)
{
	world_cluster(&w, "tec", spec);
	world_boot(&w, NULL);
	world_run(&w, 15000);
	if (deployment())
		roll_out();
}

static void join(void)
{
	world_machine(&w, "a", ID_A, "listener");
	world_run(&w, 2000);
	world_ak(&w, "key", test_pem[0], ID_A, "listener");
	world_run(&w, 15000);
}

static void id_of(unsigned i, char id[UUID_TEXT_LEN + 1])
{
	snprintf(id, UUID_TEXT_LEN + 1, "00000000-0000-4000-9000-%012x", i);
}

static void machines(unsigned from, unsigned n)
{
	char id[UUID_TEXT_LEN + 1];

	for (unsigned i = from; i < from + n; i++) {
		cleanup_free char *name = xasprintf("m-%u", i);

		id_of(i, id);
		world_machine(&w, name, id, "listener");
	}
}

static const char *synced(void)
{
	return world_reason(&w, &kobj_cluster, "tec", "TrusteeSynced");
}

static const char *synced_text(void)
{
	return fake_api_condition(w.api, &kobj_cluster, NS, "tec", "TrusteeSynced", "message");
}

static bool delivered(void)
{
	return str_eq(world_cond(&w, &kobj_machine, "a", "Delivered"), "True") &&
	       str_eq(world_cond(&w, &kobj_ak, "key", "Delivered"), "True");
}

/* ---- tests */

Test(ctl_volumes, it_is_installed_and_nothing_is_sent)
{
	install(VOLUMES);
	world_run(&w, 20000);
	cr_assert_str_eq(
		world_reason(&w, &kobj_cluster, "tec", "Installed"), "InstallationCompleted");
	cr_assert_str_eq(synced(), "Synced", "%s", synced_text());
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
	join();
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
	pod_of_now("trustee-2");
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
	join();
	pod_of_now(POD);
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
	join();
	pod_gone(POD);
	status(json_get_int(deployment(), "metadata/generation", 0), 1, 1, 1);
	world_run(&w, 5000);
	cr_assert_not(delivered());
	pod_of_now("trustee-2");
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
	secret = k8s_cache_find(w.life->state.cache[STATE_SECRETS], ID_B);
	kbs_sync_declare(w.life->state.sync, KBS_RESOURCE, path, secret, any_value);
	fake_api_hold_watches(w.api, true);
	fake_transport_fault(w.life->f, FAKE_FAULT_CUT, 2); /* it is read, then written */
	world_run(&w, 1100);
	cr_assert(mounts(ID_B));
	cr_assert_eq(writes_of_deployments(), 1);
	kbs_sync_revoke(w.life->state.sync, KBS_RESOURCE, path);
	cr_assert_neq(kbs_sync_far(w.life->state.sync, KBS_RESOURCE, path), KBS_FAR_ABSENT);
	world_run(&w, 300);
	cr_assert_neq(kbs_sync_far(w.life->state.sync, KBS_RESOURCE, path), KBS_FAR_ABSENT);
	fake_transport_fault(w.life->f, FAKE_FAULT_CUT, 0);
	fake_api_hold_watches(w.api, false);
	world_run(&w, 30000);
	cr_assert_not(mounts(ID_B));
	cr_assert_neq(kbs_sync_far(w.life->state.sync, KBS_RESOURCE, path), KBS_FAR_ABSENT);
	roll_out();
	cr_assert_eq(kbs_sync_far(w.life->state.sync, KBS_RESOURCE, path), KBS_FAR_ABSENT);
}

Test(ctl_volumes, what_is_taken_back_before_it_was_written_is_never_written)
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

Test(ctl_volumes, what_goes_is_unmounted_at_once_and_let_go_when_the_pod_is_gone)
{
	install(VOLUMES);
	join();
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
	join();
	pod("stuck", "of.before", true);
	fake_api_delete(w.api, &kobj_pod, NS, "stuck"); /* its node does not answer */
	roll_out();
	world_run(&w, 15000);
	cr_assert_not(delivered());
	cr_assert_str_eq(synced(), "Populating");
	cr_assert(strstr(synced_text(), "kubectl delete pod stuck --force"), "%s", synced_text());
	pod("a-foreign-one", NULL, true);
	world_run(&w, 15000);
	cr_assert(strstr(synced_text(), "Pod a-foreign-one (label app=kbs)"), "%s", synced_text());
	cr_assert(strstr(synced_text(), "first of 2"), "%s", synced_text());
	pod_gone("a-foreign-one");
	fake_api_merge(w.api, &kobj_pod, NS, "stuck", "{\"metadata\":{\"finalizers\":null}}");
	world_run(&w, 15000);
	cr_assert_str_eq(synced(), "Synced", "%s", synced_text());
	cr_assert(delivered());
	pod_of_now(POD);
	fake_api_merge(w.api, &kobj_pod, NS, POD, "{\"status\":{\"conditions\":null}}");
	fake_api_merge(w.api, &kobj_machine, NS, "a", "{\"metadata\":{\"labels\":{\"x\":\"y\"}}}");
	world_run(&w, 15000);
	cr_assert(strstr(synced_text(), "Pod " POD " with the files of now"), "%s", synced_text());
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
	join();
	machines(0, 20);
	world_run(&w, 30000);
	roll_out();
	cr_assert(delivered());
	world_run(&w, 20000);
	world_kill(&w);
	status(json_get_int(deployment(), "metadata/generation", 0), 1, 1, 0);
	world_boot(&w, NULL);
	cr_assert_neq(far_key(&w, ID_A), KBS_FAR_PRESENT);
	world_run(&w, 20000);
	cr_assert_neq(far_key(&w, ID_A), KBS_FAR_PRESENT, "its Pod is not available");
	cr_assert_eq(writes_of_deployments(), 0);
	status(json_get_int(deployment(), "metadata/generation", 0), 1, 1, 1);
	world_run(&w, 20000);
	cr_assert_eq(far_key(&w, ID_A), KBS_FAR_PRESENT);
	cr_assert_eq(writes_of_deployments(), 0);
	cr_assert(delivered());
	cr_assert(mounts(ID_A));
}

Test(ctl_volumes, nothing_is_unmounted_because_its_turn_has_not_come)
{
	install(VOLUMES);
	join();
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
	join();
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
	cleanup_volumes_list struct render_volumes_list l = RENDER_VOLUMES_LIST_INIT;

	install(VOLUMES);
	join();
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
		cr_assert_neq(far_key(&w, ID_A), KBS_FAR_PRESENT, "the old Pod has the old key");
	}
	cr_assert(mounts(ID_A));
	render_volumes_list_fini(&l);
	cr_assert(render_volumes_read(deployment(), &l));
	cr_assert_str_neq(l.contents, contents);
	roll_out();
	cr_assert_eq(far_key(&w, ID_A), KBS_FAR_PRESENT);
}

Test(ctl_volumes, a_key_whose_secret_is_torn_away_is_not_gone_before_the_pod_is)
{
	char name[300];

	install(VOLUMES);
	join();
	roll_out();
	identity_of(test_pem[0], name);
	fake_api_delete(w.api, &kobj_ak, NS, "key");
	fake_api_merge(w.api, &kobj_secret, NS, "key", "{\"metadata\":{\"finalizers\":null}}");
	fake_api_delete(w.api, &kobj_secret, NS, "key");
	for (unsigned i = 0; i < 50; i++) {
		world_run(&w, 200);
		cr_assert(kbs_sync_is_revoked(w.life->state.sync, KBS_REFVALUE, name), "%u", i);
		cr_assert_neq(kbs_sync_far(w.life->state.sync, KBS_REFVALUE, name), KBS_FAR_ABSENT);
	}
	cr_assert_not(mounts_ak("key"));
	roll_out();
	cr_assert_neq(kbs_sync_far(w.life->state.sync, KBS_REFVALUE, name), KBS_FAR_PENDING);
}

Test(ctl_volumes, a_secret_that_is_restored_is_no_restart)
{
	install(VOLUMES);
	join();
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
	join();
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

Test(ctl_volumes, an_image_is_a_restart_and_goes_when_the_file_of_before_is_gone)
{
	cleanup_volumes_list struct render_volumes_list l = RENDER_VOLUMES_LIST_INIT;
	cleanup_free char *before = NULL;

	install(VOLUMES);
	cr_assert(render_volumes_read(deployment(), &l));
	before = xstrdup(l.contents);
	commit("a", REF_A, false);
	world_run(&w, 15000);
	render_volumes_list_fini(&l);
	cr_assert(render_volumes_read(deployment(), &l));
	cr_assert_str_neq(l.contents, before);
	cr_assert_str_eq(synced(), "Populating");
	roll_out();
	world_run(&w, 15000);
	cr_assert_str_eq(synced(), "Synced", "%s", synced_text());
	fake_api_delete(w.api, &kobj_image, NS, "a");
	world_run(&w, 60000);
	cr_assert(world_get(&w, &kobj_image, "a"), "the Pod of before may still take it");
	cr_assert_not(in_file(PCR4_A));
	roll_out();
	world_run(&w, 5000);
	cr_assert_null(world_get(&w, &kobj_image, "a"));
	world_run(&w, 15000);
	cr_assert_str_eq(synced(), "Synced", "%s", synced_text());
}

/* ---- size */

#define TOO_MANY 400 /* bare Machines, with the image below; without it 2,700 fit */

/* Takes most of the room that the Deployment has. */
static void little_room(void)
{
	static char image[1400 * 1024];

	memset(image, 'x', sizeof(image) - 1);
	w.life->env.images_ref.trustee = image;
}

/* Nobody has to know whether that Trustee reads its policy once or each time. */
Test(ctl_volumes, another_policy_is_a_restart)
{
	cleanup_volumes_list struct render_volumes_list l = RENDER_VOLUMES_LIST_INIT, again = l;
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

Test(ctl_volumes, too_many_are_refused_before_anything_is_written)
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
	cr_assert(strstr(synced_text(), "AdminAPI"), "%s", synced_text());
	cr_assert(strstr(synced_text(), " 400 Machines are not delivered"), "%s", synced_text());
	cr_assert_null(deployment());
	cr_assert_null(world_get(&w, &kobj_configmap, "trustee-data"));
	cr_assert(world_get(&w, &kobj_service, "register-server"), "the rest is installed");
	fake_transport_forget(w.life->f);
	world_run(&w, 60000);
	cr_assert_eq(fake_transport_writes(w.life->f), 0);
}

Test(ctl_volumes, when_it_is_full_what_goes_still_goes)
{
	cleanup_free char *told = NULL;

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
	told = xasprintf(" %zu Machines are not delivered", TOO_MANY - 1 - n_mounted());
	world_run(&w, 15000); /* counts are written a little later */
	cr_assert(strstr(synced_text(), told), "%s: %s", told, synced_text());
	roll_out();
	world_run(&w, 3000);
	cr_assert_null(world_get(&w, &kobj_machine, "m-7"));
}

Test(ctl_volumes, a_spec_that_takes_the_last_room_stops_at_what_is_there)
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
	cr_assert(strstr(synced_text(), "nothing is written"), "%s", synced_text());
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

Test(ctl_volumes, to_volumes_and_back_without_touching_a_key)
{
	cleanup_free char *rv = NULL;
	char path[RATS_RESOURCE_PATH_MAX];

	rats_resource_path(ID_A, path);
	install(ADMIN);
	join();
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

Test(ctl_volumes, a_machine_that_goes_during_the_switch_waits_for_the_new_delivery)
{
	install(ADMIN);
	join();
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

Test(ctl_volumes, a_switch_that_would_be_too_large_changes_nothing)
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

Test(ctl_volumes, further_servers_are_administered_all_the_same)
{
	char path[RATS_RESOURCE_PATH_MAX];

	rats_resource_path(ID_A, path);
	fake_api_put(w.api, &kobj_secret, NS,
		"{\"metadata\":{\"name\":\"far\"},\"type\":\"Opaque\",\"data\":{\"private.key\":\"a2V5\"}}");
	install("{" ADDRESS ",\"trustee\":{\"delivery\":\"Volumes\",\"keyIsolation\":\"Shared\"},"
		"\"trusteeServers\":[{\"address\":\"far.example\",\"adminSecret\":\"far\"}]}");
	join();
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
