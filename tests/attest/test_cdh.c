/* SPDX-License-Identifier: MIT */
/* What is read of a request. The service itself runs in tests/e2e/test_node_serve.py. */
#include "config.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tec/attest/cdh.h"
#include "tec/attest/flow.h"
#include "tec/base/bytes.h"
#include "tec/base/mem.h"

Test(attest_cdh, hosts)
{
	static const struct {
		const char *host;
		bool good;
	} t[] = {
		{"127.0.0.1", true},
		{"127.0.0.1:8006", true},
		{"localhost", true},
		{"LocalHost:1", true},
		{"[::1]:8006", true},
		{NULL, false},
		{"", false},
		{"evil.example", false},
		{"127.0.0.1.evil.example", false},
		{"localhost.evil.example:8006", false},
		{"localhost:", false},
		{"localhost:80a", false},
		{"localhost:123456", false},
		{"127.0.0.1:8006@evil", false},
		{"::1", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		cr_assert_eq(attest_cdh_host_ok(t[i].host), t[i].good, "%s",
			t[i].host ? t[i].host : "NULL");
}

Test(attest_cdh, parameters)
{
	static const struct {
		const char *query, *value;
	} t[] = {
		{"a=1", "1"},
		{"b=2&a=1", "1"},
		{"ab=2&a=%31+x", "1 x"},
		{"a=", ""},
		{"a", NULL},
		{"", NULL},
		{"b=a=1", NULL},
		{"a=%", NULL},
		{"a=%4", NULL},
		{"a=%zz", NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		size_t len = 0;
		cleanup_free char *v = attest_cdh_param(t[i].query, "a", &len);

		cr_assert(str_eq(v, t[i].value), "%s", t[i].query);
		cr_assert(!v || len == strlen(v));
	}
}

Test(attest_cdh, disk_keys_in_every_spelling_that_is_a_path)
{
	static const struct {
		const char *path;
		bool is;
	} t[] = {
		{"default/11111111-2222-4333-8444-55555555abcd/root", true},
		{"default/11111111-2222-4333-8444-55555555ABCD/root", true},
		{"Default/11111111-2222-4333-8444-55555555abcd/ROOT", true},
		{"default/00000000-0000-0000-0000-000000000000/root", true},
		{"default/key/1", false},
		{"default/key/root", false},
		{"default/11111111-2222-4333-8444-55555555abcd/root2", false},
		{"default/11111111-2222-4333-8444-55555555abcd/key", false},
		{"default/11111111-2222-4333-8444-55555555abc/root", false},
		{"default/11111111-2222-4333-8444-55555555abcdef/root", false},
		{"default/g1111111-2222-4333-8444-55555555abcd/root", false},
		{"other/11111111-2222-4333-8444-55555555abcd/root", false},
		{"default/a/root", false},
		{"a/b/c", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		cr_assert(attest_path_valid(t[i].path), "%s", t[i].path);
		cr_assert_eq(attest_cdh_is_disk_key(t[i].path), t[i].is, "%s", t[i].path);
	}
}

/* printf 'tec-node/runtime-data:abc' | openssl dgst -sha384 */
Test(attest_cdh, runtime_data_is_bound_as_the_manual_says)
{
	uint8_t out[RATS_BINDING_LEN], other[RATS_BINDING_LEN];
	char hex[2 * RATS_BINDING_LEN + 1];

	attest_cdh_bind("abc", 3, out);
	bytes_to_hex(out, sizeof(out), hex);
	cr_assert_str_eq(hex,
		"87c218ba448cd9c372eb89e6a656a661efcd52cc9b0bd022081cdf3308af661e5b0315ebb58285dc5ac712b5e775a991");
	attest_cdh_bind("abc\0", 4, other);
	cr_assert_neq(memcmp(out, other, sizeof(out)), 0, "no padding");
}
