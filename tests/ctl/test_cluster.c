/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "ctl/keys.h"
#include "ctl/world.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"

/* ---- decide */

Test(ctl_cluster_decide, every_view)
{
	for (int bits = 0; bits < 1 << 6; bits++) {
		for (int todo = 0; todo <= CTL_CLUSTER_TIDY; todo++) {
			struct ctl_cluster_view v = {.found = bits & 1,
				.deleting = bits >> 1 & 1,
				.served = bits >> 2 & 1,
				.lost = bits >> 3 & 1,
				.mirrored = bits >> 4 & 1,
				.todo = todo,
				.status_ok = bits >> 5 & 1};
			enum ctl_cluster_do d = ctl_cluster_decide(&v);
			bool acts = v.found && !v.deleting && v.served && !v.lost;

			if (d != CTL_CLUSTER_NOTHING && d != CTL_CLUSTER_APPLY_STATUS)
				cr_assert(acts); /* a lost spec, a second cluster, a deleted one
						    change nothing */
			if (acts && !v.mirrored)
				cr_assert_eq(d, CTL_CLUSTER_MIRROR);
			else if (acts && todo)
				cr_assert_eq((int)d, todo);
			else
				cr_assert_eq(d, v.found && !v.status_ok ? CTL_CLUSTER_APPLY_STATUS
									: CTL_CLUSTER_NOTHING);
		}
	}
}

/* ---- on an API */

#define SPEC                                                                                       \
	"{\"publicTrusteeAddr\":\"kbs-service\",\"publicAttestationKeyRegisterAddr\":\"reg:8001\"}"
#define SHARED                                                                                      \
	"{\"publicTrusteeAddr\":\"kbs-service\",\"publicAttestationKeyRegisterAddr\":\"reg:8001\"," \
	"\"trustee\":{\"keyIsolation\":\"Shared\"}}"

static struct world w;

static void up(void)
{
	world_start(&w);
}

static void down(void)
{
	world_stop(&w);
}

TestSuite(ctl_cluster, .init = up, .fini = down);

static const struct {
	const struct kobj_gvk *gvk;
	const char *name;
} objects[] = {
	{&kobj_configmap, "trustee-data"},
	{&kobj_configmap, "trustee-policies"},
	{&kobj_configmap, "trustee-rv-data"},
	{&kobj_configmap, "image-pcrs"},
	{&kobj_secret, "trustee-auth"},
	{&kobj_secret, "trustee-token"},
	{&kobj_service, "kbs-service"},
	{&kobj_service, "kbs-admin"},
	{&kobj_deployment, "trustee-deployment"},
	{&kobj_service, "register-server"},
	{&kobj_service, "attestation-key-register"},
};

static const char *message(const char *cluster, const char *type)
{
	return fake_api_condition(w.api, &kobj_cluster, NS, cluster, type, "message");
}

static void install(const char *spec)
{
	world_cluster(&w, "tec", spec);
	world_boot(&w, "cma");
	world_run(&w, 5000);
}

Test(ctl_cluster, installs_everything_and_says_so)
{
	install(SPEC);
	for (size_t i = 0; i < ARRAY_LEN(objects); i++)
		cr_assert(world_get(&w, objects[i].gvk, objects[i].name), "%s", objects[i].name);
	cr_assert_str_eq(
		world_reason(&w, &kobj_cluster, "tec", "Installed"), "InstallationCompleted");
	cr_assert_str_eq(
		world_reason(&w, &kobj_cluster, "tec", "KnownTrusteeAddress"), "AddressFound");
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "TrusteeSynced"), "NotAvailable");
	cr_assert(strstr(message("tec", "Installed"), "plain text"));
	cr_assert_null(
		json_get(world_get(&w, &kobj_configmap, "image-pcrs"), "metadata/ownerReferences"));
	cr_assert_eq(kbs_sync_targets(w.life->caches.sync), 1);
}

Test(ctl_cluster, settled_makes_no_request)
{
	uint64_t rv;

	install("{\"publicTrusteeAddr\":\"kbs-service\",\"registration\":{\"mode\":\"Token\"}}");
	world_run(&w, 60000);
	rv = fake_api_rv(w.api);
	fake_transport_forget(w.life->f);
	world_run(&w, 3 * 3600 * 1000);
	cr_assert_eq(fake_transport_writes(w.life->f), 0);
	cr_assert_eq(fake_transport_count(w.life->f, "get", NULL), 0);
	/* a new life reads each object once, and writes nothing */
	world_kill(&w);
	world_boot(&w, "cma");
	world_run(&w, 3 * 3600 * 1000);
	cr_assert_eq(fake_transport_writes(w.life->f), 0);
	cr_assert_leq(fake_transport_count(w.life->f, "get", NULL), 10);
	cr_assert_eq(fake_api_rv(w.api), rv);
}

Test(ctl_cluster, a_status_that_is_overtaken_is_written_again_at_once)
{
	unsigned ms = 0;

	install(SPEC);
	world_run(&w, 60000);
	fake_transport_latency(w.life->f, 1000);
	fake_api_merge(w.api, &kobj_cluster, NS, "tec",
		"{\"metadata\":{\"annotations\":{\"" MODEL_ADOPT_BEFORE_ANNOTATION "\":\"x\"}}}");
	world_run(&w, 100);
	cr_assert(strstr(message("tec", "Installed"), "RFC 3339"));
	fake_api_merge(w.api, &kobj_cluster, NS, "tec",
		"{\"metadata\":{\"annotations\":{\"" MODEL_ADOPT_BEFORE_ANNOTATION "\":null}}}");
	for (; ms < 60000 && strstr(message("tec", "Installed"), "RFC 3339"); ms += 10)
		world_run(&w, 10);
	cr_assert_lt(ms, 1100, "%u", ms); /* the answer to the first */
}

Test(ctl_cluster, what_was_deleted_or_edited_is_repaired)
{
	install(SPEC);
	for (size_t i = 0; i < ARRAY_LEN(objects); i++) {
		fake_api_delete(w.api, objects[i].gvk, NS, objects[i].name);
		world_run(&w, 2000);
		cr_assert(world_get(&w, objects[i].gvk, objects[i].name), "%s", objects[i].name);
	}
	fake_api_merge(w.api, &kobj_configmap, NS, "trustee-data",
		"{\"data\":{\"kbs-config.toml\":\"x\"}}");
	fake_api_merge(
		w.api, &kobj_deployment, NS, "trustee-deployment", "{\"spec\":{\"replicas\":7}}");
	fake_api_merge(w.api, &kobj_configmap, NS, "trustee-rv-data",
		"{\"data\":{\"reference-values.json\":\"[1]\"}}");
	fake_api_merge(w.api, &kobj_configmap, NS, "image-pcrs",
		"{\"data\":{\"image-pcrs.json\":\"{\\\"a\\\":1}\"}}");
	world_run(&w, 2000);
	cr_assert_str_neq(
		json_get_str(json_get_obj(world_get(&w, &kobj_configmap, "trustee-data"), "data"),
			"kbs-config.toml"),
		"x");
	cr_assert_eq(json_get_int(world_get(&w, &kobj_deployment, "trustee-deployment"),
			     "spec/replicas", 0),
		1);
	/* not ours to repair */
	cr_assert_str_eq(
		json_get_str(
			json_get_obj(world_get(&w, &kobj_configmap, "trustee-rv-data"), "data"),
			"reference-values.json"),
		"[1]");
	cr_assert_str_eq(
		json_get_str(json_get_obj(world_get(&w, &kobj_configmap, "image-pcrs"), "data"),
			"image-pcrs.json"),
		"{\"a\":1}");
	cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "Installed"), "True");
}

Test(ctl_cluster, a_status_change_of_a_deployment_costs_a_read_and_no_write)
{
	install(SPEC);
	fake_transport_forget(w.life->f);
	fake_api_merge(w.api, &kobj_deployment, NS, "trustee-deployment",
		"{\"status\":{\"readyReplicas\":1}}");
	world_run(&w, 5000);
	cr_assert_eq(fake_transport_writes(w.life->f), 0);
	cr_assert_eq(fake_transport_count(w.life->f, "get", NULL), 1);
}

Test(ctl_cluster, only_the_oldest_is_served_and_the_next_is_taken_up)
{
	world_cluster(&w, "first", SPEC);
	clock_fake_advance(2000);
	world_cluster(&w, "second", SPEC);
	world_boot(&w, "cma");
	world_run(&w, 30000);
	cr_assert_str_eq(world_cond(&w, &kobj_cluster, "first", "Installed"), "True");
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "second", "Installed"), "NonUnique");
	fake_transport_forget(w.life->f);
	world_run(&w, 3600 * 1000);
	cr_assert_eq(fake_transport_writes(w.life->f), 0);
	fake_api_delete(w.api, &kobj_cluster, NS, "first");
	world_run(&w, 30000);
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "second", "Installed"),
		"Conflict"); /* the first one's things */
	fake_api_collect(w.api);
	world_run(&w, 30000);
	cr_assert_str_eq(world_cond(&w, &kobj_cluster, "second", "Installed"), "True");
	cr_assert(world_get(&w, &kobj_deployment, "trustee-deployment"));
}

Test(ctl_cluster, a_deployment_of_another_owner_is_not_touched)
{
	uint64_t rv;

	fake_api_put(w.api, &kobj_deployment, NS,
		"{\"metadata\":{\"name\":\"trustee-deployment\",\"ownerReferences\":[{\"apiVersion\":\"x/v1\",\"kind\":\"KbsConfig\","
		"\"name\":\"k\",\"uid\":\"other\",\"controller\":true}]},\"spec\":{\"replicas\":3}}");
	install(SPEC);
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "Installed"), "Conflict");
	cr_assert(strstr(message("tec", "Installed"), "trustee-deployment"));
	cr_assert_eq(json_get_int(world_get(&w, &kobj_deployment, "trustee-deployment"),
			     "spec/replicas", 0),
		3);
	world_run(&w, 60000);
	rv = fake_api_rv(w.api);
	world_run(&w, 3600 * 1000);
	cr_assert_eq(fake_api_rv(w.api), rv);
	fake_api_delete(w.api, &kobj_deployment, NS, "trustee-deployment");
	world_run(&w, 5000);
	cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "Installed"), "True");
}

Test(ctl_cluster, a_foreign_secret_of_our_name_is_a_conflict)
{
	fake_api_put(w.api, &kobj_secret, NS,
		"{\"metadata\":{\"name\":\"trustee-auth\"},\"type\":\"Opaque\",\"data\":{\"private.key\":\"QQ==\"}}");
	install(SPEC);
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "Installed"), "Conflict");
	world_run(&w, 60000);
	fake_transport_forget(w.life->f);
	world_run(&w, 3600 * 1000);
	cr_assert_eq(fake_transport_count(w.life->f, "get", NULL), 0);
	cr_assert_eq(fake_transport_writes(w.life->f), 0);
	cr_assert_str_eq(
		json_get_str(json_get_obj(world_get(&w, &kobj_secret, "trustee-auth"), "data"),
			"private.key"),
		"QQ==");
}

Test(ctl_cluster, our_own_secrets_are_adopted_by_a_new_life)
{
	cleanup_free char *key = NULL;

	install(SPEC);
	key = xstrdup(json_get_str(
		json_get_obj(world_get(&w, &kobj_secret, "trustee-auth"), "data"), "private.key"));
	world_kill(&w);
	world_boot(&w, "cma");
	world_run(&w, 5000);
	cr_assert_str_eq(
		json_get_str(json_get_obj(world_get(&w, &kobj_secret, "trustee-auth"), "data"),
			"private.key"),
		key);
	cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "Installed"), "True");
}

Test(ctl_cluster, the_rust_operators_listener_deployments_go_others_stay)
{
	cleanup_free char *text = NULL;

	world_cluster(&w, "tec", SPEC);
	text = xasprintf(
		"{\"metadata\":{\"name\":\"register-server\",\"ownerReferences\":[{\"apiVersion\":\"x/v1\","
		"\"kind\":\"TrustedExecutionCluster\",\"name\":\"tec\",\"uid\":\"%s\",\"controller\":true}]}}",
		world_str(&w, &kobj_cluster, "tec", "metadata/uid"));
	fake_api_put(w.api, &kobj_deployment, NS, text);
	fake_api_put(w.api, &kobj_deployment, NS,
		"{\"metadata\":{\"name\":\"attestation-key-register\"}}");
	world_boot(&w, "cma");
	world_run(&w, 5000);
	cr_assert_null(world_get(&w, &kobj_deployment, "register-server"));
	cr_assert(world_get(&w, &kobj_deployment, "attestation-key-register"));
	cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "Installed"), "True");
}

Test(ctl_cluster, external_renders_nothing_of_trustee)
{
	struct kbs_target_status trustee;

	install("{\"publicTrusteeAddr\":\"kbs.example:443\",\"trustee\":{\"deploy\":\"External\"}}");
	cr_assert_null(world_get(&w, &kobj_deployment, "trustee-deployment"));
	cr_assert_null(world_get(&w, &kobj_service, "kbs-service"));
	cr_assert_null(world_get(&w, &kobj_secret, "trustee-auth"));
	cr_assert(world_get(&w, &kobj_service, "register-server"));
	cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "Installed"), "True");
	cr_assert(kbs_sync_target(w.life->caches.sync, 0, &trustee));
	cr_assert_str_eq(trustee.name, "kbs.example:443");
}

static void arm_standalone(void)
{
	w.life->env.standalone = true;
}

Test(ctl_cluster, standalone_has_no_services_and_refuses_to_run_trustee)
{
	w.arm = arm_standalone;
	install("{\"publicTrusteeAddr\":\"kbs.example:443\",\"trustee\":{\"deploy\":\"External\"}}");
	cr_assert_null(world_get(&w, &kobj_service, "register-server"));
	cr_assert(world_get(&w, &kobj_configmap, "image-pcrs"));
	cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "Installed"), "True");

	fake_api_merge(w.api, &kobj_cluster, NS, "tec",
		"{\"spec\":{\"trustee\":{\"deploy\":\"Managed\"}}}");
	world_run(&w, 20000);
	cr_assert_null(world_get(&w, &kobj_deployment, "trustee-deployment"));
	cr_assert_null(world_get(&w, &kobj_secret, "trustee-auth"));
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "Installed"), "Refused");
	fake_transport_forget(w.life->f);
	world_run(&w, 3600 * 1000);
	cr_assert_eq(fake_transport_writes(w.life->f), 0);
}

Test(ctl_cluster, the_extended_spec_is_mirrored_and_its_loss_stops_everything)
{
	install("{\"publicTrusteeAddr\":\"kbs-service\",\"registration\":{\"mode\":\"Manual\"}}");
	cr_assert(strstr(
		world_annotation(&w, &kobj_cluster, "tec", MODEL_EXTENDED_ANNOTATION), "Manual"));
	world_kill(&w);
	/* swapped to the Rust operator and back */
	fake_api_merge(w.api, &kobj_cluster, NS, "tec", "{\"spec\":{\"registration\":null}}");
	fake_api_delete(w.api, &kobj_service, NS, "register-server");
	world_boot(&w, "cma");
	world_run(&w, 60000);
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "Installed"), "Conflict");
	cr_assert(strstr(message("tec", "Installed"), "kubectl annotate"));
	cr_assert_null(world_get(&w, &kobj_service, "register-server"));
	cr_assert(strstr(
		world_annotation(&w, &kobj_cluster, "tec", MODEL_EXTENDED_ANNOTATION), "Manual"));
	/* a person confirms */
	fake_api_merge(w.api, &kobj_cluster, NS, "tec",
		"{\"metadata\":{\"annotations\":{\"" MODEL_EXTENDED_ANNOTATION "\":null}}}");
	world_run(&w, 5000);
	cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "Installed"), "True");
	cr_assert(world_get(&w, &kobj_service, "register-server"));
}

Test(ctl_cluster, missing_and_empty_tls_secrets_are_reported)
{
	install("{\"publicTrusteeAddr\":\"kbs-service\",\"trusteeSecret\":\"my-tls\"}");
	cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "Installed"), "False");
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "Installed"), "Installing");
	cr_assert(strstr(
		message("tec", "Installed"), "Secret my-tls (trusteeSecret) does not exist"));
	fake_api_put(w.api, &kobj_secret, NS,
		"{\"metadata\":{\"name\":\"my-tls\"},\"type\":\"kubernetes.io/tls\"}");
	world_run(&w, 5000);
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "Installed"), "Refused");
	cr_assert_null(strstr(message("tec", "Installed"), "does not exist"));
	cr_assert(strstr(message("tec", "Installed"),
		"Secret my-tls (trusteeSecret) cannot be used: tls.crt is missing or empty"));
}

Test(ctl_cluster, counts_are_written_at_most_every_ten_seconds)
{
	install(SHARED);
	world_run(&w, 60000);
	fake_transport_forget(w.life->f);
	for (int i = 0; i < 30; i++) {
		char name[16], id[64];

		snprintf(name, sizeof(name), "m%d", i);
		snprintf(id, sizeof(id), "00000000-0000-4000-8000-0000000001%02d", i);
		world_machine(&w, name, id, NULL);
		world_run(&w, 1000);
	}
	world_run(&w, 30000);
	cr_assert(strstr(message("tec", "TrusteeSynced"), "0 of 30 values"));
	cr_assert_leq(fake_transport_count(w.life->f, "apply", "trustedexecutionclusters"), 6);
}

/* Although the first of them caused a status just before. */
Test(ctl_cluster, the_end_of_a_burst_is_counted_within_seconds)
{
	install(SHARED);
	world_run(&w, 60000);
	for (int i = 0; i < 30; i++) {
		char name[16], id[64];

		snprintf(name, sizeof(name), "m%d", i);
		snprintf(id, sizeof(id), "00000000-0000-4000-8000-0000000001%02d", i);
		world_machine(&w, name, id, NULL);
		world_run(&w, 100);
	}
	world_run(&w, 4000);
	cr_assert(strstr(message("tec", "TrusteeSynced"), "0 of 30 values"), "%s",
		message("tec", "TrusteeSynced"));
	fake_transport_forget(w.life->f);
	world_run(&w, 120000);
	cr_assert_eq(fake_transport_writes(w.life->f), 0, "the count was written a second time");
}

Test(ctl_cluster, uninstalling_shows_in_the_foreground)
{
	fake_api_put(w.api, &kobj_cluster, NS,
		"{\"metadata\":{\"name\":\"tec\",\"finalizers\":[\"foregroundDeletion\"]},\"spec\":" SPEC
		"}");
	world_boot(&w, "cma");
	world_run(&w, 5000);
	fake_api_delete(w.api, &kobj_cluster, NS, "tec");
	world_run(&w, 5000);
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "Installed"), "Uninstalling");
	fake_api_delete(w.api, &kobj_service, NS, "register-server");
	world_run(&w, 5000);
	cr_assert_null(world_get(&w, &kobj_service, "register-server"));
	cr_assert_eq(kbs_sync_targets(w.life->caches.sync), 1); /* its Trustee still runs */
	fake_api_delete(w.api, &kobj_deployment, NS, "trustee-deployment");
	world_run(&w, 5000);
	cr_assert_eq(kbs_sync_targets(w.life->caches.sync), 0);
}

Test(ctl_cluster, another_cluster_s_trustee_has_confirmed_nothing)
{
	world_machine(&w, "a", ID_A, NULL);
	install(SHARED);
	trustee_has_key(&w, ID_A, true);
	cr_assert_eq(observed_key(&w, ID_A), KBS_OBSERVED_PRESENT);
	fake_api_delete(w.api, &kobj_cluster, NS, "tec");
	world_cluster(&w, "tec", SHARED);
	world_run(&w, 5000);
	cr_assert_eq(observed_key(&w, ID_A), KBS_OBSERVED_UNKNOWN);
	cr_assert(key_declared(&w, ID_A));
}

Test(ctl_cluster, losing_the_lead_forgets_all_keys)
{
	world_machine(&w, "a", ID_A, NULL);
	install(SHARED);
	cr_assert(key_declared(&w, ID_A));
	ctl_cluster_off(w.life->cluster);
	ctl_kind_off(w.life->machine);
	ctl_kind_off(w.life->ak);
	ctl_trustee_off(w.life->trustee);
	cr_assert(!key_declared(&w, ID_A));
	world_run(&w, 5000);
	ctl_trustee_on(w.life->trustee);
	ctl_cluster_on(w.life->cluster);
	ctl_kind_on(w.life->machine);
	ctl_kind_on(w.life->ak);
	world_run(&w, 5000);
	cr_assert(key_declared(&w, ID_A));
	cr_assert_eq(observed_key(&w, ID_A), KBS_OBSERVED_UNKNOWN);
}

Test(ctl_cluster, what_cannot_be_written_is_reported)
{
	struct fake_expect *e;

	world_cluster(&w, "tec", SPEC);
	world_boot(&w, "");
	e = fake_transport_expect(
		w.life->f, "PATCH", "/api/v1/namespaces/" NS "/services/kbs-service*");
	fake_expect_times(e, 0);
	fake_expect_answer(
		e, 403, "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":\"no rights\"}");
	ctl_cluster_on(w.life->cluster);
	world_run(&w, 60000);
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "Installed"), "Refused");
	cr_assert(strstr(message("tec", "Installed"), "cannot write Service kbs-service: "));
	cr_assert(strstr(message("tec", "Installed"), "no rights"));
	cr_assert_leq(
		fake_transport_count(w.life->f, "apply", "services"), 12); /* with growing waits */
}

Test(ctl_cluster, an_external_trustee_is_not_forgotten_while_it_may_hold_something)
{
	world_machine(&w, "a", ID_A, NULL);
	install("{\"publicTrusteeAddr\":\"kbs-service\",\"trustee\":{\"deploy\":\"External\",\"keyIsolation\":\"Shared\"}}");
	fake_api_delete(w.api, &kobj_cluster, NS, "tec");
	world_run(&w, 5000);
	cr_assert_eq(kbs_sync_targets(w.life->caches.sync), 1);
	fake_api_delete(w.api, &kobj_machine, NS, "a");
	world_run(&w, 60000);
	cr_assert(world_get(&w, &kobj_machine, "a"));
	trustee_has_key(&w, ID_A, false);
	world_run(&w, 5000);
	cr_assert_null(world_get(&w, &kobj_machine, "a"));
	world_run(&w, 70000); /* it is away, so nothing can be written there */
	cr_assert_eq(kbs_sync_targets(w.life->caches.sync), 0);
}
