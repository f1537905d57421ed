/* SPDX-License-Identifier: MIT */
/*
 * The table of built-in kinds, and which of their fields never change.
 */
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
/* Without deletecollection and the like: asked, never stored. */
#define REVIEW(g, k, p, s)                                                                         \
	{                                                                                          \
		.group = g, .version = "v1", .kind = k, .list_kind = k "List", .plural = p,        \
		.singular = s, .verbs = SCHEMA_VERB_CREATE                                         \
	}

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
		.namespaced = true,
		.names_path = true},
};

size_t schema_builtin_count(void)
{
	return ARRAY_LEN(kinds);
}

const struct schema_kind *schema_builtin_at(size_t i)
{
	return i < ARRAY_LEN(kinds) ? &kinds[i] : NULL;
}

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
	return "spec status"; /* of a Namespace */
}

/* ---- fields that may not change */

struct update {
	struct json_object *old, *now;
	struct schema_causes *causes;
};

static bool same(const struct update *u, const char *path)
{
	return json_object_equal(json_get(u->old, path), json_get(u->now, path));
}

static bool is_kind(const struct schema_kind *k, const char *group, const char *kind)
{
	return str_eq(k->group, group) && str_eq(k->kind, kind);
}

static void immutable_data(const struct update *u, const char *const *members, size_t n)
{
	if (!json_get_bool(u->old, "immutable", false))
		return;
	if (!json_get_bool(u->now, "immutable", false))
		schema_cause_add(u->causes, SCHEMA_FORBIDDEN, "immutable", NULL,
			"field is immutable when `immutable` is set");
	for (size_t i = 0; i < n; i++)
		if (!same(u, members[i]))
			schema_cause_add(u->causes, SCHEMA_FORBIDDEN, members[i], NULL,
				"field is immutable when `immutable` is set");
}

static void fixed_secret(const struct update *u)
{
	static const char *const members[] = {"data"};
	struct json_object *type = json_get(u->now, "type");

	/* Of a Secret without a type it is Opaque, on both sides. */
	if (!str_eq(type ? json_object_get_string(type) : "Opaque",
		    json_get(u->old, "type") ? json_get_str(u->old, "type") : "Opaque"))
		schema_cause_add(u->causes, SCHEMA_INVALID, "type", type, "field is immutable");
	immutable_data(u, members, ARRAY_LEN(members));
}

static void fixed_configmap(const struct update *u)
{
	static const char *const members[] = {"data", "binaryData"};

	immutable_data(u, members, ARRAY_LEN(members));
}

/* Its value is printed with the names that Go has for its members. */
static void fixed_role(const struct update *u)
{
	static const char *const members[][2] = {
		{"apiGroup", "APIGroup"}, {"kind", "Kind"}, {"name", "Name"}};
	struct json_object *ref = json_get(u->now, "roleRef");
	cleanup_json struct json_object *shown = json_obj();

	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		const char *v = json_get_str(ref, members[i][0]);

		json_add_str(shown, members[i][1], v ? v : "");
	}
	schema_cause_add(u->causes, SCHEMA_INVALID, "roleRef", shown, "cannot change roleRef");
}

void schema_builtin_immutable(const struct schema_kind *k, struct json_object *old,
	struct json_object *now, struct schema_causes *causes)
{
	struct update u = {old, now, causes};
	struct look l = {STRBUF_INIT, causes};

	if (is_kind(k, "", "Secret"))
		fixed_secret(&u);
	else if (is_kind(k, "", "ConfigMap"))
		fixed_configmap(&u);
	else if (is_kind(k, "rbac.authorization.k8s.io", "RoleBinding") && !same(&u, "roleRef"))
		fixed_role(&u);
	else if (is_kind(k, "events.k8s.io", "Event"))
		look_event_changed(&l, old, now);
	strbuf_fini(&l.path);
}
