/* SPDX-License-Identifier: MIT */
/* Each call and each refusal, honest and as Trustee refuses. */
#include "config.h"

#include <criterion/criterion.h>

#include "broker_fixture.h"

#include "tec/base/bytes.h"
#include "tec/base/clock.h"
#include "tec/base/log.h"

#define V0  "/kbs/v0/"
#define RES V0 "resource/"
#define RV  V0 "reference-value"

static char *values_message(const char *payload)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	strbuf_adds(&out, "{\"version\":\"0.1.0\",\"type\":\"sample\",\"payload\":\"");
	bytes_to_b64(&out, payload, strlen(payload));
	strbuf_adds(&out, "\"}");
	return strbuf_steal(&out);
}

#define EXPECT_SAYS(want, method, target, bearer, body)                                            \
	do {                                                                                       \
		const char *said_ = broker_says(&b, method, target, bearer, body);                 \
		cr_expect_str_eq(                                                                  \
			said_, want, "%s %s: %s instead of %s", method, target, said_, want);      \
	} while (0)

static void resources(bool quirks)
{
	struct broker_store_value v;
	struct err err = ERR_INIT;
	struct broker b;

	broker_start(&b, quirks, NULL, NULL);
	EXPECT_SAYS("200 ", "POST", RES "default/u/root", b.bearer, "one");
	EXPECT_SAYS("200 ", "POST", RES "default/u/root", b.bearer, "two");
	EXPECT_SAYS("200 ", "POST", RES "a/b/c?x=1", b.bearer, "");
	cr_assert_eq(
		broker_store_get(b.store, BROKER_STORE_REPOSITORY, "default/u/root", &v, &err), 0);
	cr_expect(v.len == 3 && memcmp(v.data, "two", 3) == 0, "the last one counts");
	cr_expect_eq(broker_store_get(b.store, BROKER_STORE_REPOSITORY, "a/b/c", &v, &err), 0);
	EXPECT_SAYS("200 ", "DELETE", RES "default/u/root", b.bearer, NULL);
	EXPECT_SAYS(quirks ? "401 PluginInternalError" : "404 ResourceNotFound", "DELETE",
		RES "default/u/root", b.bearer, NULL);
	cr_expect_str_eq(strbuf_str(&b.seen),
		quirks ? "resource-put 200 ;resource-put 200 ;resource-put 200 ;"
			 "resource-delete 200 ;resource-delete 401 PluginInternalError;"
		       : "resource-put 200 ;resource-put 200 ;resource-put 200 ;"
			 "resource-delete 200 ;resource-delete 404 ResourceNotFound;");
	broker_stop(&b);
	cr_expect_eq(secret_count(), 0);
}

Test(broker_admin, resources_are_overwritten_and_deleted)
{
	resources(false);
	resources(true);
}

Test(broker_admin, a_resource_is_any_bytes)
{
	char body[SECRET_MAX_LEN + 1];
	cleanup_broker_answer struct broker_answer a = {0}, more = {0};
	struct broker_request r = {.method = "POST", .target = RES "a/b/c", .body = body};
	struct broker_store_value v;
	struct err err = ERR_INIT;
	struct broker b;

	broker_start(&b, false, NULL, NULL);
	for (size_t i = 0; i < sizeof(body); i++)
		body[i] = (char)(i * 7 + i / 256);
	r.authorization = b.bearer;
	r.len = SECRET_MAX_LEN;
	broker_admin(&b.admin, &r, clock_wall_s(), &a);
	cr_expect_eq(a.status, 200);
	cr_expect_str_eq(a.content_type, "text/xml");
	cr_assert_eq(broker_store_get(b.store, BROKER_STORE_REPOSITORY, "a/b/c", &v, &err), 0);
	cr_assert_eq(v.len, SECRET_MAX_LEN);
	cr_expect_eq(memcmp(v.data, body, v.len), 0);
	r.len = sizeof(body);
	broker_admin(&b.admin, &r, clock_wall_s(), &more);
	cr_expect_eq(more.status, 413);
	broker_stop(&b);
}

static void paths(bool quirks)
{
	static const char *const bad[] = {"", "a", "a/b", "a/b/", "/a/b/c", "a/b/c/", "a/b/c/d",
		"a/../c", "a/b/.c", "a/b/c%2f", "a/b/c;x", "a/b/~"};
	struct broker b;

	broker_start(&b, quirks, NULL, NULL);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		cleanup_free char *target = xasprintf(RES "%s", bad[i]);
		const char *want = quirks ? "401 PluginInternalError" : "400 PluginInternalError";

		EXPECT_SAYS(want, "POST", target, b.bearer, "x");
		EXPECT_SAYS(want, "DELETE", target, b.bearer, NULL);
	}
	/* A segment may be as long as a file name; the whole key may not. */
	{
		cleanup_strbuf struct strbuf target = STRBUF_INIT;

		strbuf_adds(&target, RES "a/b/");
		for (unsigned i = 0; i < 245; i++)
			strbuf_addc(&target, 'c');
		EXPECT_SAYS("200 ", "POST", target.data, b.bearer, "x"); /* 1+4+1+4+245 = 255 */
		strbuf_addc(&target, 'c');
		EXPECT_SAYS(quirks ? "401 PluginInternalError" : "400 PluginInternalError", "POST",
			target.data, b.bearer, "x");
	}
	broker_stop(&b);
}

Test(broker_admin, resource_paths_are_strict)
{
	paths(false);
	paths(true);
}

static void values(bool quirks)
{
	cleanup_free char *one = values_message(
		"{\"tpm_pcr4\":[\"00\",\"01\"],\"ak.x_y-z\":{\"machine\":\"m\",\"ak\":\"k+/=\"}}");
	cleanup_free char *gone = values_message("{\"ak.x_y-z\":null,\"with/slash\":7}");
	cleanup_free char *partly = values_message("{\"a\":1,\"b c\":2,\"d\":3}");
	const char *missing = quirks ? "401 RvpsError" : "404 RvpsError";
	const char *bad = quirks ? "401 RvpsError" : "400 RvpsError";
	struct broker b;

	broker_start(&b, quirks, NULL, NULL);
	EXPECT_SAYS(missing, "GET", RV "/tpm_pcr4", b.bearer, NULL);
	EXPECT_SAYS("200 ", "POST", RV, b.bearer, one);
	EXPECT_SAYS("200 [\"00\",\"01\"]", "GET", RV "/tpm_pcr4", b.bearer, NULL);
	EXPECT_SAYS("200 {\"ak\":\"k+/=\",\"machine\":\"m\"}", "GET", RV "/ak.x_y-z", b.bearer,
		NULL); /* sorted */
	EXPECT_SAYS("200 ", "POST", RV, b.bearer, gone);
	EXPECT_SAYS("200 null", "GET", RV "/ak.x_y-z", b.bearer, NULL);
	EXPECT_SAYS("200 7", "GET", RV "/with/slash", b.bearer, NULL);
	EXPECT_SAYS(missing, "GET", RV "/with", b.bearer, NULL);
	EXPECT_SAYS(missing, "GET", RV "/", b.bearer, NULL);
	EXPECT_SAYS(missing, "GET", RV "/%00", b.bearer, NULL);
	EXPECT_SAYS(bad, "POST", RV, b.bearer, partly);
	EXPECT_SAYS("200 1", "GET", RV "/a", b.bearer, NULL); /* not atomic */
	EXPECT_SAYS(missing, "GET", RV "/d", b.bearer, NULL);
	EXPECT_SAYS(bad, "POST", RV, b.bearer, "");
	EXPECT_SAYS(bad, "POST", RV, b.bearer, "{\"tpm_pcr4\":[]}");
	broker_stop(&b);
}

Test(broker_admin, reference_values_are_set_and_read_one_by_one)
{
	values(false);
	values(true);
}

Test(broker_admin, a_stored_entry_expires_a_year_on)
{
	cleanup_free char *one = values_message("{\"a\":1}");
	struct broker_store_value v;
	struct err err = ERR_INIT;
	struct broker b;

	broker_start(&b, false, NULL, NULL);
	clock_fake_start(1000, 1767225600); /* 2026-01-01 */
	EXPECT_SAYS("200 ", "POST", RV, b.bearer, one);
	clock_fake_stop();
	cr_assert_eq(broker_store_get(b.store, BROKER_STORE_REFERENCE_VALUE, "a", &v, &err), 0);
	cr_expect_str_eq(v.data, "{\"version\":\"0.1.0\",\"name\":\"a\","
				 "\"expiration\":\"2027-01-01T00:00:00Z\",\"value\":1}");
	broker_stop(&b);
}

static void policies(bool quirks)
{
	static const char text[] = "package policy";
	const char *bad = quirks ? "401 AttestationError" : "400 AttestationError";
	const char *bad_resource = quirks ? "401 ParsePolicyError" : "400 ParsePolicyError";
	struct broker_store_value v;
	struct err err = ERR_INIT;
	struct broker b;

	broker_start(&b, quirks, NULL, NULL);
	cr_assert_eq(
		broker_store_get(b.store, BROKER_STORE_KBS, "resource-policy.rego", &v, &err), 0);
	cr_expect_eq(memcmp(v.data, "# stock", 7), 0);
	EXPECT_SAYS("200 [\"resource-policy\"]", "GET", V0 "resource-policy", b.bearer, NULL);
	EXPECT_SAYS("200 ", "POST", V0 "resource-policy", b.bearer,
		"{\"policy\":\"cGFja2FnZSBwb2xpY3k\"}");
	EXPECT_SAYS("200 [\"resource-policy\"]", "GET", V0 "resource-policy", b.bearer, NULL);
	cr_assert_eq(
		broker_store_get(b.store, BROKER_STORE_KBS, "resource-policy.rego", &v, &err), 0);
	cr_expect_str_eq(v.data, text);
	EXPECT_SAYS("200 ", "POST", V0 "attestation-policy", b.bearer,
		"{\"type\":\"rego\",\"policy_id\":\"default_cpu\",\"policy\":\"cGFja2FnZSBwb2xpY3k\"}");
	cr_assert_eq(broker_store_get(b.store, BROKER_STORE_ATTESTATION_POLICY, "default_cpu.rego",
			     &v, &err),
		0);
	cr_expect_str_eq(v.data, text);
	EXPECT_SAYS(bad_resource, "POST", V0 "resource-policy", b.bearer,
		"{\"policy\":\"cGFja2FnZSBwb2xpY3k=\"}");
	EXPECT_SAYS(bad_resource, "POST", V0 "resource-policy", b.bearer, "");
	EXPECT_SAYS(bad, "POST", V0 "attestation-policy", b.bearer,
		"{\"policy\":\"cGFja2FnZSBwb2xpY3k\"}");
	EXPECT_SAYS(bad, "POST", V0 "attestation-policy", b.bearer,
		"{\"policy_id\":\"../kbs/resource-policy\",\"policy\":\"cGFja2FnZSBwb2xpY3k\"}");
	broker_stop(&b);
}

Test(broker_admin, policies_are_kept_and_listed_by_name)
{
	policies(false);
	policies(true);
}

Test(broker_admin, seeding_leaves_what_is_there)
{
	cleanup_broker_store struct broker_store *s = broker_store_memory_new();
	struct broker_store_value v;
	struct err err = ERR_INIT;

	cr_assert_eq(
		broker_store_set(s, BROKER_STORE_KBS, "resource-policy.rego", "ours", 4, &err), 0);
	cr_assert_eq(broker_admin_seed(s, &err), 0);
	cr_assert_eq(broker_store_get(s, BROKER_STORE_KBS, "resource-policy.rego", &v, &err), 0);
	cr_expect_str_eq(v.data, "ours");
	cr_expect_eq(
		broker_store_get(s, BROKER_STORE_ATTESTATION_POLICY, "default_cpu.rego", &v, &err),
		0);
}

/* Every admin call, and what it says to somebody it should not serve. */
static const struct {
	const char *method, *target, *body, *denied;
} admin_calls[] = {
	{"POST", RES "a/b/c", "x", "AdminAuthInitialization"},
	{"DELETE", RES "a/b/c", NULL, "AdminAuthInitialization"},
	{"POST", RES "not-a-path", "x", "AdminAuthInitialization"}, /* who asks comes first */
	{"POST", RV, "{}", "AdminAuthAccess"},
	{"GET", RV "/known", NULL, "AdminAuthAccess"},
	{"GET", RV "/unknown", NULL, "AdminAuthAccess"},
	{"POST", V0 "attestation-policy", "{}", "AdminAuthAccess"},
	{"POST", V0 "resource-policy", "{\"policy\":\"YWI\"}", "AdminAuthAccess"},
	{"GET", V0 "resource-policy", NULL, "AdminAuthAccess"},
};

static void nobody_gets_in(bool quirks)
{
	cleanup_free char *known = values_message("{\"known\":1}");
	struct pki_key *other = pki_key_new_ed25519();
	char *bearers[6];
	struct broker b;

	broker_start(&b, quirks, "tec-operator", "kbs");
#define NAMED "\"iss\":\"tec-operator\",\"aud\":\"kbs\""
	bearers[0] = NULL;
	bearers[1] = xstrdup(b.bearer); /* neither issuer nor audience */
	bearers[2] = fixture_bearer(other, "{\"role\":\"admin\",\"exp\":2147483647," NAMED "}");
	bearers[3] = fixture_bearer(b.key, "{\"role\":\"admin\",\"exp\":1," NAMED "}");
	bearers[4] = fixture_bearer(b.key, "{\"role\":\"user\",\"exp\":2147483647," NAMED "}");
	bearers[5] = fixture_bearer(b.key, "{\"role\":\"admin\",\"exp\":2147483647," NAMED "}");
	EXPECT_SAYS("200 ", "POST", RV, bearers[5], known);
	for (size_t i = 0; i < ARRAY_LEN(admin_calls); i++) {
		for (size_t who = 0; who < 5; who++) {
			char want[64];

			snprintf(want, sizeof(want), "%d %s", who == 4 && !quirks ? 403 : 401,
				admin_calls[i].denied);
			EXPECT_SAYS(want, admin_calls[i].method, admin_calls[i].target,
				bearers[who], admin_calls[i].body);
		}
	}
	EXPECT_SAYS("200 [\"resource-policy\"]", "GET", V0 "resource-policy", bearers[5], NULL);
	/* The reference's regular expression ends after the name, or goes on with a slash. */
	EXPECT_SAYS(quirks ? "401 AdminAuthAccess" : "403 AdminAuthAccess", "GET",
		V0 "resource-policy?x", bearers[5], NULL);
	for (size_t i = 0; i < ARRAY_LEN(bearers); i++)
		free(bearers[i]);
	pki_key_free(other);
	broker_stop(&b);
}

Test(broker_admin, nobody_without_the_right_token_gets_in)
{
	nobody_gets_in(false);
	nobody_gets_in(true);
}

static void other_requests(bool quirks)
{
	static const struct {
		const char *method, *target, *honest, *quirks;
	} rows[] = {
		{"GET", V0 "nothing", "404 PluginNotFound", "404 PluginNotFound"},
		{"POST", V0, "404 PluginNotFound", "404 PluginNotFound"},
		{"POST", V0 "resource", "404 PluginNotFound", "404 PluginNotFound"},
		{"POST", V0 "resource-policy/x", "404 PluginNotFound", "404 PluginNotFound"},
		{"GET", RES "a/b/c", "401 TokenVerifierError", "401 TokenVerifierError"},
		{"PUT", RES "a/b/c", "405 HttpError", "401 PluginInternalError"},
		{"PATCH", RES "a/b/c", "405 HttpError", "405 "},
		{"HEAD", RES "a/b/c", "405 HttpError", "405 "},
		{"DELETE", RV "/a", "405 HttpError", "404 PluginNotFound"},
		{"GET", RV, "405 HttpError", "404 PluginNotFound"},
		{"GET", V0 "attestation-policy", "405 HttpError", "404 PluginNotFound"},
		{"PUT", V0 "resource-policy", "405 HttpError", "404 PluginNotFound"},
		{"GET", "/kbs/v1/resource/a/b/c", "404 InvalidRequestPath",
			"404 InvalidRequestPath"},
		{"", "", "404 InvalidRequestPath", "404 InvalidRequestPath"},
	};
	struct broker b;

	broker_start(&b, quirks, NULL, NULL);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		EXPECT_SAYS(quirks ? rows[i].quirks : rows[i].honest, rows[i].method,
			rows[i].target, b.bearer, NULL);
	EXPECT_SAYS("401 TokenNotFound", "GET", RES "a/b/c", NULL, NULL);
	broker_stop(&b);
}

Test(broker_admin, what_is_not_an_admin_call_is_refused_in_its_way)
{
	other_requests(false);
	other_requests(true);
}

Test(broker_admin, a_405_names_the_methods_there_are)
{
	static const struct {
		const char *target, *allow;
	} rows[] = {{RES "a/b/c", "GET, POST, DELETE"}, {RV, "POST"}, {RV "/a", "GET"},
		{V0 "resource-policy", "POST, GET"}};
	struct broker b;

	broker_start(&b, false, NULL, NULL);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		cleanup_broker_answer struct broker_answer a;

		broker_admin(&b.admin,
			&(const struct broker_request){.method = "PUT", .target = rows[i].target},
			0, &a);
		cr_expect_eq(a.status, 405);
		cr_expect_str_eq(a.allow, rows[i].allow);
	}
	broker_stop(&b);
}
