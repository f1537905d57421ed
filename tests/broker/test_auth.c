/* SPDX-License-Identifier: MIT */
/* Tokens made here, with the key or another; the clock is an argument. */
#include "config.h"

#include <criterion/criterion.h>

#include "broker_fixture.h"

#define PATH   "/kbs/v0/resource/a/b/c"
#define CLAIMS "\"role\":\"admin\",\"exp\":1000"

static const char *const paths[] = {"/kbs/v0/resource", "/kbs/v0/reference-value", NULL};
static const char *const few[] = {"/kbs/v0/resource-policy", NULL};
static const struct broker_auth_acl acls[] = {{"admin", paths}, {"reader", few}};

struct rig {
	struct pki_key *key, *other;
	struct jws_public *admin;
	struct broker_auth auth;
};

static void rig_init(struct rig *g)
{
	cleanup_strbuf struct strbuf pem = STRBUF_INIT;
	struct err err = ERR_INIT;

	*g = (struct rig){pki_key_new_ed25519(), pki_key_new_ed25519(), NULL, {0}};
	pki_key_public_pem(g->key, &pem);
	g->admin = jws_public_from_pem(pem.data, pem.len, &err);
	cr_assert(g->admin);
	g->auth = (struct broker_auth){g->admin, NULL, NULL, acls, ARRAY_LEN(acls)};
}

static void rig_fini(struct rig *g)
{
	pki_key_free(g->key);
	pki_key_free(g->other);
	jws_public_free(g->admin);
}

/* The status, 0 when it is allowed. */
static int check(struct rig *g, const char *authorization, const char *target, int64_t now_s)
{
	struct err err = ERR_INIT;

	if (broker_auth_check(&g->auth, authorization, target, now_s, &err) == 0)
		return 0;
	cr_expect_eq(err.kind, ERR_DENIED);
	return err.http;
}

static int check_claims(struct rig *g, const char *claims, const char *target, int64_t now_s)
{
	cleanup_free char *header = fixture_bearer(g->key, claims);

	return check(g, header, target, now_s);
}

Test(broker_auth, claims_decide)
{
	static const struct {
		const char *claims;
		int64_t now_s;
		int status;
	} rows[] = {
		{"{" CLAIMS "}", 1000, 0},
		{"{" CLAIMS "}", 0, 0},
		{"{" CLAIMS "}", 1060, 0}, /* leeway */
		{"{" CLAIMS "}", 1061, 401},
		{"{" CLAIMS ",\"nbf\":99999}", 1, 0}, /* not looked at */
		{"{\"role\":\"admin\"}", 1, 401},
		{"{\"role\":\"admin\",\"exp\":null}", 1, 401},
		{"{\"role\":\"admin\",\"exp\":\"1000\"}", 1, 401},
		{"{\"role\":\"admin\",\"exp\":-1}", 1, 401},
		{"{\"role\":\"admin\",\"exp\":1e99}", 1, 401},
		{"{\"role\":\"admin\",\"exp\":2147483647}", 1000, 0},
		{"{\"role\":\"admin\",\"exp\":9223372036854775807}", 1000, 0},
		{"{\"role\":\"admin\",\"exp\":9223372036854775808}", 1000, 401},
		{"{\"exp\":1000}", 1, 401},
		{"{\"role\":[\"admin\"],\"exp\":1000}", 1, 401},
		{"{\"role\":7,\"exp\":1000}", 1, 401},
		{"{\"role\":\"\",\"exp\":1000}", 1, 403},
		{"{\"role\":\"Admin\",\"exp\":1000}", 1, 403},
		{"{\"role\":\"reader\",\"exp\":1000}", 1, 403},
		{"[" CLAIMS "]", 1, 401},
		{"[]", 1, 401},
		{"null", 1, 401},
		{"\"admin\"", 1, 401},
		{"{" CLAIMS, 1, 401},
		{"{" CLAIMS ",\"exp\":5000}", 1, 401},
	};
	struct rig g;

	rig_init(&g);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int status = check_claims(&g, rows[i].claims, PATH, rows[i].now_s);

		cr_expect_eq(status, rows[i].status, "%d: %s", status, rows[i].claims);
	}
	rig_fini(&g);
}

Test(broker_auth, issuer_and_audience_count_when_they_are_configured)
{
	static const struct {
		const char *more;
		int status;
	} rows[] = {
		{"", 401},
		{",\"iss\":\"me\",\"aud\":\"kbs\"", 0},
		{",\"iss\":\"me\",\"aud\":[\"x\",\"kbs\"]", 0},
		{",\"iss\":\"me\",\"aud\":[\"x\"]", 401},
		{",\"iss\":\"me\",\"aud\":[7,null]", 401},
		{",\"iss\":\"me\",\"aud\":[]", 401},
		{",\"iss\":\"me\"", 401},
		{",\"aud\":\"kbs\"", 401},
		{",\"iss\":\"you\",\"aud\":\"kbs\"", 401},
		{",\"iss\":[\"me\"],\"aud\":\"kbs\"", 401},
		{",\"iss\":\"me\",\"aud\":\"KBS\"", 401},
	};
	struct rig g;

	rig_init(&g);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char claims[200];

		snprintf(claims, sizeof(claims), "{" CLAIMS "%s}", rows[i].more);
		g.auth.issuer = g.auth.audience = NULL;
		cr_expect_eq(check_claims(&g, claims, PATH, 1), 0, "%s", claims);
		g.auth.issuer = "me";
		g.auth.audience = "kbs";
		cr_expect_eq(check_claims(&g, claims, PATH, 1), rows[i].status, "%s", claims);
	}
	rig_fini(&g);
}

Test(broker_auth, roles_have_their_paths)
{
	static const struct {
		const char *target;
		int admin, reader;
	} rows[] = {
		{"/kbs/v0/resource/a", 0, 403},
		{"/kbs/v0/resource", 0, 403},
		{"/kbs/v0/resource/a?x", 0, 403},
		{"/kbs/v0/resource/", 0, 403},
		{"/kbs/v0/resource?x", 403, 403}, /* as the expression has it */
		{"/kbs/v0/resourceful", 403, 403},
		{"/kbs/v0/resource-policy", 403, 0},
		{"/kbs/v0/attestation-policy", 403, 403},
		{"/kbs/v0/reference-value/a/b", 0, 403},
		{"/KBS/v0/resource/a", 403, 403},
		{"//kbs/v0/resource/a", 403, 403},
		{"/x/kbs/v0/resource/a", 403, 403},
		{"/kbs/v0/", 403, 403},
		{"/", 403, 403},
	};
	struct rig g;

	rig_init(&g);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		cr_expect_eq(check_claims(&g, "{" CLAIMS "}", rows[i].target, 1), rows[i].admin,
			"%s", rows[i].target);
		cr_expect_eq(check_claims(&g, "{\"role\":\"reader\",\"exp\":1}", rows[i].target, 1),
			rows[i].reader, "%s", rows[i].target);
	}
	rig_fini(&g);
}

Test(broker_auth, only_the_admin_key_signs)
{
	struct rig g;
	char *good, *other, *cut;
	static const char *const none[] = {NULL, "", "Bearer", "Bearer ", "Basic YTpi", "Bearer a",
		"Bearer a.b.c", "Bearer ..",
		/* {"alg":"none"}.{"role":"admin","exp":1000}. */
		"Bearer eyJhbGciOiJub25lIn0.eyJyb2xlIjoiYWRtaW4iLCJleHAiOjEwMDB9."};

	rig_init(&g);
	good = fixture_bearer(g.key, "{" CLAIMS "}");
	other = fixture_bearer(g.other, "{" CLAIMS "}");
	cut = xstrndup(good, strlen(good) - 1);
	cr_expect_eq(check(&g, good, PATH, 1), 0);
	memcpy(good, "bEARER", 6);
	cr_expect_eq(check(&g, good, PATH, 1), 0);
	cr_expect_eq(check(&g, other, PATH, 1), 401);
	cr_expect_eq(check(&g, cut, PATH, 1), 401);
	cr_expect_eq(check(&g, good + strlen("Bearer "), PATH, 1), 401);
	for (size_t i = 0; i < ARRAY_LEN(none); i++)
		cr_expect_eq(check(&g, none[i], PATH, 1), 401, "%zu", i);
	free(good);
	free(other);
	free(cut);
	rig_fini(&g);
}
