/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <stdio.h>

#include "apistore/role_testing.h"
#include "tec/base/mem.h"

static const char role_text[] =
	"{\"rules\":[{\"apiGroups\":[\"\"],\"resources\":[\"secrets\",\"pods/log\"],\"verbs\":[\"get\",\"list\"]},"
	"{\"apiGroups\":[\"\"],\"resources\":[\"configmaps\"],\"resourceNames\":[\"one\"],\"verbs\":[\"update\",\"list\"]},"
	"{\"apiGroups\":[\"x.io\"],\"resources\":[\"*/status\"],\"verbs\":[\"*\"]},"
	"{\"apiGroups\":[\"y.io\"],\"resources\":[\"*\"],\"verbs\":[\"watch\"]}]}";
static const char bindings_text[] =
	"{\"items\":[{\"subjects\":[{\"kind\":\"ServiceAccount\",\"namespace\":\"ns\",\"name\":\"op\"}],\"roleRef\":{\"kind\":\"Role\",\"name\":\"r\"}},"
	"{\"subjects\":[{\"kind\":\"ServiceAccount\",\"namespace\":\"ns\",\"name\":\"follower\"}],\"roleRef\":{\"kind\":\"ClusterRole\",\"name\":\"tec-follow\"}},"
	"{\"subjects\":[{\"kind\":\"ServiceAccount\",\"namespace\":\"ns\",\"name\":\"wish\"}],\"roleRef\":{\"kind\":\"ClusterRole\",\"name\":\"cluster-admin\"}},"
	"{\"subjects\":[{\"kind\":\"Group\",\"name\":\"readers\"},{\"kind\":7},5],\"roleRef\":{\"kind\":\"Role\",\"name\":\"r\"}},"
	"{\"subjects\":\"all\",\"roleRef\":{\"kind\":\"Role\",\"name\":\"r\"}},{}]}";

static struct role_texts texts = {role_text, bindings_text};
static const struct apistore_roles roles = {role_of_text, bindings_of_text, &texts};

static struct apistore_user account(const char *name)
{
	struct apistore_user u = {.ns = "ns"};

	snprintf(u.account, sizeof(u.account), "%s", name);
	snprintf(u.name, sizeof(u.name), "system:serviceaccount:ns:%s", name);
	return u;
}

static bool may(const struct apistore_user *u, const char *verb, const char *group,
	const char *resource, const char *sub, const char *ns, const char *name)
{
	const struct apistore_act act = {verb, group, resource, sub, ns, name, ""};

	return apistore_rights_allow(u, &act, &roles);
}

Test(apistore_rights, an_account_may_what_its_roles_say_and_no_more)
{
	struct apistore_user op = account("op"), nobody = account("nobody"), wish = account("wish");
	struct apistore_user elsewhere = account("op");

	strcpy(elsewhere.ns, "other");
	cr_expect(may(&op, "get", "", "secrets", "", "ns", "s"));
	cr_expect(may(&op, "list", "", "secrets", "", "ns", ""));
	cr_expect(may(&op, "get", "", "pods", "log", "ns", "p"));
	cr_expect_not(may(&op, "get", "", "pods", "", "ns", "p"));
	cr_expect_not(may(&op, "watch", "", "secrets", "", "ns", ""));
	cr_expect_not(may(&op, "get", "", "secrets", "", "other", "s"));
	cr_expect_not(may(&op, "list", "", "secrets", "", "", ""), "all namespaces");
	cr_expect_not(may(&op, "get", "x.io", "secrets", "", "ns", "s"));
	cr_expect(may(&op, "update", "", "configmaps", "", "ns", "one"));
	cr_expect_not(may(&op, "update", "", "configmaps", "", "ns", "two"));
	cr_expect_not(may(&op, "list", "", "configmaps", "", "ns", ""));
	cr_expect(may(&op, "patch", "x.io", "things", "status", "ns", "t"));
	cr_expect_not(may(&op, "patch", "x.io", "things", "", "ns", "t"));
	cr_expect(may(&op, "watch", "y.io", "things", "", "ns", ""));
	cr_expect(may(&op, "watch", "y.io", "things", "status", "ns", "t"));
	cr_expect_not(may(&nobody, "get", "", "secrets", "", "ns", "s"));
	cr_expect_not(may(&wish, "get", "", "secrets", "", "ns", "s"), "no other ClusterRole");
	cr_expect_not(may(&elsewhere, "get", "", "secrets", "", "ns", "s"));
}

Test(apistore_rights, a_follower_reads_what_is_followed)
{
	static const char *const read[] = {"get", "list", "watch"}, *const write[] = {"create",
									    "update", "patch",
									    "delete",
									    "deletecollection"};
	struct apistore_user u = account("follower");

	for (size_t i = 0; i < ARRAY_LEN(read); i++) {
		cr_expect(may(
			&u, read[i], "trusted-execution-clusters.io", "machines", "", "ns", "m"));
		cr_expect(may(&u, read[i], "", "secrets", "", "ns", "s"));
		cr_expect_not(may(&u, read[i], "", "serviceaccounts", "", "ns", "s"));
	}
	for (size_t i = 0; i < ARRAY_LEN(write); i++)
		cr_expect_not(may(
			&u, write[i], "trusted-execution-clusters.io", "machines", "", "ns", "m"));
	cr_expect_not(may(&u, "create", "", "serviceaccounts", "token", "ns", "follower"));
}

Test(apistore_rights, an_administrator_may_all_and_everybody_ask_about_himself)
{
	struct apistore_user admin = {.name = "a"}, reader = {.name = "b"};
	struct apistore_act path = {"get", "", "", "", "", "", "/metrics"};

	apistore_user_add_group(&admin, APISTORE_MASTERS);
	apistore_user_add_group(&reader, "readers");
	cr_expect(may(&admin, "delete", "any", "thing", "", "", "x"));
	cr_expect(apistore_rights_allow(&admin, &path, &roles));
	cr_expect_not(apistore_rights_allow(&reader, &path, &roles));
	path.path = "/apis/x.io";
	cr_expect(apistore_rights_allow(&reader, &path, &roles));
	path.verb = "POST";
	cr_expect_not(apistore_rights_allow(&reader, &path, &roles));
	cr_expect(may(&reader, "get", "", "secrets", "", "ns", "s"), "by its group");
	cr_expect(may(
		&reader, "create", "authorization.k8s.io", "selfsubjectaccessreviews", "", "", ""));
	cr_expect_not(may(&reader, "create", "x.io", "selfsubjectaccessreviews", "", "", ""));
}

Test(apistore_rights, refusals_have_the_words_of_kube_apiserver)
{
	struct apistore_user u = {.name = "u"};
	static const struct {
		struct apistore_act act;
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
		cleanup_free char *text = apistore_rights_refusal(&u, &cases[i].act);

		cr_expect_str_eq(text, cases[i].text);
	}
}

Test(apistore_rights, a_rules_review_names_the_rules)
{
	struct apistore_user u = account("op");
	cleanup_json struct json_object *o = apistore_rights_rules(&u, "ns", &roles);

	cr_expect_eq(json_object_array_length(json_get_arr(o, "resourceRules")), 5);
	cr_expect_eq(json_object_array_length(json_get_arr(o, "nonResourceRules")), 1);
}
