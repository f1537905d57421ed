/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tec/store/sealing.h"
#include "tec/base/mem.h"
#include "tec/base/seal.h"

static const char pem[] = "-----BEGIN PRIVATE KEY-----\n";

Test(store_keyfile, opens_under_its_key_and_name_only)
{
	cleanup_secret struct secret *key = secret_new_random(SEAL_KEY_LEN),
				     *other = secret_new_random(SEAL_KEY_LEN),
				     *plain = secret_new_copy(pem, strlen(pem));
	cleanup_secret struct secret *opened = NULL;
	size_t len;
	cleanup_free char *text = store_sealing_seal_file(key, "ca.key", plain, &len);

	cr_expect(store_sealing_is_file(text, len));
	cr_expect_null(memmem(text, len, "PRIVATE", 7));
	opened = store_sealing_open_file(key, "ca.key", text, len);
	cr_assert_not_null(opened);
	cr_expect(secret_equal(opened, plain));
	cr_expect_null(store_sealing_open_file(other, "ca.key", text, len));
	cr_expect_null(store_sealing_open_file(key, "token.key", text, len));
}

Test(store_keyfile, damage_is_refused_at_every_byte)
{
	cleanup_secret struct secret *key = secret_new_random(SEAL_KEY_LEN),
				     *plain = secret_new_copy(pem, strlen(pem));
	size_t len;
	cleanup_free char *text = store_sealing_seal_file(key, "ca.key", plain, &len);

	for (size_t i = 0; i < len; i++) {
		cr_expect_null(store_sealing_open_file(key, "ca.key", text, i), "cut at %zu", i);
		text[i] ^= 1;
		cr_expect_null(store_sealing_open_file(key, "ca.key", text, len), "byte %zu", i);
		text[i] ^= 1;
	}
	cr_expect_not(store_sealing_is_file(pem, strlen(pem)));
	cr_expect_not(store_sealing_is_file("", 0));
}
