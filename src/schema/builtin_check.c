/* SPDX-License-Identifier: MIT */
/*
 * What kube-apiserver refuses of built-in kinds, for what people get wrong: fields that are missing,
 * names, numbers, words. In its order and its words; after the defaults. What is not looked at is
 * stored as it came.
 */
#include "config.h"

#include <string.h>

#include "builtin_internal.h"
#include "schema_internal.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/kobj/key.h"
#include "tec/schema/builtin.h"
#include "tec/schema/quantity.h"

#define RBAC "rbac.authorization.k8s.io"

static void pod(struct look *l, struct json_object *o)
{
	static const char *const restart[] = {"Always", "OnFailure", "Never", NULL};
	struct json_object *spec = json_get_obj(o, "spec");
	size_t before = look_go(l, "spec");

	look_pod_spec(l, spec);
	look_one_of(l, spec, "restartPolicy", restart);
	look_back(l, before);
}

static void annotations(struct look *l, struct json_object *a)
{
	if (!a)
		return;
	json_object_object_foreach (a, key, v) {
		(void)v;
		if (!look_qualified(key))
			look_at_text(l, "annotations", SCHEMA_INVALID, key, LOOK_PART);
	}
}

/* words: what restartPolicy may be. */
static void template(struct look *l, struct json_object *o, const char *const *words)
{
	struct json_object *spec = json_get_obj(o, "spec/template/spec");
	size_t whole = look_go(l, "spec"), before;

	before = look_go(l, "template");
	look_labels(l, "labels", json_get(o, "spec/template/metadata/labels"));
	annotations(l, json_get_obj(o, "spec/template/metadata/annotations"));
	(void)look_go(l, "spec");
	look_pod_spec(l, spec);
	look_one_of(l, spec, "restartPolicy", words);
	look_back(l, before);
	look_back(l, whole);
}

/* ---- what makes Pods */

/* An expression that was found to be one. */
static bool expression_holds(struct json_object *e, struct json_object *labels)
{
	const char *op = json_get_str(e, "operator"), *key = json_get_str(e, "key");
	struct json_object *values = json_get_arr(e, "values"), *have = NULL;
	bool in = false, there = key && json_object_is_type(labels, json_type_object) &&
				 json_object_object_get_ex(labels, key, &have);

	for (size_t i = 0; there && values && i < json_object_array_length(values); i++)
		in |= json_object_equal(json_object_array_get_idx(values, i), have);
	return str_eq(op, "In")       ? in
	       : str_eq(op, "NotIn")  ? !in
	       : str_eq(op, "Exists") ? there
				      : !there;
}

static bool selects(struct json_object *selector, struct json_object *labels)
{
	struct json_object *want = json_get_obj(selector, "matchLabels");
	struct json_object *more = json_get_arr(selector, "matchExpressions");

	for (size_t i = 0; more && i < json_object_array_length(more); i++)
		if (!expression_holds(json_object_array_get_idx(more, i), labels))
			return false;
	if (!want)
		return true;
	json_object_object_foreach (want, name, v) {
		struct json_object *have = NULL;

		if (!json_object_is_type(labels, json_type_object) ||
			!json_object_object_get_ex(labels, name, &have) ||
			!json_object_equal(have, v))
			return false;
	}
	return true;
}

static bool selector_holds(struct look *l, struct json_object *o)
{
	size_t before = look_go(l, "spec");
	bool holds = look_selector(l, json_get(o, "spec"), "selector");

	look_back(l, before);
	return holds;
}

/* Only of Jobs whose Pods have numbers. */
static void indexed(struct look *l, struct json_object *spec)
{
	static const char *const fields[] = {"backoffLimitPerIndex", "maxFailedIndexes"};
	bool is = str_eq(json_get_str(spec, "completionMode"), "Indexed");
	int64_t n;

	if (json_get(spec, "maxFailedIndexes") && !json_get(spec, "backoffLimitPerIndex"))
		look_at(l, "backoffLimitPerIndex", SCHEMA_REQUIRED, NULL,
			"when maxFailedIndexes is specified");
	if (is && look_number(spec, "parallelism", &n) && n > 100000)
		look_at(l, "parallelism", SCHEMA_INVALID, json_get(spec, "parallelism"),
			"must be less than or equal to 100000 when completion mode is Indexed");
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		if (!is && json_get(spec, fields[i]))
			look_at(l, fields[i], SCHEMA_INVALID, json_get(spec, fields[i]),
				"requires indexed completion mode");
}

static void job_spec(struct look *l, struct json_object *spec)
{
	static const char *const modes[] = {"NonIndexed", "Indexed", NULL},
				 *const replace[] = {"Failed", "TerminatingOrFailed", NULL};
	static const char *const counts[] = {"parallelism", "completions", "activeDeadlineSeconds",
		"backoffLimit", "ttlSecondsAfterFinished", "backoffLimitPerIndex",
		"maxFailedIndexes"};

	for (size_t i = 0; i < ARRAY_LEN(counts); i++)
		look_not_negative(l, spec, counts[i]);
	look_one_of(l, spec, "completionMode", modes);
	indexed(l, spec);
	look_one_of(l, spec, "podReplacementPolicy", replace);
	look_job_policy(l, spec);
}

/* One that a person gave: it is not made here. */
static void own_selector(struct look *l, struct json_object *o)
{
	struct json_object *spec = json_get_obj(o, "spec"), *s = json_get(spec, "selector"),
			   *labels = json_get(spec, "template/metadata/labels");

	if (!json_get_bool(spec, "manualSelector", false))
		return;
	if (!s)
		look_at(l, "spec.selector", SCHEMA_REQUIRED, NULL, "");
	if (!s || (selector_holds(l, o) && !selects(s, labels)))
		look_at(l, "spec.template.metadata.labels", SCHEMA_INVALID, labels,
			"`selector` does not match template `labels`");
}

/* kube-apiserver gives its Pods its name as two labels. */
static void name_as_label(struct look *l, struct json_object *o)
{
	const char *name = json_get_str(o, "metadata/name");
	size_t before = look_go(l, "spec"), template = look_go(l, "template");

	(void)template;
	for (int i = 0; i < 2 && !json_get_bool(o, "spec/manualSelector", false); i++) {
		if (name && strlen(name) > 63)
			look_at_text(l, "labels", SCHEMA_INVALID, name,
				"must be no more than 63 characters");
		if (name && !look_part(name))
			look_value(l, "labels", name);
	}
	look_back(l, before);
}

static void job(struct look *l, struct json_object *o)
{
	static const char *const restart[] = {"OnFailure", "Never", NULL}, *const any[] = {
										   "Always", NULL};
	struct json_object *spec = json_get_obj(o, "spec");
	const char *policy = json_get_str(spec, "template/spec/restartPolicy");
	size_t before = look_go(l, "spec");

	job_spec(l, spec);
	look_back(l, before);
	name_as_label(l, o);
	if (!policy || str_eq(policy, "Always")) {
		template(l, o, any);
		look_at(l, "spec.template.spec.restartPolicy", SCHEMA_REQUIRED, NULL,
			"valid values: \"OnFailure\", \"Never\"");
	} else {
		template(l, o, restart);
	}
	if (str_eq(policy, "OnFailure") && json_get(spec, "podFailurePolicy"))
		look_at(l, "spec.template.spec.restartPolicy", SCHEMA_INVALID,
			json_get(spec, "template/spec/restartPolicy"),
			"only \"Never\" is supported when podFailurePolicy is specified");
	own_selector(l, o);
}

/* ---- the rest */

static void subject(struct look *l, struct json_object *s)
{
	static const char *const kinds[] = {"ServiceAccount", "User", "Group", NULL},
				 *const core[] = {"", NULL}, *const rbac[] = {RBAC, NULL};
	const char *kind = json_get_str(s, "kind");

	look_needs(l, s, "name", "");
	look_word(l, s, "kind", kinds);
	if (str_eq(kind, "ServiceAccount")) {
		if (!look_empty(json_get(s, "name")))
			look_subdomain(l, s, "name");
		look_one_of(l, s, "apiGroup", core);
	} else if (str_eq(kind, "User") || str_eq(kind, "Group")) {
		look_one_of(l, s, "apiGroup", rbac);
	}
}

static void binding(struct look *l, struct json_object *o)
{
	static const char *const groups[] = {RBAC, NULL};
	static const char *const kinds[] = {"ClusterRole", NULL};
	static const char *const names[] = {
		SCHEMA_ROLE_ADMIN, SCHEMA_ROLE_FOLLOW, SCHEMA_ROLE_VIEW, NULL};
	struct json_object *ref = json_get_obj(o, "roleRef");
	size_t before = look_go(l, "roleRef");

	look_one_of(l, ref, "apiGroup", groups);
	look_word(l, ref, "kind", kinds);
	look_word(l, ref, "name", names);
	look_back(l, before);
	look_each(l, o, "subjects", subject);
}

void schema_builtin_check(
	const struct schema_kind *k, struct json_object *o, struct schema_causes *causes)
{
	static const struct {
		const char *group, *kind;
		void (*check)(struct look *l, struct json_object *o);
	} kinds[] = {{"", "Secret", look_secret}, {"", "ConfigMap", look_configmap},
		{"", "Pod", pod}, {"batch", "Job", job},
		{"rbac.authorization.k8s.io", "RoleBinding", binding}, {"", "Event", look_event},
		{"events.k8s.io", "Event", look_new_event}};
	struct look l = {STRBUF_INIT, causes};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (str_eq(k->group, kinds[i].group) && str_eq(k->kind, kinds[i].kind))
			kinds[i].check(&l, o);
	strbuf_fini(&l.path);
}

/* Without manualSelector it is not for a client to give. */
static void given_selector(struct look *l, struct json_object *o)
{
	struct json_object *s = json_get_obj(json_get_obj(o, "spec"), "selector");

	if (!s || json_get_bool(o, "spec/manualSelector", false) ||
		(look_empty(json_get(s, "matchLabels")) &&
			look_empty(json_get(s, "matchExpressions"))))
		return;
	if (selector_holds(l, o))
		look_at(l, "spec.selector", SCHEMA_INVALID, s, "`selector` not auto-generated");
}

void schema_builtin_made(
	const struct schema_kind *k, struct json_object *o, struct schema_causes *causes)
{
	struct look l = {STRBUF_INIT, causes};

	if (str_eq(k->group, "events.k8s.io"))
		look_event_made(&l, o);
	else if (str_eq(k->group, "batch") && str_eq(k->kind, "Job"))
		given_selector(&l, o);
	strbuf_fini(&l.path);
}
