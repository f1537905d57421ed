/* SPDX-License-Identifier: MIT */
/* Private to src/store/db*.c: the layout of struct store_db, and what these files share. */
#ifndef TEC_STORE_DB_INTERNAL_H
#define TEC_STORE_DB_INTERNAL_H

#include <sqlite3.h>

#include "tec/store/db.h"
#include "tec/base/seal.h"

/* The version of the tables and of their sealing. Version 3 added the digest of current rows. */
#define DB_VERSION   3
#define DB_SET_WORDS 4

enum db_query {
	DB_BEGIN,
	DB_COMMIT,
	DB_ROLLBACK,
	DB_INSERT_VERSION,
	DB_PUT_OBJECT,
	DB_MOVE_OBJECT,
	DB_DROP_OBJECT,
	DB_DROP_SEALED,
	DB_ADD_OWNER,
	DB_DROP_OWNERS,
	DB_OWNERS,
	DB_GET,
	DB_GET_AT,
	DB_SCAN,
	DB_SCAN_KEYS,
	DB_SCAN_AT,
	DB_CHANGES,
	DB_COUNT,
	DB_COUNT_AFTER,
	DB_COUNT_INSIDE_AFTER,
	DB_HAS_UID,
	DB_ORPHANS,
	DB_DEPENDENTS,
	DB_AGED,
	DB_NEXT_RESOURCE,
	DB_COMPACT,
	DB_COMPACT_GONE,
	DB_PUT_SETTING,
	DB_GET_SETTING,
	DB_DROP_SETTING,
	DB_NEXT_ROW,
	DB_RESEAL,
	DB_RETAG,
	DB_N_QUERIES,
};

/* A database key and the subkeys derived from it; set: NULL before DB_VERSION. */
struct db_keys {
	struct secret *key, *seal, *tag, *set;
};

/* A digest of a set of rows, independent of their order: their number and the sum of their
 * digests. */
struct db_set {
	uint64_t n, sum[DB_SET_WORDS];
};

struct store_db {
	sqlite3 *sql;
	int lock_fd;                       /* -1: in memory */
	int64_t version;                   /* of the file: DB_VERSION, or one to convert */
	struct db_keys now;                /* seals what is written */
	struct db_keys old;                /* still seals older rows; all NULL: none */
	uint64_t reseal_at, reseal_until;  /* the last version resealed, and the last one to do */
	sqlite3_stmt *query[DB_N_QUERIES]; /* owned; prepared on first use */
	struct secret *set_key;            /* owned: the key of row digests */
	struct db_set set;                 /* the digest of the current rows */
	int64_t newest_s;                  /* the latest time at which a version was written */
	int64_t restored_s;                /* 0: never */
	uint64_t restored_rv;              /* the last version at that time */
	bool just_restored;
	uint64_t rv, oldest;               /* the last version; the start of the history */
	struct db_set set_before;          /* these before the open transaction */
	uint64_t rv_before, oldest_before; /* the same */
	bool open;                         /* a transaction is open */
	bool unsettled;                    /* the write-ahead log holds deleted data */
	bool unsettled_then;               /* it will, once the transaction is committed */
};

/* The sealed record of the digest, in host byte order. So are the numbers in all tags: a database
 * can only be opened on machines of the same byte order. */
struct db_record {
	uint64_t rv, n;
	int64_t newest_s, restored_s;
	uint64_t restored_rv;
	uint64_t sum[DB_SET_WORDS];
};

/* Each file uses those named before it, and none after. */

/* db.c */
/* Set err from SQLite's last error. Always returns -1. */
int db_failed(struct store_db *db, const char *doing, struct err *err);
/* Start a statement with a value for each letter of types: 'i' an int64_t or uint64_t, 't' a text
 * or NULL, 'b' bytes and their length, 'k' a key, which is three texts. Texts and bytes are borrowed
 * until the reset. NULL: err is set. */
sqlite3_stmt *db_query(
	struct store_db *db, enum db_query q, struct err *err, const char *types, ...);
/* Step to the next row. 1; 0: no more; -1; the statement is reset unless there is a row. st NULL: -1,
 * err was set by db_query(). */
int db_step(struct store_db *db, sqlite3_stmt *st, const char *doing, struct err *err);
/* Run a statement that returns no rows. */
int db_run(struct store_db *db, enum db_query q, const char *doing, struct err *err,
	const char *types, ...);
/* Run statements given as text. The second returns a single number. */
int db_exec(struct store_db *db, const char *sql, const char *doing, struct err *err);
int db_number(struct store_db *db, const char *sql, int64_t *out, struct err *err);
int db_get_setting(struct store_db *db, const char *name, uint8_t **value, size_t *len,
	struct err *err); /* 1, 0, -1; the caller frees */
int db_put_setting(
	struct store_db *db, const char *name, const void *value, size_t len, struct err *err);
/* Return the sealed body of v, or its tag: the part of a row that depends on the key. The caller
 * frees it. */
uint8_t *db_seal(const struct store_db *db, const struct store_version *v, size_t *len);
/* Verify the version in the statement's current row and pass it to fn. 1: continue; 0: fn wants no
 * more; -1: the row is not what was written. */
int db_give_version(
	struct store_db *db, sqlite3_stmt *st, store_version_fn fn, void *arg, struct err *err);
/* Add a current row to the digest, or remove it. v has its body. */
void db_set_version(
	const struct store_db *db, struct db_set *set, const struct store_version *v, bool remove);
void db_set_owner(const struct store_db *db, struct db_set *set, const struct store_key *key,
	const char *uid, bool remove);
/* Write db->set and the time of the last restore; in a transaction. */
int db_set_put(struct store_db *db, struct err *err);
/* Read the record. 1; 0: it is missing, or it is not what was written; -1. */
int db_set_get(struct store_db *db, struct db_record *r, struct err *err);

/* db_key.c */
/* Unwrap the database key with this sealing key, or create one in a new database. */
int db_unlock(struct store_db *db, const struct secret *key, struct err *err);
void db_keys_fini(struct db_keys *keys);
/* Write all keys wrapped by the sealing key, and call db_set_put(). */
int db_put_keys(struct store_db *db, const struct secret *key, struct err *err);
/* Convert a database of an earlier version in one transaction. Every row is sealed under a new key,
 * so that no row of the old version can be inserted later. */
int db_convert(struct store_db *db, const struct secret *key, struct err *err);

/* db_open.c */
struct db_verify {
	const struct secret *key; /* the sealing key */
	int64_t now_s;
	bool restores; /* the file is a backup being restored */
	bool accept_unverified;
};
/* Check that each row is what was written, compare the current rows with the stored digest, and
 * convert an older database. */
int db_verify(struct store_db *db, const struct db_verify *how, struct err *err);

/* db_backup.c */
/* Sync the directory of a path, which makes a rename durable. */
int db_sync_folder_of(const char *path);

int db_lock(const char *dir, struct err *err); /* the descriptor, or -1 */
/* Open a file and create or migrate its tables. Rows are not verified yet. */
int db_open_file(struct store_db *db, const char *path, const char *vfs, struct err *err);

#endif
