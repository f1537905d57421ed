/* SPDX-License-Identifier: MIT */
/*
 * Opens a database file: lock, tables, version counters. A file is refused if another process uses
 * it, a newer version wrote it, its schema is not exactly ours, or it is damaged. db_key.c and
 * db_check.c then check its key and its rows.
 */
#include "config.h"

#include "tec/apistore/db.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "db_internal.h"
#include "tec/base/clock.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"

#define APPLICATION_ID 0x74656331 /* "tec1" */
#define FIRST_RV       1000

/* migrations[i] turns tables of version i into version i + 1. DB_VERSION has the same tables as the
 * version before; db_convert() rewrites its rows. */
static const char *const migrations[] = {
	"CREATE TABLE setting(name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;"
	"CREATE TABLE version(rv INTEGER PRIMARY KEY, type INTEGER NOT NULL, resource TEXT NOT NULL,"
	" ns TEXT NOT NULL, name TEXT NOT NULL, uid TEXT NOT NULL, prev INTEGER NOT NULL,"
	" at INTEGER NOT NULL, head INTEGER NOT NULL, meta TEXT NOT NULL, sealed INTEGER NOT NULL,"
	" body BLOB NOT NULL, tag BLOB NOT NULL);"
	"CREATE UNIQUE INDEX version_of ON version(resource, ns, name, rv);"
	"CREATE TABLE object(resource TEXT NOT NULL, ns TEXT NOT NULL, name TEXT NOT NULL,"
	" rv INTEGER NOT NULL, uid TEXT NOT NULL, PRIMARY KEY(resource, ns, name)) WITHOUT ROWID;"
	"CREATE INDEX object_uid ON object(uid);"
	"CREATE INDEX object_ns ON object(ns);"
	"CREATE TABLE owner(uid TEXT NOT NULL, resource TEXT NOT NULL, ns TEXT NOT NULL,"
	" name TEXT NOT NULL, PRIMARY KEY(uid, resource, ns, name)) WITHOUT ROWID;"
	"CREATE INDEX owner_of ON owner(resource, ns, name);",
	/* SQLite appends the rowid, which is rv, to each index. No query needs the namespace
	 * alone. */
	"DROP INDEX version_of; CREATE INDEX version_of ON version(resource, ns, name);"
	"DROP INDEX object_ns;",
};

/* Lock the directory for this process, before a database in it is opened or restored. The kernel
 * releases the lock when the process dies. */
int db_lock(const char *dir, struct err *err)
{
	cleanup_free char *path = xasprintf("%s/lock", dir);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return err_set_errno(err, ERR_TRANSIENT, errno, "%s", log_esc(path));
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd;
	if (errno == EWOULDBLOCK)
		(void)err_set(err, ERR_CONFLICT,
			"%s is in use by another process, which holds %s; stop it first",
			log_esc(dir), log_esc(path));
	else
		(void)err_set_errno(err, ERR_TRANSIENT, errno, "%s", log_esc(path));
	(void)close(fd);
	return -1;
}

/* Create the tables of a new database or migrate older ones, in one transaction. A newer version is
 * refused. */
static int migrate(struct apistore_db *db, struct err *err)
{
	const int64_t tables_version = (int64_t)ARRAY_LEN(migrations);
	int64_t version = 0, id = 0, tables = 0;
	char text[96];

	if (db_number(db, "PRAGMA application_id", &id, err) < 0 ||
		db_number(db, "PRAGMA user_version", &version, err) < 0 ||
		db_number(db, "SELECT count(*) FROM sqlite_master", &tables, err) < 0)
		return -1;
	if (tables > 0 && id != APPLICATION_ID)
		return err_set(err, ERR_INVALID,
			"the database was made by another program, or is damaged: restore a backup");
	if (version < 0 || version > DB_VERSION)
		return err_set(err, ERR_INVALID,
			"the database has version %lld, but this program supports at most %lld: start the "
			"newer program that wrote it, or restore a backup",
			(long long)version, (long long)DB_VERSION);
	db->version = version;
	if (version >= tables_version)
		return 0;
	if (version > 0 && db_check_pages(db, err) < 0)
		return -1; /* leave a damaged file unchanged */
	if (db_exec(db, "BEGIN IMMEDIATE", "migrate", err) < 0)
		return -1;
	/* Run the migrations one after the other, all in the same transaction as the new version
	 * number. */
	for (int64_t v = version; v < tables_version; v++)
		if (db_exec(db, migrations[v], "migrate", err) < 0)
			return -1; /* closing the database rolls back */
	(void)snprintf(text, sizeof(text), "PRAGMA application_id=%d; PRAGMA user_version=%lld",
		APPLICATION_ID, (long long)tables_version);
	if (db_exec(db, text, "migrate", err) < 0 || db_exec(db, "COMMIT", "migrate", err) < 0)
		return -1;
	db->version = tables_version;
	return 0;
}

/* Return the definitions of all tables, indexes, triggers and views as one text; the caller frees
 * it. NULL: the database cannot be read. */
static char *schema_of(sqlite3 *sql)
{
	static const char all[] =
		"SELECT group_concat(type || name || tbl_name || coalesce(sql, '')) FROM "
		"(SELECT * FROM sqlite_master ORDER BY type, name)";
	sqlite3_stmt *st = NULL;
	char *text = NULL;

	if (sqlite3_prepare_v2(sql, all, -1, &st, NULL) == SQLITE_OK &&
		sqlite3_step(st) == SQLITE_ROW)
		text = xstrdup((const char *)sqlite3_column_text(st, 0));
	sqlite3_finalize(st);
	return text;
}

/* Compare the schema with a fresh one made in memory. An extra trigger, added from outside, would
 * change rows on our next write, and they would then be sealed as ours. */
static int check_schema(struct apistore_db *db, struct err *err)
{
	cleanup_free char *have = schema_of(db->sql), *want = NULL;
	sqlite3 *scratch = NULL;
	int rc = sqlite3_open_v2(":memory:", &scratch,
		SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);

	for (size_t i = 0; rc == SQLITE_OK && i < ARRAY_LEN(migrations); i++)
		rc = sqlite3_exec(scratch, migrations[i], NULL, NULL, NULL);
	if (rc == SQLITE_OK)
		want = schema_of(scratch);
	sqlite3_close(scratch);
	if (!want)
		return err_set(err, ERR_TRANSIENT, "open: SQLite cannot create tables in memory");
	return have && str_eq(have, want)
		       ? 0
		       : err_set(err, ERR_INVALID,
				 "the database is damaged (its tables are not those of tec-operator): restore a backup");
}

/* Read a number from the settings; *out is unchanged if there is none. */
static int read_number(struct apistore_db *db, const char *name, uint64_t *out, struct err *err)
{
	cleanup_free uint8_t *value = NULL;
	size_t len = 0;
	int rc = db_get_setting(db, name, &value, &len, err);

	if (rc <= 0)
		return rc;
	if (str_to_u64((const char *)value, INT64_MAX / 2, out) < 0) /* leaves room to count on */
		return err_set(err, ERR_INVALID,
			"the database is damaged (setting %s): restore a backup", name);
	return 0;
}

/* Restore the version counters. The settings may be ahead of the rows, after compaction, or
 * behind. */
static int read_rv(struct apistore_db *db, struct err *err)
{
	int64_t newest = 0;

	db->rv = FIRST_RV;
	db->oldest = 0;
	if (read_number(db, "rv", &db->rv, err) < 0 ||
		read_number(db, "oldest", &db->oldest, err) < 0 ||
		db_number(db, "SELECT coalesce(max(rv), 0) FROM version", &newest, err) < 0)
		return -1;
	if (newest > 0 && (uint64_t)newest > db->rv)
		db->rv = (uint64_t)newest;
	return 0;
}

/* Open and configure a database. FULL makes a commit durable when it returns; secure_delete
 * overwrites deleted content; EXCLUSIVE needs no shared memory file; trusted_schema=OFF and
 * DEFENSIVE limit what a tampered schema can do. */
int db_open_file(struct apistore_db *db, const char *path, const char *vfs, struct err *err)
{
	static const char settings[] =
		"PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
		"PRAGMA secure_delete=ON; PRAGMA temp_store=MEMORY; PRAGMA cache_size=-2048;"
		"PRAGMA cell_size_check=ON; PRAGMA wal_autocheckpoint=2000; PRAGMA trusted_schema=OFF";
	int fd;

	if (path[0] != ':') { /* create it with a mode that lets no other user read it */
		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd < 0 && errno != EROFS && errno != EACCES)
			return err_set_errno(err, ERR_TRANSIENT, errno, "%s", log_esc(path));
		if (fd >= 0)
			(void)close(fd);
	}
	if (sqlite3_open_v2(path, &db->sql,
		    SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX |
			    SQLITE_OPEN_EXRESCODE,
		    vfs) != SQLITE_OK)
		return db_failed(db, log_esc(path), err);
	(void)sqlite3_db_config(db->sql, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	if (db_exec(db, settings, "open", err) < 0 || migrate(db, err) < 0 ||
		check_schema(db, err) < 0)
		return -1;
	return read_rv(db, err);
}

/* Lock the directory, open the file, unwrap its key and verify all rows, in this order: nothing is
 * read under a key that is not the database's, and nothing is served unverified. */
struct apistore_db *apistore_db_open(const struct apistore_db_conf *conf, struct err *err)
{
	struct apistore_db *db = xcalloc(1, sizeof(*db));
	cleanup_free char *path = NULL;
	cleanup_secret struct secret *own = conf->key ? NULL : secret_new_random(SEAL_KEY_LEN);
	const struct db_verify verify = {
		.key = conf->key ? conf->key : own, .now_s = clock_wall_s()};

	db->lock_fd = -1;
	if (conf->dir) {
		path = xasprintf("%s/" DB_FILE, conf->dir);
		db->lock_fd = db_lock(conf->dir, err);
	}
	if ((conf->dir && db->lock_fd < 0) ||
		db_open_file(db, path ? path : ":memory:", conf->vfs, err) < 0 ||
		db_unlock(db, verify.key, err) < 0 || (path && db_verify(db, &verify, err) < 0)) {
		apistore_db_close(db);
		return NULL;
	}
	db->just_restored = db->restored_s && db->rv == db->restored_rv;
	return db;
}

/* Closing a database with an open transaction rolls it back. Statements that are still in use would
 * keep it open, so that is a bug. */
void apistore_db_close(struct apistore_db *db)
{
	if (!db)
		return;
	for (size_t i = 0; i < DB_N_QUERIES; i++)
		sqlite3_finalize(db->query[i]);
	if (db->sql && sqlite3_close(db->sql) != SQLITE_OK)
		DIE("database closed while in use: %s", sqlite3_errmsg(db->sql));
	if (db->lock_fd >= 0)
		(void)close(db->lock_fd);
	db_keys_fini(&db->now);
	db_keys_fini(&db->old);
	secret_free(db->set_key);
	free(db);
}
