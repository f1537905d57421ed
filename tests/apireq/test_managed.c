/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "apireq/things.h"
#include "tec/apireq/managed.h"

/*
 * What an object and its managers are after a line of writes to one Thing. A write is a manager, '+' for
 * an apply, '!' for one with force, '=' for an update, and the object's other members. managers:
 * "NAME=FIELDS" of each entry in order, an apply with a '+'. refused: the message of the last write.
 */
static const struct {
	const char *what, *writes[5], *object, *managers[4], *refused;
} cases[] = {
	{"a create", {"m={\"spec\":{\"a\":1}}"}, "{\"spec\":{\"a\":1}}",
		{"m={\"f:spec\":{\".\":{},\"f:a\":{}}}"}, NULL},
	{"an apply makes", {"m+{\"spec\":{\"a\":1}}"}, "{\"spec\":{\"a\":1}}",
		{"m+{\"f:spec\":{\"f:a\":{}}}"}, NULL},
	{"what is not applied any more goes",
		{"m+{\"spec\":{\"a\":1,\"b\":{\"c\":2}}}", "m+{\"spec\":{\"a\":1}}"},
		"{\"spec\":{\"a\":1}}", {"m+{\"f:spec\":{\"f:a\":{}}}"}, NULL},
	{"and an empty map with it", {"m+{\"x\":1,\"spec\":{\"a\":1}}", "m+{\"x\":1}"}, "{\"x\":1}",
		{"m+{\"f:x\":{}}"}, NULL},
	{"another's field stays", {"m+{\"spec\":{\"a\":1}}", "n+{\"spec\":{\"b\":2}}", "m+{}"},
		"{\"spec\":{\"b\":2}}", {"n+{\"f:spec\":{\"f:b\":{}}}"}, NULL},
	{"a field of two stays until both let go",
		{"m+{\"spec\":{\"a\":1}}", "n+{\"spec\":{\"a\":1}}", "m+{}", "n+{}"}, "{}", {NULL},
		NULL},
	{"a conflict", {"m+{\"spec\":{\"a\":1}}", "n+{\"spec\":{\"a\":2}}"}, "{\"spec\":{\"a\":1}}",
		{"m+{\"f:spec\":{\"f:a\":{}}}"},
		"Apply failed with 1 conflict: conflict with \"m\": .spec.a"},
	{"conflicts with an update",
		{"u={\"spec\":{\"a\":1,\"b\":2}}", "n+{\"spec\":{\"a\":2,\"b\":3}}"},
		"{\"spec\":{\"a\":1,\"b\":2}}", {"u={\"f:spec\":{\".\":{},\"f:a\":{},\"f:b\":{}}}"},
		"Apply failed with 2 conflicts: conflicts with \"u\" using example.io/v1:\n- .spec.a\n- .spec.b"},
	{"force takes", {"m+{\"spec\":{\"a\":1,\"b\":1}}", "n!{\"spec\":{\"a\":2}}"},
		"{\"spec\":{\"a\":2,\"b\":1}}",
		{"m+{\"f:spec\":{\"f:b\":{}}}", "n+{\"f:spec\":{\"f:a\":{}}}"}, NULL},
	{"an update takes", {"m+{\"spec\":{\"a\":1}}", "u={\"spec\":{\"a\":2}}"},
		"{\"spec\":{\"a\":2}}", {"u={\"f:spec\":{\"f:a\":{}}}"}, NULL},
	{"elements by their key",
		{"m+{\"ports\":[{\"port\":1,\"n\":1},{\"port\":2}]}",
			"n+{\"ports\":[{\"port\":1,\"o\":1}]}", "m+{\"ports\":[{\"port\":3}]}"},
		"{\"ports\":[{\"port\":1,\"o\":1},{\"port\":3}]}",
		{"m+{\"f:ports\":{\"k:{\\\"port\\\":3}\":{\".\":{},\"f:port\":{}}}}",
			"n+{\"f:ports\":{\"k:{\\\"port\\\":1}\":{\".\":{},\"f:o\":{},\"f:port\":{}}}}"},
		NULL},
	{"their order",
		{"m+{\"ports\":[{\"port\":1},{\"port\":2},{\"port\":3}]}",
			"n+{\"ports\":[{\"port\":3},{\"port\":4},{\"port\":1}]}"},
		"{\"ports\":[{\"port\":2},{\"port\":3},{\"port\":4},{\"port\":1}]}", {NULL}, NULL},
	{"a list without keys is one", {"m+{\"args\":[1,2]}", "n+{\"args\":[1,3]}"},
		"{\"args\":[1,2]}", {"m+{\"f:args\":{}}"},
		"Apply failed with 1 conflict: conflict with \"m\": .args"},
	{"a list over a map", {"m+{\"a\":{\"x\":1}}", "m+{\"a\":[1]}"}, "{\"a\":[1]}",
		{"m+{\"f:a\":{}}"}, NULL},
	{"an element twice", {"m+{\"ports\":[{\"port\":1},{\"port\":1}]}"}, NULL, {NULL},
		"failed to create typed patch object (/t; example.io/v1, Kind=Thing): .ports: duplicate entries for key [port=1]"},
	{"a manager is reset", {"m+{\"a\":1}", "u={\"a\":1,\"metadata\":{\"managedFields\":[{}]}}"},
		"{\"a\":1}", {NULL}, NULL},
	{"before the first apply",
		{"u={\"a\":1,\"b\":1}", "u={\"a\":1,\"b\":1,\"metadata\":{\"managedFields\":[]}}",
			"m+{\"a\":2}"},
		"{\"a\":1,\"b\":1}", {NULL},
		"Apply failed with 1 conflict: conflict with \"before-first-apply\" using example.io/v1: .a"},
};

static struct json_object *body_of(const char *text)
{
	struct json_object *o = json_of(text), *m = json_get_obj(o, "metadata");

	json_add_str(json_add_str(o, "apiVersion", "example.io/v1"), "kind", "Thing");
	if (!m)
		json_add(o, "metadata", m = json_obj());
	json_add_str(m, "name", "t");
	return o;
}

static int write_one(struct store_objects *s, const char *write, struct json_object **answer)
{
	size_t n = strcspn(write, "+!=");
	cleanup_json struct json_object *o = body_of(write + n + 1);
	cleanup_free char *path = xasprintf(THINGS "/t?fieldManager=%.*s%s", (int)n, write,
				  write[n] == '!' ? "&force=true" : ""),
			  *body = json_text(o);
	cleanup_json struct json_object *there = store_objects_get(s, A_THING("t"));
	cleanup_free char *make = xasprintf(THINGS "?fieldManager=%.*s", (int)n, write);

	if (write[n] != '=')
		return ask(s, "PATCH", path, APPLY, body, answer);
	return ask(s, there ? "PUT" : "POST", there ? path : make, NULL, body, answer);
}

static void expect_managers(struct json_object *o, const char *const *want, const char *what)
{
	struct json_object *a = json_get_arr(o, "metadata/managedFields");
	size_t n = a ? json_object_array_length(a) : 0;

	for (size_t i = 0; i < n && want[i]; i++) {
		struct json_object *e = json_object_array_get_idx(a, i);
		size_t len = strcspn(want[i], "+=");
		cleanup_free char *name = xstrndup(want[i], len);

		cr_expect_str_eq(json_get_str(e, "manager"), name, "%s", what);
		cr_expect_str_eq(json_get_str(e, "operation"),
			want[i][len] == '+' ? "Apply" : "Update", "%s", what);
		cr_expect_not_null(json_get_str(e, "time"), "%s", what);
		same_json(json_get(e, "fieldsV1"), want[i] + len + 1);
	}
}

Test(apireq_managed, table)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct store_objects *s = things_new(NULL);
		struct json_object *answer = NULL;
		cleanup_json struct json_object *o = NULL;
		int code = 0;

		for (size_t k = 0; k < 5 && cases[i].writes[k]; k++) {
			json_object_put(answer);
			code = write_one(s, cases[i].writes[k], &answer);
		}
		if (cases[i].refused)
			cr_expect_str_eq(json_get_str(answer, "message"), cases[i].refused, "%s",
				cases[i].what);
		else
			cr_expect_eq(code / 100, 2, "%s: %s", cases[i].what,
				json_object_to_json_string(answer));
		json_object_put(answer);
		o = store_objects_get(s, A_THING("t"));
		expect_managers(o, cases[i].managers, cases[i].what);
		if (o) {
			json_object_object_del(o, "metadata");
			json_object_object_del(o, "kind");
			json_object_object_del(o, "apiVersion");
			same_json(o, cases[i].object);
		}
		cr_expect_eq(o == NULL, cases[i].object == NULL, "%s", cases[i].what);
		store_objects_free(s);
	}
}

Test(apireq_managed, what_changes_nothing_is_no_write)
{
	struct store_objects *s = things_new(NULL);
	uint64_t rv;

	cr_expect_eq(write_one(s, "m+{\"spec\":{\"a\":1}}", NULL), 201);
	rv = store_objects_rv(s);
	cr_expect_eq(write_one(s, "m+{\"spec\":{\"a\":1}}", NULL), 200);
	cr_expect_eq(write_one(s, "u={\"spec\":{\"a\":1}}", NULL), 200);
	cr_expect_eq(store_objects_rv(s), rv);
	store_objects_free(s);
}

/* What is applied may not read as what is stored; the time of the entry alone is no change. */
Test(apireq_managed, nor_is_it_one_later)
{
	static const char apply[] = "m+{\"spec\":{\"a\":1},\"metadata\":{\"labels\":null}}";
	struct store_objects *s = things_new(NULL);
	uint64_t rv;

	clock_fake_start(1000000, 1767323045);
	cr_expect_eq(write_one(s, apply, NULL), 201);
	rv = store_objects_rv(s);
	clock_fake_advance(5000);
	cr_expect_eq(write_one(s, apply, NULL), 200);
	cr_expect_eq(store_objects_rv(s), rv);
	cr_expect_eq(write_one(s, "m+{\"spec\":{\"a\":2}}", NULL), 200);
	cr_expect_neq(store_objects_rv(s), rv);
	clock_fake_stop();
	store_objects_free(s);
}

Test(apireq_managed, old_updates_become_one)
{
	struct store_objects *s = things_new(NULL);
	cleanup_json struct json_object *o = NULL;
	struct json_object *a;

	cr_expect_eq(write_one(s, "m={\"spec\":{\"a\":1}}", NULL), 201);
	for (int i = 0; i < 30; i++) {
		cleanup_free char *path = xasprintf(THINGS "/t?fieldManager=m%02d", i),
				  *body = xasprintf("{\"spec\":{\"f%d\":1}}", i);

		cr_expect_eq(ask(s, "PATCH", path, MERGE, body, NULL), 200);
	}
	o = store_objects_get(s, A_THING("t"));
	a = json_get_arr(o, "metadata/managedFields");
	cr_expect_eq(json_object_array_length(a), 10, "%s", json_object_to_json_string(a));
	cr_expect_str_eq(
		json_get_str(json_object_array_get_idx(a, 0), "manager"), "ancient-changes");
	store_objects_free(s);
}
