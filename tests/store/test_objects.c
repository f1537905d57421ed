/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <stdio.h>

#include "apireq/things.h"
#include "tec/store/gc.h"

static struct store_objects *s;
static struct json_object *last; /* what put() gave */

static void up(void)
{
	clock_fake_start(1000000, 1767323045);
	s = things_new(NULL);
}

static void down(void)
{
	json_object_put(last);
	last = NULL;
	store_objects_free(s);
	clock_fake_stop();
}

TestSuite(store_objects, .init = up, .fini = down);

static struct json_object *put(const struct store_key *key, const char *text)
{
	json_object_put(last);
	last = store_objects_put(s, key, json_of(text));
	return last;
}

static bool there(const struct store_key *key)
{
	cleanup_json struct json_object *o = store_objects_get(s, key);

	return o != NULL;
}

static bool in_order(void *arg, const struct store_version *v)
{
	char *before = arg;

	cr_expect_lt(strcmp(before, v->key.name), 0, "%s %s", before, v->key.name);
	strcpy(before, v->key.name);
	return true;
}

Test(store_objects, order_is_by_name_whatever_comes_first)
{
	enum { N = 300 };
	const struct store_scan scan = {.resource = "secrets", .ns = "ns"};
	struct err err = ERR_INIT;
	char name[16] = "";

	for (int i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "n%03d", i * 7 % N);
		put(i % 2 ? A_SECRET(name) : A_THING(name), "{}");
	}
	cr_expect_eq(store_objects_count(s, "secrets", "ns"), N / 2);
	cr_expect_eq(store_objects_count(s, "things.example.io", "ns"), N / 2);
	cr_expect_eq(store_objects_count(s, "secrets", "n"), 0);
	cr_expect_eq(store_objects_count(s, "secret", "ns"), 0);
	name[0] = '\0';
	cr_expect_eq(store_db_scan(store_objects_db(s), &scan, in_order, name, &err), N / 2);
	for (int i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "n%03d", i * 7 % N);
		json_object_put(store_gc_delete(
			s, i % 2 ? A_SECRET(name) : A_THING(name), STORE_POLICY_DEFAULT));
	}
	cr_expect_eq(store_objects_count(s, NULL, NULL), 0);
	put(A_THING("again"), "{}");
	cr_expect(there(A_THING("again")));
}

Test(store_objects, the_server_fills_in_what_is_its_own)
{
	struct json_object *o = put(A_THING("a"), "{\"metadata\":{\"name\":\"other\"}}");

	cr_expect_str_eq(json_get_str(o, "metadata/name"), "a");
	cr_expect_str_eq(json_get_str(o, "metadata/namespace"), "ns");
	cr_expect_str_eq(json_get_str(o, "metadata/creationTimestamp"), "2026-01-02T03:04:05Z");
	cr_expect_not_null(json_get_str(o, "metadata/uid"));
	cr_expect_eq(json_get_int(o, "metadata/generation", 0), 1);
	o = put((&(const struct store_key){"nodes", "", "n"}), "{\"metadata\":5}");
	cr_expect_null(json_get(o, "metadata/namespace"));
	cr_expect_null(json_get(o, "metadata/generation"), "not of this kind");
}

Test(store_objects, versions_count_writes_and_generations_the_spec)
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

	put(A_THING("a"), "{\"spec\":{\"n\":1}}");
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_json struct json_object *was = store_objects_get(s, A_THING("a"));
		struct json_object *o = json_of(cases[i].change);
		uint64_t rv = store_objects_rv(s);
		char text[24];

		json_add(o, "metadata", json_copy(json_get(was, "metadata")));
		json_object_put(last);
		last = o = store_objects_put(s, A_THING("a"), o);
		cr_expect_eq(store_objects_rv(s), rv + cases[i].written, "%s", cases[i].change);
		cr_expect_eq(json_get_int(o, "metadata/generation", 0), cases[i].generation, "%s",
			cases[i].change);
		snprintf(text, sizeof(text), "%llu", (unsigned long long)store_objects_rv(s));
		cr_expect_str_eq(json_get_str(o, "metadata/resourceVersion"), text);
	}
}

TestSuite(store_gc, .init = up, .fini = down);

Test(store_gc, finalizers_hold_a_deletion)
{
	cleanup_json struct json_object *o = NULL, *gone = NULL, *none = NULL;

	put(A_THING("a"), "{\"metadata\":{\"finalizers\":[\"f\"]}}");
	o = store_gc_delete(s, A_THING("a"), STORE_POLICY_DEFAULT);
	cr_expect_str_eq(json_get_str(o, "metadata/deletionTimestamp"), "2026-01-02T03:04:05Z");
	cr_expect_eq(json_get_int(o, "metadata/generation", 0), 2);
	cr_expect(there(A_THING("a")));
	put(A_THING("b"), "{\"metadata\":{\"finalizers\":[]}}");
	gone = store_gc_delete(s, A_THING("b"), STORE_POLICY_DEFAULT);
	cr_expect_not_null(json_get(gone, "metadata/deletionTimestamp"));
	cr_expect_not(there(A_THING("b")));
	none = store_gc_delete(s, A_THING("b"), STORE_POLICY_DEFAULT);
	cr_expect_null(none);
}

Test(store_gc, orphans_go_with_their_own_children)
{
	put(A_THING("a"), "{\"metadata\":{\"uid\":\"1\"}}");
	put(A_SECRET("child"),
		"{\"metadata\":{\"uid\":\"2\",\"ownerReferences\":[{\"uid\":\"1\"},{\"uid\":\"9\"}]}}");
	put((&(const struct store_key){"configmaps", "ns", "grandchild"}),
		"{\"metadata\":{\"ownerReferences\":[{\"uid\":\"2\"}]}}");
	put(A_THING("held"),
		"{\"metadata\":{\"finalizers\":[\"f\"],\"ownerReferences\":[{\"uid\":\"2\"}]}}");
	put(A_SECRET("free"), "{\"metadata\":{\"ownerReferences\":[]}}");
	put(A_SECRET("odd"), "{\"metadata\":{\"ownerReferences\":[5,{\"uid\":7},{}]}}");
	cr_expect_eq(store_gc_collect(s), 2,
		"the odd one has no owner at all, the child has one less to name");
	json_object_put(store_gc_delete(s, A_THING("a"), STORE_POLICY_DEFAULT));
	cr_expect_eq(store_gc_collect(s), 3);
	cr_expect_eq(store_gc_collect(s), 0);
	cleanup_json struct json_object *held = store_objects_get(s, A_THING("held"));

	cr_expect_not_null(json_get(held, "metadata/deletionTimestamp"));
	cr_expect_eq(store_objects_count(s, "secrets", "ns"), 1);
}

Test(store_gc, foreground_ends_with_any_number_of_owners)
{
	for (unsigned n = 254; n <= 258; n++) {
		cleanup_strbuf struct strbuf text = STRBUF_INIT;

		put(A_THING("owner"), "{\"metadata\":{\"uid\":\"1\"}}");
		strbuf_adds(&text, "{\"metadata\":{\"ownerReferences\":[{\"uid\":\"1\"}");
		for (unsigned i = 1; i < n; i++)
			strbuf_addf(&text, ",{\"uid\":\"x%u\"}", i);
		strbuf_adds(&text, "]}}");
		put(A_THING("many"), strbuf_str(&text));
		json_object_put(store_gc_delete(s, A_THING("many"), STORE_FOREGROUND));
		store_gc_collect(s);
		cr_expect_not(there(A_THING("many")), "%u owners", n);
	}
}
