/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/kobj/managed.h"

#define ENTRY(manager, operation, more, fields)                                                    \
	"{\"manager\":\"" manager "\",\"operation\":\"" operation                                  \
	"\",\"apiVersion\":\"apps/v1\",\"fieldsType\":\"FieldsV1\"" more ",\"fieldsV1\":" fields   \
	"}"
#define PLAIN  (JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE)
#define STATUS ",\"subresource\":\"status\""

static char *take(const char *entries, const char *annotations)
{
	cleanup_free char *text = xasprintf(
		"{\"metadata\":{\"name\":\"d\",\"resourceVersion\":\"7\",\"annotations\":%s,\"managedFields\":[%s]}}",
		annotations, entries);
	cleanup_json struct json_object *o = json_tokener_parse(text);
	cleanup_json struct json_object *patch = NULL;

	cr_assert(o, "%s", text);
	patch = kobj_managed_take(o, "manager", "us");
	cr_expect_str_eq(
		json_object_to_json_string_ext(o, PLAIN), text, "the object stays as it is");
	return patch ? xstrdup(json_object_to_json_string_ext(patch, PLAIN)) : NULL;
}

#define PATCHED(entries)                                                                           \
	"[{\"op\":\"replace\",\"path\":\"/metadata/managedFields\",\"value\":[" entries            \
	"]},{\"op\":\"replace\",\"path\":\"/metadata/resourceVersion\",\"value\":\"7\"}"

/* A writer that applied, one of a subresource and one of another name keep their entries. */
Test(kobj_managed, the_fields_of_a_writer_without_apply_become_ours)
{
	static const struct {
		const char *name, *entries, *expect; /* expect NULL: nothing to take */
	} rows[] = {
		{"the only one", ENTRY("manager", "Update", "", "{\"f:spec\":{\"f:a\":{}}}"),
			PATCHED(ENTRY("us", "Apply", "", "{\"f:spec\":{\"f:a\":{}}}"))},
		{"beside ours",
			ENTRY("us", "Apply", "", "{\"f:spec\":{\"f:a\":{},\"f:b\":{}}}") "," ENTRY(
				"manager", "Update", "",
				"{\"f:metadata\":{},\"f:spec\":{\"f:b\":{\".\":{}},\"f:c\":{}}}"),
			PATCHED(ENTRY("us", "Apply", "",
				"{\"f:spec\":{\"f:a\":{},\"f:b\":{\".\":{}},\"f:c\":{}},\"f:metadata\":{}}"))},
		{"before ours, and two of them",
			ENTRY("manager", "Update", "", "{\"f:a\":{}}") "," ENTRY("manager",
				"Update", "",
				"{\"f:b\":{}}") "," ENTRY("us", "Apply", "", "{\"f:c\":{}}"),
			PATCHED(ENTRY("us", "Apply", "", "{\"f:c\":{},\"f:a\":{},\"f:b\":{}}"))},
		{"others stay",
			ENTRY("manager", "Update", STATUS, "{\"f:status\":{}}") "," ENTRY(
				"kubectl-rollout", "Update", "", "{\"f:spec\":{}}") "," ENTRY("us",
				"Apply", STATUS, "{\"f:status\":{}}") "," ENTRY("manager", "Update",
				"", "{\"f:a\":{}}"),
			PATCHED(ENTRY("manager", "Update", STATUS, "{\"f:status\":{}}") "," ENTRY(
				"kubectl-rollout", "Update", "", "{\"f:spec\":{}}") "," ENTRY("us",
				"Apply", STATUS,
				"{\"f:status\":{}}") "," ENTRY("us", "Apply", "", "{\"f:a\":{}}"))},
		{"none of its", ENTRY("us", "Apply", "", "{\"f:a\":{}}"), NULL},
		{"its status only", ENTRY("manager", "Update", STATUS, "{\"f:a\":{}}"), NULL},
		{"it applied", ENTRY("manager", "Apply", "", "{\"f:a\":{}}"), NULL},
		{"without fields", "{\"manager\":\"manager\",\"operation\":\"Update\"}", NULL},
		{"no entry at all", "", NULL},
		{"not entries", "1,null,\"manager\",[]", NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		cleanup_free char *got = take(rows[i].entries, "{}");
		cleanup_free char *want = rows[i].expect ? xasprintf("%s]", rows[i].expect) : NULL;

		cr_expect(str_eq(got, want), "%s: %s instead of %s", rows[i].name,
			got ? got : "nothing", want ? want : "nothing");
	}
}

/* Without its hash an object counts as stale, whoever reads it next. */
Test(kobj_managed, the_hash_of_the_last_rendering_goes)
{
	cleanup_free char *got = take(ENTRY("manager", "Update", "", "{\"f:a\":{}}"),
		"{\"trusted-execution-clusters.io/render-hash\":\"1\"}");

	cr_expect(
		strstr(got,
			",{\"op\":\"remove\",\"path\":\"/metadata/annotations/trusted-execution-clusters.io~1render-hash\"}]"),
		"%s", got);
}
