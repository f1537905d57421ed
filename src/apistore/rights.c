/* SPDX-License-Identifier: MIT */
/* Rules are read as kube-apiserver's RBAC reads them: what one rule names in verbs, apiGroups,
 * resources and resourceNames it gives together. */
#include "config.h"

#include "tec/apistore/rights.h"

#include <stdio.h>
#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"

static const char follow_rules[] =
	"[{\"apiGroups\":[\"trusted-execution-clusters.io\"],\"resources\":[\"trustedexecutionclusters\","
	"\"machines\",\"attestationkeys\",\"approvedimages\"],\"verbs\":[\"get\",\"list\",\"watch\"]},"
	"{\"apiGroups\":[\"\"],\"resources\":[\"secrets\",\"configmaps\"],"
	"\"verbs\":[\"get\",\"list\",\"watch\"]}]";

/* What everybody who is known may do. */
static const char *const open_paths[] = {"/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez",
	"/readyz", "/openapi", "/openapi/*", "/version", "/version/"};
static const char *const self_reviews[] = {
	"selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"};

static bool path_fits(const char *rule, const char *path)
{
	size_t n = strlen(rule);

	if (n > 0 && rule[n - 1] == '*')
		return strncmp(rule, path, n - 1) == 0;
	return strcmp(rule, path) == 0;
}

static bool has(struct json_object *rule, const char *member, const char *want)
{
	struct json_object *a = json_get_arr(rule, member);

	for (size_t i = 0; a && i < json_object_array_length(a); i++) {
		const char *s = json_object_get_string(json_object_array_get_idx(a, i));

		if (str_eq(s, want) || str_eq(s, "*"))
			return true;
	}
	return false;
}

/* "pods/log", "pods/ *", "* /log", "*". */
static bool has_resource(struct json_object *rule, const struct apistore_act *act)
{
	cleanup_free char *whole =
		act->sub[0] ? xasprintf("%s/%s", act->resource, act->sub) : xstrdup(act->resource);
	cleanup_free char *any = xasprintf("*/%s", act->sub);

	return has(rule, "resources", whole) || (act->sub[0] && has(rule, "resources", any));
}

static bool rule_allows(struct json_object *rule, const struct apistore_act *act)
{
	struct json_object *names = json_get_arr(rule, "resourceNames");

	if (!has(rule, "verbs", act->verb) || !has(rule, "apiGroups", act->group) ||
		!has_resource(rule, act))
		return false;
	if (!names || json_object_array_length(names) == 0)
		return true;
	for (size_t i = 0; i < json_object_array_length(names); i++)
		if (act->name[0] &&
			str_eq(json_object_get_string(json_object_array_get_idx(names, i)),
				act->name))
			return true;
	return false;
}

static bool is_bound(struct json_object *binding, const struct apistore_user *u)
{
	struct json_object *subjects = json_get_arr(binding, "subjects");

	for (size_t i = 0; subjects && i < json_object_array_length(subjects); i++) {
		struct json_object *s = json_object_array_get_idx(subjects, i);
		const char *kind = json_get_str(s, "kind"), *name = json_get_str(s, "name");

		if (!kind || !name)
			continue;
		if (str_eq(kind, "ServiceAccount") && u->account[0] && str_eq(name, u->account) &&
			str_eq(json_get_str(s, "namespace"), u->ns))
			return true;
		if ((str_eq(kind, "User") && str_eq(name, u->name)) ||
			(str_eq(kind, "Group") && apistore_user_in(u, name)))
			return true;
	}
	return false;
}

struct json_object *apistore_rights_of_role(
	const char *kind, const char *name, const char *ns, const struct apistore_roles *roles)
{
	cleanup_json struct json_object *role = NULL;
	struct err err = ERR_INIT;

	if (str_eq(kind, "ClusterRole"))
		return str_eq(name, APISTORE_FOLLOW_ROLE)
			       ? json_parse(follow_rules, strlen(follow_rules), &json_limits_public,
					 &err)
			       : NULL;
	role = roles->role(roles->arg, ns, name);
	if (role && !json_get_arr(role, "rules"))
		return json_arr();
	return json_object_get(json_get_arr(role, "rules"));
}

/* The rules that a binding gives; the caller puts them. NULL: there are none. */
static struct json_object *rules_of(
	struct json_object *binding, const char *ns, const struct apistore_roles *roles)
{
	const char *kind = json_get_str(binding, "roleRef/kind"),
		   *name = json_get_str(binding, "roleRef/name");

	return kind && name ? apistore_rights_of_role(kind, name, ns, roles) : NULL;
}

/* Every rule that u has in ns, until fn says true. */
static bool each_rule(const struct apistore_user *u, const char *ns,
	const struct apistore_roles *roles, bool (*fn)(struct json_object *rule, void *arg),
	void *arg)
{
	cleanup_json struct json_object *list = ns[0] ? roles->bindings(roles->arg, ns) : NULL;
	struct json_object *items = json_get_arr(list, "items");

	for (size_t i = 0; items && i < json_object_array_length(items); i++) {
		struct json_object *b = json_object_array_get_idx(items, i);
		cleanup_json struct json_object *rules =
			is_bound(b, u) ? rules_of(b, ns, roles) : NULL;

		for (size_t k = 0; rules && k < json_object_array_length(rules); k++)
			if (fn(json_object_array_get_idx(rules, k), arg))
				return true;
	}
	return false;
}

static bool allows(struct json_object *rule, void *arg)
{
	return rule_allows(rule, arg);
}

static bool is_for_all(const struct apistore_act *act)
{
	for (size_t i = 0; act->path[0] && i < ARRAY_LEN(open_paths); i++)
		if (str_eq(act->verb, "get") && path_fits(open_paths[i], act->path))
			return true;
	for (size_t i = 0; i < ARRAY_LEN(self_reviews); i++)
		if (str_eq(act->verb, "create") && str_eq(act->resource, self_reviews[i]) &&
			(str_eq(act->group, "authorization.k8s.io") ||
				str_eq(act->group, "authentication.k8s.io")))
			return true;
	return false;
}

bool apistore_rights_allow(const struct apistore_user *u, const struct apistore_act *act,
	const struct apistore_roles *roles)
{
	if (apistore_user_in(u, APISTORE_MASTERS) || is_for_all(act))
		return true;
	return !act->path[0] && each_rule(u, act->ns, roles, allows, (void *)act);
}

char *apistore_rights_refusal(const struct apistore_user *u, const struct apistore_act *act)
{
	cleanup_strbuf struct strbuf b = STRBUF_INIT;

	if (act->path[0])
		return xasprintf("forbidden: User \"%s\" cannot %s path \"%s\"", u->name, act->verb,
			act->path);
	strbuf_addf(&b, "%s%s%s ", act->resource, act->group[0] ? "." : "", act->group);
	if (act->name[0])
		strbuf_addf(&b, "\"%s\" ", act->name);
	strbuf_addf(&b,
		"is forbidden: User \"%s\" cannot %s resource \"%s%s%s\" in API group \"%s\"",
		u->name, act->verb, act->resource, act->sub[0] ? "/" : "", act->sub, act->group);
	if (act->ns[0])
		strbuf_addf(&b, " in the namespace \"%s\"", act->ns);
	else
		strbuf_adds(&b, " at the cluster scope");
	return strbuf_steal(&b);
}

static bool collect(struct json_object *rule, void *arg)
{
	json_push(arg, json_copy(rule));
	return false;
}

static struct json_object *words(const char *const *w, size_t n)
{
	struct json_object *a = json_arr();

	for (size_t i = 0; i < n; i++)
		json_push(a, json_object_new_string(w[i]));
	return a;
}

struct json_object *apistore_rights_rules(
	const struct apistore_user *u, const char *ns, const struct apistore_roles *roles)
{
	static const char *const all[] = {"*"}, *const get[] = {"get"},
				 *const create[] = {"create"},
				 *const groups[] = {
					 "authentication.k8s.io", "authorization.k8s.io"};
	struct json_object *status = json_obj(), *resources = json_arr(), *paths = json_arr(), *o;
	bool admin = apistore_user_in(u, APISTORE_MASTERS);

	o = json_obj();
	json_add(o, "verbs", admin ? words(all, 1) : words(create, 1));
	json_add(o, "apiGroups", admin ? words(all, 1) : words(groups, ARRAY_LEN(groups)));
	json_add(o, "resources",
		admin ? words(all, 1) : words(self_reviews, ARRAY_LEN(self_reviews)));
	json_push(resources, o);
	each_rule(u, ns, roles, collect, resources);
	o = json_obj();
	json_add(o, "verbs", admin ? words(all, 1) : words(get, 1));
	json_add(o, "nonResourceURLs",
		admin ? words(all, 1) : words(open_paths, ARRAY_LEN(open_paths)));
	json_push(paths, o);
	json_add(json_add(status, "resourceRules", resources), "nonResourceRules", paths);
	json_object_object_add(status, "incomplete", json_object_new_boolean(false));
	return status;
}
