/* SPDX-License-Identifier: MIT */
/* Our own definitions are read, and what is no definition is refused. */
#include "config.h"

#include "schema/schema_testing.h"

#include "tec/schema/crd.h"
#include "tec/schema/crd_status.h"

static const char *const files[] = {"crd/approvedimages.yaml", "crd/attestationkeys.yaml",
	"crd/machines.yaml", "crd/trustedexecutionclusters.yaml"};

Test(schema_crd, reads_ours)
{
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		struct schema_crd *c = load_crd(files[i]);
		const struct schema_version *v = schema_crd_version(c, "v1alpha1");

		cr_assert(v && v == schema_crd_at(c, 0) && v == schema_crd_storage(c));
		cr_assert_eq(schema_crd_versions(c), 1);
		cr_assert_null(schema_crd_at(c, 1));
		cr_assert_null(schema_crd_version(c, "v1"));
		cr_assert(v->served && v->storage && v->kind.namespaced && v->kind.status);
		cr_assert_str_eq(schema_crd_group(c), "trusted-execution-clusters.io");
		cr_assert_str_eq(v->kind.categories[0], "tec-all");
		cr_assert(str_starts(schema_crd_name(c), v->kind.plural));
		cr_assert_gt(v->n_columns, 2);
		cr_assert_eq(v->kind.crd, v);
		schema_crd_free(c);
	}
}

static const char good[] =
	"{metadata: {name: foos.example.com}, spec: {group: example.com, scope: Namespaced, names: "
	"{plural: foos, kind: Foo}, versions: [{name: v1, served: true, storage: true, schema: "
	"{openAPIV3Schema: {type: object}}}]}}";

static struct json_object *made(const char *patch)
{
	struct json_object *o = parse(good);
	cleanup_json struct json_object *p = parse(patch);

	json_object_object_foreach (p, path, v) {
		cleanup_free char *at = xstrdup(path);
		char *last = strrchr(at, '/');
		struct json_object *parent = o;

		if (last) {
			*last = '\0';
			parent = json_get(o, at);
			if (!parent && str_starts(at, "v0"))
				parent = json_object_array_get_idx(
					json_get_arr(o, "spec/versions"), 0);
		}
		if (v)
			json_object_object_add(parent, last ? last + 1 : at, json_object_get(v));
		else
			json_object_object_del(parent, last ? last + 1 : at);
	}
	schema_crd_default(o);
	return o;
}

static const struct {
	const char *patch, *causes;
} rows[] = {
	{"{}", ""},
	{"{spec: null}", "spec: Required value"},
	{"{spec/names: null}", "spec.names: Required value"},
	{"{spec/group: null}", "spec.group: Required value"},
	{"{spec/scope: Galaxy}",
		"spec.scope: Unsupported value: \"Galaxy\": supported values: \"Cluster\", \"Namespaced\""},
	{"{metadata/name: bars.example.com}",
		"metadata.name: Invalid value: \"bars.example.com\": must be spec.names.plural+\".\"+spec.group"},
	{"{spec/names/kind: null}",
		"spec.names.singular: Required value\nspec.names.kind: Required value\n"
		"spec.names.listKind: Required value"},
	{"{spec/names/listKind: Foo}",
		"spec.names.listKind: Invalid value: \"Foo\": kind and listKind may not be the same"},
	{"{spec/names/shortNames: [1]}",
		"spec.names.shortNames[0]: Invalid value: 1: must be a string"},
	{"{spec/versions: []}",
		"spec.versions: Invalid value: []: must have exactly one version marked as storage version"},
	{"{v0/schema: null}", "spec.versions[0].schema.openAPIV3Schema: Required value"},
	{"{v0/schema: {openAPIV3Schema: {type: object, properties: {a: {}}}}}",
		"spec.validation.openAPIV3Schema.properties[a].type: Required value: must not be "
		"empty for specified object fields"},
	{"{v0/additionalPrinterColumns: [{name: A, type: text, jsonPath: .a}]}",
		"spec.versions[0].additionalPrinterColumns[0].type: Invalid value: \"text\": must be one of "
		"boolean,date,integer,number,string"},
	{"{v0/additionalPrinterColumns: [{name: A, type: string, jsonPath: '.a['}]}",
		"spec.versions[0].additionalPrinterColumns[0].JSONPath: Invalid value: \".a[\": is an "
		"invalid JSONPath: an index is missing at \"\""},
	{"{v0/subresources: {scale: {}}}",
		"spec.subresources.scale.specReplicasPath: Required value\n"
		"spec.subresources.scale.statusReplicasPath: Required value"},
	{"{v0/subresources: {scale: x}}",
		"spec.subresources.scale: Invalid value: \"x\": must be an object"},
	{"{v0/subresources: {scale: {specReplicasPath: spec.a, statusReplicasPath: .spec.b, labelSelectorPath: .c}}}",
		"spec.subresources.scale.specReplicasPath: Invalid value: \"spec.a\": must be a simple json path starting with .\n"
		"spec.subresources.scale.statusReplicasPath: Invalid value: \".spec.b\": should be a json path under .status\n"
		"spec.subresources.scale.labelSelectorPath: Invalid value: \".c\": should be a json path under either .spec or .status"},
	{"{v0/subresources: {scale: {specReplicasPath: .spec.a, statusReplicasPath: .status.b}}}",
		""},
	{"{spec/conversion: {strategy: Webhook}}",
		"spec.conversion.strategy: Unsupported value: \"Webhook\": supported values: \"None\""},
	{"{spec/preserveUnknownFields: true}",
		"spec.preserveUnknownFields: Invalid value: true: cannot set to true, set "
		"x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"},
	{"{spec/group: k8s.io, metadata/name: foos.k8s.io}",
		"metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must "
		"have approval annotation \"api-approved.kubernetes.io\", see "
		"https://github.com/kubernetes/enhancements/pull/1111"},
};

Test(schema_crd, refuses_what_is_none)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		cleanup_json struct json_object *o = made(rows[i].patch);
		cleanup_schema_causes struct schema_causes c = {NULL, 0, 0, false};
		struct schema_crd *crd = schema_crd_new(o, &c);
		cleanup_free char *text = lines(&c);

		cr_expect_str_eq(text, rows[i].causes, "%s: %s", rows[i].patch, text);
		cr_expect_eq(crd != NULL, rows[i].causes[0] == '\0');
		schema_crd_free(crd);
	}
}

Test(schema_crd, remembers_some_of_what_fits)
{
	cleanup_json struct json_object *o = made("{}");
	cleanup_schema_causes struct schema_causes causes = {NULL, 0, 0, false};
	struct schema_crd *c = schema_crd_new(o, &causes);

	cr_assert_not_null(c);
	cr_expect_not(schema_crd_fits(c, 1));
	for (uint64_t rv = 0; rv <= 2 * SCHEMA_CRD_FITTING; rv += 2) {
		schema_crd_note_fits(c, rv);
		schema_crd_note_fits(c, rv);
	}
	cr_expect_not(schema_crd_fits(c, 0), "no object has it");
	for (uint64_t rv = 1; rv <= 2 * SCHEMA_CRD_FITTING; rv++)
		cr_assert_eq(schema_crd_fits(c, rv), rv % 2 == 0, "%ju", (uintmax_t)rv);
	schema_crd_note_fits(c, 1);
	cr_expect_not(schema_crd_fits(c, 1), "there are enough");
	schema_crd_free(c);
}

Test(schema_crd, fills_in_what_follows)
{
	cleanup_json struct json_object *o = made("{}");

	cr_assert_str_eq(json_get_str(o, "spec/names/singular"), "foo");
	cr_assert_str_eq(json_get_str(o, "spec/names/listKind"), "FooList");
	cr_assert_str_eq(json_get_str(o, "spec/conversion/strategy"), "None");
	cr_assert_str_eq(json_object_get_string(json_object_array_get_idx(
				 json_get_arr(o, "status/storedVersions"), 0)),
		"v1");
}

Test(schema_crd, names_never_change)
{
	cleanup_json struct json_object *old = made("{}"),
					*now = made("{spec/scope: Cluster, spec/names/kind: Bar}");
	cleanup_schema_causes struct schema_causes c = {NULL, 0, 0, false};
	cleanup_free char *text = NULL;

	schema_crd_immutable(old, now, &c);
	text = lines(&c);
	cr_assert_str_eq(text, "spec.scope: Invalid value: \"Cluster\": field is immutable\n"
			       "spec.names.kind: Invalid value: \"Bar\": field is immutable");
}

Test(schema_crd, tells_of_deprecation)
{
	cleanup_json struct json_object *o = made("{v0/deprecated: true}");
	cleanup_schema_causes struct schema_causes c = {NULL, 0, 0, false};
	struct schema_crd *crd = schema_crd_new(o, &c);

	cr_assert(crd);
	cr_assert_str_eq(schema_crd_at(crd, 0)->deprecation, "example.com/v1 Foo is deprecated");
	schema_crd_free(crd);
}

/* ---- status */

#define NOW "2024-01-01T00:00:00Z"

static struct json_object *named(const char *plural, const char *kind, const char *short_name)
{
	struct json_object *o = parse(good), *names = json_get_obj(o, "spec/names");
	cleanup_free char *name = xasprintf("%s.example.com", plural);

	json_add_str(json_get_obj(o, "metadata"), "name", name);
	json_add_str(names, "plural", plural);
	json_add_str(names, "kind", kind);
	json_add(names, "shortNames", json_push_str(json_arr(), short_name));
	schema_crd_default(o);
	return o;
}

static void is_condition(struct json_object *o, size_t i, const char *want)
{
	struct json_object *c = json_object_array_get_idx(json_get_arr(o, "status/conditions"), i);
	cleanup_free char *have = xasprintf("%s=%s %s: %s", json_get_str(c, "type"),
		json_get_str(c, "status"), json_get_str(c, "reason"), json_get_str(c, "message"));

	cr_expect_str_eq(have, want);
}

#define ESTABLISHED "Established=True InitialNamesAccepted: the initial names have been accepted"

Test(schema_crd, names_are_given_to_one_definition_of_a_group)
{
	cleanup_json struct json_object *a = named("foos", "Foo", "f"),
					*b = named("bars", "Foo", "f"), *all = json_arr();

	json_push(json_push(all, json_object_get(a)), json_object_get(b));
	schema_crd_accept(a, all, NOW);
	is_condition(a, 0, "NamesAccepted=True NoConflicts: no conflicts found");
	is_condition(a, 1, ESTABLISHED);
	cr_expect(schema_crd_is_served(a) && !schema_crd_waits(a));
	schema_crd_accept(b, all, NOW);
	is_condition(b, 0, "NamesAccepted=False ListKindConflict: \"FooList\" is already in use");
	is_condition(b, 1, "Established=False NotAccepted: not all names are accepted");
	cr_expect(!schema_crd_is_served(b) && schema_crd_waits(b));
	cr_expect_str_eq(json_get_str(b, "status/acceptedNames/plural"), "bars");
	cr_expect_str_eq(json_get_str(b, "status/acceptedNames/kind"), "");
	cr_expect_null(json_get(b, "status/acceptedNames/shortNames"));
	json_object_object_del(a, "status");
	schema_crd_accept(b, all, NOW);
	is_condition(b, 0, "NamesAccepted=True NoConflicts: no conflicts found");
	is_condition(b, 1, ESTABLISHED);
	cr_expect_str_eq(json_get_str(b, "status/acceptedNames/kind"), "Foo");
}

Test(schema_crd, a_served_definition_keeps_the_names_it_had)
{
	cleanup_json struct json_object *a = named("foos", "Foo", "f"),
					*b = named("bars", "Bar", "b"), *all = json_arr(),
					*both = parse("[f, foo, b]");

	json_push(json_push(all, json_object_get(a)), json_object_get(b));
	schema_crd_accept(a, all, NOW);
	schema_crd_accept(b, all, NOW);
	json_add(json_get_obj(b, "spec/names"), "shortNames", json_object_get(both));
	schema_crd_accept(b, all, "2025-01-01T00:00:00Z");
	is_condition(b, 0,
		"NamesAccepted=False ShortNamesConflict: [\"f\" is already in use, \"foo\" is already in use]");
	is_condition(b, 1, ESTABLISHED);
	cr_expect(schema_crd_is_served(b) && schema_crd_waits(b));
	cr_expect_eq(
		json_object_array_length(json_get_arr(b, "status/acceptedNames/shortNames")), 1);
	cr_expect_str_eq(
		json_get_str(json_object_array_get_idx(json_get_arr(b, "status/conditions"), 1),
			"lastTransitionTime"),
		NOW);
	/* Another group has names of its own. */
	json_add_str(json_get_obj(b, "spec"), "group", "example.org");
	schema_crd_accept(b, all, NOW);
	is_condition(b, 0, "NamesAccepted=True NoConflicts: no conflicts found");
}

Test(schema_crd, its_end_is_a_condition)
{
	cleanup_json struct json_object *o = named("foos", "Foo", "f");

	schema_crd_ending(o, false, NOW);
	is_condition(o, 0,
		"Terminating=True InstanceDeletionInProgress: CustomResource deletion is in progress");
	schema_crd_ending(o, true, NOW);
	is_condition(o, 0, "Terminating=False InstanceDeletionCompleted: removed all instances");
}
