/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tec/kobj/key.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tec/base/mem.h"

Test(kobj_key, names_are_dns_subdomains)
{
	static const struct {
		const char *s;
		bool name, label;
	} table[] = {
		{"a", true, true},
		{"machine-0a1b", true, true},
		{"a.b-c.9", true, false},
		{"9", true, true},
		{"", false, false},
		{"-a", false, false},
		{"a-", false, false},
		{"a.", false, false},
		{".a", false, false},
		{"a..b", false, false},
		{"a.-b", false, false},
		{"A", false, false},
		{"a_b", false, false},
		{"a/b", false, false},
		{"a b", false, false},
		{"../secrets", false, false},
		{"a%2fb", false, false},
		{"\xc3\xa4", false, false},
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		cr_expect_eq(kobj_name_valid(table[i].s, strlen(table[i].s)), table[i].name,
			"name %s", table[i].s);
		cr_expect_eq(kobj_label_valid(table[i].s, strlen(table[i].s)), table[i].label,
			"label %s", table[i].s);
	}
	cr_expect_not(kobj_name_valid(NULL, 0));
	cr_expect_not(kobj_label_valid(NULL, 0));
}

Test(kobj_key, length_is_carried_not_measured)
{
	cr_expect_not(kobj_name_valid("a\0b", 3));
	cr_expect(kobj_name_valid("abc!", 3));
}

Test(kobj_key, limits_are_253_and_63)
{
	char s[300];

	memset(s, 'a', sizeof(s));
	cr_expect(kobj_name_valid(s, 253));
	cr_expect_not(kobj_name_valid(s, 254));
	cr_expect(kobj_label_valid(s, 63));
	cr_expect_not(kobj_label_valid(s, 64));
}
