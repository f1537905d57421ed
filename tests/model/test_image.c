/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include "tec/base/json.h"
#include "tec/model/image.h"

static struct kobj *extract(const char *text, struct err *err)
{
	cleanup_json struct json_object *o = json_tokener_parse(text);

	return model_image_extract(o, err);
}

Test(model_image, keeps_the_reference)
{
	struct err err = ERR_INIT;
	cleanup_kobj const struct kobj *o =
		extract("{\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":\"1\"},"
			"\"spec\":{\"image\":\"quay.io/a/b@sha256:00\"}}",
			&err);

	cr_assert(o, "%s", err.text);
	cr_assert_str_eq(model_image(o)->image, "quay.io/a/b@sha256:00");
	cr_assert_str_eq(o->name, "a");
}

Test(model_image, refuses_an_image_without_reference)
{
	struct err err = ERR_INIT, err2 = ERR_INIT;

	cr_assert_null(extract(
		"{\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":\"1\"},\"spec\":{}}",
		&err));
	cr_assert_eq(err.kind, ERR_INVALID);
	cr_assert_null(extract("{\"spec\":{\"image\":\"a\"}}", &err2));
}
