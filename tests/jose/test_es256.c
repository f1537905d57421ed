/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/mem.h"
#include "tec/jose/jws.h"

static const char claims[] = "{\"exp\":1,\"a\":\"b\"}";

static int verify(const struct pki_key *key, const char *token, size_t len)
{
	cleanup_free char *payload = NULL;
	struct err err = ERR_INIT;
	size_t n = 0;

	if (jws_verify_es256(key, token, len, &payload, &n, &err) < 0) {
		cr_expect(err.kind == ERR_INVALID || err.kind == ERR_DENIED);
		return -1;
	}
	cr_expect_str_eq(payload, claims);
	cr_expect_eq(n, strlen(claims));
	return 0;
}

Test(jose_es256, what_was_signed_verifies_with_its_key_alone)
{
	cleanup_pki_key struct pki_key *key = pki_key_new_p256(), *other = pki_key_new_p256();
	cleanup_pki_key struct pki_key *ed = pki_key_new_ed25519();
	struct err err = ERR_INIT, none = ERR_INIT;

	for (int i = 0; i < 50; i++) { /* r and s of fewer than 32 bytes come in time */
		cleanup_secret struct secret *t = jws_sign_es256(key, claims, strlen(claims), &err);
		const char *text = (const char *)secret_peek(t);

		cr_assert_eq(verify(key, text, strlen(text)), 0);
		cr_assert_eq(verify(other, text, strlen(text)), -1);
	}
	cr_assert_null(jws_sign_es256(ed, claims, strlen(claims), &none));
	cr_assert_eq(none.kind, ERR_INVALID);
}

Test(jose_es256, every_changed_character_is_seen)
{
	cleanup_pki_key struct pki_key *key = pki_key_new_p256();
	struct err err = ERR_INIT;
	cleanup_secret struct secret *t = jws_sign_es256(key, claims, strlen(claims), &err);
	char *text = (char *)secret_bytes(t);
	size_t len = strlen(text);

	for (size_t i = 0; i < len; i++) {
		char was = text[i];

		text[i] = was == 'A' ? 'B' : 'A';
		cr_expect_eq(verify(key, text, len), -1, "at %zu", i);
		text[i] = was;
	}
	cr_expect_eq(verify(key, text, len), 0);
	for (size_t n = 0; n < len; n++)
		cr_expect_eq(verify(key, text, n), -1);
}

/* Headers of others with this token's claims and signature: alg none, HS256, the key of an attacker. */
Test(jose_es256, no_header_but_its_own)
{
	static const char *const headers[] = {"{\"alg\":\"none\"}",
		"{\"typ\":\"JWT\",\"alg\":\"HS256\"}", "{\"typ\":\"JWT\",\"alg\":\"ES256\"}", "{}",
		""};
	cleanup_pki_key struct pki_key *key = pki_key_new_p256(), *other = pki_key_new_p256();
	struct err err = ERR_INIT;
	cleanup_secret struct secret *t = jws_sign_es256(key, claims, strlen(claims), &err);
	cleanup_secret struct secret *o = jws_sign_es256(other, claims, strlen(claims), &err);
	const char *rest = strchr((const char *)secret_peek(t), '.');
	const char *theirs = (const char *)secret_peek(o);

	for (size_t i = 0; i <= ARRAY_LEN(headers); i++) {
		cleanup_strbuf struct strbuf forged = STRBUF_INIT;

		if (i < ARRAY_LEN(headers))
			bytes_to_b64url(&forged, headers[i], strlen(headers[i]));
		else
			strbuf_add(&forged, theirs, strcspn(theirs, "."));
		strbuf_adds(&forged, rest);
		cr_expect_eq(verify(key, forged.data, forged.len), -1, "%zu", i);
	}
}
