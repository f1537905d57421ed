/* SPDX-License-Identifier: MIT */
/*
 * bench_broker: what the key broker costs per node (challenge, attestation, one disk key), beside the
 * cryptography that no broker can leave out, done with the same library calls on the same bytes in the
 * same run: the digests, the quote's RSA signature, the token signed and verified once, the key agreed
 * and wrapped, the content sealed. The node's own work is not counted. Then the memory of handshakes
 * that were begun and left. One line per figure, with its limit behind it; exit 1 when one is passed.
 */
#include "config.h"

#include <malloc.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "fake/broker.h"
#include "rats/fixture.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/metric.h"
#include "tec/broker/attest.h"
#include "tec/jose/jws.h"
#include "tec/jose/jwe.h"
#include "tec/rats/names.h"

#define ROUNDS   400
#define SESSIONS 20000
#define UUID     "11111111-2222-4333-8444-555555555555"
#define OWN_PATH "default/" UUID "/root"
#define AUTH     "{\"version\":\"0.4.0\",\"tee\":\"tpm\",\"extra-params\":{}}"

static const char disk_key[] =
	"{\"key_type\":\"oct\",\"key\":\"MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0\"}";
static bool over;

static double cpu_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static void figure(const char *what, double value, const char *unit, double limit)
{
	bool ok = value <= limit;

	printf("%-42s %10.3f %s (limit %g)%s\n", what, value, unit, limit, ok ? "" : "  TOO MUCH");
	over |= !ok;
}

static void must(bool ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "bench_broker: %s\n", what);
		exit(1);
	}
}

/* ---- the broker */

struct world {
	struct broker_store *store;
	struct pki_key *signer;
	struct broker_attest *b;
};

static void set(struct world *w, enum broker_store_ns ns, const char *key, const char *value)
{
	struct err err = ERR_INIT;

	must(broker_store_set(w->store, ns, key, value, strlen(value), &err) == 0, err.text);
}

static void set_value(struct world *w, const char *name, const char *value)
{
	cleanup_free char *entry = xasprintf("{\"name\":\"%s\",\"value\":%s}", name, value);

	set(w, BROKER_STORE_REFERENCE_VALUE, name, entry);
}

static void approve(struct world *w)
{
	cleanup_json struct json_object *o = fixture_attest(false);
	cleanup_free char *body = json_text(o), *boot = NULL;
	cleanup_rats_attest struct rats_attest a;
	cleanup_strbuf struct strbuf value = STRBUF_INIT;
	char name[RATS_IDENTITY_NAME_LEN + 1], hex[2][SHA256_HEX_LEN + 1];
	enum rats_flaw flaw;
	struct err err = ERR_INIT;

	must(rats_attest_read(body, strlen(body), 65536, &a, &flaw, &err) == 0, err.text);
	must(rats_identity_name(a.evidence.ak.der, a.evidence.ak.der_len, name) == 0, "name");
	rats_identity_value(a.evidence.ak.der, a.evidence.ak.der_len, UUID, &value);
	set_value(w, name, strbuf_str(&value));
	bytes_to_hex(a.evidence.pcrs[4], SHA256_LEN, hex[0]);
	bytes_to_hex(a.evidence.pcrs[14], SHA256_LEN, hex[1]);
	boot = xasprintf("boot.%s.%s", hex[0], hex[1]);
	set_value(w, boot, "{\"images\":[\"coreos\"]}");
}

static void world_start(struct world *w)
{
	static const struct broker_policy policies[] = {
		{"attest", false, RATS_POLICY_PER_MACHINE, false},
		{"resource", true, RATS_POLICY_PER_MACHINE, false}};
	struct broker_attest_conf conf = {.policies = policies,
		.n_policies = ARRAY_LEN(policies),
		.token_s = 60,
		.session_ms = 300000,
		.sessions = SESSIONS + ROUNDS,
		.sessions_per_source = SESSIONS + ROUNDS};

	conf.store = w->store = broker_store_memory_new();
	conf.signer = w->signer = pki_key_new_p256();
	w->b = broker_attest_new(&conf);
	set(w, BROKER_STORE_ATTESTATION_POLICY, "default_cpu.rego", "attest");
	set(w, BROKER_STORE_KBS, "resource-policy.rego", "resource");
	set(w, BROKER_STORE_REPOSITORY, OWN_PATH, disk_key);
	approve(w);
}

struct round {
	char cookie[80], *body;
};

static double auth(struct world *w, struct round *r)
{
	const struct broker_node n = {
		.peer = "", .body = AUTH, .len = strlen(AUTH), .now_s = 1000, .now_ms = 1000};
	cleanup_broker_answer struct broker_answer a;
	cleanup_json struct json_object *o = NULL, *body = NULL;
	struct err err = ERR_INIT;
	double start = cpu_us(), took;

	broker_attest_auth(w->b, &n, &a);
	took = cpu_us() - start;
	must(a.status == 200, "auth");
	o = json_parse(a.body.data, a.body.len, &json_limits_public, &err);
	body = fixture_attest_for(json_get_str(o, "nonce"));
	r->body = json_text(body);
	snprintf(r->cookie, sizeof(r->cookie), "%.*s", (int)strcspn(strbuf_str(&a.cookie), ";"),
		strbuf_str(&a.cookie));
	return took;
}

static double attest_and_get(struct world *w, const struct round *r)
{
	struct broker_node n = {.peer = "",
		.cookie = r->cookie,
		.body = r->body,
		.len = strlen(r->body),
		.now_s = 1000,
		.now_ms = 1000};
	double start = cpu_us();

	for (int i = 0; i < 2; i++) {
		cleanup_broker_answer struct broker_answer a;

		if (i == 0)
			broker_attest_attest(w->b, &n, &a);
		else
			broker_attest_resource(w->b, &n, OWN_PATH, &a);
		must(a.status == 200, "attest or resource");
	}
	return cpu_us() - start;
}

/* ---- what cannot be left out */

struct bare {
	struct fixture_quote q;
	struct rats_evidence e; /* of which the key's DER is used */
	EVP_PKEY *signer, *node;
	uint8_t node_public[65];
};

static void bare_start(struct bare *b)
{
	cleanup_json struct json_object *o = fixture_attest(false);
	cleanup_free char *body = json_text(o);
	cleanup_rats_attest struct rats_attest a;
	enum rats_flaw flaw;
	struct err err = ERR_INIT;
	size_t len = 0;

	must(rats_attest_read(body, strlen(body), 65536, &a, &flaw, &err) == 0, err.text);
	b->e = a.evidence;
	fixture_quote((const uint8_t[SHA256_LEN]){0}, &b->q);
	b->signer = EVP_EC_gen("P-256");
	b->node = EVP_EC_gen("P-256");
	must(EVP_PKEY_get_octet_string_param(b->node, OSSL_PKEY_PARAM_ENCODED_PUBLIC_KEY,
		     b->node_public, sizeof(b->node_public), &len) == 1,
		"public key");
}

static void digests(const struct bare *b)
{
	uint8_t out[EVP_MAX_MD_SIZE];

	must(EVP_Digest(b->e.ak.der, 244, out, NULL, EVP_sha384(), NULL) == 1, "SHA-384");
	must(EVP_Digest(b->q.pcrs, sizeof(b->q.pcrs), out, NULL, EVP_sha256(), NULL) == 1,
		"SHA-256");
	bytes_random(out, 48); /* nonce and cookie */
}

static void verify_quote(const struct bare *b)
{
	const uint8_t *der = b->e.ak.der;
	EVP_PKEY *ak = d2i_PUBKEY(NULL, &der, (long)b->e.ak.der_len);
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();

	must(EVP_DigestVerifyInit(ctx, NULL, EVP_sha256(), NULL, ak) == 1 &&
			EVP_DigestVerify(ctx, b->q.sig + 6, b->q.sig_len - 6, b->q.attest,
				b->q.attest_len) == 1,
		"RSA");
	EVP_MD_CTX_free(ctx);
	EVP_PKEY_free(ak);
}

static void sign_and_verify_token(const struct bare *b)
{
	uint8_t claims[3400] = {0}, sig[80];
	size_t len = sizeof(sig);
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();

	must(EVP_DigestSignInit(ctx, NULL, EVP_sha256(), NULL, b->signer) == 1 &&
			EVP_DigestSign(ctx, sig, &len, claims, sizeof(claims)) == 1,
		"ES256");
	EVP_MD_CTX_reset(ctx);
	must(EVP_DigestVerifyInit(ctx, NULL, EVP_sha256(), NULL, b->signer) == 1 &&
			EVP_DigestVerify(ctx, sig, len, claims, sizeof(claims)) == 1,
		"ES256");
	EVP_MD_CTX_free(ctx);
}

static void agree(const struct bare *b, uint8_t z[32])
{
	EVP_PKEY *peer = EVP_PKEY_new(), *own = EVP_EC_gen("P-256");
	size_t len = 32;
	EVP_PKEY_CTX *ctx;

	must(EVP_PKEY_copy_parameters(peer, b->signer) == 1 &&
			EVP_PKEY_set1_encoded_public_key(
				peer, b->node_public, sizeof(b->node_public)) == 1,
		"the node's key");
	ctx = EVP_PKEY_CTX_new(own, NULL);
	must(EVP_PKEY_derive_init(ctx) == 1 && EVP_PKEY_derive_set_peer(ctx, peer) == 1 &&
			EVP_PKEY_derive(ctx, z, &len) == 1,
		"ECDH");
	EVP_PKEY_CTX_free(ctx);
	EVP_PKEY_free(own);
	EVP_PKEY_free(peer);
}

static void wrap_and_seal(const uint8_t z[32])
{
	uint8_t kek[32], cek[32], iv[12], out[256], wrapped[40];
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	int n;

	bytes_random(cek, sizeof(cek));
	bytes_random(iv, sizeof(iv));
	must(EVP_Digest(z, 32, kek, NULL, EVP_sha256(), NULL) == 1, "SHA-256");
	EVP_CIPHER_CTX_set_flags(ctx, EVP_CIPHER_CTX_FLAG_WRAP_ALLOW);
	must(EVP_EncryptInit_ex(ctx, EVP_aes_256_wrap(), NULL, kek, NULL) == 1 &&
			EVP_EncryptUpdate(ctx, wrapped, &n, cek, sizeof(cek)) == 1,
		"AES-KW");
	EVP_CIPHER_CTX_reset(ctx);
	must(EVP_EncryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, cek, iv) == 1 &&
			EVP_EncryptUpdate(ctx, NULL, &n, out, 200) == 1 &&
			EVP_EncryptUpdate(ctx, out, &n, (const uint8_t *)disk_key,
				(int)strlen(disk_key)) == 1 &&
			EVP_EncryptFinal_ex(ctx, out + n, &n) == 1,
		"AES-GCM");
	EVP_CIPHER_CTX_free(ctx);
}

static double bare_round(const struct bare *b)
{
	double start = cpu_us();
	uint8_t z[32];

	digests(b);
	verify_quote(b);
	sign_and_verify_token(b);
	agree(b, z);
	wrap_and_seal(z);
	return cpu_us() - start;
}

/* ---- handshakes that are left */

static void leave_sessions(struct world *w)
{
	struct broker_node n = {
		.peer = "", .body = AUTH, .len = strlen(AUTH), .now_s = 1000, .now_ms = 900000};
	size_t before;

	broker_attest_sweep(w->b, n.now_ms);
	before = mallinfo2().uordblks + mallinfo2().hblkhd;
	for (unsigned i = 0; i < SESSIONS; i++) {
		cleanup_broker_answer struct broker_answer a;

		memcpy(n.source, &i, sizeof(i));
		broker_attest_auth(w->b, &n, &a);
		must(a.status == 200, "auth");
	}
	figure("20,000 handshakes begun and left",
		(double)(mallinfo2().uordblks + mallinfo2().hblkhd - before) / 1048576.0, "MiB",
		24);
	broker_attest_sweep(w->b, n.now_ms + 300000);
	must(broker_attest_sessions(w->b) == 0, "sessions do not end");
	figure("the same after their time",
		(double)(mallinfo2().uordblks + mallinfo2().hblkhd - before) / 1048576.0, "MiB", 1);
}

int main(void)
{
	static struct round rounds[ROUNDS];
	struct world w;
	struct bare b;
	double ours = 0, bare = 0;

	world_start(&w);
	bare_start(&b);
	for (unsigned i = 0; i < ROUNDS; i++)
		ours += auth(&w, &rounds[i]);
	for (unsigned i = 0; i < ROUNDS;
		i++) { /* in turns, so that the machine is as busy for both */
		ours += attest_and_get(&w, &rounds[i]);
		bare += bare_round(&b);
	}
	printf("%-42s %10.1f us, its cryptography %.1f us\n", "attestation and disk key",
		ours / ROUNDS, bare / ROUNDS);
	figure("attestation and key / its cryptography", ours / bare, "x", 1.6);
	leave_sessions(&w);
	broker_attest_free(w.b);
	broker_store_free(w.store);
	pki_key_free(w.signer);
	metric_reset_all();
	return over;
}
