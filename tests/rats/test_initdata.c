/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/mem.h"
#include "tec/rats/initdata.h"

#define HEAD "version = \"0.1.0\"\nalgorithm = \"sha256\"\n"

/* The text and the value were made with a real Trustee's rules by hand. */
Test(rats_initdata, pcr_8_is_one_extend_with_the_digest_of_the_text)
{
	static const char toml[] =
		HEAD "\n[data]\nuuid = \"11111111-2222-3333-4444-555555555555\"\n";
	uint8_t pcr8[SHA256_LEN];
	char hex[SHA256_HEX_LEN + 1];

	rats_initdata_pcr8(toml, strlen(toml), pcr8);
	bytes_to_hex(pcr8, sizeof(pcr8), hex);
	cr_assert_str_eq(hex, "0195957c6f521cb6fbc8b056d53bef5d3f130052990031de667718a92738fcca");
}

Test(rats_initdata, accepts_plain_beginnings)
{
	static const char *const t[] = {
		HEAD,
		HEAD "[data]\n",
		HEAD "[data]\nanything = here\n[data]\nalgorithm = \"sha384\"\n",
		"# a comment\r\n\r\nalgorithm='sha256'\r\nversion\t=\t'0.1.0'\r\n[data]\r\n",
		"  algorithm = \"sha256\"\nversion = \"\"",
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct err err = ERR_INIT;

		cr_expect_eq(
			rats_initdata_check(t[i], strlen(t[i]), &err), 0, "%zu: %s", i, err.text);
	}
}

Test(rats_initdata, refuses_the_rest)
{
	static const char *const t[] = {
		"",
		"[data]\n",
		"version = \"0.1.0\"\n[data]\nalgorithm = \"sha256\"\n",
		"version = \"0.1.0\"\nalgorithm = \"sha384\"\n[data]\n",
		"version = \"0.1.0\"\nalgorithm = \"sm3\"\n[data]\n",
		HEAD "algorithm = \"sha384\"\n[data]\n",
		HEAD "version = \"0.1.0\"\n",
		HEAD "other = \"x\"\n",
		HEAD "[[data]]\n",
		HEAD "[data] # comment\n",
		HEAD "[other]\n",
		HEAD "data = {}\n",
		HEAD "\"algorithm\" = \"sha384\"\n",
		"version = \"0.1.0\"\n\"algorithm\" = \"sha256\"\n",
		"version = \"0.1.0\"\nalgorithm = \"sha\\u0032\\u0035\\u0036\"\n",
		"version = \"0.1.0\"\nalgorithm = \"\"\"sha256\"\"\"\n",
		"version = \"0.1.0\"\nalgorithm = \"sha256\" # \"\n",
		"version = \"0.1.0\"\nalgorithm = sha256\n",
		"version = \"0.1.0\"\nalgorithm \"sha256\"\n",
		"version = 0.1\nalgorithm = \"sha256\"\n",
		"version = '''\nalgorithm = \"sha256\"\n'''\nalgorithm = \"sha384\"\n",
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct err err = ERR_INIT;

		cr_expect_eq(rats_initdata_check(t[i], strlen(t[i]), &err), -1, "%zu", i);
		cr_expect_eq(err.kind, ERR_INVALID, "%zu", i);
	}
}

Test(rats_initdata, refuses_a_nul_byte)
{
	static const char toml[] = HEAD "\0[data]\n";
	struct err err = ERR_INIT;

	cr_assert_eq(rats_initdata_check(toml, sizeof(toml) - 1, &err), -1);
}
