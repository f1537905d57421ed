/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include "tec/store/selector.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"

static bool selects(const char *labels, const char *fields, const char *meta)
{
	struct store_selector *s = NULL;
	struct err err = ERR_INIT;
	bool yes;

	cr_assert_eq(store_selector_parse(labels, fields, "secrets", &s, &err), 0, "%s %s: %s",
		labels, fields, err.text);
	yes = store_selector_matches(s, "ns", "me", meta);
	store_selector_free(s);
	return yes;
}

Test(store_selector, labels)
{
	static const struct {
		const char *text;
		bool yes;
	} cases[] = {
		{"", true},
		{" ", true},
		{"a=1", true},
		{"a==1", true},
		{" a = 1 , x.io/b=2", true},
		{"a=2", false},
		{"c=1", false},
		{"c=", false},
		{"e=", true},
		{"a", true},
		{"c", false},
		{"!c", true},
		{"! a", false},
		{"a!=2", true},
		{"a!=1", false},
		{"c!=1", true},
		{"a in (1,2)", true},
		{"a in (2)", false},
		{"a in ( 2 , 1 )", true},
		{"e in (,x)", true},
		{"a notin (1,2)", false},
		{"c notin (1)", true},
		{"a>0", true},
		{"a>1", false},
		{"a<2", true},
		{"a < -3", false},
		{"c>0", false},
		{"x.io/b>1", true},
		{"t>1", false},
		{"a=1,c", false},
	};
	static const char meta[] =
		"{\"labels\":{\"a\":\"1\",\"x.io/b\":\"2\",\"e\":\"\",\"t\":\"text\"}}";

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		cr_expect_eq(selects(cases[i].text, NULL, meta), cases[i].yes, "%s", cases[i].text);
}

Test(store_selector, fields)
{
	static const struct {
		const char *text;
		bool yes;
	} cases[] = {
		{"metadata.name=me", true},
		{"metadata.name==me", true},
		{"metadata.name!=me", false},
		{"metadata.name=you", false},
		{"metadata.namespace=ns,metadata.name=me", true},
		{"type=n\\,1", true},
		{"type=n", false},
		{"type=", false},
		{"type!=Opaque", true},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		cr_expect_eq(selects(NULL, cases[i].text, "{\"fields\":{\"type\":\"n,1\"}}"),
			cases[i].yes, "%s", cases[i].text);
}

Test(store_selector, what_cannot_be_read_is_refused)
{
	static const struct {
		const char *labels, *fields;
	} cases[] = {{"=1", NULL}, {"a=1,", NULL}, {",a=1", NULL}, {"a=b=c", NULL},
		{"a in 1", NULL}, {"a in (1", NULL}, {"a in", NULL}, {"a in (1) b", NULL},
		{"a>x", NULL}, {"a>", NULL}, {"a!", NULL}, {"!a=1", NULL}, {"a b", NULL},
		{"-a", NULL}, {"/a", NULL}, {"a/", NULL}, {"a=-b", NULL}, {"a=b c", NULL},
		{"a=(b)", NULL}, {"()", NULL}, {"a notin ()x", NULL},
		{"a<99999999999999999999", NULL}, {NULL, "metadata.name"}, {NULL, "=x"},
		{NULL, "spec.color=red"}, {NULL, "metadata.name=a\\b"}, {NULL, "metadata.name=a\\"},
		{NULL, "metadata.name!x"}, {NULL, "metadata.labels=x"}};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct store_selector *s = NULL;
		struct err err = ERR_INIT;

		cr_expect_eq(
			store_selector_parse(cases[i].labels, cases[i].fields, "secrets", &s, &err),
			-1, "%s %s", cases[i].labels, cases[i].fields);
		cr_expect_eq(err.kind, ERR_INVALID);
		cr_expect_null(s);
	}
}

Test(store_selector, what_selectors_look_at_is_kept_beside_an_object)
{
	static const struct {
		const char *resource, *object, *meta;
	} cases[] = {
		{"namespaces", "{}", ""},
		{"namespaces",
			"{\"metadata\":{\"labels\":{}},\"status\":{\"phase\":\"n\",\"x\":1}}",
			"{\"fields\":{\"status.phase\":\"n\"}}"},
		{"machines.example.io", "{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"type\":\"x\"}",
			"{\"labels\":{\"a\":\"b\"}}"},
		{"secrets", "{\"type\":\"Opaque\",\"data\":{\"k\":\"v\"}}",
			"{\"fields\":{\"type\":\"Opaque\"}}"},
		{"secrets", "{\"type\":{\"a\":1}}", ""},
		{"events", "{\"source\":{\"component\":\"c\"},\"involvedObject\":{\"name\":\"n\"}}",
			"{\"fields\":{\"involvedObject.name\":\"n\",\"source\":\"c\"}}"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_json struct json_object *o = json_tokener_parse(cases[i].object);
		cleanup_free char *meta = store_selector_meta(o, cases[i].resource);

		cr_expect_str_eq(meta, cases[i].meta);
	}
}
