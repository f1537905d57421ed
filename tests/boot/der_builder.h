/* SPDX-License-Identifier: MIT */
/*
 * DER for tests: Names, certificates that OpenSSL reads too (with a key and a signature that are
 * zeros), and Authenticode signatures around a digest. Deterministic.
 */
#ifndef TEC_TESTS_DER_BUILDER_H
#define TEC_TESTS_DER_BUILDER_H

#include <stdint.h>
#include <string.h>

#include "tec/base/str.h"

/* Puts tag and length before what stands behind `from`. */
__attribute__((unused)) static void der_wrap(struct strbuf *b, size_t from, uint8_t tag)
{
	size_t len = b->len - from, n = 0;
	uint8_t head[6] = {tag};

	if (len < 0x80) {
		head[1] = (uint8_t)len;
		n = 2;
	} else {
		size_t bytes = len < 0x100 ? 1 : len < 0x10000 ? 2 : 3;

		head[1] = (uint8_t)(0x80 | bytes);
		for (size_t i = 0; i < bytes; i++)
			head[2 + i] = (uint8_t)(len >> 8 * (bytes - 1 - i));
		n = 2 + bytes;
	}
	strbuf_add(b, head, n);
	memmove(b->data + from + n, b->data + from, len);
	memcpy(b->data + from, head, n);
}

__attribute__((unused)) static void der_add(
	struct strbuf *b, uint8_t tag, const void *data, size_t len)
{
	size_t from = b->len;

	strbuf_add(b, data, len);
	der_wrap(b, from, tag);
}
#define DER_OID(b, ...)                                                                            \
	der_add((b), 0x06, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

/* One RDN: CN as UTF8String. */
__attribute__((unused)) static void der_name(struct strbuf *b, const char *cn)
{
	size_t from = b->len;

	DER_OID(b, 0x55, 0x04, 0x03);
	der_add(b, 0x0c, cn, strlen(cn));
	der_wrap(b, from, 0x30);
	der_wrap(b, from, 0x31);
	der_wrap(b, from, 0x30);
}

static void der_alg_rsa(struct strbuf *b, uint8_t last)
{
	size_t from = b->len;

	DER_OID(b, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, last);
	der_add(b, 0x05, "", 0);
	der_wrap(b, from, 0x30);
}

static void der_zero_bits(struct strbuf *b)
{
	static const uint8_t zeros[33];

	der_add(b, 0x03, zeros, sizeof(zeros));
}

__attribute__((unused)) static void der_cert(
	struct strbuf *b, const char *subject, const char *issuer)
{
	size_t cert = b->len, from;

	der_add(b, 0x02, "\x02", 1);
	der_wrap(b, cert, 0xa0);
	der_add(b, 0x02, "\x07", 1);
	der_alg_rsa(b, 0x0b);
	der_name(b, issuer);
	from = b->len;
	der_add(b, 0x17, "220101000000Z", 13);
	der_add(b, 0x17, "420101000000Z", 13);
	der_wrap(b, from, 0x30);
	der_name(b, subject);
	from = b->len;
	der_alg_rsa(b, 0x01);
	der_zero_bits(b);
	der_wrap(b, from, 0x30);
	der_wrap(b, cert, 0x30);
	der_alg_rsa(b, 0x0b);
	der_zero_bits(b);
	der_wrap(b, cert, 0x30);
}

/* What a test may want to be different. */
struct der_signature {
	const uint8_t *digest;
	size_t digest_len;
	bool sha1;               /* the DigestInfo's algorithm; otherwise SHA-256 */
	bool not_indirect;       /* the content is plain data */
	const char *cert[20][2]; /* subject, issuer; until NULL */
};

static void der_digest_alg(struct strbuf *b, bool sha1)
{
	size_t from = b->len;

	if (sha1)
		DER_OID(b, 0x2b, 0x0e, 0x03, 0x02, 0x1a);
	else
		DER_OID(b, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01);
	der_add(b, 0x05, "", 0);
	der_wrap(b, from, 0x30);
}

static void der_indirect(struct strbuf *b, const struct der_signature *s)
{
	size_t spc = b->len, from;

	DER_OID(b, 0x2b, 0x06, 0x01, 0x04, 0x01, 0x82, 0x37, 0x02, 0x01,
		0x0f); /* SPC_PE_IMAGE_DATA */
	der_wrap(b, spc, 0x30);
	from = b->len;
	der_digest_alg(b, s->sha1);
	der_add(b, 0x04, s->digest, s->digest_len);
	der_wrap(b, from, 0x30);
	der_wrap(b, spc, 0x30);
	der_wrap(b, spc, 0xa0);
}

__attribute__((unused)) static void der_pkcs7(struct strbuf *b, const struct der_signature *s)
{
	size_t all = b->len, sd, from;

	DER_OID(b, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x02);
	sd = b->len;
	der_add(b, 0x02, "\x01", 1);
	from = b->len;
	der_digest_alg(b, s->sha1);
	der_wrap(b, from, 0x31);
	from = b->len;
	if (s->not_indirect)
		DER_OID(b, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x01);
	else
		DER_OID(b, 0x2b, 0x06, 0x01, 0x04, 0x01, 0x82, 0x37, 0x02, 0x01, 0x04);
	der_indirect(b, s);
	der_wrap(b, from, 0x30);
	from = b->len;
	for (size_t i = 0; s->cert[i][0]; i++)
		der_cert(b, s->cert[i][0], s->cert[i][1]);
	if (b->len > from)
		der_wrap(b, from, 0xa0);
	der_add(b, 0x31, "", 0); /* signerInfos */
	der_wrap(b, sd, 0x30);
	der_wrap(b, sd, 0xa0);
	der_wrap(b, all, 0x30);
}

#endif
