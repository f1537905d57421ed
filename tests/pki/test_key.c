/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include "tec/pki/key.h"

/* Any EVP key as PEM; cipher NULL: not encrypted. */
static struct secret *pem_of(EVP_PKEY *take, const EVP_CIPHER *cipher)
{
	BIO *bio = BIO_new(BIO_s_mem());
	struct secret *s;
	char *data;
	long len;

	cr_assert_eq(PEM_write_bio_PKCS8PrivateKey(bio, take, cipher, cipher ? "secret" : NULL,
			     cipher ? 6 : 0, NULL, NULL),
		1);
	len = BIO_get_mem_data(bio, &data);
	s = secret_new_copy(data, (size_t)len);
	BIO_free(bio);
	EVP_PKEY_free(take);
	return s;
}

static void assert_round_trip(struct pki_key *k)
{
	cleanup_secret struct secret *pem = pki_key_private_pem(k), *again = NULL;
	cleanup_strbuf struct strbuf pub = STRBUF_INIT, pub2 = STRBUF_INIT;
	cleanup_pki_key struct pki_key *parsed = NULL;
	struct err err = ERR_INIT;

	cr_assert_eq(memcmp(secret_peek(pem), "-----BEGIN PRIVATE KEY-----\n", 28), 0);
	parsed = pki_key_from_pem(pem, &err);
	cr_assert(parsed, "%s", err.text);
	again = pki_key_private_pem(parsed);
	cr_assert(secret_equal(pem, again));
	pki_key_public_pem(k, &pub);
	pki_key_public_pem(parsed, &pub2);
	cr_assert(str_starts(pub.data, "-----BEGIN PUBLIC KEY-----\n"));
	cr_assert(str_ends(pub.data, "-----END PUBLIC KEY-----\n"));
	cr_assert_str_eq(pub.data, pub2.data);
	cr_assert_eq(EVP_PKEY_eq(pki_key_evp(k), pki_key_evp(parsed)), 1);
}

Test(pki_key, ed25519_survives_its_pem)
{
	cleanup_pki_key struct pki_key *k = pki_key_new_ed25519();

	cr_assert(EVP_PKEY_is_a(pki_key_evp(k), "ED25519"));
	assert_round_trip(k);
}

Test(pki_key, p256_survives_its_pem)
{
	cleanup_pki_key struct pki_key *k = pki_key_new_p256();

	cr_assert(EVP_PKEY_is_a(pki_key_evp(k), "EC"));
	assert_round_trip(k);
}

Test(pki_key, two_keys_differ)
{
	cleanup_pki_key struct pki_key *a = pki_key_new_ed25519(), *b = pki_key_new_ed25519();

	cr_assert_neq(EVP_PKEY_eq(pki_key_evp(a), pki_key_evp(b)), 1);
}

static void assert_refused(struct secret *take_pem, const char *part)
{
	cleanup_secret struct secret *pem = take_pem;
	struct err err = ERR_INIT;

	ERR_clear_error();
	cr_assert_null(pki_key_from_pem(pem, &err), "%s", part);
	cr_assert_eq(err.kind, ERR_INVALID);
	cr_assert(strstr(err.text, part), "%s", err.text);
	cr_assert_eq(ERR_peek_error(), 0, "nothing is left in OpenSSL's queue");
}

Test(pki_key, refuses_other_algorithms)
{
	assert_refused(pem_of(EVP_RSA_gen(1024), NULL), "Ed25519 or P-256");
	assert_refused(pem_of(EVP_EC_gen("P-384"), NULL), "Ed25519 or P-256");
	assert_refused(pem_of(EVP_PKEY_Q_keygen(NULL, NULL, "X25519"), NULL), "Ed25519 or P-256");
}

Test(pki_key, refuses_an_encrypted_key_without_asking)
{
	assert_refused(pem_of(EVP_EC_gen("P-256"), EVP_aes_256_cbc()), "unencrypted");
}

Test(pki_key, refuses_two_keys_and_garbage)
{
	cleanup_pki_key struct pki_key *k = pki_key_new_ed25519();
	cleanup_secret struct secret *pem = pki_key_private_pem(k);
	struct secret *twice = secret_new(2 * secret_len(pem));
	cleanup_strbuf struct strbuf pub = STRBUF_INIT;

	memcpy(secret_bytes(twice), secret_peek(pem), secret_len(pem));
	memcpy(secret_bytes(twice) + secret_len(pem), secret_peek(pem), secret_len(pem));
	assert_refused(twice, "without trailing data");
	assert_refused(secret_new_copy("garbage", 7), "no unencrypted");
	assert_refused(secret_new_copy("\0", 1), "no unencrypted");
	assert_refused(secret_new_copy(secret_peek(pem), secret_len(pem) / 2), "no unencrypted");
	pki_key_public_pem(k, &pub);
	assert_refused(secret_new_copy(pub.data, pub.len), "no unencrypted");
}

Test(pki_key, leaves_no_secret_behind)
{
	size_t before = secret_count();

	cleanup_pki_key struct pki_key *k = pki_key_new_ed25519();

	assert_round_trip(k);
	cr_assert_eq(secret_count(), before);
}
