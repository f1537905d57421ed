/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tec/base/body.h"
#include "tec/base/mem.h"

Test(body, grows_and_stays_terminated)
{
	struct body b = BODY_INIT;

	body_add(&b, "", 0, 0);
	cr_assert_str_eq(b.data, "");
	for (int i = 0; i < 1000; i++)
		body_add(&b, "abc", 3, 0);
	cr_assert_eq(b.len, 3000);
	cr_assert_eq(strlen(b.data), 3000);
	cr_assert(memcmp(b.data + 2997, "abc", 4) == 0);
	body_fini(&b);
	cr_assert_null(b.data);
	body_fini(&b);
}

Test(body, an_expected_length_is_allocated_once)
{
	struct body b = BODY_INIT;
	const char *at;

	body_add(&b, "a", 1, 100000);
	at = b.data;
	for (int i = 1; i < 100000; i++)
		body_add(&b, "a", 1, 100000);
	cr_assert_eq(b.data, at);
	body_fini(&b);
}

Test(body, owns_texts_and_secrets_and_moves)
{
	struct body a = body_of_text(xstrdup("{}")), b = body_move(&a);

	cr_assert_null(a.data);
	cr_assert_str_eq(b.data, "{}");
	cr_assert_eq(b.len, 2);
	body_fini(&b);
	b = body_of_secret(secret_new_copy("key", 3));
	cr_assert_eq(b.len, 3);
	cr_assert(memcmp(b.data, "key", 3) == 0);
	a = body_move(&b);
	body_fini(&b);
	cr_assert_eq(secret_count(), 1);
	body_fini(&a);
	cr_assert_eq(secret_count(), 0);
}
