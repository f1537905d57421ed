/* SPDX-License-Identifier: MIT */
/* Every request of the admin API: what was sent, to the byte, and what an answer means. */
#include "config.h"

#include "kbs/fixture.h"
#include "tec/kbs/admin.h"

#define RESOURCE "/kbs/v0/resource/default/u/root"
#define VALUES   "/kbs/v0/reference-value"

/* It ended, once, and never before the call returned. */
static void assert_ends(enum err_kind kind)
{
	cr_assert_eq(n_done, 0);
	loop_advance(loop, 60000);
	cr_assert_eq(n_done, 1);
	cr_assert_eq(last_err.kind, kind, "%s", last_err.text);
	n_done = 0;
}

/* Request i was this one, to the byte; body NULL: none. */
static void assert_sent(size_t i, const char *method, const char *path, const char *body)
{
	const struct fake_kbs_request *r = fake_kbs_request(kbs, i);

	cr_assert_str_eq(r->method, method);
	cr_assert_str_eq(r->path, path);
	if (!body) {
		cr_assert_null(r->body);
		return;
	}
	cr_assert_eq(r->body_len, strlen(body));
	cr_assert_str_eq(r->body, body);
}

TestSuite(kbs_admin, .init = connected, .fini = disconnected);

/* ---- resources */

static void expect(const char *method, int status, const char *type)
{
	fake_kbs_answer(fake_kbs_expect(kbs, method, RESOURCE), status, type, NULL);
}

Test(kbs_admin, a_put_is_the_bytes_themselves)
{
	static const char value[] =
		"{\"key_type\":\"oct\",\"key\":\"0123456789abcdef0123456789abcdef\"}";
	expect("POST", 200, "");
	(void)kbs_admin_put_resource(t, &ops, "default/u/root",
		secret_new_copy(value, sizeof(value) - 1), on_done, NULL);
	cr_assert_eq(secret_count(), 1); /* one body */
	assert_ends(ERR_NONE);
	cr_assert_eq(secret_count(), 0);
	assert_sent(0, "POST", RESOURCE, value);
}

Test(kbs_admin, a_put_that_was_not_done_says_so)
{
	static const struct {
		int status;
		const char *type, *body;
		enum err_kind kind;
	} rows[] = {
		{401, "PluginInternalError", NULL, ERR_TRANSIENT},
		{401, "AdminAuthInitialization", NULL, ERR_DENIED},
		{413, "", "payload reached size limit", ERR_INVALID},
		{200, "", "<html>", ERR_TRANSIENT},
		{201, "", "", ERR_TRANSIENT},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		fake_kbs_answer(fake_kbs_expect(kbs, "POST", RESOURCE), rows[i].status,
			rows[i].type, rows[i].body);
		(void)kbs_admin_put_resource(
			t, &ops, "default/u/root", secret_new_copy("x", 1), on_done, NULL);
		assert_ends(rows[i].kind);
	}
}

Test(kbs_admin, a_delete_that_is_answered_200_is_one_request)
{
	expect("DELETE", 200, "");
	(void)kbs_admin_delete_resource(t, &ops, "default/u/root", on_done, NULL);
	assert_ends(ERR_NONE);
	cr_assert_eq(fake_kbs_requests(kbs), 1);
	assert_sent(0, "DELETE", RESOURCE, NULL);
}

Test(kbs_admin, a_missing_one_is_made_empty_and_deleted)
{
	static const struct {
		int status;
		const char *type;
	} unclear[] = {{401, "PluginInternalError"}, {404, ""}, {404, "PluginNotFound"}};

	for (size_t i = 0; i < ARRAY_LEN(unclear); i++) {
		expect("DELETE", unclear[i].status, unclear[i].type);
		expect("POST", 200, "");
		expect("DELETE", 200, "");
		(void)kbs_admin_delete_resource(t, &ops, "default/u/root", on_done, NULL);
		assert_ends(ERR_NONE);
		cr_assert_eq(fake_kbs_requests(kbs), 3);
		assert_sent(0, "DELETE", RESOURCE, NULL);
		assert_sent(1, "POST", RESOURCE, "{}");
		assert_sent(2, "DELETE", RESOURCE, NULL);
		fake_kbs_forget(kbs);
	}
}

/* Each step answered wrongly: nothing is confirmed and nothing more is sent. */
Test(kbs_admin, only_a_200_for_a_delete_confirms)
{
	static const struct {
		int status;
		const char *type;
		enum err_kind kind;
		bool unclear; /* as a first answer */
	} wrong[] = {
		{401, "PluginInternalError", ERR_TRANSIENT, true},
		{404, "", ERR_TRANSIENT, true},
		{401, "RvpsError", ERR_TRANSIENT, false},
		{401, "AdminAuthInitialization", ERR_DENIED, false},
		{500, "", ERR_TRANSIENT, false},
		{204, "", ERR_TRANSIENT, false},
		{405, "", ERR_TRANSIENT, false},
	};

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		for (unsigned step = wrong[i].unclear; step < 3; step++) {
			if (step > 0)
				expect("DELETE", 401, "PluginInternalError");
			if (step > 1)
				expect("POST", 200, "");
			expect(step == 1 ? "POST" : "DELETE", wrong[i].status, wrong[i].type);
			(void)kbs_admin_delete_resource(t, &ops, "default/u/root", on_done, NULL);
			assert_ends(wrong[i].kind);
			cr_assert_eq(fake_kbs_requests(kbs), step + 1);
			fake_kbs_forget(kbs);
		}
}

Test(kbs_admin, no_answer_to_any_step_confirms_nothing)
{
	for (unsigned step = 0; step < 3; step++) {
		if (step > 0)
			expect("DELETE", 401, "PluginInternalError");
		if (step > 1)
			expect("POST", 200, "");
		(void)fake_kbs_expect(kbs, step == 1 ? "POST" : "DELETE", RESOURCE);
		(void)kbs_admin_delete_resource(t, &ops, "default/u/root", on_done, NULL);
		assert_ends(ERR_TRANSIENT);
		cr_assert_eq(fake_kbs_requests(kbs), step + 1);
		fake_kbs_forget(kbs);
	}
}

Test(kbs_admin, cancelled_in_the_middle_it_sends_no_more)
{
	struct op *op = NULL;

	fake_kbs_serve(kbs);
	fake_kbs_latency(kbs, 100);
	for (unsigned step = 0; step < 3; step++) {
		op_hold(&op, kbs_admin_delete_resource(t, &ops, "default/u/root", on_done, NULL));
		loop_advance(loop, step * 100 + 50);
		cr_assert_eq(fake_kbs_requests(kbs), step + 1);
		op_cancel(&op);
		cr_assert_eq(fake_kbs_in_flight(kbs), 0);
		loop_advance(loop, 60000);
		cr_assert_eq(fake_kbs_requests(kbs), step + 1);
		cr_assert_eq(n_done, 0);
		fake_kbs_forget(kbs);
		fake_kbs_lose_store(kbs);
	}
}

/* ---- policies */

/* base64url without padding: 1, 2 and 3 bytes over, and the two letters that differ. */
static const struct {
	const char *rego, *text;
} policies[] = {
	{"package policy\n", "cGFja2FnZSBwb2xpY3kK"},
	{"package policy", "cGFja2FnZSBwb2xpY3k"},
	{"a", "YQ"},
	{"?>?", "Pz4_"},
	{"\303\276>>", "w74-Pg"},
	{"", ""},
};

Test(kbs_admin, the_attestation_policy_goes_under_the_id_for_cpus)
{
	for (size_t i = 0; i < ARRAY_LEN(policies); i++) {
		cleanup_free char *body = xasprintf(
			"{\"type\":\"rego\",\"policy_id\":\"default_cpu\",\"policy\":\"%s\"}",
			policies[i].text);

		fake_kbs_answer(
			fake_kbs_expect(kbs, "POST", "/kbs/v0/attestation-policy"), 200, "", NULL);
		(void)kbs_admin_put_policy(t, &ops, false, policies[i].rego, on_done, NULL);
		assert_ends(ERR_NONE);
		assert_sent(i, "POST", "/kbs/v0/attestation-policy", body);
	}
}

Test(kbs_admin, the_resource_policy_has_no_id)
{
	for (size_t i = 0; i < ARRAY_LEN(policies); i++) {
		cleanup_free char *body = xasprintf("{\"policy\":\"%s\"}", policies[i].text);

		fake_kbs_answer(
			fake_kbs_expect(kbs, "POST", "/kbs/v0/resource-policy"), 200, "", NULL);
		(void)kbs_admin_put_policy(t, &ops, true, policies[i].rego, on_done, NULL);
		assert_ends(ERR_NONE);
		assert_sent(i, "POST", "/kbs/v0/resource-policy", body);
	}
}

Test(kbs_admin, one_that_it_cannot_parse_is_for_a_person)
{
	fake_kbs_answer(fake_kbs_expect(kbs, "POST", "/kbs/v0/resource-policy"), 401,
		"ParsePolicyError", NULL);
	(void)kbs_admin_put_policy(t, &ops, true, "package", on_done, NULL);
	assert_ends(ERR_INVALID);
	fake_kbs_answer(fake_kbs_expect(kbs, "POST", "/kbs/v0/attestation-policy"), 401,
		"PolicyEngineError", NULL);
	(void)kbs_admin_put_policy(t, &ops, false, "package", on_done, NULL);
	assert_ends(ERR_TRANSIENT);
}

/* ---- reference values */

static void put(const struct kbs_values *m)
{
	fake_kbs_answer(fake_kbs_expect(kbs, "POST", VALUES), 200, "", NULL);
	(void)kbs_admin_put_values(t, &ops, m, on_done, NULL);
	assert_ends(ERR_NONE);
}

static void add(struct kbs_values *m, const char *name, const char *json)
{
	kbs_values_add(m, name, json, json ? strlen(json) : 0);
}

Test(kbs_admin, a_message_to_the_byte)
{
	cleanup_values struct kbs_values m = KBS_VALUES_INIT;

	add(&m, "tpm_pcr4", "[\"aa\"]");
	add(&m, "ak.x", NULL);
	put(&m);
	/* {"tpm_pcr4":["aa"],"ak.x":null} */
	assert_sent(0, "POST", VALUES,
		"{\"version\":\"0.1.0\",\"type\":\"sample\",\"payload\":"
		"\"eyJ0cG1fcGNyNCI6WyJhYSJdLCJhay54IjpudWxsfQ==\"}");
}

/* What the server decodes. */
static char *payload(size_t i)
{
	static const char head[] = "{\"version\":\"0.1.0\",\"type\":\"sample\",\"payload\":\"";
	const struct fake_kbs_request *r = fake_kbs_request(kbs, i);
	uint8_t *text = NULL;
	size_t len;

	cr_assert_eq(strncmp(r->body, head, strlen(head)), 0);
	cr_assert_eq(bytes_from_b64(r->body + strlen(head), strcspn(r->body + strlen(head), "\""),
			     &text, &len),
		0);
	text = xreallocarray(text, len + 1, 1);
	text[len] = '\0';
	return (char *)text;
}

Test(kbs_admin, values_go_in_as_they_stand_and_null_is_the_tombstone)
{
	cleanup_values struct kbs_values m = KBS_VALUES_INIT;
	cleanup_free char *text = NULL, *none = NULL;

	put(&m);
	add(&m, "a", "{\"b\":[1,null,\"x\"]}");
	add(&m, "b", "\"\"");
	add(&m, "c", "0");
	add(&m, "q\"\\", NULL);
	kbs_values_add(&m, "d", "truetail", 4);
	put(&m);
	none = payload(0);
	cr_assert_str_eq(none, "{}");
	text = payload(1);
	cr_assert_str_eq(text,
		"{\"a\":{\"b\":[1,null,\"x\"]},\"b\":\"\",\"c\":0,\"q\\\"\\\\\":null,\"d\":true}");
}

Test(kbs_admin, body_len_is_the_length_of_the_body_with_one_more)
{
	cleanup_values struct kbs_values m = KBS_VALUES_INIT;
	static const char value[] = "\"0123456789\"", name[] = "name-of-one";

	for (size_t i = 0; i < 40; i++) {
		size_t n = 1 + i % 9, len = i % 4 == 3 ? 4 : strlen(value) - i % 3;
		char json[16] = "", key[16] = "";
		size_t expected = kbs_values_body_len(&m, n, len);

		snprintf(key, sizeof(key), "%.*s", (int)n, name);
		snprintf(json, sizeof(json), "\"%.*s\"", (int)len - 2, value + 1);
		kbs_values_add(&m, key, i % 4 == 3 ? NULL : json, len);
		put(&m);
		cr_assert_eq(fake_kbs_request(kbs, i)->body_len, expected, "%zu", i);
	}
}

Test(kbs_admin, a_message_that_was_not_taken_says_so)
{
	static const struct {
		int status;
		const char *type, *body;
		enum err_kind kind;
	} rows[] = {
		{401, "RvpsError", NULL, ERR_TRANSIENT},
		{401, "AdminAuthAccess", NULL, ERR_DENIED},
		{413, "", "payload reached size limit", ERR_INVALID},
		{200, "", "<html>", ERR_TRANSIENT},
	};
	cleanup_values struct kbs_values m = KBS_VALUES_INIT;

	add(&m, "a", "1");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		fake_kbs_answer(fake_kbs_expect(kbs, "POST", VALUES), rows[i].status, rows[i].type,
			rows[i].body);
		(void)kbs_admin_put_values(t, &ops, &m, on_done, NULL);
		assert_ends(rows[i].kind);
		cr_assert_eq(last_err.http, rows[i].status);
	}
}

/* ---- reading */

static char value[256];
static size_t value_len;

static void on_value(void *arg, const struct err *err, const struct kbs_answer *answer)
{
	const char *json = err_is_set(err) ? "" : answer->body;
	size_t len = err_is_set(err) ? 0 : answer->body_len;

	on_done(arg, err, answer);
	cr_assert_eq(strlen(json) <= len, true);
	value_len = len;
	snprintf(value, sizeof(value), "%.*s", (int)(len < 200 ? len : 200), json);
}

static void get(enum err_kind kind)
{
	(void)kbs_admin_get_value(t, &ops, "0.a", on_value, NULL);
	assert_ends(kind);
}

static void answers(int status, const char *type, const char *body)
{
	fake_kbs_answer(fake_kbs_expect(kbs, "GET", VALUES "/0.a"), status, type, body);
}

Test(kbs_admin, reads_a_value_and_that_there_is_none)
{
	answers(200, "", "{\"a\":1}");
	get(ERR_NONE);
	cr_assert_str_eq(value, "{\"a\":1}");
	assert_sent(0, "GET", VALUES "/0.a", NULL);
	answers(401, "RvpsError", NULL);
	get(ERR_NOT_FOUND);
	cr_assert_eq(value_len, 0);
	answers(200, "", "null"); /* a tombstone is a value */
	get(ERR_NONE);
	cr_assert_str_eq(value, "null");
}

/* What is not an answer of Trustee must not look like "there is none": everything would be sent again.
 */
Test(kbs_admin, what_is_no_answer_is_neither_a_value_nor_none)
{
	static const struct {
		int status;
		const char *type, *body;
		enum err_kind kind;
	} rows[] = {
		{200, "", "<html><body>", ERR_TRANSIENT},
		{200, "", "\r\n\t <!DOCTYPE html>", ERR_TRANSIENT},
		{401, "", "", ERR_TRANSIENT},
		{401, "", "RvpsError", ERR_TRANSIENT},
		{401, "PolicyDeny", NULL, ERR_TRANSIENT},
		{401, "AdminAuthAccess", NULL, ERR_DENIED},
		{404, "", "Not Found", ERR_TRANSIENT},
		{404, "PluginNotFound", NULL, ERR_TRANSIENT},
		{302, "", "", ERR_TRANSIENT},
		{500, "", "", ERR_TRANSIENT},
		{502, "", "<html>", ERR_TRANSIENT},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		answers(rows[i].status, rows[i].type, rows[i].body);
		get(rows[i].kind);
		cr_assert_eq(value_len, 0, "row %zu", i);
	}
	(void)fake_kbs_expect(kbs, "GET", VALUES "/0.a");
	get(ERR_TRANSIENT);
}

Test(kbs_admin, a_cancelled_read_never_answers)
{
	answers(200, "", "1");
	(void)kbs_admin_get_value(t, &ops, "0.a", on_value, NULL);
	op_scope_cancel(&ops);
	loop_advance(loop, 60000);
	cr_assert_eq(n_done, 0);
}
