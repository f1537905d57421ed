/* SPDX-License-Identifier: MIT */
/* Private to src/apistore/db*.c: the database's inside. */
#ifndef TEC_APISTORE_DB_INTERNAL_H
#define TEC_APISTORE_DB_INTERNAL_H

#include <sqlite3.h>

#include "tec/apistore/db.h"
#include "tec/base/seal.h"

#define DB_FILE "store.db"

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
	DB_INSIDE,
	DB_AGED,
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

/* A key of the database, and what is made of it. */
struct db_keys {
	struct secret *key, *seal, *tag;
};

struct apistore_db {
	sqlite3 *sql;
	int lock_fd;                       /* -1: in memory */
	struct db_keys now;                /* what is written is sealed by it */
	struct db_keys old;                /* what is older may still be; NULLs: nothing is */
	uint64_t reseal_at, reseal_until;  /* the last version that is sealed again; of how many */
	sqlite3_stmt *query[DB_N_QUERIES]; /* prepared when first used */
	uint64_t rv, oldest;
	uint64_t rv_before, oldest_before; /* of the transaction */
	bool open;                         /* a transaction */
	bool unsettled;                    /* the write-ahead log holds what was deleted */
	bool unsettled_then;               /* once the transaction is committed */
};

/* db.c */
/* What went wrong in SQLite, in our words. Returns -1. */
int db_failed(struct apistore_db *db, const char *doing, struct err *err);
/* NULL with err: it cannot be prepared. Reset, and without values. */
sqlite3_stmt *db_query(struct apistore_db *db, enum db_query q, struct err *err);
/* Runs a statement that gives no rows; resets it. */
int db_run(struct apistore_db *db, sqlite3_stmt *st, const char *doing, struct err *err);
void db_bind_key(sqlite3_stmt *st, const struct apistore_key *key); /* ?1 ?2 ?3 */
int db_get_setting(struct apistore_db *db, const char *name, uint8_t **value, size_t *len,
	struct err *err); /* 1, 0, -1; the caller frees */
int db_put_setting(
	struct apistore_db *db, const char *name, const void *value, size_t len, struct err *err);

/* db_row.c */
/* Binds all of v to DB_INSERT_VERSION, sealed or tagged. */
void db_bind_version(struct apistore_db *db, sqlite3_stmt *st, const struct apistore_version *v);
/* Its body sealed, or its tag, to the n-th place: what the key decides. */
void db_bind_seal(
	struct apistore_db *db, sqlite3_stmt *st, int n, const struct apistore_version *v);
/* The version in the statement's row; fn is called with it. 0: and wants no more; 1: goes on; -1:
 * it is not what was written. */
int db_give_version(struct apistore_db *db, sqlite3_stmt *st, apistore_version_fn fn, void *arg,
	struct err *err);

/* db_key.c */
/* The database's key under this sealing key, or a new one in a new database. */
int db_unlock(struct apistore_db *db, const struct secret *key, struct err *err);
void db_keys_fini(struct db_keys *keys);

/* db_open.c */
int db_lock(const char *dir, struct err *err); /* the descriptor, or -1 */
int db_has_rows(struct apistore_db *db, bool *out, struct err *err);
/* Opens file and makes or migrates the tables, without the rows looked at. */
int db_open_file(struct apistore_db *db, const char *path, const char *vfs, struct err *err);

/* db_check.c */
/* All of it is what was written. */
int db_check(struct apistore_db *db, struct err *err);
/* Its pages hold together, whatever is in them. */
int db_check_pages(struct apistore_db *db, struct err *err);

#endif
