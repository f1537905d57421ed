/* SPDX-License-Identifier: MIT */
/*
 * The key broker's rows on a disk that fails: what an admin's request was told is stored is there, byte
 * for byte, what was refused has left the value that was there before, and it works again when the
 * disk does.
 */
#include "config.h"

#include "store/fault_store.h"
#include "tec/store/rows.h"

#define TABLE "broker/repository"

enum { ROWS = 12 };

TestSuite(store_row_faults, .init = fault_store_up, .fini = fault_store_down, .timeout = 300);

static char *name_of(unsigned i)
{
	return xasprintf("default/%u/root", i);
}

/* A value of this age, and its commit; false: refused. */
static bool put(unsigned i, unsigned age)
{
	cleanup_free char *name = name_of(i), *value = xasprintf("%u of %u %0300u", age, i, i);
	struct err err = ERR_INIT;
	bool set = store_rows_set(s, TABLE, name, value, strlen(value), &err) == 0;
	struct err done = ERR_INIT;
	bool ok = store_objects_commit(s, &done) == 0 && set;

	cr_expect(ok || err_is_set(&err) || err_is_set(&done), "it says why");
	return ok;
}

/* Which age row i has; 0: there is none; -1: it cannot be read. */
static int age_of(unsigned i)
{
	cleanup_free char *name = name_of(i);
	struct err err = ERR_INIT;
	void *data = NULL;
	size_t len;
	unsigned age = 0, of = 0;

	if (store_rows_get(s, TABLE, name, &data, &len, &err) < 0)
		return err.kind == ERR_NOT_FOUND ? 0 : -1;
	cr_assert_eq(sscanf(data, "%u of %u ", &age, &of), 2);
	cr_expect(of == i && len > 300, "half a value");
	free(data);
	return (int)age;
}

static void one_call_fails(enum fault_what what)
{
	unsigned hits = 0, age = 1;
	int have[ROWS] = {0};

	for (unsigned n = 1; n <= 40; n++, age++) {
		struct err err = ERR_INIT;

		open_store(FAULT_VFS);
		fault_vfs_set(what, n, false);
		for (unsigned i = 0; i < ROWS; i++) {
			if (put(i, age))
				have[i] = (int)age;
			cr_expect_eq(age_of(i), have[i], "call %u, row %u", n, i);
		}
		hits += fault_vfs_hit();
		fault_vfs_set(FAULT_NONE, 0, false);
		(void)store_objects_trouble(s, &err);
		cr_expect(put(0, ++age), "it works again after call %u failed", n);
		have[0] = (int)age;
		close_store();
		open_store(NULL); /* integrity_check, and every row */
		for (unsigned i = 0; i < ROWS; i++)
			cr_expect_eq(age_of(i), have[i], "call %u, row %u", n, i);
		close_store();
	}
	cr_expect_gt(hits, 20, "only %u faults came", hits);
}

Test(store_row_faults, a_disk_that_is_full_refuses_and_recovers)
{
	one_call_fails(FAULT_FULL);
}

Test(store_row_faults, writes_and_syncs_that_fail_refuse_and_recover)
{
	one_call_fails(FAULT_WRITE);
}

Test(store_row_faults, half_a_write_is_none)
{
	one_call_fails(FAULT_HALF);
}

/* Nodes are still given what is stored. */
Test(store_row_faults, reads_go_on_when_nothing_can_be_written)
{
	static const enum fault_what whats[] = {FAULT_FULL, FAULT_WRITE, FAULT_READONLY};

	open_store(FAULT_VFS);
	cr_assert(put(1, 1));
	for (size_t i = 0; i < ARRAY_LEN(whats); i++) {
		fault_vfs_set(whats[i], 1, true);
		for (unsigned k = 0; k < 5; k++) {
			cleanup_free char *name = name_of(1);
			struct err err = ERR_INIT, done = ERR_INIT;

			cr_expect_not(put(2, 1));
			cr_expect_not(put(1, 2));
			if (store_rows_remove(s, TABLE, name, &err) == 0)
				cr_expect_eq(store_objects_commit(s, &err), -1);
			else
				cr_expect_eq(store_objects_commit(s, &done), -1);
			cr_expect_eq(age_of(1), 1);
			cr_expect_eq(age_of(2), 0);
		}
		fault_vfs_set(FAULT_NONE, 0, false);
	}
	cr_expect(put(2, 3));
	cr_expect_eq(age_of(2), 3);
}

/* Not found would be an answer: the broker would tell a node that it has no key. */
Test(store_row_faults, reads_that_fail_are_not_absent_rows)
{
	unsigned hits = 0;

	open_store(NULL);
	for (unsigned i = 0; i < 200; i++)
		cr_assert(put(i, 1));
	close_store();
	for (unsigned n = 1; n <= 60; n++) {
		struct err err = ERR_INIT;
		struct store_db *db;

		fault_vfs_set(FAULT_READ, n, false);
		db = store_open(FAULT_VFS, &err);
		hits += fault_vfs_hit();
		if (!db) { /* refused as a whole */
			cr_expect(err_is_set(&err));
			continue;
		}
		s = store_objects_new(db, &things, NULL);
		for (unsigned i = 0; i < 200; i += 37)
			cr_expect_neq(age_of(i), 0, "call %u, row %u", n, i);
		fault_vfs_set(FAULT_NONE, 0, false);
		cr_expect_eq(age_of(150), 1);
		close_store();
	}
	cr_expect_gt(hits, 20, "%u", hits);
}

/* ---- kill -9 */

static bool is_put(unsigned age)
{
	return put(age % ROWS, age);
}

Test(store_row_faults, no_acknowledged_write_is_lost_by_kill_9)
{
	unsigned age = 1;

	for (unsigned n = 1; n <= 120; n++) {
		unsigned acknowledged = write_until_killed(is_put, age, 1 + n % 50);

		open_store(NULL);
		for (unsigned i = 0; i < acknowledged && i < ROWS; i++) {
			unsigned last = age + acknowledged - 1 - i;
			int is = age_of(last % ROWS);

			/* The one that was under way may have replaced the oldest of them. */
			cr_expect(is == (int)last || is == (int)(last + ROWS),
				"%d, not %u, in life %u", is, last, n);
		}
		age += acknowledged + 1;
		close_store();
	}
	cr_expect_gt(age, 200);
}
