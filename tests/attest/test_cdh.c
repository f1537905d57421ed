/* SPDX-License-Identifier: MIT */
/* What is read of a request. The service itself runs in tests/e2e/test_node_serve.py. */
#include "config.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tec/attest/cdh.h"
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
