/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include "tec/base/json.h"
#include "tec/kobj/owner.h"
#include "tec/kobj/subset.h"
#include "tec/render/trustee.h"

static struct model_cluster cluster(const char *trustee_secret)
{
	return (struct model_cluster){.obj = {.name = "tec", .uid = "c-1"},
		.trustee_port = 9443,
		.guard = MODEL_GUARD_DISABLED,
		.trustee_secret = trustee_secret};
}

static const struct render_trustee_inputs nothing_known;

static struct json_object *deployment_of(
	const char *trustee_secret, const struct render_trustee_inputs *in)
{
	struct model_cluster c = cluster(trustee_secret);

	return render_trustee_deployment(&c, "ns", &render_images_default, in);
}

static struct json_object *deployment(const char *trustee_secret)
{
	return deployment_of(trustee_secret, &nothing_known);
}

/* The text of the one file of trustee-data, borrowed from o. */
static const char *config_of(struct json_object *o)
{
	struct json_object *v = NULL;

	cr_assert(json_object_object_get_ex(json_get_obj(o, "data"), "kbs-config.toml", &v));
	return json_object_get_string(v);
}

/* An annotation of the Pod template, NULL when it has none. */
static const char *annotation(struct json_object *o, const char *name)
{
	cleanup_free char *full = xasprintf("trusted-execution-clusters.io/%s", name);
	struct json_object *v = NULL;

	json_object_object_get_ex(json_get_obj(o, "spec/template/metadata/annotations"), full, &v);
	return json_object_get_string(v);
}

static struct json_object *pod(struct json_object *o)
{
	return json_get_obj(o, "spec/template/spec");
}

static struct json_object *container(struct json_object *o)
{
	return json_object_array_get_idx(json_get_arr(pod(o), "containers"), 0);
}

/* The element of a list whose `member` is `value`. */
static struct json_object *pick(struct json_object *list, const char *member, const char *value)
{
	for (size_t i = 0; list && i < json_object_array_length(list); i++) {
		struct json_object *e = json_object_array_get_idx(list, i);

		if (str_eq(json_get_str(e, member), value))
			return e;
	}
	return NULL;
}

static void assert_frame(struct json_object *o, const char *version, const char *kind,
	const char *name, const char *owner)
{
	struct json_object *labels = json_get_obj(o, "metadata/labels"), *v = NULL;

	cr_assert_str_eq(json_get_str(o, "apiVersion"), version);
	cr_assert_str_eq(json_get_str(o, "kind"), kind);
	cr_assert_str_eq(json_get_str(o, "metadata/name"), name);
	cr_assert_str_eq(json_get_str(o, "metadata/namespace"), "ns");
	cr_assert(json_object_object_get_ex(labels, "app.kubernetes.io/managed-by", &v));
	cr_assert_str_eq(json_object_get_string(v), "tec-operator");
	if (owner)
		cr_assert(kobj_owner_is_exactly(o, owner));
	else
		cr_assert_eq(kobj_owner_count(o), 0);
}

Test(render_trustee, every_object_has_name_owner_and_hash)
{
	struct model_cluster c = cluster("tls");
	const struct {
		struct json_object *o;
		const char *version, *kind, *name, *owner;
	} cases[] = {
		{render_trustee_data(&c, "ns", &nothing_known), "v1", "ConfigMap", "trustee-data",
			"c-1"},
		{render_trustee_policies(&c, "ns"), "v1", "ConfigMap", "trustee-policies", "c-1"},
		{render_rv_data(&c, "ns"), "v1", "ConfigMap", "trustee-rv-data", "c-1"},
		{render_image_pcrs("ns"), "v1", "ConfigMap", "image-pcrs", NULL},
		{render_trustee_service(&c, "ns"), "v1", "Service", "kbs-service", "c-1"},
		{render_trustee_deployment(&c, "ns", &render_images_default, &nothing_known),
			"apps/v1", "Deployment", "trustee-deployment", "c-1"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_json struct json_object *o = cases[i].o;
		const char *hash = kobj_annotation(o, KOBJ_RENDER_HASH_ANNOTATION);

		assert_frame(o, cases[i].version, cases[i].kind, cases[i].name, cases[i].owner);
		cr_assert(hash && strlen(hash) == 16);
		cr_assert(kobj_subset(o, o));
	}
}

Test(render_trustee, two_renders_are_equal_and_another_cluster_differs)
{
	cleanup_json struct json_object *a = deployment("tls"), *b = deployment("tls");
	cleanup_json struct json_object *other = deployment("tls2");
	cleanup_free char *ta = json_text(a), *tb = json_text(b);

	cr_assert_str_eq(ta, tb);
	cr_assert_str_neq(kobj_annotation(a, KOBJ_RENDER_HASH_ANNOTATION),
		kobj_annotation(other, KOBJ_RENDER_HASH_ANNOTATION));
}

Test(render_trustee, etc_files_are_compiled_in)
{
	cr_assert(strstr(render_etc("tpm.rego"), "package policy"));
	cr_assert(strstr(render_etc("resource.rego"), "default allow := false"));
	cr_assert(strstr(render_etc("kbs-config.toml"), "duration_min = 1\n"));
	cr_assert_null(render_etc("tpm.reg"));
	cr_assert_null(render_etc(""));
}

Test(render_trustee, config_speaks_tls_exactly_when_a_secret_is_named)
{
	static const char *const secrets[] = {"tls", NULL};

	for (size_t i = 0; i < ARRAY_LEN(secrets); i++) {
		struct model_cluster c = cluster(secrets[i]);
		cleanup_json struct json_object *o = render_trustee_data(&c, "ns", &nothing_known);
		const char *toml = config_of(o);

		cr_assert_eq(
			strstr(toml, "\nprivate_key = \"/etc/tls/tls.key\"\n") != NULL, i == 0);
		cr_assert_eq(
			strstr(toml, "\ncertificate = \"/etc/tls/tls.crt\"\n") != NULL, i == 0);
		cr_assert_eq(strstr(toml, "\ninsecure_http = true\n") != NULL, i == 1);
		cr_assert_null(strstr(toml, "\n#plain:"), "no marker is left");
		cr_assert_null(strstr(toml, " #tls\n"));
		cr_assert(strstr(
			toml, "\ntrusted_certs_paths = [\"/opt/trustee/token/cert.pem\"]\n"));
		cr_assert(str_ends(toml, "dir_path = \"/opt/trustee/storage\"\n"));
	}
}

Test(render_trustee, config_has_what_the_contract_asks_for)
{
	static const char *const lines[] = {"session_storage_type = \"Memory\"", "duration_min = 1",
		"key_path = \"/opt/trustee/token/key.pem\"",
		"cert_path = \"/opt/trustee/token/cert.pem\"",
		"trusted_certs_paths = [\"/opt/trustee/token/cert.pem\"]",
		"storage_type = \"LocalFs\"", "issuer = \"tec-operator\"", "audience = \"kbs\"",
		"public_key_uri = \"/opt/trustee/keys/public.pub\""};
	const char *toml = render_etc("kbs-config.toml");

	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		cr_assert(strstr(toml, lines[i]), "%s", lines[i]);
	cr_assert_null(strstr(toml, "\ninsecure_header_jwk"));
}

#define SEVEN "pcr7_required"
#define ONCE  "once_per_boot"

/* One line, and all else is the same. */
Test(render_trustee, each_policy_has_a_stricter_variant)
{
	static const char *const names[][3] = {{"tpm.rego", "tpm-pcr7.rego", SEVEN},
		{"tpm-shared.rego", "tpm-shared-pcr7.rego", SEVEN},
		{"tpm-v017.rego", "tpm-v017-pcr7.rego", SEVEN},
		{"resource.rego", "resource-once.rego", ONCE},
		{"resource-shared.rego", "resource-shared-once.rego", ONCE}};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const char *base = render_etc(names[i][0]), *variant = render_etc(names[i][1]), *at;
		cleanup_free char *off = xasprintf("\n%s := false\n", names[i][2]);
		cleanup_free char *on = xasprintf("\n%s := true\n", names[i][2]);

		cr_assert(base && variant, "%s", names[i][1]);
		at = strstr(base, off);
		cr_assert(at && !strstr(at + 1, off) && !strstr(base, on), "%s", names[i][0]);
		cr_assert_eq(strncmp(base, variant, (size_t)(at - base)), 0, "%s", names[i][1]);
		variant += at - base;
		cr_assert_eq(strncmp(variant, on, strlen(on)), 0, "%s", names[i][1]);
		cr_assert_str_eq(variant + strlen(on), at + strlen(off));
	}
	cr_assert_null(render_etc("resource-pcr7.rego"));
	cr_assert_null(render_etc("tpm-once.rego"));
	cr_assert_null(render_etc("kbs-config-pcr7.rego"));
}

Test(render_trustee, policies_are_where_seed_looks_for_them)
{
	static const struct {
		enum model_isolation isolation;
		enum model_pcr7 pcr7;
		enum model_release release;
		const char *attestation, *resource;
	} modes[] = {
		{MODEL_ISOLATION_PER_MACHINE, MODEL_PCR7_IGNORE, MODEL_RELEASE_ANY_TIME, "tpm.rego",
			"resource.rego"},
		{MODEL_ISOLATION_SHARED, MODEL_PCR7_IGNORE, MODEL_RELEASE_ANY_TIME,
			"tpm-shared.rego", "resource-shared.rego"},
		{MODEL_ISOLATION_PER_MACHINE, MODEL_PCR7_REQUIRE, MODEL_RELEASE_ONCE_PER_BOOT,
			"tpm-pcr7.rego", "resource-once.rego"},
		{MODEL_ISOLATION_SHARED, MODEL_PCR7_REQUIRE, MODEL_RELEASE_ONCE_PER_BOOT,
			"tpm-shared-pcr7.rego", "resource-shared-once.rego"},
	};

	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		struct model_cluster c = cluster(NULL);
		cleanup_json struct json_object *o = NULL;
		struct json_object *data;

		c.isolation = modes[i].isolation;
		c.pcr7 = modes[i].pcr7;
		c.release = modes[i].release;
		o = render_trustee_policies(&c, "ns");
		data = json_get_obj(o, "data");
		cr_assert_eq(json_object_object_length(data), 2);
		cr_assert_str_eq(
			json_get_str(data, "default_cpu.rego"), render_etc(modes[i].attestation));
		cr_assert_str_eq(
			json_get_str(data, "resource-policy.rego"), render_etc(modes[i].resource));
		cr_assert_str_eq(
			render_trustee_attestation_policy(&c), render_etc(modes[i].attestation));
		cr_assert_str_eq(render_trustee_resource_policy(&c), render_etc(modes[i].resource));
	}
}

Test(render_trustee, reference_data_starts_empty)
{
	struct model_cluster c = cluster(NULL);
	cleanup_json struct json_object *rv = render_rv_data(&c, "ns"),
					*pcrs = render_image_pcrs("ns");

	cr_assert_str_eq(json_get_str(rv, "data/reference-values.json"), "[]");
	cr_assert_str_eq(json_get_str(pcrs, "data/image-pcrs.json"), "{}");
}

Test(render_trustee, service_has_the_clusters_port)
{
	struct model_cluster c = cluster(NULL);
	cleanup_json struct json_object *o = render_trustee_service(&c, "ns");
	struct json_object *p = json_object_array_get_idx(json_get_arr(o, "spec/ports"), 0);

	cr_assert_str_eq(json_get_str(o, "spec/selector/app"), "kbs");
	cr_assert_str_eq(json_get_str(p, "name"), "kbs-port");
	cr_assert_eq(json_get_int(p, "port", 0), 9443);
	cr_assert_eq(json_get_int(p, "targetPort", 0), 8080);
}

Test(render_trustee, deployment_selects_app_kbs_and_runs_the_images)
{
	cleanup_json struct json_object *o = deployment(NULL);
	struct json_object *init =
		json_object_array_get_idx(json_get_arr(pod(o), "initContainers"), 0);
	struct json_object *cmd = json_get_arr(container(o), "command");

	cr_assert_str_eq(json_get_str(o, "metadata/labels/app"), "kbs");
	cr_assert_str_eq(json_get_str(o, "spec/selector/matchLabels/app"), "kbs");
	cr_assert_str_eq(json_get_str(o, "spec/template/metadata/labels/app"), "kbs");
	cr_assert_str_eq(json_get_str(container(o), "name"), "kbs");
	cr_assert_str_eq(json_get_str(container(o), "image"), render_images_default.trustee);
	cr_assert_str_eq(json_get_str(init, "image"), render_images_default.operator_);
	cr_assert_str_eq(
		json_object_get_string(json_object_array_get_idx(cmd, 0)), "/usr/local/bin/kbs");
	cr_assert_str_eq(json_object_get_string(json_object_array_get_idx(cmd, 2)),
		"/etc/kbs/kbs-config.toml");
	cr_assert_str_eq(
		json_get_str(pick(json_get_arr(container(o), "env"), "name", "RUST_LOG"), "value"),
		"info");
}

Test(render_trustee, deployment_mounts_what_the_config_names)
{
	static const struct {
		const char *path, *volume;
	} mounts[] = {{"/etc/kbs", "trustee-data"}, {"/opt/trustee/keys", "trustee-auth"},
		{"/opt/trustee/token", "trustee-token"},
		{"/opt/trustee/storage", "trustee-storage"}, {"/etc/tls", "trustee-tls"}};
	cleanup_json struct json_object *o = deployment("tls"), *plain = deployment(NULL);
	struct json_object *list = json_get_arr(container(o), "volumeMounts");
	struct json_object *volumes = json_get_arr(pod(o), "volumes");

	for (size_t i = 0; i < ARRAY_LEN(mounts); i++) {
		struct json_object *m = pick(list, "mountPath", mounts[i].path);
		bool storage = str_eq(mounts[i].volume, "trustee-storage");

		cr_assert_str_eq(json_get_str(m, "name"), mounts[i].volume);
		cr_assert(pick(volumes, "name", mounts[i].volume));
		cr_assert_eq(json_get_bool(m, "readOnly", false), !storage);
	}
	cr_assert_str_eq(
		json_get_str(pick(volumes, "name", "trustee-tls"), "secret/secretName"), "tls");
	cr_assert_null(pick(json_get_arr(pod(plain), "volumes"), "name", "trustee-tls"));
	cr_assert_null(
		pick(json_get_arr(container(plain), "volumeMounts"), "mountPath", "/etc/tls"));
}

Test(render_trustee, keys_stay_off_the_disk_and_the_admin_key_out_of_the_pod)
{
	cleanup_json struct json_object *o = deployment("tls");
	struct json_object *volumes = json_get_arr(pod(o), "volumes");
	struct json_object *storage = pick(volumes, "name", "trustee-storage");
	struct json_object *auth = pick(volumes, "name", "trustee-auth");
	struct json_object *items = json_get_arr(auth, "secret/items");

	cr_assert_str_eq(json_get_str(storage, "emptyDir/medium"), "Memory");
	cr_assert(json_get_str(storage, "emptyDir/sizeLimit"));
	cr_assert_eq(json_object_array_length(items), 1);
	cr_assert(pick(items, "key", "public.pub"));
}

Test(render_trustee, pod_meets_the_restricted_standard)
{
	cleanup_json struct json_object *o = deployment("tls");
	struct json_object *lists[] = {
		json_get_arr(pod(o), "initContainers"), json_get_arr(pod(o), "containers")};

	cr_assert(json_get_bool(pod(o), "securityContext/runAsNonRoot", false));
	cr_assert_eq(json_get_int(pod(o), "securityContext/runAsUser", 0), 65532);
	cr_assert_eq(json_get_int(pod(o), "securityContext/fsGroup", 0), 65532);
	cr_assert_str_eq(
		json_get_str(pod(o), "securityContext/seccompProfile/type"), "RuntimeDefault");
	cr_assert_not(json_get_bool(pod(o), "automountServiceAccountToken", true));
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		struct json_object *c = json_object_array_get_idx(lists[i], 0);
		struct json_object *drop = json_get_arr(c, "securityContext/capabilities/drop");

		cr_assert_eq(json_object_array_length(lists[i]), 1);
		cr_assert_not(json_get_bool(c, "securityContext/allowPrivilegeEscalation", true));
		cr_assert(json_get_bool(c, "securityContext/readOnlyRootFilesystem", false));
		cr_assert_str_eq(json_object_get_string(json_object_array_get_idx(drop, 0)), "ALL");
		cr_assert(json_get_str(c, "resources/requests/memory"));
		cr_assert(json_get_str(c, "resources/limits/memory"));
	}
}

/* Kubernetes adds 300 s where a Pod says nothing. */
Test(render_trustee, a_dead_node_keeps_it_for_30_s)
{
	cleanup_json struct json_object *o = deployment(NULL);
	struct json_object *list = json_get_arr(pod(o), "tolerations");

	cr_assert_eq(json_object_array_length(list), 2);
	for (size_t i = 0; i < 2; i++) {
		struct json_object *t = json_object_array_get_idx(list, i);

		cr_expect_str_eq(json_get_str(t, "key"),
			i ? "node.kubernetes.io/unreachable" : "node.kubernetes.io/not-ready");
		cr_expect_str_eq(json_get_str(t, "operator"), "Exists");
		cr_expect_str_eq(json_get_str(t, "effect"), "NoExecute");
		cr_expect_eq(json_get_int(t, "tolerationSeconds", 0), 30);
	}
}

Test(render_trustee, probes_follow_the_scheme)
{
	static const char *const probes[] = {"startupProbe", "livenessProbe", "readinessProbe"};
	cleanup_json struct json_object *tls = deployment("tls"), *plain = deployment(NULL);

	for (size_t i = 0; i < ARRAY_LEN(probes); i++) {
		struct json_object *a = json_get_obj(container(tls), probes[i]);
		struct json_object *b = json_get_obj(container(plain), probes[i]);

		cr_assert_str_eq(json_get_str(a, "httpGet/path"), "/healthz");
		cr_assert_str_eq(json_get_str(a, "httpGet/scheme"), "HTTPS");
		cr_assert_str_eq(json_get_str(b, "httpGet/scheme"), "HTTP");
	}
}

Test(render_trustee, seed_writes_the_policies_into_the_storage)
{
	cleanup_json struct json_object *o = deployment(NULL);
	struct json_object *init =
		json_object_array_get_idx(json_get_arr(pod(o), "initContainers"), 0);
	struct json_object *args = json_get_arr(init, "args");
	struct json_object *mounts = json_get_arr(init, "volumeMounts");
	const char *src = json_object_get_string(json_object_array_get_idx(args, 1));
	const char *dst = json_object_get_string(json_object_array_get_idx(args, 2));

	cr_assert_str_eq(json_object_get_string(json_object_array_get_idx(args, 0)), "--seed");
	cr_assert_str_eq(json_get_str(pick(mounts, "mountPath", src), "name"), "trustee-policies");
	cr_assert_str_eq(json_get_str(pick(mounts, "mountPath", dst), "name"), "trustee-storage");
}

static const struct render_token_signer renewed[] = {{.name = "trustee-token-3", .hash = "h3"},
	{.name = "trustee-token", .hash = "h1"}, {.name = "trustee-token-2", .hash = "h2"}};

Test(render_trustee, what_a_running_trustee_does_not_notice_restarts_it)
{
	const struct render_trustee_inputs base = {"t1", renewed, 2}, tls = {"t2", renewed, 2},
					   signer = {"t1", &renewed[1], 1};
	cleanup_json struct json_object *a = deployment_of("tls", &base),
					*same = deployment_of("tls", &base),
					*b = deployment_of("tls", &tls),
					*c = deployment_of("tls", &signer),
					*plain = deployment_of(NULL, &base);
	const char *config = annotation(a, "config-hash");

	cr_assert(json_object_equal(json_get_obj(a, "spec"), json_get_obj(same, "spec")));
	cr_assert_eq(strlen(config), 16);
	cr_assert_str_eq(annotation(a, "tls-hash"), "t1");
	cr_assert_str_eq(annotation(a, "token-hash"), "h3.h1");
	cr_assert_str_eq(annotation(b, "tls-hash"), "t2");
	cr_assert_str_eq(annotation(b, "config-hash"), config);
	cr_assert_str_eq(annotation(c, "token-hash"), "h1");
	cr_assert_str_neq(annotation(c, "config-hash"), config, "the list of trusted ones");
	cr_assert_str_eq(render_trustee_tls_hash(b), "t2"); /* as it is read back */
	cr_assert_str_eq(render_trustee_token_hash(a), "h3.h1");
	cr_assert_null(render_trustee_tls_hash(plain));
	cr_assert_null(render_trustee_tls_hash(NULL));
	cr_assert_null(annotation(plain, "tls-hash"), "nothing is mounted");
	cr_assert_str_neq(annotation(plain, "config-hash"), config);
}

Test(render_trustee, the_clusters_other_fields_restart_nothing)
{
	struct model_cluster c = cluster("tls"), other = cluster("tls");
	cleanup_json struct json_object *a = NULL, *b = NULL;

	other.trustee_port = 1;
	other.public_trustee_addr = "trustee.example";
	other.isolation = MODEL_ISOLATION_SHARED;
	other.machine_limit = 7;
	other.n_servers = 1;
	other.server_addr[0] = "a";
	a = render_trustee_deployment(&c, "ns", &render_images_default, &nothing_known);
	b = render_trustee_deployment(&other, "ns", &render_images_default, &nothing_known);
	cr_assert(json_object_equal(json_get_obj(a, "spec"), json_get_obj(b, "spec")));
}

Test(render_trustee, a_hash_that_is_not_known_is_left_out)
{
	const struct render_token_signer half[] = {renewed[0], {.name = "trustee-token"}};
	const struct render_trustee_inputs in = {NULL, half, 2};
	cleanup_json struct json_object *o = deployment_of("tls", &in), *none = deployment("tls");

	cr_assert_null(annotation(o, "tls-hash"));
	cr_assert_null(annotation(o, "token-hash"));
	cr_assert_null(annotation(none, "token-hash"));
}

Test(render_trustee, former_signers_are_trusted_without_their_keys)
{
	const struct render_trustee_inputs in = {NULL, renewed, 3};
	struct model_cluster c = cluster(NULL);
	cleanup_json struct json_object *data = render_trustee_data(&c, "ns", &in),
					*o = deployment_of(NULL, &in);
	struct json_object *volumes = json_get_arr(pod(o), "volumes");
	struct json_object *mounts = json_get_arr(container(o), "volumeMounts"), *old, *items;

	cr_assert(strstr(config_of(data),
		"\ntrusted_certs_paths = [\"/opt/trustee/token/cert.pem\", "
		"\"/opt/trustee/token-old/1/cert.pem\", \"/opt/trustee/token-old/2/cert.pem\"]\n"));
	cr_assert(strstr(config_of(data), "\nkey_path = \"/opt/trustee/token/key.pem\"\n"));
	cr_assert_str_eq(json_get_str(pick(volumes, "name", "trustee-token"), "secret/secretName"),
		"trustee-token-3");
	cr_assert_str_eq(json_get_str(pick(mounts, "mountPath", "/opt/trustee/token"), "name"),
		"trustee-token");
	cr_assert_str_eq(
		json_get_str(pick(mounts, "mountPath", "/opt/trustee/token-old/1"), "name"),
		"trustee-token-old-1");
	cr_assert(pick(mounts, "mountPath", "/opt/trustee/token-old/2"));
	old = pick(volumes, "name", "trustee-token-old-1");
	items = json_get_arr(old, "secret/items");
	cr_assert_str_eq(json_get_str(old, "secret/secretName"), "trustee-token");
	cr_assert_eq(json_object_array_length(items), 1);
	cr_assert(pick(items, "key", "cert.pem"));
}

/* What the Rust operator's Deployment looks like, after ours was applied over it or before. */
Test(render_trustee, the_rust_operators_deployment_is_foreign)
{
	static const struct {
		const char *path;
		bool foreign;
	} cases[] = {{"/opt/trustee", true}, {"/opt/trustee/policies/opa", true},
		{"/opt/trustee/kbs-repository/default", true},
		{"/opt/trustee/kbs-repository/default/11111111-2222-4333-8444-555555555555", true},
		{"/key", true}, {"/etc/tpm/trusted_ak_keys", false}, {"/etc/tls", false},
		{"/opt/trustee/keys", false}, {"/opt/trustee/kbs-repository/default2", false},
		{"/var/run/sidecar", false}, {"", false}};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_json struct json_object *o = deployment("tls");

		cr_assert_not(render_trustee_deployment_is_foreign(o), "ours");
		json_push(json_get_arr(container(o), "volumeMounts"),
			json_add_str(
				json_add_str(json_obj(), "name", "v"), "mountPath", cases[i].path));
		cr_assert_eq(render_trustee_deployment_is_foreign(o), cases[i].foreign, "%s",
			cases[i].path);
	}
}

Test(render_trustee, a_deployment_of_any_shape_can_be_judged)
{
	static const char *const texts[] = {"{}", "{\"spec\":1}",
		"{\"spec\":{\"template\":{\"spec\":{\"containers\":{}}}}}",
		"{\"spec\":{\"template\":{\"spec\":{\"containers\":[1,null,{}]}}}}",
		"{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"volumeMounts\":[null,{"
		"\"mountPath\":7}]}]}}}}"};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct err err = ERR_INIT;
		cleanup_json struct json_object *o =
			json_parse(texts[i], strlen(texts[i]), &json_limits_object, &err);

		cr_assert(o, "%s", err.text);
		cr_assert_not(render_trustee_deployment_is_foreign(o));
	}
}

/* The Secret's text as JSON, with its data decoded for comparison. */
static void assert_secret(struct secret *take_text, const char *name, const char *key_name,
	const char *key, const char *text_name, const char *text)
{
	cleanup_secret struct secret *s = take_text;
	struct err err = ERR_INIT;
	cleanup_json struct json_object *o =
		json_parse((const char *)secret_peek(s), secret_len(s), &json_limits_object, &err);
	cleanup_strbuf struct strbuf a = STRBUF_INIT, b = STRBUF_INIT;
	struct json_object *data;

	cr_assert(o, "%s", err.text);
	assert_frame(o, "v1", "Secret", name, "c-1");
	cr_assert_str_eq(json_get_str(o, "type"), "Opaque");
	data = json_get_obj(o, "data");
	cr_assert_eq(json_object_object_length(data), 2);
	bytes_to_b64(&a, key, strlen(key));
	bytes_to_b64(&b, text, strlen(text));
	cr_assert_str_eq(json_get_str(data, key_name), a.data);
	cr_assert_str_eq(json_get_str(data, text_name), b.data);
}

Test(render_trustee, secrets_hold_both_halves)
{
	struct model_cluster c = cluster(NULL);
	cleanup_secret struct secret *key = secret_new_copy("PRIVATE", 7);

	assert_secret(render_auth_secret(&c, "ns", key, "PUBLIC"), "trustee-auth", "private.key",
		"PRIVATE", "public.pub", "PUBLIC");
	assert_secret(render_token_secret(&c, "ns", "trustee-token-2", key, "CERT"),
		"trustee-token-2", "key.pem", "PRIVATE", "cert.pem", "CERT");
	cr_assert_eq(secret_count(), 1, "only the test's own is left");
}
