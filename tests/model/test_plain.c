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
