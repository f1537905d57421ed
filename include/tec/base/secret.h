/* SPDX-License-Identifier: MIT */
/*
 * struct secret: key material. Its bytes live in an arena of pages that are locked (best effort; a
 * failure is logged once), excluded from core dumps and wiped on free. Small secrets share pages, so
 * that 10,000 of them cost about 1 MB. There is no print function; secret_equal() compares in
 * constant time. One owner: secret_free() (NULL is fine).
 */
#ifndef TEC_BASE_SECRET_H
#define TEC_BASE_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tec/base/bytes.h"
#include "tec/base/mem.h"

#define SECRET_MAX_LEN 131072

struct secret;

/* Call once at start: initialises libsodium and disables core dumps of this process (PR_SET_DUMPABLE
 * 0, RLIMIT_CORE 0). */
void secret_process_init(void);

struct secret *secret_new(size_t len); /* zeroed; len 1..SECRET_MAX_LEN, DIE otherwise */
struct secret *secret_new_copy(const void *bytes, size_t len);
struct secret *secret_new_random(size_t len);
void secret_free(struct secret *s);

size_t secret_len(const struct secret *s);
uint8_t *secret_bytes(struct secret *s); /* borrowed until secret_free */
const uint8_t *secret_peek(const struct secret *s);
bool secret_equal(const struct secret *a, const struct secret *b); /* NULL equals nothing */
void secret_sha256(const struct secret *s, uint8_t out[SHA256_LEN]);
/* HMAC-SHA-256 of data with s as the key; compare results with secret_same_bytes(). */
void secret_hmac_sha256(
	const struct secret *s, const void *data, size_t len, uint8_t out[SHA256_LEN]);
bool secret_same_bytes(const void *a, const void *b, size_t len); /* constant-time */

/* Encode s as padded base64 in another secret, and decode; NULL if the text is not canonical base64. */
struct secret *secret_to_b64(const struct secret *s);
struct secret *secret_from_b64(const char *text, size_t len);

/* Wipe memory outside the arena that held a secret (a request body, a json-c string). */
void secret_wipe(void *p, size_t len);

/* Wipe and release a buffer that held a secret. */
void secret_strbuf_fini(struct strbuf *b);
#define cleanup_wiped_strbuf __attribute__((cleanup(secret_strbuf_fini)))

/* Number of live secrets, for teardown checks and metrics. */
size_t secret_count(void);

DEFINE_CLEANUP(secret_cleanup_, struct secret *, secret_free)
#define cleanup_secret __attribute__((cleanup(secret_cleanup_)))

#endif
