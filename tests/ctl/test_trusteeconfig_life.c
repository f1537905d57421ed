/* SPDX-License-Identifier: MIT */
/*
 * TrusteeConfigs on the in-memory API: inputs that cannot be used, and what their owner is told. All
 * else is in tests/e2e/test_trustee_alone.py.
 */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "fake/transport.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/ctl/trusteeconfig.h"
#include "tec/k8s/watch.h"

#define NS "ns"

static const enum state_of watched[] = {STATE_KBSCONFIGS, STATE_TRUSTEECONFIGS,
	STATE_INPUT_CONFIGMAPS, STATE_INPUT_SECRETS, STATE_CLAIMS};

static struct {
	struct loop *loop;
	struct fake_api *api;
	struct fake_transport *f;
	struct k8s_transport *seam;
	struct state state;
	struct k8s_watch *watch[ARRAY_LEN(watched)];
	struct k8s_events *events;
	struct ctl_env env;
	struct ctl_kind *kind;
} t;

static void quiet(enum log_level level, const char *line, void *arg)
{
	if (getenv("TEST_LOG"))
		fprintf(stderr, "%s\n", line);
}

static void up(void)
{
	clock_fake_start(1000000, 1800000000);
	log_capture(quiet, NULL);
	t.loop = loop_new();
	t.api = fake_api_new(t.loop);
	t.f = fake_transport_new(t.loop);
	fake_transport_set_api(t.f, t.api);
	t.seam = fake_transport_seam(t.f);
	t.state = (struct state)STATE_INIT;
	for (size_t i = 0; i < ARRAY_LEN(watched); i++) {
		const struct state_kind *k = &state_kinds[watched[i]];
		const struct k8s_watch_conf conf = {
			.gvk = k->gvk, .ns = NS, .secret = watched[i] == STATE_INPUT_SECRETS};

		t.state.cache[watched[i]] = k8s_cache_new(&k->cache);
		t.watch[i] = k8s_watch_new(t.loop, t.seam, t.state.cache[watched[i]], &conf);
		k8s_watch_start(t.watch[i]);
	}
	t.events = k8s_events_new(t.loop, t.seam, NS, "kbsconfig-controller", "test");
	t.env = (struct ctl_env){
		.loop = t.loop, .api = t.seam, .ns = NS, .state = &t.state, .events = t.events};
	t.kind = ctl_trusteeconfig_new(&t.env);
	loop_advance(t.loop, 1000);
	cr_assert(state_filled(&t.state, STATE_FOR_TRUSTEECONFIGS));
	ctl_kind_on(t.kind);
}

static void down(void)
{
	ctl_kind_free(t.kind);
	for (size_t i = 0; i < ARRAY_LEN(watched); i++)
		k8s_watch_free(t.watch[i]);
	k8s_events_free(t.events);
	for (size_t i = 0; i < ARRAY_LEN(watched); i++)
		k8s_cache_free(t.state.cache[watched[i]]);
	k8s_transport_free(t.seam);
	fake_api_free(t.api);
	loop_free(t.loop);
	log_capture(NULL, NULL);
	clock_fake_stop();
}

TestSuite(ctl_trusteeconfig_life, .init = up, .fini = down);

static void put_tls(const char *key)
{
	cleanup_free char *text =
		xasprintf("{\"metadata\":{\"name\":\"tls\"},\"type\":\"kubernetes.io/tls\","
			  "\"data\":{\"tls.key\":\"%s\",\"tls.crt\":\"Yw==\"}}",
			key);

	fake_api_put(t.api, &kobj_secret, NS, text);
}

static void put_trusteeconfig(void)
{
	fake_api_put(t.api, &kobj_trusteeconfig, NS,
		"{\"metadata\":{\"name\":\"t\"},\"spec\":{\"profileType\":\"Permissive\","
		"\"httpsSpec\":{\"tlsSecretName\":\"tls\"}}}");
	loop_advance(t.loop, 10 * 1000);
}

static const char *configured(const char *member)
{
	const char *s =
		fake_api_condition(t.api, &kobj_trusteeconfig, NS, "t", "Configured", member);

	return s ? s : "";
}

Test(ctl_trusteeconfig_life, an_edited_file_may_be_larger_than_a_secret)
{
	cleanup_strbuf struct strbuf o = STRBUF_INIT;

	put_tls("aw==");
	put_trusteeconfig();
	cr_assert_str_eq(configured("reason"), "Configured", "%s", configured("message"));
	strbuf_adds(&o, "{\"data\":{\"kbs-config.toml\":\"[http_server]\\n#");
	for (size_t i = 0; i < 70000; i++)
		strbuf_addc(&o, 'x');
	strbuf_adds(&o, "\\n\"}}");
	fake_api_merge(t.api, &kobj_configmap, NS, "t-kbs-config", strbuf_str(&o));
	fake_api_merge(t.api, &kobj_trusteeconfig, NS, "t",
		"{\"spec\":{\"tlsConfig\":{\"profile\":\"old\"}}}");
	loop_advance(t.loop, 10 * 1000);
	cr_assert_str_eq(configured("reason"), "Edited");
	cr_assert(strstr(configured("message"), "64 KiB"), "%s", configured("message"));
	fake_api_merge(t.api, &kobj_configmap, NS, "t-kbs-config",
		"{\"data\":{\"kbs-config.toml\":\"[http_server]\\n\"}}");
	loop_advance(t.loop, 10 * 1000);
	cr_assert_str_eq(configured("reason"), "Configured", "%s", configured("message"));
}

Test(ctl_trusteeconfig_life, a_tls_secret_without_a_value_is_told_and_waited_for)
{
	put_tls("");
	put_trusteeconfig();
	cr_assert_str_eq(configured("reason"), "WriteRefused", "%s", configured("message"));
	cr_assert(strstr(configured("message"), "tls.key"), "%s", configured("message"));
	fake_transport_forget(t.f);
	loop_advance(t.loop, 60 * 60 * 1000);
	cr_assert_leq(fake_transport_count(t.f, "GET", "secrets"), 130);
	put_tls("aw==");
	loop_advance(t.loop, 60 * 1000);
	cr_assert_str_eq(configured("reason"), "Configured", "%s", configured("message"));
}

Test(ctl_trusteeconfig_life, a_tls_secret_that_may_not_be_read_is_told)
{
	struct fake_expect *e =
		fake_transport_expect(t.f, "GET", "/api/v1/namespaces/" NS "/secrets/tls");

	fake_expect_times(e, 0);
	fake_expect_answer(e, 403,
		"{\"kind\":\"Status\",\"code\":403,\"reason\":\"Forbidden\",\"message\":\"no\"}");
	put_tls("aw==");
	put_trusteeconfig();
	cr_assert_str_eq(configured("reason"), "WriteRefused", "%s", configured("message"));
}
