/* SPDX-License-Identifier: MIT */
/*
 * A database of an earlier program: its tables become those of this one in one transaction, which
 * may fail, or be killed, at each write.
 */
#include "config.h"

#include <fcntl.h>

#include "store/fault_store.h"

TestSuite(store_db_open, .init = fault_store_up, .fini = fault_store_down, .timeout = 300);

/* Of the first version, in which all that a version of the tables adds is undone. */
static const char to_1[] = "DROP INDEX version_of;"
			   "CREATE UNIQUE INDEX version_of ON version(resource, ns, name, rv);"
			   "CREATE INDEX object_ns ON object(ns); PRAGMA user_version=1";

/* A store that version 0.2.0 wrote: ns/a twice, ns/s, ns/gone, other/a; gone was deleted. */
static void fill(void)
{
	cleanup_free char *file = xasprintf("%s/store/store-0.2.0.sql", getenv("TEST_DATA"));
	cleanup_free char *path = in_dir("store.db"), *text = NULL;
	size_t len = 0;

	text = slurp(file, &len);
	cr_assert_not_null(text, "%s", file);
	(void)unlink(path);
	memset(secret_bytes(key), 'k', SEAL_KEY_LEN);
	(void)sql(text);
}

static void fill_1(void)
{
	fill();
	(void)sql(to_1);
}

static bool note_body(void *arg, const struct store_version *v)
{
	strbuf_addf(arg, "%s", v->body);
	return true;
}

/* Opens it; everything is there, and found. */
static void expect_filled(void)
{
	cleanup_strbuf struct strbuf past = STRBUF_INIT;
	struct store_db *db;
	struct err err = ERR_INIT;

	open_store(NULL);
	db = store_objects_db(s);
	cr_assert_eq(store_db_get(db, A_THING("a"), 1001, note_body, &past, &err), 1);
	cr_expect(strstr(strbuf_str(&past), "\"spec\":1"), "%s", strbuf_str(&past));
	cleanup_json struct json_object *o = store_objects_get(s, A_SECRET("s"));
	cr_expect_eq(json_get_int(o, "spec", 0), 3);
	close_store();
	cr_expect_eq(sql("PRAGMA user_version"), 3);
	cr_expect_eq(sql("SELECT count(*) FROM sqlite_master WHERE type='index' AND sql<>'' AND "
			 "(name='object_ns' OR sql LIKE '%UNIQUE%')"),
		0);
	cr_expect_eq(
		sql("SELECT count(*) FROM pragma_integrity_check WHERE integrity_check='ok'"), 1);
}

Test(store_db_open, an_earlier_database_is_migrated)
{
	fill_1();
	cr_assert_eq(sql("PRAGMA user_version"), 1);
	expect_filled();
	expect_filled();
}

/* True: it was opened before the AT-th write. */
static bool is_opened_before(unsigned at)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		struct err err = ERR_INIT;

		fault_vfs_set(FAULT_KILL, at, false);
		_exit(store_open(FAULT_VFS, &err) ? 0 : 1);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0,
		"write %u: %x", at, status);
	return !WIFSIGNALED(status);
}

Test(store_db_open, a_migration_survives_kill_9_at_every_write)
{
	unsigned at = 1;

	for (fill_1(); !is_opened_before(at); at++) {
		expect_filled();
		fill_1();
	}
	cr_expect_gt(at, 5, "only %u writes", at);
}

Test(store_db_open, a_migration_that_fails_is_undone)
{
	static const enum fault_what whats[] = {FAULT_FULL, FAULT_WRITE, FAULT_HALF};
	unsigned failed = 0;

	fill_1();
	for (unsigned n = 1; n <= 12; n++) {
		for (size_t i = 0; i < ARRAY_LEN(whats); i++) {
			struct err err = ERR_INIT;
			struct store_db *db;

			fault_vfs_set(whats[i], n, false);
			db = store_open(FAULT_VFS, &err);
			cr_expect(db || *err.text);
			failed += !db;
			fault_vfs_set(FAULT_NONE, 0, false);
			store_db_close(db);
			expect_filled();
			fill_1();
		}
	}
	cr_expect_gt(failed, 9, "only %u", failed);
}

Test(store_db_open, what_is_damaged_is_not_migrated)
{
	cleanup_free char *path = in_dir("store.db");
	struct err err = ERR_INIT;
	int64_t root;
	int fd;

	fill_1();
	root = sql("SELECT rootpage FROM sqlite_master WHERE name='owner'");
	fd = open(path, O_WRONLY | O_CLOEXEC);
	cr_assert_eq(pwrite(fd, "\xff\xff\xff\xff", 4, (root - 1) * 4096 + 3), 4);
	close(fd);
	cr_expect_null(store_open(NULL, &err));
	cr_expect(strstr(err.text, "damaged"), "%s", err.text);
	cr_expect(strstr(err.text, "restore a backup"), "%s", err.text);
	cr_expect_eq(sql("PRAGMA user_version"), 1);
}

/* ---- of version 0.2.0: its rows can be another set than was written */

Test(store_db_open, a_database_of_0_2_0_is_taken_as_restored)
{
	int64_t before = clock_wall_s();
	struct store_db *db;
	struct err err = ERR_INIT;

	for (int i = 0; i < 2; i++) {
		fill();
		db = store_open(NULL, &err);
		cr_assert_not_null(db, "%s", err.text);
		cr_expect_geq(store_db_restored_s(db), before);
		cr_expect(store_db_just_restored(db));
		store_db_close(db);
	}
	expect_filled();
	open_store(NULL);
	cr_expect_geq(store_db_restored_s(store_objects_db(s)), before);
	json_object_put(store_objects_put(s, A_THING("b"), json_of("{}")));
	cr_assert_eq(store_objects_commit(s, &err), 0, "%s", err.text);
	close_store();
	open_store(NULL);
	cr_expect_not(store_db_just_restored(store_objects_db(s)));
}

Test(store_db_open, what_is_younger_than_the_clock_was_restored_too)
{
	struct err err = ERR_INIT;
	struct store_db *db;

	fill();
	(void)sql("UPDATE version SET at=9000000000 WHERE rv=1005");
	db = store_open(NULL, &err);
	cr_assert_not_null(db, "%s", err.text);
	cr_expect_eq(store_db_restored_s(db), 9000000000);
	store_db_close(db);
	fill();
	(void)sql("UPDATE version SET at=9223372036854775807 WHERE rv=1001");
	db = store_open(NULL, &err);
	cr_assert_not_null(db, "%s", err.text);
	cr_expect_eq(store_db_restored_s(db), 253402300798);
	store_db_close(db);
}

Test(store_db_open, rows_of_0_2_0_are_not_those_of_a_later_version)
{
	cleanup_free char *path = in_dir("store.db"), *past = in_dir("past"), *attach = NULL;
	struct err err = ERR_INIT;

	fill();
	cr_assert_eq(rename(path, past), 0);
	fill();
	expect_filled();
	attach = xasprintf("ATTACH '%s' AS past; INSERT OR REPLACE INTO main.version "
			   "SELECT * FROM past.version WHERE rv=1003",
		past);
	(void)sql(attach);
	cr_expect_null(store_open(NULL, &err));
	cr_expect(strstr(err.text, "not what was written"), "%s", err.text);
}

/* With the record of the set away, as a store of before. */
Test(store_db_open, a_store_does_not_pass_for_an_earlier_one)
{
	struct err err = ERR_INIT;

	for (int version = 1; version <= 2; version++) {
		cleanup_free char *away = xasprintf(
			"DELETE FROM setting WHERE name LIKE '%%rows'; PRAGMA user_version=%d",
			version);

		fill();
		expect_filled();
		(void)sql(version == 1 ? to_1 : "SELECT 1");
		(void)sql(away);
		err_clear(&err);
		cr_expect_null(store_open(NULL, &err));
		cr_expect(strstr(err.text, "damaged"), "%s", err.text);
	}
}
