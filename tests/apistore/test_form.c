/* SPDX-License-Identifier: MIT */
/* How an answer shows objects: what an Accept header chooses, and the texts. */
#include "config.h"

#include "apistore/things.h"

#include "tec/apistore/form.h"
#include "tec/schema/builtin.h"

#define META ";g=meta.k8s.io;v=v1"

Test(apistore_form, an_accept_header_chooses_the_shape)
{
	static const struct {
		const char *accept;
		bool served;
		enum apistore_shape shape;
		bool beta;
	} cases[] = {
		{NULL, true, APISTORE_SHAPE_OBJECT, false},
		{"", true, APISTORE_SHAPE_OBJECT, false},
		{"*/*", true, APISTORE_SHAPE_OBJECT, false},
		{"Application/JSON", true, APISTORE_SHAPE_OBJECT, false},
		{"application/json;as=Table" META ",application/json", true, APISTORE_SHAPE_TABLE,
			false},
		{"application/json;as=Table;v=v1beta1;g=meta.k8s.io", true, APISTORE_SHAPE_TABLE,
			true},
		{"application/json;as=Table;v=v9;g=meta.k8s.io,application/json", true,
			APISTORE_SHAPE_OBJECT, false},
		{"application/json;as=Table;v=v9;g=meta.k8s.io", false, APISTORE_SHAPE_OBJECT,
			false},
		{"application/json;as=Table;v=v1;g=other", false, APISTORE_SHAPE_OBJECT, false},
		{"application/vnd.kubernetes.protobuf;as=Table" META ", application/json ; as=Table"
		 "; v=\"v1\" ;g=meta.k8s.io",
			true, APISTORE_SHAPE_TABLE, false},
		{"application/json;as=PartialObjectMetadataList" META, true,
			APISTORE_SHAPE_METADATA, false},
		{"application/json;as=PartialObjectMetadata" META, true, APISTORE_SHAPE_METADATA,
			false},
		{"application/json;q=0", false, APISTORE_SHAPE_OBJECT, false},
		{"application/json;q=0.0, */*;q=0.1", true, APISTORE_SHAPE_OBJECT, false},
		{"image/png", false, APISTORE_SHAPE_OBJECT, false},
		{",,,;;;,=,;=;as=;g,", false, APISTORE_SHAPE_OBJECT, false},
		{"application/json;as", true, APISTORE_SHAPE_OBJECT, false},
		{";as=Table" META, false, APISTORE_SHAPE_OBJECT, false},
		{"\"\"\"", false, APISTORE_SHAPE_OBJECT, false},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *a = cases[i].accept ? cases[i].accept : "(none)";
		struct apistore_form f;

		cr_expect_eq(apistore_form_choose(cases[i].accept, &f), cases[i].served, "%s", a);
		cr_expect_eq(f.shape, cases[i].shape, "%s", a);
		cr_expect(!cases[i].beta || f.beta, "%s", a);
	}
}

Test(apistore_form, a_range_that_is_too_long_is_no_range)
{
	cleanup_strbuf struct strbuf accept = STRBUF_INIT;
	struct apistore_form f;

	for (int i = 0; i < 1000; i++)
		strbuf_adds(&accept, "application");
	cr_expect_not(apistore_form_choose(accept.data, &f));
	strbuf_adds(&accept, ",application/json");
	cr_expect(apistore_form_choose(accept.data, &f));
}

Test(apistore_form, what_a_row_holds_of_its_object_can_be_chosen)
{
	struct apistore_form f = {.shape = APISTORE_SHAPE_TABLE};

	cr_expect(apistore_form_set_include(&f, NULL));
	cr_expect_eq(f.include, SCHEMA_INCLUDE_METADATA);
	cr_expect(apistore_form_set_include(&f, "Object"));
	cr_expect_eq(f.include, SCHEMA_INCLUDE_OBJECT);
	cr_expect(apistore_form_set_include(&f, "None"));
	cr_expect_eq(f.include, SCHEMA_INCLUDE_NONE);
	cr_expect_not(apistore_form_set_include(&f, "none"));
}

static struct json_object *shown(const struct apistore_form *f, const char *text, bool headers)
{
	const struct schema_kind *k = schema_builtin_find("", "v1", "configmaps");
	struct body out = BODY_INIT;
	struct json_object *o;

	apistore_form_object(f, k, text, strlen(text), headers, &out);
	o = json_of(out.data);
	body_fini(&out);
	return o;
}

Test(apistore_form, an_object_is_shown_in_its_shape)
{
	static const char text[] =
		"{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":"
		"{\"name\":\"a\",\"resourceVersion\":\"7\"},\"data\":{\"x\":\"y\"}}";
	struct apistore_form f = {.shape = APISTORE_SHAPE_OBJECT};
	struct json_object *o = shown(&f, text, true), *row;

	same_json(o, text);
	json_object_put(o);
	f.shape = APISTORE_SHAPE_METADATA;
	o = shown(&f, text, true);
	cr_expect_str_eq(json_get_str(o, "kind"), "PartialObjectMetadata");
	cr_expect_null(json_get(o, "data"));
	json_object_put(o);
	f.shape = APISTORE_SHAPE_TABLE;
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
