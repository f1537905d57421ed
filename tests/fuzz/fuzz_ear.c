/* SPDX-License-Identifier: MIT */
/*
 * Attestation tokens and their claims. The first byte chooses: 'P' claims as JSON, which are signed and
 * must come back as they went, and are read; 'H' a header before another token's claims and signature;
 * anything else a token as it stands. No token verifies that was not signed here.
 */
#include "config.h"

#include <assert.h>
#include <openssl/err.h>
#include <stdint.h>
#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/jose/jws.h"
#include "tec/jose/jwe.h"
#include "tec/rats/ear.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct pki_key *key;
static char *genuine; /* a token of this key */

static void refuse(const char *token, size_t len)
{
	struct err err = ERR_INIT;
	char *payload = NULL;
	size_t n;

	if (jws_verify_es256(key, token, len, &payload, &n, &err) == 0)
		assert(!"a forged token verifies");
	assert(!payload && err.text[0]);
	assert(err.kind == ERR_INVALID || err.kind == ERR_DENIED);
}

/* What is read is whole, and its key is one to encrypt to or is refused. */
static void claims(const char *text, size_t len)
{
	cleanup_rats_ear struct rats_ear ear = {.o = NULL};
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	struct err err = ERR_INIT;
	struct jwe_key *k;

	if (rats_ear_read(text, len, &ear, &err) < 0) {
		assert(err.text[0]);
		return;
	}
	assert(ear.holder.status && ear.exp_s);
	k = jwe_key_new(&ear.key, &err);
	if (k)
		assert(jwe_encrypt(k, "x", 1, &out, &err) == 0 && out.len > 100);
	else
		assert(err.kind == ERR_INVALID);
	jwe_key_free(k);
}

static void round_trip(const char *text, size_t len)
{
	struct err err = ERR_INIT;
	cleanup_secret struct secret *t = jws_sign_es256(key, text, len, &err);
	cleanup_free char *payload = NULL;
	size_t n;
	int rc;

	if (!t) {
		assert(err.text[0]);
		return;
	}
	rc = jws_verify_es256(
		key, (const char *)secret_peek(t), secret_len(t) - 1, &payload, &n, &err);
	assert(rc == 0 && n == len && memcmp(payload, text, len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data + 1;

	if (!key) {
		struct err err = ERR_INIT;
		cleanup_secret struct secret *t = NULL;

		key = pki_key_new_p256();
		t = jws_sign_es256(key, "{\"exp\":1}", 9, &err);
		genuine = xstrdup((const char *)secret_peek(t));
	}
	if (size == 0)
		return 0;
	size--;
	if (data[0] == 'P') {
		claims(text, size);
		if (size < 8192)
			round_trip(text, size);
	} else if (data[0] == 'H') {
		cleanup_strbuf struct strbuf token = STRBUF_INIT;

		bytes_to_b64url(&token, text, size);
		strbuf_adds(&token, strchr(genuine, '.'));
		if (!str_eq(strbuf_str(&token), genuine))
			refuse(token.data, token.len);
	} else {
		refuse(text, size);
	}
	assert(ERR_peek_error() == 0);
	return 0;
}
