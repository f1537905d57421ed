/* SPDX-License-Identifier: MIT */
/* The three roles, in one namespace each, over a store. */
#include "config.h"

#include "apireq/things.h"

#include <stdio.h>

#include "tec/apireq/rights.h"

#define OURS "trusted-execution-clusters.io"
#define RBAC "rbac.authorization.k8s.io"

static struct store_objects *s;

static void bind(const char *name, const char *subjects, const char *kind, const char *role)
{
	const struct store_key key = {"rolebindings." RBAC, "ns", name};
	cleanup_free char *text =
		xasprintf("{\"subjects\":%s,\"roleRef\":{\"kind\":\"%s\",\"name\":\"%s\"}}",
			subjects, kind, role);

	json_object_put(store_objects_put(s, &key, json_of(text)));
}

#define ACCOUNT(n) "[{\"kind\":\"ServiceAccount\",\"namespace\":\"ns\",\"name\":\"" n "\"}]"

static void up(void)
{
	s = things_new(NULL);
	bind("a", ACCOUNT("admin"), "ClusterRole", "cluster-admin");
	bind("b", ACCOUNT("viewer"), "ClusterRole", "view");
	bind("c", ACCOUNT("follower"), "ClusterRole", "tec-follow");
	bind("d", ACCOUNT("wish"), "ClusterRole", "admin");
	bind("e", ACCOUNT("wish"), "Role", "cluster-admin");
	bind("f", "[{\"kind\":\"Group\",\"name\":\"readers\"},{\"kind\":7},5]", "ClusterRole",
		"view");
	bind("g", "\"all\"", "ClusterRole", "view");
}

static void down(void)
{
	store_objects_free(s);
}

TestSuite(apireq_rights, .init = up, .fini = down);

static struct apireq_user account(const char *name, const char *ns)
{
	struct apireq_user u = {.n_groups = 0};

	snprintf(u.ns, sizeof(u.ns), "%s", ns);
	snprintf(u.account, sizeof(u.account), "%s", name);
	snprintf(u.name, sizeof(u.name), "system:serviceaccount:%s:%s", ns, name);
	return u;
}

static bool may(const struct apireq_user *u, const char *verb, const char *group,
	const char *resource, const char *sub, const char *ns)
{
	const struct apireq_act act = {verb, group, resource, sub, ns, "x", ""};

	return apireq_rights_allow(s, u, &act);
}

/* verb, group, resource, subresource; which of admin, viewer and follower may do it. */
static const struct {
	const char *verb, *group, *resource, *sub, *who;
} rows[] = {
	{"get", OURS, "machines", "", "avf"},
	{"watch", OURS, "approvedimages", "", "avf"},
	{"get", OURS, "machines", "status", "avf"},
	{"list", "", "configmaps", "", "avf"},
	{"list", "events.k8s.io", "events", "", "avf"},
	{"get", "", "namespaces", "", "avf"},
	{"list", RBAC, "rolebindings", "", "avf"},
	{"get", "", "secrets", "", "af"},
	{"watch", "", "secrets", "", "af"},
	{"create", OURS, "machines", "", "a"},
	{"patch", OURS, "machines", "status", "a"},
	{"deletecollection", "", "secrets", "", "a"},
	{"create", "", "serviceaccounts", "token", "a"},
	{"create", RBAC, "rolebindings", "", ""},
	{"update", RBAC, "rolebindings", "", ""},
	{"patch", RBAC, "rolebindings", "", ""},
	{"delete", RBAC, "rolebindings", "", ""},
	{"deletecollection", RBAC, "rolebindings", "", ""},
	{"get", "x.io", "machines", "", ""},
};

Test(apireq_rights, a_role_gives_what_it_is_and_no_more)
{
	static const char *const accounts[] = {"admin", "viewer", "follower"};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (size_t k = 0; k < ARRAY_LEN(accounts); k++) {
			struct apireq_user u = account(accounts[k], "ns"),
					   elsewhere = account(accounts[k], "other");

			cr_expect_eq(may(&u, rows[i].verb, rows[i].group, rows[i].resource,
					     rows[i].sub, "ns"),
				strchr(rows[i].who, accounts[k][0]) != NULL, "%s %s %s/%s",
				accounts[k], rows[i].verb, rows[i].resource, rows[i].sub);
			cr_expect_not(may(&u, rows[i].verb, rows[i].group, rows[i].resource,
				rows[i].sub, "other"));
			cr_expect_not(may(&u, rows[i].verb, rows[i].group, rows[i].resource,
					      rows[i].sub, ""),
				"all namespaces");
			cr_expect_not(may(&elsewhere, rows[i].verb, rows[i].group, rows[i].resource,
				rows[i].sub, "ns"));
		}
}

Test(apireq_rights, no_other_role_gives_anything)
{
	struct apireq_user wish = account("wish", "ns"), nobody = account("nobody", "ns");

	cr_expect_not(may(&wish, "get", OURS, "machines", "", "ns"));
	cr_expect_not(may(&nobody, "get", OURS, "machines", "", "ns"));
	cr_expect(apireq_rights_is_role("ClusterRole", "view"));
	cr_expect_not(apireq_rights_is_role("Role", "view"));
	cr_expect_not(apireq_rights_is_role(NULL, NULL));
}

Test(apireq_rights, an_administrator_may_all_and_everybody_ask_about_himself)
{
	struct apireq_user admin = {.name = "a"}, reader = {.name = "b"};
	struct apireq_act path = {"get", "", "", "", "", "", "/metrics"};

	apireq_user_add_group(&admin, APIREQ_MASTERS);
	apireq_user_add_group(&reader, "readers");
	cr_expect(may(&admin, "delete", "any", "thing", "", ""));
	cr_expect(apireq_rights_allow(s, &admin, &path));
	cr_expect_not(apireq_rights_allow(s, &reader, &path));
	path.path = "/apis/x.io";
	cr_expect(apireq_rights_allow(s, &reader, &path));
	path.path = "/version/x";
	cr_expect_not(apireq_rights_allow(s, &reader, &path));
	path.path = "/version";
	cr_expect(apireq_rights_allow(s, &reader, &path));
	path.verb = "POST";
	cr_expect_not(apireq_rights_allow(s, &reader, &path));
	cr_expect(may(&reader, "get", OURS, "machines", "", "ns"), "by its group");
	cr_expect(
		may(&reader, "create", "authorization.k8s.io", "selfsubjectaccessreviews", "", ""));
	cr_expect_not(may(&reader, "create", "x.io", "selfsubjectaccessreviews", "", ""));
}

Test(apireq_rights, refusals_name_the_user_and_the_act)
{
	struct apireq_user u = {.name = "u"};
	static const struct {
		struct apireq_act act;
		const char *text;
	} cases[] = {
		{{"list", "", "secrets", "", "ns", "", ""},
			"secrets is forbidden: User \"u\" cannot list resource \"secrets\" in API group \"\" in the namespace \"ns\""},
		{{"patch", "x.io", "things", "status", "ns", "t", ""},
			"things.x.io \"t\" is forbidden: User \"u\" cannot patch resource \"things/status\" in API group \"x.io\" in the namespace \"ns\""},
		{{"list", "", "namespaces", "", "", "", ""},
			"namespaces is forbidden: User \"u\" cannot list resource \"namespaces\" in API group \"\" at the cluster scope"},
		{{"get", "", "", "", "", "", "/metrics"},
			"forbidden: User \"u\" cannot get path \"/metrics\""},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_free char *text = apireq_rights_refusal(&u, &cases[i].act);

		cr_expect_str_eq(text, cases[i].text);
	}
}

Test(apireq_rights, a_rules_review_names_the_rules)
{
	static const struct {
		const char *account;
		size_t rules;
	} reviews[] = {{"viewer", 5}, {"follower", 6}, {"admin", 5}, {"nobody", 1}};

	for (size_t i = 0; i < ARRAY_LEN(reviews); i++) {
		struct apireq_user u = account(reviews[i].account, "ns");
		cleanup_json struct json_object *o = apireq_rights_rules(s, &u, "ns");

		cr_expect_eq(json_object_array_length(json_get_arr(o, "resourceRules")),
			reviews[i].rules, "%s", reviews[i].account);
		cr_expect_eq(json_object_array_length(json_get_arr(o, "nonResourceRules")), 1);
	}
}
