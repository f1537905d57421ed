/* SPDX-License-Identifier: MIT */
/*
 * KbsConfigs on the in-memory API: what each change costs, lives that end at every write, and an API
 * that fails.
 */
#include "config.h"

#include <criterion/criterion.h>
#include <string.h>

#include "ctl/kbsworld.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/ctl/declared.h"

TestSuite(ctl_kbsconfig_life, .init = kbsworld_start, .fini = kbsworld_stop);

/* ---- what it costs */

Test(ctl_kbsconfig_life, an_install_is_four_requests_and_then_silence)
{
	kbsworld_put("k");
	kbsworld_boot();
	kbsworld_until(kbsworld_installed, "installed");
	cr_assert_eq(kbsworld_requests(), 4, "finalizer, Deployment, Service, status: %zu",
		kbsworld_requests());
	kbsworld_pods_are_ready();
	cr_assert_str_eq(kbsworld_reason("k", "Ready"), "Ready");
	fake_transport_forget(t.f);
	kbsworld_run(2 * 60 * 60 * 1000);
	cr_assert_eq(fake_transport_writes(t.f), 0);
}

Test(ctl_kbsconfig_life, a_changed_input_is_at_most_three_requests)
{
	kbsworld_put("k");
	kbsworld_boot();
	kbsworld_until(kbsworld_installed, "installed");
	kbsworld_pods_are_ready();
	fake_transport_forget(t.f);
	fake_api_put(t.api, &kobj_configmap, NS,
		"{\"metadata\":{\"name\":\"policy\"},\"data\":{\"policy.rego\":\"other\"}}");
	kbsworld_run(1000);
	cr_assert_eq(fake_transport_count(t.f, "apply", "deployments"), 1);
	cr_assert_leq(kbsworld_requests(), 2, "apply, status: %zu", kbsworld_requests());
	cr_assert_eq(fake_transport_count(t.f, "get", NULL), 0);
	fake_transport_forget(t.f);
	fake_api_put(t.api, &kobj_configmap, NS,
		"{\"metadata\":{\"name\":\"conf\"},\"data\":{\"kbs-config.toml\":\"" TOML
		"sockets = [\\\"[::]:9000\\\"]\"}}");
	kbsworld_run(1000);
	cr_assert_eq(fake_transport_count(t.f, "apply", "services"), 1, "another port");
	/* The value of a resource, labels, and what nobody names: no write. */
	fake_transport_forget(t.f);
	fake_api_put(t.api, &kobj_secret, NS,
		"{\"metadata\":{\"name\":\"res\"},\"data\":{\"key1\":\"Mg==\"}}");
	fake_api_merge(
		t.api, &kobj_configmap, NS, "policy", "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}");
	fake_api_put(t.api, &kobj_configmap, NS, "{\"metadata\":{\"name\":\"other\"},\"data\":{}}");
	kbsworld_run(1000);
	cr_assert_eq(fake_transport_writes(t.f), 0);
}

/* ---- a CustomResourceDefinition without conditions */

static const char *status_text(void)
{
	return json_object_to_json_string_ext(
		json_get_obj(fake_api_get(t.api, &kobj_kbsconfig, NS, "k"), "status"),
		JSON_C_TO_STRING_PLAIN);
}

/* The API server refuses one write of the status. */
static void undeclared(void)
{
	struct fake_expect *e = fake_transport_expect(t.f, "PATCH",
		"/apis/confidentialcontainers.org/v1alpha1/namespaces/" NS "/kbsconfigs/k/status*");

	fake_expect_answer(e, 500,
		"{\"kind\":\"Status\",\"message\":\"failed to create typed patch object (ns/k; "
		"confidentialcontainers.org/v1alpha1, Kind=KbsConfig): .status.conditions: field not "
		"declared in schema\",\"code\":500}");
}

Test(ctl_kbsconfig_life, without_conditions_is_ready_follows_and_each_event_is_posted_once)
{
	size_t events;

	kbsworld_put("k");
	kbsworld_boot();
	undeclared();
	kbsworld_run(1000);
	cr_assert_str_eq(status_text(), "{\"isReady\":false}");
	cr_assert_eq(kbsworld_requests(), 5, "one of them refused: %zu", kbsworld_requests());
	kbsworld_pods_are_ready();
	cr_assert_str_eq(status_text(), "{\"isReady\":true}");
	cr_assert_eq(kbsworld_requests(), 6, "%zu", kbsworld_requests());
	events = fake_api_count(t.api, &kobj_event, NS);
	/* Tried again, and refused again: nothing new is told. */
	undeclared();
	kbsworld_run(CTL_DECLARED_AGAIN_MS);
	cr_assert_str_eq(status_text(), "{\"isReady\":true}");
	cr_assert_leq(kbsworld_requests(), 8, "%zu", kbsworld_requests());
	/* The definition is updated. */
	kbsworld_run(2 * CTL_DECLARED_AGAIN_MS);
	cr_assert_str_eq(kbsworld_reason("k", "Installed"), "Installed");
	cr_assert_str_eq(kbsworld_reason("k", "Ready"), "Ready");
	cr_assert_eq(fake_api_count(t.api, &kobj_event, NS), events);
	cr_assert_eq(fake_transport_count(t.f, "patch", "events"), 0);
	fake_transport_forget(t.f);
	kbsworld_run(2 * 60 * 60 * 1000);
	cr_assert_eq(fake_transport_writes(t.f), 0);
}

static void put_policy(const char *text)
{
	cleanup_free char *o = xasprintf(
		"{\"metadata\":{\"name\":\"policy\"},\"data\":{\"policy.rego\":\"%s\"}}", text);

	fake_api_put(t.api, &kobj_configmap, NS, o);
}

/* The status is not written yet, and writes of other contents are not one without effect. */
Test(ctl_kbsconfig_life, changes_in_a_row_do_not_wait_for_each_other)
{
	static const char *const texts[] = {"1", "2", "3", "4"};

	kbsworld_put("k");
	kbsworld_boot();
	kbsworld_until(kbsworld_installed, "installed");
	kbsworld_pods_are_ready();
	fake_transport_forget(t.f);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		put_policy(texts[i]);
		kbsworld_run(20);
		cr_expect_eq(fake_transport_count(t.f, "apply", "deployments"), i + 1, "%zu", i);
	}
	cr_expect_eq(fake_transport_count(t.f, NULL, "kbsconfigs"), 0, "no status in between");
}

/* The Deployment is in the cache before the answer comes, or after it: it is known all the same. */
Test(ctl_kbsconfig_life, an_answer_may_come_before_or_after_its_event)
{
	kbsworld_put("k");
	kbsworld_boot();
	kbsworld_until(kbsworld_installed, "installed");
	for (uint32_t ms = 0; ms <= 500; ms += 500) {
		cleanup_free char *text = xasprintf("%u ms", ms);

		fake_transport_latency(t.f, ms);
		fake_transport_forget(t.f);
		put_policy(text);
		kbsworld_run(10 * 1000);
		cr_expect_eq(fake_transport_count(t.f, "apply", "deployments"), 1, "%s", text);
		cr_expect_eq(fake_transport_count(t.f, "get", NULL), 0, "%s", text);
		fake_transport_forget(t.f);
		fake_api_merge(
			t.api, &kobj_deployment, NS, DEPLOYMENT, "{\"spec\":{\"replicas\":7}}");
		kbsworld_run(10 * 1000);
		cr_expect_eq(fake_transport_count(t.f, "get", "deployments"), 1, "%s", text);
		cr_expect_eq(fake_transport_count(t.f, "apply", "deployments"), 1, "%s", text);
	}
}

/* Of the Deployment: what Pods report is not read for, a change of anything else is. */
Test(ctl_kbsconfig_life, a_status_is_not_a_reason_to_read)
{
	kbsworld_put("k");
	kbsworld_boot();
	kbsworld_until(kbsworld_installed, "installed");
	kbsworld_pods_are_ready();
	fake_transport_forget(t.f);
	fake_api_merge(t.api, &kobj_deployment, NS, DEPLOYMENT,
		"{\"metadata\":{\"annotations\":{\"deployment.kubernetes.io/revision\":\"2\"}},"
		"\"status\":{\"readyReplicas\":0}}");
	kbsworld_run(1000);
	cr_assert_str_eq(kbsworld_reason("k", "Ready"), "Starting");
	cr_assert_eq(fake_transport_count(t.f, NULL, "deployments"), 0);
	fake_api_merge(t.api, &kobj_deployment, NS, DEPLOYMENT,
		"{\"metadata\":{\"labels\":{\"a\":\"b\"}}}");
	kbsworld_run(1000);
	cr_assert_eq(fake_transport_count(t.f, "get", "deployments"), 1);
	fake_api_merge(t.api, &kobj_deployment, NS, DEPLOYMENT, "{\"spec\":{\"replicas\":7}}");
	kbsworld_run(1000);
	cr_assert_eq(fake_transport_count(t.f, "apply", "deployments"), 1, "repaired");
}

Test(ctl_kbsconfig_life, an_input_that_is_as_it_was_again_is_not_written)
{
	kbsworld_put("k");
	kbsworld_boot();
	kbsworld_until(kbsworld_installed, "installed");
	kbsworld_pods_are_ready();
	fake_transport_forget(t.f);
	fake_api_put(t.api, &kobj_configmap, NS,
		"{\"metadata\":{\"name\":\"policy\"},\"data\":{\"policy.rego\":\"other\"}}");
	fake_api_put(t.api, &kobj_configmap, NS,
		"{\"metadata\":{\"name\":\"policy\"},\"data\":{\"policy.rego\":\"p\"}}");
	kbsworld_run(1000);
	cr_assert_eq(kbsworld_requests(), 0, "%zu", kbsworld_requests());
}

Test(ctl_kbsconfig_life, a_start_writes_nothing)
{
	kbsworld_put("k");
	kbsworld_boot();
	kbsworld_until(kbsworld_installed, "installed");
	kbsworld_pods_are_ready();
	kbsworld_end();
	kbsworld_boot();
	kbsworld_run(60 * 1000);
	cr_assert_eq(fake_transport_writes(t.f), 0);
}

/* ---- refused writes */

/* An Event of this life. */
static bool told(const char *reason, const char *words)
{
	bool found = false;

	for (size_t i = 0; i < fake_transport_requests(t.f); i++) {
		const struct fake_request *r = fake_transport_request(t.f, i);

		found |= str_eq(r->resource, "events") && r->body && strstr(r->body, reason) &&
			 strstr(r->body, words);
	}
	return found;
}

/* What the server says about a write is in the status before the first retry, and Ready is what the
 * Pods are. */
Test(ctl_kbsconfig_life, a_refused_write_is_in_the_status)
{
	static const struct {
		int http;
		const char *words;
	} rows[] = {{422, "may not specify more than 1 volume type"}, {403, "no rights"},
		{500, "failed calling webhook"}};

	kbsworld_put("k");
	kbsworld_boot();
	kbsworld_until(kbsworld_installed, "installed");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		cleanup_free char *answer =
			xasprintf("{\"kind\":\"Status\",\"message\":\"%s\"}", rows[i].words);
		struct fake_expect *e = fake_transport_expect(t.f, "PATCH",
			"/apis/apps/v1/namespaces/" NS "/deployments/" DEPLOYMENT "*");

		kbsworld_pods_are_ready();
		fake_expect_times(e, 3);
		fake_expect_answer(e, rows[i].http, answer);
		fake_transport_forget(t.f);
		put_policy(rows[i].words);
		kbsworld_run(100);
		cr_expect_str_eq(kbsworld_reason("k", "Installed"), "WriteRefused");
		cr_expect(strstr(kbsworld_message("k", "Installed"), rows[i].words), "%s",
			kbsworld_message("k", "Installed"));
		cr_expect_str_eq(kbsworld_reason("k", "Ready"), "Ready");
		kbsworld_run(10 * 60 * 1000);
		cr_expect(told("WriteRefused", rows[i].words), "%s", rows[i].words);
		cr_expect_str_eq(kbsworld_reason("k", "Installed"), "Installed");
		cr_expect_eq(fake_transport_count(t.f, "apply", "deployments"), 4, "%zu",
			fake_transport_count(t.f, "apply", "deployments"));
		cr_expect_eq(fake_transport_count(t.f, "apply", "kbsconfigs"), 2, "%zu",
			fake_transport_count(t.f, "apply", "kbsconfigs"));
	}
}

/* Where the kind has no conditions, the Event alone says it, once. */
Test(ctl_kbsconfig_life, a_refused_write_without_conditions_is_an_event)
{
	struct fake_expect *e;

	kbsworld_put("k");
	kbsworld_boot();
	undeclared();
	kbsworld_run(1000);
	cr_assert_str_eq(status_text(), "{\"isReady\":false}");
	fake_transport_forget(t.f);
	e = fake_transport_expect(
		t.f, "PATCH", "/apis/apps/v1/namespaces/" NS "/deployments/" DEPLOYMENT "*");
	fake_expect_times(e, 0);
	fake_expect_answer(e, 422, "{\"kind\":\"Status\",\"message\":\"no such volume\"}");
	put_policy("other");
	kbsworld_run(3500);
	cr_expect(told("WriteRefused", "no such volume"));
	cr_expect_eq(fake_transport_count(t.f, "patch", "events"), 0);
	cr_expect_geq(fake_transport_count(t.f, "apply", "deployments"), 3, "it is retried");
	cr_expect_leq(fake_transport_count(t.f, "apply", "kbsconfigs"), 2, "%zu",
		fake_transport_count(t.f, "apply", "kbsconfigs"));
}

/* ---- ready */

/* All Pods that are wanted, of what is configured now; not what an older generation had. */
Test(ctl_kbsconfig_life, ready_means_every_wanted_pod_of_the_current_generation)
{
	static const struct {
		int replicas, seen, updated, ready, earlier;
		const char *reason, *says;
	} rows[] = {
		{2, 0, 2, 2, 0, "RollingOut", ""}, /* the status is of the generation before */
		{2, 1, 1, 2, 1, "RollingOut", ""},
		{2, 1, 2, 0, 0, "Starting", "0 of 2"},
		{2, 1, 2, 1, 0, "Starting", "1 of 2"}, /* no more could be created */
		{2, 1, 2, 2, 0, "Ready", "2 of 2"},
		{1, 1, 1, 1, 0, "Ready", "1 of 1"},
		{1, 1, 1, 1, 1, "RollingOut",
			"Earlier"}, /* the one that is ready is the earlier one */
		{2, 1, 2, 3, 2, "RollingOut", "kubectl logs"},
		{0, 1, 0, 0, 0, "NoReplicas", ""},
	};

	kbsworld_put("k");
	kbsworld_boot();
	kbsworld_until(kbsworld_installed, "installed");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		cleanup_free char *spec = xasprintf(
			"{\"spec\":{\"KbsDeploymentSpec\":{\"replicas\":%d}}}", rows[i].replicas);
		cleanup_free char *status = NULL;
		bool is_ready;
		int64_t generation;

		fake_api_merge(t.api, &kobj_kbsconfig, NS, "k", spec);
		kbsworld_run(1000);
		generation = json_get_int(kbsworld_deployment(), "metadata/generation", 0);
		status = xasprintf("{\"status\":{\"observedGeneration\":%d,\"replicas\":%d,"
				   "\"updatedReplicas\":%d,\"readyReplicas\":%d}}",
			(int)generation - !rows[i].seen, rows[i].updated + rows[i].earlier,
			rows[i].updated, rows[i].ready);
		fake_api_merge(t.api, &kobj_deployment, NS, DEPLOYMENT, status);
		kbsworld_run(1000);
		is_ready = json_get_bool(
			fake_api_get(t.api, &kobj_kbsconfig, NS, "k"), "status/isReady", false);
		cr_expect_str_eq(kbsworld_reason("k", "Ready"), rows[i].reason, "%zu: %s", i,
			kbsworld_message("k", "Ready"));
		cr_expect(strstr(kbsworld_message("k", "Ready"), rows[i].says), "%zu", i);
		cr_expect_eq(is_ready, str_eq(rows[i].reason, "Ready"), "%zu", i);
	}
}

static bool was_told(const char *reason)
{
	cleanup_free char *part = xasprintf("\"reason\":\"%s\"", reason);

	for (size_t i = 0; i < fake_transport_requests(t.f); i++) {
		const struct fake_request *r = fake_transport_request(t.f, i);

		if (str_eq(r->resource, "events") && r->body && strstr(r->body, part))
			return true;
	}
	return false;
}

/* Also when the watch shows the object before the write of it is answered. */
Test(ctl_kbsconfig_life, what_was_made_is_told_as_created)
{
	kbsworld_boot();
	fake_transport_latency(t.f, 500);
	kbsworld_put("k");
	kbsworld_until(kbsworld_installed, "installed");
	kbsworld_run(5000);
	cr_assert(was_told("DeploymentCreated") && was_told("ServiceCreated"));
	cr_assert_not(was_told("DeploymentUpdated") || was_told("ServiceUpdated"));
	fake_api_merge(
		t.api, &kobj_kbsconfig, NS, "k", "{\"spec\":{\"kbsServiceType\":\"NodePort\"}}");
	kbsworld_run(5000);
	cr_assert(was_told("ServiceUpdated"));
}

/* ---- lives that end */

/* From nothing to a KbsConfig that is gone again, with a life that ends after n writes; returns
 * whether it did end. */
static bool life_of(unsigned n)
{
	bool died;

	kbsworld_put("k");
	kbsworld_boot();
	fake_transport_die_after(t.f, n);
	kbsworld_run(20 * 1000);
	if (!fake_transport_is_dead(t.f))
		kbsworld_until(kbsworld_installed, "installed");
	died = fake_transport_is_dead(t.f);
	kbsworld_end();
	kbsworld_boot();
	kbsworld_until(kbsworld_installed, "installed by the next one");
	fake_api_delete(t.api, &kobj_kbsconfig, NS, "k");
	fake_transport_die_after(t.f, n);
	kbsworld_run(20 * 1000);
	died |= fake_transport_is_dead(t.f);
	kbsworld_end();
	kbsworld_boot();
	kbsworld_until(kbsworld_gone, "gone");
	cr_assert_null(kbsworld_deployment());
	cr_assert_null(fake_api_get(t.api, &kobj_service, NS, RENDER_KBSCONFIG_SERVICE));
	kbsworld_end();
	return died;
}

Test(ctl_kbsconfig_life, it_may_be_killed_at_every_write)
{
	unsigned n = 1;

	while (life_of(n))
		n++;
	cr_assert_geq(n, 4, "%u", n);
}

Test(ctl_kbsconfig_life, a_failing_api_is_outlasted)
{
	for (int fault = FAKE_FAULT_409; fault <= FAKE_FAULT_SILENCE; fault++) {
		kbsworld_put("k");
		kbsworld_boot();
		fake_transport_fault(t.f, (enum fake_fault)fault, 3);
		kbsworld_until(kbsworld_installed, "installed");
		fake_api_delete(t.api, &kobj_kbsconfig, NS, "k");
		kbsworld_until(kbsworld_gone, "gone");
		cr_assert_null(kbsworld_deployment());
		kbsworld_end();
	}
}

/* ---- several, and others' */

static bool second_conflicts(void)
{
	return str_eq(kbsworld_reason("second", "Installed"), "Conflict");
}

Test(ctl_kbsconfig_life, a_second_one_waits_and_leaves_nothing)
{
	kbsworld_put("k");
	kbsworld_boot();
	kbsworld_until(kbsworld_installed, "installed");
	kbsworld_put("second");
	kbsworld_until(second_conflicts, "the second one conflicts");
	cr_assert_str_eq(kbsworld_reason("second", "Ready"), "NotInstalled");
	fake_api_delete(t.api, &kobj_kbsconfig, NS, "second");
	kbsworld_run(1000);
	cr_assert(kbsworld_installed());
}

Test(ctl_kbsconfig_life, the_finalizer_goes_when_the_deployment_is_gone_already)
{
	kbsworld_put("k");
	kbsworld_boot();
	kbsworld_until(kbsworld_installed, "installed");
	kbsworld_end();
	fake_api_delete(t.api, &kobj_deployment, NS, DEPLOYMENT);
	fake_api_delete(t.api, &kobj_kbsconfig, NS, "k");
	kbsworld_boot();
	kbsworld_until(kbsworld_gone, "gone");
}

/* The Deployment of the Trustee operator, which wrote it by POST and PUT; owner: a reference, or "". */
static void put_theirs(const char *owner)
{
	cleanup_free char *text = xasprintf(
		"{\"metadata\":{\"name\":\"" DEPLOYMENT
		"\",\"ownerReferences\":[%s],\"managedFields\":[{"
		"\"manager\":\"manager\",\"operation\":\"Update\",\"apiVersion\":\"apps/v1\",\"fieldsType\":"
		"\"FieldsV1\",\"fieldsV1\":{\"f:spec\":{\"f:template\":{\"f:spec\":{\"f:initContainers\":{\".\":{},"
		"\"k:{\\\"name\\\":\\\"secret-converter\\\"}\":{\".\":{},\"f:name\":{}}}}}}}}]},"
		"\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"kbs\",\"image\":\"kbs:theirs\"}],"
		"\"initContainers\":[{\"name\":\"secret-converter\"}]}}}}",
		owner);

	fake_api_put(t.api, &kobj_deployment, NS, text);
}

static const char *image(void)
{
	struct json_object *all =
		json_get_arr(kbsworld_deployment(), "spec/template/spec/containers");

	return json_get_str(json_at(all, 0), "image");
}

static bool is_taken(void)
{
	struct json_object *d = kbsworld_deployment();
	struct json_object *entries = json_get_arr(d, "metadata/managedFields");

	for (size_t i = 0; i < json_len(entries); i++)
		if (str_eq(json_get_str(json_at(entries, i), "manager"), "manager"))
			return false;
	return d && !json_get(d, "spec/template/spec/initContainers");
}

/* Its fields become ours, so that what is not rendered goes; the object stays. */
Test(ctl_kbsconfig_life, the_trustee_operators_deployment_is_taken_over_in_place)
{
	for (int owned = 0; owned < 2; owned++) {
		cleanup_free char *owner = NULL, *uid = NULL;

		kbsworld_put("k");
		owner = xasprintf(
			"{\"apiVersion\":\"confidentialcontainers.org/v1alpha1\",\"kind\":"
			"\"KbsConfig\",\"name\":\"k\",\"uid\":\"%s\",\"controller\":true}",
			json_get_str(
				fake_api_get(t.api, &kobj_kbsconfig, NS, "k"), "metadata/uid"));
		put_theirs(owned ? owner : "");
		uid = xstrdup(json_get_str(kbsworld_deployment(), "metadata/uid"));
		kbsworld_boot();
		kbsworld_until(kbsworld_installed, "installed");
		cr_expect(is_taken(), "%d", owned);
		cr_expect_str_eq(
			json_get_str(kbsworld_deployment(), "metadata/uid"), uid, "%d", owned);
		cr_expect(told("TakenOver", DEPLOYMENT), "%d", owned);
		cr_expect_str_eq(image(), "kbs:theirs", "%d", owned);
		cr_expect_not(told("ImageChanged", ""), "%d", owned);
		/* Its clients spoke to that one; another file is for another Trustee. */
		fake_api_merge(t.api, &kobj_kbsconfig, NS, "k",
			"{\"metadata\":{\"annotations\":{\"trusted-execution-clusters.io/trustee-layout\":\"legacy\"}}}");
		kbsworld_run(60 * 1000);
		cr_expect_str_eq(image(), render_kbsconfig_images_default.kbs_legacy);
		cr_expect(told("ImageChanged", "from kbs:theirs to ghcr.io/"), "%d", owned);
		kbsworld_end();
		fake_api_delete(t.api, &kobj_deployment, NS, DEPLOYMENT);
		fake_api_delete(t.api, &kobj_service, NS, RENDER_KBSCONFIG_SERVICE);
		fake_api_merge(
			t.api, &kobj_kbsconfig, NS, "k", "{\"metadata\":{\"finalizers\":null}}");
		fake_api_delete(t.api, &kobj_kbsconfig, NS, "k");
	}
}

Test(ctl_kbsconfig_life, the_trustee_operators_deployment_of_another_one_stays)
{
	kbsworld_put("k");
	put_theirs("{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"x\",\"uid\":\"x\","
		   "\"controller\":true}");
	kbsworld_boot();
	kbsworld_run(60 * 1000);
	cr_assert_str_eq(kbsworld_reason("k", "Installed"), "Conflict");
	cr_assert_not_null(json_get(kbsworld_deployment(), "spec/template/spec/initContainers"));
}

/* Somebody took the finalizer away: the KbsConfig is gone, and its Deployment is the garbage
 * collector's, while the operator lives and when it starts. */
Test(ctl_kbsconfig_life, one_that_went_without_us_is_left_to_the_garbage_collector)
{
	kbsworld_put("k");
	kbsworld_boot();
	kbsworld_until(kbsworld_installed, "installed");
	kbsworld_pods_are_ready();
	fake_transport_forget(t.f);
	fake_api_merge(t.api, &kobj_kbsconfig, NS, "k", "{\"metadata\":{\"finalizers\":null}}");
	fake_api_delete(t.api, &kobj_kbsconfig, NS, "k");
	kbsworld_run(60 * 1000);
	cr_assert_eq(fake_transport_writes(t.f), 0);
	kbsworld_end();
	kbsworld_boot();
	kbsworld_run(60 * 1000);
	cr_assert(kbsworld_gone() && kbsworld_deployment());
	cr_assert_eq(fake_transport_writes(t.f), 0);
	fake_api_delete(t.api, &kobj_deployment, NS, DEPLOYMENT);
	fake_api_delete(t.api, &kobj_service, NS, RENDER_KBSCONFIG_SERVICE);
	kbsworld_run(60 * 1000);
	cr_assert_eq(fake_transport_writes(t.f), 0);
}
