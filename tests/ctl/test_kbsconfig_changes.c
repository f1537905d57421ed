/* SPDX-License-Identifier: MIT */
/*
 * What happens to a KbsConfig that is installed, or to none, on the in-memory API: it ends the same
 * whichever of the writes is the last one of a life.
 */
#include "config.h"

#include <criterion/criterion.h>

#include "ctl/kbsworld.h"
#include "tec/base/json.h"
#include "tec/kobj/subset.h"
#include "tec/model/kbsconfig.h"

#include <string.h>

TestSuite(ctl_kbsconfig_changes, .init = kbsworld_start, .fini = kbsworld_stop);

static void nothing(void)
{
}

static void one(void)
{
	kbsworld_put("k");
}

static void two(void)
{
	kbsworld_put("k");
	kbsworld_run(2000); /* the older one */
	kbsworld_put("second");
}

static void on_loopback(void)
{
	fake_api_put(t.api, &kobj_configmap, NS,
		"{\"metadata\":{\"name\":\"conf\"},\"data\":{\"kbs-config.toml\":\"" TOML
		"sockets = [\\\"127.0.0.1:8081\\\"]\"}}");
	kbsworld_put("k");
}

#define ANNOTATE(key, value)                                                                       \
	fake_api_merge(t.api, &kobj_kbsconfig, NS, "k",                                            \
		"{\"metadata\":{\"annotations\":{\"" key "\":" value "}}}")

static void guard_on(void)
{
	ANNOTATE(MODEL_KBSCONFIG_GUARD, "\"tpm\"");
}

static void guard_off(void)
{
	ANNOTATE(MODEL_KBSCONFIG_GUARD, "null");
}

static void guarded(void)
{
	on_loopback();
	guard_on();
}

static void layout(void)
{
	ANNOTATE(MODEL_KBSCONFIG_LAYOUT, "\"legacy\"");
}

static void writable(void)
{
	ANNOTATE(MODEL_KBSCONFIG_WRITABLE, "\"true\"");
}

static void change_inputs(void)
{
	fake_api_put(t.api, &kobj_configmap, NS,
		"{\"metadata\":{\"name\":\"policy\"},\"data\":{\"policy.rego\":\"other\"}}");
	fake_api_put(t.api, &kobj_configmap, NS,
		"{\"metadata\":{\"name\":\"conf\"},\"data\":{\"kbs-config.toml\":\"" TOML
		"sockets = [\\\"[::]:9000\\\"]\"}}");
}

static void lose_input(void)
{
	fake_api_delete(t.api, &kobj_secret, NS, "res");
}

static void one_without_input(void)
{
	one();
	lose_input();
}

static void change_spec(void)
{
	fake_api_merge(t.api, &kobj_kbsconfig, NS, "k",
		"{\"spec\":{\"kbsSecretResources\":null,\"KbsEnvVars\":{\"RUST_LOG\":\"debug\"},"
		"\"kbsServiceType\":\"NodePort\",\"KbsDeploymentSpec\":{\"replicas\":2}}}");
}

static void upgrade(void)
{
	kbsworld_end();
	t.image = "registry.example/kbs:next";
	kbsworld_boot();
}

static void lose_objects(void)
{
	fake_api_delete(t.api, &kobj_deployment, NS, DEPLOYMENT);
	fake_api_delete(t.api, &kobj_service, NS, RENDER_KBSCONFIG_SERVICE);
}

static void lose_first(void)
{
	fake_api_delete(t.api, &kobj_kbsconfig, NS, "k");
}

/* It wrote what of it is not rendered, here the init container, by POST and PUT. */
#define FOREIGN(owner)                                                                             \
	fake_api_put(t.api, &kobj_deployment, NS,                                                  \
		"{\"metadata\":{\"name\":\"" DEPLOYMENT "\"" owner                                 \
		",\"managedFields\":[{\"manager\":"                                                \
		"\"manager\",\"operation\":\"Update\",\"apiVersion\":\"apps/v1\",\"fieldsType\":"  \
		"\"FieldsV1\",\"fieldsV1\":{\"f:spec\":{\"f:template\":{\"f:spec\":{"              \
		"\"f:initContainers\":{\".\":{},\"k:{\\\"name\\\":\\\"secret-converter\\\"}\":{"   \
		"\".\":{},\"f:image\":{},\"f:name\":{}}}}}}}}]},\"spec\":{\"selector\":{"          \
		"\"matchLabels\":{\"app\":\"kbs\"}},\"template\":{\"spec\":{"                      \
		"\"containers\":[{\"name\":\"kbs\",\"image\":\"older\"}]}}}}")

/* Of version 0.3.0: without an owner. */
static void one_of_0_3(void)
{
	FOREIGN("");
	kbsworld_put("k");
}

/* With the init container that says whose it was. */
static void one_of_nobody(void)
{
	one_of_0_3();
	fake_api_merge(t.api, &kobj_deployment, NS, DEPLOYMENT,
		"{\"spec\":{\"template\":{\"spec\":{\"initContainers\":["
		"{\"name\":\"secret-converter\",\"image\":\"older\"}]}}}}");
}

static void one_beside_anothers(void)
{
	FOREIGN(",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"x\","
		"\"uid\":\"x\",\"controller\":true}]");
	kbsworld_put("k");
}

static void anothers_goes(void)
{
	fake_api_delete(t.api, &kobj_deployment, NS, DEPLOYMENT);
}

static const struct happening {
	const char *name;
	void (*before)(void); /* and it came to rest */
	void (*happens)(void);
	const char *holder, *installed; /* at the end, the reason of condition Installed */
	unsigned writes;                /* at least so many */
} happenings[] = {
	{"it is made", nothing, one, "k", "Installed", 4},
	{"changed inputs", one, change_inputs, "k", "Installed", 2},
	{"a deleted input", one, lose_input, "k", "InputMissing", 1},
	{"an input that was waited for", one_without_input, kbsworld_put_inputs, "k", "Installed",
		4},
	{"a changed spec", one, change_spec, "k", "Installed", 3},
	{"the other layout", one, layout, "k", "Installed", 1},
	{"a writable repository", one, writable, "k", "Installed", 1},
	{"another image", one, upgrade, "k", "Installed", 1},
	{"deleted objects", one, lose_objects, "k", "Installed", 2},
	{"the guard", on_loopback, guard_on, "k", "Installed", 2},
	{"the guard no more", guarded, guard_off, "k", "Installed", 2},
	{"the second takes over", two, lose_first, "second", "Installed", 7},
	{"a Deployment of 0.3.0", nothing, one_of_0_3, "k", "Installed", 5},
	{"a Deployment of nobody", nothing, one_of_nobody, "k", "Installed", 5},
	{"another owner's Deployment goes", one_beside_anothers, anothers_goes, "k", "Installed",
		2},
};

/* Without what differs from one world to the next. */
static void strip(struct json_object *o)
{
	static const char *const own[] = {"uid", "resourceVersion", "creationTimestamp",
		"managedFields", "generation", "lastTransitionTime",
		KOBJ_RENDER_HASH_ANNOTATION /* has the owner's uid */};

	if (json_object_is_type(o, json_type_array)) {
		for (size_t i = 0; i < json_object_array_length(o); i++)
			strip(json_object_array_get_idx(o, i));
	} else if (json_object_is_type(o, json_type_object)) {
		for (size_t i = 0; i < ARRAY_LEN(own); i++)
			json_object_object_del(o, own[i]);
		json_object_object_foreach (o, key, v) {
			(void)key;
			strip(v);
		}
	}
}

/* All objects of this controller, and how many of each kind there are. */
static struct json_object *snapshot(void)
{
	static const struct {
		const struct kobj_gvk *gvk;
		const char *name;
	} all[] = {{&kobj_kbsconfig, "k"}, {&kobj_kbsconfig, "second"},
		{&kobj_deployment, DEPLOYMENT}, {&kobj_service, RENDER_KBSCONFIG_SERVICE},
		{&kobj_configmap, "conf"}, {&kobj_secret, "res"}};
	struct json_object *list = json_arr();

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		struct json_object *o = fake_api_get(t.api, all[i].gvk, NS, all[i].name);
		struct json_object *copy = NULL;

		json_object_array_add(list,
			json_object_new_int64((int64_t)fake_api_count(t.api, all[i].gvk, NS)));
		if (o)
			cr_assert_eq(json_object_deep_copy(o, &copy, NULL), 0);
		json_object_array_add(list, copy);
	}
	strip(list);
	return list;
}

/* A world of its own in which it happens, in a life that ends after n writes (0: that does not
 * end), and the next one; *end: what is there then. Returns whether it did end. */
static bool world_of(const struct happening *h, unsigned n, struct json_object **at_end)
{
	bool died;

	kbsworld_put_inputs();
	h->before();
	kbsworld_boot();
	kbsworld_run(60 * 1000);
	t.dies = n;
	if (n)
		fake_transport_die_after(t.f, n);
	h->happens();
	kbsworld_run(20 * 1000);
	died = fake_transport_is_dead(t.f);
	t.dies = 0;
	kbsworld_end();
	kbsworld_boot();
	kbsworld_run(60 * 1000);
	cr_assert_str_eq(kbsworld_reason(h->holder, "Installed"), h->installed,
		"%s, after %u writes", h->name, n);
	fake_transport_forget(t.f);
	kbsworld_run(30 * 60 * 1000);
	cr_assert_eq(fake_transport_writes(t.f), 0, "%s, after %u writes", h->name, n);
	*at_end = snapshot();
	kbsworld_end();
	fake_api_free(t.api);
	t.api = fake_api_new(t.loop);
	t.image = NULL;
	return died;
}

Test(ctl_kbsconfig_changes, a_change_ends_the_same_when_killed_at_every_write)
{
	for (size_t i = 0; i < ARRAY_LEN(happenings); i++) {
		const struct happening *h = &happenings[i];
		cleanup_json struct json_object *undisturbed = NULL;
		unsigned n = 0;
		bool died;

		world_of(h, 0, &undisturbed);
		do {
			cleanup_json struct json_object *o = NULL;

			died = world_of(h, ++n, &o);
			cr_assert(json_object_equal(o, undisturbed), "%s, after %u writes:\n%s\n%s",
				h->name, n, json_object_to_json_string(o),
				json_object_to_json_string(undisturbed));
		} while (died);
		cr_expect_gt(n, h->writes, "%s: %u", h->name, n - 1);
	}
}

/* ---- of a TrusteeConfig */

static void put_tls_secret(const char *name)
{
	cleanup_free char *text =
		xasprintf("{\"metadata\":{\"name\":\"%s\"},\"type\":\"kubernetes.io/tls\","
			  "\"data\":{\"tls.key\":\"aw==\",\"tls.crt\":\"Yw==\"}}",
			name);

	fake_api_put(t.api, &kobj_secret, NS, text);
}

static void permissive(void)
{
	put_tls_secret("https");
	put_tls_secret("token");
	fake_api_put(t.api, &kobj_trusteeconfig, NS,
		"{\"metadata\":{\"name\":\"t\"},\"spec\":{\"profileType\":\"Permissive\"}}");
}

static void restrict_it(void)
{
	fake_api_merge(t.api, &kobj_trusteeconfig, NS, "t",
		"{\"spec\":{\"profileType\":\"Restricted\",\"httpsSpec\":{\"tlsSecretName\":\"https\"},"
		"\"attestationTokenVerificationSpec\":{\"tlsSecretName\":\"token\"}}}");
}

static void permit_it(void)
{
	fake_api_merge(t.api, &kobj_trusteeconfig, NS, "t",
		"{\"spec\":{\"profileType\":\"Permissive\",\"httpsSpec\":null,"
		"\"attestationTokenVerificationSpec\":null}}");
}

static int64_t generation(void)
{
	return json_get_int(kbsworld_deployment(), "metadata/generation", 0);
}

static bool mounts(const char *volume)
{
	struct json_object *all = json_get_arr(kbsworld_deployment(), "spec/template/spec/volumes");

	for (size_t i = 0; i < json_object_array_length(all); i++)
		if (str_eq(json_get_str(json_object_array_get_idx(all, i), "name"), volume))
			return true;
	return false;
}

/* In a life that ends after n writes, and the next one. */
static bool rolls_once(void (*change)(void), unsigned n)
{
	int64_t before = generation();
	bool died;

	if (n)
		fake_transport_die_after(t.f, n);
	change();
	kbsworld_run(20 * 1000);
	died = fake_transport_is_dead(t.f);
	kbsworld_end();
	kbsworld_boot();
	kbsworld_run(60 * 1000);
	cr_assert_str_eq(kbsworld_reason("t-kbs-config", "Installed"), "Installed", "%u", n);
	cr_assert_eq(generation(), before + 1, "%d rollouts, after %u writes",
		(int)(generation() - before), n);
	return died;
}

Test(ctl_kbsconfig_changes, a_change_of_profile_is_one_rollout_when_killed_at_every_write)
{
	unsigned n = 0;
	bool died;

	permissive();
	kbsworld_boot();
	kbsworld_run(60 * 1000);
	do {
		died = rolls_once(restrict_it, n);
		cr_assert(mounts("https-key") && mounts("attestation-cert"));
		died |= rolls_once(permit_it, n);
		cr_assert(!mounts("https-key"));
	} while (n++ == 0 || died);
	cr_expect_gt(n, 10, "%u", n);
}

/* A half of the new profile never runs, whoever refuses the other one. */
Test(ctl_kbsconfig_changes, a_profile_that_cannot_be_written_whole_is_not_rolled_out)
{
	static const char *const paths[][2] = {
		{"PATCH", "/api/v1/namespaces/" NS "/configmaps/t-resource-policy*"},
		{"PATCH", "/apis/confidentialcontainers.org/v1alpha1/namespaces/" NS
			  "/kbsconfigs/t-kbs-config"},
	};

	permissive();
	kbsworld_boot();
	kbsworld_run(60 * 1000);
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		int64_t before = generation();
		struct fake_expect *e = fake_transport_expect(t.f, paths[i][0], paths[i][1]);

		fake_expect_times(e, 0);
		fake_expect_answer(
			e, 403, "{\"kind\":\"Status\",\"code\":403,\"reason\":\"Forbidden\"}");
		restrict_it();
		kbsworld_run(5 * 60 * 1000);
		cr_assert_eq(generation(), before, "%zu", i);
		cr_assert_str_eq(fake_api_condition(t.api, &kobj_trusteeconfig, NS, "t",
					 "Configured", "reason"),
			"WriteRefused");
		cr_assert_str_eq(kbsworld_reason("t-kbs-config", "Installed"), "Installing");
		cr_assert(strstr(kbsworld_message("t-kbs-config", "Installed"), "TrusteeConfig"),
			"%s", kbsworld_message("t-kbs-config", "Installed"));
		kbsworld_end();
		kbsworld_boot();
		kbsworld_run(60 * 1000);
		cr_assert_eq(generation(), before + 1, "%zu", i);
		rolls_once(permit_it, 0);
	}
}
