/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "apireq/things.h"

static struct store_objects *s;
static struct json_object *last; /* of the last request that wants it */
static struct json_object *now;  /* what there() gave */

static void up(void)
{
	s = things_new(NULL);
}

static void down(void)
{
	json_object_put(last);
	json_object_put(now);
	last = now = NULL;
	store_objects_free(s);
}

TestSuite(apireq_request, .init = up, .fini = down);

static int request(const char *method, const char *path, const char *type, const char *body)
{
	json_object_put(last);
	return ask(s, method, path, type, body, &last);
}

static int make(const char *meta, const char *rest)
{
	cleanup_free char *body =
		xasprintf("{" THING ",\"metadata\":{\"name\":\"a\"%s}%s}", meta, rest);

	return request("POST", THINGS, NULL, body);
}

static struct json_object *there(void)
{
	json_object_put(now);
	return now = store_objects_get(s, A_THING("a"));
}

/* A refusal is a Status object as kube-apiserver writes it. */
static void expect_status(int code, const char *reason, const char *message, const char *details)
{
	cr_expect_str_eq(json_get_str(last, "kind"), "Status");
	cr_expect_str_eq(json_get_str(last, "apiVersion"), "v1");
	cr_expect_str_eq(json_get_str(last, "status"), "Failure");
	cr_expect_str_eq(json_get_str(last, "reason"), reason);
	cr_expect_str_eq(json_get_str(last, "message"), message);
	cr_expect_eq(json_get_int(last, "code", 0), code);
	if (details)
		same_json(json_get(last, "details"), details);
	else
		cr_expect_null(json_get(last, "details"));
}

Test(apireq_request, a_patch_keeps_kind_and_version)
{
	struct store_objects *s = things_new(NULL);
	static const struct {
		int code;
		const char *patch;
	} rows[] = {{422, "[{\"op\":\"remove\",\"path\":\"/kind\"}]"},
		{400, "[{\"op\":\"remove\",\"path\":\"/apiVersion\"}]"},
		{422, "[{\"op\":\"replace\",\"path\":\"/kind\",\"value\":\"Other\"}]"},
		{422, "[{\"op\":\"replace\",\"path\":\"/kind\",\"value\":5}]"},
		{422, "[{\"op\":\"replace\",\"path\":\"/apiVersion\",\"value\":\"example.io/v2\"}]"},
		{422, "[{\"op\":\"replace\",\"path\":\"/apiVersion\",\"value\":\"a/b/c\"}]"},
		{200, "[{\"op\":\"replace\",\"path\":\"/kind\",\"value\":\"Thing\"}]"}};

	cr_assert_eq(
		ask(s, "POST", THINGS, NULL, "{" THING ",\"metadata\":{\"name\":\"a\"}}", NULL),
		201);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		cr_expect_eq(ask(s, "PATCH", THINGS "/a", JSON_PATCH, rows[i].patch, NULL),
			rows[i].code, "%s", rows[i].patch);
	cr_expect_eq(ask(s, "PATCH", THINGS "/a", MERGE, "{\"kind\":null}", NULL), 422);
	store_objects_free(s);
}

Test(apireq_request, refusals_say_what_kube_apiserver_says)
{
	cr_expect_eq(request("GET", THINGS "/a", NULL, NULL), 404);
	expect_status(404, "NotFound", "things.example.io \"a\" not found",
		"{\"name\":\"a\",\"group\":\"example.io\",\"kind\":\"things\"}");
	cr_expect_eq(request("DELETE", SECRETS "/s", NULL, NULL), 404);
	expect_status(404, "NotFound", "secrets \"s\" not found",
		"{\"name\":\"s\",\"kind\":\"secrets\"}");
	cr_expect_eq(make("", ""), 201);
	cr_expect_eq(make("", ""), 409);
	expect_status(409, "AlreadyExists", "things.example.io \"a\" already exists",
		"{\"name\":\"a\",\"group\":\"example.io\",\"kind\":\"things\"}");
	cr_expect_eq(
		request("PATCH", THINGS "/a", MERGE, "{\"metadata\":{\"resourceVersion\":\"1\"}}"),
		409);
	expect_status(409, "Conflict",
		"Operation cannot be fulfilled on things.example.io \"a\": the object has been modified; please apply your changes to the latest version and try again",
		"{\"name\":\"a\",\"group\":\"example.io\",\"kind\":\"things\"}");
	cr_expect_eq(
		request("PATCH", THINGS "/a", MERGE,
			"{\"metadata\":{\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"K\",\"name\":\"a\",\"uid\":\"u\",\"controller\":true},{\"apiVersion\":\"v1\",\"kind\":\"K\",\"name\":\"b\",\"uid\":\"u\",\"controller\":true}]}}"),
		422);
	expect_status(422, "Invalid",
		"Thing.example.io \"a\" is invalid: metadata.ownerReferences: Invalid value: only one owner can be the controller, found 2",
		"{\"name\":\"a\",\"group\":\"example.io\",\"kind\":\"Thing\",\"causes\":[{\"reason\":\"FieldValueInvalid\","
		"\"message\":\"Invalid value: only one owner can be the controller, found 2\",\"field\":\"metadata.ownerReferences\"}]}");
	cr_expect_eq(request("PATCH", THINGS "/a", MERGE, "{\"metadata\":{\"uid\":\"x\"}}"), 422);
	cr_expect_str_eq(json_get_str(last, "message"),
		"Thing.example.io \"a\" is invalid: metadata.uid: Invalid value: \"x\": field is immutable");
	cr_expect_eq(request("PATCH", THINGS "/b" MANAGER, APPLY,
			     "{" THING ",\"metadata\":{\"uid\":\"x\"}}"),
		409);
	cr_expect_str_eq(json_get_str(last, "message"),
		"Operation cannot be fulfilled on things.example.io \"b\": uid mismatch: the provided object specified uid x, and no existing object was found");
	cr_expect_eq(request("DELETE", THINGS "/a", NULL,
			     "{\"preconditions\":{\"resourceVersion\":\"1\"}}"),
		409);
	expect_status(409, "Conflict",
		"Operation cannot be fulfilled on Thing.example.io \"a\": the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (1001). The object might have been modified",
		"{\"name\":\"a\",\"group\":\"example.io\",\"kind\":\"Thing\"}");
	cr_expect_eq(request("PATCH", THINGS "/a", APPLY, "{" THING "}"), 422);
	expect_status(422, "Invalid",
		"PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch",
		"{\"group\":\"meta.k8s.io\",\"kind\":\"PatchOptions\",\"causes\":[{\"reason\":\"FieldValueRequired\","
		"\"message\":\"Required value: is required for apply patch\",\"field\":\"fieldManager\"}]}");
	cr_expect_eq(request("GET", SECRETS "/s/status", NULL, NULL), 404);
	expect_status(404, "NotFound", "the server could not find the requested resource", "{}");
}

static const struct {
	int code;
	const char *method, *path, *type, *body;
} hostile[] = {
	/* bodies */
	{400, "POST", THINGS, NULL, NULL},
	{400, "POST", THINGS, NULL, ""},
	{400, "POST", THINGS, NULL, "{"},
	{400, "POST", THINGS, NULL, "[]"},
	{400, "POST", THINGS, NULL, "null"},
	{422, "POST", THINGS, NULL, "{" THING "}"},
	{400, "POST", THINGS, NULL, "{" THING ",\"metadata\":5}"},
	{400, "POST", THINGS, NULL, "{\"kind\":\"Thing\",\"metadata\":{\"name\":\"b\"}}"},
	{400, "POST", THINGS, NULL,
		"{\"kind\":5,\"apiVersion\":\"x\",\"metadata\":{\"name\":\"b\"}}"},
	{400, "POST", THINGS, NULL, "{" THING ",\"metadata\":{\"name\":[]}}"},
	{422, "POST", THINGS, NULL, "{" THING ",\"metadata\":{\"name\":\"../b\"}}"},
	{422, "POST", THINGS, NULL, "{" THING ",\"metadata\":{\"name\":\"\"}}"},
	{500, "POST", THINGS, NULL,
		"{" THING ",\"metadata\":{\"name\":\"b\",\"resourceVersion\":\"1\"}}"},
	{400, "POST", THINGS, NULL, "{" THING ",\"metadata\":{\"name\":\"b\",\"labels\":[]}}"},
	{400, "POST", THINGS, NULL,
		"{" THING ",\"metadata\":{\"name\":\"b\",\"labels\":{\"a\":1}}}"},
	{422, "PATCH", THINGS "/a", MERGE, "{\"metadata\":5}"},
	{422, "PATCH", THINGS "/a", MERGE, "{\"metadata\":null,\"kind\":null}"},
	{422, "PATCH", THINGS "/a", MERGE, "{\"kind\":\"Other\"}"},
	{422, "PATCH", THINGS "/a", MERGE, "{\"metadata\":{\"finalizers\":\"x\"}}"},
	{422, "PATCH", THINGS "/a", MERGE, "{\"metadata\":{\"finalizers\":[1]}}"},
	{422, "PATCH", THINGS "/a", MERGE, "{\"metadata\":{\"ownerReferences\":[\"x\"]}}"},
	{422, "PATCH", THINGS "/a", MERGE, "{\"metadata\":{\"annotations\":{\"a\":{}}}}"},
	{500, "PATCH", THINGS "/a" MANAGER, APPLY, "{" THING ",\"status\":{},\"conditions\":[1]}"},
	{500, "PATCH", THINGS "/a" MANAGER, APPLY, "{" THING ",\"metadata\":[]}"},
	{400, "PATCH", THINGS "/a" MANAGER, APPLY, "{\"metadata\":{}}"},
	{422, "PATCH", THINGS "/a", APPLY, "{" THING "}"},
	{422, "PATCH", THINGS "/B" MANAGER, APPLY, "{" THING "}"},
	{400, "DELETE", THINGS "/a", NULL, "[1]"},
	{400, "DELETE", THINGS "/a", NULL, "{\"preconditions\":"},
	/* names, methods, types, subresources */
	{400, "PUT", THINGS "/a", NULL, "{" THING ",\"metadata\":{\"name\":\"b\"}}"},
	{404, "PUT", THINGS "/b", NULL, "{" THING "}"},
	{404, "PATCH", THINGS "/b", MERGE, "{}"},
	{404, "PATCH", THINGS "/b/status" MANAGER, APPLY, "{" THING "}"},
	{404, "GET", THINGS "/a/scale", NULL, NULL},
	{404, "PATCH", THINGS "/a/scale", MERGE, "{}"},
	{404, "PATCH", SECRETS "/s/status", MERGE, "{}"},
	{405, "POST", THINGS "/a", NULL, "{}"},
	{405, "PUT", THINGS, NULL, "{}"},
	{405, "BREW", THINGS "/a", NULL, "{}"},
	{415, "PATCH", THINGS "/a", NULL, "{}"},
	{415, "PATCH", THINGS "/a", "application/strategic-merge-patch+json", "{}"},
	{400, "PATCH", THINGS "/a", JSON_PATCH, "{}"},
	{400, "PATCH", THINGS "/a", JSON_PATCH, ""},
	{400, "PATCH", THINGS "/a", JSON_PATCH, "[{"},
	{400, "PATCH", THINGS "/a", JSON_PATCH, "[{\"op\":1}]"},
	{422, "PATCH", THINGS "/a", JSON_PATCH, "[{\"op\":\"remove\",\"path\":\"/nothing\"}]"},
	{422, "PATCH", THINGS "/a", JSON_PATCH,
		"[{\"op\":\"replace\",\"path\":\"\",\"value\":[]}]"},
	{422, "PATCH", THINGS "/a", JSON_PATCH,
		"[{\"op\":\"replace\",\"path\":\"\",\"value\":{}}]"},
	{400, "PATCH", THINGS "/a", JSON_PATCH,
		"[{\"op\":\"replace\",\"path\":\"/metadata/name\",\"value\":\"b\"}]"},
	{422, "PATCH", THINGS "/a", JSON_PATCH,
		"[{\"op\":\"replace\",\"path\":\"/metadata/labels\",\"value\":{\"x\":1}}]"},
	{409, "PATCH", THINGS "/a", JSON_PATCH,
		"[{\"op\":\"replace\",\"path\":\"/metadata/resourceVersion\",\"value\":\"9\"}]"},
	{422, "PATCH", THINGS "/a", JSON_PATCH,
		"[{\"op\":\"replace\",\"path\":\"/metadata/uid\",\"value\":\"x\"}]"},
	{404, "PATCH", THINGS "/nothing", JSON_PATCH, "[]"},
	{415, "PATCH", THINGS "/a", "application/merge-patch+jsonx", "{}"},
	{400, "GET", THINGS "?limit=-1", NULL, NULL},
	{400, "GET", THINGS "?limit=1&continue=v0", NULL, NULL},
	/* preconditions */
	{422, "PATCH", THINGS "/a", MERGE, "{\"metadata\":{\"uid\":\"x\"}}"},
	{422, "PUT", THINGS "/a", NULL, "{" THING ",\"metadata\":{\"uid\":\"x\"}}"},
	{409, "PUT", THINGS "/a", NULL, "{" THING ",\"metadata\":{\"resourceVersion\":\"1\"}}"},
	{422, "PATCH", THINGS "/a" MANAGER, APPLY, "{" THING ",\"metadata\":{\"uid\":\"x\"}}"},
	{409, "PATCH", THINGS "/b" MANAGER, APPLY, "{" THING ",\"metadata\":{\"uid\":\"x\"}}"},
	{409, "DELETE", THINGS "/a", NULL, "{\"preconditions\":{\"uid\":\"x\"}}"},
	{409, "DELETE", THINGS "/a", NULL, "{\"preconditions\":{\"resourceVersion\":\"1\"}}"},
};

Test(apireq_request, hostile_requests_are_refused_and_change_nothing)
{
	uint64_t rv;

	cr_assert_eq(make("", ",\"spec\":{\"n\":1}"), 201);
	rv = store_objects_rv(s);
	for (size_t i = 0; i < ARRAY_LEN(hostile); i++) {
		int code = request(
			hostile[i].method, hostile[i].path, hostile[i].type, hostile[i].body);

		cr_expect_eq(code, hostile[i].code, "%s %s %s: %d %s", hostile[i].method,
			hostile[i].path, hostile[i].body, code, json_get_str(last, "message"));
		cr_expect_str_eq(json_get_str(last, "kind"), "Status");
		cr_expect_eq(json_get_int(last, "code", 0), code);
		cr_expect_eq(store_objects_rv(s), rv, "%s %s", hostile[i].method, hostile[i].path);
	}
}

/* Options in the query and in the body; the causes of all of them. */
static const struct {
	const char *method, *path, *body, *says;
} options[] = {
	{"POST", THINGS "?dryRun=x&dryRun=All", "{" THING "}",
		"CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"x\",\"All\"]: supported values: \"All\""},
	{"PUT", THINGS "/a?fieldManager=a%01&dryRun=&fieldValidation=x", "{" THING "}",
		"UpdateOptions.meta.k8s.io \"\" is invalid: [fieldManager: Invalid value: \"a\\u0001\": must not contain control characters, "
		"dryRun: Unsupported value: [\"\"]: supported values: \"All\", fieldValidation: Unsupported value: \"x\": supported values: "
		"\"\", \"Ignore\", \"Strict\", \"Warn\"]"},
	{"PATCH", THINGS "/a?force=true", "{}",
		"PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified for non-apply patch"},
	{"DELETE", THINGS "/a?propagationPolicy=x", NULL,
		"DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: \"x\": supported values: "
		"\"Foreground\", \"Background\", \"Orphan\", \"nil\""},
	{"DELETE", THINGS,
		"{\"propagationPolicy\":\"Orphan\",\"orphanDependents\":false,\"dryRun\":[5]}",
		"DeleteOptions.meta.k8s.io \"\" is invalid: [propagationPolicy: Invalid value: \"Orphan\": must not be set "
		"together with orphanDependents, dryRun: Unsupported value: [5]: supported values: \"All\"]"},
	{"DELETE", THINGS "/a", "{\"dryRun\":{}}", "dryRun must be of type array, not object"},
	{"DELETE", THINGS "/a", "{\"preconditions\":5}",
		"preconditions must be of type object, not int"},
	{"DELETE", THINGS "/a?gracePeriodSeconds=-", NULL,
		"gracePeriodSeconds must be a whole number"},
};

Test(apireq_request, options_that_cannot_be_are_all_told)
{
	cr_assert_eq(make("", ""), 201);
	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		bool patch = str_eq(options[i].method, "PATCH");
		int code = request(
			options[i].method, options[i].path, patch ? MERGE : NULL, options[i].body);

		cr_expect_eq(code / 100, 4, "%s %s: %d", options[i].method, options[i].path, code);
		cr_expect_str_eq(json_get_str(last, "message"), options[i].says);
	}
	cr_expect_eq(request("DELETE", THINGS "/a", NULL, "{\"dryRun\":[\"All\"]}"), 200);
	cr_expect_eq(request("GET", THINGS "/a", NULL, NULL), 200);
	cr_expect_eq(request("DELETE", THINGS "/a?orphanDependents=x&dryRun=All", NULL, NULL), 200);
	cr_expect(json_get_arr(last, "metadata/finalizers"));
}

Test(apireq_request, what_the_server_decides_no_write_changes)
{
	static const struct {
		const char *method, *type, *path;
	} writes[] = {{"PATCH", MERGE, THINGS "/a"}, {"PUT", NULL, THINGS "/a"},
		{"PATCH", APPLY, THINGS "/a" MANAGER}};
	static const char body[] =
		"{" THING ",\"metadata\":{\"name\":\"a\",\"namespace\":\"ns\","
		"\"creationTimestamp\":\"1970-01-01T00:00:00Z\",\"generation\":9,"
		"\"deletionTimestamp\":\"1970-01-01T00:00:00Z\"},\"spec\":{\"n\":%zu}}";
	cleanup_free char *uid = NULL, *created = NULL;

	cr_assert_eq(make(",\"uid\":\"mine\",\"generation\":7,"
			  "\"deletionTimestamp\":\"1970-01-01T00:00:00Z\","
			  "\"creationTimestamp\":\"1970-01-01T00:00:00Z\",\"namespace\":\"ns\"",
			     ""),
		201);
	uid = xstrdup(json_get_str(there(), "metadata/uid"));
	created = xstrdup(json_get_str(there(), "metadata/creationTimestamp"));
	cr_expect_str_neq(uid, "mine");
	cr_expect_str_neq(created, "1970-01-01T00:00:00Z");
	for (size_t i = 0; i < ARRAY_LEN(writes); i++) {
		cleanup_free char *text = xasprintf(body, i);

		cr_expect_eq(request(writes[i].method, writes[i].path, writes[i].type, text), 200);
		cr_assert_not_null(there());
		cr_expect_eq(json_get_int(there(), "spec/n", -1), (int64_t)i);
		cr_expect_eq(json_get_int(there(), "metadata/generation", 0), (int64_t)i + 2);
		cr_expect_str_eq(json_get_str(there(), "metadata/uid"), uid);
		cr_expect_str_eq(json_get_str(there(), "metadata/creationTimestamp"), created);
		cr_expect_str_eq(json_get_str(there(), "metadata/namespace"), "ns");
		cr_expect_null(json_get(there(), "metadata/deletionTimestamp"));
	}
}

Test(apireq_request, status_is_written_by_its_subresource_only)
{
	static const char body[] =
		"{" THING ",\"metadata\":{\"name\":\"a\"},\"spec\":{\"n\":2},\"status\":{\"x\":2}}";
	static const struct {
		const char *method, *type, *query;
	} writes[] = {{"PATCH", MERGE, ""}, {"PUT", NULL, ""}, {"PATCH", APPLY, MANAGER}};

	for (size_t i = 0; i < ARRAY_LEN(writes); i++) {
		cleanup_free char *path = xasprintf(THINGS "/a%s", writes[i].query);
		cleanup_free char *status = xasprintf(THINGS "/a/status%s", writes[i].query);

		cr_assert_eq(make("", ",\"spec\":{\"n\":1},\"status\":{\"x\":1}"), 201);
		cr_expect_null(json_get(there(), "status"));
		cr_expect_eq(request(writes[i].method, status, writes[i].type, body), 200);
		cr_expect_eq(json_get_int(there(), "status/x", 0), 2);
		cr_expect_eq(json_get_int(there(), "spec/n", 0), 1);
		cr_expect_eq(json_get_int(there(), "metadata/generation", 0), 1);
		cr_expect_eq(
			request("PATCH", THINGS "/a/status", MERGE, "{\"status\":{\"x\":3}}"), 200);
		cr_expect_eq(request(writes[i].method, path, writes[i].type, body), 200);
		cr_expect_eq(json_get_int(there(), "status/x", 0), 3);
		cr_expect_eq(json_get_int(there(), "spec/n", 0), 2);
		cr_expect_eq(request("DELETE", THINGS "/a", NULL, NULL), 200);
		cr_expect_str_eq(json_get_str(last, "status"), "Success");
		cr_expect_not_null(json_get(last, "details/uid"));
	}
}

Test(apireq_request, a_subresource_is_not_deleted_and_no_other_one_is_there)
{
	make("", "");
	cr_expect_eq(request("DELETE", THINGS "/a/status", NULL, NULL), 405);
	cr_expect_not_null(there(), "and its object stays");
	cr_expect_eq(request("GET", THINGS "/a/scale", NULL, NULL), 404);
	cr_expect_str_eq(json_get_str(last, "message"), "things.example.io \"a\" not found");
}

Test(apireq_request, a_patch_and_an_apply_that_change_nothing_are_no_write)
{
	static const char body[] =
		"{" THING ",\"metadata\":{\"name\":\"a\",\"labels\":{\"l\":\"1\"}}}";
	uint64_t rv;

	cr_expect_eq(request("PATCH", THINGS "/a" MANAGER, APPLY, body), 201);
	rv = store_objects_rv(s);
	cr_expect_eq(request("PATCH", THINGS "/a" MANAGER, APPLY, body), 200);
	cr_expect_eq(request("PATCH", THINGS "/a", MERGE, "{}"), 200);
	cr_expect_eq(request("PATCH", THINGS "/a", "application/merge-patch+json; charset=utf-8",
			     "{\"metadata\":{\"labels\":{\"l\":\"1\"}}}"),
		200);
	cr_expect_eq(store_objects_rv(s), rv);
	cr_expect_eq(request("PATCH", THINGS "/a" MANAGER, APPLY, "{" THING "}"), 200);
	cr_expect_null(json_get(there(), "metadata/labels"), "not applied any more");
}

Test(apireq_request, finalizers_hold_and_none_is_added_then)
{
	cr_expect_eq(make(",\"finalizers\":[\"f/g\"]", ""), 201);
	cr_expect_eq(request("DELETE", THINGS "/a", NULL, "{}"), 200);
	cr_expect_not_null(json_get(last, "metadata/deletionTimestamp"), "the object answers");
	cr_expect_eq(
		request("PATCH", THINGS "/a", MERGE, "{\"metadata\":{\"deletionTimestamp\":null}}"),
		200);
	cr_expect_not_null(json_get(there(), "metadata/deletionTimestamp"));
	cr_expect_eq(request("PATCH", THINGS "/a", MERGE,
			     "{\"metadata\":{\"finalizers\":[\"f/g\",\"new\"]}}"),
		422);
	cr_expect_str_eq(json_get_str(last, "message"),
		"Thing.example.io \"a\" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted: new");
	cr_expect_eq(
		request("PATCH", THINGS "/a", MERGE, "{\"metadata\":{\"finalizers\":[]}}"), 200);
	cr_expect_null(there());
}

Test(apireq_request, an_immutable_secret_keeps_its_data)
{
	static const char *const changes[] = {"{\"data\":{\"k\":\"Yg==\"}}", "{\"data\":null}",
		"{\"immutable\":false}", "{\"immutable\":null}"};

	store_objects_free(s);
	s = objects_new(NULL, things_and_data());
	cr_assert_eq(request("POST", SECRETS, NULL,
			     "{" SECRET ",\"metadata\":{\"name\":\"s\"},\"immutable\":true,"
			     "\"data\":{\"k\":\"YQ==\"}}"),
		201);
	for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
		cr_expect_eq(
			request("PATCH", SECRETS "/s", MERGE, changes[i]), 422, "%s", changes[i]);
		cr_expect_str_eq(json_get_str(last, "details/kind"), "Secret");
		cr_expect(strstr(json_get_str(last, "message"),
			": Forbidden: field is immutable when `immutable` is set"));
	}
	cr_expect_eq(
		request("PATCH", SECRETS "/s", MERGE, "{\"metadata\":{\"labels\":{\"a\":\"1\"}}}"),
		200);
}

Test(apireq_request, pages_make_up_the_whole_list)
{
	cleanup_free char *path = xstrdup(SECRETS "?limit=7");
	cleanup_strbuf struct strbuf names = STRBUF_INIT;
	unsigned pages = 0;

	for (unsigned i = 0; i < 20; i++) {
		cleanup_free char *body =
			xasprintf("{" SECRET ",\"metadata\":{\"name\":\"s%02u\"}}", i);

		cr_assert_eq(request("POST", SECRETS, NULL, body), 201);
	}
	cr_assert_eq(make("", ""), 201);
	for (const char *token = ""; token; pages++) {
		struct json_object *items;

		cr_assert_eq(request("GET", path, NULL, NULL), 200);
		items = json_get_arr(last, "items");
		for (size_t i = 0; i < json_object_array_length(items); i++) {
			struct json_object *o = json_object_array_get_idx(items, i);

			strbuf_adds(&names, json_get_str(o, "metadata/name"));
			cr_expect_null(json_get(o, "kind"), "a built-in kind");
		}
		token = json_get_str(last, "metadata/continue");
		cr_expect_eq(json_get_int(last, "metadata/remainingItemCount", 0), pages == 0 ? 13
										   : pages == 1
											   ? 6
											   : 0);
		free(path);
		path = NULL;
		if (token) {
			strbuf_addf(&names, ",");
			path = xasprintf(SECRETS "?limit=7&continue=%s", token);
		}
	}
	cr_expect_eq(pages, 3);
	cr_expect_str_eq(strbuf_str(&names),
		"s00s01s02s03s04s05s06,s07s08s09s10s11s12s13,s14s15s16s17s18s19");
	cr_expect_eq(request("GET", THINGS, NULL, NULL), 200);
	cr_expect_str_eq(
		json_get_str(json_object_array_get_idx(json_get_arr(last, "items"), 0), "kind"),
		"Thing");
	cr_expect_eq(request("GET", SECRETS "?fieldSelector=metadata.name%3Ds03", NULL, NULL), 200);
	cr_expect_eq(json_object_array_length(json_get_arr(last, "items")), 1);
}

/* More than one page of kube-apiserver's, which deletes page by page until nothing is left. */
Test(apireq_request, a_collection_of_any_size_is_deleted_whole)
{
	for (int i = 0; i < 10001; i++) {
		cleanup_free char *name = xasprintf("a%d", i);
		const struct store_key key = {"secrets", "ns", name};

		json_object_put(store_objects_put(s, &key, json_obj()));
	}
	cr_expect_eq(request("DELETE", SECRETS, NULL, NULL), 200);
	cr_expect_eq(store_objects_count(s, "secrets", "ns"), 0);
}
