/* SPDX-License-Identifier: MIT */
/* The table of built-in kinds, and fields that never change. */
#include "config.h"

#include "schema/schema_testing.h"

#include "tec/schema/builtin.h"

Test(schema_builtin, is_ordered_and_whole)
{
	for (size_t i = 0; i < schema_builtin_count(); i++) {
		const struct schema_kind *k = schema_builtin_at(i),
					 *before = schema_builtin_at(i - 1);

		cr_assert(k->kind && k->plural && k->singular && k->list_kind && k->verbs, "%s",
			k->kind);
		cr_assert(!before || i == 0 || strcmp(before->group, k->group) <= 0);
		cr_assert_eq(schema_builtin_find(k->group, k->version, k->plural), k);
		cr_assert_eq(schema_builtin_kind(k->group, k->version, k->kind), k);
		cr_assert_eq(k->status, schema_kind_sub(k, "status") != NULL, "%s", k->kind);
		cr_assert_null(k->crd);
	}
	cr_assert_null(schema_builtin_at(schema_builtin_count()));
	cr_assert_null(schema_builtin_find("", "v1", "nodes"));
	cr_assert_null(schema_builtin_find("apps", "v2", "deployments"));
}

Test(schema_builtin, verbs_have_names)
{
	const char *names[9];

	cr_assert_eq(schema_verb_names(SCHEMA_VERBS_ALL, names), 8);
	cr_assert_str_eq(names[0], "create");
	cr_assert_str_eq(names[7], "watch");
	cr_assert_null(names[8]);
	cr_assert_eq(schema_verb_names(SCHEMA_VERB_GET | SCHEMA_VERB_PATCH, names), 2);
	cr_assert_str_eq(names[1], "patch");
}

static const struct {
	const char *group, *kind, *old, *now, *causes;
} rows[] = {
	{"", "Secret", "{type: Opaque, data: {a: YQ==}}", "{type: Opaque, data: {a: Yg==}}", ""},
	{"", "Secret", "{type: Opaque}", "{}", ""},
	{"", "Secret", "{type: Opaque}", "{type: kubernetes.io/tls}",
		"type: Invalid value: \"kubernetes.io/tls\": field is immutable"},
	{"", "Secret", "{immutable: true, data: {a: YQ==}}", "{immutable: true, data: {a: Yg==}}",
		"data: Forbidden: field is immutable when `immutable` is set"},
	{"", "Secret", "{immutable: true, data: {a: YQ==}}", "{data: {a: YQ==}}",
		"immutable: Forbidden: field is immutable when `immutable` is set"},
	{"", "Secret", "{data: {a: YQ==}}", "{immutable: true, data: {a: YQ==}}", ""},
	{"", "ConfigMap", "{immutable: true, binaryData: {a: YQ==}}", "{immutable: true}",
		"binaryData: Forbidden: field is immutable when `immutable` is set"},
	{"", "ConfigMap", "{data: {a: b}}", "{data: {a: c}}", ""},
	{"apps", "Deployment", "{spec: {selector: {matchLabels: {a: b}}}}",
		"{spec: {selector: {matchLabels: {a: c}}}}",
		"spec.selector: Invalid value: {\"matchLabels\":{\"a\":\"c\"}}: field is immutable"},
	{"apps", "Deployment", "{spec: {selector: {}, replicas: 1}}",
		"{spec: {selector: {}, replicas: 2}}", ""},
	{"batch", "Job", "{spec: {template: {a: 1}, parallelism: 1}}",
		"{spec: {template: {a: 1}, parallelism: 2}}", ""},
	{"batch", "Job", "{spec: {template: {a: 1}}}", "{spec: {template: {a: 2}}}",
		"spec.template: Invalid value: {\"a\":2}: field is immutable"},
	{"", "Service", "{spec: {clusterIP: 10.0.0.1}}", "{spec: {clusterIP: 10.0.0.2}}",
		"spec.clusterIPs[0]: Invalid value: \"10.0.0.2\": may not change once set"},
	{"", "Service", "{spec: {clusterIP: 10.0.0.1}}", "{spec: {}}", ""},
	{"", "PersistentVolumeClaim", "{spec: {accessModes: [a], resources: {x: 1}}}",
		"{spec: {accessModes: [a], resources: {x: 2}}}", ""},
	{"", "PersistentVolumeClaim", "{spec: {accessModes: [a]}}", "{spec: {accessModes: [b]}}",
		"spec: Forbidden: spec is immutable after creation except resources.requests and "
		"volumeAttributesClassName for bound claims"},
	{"rbac.authorization.k8s.io", "RoleBinding", "{roleRef: {name: a}}", "{roleRef: {name: b}}",
		"roleRef: Invalid value: {\"APIGroup\":\"\",\"Kind\":\"\",\"Name\":\"b\"}: cannot change roleRef"},
	{"", "Pod", "{spec: {a: 1}}", "{spec: {a: 2}}", ""},
};

Test(schema_builtin, some_fields_never_change)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		cleanup_json struct json_object *old = parse(rows[i].old),
						*now = parse(rows[i].now);
		cleanup_schema_causes struct schema_causes c = {NULL, 0, 0, false};
		cleanup_free char *text = NULL;

		schema_builtin_immutable(
			schema_builtin_kind(rows[i].group, "v1", rows[i].kind), old, now, &c);
		text = lines(&c);
		cr_expect_str_eq(
			text, rows[i].causes, "%s %s: %s", rows[i].kind, rows[i].now, text);
	}
}

Test(schema_builtin, what_no_kind_has_is_dropped)
{
	const struct schema_kind *k = schema_builtin_find("", "v1", "configmaps");
	cleanup_schema_texts struct schema_texts unknown = {NULL, 0, 0};
	struct err err = ERR_INIT;
	static const char text[] =
		"{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"data\":{\"daat\":\"x\"},\"dat\":1,"
		"\"spec\":{},\"\":0,\"metadata\":{\"name\":\"a\",\"lables\":{},\"data\":1}}";
	cleanup_json struct json_object *o =
		json_parse(text, strlen(text), &json_limits_object, &err);

	cr_assert_not_null(o, "%s", err.text);
	schema_builtin_prune(k, o, &unknown);
	cr_expect_eq(json_object_object_length(o), 4);
	cr_expect_str_eq(json_get_str(o, "data/daat"), "x", "what stands below is not known");
	cr_expect_eq(json_object_object_length(json_get(o, "metadata")), 1);
	cr_assert_eq(unknown.n, 5);
	cr_expect_str_eq(unknown.text[1], "dat");
	cr_expect_str_eq(unknown.text[2], "metadata.data");
	cr_expect_str_eq(unknown.text[4], "spec");
}
