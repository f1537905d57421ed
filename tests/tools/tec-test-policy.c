/* SPDX-License-Identifier: MIT */
/*
 * tec-test-policy: the native policies (rats/policy), asked as tests/rego asks a Rego engine, so that a
 * test can compare them. Standard input: {"policy": "per-machine" or "shared", "pcr7": BOOL, "once": BOOL, "cases":
 * [{"values": {NAME: ANY}, "evidence": [INPUT, ...], "gets": ["resource/default/ID/root", ...]}]}.
 * Standard output, one line per case: {"error": TEXT} when the evidence would not have come as far as a
 * policy, else {"claims": [IDENTITY, EXECUTABLES], "validated": OBJECT or null, "status": TEXT, "allow":
 * [BOOL]}. Not installed.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/broker/wire.h"
#include "tec/rats/policy.h"

#define INPUT_MAX ((size_t)64 << 20)
#define RESOURCE  "resource/"
#define UNSEALED  "0000000000000000000000000000000000000000000000000000000000000000"

static struct json_object *value_of(void *values, const char *name)
{
	struct json_object *v = NULL;

	/* Not json_get(): a name may hold a slash. */
	if (!json_object_object_get_ex(values, name, &v) || !v)
		return NULL;
	return json_object_get(v);
}

static int read_pcr(struct json_object *tpm, unsigned i, struct rats_evidence *e)
{
	char name[8];
	const char *hex;

	snprintf(name, sizeof(name), "pcr%02u", i);
	hex = json_get_str(tpm, name);
	if (!hex || strlen(hex) != SHA256_HEX_LEN ||
		strspn(hex, "0123456789abcdef") != SHA256_HEX_LEN)
		return -1;
	return bytes_from_hex(hex, SHA256_HEX_LEN, e->pcrs[i]);
}

/* What a broker's reader (rats/evidence) would have taken of it. -1: nothing. */
static int read_evidence(struct json_object *input, bool pcr7, struct rats_evidence *e)
{
	struct json_object *tpm = json_get_obj(input, "tpm");
	cleanup_free uint8_t *der = NULL;
	struct err err = ERR_INIT;
	size_t len;

	memset(e, 0, sizeof(*e));
	e->tee = RATS_TEE_SAMPLE;
	if (json_get_obj(input, "sample"))
		return 0;
	e->tee = RATS_TEE_TPM;
	e->ak_public = json_get_str(tpm, "ak_public");
	if (!e->ak_public || bytes_from_b64(e->ak_public, strlen(e->ak_public), &der, &len) < 0 ||
		pki_spki_parse_der(der, len, &e->ak, &err) < 0 || read_pcr(tpm, 4, e) < 0 ||
		read_pcr(tpm, 14, e) < 0)
		return -1;
	return pcr7 ? read_pcr(tpm, 7, e) : 0;
}

static bool is_granted(enum rats_policy p, bool once, const struct rats_holder *h, const char *get)
{
	const char *path = get + strlen(RESOURCE);
	struct err err = ERR_INIT;

	if (!str_starts(get, RESOURCE))
		return false;
	if (*path == '/')
		path++;
	return broker_wire_resource_check(path, &err) == 0 && rats_policy_grants(p, once, h, path);
}

static struct json_object *judge(enum rats_policy p, bool pcr7, bool once, struct json_object *c)
{
	struct json_object *out = json_obj(), *claims = json_arr(), *allow = json_arr();
	struct json_object *evidence = json_get_arr(c, "evidence"), *gets = json_get_arr(c, "gets");
	cleanup_rats_verdict struct rats_verdict v = {0};
	struct json_object *first = json_at(evidence, 0);
	struct rats_holder holder;
	struct rats_evidence e;

	if (read_evidence(first, pcr7, &e) < 0) {
		json_object_put(claims);
		json_object_put(allow);
		return json_add_str(out, "error", "The evidence is not well-formed.");
	}
	rats_policy_attest(p, pcr7, &e, value_of, json_get_obj(c, "values"), &v);
	holder = (struct rats_holder){rats_policy_status(&v), v.validated ? v.machine : NULL,
		!str_eq(json_get_str(first, "tpm/pcr15"), UNSEALED)};
	json_push(claims, json_object_new_int(v.identity));
	json_push(claims, json_object_new_int(v.executables));
	for (size_t i = 0; i < json_object_array_length(gets); i++)
		json_push(allow,
			json_object_new_boolean(is_granted(p, once, &holder,
				json_object_get_string(json_object_array_get_idx(gets, i)))));
	json_add(json_add(out, "claims", claims), "allow", allow);
	json_object_object_add(out, "validated", v.validated ? json_object_get(v.validated) : NULL);
	return json_add_str(out, "status", rats_policy_status(&v));
}

int main(void)
{
	static const struct json_limits limits = {INPUT_MAX, 64, 1u << 22, true};
	cleanup_strbuf struct strbuf in = STRBUF_INIT;
	cleanup_json struct json_object *o = NULL;
	struct err err = ERR_INIT;
	struct json_object *cases;
	enum rats_policy p;
	char part[65536];
	size_t n;

	while ((n = fread(part, 1, sizeof(part), stdin)) > 0)
		strbuf_add(&in, part, n);
	o = json_parse(strbuf_str(&in), in.len, &limits, &err);
	cases = json_get_arr(o, "cases");
	if (!cases) {
		fprintf(stderr, "tec-test-policy: no cases: %s\n", err.text);
		return 2;
	}
	p = str_eq(json_get_str(o, "policy"), "shared") ? RATS_POLICY_SHARED
							: RATS_POLICY_PER_MACHINE;
	for (size_t i = 0; i < json_object_array_length(cases); i++) {
		cleanup_json struct json_object *a = judge(p, json_get_bool(o, "pcr7", false),
			json_get_bool(o, "once", false), json_at(cases, i));
		cleanup_free char *text = json_text(a);

		puts(text);
	}
	return 0;
}
