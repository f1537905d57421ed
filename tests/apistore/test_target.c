/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include "tec/apistore/target.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"

Test(apistore_target, paths_are_cut_at_their_segments)
{
	static const struct {
		const char *path, *collection, *group, *ns, *resource, *name, *sub, *query;
	} cases[] = {
		{"/api/v1/namespaces/a/secrets", "/api/v1/namespaces/a/secrets", "", "a", "secrets",
			"", "", ""},
		{"/api/v1/namespaces/a/secrets/x?limit=5", "/api/v1/namespaces/a/secrets", "", "a",
			"secrets", "x", "", "limit=5"},
		{"/apis/example.io/v1/namespaces/a/things/x/status",
			"/apis/example.io/v1/namespaces/a/things", "example.io", "a", "things", "x",
			"status", ""},
		{"/api/v1/namespaces", "/api/v1/namespaces", "", "", "namespaces", "", "", ""},
		{"/api/v1/namespaces/a", "/api/v1/namespaces", "", "", "namespaces", "a", "", ""},
		{"/api/v1/nodes/n%2dx", "/api/v1/nodes", "", "", "nodes", "n-x", "", ""},
		{"/apis/example.io/v1/things?a=b?c", "/apis/example.io/v1/things", "example.io", "",
			"things", "", "", "a=b?c"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_apistore_target struct apistore_target t;
		struct err err = ERR_INIT;

		cr_assert_eq(apistore_target_parse(cases[i].path, &t, &err), 0, "%s: %s",
			cases[i].path, err.text);
		cr_expect_str_eq(t.collection, cases[i].collection);
		cr_expect_str_eq(t.group, cases[i].group);
		cr_expect_str_eq(t.ns, cases[i].ns);
		cr_expect_str_eq(t.resource, cases[i].resource);
		cr_expect_str_eq(t.name, cases[i].name);
		cr_expect_str_eq(t.sub, cases[i].sub);
		cr_expect_str_eq(t.query, cases[i].query);
	}
}

Test(apistore_target, what_is_no_path_of_the_api_is_refused)
{
	static const char *const paths[] = {"", "/", "/api", "/api/v1", "api/v1/pods", "/apis/g/v1",
		"/healthz", "/api//pods", "/api/v1/namespaces//secrets", "/api/v1/pods/",
		"/api/v1/namespaces/a/secrets/x/status/more", "/api/v1/pods/a%2fb",
		"/api/v1/pods/%", "/api/v1/pods/%0", "/api/v1/pods/%zz", "/api/v1/pods/%00",
		"/api/v1%2fpods", "/api/v1/namespaces/a/b/c/d/e/f/g/h/i/j"};

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		cleanup_apistore_target struct apistore_target t;
		struct err err = ERR_INIT;

		cr_expect_eq(apistore_target_parse(paths[i], &t, &err), -1, "%s", paths[i]);
		cr_expect_eq(err.kind, ERR_NOT_FOUND, "%s", paths[i]);
	}
}

Test(apistore_target, selectors_select_by_equality_and_nothing_else)
{
	static const struct {
		const char *query;
		bool valid, selects;
	} cases[] = {
		{"", true, true},
		{"labelSelector=a%3D1", true, true},
		{"labelSelector=a%3D%3D1", true, true},
		{"labelSelector=a%3D1%2Cx.io%2Fb%3D2", true, true},
		{"labelSelector=a%3D2", true, false},
		{"labelSelector=c%3D1", true, false},
		{"labelSelector=n%3D1", true, false}, /* its value is a number */
		{"fieldSelector=metadata.name%3Dme", true, true},
		{"fieldSelector=metadata.name%3Dyou", true, false},
		{"labelSelector=a", false, false},
		{"labelSelector=", false, false},
		{"labelSelector=%3D1", false, false},
		{"labelSelector=a!%3D1", false, false},
		{"labelSelector=a+in+(1)", false, false},
		{"labelSelector=a%3D1%2C", false, false},
		{"fieldSelector=spec.nodeName%3Dx", false, false},
	};
	cleanup_json struct json_object *o = json_tokener_parse(
		"{\"metadata\":{\"name\":\"me\",\"labels\":{\"a\":\"1\",\"x.io/b\":\"2\",\"n\":1}}}");

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_free char *path = xasprintf("/api/v1/pods?limit=1&%s", cases[i].query);
		cleanup_apistore_target struct apistore_target t;
		struct err err = ERR_INIT;

		cr_expect_eq(
			apistore_target_parse(path, &t, &err) == 0, cases[i].valid, "%s", path);
		cr_expect_eq(err.kind, cases[i].valid ? ERR_NONE : ERR_INVALID);
		if (cases[i].valid)
			cr_expect_eq(apistore_target_selects(&t, o), cases[i].selects, "%s", path);
	}
}

Test(apistore_target, parameters_are_decoded)
{
	cleanup_apistore_target struct apistore_target t;
	cleanup_free char *a = NULL, *b = NULL, *c = NULL, *d = NULL;
	struct err err = ERR_INIT;

	cr_assert_eq(apistore_target_parse("/api/v1/pods?a=x+y%2B&ab=1&b=&d=%f", &t, &err), 0);
	a = apistore_target_param(&t, "a");
	b = apistore_target_param(&t, "b");
	c = apistore_target_param(&t, "c");
	d = apistore_target_param(&t, "d");
	cr_expect_str_eq(a, "x y+");
	cr_expect_str_eq(b, "");
	cr_expect_null(c);
	cr_expect_null(d, "cut off");
}
