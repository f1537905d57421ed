/* SPDX-License-Identifier: MIT */
/*
 * Hex, base64, SHA-2. Each decoder accepts exactly what its encoder writes: lower-case hex,
 * base64 with full padding (or none in the URL form) and zero trailing bits. So one value has one
 * text, and texts can be compared instead of values.
 */
#include "config.h"

#include "tec/base/bytes.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sodium.h>

#include "tec/base/mem.h"

static const char std_alphabet[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char url_alphabet[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

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

void bytes_sha384(const void *data, size_t len, uint8_t out[SHA384_LEN])
{
	unsigned int n = 0;

	if (EVP_Digest(len ? data : "", len, out, &n, EVP_sha384(), NULL) != 1 || n != SHA384_LEN)
		DIE("SHA-384 of %zu bytes failed", len);
}

/* For keys in plain memory; secret_hmac_sha256() takes a struct secret. */
void bytes_hmac_sha256(
	const void *key, size_t key_len, const void *data, size_t len, uint8_t out[SHA256_LEN])
{
	unsigned int n = 0;

	if (!HMAC(sha256(), key, (int)key_len, data, len, out, &n) || n != SHA256_LEN)
		DIE("HMAC-SHA-256 of %zu bytes failed", len);
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
	uint8_t head[8]; /* little-endian */

	for (unsigned i = 0; i < sizeof(head); i++)
		head[i] = (uint8_t)((uint64_t)len >> 8 * i);
	bytes_sha256_add(run, head, sizeof(head));
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
	static const char hex[] = "0123456789abcdef";

	for (size_t i = 0; i < len; i++) {
		out[2 * i] = hex[in[i] >> 4];
		out[2 * i + 1] = hex[in[i] & 15];
	}
	out[2 * len] = '\0';
}

/* Upper case is refused, so that one value has one text. */
static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

/* A failure may leave a decoded prefix in out. */
int bytes_from_hex(const char *hex, size_t hex_len, uint8_t *out)
{
	if (hex_len % 2 != 0)
		return -1;
	for (size_t i = 0; i < hex_len / 2; i++) {
		int hi = hex_digit(hex[2 * i]), lo = hex_digit(hex[2 * i + 1]);

		if (hi < 0 || lo < 0)
			return -1;
		out[i] = (uint8_t)(hi << 4 | lo);
	}
	return 0;
}

/* Encode three bytes as four digits, into space that is extended once. */
static void encode(
	struct strbuf *out, const uint8_t *in, size_t len, const char *alphabet, bool pad)
{
	size_t rest = len % 3, last = rest == 0 ? 0 : pad ? 4 : rest + 1, i;
	char *to = strbuf_extend(out, len / 3 * 4 + last), text[4] = {0, 0, '=', '='};
	uint32_t v;

	for (i = 0; i + 3 <= len; i += 3, to += 4) {
		v = (uint32_t)in[i] << 16 | (uint32_t)in[i + 1] << 8 | in[i + 2];
		to[0] = alphabet[v >> 18];
		to[1] = alphabet[v >> 12 & 63];
		to[2] = alphabet[v >> 6 & 63];
		to[3] = alphabet[v & 63];
	}
	if (rest == 0)
		return;
	v = (uint32_t)in[i] << 16 | (rest == 2 ? (uint32_t)in[i + 1] << 8 : 0);
	text[0] = alphabet[v >> 18];
	text[1] = alphabet[v >> 12 & 63];
	if (rest == 2)
		text[2] = alphabet[v >> 6 & 63];
	memcpy(to, text, last);
}

void bytes_to_b64(struct strbuf *out, const void *in, size_t len)
{
	encode(out, in, len, std_alphabet, true);
}

/* Without padding, as JOSE requires (RFC 7515 section 2). */
void bytes_to_b64url(struct strbuf *out, const void *in, size_t len)
{
	encode(out, in, len, url_alphabet, false);
}

/* Map a digit of either alphabet to its value; -1 for padding and everything else. */
static int b64_digit(char c, const char *alphabet)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == alphabet[62])
		return 62;
	return c == alphabet[63] ? 63 : -1;
}

/* Decode `len` digits without padding; out has len * 3 / 4 bytes. Fails unless the unused low bits
 * of the last digit are zero (RFC 4648 section 3.5). */
static int decode(const char *in, size_t len, const char *alphabet, uint8_t *out)
{
	uint32_t acc = 0;
	unsigned bits = 0;

	if (len % 4 == 1)
		return -1;
	for (size_t i = 0; i < len; i++) {
		int d = b64_digit(in[i], alphabet);

		if (d < 0)
			return -1;
		acc = (acc << 6 | (uint32_t)d) & 0xffffff;
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			*out++ = (uint8_t)(acc >> bits);
		}
	}
	return (acc & ((1u << bits) - 1)) == 0 ? 0 : -1;
}

/* Decode into a new buffer with a NUL after it, so that text can be used as a C string. */
static int decode_new(
	const char *in, size_t len, const char *alphabet, uint8_t **out, size_t *out_len)
{
	size_t n = len / 4 * 3 + len % 4 * 3 / 4;
	cleanup_free uint8_t *buf = xmalloc(n + 1);

	if (decode(in, len, alphabet, buf) < 0)
		return -1;
	buf[n] = '\0';
	*out = steal_ptr(&buf);
	*out_len = n;
	return 0;
}

/* Padding is required and checked by the length: after removing it, `decode` refuses any further
 * '='. */
int bytes_from_b64(const char *in, size_t in_len, uint8_t **out, size_t *out_len)
{
	*out = NULL;
	*out_len = 0;
	if (in_len % 4 != 0)
		return -1;
	if (in_len > 0 && in[in_len - 1] == '=')
		in_len -= in[in_len - 2] == '=' ? 2 : 1;
	return decode_new(in, in_len, std_alphabet, out, out_len);
}

int bytes_from_b64url(const char *in, size_t in_len, uint8_t **out, size_t *out_len)
{
	*out = NULL;
	*out_len = 0;
	return decode_new(in, in_len, url_alphabet, out, out_len);
}

/* sodium_init() is idempotent and cheap after the first call; a failure means that the kernel has
 * no entropy source. */
void bytes_random(void *out, size_t len)
{
	if (sodium_init() < 0)
		DIE("cannot initialise libsodium");
	randombytes_buf(out, len);
}
