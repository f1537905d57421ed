/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "broker/attest_world.h"

Test(broker_attest, an_approved_node_gets_its_own_resource_and_no_other)
{
	struct world w;
	cleanup_free char *token = NULL, *bearer = NULL;

	world_start(&w);
	approve(&w);
	cr_assert_eq(auth(&w), 200);
	cr_assert_str_eq(resource(&w, OWN_PATH), "TokenNotFound");
	cr_assert_eq(attest(&w, NULL, &token), 200);
	cr_assert_eq(w.flaw, RATS_FLAW_NONE);
	cr_assert_str_eq(w.why, "");
	cr_expect_str_eq(resource(&w, OWN_PATH), "ok");
	cr_expect_str_eq(resource(&w, OTHER_PATH), "PolicyDeny");
	cr_expect_str_eq(resource(&w, "default/" UUID "/toor"), "PolicyDeny");
	cr_expect_str_eq(resource(&w, OWN_PATH "/x"), "InvalidRequestPath");
	cr_expect_str_eq(resource(&w, "default/../root"), "InvalidRequestPath");
	cr_expect_str_eq(resource(&w, OWN_PATH "?x=1"), "InvalidRequestPath");
	w.node.cookie = NULL;
	cr_expect_str_eq(resource(&w, OWN_PATH), "TokenNotFound");
	w.node.authorization = bearer = xasprintf("Bearer %s", token);
	cr_expect_str_eq(resource(&w, OWN_PATH), "ok");
	w.node.now_s += 360;
	cr_expect_str_eq(resource(&w, OWN_PATH), "ok");
	w.node.now_s += 1;
	cr_expect_str_eq(resource(&w, OWN_PATH), "TokenVerifierError");
	world_stop(&w);
}

/* The fixture's PCR 15 is not zero. */
Test(broker_attest, a_node_that_finished_its_boot_gets_its_disk_key_no_more)
{
	struct world w;

	world_start(&w);
	approve(&w);
	set(&w, BROKER_STORE_KBS, "resource-policy.rego", "resource-once");
	cr_assert_eq(auth(&w), 200);
	cr_assert_eq(attest(&w, NULL, NULL), 200);
	cr_expect_str_eq(resource(&w, OWN_PATH), "PolicyDeny");
	cr_expect(strstr(w.why, "has finished its boot"), "%s", w.why);
	cr_expect_str_eq(resource(&w, OTHER_PATH), "PolicyDeny");
	cr_expect(strstr(w.why, "only default/" UUID "/root"), "%s", w.why);
	fixture_unseal();
	cr_assert_eq(auth(&w), 200);
	cr_assert_eq(attest(&w, NULL, NULL), 200);
	cr_expect_str_eq(resource(&w, OWN_PATH), "ok");
	cr_expect_str_eq(resource(&w, OTHER_PATH), "PolicyDeny");
	world_stop(&w);
}

Test(broker_attest, a_resource_that_is_gone_is_not_found)
{
	struct world w;
	struct err err = ERR_INIT;

	world_start(&w);
	approve(&w);
	cr_assert_eq(auth(&w), 200);
	cr_assert_eq(attest(&w, NULL, NULL), 200);
	cr_assert_eq(broker_store_remove(w.store, BROKER_STORE_REPOSITORY, OWN_PATH, &err), 0);
	cr_expect_str_eq(resource(&w, OWN_PATH), "ResourceNotFound");
	world_stop(&w);
}

Test(broker_attest, what_is_not_approved_gets_a_token_and_nothing_for_it)
{
	struct world w;

	world_start(&w);
	cr_assert_eq(auth(&w), 200);
	cr_assert_eq(attest(&w, NULL, NULL), 200);
	cr_expect_eq(w.flaw, RATS_FLAW_NONE);
	cr_expect(strstr(w.why, "not registered"), "%s", w.why);
	cr_expect_str_eq(resource(&w, OWN_PATH), "PolicyDeny");
	approve(&w);
	set(&w, BROKER_STORE_ATTESTATION_POLICY, "default_cpu.rego", "attest7");
	cr_assert_eq(auth(&w), 200);
	cr_assert_eq(attest(&w, NULL, NULL), 200);
	cr_expect(strstr(w.why, "boot is not approved"), "%s", w.why);
	cr_expect_str_eq(resource(&w, OWN_PATH), "PolicyDeny");
	world_stop(&w);
}

Test(broker_attest, an_unknown_policy_refuses)
{
	struct world w;

	world_start(&w);
	approve(&w);
	cr_assert_eq(auth(&w), 200);
	cr_assert_eq(attest(&w, NULL, NULL), 200);
	set(&w, BROKER_STORE_KBS, "resource-policy.rego", "allow everything");
	cr_expect_str_eq(resource(&w, OWN_PATH), "PolicyDeny");
	set(&w, BROKER_STORE_KBS, "resource-policy.rego", "attest");
	cr_expect_str_eq(resource(&w, OWN_PATH), "PolicyDeny");
	set(&w, BROKER_STORE_ATTESTATION_POLICY, "default_cpu.rego", "resource");
	cr_assert_eq(auth(&w), 200);
	cr_assert_eq(attest(&w, NULL, NULL), 401);
	world_stop(&w);
}

static void other_nonce(struct json_object *o)
{
	json_add_str(json_get(o, "runtime-data"), "nonce", FIXTURE_NONCE);
}

static void other_key(struct json_object *o)
{
	json_add_str(json_get(o, "runtime-data/tee-pubkey"), "x", FIXTURE_Y);
}

static void additional(struct json_object *o)
{
	json_add_str(json_get(o, "tee-evidence"), "additional_evidence", "{}");
}

static void sample(struct json_object *o)
{
	json_add(json_get(o, "tee-evidence"), "primary_evidence",
		json_add_str(json_add_str(json_obj(), "svn", "1"), "report_data", "AA=="));
}

static void other_values(struct json_object *o)
{
	json_object_array_put_idx(json_get(o, "tee-evidence/primary_evidence/tpm_quote/pcrs"), 4,
		json_object_new_string(
			"0000000000000000000000000000000000000000000000000000000000000000"));
}

Test(broker_attest, refuses_with_the_reason_and_ends_the_session)
{
	static const struct {
		void (*change)(struct json_object *o);
		enum rats_flaw flaw;
	} t[] = {{other_nonce, RATS_FLAW_BINDING}, {other_key, RATS_FLAW_BINDING},
		{additional, RATS_FLAW_ADDITIONAL}, {sample, RATS_FLAW_TEE},
		{other_values, RATS_FLAW_PCRS}};
	struct world w;

	world_start(&w);
	approve(&w);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		cr_assert_eq(auth(&w), 200);
		w.n_judged = 0;
		cr_expect_eq(attest(&w, t[i].change, NULL), 401, "%zu", i);
		cr_expect_eq(w.flaw, t[i].flaw, "%zu: %s", i, w.why);
		cr_expect_eq(w.n_judged, 1);
		cr_expect_str_eq(resource(&w, OWN_PATH), "TokenNotFound");
		cr_expect_eq(attest(&w, NULL, NULL), 401, "a nonce is for one try");
	}
	world_stop(&w);
}

Test(broker_attest, an_attestation_is_for_its_own_session)
{
	struct world w;
	char cookie[80];

	world_start(&w);
	approve(&w);
	cr_assert_eq(auth(&w), 200);
	memcpy(cookie, w.cookie, sizeof(cookie));
	cr_assert_eq(auth(&w), 200); /* another nonce */
	w.node.cookie = cookie;
	cr_expect_eq(attest(&w, NULL, NULL), 401);
	w.node.cookie = NULL;
	cr_expect_eq(attest(&w, NULL, NULL), 401);
	w.node.cookie = "kbs-session-id=";
	cr_expect_eq(attest(&w, NULL, NULL), 401);
	w.node.cookie = w.cookie;
	w.node.now_ms += 300000;
	cr_expect_eq(attest(&w, NULL, NULL), 401);
	world_stop(&w);
}

Test(broker_attest, sessions_end_by_themselves)
{
	struct world w;

	world_start(&w);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(auth(&w), 200);
	cr_expect_eq(broker_attest_sessions(w.b), 4);
	broker_attest_sweep(w.b, w.node.now_ms + 299999);
	cr_expect_eq(broker_attest_sessions(w.b), 4);
	broker_attest_sweep(w.b, w.node.now_ms + 300000);
	cr_expect_eq(broker_attest_sessions(w.b), 0);
	world_stop(&w);
}

Test(broker_attest, sessions_are_bounded)
{
	struct world w;

	world_start(&w);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(auth(&w), 200);
	cr_assert_eq(auth(&w), 429);
	w.node.source[0] = 1;
	cr_assert_eq(auth(&w), 200);
	w.node.now_ms += 10000;
	w.node.source[0] = 0;
	cr_assert_eq(auth(&w), 200);
	cr_expect_eq(broker_attest_sessions(w.b), 5);
	world_stop(&w);
}

/* The token of an attested session is there for its node, however many are begun by others. */
Test(broker_attest, an_attested_session_outlasts_a_flood)
{
	struct world w;
	char cookie[80];

	world_start(&w);
	approve(&w);
	cr_assert_eq(auth(&w), 200);
	cr_assert_eq(attest(&w, NULL, NULL), 200);
	memcpy(cookie, w.cookie, sizeof(cookie));
	for (unsigned i = 1; i <= 150; i++) {
		memcpy(w.node.source, &i, sizeof(i));
		cr_assert_eq(auth(&w), 200);
	}
	w.node.cookie = cookie;
	cr_expect_str_eq(resource(&w, OWN_PATH), "ok");
	world_stop(&w);
}

Test(broker_attest, tokens_of_others_are_worth_nothing)
{
	struct world w;
	cleanup_free char *token = NULL;
	struct err err = ERR_INIT;
	cleanup_free char *payload = NULL, *bearer = NULL;
	cleanup_secret struct secret *forged = NULL;
	size_t len;

	world_start(&w);
	approve(&w);
	cr_assert_eq(auth(&w), 200);
	cr_assert_eq(attest(&w, NULL, &token), 200);
	cr_assert_eq(jws_verify_es256(w.signer, token, strlen(token), &payload, &len, &err), 0);
	forged = jws_sign_es256(w.other, payload, len, &err);
	w.node.cookie = NULL;
	w.node.authorization = bearer = xasprintf("Bearer %s", (const char *)secret_peek(forged));
	cr_expect_str_eq(resource(&w, OWN_PATH), "TokenVerifierError");
	w.node.authorization = "Bearer ";
	cr_expect_str_eq(resource(&w, OWN_PATH), "TokenVerifierError");
	w.node.authorization = "Basic x";
	cr_expect_str_eq(resource(&w, OWN_PATH), "TokenNotFound");
	world_stop(&w);
}

/* HEADER.CLAIMS.SIGNATURE, all as given; the signature by the key, when there is one. */
static char *token_of(const char *header, const char *claims, EVP_PKEY *key, const char *hmac_key)
{
	struct strbuf token = STRBUF_INIT;
	uint8_t sig[256];
	size_t len = sizeof(sig);
	unsigned mac_len = sizeof(sig);
	EVP_MD_CTX *md = EVP_MD_CTX_new();

	bytes_to_b64url(&token, header, strlen(header));
	strbuf_addc(&token, '.');
	bytes_to_b64url(&token, claims, strlen(claims));
	if (key) {
		cr_assert_eq(EVP_DigestSignInit(md, NULL, EVP_sha256(), NULL, key), 1);
		cr_assert_eq(EVP_DigestSign(md, sig, &len, (uint8_t *)token.data, token.len), 1);
	} else if (hmac_key) {
		cr_assert(HMAC(EVP_sha256(), hmac_key, (int)strlen(hmac_key), (uint8_t *)token.data,
			token.len, sig, &mac_len));
		len = mac_len;
	} else {
		len = 0;
	}
	EVP_MD_CTX_free(md);
	strbuf_addc(&token, '.');
	bytes_to_b64url(&token, sig, len);
	return strbuf_steal(&token);
}

/* A node's own claims, affirming, under every header that a lax verifier was ever talked into. */
Test(broker_attest, no_header_talks_it_into_another_key)
{
	static const char *const headers[] = {"{\"alg\":\"none\"}", "{\"alg\":\"None\"}",
		"{\"typ\":\"JWT\",\"alg\":\"HS256\"}", "{\"typ\":\"JWT\",\"alg\":\"ES256\"}",
		"{\"typ\":\"JWT\",\"alg\":\"ES256\",\"kid\":\"../../../../dev/null\"}",
		"{\"typ\":\"JWT\",\"alg\":\"ES256\",\"kid\":\"default' OR 1=1\"}",
		"{\"typ\":\"JWT\",\"alg\":\"ES256\",\"jku\":\"http://192.0.2.1/\"}",
		"{\"typ\":\"JWT\",\"alg\":\"ES256\",\"x5u\":\"http://192.0.2.1/\"}",
		"{\"typ\":\"JWT\",\"alg\":\"EdDSA\"}",
		"{\"typ\":\"JWT\",\"alg\":\"ES256\",\"jwk\":{\"alg\":\"ES256\",\"kty\":\"EC\",\"crv\":\"P-256\","
		"\"x\":\"" FIXTURE_X "\",\"y\":\"" FIXTURE_Y "\"}}"};
	struct world w;
	cleanup_free char *token = NULL, *payload = NULL, *own_header = NULL;
	cleanup_strbuf struct strbuf pem = STRBUF_INIT;
	struct err err = ERR_INIT;
	EVP_PKEY *attacker;
	size_t len;

	world_start(&w);
	approve(&w);
	attacker = pki_key_evp(w.other);
	cr_assert_eq(auth(&w), 200);
	cr_assert_eq(attest(&w, NULL, &token), 200);
	cr_assert_eq(jws_verify_es256(w.signer, token, strlen(token), &payload, &len, &err), 0);
	pki_key_public_pem(w.signer, &pem);
	own_header = xstrndup(token, strcspn(token, "."));
	w.node.cookie = NULL;
	for (size_t i = 0; i < 3 * ARRAY_LEN(headers); i++) {
		cleanup_free char *forged = token_of(headers[i / 3], payload,
			i % 3 == 0 ? attacker : NULL, i % 3 == 1 ? strbuf_str(&pem) : NULL);
		cleanup_free char *bearer = xasprintf("Bearer %s", forged);
		cleanup_free char *behind_own =
			xasprintf("Bearer %s%s", own_header, strchr(forged, '.'));

		w.node.authorization = bearer;
		cr_expect_str_eq(resource(&w, OWN_PATH), "TokenVerifierError", "%zu", i);
		w.node.authorization = behind_own;
		cr_expect_str_eq(resource(&w, OWN_PATH), "TokenVerifierError", "%zu", i);
	}
	world_stop(&w);
}
