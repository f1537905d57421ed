/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include "tec/base/intern.h"
#include "tec/base/json.h"
#include "tec/model/ak.h"
#include "tec/model/secretobj.h"
#include "tec/pki/cert.h"
#include "tec/pki/key.h"
#include "tec/pki/spki.h"
#include "tec/rats/names.h"

#define UUID "11111111-2222-3333-4444-555555555555"
#define KEY  "AAECAwQFBgcICQoLDA0ODxAREhMUFRYX" /* 00..17 */
#define ROOT "{\"key_type\":\"oct\",\"key\":\"" KEY "\"}"

/* A Secret as the API gives it; data is JSON. */
static struct json_object *make(const char *type, const char *data)
{
	cleanup_free char *text = xasprintf(
		"{\"metadata\":{\"name\":\"" UUID
		"\",\"uid\":\"u\",\"resourceVersion\":\"1\"},\"type\":\"%s\",\"data\":%s}",
		type, data);
	struct json_object *o = json_tokener_parse(text);

	cr_assert(o, "%s", text);
	return o;
}

static struct json_object *make_one(const char *name, const void *value, size_t len)
{
	cleanup_strbuf struct strbuf b64 = STRBUF_INIT;
	cleanup_free char *data = NULL;

	bytes_to_b64(&b64, value, len);
	data = xasprintf("{\"%s\":\"%s\"}", name, strbuf_str(&b64));
	return make("Opaque", data);
}

static struct kobj *extract(struct json_object *o)
{
	struct err err = ERR_INIT;
	struct kobj *k = model_secret_extract(o, &err);

	cr_assert(k, "%s", err.text);
	return k;
}

Test(model_secretobj, a_luks_key_goes_into_the_arena)
{
	char got[SHA256_HEX_LEN + 1];
	cleanup_json struct json_object *o = make_one("root", ROOT, strlen(ROOT));
	size_t before = secret_count();
	struct kobj *k = extract(o);
	const struct model_secret *s = model_secret(k);
	char hex[SHA256_HEX_LEN + 1];
	uint8_t digest[SHA256_LEN];

	cr_assert_eq(s->shape, MODEL_SECRET_LUKS);
	cr_assert_eq(secret_len(s->root), strlen(ROOT));
	cr_assert_eq(memcmp(secret_peek(s->root), ROOT, strlen(ROOT)), 0);
	bytes_sha256(ROOT, strlen(ROOT), digest);
	bytes_to_hex(digest, SHA256_LEN, hex);
	cr_assert_str_eq(model_secret_key_sha256(s, got), hex);
	cr_assert_null(model_secret_public_sha256(s, got));
	cr_assert_null(s->identity);
	cr_assert_eq(secret_count(), before + 1);
	kobj_unref(k);
	cr_assert_eq(secret_count(), before, "released with the object");
}

/* What ca_sha256 is of ca.crt with these bytes; NULL: it is as it shall be. */
static const char *ca_wrong(const void *pem, size_t len, const char *want)
{
	cleanup_json struct json_object *o = make_one("ca.crt", pem, len);
	struct kobj *k = extract(o);
	const char *got = model_secret(k)->ca_sha256;
	bool right = got && strcmp(got, want) == 0;

	kobj_unref(k);
	return right ? NULL : want;
}

Test(model_secretobj, of_a_ca_the_hashes_are_kept)
{
	cleanup_pki_key struct pki_key *key = pki_key_new_ed25519();
	cleanup_secret struct secret *private = pki_key_private_pem(key);
	cleanup_strbuf struct strbuf pem = STRBUF_INIT, hash = STRBUF_INIT, two = STRBUF_INIT;
	cleanup_free char *both = NULL;
	static const char *const other[] = {"{}", "null", "{\"tls.crt\":\"QQ==\"}"};
	static const char *const bad[] = {
		"{\"ca.crt\":5}", "{\"ca.crt\":null}", "{\"ca.crt\":\"%%\"}", "{\"ca.crt\":\"\"}"};
	size_t before = secret_count();
	struct err err = ERR_INIT;

	cr_assert_eq(pki_cert_self_signed(key, "ca", 1790000000, 10, &pem, &err), 0);
	cr_assert_eq(pki_cert_read_bundle(pem.data, pem.len, NULL, &hash, &err), 0);
	cr_assert_null(ca_wrong(pem.data, pem.len, strbuf_str(&hash)));
	strbuf_addf(&two, "%s %s", strbuf_str(&hash), strbuf_str(&hash));
	both = xasprintf("%s# and\n%s", strbuf_str(&pem), strbuf_str(&pem));
	cr_assert_null(ca_wrong(both, strlen(both), strbuf_str(&two)));
	cr_assert_null(ca_wrong(pem.data, pem.len / 2, ""));
	cr_assert_null(ca_wrong(pem.data, pem.len + 1, ""), "a NUL byte");
	cr_assert_null(ca_wrong(secret_peek(private), secret_len(private), ""));
	for (size_t i = 0; i < ARRAY_LEN(bad) + ARRAY_LEN(other); i++) {
		const char *data = i < ARRAY_LEN(bad) ? bad[i] : other[i - ARRAY_LEN(bad)];
		cleanup_json struct json_object *o = make("kubernetes.io/tls", data);
		struct kobj *k = extract(o);

		cr_assert(str_eq(model_secret(k)->ca_sha256, i < ARRAY_LEN(bad) ? "" : NULL), "%s",
			data);
		kobj_unref(k);
	}
	cr_assert_eq(secret_count(), before);
}

Test(model_secretobj, every_data_string_is_wiped)
{
	cleanup_json struct json_object *o =
		make("Opaque", "{\"a\":\"c2VjcmV0\",\"root\":\"c2VjcmV0\",\"n\":null}");
	cleanup_json struct json_object *bad = make("Opaque", "{\"root\":\"c2VjcmV0\"}");
	struct err err = ERR_INIT;
	const char *texts[5];

	json_add(json_get_obj(o, "metadata"), "annotations",
		json_add_str(json_obj(), "kubectl.kubernetes.io/last-applied-configuration",
			"c2VjcmV0"));
	json_add(o, "stringData", json_add_str(json_obj(), "x", "c2VjcmV0"));
	json_object_object_del(json_get_obj(bad, "metadata"), "uid");
	texts[0] = json_get_str(o, "data/a");
	texts[1] = json_get_str(o, "data/root");
	texts[2] = json_get_str(o, "stringData/x");
	texts[3] = kobj_annotation(o, "kubectl.kubernetes.io/last-applied-configuration");
	texts[4] = json_get_str(bad, "data/root");
	kobj_unref(extract(o));
	cr_assert_null(model_secret_extract(bad, &err), "refused, and wiped all the same");
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		for (size_t j = 0; j < 8; j++)
			cr_assert_eq(texts[i][j], '\0', "text %zu", i);
}

Test(model_secretobj, any_json_spelling_of_a_key_is_well_formed)
{
	static const char *const roots[] = {
		ROOT,
		" {\t\"key_type\" : \"oct\" ,\r\n \"key\" : \"" KEY "\" }\n",
		"{\"key\":\"" KEY "\",\"key_type\":\"oct\"}",
		"{\"key_type\":\"oct\",\"key\":\"++++////++++////++++////++++////\"}",
		"{\"key_type\":\"oct\",\"key\":\"\\/AECAwQFBgcICQoLDA0ODxAREhMUFRYX\"}",
		"{\"\\u006bey_type\":\"o\\u0063t\",\"key\":\"\\u0041AECAwQFBgcICQoLDA0ODxAREhMUFRYX\"}",
	};

	for (size_t i = 0; i < ARRAY_LEN(roots); i++) {
		cleanup_json struct json_object *o = make_one("root", roots[i], strlen(roots[i]));
		cleanup_kobj const struct kobj *k = extract(o);

		cr_assert_eq(model_secret(k)->shape, MODEL_SECRET_LUKS, "%s", roots[i]);
		cr_assert_eq(secret_len(model_secret(k)->root), strlen(roots[i]), "kept as it is");
	}
}

Test(model_secretobj, everything_else_is_a_malformed_key)
{
	char got[SHA256_HEX_LEN + 1];
	static const char *const roots[] = {
		"",
		"{}",
		"[]",
		"null",
		KEY,
		"\"" KEY "\"",
		"{",
		"{\"",
		"{\"key",
		"{\"key\"",
		"{\"key\":",
		"{\"key_type\":\"oct\"}",
		"{\"key\":\"" KEY "\"}",
		"{\"key_type\":\"oct\",\"key\":\"" KEY "\"",
		"{\"key_type\":\"oct\",\"key\":\"" KEY "\"}x",
		"{\"key_type\":\"oct\",\"key\":\"" KEY "\",}",
		"{\"key_type\":\"oct\",\"key\":\"" KEY "\",\"a\":1}",
		"{\"key_type\":\"oct\",\"key_type\":\"oct\"}",
		"{\"key\":\"" KEY "\",\"key\":\"" KEY "\"}",
		"{\"key_type\":\"RSA\",\"key\":\"" KEY "\"}",
		"{\"key_type\":1,\"key\":\"" KEY "\"}",
		"{\"key_type\":\"oct\",\"key\":\"\"}",
		"{\"key_type\":\"oct\",\"key\":\"" KEY "A\"}",
		"{\"key_type\":\"oct\",\"key\":\"AAECAwQFBgcICQoLDA0ODxAREhMUFRY\"}",
		"{\"key_type\":\"oct\",\"key\":\"AAECAwQFBgcICQoLDA0ODxAREhMUFRY=\"}",
		"{\"key_type\":\"oct\",\"key\":\"AAECAwQFBgcICQoLDA0ODxAREhMUFRY_\"}",
		"{\"key_type\":\"oct\",\"key\":\"AAECAwQFBgcICQoLDA0ODxAREhMUFRY \"}",
		"{\"key_type\":\"oct\",\"key\":\"\\u0000AECAwQFBgcICQoLDA0ODxAREhMUFRYX\"}",
		"{\"key_type\":\"oct\",\"key\":\"\\u00",
		"{\"key_type\":\"oct\",\"key\":\"\\",
		"{'key_type':'oct','key':'" KEY "'}",
		"{\"key_type\":\"oct\" \"key\":\"" KEY "\"}",
	};

	for (size_t i = 0; i < ARRAY_LEN(roots); i++) {
		cleanup_json struct json_object *o = make_one("root", roots[i], strlen(roots[i]));
		cleanup_kobj const struct kobj *k = extract(o);

		cr_assert_eq(model_secret(k)->shape, MODEL_SECRET_LUKS_BAD, "%s", roots[i]);
		cr_assert_null(model_secret(k)->root);
		cr_assert_null(model_secret(k)->sha256);
		cr_assert_null(model_secret_key_sha256(model_secret(k), got));
	}
	cr_assert_eq(secret_count(), 0);
}

Test(model_secretobj, a_huge_root_is_malformed_not_fatal)
{
	size_t len = 1 << 20;
	cleanup_free char *big = xmalloc(len);
	cleanup_json struct json_object *o = NULL;
	cleanup_kobj const struct kobj *k = NULL;

	memset(big, ' ', len);
	o = make_one("root", big, len);
	k = extract(o);
	cr_assert_eq(model_secret(k)->shape, MODEL_SECRET_LUKS_BAD);
}

Test(model_secretobj, a_secret_that_is_not_ours_is_other)
{
	static const struct {
		const char *type, *data;
	} cases[] = {
		{"Opaque", "{}"},
		{"Opaque", "null"},
		{"Opaque", "[]"},
		{"Opaque", "{\"root\":null}"},
		{"Opaque", "{\"root\":5}"},
		{"Opaque", "{\"root\":\"AAAA\",\"b\":\"AAAA\"}"},
		{"Opaque", "{\"root\":\"AAAA\",\"public_key\":\"AAAA\"}"},
		{"Opaque", "{\"private.key\":\"AAAA\",\"public.pub\":\"AAAA\"}"},
		{"Opaque", "{\"public_key\":\"not base64!\"}"},
		{"kubernetes.io/tls", "{\"root\":\"AAAA\"}"},
		{"kubernetes.io/tls", "{\"public_key\":\"AAAA\"}"},
		{"", "{\"root\":\"AAAA\"}"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_json struct json_object *o = make(cases[i].type, cases[i].data);
		cleanup_kobj const struct kobj *k = extract(o);

		cr_assert_eq(model_secret(k)->shape, MODEL_SECRET_OTHER, "%s", cases[i].data);
		cr_assert_null(model_secret(k)->root);
	}
}

Test(model_secretobj, our_own_luks_secret_is_read_back)
{
	cleanup_secret struct secret *root = model_luks_root_new(), *other = model_luks_root_new();
	cleanup_secret struct secret *text = model_luks_secret_text(UUID, "machine-1", "m-1", root);
	struct err err = ERR_INIT;
	cleanup_json struct json_object *o = json_parse(
		(const char *)secret_peek(text), secret_len(text), &json_limits_object, &err);
	cleanup_kobj const struct kobj *k = NULL;

	cr_assert(o, "%s", err.text);
	cr_assert_not(secret_equal(root, other), "two keys differ");
	cr_assert_eq(secret_len(root), strlen(ROOT));
	cr_assert_str_eq(json_get_str(o, "metadata/name"), UUID);
	cr_assert_str_eq(json_get_str(o, "kind"), "Secret");
	cr_assert(json_get_bool(o, "immutable", false));
	json_add_str(json_get_obj(o, "metadata"), "uid", "u");
	json_add_str(json_get_obj(o, "metadata"), "resourceVersion", "1");
	k = extract(o);
	cr_assert_eq(model_secret(k)->shape, MODEL_SECRET_LUKS);
	cr_assert(secret_equal(model_secret(k)->root, root));
	cr_assert_str_eq(model_secret(k)->owner_uid, "m-1");
	cr_assert_eq(model_secret(k)->n_owners, 1);
	cr_assert_not(model_secret(k)->has_ak_finalizer);
}

Test(model_secretobj, names_are_quoted_in_the_luks_secret)
{
	cleanup_secret struct secret *root = model_luks_root_new();
	cleanup_secret struct secret *text = model_luks_secret_text("a\"b", "c\\d", "e\nf", root);
	struct err err = ERR_INIT;
	cleanup_json struct json_object *o = json_parse(
		(const char *)secret_peek(text), secret_len(text), &json_limits_object, &err);

	cr_assert(o, "%s", err.text);
	cr_assert_str_eq(json_get_str(o, "metadata/name"), "a\"b");
}

static char *make_pem(struct pki_spki *k)
{
	static const uint8_t head[33] = {0x30, 0x82, 0x01, 0x22, 0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86,
		0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00, 0x03, 0x82, 0x01, 0x0f, 0x00,
		0x30, 0x82, 0x01, 0x0a, 0x02, 0x82, 0x01, 0x01, 0x00};
	static const uint8_t tail[5] = {0x02, 0x03, 0x01, 0x00, 0x01};
	struct strbuf pem = STRBUF_INIT;

	memset(k, 0, sizeof(*k));
	memcpy(k->der, head, sizeof(head));
	memset(k->der + sizeof(head), 0xc5, 256);
	memcpy(k->der + sizeof(head) + 256, tail, sizeof(tail));
	k->der_len = 294;
	pki_spki_to_pem(k, &pem);
	return strbuf_steal(&pem);
}

Test(model_secretobj, our_own_ak_secret_is_read_back_with_its_identity)
{
	char got[SHA256_HEX_LEN + 1];
	struct pki_spki spki;
	cleanup_free char *pem = make_pem(&spki);
	cleanup_json struct json_object *o = model_ak_secret_json("ak-1", "a-1", pem);
	char name[RATS_IDENTITY_NAME_LEN + 1], hex[SHA256_HEX_LEN + 1];
	cleanup_kobj const struct kobj *k = NULL;
	const struct model_secret *s;
	uint8_t digest[SHA256_LEN];
	const char *once;

	json_add_str(json_get_obj(o, "metadata"), "uid", "u");
	json_add_str(json_get_obj(o, "metadata"), "resourceVersion", "1");
	k = extract(o);
	s = model_secret(k);
	cr_assert_eq(s->shape, MODEL_SECRET_AK);
	cr_assert(s->has_ak_finalizer);
	cr_assert_str_eq(s->owner_uid, "a-1");
	bytes_sha256(pem, strlen(pem), digest);
	bytes_to_hex(digest, SHA256_LEN, hex);
	cr_assert_str_eq(model_secret_public_sha256(s, got), hex);
	cr_assert_eq(s->public_hash, str_hash(pem, strlen(pem)));
	cr_assert_eq(rats_identity_name(spki.der, spki.der_len, name), 0);
	cr_assert_str_eq(s->identity, name);
	once = intern_ref(name);
	cr_assert_eq(s->identity, once, "the copy that all have who know the name");
	intern_unref(once);
	cr_assert_null(s->root);
	cr_assert_null(model_secret_key_sha256(s, got));
}

Test(model_secretobj, an_ak_secret_without_usable_key_has_no_identity)
{
	char got[SHA256_HEX_LEN + 1];
	cleanup_json struct json_object *o = make_one("public_key", "whatever", 8);
	cleanup_json struct json_object *empty = make_one("public_key", "", 0);
	cleanup_kobj const struct kobj *k = extract(o), *e = extract(empty);

	cr_assert_eq(model_secret(k)->shape, MODEL_SECRET_AK);
	cr_assert(model_secret_public_sha256(model_secret(k), got));
	cr_assert_null(model_secret(k)->identity);
	cr_assert_eq(model_secret(e)->shape, MODEL_SECRET_AK);
}
