/* SPDX-License-Identifier: MIT */
/* What an Accept header chooses. */
#include "config.h"

#include "apireq/things.h"

#include "tec/apihttp/negotiation.h"

#define META ";g=meta.k8s.io;v=v1"

Test(apihttp_negotiation, an_accept_header_chooses_the_shape)
{
	static const struct {
		const char *accept;
		bool served;
		enum apireq_shape shape;
		bool beta;
	} cases[] = {
		{NULL, true, APIREQ_SHAPE_OBJECT, false},
		{"", true, APIREQ_SHAPE_OBJECT, false},
		{"*/*", true, APIREQ_SHAPE_OBJECT, false},
		{"Application/JSON", true, APIREQ_SHAPE_OBJECT, false},
		{"application/json;as=Table" META ",application/json", true, APIREQ_SHAPE_TABLE,
			false},
		{"application/json;as=Table;v=v1beta1;g=meta.k8s.io", true, APIREQ_SHAPE_TABLE,
			true},
		{"application/json;as=Table;v=v9;g=meta.k8s.io,application/json", true,
			APIREQ_SHAPE_OBJECT, false},
		{"application/json;as=Table;v=v9;g=meta.k8s.io", false, APIREQ_SHAPE_OBJECT, false},
		{"application/json;as=Table;v=v1;g=other", false, APIREQ_SHAPE_OBJECT, false},
		{"application/vnd.kubernetes.protobuf;as=Table" META ", application/json ; as=Table"
		 "; v=\"v1\" ;g=meta.k8s.io",
			true, APIREQ_SHAPE_TABLE, false},
		{"application/json;as=PartialObjectMetadataList" META, true, APIREQ_SHAPE_METADATA,
			false},
		{"application/json;as=PartialObjectMetadata" META, true, APIREQ_SHAPE_METADATA,
			false},
		{"application/json;q=0", false, APIREQ_SHAPE_OBJECT, false},
		{"application/json;q=0.0, */*;q=0.1", true, APIREQ_SHAPE_OBJECT, false},
		{"image/png", false, APIREQ_SHAPE_OBJECT, false},
		{",,,;;;,=,;=;as=;g,", false, APIREQ_SHAPE_OBJECT, false},
		{"application/json;as", true, APIREQ_SHAPE_OBJECT, false},
		{";as=Table" META, false, APIREQ_SHAPE_OBJECT, false},
		{"\"\"\"", false, APIREQ_SHAPE_OBJECT, false},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *a = cases[i].accept ? cases[i].accept : "(none)";
		struct apireq_representation f;

		cr_expect_eq(
			apihttp_negotiation_choose(cases[i].accept, &f), cases[i].served, "%s", a);
		cr_expect_eq(f.shape, cases[i].shape, "%s", a);
		cr_expect(!cases[i].beta || f.beta, "%s", a);
	}
}

Test(apihttp_negotiation, a_range_that_is_too_long_is_no_range)
{
	cleanup_strbuf struct strbuf accept = STRBUF_INIT;
	struct apireq_representation f;

	for (int i = 0; i < 1000; i++)
		strbuf_adds(&accept, "application");
	cr_expect_not(apihttp_negotiation_choose(accept.data, &f));
	strbuf_adds(&accept, ",application/json");
	cr_expect(apihttp_negotiation_choose(accept.data, &f));
}

Test(apihttp_negotiation, what_a_row_holds_of_its_object_can_be_chosen)
{
	struct apireq_representation f = {.shape = APIREQ_SHAPE_TABLE};

	cr_expect(apihttp_negotiation_include(&f, NULL));
	cr_expect_eq(f.include, SCHEMA_INCLUDE_METADATA);
	cr_expect(apihttp_negotiation_include(&f, "Object"));
	cr_expect_eq(f.include, SCHEMA_INCLUDE_OBJECT);
	cr_expect(apihttp_negotiation_include(&f, "None"));
	cr_expect_eq(f.include, SCHEMA_INCLUDE_NONE);
	cr_expect_not(apihttp_negotiation_include(&f, "none"));
}
