/* SPDX-License-Identifier: MIT */
/* What a server's answers mean. The handshake itself runs against the broker in tests/e2e/test_node.py. */
#include "config.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tec/attest/flow.h"
#include "tec/base/mem.h"

#define ERRORS "https://github.com/confidential-containers/kbs/errors/"

Test(attest_flow, nonces)
{
	static const struct {
		const char *text, *nonce;
	} t[] = {
		{"{\"nonce\":\"AAEC\",\"extra-params\":\"\"}", "AAEC"},
		{"{\"nonce\":\"AAEC\",\"extra-params\":{\"selected-hash-algorithm\":\"sha384\"}}",
			"AAEC"},
		{"{\"nonce\":\"AAEC\",\"extra-params\":{\"selected-hash-algorithm\":\"sm3\"}}",
			NULL},
		{"{\"nonce\":\"\"}", NULL},
		{"{\"nonce\":7}", NULL},
		{"{\"nonce\":\"a\\u0000b\"}", NULL},
		{"{}", NULL},
		{"[]", NULL},
		{"<html>", NULL},
		{"", NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct err err = ERR_INIT;
		cleanup_free char *nonce =
			attest_flow_read_nonce(t[i].text, strlen(t[i].text), &err);

		cr_assert(str_eq(nonce, t[i].nonce), "%s", t[i].text);
		cr_assert_eq(err_is_set(&err), !t[i].nonce);
	}
}

Test(attest_flow, tokens)
{
	static const struct {
		const char *text;
		bool good;
		int64_t exp;
	} t[] = {
		{"{\"token\":\"e30.eyJleHAiOjE3MDAwMDAwMDB9.c2ln\"}", true, 1700000000},
		{"{\"token\":\"e30.e30.x\",\"more\":1}", true, 0},
		{"{\"token\":\"opaque\"}", true, 0},
		{"{\"token\":\"a\\r\\nX-Evil: 1\"}", false, 0},
		{"{\"token\":\"a b\"}", false, 0},
		{"{\"token\":\"\"}", false, 0},
		{"{\"token\":[]}", false, 0},
		{"{}", false, 0},
		{"", false, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct err err = ERR_INIT;
		struct attest_token *token =
			attest_flow_read_token(t[i].text, strlen(t[i].text), &err);

		cr_assert_eq(token != NULL, t[i].good, "%s", t[i].text);
		cr_assert(!token || token->exp_s == t[i].exp);
		cr_assert_eq(err_is_set(&err), !t[i].good);
		attest_token_free(token);
	}
}

Test(attest_flow, refusals)
{
	static const struct {
		int status;
		const char *body, *step;
		enum attest_fault fault;
		const char *words;
	} t[] = {
		{401, "{\"type\":\"" ERRORS "PolicyDeny\",\"detail\":\"Access denied by policy\"}",
			"resource", ATTEST_REFUSED, "(PolicyDeny): \"Access denied by policy\""},
		/* What a resource that is missing is to the embedded broker, and to Trustee. */
		{404,
			"{\"type\":\"" ERRORS
			"ResourceNotFound\",\"detail\":\"The resource does not exist.\"}",
			"resource", ATTEST_SERVER,
			"does not have this resource (ResourceNotFound)"},
		{401,
			"{\"type\":\"" ERRORS
			"PluginInternalError\",\"detail\":\"Plugin internal error\"}",
			"resource", ATTEST_SERVER,
			"does not have this resource, or cannot read it (PluginInternalError)"},
		{503, "{\"type\":\"" ERRORS "PluginInternalError\",\"detail\":\"x\"}", "resource",
			ATTEST_SERVER, "503 to resource"},
		{401, "{\"type\":\"" ERRORS "AttestationError\",\"detail\":\"x\"}", "attest",
			ATTEST_REFUSED, "AttestationError"},
		/* another version of the protocol, say */
		{401, "{\"type\":\"" ERRORS "AttestationError\",\"detail\":\"x\"}", "auth",
			ATTEST_SERVER, "401 to auth"},
		{401, "{\"type\":\"" ERRORS "TokenVerifierError\",\"detail\":\"x\"}", "resource",
			ATTEST_SERVER, "401"},
		{404, "<html>not found</html>", "resource", ATTEST_SERVER, "404"},
		{503, "{\"type\":\"" ERRORS "PolicyDeny\"}", "resource", ATTEST_SERVER, "503"},
		/* a rate limit, whatever the error is called */
		{429, "{\"type\":\"" ERRORS "AttestationError\",\"detail\":\"slow down\"}",
			"attest", ATTEST_SERVER, "429 to attest: \"slow down\""},
		{429, "{\"type\":\"" ERRORS "PluginInternalError\"}", "resource", ATTEST_SERVER,
			"429 to resource"},
		{302, "", "auth", ATTEST_SERVER, "302"},
		{401, "{\"type\":7,\"detail\":[]}", "resource", ATTEST_SERVER, "401"},
		{401, "{\"type\":\"x\\u001b[2J/PolicyDeny2\",\"detail\":\"\\u001b[2J\"}",
			"resource", ATTEST_SERVER, "401"},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct err err = ERR_INIT;

		cr_assert_eq(attest_flow_judge(
				     t[i].status, t[i].body, strlen(t[i].body), t[i].step, &err),
			t[i].fault, "%s", t[i].body);
		cr_assert(strstr(err.text, t[i].words), "%s", err.text);
		cr_assert(!strchr(err.text, '\033'), "control bytes reach a terminal");
	}
}

Test(attest_flow, paths)
{
	cr_assert(attest_path_valid("default/11111111-2222-3333-4444-555555555555/root"));
	cr_assert(attest_path_valid("a/_/-"));
	static const char *const bad[] = {"", "/", "a", "a/b", "a/b/", "/a/b", "a//c", "a/b/c/",
		"a/b/c/d", "a/./c", "a/.b/c", "a/b c/d", "a/b%2f/c", "a/b/c?x", "a/b/c\n"};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		cr_assert(!attest_path_valid(bad[i]), "%s", bad[i]);
}
