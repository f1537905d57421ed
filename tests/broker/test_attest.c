/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>

#include "rats/fixture.h"
#include "tec/base/bytes.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/metric.h"
#include "tec/broker/attest.h"
#include "tec/jose/es256.h"
#include "tec/rats/names.h"

#define UUID  "11111111-2222-4333-8444-555555555555"
#define OTHER "99999999-2222-4333-8444-555555555555"
#define AUTH  "{\"version\":\"0.4.0\",\"tee\":\"tpm\",\"extra-params\":{}}"

static const struct broker_policy policies[] = {
	{"attest", false, RATS_POLICY_PER_MACHINE, false},
	{"attest7", false, RATS_POLICY_PER_MACHINE, true},
	{"resource", true, RATS_POLICY_PER_MACHINE, false},
	{"resource-shared", true, RATS_POLICY_SHARED, false},
};

struct world {
	struct broker_store *store;
	struct pki_key *signer, *other;
	struct broker_attest *b;
	struct broker_node node;
	char cookie[80], nonce[64];
	enum rats_flaw flaw;
	char why[256];
	unsigned n_judged;
};

static void on_judged(void *arg, const struct broker_judged *j)
{
	struct world *w = arg;

	w->n_judged++;
	w->flaw = j->flaw;
	snprintf(w->why, sizeof(w->why), "%s", j->why ? j->why : "");
}

static void set(struct world *w, enum broker_store_ns ns, const char *key, const char *value)
{
	struct err err = ERR_INIT;

	cr_assert_eq(broker_store_set(w->store, ns, key, value, strlen(value), &err), 0);
}

static void set_value(struct world *w, const char *name, const char *value)
{
	cleanup_free char *entry = xasprintf("{\"name\":\"%s\",\"value\":%s}", name, value);

	set(w, BROKER_STORE_REFERENCE_VALUE, name, entry);
}

static void world_start(struct world *w)
{
	struct broker_attest_conf conf = {.policies = policies,
		.n_policies = ARRAY_LEN(policies),
		.token_s = 300,
		.session_ms = 300000,
		.sessions = 100,
		.sessions_per_source = 4,
		.on_judged = on_judged,
		.arg = w};

	memset(w, 0, sizeof(*w));
	conf.store = w->store = broker_store_memory_new();
	conf.signer = w->signer = pki_key_new_p256();
	w->other = pki_key_new_p256();
	w->b = broker_attest_new(&conf);
	w->node.now_s = 1000000;
	w->node.now_ms = 5000;
	set(w, BROKER_STORE_ATTESTATION_POLICY, "default_cpu.rego", "attest");
	set(w, BROKER_STORE_KBS, "resource-policy.rego", "resource");
	set(w, BROKER_STORE_REPOSITORY, "default/" UUID "/root", "a disk key");
	set(w, BROKER_STORE_REPOSITORY, "default/" OTHER "/root", "another's");
}

static void world_stop(struct world *w)
{
	broker_attest_free(w->b);
	pki_key_free(w->signer);
	pki_key_free(w->other);
	broker_store_free(w->store);
	metric_reset_all();
}

/* The node of the fixture is registered and what it booted approved. */
static void approve(struct world *w)
{
	cleanup_json struct json_object *o = fixture_attest(false);
	cleanup_free char *body = json_text(o);
	cleanup_rats_attest struct rats_attest a;
	cleanup_strbuf struct strbuf value = STRBUF_INIT;
	char name[RATS_IDENTITY_NAME_LEN + 1], hex[2][SHA256_HEX_LEN + 1];
	cleanup_free char *boot = NULL;
	enum rats_flaw flaw;
	struct err err = ERR_INIT;

	cr_assert_eq(rats_attest_read(body, strlen(body), 65536, &a, &flaw, &err), 0);
	cr_assert_eq(rats_identity_name(a.evidence.ak.der, a.evidence.ak.der_len, name), 0);
	rats_identity_value(a.evidence.ak.der, a.evidence.ak.der_len, UUID, &value);
	set_value(w, name, strbuf_str(&value));
	bytes_to_hex(a.evidence.pcrs[4], SHA256_LEN, hex[0]);
	bytes_to_hex(a.evidence.pcrs[14], SHA256_LEN, hex[1]);
	boot = xasprintf("boot.%s.%s", hex[0], hex[1]);
	set_value(w, boot, "{\"images\":[\"coreos\"]}");
}

static int auth(struct world *w)
{
	cleanup_broker_answer struct broker_answer a;
	cleanup_json struct json_object *o = NULL;
	struct err err = ERR_INIT;

	w->node.cookie = NULL;
	w->node.body = AUTH;
	w->node.len = strlen(AUTH);
	broker_attest_auth(w->b, &w->node, &a);
	if (a.status != 200)
		return a.status;
	o = json_parse(a.body.data, a.body.len, &json_limits_public, &err);
	snprintf(w->nonce, sizeof(w->nonce), "%s", json_get_str(o, "nonce"));
	snprintf(w->cookie, sizeof(w->cookie), "%.*s", (int)strcspn(strbuf_str(&a.cookie), ";"),
		strbuf_str(&a.cookie));
	w->node.cookie = w->cookie;
	return 200;
}

/* An attestation for the session's nonce, sent; change (may be NULL) is made before. The token is the
 * caller's. */
static int attest(struct world *w, void (*change)(struct json_object *o), char **token)
{
	cleanup_broker_answer struct broker_answer a;
	cleanup_json struct json_object *o = fixture_attest_for(w->nonce), *got = NULL;
	cleanup_free char *body = NULL;
	struct err err = ERR_INIT;

	if (change)
		change(o);
	body = json_text(o);
	w->node.body = body;
	w->node.len = strlen(body);
	broker_attest_attest(w->b, &w->node, &a);
	w->node.body = NULL;
	if (a.status != 200)
		return a.status;
	got = json_parse(a.body.data, a.body.len, &json_limits_api, &err);
	if (token)
		*token = xstrdup(json_get_str(got, "token"));
	return 200;
}

static const char *resource(struct world *w, const char *path)
{
	static char type[64];
	cleanup_broker_answer struct broker_answer a;

	broker_attest_resource(w->b, &w->node, path, &a);
	snprintf(type, sizeof(type), "%s", a.status == 200 ? "ok" : a.type);
	if (a.status == 200)
		cr_expect(str_starts(strbuf_str(&a.body), "{\"protected\":\""));
	return type;
}

#define OWN_PATH   "default/" UUID "/root"
#define OTHER_PATH "default/" OTHER "/root"

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
	cr_expect_str_eq(resource(&w, "/" OWN_PATH), "ok");
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
	cr_expect(strstr(w.why, "booted is not approved"), "%s", w.why);
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
	w.node.now_ms += 300000;
	w.node.source[0] = 0;
	cr_assert_eq(auth(&w), 200);
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
	cr_assert_eq(es256_verify(w.signer, token, strlen(token), &payload, &len, &err), 0);
	forged = es256_sign(w.other, payload, len, &err);
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
	cr_assert_eq(es256_verify(w.signer, token, strlen(token), &payload, &len, &err), 0);
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
