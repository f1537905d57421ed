/* SPDX-License-Identifier: MIT */
/*
 * What somebody without the sealing key does to a backup: R and the bytes of one; P and patches of
 * one of ours, of four bytes (two for the place, one for the value); or E and edits of its rows, of
 * three bytes (which, and two numbers). It is refused and leaves nothing, or it holds what it held.
 * Accepted unverified, it opens again.
 */
#include "config.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tec/store/db.h"
#include "tec/base/file.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/seal.h"
#include "tec/base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

#define FIRST 1001
#define LAST  1012
#define KEPT  1u << 20 /* bytes of a file */

static char dir[] = "/dev/shm/tec-fuzz-backup-XXXXXX"; /* a disk would be the slowest part */
static char *past, *whole, *edited, *store, *lock;     /* paths */
static struct secret *key;
static char *bytes, *rows; /* of whole */
static size_t len;

static void drop_line(enum log_level level, const char *line, void *arg)
{
}

static void end(void)
{
	const char *const files[] = {past, whole, edited, store, lock};

	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		(void)unlink(files[i]);
	(void)rmdir(dir);
}

static struct store_db *open_db(void)
{
	struct err err = ERR_INIT;
	struct store_db *db = store_db_open(&(const struct store_db_conf){dir, NULL, key}, &err);

	if (!db)
		DIE("what was restored does not open: %s", err.text);
	return db;
}

/* ---- a store */

static void write_one(struct store_db *db, const char *resource, const char *name,
	enum store_event event, bool sealed)
{
	const char *const owners[] = {"u"};
	struct err err = ERR_INIT;
	cleanup_free char *body = xasprintf("{\"n\":%d}", (int)store_db_rv(db));
	const struct store_version v = {.key = {resource, "ns", name},
		.uid = name,
		.rv = store_db_rv(db) + 1,
		.prev = event == STORE_ADDED ? 0 : store_db_rv(db),
		.event = event,
		.at_s = 1,
		.meta = "",
		.body = body,
		.len = strlen(body),
		.sealed = sealed};

	if (store_db_begin(db, &err) < 0 || store_db_write(db, &v, owners, 1, &err) < 0 ||
		store_db_commit(db, &err) < 0)
		DIE("not written: %s", err.text);
}

static void back_up(struct store_db *db, const char *path)
{
	struct err err = ERR_INIT;
	struct store_db_backup *b = store_db_backup_start(db, path, &err);
	int rc = b ? 1 : -1;

	while (rc > 0)
		rc = store_db_backup_step(b, &err);
	store_db_backup_free(b);
	if (rc < 0)
		DIE("no backup: %s", err.text);
}

static bool note(void *arg, const struct store_version *v)
{
	strbuf_addf(arg, "%s/%s %s %llu %s\n", v->key.resource, v->key.name, v->uid,
		(unsigned long long)v->rv, v->body);
	return true;
}

/* All current rows as text; the caller frees. */
static char *rows_of(struct store_db *db)
{
	static const char *const resources[] = {"keys", "machines", "secrets", "table/x"};
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	struct err err = ERR_INIT;

	for (size_t i = 0; i < ARRAY_LEN(resources); i++)
		if (store_db_scan(db, &(const struct store_scan){.resource = resources[i]}, note,
			    &text, &err) < 0)
			DIE("not read: %s", err.text);
	strbuf_addf(&text, "%llu\n", (unsigned long long)store_db_count(db, NULL, NULL));
	return xstrdup(strbuf_str(&text));
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct err err = ERR_INIT;
	struct store_db *db;

	log_capture(drop_line, NULL);
	if (!mkdtemp(dir))
		DIE("%s", dir);
	past = xasprintf("%s/past", dir);
	whole = xasprintf("%s/whole", dir);
	edited = xasprintf("%s/edited", dir);
	store = xasprintf("%s/store.db", dir);
	lock = xasprintf("%s/lock", dir);
	(void)atexit(end);
	key = secret_new_random(SEAL_KEY_LEN);
	db = open_db();
	write_one(db, "machines", "m", STORE_ADDED, false);
	write_one(db, "machines", "m", STORE_MODIFIED, false);
	write_one(db, "table/x", "r", STORE_ADDED, true);
	write_one(db, "table/x", "r", STORE_MODIFIED, true);
	write_one(db, "keys", "gone", STORE_ADDED, false);
	write_one(db, "keys", "gone", STORE_DELETED, false);
	back_up(db, past);
	write_one(db, "secrets", "s", STORE_ADDED, true);
	write_one(db, "keys", "k", STORE_ADDED, false);
	write_one(db, "machines", "n", STORE_ADDED, false);
	write_one(db, "machines", "n", STORE_MODIFIED, false);
	write_one(db, "keys", "l", STORE_ADDED, false);
	write_one(db, "keys", "l", STORE_DELETED, false);
	back_up(db, whole);
	rows = rows_of(db);
	store_db_close(db);
	(void)unlink(store);
	bytes = file_read(whole, KEPT, &len, NULL, &err);
	if (!bytes)
		DIE("%s", err.text);
	return 0;
}

/* ---- what is done to it */

static void put_file(const void *text, size_t n)
{
	struct err err = ERR_INIT;

	if (file_replace(edited, text, n, 0600, &err) < 0)
		DIE("%s", err.text);
}

static void patch(const uint8_t *data, size_t size)
{
	cleanup_free char *copy = xmemdup(bytes, len);

	for (; size >= 4; data += 4, size -= 4)
		copy[((size_t)data[0] << 16 | (size_t)data[1] << 8 | data[2]) % len] =
			(char)data[3];
	put_file(copy, len);
}

/* ?1, ?2: numbers of versions, or any. */
static const char *const edits[] = {
	"DELETE FROM version WHERE rv=?1",
	"DELETE FROM object WHERE rv=?1",
	"UPDATE object SET rv=?2 WHERE rv=?1",
	"UPDATE OR REPLACE version SET rv=?2 WHERE rv=?1",
	"INSERT OR REPLACE INTO version SELECT * FROM past.version WHERE rv=?1",
	"INSERT OR REPLACE INTO object SELECT * FROM past.object WHERE rv=?1",
	"INSERT OR REPLACE INTO object SELECT resource,ns,name,rv,uid FROM version WHERE rv=?1",
	"UPDATE version SET body=(SELECT body FROM version WHERE rv=?2) WHERE rv=?1",
	"UPDATE version SET tag=(SELECT tag FROM version WHERE rv=?2) WHERE rv=?1",
	"UPDATE version SET name=(SELECT name FROM version WHERE rv=?2) WHERE rv=?1",
	"UPDATE version SET uid=(SELECT uid FROM version WHERE rv=?2) WHERE rv=?1",
	"UPDATE version SET type=?2%5, prev=?2 WHERE rv=?1",
	"UPDATE version SET head=?2-1005, sealed=?2%3 WHERE rv=?1",
	"UPDATE version SET at=?2, meta='{}' WHERE rv=?1",
	"UPDATE OR REPLACE object SET name='m', resource='machines' WHERE rv=?1",
	"UPDATE OR REPLACE object SET uid='m' WHERE rv=?1",
	"DELETE FROM owner WHERE (uid,name) IN (SELECT uid,name FROM owner LIMIT 1 OFFSET ?1%8)",
	"DELETE FROM owner WHERE name IN (SELECT name FROM version WHERE rv=?1)",
	"INSERT OR REPLACE INTO owner SELECT 'x' || ?2,resource,ns,name FROM version WHERE rv=?1",
	"DELETE FROM setting WHERE name=(SELECT name FROM setting LIMIT 1 OFFSET ?1%8)",
	"INSERT OR REPLACE INTO setting SELECT * FROM past.setting LIMIT 1 OFFSET ?1%8",
	"UPDATE setting SET value=(SELECT value FROM setting LIMIT 1 OFFSET ?2%8) WHERE "
	"name=(SELECT name FROM setting LIMIT 1 OFFSET ?1%8)",
	"INSERT OR REPLACE INTO setting VALUES('rv', ?2)",
	"INSERT OR REPLACE INTO setting VALUES('oldest', ?2)",
	"PRAGMA user_version=1",
	"PRAGMA user_version=2",
	"CREATE TRIGGER t AFTER INSERT ON version BEGIN DELETE FROM object WHERE rv=1008; END",
	"CREATE UNIQUE INDEX i ON object(uid)",
	"DROP INDEX owner_of",
	"VACUUM",
};

static void edit(const uint8_t *data, size_t size)
{
	cleanup_free char *attach = xasprintf("ATTACH '%s' AS past", past);
	sqlite3 *sql = NULL;

	put_file(bytes, len);
	if (sqlite3_open(edited, &sql) != SQLITE_OK ||
		sqlite3_exec(sql, attach, NULL, NULL, NULL) != SQLITE_OK)
		DIE("%s", sqlite3_errmsg(sql));
	for (unsigned i = 0; size >= 3 && i < 32; data += 3, size -= 3, i++) {
		sqlite3_stmt *st = NULL;

		(void)sqlite3_prepare_v2(sql, edits[data[0] % ARRAY_LEN(edits)], -1, &st, NULL);
		(void)sqlite3_bind_int(st, 1, FIRST + data[1] % (LAST - FIRST + 2));
		(void)sqlite3_bind_int(st, 2, FIRST + data[2] % (LAST - FIRST + 2));
		(void)sqlite3_step(st); /* many are refused */
		(void)sqlite3_finalize(st);
	}
	(void)sqlite3_exec(sql, "DETACH past", NULL, NULL, NULL);
	if (sqlite3_close(sql) != SQLITE_OK)
		DIE("the edited backup is still in use");
}

static void check_restore(bool accept_unverified)
{
	struct err err = ERR_INIT;
	int rc = store_db_backup_restore(edited, dir, key, accept_unverified, &err);

	if (rc < 0 && (!err_is_set(&err) || access(store, F_OK) == 0))
		DIE("what was refused leaves something");
	if (rc == 0) {
		struct store_db *db = open_db();
		cleanup_free char *have = rows_of(db);

		if (!accept_unverified && !str_eq(have, rows))
			DIE("the restored rows are others:\n%s", have);
		if (!store_db_restored_s(db))
			DIE("a restored store that does not say so");
		write_one(db, "keys", "new", STORE_ADDED, false);
		store_db_close(db);
		store_db_close(open_db());
		(void)unlink(store);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0 || size > KEPT)
		return 0;
	switch (data[0]) {
	case 'R':
		put_file(data + 1, size - 1);
		break;
	case 'P':
		patch(data + 1, size - 1);
		break;
	default:
		edit(data + 1, size - 1);
		break;
	}
	check_restore(false);
	check_restore(true);
	return 0;
}
