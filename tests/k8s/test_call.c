/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>

#include "fake/transport.h"
#include "tec/base/json.h"
#include "tec/base/metric.h"
#include "tec/k8s/call.h"

#define MACHINES "/apis/trusted-execution-clusters.io/v1alpha1/namespaces/ns/machines"
#define SECRETS  "/api/v1/namespaces/ns/secrets"

static struct loop *l;
static struct fake_transport *f;
static struct k8s_transport *t;
static struct op_scope ops;

static struct {
	const char *cached; /* its resourceVersion */
	unsigned n;
	struct err err;
	bool object, already_exists;
	char name[64], uid[64];
} got;

static void on_result(void *arg, const struct err *err, const struct k8s_result *r)
{
	const char *name = r->object ? json_get_str(r->object, "metadata/name") : NULL;

	got.n++;
	got.err = *err;
	got.object = r->object != NULL;
	got.already_exists = r->already_exists;
	got.cached = r->cached ? r->cached->rv : NULL;
	snprintf(got.name, sizeof(got.name), "%s", name ? name : "");
	snprintf(got.uid, sizeof(got.uid), "%s", r->uid ? r->uid : "none");
}

static void setup(void)
{
	l = loop_new();
	f = fake_transport_new(l);
	t = fake_transport_seam(f);
	memset(&got, 0, sizeof(got));
}

static void teardown(void)
{
	op_scope_cancel(&ops);
	fake_transport_free(f);
	loop_free(l);
	metric_reset_all();
}

TestSuite(k8s_call, .init = setup, .fini = teardown);

static struct json_object *obj(const char *text)
{
	struct err err = ERR_INIT;
	struct json_object *o = json_parse(text, strlen(text), &json_limits_object, &err);

	cr_assert(o, "%s", err.text);
	return o;
}

static void expect(const char *method, const char *path, int status, const char *body)
{
	fake_expect_answer(fake_transport_expect(f, method, path), status, body);
}

/* The one request was sent with this content type and body, and came back. */
static void sent(const char *verb, const char *type, const char *body)
{
	const struct fake_request *r = fake_transport_last(f);

	cr_assert_str_eq(r->verb, verb);
	if (type)
		cr_assert_str_eq(r->content_type, type);
	else
		cr_assert_null(r->content_type);
	if (body)
		cr_assert_str_eq(r->body, body);
	else
		cr_assert_null(r->body);
	cr_assert_eq(got.n, 0, "done before the call returned");
	loop_drain(l);
	cr_assert_eq(got.n, 1);
}

Test(k8s_call, get)
{
	expect("GET", SECRETS "/x", 200,
		"{\"metadata\":{\"name\":\"x\"},\"data\":{\"k\":\"c2VjcmV0\"}}");
	(void)k8s_call_get(t, &ops, &kobj_secret, "ns", "x", on_result, NULL);
	sent("get", NULL, NULL);
	cr_assert_eq(got.err.kind, ERR_NONE, "%s", got.err.text);
	cr_assert_str_eq(got.name, "x");
	cr_assert_str_eq(fake_transport_last(f)->resource, "secrets");
}

static struct kobj *extract(struct json_object *o, struct err *err)
{
	cleanup_kobj_pack struct kobj_pack p = KOBJ_PACK_INIT;
	struct kobj fixed = {0};

	return kobj_meta_read(&p, o, &fixed, err) == 0 ? kobj_pack_finish(&p, &fixed, sizeof(fixed))
						       : NULL;
}

#define OBJECT(uid, rv)                                                                            \
	"{\"metadata\":{\"name\":\"m\",\"uid\":\"" uid "\",\"resourceVersion\":\"" rv "\"}}"

/* The cache holds 7 of u; NULL: the answer was read. */
static const struct {
	const char *answer, *cached;
} answers[] = {
	{OBJECT("u", "7"), "7"},
	{OBJECT("u", "8"), NULL},
	{OBJECT("u", "6"), NULL},
	{OBJECT("v", "7"), NULL},
	{"{\"metadata\":{\"name\":\"other\",\"uid\":\"u\",\"resourceVersion\":\"7\"}}", NULL},
	{"{\"metadata\":{\"name\":\"m\"}}", NULL},
};

Test(k8s_call, an_answer_that_the_cache_has_is_not_read_again)
{
	static const struct k8s_cache_type type = {extract, sizeof(struct kobj), NULL, 0};
	struct k8s_cache *cache = k8s_cache_new(&type);
	struct json_object *o = obj(OBJECT("u", "7"));

	k8s_cache_put(cache, o);
	json_object_put(o);
	for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
		struct op *op;

		expect("GET", MACHINES "/m", 200, answers[i].answer);
		op = k8s_call_get(t, &ops, &kobj_machine, "ns", "m", on_result, NULL);
		k8s_call_unless_cached(op, cache);
		got.n = 0;
		loop_drain(l);
		cr_expect_eq(got.n, 1);
		cr_expect(!err_is_set(&got.err), "%s", got.err.text);
		cr_expect_eq(got.object, answers[i].cached == NULL, "answer %zu", i);
		cr_expect(str_eq(got.cached, answers[i].cached), "answer %zu", i);
	}
	/* Cut short, it is no answer, whatever it begins with. */
	expect("GET", MACHINES "/m", 200,
		"{\"metadata\":{\"name\":\"m\",\"uid\":\"u\",\"resourceVersion\":\"7\"}");
	k8s_call_unless_cached(
		k8s_call_get(t, &ops, &kobj_machine, "ns", "m", on_result, NULL), cache);
	loop_drain(l);
	cr_expect_eq(got.err.kind, ERR_INVALID);
	cr_expect_null(got.cached);
	k8s_cache_free(cache);
}

static void answer_with(const char *head, size_t n, const char *tail)
{
	cleanup_strbuf struct strbuf s = STRBUF_INIT;

	strbuf_adds(&s, head);
	for (size_t i = 0; i < n; i++)
		strbuf_adds(&s, "\\u0001");
	strbuf_adds(&s, tail);
	fake_expect_answer(fake_transport_expect(f, "GET", SECRETS "/a"), 200, strbuf_str(&s));
	fake_transport_pieces(f, 16384);
	k8s_call_get(t, &ops, &kobj_secret, "ns", "a", on_result, NULL);
	loop_drain(l);
}

Test(k8s_call, an_object_grown_by_what_nobody_reads_is_read)
{
	answer_with("{\"metadata\":{\"name\":\"a\",\"annotations\":{\"x\":\"", 420000,
		"\"}},\"data\":{\"root\":\"eA==\"}}");
	cr_expect_eq(got.n, 1);
	cr_expect(!err_is_set(&got.err), "%s", got.err.text);
	cr_expect(got.object);
	cr_expect_str_eq(got.name, "a");
}

Test(k8s_call, an_object_too_large_is_named)
{
	answer_with("{\"metadata\":{\"name\":\"a\"},\"data\":{\"root\":\"", 420000, "\"}}");
	cr_expect_eq(got.n, 1);
	cr_expect_eq(got.err.kind, ERR_INVALID);
	cr_expect(strstr(got.err.text, "a is larger than 2 MiB and cannot be read"), "%s",
		got.err.text);
	cr_expect_not(got.object);
}

Test(k8s_call, create_posts_to_the_collection)
{
	cleanup_json struct json_object *o =
		obj("{\"kind\":\"Machine\",\"metadata\":{\"name\":\"m\"}}");

	expect("POST", MACHINES, 201, "{\"metadata\":{\"name\":\"m\"}}");
	(void)k8s_call_create(t, &ops, &kobj_machine, "ns", o, 4321, on_result, NULL);
	cr_assert_eq(fake_transport_last(f)->deadline_ms, 4321);
	sent("create", "application/json", "{\"kind\":\"Machine\",\"metadata\":{\"name\":\"m\"}}");
	cr_assert(got.object);
}

Test(k8s_call, create_only_takes_an_object_and_keeps_none)
{
	static const struct {
		int status;
		const char *body;
		enum err_kind kind;
		bool exists;
		const char *uid; /* NULL: none is given */
	} rows[] = {
		{201, "{\"metadata\":{\"name\":\"m\",\"resourceVersion\":\"7\"}}", ERR_NONE, false,
			""},
		{201, "{\"metadata\":{\"uid\":\"u-1\",\"resourceVersion\":\"7\"}}", ERR_NONE, false,
			"u-1"},
		{201, "{\"uid\":\"u-1\",\"metadata\":{\"resourceVersion\":\"7\"}}", ERR_NONE, false,
			""},
		{201, "{\"metadata\":{\"uid\":\"u-1\"}}", ERR_INVALID, false, NULL},
		{201, "{\"metadata\":{\"name\":\"m\"}}", ERR_INVALID, false, NULL},
		{201, "{\"resourceVersion\":\"7\"}", ERR_INVALID, false, NULL},
		{201, "{\"metadata\":{\"resourceVersion\":\"7\"", ERR_INVALID, false, NULL},
		{200, "<html>", ERR_INVALID, false, NULL},
		{201, "", ERR_INVALID, false, NULL},
		{409, "{\"kind\":\"Status\",\"reason\":\"AlreadyExists\"}", ERR_CONFLICT, true,
			NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		cleanup_json struct json_object *o = obj("{}");

		got.n = 0;
		expect("POST", MACHINES, rows[i].status, rows[i].body);
		(void)k8s_call_create_only(t, &ops, &kobj_machine, "ns", o, 4321, on_result, NULL);
		cr_assert_eq(fake_transport_last(f)->deadline_ms, 4321);
		sent("create", "application/json", "{}");
		cr_assert_eq(got.err.kind, rows[i].kind, "row %zu: %s", i, got.err.text);
		cr_assert_eq(got.already_exists, rows[i].exists);
		cr_assert_not(got.object);
		cr_assert_str_eq(got.uid, rows[i].uid ? rows[i].uid : "none");
	}
}

Test(k8s_call, the_text_of_a_secret_goes_out_as_it_is)
{
	expect("POST", SECRETS, 201,
		"{\"metadata\":{\"name\":\"s\"},\"stringData\":{\"a\":\"b\"}}");
	(void)k8s_call_create_secret(
		t, &ops, &kobj_secret, "ns", secret_new_copy("{ \"a\":1}", 8), on_result, NULL);
	sent("create", "application/json", "{ \"a\":1}");
	cr_assert_str_eq(got.name, "s");
	cr_assert_eq(secret_count(), 0);
}

Test(k8s_call, patch_of_a_secret_takes_its_text)
{
	expect("PATCH", SECRETS "/s", 200, "{\"metadata\":{\"name\":\"s\"}}");
	(void)k8s_call_patch_secret(t, &ops, &kobj_secret, "ns", "s",
		secret_new_copy("{ \"a\":1}", 8), on_result, NULL);
	sent("patch", "application/merge-patch+json", "{ \"a\":1}");
	cr_assert_str_eq(got.name, "s");
	cr_assert_eq(secret_count(), 0);
}

Test(k8s_call, already_exists_is_an_answer)
{
	static const struct {
		const char *reason;
		bool exists;
	} rows[] = {{"AlreadyExists", true}, {"Conflict", false}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		cleanup_free char *body =
			xasprintf("{\"kind\":\"Status\",\"reason\":\"%s\"}", rows[i].reason);
		cleanup_json struct json_object *o = obj("{}");

		got.n = 0;
		expect("POST", MACHINES, 409, body);
		(void)k8s_call_create(t, &ops, &kobj_machine, "ns", o, 0, on_result, NULL);
		sent("create", "application/json", "{}");
		cr_assert_eq(got.err.kind, ERR_CONFLICT);
		cr_assert_eq(got.err.http, 409);
		cr_assert_eq(got.already_exists, rows[i].exists);
		cr_assert_not(got.object);
	}
}

#define APPLY_BODY                                                                                 \
	"{\"apiVersion\":\"trusted-execution-clusters.io/v1alpha1\",\"kind\":\"Machine\","         \
	"\"metadata\":{\"name\":\"m\",\"uid\":\"u\"}}"

Test(k8s_call, apply_carries_the_field_manager_and_force)
{
	cleanup_json struct json_object *o = obj(APPLY_BODY);

	expect("PATCH", MACHINES "/m?fieldManager=tec-operator&force=true", 200, APPLY_BODY);
	(void)k8s_call_apply(t, &ops, &kobj_machine, "ns", o, on_result, NULL);
	sent("apply", "application/apply-patch+yaml", APPLY_BODY);
	cr_assert_str_eq(got.name, "m");
}

Test(k8s_call, apply_status_goes_to_the_subresource)
{
	cleanup_json struct json_object *o = obj(APPLY_BODY);

	expect("PATCH", MACHINES "/m/status?fieldManager=tec-operator&force=true", 200, APPLY_BODY);
	(void)k8s_call_apply_status(t, &ops, &kobj_machine, "ns", o, on_result, NULL);
	sent("apply", "application/apply-patch+yaml", APPLY_BODY);
}

Test(k8s_call, merge_patch)
{
	static const char body[] = "{\"metadata\":{\"resourceVersion\":\"7\",\"finalizers\":null}}";
	cleanup_json struct json_object *o = obj(body);

	expect("PATCH", MACHINES "/m", 200, "{}");
	(void)k8s_call_merge_patch(t, &ops, &kobj_machine, "ns", "m", o, on_result, NULL);
	sent("patch", "application/merge-patch+json", body);
	cr_assert_eq(got.err.kind, ERR_NONE);
}

#ifndef __SANITIZE_ADDRESS__
Test(k8s_call, merge_patch_without_resource_version_is_a_bug, .signal = SIGABRT)
{
	cleanup_json struct json_object *o = obj("{\"metadata\":{}}");

	(void)k8s_call_merge_patch(t, &ops, &kobj_machine, "ns", "m", o, on_result, NULL);
}
#endif

#define DELETE_BODY                                                                                \
	"{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"preconditions\":{\"uid\":\"u-1\"},"   \
	"\"propagationPolicy\":\"Background\"}"

static const struct {
	int status;
	const char *body;
	enum err_kind kind;
} deletes[] = {
	{200, "{\"kind\":\"Status\",\"status\":\"Success\"}", ERR_NONE},
	{404, "{\"kind\":\"Status\",\"reason\":\"NotFound\"}", ERR_NOT_FOUND},
	{409,
		"{\"kind\":\"Status\",\"reason\":\"Conflict\",\"message\":\"Operation cannot be fulfilled on machines \\\"m\\\": "
		"Precondition failed: UID in precondition: u-1, UID in object meta: u-2\"}",
		ERR_NOT_FOUND},
	{409,
		"{\"kind\":\"Status\",\"reason\":\"Conflict\",\"message\":\"Operation cannot be fulfilled on Secret \\\"m\\\": the "
		"UID in the precondition (u-1) does not match the UID in record (u-2). The object might have been deleted and "
		"then recreated\"}",
		ERR_NOT_FOUND},
	{409, "{\"kind\":\"Status\",\"reason\":\"Conflict\",\"message\":\"other\"}", ERR_CONFLICT},
	{409, "junk", ERR_CONFLICT},
	{409, "", ERR_CONFLICT},
};

Test(k8s_call, delete_has_a_uid_precondition)
{
	for (size_t i = 0; i < ARRAY_LEN(deletes); i++) {
		got.n = 0;
		expect("DELETE", MACHINES "/m", deletes[i].status, deletes[i].body);
		(void)k8s_call_delete(
			t, &ops, &kobj_machine, "ns", "m", "u-1", NULL, on_result, NULL);
		sent("delete", "application/json", DELETE_BODY);
		cr_assert_eq(got.err.kind, deletes[i].kind, "%zu: %s", i, got.err.text);
	}
}

Test(k8s_call, delete_of_the_version_that_was_seen)
{
	got.n = 0;
	expect("DELETE", MACHINES "/m", 409, "{\"reason\":\"Conflict\",\"message\":\"other\"}");
	(void)k8s_call_delete(t, &ops, &kobj_machine, "ns", "m", "u-1", "17", on_result, NULL);
	sent("delete", "application/json",
		"{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"preconditions\":{\"uid\":\"u-1\","
		"\"resourceVersion\":\"17\"},\"propagationPolicy\":\"Background\"}");
	cr_assert_eq(got.err.kind, ERR_CONFLICT);
}

Test(k8s_call, answers_that_are_no_object_are_invalid)
{
	static const char *const bodies[] = {"[]", "5", "null", "{", "<html>", "{\"a\":1}{}"};

	for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
		got.n = 0;
		expect("GET", SECRETS "/x", 200, bodies[i]);
		(void)k8s_call_get(t, &ops, &kobj_secret, "ns", "x", on_result, NULL);
		sent("get", NULL, NULL);
		cr_assert_eq(got.err.kind, ERR_INVALID, "%s", bodies[i]);
		cr_assert_not(got.object);
	}
	got.n = 0;
	expect("GET", SECRETS "/x", 200, "");
	(void)k8s_call_get(t, &ops, &kobj_secret, "ns", "x", on_result, NULL);
	sent("get", NULL, NULL);
	cr_assert_eq(got.err.kind, ERR_NONE);
	cr_assert_not(got.object);
}

Test(k8s_call, errors_pass_and_cancelled_calls_are_silent)
{
	struct op *op = NULL;

	fake_expect_fail(fake_transport_expect(f, "GET", SECRETS "/x"), ERR_TRANSIENT, "no route");
	(void)k8s_call_get(t, &ops, &kobj_secret, "ns", "x", on_result, NULL);
	sent("get", NULL, NULL);
	cr_assert_eq(got.err.kind, ERR_TRANSIENT);
	got.n = 0;
	(void)fake_transport_expect(f, "GET", SECRETS "/x");
	(void)op_hold(&op, k8s_call_get(t, &ops, &kobj_secret, "ns", "x", on_result, NULL));
	loop_drain(l);
	op_cancel(&op);
	loop_drain(l);
	cr_assert_eq(got.n, 0);
}

Test(k8s_call, names_are_encoded_in_the_path)
{
	expect("GET", SECRETS "/a%2F..%3Fx", 404, "");
	(void)k8s_call_get(t, &ops, &kobj_secret, "ns", "a/..?x", on_result, NULL);
	sent("get", NULL, NULL);
	cr_assert_eq(got.err.kind, ERR_NOT_FOUND);
}
