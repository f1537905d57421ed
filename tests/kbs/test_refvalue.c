/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "kbs/request_fixture.h"
#include "tec/base/bytes.h"
#include "tec/kbs/refvalue.h"

#define PATH "/kbs/v0/reference-value"

TestSuite(kbs_refvalue, .init = one_begin, .fini = one_end);

static void put(const struct kbs_refvalues *m)
{
	fake_kbs_answer(fake_kbs_expect(kbs, "POST", PATH), 200, "", NULL);
	(void)kbs_refvalues_put(t, &ops, m, on_done, NULL);
	assert_ends(ERR_NONE);
}

static void add(struct kbs_refvalues *m, const char *name, const char *json)
{
	kbs_refvalues_add(m, name, json, json ? strlen(json) : 0);
}

Test(kbs_refvalue, a_message_to_the_byte)
{
	cleanup_refvalues struct kbs_refvalues m = KBS_REFVALUES_INIT;

	add(&m, "tpm_pcr4", "[\"aa\"]");
	add(&m, "ak.x", NULL);
	put(&m);
	/* {"tpm_pcr4":["aa"],"ak.x":null} */
	assert_sent(0, "POST", PATH,
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

Test(kbs_refvalue, values_go_in_as_they_stand_and_null_is_the_tombstone)
{
	cleanup_refvalues struct kbs_refvalues m = KBS_REFVALUES_INIT;
	cleanup_free char *text = NULL, *none = NULL;

	put(&m);
	add(&m, "a", "{\"b\":[1,null,\"x\"]}");
	add(&m, "b", "\"\"");
	add(&m, "c", "0");
	add(&m, "q\"\\", NULL);
	kbs_refvalues_add(&m, "d", "truetail", 4);
	put(&m);
	none = payload(0);
	cr_assert_str_eq(none, "{}");
	text = payload(1);
	cr_assert_str_eq(text,
		"{\"a\":{\"b\":[1,null,\"x\"]},\"b\":\"\",\"c\":0,\"q\\\"\\\\\":null,\"d\":true}");
}

Test(kbs_refvalue, body_len_is_the_length_of_the_body_with_one_more)
{
	cleanup_refvalues struct kbs_refvalues m = KBS_REFVALUES_INIT;
	static const char value[] = "\"0123456789\"", name[] = "name-of-one";

	for (size_t i = 0; i < 40; i++) {
		size_t n = 1 + i % 9, len = i % 4 == 3 ? 4 : strlen(value) - i % 3;
		char json[16] = "", key[16] = "";
		size_t told = kbs_refvalues_body_len(&m, n, len);

		snprintf(key, sizeof(key), "%.*s", (int)n, name);
		snprintf(json, sizeof(json), "\"%.*s\"", (int)len - 2, value + 1);
		kbs_refvalues_add(&m, key, i % 4 == 3 ? NULL : json, len);
		put(&m);
		cr_assert_eq(fake_kbs_request(kbs, i)->body_len, told, "%zu", i);
	}
}

Test(kbs_refvalue, a_message_that_was_not_taken_says_so)
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
	cleanup_refvalues struct kbs_refvalues m = KBS_REFVALUES_INIT;

	add(&m, "a", "1");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		fake_kbs_answer(fake_kbs_expect(kbs, "POST", PATH), rows[i].status, rows[i].type,
			rows[i].body);
		(void)kbs_refvalues_put(t, &ops, &m, on_done, NULL);
		assert_ends(rows[i].kind);
		cr_assert_eq(last_err.http, rows[i].status);
	}
}

/* ---- reading */

static char value[256];
static size_t value_len;

static void on_value(void *arg, const struct err *err, const char *json, size_t len)
{
	on_done(arg, err);
	cr_assert_eq(strlen(json) <= len, true);
	value_len = len;
	snprintf(value, sizeof(value), "%.*s", (int)(len < 200 ? len : 200), json);
}

static void get(enum err_kind kind)
{
	(void)kbs_refvalue_get(t, &ops, "0.a", on_value, NULL);
	assert_ends(kind);
}

static void answers(int status, const char *type, const char *body)
{
	fake_kbs_answer(fake_kbs_expect(kbs, "GET", PATH "/0.a"), status, type, body);
}

Test(kbs_refvalue, reads_a_value_and_that_there_is_none)
{
	answers(200, "", "{\"a\":1}");
	get(ERR_NONE);
	cr_assert_str_eq(value, "{\"a\":1}");
	assert_sent(0, "GET", PATH "/0.a", NULL);
	answers(401, "RvpsError", NULL);
	get(ERR_NOT_FOUND);
	cr_assert_eq(value_len, 0);
	answers(200, "", "null"); /* a tombstone is a value */
	get(ERR_NONE);
	cr_assert_str_eq(value, "null");
}

/* What is no answer of Trustee must not look like "there is none": everything would be sent anew.
 */
Test(kbs_refvalue, what_is_no_answer_is_neither_a_value_nor_none)
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
	(void)fake_kbs_expect(kbs, "GET", PATH "/0.a");
	get(ERR_TRANSIENT);
}

Test(kbs_refvalue, cancelled_it_never_answers)
{
	answers(200, "", "1");
	(void)kbs_refvalue_get(t, &ops, "0.a", on_value, NULL);
	op_scope_cancel(&ops);
	loop_advance(loop, 60000);
	cr_assert_eq(n_done, 0);
}
