/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "tec/base/str.h"
#include "tec/oci/auth.h"

#define U1 "dTE6cDE=" /* u1:p1 */
#define U2 "dTI6cDI=" /* u2:p2 */
#define U3 "dTM6cDM=" /* u3:p3 */

static void no_secret_left(void)
{
	cr_assert_eq(secret_count(), 0);
}

TestSuite(oci_auth, .fini = no_secret_left);

/* The header's value, "identity ...", "none", or the error's text. */
static const char *find(const char *a, const char *b, const char *host, const char *repository)
{
	static char out[ERR_TEXT_SIZE];
	cleanup_secret struct secret *sa = secret_new_copy(a, strlen(a));
	cleanup_secret struct secret *sb = b ? secret_new_copy(b, strlen(b)) : NULL;
	const struct secret *configs[] = {sa, sb};
	cleanup_oci_cred struct oci_cred *c = NULL;
	struct err err = ERR_INIT;

	if (oci_cred_find(configs, b ? 2 : 1, host, repository, &c, &err) != 0) {
		cr_assert_eq(err.kind, ERR_INVALID);
		snprintf(out, sizeof(out), "%s", err.text);
	} else if (!c) {
		strcpy(out, "none");
	} else if (c->identity) {
		snprintf(out, sizeof(out), "identity %s", (const char *)secret_peek(c->identity));
		cr_assert_null(c->basic);
	} else {
		cr_assert_eq(secret_peek(c->basic)[secret_len(c->basic) - 1], '\0');
		snprintf(out, sizeof(out), "%s", (const char *)secret_peek(c->basic));
	}
	return out;
}

Test(oci_auth, the_longest_path_wins)
{
	static const char config[] =
		"{\"auths\":{\"r.io\":{\"auth\":\"" U1 "\"},\"https://r.io/a/b/\":{\"auth\":\"" U3
		"\"},\"r.io/a\":{\"auth\":\"" U2 "\"}}}";
	static const struct {
		const char *host, *repository, *want;
	} t[] = {
		{"r.io", "x", "Basic " U1},
		{"R.io", "x", "Basic " U1},
		{"r.io", "a", "Basic " U2},
		{"r.io", "a/c", "Basic " U2},
		{"r.io", "ab/b", "Basic " U1},
		{"r.io", "a/b", "Basic " U3},
		{"r.io", "a/b/c", "Basic " U3},
		{"r.io", "a/bc", "Basic " U2},
		{"r.io:443", "a", "none"},
		{"r.iox", "a", "none"},
		{"r.i", "o/a", "none"},
		{"x.r.io", "a", "none"},
		{"docker.io", "a", "none"},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		cr_assert_str_eq(find(config, NULL, t[i].host, t[i].repository), t[i].want, "%s/%s",
			t[i].host, t[i].repository);
}

Test(oci_auth, forms_of_an_entry)
{
	static const struct {
		const char *config, *want;
	} t[] = {
		{"{\"auths\":{\"h\":{\"auth\":\"" U1 "\"}}}", "Basic " U1},
		{"{\"h\":{\"auth\":\"" U1 "\",\"email\":\"x\"}}", "Basic " U1}, /* .dockercfg */
		{"{\"auths\":{\"h\":{\"auth\":\"dTE6cDE\"}}}", "Basic " U1},    /* no padding */
		{"{\"auths\":{\"h\":{\"auth\":\"dTE6cDEA\"}}}", "Basic " U1},   /* a NUL byte behind
										 */
		{"{\"auths\":{\"h\":{\"username\":\"u1\",\"password\":\"p1\"}}}", "Basic " U1},
		{"{\"auths\":{\"h\":{\"username\":\"u1\"}}}", "Basic dTE6"},
		{"{\"auths\":{\"h\":{\"username\":\"x\",\"password\":\"y\",\"auth\":\"" U1 "\"}}}",
			"Basic " U1},
		{"{\"auths\":{\"h\":{\"auth\":\"dTpwOnE=\"}}}", "Basic dTpwOnE="}, /* u:p:q */
		{"{\"auths\":{\"h\":{\"auth\":\"" U1 "\",\"identitytoken\":\"to.k\"}}}",
			"identity to.k"},
		{"{\"auths\":{\"h\":{\"auth\":\"\",\"identitytoken\":\"\"}}}", "none"},
		{"{\"auths\":{\"h\":{}},\"credsStore\":\"x\"}", "none"},
		{"{\"auths\":{}}", "none"},
		{"{}", "none"},
		{"{\"auths\":{\"other\":{\"auth\":\"!\"},\"h\":{\"auth\":\"" U1 "\"}}}",
			"Basic " U1},
		{"{\"auths\":{\"http://h/v2/\":{\"auth\":\"" U1 "\"}}}", "Basic " U1},
		{"{\"auths\":{\"h/v1\":{\"auth\":\"" U1 "\"}}}", "Basic " U1},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		cr_assert_str_eq(find(t[i].config, NULL, "h", "a/b"), t[i].want, "%s", t[i].config);
}

Test(oci_auth, what_cannot_be_used_is_named_without_its_content)
{
	static const char *const entries[] = {"1", "null", "\"x\"", "[]", "{\"auth\":\"s3cret!\"}",
		"{\"auth\":\"czNjcmV0\"}" /* s3cret: no colon */, "{\"auth\":\"OnMzY3JldA==\"}",
		"{\"auth\":\"AAAA\"}", "{\"username\":\"a:b\",\"password\":\"s3cret\"}"};

	for (size_t i = 0; i < ARRAY_LEN(entries); i++) {
		cleanup_free char *config = xasprintf("{\"auths\":{\"h\":%s}}", entries[i]);
		const char *said = find(config, NULL, "h", "a");

		cr_assert(str_starts(said, "registry credentials: the entry of h: "), "%s: %s",
			config, said);
		cr_assert_null(strstr(said, "s3cret"));
		cr_assert_str_eq(find(config, NULL, "other", "a"), "none");
	}
}

Test(oci_auth, text_that_is_no_configuration_is_refused)
{
	static const char *const t[] = {"x", "[]", "1", "\"h\"", "{\"auths\":{\"h\":{}}", "null",
		"{\"auths\":{\"h\":{\"auth\":\"a\",\"auth\":\"b\"}}}",
		"{\"auths\":[[[[[[[[[[1]]]]]]]]]]}"};

	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		cr_assert(str_starts(find(t[i], NULL, "h", "a"), "registry credentials: "), "%s",
			t[i]);
}

Test(oci_auth, several_configurations_are_one)
{
	static const char one[] = "{\"auths\":{\"h\":{\"auth\":\"" U1 "\"}}}";
	static const char two[] = "{\"h/a\":{\"auth\":\"" U2 "\"},\"h\":{\"auth\":\"" U3 "\"}}";

	cr_assert_str_eq(find(one, two, "h", "b"), "Basic " U1);
	cr_assert_str_eq(find(two, one, "h", "b"), "Basic " U3);
	cr_assert_str_eq(find(one, two, "h", "a/x"), "Basic " U2);
	cr_assert(str_starts(find(one, "{", "h", "b"), "registry credentials: "));
	cr_assert_str_eq(find(one, "{\"h/b\":{}}", "h", "b"), "none"); /* says: anonymous */
}

Test(oci_auth, docker_io_answers_to_its_old_names)
{
	static const char *const keys[] = {"docker.io", "index.docker.io",
		"https://index.docker.io/v1/", "registry-1.docker.io", "https://docker.io"};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		cleanup_free char *config =
			xasprintf("{\"auths\":{\"%s\":{\"auth\":\"" U1 "\"}}}", keys[i]);

		cr_assert_str_eq(
			find(config, NULL, "docker.io", "a/b"), "Basic " U1, "%s", keys[i]);
		cr_assert_str_eq(find(config, NULL, "evil.io", "a/b"), "none");
		cr_assert_str_eq(find(config, NULL, "docker.io.evil.io", "a/b"), "none");
	}
}

/* ---- challenges ---- */

Test(oci_auth, challenges)
{
	static const struct {
		const char *text;
		bool basic, bearer;
		const char *realm, *service, *scope;
	} t[] = {
		{"Bearer realm=\"https://a/t\",service=\"s\",scope=\"repository:x:pull\"", false,
			true, "https://a/t", "s", "repository:x:pull"},
		{"bearer REALM=r , Service = s,x=y", false, true, "r", "s", ""},
		{"Basic realm=\"x, Bearer realm=y\"", true, false, "", "", ""},
		{"Basic", true, false, "", "", ""},
		{"Basic realm=\"x\", Bearer realm=\"y\",service=z", true, true, "y", "z", ""},
		{"Bearer realm=\"y\", Basic realm=\"x\",service=\"other\"", true, true, "y", "",
			""},
		{"Bearer realm=y, Bearer realm=z,scope=q", false, true, "y", "", ""},
		{"Negotiate, Basic realm=x", true, false, "", "", ""},
		{"Negotiate abc==, Bearer realm=y", false, true, "y", "", ""},
		{"NTLM a/b+c=,Bearer realm=y", false, true, "y", "", ""},
		{"Digest realm=\"q\", nonce=\"n\", qop=\"auth,x\"", false, false, "", "", ""},
		{"Bearer realm=\"a\\\"b\\\\c\"", false, true, "a\"b\\c", "", ""},
		{",, Bearer realm=a ,,scope=\"p q\",", false, true, "a", "", "p q"},
		{"Bearer realm=a,error=\"invalid_token\",error_description=\"it is, so\"", false,
			true, "a", "", ""},
		{"", false, false, "", "", ""},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct err err = ERR_INIT;
		struct oci_challenge c;

		cr_assert_eq(oci_challenge_parse(t[i].text, strlen(t[i].text), &c, &err), 0,
			"%s: %s", t[i].text, err.text);
		cr_assert_eq(c.basic, t[i].basic, "%s", t[i].text);
		cr_assert_eq(c.bearer, t[i].bearer, "%s", t[i].text);
		cr_assert_str_eq(c.realm, t[i].realm, "%s", t[i].text);
		cr_assert_str_eq(c.service, t[i].service, "%s", t[i].text);
		cr_assert_str_eq(c.scope, t[i].scope, "%s", t[i].text);
	}
}

Test(oci_auth, challenges_that_cannot_be_read_are_invalid)
{
	static const char *const t[] = {"Bearer", "Bearer realm",
		"Bearer realm=", "Bearer realm=\"", "Bearer realm=\"a", "Bearer realm=\"a\\",
		"Bearer realm=\"\"", "Bearer service=x", "Bearer realm=a realm=b",
		"Bearer realm=a,realm=b", "realm=a", "=", "Bearer =a", "Bearer realm=a;scope=b",
		"\"Bearer\"", "Bearer realm=\"a\001\"", "Bearer realm=\"a\"b", "Bearer realm=a=b c",
		"Basic realm=x y"};
	struct err err = ERR_INIT;
	struct oci_challenge c;
	cleanup_strbuf struct strbuf s = STRBUF_INIT;

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		err_clear(&err);
		cr_assert_eq(oci_challenge_parse(t[i], strlen(t[i]), &c, &err), -1, "%s", t[i]);
		cr_assert_eq(err.kind, ERR_INVALID);
	}
	strbuf_adds(&s, "Bearer realm=");
	for (int i = 0; i < 1023; i++)
		strbuf_addc(&s, 'r');
	err_clear(&err);
	cr_assert_eq(oci_challenge_parse(s.data, s.len, &c, &err), 0);
	strbuf_addc(&s, 'r');
	cr_assert_eq(oci_challenge_parse(s.data, s.len, &c, &err), -1);
}

/* ---- tokens ---- */

Test(oci_auth, tokens)
{
	static const struct {
		const char *text, *token; /* NULL: refused */
		uint32_t valid_s;
	} t[] = {
		{"{\"token\":\"a.b-c\"}", "a.b-c", 60},
		{"{\"access_token\":\"x\",\"expires_in\":300,\"issued_at\":\"?\"}", "x", 300},
		{"{\"token\":\"t\",\"access_token\":\"x\"}", "t", 60},
		{"{\"token\":\"\",\"access_token\":\"x\"}", "x", 60},
		{"{\"token\":\"t\",\"expires_in\":1}", "t", 60},
		{"{\"token\":\"t\",\"expires_in\":-1}", "t", 60},
		{"{\"token\":\"t\",\"expires_in\":99999999999}", "t", 3600},
		{"{\"token\":\"t\",\"expires_in\":\"300\"}", "t", 60},
		{"{\"token\":1}", NULL, 0},
		{"{\"token\":\"a b\"}", NULL, 0},
		{"{\"token\":\"a\\r\\nX: y\"}", NULL, 0},
		{"{\"token\":\"\\u00e4\"}", NULL, 0},
		{"{}", NULL, 0},
		{"[]", NULL, 0},
		{"", NULL, 0},
		{"<html>", NULL, 0},
		{"{\"token\":\"t\",\"token\":\"u\"}", NULL, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct err err = ERR_INIT;
		struct oci_token got;
		int rc = oci_token_parse(t[i].text, strlen(t[i].text), &got, &err);

		cr_assert_eq(rc, t[i].token ? 0 : -1, "%s: %s", t[i].text, err.text);
		if (rc == 0) {
			cr_assert_str_eq((const char *)secret_peek(got.token), t[i].token);
			cr_assert_eq(got.valid_s, t[i].valid_s, "%s", t[i].text);
		} else {
			cr_assert_eq(err.kind, ERR_INVALID);
		}
		secret_free(got.token);
	}
}

Test(oci_auth, a_credential_alone_is_found_again)
{
	static const char *const texts[] = {
		"{\"auths\":{\"q.test\":{\"auth\":\"dTpwdw==\"},\"other.test\":{\"auth\":\"eDp5\"}}}",
		"{\"auths\":{\"q.test/a\":{\"username\":\"u\",\"password\":\"p\\\"\\\\\\u0001\"}}}",
		"{\"auths\":{\"q.test\":{\"identitytoken\":\"a\\\"b\\\\c\\u0007\xc3\xa4\"}}}"};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		cleanup_secret struct secret *s = secret_new_copy(texts[i], strlen(texts[i]));
		cleanup_secret struct secret *one = NULL;
		const struct secret *configs[] = {s};
		cleanup_oci_cred struct oci_cred *c = NULL, *again = NULL, *none = NULL;
		struct err err = ERR_INIT;

		cr_assert_eq(oci_cred_find(configs, 1, "q.test", "a/b", &c, &err), 0);
		one = oci_cred_config(c, "q.test", "a/b", &err);
		cr_assert(one, "%s", err.text);
		configs[0] = one;
		cr_assert_eq(oci_cred_find(configs, 1, "q.test", "a/b", &again, &err), 0, "%s",
			err.text);
		cr_assert(secret_equal(c->basic ? c->basic : c->identity,
			again->basic ? again->basic : again->identity));
		cr_assert_eq(oci_cred_find(configs, 1, "other.test", "a/b", &none, &err), 0);
		cr_assert_null(none);
	}
}
