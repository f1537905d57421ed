/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "tec/apireq/user.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"

#define NOW INT64_C(1790000000)

static struct pki_key *key;
static struct jws_public *public;

static struct jws_public *public_of(const struct pki_key *k)
{
	cleanup_strbuf struct strbuf pem = STRBUF_INIT;
	struct err err = ERR_INIT;
	struct jws_public *p;

	pki_key_public_pem(k, &pem);
	p = jws_public_from_pem(pem.data, pem.len, &err);
	cr_assert_not_null(p, "%s", err.text);
	return p;
}

static void up(void)
{
	key = pki_key_new_ed25519();
	public = public_of(key);
}

static void down(void)
{
	jws_public_free(public);
	pki_key_free(key);
}

TestSuite(apireq_user, .init = up, .fini = down);

static struct secret *sign(const char *audience)
{
	const char *const audiences[] = {"other", audience, NULL};
	struct apireq_token t = {"ns", "follower", "uid-1", audiences, NOW, 600};
	struct err err = ERR_INIT;
	struct secret *s = apireq_token_sign(key, &t, &err);

	cr_assert_not_null(s, "%s", err.text);
	return s;
}

static int read_at(
	const struct jws_public *k, const char *token, int64_t now, struct apireq_user *u)
{
	struct err err = ERR_INIT;

	return apireq_token_read(k, token, strlen(token), now, u, &err);
}

Test(apireq_user, a_token_is_its_service_account)
{
	cleanup_secret struct secret *s = sign(APIREQ_ISSUER);
	const char *token = (const char *)secret_peek(s);
	struct apireq_user u;

	cr_assert_eq(read_at(public, token, NOW + 599, &u), 0);
	cr_expect_str_eq(u.name, "system:serviceaccount:ns:follower");
	cr_expect_str_eq(u.uid, "uid-1");
	cr_expect(apireq_user_in(&u, "system:serviceaccounts"));
	cr_expect(apireq_user_in(&u, "system:serviceaccounts:ns"));
	cr_expect_not(apireq_user_in(&u, APIREQ_MASTERS));
	cr_expect_eq(read_at(public, token, NOW + 600, &u), -1, "expired");
	cr_expect_eq(read_at(public, token, NOW - 61, &u), -1, "not yet");
}

Test(apireq_user, a_token_of_others_or_for_others_is_nobody)
{
	cleanup_secret struct secret *good = sign(APIREQ_ISSUER), *foreign = sign("vault");
	cleanup_pki_key struct pki_key *other = pki_key_new_ed25519();
	cleanup_jws_public struct jws_public *other_public = public_of(other);
	const char *token = (const char *)secret_peek(good);
	cleanup_free char *cut = xstrndup(token, strlen(token) - 1);
	struct apireq_user u;

	cr_expect_eq(read_at(public, (const char *)secret_peek(foreign), NOW, &u), -1);
	cr_expect_eq(read_at(other_public, token, NOW, &u), -1);
	cr_expect_eq(read_at(public, cut, NOW, &u), -1);
	cr_expect_eq(read_at(public, "", NOW, &u), -1);
	cr_expect_eq(read_at(public, "a.b.c", NOW, &u), -1);
}

/* What we would never sign, signed with our key: a claim of another type must not be read as if. */
Test(apireq_user, claims_that_are_not_ours_are_refused)
{
	static const char *const claims[] = {
		"{}",
		"[]",
		"{\"iss\":\"" APIREQ_ISSUER "\",\"aud\":[\"" APIREQ_ISSUER
		"\"],\"exp\":9999999999,\"nbf\":0}",
		"{\"iss\":\"" APIREQ_ISSUER "\",\"aud\":\"" APIREQ_ISSUER
		"\",\"exp\":9999999999,\"nbf\":0,\"kubernetes.io\":{\"namespace\":\"a\",\"serviceaccount\":{\"name\":\"b\",\"uid\":\"c\"}}}",
		"{\"iss\":\"x\",\"aud\":[\"" APIREQ_ISSUER
		"\"],\"exp\":9999999999,\"nbf\":0,\"kubernetes.io\":{\"namespace\":\"a\",\"serviceaccount\":{\"name\":\"b\",\"uid\":\"c\"}}}",
		"{\"iss\":\"" APIREQ_ISSUER "\",\"aud\":[\"" APIREQ_ISSUER
		"\"],\"nbf\":0,\"kubernetes.io\":{\"namespace\":\"a\",\"serviceaccount\":{\"name\":\"b\",\"uid\":\"c\"}}}",
	};

	for (size_t i = 0; i < ARRAY_LEN(claims); i++) {
		struct err err = ERR_INIT;
		cleanup_secret struct secret *s =
			jws_sign_eddsa(key, claims[i], strlen(claims[i]), &err);
		struct apireq_user u;

		cr_assert_not_null(s);
		cr_expect_eq(read_at(public, (const char *)secret_peek(s), NOW, &u), -1, "%s",
			claims[i]);
	}
}

Test(apireq_user, groups_beyond_the_last_place_are_left_out)
{
	struct apireq_user u = {.n_groups = 0};
	char name[APIREQ_GROUP_LEN + 1];

	memset(name, 'g', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	apireq_user_add_group(&u, name);
	cr_expect_eq(u.n_groups, 0, "too long");
	for (unsigned i = 0; i < 2 * APIREQ_GROUPS_MAX; i++) {
		snprintf(name, sizeof(name), "g%u", i);
		apireq_user_add_group(&u, name);
		apireq_user_add_group(&u, name);
	}
	cr_expect_eq(u.n_groups, APIREQ_GROUPS_MAX);
}
