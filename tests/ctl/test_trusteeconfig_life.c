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

static const enum caches_of watched[] = {CACHES_KBSCONFIGS, CACHES_TRUSTEECONFIGS,
	CACHES_INPUT_CONFIGMAPS, CACHES_INPUT_SECRETS, CACHES_CLAIMS};

static struct {
	struct loop *loop;
	struct fake_api *api;
	struct fake_transport *f;
	struct k8s_transport *seam;
	struct caches caches;
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

/* A life has its own transport, caches, watches and controller, as a process has. */
static void boot(void)
{
	t.f = fake_transport_new(t.loop);
	fake_transport_set_api(t.f, t.api);
	t.seam = fake_transport_seam(t.f);
	t.caches = (struct caches)CACHES_INIT;
	for (size_t i = 0; i < ARRAY_LEN(watched); i++) {
		const struct caches_kind *k = &caches_kinds[watched[i]];
		const struct k8s_watch_conf conf = {
			.gvk = k->gvk, .ns = NS, .secret = watched[i] == CACHES_INPUT_SECRETS};

		t.caches.cache[watched[i]] = k8s_cache_new(&k->cache);
		t.watch[i] = k8s_watch_new(t.loop, t.seam, t.caches.cache[watched[i]], &conf);
		k8s_watch_start(t.watch[i]);
	}
	t.events = k8s_events_new(t.seam, NS, "kbsconfig-controller", "test");
	t.env = (struct ctl_env){
		.loop = t.loop, .api = t.seam, .ns = NS, .caches = &t.caches, .events = t.events};
	t.kind = ctl_trusteeconfig_new(&t.env);
	loop_advance(t.loop, 1000);
	cr_assert(caches_filled(&t.caches, CACHES_FOR_TRUSTEECONFIGS));
	fake_transport_forget(t.f);
	ctl_kind_on(t.kind);
}

static void end(void)
{
	ctl_kind_free(t.kind);
	for (size_t i = 0; i < ARRAY_LEN(watched); i++)
		k8s_watch_free(t.watch[i]);
	k8s_events_free(t.events);
	for (size_t i = 0; i < ARRAY_LEN(watched); i++)
		k8s_cache_free(t.caches.cache[watched[i]]);
	k8s_transport_free(t.seam);
}

static void up(void)
{
	clock_fake_start(1000000, 1800000000);
	log_capture(quiet, NULL);
	t.loop = loop_new();
	t.api = fake_api_new(t.loop);
	boot();
}

static void down(void)
{
	end();
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
	for (size_t i = 0; i < 140000; i++)
		strbuf_addc(&o, 'x');
	strbuf_adds(&o, "\\n\"}}");
	fake_api_merge(t.api, &kobj_configmap, NS, "t-kbs-config", strbuf_str(&o));
	fake_api_merge(t.api, &kobj_trusteeconfig, NS, "t",
		"{\"spec\":{\"tlsConfig\":{\"profile\":\"old\"}}}");
	loop_advance(t.loop, 10 * 1000);
	cr_assert_str_eq(configured("reason"), "Edited");
	cr_assert(strstr(configured("message"), "128 KiB"), "%s", configured("message"));
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
	cr_assert_leq(fake_transport_count(t.f, "GET", "secrets"), 60 * 60 / 24 + 8);
	put_tls("aw==");
	loop_advance(t.loop, 60 * 1000);
	cr_assert_str_eq(configured("reason"), "Configured", "%s", configured("message"));
}

/* Keys count, not the type, which the cache does not know. */
Test(ctl_trusteeconfig_life, a_tls_secret_is_waited_for_and_may_be_made_again)
{
	put_trusteeconfig();
	cr_assert_str_eq(configured("reason"), "InputMissing");
	cr_assert(strstr(configured("message"), "Secret tls, which spec.httpsSpec.tlsSecretName"),
		"%s", configured("message"));
	fake_api_put(t.api, &kobj_configmap, NS,
		"{\"metadata\":{\"name\":\"tls\"},\"data\":{\"tls.key\":\"k\",\"tls.crt\":\"c\"}}");
	fake_api_put(t.api, &kobj_secret, NS,
		"{\"metadata\":{\"name\":\"tls\"},\"type\":\"Opaque\",\"data\":{\"tls.crt\":\"Yw==\"}}");
	loop_advance(t.loop, 1000);
	cr_assert_str_eq(configured("reason"), "InputMissing");
	cr_assert(strstr(configured("message"), "Secret tls has no key tls.key"), "%s",
		configured("message"));
	fake_api_put(t.api, &kobj_secret, NS,
		"{\"metadata\":{\"name\":\"tls\"},\"type\":\"Opaque\",\"data\":{\"tls.crt\":\"Yw==\","
		"\"tls.key\":\"aw==\"}}");
	loop_advance(t.loop, 10 * 1000);
	cr_assert_str_eq(configured("reason"), "Configured", "%s", configured("message"));
	fake_transport_forget(t.f);
	fake_api_delete(t.api, &kobj_secret, NS, "tls");
	loop_advance(t.loop, 10 * 1000);
	cr_assert_str_eq(configured("reason"), "InputMissing");
	cr_assert_not_null(fake_api_get(t.api, &kobj_secret, NS, "t-https-key-secret"));
	put_tls("aw==");
	loop_advance(t.loop, 10 * 1000);
	cr_assert_str_eq(configured("reason"), "Configured");
	cr_assert_eq(fake_transport_count(t.f, "delete", "secrets"), 0, "the same content");
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

/* ---- the KbsConfig */

/* What the garbage collector does when it is deleted. */
static void collect(void)
{
	static const struct {
		const struct kobj_gvk *gvk;
		const char *name;
	} all[] = {{&kobj_trusteeconfig, "t"}, {&kobj_kbsconfig, "t-kbs-config"},
		{&kobj_configmap, "t-kbs-config"}, {&kobj_configmap, "t-resource-policy"},
		{&kobj_configmap, "t-rvps-reference-values"},
		{&kobj_configmap, "t-attestation-policy-cpu"},
		{&kobj_configmap, "t-attestation-policy-gpu"}, {&kobj_secret, "t-auth-secret"},
		{&kobj_secret, "attestation-status"}, {&kobj_secret, "t-https-key-secret"},
		{&kobj_secret, "t-https-cert-secret"}, {&kobj_secret, "t-attestation-key-secret"},
		{&kobj_secret, "t-attestation-cert-secret"}};

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (fake_api_get(t.api, all[i].gvk, NS, all[i].name))
			fake_api_delete(t.api, all[i].gvk, NS, all[i].name);
	loop_advance(t.loop, 1000);
}

static const char *data_of(const struct kobj_gvk *gvk, const char *name, const char *key)
{
	struct json_object *o = fake_api_get(t.api, gvk, NS, name),
			   *data = o ? json_get_obj(o, "data") : NULL, *v = NULL;

	return data && json_object_object_get_ex(data, key, &v) ? json_object_get_string(v) : NULL;
}

static bool is_there(struct json_object *name)
{
	const char *s = json_object_get_string(name);

	return fake_api_get(t.api, &kobj_configmap, NS, s) ||
	       fake_api_get(t.api, &kobj_secret, NS, s);
}

/* A KbsConfig that names what is not there would be a Trustee that does not start. */
static bool kbsconfig_is_whole(void)
{
	struct json_object *o = fake_api_get(t.api, &kobj_kbsconfig, NS, "t-kbs-config"),
			   *spec = o ? json_get_obj(o, "spec") : NULL;
	bool whole = true;

	if (!spec)
		return true;
	json_object_object_foreach (spec, field, value) {
		const char *end = strstr(field, "Name");

		if (end && str_eq(end, "Name"))
			whole &= is_there(value);
		else if (str_eq(field, "kbsSecretResources"))
			whole &= is_there(json_object_array_get_idx(value, 0));
	}
	return whole;
}

Test(ctl_trusteeconfig_life, a_child_that_is_refused_is_named_and_there_is_no_kbsconfig)
{
	static const char *const children[][3] = {
		{"PATCH", "/configmaps/t-kbs-config*", "t-kbs-config"},
		{"PATCH", "/configmaps/t-attestation-policy-gpu*", "t-attestation-policy-gpu"},
		{"POST", "/secrets*", "t-auth-secret"}};

	for (size_t i = 0; i < ARRAY_LEN(children); i++) {
		cleanup_free char *path = xasprintf("/api/v1/namespaces/" NS "%s", children[i][1]);
		struct fake_expect *e = fake_transport_expect(t.f, children[i][0], path);

		fake_expect_times(e, 0);
		fake_expect_answer(e, 403,
			"{\"kind\":\"Status\",\"code\":403,\"reason\":\"Forbidden\",\"message\":\"no\"}");
		put_tls("aw==");
		put_trusteeconfig();
		loop_advance(t.loop, 60 * 1000);
		cr_assert_str_eq(configured("reason"), "WriteRefused", "%s", children[i][2]);
		cr_assert(
			strstr(configured("message"), children[i][2]), "%s", configured("message"));
		cr_assert_null(fake_api_get(t.api, &kobj_kbsconfig, NS, "t-kbs-config"), "%s",
			children[i][2]);
		end();
		boot();
		loop_advance(t.loop, 60 * 1000);
		cr_assert_str_eq(configured("reason"), "Configured", "%s", children[i][2]);
		cr_assert(kbsconfig_is_whole());
		collect();
	}
}

Test(ctl_trusteeconfig_life, is_ready_follows_the_kbsconfig)
{
	static const bool ready[] = {false, true, false, true};

	put_tls("aw==");
	put_trusteeconfig();
	for (size_t i = 0; i < ARRAY_LEN(ready); i++) {
		cleanup_free char *text =
			xasprintf("{\"status\":{\"isReady\":%s}}", ready[i] ? "true" : "false");
		struct json_object *o;

		fake_api_merge(t.api, &kobj_kbsconfig, NS, "t-kbs-config", text);
		loop_advance(t.loop, 1000);
		o = fake_api_get(t.api, &kobj_trusteeconfig, NS, "t");
		cr_assert_eq(json_get_bool(o, "status/isReady", !ready[i]), ready[i]);
		cr_assert_str_eq(json_get_str(o, "status/statusDescription"),
			ready[i]
				? "TrusteeConfig is ready and KbsConfig is deployed successfully"
				: "TrusteeConfig reconciled but KbsConfig deployment is in progress");
	}
}

/* What runs is of the former profile, goes on, and is not what was asked for. */
Test(ctl_trusteeconfig_life, a_profile_that_cannot_be_applied_is_not_ready)
{
	static const struct {
		const char *spec, *says;
	} rows[] = {
		{"{\"profileType\":\"Restricted\",\"httpsSpec\":null}",
			"Profile Restricted needs spec.httpsSpec.tlsSecretName."},
		{"{\"profileType\":\"Restricted\",\"attestationTokenVerificationSpec\":{"
		 "\"tlsSecretName\":\"absent\"}}",
			"Secret absent, which spec.attestationTokenVerificationSpec.tlsSecretName names, does not exist."},
		{"{\"profileType\":\"Permisive\"}", "spec.profileType"},
	};

	put_tls("aw==");
	put_trusteeconfig();
	fake_api_merge(
		t.api, &kobj_kbsconfig, NS, "t-kbs-config", "{\"status\":{\"isReady\":true}}");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		cleanup_free char *patch = xasprintf("{\"spec\":%s}", rows[i].spec);
		struct json_object *o;
		const char *said;

		loop_advance(t.loop, 1000);
		o = fake_api_get(t.api, &kobj_trusteeconfig, NS, "t");
		cr_assert(json_get_bool(o, "status/isReady", false), "%zu", i);
		fake_transport_forget(t.f);
		fake_api_merge(t.api, &kobj_trusteeconfig, NS, "t", patch);
		loop_advance(t.loop, 10 * 1000);
		o = fake_api_get(t.api, &kobj_trusteeconfig, NS, "t");
		said = json_get_str(o, "status/statusDescription");
		cr_expect_not(json_get_bool(o, "status/isReady", true), "%zu", i);
		cr_expect(strstr(configured("message"), rows[i].says), "%s", configured("message"));
		cr_expect(said && strstr(said, rows[i].says), "%zu: %s", i, said);
		cr_expect_str_eq(
			fake_api_condition(t.api, &kobj_trusteeconfig, NS, "t", "Ready", "reason"),
			"NotConfigured");
		cr_expect_eq(fake_transport_count(t.f, NULL, "configmaps") +
				     fake_transport_count(t.f, NULL, "secrets") +
				     fake_transport_count(t.f, NULL, "kbsconfigs"),
			0, "%zu: nothing but the status", i);
		fake_api_merge(t.api, &kobj_trusteeconfig, NS, "t",
			"{\"spec\":{\"profileType\":\"Permissive\",\"httpsSpec\":{\"tlsSecretName\":\"tls\"},"
			"\"attestationTokenVerificationSpec\":null}}");
	}
}

/* ---- two of them, and what is others' */

static const char *configured_of(const char *name, const char *member)
{
	const char *s =
		fake_api_condition(t.api, &kobj_trusteeconfig, NS, name, "Configured", member);

	return s ? s : "";
}

Test(ctl_trusteeconfig_life, each_of_two_has_its_own_reason)
{
	put_tls("");
	put_trusteeconfig();
	fake_api_put(t.api, &kobj_trusteeconfig, NS,
		"{\"metadata\":{\"name\":\"u\"},\"spec\":{\"profileType\":\"Permissive\","
		"\"httpsSpec\":{\"tlsSecretName\":\"tls\"}}}");
	loop_advance(t.loop, 10 * 1000);
	cr_assert_str_eq(configured_of("t", "reason"), "WriteRefused");
	cr_assert_str_eq(configured_of("u", "reason"), "WriteRefused");
	cr_assert(strstr(configured_of("t", "message"), "t-https"), "%s",
		configured_of("t", "message"));
	fake_transport_forget(t.f);
	loop_advance(t.loop, 25 * 1000);
	cr_assert_leq(fake_transport_count(t.f, "get", "secrets"), 2,
		"each forgot the other's: %zu", fake_transport_count(t.f, "get", "secrets"));
}

Test(ctl_trusteeconfig_life, other_owners_of_a_kbsconfig_stay)
{
	struct json_object *refs;

	fake_api_put(t.api, &kobj_kbsconfig, NS,
		"{\"metadata\":{\"name\":\"t-kbs-config\",\"ownerReferences\":[{\"apiVersion\":\"v1\","
		"\"kind\":\"ConfigMap\",\"name\":\"theirs\",\"uid\":\"their-uid\"}]},\"spec\":{}}");
	put_tls("aw==");
	put_trusteeconfig();
	cr_assert_str_eq(configured("reason"), "Configured", "%s", configured("message"));
	refs = json_get_arr(fake_api_get(t.api, &kobj_kbsconfig, NS, "t-kbs-config"),
		"metadata/ownerReferences");
	cr_assert_eq(json_object_array_length(refs), 2);
	cr_assert_str_eq(json_get_str(json_object_array_get_idx(refs, 0), "uid"), "their-uid");
	cr_assert_str_eq(json_get_str(json_object_array_get_idx(refs, 1), "name"), "t");
}

Test(ctl_trusteeconfig_life, a_claim_of_no_volume_is_named_as_such)
{
	fake_api_put(t.api, &kobj_claim, NS,
		"{\"metadata\":{\"name\":\"t-ibmse-certstore-pvc\"},\"spec\":{}}");
	fake_api_put(t.api, &kobj_trusteeconfig, NS,
		"{\"metadata\":{\"name\":\"t\"},\"spec\":{\"profileType\":\"Permissive\","
		"\"ibmSE\":{\"pvName\":\"pv\"}}}");
	loop_advance(t.loop, 10 * 1000);
	cr_assert_str_eq(configured("reason"), "Conflict");
	cr_assert(strstr(configured("message"), "uses volume \"\""), "%s", configured("message"));
}

/* ---- lives that end */

static const char *toml(void)
{
	const char *s = data_of(&kobj_configmap, "t-kbs-config", "kbs-config.toml");

	return s ? s : "";
}

static void first(void)
{
	put_tls("aw==");
	fake_api_put(t.api, &kobj_trusteeconfig, NS,
		"{\"metadata\":{\"name\":\"t\"},\"spec\":{\"profileType\":\"Permissive\","
		"\"httpsSpec\":{\"tlsSecretName\":\"tls\"}}}");
}

static bool is_https(void)
{
	return str_eq(data_of(&kobj_secret, "t-https-key-secret", "privateKey"), "aw==") &&
	       strstr(toml(), "insecure_http = false") != NULL;
}

static void renew(void)
{
	put_tls("a2s=");
}

static bool is_renewed(void)
{
	return str_eq(data_of(&kobj_secret, "t-https-key-secret", "privateKey"), "a2s=");
}

static void edit(void)
{
	fake_api_merge(t.api, &kobj_trusteeconfig, NS, "t",
		"{\"spec\":{\"tlsConfig\":{\"profile\":\"modern\"}}}");
}

static bool is_edited(void)
{
	return strstr(toml(), "tls_profile = \"modern\"") != NULL;
}

static void lose(void)
{
	fake_api_delete(t.api, &kobj_configmap, NS, "t-resource-policy");
	fake_api_delete(t.api, &kobj_secret, NS, "t-auth-secret");
	fake_api_delete(t.api, &kobj_kbsconfig, NS, "t-kbs-config");
}

static bool is_back(void)
{
	return data_of(&kobj_configmap, "t-resource-policy", "resource-policy.rego") &&
	       data_of(&kobj_secret, "t-auth-secret", "publicKey") &&
	       fake_api_get(t.api, &kobj_kbsconfig, NS, "t-kbs-config");
}

static void change(void)
{
	fake_api_merge(t.api, &kobj_trusteeconfig, NS, "t",
		"{\"spec\":{\"httpsSpec\":null,\"tlsConfig\":null}}");
}

static bool is_changed(void)
{
	return strstr(toml(), "insecure_http = true") &&
	       !fake_api_get(t.api, &kobj_secret, NS, "t-https-key-secret");
}

static void restrict_it(void)
{
	fake_api_merge(t.api, &kobj_trusteeconfig, NS, "t",
		"{\"spec\":{\"profileType\":\"Restricted\",\"httpsSpec\":{\"tlsSecretName\":\"tls\"},"
		"\"attestationTokenVerificationSpec\":{\"tlsSecretName\":\"tls\"}}}");
}

/* The file, the policy and the KbsConfig are of one profile. */
static bool is_of(const char *jwk, const char *policy, const char *log, const char *token)
{
	struct json_object *k = fake_api_get(t.api, &kobj_kbsconfig, NS, "t-kbs-config");
	const char *rego = data_of(&kobj_configmap, "t-resource-policy", "resource-policy.rego");

	return strstr(toml(), jwk) && rego && strstr(rego, policy) &&
	       str_eq(json_get_str(k, "spec/KbsEnvVars/RUST_LOG"), log) &&
	       str_eq(json_get_str(k, "spec/kbsAttestationKeySecretName"), token) &&
	       !fake_api_get(t.api, &kobj_secret, NS, "t-attestation-key-secret") == !token;
}

static bool is_restricted(void)
{
	return is_of("insecure_header_jwk = false", "affirming", NULL, "t-attestation-key-secret");
}

static void permit_it(void)
{
	fake_api_merge(t.api, &kobj_trusteeconfig, NS, "t",
		"{\"spec\":{\"profileType\":\"Permissive\",\"httpsSpec\":null,"
		"\"attestationTokenVerificationSpec\":null}}");
}

static bool is_permissive(void)
{
	return is_of("insecure_header_jwk = true", "data.plugin", "debug", NULL) &&
	       !fake_api_get(t.api, &kobj_secret, NS, "t-https-key-secret");
}

/* What happens one after the other, each in a life that ends after n writes; true: one did end. */
static bool lives_of(unsigned n)
{
	static const struct {
		const char *name;
		void (*happens)(void);
		bool (*is_done)(void);
		bool in_place; /* a Secret is away for a moment, and the KbsConfig names it */
	} rows[] = {{"made", first, is_https, false},
		{"a renewed certificate", renew, is_renewed, true},
		{"other TLS settings", edit, is_edited, false},
		{"children that are deleted", lose, is_back, false},
		{"without HTTPS", change, is_changed, false},
		{"profile Restricted", restrict_it, is_restricted, false},
		{"profile Permissive again", permit_it, is_permissive, false}};
	bool died = false;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		fake_transport_die_after(t.f, n);
		rows[i].happens();
		loop_advance(t.loop, 20 * 1000);
		died |= fake_transport_is_dead(t.f);
		cr_assert(rows[i].in_place || kbsconfig_is_whole(), "%s, after %u writes",
			rows[i].name, n);
		end();
		boot();
		loop_advance(t.loop, 60 * 1000);
		cr_assert(rows[i].is_done(), "%s, after %u writes: %s", rows[i].name, n,
			configured("message"));
		cr_assert_str_eq(configured("reason"), "Configured", "%s, after %u writes: %s",
			rows[i].name, n, configured("message"));
		fake_transport_forget(t.f);
		loop_advance(t.loop, 30 * 60 * 1000);
		cr_assert_eq(fake_transport_writes(t.f), 0, "%s, after %u writes", rows[i].name, n);
	}
	collect();
	return died;
}

Test(ctl_trusteeconfig_life, it_may_be_killed_at_every_write)
{
	unsigned n = 1;

	while (lives_of(n))
		n++;
	cr_assert_geq(n, 10, "%u", n);
}

Test(ctl_trusteeconfig_life, a_failing_api_is_outlasted)
{
	for (int fault = FAKE_FAULT_409; fault <= FAKE_FAULT_SILENCE; fault++) {
		fake_transport_fault(t.f, (enum fake_fault)fault, 3);
		first();
		loop_advance(t.loop, 5 * 60 * 1000);
		cr_assert(is_https(), "fault %d: %s", fault, configured("message"));
		renew();
		loop_advance(t.loop, 5 * 60 * 1000);
		cr_assert(is_renewed(), "fault %d: %s", fault, configured("message"));
		collect();
		end();
		collect(); /* what a request made that was sent before */
		boot();
	}
}
