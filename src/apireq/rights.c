/* SPDX-License-Identifier: MIT */
/* The RoleBindings of the namespace are read for each decision, so a change takes effect at once.
 * The rules of the fixed roles are a table. */
#include "config.h"

#include "tec/apireq/rights.h"

#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/schema/builtin.h"

#define OUR_GROUP "trusted-execution-clusters.io"
#define RBAC      "rbac.authorization.k8s.io"

enum { VIEW = 1, FOLLOW = 2, ADMIN = 4 };

static const char *const any[] = {"*", NULL}, *const create[] = {"create", NULL},
			 *const get[] = {"get", NULL},
			 *const read_only[] = {"get", "list", "watch", NULL},
			 *const plain[] = {"configmaps", "events", "namespaces", "serviceaccounts",
				 NULL},
			 *const secrets[] = {"secrets", NULL};

/* Resource "*" covers all resources of a group with their subresources; a named resource covers
 * none. */
static const struct rule {
	unsigned roles; /* that include this rule */
	const char *group;
	const char *const *resources, *const *verbs;
} rules[] = {{VIEW | FOLLOW, "", plain, read_only}, {FOLLOW, "", secrets, read_only},
	{VIEW | FOLLOW, "events.k8s.io", any, read_only},
	{VIEW | FOLLOW, OUR_GROUP, any, read_only}, {VIEW | FOLLOW | ADMIN, RBAC, any, read_only},
	{ADMIN, "", any, any}, {ADMIN, "events.k8s.io", any, any}, {ADMIN, OUR_GROUP, any, any}};

/* What every authenticated user may do. */
static const char *const open_paths[] = {"/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez",
	"/readyz", "/openapi", "/openapi/*", "/version", "/version/", NULL};
static const char *const review_groups[] = {"authentication.k8s.io", "authorization.k8s.io", NULL};
static const char *const self_reviews[] = {
	"selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews", NULL};

/* Is the word in the list, or does the list have "*"? */
static bool has(const char *const *list, const char *want)
{
	for (; *list; list++)
		if (str_eq(*list, "*") || str_eq(*list, want))
			return true;
	return false;
}

/* ---- bindings */

/* Is the user among the subjects, by name, group or ServiceAccount? */
static bool is_bound(struct json_object *binding, const struct apireq_user *u)
{
	struct json_object *subjects = json_get_arr(binding, "subjects");

	for (size_t i = 0; i < json_len(subjects); i++) {
		struct json_object *s = json_at(subjects, i);
		const char *kind = json_get_str(s, "kind"), *name = json_get_str(s, "name");

		if (!kind || !name)
			continue;
		if (str_eq(kind, "ServiceAccount") && u->account[0] && str_eq(name, u->account) &&
			str_eq(json_get_str(s, "namespace"), u->ns))
			return true;
		if ((str_eq(kind, "User") && str_eq(name, u->name)) ||
			(str_eq(kind, "Group") && apireq_user_in(u, name)))
			return true;
	}
	return false;
}

/* Return the role of a roleRef; 0: an unknown role, which grants nothing. */
static unsigned role_of(const char *kind, const char *name)
{
	static const struct {
		const char *name;
		unsigned role;
	} roles[] = {
		{SCHEMA_ROLE_ADMIN, ADMIN}, {SCHEMA_ROLE_VIEW, VIEW}, {SCHEMA_ROLE_FOLLOW, FOLLOW}};

	for (size_t i = 0; i < ARRAY_LEN(roles); i++)
		if (str_eq(kind, "ClusterRole") && str_eq(name, roles[i].name))
			return roles[i].role;
	return 0;
}

bool apireq_rights_is_role(const char *kind, const char *name)
{
	return role_of(kind, name) != 0;
}

/* A look through the RoleBindings of a namespace for one user. */
struct look {
	const struct apireq_user *user;
	unsigned roles; /* found so far */
};

/* Add the role of one binding. One that cannot be parsed has no subjects and grants nothing. */
static bool on_binding(void *arg, const struct store_version *v)
{
	struct look *l = arg;
	struct err err = ERR_INIT;
	cleanup_json struct json_object *binding =
		json_parse(v->body, v->len, &json_limits_object, &err);

	if (is_bound(binding, l->user))
		l->roles |= role_of(json_get_str(binding, "roleRef/kind"),
			json_get_str(binding, "roleRef/name"));
	return true;
}

/* Return the roles that the bindings in a namespace grant to u; none outside of namespaces. */
static unsigned roles_in(struct store_objects *s, const struct apireq_user *u, const char *ns)
{
	const struct store_scan scan = {.resource = "rolebindings." RBAC, .ns = ns};
	struct look l = {u, 0};
	struct err err = ERR_INIT;

	if (!ns[0] || store_db_scan(store_objects_db(s), &scan, on_binding, &l, &err) >= 0)
		return l.roles;
	(void)store_objects_failed(s, &err);
	return 0;
}

/* ---- decisions */

/* Is this open to every authenticated user? A path that ends with "*" covers all below it. */
static bool is_open(const struct apireq_act *act)
{
	for (const char *const *p = open_paths; act->path[0] && *p; p++) {
		size_t n = strcspn(*p, "*");

		if (str_eq(act->verb, "get") && strncmp(*p, act->path, n) == 0 &&
			((*p)[n] || !act->path[n]))
			return true;
	}
	return str_eq(act->verb, "create") && has(review_groups, act->group) &&
	       has(self_reviews, act->resource);
}

/* Non-resource paths other than the open ones need system:masters. The database is read only if a
 * RoleBinding has to decide. */
bool apireq_rights_allow(
	struct store_objects *s, const struct apireq_user *u, const struct apireq_act *act)
{
	unsigned roles;

	if (apireq_user_in(u, APIREQ_MASTERS) || is_open(act))
		return true;
	if (act->path[0])
		return false;
	roles = roles_in(s, u, act->ns);
	for (size_t i = 0; i < ARRAY_LEN(rules); i++)
		if ((rules[i].roles & roles) && str_eq(rules[i].group, act->group) &&
			has(rules[i].verbs, act->verb) && has(rules[i].resources, act->resource) &&
			(!act->sub[0] || rules[i].resources == any))
			return true;
	return false;
}

/* Namespaced and cluster-scoped requests have different ends, as in kube-apiserver. */
char *apireq_rights_refusal(const struct apireq_user *u, const struct apireq_act *act)
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

static struct json_object *words(const char *const *w)
{
	struct json_object *a = json_arr();

	for (; *w; w++)
		json_push_str(a, *w);
	return a;
}

static void add_rule(struct json_object *list, struct json_object *take_groups,
	const char *const *resources, const char *const *verbs)
{
	struct json_object *o = json_add(json_obj(), "verbs", words(verbs));

	json_add(json_add(o, "apiGroups", take_groups), "resources", words(resources));
	json_push(list, o);
}

/* List the rules instead of evaluating them. It must agree with apireq_rights_allow(). */
struct json_object *apireq_rights_rules(
	struct store_objects *s, const struct apireq_user *u, const char *ns)
{
	struct json_object *status = json_obj(), *resources = json_arr(), *paths = json_arr();
	bool admin = apireq_user_in(u, APIREQ_MASTERS);
	unsigned roles = roles_in(s, u, ns);

	if (admin)
		add_rule(resources, words(any), any, any);
	else
		add_rule(resources, words(review_groups), self_reviews, create);
	for (size_t i = 0; i < ARRAY_LEN(rules); i++)
		if (rules[i].roles & roles)
			add_rule(resources, json_push_str(json_arr(), rules[i].group),
				rules[i].resources, rules[i].verbs);
	json_push(paths, json_add(json_add(json_obj(), "verbs", words(admin ? any : get)),
				 "nonResourceURLs", words(admin ? any : open_paths)));
	json_add(json_add(status, "resourceRules", resources), "nonResourceRules", paths);
	return json_add_bool(status, "incomplete", false);
}
