/* SPDX-License-Identifier: MIT */
/*
 * No input verifies that was not signed here, a refusal is a whole sentence, and OpenSSL's error
 * queue stays empty. The first byte chooses: a token as it stands, a header (encoded first, so that
 * mutations reach the JSON), a public key, or a payload that is signed and must come back.
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct pki_key *key;
static struct strbuf pem;

static void refuse(const char *public_pem, size_t pem_len, const char *token, size_t len)
{
	struct err err = ERR_INIT;
	cleanup_jws_public struct jws_public *k = jws_public_from_pem(public_pem, pem_len, &err);
	char *payload = NULL;
	size_t n;

	if (k && jws_verify_eddsa(k, token, len, &payload, &n, &err) == 0)
		assert(!"a forged token verifies");
	assert(!payload && str_ends(err.text, "."));
	assert(err.kind == ERR_INVALID || err.kind == ERR_DENIED);
}

static void round_trip(const char *text, size_t len)
{
	struct err err = ERR_INIT;
	cleanup_secret struct secret *t = jws_sign_eddsa(key, text, len, &err);
	const char *token = (const char *)secret_peek(t);
	cleanup_jws_public struct jws_public *k = jws_public_from_pem(pem.data, pem.len, &err);
	cleanup_free char *payload = NULL;
	size_t n;
	int rc = jws_verify_eddsa(k, token, secret_len(t) - 1, &payload, &n, &err);

	assert(rc == 0 && n == len && memcmp(payload, text, len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_strbuf struct strbuf token = STRBUF_INIT;
	const char *text = (const char *)data + 1;

	if (!key) {
		key = pki_key_new_ed25519();
		pki_key_public_pem(key, &pem);
	}
	if (size == 0)
		return 0;
	size--;
	if (data[0] == 'H') {
		bytes_to_b64url(&token, text, size);
		strbuf_adds(&token, ".e30.");
		for (int i = 0; i < 86; i++)
			strbuf_addc(&token, 'A');
		refuse(pem.data, pem.len, token.data, token.len);
	} else if (data[0] == 'K') {
		static const char t[] = "eyJhbGciOiJFZERTQSJ9.e30.AAAA";

		refuse(text, size, t, sizeof(t) - 1);
	} else if (data[0] == 'S' && size < 8192) {
		round_trip(text, size);
	} else {
		refuse(pem.data, pem.len, text, size);
	}
	assert(ERR_peek_error() == 0);
	return 0;
}
