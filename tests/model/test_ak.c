/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include "tec/base/bytes.h"
#include "tec/base/json.h"
#include "tec/model/ak.h"
#include "tec/model/machine.h"
#include "tec/model/mark.h"
#include "tec/pki/spki.h"

#define UUID "11111111-2222-3333-4444-555555555555"

/* DER of an RSA-2048 key whose modulus is made of `fill`; as PEM. */
static char *make_pem(uint8_t fill, struct pki_spki *out)
{
	static const uint8_t head[33] = {0x30, 0x82, 0x01, 0x22, 0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86,
		0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00, 0x03, 0x82, 0x01, 0x0f, 0x00,
		0x30, 0x82, 0x01, 0x0a, 0x02, 0x82, 0x01, 0x01, 0x00};
	static const uint8_t tail[5] = {0x02, 0x03, 0x01, 0x00, 0x01};
	struct strbuf pem = STRBUF_INIT;
	struct err err = ERR_INIT;

	memset(out, 0, sizeof(*out));
	memcpy(out->der, head, sizeof(head));
	memset(out->der + sizeof(head), fill | 0x81, 256);
	memcpy(out->der + sizeof(head) + 256, tail, sizeof(tail));
	out->der_len = 294;
	pki_spki_to_pem(out, &pem);
	cr_assert_eq(pki_spki_parse_pem(pem.data, pem.len, out, &err), 0, "%s", err.text);
	return strbuf_steal(&pem);
}

static struct json_object *server_copy(struct json_object *o)
{
	json_add_str(json_get_obj(o, "metadata"), "uid", "u-1");
	json_add_str(json_get_obj(o, "metadata"), "resourceVersion", "1");
	return o;
}

static void assert_key(const struct model_ak *a, const char *want)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;

	model_ak_public_key(a, &text);
	cr_assert_str_eq(strbuf_str(&text), want);
	cr_assert_eq(a->public_hash, str_hash(want, strlen(want)));
}

static void annotate(struct json_object *o, const char *name, const char *value)
{
	json_add_str(json_get_obj(o, "metadata/annotations"), name, value);
}

Test(model_ak, name_is_ak_and_half_of_the_hash)
{
	char name[MODEL_AK_NAME_LEN + 1];
	uint8_t digest[32];

	for (int i = 0; i < 32; i++)
		digest[i] = (uint8_t)i;
	model_ak_name(digest, MODEL_AK_NAME, name);
	cr_assert_str_eq(name, "ak-000102030405060708090a0b0c0d0e0f");
	model_ak_name(digest, MODEL_AK_NAME_ANY, name);
	cr_assert_str_eq(name, "ak-000102030405060708090a0b0c0d0e0f-any");
	model_ak_name(digest, MODEL_AK_NAME_SPARE, name);
	cr_assert_str_eq(name, "ak-000102030405060708090a0b0c0d0e0f-uuid");
	cr_assert_eq(strlen(name), MODEL_AK_NAME_LEN);
}

Test(model_ak, a_listeners_key_counts_for_the_machine_it_saw)
{
	static const struct {
		const char *seen; /* NULL: an older listener */
		int64_t machine_s, key_s;
		bool ok;
	} t[] = {
		{"m-1", 10, 10, true},
		{"m-1", 20, 10, true},
		{"m-2", 5, 10, false},
		{MODEL_SEEN_NONE, 5, 10, false},
		{"", 5, 10, false},
		{NULL, 9, 10, true},
		{NULL, 10, 10, false},
		{NULL, 11, 10, false},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct model_ak a = {.machine_seen = t[i].seen, .obj.created_s = t[i].key_s};
		struct kobj m = {.uid = "m-1", .created_s = t[i].machine_s};

		cr_expect_eq(model_ak_saw(&a, &m), t[i].ok, "%zu", i);
	}
}

Test(model_ak, what_a_listener_saw_is_read_back)
{
	struct pki_spki spki;
	cleanup_free char *pem = make_pem(0, &spki);
	cleanup_json struct json_object *o = server_copy(model_ak_new_json("ak-1", pem, UUID));
	cleanup_kobj const struct kobj *k = NULL;
	struct err err = ERR_INIT;

	model_ak_note_seen(o, "m-1");
	k = model_ak_extract(o, &err);
	cr_assert_str_eq(model_ak(k)->machine_seen, "m-1");
	cr_assert(model_ak(k)->by_listener, "the other note stays");
}

Test(model_ak, the_listeners_json_is_read_back)
{
	struct pki_spki spki;
	cleanup_free char *pem = make_pem(0, &spki);
	cleanup_json struct json_object *o = server_copy(model_ak_new_json("ak-1", pem, UUID));
	struct err err = ERR_INIT;
	cleanup_kobj const struct kobj *k = model_ak_extract(o, &err);
	const struct model_ak *a = model_ak(k);
	char hex[SHA256_HEX_LEN + 1];

	cr_assert(k, "%s", err.text);
	cr_assert_str_eq(json_get_str(o, "kind"), "AttestationKey");
	cr_assert_str_eq(k->name, "ak-1");
	cr_assert_null(a->text);
	cr_assert_eq(a->der_len, spki.der_len);
	cr_assert_eq(memcmp(a->der, spki.der, spki.der_len), 0);
	assert_key(a, pem);
	cr_assert_str_eq(a->uuid, UUID);
	bytes_to_hex(spki.sha256, 32, hex);
	cr_assert_str_eq(a->spki_sha256, hex);
	cr_assert(a->by_listener);
	cr_assert_not(a->approve_wanted);
	cr_assert_not(a->approved_by_admin);
	cr_assert_null(a->approved_at);
	cr_assert_not(a->approval_ignored);
	cr_assert_null(a->owner_uid);
	cr_assert_str_eq(model_ak_index(k, 0), UUID);
	cr_assert_str_eq(model_ak_index(k, 1), hex);
	cr_assert_null(model_ak_index(k, 2));
	cr_assert_null(model_ak_index(k, 3));
}

static void annotate_mark(struct json_object *o, const char *name, const char *payload)
{
	cleanup_free char *text = model_mark_text(json_get_str(o, "metadata/uid"), payload);

	annotate(o, name, text);
}

/* A follower has each AttestationKey and its Machine twice. */
Test(model_ak, the_same_key_is_in_memory_once)
{
	struct pki_spki spki;
	cleanup_free char *pem = make_pem(0, &spki);
	cleanup_json struct json_object *there = server_copy(model_ak_new_json("ak-1", pem, UUID));
	cleanup_json struct json_object *here = server_copy(model_ak_new_json("ak-1", pem, UUID));
	cleanup_json struct json_object *machine =
		server_copy(model_machine_new_json(UUID, "tec", "c-1", false));
	struct err err = ERR_INIT;
	const struct kobj *a = model_ak_extract(there, &err);
	cleanup_kobj const struct kobj *b = model_ak_extract(here, &err), *m = NULL;
	cleanup_free char *bound = xasprintf("k-1 %s", model_ak(b)->spki_sha256);

	cr_assert_eq(model_ak(a)->der, model_ak(b)->der);
	cr_assert_eq(model_ak(a)->spki_sha256, model_ak(b)->spki_sha256);
	annotate_mark(machine, MODEL_BOUND_KEY_ANNOTATION, bound);
	m = model_machine_extract(machine, &err);
	cr_assert_eq(model_machine(m)->bound_spki, model_ak(b)->spki_sha256);
	kobj_unref(a);
	assert_key(model_ak(b), pem);
}

Test(model_ak, marks_without_its_uid_count_for_nothing)
{
	struct pki_spki spki;
	cleanup_free char *pem = make_pem(0, &spki);
	cleanup_json struct json_object *o = server_copy(model_ak_new_json("ak-1", pem, NULL));
	cleanup_kobj const struct kobj *k = NULL;
	struct err err = ERR_INIT;

	annotate(o, MODEL_APPROVED_AT_ANNOTATION, "2026-01-01T00:00:00.000000Z");
	annotate(o, MODEL_APPROVED_BY_ANNOTATION, "admin");
	annotate(o, MODEL_APPROVAL_IGNORED_ANNOTATION, "x y");
	k = model_ak_extract(o, &err);
	cr_assert(k, "%s", err.text);
	cr_assert(!model_ak(k)->approved_at && !model_ak(k)->approved_by_admin);
	cr_assert_not(model_ak(k)->approval_ignored);
}

Test(model_ak, reads_the_approval)
{
	struct pki_spki spki;
	cleanup_free char *pem = make_pem(0, &spki);
	cleanup_json struct json_object *o = server_copy(model_ak_new_json("ak-1", pem, NULL));
	cleanup_kobj const struct kobj *k = NULL;
	const struct model_ak *a;
	struct err err = ERR_INIT;

	annotate(o, MODEL_APPROVED_ANNOTATION, "true");
	annotate_mark(o, MODEL_APPROVED_AT_ANNOTATION, "2026-01-01T00:00:00.000000Z");
	annotate_mark(o, MODEL_APPROVED_BY_ANNOTATION, "admin");
	annotate_mark(o, MODEL_APPROVAL_IGNORED_ANNOTATION, "2026-01-01T00:00:00Z");
	json_add(json_get_obj(o, "metadata"), "ownerReferences",
		json_tokener_parse("[{\"uid\":\"m-1\",\"controller\":true}]"));
	k = model_ak_extract(o, &err);
	cr_assert(k, "%s", err.text);
	a = model_ak(k);
	cr_assert(a->approve_wanted);
	cr_assert_str_eq(a->approved_at, "2026-01-01T00:00:00.000000Z");
	cr_assert(a->approval_ignored);
	cr_assert(a->approved_by_admin);
	cr_assert_null(a->uuid);
	cr_assert_str_eq(model_ak_index(k, 2), "m-1");
	cr_assert_eq(a->n_owners, 1);
}

Test(model_ak, only_the_word_true_approves)
{
	static const char *const words[] = {"True", "1", "yes", "", "false", "true "};
	struct pki_spki spki;
	cleanup_free char *pem = make_pem(0, &spki);

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		cleanup_json struct json_object *o = server_copy(model_ak_new_json("a", pem, UUID));
		struct err err = ERR_INIT;
		cleanup_kobj const struct kobj *k = NULL;

		annotate(o, MODEL_APPROVED_ANNOTATION, words[i]);
		k = model_ak_extract(o, &err);
		cr_assert_not(model_ak(k)->approve_wanted, "%s", words[i]);
	}
}

Test(model_ak, an_unusable_key_is_kept_without_hash)
{
	static const char *const keys[] = {"", "arbitrary text", "-----BEGIN PUBLIC KEY-----\n",
		"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		cleanup_json struct json_object *o =
			server_copy(model_ak_new_json("a", keys[i], ""));
		struct err err = ERR_INIT;
		cleanup_kobj const struct kobj *k = model_ak_extract(o, &err);

		cr_assert(k, "%s", err.text);
		assert_key(model_ak(k), keys[i]);
		cr_assert_null(model_ak(k)->der);
		cr_assert_null(model_ak(k)->spki_sha256);
		cr_assert_null(model_ak(k)->uuid, "an empty uuid is none");
		cr_assert_null(model_ak_index(k, 1));
	}
}

Test(model_ak, one_key_in_two_spellings_has_one_hash)
{
	struct pki_spki spki;
	cleanup_free char *pem = make_pem(0, &spki);
	cleanup_free char *around = xasprintf("\n%s\n\n", pem);
	cleanup_json struct json_object *a = server_copy(model_ak_new_json("a", pem, UUID));
	cleanup_json struct json_object *b = server_copy(model_ak_new_json("b", around, UUID));
	struct err err = ERR_INIT;
	cleanup_kobj const struct kobj *ka = model_ak_extract(a, &err);
	cleanup_kobj const struct kobj *kb = model_ak_extract(b, &err);

	cr_assert_str_eq(model_ak(ka)->spki_sha256, model_ak(kb)->spki_sha256);
	cr_assert_eq(memcmp(model_ak(ka)->der, model_ak(kb)->der, model_ak(ka)->der_len), 0);
	assert_key(model_ak(ka), pem);
	assert_key(model_ak(kb), around);
	cr_assert_neq(model_ak(ka)->public_hash, model_ak(kb)->public_hash);
}

/* Whatever makes it another text than pki_spki_to_pem()'s, the Secret gets the text that is stored. */
Test(model_ak, every_spelling_of_a_key_is_kept)
{
	struct pki_spki spki;
	cleanup_free char *pem = make_pem(0, &spki);
	size_t len = strlen(pem), head = strlen("-----BEGIN PUBLIC KEY-----\n");
	char *spellings[] = {
		xasprintf("%.*s", (int)len - 1, pem),
		xasprintf("%s\n", pem),
		xasprintf(" %s", pem),
		xasprintf("%.*s\r\n%s", (int)head - 1, pem, pem + head),
		xasprintf("%.*s\n%s", (int)head + 4, pem, pem + head + 4),
	};

	for (size_t i = 0; i < ARRAY_LEN(spellings); i++) {
		cleanup_json struct json_object *o =
			server_copy(model_ak_new_json("a", spellings[i], UUID));
		struct err err = ERR_INIT;
		cleanup_kobj const struct kobj *k = model_ak_extract(o, &err);

		cr_assert(k, "%s", err.text);
		cr_assert_eq(model_ak(k)->der_len, spki.der_len, "%zu", i);
		assert_key(model_ak(k), spellings[i]);
		free(spellings[i]);
	}
}

Test(model_ak, refuses_an_object_without_key)
{
	static const char *const specs[] = {
		"{}", "{\"publicKey\":null}", "{\"publicKey\":7}", "[]"};

	for (size_t i = 0; i < ARRAY_LEN(specs); i++) {
		cleanup_json struct json_object *o = server_copy(model_ak_new_json("a", "x", UUID));
		struct err err = ERR_INIT;

		json_add(o, "spec", json_tokener_parse(specs[i]));
		cr_assert_null(model_ak_extract(o, &err), "%s", specs[i]);
		cr_assert_eq(err.kind, ERR_INVALID);
	}
}
