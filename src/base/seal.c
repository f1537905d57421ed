/* SPDX-License-Identifier: MIT */
/*
 * Sealed bytes: nonce (24 bytes), ciphertext (as long as the plaintext), tag (16 bytes). The context
 * is hashed first, so that it can have any length and several parts; its tag is the additional data
 * of the AEAD.
 */
#include "config.h"

#include "tec/base/seal.h"

#include <endian.h>
#include <sodium.h>

#define NONCE_LEN crypto_aead_xchacha20poly1305_ietf_NPUBBYTES

_Static_assert(SEAL_OVERHEAD == NONCE_LEN + crypto_aead_xchacha20poly1305_ietf_ABYTES, "layout");
_Static_assert(SEAL_KEY_LEN == crypto_aead_xchacha20poly1305_ietf_KEYBYTES, "key");
_Static_assert(SEAL_KEY_LEN == crypto_kdf_KEYBYTES, "key of a key");

/* A key of another length is a programming error, never input. */
static const uint8_t *key_bytes(const struct secret *key)
{
	if (secret_len(key) != SEAL_KEY_LEN)
		DIE("invalid key length: %zu bytes", secret_len(key));
	return secret_peek(key);
}

/* Every part is preceded by its length as 8 little-endian bytes, so that boundaries are part of the
 * tag. The hash state depends on the key and is wiped. */
void seal_tag(const struct secret *key, const struct seal_part *parts, size_t n,
	uint8_t out[SEAL_TAG_LEN])
{
	crypto_generichash_state st;

	crypto_generichash_init(&st, key_bytes(key), SEAL_KEY_LEN, SEAL_TAG_LEN);
	for (size_t i = 0; i < n; i++) {
		uint64_t len = htole64(parts[i].len);

		crypto_generichash_update(&st, (const uint8_t *)&len, sizeof(len));
		if (parts[i].len)
			crypto_generichash_update(&st, parts[i].data, parts[i].len);
	}
	crypto_generichash_final(&st, out, SEAL_TAG_LEN);
	sodium_memzero(&st, sizeof(st));
}

/* libsodium's KDF, with subkey number 1. Purpose separates the uses of one key. */
struct secret *seal_subkey(const struct secret *key, const char purpose[8])
{
	struct secret *sub = secret_new(SEAL_KEY_LEN);

	crypto_kdf_derive_from_key(secret_bytes(sub), SEAL_KEY_LEN, 1, purpose, key_bytes(key));
	return sub;
}

/* The identifier comes from a subkey, so it reveals nothing that any other use depends on. */
void seal_key_id(const struct secret *key, char out[SEAL_ID_LEN + 1])
{
	cleanup_secret struct secret *id = seal_subkey(key, "key-name");

	bytes_to_hex(secret_peek(id), SEAL_ID_LEN / 2, out);
}

/* A random 192-bit nonce does not repeat in practice, so one key may seal any number of values. */
uint8_t *seal_bytes(
	const struct secret *key, const uint8_t bound[SEAL_TAG_LEN], const void *plain, size_t len)
{
	uint8_t *out = xmalloc(len + SEAL_OVERHEAD);

	bytes_random(out, NONCE_LEN);
	crypto_aead_xchacha20poly1305_ietf_encrypt(
		out + NONCE_LEN, NULL, plain, len, bound, SEAL_TAG_LEN, NULL, out, key_bytes(key));
	return out;
}

/* Zero the output on failure, so that a caller that ignores the result cannot use unauthenticated
 * bytes. */
int seal_open(const struct secret *key, const uint8_t bound[SEAL_TAG_LEN], const void *sealed,
	size_t len, void *out)
{
	const uint8_t *in = sealed;

	if (len < SEAL_OVERHEAD)
		return -1;
	if (crypto_aead_xchacha20poly1305_ietf_decrypt(out, NULL, NULL, in + NONCE_LEN,
		    len - NONCE_LEN, bound, SEAL_TAG_LEN, in, key_bytes(key)) == 0)
		return 0;
	if (len > SEAL_OVERHEAD)
		sodium_memzero(out, len - SEAL_OVERHEAD);
	return -1;
}
