/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "tec/base/table.h"

struct entry {
	int value;
	struct table_link link;
	char key[16];
};

static struct entry *find(const struct table *t, const char *key)
{
	struct entry *e;

	TABLE_WITH_HASH (e, link, t, table_hash_str(key))
		if (strcmp(e->key, key) == 0)
			return e;
	return NULL;
}

static struct entry *add(struct table *t, int value)
{
	struct entry *e = xcalloc(1, sizeof(*e));

	e->value = value;
	snprintf(e->key, sizeof(e->key), "key-%d", value);
	table_add(t, &e->link, table_hash_str(e->key));
	return e;
}

static void drop_all(struct table *t)
{
	struct entry *e;

	TABLE_EACH (e, link, t) {
		table_remove(t, &e->link);
		free(e);
	}
	cr_expect_eq(t->n, 0);
	table_fini(t);
}

Test(base_table, an_empty_one_has_nothing)
{
	struct table t = {0};

	cr_expect_null(find(&t, "key-1"));
	cr_expect_null(table_next(&t, NULL, 0, 1));
	table_fini(&t);
}

Test(base_table, what_was_added_is_found_until_it_is_removed)
{
	struct table t = {0};
	char key[16];

	for (int i = 0; i < 1000; i++)
		add(&t, i);
	for (int i = 0; i < 1000; i += 3) {
		struct entry *e;

		snprintf(key, sizeof(key), "key-%d", i);
		e = find(&t, key);
		cr_assert_not_null(e);
		table_remove(&t, &e->link);
		free(e);
	}
	cr_expect_eq(t.n, 666);
	for (int i = 0; i < 1000; i++) {
		const struct entry *e;

		snprintf(key, sizeof(key), "key-%d", i);
		e = find(&t, key);
		cr_expect_eq(e != NULL, i % 3 != 0);
		cr_expect(!e || e->value == i);
	}
	drop_all(&t);
}

Test(base_table, each_entry_is_visited_once_and_may_go)
{
	struct table t = {0};
	bool seen[100] = {0};
	struct entry *e;
	int n = 0;

	for (int i = 0; i < 100; i++)
		add(&t, i);
	TABLE_EACH (e, link, &t) {
		cr_expect_not(seen[e->value]);
		seen[e->value] = true;
		n++;
		if (e->value % 2) {
			table_remove(&t, &e->link);
			free(e);
		}
	}
	cr_expect_eq(n, 100);
	cr_expect_eq(t.n, 50);
	drop_all(&t);
}

/* Slice by slice while the table grows from 16 buckets to 1024: each of the first 100 once. */
Test(base_table, an_entry_stays_in_its_slice_when_the_table_grows)
{
	struct table t = {0};
	unsigned seen[1000] = {0};
	struct entry *e;

	for (uint32_t slice = 0; slice < 64; slice++) {
		TABLE_EACH_IN(e, link, &t, slice, 64)
		cr_assert_fail("nothing is in it");
	}
	for (int i = 0; i < 100; i++)
		add(&t, i);
	for (uint32_t slice = 0; slice < 64; slice++) {
		TABLE_EACH_IN(e, link, &t, slice, 64)
		{
			cr_expect_eq(e->link.hash % 64, slice);
			seen[e->value]++;
		}
		for (int i = 100 + 14 * (int)slice; i < 114 + 14 * (int)slice; i++)
			add(&t, i);
	}
	for (int i = 0; i < 100; i++)
		cr_expect_eq(seen[i], 1, "%d: %u", i, seen[i]);
	for (int i = 100; i < 1000; i++)
		cr_expect_leq(seen[i], 1, "%d: %u", i, seen[i]);
	drop_all(&t);
}

Test(base_table, entries_with_one_hash_are_told_apart_by_their_keys)
{
	struct table t = {0};
	struct entry v[40] = {0};
	struct entry *e;
	int n = 0;

	for (int i = 0; i < 40; i++) {
		v[i].value = i;
		table_add(&t, &v[i].link, i % 2 ? 7 : 7 + 64);
	}
	TABLE_WITH_HASH (e, link, &t, 7) {
		cr_expect_eq(e->value % 2, 1);
		n++;
	}
	cr_expect_eq(n, 20);
	for (int i = 0; i < 40; i++)
		table_remove(&t, &v[i].link);
	cr_expect_null(table_first(&t, 7));
	table_fini(&t);
}
