/* SPDX-License-Identifier: MIT */
/* The broker's side towards nodes with a store in memory, a node that may be approved, and its requests. */
#ifndef TESTS_BROKER_ATTEST_WORLD_H
#define TESTS_BROKER_ATTEST_WORLD_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "fake/broker.h"
#include "rats/fixture.h"
#include "tec/base/bytes.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/metric.h"
#include "tec/broker/attest.h"
#include "tec/jose/jws.h"
#include "tec/rats/names.h"

#define UNUSED __attribute__((unused))

#define UUID  "11111111-2222-4333-8444-555555555555"
#define OTHER "99999999-2222-4333-8444-555555555555"
#define AUTH  "{\"version\":\"0.4.0\",\"tee\":\"tpm\",\"extra-params\":{}}"

static const struct broker_policy policies[] = {
	{"attest", false, RATS_POLICY_PER_MACHINE, false, false},
	{"attest7", false, RATS_POLICY_PER_MACHINE, true, false},
	{"resource", true, RATS_POLICY_PER_MACHINE, false, false},
	{"resource-once", true, RATS_POLICY_PER_MACHINE, false, true},
	{"resource-shared", true, RATS_POLICY_SHARED, false, false},
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

static UNUSED void on_judged(void *arg, const struct broker_judged *j)
{
	struct world *w = arg;

	w->n_judged++;
	w->flaw = j->flaw;
	snprintf(w->why, sizeof(w->why), "%s", j->why ? j->why : "");
}

static UNUSED void set(struct world *w, enum broker_store_ns ns, const char *key, const char *value)
{
	struct err err = ERR_INIT;

	cr_assert_eq(broker_store_set(w->store, ns, key, value, strlen(value), &err), 0);
}

static UNUSED void set_value(struct world *w, const char *name, const char *value)
{
	cleanup_free char *entry = xasprintf("{\"name\":\"%s\",\"value\":%s}", name, value);

	set(w, BROKER_STORE_REFERENCE_VALUE, name, entry);
}

static UNUSED void world_start_for(struct world *w, unsigned sessions_per_source)
{
	struct broker_attest_conf conf = {.policies = policies,
		.n_policies = ARRAY_LEN(policies),
		.token_s = 300,
		.session_ms = 300000,
		.sessions = 100,
		.sessions_per_source = sessions_per_source,
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

static UNUSED void world_start(struct world *w)
{
	world_start_for(w, 4);
}

static UNUSED void world_stop(struct world *w)
{
	broker_attest_free(w->b);
	pki_key_free(w->signer);
	pki_key_free(w->other);
	broker_store_free(w->store);
	metric_reset_all();
}

/* The node of the fixture is registered and what it booted approved. */
static UNUSED void approve(struct world *w)
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

static UNUSED int auth(struct world *w)
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
static UNUSED int attest(struct world *w, void (*change)(struct json_object *o), char **token)
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

static UNUSED const char *resource(struct world *w, const char *path)
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

#endif
