/* SPDX-License-Identifier: MIT */
/*
 * zlib and libzstd, fed with data as it arrives. A member or frame may be followed by another one,
 * or by zeros, which some programs use as padding; anything else is refused.
 */
#include "config.h"

#include "tec/oci/inflate.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "tec/base/mem.h"

#define OUT_LEN    65536u
#define MAGIC_LEN  4u
#define WINDOW_LOG 25 /* 32 MiB, the most that common builders use */

enum kind { UNKNOWN, PLAIN, GZIP, ZSTD };

struct oci_inflate {
	enum kind kind;
	uint8_t magic[MAGIC_LEN];
	size_t n_magic;
	z_stream gz;
	ZSTD_DCtx *zstd;
	bool inside;  /* inside a member or frame */
	bool padding; /* in the zeros after the last one */
	uint64_t total, max;
	oci_inflate_fn out;
	void *arg;
	uint8_t buf[OUT_LEN];
};

/* The decompressor is created when the format is known. */
struct oci_inflate *oci_inflate_new(uint64_t max_out, oci_inflate_fn out, void *arg)
{
	struct oci_inflate *z = xcalloc(1, sizeof(*z));

	z->max = max_out;
	z->out = out;
	z->arg = arg;
	return z;
}

void oci_inflate_free(struct oci_inflate *z)
{
	if (!z)
		return;
	if (z->kind == GZIP)
		inflateEnd(&z->gz);
	ZSTD_freeDCtx(z->zstd);
	free(z);
}

uint64_t oci_inflate_total(const struct oci_inflate *z)
{
	return z->total;
}

/* Pass decompressed data on. The limit stops decompression bombs. */
static int hand_out(struct oci_inflate *z, const void *data, size_t len, struct err *err)
{
	if (!len)
		return 0;
	if (len > z->max - z->total)
		return err_set(err, ERR_INVALID, "the decompressed data exceeds %llu MiB",
			(unsigned long long)(z->max >> 20));
	z->total += len;
	return z->out(z->arg, data, len, err);
}

/* Skip zeros between members. Once there was one, only zeros may follow. Return true if nothing is
 * left. */
static bool skip_zeros(struct oci_inflate *z, const uint8_t **p, size_t *len)
{
	z->padding = z->padding || (*len && !**p);
	if (!z->padding)
		return !*len;
	while (*len && !**p) {
		++*p;
		--*len;
	}
	return !*len;
}

/* avail_in is 32 bits wide, so input is passed in parts of at most 1 GiB. */
static int add_gzip(struct oci_inflate *z, const uint8_t *p, size_t len, struct err *err)
{
	do {
		size_t n = len < (1u << 30) ? len : 1u << 30;
		int rc;

		if (!z->inside && skip_zeros(z, &p, &len))
			return 0;
		if (z->padding || (!z->inside && inflateReset(&z->gz) != Z_OK))
			return err_set(err, ERR_INVALID, "trailing data after the gzip stream");
		z->inside = true;
		z->gz.next_in = (Bytef *)(uintptr_t)p;
		z->gz.avail_in = (uInt)n;
		z->gz.next_out = z->buf;
		z->gz.avail_out = OUT_LEN;
		rc = inflate(&z->gz, Z_NO_FLUSH);
		/* BUF_ERROR: more input is needed. */
		if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
			return err_set(err, ERR_INVALID, "the gzip stream is corrupt");
		p += n - z->gz.avail_in;
		len -= n - z->gz.avail_in;
		if (hand_out(z, z->buf, OUT_LEN - z->gz.avail_out, err) < 0)
			return -1;
		z->inside = rc != Z_STREAM_END;
		/* A full buffer: more output may be pending without further input. */
	} while (len || (z->inside && !z->gz.avail_out));
	return 0;
}

/* libzstd continues with the next frame without a reset; `inside` is false between frames. */
static int add_zstd(struct oci_inflate *z, const uint8_t *p, size_t len, struct err *err)
{
	ZSTD_inBuffer in = {p, len, 0};
	ZSTD_outBuffer out;

	do {
		const uint8_t *at = p + in.pos;
		size_t left = len - in.pos, rc;

		if (!z->inside && skip_zeros(z, &at, &left))
			return 0;
		if (z->padding)
			return err_set(err, ERR_INVALID, "trailing data after the zstd stream");
		out = (ZSTD_outBuffer){z->buf, OUT_LEN, 0};
		rc = ZSTD_decompressStream(z->zstd, &out, &in);
		if (ZSTD_isError(rc))
			return err_set(err, ERR_INVALID, "the zstd stream is corrupt: %s",
				ZSTD_getErrorName(rc));
		if (hand_out(z, z->buf, out.pos, err) < 0)
			return -1;
		z->inside = rc != 0;
		/* A full buffer: more output may be pending without further input. */
	} while (in.pos < in.size || (z->inside && out.pos == OUT_LEN));
	return 0;
}

static int add(struct oci_inflate *z, const void *data, size_t len, struct err *err)
{
	switch (z->kind) {
	case GZIP:
		return add_gzip(z, data, len, err);
	case ZSTD:
		return add_zstd(z, data, len, err);
	case PLAIN:
		return hand_out(z, data, len, err);
	case UNKNOWN:
		break;
	}
	return 0;
}

/* Choose the format by the first bytes, and process them. Shorter data is plain. */
static int start(struct oci_inflate *z, struct err *err)
{
	const uint8_t *m = z->magic;
	/* A zstd frame, or a skippable frame, with which zstd:chunked may start. */
	bool zstd = (m[0] == 0x28 && m[1] == 0xb5 && m[2] == 0x2f && m[3] == 0xfd) ||
		    ((m[0] & 0xf0) == 0x50 && m[1] == 0x2a && m[2] == 0x4d && m[3] == 0x18);

	if (z->n_magic == MAGIC_LEN && zstd) {
		z->kind = ZSTD;
		z->zstd = ZSTD_createDCtx();
		if (!z->zstd || ZSTD_isError(ZSTD_DCtx_setParameter(
					z->zstd, ZSTD_d_windowLogMax, WINDOW_LOG)))
			DIE("out of memory: zstd");
	} else if (z->n_magic >= 2 && m[0] == 0x1f && m[1] == 0x8b) {
		z->kind = GZIP;
		if (inflateInit2(&z->gz, 15 + 16) != Z_OK)
			DIE("out of memory: zlib");
	} else {
		z->kind = PLAIN;
	}
	return add(z, z->magic, z->n_magic, err);
}

/* Collect the first bytes until the format is known; they may arrive one by one. */
int oci_inflate_add(struct oci_inflate *z, const void *data, size_t len, struct err *err)
{
	size_t n;

	if (z->kind == UNKNOWN) {
		n = len < MAGIC_LEN - z->n_magic ? len : MAGIC_LEN - z->n_magic;
		memcpy(z->magic + z->n_magic, data, n);
		z->n_magic += n;
		if (z->n_magic < MAGIC_LEN)
			return 0;
		if (start(z, err) < 0)
			return -1;
		data = (const char *)data + n;
		len -= n;
	}
	return len ? add(z, data, len, err) : 0;
}

int oci_inflate_end(struct oci_inflate *z, struct err *err)
{
	if (z->kind == UNKNOWN && start(z, err) < 0)
		return -1;
	if (z->inside)
		return err_set(err, ERR_INVALID, "the compressed stream is truncated");
	return 0;
}
