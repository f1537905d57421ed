/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "model/extract.h"
#include "tec/model/plain.h"

Test(model_plain, plain_objects_keep_owner_and_hash_only)
{
	struct err err = ERR_INIT;
	static const char text[] =
		"{\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":\"7\",\"annotations\":{"
		"\"trusted-execution-clusters.io/render-hash\":\"h\"},\"ownerReferences\":[{\"uid\":\"o\",\"controller\":true}]}}";
	struct json_object *o = json_parse(text, sizeof(text) - 1, &json_limits_object, &err);
	struct kobj *k = model_plain_extract(o, &err);

	cr_assert(k);
	cr_assert_str_eq(((struct model_plain *)k)->owner_uid, "o");
	cr_assert_str_eq(((struct model_plain *)k)->render_hash, "h");
	kobj_unref(k);
	json_object_put(o);
	o = json_parse("{}", 2, &json_limits_object, &err);
	cr_assert_null(model_plain_extract(o, &err));
	cr_assert_eq(err.kind, ERR_INVALID);
	json_object_put(o);
}

/* As text: what is equal differs in the status alone. */
Test(model_plain, the_shape_leaves_out_the_status_and_nothing_else)
{
#define OBJECT(more)                                                                               \
	"{\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":\"7\"" more "}}"
	static const char first[] =
		OBJECT(",\"generation\":2,\"labels\":{\"a\":\"b\"},\"annotations\":{\"c\":\"d\"}");
	static const struct {
		const char *text;
		bool same;
	} cases[] = {
		{first, true},
		{OBJECT(",\"generation\":2,\"labels\":{\"a\":\"b\"},\"annotations\":{\"c\":\"d\","
			"\"deployment.kubernetes.io/revision\":\"2\"},\"managedFields\":[]"),
			true},
		{OBJECT(",\"generation\":3,\"labels\":{\"a\":\"b\"},\"annotations\":{\"c\":\"d\"}"),
			false},
		{OBJECT(",\"generation\":2,\"labels\":{\"a\":\"c\"},\"annotations\":{\"c\":\"d\"}"),
			false},
		{OBJECT(",\"generation\":2,\"labels\":{\"a\":\"b\"},\"annotations\":{\"c\":\"e\"}"),
			false},
		{OBJECT(",\"generation\":2,\"labels\":{\"a\":\"b\"},\"annotations\":{\"c\":\"d\"},"
			"\"finalizers\":[\"x\"]"),
			false},
		{OBJECT(""), false},
	};
	struct err err = ERR_INIT;
	struct json_object *o = json_parse(first, sizeof(first) - 1, &json_limits_object, &err);
	uint64_t shape = model_plain_shape(o);

	cr_assert_neq(shape, 0);
	json_object_put(o);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		o = json_parse(cases[i].text, strlen(cases[i].text), &json_limits_object, &err);
		cr_expect_eq(model_plain_shape(o) == shape, cases[i].same, "%s", cases[i].text);
		if (i + 1 == ARRAY_LEN(cases)) /* of a kind without generation */
			cr_expect_eq(model_plain_shape(o), 0);
		json_object_put(o);
	}
}
