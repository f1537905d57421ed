/* SPDX-License-Identifier: MIT */
/* What clients are told there is. */
#include "config.h"

#include "schema/schema_testing.h"

#include "tec/schema/discovery.h"

struct fixture {
	struct schema_crd *crds[2];
	struct schema_served served;
};

static void start(struct fixture *f)
{
	f->crds[0] = load_crd("crd/machines.yaml");
	f->crds[1] = load_crd("crd/approvedimages.yaml");
	f->served = (struct schema_served){f->crds, 2};
}

static void stop(struct fixture *f)
{
	schema_crd_free(f->crds[0]);
	schema_crd_free(f->crds[1]);
}

static struct json_object *with(struct json_object *list, const char *member, const char *value)
{
	for (size_t i = 0; list && i < json_object_array_length(list); i++)
		if (str_eq(json_get_str(json_object_array_get_idx(list, i), member), value))
			return json_object_array_get_idx(list, i);
	return NULL;
}

Test(schema_discovery, lists_groups)
{
	struct fixture f;

	start(&f);
	cleanup_json struct json_object *o = schema_discovery_groups(&f.served),
					*g = schema_discovery_group(
						&f.served, "trusted-execution-clusters.io"),
					*versions = schema_discovery_versions("127.0.0.1:6443");
	struct json_object *groups = json_get_arr(o, "groups"), *v = json_get_arr(g, "versions");

	cr_assert_str_eq(json_get_str(o, "kind"), "APIGroupList");
	cr_assert_str_eq(
		json_get_str(json_object_array_get_idx(groups, 0), "name"), "events.k8s.io");
	cr_assert_str_eq(json_get_str(json_object_array_get_idx(
					      groups, json_object_array_length(groups) - 1),
				 "name"),
		"trusted-execution-clusters.io");
	cr_assert_null(with(groups, "name", ""));
	cr_assert_eq(json_object_array_length(v), 1);
	cr_assert_str_eq(json_get_str(json_object_array_get_idx(v, 0), "groupVersion"),
		"trusted-execution-clusters.io/v1alpha1");
	cr_assert_str_eq(json_get_str(g, "preferredVersion/version"), "v1alpha1");
	cr_assert_null(schema_discovery_group(&f.served, "nope.example.com"));
	cr_assert_null(schema_discovery_group(&f.served, ""));
	cr_assert_str_eq(json_get_str(versions, "kind"), "APIVersions");
	stop(&f);
}

Test(schema_discovery, lists_resources)
{
	struct fixture f;

	start(&f);
	cleanup_json struct json_object *core = schema_discovery_resources(&f.served, "", "v1"),
					*ours = schema_discovery_resources(&f.served,
						"trusted-execution-clusters.io", "v1alpha1");
	struct json_object *cm = with(json_get_arr(core, "resources"), "name", "configmaps"),
			   *token = with(json_get_arr(core, "resources"), "name",
				   "serviceaccounts/token"),
			   *m = with(json_get_arr(ours, "resources"), "name", "machines"),
			   *status =
				   with(json_get_arr(ours, "resources"), "name", "machines/status");

	cr_assert_str_eq(json_get_str(core, "groupVersion"), "v1");
	cr_assert_null(json_get_str(core, "apiVersion"));
	cr_assert_str_eq(json_get_str(ours, "apiVersion"), "v1");
	cr_assert_str_eq(json_get_str(cm, "storageVersionHash"), "qFsyl6wFWjQ=");
	cr_assert_eq(json_object_array_length(json_get_arr(cm, "verbs")), 8);
	cr_assert_str_eq(json_get_str(token, "group"), "authentication.k8s.io");
	cr_assert_str_eq(json_get_str(token, "kind"), "TokenRequest");
	cr_assert_str_eq(json_get_str(m, "kind"), "Machine");
	cr_assert(json_get_bool(m, "namespaced", false));
	cr_assert_str_eq(
		json_object_get_string(json_object_array_get_idx(json_get_arr(m, "shortNames"), 0)),
		"mach");
	cr_assert(status && !json_get(status, "storageVersionHash"));
	cr_assert_null(
		schema_discovery_resources(&f.served, "trusted-execution-clusters.io", "v1"));
	cr_assert_null(schema_discovery_resources(&f.served, "", "v2"));
	stop(&f);
}

Test(schema_discovery, aggregates)
{
	struct fixture f;

	start(&f);
	cleanup_json struct json_object *core = schema_discovery_aggregated(&f.served, true, "v2"),
					*apis = schema_discovery_aggregated(
						&f.served, false, "v2beta1");
	struct json_object *items = json_get_arr(core, "items"), *last, *v, *r;

	cr_assert_str_eq(json_get_str(core, "apiVersion"), "apidiscovery.k8s.io/v2");
	cr_assert_str_eq(json_get_str(apis, "apiVersion"), "apidiscovery.k8s.io/v2beta1");
	cr_assert_eq(json_object_array_length(items), 1);
	v = json_object_array_get_idx(
		json_get_arr(json_object_array_get_idx(items, 0), "versions"), 0);
	r = with(json_get_arr(v, "resources"), "resource", "serviceaccounts");
	cr_assert_str_eq(json_get_str(r, "responseKind/kind"), "ServiceAccount");
	cr_assert_str_eq(json_get_str(with(json_get_arr(r, "subresources"), "subresource", "token"),
				 "responseKind/group"),
		"authentication.k8s.io");
	items = json_get_arr(apis, "items");
	last = json_object_array_get_idx(items, json_object_array_length(items) - 1);
	cr_assert_str_eq(json_get_str(last, "metadata/name"), "trusted-execution-clusters.io");
	v = json_object_array_get_idx(json_get_arr(last, "versions"), 0);
	cr_assert_str_eq(json_get_str(v, "freshness"), "Current");
	r = with(json_get_arr(v, "resources"), "resource", "machines");
	cr_assert_str_eq(json_get_str(r, "responseKind/version"), "v1alpha1");
	cr_assert_str_eq(json_get_str(r, "scope"), "Namespaced");
	stop(&f);
}

Test(schema_discovery, finds_a_kind)
{
	struct fixture f;

	start(&f);
	cr_assert_str_eq(schema_served_kind(&f.served, "", "v1", "secrets")->kind, "Secret");
	cr_assert_str_eq(schema_served_kind(
				 &f.served, "trusted-execution-clusters.io", "v1alpha1", "machines")
				 ->kind,
		"Machine");
	cr_assert_null(
		schema_served_kind(&f.served, "trusted-execution-clusters.io", "v1", "machines"));
	cr_assert_null(schema_served_kind(&f.served, "example.com", "v1alpha1", "machines"));
	stop(&f);
}
