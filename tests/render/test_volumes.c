/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "tec/base/json.h"
#include "tec/kobj/owner.h"
#include "tec/render/volumes.h"

#define ID_A "11111111-2222-4333-8444-555555555555"
#define ID_B "99999999-2222-4333-8444-555555555555"

static const struct model_cluster cluster = {.obj = {.name = "tec", .uid = "c-1"},
	.trustee_port = 8080,
	.guard = MODEL_GUARD_DISABLED,
	.delivery = MODEL_DELIVERY_VOLUMES,
	.isolation = MODEL_ISOLATION_SHARED};
static const char *two_ids[] = {ID_A, ID_B}, *two_aks[] = {"ak-1", "ak-2"};
static const struct render_volumes two = {{two_ids, 2}, {two_aks, 2}, NULL};

static struct json_object *render(const struct render_volumes *v, struct err *err)
{
	return render_trustee_deployment_volumes(
		&cluster, "ns", &render_images_default, &(struct render_trustee_inputs){0}, v, err);
}

static struct json_object *rendered(const struct render_volumes *v)
{
	struct err err = ERR_INIT;
	struct json_object *o = render(v, &err);

	cr_assert(o, "%s", err.text);
	return o;
}

static struct json_object *pick(struct json_object *list, const char *member, const char *value)
{
	for (size_t i = 0; list && i < json_object_array_length(list); i++) {
		struct json_object *e = json_object_array_get_idx(list, i);

		if (str_eq(json_get_str(e, member), value))
			return e;
	}
	return NULL;
}

static struct json_object *container(struct json_object *o)
{
	return json_object_array_get_idx(json_get_arr(o, "spec/template/spec/containers"), 0);
}

/* A runtime may mount in the order of the list. */
Test(render_volumes, a_folder_is_mounted_before_what_is_inside_it)
{
	cleanup_json struct json_object *o = rendered(&two);
	struct json_object *mounts = json_get_arr(container(o), "volumeMounts");
	size_t n = json_object_array_length(mounts), nested = 0;

	for (size_t i = 0; i < n; i++) {
		const char *first = json_get_str(json_object_array_get_idx(mounts, i), "mountPath");

		for (size_t j = 0; j < n; j++) {
			const char *p =
				json_get_str(json_object_array_get_idx(mounts, j), "mountPath");

			if (i == j || !str_starts(p, first) || p[strlen(first)] != '/')
				continue;
			nested++;
			cr_assert_lt(i, j, "%s comes after %s", first, p);
		}
	}
	cr_assert_geq(nested, (size_t)1);
}

/* The volume that is mounted at path. */
static struct json_object *volume_at(struct json_object *o, const char *path)
{
	struct json_object *m = pick(json_get_arr(container(o), "volumeMounts"), "mountPath", path);

	cr_assert(m, "%s", path);
	cr_assert(json_get_bool(m, "readOnly", false) || str_eq(path, "/opt/trustee/storage"));
	return pick(json_get_arr(o, "spec/template/spec/volumes"), "name", json_get_str(m, "name"));
}

Test(render_volumes, every_machine_and_key_is_a_file)
{
	cleanup_json struct json_object *o = rendered(&two);
	struct json_object *key = volume_at(o, RENDER_VOLUMES_REPOSITORY "/default/" ID_B);
	struct json_object *aks = volume_at(o, "/etc/tpm/trusted_ak_keys");
	struct json_object *sources = json_get_arr(aks, "projected/sources"), *second;

	cr_assert(volume_at(o, RENDER_VOLUMES_REPOSITORY "/default/" ID_A));
	cr_assert_str_eq(json_get_str(key, "secret/secretName"), ID_B);
	cr_assert(json_get_bool(key, "secret/optional", false));
	cr_assert(pick(json_get_arr(key, "secret/items"), "key", "root"));
	cr_assert_eq(json_object_array_length(sources), 2);
	second = json_object_array_get_idx(sources, 1);
	cr_assert_str_eq(json_get_str(second, "secret/name"), "ak-2");
	cr_assert(json_get_bool(second, "secret/optional", false));
	cr_assert_str_eq(
		json_get_str(
			pick(json_get_arr(second, "secret/items"), "key", "public_key"), "path"),
		"ak-2.pub");
}

Test(render_volumes, the_config_names_what_is_mounted)
{
	static const char *const lines[] = {"\npolicy_dir = \"/opt/trustee/storage/policies\"\n",
		"\npolicy_path = \"/opt/trustee/resource-policy/resource-policy.rego\"\n",
		"\nfile_path = \"/opt/trustee/reference-values/reference-values.json\"\n",
		"\ndir_path = \"" RENDER_VOLUMES_REPOSITORY "\"\n",
		"\ntrusted_ak_keys_dir = \"" RENDER_VOLUMES_AK_DIR "\"\n",
		"\ntrusted_certs_paths = [\"/opt/trustee/token/cert.pem\"]\n",
		"\nkey_path = \"/opt/trustee/token/key.pem\"\n", "\ntype = \"DenyAll\"\n",
		"\ninsecure_key = false\n", "\ninsecure_http = true\n"};
	static const char *const paths[][2] = {
		{"/opt/trustee/storage/policies/opa", "default_cpu.rego"},
		{"/opt/trustee/storage/policies/opa", "default_gpu.rego"},
		{"/opt/trustee/resource-policy", "resource-policy.rego"},
		{"/opt/trustee/reference-values", "reference-values.json"}};
	cleanup_json struct json_object *o = rendered(&two),
					*data = render_trustee_data(
						&cluster, "ns", &(struct render_trustee_inputs){0});
	struct json_object *toml = NULL;

	cr_assert(json_object_object_get_ex(json_get_obj(data, "data"), "kbs-config.toml", &toml));
	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		cr_assert(strstr(json_object_get_string(toml), lines[i]), "%s", lines[i]);
	cr_assert_null(strstr(json_object_get_string(toml), " #"), "no marker is left");
	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		cr_assert(pick(json_get_arr(volume_at(o, paths[i][0]), "configMap/items"), "key",
			paths[i][1]));
	cr_assert_str_eq(json_get_str(volume_at(o, "/etc/kbs"), "configMap/name"), "trustee-data");
	cr_assert_str_eq(json_get_str(volume_at(o, "/opt/trustee/token"), "secret/secretName"),
		"trustee-token");
	cr_assert_str_eq(
		json_get_str(volume_at(o, "/opt/trustee/storage"), "emptyDir/medium"), "Memory");
}

Test(render_volumes, policies_are_those_of_the_era)
{
	cleanup_json struct json_object *o = render_trustee_policies(&cluster, "ns");
	struct json_object *data = json_get_obj(o, "data");

	cr_assert(kobj_owner_is_exactly(o, "c-1"));
	cr_assert_str_eq(json_get_str(o, "metadata/name"), "trustee-policies");
	cr_assert_eq(json_object_object_length(data), 3);
	cr_assert_str_eq(json_get_str(data, "default_cpu.rego"), render_etc("tpm-v017.rego"));
	cr_assert_str_eq(json_get_str(data, "default_gpu.rego"), "");
	cr_assert_str_eq(
		json_get_str(data, "resource-policy.rego"), render_etc("resource-shared.rego"));

	struct model_cluster strict = cluster;
	strict.pcr7 = MODEL_PCR7_REQUIRE;
	strict.release = MODEL_RELEASE_ONCE_PER_BOOT;
	cleanup_json struct json_object *other = render_trustee_policies(&strict, "ns");
	struct json_object *text = NULL;
	cr_assert(
		json_object_object_get_ex(json_get_obj(other, "data"), "default_cpu.rego", &text));
	cr_assert_str_eq(json_object_get_string(text), render_etc("tpm-v017-pcr7.rego"));
	cr_assert_str_eq(json_get_str(json_get_obj(other, "data"), "resource-policy.rego"),
		render_etc("resource-shared-once.rego"));
}

Test(render_volumes, no_seed_and_no_healthz_in_that_era)
{
	cleanup_json struct json_object *o = rendered(&two);

	cr_assert_null(json_get(o, "spec/template/spec/initContainers"));
	cr_assert_null(json_get(container(o), "livenessProbe/httpGet"));
	cr_assert_eq(json_get_int(container(o), "livenessProbe/tcpSocket/port", 0), 8080);
	cr_assert_null(
		pick(json_get_arr(container(o), "volumeMounts"), "mountPath", "/opt/trustee/keys"),
		"nobody administers it");
	cr_assert_not(render_trustee_deployment_is_foreign(o));
	cr_assert_str_eq(json_get_str(o, "metadata/name"), "trustee-deployment");
	cr_assert(json_get_bool(o, "spec/template/spec/securityContext/runAsNonRoot", false));
}

Test(render_volumes, no_volume_of_one_delivery_has_another_source_in_the_other)
{
	cleanup_json struct json_object *a = rendered(&two),
					*b = render_trustee_deployment(&cluster, "ns",
						&render_images_default,
						&(struct render_trustee_inputs){0});
	struct json_object *va = json_get_arr(a, "spec/template/spec/volumes");
	struct json_object *vb = json_get_arr(b, "spec/template/spec/volumes");
	unsigned common = 0;

	for (size_t i = 0; i < json_object_array_length(va); i++) {
		struct json_object *x = json_object_array_get_idx(va, i);
		struct json_object *y = pick(vb, "name", json_get_str(x, "name")), *source;

		common += y != NULL;
		json_object_object_foreach (x, member, value) {
			(void)value;
			cr_assert(!y || json_object_object_get_ex(y, member, &source), "%s",
				json_get_str(x, "name"));
		}
	}
	cr_assert_eq(common, 4);
}

Test(render_volumes, the_same_lists_are_the_same_bytes)
{
	const struct render_volumes one = {{two_ids, 1}, {two_aks, 2}, NULL}, none = {0};
	cleanup_json struct json_object *a = rendered(&two), *b = rendered(&two),
					*c = rendered(&one), *d = rendered(&none);
	cleanup_free char *ta = json_text(a), *tb = json_text(b);

	cr_assert_str_eq(ta, tb);
	cr_assert_not(json_object_equal(json_get_obj(a, "spec"), json_get_obj(c, "spec")));
	cr_assert(volume_at(d, RENDER_VOLUMES_AK_DIR), "an empty folder");
}

Test(render_volumes, a_long_name_is_a_short_file)
{
	char fits[252], longer[253];
	const char *aks[2] = {fits, longer};
	const struct render_volumes v = {{NULL, 0}, {aks, 2}, NULL};
	cleanup_json struct json_object *o = NULL;
	struct json_object *sources;

	memset(fits, 'a', sizeof(fits) - 1);
	fits[sizeof(fits) - 1] = '\0';
	memset(longer, 'a', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	o = rendered(&v);
	sources = json_get_arr(volume_at(o, RENDER_VOLUMES_AK_DIR), "projected/sources");
	for (size_t i = 0; i < 2; i++) {
		struct json_object *s = json_object_array_get_idx(sources, i);
		const char *path = json_get_str(
			json_object_array_get_idx(json_get_arr(s, "secret/items"), 0), "path");

		cr_assert_str_eq(json_get_str(s, "secret/name"), aks[i]);
		cr_assert_eq(strlen(path), i ? 68 : 255);
		cr_assert(str_ends(path, ".pub"));
	}
}

Test(render_volumes, lists_out_of_order_are_refused)
{
	static const char *wrong[] = {ID_B, ID_A}, *twice[] = {ID_A, ID_A};
	const struct {
		struct render_volumes v;
		enum err_kind kind;
	} cases[] = {{{{wrong, 2}, {NULL, 0}, NULL}, ERR_BUG},
		{{{twice, 2}, {NULL, 0}, NULL}, ERR_BUG}, {{{NULL, 0}, {wrong, 2}, NULL}, ERR_BUG},
		{{{NULL, 0}, {twice, 2}, NULL}, ERR_BUG},
		{{{(const char *[]){"trustee-data"}, 1}, {NULL, 0}, NULL}, ERR_INVALID},
		{{{(const char *[]){""}, 1}, {NULL, 0}, NULL}, ERR_INVALID},
		{{{(const char *[]){"../../etc"}, 1}, {NULL, 0}, NULL}, ERR_INVALID}};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err err = ERR_INIT;

		cr_assert_null(render(&cases[i].v, &err));
		cr_assert_eq(err.kind, cases[i].kind, "%s", err.text);
	}
}

/* n Machines with keys for every one or none, as listeners name them. */
static struct json_object *many(size_t n, bool keys, struct err *err)
{
	cleanup_free char *text = xcalloc(n, 100);
	cleanup_free const char **ids = xcalloc(n, sizeof(*ids));
	cleanup_free const char **aks = xcalloc(n, sizeof(*aks));
	const struct render_volumes v = {{ids, n}, {aks, keys ? n : 0}, NULL};

	for (size_t i = 0; i < n; i++) {
		char *id = text + i * 100, *ak = id + 50;

		snprintf(id, 50, "%08zx-2222-4333-8444-555555555555", i);
		snprintf(ak, 50, "ak-%032zx", i);
		ids[i] = id;
		aks[i] = ak;
	}
	return render(&v, err);
}

Test(render_volumes, the_limit_says_how_many_fit_and_where_to_go)
{
	static const struct {
		bool keys;
		size_t taken; /* by a real API server, where the next one tried was not */
	} cases[] = {{true, 2103}, {false, 2700}};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err err = ERR_INIT, again = ERR_INIT;
		cleanup_json struct json_object *o = many(5000, cases[i].keys, &err), *fits = NULL;
		const char *about = strstr(err.text, "about ");
		size_t n = 0;

		cr_assert_null(o);
		cr_assert_eq(err.kind, ERR_INVALID);
		cr_assert(strstr(err.text, "with 5000 Machines"), "%s", err.text);
		cr_assert(strstr(err.text, "AdminAPI"), "%s", err.text);
		cr_assert_eq(sscanf(about, "about %zu", &n), 1);
		cr_assert(n > cases[i].taken * 8 / 10 && n < cases[i].taken, "%zu", n);
		fits = many(n, cases[i].keys, &again);
		cr_assert(fits, "%s", again.text);
		cr_assert_null(many(n + 2, cases[i].keys, &again));
	}
}

/* ---- read back */

static struct json_object *parsed(const char *text)
{
	struct err err = ERR_INIT;
	struct json_object *o = json_parse(text, strlen(text), &json_limits_object, &err);

	cr_assert(o, "%s", err.text);
	return o;
}

Test(render_volumes, what_is_rendered_is_read_back)
{
	char contents[] = "abc.def";
	const struct render_volumes v = {{two_ids, 2}, {two_aks, 2}, contents};
	cleanup_json struct json_object *o = rendered(&v);
	cleanup_volumes struct render_volumes l = RENDER_VOLUMES_INIT;

	cr_assert(render_volumes_read(o, &l));
	cr_assert_eq(l.machines.n, 2);
	cr_assert_eq(l.aks.n, 2);
	cr_assert_str_eq(l.machines.v[0], ID_A);
	cr_assert_str_eq(l.machines.v[1], ID_B);
	cr_assert_str_eq(l.aks.v[1], "ak-2");
	cr_assert_str_eq(l.contents, "abc.def");
	cr_assert(render_names_have(&l.machines, ID_B));
	cr_assert(render_names_have(&l.aks, "ak-1"));
	cr_assert_not(render_names_have(&l.machines, "ak-1"));
	cr_assert_not(render_names_have(&l.aks, "ak-3"));
}

Test(render_volumes, the_other_delivery_is_told_apart)
{
	cleanup_json struct json_object *o = render_trustee_deployment(
		&cluster, "ns", &render_images_default, &(struct render_trustee_inputs){0});
	struct render_volumes l;

	cr_assert_not(render_volumes_read(o, &l));
	cr_assert_eq(l.machines.n, 0);
}

Test(render_volumes, what_others_put_there_is_read_without_harm)
{
	static const struct {
		const char *volumes;
		bool ours;
		size_t machines, aks;
	} cases[] = {
		{"null", false, 0, 0},
		{"{}", false, 0, 0},
		{"[]", false, 0, 0},
		{"[null,1,\"x\",[],{}]", false, 0, 0},
		{"[{\"name\":\"" ID_A "\",\"secret\":{\"secretName\":\"" ID_A "\"}}]", false, 0, 0},
		{"[{\"name\":\"trusted-ak-keys\",\"secret\":{}}]", false, 0, 0},
		{"[{\"name\":\"trusted-ak-keys\",\"projected\":{}}]", true, 0, 0},
		{"[{\"name\":\"trusted-ak-keys\",\"projected\":{\"sources\":[null,{\"secret\":1},"
		 "{\"secret\":{\"name\":2}},{\"configMap\":{\"name\":\"a\"}},"
		 "{\"secret\":{\"name\":\"b\"}},{\"secret\":{\"name\":\"a\"}},{\"secret\":{\"name\":\"b\"}}]}},"
		 "{\"name\":\"" ID_B "\",\"secret\":{\"secretName\":\"" ID_B "\"}},"
		 "{\"name\":\"" ID_A "\",\"secret\":{\"secretName\":\"" ID_A "\"}},"
		 "{\"name\":\"" ID_B "\",\"secret\":{\"secretName\":\"" ID_B "\"}},"
		 "{\"name\":\"" ID_B "\",\"secret\":{\"secretName\":\"other\"}},"
		 "{\"name\":\"mine\",\"secret\":{\"secretName\":\"mine\"}}]",
			true, 2, 2},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_free char *text = xasprintf(
			"{\"spec\":{\"template\":{\"spec\":{\"volumes\":%s}}}}", cases[i].volumes);
		cleanup_json struct json_object *o = parsed(text);
		cleanup_volumes struct render_volumes l = RENDER_VOLUMES_INIT;

		cr_assert_eq(render_volumes_read(o, &l), cases[i].ours, "%s", text);
		cr_assert_eq(l.machines.n, cases[i].machines, "%s", text);
		cr_assert_eq(l.aks.n, cases[i].aks, "%s", text);
		cr_assert_null(l.contents);
		for (size_t k = 1; k < l.machines.n; k++)
			cr_assert_lt(strcmp(l.machines.v[k - 1], l.machines.v[k]), 0);
		for (size_t k = 1; k < l.aks.n; k++)
			cr_assert_lt(strcmp(l.aks.v[k - 1], l.aks.v[k]), 0);
	}
}

/* Two templates, of which these parts are the same. */
Test(render_volumes, both_deliveries_run_trustee_in_the_same_way)
{
	static const char *const of_spec[] = {"replicas", "selector", "strategy",
		"template/metadata/labels", "template/spec/securityContext",
		"template/spec/automountServiceAccountToken", "template/spec/enableServiceLinks",
		"template/spec/tolerations"};
	static const char *const of_container[] = {
		"name", "resources", "securityContext", "command", "env", "ports"};
	cleanup_json struct json_object *a = rendered(&two);
	cleanup_json struct json_object *b = render_trustee_deployment(
		&cluster, "ns", &render_images_default, &(struct render_trustee_inputs){0});
	cleanup_free char *text = json_text(a), *other = json_text(b);

	for (size_t i = 0; i < ARRAY_LEN(of_spec); i++) {
		cleanup_free char *path = xasprintf("spec/%s", of_spec[i]);

		cr_assert_not_null(json_get(a, path), "%s", path);
		cr_expect(json_object_equal(json_get(a, path), json_get(b, path)), "%s", path);
	}
	for (size_t i = 0; i < ARRAY_LEN(of_container); i++) {
		cr_assert_not_null(json_get(container(a), of_container[i]));
		cr_expect(json_object_equal(json_get(container(a), of_container[i]),
				  json_get(container(b), of_container[i])),
			"%s", of_container[i]);
	}
	/* What stands in a template for something else is filled in, or gone. */
	cr_expect(!strstr(text, "FORMER-TOKENS") && !strstr(text, "MACHINES"));
	cr_expect(!strstr(other, "FORMER-TOKENS") && !strstr(other, "trustee-tls"));
}
