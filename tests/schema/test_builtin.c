/* SPDX-License-Identifier: MIT */
/* The table of built-in kinds, and fields that never change. */
#include "config.h"

#include "schema/schema_testing.h"

#include "tec/base/bytes.h"
#include "tec/schema/builtin.h"

Test(schema_builtin, is_ordered_and_whole)
{
	for (size_t i = 0; i < schema_builtin_count(); i++) {
		const struct schema_kind *k = schema_builtin_at(i),
					 *before = schema_builtin_at(i - 1);

		cr_assert(k->kind && k->plural && k->singular && k->list_kind && k->verbs, "%s",
			k->kind);
		cr_assert(!before || i == 0 || strcmp(before->group, k->group) <= 0);
		cr_assert_eq(schema_builtin_kind(k->group, k->version, k->kind), k);
		cr_assert_null(k->crd);
	}
	cr_assert_null(schema_builtin_at(schema_builtin_count()));
	cr_assert_null(schema_builtin_kind("", "v1", "Pod"));
	cr_assert_null(schema_builtin_kind("apps", "v2", "Deployment"));
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
	{"", "Secret", "{type: Opaque}", "{type: x}",
		"type: Invalid value: \"x\": field is immutable"},
	{"", "Secret", "{immutable: true, data: {a: YQ==}}", "{immutable: true, data: {a: Yg==}}",
		"data: Forbidden: field is immutable when `immutable` is set"},
	{"", "Secret", "{immutable: true, data: {a: YQ==}}", "{data: {a: YQ==}}",
		"immutable: Forbidden: field is immutable when `immutable` is set"},
	{"", "Secret", "{data: {a: YQ==}}", "{immutable: true, data: {a: YQ==}}", ""},
	{"", "ConfigMap", "{immutable: true, binaryData: {a: YQ==}}", "{immutable: true}",
		"binaryData: Forbidden: field is immutable when `immutable` is set"},
	{"", "ConfigMap", "{data: {a: b}}", "{data: {a: c}}", ""},
	{"rbac.authorization.k8s.io", "RoleBinding", "{roleRef: {kind: ClusterRole, name: view}}",
		"{roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}}",
		"roleRef: Invalid value: {\"apiGroup\":\"rbac.authorization.k8s.io\",\"kind\":\"ClusterRole\",\"name\":\"cluster-admin\"}: field is immutable"},
	{"", "ServiceAccount", "{secrets: [{name: a}]}", "{secrets: []}", ""},
};

Test(schema_builtin, some_fields_never_change)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		cleanup_json struct json_object *old = parse(rows[i].old),
						*now = parse(rows[i].now);
		cleanup_schema_causes struct schema_causes c = {NULL, 0, 0};
		cleanup_free char *text = NULL;

		schema_builtin_check(
			schema_builtin_kind(rows[i].group, "v1", rows[i].kind), old, now, &c);
		text = lines(&c);
		cr_expect_str_eq(
			text, rows[i].causes, "%s %s: %s", rows[i].kind, rows[i].now, text);
	}
}

/* kind, what is given, and what it becomes. */
static const struct {
	const char *group, *kind, *given, *want;
} fills[] = {
	{"rbac.authorization.k8s.io", "RoleBinding",
		"{roleRef: {}, subjects: [{kind: User}, {kind: X}]}",
		"{roleRef: {apiGroup: rbac.authorization.k8s.io}, subjects: [{kind: User, apiGroup: "
		"rbac.authorization.k8s.io}, {kind: X}]}"},
	{"", "ConfigMap", "{spec: {}}", "{spec: {}}"},
};

Test(schema_builtin, what_nobody_gave_is_filled_in)
{
	for (size_t i = 0; i < ARRAY_LEN(fills); i++) {
		const struct schema_kind *k =
			schema_builtin_kind(fills[i].group, "v1", fills[i].kind);
		cleanup_json struct json_object *o = parse(fills[i].given),
						*want = parse(fills[i].want);
		cleanup_free char *got = NULL;

		schema_builtin_default(k, o);
		got = json_text(o);
		cr_expect(json_object_equal(o, want), "%s: %s", fills[i].given, got);
		schema_builtin_default(k, o);
		cr_expect(json_object_equal(o, want), "%s: a second time", fills[i].given);
	}
}

#define KEY "must be letters, digits, '-', '_' and '.'"

static const struct {
	const char *group, *kind, *o, *causes;
} checks[] = {
	{"", "ConfigMap", "{spec: {type: 7}}", ""},
	{"rbac.authorization.k8s.io", "RoleBinding", "{subjects: [{}]}",
		"[roleRef.kind: Unsupported value: supported values: \"ClusterRole\", roleRef.name: Unsupported value: supported values: \"cluster-admin\", \"tec-follow\", \"view\", subjects[0].name: Required value, subjects[0].kind: Unsupported value: supported values: \"ServiceAccount\", \"User\", \"Group\"]"},
	{"rbac.authorization.k8s.io", "RoleBinding",
		"{roleRef: {apiGroup: x, kind: ClusterRole, name: view}, subjects: [{kind: User, name: U, apiGroup: x}, {kind: ServiceAccount, name: s}, {kind: ServiceAccount, name: s, apiGroup: x}]}",
		"[roleRef.apiGroup: Unsupported value: \"x\": supported values: \"rbac.authorization.k8s.io\", subjects[0].apiGroup: Unsupported value: \"x\": supported values: \"rbac.authorization.k8s.io\", subjects[2].apiGroup: Unsupported value: \"x\": supported values: \"\"]"},
	{"", "ConfigMap", "{data: {a: x, ..: y, ..x: z}, binaryData: {\"\": eA==, a: eA==}}",
		"[data[a]: Invalid value: \"a\": is in binaryData, too, data[..]: Invalid value: \"..\": must not be '.' or begin with '..', data[..x]: Invalid value: \"..x\": must not be '.' or begin with '..', binaryData[]: Invalid value: \"\": " KEY
		"]"},
	{"", "Secret", "{data: {.: eA==, .x: eA==, a/b: eA==}}",
		"[data[.]: Invalid value: \".\": must not be '.' or begin with '..', data[a/b]: Invalid value: \"a/b\": " KEY
		"]"},
	{"", "Secret", "{type: kubernetes.io/tls, data: {tls.key: \"\"}}",
		"data[tls.crt]: Required value"},
	{"", "Secret", "{type: kubernetes.io/basic-auth}",
		"[data[username]: Required value, data[password]: Required value]"},
	{"", "Secret", "{type: kubernetes.io/basic-auth, data: {password: \"\"}}", ""},
	{"", "Secret", "{type: kubernetes.io/ssh-auth, data: {ssh-privatekey: \"\"}}",
		"data[ssh-privatekey]: Required value"},
	{"", "Secret", "{type: kubernetes.io/service-account-token}",
		"metadata.annotations[kubernetes.io/service-account.name]: Required value"},
	{"", "Secret",
		"{type: kubernetes.io/service-account-token, metadata: {annotations: {kubernetes.io/service-account.name: a}}}",
		""},
	{"", "Secret", "{type: kubernetes.io/dockercfg, data: {x: 5}}",
		"data[.dockercfg]: Required value"},
	{"", "Secret", "{type: kubernetes.io/dockercfg, data: {.dockercfg: 5}}", ""},
	{"", "Secret", "{type: kubernetes.io/dockercfg, data: {.dockercfg: null}}",
		"data[.dockercfg]: Invalid value: must be a JSON object"},
};

Test(schema_builtin, what_cannot_be_is_said)
{
	for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
		cleanup_json struct json_object *o = parse(checks[i].o);
		cleanup_schema_causes struct schema_causes causes = {NULL, 0, 0};
		cleanup_free char *got = NULL;

		schema_builtin_check(schema_builtin_kind(checks[i].group, "v1", checks[i].kind),
			NULL, o, &causes);
		got = schema_causes_text(&causes);
		cr_expect_str_eq(got ? got : "", checks[i].causes, "%s:\n%s", checks[i].o, got);
	}
}

/* Each text is the content of a Secret. */
Test(schema_builtin, passwords_of_a_registry_are_a_json_object)
{
	static const struct {
		const char *text;
		bool good;
	} rows[] = {{"{\"auths\":{}}", true}, {" null\n", false},
		{"{\"a\":[1,-0.5e+3,true,false,null,\"\\u12aF\\n\",{},[]],\"b\":{\"c\":1}}", true},
		{"", false}, {"{", false}, {"x", false}, {"\xff", false}, {"{} x", false},
		{"[]", false}, {"\"a\"", false}, {"5", false}, {"true", false}};
	static const char refused[] =
		"data[.dockerconfigjson]: Invalid value: must be a JSON object";
	const struct schema_kind *k = schema_builtin_kind("", "v1", "Secret");

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		cleanup_schema_causes struct schema_causes causes = {NULL, 0, 0};
		cleanup_json struct json_object *o =
			parse("{type: kubernetes.io/dockerconfigjson, data: {}}");
		cleanup_strbuf struct strbuf b64 = STRBUF_INIT;
		cleanup_free char *got = NULL;

		bytes_to_b64(&b64, rows[i].text, strlen(rows[i].text));
		json_add_str(json_get(o, "data"), ".dockerconfigjson", strbuf_str(&b64));
		schema_builtin_check(k, NULL, o, &causes);
		got = schema_causes_text(&causes);
		cr_expect_str_eq(got, rows[i].good ? "" : refused, "%s: %s", rows[i].text, got);
	}
}

#define EVENT                                                                                                  \
	"metadata: {namespace: n}, regarding: {kind: Pod, namespace: n}, type: Normal, action: a, reason: r, " \
	"reportingController: x.io/c, reportingInstance: i, eventTime: t"

static void event_says(const char *was, const char *now, const char *want)
{
	const struct schema_kind *k = schema_builtin_kind("events.k8s.io", "v1", "Event");
	cleanup_json struct json_object *old = was ? parse(was) : NULL, *o = parse(now);
	cleanup_schema_causes struct schema_causes causes = {NULL, 0, 0};
	cleanup_free char *got = NULL;

	schema_builtin_check(k, old, o, &causes);
	got = schema_causes_text(&causes);
	cr_expect_str_eq(got ? got : "", want, "%s:\n%s", now, got);
}

Test(schema_builtin, a_new_event_is_strict)
{
	event_says(NULL, "{" EVENT "}", "");
	event_says(NULL, "{" EVENT ", deprecatedCount: 0, series: {count: 2, lastObservedTime: t}}",
		"");
	event_says(NULL,
		"{" EVENT ", deprecatedCount: 1, deprecatedSource: {host: h}, series: {count: 1}}",
		"[series.count: Invalid value: must be at least 2, series.lastObservedTime: Required "
		"value, count: Invalid value: must be unset, source: Invalid value: must be unset]");
	event_says(NULL, "{metadata: {namespace: n}, regarding: {namespace: m}}",
		"[involvedObject.namespace: Invalid value: must be the namespace of the Event, eventTime: Required "
		"value, type: Invalid value: must be Normal or Warning]");
	event_says("{}", "{eventTime: t, action: a, reason: r, reportingController: c}",
		"[reason: Invalid value: \"r\": field is immutable, eventTime: Invalid "
		"value: \"t\": field is immutable, action: Invalid value: \"a\": field is immutable, "
		"reportingController: Invalid value: \"c\": field is immutable, reportingInstance: Required value]");
}

Test(schema_builtin, an_event_stays_as_it_is_but_for_its_series)
{
	event_says("{" EVENT "}", "{" EVENT ", series: {count: 2, lastObservedTime: t}}", "");
	event_says("{" EVENT "}", "{" EVENT ", series: {}}",
		"[series.count: Invalid value: must be at least 2, series.lastObservedTime: Required value]");
	event_says("{" EVENT "}", "{" EVENT ", note: m, related: {name: y}}",
		"[message: Invalid value: \"m\": field is immutable, related: Invalid value: "
		"{\"name\":\"y\"}: field is immutable]");
}

Test(schema_builtin, every_kind_takes_what_is_no_object_of_it)
{
	static const char *const odd[] = {"{}", "{spec: null}", "{spec: []}", "{spec: x}",
		"{roleRef: [], subjects: [7, {}, {kind: User, apiGroup: 5}, {kind: ServiceAccount, name: []}]}",
		"{data: [], binaryData: 5, type: kubernetes.io/tls}",
		"{data: {.dockerconfigjson: [], a: null, b: {}}, type: kubernetes.io/dockerconfigjson, metadata: 5}",
		"{data: {.dockercfg: \"!\", ssh-privatekey: 5}, type: kubernetes.io/ssh-auth, metadata: {annotations: []}}",
		"{data: {.dockercfg: \"!\"}, binaryData: {a: \"=\"}, type: kubernetes.io/dockercfg}",
		"{eventTime: [], series: 5, regarding: 5, deprecatedCount: {}, reportingController: 7}"};

	for (size_t i = 0; i < schema_builtin_count(); i++)
		for (size_t n = 0; n < ARRAY_LEN(odd); n++) {
			cleanup_json struct json_object *o = parse(odd[n]);
			cleanup_schema_causes struct schema_causes causes = {NULL, 0, 0};

			schema_builtin_default(schema_builtin_at(i), o);
			schema_builtin_check(schema_builtin_at(i), NULL, o, &causes);
			schema_builtin_check(schema_builtin_at(i), o, o, &causes);
		}
}
