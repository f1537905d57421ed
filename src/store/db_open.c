/* SPDX-License-Identifier: MIT */
/*
 * Opens a database file: lock, tables, version counters. A file is refused if another process uses
 * it, a newer version wrote it, its schema is not exactly ours, or it is damaged. Its key is checked
 * by db_key.c.
 *
 * The whole database is verified before it is used: SQLite checks its pages, and the tags authenticate
 * each version. SQLite's own check of indexes would look up row by row, in pages all over the file.
 * Here each table and index is read once in its stored order instead, and an index matches its table
 * if both have the same number of rows and the same sum of row hashes. The last version of each object
 * in index version_of determines what table object must contain. The digest of the rows found is then
 * compared with the stored one.
 */
#include "config.h"

#include "tec/store/db.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
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

/* ---- verification */

#define TEXTS 4
#define RV    TEXTS /* the column after the texts: the version, or 0 */

#define LATEST_S INT64_C(253402300798) /* 9999-12-31T23:59:58Z, as creation is a second later */

struct found {
	struct db_set set; /* of the current rows */
	int64_t newest_s;  /* the latest time of any row, as recorded when it was written */
};

/* A set of rows, independent of their order. */
struct sum {
	uint64_t n, hash;
};

enum pass { VERSION_OF, OBJECT, OBJECT_UID, OWNER, OWNER_OF, N_PASSES };

/* Each pass selects resource, ns, name, uid and rv, and lists the columns that sort its rows. OWNER
 * is sorted explicitly: SQLite would read it through its index, which has all columns. */
static const struct {
	const char *sql;
	uint8_t order[TEXTS], n_order;
} passes[N_PASSES] = {
	[VERSION_OF] = {"SELECT resource,ns,name,'',rv FROM version INDEXED BY version_of",
		{0, 1, 2, RV}, 4},
	[OBJECT] = {"SELECT resource,ns,name,uid,rv FROM object NOT INDEXED", {0, 1, 2}, 3},
	[OBJECT_UID] = {"SELECT resource,ns,name,uid,0 FROM object INDEXED BY object_uid",
		{3, 0, 1, 2}, 4},
	[OWNER] =
		{"SELECT resource,ns,name,uid,0 FROM owner NOT INDEXED ORDER BY uid,resource,ns,name",
			{3, 0, 1, 2}, 4},
	[OWNER_OF] = {"SELECT resource,ns,name,uid,0 FROM owner INDEXED BY owner_of", {0, 1, 2, 3},
		4},
};

struct check {
	struct store_db *db;
	struct err *err;
	struct strbuf text;           /* the row being hashed */
	struct sum versions, current; /* table version: all rows, current rows */
	struct sum objects, by_uid;   /* table object: with rv, and as its uid index has it */
	struct found *found;
	uint64_t *newest; /* owned: the last version of each object; sorted for check_versions */
	size_t n_newest, at;
};

static int is_damaged(struct err *err, const char *what)
{
	return err_set(err, ERR_INVALID, "the database is damaged (%s): restore a backup", what);
}

/* ---- sums */

static void put_number(struct strbuf *b, uint64_t n)
{
	n = htobe64(n);
	strbuf_add(b, (const char *)&n, sizeof(n));
}

/* Add a row to a sum. Texts are hashed with their NUL, so that fields cannot run into each
 * other. */
static void add(
	struct check *c, struct sum *sum, const struct store_key *key, const char *uid, uint64_t rv)
{
	strbuf_reset(&c->text);
	strbuf_add(&c->text, key->resource, strlen(key->resource) + 1);
	strbuf_add(&c->text, key->ns, strlen(key->ns) + 1);
	strbuf_add(&c->text, key->name, strlen(key->name) + 1);
	strbuf_add(&c->text, uid, strlen(uid) + 1);
	put_number(&c->text, rv);
	sum->n++;
	sum->hash += str_hash(c->text.data, c->text.len);
}

static bool same(struct sum a, struct sum b)
{
	return a.n == b.n && a.hash == b.hash;
}

/* ---- passes in the order of an index */

struct row {
	const char *text[TEXTS]; /* borrowed from the statement */
	uint64_t rv;
};

/* Encode the sort key of a row, so that memcmp orders keys as the index does. */
static void place_of(const struct row *r, enum pass p, struct strbuf *out)
{
	strbuf_reset(out);
	for (unsigned i = 0; i < passes[p].n_order; i++) {
		unsigned column = passes[p].order[i];

		if (column == RV)
			put_number(out, r->rv);
		else
			strbuf_add(out, r->text[column], strlen(r->text[column]) + 1);
	}
}

/* Record the newest version of each object. Index version_of is sorted by object and then by
 * version, so each row of the same object replaces the one before. */
static void note_newest(struct check *c, const struct strbuf *was, const struct strbuf *now)
{
	size_t key_len = now->len - sizeof(uint64_t);
	uint64_t rv;

	if (was->len != now->len || memcmp(was->data, now->data, key_len) != 0) {
		ARRAY_GROW(c->newest, c->n_newest);
		c->n_newest++;
	}
	memcpy(&rv, now->data + key_len, sizeof(rv));
	c->newest[c->n_newest - 1] = be64toh(rv);
}

/* Check that a row is ordered strictly after the previous one, as equal keys would be duplicates,
 * and add it to the sums. A pass over a table also computes what its index must have: by_uid for
 * table object, and the digest of owners. */
static int take_row(struct check *c, enum pass p, sqlite3_stmt *st, const struct strbuf *was,
	struct strbuf *now, struct sum *sum)
{
	size_t shorter;
	struct store_key key;
	struct row r;
	int order;

	/* With a column of the wrong type, lookups would not find the row. */
	for (int i = 0; i < TEXTS; i++) {
		if (sqlite3_column_type(st, i) != SQLITE_TEXT)
			return is_damaged(c->err, "malformed index");
		r.text[i] = (const char *)sqlite3_column_text(st, i);
	}
	if (sqlite3_column_type(st, RV) != SQLITE_INTEGER)
		return is_damaged(c->err, "malformed index");
	r.rv = (uint64_t)sqlite3_column_int64(st, RV);
	place_of(&r, p, now);
	shorter = now->len < was->len ? now->len : was->len;
	order = shorter ? memcmp(now->data, was->data, shorter) : 0;
	if (order < 0 || (order == 0 && now->len <= was->len))
		return is_damaged(c->err, "index out of order");
	if (p == VERSION_OF)
		note_newest(c, was, now);
	key = (struct store_key){r.text[0], r.text[1], r.text[2]};
	add(c, sum, &key, r.text[3], r.rv);
	if (p == OBJECT)
		add(c, &c->by_uid, &key, r.text[3], 0);
	if (p == OWNER)
		db_set_owner(c->db, &c->found->set, &key, r.text[3], false);
	return 0;
}

/* Run one pass: check the order of its rows and sum them up. */
static int check_pass(struct check *c, enum pass p, struct sum *sum)
{
	cleanup_strbuf struct strbuf even = STRBUF_INIT, odd = STRBUF_INIT;
	struct strbuf *was = &odd, *now = &even, *swap;
	sqlite3_stmt *st = NULL;
	int rc = 0, ok = 0;

	*sum = (struct sum){0};
	if (sqlite3_prepare_v2(c->db->sql, passes[p].sql, -1, &st, NULL) != SQLITE_OK)
		return db_failed(c->db, "check", c->err);
	while (ok == 0 && (rc = db_step(c->db, st, "check", c->err)) > 0) {
		ok = take_row(c, p, st, was, now, sum);
		/* Two buffers take turns: the key of this row is compared with that of the next. */
		swap = was;
		was = now;
		now = swap;
	}
	sqlite3_finalize(st);
	return ok < 0 ? ok : rc;
}

/* ---- the pass over versions */

/* Add a version, whose tag has been verified, to the sums. Versions come in ascending order, as in
 * newest, so one index into it finds the current ones. */
static bool take_version(void *arg, const struct store_version *v)
{
	struct check *c = arg;
	bool newest = c->at < c->n_newest && c->newest[c->at] == v->rv;

	add(c, &c->versions, &v->key, "", v->rv);
	c->at += newest;
	if (v->at_s > c->found->newest_s)
		c->found->newest_s = v->at_s;
	if (!newest || v->event == STORE_DELETED)
		return true;
	add(c, &c->current, &v->key, v->uid, v->rv);
	db_set_version(c->db, &c->found->set, v, false);
	return true;
}

/* Verify every version in the order of the table, which is that of the file. */
static int check_versions(struct check *c)
{
	static const char all[] =
		"SELECT v.rv,v.type,v.resource,v.ns,v.name,v.uid,v.prev,v.at,v.head,"
		"v.meta,v.sealed,v.body,v.tag FROM version v NOT INDEXED ORDER BY v.rv";
	sqlite3_stmt *st = NULL;
	int rc = 0, ok = 1;

	if (sqlite3_prepare_v2(c->db->sql, all, -1, &st, NULL) != SQLITE_OK)
		return db_failed(c->db, "check", c->err);
	while (ok > 0 && (rc = db_step(c->db, st, "check", c->err)) > 0) {
		for (int i = 2; ok > 0 && i <= 5; i++)
			if (sqlite3_column_type(st, i) != SQLITE_TEXT)
				ok = is_damaged(c->err, "malformed version");
		if (ok > 0)
			ok = db_give_version(c->db, st, take_version, c, c->err);
	}
	sqlite3_finalize(st);
	return ok < 0 ? ok : rc;
}

/* ---- the whole check */

/* quick_check verifies the structure of pages but not that indexes match their tables, which the
 * passes below do faster. */
static int check_pages(struct store_db *db, struct err *err)
{
	sqlite3_stmt *st = NULL;
	const char *said;
	int rc = 0;

	if (sqlite3_prepare_v2(db->sql, "PRAGMA quick_check(1)", -1, &st, NULL) != SQLITE_OK ||
		sqlite3_step(st) != SQLITE_ROW) {
		rc = db_failed(db, "check", err);
	} else {
		said = (const char *)sqlite3_column_text(st, 0);
		if (!str_eq(said, "ok"))
			rc = is_damaged(err, log_esc(said));
	}
	sqlite3_finalize(st);
	return rc;
}

/* Compare table object with the newest versions, and both small tables with their indexes. */
static int check_objects(struct check *c)
{
	struct sum uids, owners, owned;

	if (check_pass(c, OBJECT, &c->objects) < 0 || check_pass(c, OBJECT_UID, &uids) < 0 ||
		check_pass(c, OWNER, &owners) < 0 || check_pass(c, OWNER_OF, &owned) < 0)
		return -1;
	if (!same(uids, c->by_uid) || !same(owners, owned))
		return is_damaged(c->err, "an index differs from its table");
	return same(c->objects, c->current) ? 0
					    : is_damaged(c->err, "objects differ from versions");
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Check in order of dependency: pages, the index that gives the newest versions, all versions, and
 * then the tables that must agree with them. */
static int check(struct store_db *db, struct found *found, struct err *err)
{
	struct check c = {.db = db, .err = err, .text = STRBUF_INIT, .found = found};
	struct sum indexed;
	int rc = check_pages(db, err);

	if (rc == 0)
		rc = check_pass(&c, VERSION_OF, &indexed);
	if (rc == 0 && c.n_newest > 0)
		qsort(c.newest, c.n_newest, sizeof(*c.newest), by_number);
	if (rc == 0)
		rc = check_versions(&c);
	if (rc == 0 && !same(indexed, c.versions))
		rc = is_damaged(err, "an index differs from its table");
	if (rc == 0)
		rc = check_objects(&c);
	free(c.newest);
	strbuf_fini(&c.text);
	return rc;
}

/* ---- the stored digest */

/* Record the restore. Its time is at least that of the newest row, which a clock set back may put
 * in the future, and at most what RFC 3339 can express. */
static void mark_restored(struct store_db *db, int64_t now_s)
{
	int64_t at_s = db->newest_s > now_s ? db->newest_s : now_s;

	at_s = at_s < LATEST_S ? at_s : LATEST_S;
	if (at_s > db->restored_s)
		db->restored_s = at_s;
	db->restored_rv = db->rv;
}

/* Rows come first: the digest is computed over rows whose tags are valid. It is compared with the
 * record, whose other values are taken over. With accept_unverified a mismatch is logged, and the
 * digest of the rows found becomes the new one. */
int db_verify(struct store_db *db, const struct db_verify *how, struct err *err)
{
	struct found found = {0};
	struct db_record r;
	bool whole;
	int rc;

	if (check(db, &found, err) < 0)
		return -1;
	db->set = found.set;
	db->newest_s = found.newest_s;
	/* A database from before 0.3.0 has no digest to compare with, so its rows may be anyone's:
	 * it is marked like a restored backup, and the operator asks for the same checks. */
	if (db->version < DB_VERSION) {
		mark_restored(db, how->now_s);
		if (db_convert(db, how->key, err) < 0)
			return -1;
		log_warn(NULL,
			"the store was written by a version before 0.3.0, which did not protect its set of rows; it is treated as restored from a backup",
			NULL);
		return 0;
	}
	rc = db_set_get(db, &r, err);
	if (rc < 0)
		return -1;
	whole = rc == 1 && r.rv == db->rv && r.n == found.set.n &&
		secret_same_bytes(r.sum, found.set.sum, sizeof(r.sum));
	if (!whole && !how->accept_unverified)
		return err_set(err, ERR_INVALID,
			"rows were deleted, added or replaced by older ones outside of tec-operator: restore a backup, or this file with --restore and --accept-unverified");
	if (whole)
		db->newest_s = r.newest_s;
	else
		log_warn(NULL, "accepted a backup whose rows do not match its digest", NULL);
	if (rc == 1) {
		db->restored_s = r.restored_s;
		db->restored_rv = r.restored_rv;
		db->rv = r.rv > db->rv ? r.rv : db->rv;
	}
	if (how->restores)
		mark_restored(db, how->now_s);
	return 0;
}

/* ---- opening */

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
static int migrate(struct store_db *db, struct err *err)
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
	if (version > 0 && check_pages(db, err) < 0)
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
static int check_schema(struct store_db *db, struct err *err)
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
static int read_number(struct store_db *db, const char *name, uint64_t *out, struct err *err)
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
static int read_rv(struct store_db *db, struct err *err)
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
int db_open_file(struct store_db *db, const char *path, const char *vfs, struct err *err)
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
struct store_db *store_db_open(const struct store_db_conf *conf, struct err *err)
{
	struct store_db *db = xcalloc(1, sizeof(*db));
	cleanup_free char *path = NULL;
	cleanup_secret struct secret *own = conf->key ? NULL : secret_new_random(SEAL_KEY_LEN);
	const struct db_verify verify = {
		.key = conf->key ? conf->key : own, .now_s = clock_wall_s()};

	db->lock_fd = -1;
	if (conf->dir) {
		path = xasprintf("%s/" STORE_DB_FILE, conf->dir);
		db->lock_fd = db_lock(conf->dir, err);
	}
	if ((conf->dir && db->lock_fd < 0) ||
		db_open_file(db, path ? path : ":memory:", conf->vfs, err) < 0 ||
		db_unlock(db, verify.key, err) < 0 || (path && db_verify(db, &verify, err) < 0)) {
		store_db_close(db);
		return NULL;
	}
	db->just_restored = db->restored_s && db->rv == db->restored_rv;
	return db;
}

/* Closing a database with an open transaction rolls it back. Statements that are still in use would
 * keep it open, so that is a bug. */
void store_db_close(struct store_db *db)
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
