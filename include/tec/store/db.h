/* SPDX-License-Identifier: MIT */
/*
 * The storage of an API: every version of every object by resourceVersion, as far back as the
 * history goes, in one SQLite database (DIR/store.db, or memory). It stores text and does not
 * interpret it; store/objects does.
 *
 * Each version is encrypted (kinds that hold keys) or authenticated with a tag under the database
 * key, and bound to its resource, namespace, name, uid and version, so data changed from outside is
 * never served. The database key is wrapped by a sealing key that the database does not contain.
 *
 * A digest of all current versions and their owners, updated by each transaction, is authenticated
 * in the same way: a database in which a row was deleted, added or rolled back is not opened. The
 * rollback of a whole database cannot be detected, nor can any change made before 0.3.0, which had
 * no digest. A database restored from a backup or converted from such a version therefore records
 * when that was.
 *
 * What is written between store_db_begin() and _commit() becomes durable as a whole or not at
 * all. Text passed to callbacks is borrowed for the call. Errors: ERR_CONFLICT another process has
 * the database open, ERR_DENIED another sealing key, ERR_INVALID damaged or of a newer version,
 * ERR_TRANSIENT the disk; http is 507 when it is full, else 500.
 */
#ifndef TEC_STORE_DB_H
#define TEC_STORE_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tec/base/err.h"
#include "tec/base/secret.h"

#define STORE_DB_FILE "store.db" /* in the directory */

struct store_db;

struct store_db_conf {
	const char *dir;          /* NULL: in memory */
	const char *vfs;          /* of SQLite, for tests; NULL: the default */
	const struct secret *key; /* the sealing key, copied; NULL in memory: a random one */
};

/* Open the database in dir, which must exist; create it if it is missing. */
struct store_db *store_db_open(const struct store_db_conf *conf, struct err *err) MUST_CHECK;
void store_db_close(struct store_db *db); /* NULL is fine; rolls back an open transaction */

/* Identifies an object. resource: "secrets", "machines.example.io"; ns: "" if cluster-scoped. */
struct store_key {
	const char *resource, *ns, *name;
};

enum store_event { STORE_ADDED = 1, STORE_MODIFIED, STORE_DELETED };

struct store_version {
	struct store_key key;
	const char *uid;
	uint64_t rv, prev; /* prev: the version that this one replaced, 0: none */
	enum store_event event;
	int64_t at_s;     /* wall clock */
	const char *meta; /* what selectors match: {"labels":{},"fields":{}} or "" */
	const char *body;
	size_t len;
	size_t head; /* the length of '{', kind and apiVersion at the start of body */
	bool sealed; /* body is encrypted in the database */
};

int store_db_begin(struct store_db *db, struct err *err) MUST_CHECK;
int store_db_commit(struct store_db *db, struct err *err) MUST_CHECK; /* -1: rolled back */
void store_db_rollback(struct store_db *db);

/* The last resourceVersion, and the one from which on the history is complete. */
uint64_t store_db_rv(const struct store_db *db);
uint64_t store_db_oldest(const struct store_db *db);
/* When the database was last restored or converted from a version before 0.3.0, wall clock; 0:
 * never. It is never earlier than the times of the versions it held then, even if the clock was set
 * back. */
int64_t store_db_restored_s(const struct store_db *db);
/* It was restored or converted, and nothing had been written since when it was opened. */
bool store_db_just_restored(const struct store_db *db);

/* Write a version; v->rv is greater than all before it. Deleting a sealed object also deletes its
 * older versions, so that no key is kept; the body of a deletion holds none either. owners: the
 * owners' uids. */
int store_db_write(struct store_db *db, const struct store_version *v, const char *const *owners,
	size_t n_owners, struct err *err) MUST_CHECK;

/* ---- reading. A callback ends the read by returning false. It must not start another read of the
 * same kind, which would reset the statement in use. */
typedef bool (*store_version_fn)(void *arg, const struct store_version *v);

/* Get the current version (at 0), or the newest one up to `at`. 1: fn was called; 0: not found;
 * -1. */
int store_db_get(struct store_db *db, const struct store_key *key, uint64_t at, store_version_fn fn,
	void *arg, struct err *err) MUST_CHECK;
/* Copy the body of the current version, which the caller wipes and frees. 1, 0, -1. */
int store_db_copy(struct store_db *db, const struct store_key *key, void **data, size_t *len,
	struct err *err) MUST_CHECK;

struct store_scan {
	const char *resource;
	const char *ns;                    /* NULL: all */
	const char *after_ns, *after_name; /* start after this object; NULL: from the start */
	uint64_t at;                       /* as of this version; 0: now */
	bool no_body;                      /* leave body NULL */
	bool only_keys;                    /* give only the key and uid; read no versions */
	/* Filter, called with a version without its body. A rejected version is skipped and neither
	 * decrypted nor verified: all were verified when the database was opened. NULL: all are
	 * wanted. */
	bool (*wants)(void *arg, const struct store_version *v);
};
/* Give each object of a resource, ordered by namespace and name. */
int store_db_scan(struct store_db *db, const struct store_scan *scan, store_version_fn fn,
	void *arg, struct err *err) MUST_CHECK;
/* The same, but only the keys, and after the scan has ended: fn may write. */
typedef void (*store_key_fn)(void *arg, const struct store_key *key);
int store_db_scan_keys(struct store_db *db, const struct store_scan *scan, store_key_fn fn,
	void *arg, struct err *err) MUST_CHECK;
/* Give the changes after `after` and up to `until`, of a resource and a namespace (NULL: all). */
int store_db_changes(struct store_db *db, const char *resource, const char *ns, uint64_t after,
	uint64_t until, store_version_fn fn, void *arg, struct err *err) MUST_CHECK;
/* Count objects; resource or ns NULL: all. UINT64_MAX: the database failed. */
uint64_t store_db_count(struct store_db *db, const char *resource, const char *ns);
/* Count the current objects that are ordered after this one; ns NULL: of all namespaces. */
int store_db_count_after(struct store_db *db, const struct store_key *after, const char *ns,
	uint64_t *n, struct err *err) MUST_CHECK;

/* Find the next resource after `after` ("": the first) that has objects. Replaces *next, which the
 * caller frees; `after` may be *next. 1; 0: no more; -1. */
int store_db_next_resource(
	struct store_db *db, const char *after, char **next, struct err *err) MUST_CHECK;

/* ---- owners. The callbacks get the key of an object. */
/* Is there an object with this uid, in this namespace or in none? 1, 0, -1. */
int store_db_has_uid(
	struct store_db *db, const char *uid, const char *ns, struct err *err) MUST_CHECK;
/* Find objects with an owner that does not exist: at most max, ordered by key, after `after` (NULL:
 * from the start). This reads every object that has an owner. */
int store_db_orphans(struct store_db *db, const struct store_key *after, unsigned max,
	store_key_fn fn, void *arg, struct err *err) MUST_CHECK;
/* Find the objects that have this owner, in the same way. */
int store_db_dependents(struct store_db *db, const char *uid, const struct store_key *after,
	unsigned max, store_key_fn fn, void *arg, struct err *err) MUST_CHECK;
/* Find objects of a resource written before at_s or not among the newest `keep`; at most max. */
int store_db_aged(struct store_db *db, const char *resource, int64_t at_s, uint64_t keep,
	unsigned max, store_key_fn fn, void *arg, struct err *err) MUST_CHECK;

/* ---- upkeep */
/* Delete the versions up to `upto` that have been replaced, and the deletions up to it. If upto is
 * beyond the last version, resourceVersions continue after it. */
int store_db_compact(struct store_db *db, uint64_t upto, struct err *err) MUST_CHECK;
/* Remove deleted data from the write-ahead log, if there is any. No transaction may be open. */
int store_db_settle(struct store_db *db, struct err *err) MUST_CHECK;
bool store_db_unsettled(const struct store_db *db);
/* Change the sealing key and the database key. New rows use the new database key; older rows keep
 * the old one until enough calls of store_db_reseal() have rewritten them. No transaction may be
 * open. */
int store_db_rekey(struct store_db *db, const struct secret *key, struct err *err) MUST_CHECK;
bool store_db_is_resealing(const struct store_db *db);
/* Reseal the next rows under the new database key, in a transaction of its own. 1: call again; 0:
 * all rows are done and the old key is deleted; -1. No transaction may be open. */
int store_db_reseal(struct store_db *db, unsigned rows, size_t bytes, struct err *err) MUST_CHECK;
int store_db_reseal_all(struct store_db *db, struct err *err) MUST_CHECK;

/* Copy all committed data into one new file, some pages per step. store_db_backup_step(): 1 call
 * again, 0 the file is complete and on disk, -1. A backup that fails or is freed early leaves no
 * file. */
struct store_db_backup;
struct store_db_backup *store_db_backup_start(
	struct store_db *db, const char *path, struct err *err) MUST_CHECK;
int store_db_backup_step(struct store_db_backup *b, struct err *err) MUST_CHECK;
void store_db_backup_free(struct store_db_backup *b);
/* Verify a backup and install it in dir, which must hold no database. Its resourceVersions continue
 * far above the old ones, and watches from before get 410. accept_unverified: accept a backup whose
 * set of rows does not match its digest. */
int store_db_backup_restore(const char *path, const char *dir, const struct secret *key,
	bool accept_unverified, struct err *err) MUST_CHECK;

#endif
