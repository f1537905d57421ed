/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tec/kobj/meta.h"

#include <criterion/criterion.h>

#include "tec/base/json.h"

struct thing {
	struct kobj k;
	const char *id, *note;
	int n;
};

static int finis;

static void count_fini(struct kobj *o)
{
	(void)o;
	finis++;
}

static struct json_object *parse(const char *text)
{
	struct err err = ERR_INIT;
	struct json_object *o = json_parse(text, strlen(text), &json_limits_object, &err);

	cr_assert_not_null(o, "%s", err.text);
	return o;
}

static struct kobj *extract(const char *text, struct err *err)
{
	cleanup_json struct json_object *o = parse(text);
	cleanup_kobj_pack struct kobj_pack p = KOBJ_PACK_INIT;
	struct thing t = {.n = 7, .k.fini = count_fini};

	if (kobj_meta_read(&p, o, &t.k, err) < 0)
		return NULL;
	kobj_pack_str(&p, offsetof(struct thing, id), json_get_str(o, "spec/id"));
	kobj_pack_str(&p, offsetof(struct thing, note), NULL);
	return kobj_pack_finish(&p, &t, sizeof(t));
}

#define GOOD                                                                                           \
	"{\"metadata\":{\"name\":\"m-1\",\"uid\":\"u-1\",\"resourceVersion\":\"42\",\"generation\":3," \
	"\"creationTimestamp\":\"2026-01-02T03:04:05Z\"},\"spec\":{\"id\":\"abc\"}}"

Test(kobj_meta, strings_that_repeat_are_kept_once)
{
	cleanup_kobj_pack struct kobj_pack p = KOBJ_PACK_INIT;
	struct kobj fixed = {0};
	const struct kobj *o;
	size_t len;

	kobj_pack_str(&p, offsetof(struct kobj, name), "machine-1234");
	len = p.blob.len;
	kobj_pack_str(&p, offsetof(struct kobj, uid), "1234");
	cr_assert_eq(p.blob.len, len);
	kobj_pack_str(&p, offsetof(struct kobj, rv),
		"machine"); /* a beginning is not a string of its own */
	o = kobj_pack_finish(&p, &fixed, sizeof(fixed));
	cr_assert_str_eq(o->name, "machine-1234");
	cr_assert_str_eq(o->uid, "1234");
	cr_assert_str_eq(o->rv, "machine");
	kobj_unref(o);
}

Test(kobj_meta, finalizers_of_others_stay)
{
	static const struct {
		const char *have, *with, *without;
	} t[] = {
		{"{}", "[\"our\"]", "[]"},
		{"{\"metadata\":{\"finalizers\":[]}}", "[\"our\"]", "[]"},
		{"{\"metadata\":{\"finalizers\":[\"our\"]}}", "[\"our\"]", "[]"},
		{"{\"metadata\":{\"finalizers\":[\"a\",\"our\",\"b\"]}}", "[\"a\",\"b\",\"our\"]",
			"[\"a\",\"b\"]"},
		{"{\"metadata\":{\"finalizers\":\"our\"}}", "[\"our\"]", "[]"},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct err err = ERR_INIT;
		cleanup_json struct json_object *o =
			json_parse(t[i].have, strlen(t[i].have), &json_limits_object, &err);
		struct kobj fixed = {0};
		struct kobj_pack p = KOBJ_PACK_INIT;
		struct kobj *k;

		kobj_pack_other_finalizers(&p, offsetof(struct kobj, name), o, "our");
		k = kobj_pack_finish(&p, &fixed, sizeof(fixed));
		for (int with = 0; with < 2; with++) {
			cleanup_json struct json_object *a =
				kobj_finalizers(k->name, with ? "our" : NULL);
			cleanup_free char *text = json_text(a);

			cr_assert_str_eq(text, with ? t[i].with : t[i].without);
		}
		kobj_unref(k);
	}
}

Test(kobj_meta, an_object_is_one_packed_allocation)
{
	struct err err = ERR_INIT;
	struct kobj *o = extract(GOOD, &err);
	struct thing *t = (struct thing *)o;

	cr_assert_not_null(o);
	cr_expect_str_eq(o->name, "m-1");
	cr_expect_str_eq(o->uid, "u-1");
	cr_expect_str_eq(o->rv, "42");
	cr_expect_eq(o->generation, 3);
	cr_expect_eq(o->created_s, 1767323045);
	cr_expect_not(o->deleting);
	cr_expect_str_eq(t->id, "abc");
	cr_expect_null(t->note);
	cr_expect_eq(t->n, 7);
	cr_expect_eq(o->name, (const char *)(t + 1), "strings lie behind the fixed part");
	kobj_unref(o);
}

Test(kobj_meta, the_last_reference_runs_fini)
{
	struct err err = ERR_INIT;
	struct kobj *o = extract(GOOD, &err);
	cleanup_kobj const struct kobj *second = kobj_ref(o);

	kobj_unref(o);
	cr_expect_eq(finis, 0);
	kobj_unref(second);
	second = NULL;
	cr_expect_eq(finis, 1);
	kobj_unref(NULL);
}

Test(kobj_meta, missing_or_absurd_metadata_is_refused)
{
	static const char *const bad[] = {
		"{}",
		"{\"metadata\":null}",
		"{\"metadata\":[]}",
		"{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"1\"}}",
		"{\"metadata\":{\"name\":\"A_B\",\"uid\":\"u\",\"resourceVersion\":\"1\"}}",
		"{\"metadata\":{\"name\":7,\"uid\":\"u\",\"resourceVersion\":\"1\"}}",
		"{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\"}}",
		"{\"metadata\":{\"name\":\"a\",\"uid\":\"\",\"resourceVersion\":\"1\"}}",
		"{\"metadata\":{\"name\":\"a\",\"uid\":\"a b\",\"resourceVersion\":\"1\"}}",
		"{\"metadata\":{\"name\":\"a\",\"uid\":\"u\"}}",
		"{\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":1}}",
		"{\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":\"1\",\"creationTimestamp\":\"soon\"}}",
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct err err = ERR_INIT;

		cr_expect_null(extract(bad[i], &err), "%s", bad[i]);
		cr_expect_eq(err.kind, ERR_INVALID);
	}
}

Test(kobj_meta, a_deletion_timestamp_means_deleting)
{
	struct err err = ERR_INIT;
	cleanup_kobj const struct kobj *o =
		extract("{\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":\"1\","
			"\"deletionTimestamp\":\"2026-01-02T03:04:05Z\"}}",
			&err);

	cr_assert_not_null(o);
	cr_expect(o->deleting);
	cr_expect_eq(o->generation, 0);
}

Test(kobj_meta, finalizers_and_annotations_are_found)
{
	cleanup_json struct json_object *o = parse(
		"{\"metadata\":{\"finalizers\":[1,null,\"a/b\"],\"annotations\":{\"x.io/y\":\"v\",\"n\":5}}}");
	cleanup_json struct json_object *none =
		parse("{\"metadata\":{\"finalizers\":{},\"annotations\":[]}}");

	cr_expect(kobj_has_finalizer(o, "a/b"));
	cr_expect_not(kobj_has_finalizer(o, "a"));
	cr_expect_not(kobj_has_finalizer(none, "a/b"));
	cr_expect_str_eq(kobj_annotation(o, "x.io/y"), "v");
	cr_expect_null(kobj_annotation(o, "n"));
	cr_expect_null(kobj_annotation(o, "x.io"));
	cr_expect_null(kobj_annotation(none, "x.io/y"));
}
