/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "kbs/request_fixture.h"

#define PATH "/kbs/v0/resource/default/u/root"

TestSuite(kbs_resource, .init = one_begin, .fini = one_end);

static void expect(const char *method, int status, const char *type)
{
	fake_kbs_answer(fake_kbs_expect(kbs, method, PATH), status, type, NULL);
}

Test(kbs_resource, a_put_is_the_bytes_themselves)
{
	static const char value[] =
		"{\"key_type\":\"oct\",\"key\":\"0123456789abcdef0123456789abcdef\"}";
	cleanup_secret struct secret *s = secret_new_copy(value, sizeof(value) - 1);

	expect("POST", 200, "");
	(void)kbs_resource_put(t, &ops, "default/u/root", s, on_done, NULL);
	secret_free(steal_ptr(&s)); /* borrowed for the call only */
	assert_ends(ERR_NONE);
	assert_sent(0, "POST", PATH, value);
}

Test(kbs_resource, a_put_that_was_not_done_says_so)
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
	cleanup_secret struct secret *s = secret_new_copy("x", 1);

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		fake_kbs_answer(fake_kbs_expect(kbs, "POST", PATH), rows[i].status, rows[i].type,
			rows[i].body);
		(void)kbs_resource_put(t, &ops, "default/u/root", s, on_done, NULL);
		assert_ends(rows[i].kind);
	}
}

Test(kbs_resource, a_delete_that_is_answered_200_is_one_request)
{
	expect("DELETE", 200, "");
	(void)kbs_resource_delete(t, &ops, "default/u/root", on_done, NULL);
	assert_ends(ERR_NONE);
	cr_assert_eq(fake_kbs_requests(kbs), 1);
	assert_sent(0, "DELETE", PATH, NULL);
}

Test(kbs_resource, a_missing_one_is_made_empty_and_deleted)
{
	static const struct {
		int status;
		const char *type;
	} unclear[] = {{401, "PluginInternalError"}, {404, ""}, {404, "PluginNotFound"}};

	for (size_t i = 0; i < ARRAY_LEN(unclear); i++) {
		expect("DELETE", unclear[i].status, unclear[i].type);
		expect("POST", 200, "");
		expect("DELETE", 200, "");
		(void)kbs_resource_delete(t, &ops, "default/u/root", on_done, NULL);
		assert_ends(ERR_NONE);
		cr_assert_eq(fake_kbs_requests(kbs), 3);
		assert_sent(0, "DELETE", PATH, NULL);
		assert_sent(1, "POST", PATH, "{}");
		assert_sent(2, "DELETE", PATH, NULL);
		fake_kbs_forget(kbs);
	}
}

/* Each step answered wrongly: nothing is confirmed and nothing more is sent. */
Test(kbs_resource, only_a_200_for_a_delete_confirms)
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
			(void)kbs_resource_delete(t, &ops, "default/u/root", on_done, NULL);
			assert_ends(wrong[i].kind);
			cr_assert_eq(fake_kbs_requests(kbs), step + 1);
			fake_kbs_forget(kbs);
		}
}

Test(kbs_resource, no_answer_to_any_step_confirms_nothing)
{
	for (unsigned step = 0; step < 3; step++) {
		if (step > 0)
			expect("DELETE", 401, "PluginInternalError");
		if (step > 1)
			expect("POST", 200, "");
		(void)fake_kbs_expect(kbs, step == 1 ? "POST" : "DELETE", PATH);
		(void)kbs_resource_delete(t, &ops, "default/u/root", on_done, NULL);
		assert_ends(ERR_TRANSIENT);
		cr_assert_eq(fake_kbs_requests(kbs), step + 1);
		fake_kbs_forget(kbs);
	}
}

Test(kbs_resource, cancelled_in_the_middle_it_sends_no_more)
{
	struct op *op = NULL;

	fake_kbs_serve(kbs);
	fake_kbs_latency(kbs, 100);
	for (unsigned step = 0; step < 3; step++) {
		op_hold(&op, kbs_resource_delete(t, &ops, "default/u/root", on_done, NULL));
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
