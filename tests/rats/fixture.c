/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "fixture.h"

#include <criterion/criterion.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"

/* magic, type, qualifiedSigner (empty), size of extraData */
static const uint8_t head[] = {0xff, 'T', 'C', 'G', 0x80, 0x18, 0, 0, 0, 32};
#define CLOCK_LEN 25 /* clock, resetCount, restartCount, safe, firmwareVersion */
#define SELECT_AT (sizeof(head) + SHA256_LEN + CLOCK_LEN)

static EVP_PKEY *key(void)
{
	static EVP_PKEY *k;

	if (!k)
		k = EVP_RSA_gen(2048);
	cr_assert(k);
	return k;
}

static bool unsealed;

void fixture_unseal(void)
{
	unsealed = true;
}

void fixture_quote(const uint8_t extra[SHA256_LEN], struct fixture_quote *q)
{
	static const uint8_t all[] = {0, 0, 0, 1, 0, 0x0b, 3, 0xff, 0xff, 0xff};
	uint8_t *p = q->attest;

	memset(q, 0, sizeof(*q));
	for (size_t i = 0; i < TPM_PCR_COUNT; i++)
		memset(q->pcrs[i], (int)i, SHA256_LEN);
	if (unsealed)
		memset(q->pcrs[15], 0, SHA256_LEN);
	rats_initdata_pcr8(FIXTURE_INIT, strlen(FIXTURE_INIT), q->pcrs[8]);
	memcpy(p, head, sizeof(head));
	memcpy(p + sizeof(head), extra, SHA256_LEN);
	fixture_quote_select(q, all, sizeof(all));
}

void fixture_quote_select(struct fixture_quote *q, const void *selection, size_t len)
{
	uint8_t *p = q->attest + SELECT_AT;

	memcpy(p, selection, len);
	p[len] = 0;
	p[len + 1] = SHA256_LEN;
	bytes_sha256(q->pcrs, sizeof(q->pcrs), p + len + 2);
	q->attest_len = SELECT_AT + len + 2 + SHA256_LEN;
	fixture_sign(q);
}

void fixture_sign(struct fixture_quote *q)
{
	static const uint8_t rsassa[] = {0, 0x14, 0, 0x0b, 1, 0};
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	size_t len = sizeof(q->sig) - sizeof(rsassa);

	memcpy(q->sig, rsassa, sizeof(rsassa));
	cr_assert_eq(EVP_DigestSignInit(ctx, NULL, EVP_sha256(), NULL, key()), 1);
	cr_assert_eq(
		EVP_DigestSign(ctx, q->sig + sizeof(rsassa), &len, q->attest, q->attest_len), 1);
	EVP_MD_CTX_free(ctx);
	cr_assert_eq(len, 256);
	q->sig_len = sizeof(rsassa) + len;
}

static struct json_object *b64(const void *bytes, size_t len)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;

	bytes_to_b64(&text, bytes, len);
	return json_object_new_string(strbuf_str(&text));
}

struct json_object *fixture_evidence(const struct fixture_quote *q)
{
	struct json_object *pcrs = json_arr(), *quote = json_obj();
	char hex[SHA256_HEX_LEN + 1];
	unsigned char *der = NULL;
	int len = i2d_PUBKEY(key(), &der);
	struct json_object *o;

	for (size_t i = 0; i < TPM_PCR_COUNT; i++) {
		bytes_to_hex(q->pcrs[i], SHA256_LEN, hex);
		json_push_str(pcrs, hex);
	}
	json_add(quote, "signature", b64(q->sig, q->sig_len));
	json_add(quote, "message", b64(q->attest, q->attest_len));
	json_add(quote, "pcrs", pcrs);
	o = json_add(json_obj(), "tpm_quote", quote);
	json_add(o, "ak_public", b64(der, (size_t)len));
	OPENSSL_free(der);
	return o;
}

static struct json_object *make_attest(const char *nonce, bool init_data)
{
	static const struct pki_jwk jwk = {.kty = "EC",
		.crv = "P-256",
		.alg = "ECDH-ES+A256KW",
		.x = FIXTURE_X,
		.y = FIXTURE_Y};
	struct json_object *o = json_obj(), *key = json_obj(), *init = NULL;
	uint8_t binding[RATS_BINDING_LEN];
	struct fixture_quote q;

	rats_binding(&jwk, nonce, "", binding);
	fixture_quote(binding, &q);
	json_add_str(json_add_str(key, "kty", "EC"), "crv", "P-256");
	json_add_str(json_add_str(key, "alg", jwk.alg), "kid", "ignored");
	json_add_str(json_add_str(key, "x", FIXTURE_X), "y", FIXTURE_Y);
	if (init_data)
		init = json_add_str(
			json_add_str(json_obj(), "format", "toml"), "body", FIXTURE_INIT);
	json_add(o, "init-data", init);
	json_add(o, "runtime-data",
		json_add(json_add_str(json_obj(), "nonce", nonce), "tee-pubkey", key));
	return json_add(o, "tee-evidence",
		json_add_str(json_add(json_obj(), "primary_evidence", fixture_evidence(&q)),
			"additional_evidence", ""));
}

struct json_object *fixture_attest(bool init_data)
{
	return make_attest(FIXTURE_NONCE, init_data);
}

struct json_object *fixture_attest_for(const char *nonce)
{
	return make_attest(nonce, false);
}
