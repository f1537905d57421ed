/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>

#include "tec/base/mem.h"

Test(base_mem, calloc_zeroes_and_zero_sizes_work)
{
	cleanup_free char *p = xcalloc(3, 5);
	cleanup_free void *none = xmalloc(0), *none2 = xcalloc(0, 8);

	for (size_t i = 0; i < 15; i++)
		cr_assert_eq(p[i], 0);
	cr_assert_not_null(none);
	cr_assert_not_null(none2);
	none = xrealloc(none, 0);
	cr_assert_not_null(none);
}

Test(base_mem, copies_end_in_nul)
{
	cleanup_free char *s = xstrdup("abc"), *n = xstrndup("abcdef", 2),
			  *short_one = xstrndup("a", 9);
	cleanup_free char *m = xmemdup("a\0b", 3), *empty = xmemdup(NULL, 0);

	cr_assert_str_eq(s, "abc");
	cr_assert_str_eq(n, "ab");
	cr_assert_str_eq(short_one, "a");
	cr_assert_eq(memcmp(m, "a\0b\0", 4), 0);
	cr_assert_str_eq(empty, "");
	cr_assert_null(xstrdup(NULL));
}

Test(base_mem, asprintf_formats)
{
	cleanup_free char *s = xasprintf("%s-%d", "x", 3);

	cr_assert_str_eq(s, "x-3");
}

Test(base_mem, steal_leaves_null)
{
	cleanup_free char *s = xstrdup("x");
	cleanup_free char *t = steal_ptr(&s);

	cr_assert_null(s);
	cr_assert_str_eq(t, "x");
}

Test(base_mem, calloc_overflow_aborts, .signal = SIGABRT)
{
	free(xcalloc(SIZE_MAX / 2, 3));
}

Test(base_mem, reallocarray_overflow_aborts, .signal = SIGABRT)
{
	free(xreallocarray(NULL, SIZE_MAX / 2, 3));
}

Test(base_mem, memdup_overflow_aborts, .signal = SIGABRT)
{
	free(xmemdup("", SIZE_MAX));
}

Test(base_mem, die_aborts, .signal = SIGABRT)
{
	DIE("test object %d", 1);
}

Test(base_mem, an_array_grows_to_the_next_power_of_two)
{
	int *v = NULL;
	size_t n = 0;

	while (n < 1000) {
		ARRAY_GROW(v, n);
		v[n] = (int)n;
		n++;
	}
	n = 300; /* what was dropped may come again */
	while (n < 600) {
		ARRAY_GROW(v, n);
		v[n] = (int)n;
		n++;
	}
	for (int i = 0; i < 600; i++)
		cr_assert_eq(v[i], i);
	free(v);
}
