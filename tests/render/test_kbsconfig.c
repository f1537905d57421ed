/* SPDX-License-Identifier: MIT */
/* A KbsConfig's objects: both layouts, what is missing, and what changes the Pod template. */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/kobj/subset.h"
#include "tec/render/kbsconfig.h"

#define LEGACY                                                                                     \
	"[http_server]\ninsecure_http = false\nprivate_key = \"/etc/https-key/https.key\"\n"       \
	"certificate = \"/etc/https-cert/https.crt\"\n"                                            \
	"[admin]\ninsecure_api = true\nauth_public_key = \"/etc/auth-secret/publicKey\"\n"         \
	"[attestation_service.attestation_token_broker]\npolicy_dir = \"/o/as\"\n"                 \
	"[attestation_service.rvps_config.storage]\nfile_path = \"/o/rv/values.json\"\n"           \
	"[[plugins]]\nname = \"resource\"\ntype = \"LocalFs\"\ndir_path = \"/o/repo\"\n"           \
	"[policy_engine]\npolicy_path = \"/o/opa/policy.rego\"\n"
#define CURRENT "[http_server]\ninsecure_http = true\n"
#define STORAGE "/opt/confidential-containers/storage"

/* What there is, by name; ConfigMaps and Secrets. */
static struct {
	const struct kobj *o;
	bool secret;
} there[16];
static size_t n_there;
static const struct kobj *config;

static void put_data(bool secret, const char *name, struct json_object *take_data)
{
	cleanup_json struct json_object *o = json_obj();
	struct json_object *meta = json_add_str(json_obj(), "name", name);
	struct err err = ERR_INIT;
	size_t i = 0;

	json_add_str(json_add_str(meta, "uid", "u"), "resourceVersion", "1");
	json_add(o, "metadata", meta);
	json_add(o, "data", take_data);
	while (i < n_there && !(there[i].secret == secret && str_eq(there[i].o->name, name)))
		i++;
	if (i < n_there)
		kobj_unref(there[i].o);
	else
		n_there++;
	there[i].secret = secret;
	there[i].o = secret ? model_input_secret_extract(o, &err)
			    : model_input_configmap_extract(o, &err);
	cr_assert(there[i].o, "%s", err.text);
}

static void put(bool secret, const char *name, const char *key, const char *value)
{
	put_data(secret, name, json_add_str(json_obj(), key, value));
}

static const struct kobj *find(void *arg, bool secret, const char *name)
{
	for (size_t i = 0; i < n_there; i++)
		if (there[i].secret == secret && str_eq(there[i].o->name, name))
			return there[i].o;
	return NULL;
}

static const struct render_kbsconfig_source from = {find, NULL};

static const struct model_kbsconfig *with(const char *spec, const char *layout)
{
	cleanup_free char *text = xasprintf(
		"{\"metadata\":{\"name\":\"k\",\"uid\":\"u\",\"resourceVersion\":\"1\",\"annotations\":{"
		"\"" MODEL_KBSCONFIG_LAYOUT "\":%s}},\"spec\":%s}",
		layout ? layout : "null", spec);
	cleanup_json struct json_object *o = json_tokener_parse(text);
	struct err err = ERR_INIT;

	kobj_unref(config);
	config = model_kbsconfig_extract(o, &err);
	cr_assert(config, "%s", err.text);
	return model_kbsconfig(config);
}

static void down(void)
{
	kobj_unref(config);
	for (size_t i = 0; i < n_there; i++)
		kobj_unref(there[i].o);
}

TestSuite(render_kbsconfig, .fini = down);

static struct json_object *deployment(const struct model_kbsconfig *c)
{
	cleanup_strbuf struct strbuf why = STRBUF_INIT;

	cr_assert_eq(render_kbsconfig_check(c, &from, &why), KBSCONFIG_IS_INSTALLED, "%s",
		strbuf_str(&why));
	return render_kbsconfig_deployment(c, "ns", &from, &render_kbsconfig_images_default);
}

static struct json_object *element(struct json_object *list, const char *member, const char *value)
{
	for (size_t i = 0; list && i < json_object_array_length(list); i++)
		if (str_eq(json_get_str(json_object_array_get_idx(list, i), member), value))
			return json_object_array_get_idx(list, i);
	return NULL;
}

/* "VOLUME|SUBPATH|SOURCE" of what a container mounts at path; "-" for nothing. The caller frees. */
static char *mounted(struct json_object *d, const char *container, const char *path)
{
	struct json_object *pod = json_get_obj(d, "spec/template/spec");
	struct json_object *c = element(json_get_arr(pod, "containers"), "name", container);
	struct json_object *m = element(json_get_arr(c, "volumeMounts"), "mountPath", path), *v;
	const char *name = json_get_str(m, "name"), *sub = json_get_str(m, "subPath");
	cleanup_free char *source = NULL;

	if (!m)
		return xstrdup("-");
	v = element(json_get_arr(pod, "volumes"), "name", name);
	cr_assert(v, "no volume %s", name);
	json_object_object_foreach (v, member, value)
		if (!str_eq(member, "name")) {
			cleanup_free char *text = json_text(value);

			source = xasprintf("%s%s", member, text);
		}
	return xasprintf("%s|%s|%s", name, sub ? sub : "", source);
}

struct row {
	const char *container, *path, *want;
};

static void expect(struct json_object *d, const struct row *t, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		cleanup_free char *got = mounted(d, t[i].container, t[i].path);

		cr_expect_str_eq(got, t[i].want, "%s: %s", t[i].path, got);
	}
}

static void put_all(const char *toml)
{
	put(false, "conf", "kbs-config.toml", toml);
	put(false, "policy", "policy.rego", "p");
	put(false, "values", "reference-values.json", "[]");
	put(false, "cpu", "default_cpu.rego", "c");
	put(true, "auth", "publicKey", "a");
	put(true, "key", "https.key", "k");
	put(true, "cert", "https.crt", "c");
	put(true, "res.1", "key1", "v");
	put(true, "vcek", "vcek.crt", "v");
}

#define ALL                                                                                        \
	"\"kbsConfigMapName\":\"conf\",\"kbsAuthSecretName\":\"auth\","                            \
	"\"kbsResourcePolicyConfigMapName\":\"policy\","                                           \
	"\"kbsRvpsRefValuesConfigMapName\":\"values\","                                            \
	"\"kbsAttestationPolicyConfigMapName\":\"cpu\","                                           \
	"\"kbsHttpsKeySecretName\":\"key\",\"kbsHttpsCertSecretName\":\"cert\","                   \
	"\"kbsSecretResources\":[\"res.1\"],"                                                      \
	"\"kbsLocalCertCacheSpec\":{\"secrets\":[{\"secretName\":\"vcek\"}]}"

Test(render_kbsconfig, the_older_layout_follows_the_file)
{
	static const struct row t[] = {
		{"kbs", "/etc/kbs-config",
			"kbs-config||configMap{\"name\":\"conf\",\"items\":[{\"key\":\"kbs-config.toml\",\"path\":\"kbs-config.toml\"}]}"},
		{"kbs", "/opt/confidential-containers",
			"confidential-containers||emptyDir{\"medium\":\"Memory\"}"},
		{"kbs", "/o/opa",
			"resource-policy||configMap{\"name\":\"policy\",\"items\":[{\"key\":\"policy.rego\",\"path\":\"policy.rego\"}]}"},
		{"kbs", "/o/rv",
			"reference-values||configMap{\"name\":\"values\",\"items\":[{\"key\":\"reference-values.json\",\"path\":\"values.json\"}]}"},
		{"kbs", "/o/as/opa",
			"attestation-policy||projected{\"sources\":[{\"configMap\":{\"name\":\"cpu\"}}]}"},
		{"kbs", "/o/repo/default", "default||emptyDir{\"medium\":\"Memory\"}"},
		{"kbs", "/o/repo/default/res.1",
			"resource-0||secret{\"secretName\":\"res.1\",\"optional\":true}"},
		{"kbs", "/etc/auth-secret",
			"auth-secret||secret{\"secretName\":\"auth\",\"items\":[{\"key\":\"publicKey\",\"path\":\"publicKey\"}]}"},
		{"kbs", "/etc/https-key",
			"https-key||secret{\"secretName\":\"key\",\"items\":[{\"key\":\"https.key\",\"path\":\"https.key\"}]}"},
		{"kbs", "/opt/confidential-containers/attestation-service/kds-store/vcek",
			"vcek-0||secret{\"secretName\":\"vcek\"}"},
		{"kbs", STORAGE, "-"},
	};
	cleanup_json struct json_object *d = NULL;
	struct json_object *kbs;

	put_all(LEGACY);
	d = deployment(with("{" ALL "}", NULL));
	expect(d, t, ARRAY_LEN(t));
	kbs = json_object_array_get_idx(json_get_arr(d, "spec/template/spec/containers"), 0);
	cr_assert_str_eq(json_get_str(kbs, "image"), render_kbsconfig_images_default.kbs_legacy);
	cr_assert_eq(json_get_int(kbs, "readinessProbe/tcpSocket/port", 0), 8080);
	cr_assert_null(json_get(kbs, "readinessProbe/httpGet"));
}

Test(render_kbsconfig, the_current_layout)
{
	static const struct row t[] = {
		{"kbs", STORAGE, "base-storage-dir||emptyDir{\"medium\":\"Memory\"}"},
		{"kbs", STORAGE "/kbs/resource-policy.rego",
			"resource-policy|resource-policy.rego|configMap{\"name\":\"policy\",\"items\":[{\"key\":\"policy.rego\",\"path\":\"resource-policy.rego\"}]}"},
		{"kbs", STORAGE "/attestation_service_policy/default_cpu.rego",
			"attestation-policy|default_cpu.rego|configMap{\"name\":\"cpu\",\"items\":[{\"key\":\"default_cpu.rego\",\"path\":\"default_cpu.rego\"}]}"},
		{"kbs", STORAGE "/repository",
			"repository-dir||projected{\"sources\":[{\"secret\":{\"name\":\"res.1\",\"items\":[{\"key\":\"key1\",\"path\":\"default\\\\x2Fres.1\\\\x2Fkey1\"}],\"optional\":true}}]}"},
		{"kbs", STORAGE "/local_json", "rvps-dir||emptyDir{\"medium\":\"Memory\"}"},
		/* an empty list of the older form: nothing to mount */
		{"kbs", STORAGE "/local_json/reference_value", "-"},
		/* the file names no key of them */
		{"kbs", "/etc/auth-secret", "-"},
		{"kbs", "/etc/https-key", "-"},
	};
	cleanup_json struct json_object *d = NULL, *s = NULL, *again = NULL;
	struct json_object *kbs;

	put_all(CURRENT);
	d = deployment(with("{" ALL ",\"KbsEnvVars\":{\"B\":\"2\",\"A\":\"1\"}}", NULL));
	expect(d, t, ARRAY_LEN(t));
	kbs = json_object_array_get_idx(json_get_arr(d, "spec/template/spec/containers"), 0);
	cr_assert_str_eq(json_get_str(kbs, "readinessProbe/httpGet/scheme"), "HTTP");
	cr_assert_str_eq(
		json_get_str(json_object_array_get_idx(json_get_arr(kbs, "env"), 0), "name"), "A");
	s = render_kbsconfig_service(model_kbsconfig(config), "ns", &from);
	cr_assert_str_eq(json_get_str(s, "spec/type"), "ClusterIP");
	again = deployment(model_kbsconfig(config));
	cr_assert(json_object_equal(d, again), "the same input, the same object");
}

/* Of v0.19 or v0.20: files as today, and another admin section. */
Test(render_kbsconfig, a_trustee_without_healthz_is_probed_by_its_port)
{
	cleanup_json struct json_object *d = NULL;
	struct json_object *kbs;

	put_all(CURRENT "[admin]\ntype = \"DenyAll\"\n");
	d = deployment(with("{" ALL "}", NULL));
	kbs = json_object_array_get_idx(json_get_arr(d, "spec/template/spec/containers"), 0);
	cr_expect_str_eq(json_get_str(kbs, "image"), render_kbsconfig_images_default.kbs_v0_20);
	cr_expect_eq(json_get_int(kbs, "readinessProbe/tcpSocket/port", 0), 8080);
	cr_expect_eq(json_get_int(kbs, "livenessProbe/tcpSocket/port", 0), 8080);
	cr_expect_null(json_get(kbs, "readinessProbe/httpGet"));
	cr_expect(render_kbsconfig_has_older_admin(model_kbsconfig(config), &from));
	put_all(LEGACY);
	cr_expect(model_input(find(NULL, false, "conf"))->file.older_admin);
	cr_expect_not(render_kbsconfig_has_older_admin(model_kbsconfig(config), &from));
}

Test(render_kbsconfig, the_annotation_wins_over_the_file)
{
	cleanup_json struct json_object *d = NULL;
	cleanup_free char *got = NULL;

	put_all(LEGACY);
	d = deployment(with("{" ALL "}", "\"current\""));
	got = mounted(d, "kbs", STORAGE);
	cr_assert_str_neq(got, "-");
}

Test(render_kbsconfig, microservices_have_their_own_containers)
{
	static const struct row t[] = {
		{"as", "/etc/as-config",
			"as-config||configMap{\"name\":\"as\",\"items\":[{\"key\":\"as-config.json\",\"path\":\"as-config.json\"}]}"},
		{"rvps", "/etc/rvps-config",
			"rvps-config||configMap{\"name\":\"rv\",\"items\":[{\"key\":\"rvps-config.json\",\"path\":\"rvps-config.json\"}]}"},
		{"as", STORAGE "/attestation_service_policy",
			"attestation-policy-dir||emptyDir{\"medium\":\"Memory\"}"},
		{"kbs", STORAGE "/attestation_service_policy", "-"},
		{"rvps", STORAGE "/local_json", "rvps-dir||emptyDir{\"medium\":\"Memory\"}"},
		{"as", "/opt/confidential-containers/attestation-service/kds-store/vcek",
			"vcek-0||secret{\"secretName\":\"vcek\"}"},
	};
	cleanup_json struct json_object *d = NULL;

	put_all(CURRENT);
	put(false, "as", "as-config.json", "{}");
	put(false, "rv", "rvps-config.json", "{}");
	d = deployment(with(
		"{" ALL ",\"kbsAsConfigMapName\":\"as\",\"kbsRvpsConfigMapName\":\"rv\"}", NULL));
	expect(d, t, ARRAY_LEN(t));
	cr_assert_eq(json_object_array_length(json_get_arr(d, "spec/template/spec/containers")), 3);
}

/* ---- images */

#define OLDER_FILES "[policy_engine]\npolicy_path = \"/o/opa/policy.rego\"\n"
#define SEPARATE    ",\"kbsAsConfigMapName\":\"as\",\"kbsRvpsConfigMapName\":\"rv\""

static const char *image(struct json_object *d, const char *container)
{
	return json_get_str(
		element(json_get_arr(d, "spec/template/spec/containers"), "name", container),
		"image");
}

/* kept: what is remembered of a Deployment that was taken over, and what comes of it. */
Test(render_kbsconfig, the_file_says_which_trustee_is_deployed)
{
	static const struct render_kbsconfig_images *const d = &render_kbsconfig_images_default;
	const struct {
		const char *name, *toml, *spec, *image, *reader;
	} rows[] = {
		{"0.11", LEGACY, "", d->kbs_legacy, "v0.11"},
		{"0.18", OLDER_FILES "[admin]\ntype = \"InsecureAllowAll\"\n", "", d->kbs_v0_18,
			"v0.18"},
		{"0.20", CURRENT "[admin]\ntype = \"DenyAll\"\n", "", d->kbs_v0_20, "v0.20"},
		{"now", CURRENT "[admin]\nauthorization_mode = \"DenyAll\"\n", "", d->kbs,
			"current"},
		{"no admin", CURRENT, "", d->kbs, "current"},
		{"separate", CURRENT, SEPARATE, d->kbs_microservices, "microservices"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		cleanup_free char *spec = xasprintf("{" ALL "%s}", rows[i].spec);
		cleanup_json struct json_object *fresh = NULL, *kept = NULL, *other = NULL;
		cleanup_free char *text = NULL, *all = NULL, *expect = NULL;
		struct render_kbsconfig_images images = *d;

		put_all(rows[i].toml);
		put(false, "as", "as-config.json", "{}");
		put(false, "rv", "rvps-config.json", "{}");
		fresh = deployment(with(spec, NULL));
		cr_expect_str_eq(image(fresh, "kbs"), rows[i].image, "%s", rows[i].name);
		text = render_kbsconfig_kept(model_kbsconfig(config), &from, fresh);
		expect = xasprintf("%s kbs=%s", rows[i].reader, rows[i].image);
		cr_expect(str_starts(text, expect), "%s: %s", rows[i].name, text);
		all = xasprintf("%s kbs=reg:5000/kbs@sha256:1 as=as:1 rvps=rvps:1", rows[i].reader);
		images.kept = all;
		kept = render_kbsconfig_deployment(model_kbsconfig(config), "ns", &from, &images);
		cr_expect_str_eq(image(kept, "kbs"), "reg:5000/kbs@sha256:1", "%s", rows[i].name);
		if (*rows[i].spec)
			cr_expect_str_eq(image(kept, "as"), "as:1");
		images.kept = "another kbs=a";
		other = render_kbsconfig_deployment(model_kbsconfig(config), "ns", &from, &images);
		cr_expect(json_object_equal(fresh, other), "%s", rows[i].name);
	}
}

/* kbs verifies the tokens that the attestation service signs. */
Test(render_kbsconfig, microservices_have_the_token_certificate_in_both)
{
	static const struct row t[] = {
		{"kbs", "/etc/attestation-cert",
			"kbs-attestation-cert||secret{\"secretName\":\"token\",\"items\":[{\"key\":\"token.crt\",\"path\":\"token.crt\"}]}"},
		{"as", "/etc/attestation-cert",
			"attestation-cert||secret{\"secretName\":\"token\"}"},
		{"as", "/etc/attestation-key", "attestation-key||secret{\"secretName\":\"key\"}"},
		/* the file names no key of it, and kbs signs nothing */
		{"kbs", "/etc/attestation-key", "-"},
	};
	cleanup_json struct json_object *d = NULL, *one = NULL;
	cleanup_free char *got = NULL;

	put_all(CURRENT
		"[attestation_token]\ntrusted_certs_paths = [\"file:///etc/attestation-cert/token.crt\"]\n");
	put(false, "as", "as-config.json", "{}");
	put(false, "rv", "rvps-config.json", "{}");
	put(true, "token", "token.crt", "c");
	d = deployment(with(
		"{" ALL ",\"kbsAsConfigMapName\":\"as\",\"kbsRvpsConfigMapName\":\"rv\","
		"\"kbsAttestationKeySecretName\":\"key\",\"kbsAttestationCertSecretName\":\"token\"}",
		NULL));
	expect(d, t, ARRAY_LEN(t));
	one = deployment(with("{" ALL ",\"kbsAttestationKeySecretName\":\"key\","
			      "\"kbsAttestationCertSecretName\":\"token\"}",
		NULL));
	got = mounted(one, "kbs", "/etc/attestation-cert");
	cr_assert_str_eq(got,
		"attestation-cert||secret{\"secretName\":\"token\",\"items\":[{\"key\":\"token.crt\",\"path\":\"token.crt\"}]}");
}

/* ---- what rolls Pods */

static const char *hash_of(struct json_object *d)
{
	/* The name has a slash, which json_get_str() takes for a path. */
	return json_object_get_string(json_object_object_get(
		json_get_obj(d, "spec/template/metadata/annotations"), RENDER_KBSCONFIG_HASH));
}

Test(render_kbsconfig, variables_are_in_the_order_of_their_names)
{
	static const char *const specs[] = {
		"{" ALL ",\"KbsEnvVars\":{\"C\":\"3\",\"A\":\"1\",\"B\":\"2\"}}",
		"{" ALL ",\"KbsEnvVars\":{\"B\":\"2\",\"C\":\"3\",\"A\":\"1\"}}"};

	put_all(CURRENT);
	for (size_t i = 0; i < ARRAY_LEN(specs); i++) {
		cleanup_json struct json_object *d = deployment(with(specs[i], NULL));
		struct json_object *kbs = json_object_array_get_idx(
			json_get_arr(d, "spec/template/spec/containers"), 0);
		cleanup_free char *env = json_text(json_get_arr(kbs, "env"));

		cr_expect_str_eq(env,
			"[{\"name\":\"A\",\"value\":\"1\"},{\"name\":\"B\",\"value\":\"2\"},"
			"{\"name\":\"C\",\"value\":\"3\"}]");
	}
}

/* The Pod that serves is there until the next one is ready, with one replica too. */
Test(render_kbsconfig, a_rollout_takes_no_pod_away_first)
{
	cleanup_json struct json_object *d = NULL;

	put_all(CURRENT);
	d = deployment(with("{" ALL ",\"KbsDeploymentSpec\":{\"replicas\":1}}", NULL));
	cr_assert_eq(json_get_int(d, "spec/strategy/rollingUpdate/maxUnavailable", 1), 0);
	cr_assert_eq(json_get_int(d, "spec/strategy/rollingUpdate/maxSurge", 0), 1);
}

/* Secrets count by the keys that the file names: others are not in the Pod. */
#define NAMED                                                                                       \
	"[http_server]\ninsecure_http = false\nprivate_key = \"file:///etc/https-key/https.key\"\n" \
	"certificate = \"/etc/https-cert/https.crt\"\n"                                             \
	"[admin]\nauth_public_key = \"/etc/auth-secret/publicKey\"\n"

Test(render_kbsconfig, content_read_at_the_start_is_in_the_hash_and_resources_are_not)
{
	static const struct {
		const char *toml;
		bool secret;
		const char *name, *key, *value;
		bool rolls;
	} t[] = {
		{CURRENT, false, "conf", "kbs-config.toml", CURRENT "# more\n", true},
		{CURRENT, false, "policy", "policy.rego", "other", true},
		{CURRENT, false, "cpu", "default_cpu.rego", "other", true},
		{NAMED, true, "auth", "publicKey", "other", true},
		{NAMED, true, "key", "https.key", "other", true},
		{NAMED, true, "cert", "https.crt", "other", true},
		{CURRENT, true, "auth", "publicKey", "other", false},
		{CURRENT, true, "auth", "another", "other", false},
		{CURRENT, true, "key", "https.key", "other", false},
		{CURRENT, true, "vcek", "vcek.crt", "other", true},
		{CURRENT, true, "res.1", "key1", "other", false},
		{CURRENT, true, "unrelated", "key1", "other", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		cleanup_json struct json_object *before = NULL, *after = NULL;

		put_all(t[i].toml);
		before = deployment(with("{" ALL "}", NULL));
		put(t[i].secret, t[i].name, t[i].key, t[i].value);
		after = deployment(model_kbsconfig(config));
		cr_expect_eq(!str_eq(hash_of(before), hash_of(after)), t[i].rolls, "%zu: %s", i,
			t[i].name);
		cr_expect_eq(
			!json_object_equal(before, after), t[i].rolls, "%zu: %s", i, t[i].name);
	}
}

Test(render_kbsconfig, another_key_of_a_secret_rolls_nothing)
{
	static const char *const values[][2] = {{"a", "b"}, {"a", "other"}, {"other", "b"}};
	cleanup_json struct json_object *first = NULL;

	put_all(NAMED);
	with("{" ALL "}", NULL);
	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		cleanup_json struct json_object *d = NULL;
		struct json_object *data = json_obj();

		json_add_str(
			json_add_str(data, "publicKey", values[i][0]), "privateKey", values[i][1]);
		put_data(true, "auth", data);
		d = deployment(model_kbsconfig(config));
		if (!first)
			first = json_object_get(d);
		cr_expect_eq(json_object_equal(first, d), str_eq(values[i][0], "a"), "%zu", i);
	}
}

/* ---- the guard */

#define GUARD(layout, kinds) layout ",\"" MODEL_KBSCONFIG_GUARD "\":\"" kinds "\""
#define LOOPBACK             "[http_server]\nsockets = [\"127.0.0.1:8081\"]\ninsecure_http = true\n"

static bool has_arg(struct json_object *container, const char *arg)
{
	struct json_object *args = json_get_arr(container, "args");

	for (size_t i = 0; args && i < json_object_array_length(args); i++)
		if (str_eq(json_object_get_string(json_object_array_get_idx(args, i)), arg))
			return true;
	return false;
}

Test(render_kbsconfig, the_guard_stands_before_trustee)
{
	static const struct row t[] = {
		{"guard", "/etc/tls",
			"guard-tls||projected{\"sources\":[{\"secret\":{\"name\":\"key\",\"items\":[{\"key\":\"https.key\",\"path\":\"tls.key\"}]}},{\"secret\":{\"name\":\"cert\",\"items\":[{\"key\":\"https.crt\",\"path\":\"tls.crt\"}]}}]}"},
		{"kbs", "/etc/https-key", "-"},
	};
	const struct model_kbsconfig *c;
	cleanup_json struct json_object *d = NULL, *service = NULL, *plain = NULL;
	struct json_object *list, *guard, *kbs;

	put_all(LOOPBACK);
	c = with("{" ALL "}", GUARD("null", "tpm+sample"));
	d = deployment(c);
	service = render_kbsconfig_service(c, "ns", &from);
	list = json_get_arr(d, "spec/template/spec/containers");
	guard = element(list, "name", "guard");
	kbs = element(list, "name", "kbs");
	cr_assert(guard);
	cr_expect_str_eq(json_get_str(guard, "image"), render_kbsconfig_images_default.operator_);
	cr_expect(has_arg(guard, "--upstream=http://127.0.0.1:8081"));
	cr_expect(has_arg(guard, "--tee=tpm+sample"));
	cr_expect(has_arg(guard, "--tls-cert=/etc/tls/tls.crt"));
	cr_expect_null(json_get(kbs, "ports"));
	cr_expect_null(json_get(kbs, "readinessProbe"));
	cr_expect_eq(json_get_int(kbs, "livenessProbe/httpGet/port", 0), 8083);
	cr_expect_eq(json_get_int(json_object_array_get_idx(json_get_arr(service, "spec/ports"), 0),
			     "targetPort", 0),
		8080);
	expect(d, t, ARRAY_LEN(t));
	plain = deployment(with("{\"kbsConfigMapName\":\"conf\"}", GUARD("null", "tpm")));
	guard = element(json_get_arr(plain, "spec/template/spec/containers"), "name", "guard");
	cr_expect(!has_arg(guard, "--tls-cert=/etc/tls/tls.crt") && has_arg(guard, "--tee=tpm"));
}

/* ---- a writable repository */

#define WRITABLE(layout, value) layout ",\"" MODEL_KBSCONFIG_WRITABLE "\":\"" value "\""

Test(render_kbsconfig, a_writable_repository_is_filled_before_the_start)
{
	static const char *const rows[] = {"null", WRITABLE("null", "false")};
	cleanup_json struct json_object *d = NULL, *other = NULL;
	cleanup_free char *got = NULL;
	struct json_object *init, *mounts;

	put_all(CURRENT);
	d = deployment(with("{" ALL "}", WRITABLE("null", "true")));
	got = mounted(d, "kbs", STORAGE "/repository");
	cr_assert_str_eq(got, "repository-dir||emptyDir{\"medium\":\"Memory\"}");
	init = json_get_arr(d, "spec/template/spec/initContainers");
	cr_assert_eq(json_object_array_length(init), 1);
	init = json_object_array_get_idx(init, 0);
	cr_expect_str_eq(json_get_str(init, "image"), render_kbsconfig_images_default.operator_);
	cr_expect(json_get_bool(init, "securityContext/readOnlyRootFilesystem", false));
	cr_expect(has_arg(init, "--seed-resources"));
	mounts = json_get_arr(init, "volumeMounts");
	cr_assert_eq(json_object_array_length(mounts), 2);
	cr_expect(has_arg(
		init, json_get_str(element(mounts, "name", "repository-dir"), "mountPath")));
	cr_expect(!json_get_bool(element(mounts, "name", "repository-dir"), "readOnly", false));
	cr_expect(has_arg(init, json_get_str(element(mounts, "name", "resources"), "mountPath")));
	cr_assert(element(json_get_arr(d, "spec/template/spec/volumes"), "name", "resources"));
	/* Without it, and without anything to copy. */
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		cleanup_json struct json_object *plain = deployment(with("{" ALL "}", rows[i]));

		cr_expect_null(json_get(plain, "spec/template/spec/initContainers"));
	}
	other = deployment(with("{\"kbsConfigMapName\":\"conf\"}", WRITABLE("null", "true")));
	cr_expect_null(json_get(other, "spec/template/spec/initContainers"));
}

/* The copy does not follow the Secret. */
Test(render_kbsconfig, a_resource_of_a_writable_repository_rolls_pods)
{
	cleanup_json struct json_object *before = NULL, *after = NULL;

	put_all(CURRENT);
	before = deployment(with("{" ALL "}", WRITABLE("null", "true")));
	put(true, "res.1", "key1", "other");
	after = deployment(model_kbsconfig(config));
	cr_assert_str_neq(hash_of(before), hash_of(after));
}

/* ---- names */

/* Objects may have names that no volume has, or the name of another volume, or be named twice. */
Test(render_kbsconfig, names_of_objects_are_no_names_of_volumes)
{
	static const char *const files[] = {CURRENT, LEGACY};

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		cleanup_json struct json_object *d = NULL;
		struct json_object *volumes;

		put_all(files[i]);
		put(true, "kbs-config", "k", "v");
		put(true, "with.dots", "k", "v");
		d = deployment(
			with("{" ALL ",\"ibmSEConfigSpec\":{\"certStorePvc\":\"auth-secret\"},"
			     "\"kbsSecretResources\":[\"kbs-config\",\"with.dots\",\"vcek\"],"
			     "\"kbsLocalCertCacheSpec\":{\"secrets\":[{\"secretName\":\"vcek\"},"
			     "{\"secretName\":\"with.dots\",\"mountPath\":\"/a\"},"
			     "{\"secretName\":\"with.dots\",\"mountPath\":\"/b\"}]}}",
				NULL));
		volumes = json_get_arr(d, "spec/template/spec/volumes");
		for (size_t k = 0; k < json_object_array_length(volumes); k++) {
			struct json_object *v = json_object_array_get_idx(volumes, k);
			const char *name = json_get_str(v, "name");

			cr_expect(strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") ==
						  strlen(name) &&
					  strlen(name) <= 63,
				"%s", name);
			cr_expect_eq(element(volumes, "name", name), v, "%s twice", name);
		}
	}
}

/* ---- what is missing */

#define A60  "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffff"
#define LONG A60 "." A60 "." A60 "." A60 /* the name of a Secret may have 253 */

Test(render_kbsconfig, the_first_fault_is_named)
{
	static const struct {
		const char *spec, *layout;
		enum model_kbsconfig_reason reason;
		const char *says;
	} t[] = {
		{"{}", NULL, KBSCONFIG_INPUT_INVALID, "spec.kbsConfigMapName is missing"},
		{"{\"kbsConfigMapName\":\"no\"}", NULL, KBSCONFIG_INPUT_MISSING,
			"ConfigMap no, which spec.kbsConfigMapName names, does not exist. Create it."},
		{"{\"kbsConfigMapName\":\"policy\"}", NULL, KBSCONFIG_INPUT_MISSING,
			"ConfigMap policy has no key kbs-config.toml. Add it."},
		{"{\"kbsConfigMapName\":\"conf\",\"kbsAuthSecretName\":\"no\"}", NULL,
			KBSCONFIG_INPUT_MISSING,
			"Secret no, which spec.kbsAuthSecretName names, does not exist. Create it."},
		{"{\"kbsConfigMapName\":\"conf\",\"kbsAuthSecretName\":\"key\"}", NULL,
			KBSCONFIG_INPUT_MISSING,
			"Secret key has no key publicKey, which kbs-config.toml names as /etc/auth-secret/publicKey. Add it."},
		{"{\"kbsConfigMapName\":\"conf\",\"kbsResourcePolicyConfigMapName\":\"cpu\"}", NULL,
			KBSCONFIG_INPUT_MISSING, "ConfigMap cpu has no key policy.rego. Add it."},
		{"{\"kbsConfigMapName\":\"conf\",\"kbsSecretResources\":[\"res.1\",\"no\"]}", NULL,
			KBSCONFIG_INPUT_MISSING,
			"Secret no, which spec.kbsSecretResources names, does not exist. Create it."},
		{"{\"kbsConfigMapName\":\"conf\",\"kbsDeploymentType\":\"MicroservicesDeployment\"}",
			NULL, KBSCONFIG_INPUT_INVALID,
			"MicroservicesDeployment requires spec.kbsAsConfigMapName. Set it."},
		{"{\"kbsConfigMapName\":\"conf\"}", "\"old\"", KBSCONFIG_INPUT_INVALID,
			"is neither legacy nor current"},
		{"{\"kbsConfigMapName\":\"conf\",\"KbsDeploymentSpec\":{\"replicas\":-1}}", NULL,
			KBSCONFIG_INPUT_INVALID, "spec.KbsDeploymentSpec.replicas is negative"},
		{"{\"kbsConfigMapName\":\"bad\"}", NULL, KBSCONFIG_INPUT_INVALID,
			"kbs-config.toml of ConfigMap bad cannot be used: line 1: missing '=' after a key"},
		{"{\"kbsConfigMapName\":\"new\",\"kbsRvpsRefValuesConfigMapName\":\"list\"}", NULL,
			KBSCONFIG_INPUT_INVALID,
			"ConfigMap list contains a list of reference values"},
		{"{\"kbsConfigMapName\":\"new\"}", WRITABLE("null", "yes"), KBSCONFIG_INPUT_INVALID,
			"writable-repository is neither true nor false"},
		{"{\"kbsConfigMapName\":\"conf\"}", WRITABLE("null", "true"),
			KBSCONFIG_INPUT_INVALID, "is for the current layout only. Remove it."},
		{"{\"kbsConfigMapName\":\"conf\"}", WRITABLE("null", "false"),
			KBSCONFIG_IS_INSTALLED, ""},
		{"{\"kbsConfigMapName\":\"local\"}", GUARD("null", "snp"), KBSCONFIG_INPUT_INVALID,
			"is neither tpm nor tpm+sample"},
		{"{\"kbsConfigMapName\":\"conf\"}", GUARD("null", "tpm"), KBSCONFIG_INPUT_INVALID,
			"The guard does not support the protocol of Trustee up to v0.18"},
		{"{\"kbsConfigMapName\":\"new\"}", GUARD("null", "tpm"), KBSCONFIG_INPUT_INVALID,
			"set http_server.sockets in kbs-config.toml to [\"127.0.0.1:8081\"]"},
		{"{\"kbsConfigMapName\":\"local\",\"kbsHttpsKeySecretName\":\"auth\",\"kbsHttpsCertSecretName\":\"cert\"}",
			GUARD("null", "tpm"), KBSCONFIG_INPUT_INVALID,
			"Secret auth has none of the keys tls.key, privateKey, https.key"},
		{"{\"kbsConfigMapName\":\"local\"}", GUARD("null", "tpm"), KBSCONFIG_IS_INSTALLED,
			""},
		{"{\"kbsConfigMapName\":\"new\",\"kbsSecretResources\":[\"" LONG "\"]}", NULL,
			KBSCONFIG_INPUT_INVALID, "exceed 240 characters"},
		{"{\"kbsConfigMapName\":\"conf\",\"kbsSecretResources\":[\"" LONG "\"]}", NULL,
			KBSCONFIG_IS_INSTALLED, ""},
		/* One of a pair does not count, as in the Trustee operator. */
		{"{\"kbsConfigMapName\":\"new\",\"kbsHttpsKeySecretName\":\"no\"}", NULL,
			KBSCONFIG_IS_INSTALLED, ""},
	};

	put_all(LEGACY);
	put(false, "bad", "kbs-config.toml", "x");
	put(false, "new", "kbs-config.toml", CURRENT);
	put(false, "local", "kbs-config.toml", LOOPBACK);
	put(true, LONG, "k", "v");
	put(false, "list", "reference_value", "[{}]");
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		cleanup_strbuf struct strbuf why = STRBUF_INIT;

		cr_expect_eq(render_kbsconfig_check(with(t[i].spec, t[i].layout), &from, &why),
			t[i].reason, "%s: %s", t[i].spec, strbuf_str(&why));
		cr_expect(
			strstr(strbuf_str(&why), t[i].says), "%s: %s", t[i].spec, strbuf_str(&why));
	}
}
