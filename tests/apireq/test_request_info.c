/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include "tec/apireq/request_info.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"

Test(apireq_request_info, paths_are_cut_at_their_segments)
{
	static const struct {
		const char *path, *qualified, *group, *ns, *resource, *name, *sub, *query;
	} cases[] = {
		{"/api/v1/namespaces/a/secrets", "secrets", "", "a", "secrets", "", "", ""},
		{"/api/v1/namespaces/a/secrets/x?limit=5", "secrets", "", "a", "secrets", "x", "",
			"limit=5"},
		{"/apis/example.io/v1/namespaces/a/things/x/status", "things.example.io",
			"example.io", "a", "things", "x", "status", ""},
		{"/api/v1/namespaces", "namespaces", "", "", "namespaces", "", "", ""},
		{"/api/v1/namespaces/a", "namespaces", "", "", "namespaces", "a", "", ""},
		{"/api/v1/namespaces/a/status", "namespaces", "", "", "namespaces", "a", "status",
			""},
		{"/api/v1/namespaces/a/secrets/status", "secrets", "", "a", "secrets", "status", "",
			""},
		{"/api/v1/nodes/n%2dx", "nodes", "", "", "nodes", "n-x", "", ""},
		{"/apis/example.io/v1/things?a=b?c", "things.example.io", "example.io", "",
			"things", "", "", "a=b?c"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_apireq_request_info struct apireq_request_info t;
		struct err err = ERR_INIT;

		cr_assert_eq(apireq_request_info_parse(cases[i].path, &t, &err), 0, "%s: %s",
			cases[i].path, err.text);
		cr_expect_str_eq(t.qualified, cases[i].qualified);
		cr_expect_str_eq(t.group, cases[i].group);
		cr_expect_str_eq(t.ns, cases[i].ns);
		cr_expect_str_eq(t.resource, cases[i].resource);
		cr_expect_str_eq(t.name, cases[i].name);
		cr_expect_str_eq(t.sub, cases[i].sub);
		cr_expect_str_eq(t.query, cases[i].query);
	}
}

Test(apireq_request_info, what_is_no_path_of_the_api_is_refused)
{
	static const char *const paths[] = {"", "/", "/api", "/api/v1", "api/v1/pods", "/apis/g/v1",
		"/healthz", "/api//pods", "/api/v1/namespaces//secrets", "/api/v1/pods/",
		"/api/v1/namespaces/a/secrets/x/status/more", "/api/v1/pods/a%2fb",
		"/api/v1/pods/%", "/api/v1/pods/%0", "/api/v1/pods/%zz", "/api/v1/pods/%00",
		"/api/v1/pods/%ff", "/api/v1/pods/a\xc3", "/api/v1/pods/%ed%a0%80",
		"/api/v1%2fpods", "/api/v1/namespaces/a/b/c/d/e/f/g/h/i/j"};

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		cleanup_apireq_request_info struct apireq_request_info t;
		struct err err = ERR_INIT;

		cr_expect_eq(apireq_request_info_parse(paths[i], &t, &err), -1, "%s", paths[i]);
		cr_expect_eq(err.kind, ERR_NOT_FOUND, "%s", paths[i]);
	}
}

Test(apireq_request_info, a_selector_that_cannot_be_read_does_not_select_all)
{
	static const char *const paths[] = {"/api/v1/pods?labelSelector=a%",
		"/api/v1/pods?labelSelector=a+in", "/api/v1/pods?limit=1&fieldSelector=%zz",
		"/api/v1/pods?fieldSelector=a", "/api/v1/pods?labelSelector=%ff",
		"/api/v1/pods?fieldSelector=\xff%3Da",
		"/api/v1/pods?labelSelectorX=1&labelSelector=%zz"};

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		cleanup_apireq_request_info struct apireq_request_info t;
		struct err err = ERR_INIT;

		cr_expect_eq(apireq_request_info_parse(paths[i], &t, &err), -1, "%s", paths[i]);
		cr_expect_eq(err.kind, ERR_INVALID, "%s", paths[i]);
	}
}

Test(apireq_request_info, parameters_are_decoded)
{
	cleanup_apireq_request_info struct apireq_request_info t;
	cleanup_free char *a = NULL, *b = NULL, *c = NULL, *d = NULL;
	struct err err = ERR_INIT;

	cr_assert_eq(apireq_request_info_parse("/api/v1/pods?a=x+y%2B&ab=1&b=&d=%f", &t, &err), 0);
	a = apireq_request_info_param(&t, "a");
	b = apireq_request_info_param(&t, "b");
	c = apireq_request_info_param(&t, "c");
	d = apireq_request_info_param(&t, "d");
	cr_expect_str_eq(a, "x y+");
	cr_expect_str_eq(b, "");
	cr_expect_null(c);
	cr_expect_null(d, "cut off");
}

/* As kube-apiserver reads them; Python's client sends "True". */
Test(apireq_request_info, flags_are_set_unless_they_say_no)
{
	static const struct {
		const char *query;
		bool want;
	} rows[] = {{"", false}, {"?watch=0", false}, {"?watch=false", false},
		{"?watch=FALSE", false}, {"?watch=1", true}, {"?watch=true", true},
		{"?watch=True", true}, {"?watch=", true}, {"?watch=no", true},
		{"?watcher=1", false}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		cleanup_free char *path = xasprintf("/api/v1/configmaps%s", rows[i].query);
		cleanup_apireq_request_info struct apireq_request_info t;
		struct err err = ERR_INIT;

		cr_assert_eq(apireq_request_info_parse(path, &t, &err), 0, "%s", err.text);
		cr_expect_eq(
			apireq_request_info_flag(&t, "watch"), rows[i].want, "%s", rows[i].query);
	}
}
