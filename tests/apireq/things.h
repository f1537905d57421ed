/* SPDX-License-Identifier: MIT */
/* One API for the tests of this folder: Things with a spec and a status, and Secrets. */
#ifndef TEC_TESTS_APIREQ_THINGS_H
#define TEC_TESTS_APIREQ_THINGS_H

#include <criterion/criterion.h>

#include "tec/apireq/request.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/schema/builtin.h"

#define THINGS      "/apis/example.io/v1/namespaces/ns/things"
#define SECRETS     "/api/v1/namespaces/ns/secrets"
#define A_THING(n)  (&(const struct store_key){"things.example.io", "ns", n})
#define A_SECRET(n) (&(const struct store_key){"secrets", "ns", n})
#define THING       "\"apiVersion\":\"example.io/v1\",\"kind\":\"Thing\""
#define SECRET      "\"apiVersion\":\"v1\",\"kind\":\"Secret\""
#define MERGE       "application/merge-patch+json"
#define JSON_PATCH  "application/json-patch+json"
#define APPLY       "application/apply-patch+yaml"
#define MANAGER     "?fieldManager=m&force=true"

static const struct store_kind thing_kinds[] = {
	{.group = "example.io",
		.resource = "things",
		.generation = true,
		.status = true,
		.custom = true},
};
static const struct store_list thing_lists[] = {
	{"conditions", {"type"}},
	{"containers", {"name"}},
	{"ports", {"port", "protocol"}},
};
static const struct store_schema things = {.kinds = thing_kinds,
	.n_kinds = ARRAY_LEN(thing_kinds),
	.lists = {thing_lists, ARRAY_LEN(thing_lists)}};

/* The same with Secrets and ConfigMaps whose members are checked. */
static inline const struct store_schema *things_and_data(void)
{
	static struct store_kind kinds[3];
	static struct store_schema schema;

	kinds[0] = thing_kinds[0];
	kinds[1] = (struct store_kind){.group = "",
		.resource = "secrets",
		.schema = schema_builtin_kind("", "v1", "Secret")};
	kinds[2] = (struct store_kind){.group = "",
		.resource = "configmaps",
		.schema = schema_builtin_kind("", "v1", "ConfigMap")};
	schema = (struct store_schema){
		.kinds = kinds, .n_kinds = ARRAY_LEN(kinds), .lists = things.lists};
	return &schema;
}

static inline struct store_objects *objects_new(struct loop *l, const struct store_schema *schema)
{
	struct err err = ERR_INIT;
	struct store_db *db = store_db_open(&(const struct store_db_conf){0}, &err);

	cr_assert_not_null(db, "%s", err.text);
	return store_objects_new(db, schema, l);
}

static inline struct store_objects *things_new(struct loop *l)
{
	return objects_new(l, &things);
}

static inline struct json_object *json_of(const char *text)
{
	struct err err = ERR_INIT;
	struct json_object *o = json_parse(text, strlen(text), &json_limits_object, &err);

	cr_assert_not_null(o, "%s: %s", err.text, text);
	return o;
}

static inline void same_json(struct json_object *have, const char *want)
{
	cleanup_json struct json_object *w = json_of(want);

	cr_expect(json_object_equal(have, w), "%s instead of %s",
		json_object_to_json_string_ext(have, 0), want);
}

/* The status; *answer (NULL: not wanted) is the body, which the caller puts. */
static inline int ask(struct store_objects *s, const char *method, const char *path,
	const char *type, const char *body, struct json_object **answer)
{
	cleanup_apireq_request_info struct apireq_request_info t;
	struct apireq_answer a;
	struct err err = ERR_INIT;
	int code;

	cr_assert_eq(apireq_request_info_parse(path, &t, &err), 0, "%s: %s", path, err.text);
	a = apireq_request(s, &t,
		&(const struct apireq_request){.method = method,
			.content_type = type,
			.body = body,
			.len = body ? strlen(body) : 0});
	code = a.code;
	cr_assert_null(a.more, "%s: a list that is not small", path);
	if (answer)
		*answer = json_of(a.body);
	apireq_answer_fini(&a);
	cr_expect_eq(store_objects_commit(s, &err), 0, "%s", err.text);
	return code;
}

#endif
