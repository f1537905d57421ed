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
	{"batch", "Job", "{spec: {template: {a: 1}, parallelism: 1}}",
		"{spec: {template: {a: 1}, parallelism: 2}}", ""},
	{"batch", "Job", "{spec: {template: {a: 1}}}", "{spec: {template: {a: 2}}}",
		"spec.template: Invalid value: {\"a\":2}: field is immutable"},
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

static const char *const pulls[][2] = {{"a", "Always"}, {"a:1", "IfNotPresent"},
	{"a:latest", "Always"}, {"h:5000/a", "Always"}, {"h:5000/a:latest@sha256:0", "Always"},
	{"h:5000/a@sha256:0", "IfNotPresent"}, {"", "Always"}, {"a:", "IfNotPresent"}};

Test(schema_builtin, an_image_without_a_tag_is_pulled_each_time)
{
	const struct schema_kind *k = schema_builtin_kind("", "v1", "Pod");

	for (size_t i = 0; i < ARRAY_LEN(pulls); i++) {
		cleanup_free char *text =
			xasprintf("{spec: {containers: [{image: '%s'}]}}", pulls[i][0]);
		cleanup_json struct json_object *o = parse(text);

		schema_builtin_default(k, o);
		cr_expect_str_eq(json_get_str(json_object_array_get_idx(
						      json_get_arr(o, "spec/containers"), 0),
					 "imagePullPolicy"),
			pulls[i][1], "%s", pulls[i][0]);
	}
}

#define KEY                                                                                        \
	"a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
#define POD "template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}"

static const struct {
	const char *group, *kind, *o, *causes;
} checks
	[] =
		{
			{"", "Pod",
				"{spec: {containers: [{name: c, image: i, ports: [{containerPort: 80, name: Http}, {containerPort: 81, name: x}, {containerPort: 82, name: x}]}]}}",
				"[spec.containers[0].ports[0].name: Invalid value: \"Http\": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-), spec.containers[0].ports[2].name: Duplicate value: \"x\"]"},
			{"", "Pod",
				"{spec: {containers: [{name: c, image: i, env: [{name: a=b}, {name: A, value: x, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {name: B, valueFrom: {}}]}]}}",
				"[spec.containers[0].env[0].name: Invalid value: \"a=b\": a valid environment variable name must consist only of printable ASCII characters other than '=', spec.containers[0].env[1].valueFrom: Invalid value: \"\": may not be specified when `value` is not empty, spec.containers[0].env[2].valueFrom: Invalid value: \"\": must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`]"},
			{"", "Pod",
				"{spec: {containers: [{name: c, image: i, env: [{name: A, valueFrom: {fieldRef: {fieldPath: \"metadata.labels['a']\"}}}, {name: B, valueFrom: {fieldRef: {fieldPath: metadata}}}]}]}}",
				"spec.containers[0].env[1].valueFrom.fieldRef.fieldPath: Invalid value: \"metadata\": error converting fieldPath: field label not supported: metadata"},
			{"", "Pod",
				"{spec: {containers: [{name: c, image: i, livenessProbe: {}, readinessProbe: {httpGet: {port: 0}, tcpSocket: {port: 1}}}]}}",
				"[spec.containers[0].livenessProbe: Required value: must specify a handler type, spec.containers[0].readinessProbe.httpGet.port: Invalid value: 0: must be between 1 and 65535, inclusive, spec.containers[0].readinessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type]"},
			{"", "Pod",
				"{spec: {containers: [{name: c, image: i, securityContext: {runAsUser: -1, seccompProfile: {type: Localhost}}}]}}",
				"[spec.containers[0].securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive, spec.containers[0].securityContext.seccompProfile.localhostProfile: Required value: must be set when seccomp type is Localhost]"},
			{"", "Pod",
				"{spec: {containers: [{name: c, image: i}], tolerations: [{operator: Exists}, {key: a, operator: Is}, {key: a, value: x, tolerationSeconds: 1}]}}", "[spec.tolerations[1].operator: Unsupported value: \"Is\": supported values: \"Equal\", \"Exists\", spec.tolerations[2].effect: Invalid value: \"\": effect must be 'NoExecute' when `tolerationSeconds` is set]"},
			{"", "Pod",
				"{spec: {containers: [{name: c, image: i}], initContainers: [{name: c, image: i, livenessProbe: {}}]}}",
				"[spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers without restartPolicy=Always, spec.initContainers[0].name: Duplicate value: \"c\"]"},
			{"", "ConfigMap", "{spec: {type: 7}}", ""},
			{"", "ConfigMap",
				"{data: {a: x, ..: y, ..x: z}, binaryData: {\"\": eA==, a: eA==}}",
				"[data[a]: Invalid value: \"a\": duplicate of key present in binaryData, data[..]: Invalid value: \"..\": must not be '..', data[..x]: Invalid value: \"..x\": must not start with '..', binaryData[]: Invalid value: \"\": " KEY
				"]"},
			{"", "Pod",
				"{spec: {hostUsers: false, hostPID: true, nodeName: n, schedulingGates: [{name: a}, {name: a}], securityContext: {sysctls: [{name: a..b}, {name: kernel/a-b}, {name: kernel/a-b}, {}]}, containers: [{name: c, image: i}]}}",
				"[spec.securityContext.sysctls[0].name: Invalid value: \"a..b\": must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$, spec.securityContext.sysctls[2].name: Duplicate value: \"kernel/a-b\", spec.securityContext.sysctls[3].name: Required value, spec.HostPID: Forbidden: when `hostUsers` is false, spec.schedulingGates[1]: Duplicate value: \"a\", spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared]"},
			{"", "Pod",
				"{spec: {terminationGracePeriodSeconds: 5, restartPolicy: Never, containers: [{name: c, image: i, lifecycle: {preStop: {sleep: {seconds: 6}}}, resizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}]}]}}",
				"[spec.containers[0].lifecycle.preStop.sleep: Invalid value: 6: must be non-negative and less than terminationGracePeriodSeconds (5), spec.containers[0].resizePolicy: Invalid value: \"RestartContainer\": must be 'NotRequired' when `restartPolicy` is 'Never']"},
			{"batch", "Job",
				"{spec: {managedBy: a, podFailurePolicy: {rules: [{action: FailIndex, onExitCodes: {operator: In, values: [2, 0]}}, {}]}, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}",
				"[spec.managedBy: Invalid value: \"a\": must be a domain-prefixed path (such as \"acme.io/foo\"), spec.podFailurePolicy.rules[0].action: Invalid value: \"FailIndex\": requires the backoffLimitPerIndex to be set, spec.podFailurePolicy.rules[0].onExitCodes.values[1]: Invalid value: 0: must not be 0 for the In operator, spec.podFailurePolicy.rules[0].onExitCodes.values: Invalid value: [2,0]: must be ordered, spec.podFailurePolicy.rules[1].action: Required value: valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"], spec.podFailurePolicy.rules[1]: Invalid value: specifying one of OnExitCodes and OnPodConditions is required]"},
			{"", "Secret", "{data: {.: eA==, .x: eA==, a/b: eA==}}",
				"[data[.]: Invalid value: \".\": must not be '.', data[a/b]: Invalid value: \"a/b\": " KEY
				"]"},
			{"", "Secret", "{type: kubernetes.io/tls, data: {tls.key: \"\"}}",
				"data[tls.crt]: Required value"},
			{"", "Secret", "{type: kubernetes.io/basic-auth}",
				"[data[username]: Required value, data[password]: Required value]"},
			{"", "Secret", "{type: kubernetes.io/basic-auth, data: {password: \"\"}}",
				""},
			{"", "Secret",
				"{type: kubernetes.io/ssh-auth, data: {ssh-privatekey: \"\"}}",
				"data[ssh-privatekey]: Required value"},
			{"", "Secret", "{type: kubernetes.io/service-account-token}",
				"metadata.annotations[kubernetes.io/service-account.name]: Required value"},
			{"", "Secret",
				"{type: kubernetes.io/service-account-token, metadata: {annotations: {kubernetes.io/service-account.name: a}}}",
				""},
			{"", "Secret", "{type: kubernetes.io/dockercfg, data: {x: 5}}",
				"data[.dockercfg]: Required value"},
			{"", "Secret", "{type: kubernetes.io/dockercfg, data: {.dockercfg: 5}}",
				""},
			{"", "Secret", "{type: kubernetes.io/dockercfg, data: {.dockercfg: null}}",
				"data[.dockercfg]: Invalid value: \"<secret contents redacted>\": must be a JSON object"},
};

Test(schema_builtin, what_cannot_be_is_said)
{
	for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
		cleanup_json struct json_object *o = parse(checks[i].o);
		cleanup_schema_causes struct schema_causes causes = {NULL, 0, 0, false};
		cleanup_free char *got = NULL;

		schema_builtin_check(
			schema_builtin_kind(checks[i].group, "v1", checks[i].kind), o, &causes);
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
		"data[.dockerconfigjson]: Invalid value: \"<secret contents redacted>\": must be a JSON object";
	const struct schema_kind *k = schema_builtin_kind("", "v1", "Secret");

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		cleanup_schema_causes struct schema_causes causes = {NULL, 0, 0, false};
		cleanup_json struct json_object *o =
			parse("{type: kubernetes.io/dockerconfigjson, data: {}}");
		cleanup_strbuf struct strbuf b64 = STRBUF_INIT;
		cleanup_free char *got = NULL;

		bytes_to_b64(&b64, rows[i].text, strlen(rows[i].text));
		json_add_str(json_get(o, "data"), ".dockerconfigjson", strbuf_str(&b64));
		schema_builtin_check(k, o, &causes);
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
	cleanup_schema_causes struct schema_causes causes = {NULL, 0, 0, false};
	cleanup_free char *got = NULL;

	schema_builtin_check(k, o, &causes);
	if (old)
		schema_builtin_immutable(k, old, o, &causes);
	else
		schema_builtin_made(k, o, &causes);
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
		"[series.count: Invalid value: \"\": should be at least 2, series.lastObservedTime: Required "
		"value, count: Invalid value: \"\": needs to be unset, source: Invalid value: \"\": needs to be unset]");
	event_says(NULL, "{metadata: {namespace: n}, regarding: {namespace: m}}",
		"[involvedObject.namespace: Invalid value: \"m\": does not match event.namespace, eventTime: Required "
		"value, type: Invalid value: \"\": has invalid value: ]");
	event_says("{}", "{eventTime: t, action: a, reason: r, reportingController: c}",
		"[reportingInstance: Required value, reason: Invalid value: \"r\": field is immutable, eventTime: Invalid "
		"value: \"t\": field is immutable, action: Invalid value: \"a\": field is immutable, "
		"reportingController: Invalid value: \"c\": field is immutable]");
}

Test(schema_builtin, an_event_stays_as_it_is_but_for_its_series)
{
	event_says("{" EVENT "}", "{" EVENT ", series: {count: 2, lastObservedTime: t}}", "");
	event_says("{" EVENT "}", "{" EVENT ", series: {}}",
		"[series.count: Invalid value: \"\": should be at least 2, series.lastObservedTime: Required value]");
	event_says("{" EVENT "}", "{" EVENT ", note: m, related: {name: y}}",
		"[message: Invalid value: \"m\": field is immutable, related: Invalid value: "
		"{\"APIVersion\":\"\",\"FieldPath\":\"\",\"Kind\":\"\",\"Name\":\"y\","
		"\"Namespace\":\"\",\"ResourceVersion\":\"\",\"UID\":\"\"}: field is immutable]");
}

/* Nothing of any type makes it stumble. */
static const struct {
	const char *kind, *old, *o, *says;
} advice[] = {
	{"Pod", NULL, "{metadata: {name: a.b}, spec: {}}",
		"metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [must not contain dots]\n"},
	{"Pod", "{}", "{metadata: {name: a.b}, spec: {imagePullSecrets: [{name: a}, {name: a}]}}",
		""},
	{"Pod", NULL, "{spec: {imagePullSecrets: [{name: a}, {name: a}]}}",
		"spec.imagePullSecrets[1].name: duplicate name \"a\"\n"},
	{"Pod", NULL,
		"{spec: {containers: [{resources: {limits: {memory: 100m}, requests: {memory: 1Ki, ephemeral-storage: \"1.5\"}}}]}}",
		"spec.containers[0].resources.limits[memory]: fractional byte value \"100m\" is invalid, must be an integer\n"
		"spec.containers[0].resources.requests[ephemeral-storage]: fractional byte value \"1.5\" is invalid, must be an integer\n"},
	{"Pod", NULL,
		"{spec: {containers: [{env: [{name: A, value: x}, {name: A, value: $(A)}, {name: A, value: x$(A)}]}]}}",
		"spec.containers[0].env[1]: hides previous definition of \"A\", which may be dropped when using apply\n"},
	{"Pod", NULL,
		"{spec: {containers: [{ports: [{containerPort: 80}, {containerPort: 80}]}, {ports: [{containerPort: 80, hostPort: 5}]}]}}",
		"spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]\n"
		"spec.containers[1].ports[0]: overlapping port definition with spec.containers[0].ports[0]\n"
		"spec.containers[1].ports[0]: overlapping port definition with spec.containers[0].ports[1]\n"},
};

Test(schema_builtin, what_is_taken_may_be_warned_of)
{
	for (size_t i = 0; i < ARRAY_LEN(advice); i++) {
		cleanup_json struct json_object *o = parse(advice[i].o),
						*old = advice[i].old ? parse(advice[i].old) : NULL;
		cleanup_schema_texts struct schema_texts said = {NULL, 0, 0};
		cleanup_strbuf struct strbuf all = STRBUF_INIT;

		schema_builtin_warn(schema_builtin_kind("", "v1", advice[i].kind), old, o, &said);
		for (size_t n = 0; n < said.n; n++)
			strbuf_addf(&all, "%s\n", said.text[n]);
		cr_expect_str_eq(
			strbuf_str(&all), advice[i].says, "%s:\n%s", advice[i].o, strbuf_str(&all));
	}
}

Test(schema_builtin, every_kind_takes_what_is_no_object_of_it)
{
	static const char *const odd[] = {"{}", "{spec: null}", "{spec: []}", "{spec: x}",
		"{spec: {template: 5, strategy: [], selector: x, ports: {}, type: {}}}",
		"{spec: {ports: [null, [], {port: {}, protocol: 5, name: []}], selector: []}}",
		"{spec: {template: {metadata: 7, spec: {containers: [{ports: [{}], env: [{}], "
		"livenessProbe: {httpGet: 5}, image: 7, name: {}}], volumes: [{secret: []}, null]}}}}",
		"{spec: {volumes: [{hostPath: {path: 5}}, {hostPath: {path: null}}, {hostPath: []}, {emptyDir: 7}, "
		"{projected: {sources: [5, {secret: 5}, {downwardAPI: {items: [7, {path: {}}]}}]}}, {name: []}]}}",
		"{rules: [5, {verbs: x}], roleRef: [], subjects: [7, {}]}",
		"{data: [], binaryData: 5, type: kubernetes.io/tls}",
		"{data: {.dockerconfigjson: [], a: null, b: {}}, type: kubernetes.io/dockerconfigjson, metadata: 5}",
		"{data: {.dockercfg: \"!\", ssh-privatekey: 5}, type: kubernetes.io/ssh-auth, metadata: {annotations: []}}",
		"{data: {.dockercfg: \"!\"}, binaryData: {a: \"=\"}, type: kubernetes.io/dockercfg}",
		"{metadata: {name: 5, annotations: [], finalizers: [5]}, spec: {externalIPs: 5, resources: [], affinity: "
		"{podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [5, {}]}, podAntiAffinity: []}}}",
		"{spec: {overhead: {memory: 5}, hostAliases: [{ip: 5}, {}, 7], imagePullSecrets: {}, initContainers: 5, containers: "
		"[{ports: [{containerPort: x, hostPort: [], hostIP: 5, name: {}}, 5], env: [5, {name: 5}, {name: a}, {name: a, "
		"value: 7}], resources: {limits: {memory: []}, requests: x}}, 5]}}",
		"{spec: {managedBy: [], podFailurePolicy: {rules: [5, {action: 5, onExitCodes: {values: [x, null, {}], containerName: 5}, "
		"onPodConditions: [5, {type: {}}]}]}, successPolicy: {rules: [null, {succeededCount: x}]}, selector: {matchLabels: 5, "
		"matchExpressions: [5]}, template: {spec: {containers: {}}}}}",
		"{spec: {hostUsers: false, schedulingGates: [5, {name: {}}], securityContext: {sysctls: [null, {name: 5}]}, dataSource: 5, "
		"dataSourceRef: {kind: {}, namespace: 5}, ports: [{targetPort: 0}, 5], containers: [{lifecycle: {preStop: {sleep: {seconds: x}}}, "
		"resizePolicy: [5, {resourceName: []}]}]}}",
		"{eventTime: [], series: 5, regarding: 5, deprecatedCount: {}, reportingController: 7}"};

	for (size_t i = 0; i < schema_builtin_count(); i++)
		for (size_t n = 0; n < ARRAY_LEN(odd); n++) {
			cleanup_json struct json_object *o = parse(odd[n]);
			cleanup_schema_causes struct schema_causes causes = {NULL, 0, 0, false};
			cleanup_schema_texts struct schema_texts warnings = {NULL, 0, 0};

			schema_builtin_default(schema_builtin_at(i), o);
			schema_builtin_check(schema_builtin_at(i), o, &causes);
			schema_builtin_made(schema_builtin_at(i), o, &causes);
			schema_builtin_immutable(schema_builtin_at(i), o, o, &causes);
			schema_builtin_warn(schema_builtin_at(i), NULL, o, &warnings);
		}
}
