/* SPDX-License-Identifier: MIT */
/* Metadata that a client gives, with the refusals of kube-apiserver. */
#include "config.h"

#include "apireq/things.h"

#define A30  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define A64  A30 A30 "aaaa"
#define A254 A30 A30 A30 A30 A30 A30 A30 A30 "aaaaaaaaaaaaaa"

#define OWNER "\"uid\":\"1\",\"name\":\"n\""

static const struct {
	const char *meta;  /* members of metadata */
	const char *field; /* NULL: accepted */
	const char *why;   /* a part of the message */
} cases[] = {
	{"\"name\":\"a\"", NULL, NULL},
	{"\"name\":\"a.b-c\",\"labels\":{\"a/b\":\"C_d.e\",\"x\":\"\"}", NULL, NULL},
	{"\"name\":\"a\",\"annotations\":{\"A.b/C\":\"any \\u0001 text\"}", NULL, NULL},
	{"\"name\":\"a\",\"finalizers\":[\"a/b\",\"orphan\"]", NULL, NULL},
	{"\"name\":\"A\"", "metadata.name", "Invalid value: \"A\": must be a DNS name"},
	{"\"name\":\"\"", "metadata.name", "Required value: name or generateName is required"},
	{"\"labels\":{}", "metadata.name", "Required value"},
	{"\"name\":\"" A254 "\"", "metadata.name", "must be a DNS name"},
	{"\"name\":\"../a\"", "metadata.name", "must be a DNS name"},
	{"\"name\":\"a\",\"labels\":{\"a b\":\"c\"}", "metadata.labels", "\"a b\": name must"},
	{"\"name\":\"a\",\"labels\":{\"/b\":\"c\"}", "metadata.labels", "prefix must be a DNS"},
	{"\"name\":\"a\",\"labels\":{\"A/b\":\"c\"}", "metadata.labels", "prefix must be a DNS"},
	{"\"name\":\"a\",\"labels\":{\"a/\":\"c\"}", "metadata.labels", "name must be"},
	{"\"name\":\"a\",\"labels\":{\"\":\"c\"}", "metadata.labels", "name must be"},
	{"\"name\":\"a\",\"labels\":{\"a/b/c\":\"c\"}", "metadata.labels", "name must be"},
	{"\"name\":\"a\",\"labels\":{\"" A64 "\":\"c\"}", "metadata.labels",
		"name must have at most 63 characters"},
	{"\"name\":\"a\",\"labels\":{\"a\":\"" A64 "\"}", "metadata.labels",
		"must have at most 63 characters"},
	{"\"name\":\"a\",\"labels\":{\"a\":\"-\"}", "metadata.labels", "\"-\": must be letters"},
	{"\"name\":\"a\",\"annotations\":{\"a//b\":\"c\"}", "metadata.annotations", "name must be"},
	{"\"name\":\"a\",\"finalizers\":[\"a b\"]", "metadata.finalizers", "name must be"},
	{"\"name\":\"a\",\"finalizers\":[\"\"]", "metadata.finalizers", "name must be"},
	{"\"name\":\"a\",\"ownerReferences\":[{\"uid\":\"1\",\"kind\":\"K\",\"name\":\"n\"}]",
		"metadata.ownerReferences.apiVersion", "must not be empty"},
	{"\"name\":\"a\",\"ownerReferences\":[{\"apiVersion\":\"a/b/c\"," OWNER "}]",
		"metadata.ownerReferences.apiVersion", "\"a/b/c\": must not be empty"},
	{"\"name\":\"a\",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"Event\"," OWNER
	 "}]",
		"metadata.ownerReferences", "an Event must not be an owner"},
	{"\"name\":\"a\",\"finalizers\":[\"orphan\",\"foregroundDeletion\"]", "metadata.finalizers",
		"[\"orphan\",\"foregroundDeletion\"]: orphan and"},
	{"\"name\":\"a\",\"generateName\":\"A--\"", "metadata.generateName",
		"\"A--\": must be a DNS"},
	{"\"name\":\"a\",\"labels\":{\"" A254 "/a\":\"c\"}", "metadata.labels",
		"prefix must be a DNS"},
};

Test(store_meta, is_refused_where_it_is_wrong)
{
	struct store_objects *s = things_new(NULL);

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_free char *body = xasprintf("{" THING ",\"metadata\":{%s}}", cases[i].meta);
		cleanup_json struct json_object *o = NULL;
		int code = ask(s, "POST", THINGS, NULL, body, &o);
		struct json_object *cause;

		if (!cases[i].field) {
			cr_expect_eq(code / 100, 2, "%s: %d", cases[i].meta, code);
			ask(s, "DELETE", THINGS "/a", NULL, NULL, NULL);
			continue;
		}
		cr_expect_eq(code, 422, "%s: %d", cases[i].meta, code);
		cause = json_object_array_get_idx(json_get_arr(o, "details/causes"), 0);
		cr_expect_str_eq(json_get_str(cause, "field"), cases[i].field);
		cr_expect_not_null(strstr(json_get_str(cause, "message"), cases[i].why), "%s: %s",
			cases[i].meta, json_get_str(cause, "message"));
	}
	cr_expect_eq(store_objects_count(s, NULL, NULL), 2);
	store_objects_free(s);
}

Test(store_meta, annotations_have_a_size)
{
	struct store_objects *s = things_new(NULL);
	cleanup_free char *big = xmalloc((256u << 10) + 1);
	cleanup_free char *body = NULL;
	cleanup_json struct json_object *o = NULL;

	memset(big, 'x', 256u << 10);
	big[256u << 10] = '\0';
	body = xasprintf(
		"{" THING ",\"metadata\":{\"name\":\"a\",\"annotations\":{\"a\":\"%s\"}}}", big);
	cr_expect_eq(ask(s, "POST", THINGS, NULL, body, &o), 422);
	cr_expect_str_eq(json_get_str(o, "message"),
		"Thing.example.io \"a\" is invalid: metadata.annotations: Too long: must have at most 262144 bytes");
	store_objects_free(s);
}
