/* SPDX-License-Identifier: MIT */
/*
 * Secrets. The base64 of a key goes from json-c's string straight into the locked arena
 * (base/secret.h). Every string of the Secret's data, and of the JSON that a key is parsed into to
 * check its form, is wiped before the object is released. Text that contains a key is composed
 * inside the arena, too. The type and the names in data determine what a Secret is, never its name.
 */
#include "config.h"

#include "tec/model/secretobj.h"

#include <string.h>

#include "tec/base/intern.h"
#include "tec/base/json.h"
#include "tec/kobj/gvk.h"
#include "tec/kobj/owner.h"
#include "tec/model/ak.h"
#include "tec/pki/cert.h"
#include "tec/pki/spki.h"
#include "tec/rats/names.h"

#define AT(m) offsetof(struct model_secret, m)

#define LUKS_RAW     24
#define LUKS_KEY_LEN 32 /* length of its base64 */
#define LUKS_HEAD    "{\"key_type\":\"oct\",\"key\":\""
#define LUKS_TAIL    "\"}"
#define BASE64       "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
#define ROOT_B64_MAX                                                                               \
	2048 /* a well-formed root is 59 bytes, 80 in base64; the rest allows for white space */

/* ---- the form of `root` */

static const struct json_limits root_limits = {.bytes = ROOT_B64_MAX, .depth = 2, .tokens = 5};

/* Check for {"key_type":"oct","key":"..."} with members in any order and no others. */
static bool luks_well_formed(const struct secret *root)
{
	struct err ignored = ERR_INIT;
	struct json_object *o = json_parse(
		(const char *)secret_peek(root), secret_len(root), &root_limits, &ignored);
	const char *key = json_get_str(o, "key");
	/* 32 characters of the base64 alphabet without padding always encode 24 bytes. */
	bool ok = key && strlen(key) == LUKS_KEY_LEN && strspn(key, BASE64) == LUKS_KEY_LEN &&
		  str_eq(json_get_str(o, "key_type"), "oct") && json_len(o) == 2;

	json_wipe(o);
	json_object_put(o);
	return ok;
}

/* ---- extraction */

/* A root that is not well-formed has a shape of its own: the Secret may be a Machine's, but is
 * never delivered. */
static void read_luks(struct kobj_pack *pack, struct json_object *v, struct model_secret *s)
{
	size_t len = (size_t)json_object_get_string_len(v);
	cleanup_secret struct secret *root = NULL;
	uint8_t digest[SHA256_LEN];

	s->shape = MODEL_SECRET_LUKS_BAD;
	if (len == 0 || len > ROOT_B64_MAX)
		return;
	root = secret_from_b64(json_object_get_string(v), len);
	if (!root || !luks_well_formed(root))
		return;
	secret_sha256(root, digest);
	kobj_pack_bytes(pack, AT(sha256), digest, SHA256_LEN);
	s->root = steal_ptr(&root);
	s->shape = MODEL_SECRET_LUKS;
}

/* A public key that is not usable leaves identity NULL; its hash still tells whether the content is
 * what we wrote. */
static void read_ak(struct kobj_pack *pack, struct json_object *v, struct model_secret *s)
{
	cleanup_free uint8_t *pem = NULL;
	char name[RATS_IDENTITY_NAME_LEN + 1];
	struct err ignored = ERR_INIT;
	uint8_t digest[SHA256_LEN];
	struct pki_spki spki;
	size_t len = 0;

	if (bytes_from_b64(json_object_get_string(v), (size_t)json_object_get_string_len(v), &pem,
		    &len) < 0)
		return;
	s->shape = MODEL_SECRET_AK;
	bytes_sha256(pem, len, digest);
	kobj_pack_bytes(pack, AT(sha256), digest, SHA256_LEN);
	s->public_hash = str_hash(pem, len);
	if (pki_spki_parse_pem((const char *)pem, len, &spki, &ignored) == 0 &&
		rats_identity_name(spki.der, spki.der_len, name) == 0)
		s->identity = intern_ref(name);
}

/* The bytes of a member, in the arena because it may be a private key, wherever it stands; NULL: absent
 * or unreadable. */
static struct secret *take_bytes(struct json_object *data, const char *member, bool *there)
{
	struct json_object *v = NULL;

	*there = data && json_object_object_get_ex(data, member, &v);
	if (!*there || !json_object_is_type(v, json_type_string))
		return NULL;
	return secret_from_b64(json_object_get_string(v), (size_t)json_object_get_string_len(v));
}

/* An unusable ca.crt is "" and not NULL, so that it fails the check of caSHA256. */
static void read_ca(struct kobj_pack *pack, struct json_object *data)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT, hashes = STRBUF_INIT;
	struct err ignored = ERR_INIT;
	bool there;
	cleanup_secret struct secret *ca = take_bytes(data, "ca.crt", &there);
	bool good = ca && pki_cert_read_bundle((const char *)secret_peek(ca), secret_len(ca), &text,
				  &hashes, &ignored) == 0;

	if (there)
		kobj_pack_str(pack, AT(ca_sha256), good ? strbuf_str(&hashes) : "");
	if (good)
		kobj_pack_str(pack, AT(ca), strbuf_str(&text));
}

static void read_pair(struct kobj_pack *pack, struct json_object *data, struct model_secret *s)
{
	bool has_crt, has_key;
	cleanup_secret struct secret *crt = take_bytes(data, "tls.crt", &has_crt),
				     *key = take_bytes(data, "tls.key", &has_key);
	const struct pki_pair p = {
		.cert = crt ? (const void *)secret_peek(crt) : "",
		.cert_len = crt ? secret_len(crt) : 0,
		.key = key ? (const void *)secret_peek(key) : "",
		.key_len = key ? secret_len(key) : 0,
	};
	cleanup_strbuf struct strbuf chain = STRBUF_INIT;
	struct err why = ERR_INIT;

	if (!has_crt && !has_key)
		return;
	s->tls_fault = pki_pair_judge(&p, &chain, &why);
	if (s->tls_fault != PKI_PAIR_OK)
		kobj_pack_str(pack, AT(tls_why), why.text);
	if (chain.len)
		kobj_pack_str(pack, AT(tls_crt), strbuf_str(&chain));
}

/* The fini of struct kobj. */
static void release(struct kobj *o)
{
	struct model_secret *s = (struct model_secret *)o;

	secret_free(s->root);
	intern_unref(s->identity);
}

/* Exactly one member and type Opaque: a Secret with more is somebody else's. */
static void read_data(struct kobj_pack *pack, struct json_object *o, struct model_secret *s)
{
	struct json_object *data = json_get_obj(o, "data"), *v = NULL;

	s->shape = MODEL_SECRET_OTHER;
	read_ca(pack, data);
	read_pair(pack, data, s);
	if (!data || json_len(data) != 1 || !str_eq(json_get_str(o, "type"), "Opaque"))
		return;
	if (json_object_object_get_ex(data, "root", &v) && json_object_is_type(v, json_type_string))
		read_luks(pack, v, s);
	else if (json_object_object_get_ex(data, "public_key", &v) &&
		 json_object_is_type(v, json_type_string))
		read_ak(pack, v, s);
}

/* o is wiped on failure, too, so nothing may be read from its data afterwards. */
struct kobj *model_secret_extract(struct json_object *o, struct err *err)
{
	cleanup_kobj_pack struct kobj_pack pack = KOBJ_PACK_INIT;
	struct model_secret s = {0};
	struct json_object *a = json_get_obj(o, "metadata/annotations");
	int ok = kobj_meta_read(&pack, o, &s.obj, err);

	if (ok == 0)
		read_data(&pack, o, &s);
	json_wipe(json_get_obj(o, "data"));
	json_wipe(json_get_obj(o, "stringData"));
	/* kubectl apply stores a copy of the whole Secret here. */
	json_wipe(a ? json_object_object_get(a, "kubectl.kubernetes.io/last-applied-configuration")
		    : NULL);
	if (ok < 0)
		return NULL;
	s.has_ak_finalizer = kobj_has_finalizer(o, MODEL_AK_SECRET_FINALIZER);
	s.n_owners = (unsigned)kobj_owner_count(o);
	kobj_pack_str(&pack, AT(owner_uid), kobj_owner_controller(o));
	s.obj.fini = release;
	return kobj_pack_finish(&pack, &s, sizeof(s));
}

/* The two kinds of Secret share the member for the hash; the shape says whose it is. */
static const char *hex_of(
	const struct model_secret *s, enum model_secret_shape shape, char out[SHA256_HEX_LEN + 1])
{
	if (s->shape != shape)
		return NULL;
	bytes_to_hex(s->sha256, SHA256_LEN, out);
	return out;
}

const char *model_secret_key_sha256(const struct model_secret *s, char out[SHA256_HEX_LEN + 1])
{
	return hex_of(s, MODEL_SECRET_LUKS, out);
}

const char *model_secret_public_sha256(const struct model_secret *s, char out[SHA256_HEX_LEN + 1])
{
	return hex_of(s, MODEL_SECRET_AK, out);
}

/* ---- making */

/* Concatenate into the arena: the body is key material. */
static struct secret *concat(const char *head, const struct secret *body, const char *tail)
{
	size_t a = strlen(head), b = secret_len(body), c = strlen(tail);
	struct secret *s = secret_new(a + b + c);
	uint8_t *p = secret_bytes(s);

	memcpy(p, head, a);
	memcpy(p + a, secret_peek(body), b);
	memcpy(p + a + b, tail, c);
	return s;
}

/* 24 random bytes (192 bits) are 32 base64 characters without padding. */
struct secret *model_luks_root_new(void)
{
	cleanup_secret struct secret *raw = secret_new_random(LUKS_RAW);
	cleanup_secret struct secret *key = secret_to_b64(raw);

	return concat(LUKS_HEAD, key, LUKS_TAIL);
}

/* Make a Secret without its data; finalizer may be NULL. */
static struct json_object *frame(const char *name, const struct kobj_gvk *owner,
	const char *owner_name, const char *owner_uid, const char *finalizer)
{
	struct json_object *meta, *o = kobj_new(&kobj_secret, name, &meta);

	json_add(meta, "labels",
		json_add_str(json_obj(), "app.kubernetes.io/managed-by", "tec-operator"));
	kobj_owner_add(meta, owner, owner_name, owner_uid);
	if (finalizer)
		json_add(meta, "finalizers", json_push_str(json_arr(), finalizer));
	return json_add_str(o, "type", "Opaque");
}

/* o is printed without the key, then the data is inserted before its last brace. */
struct secret *model_secret_text(
	struct json_object *o, const char *member, const struct secret *b64)
{
	cleanup_free char *text = json_text(o);
	cleanup_strbuf struct strbuf head = STRBUF_INIT;

	strbuf_add(&head, text, strlen(text) - 1); /* all but the closing brace */
	strbuf_addf(&head, ",\"data\":{\"%s\":\"", member);
	return concat(strbuf_str(&head), b64, "\"}}");
}

/* immutable: true makes the API server refuse a change of the key, even by an administrator. */
struct secret *model_luks_secret_text(const char *name, const char *machine_name,
	const char *machine_uid, const struct secret *root)
{
	cleanup_json struct json_object *o =
		frame(name, &kobj_machine, machine_name, machine_uid, NULL);
	cleanup_secret struct secret *b64 = secret_to_b64(root);

	json_add_bool(o, "immutable", true);
	return model_secret_text(o, "root", b64);
}

struct json_object *model_ak_secret_json(
	const char *ak_name, const char *ak_uid, const char *public_key)
{
	struct json_object *o =
		frame(ak_name, &kobj_ak, ak_name, ak_uid, MODEL_AK_SECRET_FINALIZER);
	cleanup_strbuf struct strbuf b64 = STRBUF_INIT;

	bytes_to_b64(&b64, public_key, strlen(public_key));
	return json_add(o, "data", json_add_str(json_obj(), "public_key", strbuf_str(&b64)));
}
