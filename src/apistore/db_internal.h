/* SPDX-License-Identifier: MIT */
/* Private to src/apistore/db*.c: the database's inside. */
#ifndef TEC_APISTORE_DB_INTERNAL_H
#define TEC_APISTORE_DB_INTERNAL_H

#include <sqlite3.h>

#include "tec/apistore/db.h"
#include "tec/base/seal.h"

#define DB_FILE "store.db"
/* Of the tables and of what seals them. Before, nothing said which rows are current. */
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

/* A key of the database, and what is made of it; set: NULL before DB_VERSION. */
struct db_keys {
	struct secret *key, *seal, *tag, *set;
};

/* Of rows, in any order: how many, and the sum of their digests. */
struct db_set {
	uint64_t n, sum[DB_SET_WORDS];
};

struct apistore_db {
	sqlite3 *sql;
	int lock_fd;                       /* -1: in memory */
	int64_t version;                   /* of the file: DB_VERSION, or one to convert */
	struct db_keys now;                /* what is written is sealed by it */
	struct db_keys old;                /* what is older may still be; NULLs: nothing is */
	uint64_t reseal_at, reseal_until;  /* the last version that is sealed again; of how many */
	sqlite3_stmt *query[DB_N_QUERIES]; /* prepared when first used */
	struct secret *set_key;            /* owned: of the digests of rows */
	struct db_set set;                 /* the current ones */
	int64_t newest_s;                  /* the latest time at which a version was written */
	int64_t restored_s;                /* 0: never */
	uint64_t restored_rv;              /* the version of then */
	bool just_restored;
	uint64_t rv, oldest;
	struct db_set set_before;
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
/* All keys wrapped by the sealing key, and db_set_put(). */
int db_put_keys(struct apistore_db *db, const struct secret *key, struct err *err);
/* A database of an earlier version becomes one of this version, in one transaction: every row is
 * sealed by another key, so that none can be put into a database of the earlier version. */
int db_convert(struct apistore_db *db, const struct secret *key, struct err *err);

/* db_open.c */
int db_lock(const char *dir, struct err *err); /* the descriptor, or -1 */
int db_has_rows(struct apistore_db *db, bool *out, struct err *err);
/* Opens file and makes or migrates the tables, without the rows looked at. */
int db_open_file(struct apistore_db *db, const char *path, const char *vfs, struct err *err);
int db_put_version(struct apistore_db *db, struct err *err); /* DB_VERSION, in the transaction */

/* db_set.c */
/* A row that is current, or no more (remove). v has its body. */
void db_set_version(const struct apistore_db *db, struct db_set *set,
	const struct apistore_version *v, bool remove);
void db_set_owner(const struct apistore_db *db, struct db_set *set, const struct apistore_key *key,
	const char *uid, bool remove);
/* The current version of this object, if there is one, is no more. */
int db_set_take_away(struct apistore_db *db, const struct apistore_key *key, struct err *err);
/* Writes db->set and when it was restored, in the transaction. */
int db_set_put(struct apistore_db *db, struct err *err);

struct db_verify {
	const struct secret *key; /* the sealing key */
	int64_t now_s;
	bool restores; /* it is a backup */
	bool accept_unverified;
};
/* db_check(), and the current rows are those that were written last. Converts it, if need be. */
int db_verify(struct apistore_db *db, const struct db_verify *how, struct err *err);

/* db_check.c */
struct db_found {
	struct db_set set; /* of the current rows */
	int64_t newest_s;  /* the latest time at which any row was written, if it is true */
};
/* Each row is what was written. */
int db_check(struct apistore_db *db, struct db_found *found, struct err *err);
/* Its pages hold together, whatever is in them. */
int db_check_pages(struct apistore_db *db, struct err *err);

#endif
