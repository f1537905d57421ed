/* SPDX-License-Identifier: MIT */
/* What jwe_encrypt() makes is opened, and nothing that differs from it in one place; compact ones are
 * compared with a vector made by the tool jose. */
#include "config.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/jose/jwe.h"

#define KEY    "0123456789abcdef0123456789abcdef"
#define HEADER "{\"alg\":\"dir\",\"enc\":\"A256GCM\",\"clevis\":{\"pin\":\"trustee\"}}"

static char *encrypted(const struct jwe_own *own, const void *plain, size_t len)
{
	struct strbuf out = STRBUF_INIT;
	struct err err = ERR_INIT;
	struct pki_jwk jwk;
	struct jwe_key *k;

	jwe_own_public(own, &jwk);
	k = jwe_key_new(&jwk, &err);
	cr_assert(k, "%s", err.text);
	cr_assert_eq(jwe_encrypt(k, plain, len, &out, &err), 0, "%s", err.text);
	jwe_key_free(k);
	return strbuf_steal(&out);
}

Test(jwe_open, what_was_encrypted_to_it)
{
	static const size_t lengths[] = {0, 1, 48, 70000};
	cleanup_jwe_own struct jwe_own *own = jwe_own_new();
	cleanup_free uint8_t *plain = xcalloc(1, 70000);

	memset(plain, 0xa5, 70000);
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		cleanup_free char *text = encrypted(own, plain, lengths[i]);
		struct body out = BODY_INIT;
		struct err err = ERR_INIT;

		cr_assert_eq(jwe_open(own, text, strlen(text), &out, &err), 0, "%s", err.text);
		cr_assert_eq(out.len, lengths[i]);
		cr_assert(out.len == 0 || memcmp(out.data, plain, out.len) == 0);
		body_fini(&out);
	}
}

Test(jwe_open, another_key_is_denied)
{
	cleanup_jwe_own struct jwe_own *own = jwe_own_new(), *other = jwe_own_new();
	cleanup_free char *text = encrypted(own, "secret", 6);
	struct body out = BODY_INIT;
	struct err err = ERR_INIT;

	cr_assert_eq(jwe_open(other, text, strlen(text), &out, &err), -1);
	cr_assert_eq(err.kind, ERR_DENIED);
	cr_assert_eq(out.len, 0);
}

/* One character of each member, changed: the text is still base64url. */
Test(jwe_open, every_change_is_seen)
{
	static const char *const members[] = {
		"protected", "encrypted_key", "iv", "ciphertext", "tag"};
	cleanup_jwe_own struct jwe_own *own = jwe_own_new();
	cleanup_free char *text = encrypted(own, "a secret text", 13);

	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		char name[32];
		char *at;
		struct body out = BODY_INIT;
		struct err err = ERR_INIT;
		cleanup_free char *changed = xstrdup(text);

		snprintf(name, sizeof(name), "\"%s\":\"", members[i]);
		at = strstr(changed, name);
		cr_assert(at);
		at += strlen(name) + 3;
		*at = *at == 'A' ? 'B' : 'A';
		cr_assert_eq(
			jwe_open(own, changed, strlen(changed), &out, &err), -1, "%s", members[i]);
		cr_assert(err.kind == ERR_DENIED || err.kind == ERR_INVALID);
		cr_assert_eq(out.len, 0);
	}
}

struct bad {
	char text[400];
};

ParameterizedTestParameters(jwe_open, refused)
{
	static struct bad bad[] = {
		{""},
		{"[]"},
		{"null"},
		{"{}"},
		{"{\"protected\":\"e30\"}"},
		{"{\"protected\":1,\"encrypted_key\":\"\",\"iv\":\"\",\"ciphertext\":\"\",\"tag\":\"\"}"},
		/* a key of the right length, a header that is not one */
		{"{\"protected\":\"e30\",\"encrypted_key\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\",\"iv\":\"\",\"ciphertext\":\"\",\"tag\":\"\"}"},
		/* {"alg":"dir","enc":"A256GCM"} */
		{"{\"protected\":\"eyJhbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIn0\",\"encrypted_key\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\",\"iv\":\"AAAAAAAAAAAAAAAA\",\"ciphertext\":\"\",\"tag\":\"AAAAAAAAAAAAAAAAAAAAAA\"}"},
		/* {"alg":"ECDH-ES+A256KW","enc":"A256GCM","epk":{}} */
		{"{\"protected\":\"eyJhbGciOiJFQ0RILUVTK0EyNTZLVyIsImVuYyI6IkEyNTZHQ00iLCJlcGsiOnt9fQ\",\"encrypted_key\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\",\"iv\":\"AAAAAAAAAAAAAAAA\",\"ciphertext\":\"\",\"tag\":\"AAAAAAAAAAAAAAAAAAAAAA\"}"},
	};

	return cr_make_param_array(struct bad, bad, ARRAY_LEN(bad));
}

ParameterizedTest(struct bad *bad, jwe_open, refused)
{
	cleanup_jwe_own struct jwe_own *own = jwe_own_new();
	struct body out = BODY_INIT;
	struct err err = ERR_INIT;

	cr_assert_eq(jwe_open(own, bad->text, strlen(bad->text), &out, &err), -1, "%s", bad->text);
	cr_assert_eq(err.kind, ERR_INVALID);
	cr_assert_eq(out.len, 0);
}

Test(jwe_dir, round_trip)
{
	cleanup_secret struct secret *key = secret_new_copy(KEY, 32);
	cleanup_strbuf struct strbuf jwe = STRBUF_INIT;
	cleanup_json struct json_object *header = NULL;
	struct body out = BODY_INIT;
	struct err err = ERR_INIT;

	cr_assert_eq(jwe_dir_seal(key, HEADER, "pass", 4, &jwe, &err), 0);
	header = jwe_dir_header(jwe.data, jwe.len, &err);
	cr_assert(header, "%s", err.text);
	cr_assert_str_eq(json_get_str(header, "clevis/pin"), "trustee");
	cr_assert_eq(jwe_dir_open(key, jwe.data, jwe.len, &out, &err), 0, "%s", err.text);
	cr_assert(out.len == 4 && memcmp(out.data, "pass", 4) == 0);
	body_fini(&out);
	jwe.data[jwe.len - 4] = jwe.data[jwe.len - 4] == 'A' ? 'B' : 'A';
	cr_assert_eq(jwe_dir_open(key, jwe.data, jwe.len, &out, &err), -1);
	cr_assert_eq(err.kind, ERR_DENIED);
}

/* jose jwe enc -c with this key (jose 11), and members in another order than ours. */
#define JOSE                                                                                       \
	"eyJhbGciOiJkaXIiLCJjbGV2aXMiOnsicGluIjoidHJ1c3RlZSIsInVua25vd24iOlsxXX0sImVuYyI6IkEyNTZHQ00ifQ..iqlTp5Tuuc4yO7FO.tmT7aFE.tOlNrLNJe-QzBuDuXD3q_w"

Test(jwe_dir, what_jose_encrypted)
{
	cleanup_secret struct secret *key = secret_new_copy(KEY, 32);
	struct body out = BODY_INIT;
	struct err err = ERR_INIT;

	cr_assert_eq(jwe_dir_open(key, JOSE, strlen(JOSE), &out, &err), 0, "%s", err.text);
	cr_assert(out.len == 5 && memcmp(out.data, "plain", 5) == 0);
	body_fini(&out);
}

static char *with_header(const char *header)
{
	struct strbuf out = STRBUF_INIT;

	bytes_to_b64url(&out, header, strlen(header));
	strbuf_adds(&out, "..AAAAAAAAAAAAAAAA.AAAA.AAAAAAAAAAAAAAAAAAAAAA");
	return strbuf_steal(&out);
}

Test(jwe_dir, headers)
{
	static const struct {
		const char *header;
		bool good;
	} t[] = {
		{HEADER, true},
		{"{\"enc\":\"A256GCM\",\"x\":[1],\"alg\":\"dir\"}", true},
		{"{\"enc\":\"A256GCM\",\"alg\":\"ECDH-ES\"}", true}, /* of the pin in Rust */
		{"{\"enc\":\"A256GCM\",\"alg\":\"ECDH-ES\",\"epk\":{}}", false},
		{"{\"enc\":\"A256GCM\",\"alg\":\"A256KW\"}", false},
		{"{\"enc\":\"A128GCM\",\"alg\":\"dir\"}", false},
		{"{\"enc\":\"A256GCM\",\"alg\":\"dir\",\"crit\":[\"x\"]}", false},
		{"{\"enc\":\"A256GCM\",\"alg\":\"dir\",\"zip\":\"DEF\"}", false},
		{"{\"enc\":\"A256GCM\",\"alg\":\"dir\",\"alg\":\"dir\"}", false},
		{"{\"enc\":1,\"alg\":2}", false},
		{"[\"dir\"]", false},
		{"", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		cleanup_free char *text = with_header(t[i].header);
		struct err err = ERR_INIT;
		struct json_object *o = jwe_dir_header(text, strlen(text), &err);

		cr_assert_eq(o != NULL, t[i].good, "%s: %s", t[i].header, err.text);
		json_object_put(o);
	}
}

Test(jwe_dir, parts)
{
	static const char *const bad[] = {
		"", ".", "....", "a.b.c", "a.b.c.d.e.f", "e30.e30.a.b.c", "*...a.b", "e30=..a.b.c"};
	cleanup_secret struct secret *key = secret_new_copy(KEY, 32),
				     *small = secret_new_copy(KEY, 16);
	struct body out = BODY_INIT;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct err err = ERR_INIT;

		cr_assert_eq(
			jwe_dir_open(key, bad[i], strlen(bad[i]), &out, &err), -1, "%s", bad[i]);
		cr_assert_eq(err.kind, ERR_INVALID);
	}
	struct err err = ERR_INIT;

	cr_assert_eq(jwe_dir_open(small, JOSE, strlen(JOSE), &out, &err), -1);
}
