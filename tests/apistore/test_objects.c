/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <stdio.h>

#include "apistore/things.h"
#include "tec/apistore/gc.h"

static struct apistore_objects *s;

static void up(void)
{
	clock_fake_start(1000000, 1767323045);
	s = apistore_objects_new(&things);
}

static void down(void)
{
	apistore_objects_free(s);
	clock_fake_stop();
}

TestSuite(apistore_objects, .init = up, .fini = down);

static struct json_object *put(const char *collection, const char *name, const char *text)
{
	return apistore_objects_put(s, collection, name, json_of(text));
}

Test(apistore_objects, order_is_collection_then_name_whatever_comes_first)
{
	enum { N = 300 };
	char name[16];

	for (int i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "n%03d", i * 7 % N);
		put(i % 2 ? SECRETS : THINGS, name, "{}");
	}
	cr_expect_eq(apistore_objects_count(s, SECRETS), N / 2);
	cr_expect_eq(apistore_objects_count(s, THINGS), N / 2);
	cr_expect_eq(apistore_objects_count(s, "/api/v1/namespaces/ns/secret"), 0);
	for (size_t i = 1; i < N; i++) {
		const char *a = json_get_str(apistore_objects_at(s, i - 1), "metadata/name"),
			   *b = json_get_str(apistore_objects_at(s, i), "metadata/name");

		cr_expect(i == N / 2 || strcmp(a, b) < 0, "%s %s", a, b);
	}
	cr_expect_null(apistore_objects_at(s, N));
	for (int i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "n%03d", i * 7 % N);
		json_object_put(apistore_gc_delete(s, i % 2 ? SECRETS : THINGS, name));
	}
	cr_expect_null(apistore_objects_at(s, 0));
	put(THINGS, "again", "{}");
	cr_expect_not_null(apistore_objects_get(s, THINGS, "again"));
}

Test(apistore_objects, the_server_fills_in_what_is_its_own)
{
	struct json_object *o = put(THINGS, "a", "{\"metadata\":{\"name\":\"other\"}}");

	cr_expect_str_eq(json_get_str(o, "metadata/name"), "a");
	cr_expect_str_eq(json_get_str(o, "metadata/namespace"), "ns");
	cr_expect_str_eq(json_get_str(o, "metadata/creationTimestamp"), "2026-01-02T03:04:05Z");
	cr_expect_not_null(json_get_str(o, "metadata/uid"));
	cr_expect_eq(json_get_int(o, "metadata/generation", 0), 1);
	o = put("/api/v1/nodes", "n", "{\"metadata\":5}");
	cr_expect_null(json_get(o, "metadata/namespace"));
	cr_expect_null(json_get(o, "metadata/generation"), "not of this kind");
}

Test(apistore_objects, versions_count_writes_and_generations_the_spec)
{
	static const struct {
		const char *change;
		int64_t generation;
		bool written;
	} cases[] = {
		{"{\"spec\":{\"n\":1}}", 1, false},
		{"{\"spec\":{\"n\":1},\"status\":{\"x\":1}}", 1, true},
		{"{\"spec\":{\"n\":2},\"status\":{\"x\":1}}", 2, true},
		{"{\"spec\":{\"n\":2}}", 2, true},
		{"{\"spec\":{\"n\":2},\"more\":1}", 3, true},
		{"{\"spec\":{\"n\":2}}", 4, true},
		{"{}", 5, true},
	};

	put(THINGS, "a", "{\"spec\":{\"n\":1}}");
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct json_object *o = json_of(cases[i].change);
		uint64_t rv = apistore_objects_rv(s);
		char text[24];

		json_add(o, "metadata",
			json_copy(json_get(apistore_objects_get(s, THINGS, "a"), "metadata")));
		o = apistore_objects_put(s, THINGS, "a", o);
		cr_expect_eq(apistore_objects_rv(s), rv + cases[i].written, "%s", cases[i].change);
		cr_expect_eq(json_get_int(o, "metadata/generation", 0), cases[i].generation, "%s",
			cases[i].change);
		snprintf(text, sizeof(text), "%llu", (unsigned long long)apistore_objects_rv(s));
		cr_expect_str_eq(json_get_str(o, "metadata/resourceVersion"), text);
	}
}

TestSuite(apistore_gc, .init = up, .fini = down);

Test(apistore_gc, finalizers_hold_a_deletion)
{
	cleanup_json struct json_object *o = NULL, *last = NULL, *none = NULL;

	put(THINGS, "a", "{\"metadata\":{\"finalizers\":[\"f\"]}}");
	o = apistore_gc_delete(s, THINGS, "a");
	cr_expect_str_eq(json_get_str(o, "metadata/deletionTimestamp"), "2026-01-02T03:04:05Z");
	cr_expect_eq(json_get_int(o, "metadata/generation", 0), 2);
	cr_expect_not_null(apistore_objects_get(s, THINGS, "a"));
	put(THINGS, "b", "{\"metadata\":{\"finalizers\":[]}}");
	last = apistore_gc_delete(s, THINGS, "b");
	cr_expect_not_null(json_get(last, "metadata/deletionTimestamp"));
	cr_expect_null(apistore_objects_get(s, THINGS, "b"));
	none = apistore_gc_delete(s, THINGS, "b");
	cr_expect_null(none);
}

Test(apistore_gc, orphans_go_with_their_own_children)
{
	put(THINGS, "a", "{\"metadata\":{\"uid\":\"1\"}}");
	put(SECRETS, "child",
		"{\"metadata\":{\"uid\":\"2\",\"ownerReferences\":[{\"uid\":\"1\"},{\"uid\":\"9\"}]}}");
	put("/api/v1/namespaces/ns/configmaps", "grandchild",
		"{\"metadata\":{\"ownerReferences\":[{\"uid\":\"2\"}]}}");
	put(THINGS, "held",
		"{\"metadata\":{\"finalizers\":[\"f\"],\"ownerReferences\":[{\"uid\":\"2\"}]}}");
	put(SECRETS, "free", "{\"metadata\":{\"ownerReferences\":[]}}");
	put(SECRETS, "odd", "{\"metadata\":{\"ownerReferences\":[5,{\"uid\":7},{}]}}");
	cr_expect_eq(apistore_gc_collect(s), 1, "the odd one: none of its owners is there");
	json_object_put(apistore_gc_delete(s, THINGS, "a"));
	cr_expect_eq(apistore_gc_collect(s), 3);
	cr_expect_eq(apistore_gc_collect(s), 0);
	cr_expect_not_null(
		json_get(apistore_objects_get(s, THINGS, "held"), "metadata/deletionTimestamp"));
	cr_expect_eq(apistore_objects_count(s, SECRETS), 1);
}
