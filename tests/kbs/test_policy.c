/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "kbs/request_fixture.h"
#include "tec/kbs/policy.h"

TestSuite(kbs_policy, .init = one_begin, .fini = one_end);

/* base64url without padding: 1, 2 and 3 bytes over, and the two letters that differ. */
static const struct {
	const char *rego, *text;
} rows[] = {
	{"package policy\n", "cGFja2FnZSBwb2xpY3kK"},
	{"package policy", "cGFja2FnZSBwb2xpY3k"},
	{"a", "YQ"},
	{"?>?", "Pz4_"},
	{"\303\276>>", "w74-Pg"},
	{"", ""},
};

Test(kbs_policy, the_attestation_policy_goes_under_the_id_for_cpus)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		cleanup_free char *body = xasprintf(
			"{\"type\":\"rego\",\"policy_id\":\"default_cpu\",\"policy\":\"%s\"}",
			rows[i].text);

		fake_kbs_answer(
			fake_kbs_expect(kbs, "POST", "/kbs/v0/attestation-policy"), 200, "", NULL);
		(void)kbs_policy_put_attestation(t, &ops, rows[i].rego, on_done, NULL);
		assert_ends(ERR_NONE);
		assert_sent(i, "POST", "/kbs/v0/attestation-policy", body);
	}
}

Test(kbs_policy, the_resource_policy_has_no_id)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		cleanup_free char *body = xasprintf("{\"policy\":\"%s\"}", rows[i].text);

		fake_kbs_answer(
			fake_kbs_expect(kbs, "POST", "/kbs/v0/resource-policy"), 200, "", NULL);
		(void)kbs_policy_put_resource(t, &ops, rows[i].rego, on_done, NULL);
		assert_ends(ERR_NONE);
		assert_sent(i, "POST", "/kbs/v0/resource-policy", body);
	}
}

Test(kbs_policy, one_that_it_cannot_parse_is_for_a_person)
{
	fake_kbs_answer(fake_kbs_expect(kbs, "POST", "/kbs/v0/resource-policy"), 401,
		"ParsePolicyError", NULL);
	(void)kbs_policy_put_resource(t, &ops, "package", on_done, NULL);
	assert_ends(ERR_INVALID);
	fake_kbs_answer(fake_kbs_expect(kbs, "POST", "/kbs/v0/attestation-policy"), 401,
		"PolicyEngineError", NULL);
	(void)kbs_policy_put_attestation(t, &ops, "package", on_done, NULL);
	assert_ends(ERR_TRANSIENT);
}
