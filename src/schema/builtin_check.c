/* SPDX-License-Identifier: MIT */
/*
 * The checks that kube-apiserver makes on objects of built-in kinds. They run after the defaults,
 * which only RoleBindings have. Members that are not checked are stored as they came.
 */
#include "config.h"

#include <string.h>

#include "builtin_internal.h"
#include "schema_internal.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/kobj/key.h"
#include "tec/schema/builtin.h"

#define RBAC "rbac.authorization.k8s.io"

/* The path is extended for this cause only, so callers need not restore it. */
void look_at(struct look *l, const char *name, enum schema_problem p, struct json_object *v,
	const char *why)
{
	size_t before = schema_path_add(&l->path, name);

	schema_cause_add(l->causes, p, strbuf_str(&l->path), v, "%s", why);
	schema_path_cut(&l->path, before);
}

/* Go's API types do not distinguish an absent value from an empty one. */
bool look_empty(struct json_object *v)
{
	return !v || (json_object_is_type(v, json_type_array) && json_len(v) == 0) ||
	       (json_object_is_type(v, json_type_string) && json_object_get_string_len(v) == 0) ||
	       (json_object_is_type(v, json_type_object) && json_len(v) == 0);
}

/* An empty value counts as missing. */
bool look_needs(struct look *l, struct json_object *o, const char *name)
{
	if (!look_empty(json_get(o, name)))
		return true;
	look_at(l, name, SCHEMA_REQUIRED, NULL, "");
	return false;
}

/* ---- RoleBindings */

/* Require one of the words (NULL-terminated); a missing value is "". */
static void look_word(
	struct look *l, struct json_object *o, const char *name, const char *const *words)
{
	cleanup_strbuf struct strbuf all = STRBUF_INIT;
	const char *have = json_get_str(o, name);

	for (const char *const *w = words; *w; w++) {
		if (str_eq(have ? have : "", *w))
			return;
		strbuf_addf(&all, "%s\"%s\"", all.len ? ", " : "supported values: ", *w);
	}
	look_at(l, name, SCHEMA_UNSUPPORTED, json_get(o, name), strbuf_str(&all));
}

/* The API group depends on the kind: "" for ServiceAccounts, RBAC's for users and groups. */
static void look_subject(struct look *l, struct json_object *s)
{
	static const char *const kinds[] = {"ServiceAccount", "User", "Group", NULL},
				 *const core[] = {"", NULL}, *const rbac[] = {RBAC, NULL};
	const char *kind = json_get_str(s, "kind"), *name = json_get_str(s, "name");
	bool account = str_eq(kind, "ServiceAccount");

	if (look_needs(l, s, "name") && account && name && !kobj_name_valid(name, strlen(name)))
		look_at(l, "name", SCHEMA_INVALID, json_get(s, "name"),
			"must be the name of an object");
	look_word(l, s, "kind", kinds);
	if (account)
		look_word(l, s, "apiGroup", core);
	else if (str_eq(kind, "User") || str_eq(kind, "Group"))
		look_word(l, s, "apiGroup", rbac);
}

/* Unlike kube-apiserver, only the ClusterRoles that apistore/rights knows may be named: a binding
 * to any other would grant nothing. */
static void look_binding(struct look *l, struct json_object *o)
{
	static const char *const groups[] = {RBAC, NULL};
	static const char *const kinds[] = {"ClusterRole", NULL};
	static const char *const names[] = {
		SCHEMA_ROLE_ADMIN, SCHEMA_ROLE_FOLLOW, SCHEMA_ROLE_VIEW, NULL};
	struct json_object *ref = json_get_obj(o, "roleRef"), *a = json_get_arr(o, "subjects");
	size_t before = schema_path_add(&l->path, "roleRef");

	if (ref)
		look_word(l, ref, "apiGroup", groups);
	look_word(l, ref, "kind", kinds);
	look_word(l, ref, "name", names);
	schema_path_cut(&l->path, before);
	(void)schema_path_add(&l->path, "subjects");
	for (size_t i = 0; i < json_len(a); i++) {
		size_t list = schema_path_index(&l->path, i);

		if (json_object_is_type(json_at(a, i), json_type_object))
			look_subject(l, json_at(a, i));
		schema_path_cut(&l->path, list);
	}
	schema_path_cut(&l->path, before);
}

/* Only an absent group is filled in; an explicit "" is checked as given. */
static void fill_group(struct json_object *o)
{
	if (json_object_is_type(o, json_type_object) &&
		!json_object_object_get_ex(o, "apiGroup", NULL))
		json_add_str(o, "apiGroup", RBAC);
}

/* The default that RoleBindings have: RBAC's group for roleRef, users and groups. */
void schema_builtin_default(const struct schema_kind *k, struct json_object *o)
{
	struct json_object *a = json_get_arr(o, "subjects");

	if (!str_eq(k->kind, "RoleBinding"))
		return;
	fill_group(json_get_obj(o, "roleRef"));
	for (size_t i = 0; i < json_len(a); i++) {
		struct json_object *s = json_at(a, i);
		const char *kind = json_get_str(s, "kind");

		if (str_eq(kind, "User") || str_eq(kind, "Group"))
			fill_group(s);
	}
}

/* ---- all kinds */

/* `was` selects the rules for an update; without it, those for a create apply. */
void schema_builtin_check(const struct schema_kind *k, struct json_object *was,
	struct json_object *o, struct schema_causes *causes)
{
	static const struct {
		const char *group, *kind;
		void (*check)(struct look *l, struct json_object *o);
	} kinds[] = {{"", "Secret", look_secret}, {"", "ConfigMap", look_configmap},
		{RBAC, "RoleBinding", look_binding}, {"", "Event", look_event},
		{"events.k8s.io", "Event", look_new_event}};
	struct look l = {STRBUF_INIT, causes};

	if (was)
		look_changed(&l, k, was, o);
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (str_eq(k->group, kinds[i].group) && str_eq(k->kind, kinds[i].kind))
			kinds[i].check(&l, o);
	if (!was && str_eq(k->group, "events.k8s.io"))
		look_event_made(&l, o);
	strbuf_fini(&l.path);
}
