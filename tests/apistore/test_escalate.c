/* SPDX-License-Identifier: MIT */
/* What kube-apiserver answers to the same is compared in tests/e2e/test_two_servers_rights.py. */
#include "config.h"

#include <stdio.h>

#include "apistore/role_testing.h"
#include "tec/apistore/escalate.h"
#include "tec/base/mem.h"

#define RULE(groups, resources, verbs)                                                             \
	"{\"apiGroups\":" groups ",\"resources\":" resources ",\"verbs\":" verbs "}"

static const char role_text[] = "{\"rules\":[" RULE(
	"[\"\"]", "[\"configmaps\"]", "[\"get\",\"list\"]") "," RULE("[\"\"]", "[\"configmaps\"]",
	"[\"watch\"]") "," RULE("[\"e.org\"]", "[\"*/status\"]",
	"[\"patch\"]") ",{\"apiGroups\":[\"\"],\"resources\":[\"secrets\"],\"verbs\":[\"get\"],"
		       "\"resourceNames\":[\"one\"]},5,{\"verbs\":7}]}";
static const char bindings_text[] =
	"{\"items\":[{\"subjects\":[{\"kind\":\"ServiceAccount\",\"namespace\":\"ns\",\"name\":\"a\"}],"
	"\"roleRef\":{\"kind\":\"Role\",\"name\":\"r\"}}]}";

static struct role_texts texts = {role_text, bindings_text};
static const struct apistore_roles roles = {role_of_text, bindings_of_text, &texts};

static struct apistore_asker asker(void)
{
	struct apistore_asker a = {.roles = &roles};

	strcpy(a.user.name, "u\"1");
	strcpy(a.user.ns, "ns");
	strcpy(a.user.account, "a");
	apistore_user_add_group(&a.user, "g");
	apistore_user_add_group(&a.user, "h");
	return a;
}

/* rules, and the rules that are told; "": he holds them all. */
static const char *const cases[][2] = {
	{"null", ""},
	{"[]", ""},
	{"[{},7,null,{\"verbs\":[\"get\"]},{\"apiGroups\":[\"\"],\"resources\":[\"x\"]}]", ""},
	{"[" RULE("[\"\"]", "[\"configmaps\"]", "[\"watch\",\"get\"]") "]", ""},
	{"[" RULE("[\"\"]", "[\"configmaps\"]", "[\"*\"]") "]",
		"{APIGroups:[\"\"], Resources:[\"configmaps\"], Verbs:[\"*\"]}"},
	{"[" RULE("[\"\",\"b\"]", "[\"configmaps\"]", "[\"get\",\"delete\"]") "]",
		"{APIGroups:[\"\"], Resources:[\"configmaps\"], Verbs:[\"delete\"]}\n"
		"{APIGroups:[\"b\"], Resources:[\"configmaps\"], Verbs:[\"get\" \"delete\"]}"},
	{"[" RULE("[\"e.org\"]", "[\"t/status\"]", "[\"patch\"]") "]", ""},
	{"[" RULE("[\"e.org\"]", "[\"t\",\"t/scale\"]", "[\"patch\"]") "]",
		"{APIGroups:[\"e.org\"], Resources:[\"t\"], Verbs:[\"patch\"]}\n"
		"{APIGroups:[\"e.org\"], Resources:[\"t/scale\"], Verbs:[\"patch\"]}"},
	{"[{\"apiGroups\":[\"\"],\"resources\":[\"secrets\"],\"verbs\":[\"get\"],\"resourceNames\":[\"one\"]}]",
		""},
	{"[{\"apiGroups\":[\"\"],\"resources\":[\"secrets\"],\"verbs\":[\"get\"],\"resourceNames\":[\"one\",\"two\"]}]",
		"{APIGroups:[\"\"], Resources:[\"secrets\"], ResourceNames:[\"two\"], Verbs:[\"get\"]}"},
	{"[" RULE("[\"\"]", "[\"secrets\"]", "[\"get\"]") "]",
		"{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\"]}"},
	{"[{\"apiGroups\":[\"\"],\"resources\":[\"configmaps\"],\"verbs\":[\"get\"],\"resourceNames\":[\"x\"]}]",
		""},
	{"[{\"nonResourceURLs\":[\"/api/v1\",\"/metrics\"],\"verbs\":[\"get\",\"post\"]}]",
		"{NonResourceURLs:[\"/api/v1\"], Verbs:[\"post\"]}\n"
		"{NonResourceURLs:[\"/metrics\"], Verbs:[\"get\"]}\n"
		"{NonResourceURLs:[\"/metrics\"], Verbs:[\"post\"]}"},
};

Test(apistore_escalate, what_is_given_must_be_held)
{
	static const char head[] =
		"user \"u\\\"1\" (groups=[\"g\" \"h\"]) is attempting to grant RBAC permissions not currently held:\n";
	struct apistore_asker a = asker();

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_json struct json_object *rules =
			str_eq(cases[i][0], "null") ? NULL : parse(cases[i][0]);
		cleanup_free char *got = apistore_escalate_missing(&a, "ns", rules);
		cleanup_free char *want = xasprintf("%s%s", head, cases[i][1]);

		if (!*cases[i][1])
			cr_expect_null(got, "%s: %s", cases[i][0], got);
		else
			cr_expect(got && str_eq(got, want), "%s:\n%s", cases[i][0], got);
	}
}

Test(apistore_escalate, rights_count_in_their_namespace_only)
{
	cleanup_json struct json_object *rules =
		parse("[" RULE("[\"\"]", "[\"configmaps\"]", "[\"get\"]") "]");
	struct apistore_asker a = asker();
	cleanup_free char *here = apistore_escalate_missing(&a, "ns", rules);
	cleanup_free char *there = apistore_escalate_missing(&a, "other", rules);

	cr_expect_null(here);
	cr_expect_not_null(there);
	cr_expect_not(apistore_escalate_allowed(&a, "escalate", "roles", "ns", "x"));
	apistore_user_add_group(&a.user, APISTORE_MASTERS);
	cr_expect(apistore_escalate_allowed(&a, "escalate", "roles", "ns", "x"));
}

Test(apistore_escalate, a_role_of_very_many_rights_is_refused_soon)
{
	cleanup_json struct json_object *rule = json_obj(), *rules = json_arr();
	static const char *const members[] = {"apiGroups", "resources", "verbs", "resourceNames"};
	struct apistore_asker a = asker();
	cleanup_free char *why = NULL;

	for (size_t k = 0; k < ARRAY_LEN(members); k++) {
		struct json_object *list = json_arr();

		for (int i = 0; i < 5000; i++) {
			char text[16];

			(void)snprintf(text, sizeof(text), "n%d", i);
			json_push_str(list, text);
		}
		json_add(rule, members[k], list);
	}
	json_push(rules, json_object_get(rule));
	why = apistore_escalate_missing(&a, "ns", rules);
	cr_expect(strstr(why, "too many rights"), "%s", why);
}
