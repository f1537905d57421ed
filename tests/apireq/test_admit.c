/* SPDX-License-Identifier: MIT */
/* What the schema of a kind makes of a request: the server's kinds over a store without a socket. */
#include "config.h"

#include "apireq/things.h"

#include "tec/apireq/kinds.h"

#define NS     "/api/v1/namespaces/ns"
#define NEW(m) "{" THING ",\"metadata\":{\"name\":\"a\"}," m "}"
#define STRICT "?fieldValidation=Strict"
/* A definition of Things; spec: the members of its spec. */
#define CRD_OF(spec)                                                                               \
	"{\"apiVersion\":\"apiextensions.k8s.io/v1\",\"kind\":\"CustomResourceDefinition\","       \
	"\"metadata\":{\"name\":\"things.example.io\"},\"spec\":{\"group\":\"example.io\","        \
	"\"scope\":\"Namespaced\",\"names\":{\"plural\":\"things\",\"singular\":\"thing\","        \
	"\"kind\":\"Thing\",\"listKind\":\"ThingList\"},"                                          \
	"\"versions\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,"                         \
	"\"subresources\":{\"status\":{}},\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\","   \
	"\"properties\":{\"spec\":{\"type\":\"object\",\"properties\":{" spec "}},"                \
	"\"status\":{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}}}}}}}]}}"
#define N "\"n\":{\"type\":\"integer\",\"maximum\":5}"
#define F                                                                                          \
	"\"f\":{\"type\":\"string\",\"x-kubernetes-validations\":[{\"rule\":\"self == oldSelf\","  \
	"\"message\":\"f never changes\"}]}"

static struct loop *loop;
static struct store_schema schema;
static struct store_objects *s;
static struct apireq_kinds *kinds;

static void turns(void)
{
	for (int i = 0; i < 8; i++)
		loop_turn(loop, 0);
}

static int say(const char *method, const char *path, const char *body, struct json_object **answer)
{
	int code = ask(s, method, path, str_eq(method, "PATCH") ? MERGE : NULL, body, answer);

	turns();
	return code;
}

static void up(void)
{
	struct store_db *db;
	struct err err = ERR_INIT;

	loop = loop_new();
	kinds = apireq_kinds_new();
	apireq_kinds_add(kinds, CRD_OF(N "," F));
	apireq_kinds_use(kinds, &schema);
	db = store_db_open(&(const struct store_db_conf){0}, &err);
	cr_assert_not_null(db, "%s", err.text);
	s = store_objects_new(db, &schema, loop);
}

static void down(void)
{
	store_objects_free(s);
	apireq_kinds_free(kinds);
	loop_free(loop);
}

TestSuite(apireq_admit, .init = up, .fini = down);

static void refused(
	const char *method, const char *path, const char *body, int code, const char *message)
{
	cleanup_json struct json_object *o = NULL;

	cr_expect_eq(say(method, path, body, &o), code, "%s %s: %s", method, path,
		json_object_to_json_string_ext(o, 0));
	cr_expect_str_eq(json_get_str(o, "message"), message);
}

Test(apireq_admit, unknown_fields_are_dropped)
{
	cleanup_json struct json_object *o = NULL;

	cr_assert_eq(say("POST", THINGS, NEW("\"spec\":{\"n\":1,\"z\":2},\"q\":3"), &o), 201);
	cr_expect_null(json_get(o, "spec/z"));
	cr_expect_null(json_get(o, "q"));
}

Test(apireq_admit, what_the_schema_forbids_is_invalid)
{
	refused("POST", THINGS, NEW("\"spec\":{\"z\":[1,{\"y\":-1e999}]}"), 400,
		"Thing in version \"v1\" cannot be handled as a Thing: the number -1e999 is too large");
	refused("POST", THINGS, NEW("\"spec\":{\"n\":6}"), 422,
		"Thing.example.io \"a\" is invalid: spec.n: Invalid value: 6: must be at most 5");
	refused("POST", THINGS, NEW("\"spec\":{\"n\":\"6\"}"), 422,
		"Thing.example.io \"a\" is invalid: [spec.n: Invalid value: must be of type integer, not string, <nil>: Invalid value: the rules were not checked: correct the fields above first]");
	cr_assert_eq(say("POST", THINGS, NEW("\"spec\":{\"f\":\"a\"}"), NULL), 201);
	refused("PATCH", THINGS "/a", "{\"spec\":{\"f\":\"b\"}}", 422,
		"Thing.example.io \"a\" is invalid: spec.f: Invalid value: f never changes");
	cr_expect_eq(say("PATCH", THINGS "/a", "{\"spec\":{\"n\":2}}", NULL), 200);
}

/* Their members were not looked at by the types of the path's kind. */
Test(apireq_admit, no_object_of_another_kind_or_version_is_stored)
{
	static const struct {
		const char *path, *kind, *version;
		int code;
	} rows[] = {
		{NS "/secrets", "Foo", "v1", 400},
		{NS "/secrets", "ConfigMap", "v1", 400},
		{NS "/secrets", "Secret", "v2", 400},
		{NS "/secrets", "Secret", "apps/v1", 400},
		{NS "/configmaps", "Secret", "v1", 400},
		{THINGS, "Foo", "example.io/v1", 422},
		{THINGS, "Thing", "example.io/v9", 400},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		cleanup_free char *body = xasprintf(
			"{\"kind\":\"%s\",\"apiVersion\":\"%s\",\"metadata\":{\"name\":\"z\"},"
			"\"spec\":{\"n\":\"x\"},\"data\":5}",
			rows[i].kind, rows[i].version);
		cleanup_free char *at = xasprintf("%s/z", rows[i].path);

		cr_expect_eq(say("POST", rows[i].path, body, NULL), rows[i].code, "%s %s: %s",
			rows[i].kind, rows[i].version, rows[i].path);
		cr_expect_eq(say("GET", at, NULL, NULL), 404, "%s", at);
	}
}

Test(apireq_admit, strict_requests_refuse_unknown_and_duplicate_fields)
{
	refused("POST", THINGS STRICT, NEW("\"spec\":{\"z\":1,\"n\":1,\"n\":2}"), 400,
		"Thing in version \"v1\" cannot be handled as a Thing: strict decoding error: duplicate field \"spec.n\", unknown field \"spec.z\"");
	cr_expect_eq(say("POST", THINGS STRICT, NEW("\"spec\":{\"n\":1}"), NULL), 201);
	refused("PATCH", THINGS "/a" STRICT, "{\"spec\":{\"z\":1}}", 422,
		" \"\" is invalid: patch: Invalid value: strict decoding error: unknown field \"spec.z\"");
	refused("PATCH", THINGS "/a", "{\"metadata\":{\"labels\":{\"a\":5}}}", 422,
		" \"\" is invalid: patch: Invalid value: metadata.labels.a: must be of type string, not int");
	refused("PUT", THINGS "/a?fieldValidation=strict", "{}", 422,
		"UpdateOptions.meta.k8s.io \"\" is invalid: fieldValidation: Unsupported value: \"strict\": supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"");
}

/* The warnings of a request as one text. */
static void warned(const char *path, const char *body, bool warns, const char *want)
{
	cleanup_apireq_request_info struct apireq_request_info t;
	cleanup_strbuf struct strbuf all = STRBUF_INIT;
	struct apireq_answer a;
	struct err err = ERR_INIT;

	cr_assert_eq(apireq_request_info_parse(path, &t, &err), 0);
	a = apireq_request(s, &t,
		&(const struct apireq_request){
			.method = "POST", .body = body, .len = strlen(body), .warns = warns});
	cr_expect_eq(a.code, 201, "%s", a.body);
	for (size_t i = 0; i < a.warnings.n; i++)
		strbuf_addf(&all, "%s;", a.warnings.text[i]);
	cr_expect_str_eq(strbuf_str(&all), want);
	apireq_answer_fini(&a);
	cr_expect_eq(store_objects_commit(s, &err), 0);
}

Test(apireq_admit, others_warn_of_them_or_say_nothing)
{
	static const char body[] = "{" THING ",\"metadata\":{\"generateName\":\"a\"},"
				   "\"spec\":{\"z\":[{\"y\":1,\"y\":2}],\"f\":\"a\",\"f\":\"b\"}}";

	warned(THINGS, body, true,
		"duplicate field \"spec.z[0].y\";duplicate field \"spec.f\";unknown field \"spec.z\";");
	warned(THINGS "?fieldValidation=Warn", body, false,
		"duplicate field \"spec.z[0].y\";duplicate field \"spec.f\";unknown field \"spec.z\";");
	warned(THINGS "?fieldValidation=Ignore", body, true, "");
	warned(THINGS, body, false, "");
}

Test(apireq_admit, spec_and_status_have_their_own_writers)
{
	struct json_object *o = NULL;

	cr_assert_eq(say("POST", THINGS, NEW("\"spec\":{\"n\":1},\"status\":{\"n\":9}"), &o), 201);
	cr_expect_null(json_get(o, "status"));
	cr_expect_eq(json_get_int(o, "metadata/generation", 0), 1);
	json_object_put(o);
	cr_assert_eq(say("PATCH", THINGS "/a/status",
			     "{\"spec\":{\"n\":2},\"status\":{\"n\":3,\"z\":1}}", &o),
		200);
	cr_expect_eq(json_get_int(o, "spec/n", 0), 1);
	cr_expect_eq(json_get_int(o, "status/n", 0), 3);
	cr_expect_null(json_get(o, "status/z"));
	cr_expect_eq(json_get_int(o, "metadata/generation", 0), 1);
	json_object_put(o);
	refused("PATCH", THINGS "/a/status", "{\"status\":{\"n\":\"x\"}}", 422,
		"Thing.example.io \"a\" is invalid: [status.n: Invalid value: must be of type integer, not string, <nil>: Invalid value: the rules were not checked: correct the fields above first]");
	cr_assert_eq(
		say("PATCH", THINGS "/a", "{\"spec\":{\"n\":2},\"status\":{\"n\":4}}", &o), 200);
	cr_expect_eq(json_get_int(o, "status/n", 0), 3);
	cr_expect_eq(json_get_int(o, "metadata/generation", 0), 2);
	json_object_put(o);
}

/* ---- metadata of any type */

/* json-c aborts when it is asked for the members of a number. */
static const struct {
	int code;
	const char *meta;
} typed[] = {{201, "\"managedFields\":[null]"}, {400, "\"managedFields\":[1]"},
	{400, "\"managedFields\":[[]]"}, {400, "\"managedFields\":{}"},
	{400, "\"managedFields\":[{\"manager\":1}]"},
	{201, "\"managedFields\":[{\"fieldsV1\":[null]}]"}, {400, "\"labels\":[]"},
	{400, "\"labels\":{\"a\":[]}"}, {201, "\"labels\":{\"a\":null}"},
	{400, "\"annotations\":1"}, {400, "\"annotations\":{\"a\":true}"},
	{400, "\"finalizers\":{}"}, {400, "\"finalizers\":[1]"}, {400, "\"ownerReferences\":[[]]"},
	{400, "\"ownerReferences\":[{\"uid\":1}]"}, {422, "\"ownerReferences\":[null]"},
	{400, "\"generation\":\"x\""}, {400, "\"creationTimestamp\":{}"}, {400, "\"selfLink\":[]"}};

Test(apireq_admit, metadata_of_a_wrong_type_is_refused_for_every_kind)
{
	static const char *const of[][2] = {{THINGS, THING},
		{NS "/configmaps", "\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\""}};

	for (size_t k = 0; k < ARRAY_LEN(of); k++)
		for (size_t i = 0; i < ARRAY_LEN(typed); i++) {
			cleanup_free char *name = xasprintf("t%zu", i),
					  *body = xasprintf(
						  "{%s,\"metadata\":{\"name\":\"%s\",%s}}",
						  of[k][1], name, typed[i].meta);

			cr_expect_eq(say("POST", of[k][0], body, NULL), typed[i].code, "%s", body);
		}
}

Test(apireq_admit, metadata_of_a_wrong_type_is_refused_by_a_patch_and_a_status)
{
	static const char entry[] =
		"[{\"op\":\"add\",\"path\":\"/metadata/managedFields\",\"value\":[1]}]";

	cr_assert_eq(say("POST", THINGS, NEW("\"spec\":{}"), NULL), 201);
	cr_expect_eq(ask(s, "PATCH", THINGS "/a", JSON_PATCH, entry, NULL), 422);
	cr_expect_eq(ask(s, "PATCH", THINGS "/a/status", JSON_PATCH, entry, NULL), 422);
	cr_expect_eq(say("PATCH", THINGS "/a/status", "{\"metadata\":{\"labels\":1}}", NULL), 422);
	cr_expect_eq(say("PATCH", THINGS "/a", "{\"metadata\":1}", NULL), 422);
	cr_expect_eq(say("PATCH", THINGS "/a", "{\"metadata\":{\"managedFields\":[null]}}", NULL),
		200, "as an empty entry: nobody manages it");
}

/* ---- applies */

Test(apireq_admit, an_apply_of_a_field_that_no_schema_has_is_refused)
{
	cleanup_json struct json_object *o = NULL;

	cr_expect_eq(
		ask(s, "PATCH", NS "/configmaps/c" MANAGER, APPLY,
			"{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"c\"},\"dat\":{}}",
			&o),
		500);
	cr_expect_str_eq(json_get_str(o, "message"),
		"failed to create typed patch object (/c; /v1, Kind=ConfigMap): .dat: field not declared in schema");
}
