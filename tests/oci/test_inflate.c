/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <zlib.h>
#include <zstd.h>

#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/oci/inflate.h"

static int on_out(void *arg, const void *data, size_t len, struct err *err)
{
	cr_assert_gt(len, 0);
	strbuf_add(arg, data, len);
	return 0;
}

static int run(
	const struct strbuf *in, size_t step, uint64_t max, struct strbuf *out, struct err *err)
{
	struct oci_inflate *z = oci_inflate_new(max, on_out, out);
	int rc = 0;

	strbuf_reset(out);
	err_clear(err);
	for (size_t at = 0; rc == 0 && at < in->len; at += step) {
		size_t n = in->len - at < step ? in->len - at : step;
		cleanup_free char *copy = xmemdup(in->data + at, n);

		rc = oci_inflate_add(z, copy, n, err);
	}
	if (rc == 0)
		rc = oci_inflate_end(z, err);
	cr_assert(rc || oci_inflate_total(z) == out->len);
	oci_inflate_free(z);
	return rc;
}

static void gzip(struct strbuf *out, const char *data, size_t len)
{
	z_stream s = {0};
	uint8_t buf[65536];
	int rc;

	cr_assert_eq(deflateInit2(&s, 9, Z_DEFLATED, 15 + 16, 8, 0), Z_OK);
	s.next_in = (Bytef *)(uintptr_t)data;
	s.avail_in = (uInt)len;
	do {
		s.next_out = buf;
		s.avail_out = sizeof(buf);
		rc = deflate(&s, Z_FINISH);
		strbuf_add(out, buf, sizeof(buf) - s.avail_out);
	} while (rc == Z_OK);
	deflateEnd(&s);
}

static void zstd(struct strbuf *out, const char *data, size_t len)
{
	size_t room = ZSTD_compressBound(len), n;
	cleanup_free char *buf = xmalloc(room);

	n = ZSTD_compress(buf, room, data, len, 3);
	cr_assert(!ZSTD_isError(n));
	strbuf_add(out, buf, n);
}

static char *some(size_t len)
{
	char *p = xmalloc(len + 1);

	/* Neither all alike nor random. */
	for (size_t i = 0; i < len; i++)
		p[i] = (char)('a' + (i * i / 7 + i % 13) % 23);
	p[len] = '\0';
	return p;
}

enum how { PLAIN, GZIP, GZIP_TWICE, GZIP_ZEROS, ZSTD, ZSTD_TWICE, ZSTD_SKIPPABLE, N_HOW };

static void pack(enum how how, struct strbuf *out, const char *data, size_t len)
{
	static const char skippable[] = "\x5a\x2a\x4d\x18\x03\0\0\0abc", zeros[100];
	size_t half = len / 2;

	if (how == PLAIN)
		strbuf_add(out, data, len);
	if (how == GZIP || how == GZIP_ZEROS)
		gzip(out, data, len);
	if (how == GZIP_ZEROS)
		strbuf_add(out, zeros, sizeof(zeros));
	if (how == GZIP_TWICE) {
		gzip(out, data, half);
		gzip(out, data + half, len - half);
	}
	if (how == ZSTD_SKIPPABLE)
		strbuf_add(out, skippable, sizeof(skippable) - 1);
	if (how == ZSTD || how == ZSTD_SKIPPABLE)
		zstd(out, data, len);
	if (how == ZSTD_SKIPPABLE)
		strbuf_add(out, skippable, sizeof(skippable) - 1);
	if (how == ZSTD_TWICE) {
		zstd(out, data, half);
		zstd(out, data + half, len - half);
	}
}

Test(oci_inflate, what_went_in_comes_out)
{
	static const size_t lens[] = {1, 5, 300, 65536, 65537, 700000},
			    steps[] = {1, 3, 4096, 1 << 24};
	cleanup_strbuf struct strbuf in = STRBUF_INIT, out = STRBUF_INIT;
	struct err err = ERR_INIT;

	for (int how = 0; how < N_HOW; how++) {
		for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
			cleanup_free char *data = some(lens[i]);

			strbuf_reset(&in);
			pack((enum how)how, &in, data, lens[i]);
			for (size_t s = 0; s < ARRAY_LEN(steps); s++) {
				cr_assert_eq(run(&in, steps[s], lens[i], &out, &err), 0, "%d %s",
					how, err.text);
				cr_assert_eq(out.len, lens[i]);
				cr_assert_eq(memcmp(out.data, data, out.len), 0);
			}
		}
	}
	strbuf_reset(&in);
	cr_assert_eq(run(&in, 1, 1, &out, &err), 0, "an empty layer");
}

Test(oci_inflate, one_byte_too_many_ends_it)
{
	cleanup_strbuf struct strbuf in = STRBUF_INIT, out = STRBUF_INIT;
	cleanup_free char *data = some(100000);
	struct err err = ERR_INIT;

	for (int how = 0; how < N_HOW; how++) {
		strbuf_reset(&in);
		pack((enum how)how, &in, data, 100000);
		cr_assert_eq(run(&in, 4096, 99999, &out, &err), -1);
		cr_assert(strstr(err.text, "the decompressed data exceeds"), "%s", err.text);
		cr_assert_leq(out.len, 99999);
	}
}

Test(oci_inflate, what_is_cut_off_or_goes_on_is_refused)
{
	cleanup_strbuf struct strbuf in = STRBUF_INIT, out = STRBUF_INIT;
	cleanup_free char *data = some(3000);
	struct err err = ERR_INIT;
	size_t all;

	for (int how = GZIP; how < N_HOW; how++) {
		if (how == GZIP_ZEROS || how == GZIP_TWICE || how == ZSTD_TWICE ||
			how == ZSTD_SKIPPABLE)
			continue;
		strbuf_reset(&in);
		pack((enum how)how, &in, data, 3000);
		all = in.len;
		for (in.len = 4; in.len < all; in.len++)
			cr_assert_eq(run(&in, 16, 1 << 20, &out, &err), -1, "%d %zu", how, in.len);
		in.len = all;
		strbuf_adds(&in, "more");
		cr_assert_eq(run(&in, 16, 1 << 20, &out, &err), -1);
		cr_assert_eq(err.kind, ERR_INVALID);
	}
	strbuf_reset(&in);
	pack(GZIP_ZEROS, &in, data, 3000);
	strbuf_adds(&in, "x");
	cr_assert_eq(run(&in, 16, 1 << 20, &out, &err), -1);
}

/* A frame that says it needs a window of 64 MiB. */
Test(oci_inflate, memory_does_not_follow_claims)
{
	static const uint8_t frame[] = {0x28, 0xb5, 0x2f, 0xfd, 0x00, 16 << 3, 0x01, 0, 0};
	cleanup_strbuf struct strbuf in = STRBUF_INIT, out = STRBUF_INIT;
	struct err err = ERR_INIT;

	strbuf_add(&in, frame, sizeof(frame));
	cr_assert_eq(run(&in, 1, 1 << 20, &out, &err), -1);
	cr_assert(strstr(err.text, "zstd stream is corrupt"), "%s", err.text);
}
