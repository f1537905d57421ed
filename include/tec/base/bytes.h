/* SPDX-License-Identifier: MIT */
/*
 * Bytes to text and back: hex, base64 (RFC 4648 section 4 with padding, section 5 without),
 * digests. Decoders are strict: canonical alphabet, canonical padding, no white space; they return
 * -1 and write nothing useful otherwise. Nothing here is constant-time: key material goes through
 * base/secret.h.
 */
#ifndef TEC_BASE_BYTES_H
#define TEC_BASE_BYTES_H

#include <stddef.h>
#include <stdint.h>

#include "tec/base/str.h"

#define SHA256_LEN     32
#define SHA256_HEX_LEN 64
#define SHA384_LEN     48

void bytes_sha256(const void *data, size_t len, uint8_t out[SHA256_LEN]);
void bytes_sha256_hex(const void *data, size_t len, char hex[SHA256_HEX_LEN + 1]);
void bytes_sha384(const void *data, size_t len, uint8_t out[SHA384_LEN]);

/* Incremental SHA-256. A copy is independent: it serves to hash one prefix with different endings. */
struct bytes_sha256_run {
	void *ctx; /* owned; bytes_sha256_fini */
};
void bytes_sha256_init(struct bytes_sha256_run *run);
void bytes_sha256_add(struct bytes_sha256_run *run, const void *data, size_t len);
/* Add data preceded by its length, so that bytes cannot shift between adjacent parts unnoticed. */
void bytes_sha256_add_framed(struct bytes_sha256_run *run, const void *data, size_t len);
void bytes_sha256_copy(struct bytes_sha256_run *to, const struct bytes_sha256_run *from);
void bytes_sha256_end(struct bytes_sha256_run *run, uint8_t out[SHA256_LEN]); /* once */
void bytes_sha256_fini(struct bytes_sha256_run *run);
#define cleanup_sha256 __attribute__((cleanup(bytes_sha256_fini)))

void bytes_to_hex(
	const uint8_t *in, size_t len, char *out); /* lower case; out has 2 * len + 1 bytes */
int bytes_hex_digit(int c);                        /* of either case; -1: not a hexadecimal digit */
int bytes_from_hex(const char *hex, size_t hex_len, uint8_t *out)
	__attribute__((warn_unused_result));
/* Also upper case, for what is written again in lower case before it is compared as text. */
int bytes_from_hex_any(const char *hex, size_t hex_len, uint8_t *out)
	__attribute__((warn_unused_result));

/* Length of the padded base64 text of `len` bytes, without NUL. */
static inline size_t bytes_b64_len(size_t len)
{
	return (len + 2) / 3 * 4;
}
void bytes_to_b64(struct strbuf *out, const void *in, size_t len);
void bytes_to_b64url(struct strbuf *out, const void *in, size_t len);
/* Decoded bytes in *out (caller frees), their count in *out_len. */
int bytes_from_b64(const char *in, size_t in_len, uint8_t **out, size_t *out_len)
	__attribute__((warn_unused_result));
/* The same into a buffer of the caller, in constant time. */
int bytes_from_b64_into(const char *in, size_t in_len, uint8_t *out, size_t room, size_t *out_len)
	__attribute__((warn_unused_result));
int bytes_from_b64url(const char *in, size_t in_len, uint8_t **out, size_t *out_len)
	__attribute__((warn_unused_result));

void bytes_random(void *out, size_t len); /* from libsodium: suitable for keys */

#endif
