/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include "tec/base/bytes.h"
#include "tec/base/mem.h"

Test(base_bytes, sha256_of_known_texts)
{
	static const struct {
		const char *in, *hex;
	} t[] = {
		{"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
		{"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		uint8_t d[SHA256_LEN];
		char hex[SHA256_HEX_LEN + 1];

		bytes_sha256(t[i].in, strlen(t[i].in), d);
		bytes_to_hex(d, sizeof(d), hex);
		cr_assert_str_eq(hex, t[i].hex);
	}
	bytes_sha256(NULL, 0, (uint8_t[SHA256_LEN]){0});
}

Test(base_bytes, sha256_in_pieces)
{
	cleanup_sha256 struct bytes_sha256_run run = {NULL}, copy = {NULL};
	uint8_t whole[SHA256_LEN], pieces[SHA256_LEN], other[SHA256_LEN];

	bytes_sha256_init(&run);
	bytes_sha256_add(&run, "a", 1);
	bytes_sha256_add(&run, NULL, 0);
	bytes_sha256_copy(&copy, &run);
	bytes_sha256_add(&run, "bc", 2);
	bytes_sha256_add(&copy, "x", 1);
	bytes_sha256_end(&run, pieces);
	bytes_sha256_end(&copy, other);
	bytes_sha256("abc", 3, whole);
	cr_assert_arr_eq(pieces, whole, SHA256_LEN);
	bytes_sha256("ax", 2, whole);
	cr_assert_arr_eq(other, whole, SHA256_LEN, "a copy has an end of its own");
}

Test(base_bytes, sha256_of_parts_with_their_lengths)
{
	cleanup_sha256 struct bytes_sha256_run run = {NULL}, moved = {NULL};
	uint8_t framed[SHA256_LEN], other[SHA256_LEN], whole[SHA256_LEN];

	bytes_sha256_init(&run);
	bytes_sha256_add_framed(&run, "ab", 2);
	bytes_sha256_add_framed(&run, NULL, 0);
	bytes_sha256_end(&run, framed);
	bytes_sha256("\2\0\0\0\0\0\0\0ab\0\0\0\0\0\0\0", 18, whole);
	cr_expect_arr_eq(framed, whole, SHA256_LEN);
	bytes_sha256_init(&moved);
	bytes_sha256_add_framed(&moved, "a", 1);
	bytes_sha256_add_framed(&moved, "b", 1);
	bytes_sha256_end(&moved, other);
	cr_expect_arr_neq(framed, other, SHA256_LEN);
}

Test(base_bytes, hex_round_trip)
{
	uint8_t in[256], out[256];
	char hex[513];

	for (size_t i = 0; i < 256; i++)
		in[i] = (uint8_t)i;
	bytes_to_hex(in, sizeof(in), hex);
	cr_assert_eq(strlen(hex), 512);
	cr_assert_eq(bytes_from_hex(hex, 512, out), 0);
	cr_assert_eq(memcmp(in, out, 256), 0);
	cr_assert_eq(bytes_from_hex("", 0, out), 0);
}

Test(base_bytes, hex_refuses)
{
	static const char *const t[] = {
		"0", "0g", "AB", "aB", " 00", "0x", "0 ", "00\n", "-1", "\xff\xff"};
	uint8_t out[8];

	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		cr_expect_eq(bytes_from_hex(t[i], strlen(t[i]), out), -1, "%s", t[i]);
	cr_assert_eq(bytes_from_hex_any("aFA0", 4, out), 0);
	cr_assert(out[0] == 0xaf && out[1] == 0xa0);
	cr_assert_eq(bytes_from_hex_any("aFAg", 4, out), -1);
	cr_assert_eq(bytes_from_hex("00\0", 4, (uint8_t[2]){0}), -1); /* a NUL is not a digit */
}

Test(base_bytes, base64_of_rfc4648)
{
	static const struct {
		const char *in, *std, *url;
	} t[] = {
		{"", "", ""},
		{"f", "Zg==", "Zg"},
		{"fo", "Zm8=", "Zm8"},
		{"foo", "Zm9v", "Zm9v"},
		{"foob", "Zm9vYg==", "Zm9vYg"},
		{"fooba", "Zm9vYmE=", "Zm9vYmE"},
		{"foobar", "Zm9vYmFy", "Zm9vYmFy"},
		{"\xfb\xff\xfe", "+//+", "-__-"},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		cleanup_strbuf struct strbuf std = STRBUF_INIT, url = STRBUF_INIT;
		cleanup_free uint8_t *a = NULL, *b = NULL;
		size_t a_len, b_len, len = strlen(t[i].in);

		bytes_to_b64(&std, t[i].in, len);
		bytes_to_b64url(&url, t[i].in, len);
		cr_assert_str_eq(strbuf_str(&std), t[i].std);
		cr_assert_eq(std.len, bytes_b64_len(len));
		cr_assert_str_eq(strbuf_str(&url), t[i].url);
		cr_assert_eq(bytes_from_b64(t[i].std, strlen(t[i].std), &a, &a_len), 0);
		cr_assert_eq(bytes_from_b64url(t[i].url, strlen(t[i].url), &b, &b_len), 0);
		cr_assert_eq(a_len, len);
		cr_assert_eq(b_len, len);
		cr_assert_eq(memcmp(a, t[i].in, len + 1), 0);
		cr_assert_eq(memcmp(b, t[i].in, len + 1), 0);
	}
}

Test(base_bytes, base64_round_trip_of_all_lengths)
{
	uint8_t in[100];

	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = (uint8_t)(i * 37 + 11);
	for (size_t len = 0; len <= sizeof(in); len++) {
		cleanup_strbuf struct strbuf s = STRBUF_INIT;
		cleanup_free uint8_t *out = NULL;
		size_t out_len;

		bytes_to_b64(&s, in, len);
		cr_assert_eq(bytes_from_b64(strbuf_str(&s), s.len, &out, &out_len), 0);
		cr_assert_eq(out_len, len);
		cr_assert_eq(memcmp(out, in, len), 0);
	}
}

Test(base_bytes, base64_refuses)
{
	static const char *const t[] = {"Z", "Zg", "Zg=", "Zm8", "Zg==Zg==", "Zh==", "Zm9=", "=",
		"==", "===", "====", "Z===", "Zg==\n", " Zg==", "Zm 9v", "Zm9v\n", "-__-",
		"Zm9v=", "Zm9v====", "Zg=g", "Z=g=", "\xc3\xa4\xc3\xa4", "Zm9*"};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		uint8_t *out = (uint8_t *)1;
		size_t n = 9;

		cr_expect_eq(bytes_from_b64(t[i], strlen(t[i]), &out, &n), -1, "%s", t[i]);
		cr_expect_null(out);
		cr_expect_eq(n, 0);
	}
	cr_assert_eq(bytes_from_b64("Zg\0=", 4, &(uint8_t *){NULL}, &(size_t){0}), -1);
}

Test(base_bytes, base64url_refuses)
{
	static const char *const t[] = {
		"Z", "Zg==", "Zm8=", "Zh", "Zm9", "+//+", "Zm9vY", "Z g", "Zm9v\n", "="};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		uint8_t *out = NULL;
		size_t n;

		cr_expect_eq(bytes_from_b64url(t[i], strlen(t[i]), &out, &n), -1, "%s", t[i]);
		free(out);
	}
}
