/* SPDX-License-Identifier: MIT */
/* Which rows are current is what was written last, whatever is done to the file without the key. */
#include "config.h"

#include <stdlib.h>

#include "store/store_objects.h"
#include "tec/store/gc.h"
#include "tec/store/rows.h"

TestSuite(store_db_check, .init = store_dir_up, .fini = store_objects_down);

static void take_away(const struct store_key *k)
{
	json_object_put(store_gc_delete(s, k, STORE_POLICY_DEFAULT));
}

#define OWNED "{\"metadata\":{\"ownerReferences\":[{\"uid\":\"u\"}]},\"spec\":%d}"

/* a: 1001, 1002, an owner since; b: 1003, 1005; gone: 1004, deleted at 1008. A Secret, a row. */
static void fill(void)
{
	cleanup_free char *path = in_dir("store.db");
	struct err err = ERR_INIT;

	(void)unlink(path);
	open_store();
	put(A_THING("a"), "{\"spec\":1}");
	put(A_THING("a"), "{\"metadata\":{\"ownerReferences\":[{\"uid\":\"u\"},{\"uid\":\"u\"}]},"
			  "\"spec\":2}");
	put(A_THING("b"), "{\"spec\":1}");
	put(A_THING("gone"), "{}");
	commit();
	put(A_THING("b"), "{\"spec\":2}");
	put(A_SECRET("s"), "{\"spec\":2}");
	cr_assert_eq(store_rows_set(s, "table/x", "r", "1", 1, &err), 0);
	commit();
	take_away(A_THING("gone"));
	commit();
	close_store();
}

#define PUT_BACK(name, from, to)                                                                   \
	"DELETE FROM version WHERE name='" name "' AND rv>" #to ";"                                \
	"UPDATE object SET rv=" #to " WHERE name='" name "' AND rv=" #from
#define AWAY(name)                                                                                 \
	"DELETE FROM version WHERE name='" name "'; DELETE FROM object WHERE name='" name "'"

static const struct {
	const char *what, *sql;
} edits[] = {
	{"an object put back", PUT_BACK("b", 1005, 1003)},
	{"an object put back to one without its owner",
		PUT_BACK("a", 1002, 1001) "; DELETE FROM owner"},
	{"an object that is gone", AWAY("b")},
	{"a Secret that is gone", AWAY("s")},
	{"a row that is gone", AWAY("r")},
	{"a deletion undone",
		"DELETE FROM version WHERE rv=1008; INSERT INTO object SELECT resource,ns,name,rv,"
		"uid FROM version WHERE rv=1004"},
	{"an owner more",
		"INSERT INTO owner SELECT 'x',resource,ns,name FROM object WHERE name='b'"},
	{"an owner less", "DELETE FROM owner"},
	{"another time", "UPDATE version SET at=at-1 WHERE rv=1005"},
	{"the last version less", "DELETE FROM version WHERE rv IN (1004, 1008)"},
	{"a later version", "INSERT OR REPLACE INTO setting VALUES('rv', '2000')"},
	{"no record", "DELETE FROM setting WHERE name='rows'"},
	{"half a record", "UPDATE setting SET value=substr(value,1,40) WHERE name='rows'"},
	{"another record", "UPDATE setting SET value=randomblob(length(value)) WHERE name='rows'"},
	{"no key of digests", "DELETE FROM setting WHERE name='key-rows'"},
	{"another key of digests",
		"UPDATE setting SET value=(SELECT value FROM setting WHERE name='key') "
		"WHERE name='key-rows'"},
	{"nothing at all", "DELETE FROM version; DELETE FROM object; DELETE FROM owner"},
};

Test(store_db_check, another_set_of_rows_is_refused_and_taken_on_demand)
{
	cleanup_free char *path = in_dir("store.db"), *backup = in_dir("backup");

	for (size_t i = 0; i < ARRAY_LEN(edits); i++) {
		struct err err = ERR_INIT;

		fill();
		(void)sql(edits[i].sql);
		cr_expect_null(store_open(NULL, &err), "%s", edits[i].what);
		cr_expect_eq(err.kind, ERR_INVALID);
		cr_expect(strstr(err.text, "rows were deleted, added or replaced"), "%s: %s",
			edits[i].what, err.text);
		cr_expect(strstr(err.text, "--accept-unverified"), "%s", err.text);
		err_clear(&err);
		cr_assert_eq(rename(path, backup), 0);
		cr_expect_eq(store_db_backup_restore(backup, dir, key, false, &err), -1);
		cr_expect(strstr(err.text, "rows were deleted, added or replaced"), "%s", err.text);
		cr_expect_neq(access(path, F_OK), 0);
		err_clear(&err);
		cr_expect_eq(store_db_backup_restore(backup, dir, key, true, &err), 0, "%s: %s",
			edits[i].what, err.text);
		open_store();
		cr_expect(store_db_just_restored(store_objects_db(s)));
		put(A_THING("a"), "{\"spec\":3}");
		commit();
		close_store();
		open_store();
		close_store();
	}
}

Test(store_db_check, an_earlier_record_is_refused)
{
	cleanup_free char *past = in_dir("past"), *path = in_dir("store.db"), *attach = NULL;
	struct err err = ERR_INIT;

	fill();
	cr_assert_eq(system((attach = xasprintf("cp %s %s", path, past))), 0);
	open_store();
	put(A_THING("b"), "{\"spec\":3}");
	commit();
	close_store();
	free(attach);
	attach = xasprintf("ATTACH '%s' AS past; UPDATE main.setting SET value=(SELECT value FROM "
			   "past.setting WHERE name='rows') WHERE name='rows'",
		past);
	(void)sql(attach);
	cr_expect_null(store_open(NULL, &err));
	cr_expect(strstr(err.text, "rows were deleted"), "%s", err.text);
}

/* It would do after the start what cannot be done before. */
Test(store_db_check, what_would_change_rows_later_is_refused)
{
	static const char *const tables[] = {
		"CREATE TRIGGER t AFTER INSERT ON version BEGIN UPDATE object SET rv=1003 "
		"WHERE name='b'; END",
		"CREATE UNIQUE INDEX i ON object(rv)",
		"CREATE VIEW v AS SELECT * FROM object",
		"CREATE TABLE t(x)",
		"DROP INDEX object_uid; CREATE INDEX object_uid ON object(uid COLLATE NOCASE)",
		"ALTER TABLE object ADD COLUMN x DEFAULT 1",
	};
	cleanup_free char *path = in_dir("store.db"), *backup = in_dir("backup");

	for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
		struct err err = ERR_INIT;

		fill();
		(void)sql(tables[i]);
		cr_expect_null(store_open(NULL, &err), "%s", tables[i]);
		cr_expect(strstr(err.text, "its tables are not those"), "%s", err.text);
		err_clear(&err);
		cr_assert_eq(rename(path, backup), 0);
		cr_expect_eq(store_db_backup_restore(backup, dir, key, true, &err), -1);
		cr_expect(strstr(err.text, "its tables are not those"), "%s", err.text);
	}
}

Test(store_db_check, history_does_not_count)
{
	fill();
	(void)sql("DELETE FROM version WHERE rv IN (1001, 1003, 1004)");
	open_store();
}

static int64_t created_s(const struct store_key *k)
{
	cleanup_json struct json_object *o = store_objects_get(s, k);
	int64_t us = 0;

	cr_assert_eq(clock_parse(json_get_str(o, "metadata/creationTimestamp"), &us), 0);
	return us / 1000000;
}

Test(store_db_check, a_restored_store_says_when)
{
	cleanup_free char *path = in_dir("store.db"), *backup = in_dir("backup");
	int64_t before = clock_wall_s(), first;
	struct err err = ERR_INIT;

	fill();
	open_store();
	cr_expect_eq(store_db_restored_s(store_objects_db(s)), 0);
	cr_expect_not(store_db_just_restored(store_objects_db(s)));
	close_store();
	cr_assert_eq(rename(path, backup), 0);
	cr_assert_eq(store_db_backup_restore(backup, dir, key, false, &err), 0, "%s", err.text);
	for (int i = 0; i < 2; i++) {
		open_store();
		first = store_db_restored_s(store_objects_db(s));
		cr_expect(first >= before && first <= clock_wall_s());
		cr_expect(store_db_just_restored(store_objects_db(s)));
		close_store();
	}
	open_store();
	put(A_THING("c"), "{}");
	commit();
	cr_expect_gt(created_s(A_THING("c")), first);
	cr_expect_leq(created_s(A_THING("b")), first);
	close_store();
	open_store();
	cr_expect_eq(store_db_restored_s(store_objects_db(s)), first);
	cr_expect_not(store_db_just_restored(store_objects_db(s)));
}

static void compact(void)
{
	struct store_db *db = store_objects_db(s);
	struct err err = ERR_INIT;

	cr_assert_eq(store_db_begin(db, &err), 0);
	cr_assert_eq(store_db_compact(db, store_db_rv(db), &err), 0, "%s", err.text);
	cr_assert_eq(store_db_commit(db, &err), 0, "%s", err.text);
}

/* Of an object that was made while the clock was wrong, and changed since. */
Test(store_db_check, no_restored_object_is_younger_than_the_restore)
{
	cleanup_free char *path = in_dir("store.db"), *backup = in_dir("backup");
	const int64_t wrong_s = clock_wall_s() + 86400;
	struct err err = ERR_INIT;

	open_store();
	clock_fake_start(1000, wrong_s);
	put(A_THING("a"), "{}");
	commit();
	clock_fake_stop();
	put(A_THING("a"), "{\"spec\":1}");
	commit();
	compact();
	close_store();
	cr_assert_eq(rename(path, backup), 0);
	cr_assert_eq(store_db_backup_restore(backup, dir, key, false, &err), 0, "%s", err.text);
	open_store();
	cr_expect_eq(created_s(A_THING("a")), wrong_s);
	put(A_THING("b"), "{}");
	commit();
	cr_expect_eq(store_db_restored_s(store_objects_db(s)), wrong_s);
	cr_expect_eq(created_s(A_THING("b")), wrong_s + 1);
}

/* ---- what the operator itself does never changes the set behind its back */

static void any_write(unsigned *seed)
{
	struct err err = ERR_INIT;
	unsigned r = (unsigned)rand_r(seed);
	char name[16];

	snprintf(name, sizeof(name), "n%u", r / 16 % 12);
	switch (r % 8) {
	case 0:
		take_away(A_THING(name));
		break;
	case 1:
		put(A_SECRET(name), "{\"spec\":1}");
		put(A_SECRET(name), "{\"spec\":2}");
		break;
	case 2:
		take_away(A_SECRET(name));
		break;
	case 3:
		cr_assert_eq(store_rows_set(s, "table/x", name, &r, sizeof(r), &err), 0);
		break;
	case 4:
		(void)!store_rows_remove(s, "table/x", name, &err);
		break;
	case 5:
		put(A_THING(name),
			"{\"metadata\":{\"ownerReferences\":[{\"uid\":\"u\"},{\"uid\":\"u\"},"
			"{\"uid\":\"w\"}]}}");
		break;
	default: {
		cleanup_free char *text = xasprintf(OWNED, (int)r);

		put(A_THING(name), text);
	}
	}
}

/* As when the disk is full. */
static void undo_a_write(unsigned i)
{
	struct store_db *db = store_objects_db(s);
	const char *const owners[] = {"u"};
	struct err err = ERR_INIT;
	char name[16];
	const struct store_version v = {.key = *A_THING(name),
		.uid = "u",
		.rv = store_db_rv(db) + 1,
		.event = STORE_MODIFIED,
		.meta = "",
		.body = "{}",
		.len = 2};

	snprintf(name, sizeof(name), "n%u", i);
	cr_assert_eq(store_db_begin(db, &err), 0);
	cr_assert_eq(store_db_write(db, &v, owners, 1, &err), 0, "%s", err.text);
	store_db_rollback(db);
}

Test(store_db_check, a_store_opens_after_any_writes)
{
	struct err err = ERR_INIT;
	unsigned seed = 5;

	open_store();
	for (unsigned turn = 0; turn < 300; turn++) {
		for (unsigned i = 0; i < 1 + turn % 7; i++)
			any_write(&seed);
		commit();
		undo_a_write(turn % 12);
		if (turn % 23 == 7)
			compact();
		if (turn % 31 == 9)
			cr_assert_eq(
				store_db_rekey(store_objects_db(s), key, &err), 0, "%s", err.text);
		if (turn % 13 == 3)
			(void)!store_db_reseal(store_objects_db(s), 2, 1u << 20, &err);
		if (turn % 5 == 0) {
			close_store();
			open_store();
		}
	}
}
