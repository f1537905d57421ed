/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include "tec/base/mem.h"
#include "tec/net/sources.h"

/* Use the record of the source n, which counts its uses. */
static unsigned use(struct sources *s, uint8_t n)
{
	const uint8_t source[ADDR_SOURCE_LEN] = {4, n};
	bool fresh;
	unsigned *count = sources_use(s, source, &fresh);

	cr_assert_eq(fresh, *count == 0);
	return ++*count;
}

static const unsigned *find(const struct sources *s, uint8_t n)
{
	const uint8_t source[ADDR_SOURCE_LEN] = {4, n};

	return sources_find(s, source);
}

Test(net_sources, keeps_a_record_of_each)
{
	struct sources *s = sources_new(3, sizeof(unsigned));

	cr_assert_null(find(s, 1));
	cr_assert_eq(use(s, 1), 1);
	cr_assert_eq(use(s, 2), 1);
	cr_assert_eq(use(s, 1), 2);
	cr_assert_eq(*find(s, 1), 2);
	cr_assert_eq(*find(s, 2), 1);
	sources_free(s);
	sources_free(NULL);
}

Test(net_sources, the_least_recently_used_one_gives_way)
{
	struct sources *s = sources_new(3, sizeof(unsigned));

	use(s, 1);
	use(s, 2);
	use(s, 3);
	use(s, 1);
	cr_assert_not_null(find(s, 2), "finding is no use");
	cr_assert_eq(use(s, 4), 1);
	cr_assert_null(find(s, 2));
	cr_assert_eq(*find(s, 1), 2);
	cr_assert_eq(use(s, 2), 1, "its record starts again");
	cr_assert_null(find(s, 3));
	sources_free(s);
}
