/* SPDX-License-Identifier: MIT */
/* How an answer shows objects. */
#include "config.h"

#include "apireq/things.h"

#include "tec/apireq/representation.h"
#include "tec/schema/builtin.h"

static struct json_object *shown(
	const struct apireq_representation *f, const char *text, bool headers)
{
	const struct schema_kind *k = schema_builtin_kind("", "v1", "ConfigMap");
	struct body out = BODY_INIT;
	struct json_object *o;

	if (!apireq_representation_add(f, k,
		    headers ? APIREQ_REPRESENTATION_FIRST : APIREQ_REPRESENTATION_NEXT, "", text,
		    strlen(text), &out))
		body_add(&out, text, strlen(text), 0);
	o = json_of(out.data);
	body_fini(&out);
	return o;
}

Test(apireq_representation, an_object_is_shown_in_its_shape)
{
	static const char text[] =
		"{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":"
		"{\"name\":\"a\",\"resourceVersion\":\"7\"},\"data\":{\"x\":\"y\"}}";
	struct apireq_representation f = {.shape = APIREQ_SHAPE_OBJECT};
	struct json_object *o = shown(&f, text, true), *row;

	same_json(o, text);
	json_object_put(o);
	f.shape = APIREQ_SHAPE_METADATA;
	o = shown(&f, text, true);
	cr_expect_str_eq(json_get_str(o, "kind"), "PartialObjectMetadata");
	cr_expect_null(json_get(o, "data"));
	json_object_put(o);
	f.shape = APIREQ_SHAPE_TABLE;
	o = shown(&f, text, true);
	cr_expect_str_eq(json_get_str(o, "metadata/resourceVersion"), "7");
	cr_expect_gt(json_object_array_length(json_get_arr(o, "columnDefinitions")), 2);
	row = json_object_array_get_idx(json_get_arr(o, "rows"), 0);
	cr_expect_str_eq(
		json_object_get_string(json_object_array_get_idx(json_get_arr(row, "cells"), 0)),
		"a");
	cr_expect_null(json_get(row, "object/data"));
	json_object_put(o);
	o = shown(&f, text, false);
	cr_expect_null(json_get(o, "columnDefinitions"), "they were told before");
	json_object_put(o);
}
