/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/keys.h"
#include "tec/base/bytes.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/caches/digest.h"

#define ID_A    "11111111-2222-3333-4444-555555555555"
#define ID_B    "22222222-2222-3333-4444-555555555555"
#define ROOT    "{\"key_type\":\"oct\",\"key\":\"AAECAwQFBgcICQoLDA0ODxAREhMUFRYX\"}"
#define SPKI    "00000000000000000000000000000000000000000000000000000000000000aa"
#define CREATED "\"creationTimestamp\":\"2026-01-02T03:04:05Z\""

static struct caches one, other;

static void make(struct caches *s)
{
	*s = (struct caches)CACHES_INIT;
	for (int i = 0; i < CACHES_N_KINDS; i++)
		s->cache[i] = k8s_cache_new(&caches_kinds[i].cache);
}

static void up(void)
{
	make(&one);
	make(&other);
}

static void down(void)
{
	for (int i = 0; i < CACHES_N_KINDS; i++) {
		k8s_cache_free(one.cache[i]);
		k8s_cache_free(other.cache[i]);
	}
}

TestSuite(caches_digest, .init = up, .fini = down);

/* more: members of metadata, after a comma; rest: of the object, likewise. */
static void put(struct caches *s, enum caches_of of, const char *name, const char *uid,
	const char *more, const char *rest)
{
	cleanup_free char *text = xasprintf(
		"{\"metadata\":{\"name\":\"%s\",\"uid\":\"%s\",\"resourceVersion\":\"%s\"," CREATED
		"%s}%s}",
		name, uid, uid, more, rest);
	cleanup_json struct json_object *o = json_tokener_parse(text);

	cr_assert(o, "%s", text);
	k8s_cache_remove(s->cache[of], name, NULL); /* put anew: with a uid of its own */
	k8s_cache_put(s->cache[of], o);
	cr_assert(k8s_cache_find(s->cache[of], name), "%s", text);
}

static void root_sha256(char hex[SHA256_HEX_LEN + 1])
{
	uint8_t sha256[SHA256_LEN];

	bytes_sha256(ROOT, strlen(ROOT), sha256);
	bytes_to_hex(sha256, SHA256_LEN, hex);
}

static void put_machine(struct caches *s, const char *name, const char *uid, const char *id)
{
	char hex[SHA256_HEX_LEN + 1];
	cleanup_free char *marks = NULL, *spec = NULL;

	root_sha256(hex);
	marks = xasprintf(",\"annotations\":{"
			  "\"trusted-execution-clusters.io/luks-key-sha256\":\"%s %s\","
			  "\"trusted-execution-clusters.io/bound-key\":\"%s %s-key " SPKI "\"}",
		uid, hex, uid, uid);
	spec = xasprintf(",\"spec\":{\"id\":\"%s\"}", id);
	put(s, CACHES_MACHINES, name, uid, marks, spec);
}

static void put_secret(struct caches *s, const char *id, const char *uid, const char *root)
{
	cleanup_strbuf struct strbuf b64 = STRBUF_INIT;
	cleanup_free char *rest = NULL;

	bytes_to_b64(&b64, root, strlen(root));
	rest = xasprintf(",\"type\":\"Opaque\",\"data\":{\"root\":\"%s\"}", strbuf_str(&b64));
	put(s, CACHES_SECRETS, id, uid, "", rest);
}

static void put_ak(
	struct caches *s, const char *name, const char *uid, const char *pem, bool approved)
{
	cleanup_json struct json_object *spec = json_obj();
	cleanup_free char *marks = NULL, *rest = NULL;

	json_add_str(spec, "publicKey", pem);
	json_add_str(spec, "uuid", ID_A);
	marks = approved
			? xasprintf(
				  ",\"annotations\":{\"trusted-execution-clusters.io/approved-at\":"
				  "\"%s 2026-01-02T03:04:05.000000Z\"}",
				  uid)
			: xstrdup("");
	rest = xasprintf(",\"spec\":%s", json_object_to_json_string(spec));
	put(s, CACHES_AKS, name, uid, marks, rest);
}

static void put_image(struct caches *s, const char *name, const char *uid, const char *more)
{
	cleanup_free char *rest =
		xasprintf(",\"spec\":{\"image\":\"registry.test/os@sha256:" SPKI "\"%s}", more);

	put(s, CACHES_IMAGES, name, uid, "", rest);
}

static void put_cluster(struct caches *s, const char *name, const char *uid, const char *spec)
{
	cleanup_free char *rest = xasprintf(",\"spec\":%s", spec);

	put(s, CACHES_CLUSTERS, name, uid, "", rest);
}

static const char *digest(const struct caches *s)
{
	static struct caches_digest d[2];
	static int i;

	i = !i;
	caches_digest(s, &d[i]);
	return d[i].hex;
}

#define assert_same(what)    cr_assert_str_eq(digest(&one), digest(&other), "%s", what)
#define assert_differs(what) cr_assert_str_neq(digest(&one), digest(&other), "%s", what)

Test(caches_digest, names_uids_and_order_are_not_part_of_it)
{
	struct caches_digest d;

	put_cluster(&one, "tec", "u1",
		"{\"publicTrusteeAddr\":\"a\",\"registration\":{\"mode\":\"Manual\"},"
		"\"trustee\":{\"window\":3}}");
	put_machine(&one, "machine-a", "u2", ID_A);
	put_machine(&one, "machine-b", "u3", ID_B);
	put_secret(&one, ID_A, "u4", ROOT);
	put_image(&one, "coreos", "u5", "");
	put_cluster(&other, "cluster", "w1",
		"{\"publicTrusteeAddr\":\"b\",\"registration\":{\"mode\":\"Manual\"}}");
	put_image(&other, "os", "w5", "");
	put_secret(&other, ID_A, "w4", ROOT);
	put_machine(&other, "b", "w3", ID_B);
	put_machine(&other, "a", "w2", ID_A);
	assert_same("the same state");
	caches_digest(&one, &d);
	cr_assert_eq(d.machines, 2);
	cr_assert_eq(d.aks, 0);
	cr_assert_eq(d.images, 1);
	/* By a program of three lines with hashlib. */
	cr_assert_str_eq(d.hex, "31f24f9fd0a70fb27ae9bfe4b5e2d1594e9d11adaf1c5b1ef4b8954beb30f5e8");
}

/* Two Machines with one ID, two AttestationKeys with one key: their lines differ behind it. */
Test(caches_digest, equal_keys_are_in_the_order_of_their_lines)
{
	char hex[SHA256_HEX_LEN + 1];
	cleanup_free char *marks = NULL, *rest = NULL;
	cleanup_json struct json_object *spec = json_add_str(json_obj(), "publicKey", test_pem[0]);

	root_sha256(hex);
	marks = xasprintf(
		",\"annotations\":{\"trusted-execution-clusters.io/luks-key-sha256\":\"u2 %s\"}",
		hex);
	rest = xasprintf(",\"spec\":%s", json_object_to_json_string(spec));
	put_machine(&one, "c", "u0", ID_B);
	put_machine(&one, "a", "u1", ID_A);
	put(&one, CACHES_MACHINES, "b", "u2", marks, ",\"spec\":{\"id\":\"" ID_A "\"}");
	put(&one, CACHES_MACHINES, "d", "u3", "", ",\"spec\":{\"id\":\"no UUID\"}");
	put_secret(&one, ID_A, "u4", ROOT);
	put_image(&one, "os", "u5", "");
	put_ak(&one, "k", "u6", test_pem[1], false);
	put_ak(&one, "l", "u7", test_pem[0], true);
	put(&one, CACHES_AKS, "m", "u8", "", rest);
	put_ak(&one, "n", "u9", "no key", true);
	/* By a program of a few lines with hashlib. */
	cr_assert_str_eq(
		digest(&one), "a7188485bb68804c6b623fc243ade7aef8cb6784e80dc27758772ab4b9748d00");
}

Test(caches_digest, whatever_an_operator_decides_is_part_of_it)
{
	const char *pem = test_pem[0];

	put_machine(&one, "a", "u1", ID_A);
	assert_differs("a Machine");
	put_machine(&other, "a", "w1", ID_A);
	assert_same("a Machine");
	put_secret(&one, ID_A, "u2", ROOT);
	assert_differs("a disk key");
	put_secret(&other, ID_A, "w2",
		"{\"key_type\":\"oct\",\"key\":\"BBECAwQFBgcICQoLDA0ODxAREhMUFRYX\"}");
	assert_differs("another disk key, which nobody announced");
	put_secret(&other, ID_A, "w3", ROOT);
	assert_same("the same disk key");
	put_ak(&one, "k", "u3", pem, false);
	assert_differs("an attestation key");
	put_ak(&other, "k", "w4", pem, true);
	assert_differs("its approval");
	put_ak(&one, "k", "u4", pem, true);
	assert_same("its approval");
	put_image(&one, "i", "u5", "");
	assert_differs("an image");
	put_image(&other, "i", "w5", ",\"bootPath\":\"AllowFailedEntries\"");
	assert_differs("what may be booted of it");
	put_image(&one, "i", "u6", ",\"bootPath\":\"AllowFailedEntries\"");
	assert_same("what may be booted of it");
	put_cluster(&one, "c", "u7", "{\"trustee\":{\"keyIsolation\":\"Shared\"}}");
	assert_differs("who can read a key");
	put_cluster(&other, "c", "w7",
		"{\"trustee\":{\"keyIsolation\":\"Shared\"},\"attestation\":{\"pcr7\":\"Ignore\"}}");
	assert_differs("what nodes have to show");
}

Test(caches_digest, what_is_being_deleted_is_not_part_of_it)
{
	put_machine(&one, "a", "u1", ID_A);
	put_machine(&other, "a", "w1", ID_A);
	put(&other, CACHES_MACHINES, "b", "w2",
		",\"deletionTimestamp\":\"2026-01-02T03:04:06Z\",\"finalizers\":[\"x\"]",
		",\"spec\":{\"id\":\"" ID_B "\"}");
	assert_same("it goes");
}
