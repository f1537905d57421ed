/* SPDX-License-Identifier: MIT */
/*
 * A node's public key as JSON, and what is encrypted to it. A key that is taken has one of the three
 * kinds, encrypts twice to different texts, and its header is one of the four there are.
 */
#include "config.h"

#include <assert.h>
#include <openssl/err.h>
#include <stdint.h>
#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/jose/jwe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_header(const char *jwe, const struct pki_jwk *k)
{
	struct err err = ERR_INIT;
	cleanup_json struct json_object *o =
		json_parse(jwe, strlen(jwe), &json_limits_object, &err);
	const char *text = json_get_str(o, "protected");
	cleanup_free uint8_t *header = NULL;
	cleanup_free char *start = xasprintf("{\"alg\":\"%s\",\"enc\":\"A256GCM\"", k->alg);
	size_t len;

	assert(o && json_object_object_length(o) == 5 && text);
	if (bytes_from_b64url(text, strlen(text), &header, &len) < 0)
		assert(!"the header is not base64url");
	assert(len > strlen(start) && memcmp(header, start, strlen(start)) == 0);
	assert(str_eq(k->kty, "RSA")
			? str_eq(k->alg, "RSA-OAEP-256")
			: str_eq(k->alg, "ECDH-ES+A256KW") &&
				  (str_eq(k->crv, "P-256") || str_eq(k->crv, "P-521")));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_strbuf struct strbuf a = STRBUF_INIT, b = STRBUF_INIT;
	struct err err = ERR_INIT;
	cleanup_json struct json_object *o =
		json_parse((const char *)data, size, &json_limits_public, &err);
	const struct pki_jwk k = pki_jwk_read(o);
	struct jwe_key *key;

	if (!json_object_is_type(o, json_type_object))
		return 0;
	err_clear(&err);
	key = jwe_key_new(&k, &err);
	if (!key) {
		assert(err.kind == ERR_INVALID && err.text[0]);
	} else {
		assert(jwe_encrypt(key, data, size, &a, &err) == 0);
		assert(jwe_encrypt(key, data, size, &b, &err) == 0);
		assert(strcmp(strbuf_str(&a), strbuf_str(&b)) != 0);
		check_header(strbuf_str(&a), &k);
	}
	jwe_key_free(key);
	assert(ERR_peek_error() == 0);
	return 0;
}
