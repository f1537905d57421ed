/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tec/base/seal.h"

static struct secret *key;
static uint8_t here[SEAL_TAG_LEN], there[SEAL_TAG_LEN];

static void bind_to(const char *a, const char *b, uint8_t out[SEAL_TAG_LEN])
{
	const struct seal_part parts[] = {{a, strlen(a)}, {b, strlen(b)}};

	seal_tag(key, parts, 2, out);
}

static void up(void)
{
	uint8_t bytes[SEAL_KEY_LEN];

	memset(bytes, 7, sizeof(bytes));
	key = secret_new_copy(bytes, sizeof(bytes));
	bind_to("ns", "name", here);
	bind_to("nsn", "ame", there);
}

static void down(void)
{
	secret_free(key);
}

TestSuite(seal, .init = up, .fini = down);

Test(seal, what_is_sealed_opens_under_its_key_in_its_place_only)
{
	static const char text[] = "the key of a disk";
	cleanup_secret struct secret *other = secret_new_random(SEAL_KEY_LEN);
	cleanup_free uint8_t *sealed = seal_bytes(key, here, text, sizeof(text));
	size_t len = sizeof(text) + SEAL_OVERHEAD;
	char out[sizeof(text)];

	cr_expect_eq(seal_open(key, here, sealed, len, out), 0);
	cr_expect_str_eq(out, text);
	cr_expect_eq(seal_open(key, there, sealed, len, out), -1);
	cr_expect_eq(out[0], 0, "nothing is left of a failed opening");
	cr_expect_eq(seal_open(other, here, sealed, len, out), -1);
	for (size_t i = 0; i < len; i++) {
		sealed[i] ^= 1;
		cr_expect_eq(seal_open(key, here, sealed, len, out), -1, "byte %zu", i);
		sealed[i] ^= 1;
	}
	for (size_t n = 0; n < len; n++)
		cr_expect_eq(seal_open(key, here, sealed, n, out), -1, "cut at %zu", n);
}

Test(seal, the_same_bytes_sealed_twice_differ)
{
	cleanup_free uint8_t *a = seal_bytes(key, here, "x", 1), *b = NULL;
	char out;

	b = seal_bytes(key, here, "x", 1);
	cr_expect_neq(memcmp(a, b, 1 + SEAL_OVERHEAD), 0);
	cr_expect_eq(seal_open(key, here, a, 1 + SEAL_OVERHEAD, &out), 0);
	free(a);
	a = seal_bytes(key, here, "", 0);
	cr_expect_eq(seal_open(key, here, a, SEAL_OVERHEAD, &out), 0);
}

Test(seal, a_tag_knows_where_its_parts_end)
{
	uint8_t again[SEAL_TAG_LEN];

	cr_expect_neq(memcmp(here, there, SEAL_TAG_LEN), 0);
	bind_to("ns", "name", again);
	cr_expect_eq(memcmp(here, again, SEAL_TAG_LEN), 0);
}

Test(seal, keys_made_of_a_key_and_its_name)
{
	cleanup_secret struct secret *a = seal_subkey(key, "purpose1"), *b = NULL, *c = NULL;
	char id[SEAL_ID_LEN + 1], other[SEAL_ID_LEN + 1];

	b = seal_subkey(key, "purpose2");
	c = seal_subkey(key, "purpose1");
	cr_expect(secret_equal(a, c));
	cr_expect_not(secret_equal(a, b));
	seal_key_id(key, id);
	seal_key_id(a, other);
	cr_expect_eq(strlen(id), SEAL_ID_LEN);
	cr_expect_str_neq(id, other);
}
