/* SPDX-License-Identifier: MIT */
/*
 * Each object that a KbsConfig names, on the in-memory API: missing, empty, with another key, of
 * another kind or type, deleted and made again. What is installed stays in the meantime.
 */
#include "config.h"

#include <criterion/criterion.h>
#include <string.h>

#include "ctl/kbsworld.h"
#include "tec/base/bytes.h"
#include "tec/base/json.h"

TestSuite(ctl_kbsconfig_inputs, .init = kbsworld_start, .fini = kbsworld_stop);

#define FILE                                                                                       \
	"[http_server]\ninsecure_http = false\nprivate_key = \"/etc/https-key/https.key\"\n"       \
	"certificate = \"/etc/https-cert/https.crt\"\n"                                            \
	"[admin]\npublic = \"/etc/auth-secret/publicKey\"\n"                                       \
	"[attestation_service.attestation_token_broker.signer]\n"                                  \
	"key_path = \"/etc/attestation-key/token.key\"\n"                                          \
	"cert_path = \"/etc/attestation-cert/token.crt\"\n"

static const struct input {
	const char *name, *key, *value; /* NULL: every key will do */
	const char *field;
	bool secret;
	bool live; /* another value rolls no Pods */
} inputs[] = {
	{"config", "kbs-config.toml", FILE, "kbsConfigMapName", false, false},
	{"as", "as-config.json", "{}", "kbsAsConfigMapName", false, false},
	{"rvps", "rvps-config.json", "{}", "kbsRvpsConfigMapName", false, false},
	{"values", "reference_value", "{}", "kbsRvpsRefValuesConfigMapName", false, false},
	{"cpu", "default_cpu.rego", "p", "kbsAttestationPolicyConfigMapName", false, false},
	{"gpu", "default_gpu.rego", "p", "kbsGpuAttestationPolicyConfigMapName", false, false},
	{"rego", "resource-policy.rego", "p", "kbsResourcePolicyConfigMapName", false, false},
	{"qcnl", "sgx_default_qcnl.conf", "q", "tdxConfigSpec.kbsTdxConfigMapName", false, false},
	{"auth", "publicKey", "a", "kbsAuthSecretName", true, false},
	{"key", "https.key", "k", "kbsHttpsKeySecretName", true, false},
	{"cert", "https.crt", "c", "kbsHttpsCertSecretName", true, false},
	{"tokenkey", "token.key", "k", "kbsAttestationKeySecretName", true, false},
	{"tokencert", "token.crt", "c", "kbsAttestationCertSecretName", true, false},
	{"resource", NULL, "r", "kbsSecretResources", true, true},
	{"vcek", NULL, "v", "kbsLocalCertCacheSpec", true, false},
};

static const struct kobj_gvk *gvk_of(const struct input *in)
{
	return in->secret ? &kobj_secret : &kobj_configmap;
}

/* One with these bytes; key NULL: with nothing. type may be NULL. */
static void put(const struct kobj_gvk *gvk, const struct input *in, const char *member,
	const char *key, const char *value, const char *type)
{
	struct json_object *o = json_obj();
	cleanup_strbuf struct strbuf b64 = STRBUF_INIT;

	if (gvk == &kobj_secret || str_eq(member, "binaryData")) {
		bytes_to_b64(&b64, value, strlen(value));
		value = strbuf_str(&b64);
	}
	json_add(o, "metadata", json_add_str(json_obj(), "name", in->name));
	json_add_str(o, "type", type);
	if (key)
		json_add(o, member, json_add_str(json_obj(), key, value));
	fake_api_put_json(t.api, gvk, NS, o);
}

static void put_whole(const struct input *in)
{
	put(gvk_of(in), in, "data", in->key ? in->key : "k", in->value, NULL);
}

static void drop(const struct input *in)
{
	fake_api_delete(t.api, gvk_of(in), NS, in->name);
}

static void install(void)
{
	for (size_t i = 0; i < ARRAY_LEN(inputs); i++)
		put_whole(&inputs[i]);
	fake_api_put(t.api, &kobj_kbsconfig, NS,
		"{\"metadata\":{\"name\":\"k\"},\"spec\":{"
		"\"kbsDeploymentType\":\"MicroservicesDeployment\",\"kbsConfigMapName\":\"config\","
		"\"kbsAsConfigMapName\":\"as\",\"kbsRvpsConfigMapName\":\"rvps\","
		"\"kbsRvpsRefValuesConfigMapName\":\"values\","
		"\"kbsAttestationPolicyConfigMapName\":\"cpu\","
		"\"kbsGpuAttestationPolicyConfigMapName\":\"gpu\","
		"\"kbsResourcePolicyConfigMapName\":\"rego\","
		"\"tdxConfigSpec\":{\"kbsTdxConfigMapName\":\"qcnl\"},"
		"\"kbsAuthSecretName\":\"auth\",\"kbsHttpsKeySecretName\":\"key\","
		"\"kbsHttpsCertSecretName\":\"cert\",\"kbsAttestationKeySecretName\":\"tokenkey\","
		"\"kbsAttestationCertSecretName\":\"tokencert\","
		"\"kbsSecretResources\":[\"resource\"],"
		"\"kbsLocalCertCacheSpec\":{\"secrets\":[{\"secretName\":\"vcek\"}]}}}");
	kbsworld_boot();
	kbsworld_until(kbsworld_installed, "installed");
	kbsworld_pods_are_ready();
	fake_transport_forget(t.f);
}

static size_t writes(void) /* of what is installed */
{
	return fake_transport_count(t.f, "apply", "deployments") +
	       fake_transport_count(t.f, "delete", "deployments") +
	       fake_transport_count(t.f, "apply", "services") +
	       fake_transport_count(t.f, "delete", "services");
}

/* The reason, a part of the message, and so many writes since the last time. */
static void expect(const struct input *in, const char *what, const char *reason, const char *says,
	size_t n_writes)
{
	kbsworld_run(2000);
	cr_assert_str_eq(kbsworld_reason("k", "Installed"), reason, "%s %s: %s", in->name, what,
		kbsworld_message("k", "Installed"));
	cr_assert(strstr(kbsworld_message("k", "Installed"), says), "%s %s: %s", in->name, what,
		kbsworld_message("k", "Installed"));
	cr_assert_eq(writes(), n_writes, "%s %s: %zu writes", in->name, what, writes());
	fake_transport_forget(t.f);
}

Test(ctl_kbsconfig_inputs, one_that_is_missing_is_named_and_may_be_made_again)
{
	install();
	for (size_t i = 0; i < ARRAY_LEN(inputs); i++) {
		const struct input *in = &inputs[i];
		cleanup_free char *says = xasprintf("%s %s, which spec.%s names, does not exist",
			gvk_of(in)->kind, in->name, in->field);

		drop(in);
		expect(in, "is missing", "InputMissing", says, 0);
		put_whole(in);
		expect(in, "is there again", "Installed", "", 0);
		drop(in);
		put_whole(in);
		expect(in, "was made again at once", "Installed", "", 0);
		drop(in);
		put(gvk_of(in), in, "data", in->key ? in->key : "k",
			str_eq(in->value, FILE) ? FILE "# another" : "{\"o\":1}", NULL);
		expect(in, "is another one", "Installed", "", in->live ? 0 : 1);
		put_whole(in);
		expect(in, "is the first one", "Installed", "", in->live ? 0 : 1);
	}
}

Test(ctl_kbsconfig_inputs, one_without_its_key_is_named_and_another_kind_is_not_it)
{
	install();
	for (size_t i = 0; i < ARRAY_LEN(inputs); i++) {
		const struct input *in = &inputs[i];
		const struct kobj_gvk *other = in->secret ? &kobj_configmap : &kobj_secret;
		cleanup_free char *missing = xasprintf("%s %s, which", gvk_of(in)->kind, in->name);
		cleanup_free char *says = xasprintf(
			"%s %s has no key %s", gvk_of(in)->kind, in->name, in->key ? in->key : "");

		drop(in);
		put(other, in, "data", in->key ? in->key : "k", in->value, NULL);
		expect(in, "of the other kind", "InputMissing", missing, 0);
		fake_api_delete(t.api, other, NS, in->name);
		put(gvk_of(in), in, "data", NULL, "", NULL);
		if (in->key) {
			expect(in, "empty", "InputMissing", says, 0);
			put(gvk_of(in), in, "data", "another", in->value, NULL);
			expect(in, "with another key", "InputMissing", says, 0);
			put_whole(in);
			expect(in, "whole", "Installed", "", 0);
		} else { /* its keys are what Trustee offers, or the files of a directory */
			expect(in, "empty", "Installed", "", 1);
			put_whole(in);
			expect(in, "whole", "Installed", "", 1);
		}
	}
}

/* Keys count, not the type: certificates are often of type kubernetes.io/tls. */
Test(ctl_kbsconfig_inputs, a_secrets_type_does_not_count)
{
	install();
	for (size_t i = 0; i < ARRAY_LEN(inputs); i++) {
		const struct input *in = &inputs[i];
		cleanup_free char *says =
			xasprintf("Secret %s has no key %s", in->name, in->key ? in->key : "");

		if (!in->secret)
			continue;
		drop(in);
		put(gvk_of(in), in, "data", in->key ? in->key : "k", in->value,
			"kubernetes.io/tls");
		expect(in, "of another type", "Installed", "", 0);
		put(gvk_of(in), in, "data", "tls.key", in->value, "kubernetes.io/tls");
		expect(in, "with the keys of its type", in->key ? "InputMissing" : "Installed",
			in->key ? says : "", in->key ? 0 : 1);
		put_whole(in);
		expect(in, "whole", "Installed", "", in->key ? 0 : 1);
	}
}

/* The kubelet makes the same file of it, so it is read as one. */
Test(ctl_kbsconfig_inputs, a_configmap_may_have_its_file_in_binary_data)
{
	install();
	for (size_t i = 0; i < ARRAY_LEN(inputs); i++) {
		const struct input *in = &inputs[i];

		if (in->secret)
			continue;
		put(gvk_of(in), in, "binaryData", in->key, in->value, NULL);
		expect(in, "in binaryData", "Installed", "", 0);
		put_whole(in);
		expect(in, "in data", "Installed", "", 0);
	}
	put(&kobj_configmap, &inputs[0], "binaryData", "kbs-config.toml", "[admin", NULL);
	expect(&inputs[0], "that is broken", "InputInvalid", "line 1", 0);
	put_whole(&inputs[0]);
	put(&kobj_configmap, &inputs[3], "binaryData", "reference_value", " [{}]", NULL);
	expect(&inputs[3], "with a list", "InputInvalid", "contains a list of reference values", 0);
}
