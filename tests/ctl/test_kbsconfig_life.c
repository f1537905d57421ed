/* SPDX-License-Identifier: MIT */
/*
 * KbsConfigs on the in-memory API: what each change costs, lives that end at every write, and an API
 * that fails. A life has its own transport, caches, watches and controller, as a process has.
 */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "fake/transport.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/ctl/kbsconfig.h"
#include "tec/k8s/watch.h"
#include "tec/model/kbsconfig.h"

#define NS         "ns"
#define DEPLOYMENT RENDER_KBSCONFIG_DEPLOYMENT
#define TOML       "[http_server]\\ninsecure_http = true\\n"

static const enum state_of watched[] = {STATE_KBSCONFIGS, STATE_SERVICES, STATE_DEPLOYMENTS,
	STATE_INPUT_CONFIGMAPS, STATE_INPUT_SECRETS};

static struct loop *l;
static struct fake_api *api;

/* One life. */
static struct fake_transport *f;
static struct k8s_transport *seam;
static struct state state;
static struct k8s_watch *watch[ARRAY_LEN(watched)];
static struct k8s_events *events;
static struct ctl_env env;
static struct ctl_kind *kind;

static void quiet(enum log_level level, const char *line, void *arg)
{
	if (getenv("TEST_LOG"))
		fprintf(stderr, "%s\n", line);
}

static void boot(void)
{
	f = fake_transport_new(l);
	fake_transport_set_api(f, api);
	seam = fake_transport_seam(f);
	state = (struct state)STATE_INIT;
	for (size_t i = 0; i < ARRAY_LEN(watched); i++) {
		const struct state_kind *k = &state_kinds[watched[i]];
		const struct k8s_watch_conf conf = {
			.gvk = k->gvk, .ns = NS, .secret = watched[i] == STATE_INPUT_SECRETS};

		state.cache[watched[i]] = k8s_cache_new(&k->cache);
		watch[i] = k8s_watch_new(l, seam, state.cache[watched[i]], &conf);
	}
	events = k8s_events_new(l, seam, NS, "kbsconfig-controller", "test");
	env = (struct ctl_env){.loop = l,
		.api = seam,
		.ns = NS,
		.state = &state,
		.events = events,
		.kbsconfig_images = render_kbsconfig_images_default};
	kind = ctl_kbsconfig_new(&env);
	for (size_t i = 0; i < ARRAY_LEN(watched); i++)
		k8s_watch_start(watch[i]);
	for (int i = 0; i < 600 && !state_filled(&state, STATE_FOR_ALL); i++)
		loop_advance(l, 100);
	cr_assert(state_filled(&state, STATE_FOR_ALL));
	fake_transport_forget(f);
	ctl_kind_on(kind);
	loop_drain(l);
}

static void end(void)
{
	ctl_kind_free(kind);
	for (size_t i = 0; i < ARRAY_LEN(watched); i++)
		k8s_watch_free(watch[i]);
	k8s_events_free(events);
	for (size_t i = 0; i < ARRAY_LEN(watched); i++)
		k8s_cache_free(state.cache[watched[i]]);
	k8s_transport_free(seam);
	kind = NULL;
}

static void put_inputs(void)
{
	fake_api_put(api, &kobj_configmap, NS,
		"{\"metadata\":{\"name\":\"conf\"},\"data\":{\"kbs-config.toml\":\"" TOML "\"}}");
	fake_api_put(api, &kobj_configmap, NS,
		"{\"metadata\":{\"name\":\"policy\"},\"data\":{\"policy.rego\":\"p\"}}");
	fake_api_put(api, &kobj_secret, NS,
		"{\"metadata\":{\"name\":\"res\"},\"data\":{\"key1\":\"MQ==\"}}");
}

static void put_kbsconfig(const char *name)
{
	cleanup_free char *text = xasprintf(
		"{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"kbsConfigMapName\":\"conf\","
		"\"kbsResourcePolicyConfigMapName\":\"policy\",\"kbsSecretResources\":[\"res\"]}}",
		name);

	fake_api_put(api, &kobj_kbsconfig, NS, text);
}

static void up(void)
{
	clock_fake_start(1000000, 1800000000);
	log_capture(quiet, NULL);
	l = loop_new();
	api = fake_api_new(l);
	put_inputs();
}

static void down(void)
{
	if (kind)
		end();
	fake_api_free(api);
	loop_free(l);
	log_capture(NULL, NULL);
	clock_fake_stop();
}

TestSuite(ctl_kbsconfig_life, .init = up, .fini = down);

static const char *reason(const char *name, const char *type)
{
	const char *s = fake_api_condition(api, &kobj_kbsconfig, NS, name, type, "reason");

	return s ? s : "";
}

static struct json_object *deployment(void)
{
	return fake_api_get(api, &kobj_deployment, NS, DEPLOYMENT);
}

static bool installed(void)
{
	return str_eq(reason("k", "Installed"), "Installed") && deployment() &&
	       fake_api_get(api, &kobj_service, NS, RENDER_KBSCONFIG_SERVICE);
}

static void until(bool (*there)(void), const char *what)
{
	for (int i = 0; i < 1200 && !there(); i++)
		loop_advance(l, 100);
	cr_assert(there(), "%s: %s", what, reason("k", "Installed"));
}

static size_t requests(void) /* Events are for people */
{
	return fake_transport_requests(f) - fake_transport_count(f, "create", "events") -
	       fake_transport_count(f, "patch", "events");
}

static void pods_are_ready(void)
{
	fake_api_merge(api, &kobj_deployment, NS, DEPLOYMENT,
		"{\"status\":{\"observedGeneration\":1,\"replicas\":1,\"updatedReplicas\":1,"
		"\"readyReplicas\":1}}");
	loop_advance(l, 1000);
}

/* ---- what it costs */

Test(ctl_kbsconfig_life, an_install_is_four_requests_and_then_silence)
{
	put_kbsconfig("k");
	boot();
	until(installed, "installed");
	cr_assert_eq(requests(), 4, "finalizer, Deployment, Service, status: %zu", requests());
	pods_are_ready();
	cr_assert_str_eq(reason("k", "Ready"), "Ready");
	fake_transport_forget(f);
	loop_advance(l, 2 * 60 * 60 * 1000);
	cr_assert_eq(fake_transport_writes(f), 0);
}

Test(ctl_kbsconfig_life, a_changed_input_is_at_most_three_requests)
{
	put_kbsconfig("k");
	boot();
	until(installed, "installed");
	pods_are_ready();
	fake_transport_forget(f);
	fake_api_put(api, &kobj_configmap, NS,
		"{\"metadata\":{\"name\":\"policy\"},\"data\":{\"policy.rego\":\"other\"}}");
	loop_advance(l, 1000);
	cr_assert_eq(fake_transport_count(f, "apply", "deployments"), 1);
	cr_assert_leq(requests(), 3, "GET, apply, status: %zu", requests());
	fake_transport_forget(f);
	fake_api_put(api, &kobj_configmap, NS,
		"{\"metadata\":{\"name\":\"conf\"},\"data\":{\"kbs-config.toml\":\"" TOML
		"sockets = [\\\"[::]:9000\\\"]\"}}");
	loop_advance(l, 1000);
	cr_assert_eq(fake_transport_count(f, "apply", "services"), 1, "another port");
	/* The value of a resource, labels, and what nobody names: no write. */
	fake_transport_forget(f);
	fake_api_put(api, &kobj_secret, NS,
		"{\"metadata\":{\"name\":\"res\"},\"data\":{\"key1\":\"Mg==\"}}");
	fake_api_merge(
		api, &kobj_configmap, NS, "policy", "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}");
	fake_api_put(api, &kobj_configmap, NS, "{\"metadata\":{\"name\":\"other\"},\"data\":{}}");
	loop_advance(l, 1000);
	cr_assert_eq(fake_transport_writes(f), 0);
}

Test(ctl_kbsconfig_life, a_start_writes_nothing)
{
	put_kbsconfig("k");
	boot();
	until(installed, "installed");
	pods_are_ready();
	end();
	boot();
	loop_advance(l, 60 * 1000);
	cr_assert_eq(fake_transport_writes(f), 0);
}

/* ---- lives that end */

static bool gone(void)
{
	return !fake_api_get(api, &kobj_kbsconfig, NS, "k");
}

/* From nothing to a KbsConfig that is gone again, with a life that ends after n writes; returns
 * whether it did end. */
static bool life_of(unsigned n)
{
	bool died;

	put_kbsconfig("k");
	boot();
	fake_transport_die_after(f, n);
	loop_advance(l, 20 * 1000);
	if (!fake_transport_is_dead(f))
		until(installed, "installed");
	died = fake_transport_is_dead(f);
	end();
	boot();
	until(installed, "installed by the next one");
	fake_api_delete(api, &kobj_kbsconfig, NS, "k");
	fake_transport_die_after(f, n);
	loop_advance(l, 20 * 1000);
	died |= fake_transport_is_dead(f);
	end();
	boot();
	until(gone, "gone");
	cr_assert_null(deployment());
	cr_assert_null(fake_api_get(api, &kobj_service, NS, RENDER_KBSCONFIG_SERVICE));
	end();
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
		put_kbsconfig("k");
		boot();
		fake_transport_fault(f, (enum fake_fault)fault, 3);
		until(installed, "installed");
		fake_api_delete(api, &kobj_kbsconfig, NS, "k");
		until(gone, "gone");
		cr_assert_null(deployment());
		end();
	}
}

/* ---- several, and others' */

static bool second_conflicts(void)
{
	return str_eq(reason("second", "Installed"), "Conflict");
}

Test(ctl_kbsconfig_life, a_second_one_waits_and_leaves_nothing)
{
	put_kbsconfig("k");
	boot();
	until(installed, "installed");
	put_kbsconfig("second");
	until(second_conflicts, "the second one conflicts");
	cr_assert_str_eq(reason("second", "Ready"), "NotInstalled");
	fake_api_delete(api, &kobj_kbsconfig, NS, "second");
	loop_advance(l, 1000);
	cr_assert(installed());
}

Test(ctl_kbsconfig_life, the_finalizer_goes_when_the_deployment_is_gone_already)
{
	put_kbsconfig("k");
	boot();
	until(installed, "installed");
	end();
	fake_api_delete(api, &kobj_deployment, NS, DEPLOYMENT);
	fake_api_delete(api, &kobj_kbsconfig, NS, "k");
	boot();
	until(gone, "gone");
}

Test(ctl_kbsconfig_life, the_trustee_operators_deployment_is_made_again)
{
	const char *uid;
	cleanup_free char *text = NULL;

	put_kbsconfig("k");
	uid = json_get_str(fake_api_get(api, &kobj_kbsconfig, NS, "k"), "metadata/uid");
	text = xasprintf("{\"metadata\":{\"name\":\"" DEPLOYMENT "\",\"ownerReferences\":[{"
			 "\"apiVersion\":\"confidentialcontainers.org/v1alpha1\",\"kind\":"
			 "\"KbsConfig\",\"name\":\"k\",\"uid\":\"%s\",\"controller\":true}]},"
			 "\"spec\":{\"template\":{\"spec\":{\"initContainers\":[{\"name\":"
			 "\"secret-converter\"}]}}}}",
		uid);
	fake_api_put(api, &kobj_deployment, NS, text);
	boot();
	until(installed, "installed");
	cr_assert_null(json_get(deployment(), "spec/template/spec/initContainers"));
}
