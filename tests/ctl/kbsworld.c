/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "ctl/kbsworld.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/ctl/kbsconfig.h"
#include "tec/ctl/trusteeconfig.h"
#include "tec/k8s/watch.h"

static const enum caches_of watched[] = {CACHES_KBSCONFIGS, CACHES_SERVICES, CACHES_DEPLOYMENTS,
	CACHES_INPUT_CONFIGMAPS, CACHES_INPUT_SECRETS, CACHES_TRUSTEECONFIGS, CACHES_CLAIMS};

struct kbsworld t;

/* One life. */
static struct {
	struct k8s_transport *seam;
	struct caches caches;
	struct k8s_watch *watch[ARRAY_LEN(watched)];
	struct k8s_events *events;
	struct ctl_env env;
	struct ctl_kind *kind, *trusteeconfigs; /* NULL: nobody lives */
} life;

static void quiet(enum log_level level, const char *line, void *arg)
{
	if (getenv("TEST_LOG"))
		fprintf(stderr, "%s\n", line);
}

static bool is_filled(void)
{
	return caches_filled(&life.caches, CACHES_FOR_ALL) &&
	       caches_filled(&life.caches, CACHES_FOR_TRUSTEECONFIGS);
}

void kbsworld_boot(void)
{
	t.f = fake_transport_new(t.loop);
	fake_transport_set_api(t.f, t.api);
	life.seam = fake_transport_seam(t.f);
	life.caches = (struct caches)CACHES_INIT;
	for (size_t i = 0; i < ARRAY_LEN(watched); i++) {
		const struct caches_kind *k = &caches_kinds[watched[i]];
		const struct k8s_watch_conf conf = {
			.gvk = k->gvk, .ns = NS, .secret = watched[i] == CACHES_INPUT_SECRETS};

		life.caches.cache[watched[i]] = k8s_cache_new(&k->cache);
		life.watch[i] =
			k8s_watch_new(t.loop, life.seam, life.caches.cache[watched[i]], &conf);
	}
	life.events = k8s_events_new(life.seam, NS, "kbsconfig-controller", "test");
	life.env = (struct ctl_env){.loop = t.loop,
		.api = life.seam,
		.ns = NS,
		.caches = &life.caches,
		.events = life.events,
		.kbsconfig_images = render_kbsconfig_images_default};
	if (t.image)
		life.env.kbsconfig_images.kbs = t.image;
	life.kind = ctl_kbsconfig_new(&life.env);
	life.trusteeconfigs = ctl_trusteeconfig_new(&life.env);
	for (size_t i = 0; i < ARRAY_LEN(watched); i++)
		k8s_watch_start(life.watch[i]);
	for (int i = 0; i < 600 && !is_filled(); i++)
		loop_advance(t.loop, 100);
	cr_assert(is_filled());
	fake_transport_forget(t.f);
	if (t.dies)
		fake_transport_die_after(t.f, t.dies);
	ctl_kind_on(life.kind);
	ctl_kind_on(life.trusteeconfigs);
	loop_drain(t.loop);
}

void kbsworld_end(void)
{
	ctl_kind_free(life.trusteeconfigs);
	ctl_kind_free(life.kind);
	for (size_t i = 0; i < ARRAY_LEN(watched); i++)
		k8s_watch_free(life.watch[i]);
	k8s_events_free(life.events);
	for (size_t i = 0; i < ARRAY_LEN(watched); i++)
		k8s_cache_free(life.caches.cache[watched[i]]);
	k8s_transport_free(life.seam);
	life.kind = NULL;
}

void kbsworld_run(uint64_t ms)
{
	loop_advance(t.loop, ms);
}

void kbsworld_put_inputs(void)
{
	fake_api_put(t.api, &kobj_configmap, NS,
		"{\"metadata\":{\"name\":\"conf\"},\"data\":{\"kbs-config.toml\":\"" TOML "\"}}");
	fake_api_put(t.api, &kobj_configmap, NS,
		"{\"metadata\":{\"name\":\"policy\"},\"data\":{\"policy.rego\":\"p\"}}");
	fake_api_put(t.api, &kobj_secret, NS,
		"{\"metadata\":{\"name\":\"res\"},\"data\":{\"key1\":\"MQ==\"}}");
}

void kbsworld_put(const char *name)
{
	cleanup_free char *text = xasprintf(
		"{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"kbsConfigMapName\":\"conf\","
		"\"kbsResourcePolicyConfigMapName\":\"policy\",\"kbsSecretResources\":[\"res\"]}}",
		name);

	fake_api_put(t.api, &kobj_kbsconfig, NS, text);
}

void kbsworld_start(void)
{
	clock_fake_start(1000000, 1800000000);
	log_capture(quiet, NULL);
	t = (struct kbsworld){.loop = loop_new()};
	t.api = fake_api_new(t.loop);
	kbsworld_put_inputs();
}

void kbsworld_stop(void)
{
	if (life.kind)
		kbsworld_end();
	fake_api_free(t.api);
	loop_free(t.loop);
	log_capture(NULL, NULL);
	clock_fake_stop();
}

static const char *condition(const char *name, const char *type, const char *member)
{
	const char *s = fake_api_condition(t.api, &kobj_kbsconfig, NS, name, type, member);

	return s ? s : "";
}

const char *kbsworld_reason(const char *name, const char *type)
{
	return condition(name, type, "reason");
}

const char *kbsworld_message(const char *name, const char *type)
{
	return condition(name, type, "message");
}

struct json_object *kbsworld_deployment(void)
{
	return fake_api_get(t.api, &kobj_deployment, NS, DEPLOYMENT);
}

bool kbsworld_installed(void)
{
	return str_eq(kbsworld_reason("k", "Installed"), "Installed") && kbsworld_deployment() &&
	       fake_api_get(t.api, &kobj_service, NS, RENDER_KBSCONFIG_SERVICE);
}

bool kbsworld_gone(void)
{
	return !fake_api_get(t.api, &kobj_kbsconfig, NS, "k");
}

void kbsworld_until(bool (*there)(void), const char *what)
{
	for (int i = 0; i < 1200 && !there(); i++)
		loop_advance(t.loop, 100);
	cr_assert(there(), "%s: %s", what, kbsworld_reason("k", "Installed"));
}

size_t kbsworld_requests(void)
{
	return fake_transport_requests(t.f) - fake_transport_count(t.f, "create", "events") -
	       fake_transport_count(t.f, "patch", "events");
}

void kbsworld_pods_are_ready(void)
{
	cleanup_free char *status = xasprintf(
		"{\"status\":{\"observedGeneration\":%d,\"replicas\":1,\"updatedReplicas\":1,\"readyReplicas\":1}}",
		(int)json_get_int(kbsworld_deployment(), "metadata/generation", 0));

	fake_api_merge(t.api, &kobj_deployment, NS, DEPLOYMENT, status);
	loop_advance(t.loop, 1000);
}
