/* SPDX-License-Identifier: MIT */
/*
 * One connection with prepared statements, each of which is reset before a function returns. Table
 * version holds every version of every object, and table object points to the current ones; both
 * are written in the same transaction.
 */
#include "config.h"

#include "tec/apistore/db.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "db_internal.h"
#include "tec/base/clock.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"

#define COLUMNS                                                                                    \
	"v.rv,v.type,v.resource,v.ns,v.name,v.uid,v.prev,v.at,v.head,v.meta,v.sealed,v.body,v.tag"
#define OBJECT_KEY "resource=?1 AND ns=?2 AND name=?3"

static const char *const queries[DB_N_QUERIES] = {
	[DB_BEGIN] = "BEGIN IMMEDIATE",
	[DB_COMMIT] = "COMMIT",
	[DB_ROLLBACK] = "ROLLBACK",
	[DB_INSERT_VERSION] = "INSERT INTO version(resource,ns,name,rv,type,uid,prev,at,head,meta,"
			      "sealed,body,tag) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13)",
	[DB_PUT_OBJECT] = "INSERT OR REPLACE INTO object(resource,ns,name,rv,uid) "
			  "VALUES(?1,?2,?3,?4,?5)",
	/* Writes nothing to the index of uids. */
	[DB_MOVE_OBJECT] = "UPDATE object SET rv=?4 WHERE " OBJECT_KEY " AND uid=?5",
	[DB_DROP_OBJECT] = "DELETE FROM object WHERE " OBJECT_KEY,
	[DB_DROP_SEALED] = "DELETE FROM version WHERE " OBJECT_KEY " AND sealed",
	[DB_ADD_OWNER] = "INSERT OR IGNORE INTO owner(resource,ns,name,uid) VALUES(?1,?2,?3,?4)",
	[DB_DROP_OWNERS] = "DELETE FROM owner WHERE " OBJECT_KEY,
	[DB_OWNERS] = "SELECT uid FROM owner WHERE " OBJECT_KEY,
	[DB_GET] = "SELECT " COLUMNS " FROM object o JOIN version v ON v.rv=o.rv "
		   "WHERE o.resource=?1 AND o.ns=?2 AND o.name=?3",
	[DB_GET_AT] = "SELECT " COLUMNS " FROM version v WHERE v.resource=?1 AND v.ns=?2 "
		      "AND v.name=?3 AND v.rv<=?4 ORDER BY v.rv DESC LIMIT 1",
	[DB_SCAN] = "SELECT " COLUMNS " FROM object o CROSS JOIN version v ON v.rv=o.rv "
		    "WHERE o.resource=?1 AND (o.ns,o.name)>(?2,?3) ORDER BY o.ns,o.name",
	/* Reads no versions, each of which may cost a page of its own. */
	[DB_SCAN_KEYS] = "SELECT o.rv,0,o.resource,o.ns,o.name,o.uid,0,0,0,'',0,NULL,NULL "
			 "FROM object o WHERE o.resource=?1 AND (o.ns,o.name)>(?2,?3) "
			 "ORDER BY o.ns,o.name",
	[DB_SCAN_AT] =
		"SELECT " COLUMNS " FROM version v WHERE v.resource=?1 AND (v.ns,v.name)>(?2,?3) "
		"AND v.type<>3 AND v.rv=(SELECT max(w.rv) FROM version w WHERE "
		"w.resource=v.resource AND w.ns=v.ns AND w.name=v.name AND w.rv<=?4) "
		"ORDER BY v.ns,v.name",
	/* Walk the few new versions by rv: the plus keeps SQLite from using the index by
	 * resource. */
	[DB_CHANGES] = "SELECT " COLUMNS " FROM version v WHERE v.rv>?1 AND v.rv<=?2 "
		       "AND +v.resource=?3 AND (?4 IS NULL OR v.ns=?4) ORDER BY v.rv",
	[DB_COUNT] = "SELECT count(*) FROM object WHERE (?1 IS NULL OR resource=?1) "
		     "AND (?2 IS NULL OR ns=?2)",
	[DB_COUNT_AFTER] = "SELECT count(*) FROM object WHERE resource=?1 AND (ns,name)>(?2,?3)",
	[DB_COUNT_INSIDE_AFTER] =
		"SELECT count(*) FROM object WHERE resource=?1 AND ns=?2 AND name>?3",
	[DB_HAS_UID] = "SELECT 1 FROM object WHERE uid=?1 AND ns IN ('',?2)",
	[DB_ORPHANS] =
		"SELECT DISTINCT resource,ns,name FROM owner o WHERE (resource,ns,name)>(?1,?2,?3) "
		"AND uid NOT GLOB '!*' AND NOT EXISTS (SELECT 1 FROM object WHERE uid=o.uid "
		"AND ns IN ('',o.ns)) ORDER BY resource,ns,name LIMIT ?4",
	[DB_DEPENDENTS] = "SELECT resource,ns,name FROM owner WHERE uid=?5 "
			  "AND (resource,ns,name)>(?1,?2,?3) ORDER BY resource,ns,name LIMIT ?4",
	[DB_AGED] = "SELECT o.resource,o.ns,o.name FROM object o JOIN version v ON v.rv=o.rv "
		    "WHERE o.resource=?1 AND (v.at<?2 OR o.rv<=(SELECT rv FROM object "
		    "WHERE resource=?1 ORDER BY rv DESC LIMIT 1 OFFSET ?3)) LIMIT ?4",
	[DB_NEXT_RESOURCE] = "SELECT min(resource) FROM object WHERE resource>?1",
	/* Each version names the one it replaced, so only versions newer than ?1 are read. */
	[DB_COMPACT] = "DELETE FROM version WHERE rv IN (SELECT prev FROM version "
		       "WHERE rv>?1 AND rv<=?2)",
	[DB_COMPACT_GONE] = "DELETE FROM version WHERE rv>?1 AND rv<=?2 AND type=3",
	[DB_PUT_SETTING] = "INSERT OR REPLACE INTO setting(name,value) VALUES(?1,?2)",
	[DB_GET_SETTING] = "SELECT value FROM setting WHERE name=?1",
	[DB_DROP_SETTING] = "DELETE FROM setting WHERE name=?1",
	[DB_NEXT_ROW] = "SELECT " COLUMNS " FROM version v WHERE v.rv>?1 AND v.rv<=?2 "
			"ORDER BY v.rv LIMIT 1",
	[DB_RESEAL] = "UPDATE version SET body=?1 WHERE rv=?2",
	[DB_RETAG] = "UPDATE version SET tag=?1 WHERE rv=?2",
};

const char *apistore_event_name(enum apistore_event e)
{
	static const char *const names[] = {[APISTORE_ADDED] = "ADDED",
		[APISTORE_MODIFIED] = "MODIFIED",
		[APISTORE_DELETED] = "DELETED"};

	return names[e];
}

/* Turn SQLite's last error into an error kind and a text. It must be called before the statement is
 * reset, which clears the error. */
int db_failed(struct apistore_db *db, const char *doing, struct err *err)
{
	int rc = sqlite3_extended_errcode(db->sql);

	switch (rc & 0xff) {
	case SQLITE_FULL:
		return err_set_http(
			err, ERR_TRANSIENT, 507, "%s: the disk of the database is full", doing);
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return err_set_http(
			err, ERR_CONFLICT, 500, "%s: another program has the database open", doing);
	case SQLITE_ERROR: /* the statements are correct, so the file must have another schema */
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return err_set_http(err, ERR_INVALID, 500,
			"%s: the database is damaged (%s): restore a backup", doing,
			sqlite3_errmsg(db->sql));
	case SQLITE_READONLY:
		return err_set_http(
			err, ERR_TRANSIENT, 500, "%s: the database cannot be written", doing);
	default:
		return err_set_http(err, ERR_TRANSIENT, 500, "%s: database: %s (%d)", doing,
			sqlite3_errmsg(db->sql), rc);
	}
}

/* Return a prepared statement without bindings, compiling it on first use. NULL: err is set. */
sqlite3_stmt *db_query(struct apistore_db *db, enum db_query q, struct err *err)
{
	if (db->query[q]) {
		sqlite3_reset(db->query[q]);
		sqlite3_clear_bindings(db->query[q]);
	} else if (sqlite3_prepare_v3(db->sql, queries[q], -1, SQLITE_PREPARE_PERSISTENT,
			   &db->query[q], NULL) != SQLITE_OK) {
		(void)db_failed(db, "prepare", err);
	}
	return db->query[q];
}

/* Run a statement to its end. The error is read before the reset, which clears it. */
int db_run(struct apistore_db *db, sqlite3_stmt *st, const char *doing, struct err *err)
{
	int rc = sqlite3_step(st);

	if (rc != SQLITE_DONE)
		(void)db_failed(db, doing, err); /* before the reset, which forgets it */
	sqlite3_reset(st);
	return rc == SQLITE_DONE ? 0 : -1;
}

void db_bind_key(sqlite3_stmt *st, const struct apistore_key *key)
{
	sqlite3_bind_text(st, 1, key->resource, -1, SQLITE_STATIC);
	sqlite3_bind_text(st, 2, key->ns, -1, SQLITE_STATIC);
	sqlite3_bind_text(st, 3, key->name, -1, SQLITE_STATIC);
}

int db_put_setting(
	struct apistore_db *db, const char *name, const void *value, size_t len, struct err *err)
{
	sqlite3_stmt *st = db_query(db, DB_PUT_SETTING, err);

	if (!st)
		return -1;
	sqlite3_bind_text(st, 1, name, -1, SQLITE_STATIC);
	sqlite3_bind_blob(st, 2, value, (int)len, SQLITE_STATIC);
	return db_run(db, st, "write a setting", err);
}

/* The value is copied: the blob belongs to the statement and is gone after its reset. */
int db_get_setting(
	struct apistore_db *db, const char *name, uint8_t **value, size_t *len, struct err *err)
{
	sqlite3_stmt *st = db_query(db, DB_GET_SETTING, err);
	int rc;

	*value = NULL;
	if (!st)
		return -1;
	sqlite3_bind_text(st, 1, name, -1, SQLITE_STATIC);
	rc = sqlite3_step(st);
	if (rc == SQLITE_ROW) {
		const void *blob = sqlite3_column_blob(st, 0);

		*len = (size_t)sqlite3_column_bytes(st, 0);
		*value = xmemdup(blob ? blob : "", *len);
	} else if (rc != SQLITE_DONE) {
		(void)db_failed(db, "read a setting", err);
	}
	sqlite3_reset(st);
	return rc == SQLITE_ROW ? 1 : rc == SQLITE_DONE ? 0 : -1;
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

/* ---- transactions */

static int run_plain(struct apistore_db *db, enum db_query q, const char *doing, struct err *err)
{
	sqlite3_stmt *st = db_query(db, q, err);

	return st ? db_run(db, st, doing, err) : -1;
}

/* Begin a transaction and save the counters that a rollback must restore. */
int apistore_db_begin(struct apistore_db *db, struct err *err)
{
	if (db->open)
		DIE("nested transaction");
	if (run_plain(db, DB_BEGIN, "begin", err) < 0)
		return -1;
	db->open = true;
	db->rv_before = db->rv;
	db->set_before = db->set;
	db->oldest_before = db->oldest;
	db->unsettled_then = false;
	return 0;
}

/* Undo the transaction, and with it the counters, which are kept in memory. */
void apistore_db_rollback(struct apistore_db *db)
{
	struct err ignored = ERR_INIT;

	if (!db->open)
		return;
	db->open = false;
	db->rv = db->rv_before;
	db->set = db->set_before;
	db->oldest = db->oldest_before;
	/* SQLite rolls back automatically after some errors. */
	if (!sqlite3_get_autocommit(db->sql))
		(void)run_plain(db, DB_ROLLBACK, "roll back", &ignored);
}

/* Commit, with the digest of the current rows if any was written. Autocommit mode means that SQLite
 * has already rolled back, so there is nothing left to commit. */
int apistore_db_commit(struct apistore_db *db, struct err *err)
{
	if (sqlite3_get_autocommit(db->sql)) {
		apistore_db_rollback(db);
		return err_set_http(
			err, ERR_TRANSIENT, 500, "commit: rolled back by an earlier error");
	}
	if ((db->rv != db->rv_before && db_set_put(db, err) < 0) ||
		run_plain(db, DB_COMMIT, "commit", err) < 0) {
		apistore_db_rollback(db);
		return -1;
	}
	db->open = false;
	db->unsettled |= db->unsettled_then;
	return 0;
}

uint64_t apistore_db_rv(const struct apistore_db *db)
{
	return db->rv;
}

uint64_t apistore_db_oldest(const struct apistore_db *db)
{
	return db->oldest;
}

int64_t apistore_db_restored_s(const struct apistore_db *db)
{
	return db->restored_s;
}

bool apistore_db_just_restored(const struct apistore_db *db)
{
	return db->just_restored;
}

/* ---- writing */

static int run_for_key(
	struct apistore_db *db, enum db_query q, const struct apistore_key *key, struct err *err)
{
	sqlite3_stmt *st = db_query(db, q, err);

	if (!st)
		return -1;
	db_bind_key(st, key);
	return db_run(db, st, "write", err);
}

/* Run a statement that sets the current version of an object: ?4 its version, ?5 its uid. */
static int set_object(
	struct apistore_db *db, enum db_query q, const struct apistore_version *v, struct err *err)
{
	sqlite3_stmt *st = db_query(db, q, err);

	if (!st)
		return -1;
	db_bind_key(st, &v->key);
	sqlite3_bind_int64(st, 4, (int64_t)v->rv);
	sqlite3_bind_text(st, 5, v->uid, -1, SQLITE_STATIC);
	return db_run(db, st, "write", err);
}

/* Point the object to its new version. An update comes first: REPLACE would delete the row from
 * every index and insert it again. It is needed for a new object, or one that got a new uid. */
static int put_object(struct apistore_db *db, const struct apistore_version *v, struct err *err)
{
	/* An object that exists only moves to its new version, unless it was replaced under another
	 * uid. */
	if (v->prev) {
		if (set_object(db, DB_MOVE_OBJECT, v, err) < 0)
			return -1;
		if (sqlite3_changes(db->sql) > 0)
			return 0;
	}
	return set_object(db, DB_PUT_OBJECT, v, err);
}

static bool is_among(const char *uid, const char *const *owners, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(uid, owners[i]))
			return true;
	return false;
}

/* Compare owners with those stored. 1: equal; 0: different, or one is named twice; -1. */
static int has_owners(struct apistore_db *db, const struct apistore_key *key,
	const char *const *owners, size_t n, struct err *err)
{
	sqlite3_stmt *st = db_query(db, DB_OWNERS, err);
	bool same = true;
	size_t stored = 0;
	int rc;

	if (!st)
		return -1;
	db_bind_key(st, key);
	while ((rc = sqlite3_step(st)) == SQLITE_ROW && same) {
		same = is_among((const char *)sqlite3_column_text(st, 0), owners, n);
		stored++;
	}
	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		(void)db_failed(db, "read", err);
	sqlite3_reset(st);
	return rc != SQLITE_ROW && rc != SQLITE_DONE ? -1 : same && stored == n;
}

/* Delete the owners of an object, and take each out of the digest first. */
static int drop_owners(struct apistore_db *db, const struct apistore_key *key, struct err *err)
{
	sqlite3_stmt *st = db_query(db, DB_OWNERS, err);
	int rc;

	if (!st)
		return -1;
	db_bind_key(st, key);
	while ((rc = sqlite3_step(st)) == SQLITE_ROW)
		db_set_owner(db, &db->set, key, (const char *)sqlite3_column_text(st, 0), true);
	if (rc != SQLITE_DONE)
		(void)db_failed(db, "read", err);
	sqlite3_reset(st);
	return rc == SQLITE_DONE ? run_for_key(db, DB_DROP_OWNERS, key, err) : -1;
}

/* Replace the owners of an object if they changed. Few writes change them, and the others must not
 * touch the pages of that table. */
static int put_owners(struct apistore_db *db, const struct apistore_version *v,
	const char *const *owners, size_t n, struct err *err)
{
	int same = v->prev ? has_owners(db, &v->key, owners, n, err) : n == 0;

	if (same != 0)
		return same < 0 ? -1 : 0;
	if (v->prev && drop_owners(db, &v->key, err) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		sqlite3_stmt *st = db_query(db, DB_ADD_OWNER, err);

		if (!st)
			return -1;
		db_bind_key(st, &v->key);
		sqlite3_bind_text(st, 4, owners[i], -1, SQLITE_STATIC);
		if (db_run(db, st, "write", err) < 0)
			return -1;
		if (sqlite3_changes(db->sql) > 0) /* 0: an owner named twice */
			db_set_owner(db, &db->set, &v->key, owners[i], false);
	}
	return 0;
}

/* Delete an object and, if it was sealed, all its versions: no key of a deleted object may remain.
 * The write-ahead log then needs apistore_db_settle(). */
static int drop_object(struct apistore_db *db, const struct apistore_key *key, struct err *err)
{
	if (run_for_key(db, DB_DROP_SEALED, key, err) < 0)
		return -1;
	db->unsettled_then |= sqlite3_changes(db->sql) > 0;
	return run_for_key(db, DB_DROP_OBJECT, key, err);
}

/* Write one version. The digest of the current rows is updated along with them: the replaced
 * version is taken out before the row that names it changes. */
int apistore_db_write(struct apistore_db *db, const struct apistore_version *v,
	const char *const *owners, size_t n_owners, struct err *err)
{
	bool deletion = v->event == APISTORE_DELETED;
	sqlite3_stmt *st;

	if (!db->open || v->rv <= db->rv)
		DIE("write of version %llu after %llu", (unsigned long long)v->rv,
			(unsigned long long)db->rv);
	/* The old row must still be readable here: its digest is computed from its content. */
	if (db_set_take_away(db, &v->key, err) < 0 ||
		(deletion ? drop_object(db, &v->key, err) : put_object(db, v, err)) < 0)
		return -1;
	if (put_owners(db, v, owners, deletion ? 0 : n_owners, err) < 0)
		return -1;
	st = db_query(db, DB_INSERT_VERSION, err);
	if (!st)
		return -1;
	db_bind_version(db, st, v);
	if (db_run(db, st, "write", err) < 0)
		return -1;
	/* A deletion is a version but not a current row, so the digest does not include it. */
	if (!deletion)
		db_set_version(db, &db->set, v, false);
	db->rv = v->rv;
	db->newest_s = v->at_s > db->newest_s ? v->at_s : db->newest_s;
	return 0;
}

/* Both settings are written in the transaction that deletes the rows. Replaced versions are deleted
 * before deletions, since the row of a deletion names the version that it replaced. */
int apistore_db_compact(struct apistore_db *db, uint64_t upto, struct err *err)
{
	sqlite3_stmt *st;
	char text[24];
	size_t n;

	/* Remember the last version issued: its row may be deleted below, and it is never
	 * reused. */
	db->rv = upto > db->rv ? upto : db->rv;
	n = (size_t)snprintf(text, sizeof(text), "%llu", (unsigned long long)db->rv);
	if (db_put_setting(db, "rv", text, n, err) < 0)
		return -1;
	n = (size_t)snprintf(text, sizeof(text), "%llu", (unsigned long long)upto);
	if (db_put_setting(db, "oldest", text, n, err) < 0)
		return -1;
	for (enum db_query q = DB_COMPACT; q <= DB_COMPACT_GONE; q++) {
		st = db_query(db, q, err);
		if (!st)
			return -1;
		sqlite3_bind_int64(st, 1, (int64_t)db->oldest);
		sqlite3_bind_int64(st, 2, (int64_t)upto);
		if (db_run(db, st, "compact", err) < 0)
			return -1;
		db->unsettled_then |= sqlite3_changes(db->sql) > 0;
	}
	db->oldest = upto > db->oldest ? upto : db->oldest;
	return 0;
}

bool apistore_db_unsettled(const struct apistore_db *db)
{
	return db->unsettled;
}

/* Write the log back and truncate it, so that no deleted key can be read from the file. */
int apistore_db_settle(struct apistore_db *db, struct err *err)
{
	int rc;

	if (!db->unsettled)
		return 0;
	if (db->open)
		DIE("settle within a transaction");
	rc = sqlite3_wal_checkpoint_v2(db->sql, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
	if (rc != SQLITE_OK)
		return db_failed(db, "empty the write-ahead log", err);
	db->unsettled = false;
	return 0;
}
