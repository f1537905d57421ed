/* SPDX-License-Identifier: MIT */
/* The table of built-in kinds, and the fields of them that an update must not change. Names, verbs
 * and short names are those of kube-apiserver's discovery. */
#include "config.h"

#include "tec/schema/builtin.h"

#include <string.h>

#include "builtin_internal.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"

#define NAMES(...)                                                                                 \
	(const char *const[])                                                                      \
	{                                                                                          \
		__VA_ARGS__, NULL                                                                  \
	}
#define SUBS(list) .subs = list, .n_subs = ARRAY_LEN(list)
/* A review: answered at once and never stored, so create is its only verb. */
#define REVIEW(g, k, p, s)                                                                         \
	{                                                                                          \
		.group = g, .version = "v1", .kind = k, .list_kind = k "List", .plural = p,        \
		.singular = s, .verbs = SCHEMA_VERB_CREATE                                         \
	}

/* A POST to serviceaccounts/NAME/token exchanges a TokenRequest, not a ServiceAccount. */
static const struct schema_sub account_subs[] = {
	{.name = "token",
		.group = "authentication.k8s.io",
		.version = "v1",
		.kind = "TokenRequest",
		.verbs = SCHEMA_VERB_CREATE},
};

/* By group, then by name: the order of discovery. */
static const struct schema_kind kinds[] = {
	{.group = "",
		.version = "v1",
		.kind = "ConfigMap",
		.list_kind = "ConfigMapList",
		.plural = "configmaps",
		.singular = "configmap",
		.short_names = NAMES("cm"),
		.verbs = SCHEMA_VERBS_ALL,
		.namespaced = true},
	{.group = "",
		.version = "v1",
		.kind = "Event",
		.list_kind = "EventList",
		.plural = "events",
		.singular = "event",
		.short_names = NAMES("ev"),
		.verbs = SCHEMA_VERBS_ALL,
		.namespaced = true},
	{.group = "",
		.version = "v1",
		.kind = "Namespace",
		.list_kind = "NamespaceList",
		.plural = "namespaces",
		.singular = "namespace",
		.short_names = NAMES("ns"),
		.verbs = SCHEMA_VERB_GET | SCHEMA_VERB_LIST | SCHEMA_VERB_WATCH},
	{.group = "",
		.version = "v1",
		.kind = "Secret",
		.list_kind = "SecretList",
		.plural = "secrets",
		.singular = "secret",
		.verbs = SCHEMA_VERBS_ALL,
		.namespaced = true},
	{.group = "",
		.version = "v1",
		.kind = "ServiceAccount",
		.list_kind = "ServiceAccountList",
		.plural = "serviceaccounts",
		.singular = "serviceaccount",
		.short_names = NAMES("sa"),
		.verbs = SCHEMA_VERBS_ALL,
		.namespaced = true,
		SUBS(account_subs)},
	REVIEW("authentication.k8s.io", "SelfSubjectReview", "selfsubjectreviews",
		"selfsubjectreview"),
	REVIEW("authorization.k8s.io", "SelfSubjectAccessReview", "selfsubjectaccessreviews",
		"selfsubjectaccessreview"),
	REVIEW("authorization.k8s.io", "SelfSubjectRulesReview", "selfsubjectrulesreviews",
		"selfsubjectrulesreview"),
	{.group = "events.k8s.io",
		.version = "v1",
		.kind = "Event",
		.list_kind = "EventList",
		.plural = "events",
		.singular = "event",
		.short_names = NAMES("ev"),
		.verbs = SCHEMA_VERBS_ALL,
		.namespaced = true},
	{.group = "rbac.authorization.k8s.io",
		.version = "v1",
		.kind = "RoleBinding",
		.list_kind = "RoleBindingList",
		.plural = "rolebindings",
		.singular = "rolebinding",
		.verbs = SCHEMA_VERBS_ALL,
		.namespaced = true},
};

size_t schema_builtin_count(void)
{
	return ARRAY_LEN(kinds);
}

const struct schema_kind *schema_builtin_at(size_t i)
{
	return i < ARRAY_LEN(kinds) ? &kinds[i] : NULL;
}

/* The table is small: a search is fast enough for every request. */
const struct schema_kind *schema_builtin_find(
	const char *group, const char *version, const char *plural)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (str_eq(kinds[i].group, group) && str_eq(kinds[i].version, version) &&
			str_eq(kinds[i].plural, plural))
			return &kinds[i];
	return NULL;
}

const struct schema_kind *schema_builtin_kind(
	const char *group, const char *version, const char *kind)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (str_eq(kinds[i].group, group) && str_eq(kinds[i].version, version) &&
			str_eq(kinds[i].kind, kind))
			return &kinds[i];
	return NULL;
}

/* ---- members */

/* Only the names: the values are described as "any value" in OpenAPI documents, and checked by
 * builtin_check.c. */
const char *schema_builtin_members(const struct schema_kind *k)
{
	static const struct {
		const char *group, *kind, *members;
	} others[] = {
		{"", "ConfigMap", "data binaryData immutable"},
		{"", "Secret", "data stringData immutable type"},
		{"", "ServiceAccount", "secrets imagePullSecrets automountServiceAccountToken"},
		{"", "Event",
			"involvedObject reason message source firstTimestamp lastTimestamp count "
			"type eventTime series action related reportingComponent reportingInstance"},
		{"events.k8s.io", "Event",
			"eventTime series reportingController reportingInstance action reason regarding "
			"related note type deprecatedSource deprecatedFirstTimestamp "
			"deprecatedLastTimestamp deprecatedCount"},
		{"rbac.authorization.k8s.io", "RoleBinding", "subjects roleRef"},
	};

	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		if (str_eq(k->group, others[i].group) && str_eq(k->kind, others[i].kind))
			return others[i].members;
	return "spec status"; /* a Namespace */
}

/* ---- fields that may not change */

static bool same(struct json_object *old, struct json_object *now, const char *member)
{
	return json_object_equal(json_get(old, member), json_get(now, member));
}

/* immutable itself cannot be unset either, otherwise two updates would change the data. */
static void fixed_data(
	struct json_object *old, struct json_object *now, struct schema_causes *causes)
{
	static const char *const members[] = {"data", "binaryData"};
	static const char why[] = "field is immutable when `immutable` is set";

	if (!json_get_bool(old, "immutable", false))
		return;
	if (!json_get_bool(now, "immutable", false))
		schema_cause_add(causes, SCHEMA_FORBIDDEN, "immutable", NULL, "%s", why);
	for (size_t i = 0; i < ARRAY_LEN(members); i++)
		if (!same(old, now, members[i]))
			schema_cause_add(causes, SCHEMA_FORBIDDEN, members[i], NULL, "%s", why);
}

/* Return the type of a Secret; Opaque by default. */
static const char *type_of(struct json_object *secret)
{
	const char *type = json_get_str(secret, "type");

	return type ? type : "Opaque";
}

/* The new and the old object are compared after the defaults, so that an omitted default is no
 * change. */
void look_changed(struct look *l, const struct schema_kind *k, struct json_object *old,
	struct json_object *now)
{
	if (str_eq(k->kind, "Secret") && !str_eq(type_of(old), type_of(now)))
		look_at(l, "type", SCHEMA_INVALID, json_get(now, "type"), "field is immutable");
	if (str_eq(k->kind, "Secret") || str_eq(k->kind, "ConfigMap"))
		fixed_data(old, now, l->causes);
	if (str_eq(k->kind, "RoleBinding") && !same(old, now, "roleRef"))
		look_at(l, "roleRef", SCHEMA_INVALID, json_get(now, "roleRef"),
			"field is immutable");
	if (str_eq(k->group, "events.k8s.io"))
		look_event_changed(l, old, now);
}
