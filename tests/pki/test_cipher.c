/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include "tec/base/mem.h"
#include "tec/pki/cipher.h"

/* The cases of the Trustee operator's own tests, but one: it expects DHE-RSA-AES128-CBC-SHA, which
 * OpenSSL does not know. */
Test(pki_cipher, suites_get_the_names_that_openssl_knows)
{
	static const char *const names[][2] = {
		{"TLS_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256"},
		{"TLS_AES_256_GCM_SHA384", "TLS_AES_256_GCM_SHA384"},
		{"TLS_CHACHA20_POLY1305_SHA256", "TLS_CHACHA20_POLY1305_SHA256"},
		{"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"},
		{"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"},
		{"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384"},
		{"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"},
		{"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"},
		{"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"},
		{"TLS_DHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "DHE-RSA-CHACHA20-POLY1305"},
		{"TLS_RSA_WITH_AES_128_CBC_SHA", "AES128-SHA"},
		{"TLS_RSA_WITH_AES_256_GCM_SHA384", "AES256-GCM-SHA384"},
		{"TLS_RSA_WITH_3DES_EDE_CBC_SHA", "DES-CBC3-SHA"},
		{"TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA", "ECDHE-RSA-DES-CBC3-SHA"},
		{"TLS_DHE_RSA_WITH_AES_128_CBC_SHA", "DHE-RSA-AES128-SHA"},
		{"TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", "ECDHE-RSA-AES128-SHA"},
		{"ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"},
		{"DES-CBC3-SHA", "DES-CBC3-SHA"},
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		cr_assert_str_eq(pki_cipher_openssl_name(names[i][0]), names[i][1]);
}

Test(pki_cipher, what_is_no_suite_is_refused)
{
	static const char *const bad[] = {"", "TLS_TYPO", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA25",
		"A:B", "A\"\nx = \"", "A B", "TLS_", "\xc3\xa4"};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		cr_assert_null(pki_cipher_openssl_name(bad[i]), "%s", bad[i]);
}
