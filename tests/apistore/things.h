/* SPDX-License-Identifier: MIT */
/* One API for the tests of this folder: Things with a spec and a status, and Secrets. */
#ifndef TEC_TESTS_APISTORE_THINGS_H
#define TEC_TESTS_APISTORE_THINGS_H

#include <criterion/criterion.h>

#include "tec/apistore/request.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/schema/builtin.h"

#define THINGS      "/apis/example.io/v1/namespaces/ns/things"
#define SECRETS     "/api/v1/namespaces/ns/secrets"
#define A_THING(n)  (&(const struct apistore_key){"things.example.io", "ns", n})
#define A_SECRET(n) (&(const struct apistore_key){"secrets", "ns", n})
#define THING       "\"apiVersion\":\"example.io/v1\",\"kind\":\"Thing\""
#define SECRET      "\"apiVersion\":\"v1\",\"kind\":\"Secret\""
#define MERGE       "application/merge-patch+json"
#define JSON_PATCH  "application/json-patch+json"
#define APPLY       "application/apply-patch+yaml"
#define MANAGER     "?fieldManager=m&force=true"

static const struct apistore_kind thing_kinds[] = {
	{.group = "example.io",
		.resource = "things",
		.generation = true,
		.status = true,
		.custom = true},
};
static const struct apistore_list thing_lists[] = {
	{"conditions", {"type"}},
	{"containers", {"name"}},
	{"ports", {"port", "protocol"}},
};
static const struct apistore_schema things = {.kinds = thing_kinds,
	.n_kinds = ARRAY_LEN(thing_kinds),
	.lists = {thing_lists, ARRAY_LEN(thing_lists)}};

/* The same with Secrets and ConfigMaps whose members are checked. */
static inline const struct apistore_schema *things_and_data(void)
{
	static struct apistore_kind kinds[3];
	static struct apistore_schema schema;

	kinds[0] = thing_kinds[0];
	kinds[1] = (struct apistore_kind){.group = "",
		.resource = "secrets",
		.schema = schema_builtin_kind("", "v1", "Secret")};
	kinds[2] = (struct apistore_kind){.group = "",
		.resource = "configmaps",
		.schema = schema_builtin_kind("", "v1", "ConfigMap")};
	schema = (struct apistore_schema){
		.kinds = kinds, .n_kinds = ARRAY_LEN(kinds), .lists = things.lists};
	return &schema;
}

static inline struct apistore_objects *objects_new(
	struct loop *l, const struct apistore_schema *schema)
{
	struct err err = ERR_INIT;
	struct apistore_db *db = apistore_db_open(&(const struct apistore_db_conf){0}, &err);

	cr_assert_not_null(db, "%s", err.text);
	return apistore_objects_new(db, schema, l);
}

static inline struct apistore_objects *things_new(struct loop *l)
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
static inline int ask(struct apistore_objects *s, const char *method, const char *path,
	const char *type, const char *body, struct json_object **answer)
{
	cleanup_apistore_target struct apistore_target t;
	struct apistore_answer a;
	struct err err = ERR_INIT;
	int code;

	cr_assert_eq(apistore_target_parse(path, &t, &err), 0, "%s: %s", path, err.text);
	a = apistore_request(s, &t,
		&(const struct apistore_request){.method = method,
			.content_type = type,
			.body = body,
			.len = body ? strlen(body) : 0});
	code = a.code;
	cr_assert_null(a.more, "%s: a list that is not small", path);
	if (answer)
		*answer = json_of(a.body);
	apistore_answer_fini(&a);
	cr_expect_eq(apistore_objects_commit(s, &err), 0, "%s", err.text);
	return code;
}

#endif
