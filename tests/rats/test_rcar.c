/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <string.h>

#include "fixture.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"

#define MAX 65536

static const struct pki_jwk ec = {
	.kty = "EC", .crv = "P-256", .alg = "ECDH-ES+A256KW", .x = FIXTURE_X, .y = FIXTURE_Y};

/* By Trustee's own code for the same nonce and key. */
Test(rats_rcar, the_binding_is_what_trustee_computes)
{
	uint8_t binding[RATS_BINDING_LEN];
	char hex[2 * RATS_BINDING_LEN + 1];

	rats_binding(&ec, FIXTURE_NONCE, "", binding);
	bytes_to_hex(binding, sizeof(binding), hex);
	cr_assert_str_eq(hex,
		"8a6244441b1b1171b3a1d56a693d4ce116c1f9ca1ae558bc5f59d46dada54cf49e92a361ab2472c434652fed5887f16d");
}

Test(rats_rcar, auth_is_read_and_written_again)
{
	static const char body[] =
		"{\"version\":\"0.4.0\",\"tee\":\"tpm\",\"more\":[1.5],\"extra-params\":{\"b\":[\"sha256\"],\"a\":null,\"c\":-9007199254740991}}";
	cleanup_rats_auth struct rats_auth a;
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	enum rats_flaw flaw;
	struct err err = ERR_INIT;

	cr_assert_eq(rats_auth_read(body, strlen(body), &a, &flaw, &err), 0, "%s", err.text);
	cr_assert_str_eq(a.tee, "tpm");
	rats_auth_write(&a, &out);
	cr_assert_str_eq(strbuf_str(&out),
		"{\"version\":\"0.4.0\",\"tee\":\"tpm\",\"extra-params\":{\"a\":null,\"b\":[\"sha256\"],\"c\":-9007199254740991}}");
}

Test(rats_rcar, auth_refuses_the_rest)
{
	static const struct {
		const char *body;
		enum rats_flaw flaw;
	} t[] = {
		{"", RATS_FLAW_SYNTAX},
		{"[]", RATS_FLAW_SYNTAX},
		{"{}", RATS_FLAW_SYNTAX},
		{"{\"version\":\"0.4.0\",\"tee\":\"tpm\"}", RATS_FLAW_SYNTAX},
		{"{\"version\":\"0.4.0\",\"extra-params\":{}}", RATS_FLAW_SYNTAX},
		{"{\"version\":\"0.4.0\",\"tee\":\"tpm\",\"extra-params\":{},\"x\":1,\"x\":1}",
			RATS_FLAW_SYNTAX},
		{"{\"version\":\"0.4.0\",\"tee\":\"tpm\",\"extra-params\":[[-9007199254740992]]}",
			RATS_FLAW_SYNTAX},
		{"{\"version\":\"0.4.0\",\"tee\":1,\"extra-params\":{}}", RATS_FLAW_SYNTAX},
		{"{\"version\":\"0.4.0\",\"tee\":\"tpm\",\"tee\":\"snp\",\"extra-params\":{}}",
			RATS_FLAW_SYNTAX},
		{"{\"version\":\"0.4.0\",\"tee\":\"tpm\\u0000\",\"extra-params\":{}}",
			RATS_FLAW_SYNTAX},
		{"{\"version\":\"0.1.1\",\"tee\":\"tpm\",\"extra-params\":{}}", RATS_FLAW_VERSION},
		{"{\"version\":\"0.4.0\",\"tee\":\"tpm\",\"extra-params\":{\"a\":[18446744073709551616]}}",
			RATS_FLAW_SYNTAX},
		{"{\"version\":\"0.4.0\",\"tee\":\"tpm\",\"extra-params\":1.5}", RATS_FLAW_SYNTAX},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		cleanup_rats_auth struct rats_auth a;
		enum rats_flaw flaw = RATS_FLAW_NONE;
		struct err err = ERR_INIT;

		cr_expect_eq(rats_auth_read(t[i].body, strlen(t[i].body), &a, &flaw, &err), -1,
			"%s", t[i].body);
		cr_expect_eq(flaw, t[i].flaw, "%s", t[i].body);
	}
}

/* Reads, verifies and writes o; the flaw of the first step that fails. */
static enum rats_flaw judge(struct json_object *o, const char *nonce)
{
	cleanup_free char *body = json_text(o), *second = NULL;
	cleanup_rats_attest struct rats_attest a, b;
	cleanup_strbuf struct strbuf out = STRBUF_INIT, again = STRBUF_INIT;
	enum rats_flaw flaw = RATS_FLAW_NONE, none = RATS_FLAW_NONE;
	struct err err = ERR_INIT;

	memset(&b, 0, sizeof(b));
	if (rats_attest_read(body, strlen(body), MAX, &a, &flaw, &err) < 0) {
		cr_expect_eq(err.kind, ERR_INVALID);
		return flaw;
	}
	rats_attest_write(&a, &out);
	cr_assert_eq(rats_attest_read(out.data, out.len, MAX, &b, &none, &err), 0, "%s", err.text);
	rats_attest_write(&b, &again);
	cr_assert_str_eq(strbuf_str(&out), strbuf_str(&again));
	if (rats_attest_verify(&b, nonce, &flaw, &err) < 0) {
		cr_expect_eq(err.kind, ERR_DENIED);
		return flaw;
	}
	return RATS_FLAW_NONE;
}

Test(rats_rcar, a_genuine_attestation_verifies)
{
	for (int init = 0; init < 2; init++) {
		cleanup_json struct json_object *o = fixture_attest(init);

		cr_assert_eq(judge(o, FIXTURE_NONCE), RATS_FLAW_NONE);
		cr_assert_eq(judge(o, "another"), RATS_FLAW_BINDING);
	}
}

static struct json_object *at(struct json_object *o, const char *path)
{
	struct json_object *v = json_get(o, path);

	cr_assert(v, "%s", path);
	return v;
}

/* What is hashed keeps its code points: as they came, escaped or not. */
Test(rats_rcar, texts_keep_their_code_points)
{
	cleanup_json struct json_object *o = fixture_attest(false);
	cleanup_free char *body = NULL;
	cleanup_rats_attest struct rats_attest a;
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	enum rats_flaw flaw;
	struct err err = ERR_INIT;

	json_add_str(at(o, "runtime-data"), "nonce", "a\"\\\n\x01/\x7f\xc3\xa9\xf0\x9f\x98\x80");
	body = json_text(o);
	cr_assert_eq(rats_attest_read(body, strlen(body), MAX, &a, &flaw, &err), 0, "%s", err.text);
	rats_attest_write(&a, &out);
	cr_assert(strstr(strbuf_str(&out),
		"{\"nonce\":\"a\\\"\\\\\\n\\u0001/\x7f\xc3\xa9\xf0\x9f\x98\x80\","));
}

Test(rats_rcar, every_change_of_what_is_bound_is_seen)
{
	static const struct {
		const char *object, *name, *value;
		enum rats_flaw flaw;
	} t[] = {
		{"runtime-data", "nonce", "", RATS_FLAW_BINDING},
		{"runtime-data/tee-pubkey", "x", FIXTURE_Y, RATS_FLAW_BINDING},
		{"runtime-data/tee-pubkey", "y", FIXTURE_X, RATS_FLAW_BINDING},
		{"runtime-data/tee-pubkey", "crv", "P-521", RATS_FLAW_BINDING},
		{"runtime-data/tee-pubkey", "alg", "RSA1_5", RATS_FLAW_BINDING},
		{"runtime-data/tee-pubkey", "kty", "RSA", RATS_FLAW_SYNTAX},
		{"runtime-data/tee-pubkey", "kty", "OKP", RATS_FLAW_SYNTAX},
		{"runtime-data/tee-pubkey", "kid", "another", RATS_FLAW_NONE},
		{"tee-evidence", "additional_evidence", "{}", RATS_FLAW_BINDING},
		{"init-data", "body", FIXTURE_INIT "#", RATS_FLAW_INIT_DATA},
		{"init-data", "body", "version = '1'\nalgorithm = 'sha384'", RATS_FLAW_INIT_DATA},
		{"init-data", "format", "json", RATS_FLAW_INIT_DATA},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		cleanup_json struct json_object *o = fixture_attest(true);

		json_add_str(at(o, t[i].object), t[i].name, t[i].value);
		cr_expect_eq(judge(o, FIXTURE_NONCE), t[i].flaw, "%s.%s", t[i].object, t[i].name);
	}
}

Test(rats_rcar, another_quote_of_the_same_key_is_not_for_this_session)
{
	cleanup_json struct json_object *o = fixture_attest(false);
	const uint8_t extra[SHA256_LEN] = {0};
	struct fixture_quote q;

	fixture_quote(extra, &q);
	json_add(at(o, "tee-evidence"), "primary_evidence", fixture_evidence(&q));
	cr_assert_eq(judge(o, FIXTURE_NONCE), RATS_FLAW_BINDING);
}

/* As Trustee does; none of them is written again. */
Test(rats_rcar, unknown_members_are_ignored)
{
	static const char *const objects[] = {NULL, "runtime-data", "runtime-data/tee-pubkey",
		"tee-evidence", "tee-evidence/primary_evidence",
		"tee-evidence/primary_evidence/tpm_quote", "init-data"};
	/* PCR 8 is that of the init-data. */
	cleanup_json struct json_object *o = fixture_attest(true);
	cleanup_free char *body = NULL;
	cleanup_rats_attest struct rats_attest a;
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	enum rats_flaw flaw;
	struct err err = ERR_INIT;

	for (size_t i = 0; i < ARRAY_LEN(objects); i++) {
		struct json_object *in = objects[i] ? at(o, objects[i]) : o;

		json_add(json_add_str(in, "more", "x"), "later", json_object_new_double(0.5));
	}
	cr_assert_eq(judge(o, FIXTURE_NONCE), RATS_FLAW_NONE);
	body = json_text(o);
	cr_assert_eq(rats_attest_read(body, strlen(body), MAX, &a, &flaw, &err), 0);
	rats_attest_write(&a, &out);
	cr_expect_null(strstr(strbuf_str(&out), "\"more\""));
	cr_expect_null(strstr(strbuf_str(&out), "\"later\""));
}

Test(rats_rcar, refuses_each_member_missing_or_of_another_type)
{
	static const struct {
		const char *object, *name;
	} t[] = {{NULL, "runtime-data"}, {NULL, "tee-evidence"}, {"runtime-data", "nonce"},
		{"runtime-data", "tee-pubkey"}, {"runtime-data/tee-pubkey", "kty"},
		{"runtime-data/tee-pubkey", "alg"}, {"runtime-data/tee-pubkey", "crv"},
		{"runtime-data/tee-pubkey", "x"}, {"runtime-data/tee-pubkey", "y"},
		{"tee-evidence", "primary_evidence"}, {"tee-evidence", "additional_evidence"},
		{"init-data", "format"}, {"init-data", "body"}};

	for (size_t i = 0; i < ARRAY_LEN(t) * 3; i++) {
		cleanup_json struct json_object *o = fixture_attest(true);
		struct json_object *in = t[i / 3].object ? at(o, t[i / 3].object) : o;
		const char *name = t[i / 3].name;

		switch (i % 3) {
		case 0:
			json_object_object_del(in, name);
			break;
		case 1:
			json_add(in, name, json_arr());
			break;
		case 2:
			json_add(in, name, json_object_new_int(7));
			break;
		}
		cr_expect_neq(judge(o, FIXTURE_NONCE), RATS_FLAW_NONE, "%s, case %zu", name, i % 3);
	}
}

Test(rats_rcar, one_flipped_bit_anywhere_in_the_quote_is_refused)
{
	cleanup_json struct json_object *good = fixture_attest(false);
	struct json_object *quote = at(good, "tee-evidence/primary_evidence/tpm_quote");
	static const char *const members[] = {"message", "signature"};

	for (size_t m = 0; m < ARRAY_LEN(members); m++) {
		const char *text = json_get_str(quote, members[m]);
		cleanup_free char *was = xstrdup(text);
		cleanup_free uint8_t *bytes = NULL;
		size_t len = 0;

		cr_assert_eq(bytes_from_b64(was, strlen(was), &bytes, &len), 0);
		for (size_t i = 0; i < len; i++) {
			cleanup_strbuf struct strbuf b64 = STRBUF_INIT;

			bytes[i] ^= (uint8_t)(1u << (i % 8));
			bytes_to_b64(&b64, bytes, len);
			bytes[i] ^= (uint8_t)(1u << (i % 8));
			json_add_str(quote, members[m], strbuf_str(&b64));
			cr_expect_neq(judge(good, FIXTURE_NONCE), RATS_FLAW_NONE, "%s[%zu]",
				members[m], i);
		}
		json_add_str(quote, members[m], was);
	}
	cr_assert_eq(judge(good, FIXTURE_NONCE), RATS_FLAW_NONE);
}

Test(rats_rcar, a_sample_is_bound_too)
{
	cleanup_json struct json_object *o = fixture_attest(false);
	cleanup_strbuf struct strbuf b64 = STRBUF_INIT;
	uint8_t binding[RATS_BINDING_LEN];

	rats_binding(&ec, FIXTURE_NONCE, "", binding);
	bytes_to_b64(&b64, binding, sizeof(binding));
	json_add(at(o, "tee-evidence"), "primary_evidence",
		json_add_str(
			json_add_str(json_obj(), "svn", "1"), "report_data", strbuf_str(&b64)));
	cr_assert_eq(judge(o, FIXTURE_NONCE), RATS_FLAW_NONE);
	cr_assert_eq(judge(o, "x"), RATS_FLAW_BINDING);
	json_add_str(at(o, "tee-evidence/primary_evidence"), "report_data", "AAAA");
	cr_assert_eq(judge(o, FIXTURE_NONCE), RATS_FLAW_BINDING);
}
