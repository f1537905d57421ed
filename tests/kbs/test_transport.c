/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "kbs/fixture.h"

TestSuite(kbs_transport, .init = connected, .fini = disconnected);

static void ask(const char *method)
{
	struct kbs_request req = {.method = method, .path = "/kbs/v0/x", .verb = "test"};

	(void)kbs_transport_start(t, &ops, &req, on_done, NULL);
}

static bool never(void *arg)
{
	(void)arg;
	return false;
}

Test(kbs_transport, without_the_lease_nothing_is_sent_not_even_a_question)
{
	t->may_send = never;
	ask("GET");
	ask("POST");
	cr_assert_eq(n_done, 0); /* never before the call returned */
	loop_drain(loop);
	cr_assert_eq(n_done, 2);
	cr_assert_eq(last_err.kind, ERR_CONFLICT);
	cr_assert_eq(fake_kbs_requests(kbs), 0);
	ask("GET");
	op_scope_cancel(&ops); /* cancelled before it was refused */
	loop_drain(loop);
	cr_assert_eq(n_done, 2);
}

Test(kbs_transport, counts_by_verb_and_code)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;

	fake_kbs_answer(fake_kbs_expect(kbs, "GET", "/kbs/v0/x"), 401, "RvpsError", NULL);
	fake_kbs_fail(fake_kbs_expect(kbs, "POST", "/kbs/v0/x"), ERR_TRANSIENT, "broken");
	ask("GET");
	ask("POST");
	loop_drain(loop);
	cr_assert_eq(n_done, 2);
	metric_render(&text);
	cr_assert(strstr(text.data, "tec_trustee_requests_total{verb=\"test\",code=\"401\"} 1"));
	cr_assert(strstr(text.data, "tec_trustee_requests_total{verb=\"test\",code=\"error\"} 1"));
}

Test(kbs_transport, a_request_without_an_answer_ends_at_its_deadline)
{
	(void)fake_kbs_expect(kbs, "GET", "/kbs/v0/x");
	ask("GET");
	loop_advance(loop, 9999);
	cr_assert_eq(n_done, 0);
	loop_advance(loop, 1);
	cr_assert_eq(n_done, 1);
	cr_assert_eq(last_err.kind, ERR_TRANSIENT);
}

Test(kbs_transport, answers_are_judged_by_type_not_by_status)
{
	static const struct {
		int status;
		const char *type, *body;
		bool reads;
		enum err_kind kind;
	} rows[] = {
		{200, "", "", false, ERR_NONE},
		{200, "", "{\"a\":1}", true, ERR_NONE},
		{200, "", " \n<!DOCTYPE html><html>", false, ERR_TRANSIENT},
		{200, "", "   ", false, ERR_NONE},
		{200, "", "", true, ERR_TRANSIENT}, /* a value is never empty */
		{200, "", " \r\n", true, ERR_TRANSIENT},
		{401, "AdminAuthAccess", "", false, ERR_DENIED},
		{401, "AdminAuthInitialization", "", true, ERR_DENIED},
		{401, "ParsePolicyError", "", false, ERR_INVALID},
		{413, "", "payload reached size limit", false, ERR_INVALID},
		{401, "RvpsError", "", true, ERR_NOT_FOUND},
		{401, "RvpsError", "", false, ERR_TRANSIENT},
		{401, "PolicyDeny", "", false, ERR_TRANSIENT},
		{401, "PluginInternalError", "", false, ERR_TRANSIENT},
		{401, "", "", true, ERR_TRANSIENT},
		{404, "PluginNotFound", "", true, ERR_TRANSIENT},
		{500, "", "<html>", true, ERR_TRANSIENT},
		{302, "", "", false, ERR_TRANSIENT},
		{201, "", "", false, ERR_TRANSIENT},
		{204, "", "", false, ERR_TRANSIENT},
		{403, "", "", false, ERR_TRANSIENT},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct kbs_answer a = {.status = rows[i].status,
			.type = rows[i].type,
			.body = rows[i].body,
			.body_len = strlen(rows[i].body)};
		struct err none = ERR_INIT, err = ERR_INIT;
		int rc = kbs_answer_check(&none, &a, rows[i].reads, &err);

		cr_assert_eq(err.kind, rows[i].kind, "row %zu: %s", i, err.text);
		cr_assert_eq(rc, rows[i].kind == ERR_NONE ? 0 : -1);
	}
}

Test(kbs_transport, error_types_of_bodies)
{
	static const struct {
		const char *body, *type;
	} rows[] = {
		{"{\"type\":\"https://github.com/confidential-containers/kbs/errors/PolicyDeny\","
		 "\"detail\":\"Access denied by policy\"}",
			"PolicyDeny"},
		{"{\"type\":\"RvpsError\"}", "RvpsError"},
		{"{\"type\":\"a/b/\"}", ""},
		{"{\"type\":\"a/Rvps Error\"}", ""},
		{"{\"type\":\"a/Rvps\\nError\"}", ""},
		{"{\"type\":1}", ""},
		{"{\"type\":null}", ""},
		{"{\"type\":\"a/RvpsError\",\"type\":\"a/Other\"}", ""},
		{"{\"type\":\"a/RvpsError\"", ""},
		{"[\"RvpsError\"]", ""},
		{"<html>RvpsError</html>", ""},
		{"", ""},
		{"{}", ""},
		{"{\"type\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}",
			""},
		{"{\"type\":{\"type\":{\"type\":{\"type\":{\"type\":\"RvpsError\"}}}}}", ""},
	};
	char out[KBS_TYPE_MAX];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		kbs_answer_type(rows[i].body, strlen(rows[i].body), out);
		cr_assert_str_eq(out, rows[i].type, "row %zu", i);
	}
	cleanup_free char *big = xmalloc(1 << 20);

	memset(big, '{', 1 << 20);
	kbs_answer_type(big, 1 << 20, out);
	cr_assert_str_eq(out, "");
}
