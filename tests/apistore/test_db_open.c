/* SPDX-License-Identifier: MIT */
/*
 * A database of an earlier program: its tables become those of this one in one transaction, which
 * may fail, or be killed, at each write.
 */
#include "config.h"

#include <fcntl.h>
#include <sqlite3.h>

#include "apistore/fault_store.h"
#include "tec/apistore/gc.h"

TestSuite(apistore_db_open, .init = fault_store_up, .fini = fault_store_down, .timeout = 300);

/* Of the first version, in which all that a version of the tables adds is undone. */
static const char to_1[] = "DROP INDEX version_of;"
			   "CREATE UNIQUE INDEX version_of ON version(resource, ns, name, rv);"
			   "CREATE INDEX object_ns ON object(ns); PRAGMA user_version=1";

/* SQL on the closed database: the number that it gives. */
static int64_t sql(const char *text)
{
	cleanup_free char *path = in_dir("store.db");
	sqlite3_stmt *st = NULL;
	sqlite3 *db = NULL;
	int64_t n = -1;

	cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
	while (*text) {
		cr_assert_eq(sqlite3_prepare_v2(db, text, -1, &st, &text), SQLITE_OK, "%s",
			sqlite3_errmsg(db));
		if (sqlite3_step(st) == SQLITE_ROW)
			n = sqlite3_column_int64(st, 0);
		cr_assert_eq(sqlite3_finalize(st), SQLITE_OK, "%s", sqlite3_errmsg(db));
	}
	cr_assert_eq(sqlite3_close(db), SQLITE_OK);
	return n;
}

static void put(const struct apistore_key *k, const char *text)
{
	json_object_put(apistore_objects_put(s, k, json_of(text)));
}

static void fill(void)
{
	struct err err = ERR_INIT;

	open_store(NULL);
	put(A_THING("a"), "{\"spec\":1}"); /* 1001 */
	put(A_THING("a"), "{\"spec\":2}");
	put(A_SECRET("s"), "{\"spec\":3}");
	put(A_THING("gone"), "{}");
	put(&(const struct apistore_key){"things.example.io", "other", "a"}, "{}");
	json_object_put(apistore_gc_delete(s, A_THING("gone"), APISTORE_POLICY_DEFAULT));
	cr_assert_eq(apistore_objects_commit(s, &err), 0, "%s", err.text);
	close_store();
	(void)sql(to_1);
}

static bool note_body(void *arg, const struct apistore_version *v)
{
	strbuf_addf(arg, "%s", v->body);
	return true;
}

static void note_key(void *arg, const struct apistore_key *key)
{
	strbuf_addf(arg, "%s/%s;", key->resource, key->name);
}

/* Opens it; everything is there, and found. */
static void expect_filled(void)
{
	cleanup_strbuf struct strbuf inside = STRBUF_INIT, past = STRBUF_INIT;
	struct apistore_db *db;
	struct err err = ERR_INIT;

	open_store(NULL);
	db = apistore_objects_db(s);
	cr_assert_eq(apistore_db_inside(db, "ns", 9, note_key, &inside, &err), 2);
	cr_expect_str_eq(strbuf_str(&inside), "secrets/s;things.example.io/a;");
	cr_assert_eq(apistore_db_inside(db, "ns", 1, note_key, &inside, &err), 1);
	cr_assert_eq(apistore_db_inside(db, "n", 9, note_key, &inside, &err), 0);
	cr_assert_eq(apistore_db_get(db, A_THING("a"), 1001, note_body, &past, &err), 1);
	cr_expect(strstr(strbuf_str(&past), "\"spec\":1"), "%s", strbuf_str(&past));
	cleanup_json struct json_object *o = apistore_objects_get(s, A_SECRET("s"));
	cr_expect_eq(json_get_int(o, "spec", 0), 3);
	close_store();
	cr_expect_eq(sql("PRAGMA user_version"), 2);
	cr_expect_eq(sql("SELECT count(*) FROM sqlite_master WHERE type='index' AND sql<>'' AND "
			 "(name='object_ns' OR sql LIKE '%UNIQUE%')"),
		0);
	cr_expect_eq(
		sql("SELECT count(*) FROM pragma_integrity_check WHERE integrity_check='ok'"), 1);
}

Test(apistore_db_open, an_earlier_database_is_migrated)
{
	fill();
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

Test(apistore_db_open, a_migration_survives_kill_9_at_every_write)
{
	unsigned at = 1;

	for (fill(); !is_opened_before(at); at++) {
		expect_filled();
		(void)sql(to_1);
	}
	cr_expect_gt(at, 5, "only %u writes", at);
}

Test(apistore_db_open, a_migration_that_fails_is_undone)
{
	static const enum fault_what whats[] = {FAULT_FULL, FAULT_WRITE, FAULT_HALF};
	unsigned failed = 0;

	fill();
	for (unsigned n = 1; n <= 12; n++) {
		for (size_t i = 0; i < ARRAY_LEN(whats); i++) {
			struct err err = ERR_INIT;
			struct apistore_db *db;

			fault_vfs_set(whats[i], n, false);
			db = store_open(FAULT_VFS, &err);
			cr_expect(db || *err.text);
			failed += !db;
			fault_vfs_set(FAULT_NONE, 0, false);
			apistore_db_close(db);
			expect_filled();
			(void)sql(to_1);
		}
	}
	cr_expect_gt(failed, 9, "only %u", failed);
}

Test(apistore_db_open, what_is_damaged_is_not_migrated)
{
	cleanup_free char *path = in_dir("store.db");
	struct err err = ERR_INIT;
	int64_t root;
	int fd;

	fill();
	root = sql("SELECT rootpage FROM sqlite_master WHERE name='owner'");
	fd = open(path, O_WRONLY | O_CLOEXEC);
	cr_assert_eq(pwrite(fd, "\xff\xff\xff\xff", 4, (root - 1) * 4096 + 3), 4);
	close(fd);
	cr_expect_null(store_open(NULL, &err));
	cr_expect(strstr(err.text, "damaged"), "%s", err.text);
	cr_expect(strstr(err.text, "restore a backup"), "%s", err.text);
	cr_expect_eq(sql("PRAGMA user_version"), 1);
}
