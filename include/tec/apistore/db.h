/* SPDX-License-Identifier: MIT */
/*
 * What is stored of an API: every version of every object by resourceVersion, as long as the
 * history keeps it, in one SQLite database (DIR/store.db, or memory). Text in, text out; what the
 * text means is known above (apistore/objects).
 *
 * Each version is sealed (kinds that hold keys) or tagged under the database's own key, bound to
 * its resource, namespace, name, uid and version: what was changed from outside is not served. The
 * database's key is wrapped under a sealing key that the database does not hold.
 *
 * So is the set of current versions and their owners, as a digest that each transaction writes: a
 * database in which one was deleted, added or put back to an earlier version is not opened. A whole
 * database that is older cannot be told from the newest one, and neither can one of before 0.3.0,
 * which had no digest: what is restored from a backup, and what is of such a version, is marked with
 * the time of that.
 *
 * All that is written between apistore_db_begin() and _commit() is durable together or not at all.
 * Text that is handed out is borrowed for the call. Errors: ERR_CONFLICT another process has it,
 * ERR_DENIED another sealing key, ERR_INVALID damaged or of a newer version, ERR_TRANSIENT the
 * disk; http is 507 when it is full, else 500.
 */
#ifndef TEC_APISTORE_DB_H
#define TEC_APISTORE_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tec/base/err.h"
#include "tec/base/secret.h"

struct apistore_db;

struct apistore_db_conf {
	const char *dir;          /* NULL: in memory */
	const char *vfs;          /* NULL: SQLite's own */
	const struct secret *key; /* the sealing key, copied; NULL in memory: one of its own */
};

/* Makes what is missing in dir, which is there. */
struct apistore_db *apistore_db_open(
	const struct apistore_db_conf *conf, struct err *err) MUST_CHECK;
void apistore_db_close(struct apistore_db *db); /* NULL is fine; an open transaction is undone */

/* Where an object is. resource: "secrets", "machines.example.io"; ns: "" outside of namespaces. */
struct apistore_key {
	const char *resource, *ns, *name;
};

enum apistore_event { APISTORE_ADDED = 1, APISTORE_MODIFIED, APISTORE_DELETED };
const char *apistore_event_name(enum apistore_event e);

struct apistore_version {
	struct apistore_key key;
	const char *uid;
	uint64_t rv, prev; /* prev: the version before, 0: none */
	enum apistore_event event;
	int64_t at_s;     /* wall clock */
	const char *meta; /* what selectors look at: {"labels":{},"fields":{}} or "" */
	const char *body;
	size_t len;
	size_t head; /* of body: how much of it is kind and apiVersion, '{' included */
	bool sealed;
};

int apistore_db_begin(struct apistore_db *db, struct err *err) MUST_CHECK;
int apistore_db_commit(struct apistore_db *db, struct err *err) MUST_CHECK; /* -1: undone */
void apistore_db_rollback(struct apistore_db *db);

/* The last resourceVersion there is, and the one from which the history is complete. */
uint64_t apistore_db_rv(const struct apistore_db *db);
uint64_t apistore_db_oldest(const struct apistore_db *db);
/* When it was last restored, or taken from a version before 0.3.0, wall clock; 0: never. No object
 * that was in it then was made later, by whatever clock. */
int64_t apistore_db_restored_s(const struct apistore_db *db);
/* It was, and nothing had been written since then when it was opened. */
bool apistore_db_just_restored(const struct apistore_db *db);

/* v->rv is greater than every one before. A deletion of what was sealed takes its older versions
 * along, so body of a deletion holds no key. owners: the uids of its owners. */
int apistore_db_write(struct apistore_db *db, const struct apistore_version *v,
	const char *const *owners, size_t n_owners, struct err *err) MUST_CHECK;

/* ---- reading. False from fn ends it; fn starts no other read of the same kind. */
typedef bool (*apistore_version_fn)(void *arg, const struct apistore_version *v);

/* 1: fn was called; 0: there is none. at: the newest version up to that one; 0: the current one. */
int apistore_db_get(struct apistore_db *db, const struct apistore_key *key, uint64_t at,
	apistore_version_fn fn, void *arg, struct err *err) MUST_CHECK;

struct apistore_scan {
	const char *resource;
	const char *ns;                    /* NULL: all */
	const char *after_ns, *after_name; /* behind this one; NULL: from the start */
	uint64_t at;                       /* as of this version; 0: now */
	bool no_body;                      /* body is NULL: only what selects */
	bool only_keys;                    /* neither body nor meta: only the key and uid */
	/* Of a version without its body: is it wanted? Others are passed over, and neither opened
	 * nor checked, as all were when the database was opened. NULL: every one is. */
	bool (*wants)(void *arg, const struct apistore_version *v);
};
/* In order of namespace and name. */
int apistore_db_scan(struct apistore_db *db, const struct apistore_scan *scan,
	apistore_version_fn fn, void *arg, struct err *err) MUST_CHECK;
/* The changes after `after`, up to `until`, of a resource and of a namespace (NULL: all). */
int apistore_db_changes(struct apistore_db *db, const char *resource, const char *ns,
	uint64_t after, uint64_t until, apistore_version_fn fn, void *arg,
	struct err *err) MUST_CHECK;
/* How many objects; resource NULL: all. UINT64_MAX: the database failed. */
uint64_t apistore_db_count(struct apistore_db *db, const char *resource, const char *ns);
/* How many of them come after this one now; ns NULL: of all namespaces. */
int apistore_db_count_after(struct apistore_db *db, const struct apistore_key *after,
	const char *ns, uint64_t *n, struct err *err) MUST_CHECK;

/* The first resource after this one ("": of all) that has objects. Replaces *next, which the caller
 * frees and which `after` may be. 1; 0: after the last one; -1. */
int apistore_db_next_resource(
	struct apistore_db *db, const char *after, char **next, struct err *err) MUST_CHECK;

/* ---- owners. Each fn gets the object, without version. */
typedef void (*apistore_key_fn)(void *arg, const struct apistore_key *key);
/* Is there an object with this uid, in this namespace or in none? 1, 0, -1. */
int apistore_db_has_uid(
	struct apistore_db *db, const char *uid, const char *ns, struct err *err) MUST_CHECK;
/* Objects of which an owner is missing, at most max, in the order of their keys; those after this
 * one (NULL: all). It looks at every object that has an owner. */
int apistore_db_orphans(struct apistore_db *db, const struct apistore_key *after, unsigned max,
	apistore_key_fn fn, void *arg, struct err *err) MUST_CHECK;
/* The same of those that have this owner. */
int apistore_db_dependents(struct apistore_db *db, const char *uid,
	const struct apistore_key *after, unsigned max, apistore_key_fn fn, void *arg,
	struct err *err) MUST_CHECK;
/* Objects of a resource written before at_s, and those beyond the newest `keep`; at most max. */
int apistore_db_aged(struct apistore_db *db, const char *resource, int64_t at_s, uint64_t keep,
	unsigned max, apistore_key_fn fn, void *arg, struct err *err) MUST_CHECK;

/* ---- upkeep */
/* Versions up to `upto` that have a newer one, and deletions up to it, go. Beyond the last version:
 * that many are skipped. */
int apistore_db_compact(struct apistore_db *db, uint64_t upto, struct err *err) MUST_CHECK;
/* Takes away what a deletion left in the write-ahead log; nothing to do most of the time. No
 * transaction is open. */
int apistore_db_settle(struct apistore_db *db, struct err *err) MUST_CHECK;
bool apistore_db_unsettled(const struct apistore_db *db);
/* The sealing key is another from now on, and the database's own key too: what is written is sealed
 * by that, what is older until apistore_db_reseal() was called often enough. In no transaction. */
int apistore_db_rekey(struct apistore_db *db, const struct secret *key, struct err *err) MUST_CHECK;
bool apistore_db_is_resealing(const struct apistore_db *db);
/* Some rows more, in a transaction of its own: 1 there may be others, 0 all are sealed by the
 * database's key and the one before is forgotten, -1. In no transaction. */
int apistore_db_reseal(
	struct apistore_db *db, unsigned rows, size_t bytes, struct err *err) MUST_CHECK;
int apistore_db_reseal_all(struct apistore_db *db, struct err *err) MUST_CHECK;

/* A copy of all that is committed into one file, which is not there yet, some pages per step.
 * apistore_db_backup_step(): 1 when there is more, 0 at the end, when the file is complete and on
 * disk. -1 and a backup that is freed before the end leave no file. */
struct apistore_db_backup;
struct apistore_db_backup *apistore_db_backup_start(
	struct apistore_db *db, const char *path, struct err *err) MUST_CHECK;
int apistore_db_backup_step(struct apistore_db_backup *b, struct err *err) MUST_CHECK;
void apistore_db_backup_free(struct apistore_db_backup *b);
/* Puts a backup into dir, which holds no database yet, after all of it was checked. Its versions go
 * on far above those it had, and watches from before get 410. accept_unverified: its set of versions
 * need not be the one that was written. */
int apistore_db_backup_restore(const char *path, const char *dir, const struct secret *key,
	bool accept_unverified, struct err *err) MUST_CHECK;

#endif
