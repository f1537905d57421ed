/* SPDX-License-Identifier: MIT */
/*
 * Hex, base64, SHA-2. Each decoder (but bytes_from_hex_any) accepts exactly what its encoder
 * writes: lower-case hex, base64 with full padding (or none in the URL form) and zero trailing
 * bits. So one value has one text, and texts can be compared instead of values.
 */
#include "config.h"

#include "tec/base/bytes.h"

#include <endian.h>
#include <openssl/evp.h>
#include <sodium.h>

#include "tec/base/mem.h"

/* Fetch the algorithm once. With EVP_sha256() OpenSSL 3 would look it up in each call, which costs
 * more than the digest of a short text. */
static const EVP_MD *sha256(void)
{
	static EVP_MD *md;

	if (!md)
		md = EVP_MD_fetch(NULL, "SHA256", NULL);
	if (!md)
		DIE("OpenSSL does not provide SHA-256");
	return md;
}

/* OpenSSL may reject a NULL pointer even with length 0. */
void bytes_sha256(const void *data, size_t len, uint8_t out[SHA256_LEN])
{
	unsigned int n = 0;

	if (EVP_Digest(len ? data : "", len, out, &n, sha256(), NULL) != 1 || n != SHA256_LEN)
		DIE("SHA-256 of %zu bytes failed", len);
}

void bytes_sha256_hex(const void *data, size_t len, char hex[SHA256_HEX_LEN + 1])
{
	uint8_t digest[SHA256_LEN];

	bytes_sha256(data, len, digest);
	bytes_to_hex(digest, SHA256_LEN, hex);
}

void bytes_sha384(const void *data, size_t len, uint8_t out[SHA384_LEN])
{
	unsigned int n = 0;

	if (EVP_Digest(len ? data : "", len, out, &n, EVP_sha384(), NULL) != 1 || n != SHA384_LEN)
		DIE("SHA-384 of %zu bytes failed", len);
}

static EVP_MD_CTX *new_md(void)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();

	if (!ctx)
		DIE("out of memory (SHA-256 state)");
	return ctx;
}

/* Every run needs bytes_sha256_fini(), also after bytes_sha256_end(). */
void bytes_sha256_init(struct bytes_sha256_run *run)
{
	run->ctx = new_md();
	if (EVP_DigestInit_ex(run->ctx, sha256(), NULL) != 1)
		DIE("cannot start SHA-256");
}

void bytes_sha256_add(struct bytes_sha256_run *run, const void *data, size_t len)
{
	if (len > 0 && EVP_DigestUpdate(run->ctx, data, len) != 1)
		DIE("SHA-256 of %zu more bytes failed", len);
}

/* The length has a fixed size and byte order, so that digests are equal on all machines. */
void bytes_sha256_add_framed(struct bytes_sha256_run *run, const void *data, size_t len)
{
	uint64_t head = htole64(len);

	bytes_sha256_add(run, &head, sizeof(head));
	bytes_sha256_add(run, data, len);
}

/* `to` is uninitialised before, and needs its own bytes_sha256_fini(). */
void bytes_sha256_copy(struct bytes_sha256_run *to, const struct bytes_sha256_run *from)
{
	to->ctx = new_md();
	if (EVP_MD_CTX_copy_ex(to->ctx, from->ctx) != 1)
		DIE("cannot copy a SHA-256 state");
}

void bytes_sha256_end(struct bytes_sha256_run *run, uint8_t out[SHA256_LEN])
{
	unsigned int n = 0;

	if (EVP_DigestFinal_ex(run->ctx, out, &n) != 1 || n != SHA256_LEN)
		DIE("cannot finish SHA-256");
}

void bytes_sha256_fini(struct bytes_sha256_run *run)
{
	EVP_MD_CTX_free(run->ctx);
	run->ctx = NULL;
}

/* out needs room for the NUL, which decoding does not expect. */
void bytes_to_hex(const uint8_t *in, size_t len, char *out)
{
	sodium_bin2hex(out, 2 * len + 1, in, len);
}

int bytes_hex_digit(int c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* Upper case is refused, so that one value has one text. */
int bytes_from_hex(const char *hex, size_t hex_len, uint8_t *out)
{
	for (size_t i = 0; i < hex_len; i++)
		if (hex[i] >= 'A' && hex[i] <= 'F')
			return -1;
	return bytes_from_hex_any(hex, hex_len, out);
}

/* A failure may leave a decoded prefix in out. */
int bytes_from_hex_any(const char *hex, size_t hex_len, uint8_t *out)
{
	if (hex_len % 2 != 0)
		return -1;
	for (size_t i = 0; i < hex_len; i++) {
		int digit = bytes_hex_digit(hex[i]);

		if (digit < 0)
			return -1;
		out[i / 2] = (uint8_t)(i % 2 ? out[i / 2] | digit : digit << 4);
	}
	return 0;
}

/* libsodium writes a NUL as well, for which strbuf_extend() has room. */
static void encode(struct strbuf *out, const void *in, size_t len, int variant)
{
	size_t room = sodium_base64_encoded_len(len, variant);

	sodium_bin2base64(strbuf_extend(out, room - 1), room, in, len, variant);
}

void bytes_to_b64(struct strbuf *out, const void *in, size_t len)
{
	encode(out, in, len, sodium_base64_VARIANT_ORIGINAL);
}

/* Without padding, as JOSE requires (RFC 7515 section 2). */
void bytes_to_b64url(struct strbuf *out, const void *in, size_t len)
{
	encode(out, in, len, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
}

/* libsodium is as strict as promised above (RFC 4648 section 3.5), but takes bytes that are not
 * ASCII for digits. */
static int decode_into(
	uint8_t *out, size_t room, const char *in, size_t len, int variant, size_t *out_len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)in[i] > 0x7f)
			return -1;
	return sodium_base642bin(out, room, in, len, NULL, out_len, NULL, variant);
}

int bytes_from_b64_into(const char *in, size_t in_len, uint8_t *out, size_t room, size_t *out_len)
{
	return decode_into(out, room, in, in_len, sodium_base64_VARIANT_ORIGINAL, out_len);
}

/* Decode into a new buffer with a NUL after it, so that text can be used as a C string. */
static int decode(const char *in, size_t len, int variant, uint8_t **out, size_t *out_len)
{
	size_t room = len / 4 * 3 + 3, n = 0;
	cleanup_free uint8_t *buf = xmalloc(room + 1);

	*out = NULL;
	*out_len = 0;
	if (decode_into(buf, room, in, len, variant, &n) < 0)
		return -1;
	buf[n] = '\0';
	*out = steal_ptr(&buf);
	*out_len = n;
	return 0;
}

int bytes_from_b64(const char *in, size_t in_len, uint8_t **out, size_t *out_len)
{
	return decode(in, in_len, sodium_base64_VARIANT_ORIGINAL, out, out_len);
}

int bytes_from_b64url(const char *in, size_t in_len, uint8_t **out, size_t *out_len)
{
	return decode(in, in_len, sodium_base64_VARIANT_URLSAFE_NO_PADDING, out, out_len);
}

/* sodium_init() is idempotent and cheap after the first call; a failure means that the kernel has
 * no entropy source. */
void bytes_random(void *out, size_t len)
{
	if (sodium_init() < 0)
		DIE("cannot initialise libsodium");
	randombytes_buf(out, len);
}
