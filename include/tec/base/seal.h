/* SPDX-License-Identifier: MIT */
/*
 * Protect bytes at rest with a key: sealed (XChaCha20-Poly1305 of libsodium) or, if they are not
 * confidential, only tagged (keyed BLAKE2b). Both are bound to context that the caller names, so that
 * sealed bytes cannot be moved to another place.
 *
 * Each sealing uses a random nonce; with 24 bytes no counter is needed.
 */
#ifndef TEC_BASE_SEAL_H
#define TEC_BASE_SEAL_H

#include <stddef.h>
#include <stdint.h>

#include "tec/base/err.h"
#include "tec/base/secret.h"

#define SEAL_KEY_LEN  32
#define SEAL_OVERHEAD 40 /* nonce and tag */
#define SEAL_TAG_LEN  32
#define SEAL_ID_LEN   16 /* hexadecimal digits */

/* One of several byte strings. Their boundaries are bound as well. */
struct seal_part {
	const void *data;
	size_t len;
};

/* Compute the keyed tag of the parts. Keys have SEAL_KEY_LEN bytes; any other length aborts. */
void seal_tag(const struct secret *key, const struct seal_part *parts, size_t n,
	uint8_t out[SEAL_TAG_LEN]);
/* Derive a key from this one; purpose is 8 bytes of text. The caller frees. */
struct secret *seal_subkey(const struct secret *key, const char purpose[8]);
/* Compute an identifier of a key that reveals nothing about it. */
void seal_key_id(const struct secret *key, char out[SEAL_ID_LEN + 1]);

/* Returns len + SEAL_OVERHEAD bytes, which the caller frees. bound: the tag of the context, from
 * seal_tag(). */
uint8_t *seal_bytes(const struct secret *key, const uint8_t bound[SEAL_TAG_LEN], const void *plain,
	size_t len) MUST_CHECK;
/* Returns -1 if the key, the bytes or the context differ, or len is below SEAL_OVERHEAD. out has
 * len - SEAL_OVERHEAD bytes, which are zeroed on failure. */
int seal_open(const struct secret *key, const uint8_t bound[SEAL_TAG_LEN], const void *sealed,
	size_t len, void *out) MUST_CHECK;

#endif
