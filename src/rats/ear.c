/* SPDX-License-Identifier: MIT */
/* Only submodule cpu0 is written and read, because primary evidence is the only evidence
 * supported. */
#include "config.h"

#include "tec/rats/ear.h"

#include <stdio.h>
#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"

#define EVIDENCE "ear.veraison.annotated-evidence"
/* PCR 15 until the node seals its boot. */
#define UNSEALED "0000000000000000000000000000000000000000000000000000000000000000"

static const struct json_limits limits = {.bytes = 262144, .depth = 16, .tokens = 10000};

/* Member names are those of Trustee's TPM verifier: policies refer to them. */
static struct json_object *tpm_json(const struct rats_evidence *e)
{
	struct json_object *o = json_add_str(json_obj(), "ak_public", e->ak_public);
	char name[8], hex[SHA256_HEX_LEN + 1];

	/* "pcr00" to "pcr23", lower-case hex. */
	for (unsigned i = 0; i < TPM_PCR_COUNT; i++) {
		snprintf(name, sizeof(name), "pcr%02u", i);
		bytes_to_hex(e->pcrs[i], SHA256_LEN, hex);
		json_add_str(o, name, hex);
	}
	return o;
}

/* Write the claims the policy was evaluated on. tee-pubkey is the key that resources are
 * encrypted to. */
static struct json_object *evidence_json(const struct rats_attest *a)
{
	const struct rats_evidence *e = &a->evidence;
	const struct pki_jwk *k = &a->key;
	struct json_object *o = json_obj(), *runtime = json_obj(), *key = json_obj();
	char hex[2 * TPM_EXTRA_DATA_MAX + 1] = "";

	json_add(o, rats_tee_name(e->tee),
		e->tee == RATS_TEE_TPM ? tpm_json(e) : json_add_str(json_obj(), "svn", e->svn));
	if (e->tee == RATS_TEE_TPM)
		bytes_to_hex(e->quote.extra_data, e->quote.extra_data_len, hex);
	json_add_str(o, "report_data", hex);
	/* Only the members that a key of this type has: json_add_str() skips NULL. */
	json_add_str(json_add_str(key, "kty", k->kty), "crv", k->crv);
	json_add_str(json_add_str(key, "alg", k->alg), "x", k->x);
	json_add_str(json_add_str(json_add_str(key, "y", k->y), "n", k->n), "e", k->e);
	json_add(json_add_str(runtime, "nonce", a->nonce), "tee-pubkey", key);
	json_add_str(runtime, "additional-evidence", a->additional);
	bytes_to_hex(e->pcrs[8], SHA256_LEN, hex);
	json_add_str(o, "init_data", hex);
	return json_add(o, "runtime_data_claims", runtime);
}

/* Write the appraisal of cpu0: status, trustworthiness vector and, if validated, Machine and
 * images. */
static struct json_object *submod_json(const struct rats_attest *a, const struct rats_verdict *v)
{
	struct json_object *o = json_add_str(json_obj(), "ear.status", rats_policy_status(v)),
			   *vector = json_obj();

	json_add_int(vector, "instance-identity", v->identity);
	json_add(o, "ear.trustworthiness-vector",
		json_add_int(vector, "executables", v->executables));
	json_add_str(o, "ear.appraisal-policy-id", "default");
	/* Only a fully affirmed node gets identifiers: a resource policy may rely on their
	 * presence. */
	if (v->validated)
		json_add(o, "ear.trustee.identifiers",
			json_add(json_obj(), "validated", json_copy(v->validated)));
	return json_add(o, EVIDENCE, evidence_json(a));
}

/* eat_profile and iss are the values of Trustee, which clients may compare. */
char *rats_ear_make(
	const struct rats_attest *a, const struct rats_verdict *v, int64_t now_s, uint32_t life_s)
{
	cleanup_json struct json_object *o = json_obj();
	struct json_object *by = json_obj();

	json_add_str(o, "eat_profile", "tag:github.com,2024:confidential-containers/Trustee");
	json_add_int(json_add_int(o, "iat", now_s), "exp", now_s + life_s);
	json_add_str(o, "iss", "CoCo-Attestation-Service");
	json_add_str(by, "developer", "https://confidentialcontainers.org");
	json_add(o, "ear.verifier-id", json_add_str(by, "build", PACKAGE_NAME " " PACKAGE_VERSION));
	json_add(o, "submods", json_add(json_obj(), "cpu0", submod_json(a, v)));
	return json_text(o);
}

/* On failure out->o may be set: the caller calls rats_ear_fini() in any case. */
int rats_ear_read(const char *payload, size_t len, struct rats_ear *out, struct err *err)
{
	struct json_object *cpu, *key;

	memset(out, 0, sizeof(*out));
	out->o = json_parse(payload, len, &limits, err);
	if (!out->o)
		return -1;
	/* Paths that are missing give NULL and are refused together below. */
	cpu = json_get_obj(out->o, "submods/cpu0");
	key = json_get_obj(cpu, EVIDENCE "/runtime_data_claims/tee-pubkey");
	out->exp_s = json_get_int(out->o, "exp", 0);
	out->holder = (struct rats_holder){.status = json_get_str(cpu, "ear.status"),
		.machine = json_get_str(cpu, "ear.trustee.identifiers/validated/machine"),
		.sealed = !str_eq(json_get_str(cpu, EVIDENCE "/tpm/pcr15"), UNSEALED)};
	if (!key || !out->holder.status || !out->exp_s)
		return err_set(err, ERR_INVALID, "The token is not an attestation token.");
	out->key = pki_jwk_read(key);
	return 0;
}

void rats_ear_fini(struct rats_ear *e)
{
	json_object_put(e->o);
	e->o = NULL;
}
