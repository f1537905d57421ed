/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tec/kobj/owner.h"

#include <criterion/criterion.h>

#include "tec/base/json.h"

static struct json_object *with_owners(const char *refs)
{
	cleanup_strbuf struct strbuf b = STRBUF_INIT;
	struct err err = ERR_INIT;
	struct json_object *o;

	strbuf_addf(&b, "{\"metadata\":{\"ownerReferences\":%s}}", refs);
	o = json_parse(strbuf_str(&b), b.len, &json_limits_object, &err);
	cr_assert_not_null(o, "%s", err.text);
	return o;
}

Test(kobj_owner, a_reference_is_complete)
{
	cleanup_json struct json_object *r = kobj_owner_json(&kobj_machine, "m", "u-1");
	cleanup_free char *text = json_text(r);

	cr_expect_str_eq(text,
		"{\"apiVersion\":\"trusted-execution-clusters.io/v1alpha1\",\"kind\":\"Machine\",\"name\":\"m\","
		"\"uid\":\"u-1\",\"controller\":true,\"blockOwnerDeletion\":true}");
}

Test(kobj_owner, what_is_there_is_read)
{
	static const struct {
		const char *refs, *controller;
		size_t n;
		bool exact;
	} table[] = {
		{"null", NULL, 0, false},
		{"[]", NULL, 0, false},
		{"[{\"uid\":\"u-1\",\"controller\":true}]", "u-1", 1, true},
		{"[{\"uid\":\"u-2\",\"controller\":true}]", "u-2", 1, false},
		{"[{\"uid\":\"u-1\"}]", NULL, 1, false},
		{"[{\"uid\":\"u-1\",\"controller\":false}]", NULL, 1, false},
		{"[{\"uid\":\"u-9\"},{\"uid\":\"u-1\",\"controller\":true}]", "u-1", 2, false},
		{"[null,7]", NULL, 2, false},
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		cleanup_json struct json_object *o = with_owners(table[i].refs);

		cr_expect_eq(kobj_owner_count(o), table[i].n, "%s", table[i].refs);
		cr_expect(
			str_eq(kobj_owner_controller(o), table[i].controller), "%s", table[i].refs);
		cr_expect_eq(kobj_owner_is_exactly(o, "u-1"), table[i].exact, "%s", table[i].refs);
		cr_expect_not(kobj_owner_is_exactly(o, NULL));
	}
}
