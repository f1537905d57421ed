/* SPDX-License-Identifier: MIT */
/* The guard in the installation: what it adds, what switching it costs, and where the operator then
 * reaches Trustee. */
#include "config.h"

#include "ctl/nodes.h"
#include "ctl/pairs.h"
#include "tec/kobj/owner.h"
#include "tec/model/cluster.h"
#include "tec/render/trustee.h"

#define DEPLOY    "trustee-deployment"
#define SPEC(t)   "{\"publicTrusteeAddr\":\"trustee.example:443\",\"trustee\":{" t "}}"
#define ON        "\"guard\":\"Enabled\""
#define OFF       "\"guard\":\"Disabled\""
#define VOLUMES   "\"delivery\":\"Volumes\",\"keyIsolation\":\"Shared\""
#define SWITCH(t) "{\"spec\":{\"trustee\":{" t "}}}"

/* The Services' own addresses are used. */
static void no_kbs_url(void)
{
	w.life->env.kbs_url = NULL;
}

static void up(void)
{
	nodes_up();
	world_since(&w);
	w.arm = no_kbs_url;
}

TestSuite(ctl_cluster_guard, .init = up, .fini = nodes_down, .timeout = 120);

static void address(const char *service, const char *ip)
{
	cleanup_free char *text = xasprintf("{\"spec\":{\"clusterIP\":\"%s\"}}", ip);

	if (world_get(&w, &kobj_service, service))
		fake_api_merge(w.api, &kobj_service, NS, service, text);
}

/* What the API server does with a new Service. */
static void run(uint64_t ms)
{
	world_run(&w, 5000);
	address("kbs-service", "10.0.0.1");
	address("kbs-admin", "10.0.0.2");
	world_run(&w, ms);
}

static void install(const char *spec)
{
	world_cluster(&w, "tec", spec);
	world_boot(&w, "cma");
	run(60000);
	cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "Installed"), "True");
	fake_transport_forget(w.life->f);
}

static void set(const char *merge)
{
	fake_api_merge(w.api, &kobj_cluster, NS, "tec", merge);
	run(60000);
}

static bool has_guard(void)
{
	struct json_object *list = json_get_arr(
		world_get(&w, &kobj_deployment, DEPLOY), "spec/template/spec/containers");

	for (size_t i = 0; list && i < json_object_array_length(list); i++)
		if (str_eq(json_get_str(json_object_array_get_idx(list, i), "name"), "guard"))
			return true;
	return false;
}

static int64_t generation(void)
{
	return json_get_int(world_get(&w, &kobj_deployment, DEPLOY), "metadata/generation", 0);
}

static const char *message(void)
{
	return fake_api_condition(w.api, &kobj_cluster, NS, "tec", "Installed", "message");
}

static size_t applies(const char *resource)
{
	return fake_transport_count(w.life->f, "apply", resource);
}

Test(ctl_cluster_guard, it_is_there_when_spec_says_nothing)
{
	install("{\"publicTrusteeAddr\":\"trustee.example:443\"}");
	cr_assert(has_guard());
	cr_assert(world_get(&w, &kobj_service, "kbs-admin"));
	cr_assert_null(strstr(message(), "guard"));
	world_run(&w, 3 * 3600 * 1000);
	cr_assert_eq(fake_transport_writes(w.life->f), 0, "settled");
}

Test(ctl_cluster_guard, a_switch_is_one_new_template)
{
	install(SPEC(ON));
	cr_assert_eq(generation(), 1);
	set(SWITCH(OFF));
	cr_assert_not(has_guard());
	cr_assert_null(world_get(&w, &kobj_service, "kbs-admin"));
	cr_assert_eq(generation(), 2);
	cr_assert_eq(applies("deployments"), 1);
	cr_assert_eq(applies("configmaps"), 1, "trustee-data");
	cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "Installed"), "True");
	cr_assert(strstr(message(), "spec.trustee.guard is Disabled"), "%s", message());
	set(SWITCH(ON));
	cr_assert(has_guard());
	cr_assert(world_get(&w, &kobj_service, "kbs-admin"));
	cr_assert_eq(generation(), 3);
	cr_assert_null(strstr(message(), "guard"));
}

/* Without the guard a node can forge PCR 15. */
Test(ctl_cluster_guard, once_per_boot_needs_it)
{
	install(SPEC(ON));
	set("{\"spec\":{\"attestation\":{\"release\":\"OncePerBoot\"}}}");
	cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "Installed"), "True");
	set(SWITCH(OFF));
	cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "Installed"), "False");
	cr_assert(strstr(message(), "can forge PCR 15"), "%s", message());
	set(SWITCH(ON));
	cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "Installed"), "True");
}

/* As an operator before this one left it. */
Test(ctl_cluster_guard, a_deployment_without_it_is_taken_over_in_one_change)
{
	install(SPEC(OFF));
	world_kill(&w);
	fake_api_merge(w.api, &kobj_cluster, NS, "tec",
		"{\"spec\":{\"trustee\":null},\"metadata\":{\"annotations\":{\"" MODEL_EXTENDED_ANNOTATION
		"\":null}}}");
	world_boot(&w, "cma");
	run(60000);
	cr_assert(has_guard());
	cr_assert_eq(generation(), 2);
	cr_assert(world_get(&w, &kobj_service, "kbs-admin"));
	cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "Installed"), "True");
}

Test(ctl_cluster_guard, a_switch_under_faults_ends_the_same)
{
	for (int fault = FAKE_FAULT_409; fault <= FAKE_FAULT_SILENCE; fault++) {
		nodes_down();
		up();
		install(SPEC(ON));
		fake_transport_fault(w.life->f, (enum fake_fault)fault, 2);
		set(SWITCH(OFF));
		world_run(&w, 3600 * 1000);
		cr_assert_not(has_guard(), "fault %d", fault);
		cr_assert_null(world_get(&w, &kobj_service, "kbs-admin"), "fault %d", fault);
		cr_assert_eq(generation(), 2, "fault %d", fault);
	}
}

Test(ctl_cluster_guard, files_need_no_admin_service)
{
	install(SPEC(VOLUMES));
	cr_assert(has_guard());
	cr_assert_null(world_get(&w, &kobj_service, "kbs-admin"));
	set(SWITCH(OFF));
	cr_assert_not(has_guard());
	cr_assert_eq(generation(), 2);
	cr_assert(strstr(message(), "spec.trustee.guard is Disabled"));
}

Test(ctl_cluster_guard, an_external_trustee_has_none)
{
	install(SPEC("\"deploy\":\"External\"," OFF));
	cr_assert_null(world_get(&w, &kobj_service, "kbs-admin"));
	cr_assert_null(strstr(message(), "guard"), "%s", message());
}

/* With the same name, but not ours: it is neither deleted nor written. */
Test(ctl_cluster_guard, a_service_of_another_owner_stays)
{
	static const char other[] =
		"{\"metadata\":{\"name\":\"kbs-admin\",\"ownerReferences\":[{\"apiVersion\":\"v1\","
		"\"kind\":\"ConfigMap\",\"name\":\"x\",\"uid\":\"u\",\"controller\":true}]},\"spec\":{}}";

	fake_api_put(w.api, &kobj_service, NS, other);
	install(SPEC(OFF));
	cr_assert(world_get(&w, &kobj_service, "kbs-admin"));
	set(SWITCH(ON));
	cr_assert(kobj_owner_is_exactly(world_get(&w, &kobj_service, "kbs-admin"), "u"));
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "Installed"), "Conflict");
	cr_assert(strstr(message(), "kbs-admin"), "%s", message());
}

/* The guard reads the mounted files again by itself. */
Test(ctl_cluster_guard, a_rotated_certificate_writes_nothing)
{
	pair_put(&w, "my-tls", pair(0)->crt, pair(0)->key, pair(0)->crt);
	install("{\"publicTrusteeAddr\":\"kbs-service\",\"trusteeSecret\":\"my-tls\"}");
	pair_put(&w, "my-tls", pair(1)->crt, pair(1)->key, pair(1)->crt);
	world_run(&w, 2 * 3600 * 1000);
	cr_assert_eq(applies("deployments"), 0);
	cr_assert_eq(applies("configmaps"), 0);
	cr_assert_eq(generation(), 1);
}

/* ---- where the operator reaches it */

Test(ctl_cluster_guard, the_admin_api_is_reached_at_its_own_service)
{
	install(SPEC(ON));
	cr_assert_str_eq(w.place, "http://trustee.example:8082 10.0.0.2:8082");
	cr_assert_str_eq(synced(), "Synced");
	set(SWITCH(OFF));
	cr_assert_str_eq(w.place, "http://trustee.example:8080 10.0.0.1:8080");
	cr_assert_str_eq(synced(), "Synced");
	set(SWITCH(ON));
	cr_assert_str_eq(w.place, "http://trustee.example:8082 10.0.0.2:8082");
}

Test(ctl_cluster_guard, without_an_address_the_service_is_named)
{
	world_cluster(&w, "tec", SPEC(ON));
	world_boot(&w, "cma");
	world_run(&w, 20000);
	cr_assert(strstr(synced_message(), "Service kbs-admin has no cluster IP yet"), "%s",
		synced_message());
	cr_assert_str_eq(w.place, "");
	address("kbs-service", "10.0.0.1");
	world_run(&w, 20000);
	cr_assert_str_eq(w.place, "", "keys do not go to the nodes' listener");
}

/* Keys are revoked after the cluster object is gone: no spec says where. */
Test(ctl_cluster_guard, after_the_cluster_was_deleted_it_is_reached_there_too)
{
	install(SPEC(ON));
	fake_api_delete(w.api, &kobj_cluster, NS, "tec");
	world_run(&w, 5000);
	address("kbs-admin", "10.0.0.9");
	world_run(&w, 20000);
	cr_assert_str_eq(w.place, "http://trustee.example:8082 10.0.0.9:8082");
}
