/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "apireq/things.h"
#include "tec/apireq/patch.h"

/* RFC 7386 appendix A, as far as target and patch are objects, and a few of ours. */
Test(apireq_patch, examples_of_the_rfc)
{
	static const struct {
		const char *target, *patch, *result;
	} cases[] = {
		{"{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
		{"{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}"},
		{"{\"a\":\"b\"}", "{\"a\":null}", "{}"},
		{"{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}"},
		{"{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
		{"{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}"},
		{"{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}",
			"{\"a\":{\"b\":\"d\"}}"},
		{"{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}"},
		{"{\"e\":null}", "{\"a\":1}", "{\"e\":null,\"a\":1}"},
		{"{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}"},
		{"{\"a\":[1]}", "{\"a\":{\"b\":1}}", "{\"a\":{\"b\":1}}"},
		{"{\"a\":null}", "{\"a\":{\"b\":[null]}}", "{\"a\":{\"b\":[null]}}"},
		{"{\"a/b\":1}", "{\"a/b\":{\"\":2}}", "{\"a/b\":{\"\":2}}"},
		{"{\"a\":1}", "{}", "{\"a\":1}"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_json struct json_object *o = json_of(cases[i].target),
						*p = json_of(cases[i].patch);

		apireq_patch_merge(o, p);
		same_json(o, cases[i].result);
		same_json(p, cases[i].patch);
	}
}
