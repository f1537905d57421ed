/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "tec/base/secret.h"

static bool all_zero(const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (p[i])
			return false;
	}
	return true;
}

Test(base_secret, new_is_zeroed_and_copy_copies)
{
	cleanup_secret struct secret *z = secret_new(100), *c = secret_new_copy("key", 3);

	cr_assert_eq(secret_len(z), 100);
	cr_assert(all_zero(secret_peek(z), 100));
	cr_assert_eq(secret_len(c), 3);
	cr_assert_eq(memcmp(secret_peek(c), "key", 3), 0);
	cr_assert_eq(secret_count(), 2);
}

Test(base_secret, a_reused_slot_is_zero)
{
	for (size_t len = 1; len <= SECRET_MAX_LEN; len = len * 3 + 1) {
		struct secret *a = secret_new_random(len), *keep = secret_new_random(len);

		secret_free(a);
		a = secret_new(len);
		cr_assert(all_zero(secret_peek(a), len), "length %zu", len);
		secret_free(a);
		secret_free(keep);
	}
	cr_assert_eq(secret_count(), 0);
}

Test(base_secret, random_ones_differ)
{
	cleanup_secret struct secret *a = secret_new_random(32), *b = secret_new_random(32);

	cr_assert(!secret_equal(a, b));
	cr_assert(!all_zero(secret_peek(a), 32));
}

Test(base_secret, equality_is_by_length_and_bytes)
{
	cleanup_secret struct secret *a = secret_new_copy("abc", 3), *b = secret_new_copy("abc", 3);
	cleanup_secret struct secret *c = secret_new_copy("abd", 3), *d = secret_new_copy("ab", 2);

	cr_assert(secret_equal(a, b));
	cr_assert(!secret_equal(a, c));
	cr_assert(!secret_equal(a, d));
	cr_assert(!secret_equal(a, NULL));
	cr_assert(!secret_equal(NULL, NULL));
}

Test(base_secret, sha256_is_of_the_bytes)
{
	cleanup_secret struct secret *a = secret_new_copy("abc", 3);
	uint8_t x[SHA256_LEN], y[SHA256_LEN];

	secret_sha256(a, x);
	bytes_sha256("abc", 3, y);
	cr_assert_eq(memcmp(x, y, SHA256_LEN), 0);
}

/* RFC 4231, test case 2. */
Test(base_secret, hmac_is_that_of_the_standard)
{
	static const char want[] =
		"5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
	cleanup_secret struct secret *s = secret_new_copy("Jefe", 4);
	char hex[SHA256_HEX_LEN + 1];
	uint8_t out[SHA256_LEN];

	secret_hmac_sha256(s, "what do ya want for nothing?", 28, out);
	bytes_to_hex(out, sizeof(out), hex);
	cr_assert_str_eq(hex, want);
	cr_assert(secret_same_bytes("abc", "abc", 3));
	cr_assert_not(secret_same_bytes("abc", "abd", 3));
}

/* 59 bytes, as model_luks_root_new() makes them: of 10,000 Machines they are all locked memory. */
Test(base_secret, hundreds_of_disk_keys_fit_in_64_kib)
{
	struct secret *s[800];
	const uint8_t *low, *high;

	for (size_t i = 0; i < ARRAY_LEN(s); i++)
		s[i] = secret_new_random(59);
	low = high = secret_peek(s[0]);
	for (size_t i = 0; i < ARRAY_LEN(s); i++) {
		low = secret_peek(s[i]) < low ? secret_peek(s[i]) : low;
		high = secret_peek(s[i]) > high ? secret_peek(s[i]) : high;
	}
	cr_assert_lt(high - low, 65536);
	for (size_t i = 0; i < ARRAY_LEN(s); i++)
		secret_free(s[i]);
}

Test(base_secret, base64_round_trip)
{
	static const size_t lens[] = {1, 2, 3, 31, 32, 33, 48, 4096, SECRET_MAX_LEN};

	for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
		cleanup_secret struct secret *a = secret_new_random(lens[i]), *t = secret_to_b64(a),
					     *b = NULL;
		cleanup_strbuf struct strbuf plain = STRBUF_INIT;

		bytes_to_b64(&plain, secret_peek(a), lens[i]);
		cr_assert_eq(secret_len(t), plain.len);
		cr_assert_eq(memcmp(secret_peek(t), plain.data, plain.len), 0);
		b = secret_from_b64((const char *)secret_peek(t), secret_len(t));
		cr_assert(secret_equal(a, b), "length %zu", lens[i]);
	}
	cr_assert_eq(secret_count(), 0);
}

Test(base_secret, base64_refuses)
{
	static const char *const t[] = {"", "Z", "Zg", "Zg=", "Zh==", "Zm9=", "Zg==\n",
		" Zg=", "====", "Z===", "-__-", "Zm9v=", "Zg==Zg==", "Zm9vZ", "Zg=g",
		"\xc3\xa4\xc3\xa4"};

	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		cr_expect_null(secret_from_b64(t[i], strlen(t[i])), "%s", t[i]);
	cr_assert_eq(secret_count(), 0);
}

Test(base_secret, base64_above_the_limit_is_refused)
{
	size_t len = (size_t)4 << 16;
	cleanup_free char *text = xmalloc(len);

	memset(text, 'A', len);
	cr_assert_null(secret_from_b64(text, len));
	cr_assert_null(secret_from_b64(text, (SECRET_MAX_LEN / 3 + 1) * 4)); /* 131,073 bytes */
	cr_assert_eq(secret_count(), 0);
}

static size_t locked_kb(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[256];
	size_t kb = 0;

	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "VmLck: %zu kB", &kb);
	if (f)
		fclose(f);
	return kb;
}

Test(base_secret, ten_thousand_keys_share_pages)
{
	static struct secret *s[10000];
	size_t before = locked_kb();

	for (size_t i = 0; i < ARRAY_LEN(s); i++) {
		s[i] = secret_new(32);
		memset(secret_bytes(s[i]), (int)(i % 255 + 1), 32);
	}
	cr_assert_eq(secret_count(), 10000);
	cr_assert_leq(locked_kb() - before, 1024);
	for (size_t i = 0; i < ARRAY_LEN(s); i++) {
		for (size_t j = 0; j < 32; j++)
			cr_assert_eq(secret_peek(s[i])[j], i % 255 + 1);
	}
	/* Freed in another order than made. */
	for (size_t i = 0; i < ARRAY_LEN(s); i += 2)
		secret_free(s[i]);
	for (size_t i = 0; i < ARRAY_LEN(s); i += 2)
		s[i] = secret_new_random(30);
	for (size_t i = ARRAY_LEN(s); i-- > 0;)
		secret_free(s[i]);
	cr_assert_eq(secret_count(), 0);
	cr_assert_leq(locked_kb(), before + 64); /* one empty slab stays */
}

Test(base_secret, free_takes_null_and_wipe_wipes)
{
	uint8_t b[5] = "abcd";

	secret_free(NULL);
	secret_wipe(b, sizeof(b));
	cr_assert(all_zero(b, sizeof(b)));
	secret_wipe(NULL, 0);
}

Test(base_secret, empty_secret_aborts, .signal = SIGABRT)
{
	secret_free(secret_new(0));
}

Test(base_secret, oversized_secret_aborts, .signal = SIGABRT)
{
	secret_free(secret_new(SECRET_MAX_LEN + 1));
}

Test(base_secret, process_init_forbids_core_dumps)
{
	struct rlimit core;

	secret_process_init();
	secret_process_init();
	cr_assert_eq(getrlimit(RLIMIT_CORE, &core), 0);
	cr_assert_eq(core.rlim_max, 0);
#if !defined(__SANITIZE_ADDRESS__)
	cr_assert_eq(prctl(PR_GET_DUMPABLE), 0);
#endif
}

#if !defined(__SANITIZE_ADDRESS__)
Test(base_secret, double_free_aborts, .signal = SIGABRT)
{
	struct secret *keep = secret_new(32), *s = secret_new(32);

	secret_free(s);
	secret_free(s);
	secret_free(keep);
}
#endif
