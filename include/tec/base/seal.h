/* SPDX-License-Identifier: MIT */
/*
 * Bytes at rest under a key: sealed (XChaCha20-Poly1305, libsodium) or, where they may be read by
 * anybody, only tagged (keyed BLAKE2b). Both are bound to what the caller names, so that sealed
 * bytes cannot be moved to another place.
 *
 * A nonce is drawn at random for each sealing: 24 bytes, so no count has to be kept.
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

/* Some bytes of several; what is bound is where one ends and the next begins, too. */
struct seal_part {
	const void *data;
	size_t len;
};

/* Keys are of SEAL_KEY_LEN bytes, DIE otherwise. */
void seal_tag(const struct secret *key, const struct seal_part *parts, size_t n,
	uint8_t out[SEAL_TAG_LEN]);
/* Another key made of this one; purpose: 8 bytes of text. The caller frees. */
struct secret *seal_subkey(const struct secret *key, const char purpose[8]);
/* Names a key without telling anything of it. */
void seal_key_id(const struct secret *key, char out[SEAL_ID_LEN + 1]);

/* len + SEAL_OVERHEAD bytes, which the caller frees. bound: see seal_tag(). */
uint8_t *seal_bytes(const struct secret *key, const uint8_t bound[SEAL_TAG_LEN], const void *plain,
	size_t len) MUST_CHECK;
/* -1: another key, other bytes, bound to something else, or shorter than SEAL_OVERHEAD. out has
 * len - SEAL_OVERHEAD bytes, which are zero then. */
int seal_open(const struct secret *key, const uint8_t bound[SEAL_TAG_LEN], const void *sealed,
	size_t len, void *out) MUST_CHECK;

#endif
