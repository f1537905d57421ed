/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "apistore/things.h"
#include "tec/apistore/apply.h"

static const struct {
	const char *what, *have, *last, *conf, *result; /* result NULL: refused */
} cases[] = {
	{"maps are merged", "{\"a\":{\"x\":1}}", NULL, "{\"a\":{\"y\":2},\"b\":null}",
		"{\"a\":{\"x\":1,\"y\":2},\"b\":null}"},
	{"what was applied and is not now goes", "{\"a\":{\"x\":1,\"y\":2},\"b\":3}",
		"{\"a\":{\"y\":2},\"b\":3}", "{\"a\":{}}", "{\"a\":{\"x\":1}}"},
	{"a map that is empty then goes as well", "{\"a\":{\"y\":2}}", "{\"a\":{\"y\":2}}", "{}",
		"{}"},
	{"what others removed meanwhile is not a fault", "{}", "{\"a\":{\"y\":2},\"b\":[1]}", "{}",
		"{}"},
	{"a plain list is replaced", "{\"args\":[1,2]}", NULL, "{\"args\":[3]}", "{\"args\":[3]}"},
	{"finalizers are a set", "{\"finalizers\":[\"x\",\"y\"]}", "{\"finalizers\":[\"y\"]}",
		"{\"finalizers\":[\"z\",\"x\"]}", "{\"finalizers\":[\"x\",\"z\"]}"},
	{"owners are told apart by uid", "{\"ownerReferences\":[{\"uid\":\"1\",\"name\":\"a\"}]}",
		NULL, "{\"ownerReferences\":[{\"uid\":\"2\"},{\"uid\":\"1\",\"name\":\"b\"}]}",
		"{\"ownerReferences\":[{\"uid\":\"1\",\"name\":\"b\"},{\"uid\":\"2\"}]}"},
	{"an element keeps what others set in it",
		"{\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"by\":\"other\"}]}",
		"{\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"old\":1}]}",
		"{\"containers\":[{\"name\":\"c\",\"image\":\"j\"}]}",
		"{\"containers\":[{\"name\":\"c\",\"image\":\"j\",\"by\":\"other\"}]}"},
	{"a member of an element goes", "{\"containers\":[{\"name\":\"c\",\"old\":1}]}",
		"{\"containers\":[{\"name\":\"c\",\"old\":1}]}",
		"{\"containers\":[{\"name\":\"c\"}]}", "{\"containers\":[{\"name\":\"c\"}]}"},
	{"an element goes", "{\"conditions\":[{\"type\":\"A\"},{\"type\":\"B\"}]}",
		"{\"conditions\":[{\"type\":\"A\"}]}", "{\"conditions\":[]}",
		"{\"conditions\":[{\"type\":\"B\"}]}"},
	{"two keys", "{\"ports\":[{\"port\":1,\"protocol\":\"TCP\"}]}", NULL,
		"{\"ports\":[{\"port\":1,\"protocol\":\"UDP\"}]}",
		"{\"ports\":[{\"port\":1,\"protocol\":\"TCP\"},{\"port\":1,\"protocol\":\"UDP\"}]}"},
	{"one of two keys", "{\"ports\":[{\"port\":1,\"x\":1}]}", NULL,
		"{\"ports\":[{\"port\":1,\"x\":2}]}", "{\"ports\":[{\"port\":1,\"x\":2}]}"},
	{"names with a slash", "{\"annotations\":{\"x.io/a\":\"1\",\"x.io/b\":\"2\"}}",
		"{\"annotations\":{\"x.io/a\":\"1\"}}", "{\"annotations\":{}}",
		"{\"annotations\":{\"x.io/b\":\"2\"}}"},
	/* types that do not fit */
	{"a map over a list", "{\"a\":[1]}", NULL, "{\"a\":{\"x\":1}}", "{\"a\":{\"x\":1}}"},
	{"a list over a map", "{\"conditions\":{\"x\":1}}", NULL,
		"{\"conditions\":[{\"type\":\"A\"}]}", "{\"conditions\":[{\"type\":\"A\"}]}"},
	{"a scalar where a map was applied", "{\"a\":{\"x\":1}}", "{\"a\":{\"x\":1}}", "{\"a\":5}",
		"{\"a\":5}"},
	{"a map where a scalar was applied", "{\"a\":5}", "{\"a\":5}", "{\"a\":{\"x\":1}}",
		"{\"a\":{\"x\":1}}"},
	{"a map where a list was applied", "{\"conditions\":[{\"type\":\"A\"}]}",
		"{\"conditions\":[{\"type\":\"A\"}]}", "{\"conditions\":{\"x\":1}}",
		"{\"conditions\":{\"x\":1}}"},
	{"elements that are there without keys", "{\"conditions\":[1,null,{},{\"type\":\"A\"}]}",
		NULL, "{\"conditions\":[{\"type\":\"A\",\"x\":1}]}",
		"{\"conditions\":[1,null,{},{\"type\":\"A\",\"x\":1}]}"},
	{"an element without key", "{}", NULL, "{\"conditions\":[{\"status\":\"True\"}]}", NULL},
	{"an element that is a number", "{}", NULL, "{\"conditions\":[5]}", NULL},
	{"an element that is null", "{}", NULL, "{\"x\":{\"containers\":[null]}}", NULL},
	{"an owner that is a list", "{}", NULL, "{\"ownerReferences\":[[\"uid\"]]}", NULL},
};

Test(apistore_apply, table)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_json struct json_object *o = json_of(cases[i].have),
						*conf = json_of(cases[i].conf), *last = NULL;
		struct err err = ERR_INIT;

		last = cases[i].last ? json_of(cases[i].last) : NULL;
		cr_expect_eq(apistore_apply(o, conf, last, &things.lists, &err),
			cases[i].result ? 0 : -1, "%s", cases[i].what);
		cr_expect_eq(
			err.kind, cases[i].result ? ERR_NONE : ERR_INVALID, "%s", cases[i].what);
		if (cases[i].result)
			same_json(o, cases[i].result);
		same_json(conf, cases[i].conf);
	}
}

Test(apistore_apply, twice_is_once)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_json struct json_object *o = json_of(cases[i].have),
						*conf = json_of(cases[i].conf);
		struct err err = ERR_INIT;

		if (!cases[i].result)
			continue;
		cr_expect_eq(apistore_apply(o, conf, NULL, &things.lists, &err), 0);
		cleanup_json struct json_object *once = json_copy(o);

		cr_expect_eq(apistore_apply(o, conf, conf, &things.lists, &err), 0);
		cr_expect(json_object_equal(o, once), "%s: %s", cases[i].what,
			json_object_to_json_string_ext(o, 0));
	}
}
