/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tec/base/mem.h"
#include "tec/base/uuid.h"

Test(base_uuid, new_ones_are_valid_version_4_and_differ)
{
	char a[UUID_TEXT_LEN + 1], b[UUID_TEXT_LEN + 1];

	for (int i = 0; i < 100; i++) {
		uuid_new_v4(a);
		uuid_new_v4(b);
		cr_assert(uuid_valid(a, strlen(a)));
		cr_assert_eq(a[14], '4');
		cr_assert_not_null(strchr("89ab", a[19]));
		cr_assert_str_neq(a, b);
	}
}

Test(base_uuid, only_lower_case_text_is_valid)
{
	static const struct {
		const char *s;
		bool ok;
	} t[] = {
		{"00000000-0000-0000-0000-000000000000", true},
		{"01234567-89ab-cdef-0123-456789abcdef", true},
		{"01234567-89AB-cdef-0123-456789abcdef", false},
		{"0123456789abcdef0123456789abcdef", false},
		{"{1234567-89ab-cdef-0123-456789abcde}", false},
		{"01234567-89ab-cdef-0123-456789abcde", false},
		{"01234567-89ab-cdef-0123-456789abcdef0", false},
		{"01234567089ab-cdef-0123-456789abcdef", false},
		{"0123456-789ab-cdef-0123-456789abcdef", false},
		{"01234567-89ab-cdef-0123-456789abcdeg", false},
		{"-1234567-89ab-cdef-0123-456789abcdef", false},
		{"01234567-89ab-cdef-0123_456789abcdef", false},
		{" 1234567-89ab-cdef-0123-456789abcdef", false},
		{"", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		cr_expect_eq(uuid_valid(t[i].s, strlen(t[i].s)), t[i].ok, "%s", t[i].s);
	cr_assert(!uuid_valid(NULL, 0));
	cr_assert(!uuid_valid("01234567-89ab-cdef-0123-456789abcde\0", 36));
}

Test(base_uuid, bytes_and_text_are_one_value)
{
	static const char text[] = "01234567-89ab-cdef-fedc-ba9876543210";
	char out[UUID_TEXT_LEN + 1];
	uint8_t raw[UUID_LEN];

	uuid_to_bytes(text, raw);
	cr_assert_eq(raw[0], 0x01);
	cr_assert_eq(raw[6], 0xcd);
	cr_assert_eq(raw[15], 0x10);
	uuid_from_bytes(raw, out);
	cr_assert_str_eq(out, text);
}
