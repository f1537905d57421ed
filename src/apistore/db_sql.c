/* SPDX-License-Identifier: MIT */
/*
 * The connection's statements: each is prepared on first use and reset before the function that
 * runs it returns. Errors of SQLite become errors of ours here.
 */
#include "config.h"

#include <string.h>

#include "db_internal.h"
#include "tec/base/mem.h"

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

int db_exec(struct apistore_db *db, const char *sql, const char *doing, struct err *err)
{
	return sqlite3_exec(db->sql, sql, NULL, NULL, NULL) == SQLITE_OK
		       ? 0
		       : db_failed(db, doing, err);
}

/* Run a statement that returns a single number. */
int db_number(struct apistore_db *db, const char *sql, int64_t *out, struct err *err)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(db->sql, sql, -1, &st, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_step(st);
	if (rc == SQLITE_ROW)
		*out = sqlite3_column_int64(st, 0);
	else
		(void)db_failed(db, "open", err);
	sqlite3_finalize(st);
	return rc == SQLITE_ROW ? 0 : -1;
}
