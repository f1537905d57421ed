/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tec/base/intern.h"

Test(intern, equal_texts_are_one_until_nobody_has_it)
{
	char first[] = "ak.name", second[] = "ak.name";
	const char *a = intern_ref(first), *b = intern_ref(second), *other = intern_ref("ak.nam");

	cr_assert_eq(a, b);
	cr_assert_neq(a, other);
	first[0] = second[0] = 'x';
	intern_unref(a);
	cr_assert_str_eq(b, "ak.name", "a copy, which the other holder keeps");
	cr_assert_eq(intern_ref("ak.name"), b);
	intern_unref(b);
	intern_unref(b);
	intern_unref(other);
}

Test(intern, of_nothing_there_is_no_copy)
{
	cr_assert_null(intern_ref(NULL));
	intern_unref(NULL);
}

Test(intern, bytes_of_another_length_are_another_copy)
{
	const uint8_t key[] = {0x30, 0, 0x82, 0};
	const uint8_t *a = intern_ref_bytes(key, 4), *b = intern_ref_bytes(key, 3);

	cr_assert_neq(a, b);
	cr_assert_neq(a, key);
	cr_assert_eq(memcmp(a, key, 4), 0);
	cr_assert_eq(intern_ref_bytes(key, 4), a);
	intern_unref(a);
	intern_unref(a);
	intern_unref(b);
}
