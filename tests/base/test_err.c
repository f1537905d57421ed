/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/err.h"
#include "tec/base/utf8.h"

Test(base_err, set_keeps_kind_and_text)
{
	struct err err = ERR_INIT;

	cr_assert(!err_is_set(&err));
	cr_assert_eq(err_set(&err, ERR_CONFLICT, "version %d", 7), -1);
	cr_assert(err_is_set(&err));
	cr_assert_eq(err.kind, ERR_CONFLICT);
	cr_assert_str_eq(err.text, "version 7");
	cr_assert_eq(err.sys, 0);
	cr_assert_eq(err.http, 0);
}

Test(base_err, errno_and_http_are_kept)
{
	struct err err = ERR_INIT;

	cr_assert_eq(err_set_errno(&err, ERR_TRANSIENT, ENOENT, "open %s", "x"), -1);
	cr_assert_eq(err.sys, ENOENT);
	cr_assert_str_eq(err.text, "open x: No such file or directory");
	err_clear(&err);
	cr_assert(!err_is_set(&err));
	cr_assert_eq(err_set_http(&err, ERR_GONE, 410, "watch"), -1);
	cr_assert_eq(err.http, 410);
	cr_assert_str_eq(err.text, "watch");
}

Test(base_err, a_lost_lease_is_a_conflict)
{
	struct err err = ERR_INIT;

	cr_assert_eq(err_set_lease_lost(&err), -1);
	cr_assert_eq(err.kind, ERR_CONFLICT);
	cr_assert(strstr(err.text, "lease"), "%s", err.text);
}

Test(base_err, wrap_prefixes_and_keeps_numbers)
{
	struct err err = ERR_INIT;

	err_set_http(&err, ERR_DENIED, 403, "forbidden");
	err.retry_after_ms = 5;
	cr_assert_eq(err_wrap(&err, "get %s", "pods"), -1);
	cr_assert_str_eq(err.text, "get pods: forbidden");
	cr_assert_eq(err.kind, ERR_DENIED);
	cr_assert_eq(err.http, 403);
	cr_assert_eq(err.retry_after_ms, 5);
}

Test(base_err, wrap_may_name_its_own_text)
{
	struct err err = ERR_INIT;

	err_set(&err, ERR_BUG, "a");
	err_wrap(&err, "b %s", err.text);
	cr_assert_str_eq(err.text, "b a: a");
}

Test(base_err, long_text_is_cut_at_a_character)
{
	char in[800];
	struct err err = ERR_INIT;

	for (size_t shift = 0; shift < 3; shift++) {
		memset(in, 'x', shift);
		for (size_t i = shift; i + 3 < sizeof(in); i += 3)
			memcpy(in + i, "\xe2\x82\xac", 4);
		err_clear(&err);
		err_set(&err, ERR_BUG, "%s", in);
		cr_assert(strlen(err.text) < sizeof(err.text));
		cr_assert(strlen(err.text) > sizeof(err.text) - 8);
		cr_assert(utf8_valid(err.text, strlen(err.text)));
		cr_assert_str_eq(err.text + strlen(err.text) - 3, "...");
		err_wrap(&err, "context");
		cr_assert(utf8_valid(err.text, strlen(err.text)));
		cr_assert_eq(strncmp(err.text, "context: ", 9), 0);
		cr_assert_str_eq(err.text + strlen(err.text) - 3, "...");
		err_clear(&err);
		err_set_errno(&err, ERR_BUG, EIO, "%s", in);
		cr_assert(utf8_valid(err.text, strlen(err.text)));
	}
}

Test(base_err, exact_fit_is_not_cut)
{
	char in[256];
	struct err err = ERR_INIT;

	memset(in, 'a', 255);
	in[255] = '\0';
	err_set(&err, ERR_BUG, "%s", in);
	cr_assert_str_eq(err.text, in);
}

Test(base_err, every_kind_has_a_name)
{
	for (int k = ERR_NONE; k <= ERR_BUG; k++)
		cr_assert_str_neq(err_kind_name((enum err_kind)k), "unknown");
	cr_assert_str_eq(err_kind_name(ERR_NOT_FOUND), "not-found");
}

Test(base_err, setting_twice_asserts, .signal = SIGABRT)
{
	struct err err = ERR_INIT;

	err_set(&err, ERR_BUG, "one");
	err_set(&err, ERR_BUG, "two");
}

Test(base_err, wrapping_nothing_asserts, .signal = SIGABRT)
{
	struct err err = ERR_INIT;

	err_wrap(&err, "context");
}
