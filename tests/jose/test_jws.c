/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/jose/jws.h"

/* RFC 8037 appendix A: the key pair of RFC 8032, and a JWS made with it. */
static const char rfc_private[] =
	"-----BEGIN PRIVATE KEY-----\n"
	"MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n"
	"-----END PRIVATE KEY-----\n";
static const char rfc_public[] = "-----BEGIN PUBLIC KEY-----\n"
				 "MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n"
				 "-----END PUBLIC KEY-----\n";
static const char rfc_token[] =
	"eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-"
	"09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";

static struct pki_key *key;
static struct strbuf pem;

static void up(void)
{
	cleanup_secret struct secret *text = secret_new_copy(rfc_private, sizeof(rfc_private) - 1);
	struct err err = ERR_INIT;

	key = pki_key_from_pem(text, &err);
	cr_assert(key, "%s", err.text);
	pki_key_public_pem(key, &pem);
}

static void down(void)
{
	pki_key_free(key);
	strbuf_fini(&pem);
	cr_assert_eq(secret_count(), 0);
	cr_assert_eq(ERR_peek_error(), 0);
}

TestSuite(jws, .init = up, .fini = down);

static int verify(
	const char *public_pem, const char *token, struct strbuf *payload, struct err *err)
{
	char *text = NULL;
	size_t len;
	cleanup_jws_public struct jws_public *k =
		jws_public_from_pem(public_pem, strlen(public_pem), err);
	int rc = -1;

	if (k)
		rc = jws_verify_eddsa(k, token, strlen(token), &text, &len, err);
	if (rc == 0) {
		strbuf_add(payload, text, len);
		cr_assert_eq(text[len], '\0');
	} else {
		cr_assert_null(text);
	}
	free(text);
	return rc;
}

Test(jws, the_vector_of_rfc_8037_verifies)
{
	cleanup_strbuf struct strbuf payload = STRBUF_INIT;
	struct err err = ERR_INIT;

	cr_assert_str_eq(pem.data, rfc_public);
	cr_assert_eq(verify(rfc_public, rfc_token, &payload, &err), 0, "%s", err.text);
	cr_assert_str_eq(strbuf_str(&payload), "Example of Ed25519 signing");
}

Test(jws, what_is_signed_verifies_and_says_what_it_is)
{
	static const char claims[] = "{\"role\":\"admin\",\"exp\":1}";
	cleanup_strbuf struct strbuf payload = STRBUF_INIT;
	struct err err = ERR_INIT;
	cleanup_secret struct secret *t = jws_sign_eddsa(key, claims, strlen(claims), &err);
	const char *text;

	cr_assert(t);
	text = (const char *)secret_peek(t);
	cr_assert_eq(strlen(text) + 1, secret_len(t));
	cr_assert(str_starts(text, "eyJ0eXAiOiJKV1QiLCJhbGciOiJFZERTQSJ9."));
	cr_assert_eq(verify(pem.data, text, &payload, &err), 0, "%s", err.text);
	cr_assert_str_eq(strbuf_str(&payload), claims);
}

Test(jws, an_empty_payload_is_one)
{
	cleanup_strbuf struct strbuf payload = STRBUF_INIT;
	struct err err = ERR_INIT;
	cleanup_secret struct secret *t = jws_sign_eddsa(key, "", 0, &err);

	cr_assert_eq(verify(pem.data, (const char *)secret_peek(t), &payload, &err), 0);
	cr_assert_eq(payload.len, 0);
}

Test(jws, another_kind_of_key_does_not_sign)
{
	cleanup_pki_key struct pki_key *p256 = pki_key_new_p256();
	struct err err = ERR_INIT;

	cr_assert_null(jws_sign_eddsa(p256, "{}", 2, &err));
	cr_assert_eq(err.kind, ERR_INVALID);
}

Test(jws, each_changed_character_is_seen)
{
	cleanup_free char *token = xstrdup(rfc_token);

	for (size_t i = 0; token[i]; i++) {
		cleanup_strbuf struct strbuf payload = STRBUF_INIT;
		struct err err = ERR_INIT;
		char was = token[i];

		token[i] = was == 'A' ? 'B' : 'A';
		cr_assert_eq(verify(rfc_public, token, &payload, &err), -1, "at %zu", i);
		token[i] = was;
	}
}

/* A token with this header and a signature that fits, whatever the header says. */
static char *signed_with_header(const char *header)
{
	cleanup_strbuf struct strbuf t = STRBUF_INIT;
	EVP_MD_CTX *md = EVP_MD_CTX_new();
	uint8_t sig[64];
	size_t len = sizeof(sig);

	bytes_to_b64url(&t, header, strlen(header));
	strbuf_adds(&t, ".e30");
	cr_assert_eq(EVP_DigestSignInit(md, NULL, NULL, NULL, pki_key_evp(key)), 1);
	cr_assert_eq(EVP_DigestSign(md, sig, &len, (const uint8_t *)t.data, t.len), 1);
	EVP_MD_CTX_free(md);
	strbuf_addc(&t, '.');
	bytes_to_b64url(&t, sig, len);
	return strbuf_steal(&t);
}

Test(jws, headers)
{
	static const struct {
		const char *header;
		bool good;
	} rows[] = {
		{"{\"alg\":\"EdDSA\"}", true},
		{"{\"typ\":\"JWT\",\"alg\":\"EdDSA\",\"kid\":\"1\"}", true},
		{"{\"alg\":\"none\"}", false},
		{"{\"alg\":\"HS256\"}", false},
		{"{\"alg\":\"eddsa\"}", false},
		{"{\"alg\":[\"EdDSA\"]}", false},
		{"{\"alg\":\"none\",\"alg\":\"EdDSA\"}", false},
		{"{\"alg\":\"EdDSA\",\"crit\":[\"b64\"],\"b64\":false}", false},
		{"{\"alg\":\"EdDSA\",\"crit\":null}", false},
		{"{}", false},
		{"[]", false},
		{"\"EdDSA\"", false},
		{"null", false},
		{"", false},
		{"{\"alg\":\"EdDSA\"", false},
		{"{\"alg\":\"EdDSA\"}{}", false},
		{"{\"alg\":\"EdDSA\",\"x\":[[[[[[1]]]]]]}", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		cleanup_free char *t = signed_with_header(rows[i].header);
		cleanup_strbuf struct strbuf payload = STRBUF_INIT;
		struct err err = ERR_INIT;

		cr_assert_eq(verify(pem.data, t, &payload, &err), rows[i].good ? 0 : -1, "%s",
			rows[i].header);
		cr_assert(rows[i].good || err.kind == ERR_INVALID);
	}
}

Test(jws, tokens_that_are_none)
{
	static const char *const rows[] = {
		"",
		".",
		"..",
		"...",
		"a",
		"a.b",
		"eyJhbGciOiJFZERTQSJ9",
		"eyJhbGciOiJFZERTQSJ9..",
		"eyJhbGciOiJFZERTQSJ9.e30",
		"eyJhbGciOiJFZERTQSJ9.e30.",
		"eyJhbGciOiJFZERTQSJ9.e30.AAAA",
		"eyJhbGciOiJFZERTQSJ9==.e30.AAAA",
		" eyJhbGciOiJFZERTQSJ9.e30.AAAA",
		"eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-"
		"09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg.",
		"eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-"
		"09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg==",
		"eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-"
		"09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg\n",
		"eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il/MGCjP0JzlnLWG1PPOt7+"
		"09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr/MuM0KAg",
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		cleanup_strbuf struct strbuf payload = STRBUF_INIT;
		struct err err = ERR_INIT;

		cr_assert_eq(verify(rfc_public, rows[i], &payload, &err), -1, "row %zu", i);
		cr_assert_eq(err.kind, ERR_INVALID);
		cr_assert(str_ends(err.text, "."));
	}
}

Test(jws, length_is_bounded_and_counted_not_searched)
{
	cleanup_free char *big = xmalloc(JWS_MAX_LEN + 1);
	struct err err = ERR_INIT;
	cleanup_jws_public struct jws_public *k =
		jws_public_from_pem(rfc_public, strlen(rfc_public), &err);
	char *payload;
	size_t len;

	memset(big, 'A', JWS_MAX_LEN + 1);
	cr_assert(k);
	cr_assert_eq(jws_verify_eddsa(k, big, JWS_MAX_LEN + 1, &payload, &len, &err), -1);
	err_clear(&err);
	/* Cut by its length: the bytes behind are not looked at. */
	cr_assert_eq(
		jws_verify_eddsa(k, rfc_token, strlen(rfc_token) - 1, &payload, &len, &err), -1);
}

Test(jws, keys_that_are_none)
{
	cleanup_pki_key struct pki_key *other = pki_key_new_ed25519(), *p256 = pki_key_new_p256();
	cleanup_strbuf struct strbuf p = STRBUF_INIT, e = STRBUF_INIT, two = STRBUF_INIT;
	cleanup_strbuf struct strbuf payload = STRBUF_INIT;
	struct err err = ERR_INIT;

	pki_key_public_pem(p256, &p);
	pki_key_public_pem(other, &e);
	strbuf_addf(&two, "%s%s", rfc_public, rfc_public);
	cr_assert_eq(verify(p.data, rfc_token, &payload, &err), -1);
	cr_assert_eq(err.kind, ERR_INVALID);
	err_clear(&err);
	cr_assert_eq(verify(e.data, rfc_token, &payload, &err), -1);
	cr_assert_eq(err.kind, ERR_DENIED);
	err_clear(&err);
	cr_assert_eq(verify(two.data, rfc_token, &payload, &err), -1);
	err_clear(&err);
	cr_assert_eq(verify(rfc_private, rfc_token, &payload, &err), -1);
	err_clear(&err);
	cr_assert_eq(verify("", rfc_token, &payload, &err), -1);
}
