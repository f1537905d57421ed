/* SPDX-License-Identifier: MIT */
/*
 * Table version holds every version of every object, and table object points to the current ones;
 * both are written in the same transaction.
 *
 * A secret body is encrypted with all other columns as associated data; any other row gets a tag
 * over all of its columns. Either way, a row that was changed or moved is detected when it is read.
 *
 * Each current version and each owner has a keyed digest, and their sum modulo 2^256 is stored: a
 * write subtracts the digest of the old row and adds that of the new one. The sum is sealed under
 * the database key and written by the transaction that changes it. Deleting, adding or rolling back
 * a row from outside changes the sum; replaced versions are not part of it. The key of the digests
 * survives a rotation of the database key, since resealing must not change any digest.
 */
#include "config.h"

#include "tec/store/db.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "db_internal.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"

/* The columns of each statement that returns versions, in the order of COLUMNS. */
enum { RV, TYPE, RESOURCE, NS, NAME, UID, PREV, AT, HEAD, META, SEALED, BODY, TAG };

#define RECORD "rows"

/* ---- statements. Each is prepared on first use and reset before the function that runs it returns. */

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
int db_failed(struct store_db *db, const char *doing, struct err *err)
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

static sqlite3_stmt *start(struct store_db *db, enum db_query q, struct err *err)
{
	if (db->query[q])
		sqlite3_reset(db->query[q]);
	else if (sqlite3_prepare_v3(db->sql, queries[q], -1, SQLITE_PREPARE_PERSISTENT,
			 &db->query[q], NULL) != SQLITE_OK)
		(void)db_failed(db, "prepare", err);
	return db->query[q];
}

static void bind_text(sqlite3_stmt *st, int i, const char *text)
{
	sqlite3_bind_text(st, i, text, -1, SQLITE_STATIC);
}

/* Bind all parameters; each call binds all that its statement has, so none is left from before. */
static void bind_all(sqlite3_stmt *st, const char *types, va_list ap)
{
	int i = 1;

	for (; st && *types; types++, i++) {
		if (*types == 'i') {
			sqlite3_bind_int64(st, i, va_arg(ap, int64_t));
		} else if (*types == 't') {
			bind_text(st, i, va_arg(ap, const char *));
		} else if (*types == 'b') {
			const void *data = va_arg(ap, const void *);

			sqlite3_bind_blob64(st, i, data, va_arg(ap, size_t), SQLITE_STATIC);
		} else {
			const struct store_key *key = va_arg(ap, const struct store_key *);

			bind_text(st, i, key->resource);
			bind_text(st, ++i, key->ns);
			bind_text(st, ++i, key->name);
		}
	}
}

/* Prepare a statement on first use, reset it and bind its parameters from ?1 on. NULL: err is set. */
sqlite3_stmt *db_query(
	struct store_db *db, enum db_query q, struct err *err, const char *types, ...)
{
	va_list ap;

	va_start(ap, types);
	bind_all(start(db, q, err), types, ap);
	va_end(ap);
	return db->query[q];
}

int db_step(struct store_db *db, sqlite3_stmt *st, const char *doing, struct err *err)
{
	int rc = st ? sqlite3_step(st) : SQLITE_ERROR;

	if (rc == SQLITE_ROW)
		return 1;
	/* The error is read before the reset, which clears it. */
	rc = rc == SQLITE_DONE ? 0 : st ? db_failed(db, doing, err) : -1;
	sqlite3_reset(st);
	return rc;
}

int db_run(struct store_db *db, enum db_query q, const char *doing, struct err *err,
	const char *types, ...)
{
	va_list ap;
	int rc;

	va_start(ap, types);
	bind_all(start(db, q, err), types, ap);
	va_end(ap);
	rc = db_step(db, db->query[q], doing, err);
	return rc < 0 ? -1 : 0;
}

int db_put_setting(
	struct store_db *db, const char *name, const void *value, size_t len, struct err *err)
{
	return db_run(db, DB_PUT_SETTING, "write a setting", err, "tb", name, value, len);
}

/* The value is copied: the blob belongs to the statement and is gone after its reset. */
int db_get_setting(
	struct store_db *db, const char *name, uint8_t **value, size_t *len, struct err *err)
{
	sqlite3_stmt *st = db_query(db, DB_GET_SETTING, err, "t", name);
	int rc = db_step(db, st, "read a setting", err);

	*value = NULL;
	if (rc > 0) {
		const void *blob = sqlite3_column_blob(st, 0);

		*len = (size_t)sqlite3_column_bytes(st, 0);
		*value = xmemdup(blob ? blob : "", *len);
	}
	sqlite3_reset(st);
	return rc;
}

int db_exec(struct store_db *db, const char *sql, const char *doing, struct err *err)
{
	return sqlite3_exec(db->sql, sql, NULL, NULL, NULL) == SQLITE_OK
		       ? 0
		       : db_failed(db, doing, err);
}

/* Run a statement that returns a single number. */
int db_number(struct store_db *db, const char *sql, int64_t *out, struct err *err)
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

/* ---- sealed and tagged rows */

/* Hash numbers and texts of a version, and the first len bytes of its body. */
static void hash(const struct secret *key, const uint64_t *numbers, size_t n,
	const struct store_version *v, size_t len, uint8_t out[SEAL_TAG_LEN])
{
	const struct seal_part parts[] = {{numbers, n * sizeof(*numbers)},
		{v->key.resource, strlen(v->key.resource)}, {v->key.ns, strlen(v->key.ns)},
		{v->key.name, strlen(v->key.name)}, {v->uid, strlen(v->uid)},
		{v->meta, strlen(v->meta)}, {v->body, len}};

	seal_tag(key, parts, ARRAY_LEN(parts), out);
}

/* Compute the tag over all columns, and the body too if with_body. Column at is left out: only
 * upkeep uses it, and the digest below covers it. */
static void tag_of(const struct db_keys *keys, const struct store_version *v, bool with_body,
	uint8_t tag[SEAL_TAG_LEN])
{
	const uint64_t numbers[] = {
		v->rv, (uint64_t)v->event, v->prev, (uint64_t)v->head, (uint64_t)v->sealed};

	hash(keys->tag, numbers, ARRAY_LEN(numbers), v, with_body ? v->len : 0, tag);
}

/* A sealed body has the tag of the other columns as associated data, so it cannot be moved to
 * another row. Rows are always written under the newest key. */
uint8_t *db_seal(const struct store_db *db, const struct store_version *v, size_t *len)
{
	uint8_t tag[SEAL_TAG_LEN];

	tag_of(&db->now, v, !v->sealed, tag);
	*len = v->sealed ? v->len + SEAL_OVERHEAD : sizeof(tag);
	return v->sealed ? seal_bytes(db->now.seal, tag, v->body, v->len)
			 : xmemdup(tag, sizeof(tag));
}

/* Return a text column; a NULL column counts as empty. Borrowed from the statement. */
static const char *text_of(sqlite3_stmt *st, int column)
{
	const char *s = (const char *)sqlite3_column_text(st, column);

	return s ? s : "";
}

static int not_what_was_written(const struct store_version *v, struct err *err)
{
	return err_set_http(err, ERR_INVALID, 500,
		"the database is damaged: version %llu of %s %s/%s is not what was written: "
		"restore a backup",
		(unsigned long long)v->rv, v->key.resource, v->key.ns, v->key.name);
}

/* Decrypt a body with one of the two database keys; during a rotation either may have sealed it. */
static bool open_sealed(const struct db_keys *keys, const struct store_version *v, const void *blob,
	size_t n, char *text)
{
	uint8_t tag[SEAL_TAG_LEN];

	if (!keys->key)
		return false;
	tag_of(keys, v, false, tag);
	return seal_open(keys->seal, tag, blob, n, text) == 0;
}

/* Compare a tag in constant time: an attacker who writes to the file must not learn it byte by
 * byte. */
static bool is_tagged(const struct db_keys *keys, const struct store_version *v, const void *have)
{
	uint8_t tag[SEAL_TAG_LEN];

	if (!keys->key)
		return false;
	tag_of(keys, v, true, tag);
	return secret_same_bytes(have, tag, sizeof(tag));
}

/* Pass a sealed version to fn with its body in clear, which is wiped when fn returns. */
static int give_sealed(struct store_db *db, sqlite3_stmt *st, struct store_version *v,
	store_version_fn fn, void *arg, struct err *err)
{
	const void *blob = sqlite3_column_blob(st, BODY);
	size_t n = (size_t)sqlite3_column_bytes(st, BODY);
	char *text;
	int rc = -1;

	if (n < SEAL_OVERHEAD)
		return not_what_was_written(v, err);
	text = xmalloc(n - SEAL_OVERHEAD + 1);
	if (!open_sealed(&db->now, v, blob, n, text) && !open_sealed(&db->old, v, blob, n, text)) {
		(void)not_what_was_written(v, err);
	} else {
		text[n - SEAL_OVERHEAD] = '\0';
		v->body = text;
		v->len = n - SEAL_OVERHEAD;
		rc = fn(arg, v);
	}
	secret_wipe(text, n - SEAL_OVERHEAD);
	free(text);
	return rc;
}

/* Read all columns but the body. Nothing is verified yet; the texts are borrowed from the row. */
static struct store_version head_of(sqlite3_stmt *st)
{
	return (struct store_version){
		.key = {text_of(st, RESOURCE), text_of(st, NS), text_of(st, NAME)},
		.uid = text_of(st, UID),
		.rv = (uint64_t)sqlite3_column_int64(st, RV),
		.prev = (uint64_t)sqlite3_column_int64(st, PREV),
		.event = (enum store_event)sqlite3_column_int(st, TYPE),
		.at_s = sqlite3_column_int64(st, AT),
		.meta = text_of(st, META),
		.head = (size_t)sqlite3_column_int64(st, HEAD),
		.sealed = sqlite3_column_int(st, SEALED) != 0};
}

/* Verify a version and pass it to fn. 1: continue; 0: fn wants no more; -1: it is not what was
 * written. */
static int give_whole(struct store_db *db, sqlite3_stmt *st, struct store_version *v,
	store_version_fn fn, void *arg, struct err *err)
{
	const void *tag;

	if (v->sealed)
		return give_sealed(db, st, v, fn, arg, err);
	v->body = text_of(st, BODY);
	v->len = (size_t)sqlite3_column_bytes(st, BODY);
	tag = sqlite3_column_blob(st, TAG);
	if (sqlite3_column_bytes(st, TAG) != SEAL_TAG_LEN ||
		(!is_tagged(&db->now, v, tag) && !is_tagged(&db->old, v, tag)) ||
		v->event < STORE_ADDED || v->event > STORE_DELETED || v->head > v->len)
		return not_what_was_written(v, err);
	return fn(arg, v);
}

int db_give_version(
	struct store_db *db, sqlite3_stmt *st, store_version_fn fn, void *arg, struct err *err)
{
	struct store_version v = head_of(st);

	return give_whole(db, st, &v, fn, arg, err);
}

/* ---- the digest of the current rows */

static void bind_record(uint8_t bound[SEAL_TAG_LEN])
{
	memset(bound, 0, SEAL_TAG_LEN);
	memcpy(bound, "tec apistore rows", 17);
}

/* Add a digest to the sum or subtract it, modulo 2^256; the first word is the least significant.
 * Subtracting adds the complement and a carry of 1. */
static void change(struct db_set *set, const uint8_t digest[SEAL_TAG_LEN], bool remove)
{
	uint64_t add[DB_SET_WORDS], carry = remove;

	_Static_assert(sizeof(add) == SEAL_TAG_LEN, "the sum has the length of a digest");
	memcpy(add, digest, sizeof(add));
	for (size_t i = 0; i < DB_SET_WORDS; i++) {
		uint64_t word = remove ? ~add[i] : add[i], with_carry = word + carry;

		/* Either addition may overflow, but not both, so the carry is a single bit. */
		set->sum[i] += with_carry;
		carry = (with_carry < word) | (set->sum[i] < with_carry);
	}
	set->n += remove ? UINT64_MAX : 1;
}

/* Unlike the tag of a row, this digest includes the time and does not depend on the database
 * key. */
void db_set_version(
	const struct store_db *db, struct db_set *set, const struct store_version *v, bool remove)
{
	const uint64_t numbers[] = {v->rv, (uint64_t)v->event, v->prev, (uint64_t)v->at_s,
		(uint64_t)v->head, (uint64_t)v->sealed};
	uint8_t digest[SEAL_TAG_LEN];

	hash(db->set_key, numbers, ARRAY_LEN(numbers), v, v->len, digest);
	change(set, digest, remove);
}

void db_set_owner(const struct store_db *db, struct db_set *set, const struct store_key *key,
	const char *uid, bool remove)
{
	const struct seal_part parts[] = {{"owner", 5}, {key->resource, strlen(key->resource)},
		{key->ns, strlen(key->ns)}, {key->name, strlen(key->name)}, {uid, strlen(uid)}};
	uint8_t digest[SEAL_TAG_LEN];

	seal_tag(db->set_key, parts, ARRAY_LEN(parts), digest);
	change(set, digest, remove);
}

/* Write the record with the digest. It also holds the last version, so that an old record cannot be
 * put beside newer rows. */
int db_set_put(struct store_db *db, struct err *err)
{
	struct db_record r = {
		db->rv, db->set.n, db->newest_s, db->restored_s, db->restored_rv, {0}};
	cleanup_free uint8_t *sealed = NULL;
	uint8_t bound[SEAL_TAG_LEN];

	memcpy(r.sum, db->set.sum, sizeof(r.sum));
	bind_record(bound);
	sealed = seal_bytes(db->now.set, bound, &r, sizeof(r));
	return db_put_setting(db, RECORD, sealed, sizeof(r) + SEAL_OVERHEAD, err);
}

/* Read the record. 1; 0: it is missing, or it is not what was written; -1. */
int db_set_get(struct store_db *db, struct db_record *r, struct err *err)
{
	cleanup_free uint8_t *sealed = NULL;
	uint8_t bound[SEAL_TAG_LEN];
	size_t len = 0;
	int rc = db_get_setting(db, RECORD, &sealed, &len, err);

	bind_record(bound);
	if (rc == 1 && (len != sizeof(*r) + SEAL_OVERHEAD ||
			       seal_open(db->now.set, bound, sealed, len, r) < 0))
		rc = 0;
	return rc;
}

/* ---- reading */

/* Pass one row of a scan to fn, filtered first. 0 also ends the scan after the last row of its
 * namespace. */
static int give_row(struct store_db *db, sqlite3_stmt *st, const struct store_scan *scan,
	store_version_fn fn, void *arg, struct err *err)
{
	struct store_version v = head_of(st);

	if (scan->ns && strcmp(v.key.ns, scan->ns) != 0)
		return 0;
	if (scan->wants && !scan->wants(arg, &v))
		return 1;
	if (scan->no_body || scan->only_keys)
		return fn(arg, &v);
	return give_whole(db, st, &v, fn, arg, err);
}

/* Pass each row of the statement to fn until it returns false. scan: how to filter them; NULL: not
 * at all. Returns the number of rows read, or -1. */
static int each_version(struct store_db *db, sqlite3_stmt *st, const struct store_scan *scan,
	store_version_fn fn, void *arg, struct err *err)
{
	int rc, n = 0, more = 1;

	while (more > 0 && (rc = db_step(db, st, "read", err)) != 0) {
		if (rc < 0)
			return -1;
		more = scan ? give_row(db, st, scan, fn, arg, err)
			    : db_give_version(db, st, fn, arg, err);
		n++;
	}
	sqlite3_reset(st);
	return more < 0 ? -1 : n;
}

/* A deletion is a version too: with `at`, fn may be called with one. */
int store_db_get(struct store_db *db, const struct store_key *key, uint64_t at, store_version_fn fn,
	void *arg, struct err *err)
{
	return each_version(db,
		at ? db_query(db, DB_GET_AT, err, "ki", key, at)
		   : db_query(db, DB_GET, err, "k", key),
		NULL, fn, arg, err);
}

struct copy {
	void *data;
	size_t len;
};

/* Copy the body, which is borrowed for the call. */
static bool copy_body(void *arg, const struct store_version *v)
{
	*(struct copy *)arg = (struct copy){xmemdup(v->body, v->len), v->len};
	return false;
}

int store_db_copy(
	struct store_db *db, const struct store_key *key, void **data, size_t *len, struct err *err)
{
	struct copy c = {NULL, 0};
	int rc = store_db_get(db, key, 0, copy_body, &c, err);

	if (rc > 0) {
		*data = c.data;
		*len = c.len;
	}
	return rc;
}

/* The current versions come from table object. An older state is reconstructed from all versions,
 * which costs more, and only as far back as the history goes. */
int store_db_scan(struct store_db *db, const struct store_scan *scan, store_version_fn fn,
	void *arg, struct err *err)
{
	bool current = !scan->at || scan->at == db->rv;
	const struct store_key after = {scan->resource,
		scan->after_ns ? scan->after_ns
		: scan->ns     ? scan->ns
			       : "",
		scan->after_name ? scan->after_name : ""};

	return each_version(db,
		!current ? db_query(db, DB_SCAN_AT, err, "ki", &after, scan->at)
			 : db_query(db, scan->only_keys ? DB_SCAN_KEYS : DB_SCAN, err, "k", &after),
		scan, fn, arg, err);
}

/* Changes come in the order of versions, which is the order in which they were committed. */
int store_db_changes(struct store_db *db, const char *resource, const char *ns, uint64_t after,
	uint64_t until, store_version_fn fn, void *arg, struct err *err)
{
	sqlite3_stmt *st = db_query(db, DB_CHANGES, err, "iitt", after, until, resource, ns);

	return each_version(db, st, NULL, fn, arg, err);
}

/* This is for metrics and estimates, so a failure is a value and no error. */
uint64_t store_db_count(struct store_db *db, const char *resource, const char *ns)
{
	struct err ignored = ERR_INIT;
	sqlite3_stmt *st = db_query(db, DB_COUNT, &ignored, "tt", resource, ns);
	uint64_t n = UINT64_MAX;

	if (db_step(db, st, "read", &ignored) > 0)
		n = (uint64_t)sqlite3_column_int64(st, 0);
	sqlite3_reset(st);
	return n;
}

/* Count by index alone. For an older version there is no such count: its objects are not in one
 * table. */
int store_db_count_after(struct store_db *db, const struct store_key *after, const char *ns,
	uint64_t *n, struct err *err)
{
	sqlite3_stmt *st =
		db_query(db, ns ? DB_COUNT_INSIDE_AFTER : DB_COUNT_AFTER, err, "k", after);
	int rc = db_step(db, st, "read", err);

	if (rc > 0)
		*n = (uint64_t)sqlite3_column_int64(st, 0);
	sqlite3_reset(st);
	return rc > 0 ? 0 : -1;
}

/* ---- owners and aged objects */

/* An owner is in the same namespace as its dependents, or cluster-scoped. */
int store_db_has_uid(struct store_db *db, const char *uid, const char *ns, struct err *err)
{
	sqlite3_stmt *st = db_query(db, DB_HAS_UID, err, "tt", uid, ns);
	int rc = db_step(db, st, "read", err);

	sqlite3_reset(st);
	return rc;
}

/* Keys to be passed on after the statement has ended, because fn may write to the same tables. */
struct keys {
	char **text; /* owned; three for each key */
	size_t n;
};

static bool add_key(struct keys *keys, const char *resource, const char *ns, const char *name)
{
	const char *const part[] = {resource, ns, name};

	for (size_t i = 0; i < ARRAY_LEN(part); i++) {
		ARRAY_GROW(keys->text, keys->n);
		keys->text[keys->n++] = xstrdup(part[i]);
	}
	return true;
}

/* Pass the keys to fn unless reading them failed (rc < 0). Returns their number, or -1. */
static int give_keys(struct keys *keys, int rc, store_key_fn fn, void *arg)
{
	char **t = keys->text;

	for (size_t i = 0; i < keys->n; i += 3) {
		if (rc >= 0)
			fn(arg, &(const struct store_key){t[i], t[i + 1], t[i + 2]});
		for (size_t k = 0; k < 3; k++)
			free(t[i + k]);
	}
	free(t);
	return rc < 0 ? -1 : (int)(keys->n / 3);
}

/* Pass the key in each row to fn. */
static int each_key(
	struct store_db *db, sqlite3_stmt *st, store_key_fn fn, void *arg, struct err *err)
{
	struct keys keys = {NULL, 0};
	int rc;

	while ((rc = db_step(db, st, "read", err)) > 0)
		(void)add_key(&keys, text_of(st, 0), text_of(st, 1), text_of(st, 2));
	return give_keys(&keys, rc, fn, arg);
}

struct scan_keys {
	const struct store_scan *scan;
	void *arg; /* of scan->wants and fn */
	struct keys keys;
};

static bool note_key(void *arg, const struct store_version *v)
{
	struct scan_keys *s = arg;

	if (s->scan->wants && !s->scan->wants(s->arg, v))
		return true;
	return add_key(&s->keys, v->key.resource, v->key.ns, v->key.name);
}

int store_db_scan_keys(struct store_db *db, const struct store_scan *scan, store_key_fn fn,
	void *arg, struct err *err)
{
	struct scan_keys s = {scan, arg, {NULL, 0}};
	struct store_scan all = *scan;

	all.wants = NULL;
	return give_keys(&s.keys, store_db_scan(db, &all, note_key, &s, err), fn, arg);
}

/* The result is copied before *next is freed, because `after` may point to it. */
int store_db_next_resource(struct store_db *db, const char *after, char **next, struct err *err)
{
	sqlite3_stmt *st = db_query(db, DB_NEXT_RESOURCE, err, "t", after);
	int rc = db_step(db, st, "read", err);
	char *found = rc > 0 ? xstrdup((const char *)sqlite3_column_text(st, 0)) : NULL;

	sqlite3_reset(st);
	free(*next);
	*next = found;
	return rc < 0 ? -1 : found != NULL;
}

static const struct store_key from_start = {"", "", ""};

int store_db_orphans(struct store_db *db, const struct store_key *after, unsigned max,
	store_key_fn fn, void *arg, struct err *err)
{
	sqlite3_stmt *st =
		db_query(db, DB_ORPHANS, err, "ki", after ? after : &from_start, (int64_t)max);

	return each_key(db, st, fn, arg, err);
}

/* The owner's uid may also be a pseudo owner such as STORE_DELETING. */
int store_db_dependents(struct store_db *db, const char *uid, const struct store_key *after,
	unsigned max, store_key_fn fn, void *arg, struct err *err)
{
	sqlite3_stmt *st = db_query(
		db, DB_DEPENDENTS, err, "kit", after ? after : &from_start, (int64_t)max, uid);

	return each_key(db, st, fn, arg, err);
}

/* Rows come in no particular order, since the caller deletes them all. */
int store_db_aged(struct store_db *db, const char *resource, int64_t at_s, uint64_t keep,
	unsigned max, store_key_fn fn, void *arg, struct err *err)
{
	sqlite3_stmt *st = db_query(db, DB_AGED, err, "tiii", resource, at_s, keep, (int64_t)max);

	return each_key(db, st, fn, arg, err);
}

/* ---- transactions */

/* Begin a transaction and save the counters that a rollback must restore. */
int store_db_begin(struct store_db *db, struct err *err)
{
	if (db->open)
		DIE("nested transaction");
	if (db_run(db, DB_BEGIN, "begin", err, "") < 0)
		return -1;
	db->open = true;
	db->rv_before = db->rv;
	db->set_before = db->set;
	db->oldest_before = db->oldest;
	db->unsettled_then = false;
	return 0;
}

/* Undo the transaction, and with it the counters, which are kept in memory. */
void store_db_rollback(struct store_db *db)
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
		(void)db_run(db, DB_ROLLBACK, "roll back", &ignored, "");
}

/* Commit, with the digest of the current rows if any was written. Autocommit mode means that SQLite
 * has already rolled back, so there is nothing left to commit. */
int store_db_commit(struct store_db *db, struct err *err)
{
	if (sqlite3_get_autocommit(db->sql)) {
		store_db_rollback(db);
		return err_set_http(
			err, ERR_TRANSIENT, 500, "commit: rolled back by an earlier error");
	}
	if ((db->rv != db->rv_before && db_set_put(db, err) < 0) ||
		db_run(db, DB_COMMIT, "commit", err, "") < 0) {
		store_db_rollback(db);
		return -1;
	}
	db->open = false;
	db->unsettled |= db->unsettled_then;
	return 0;
}

uint64_t store_db_rv(const struct store_db *db)
{
	return db->rv;
}

uint64_t store_db_oldest(const struct store_db *db)
{
	return db->oldest;
}

int64_t store_db_restored_s(const struct store_db *db)
{
	return db->restored_s;
}

bool store_db_just_restored(const struct store_db *db)
{
	return db->just_restored;
}

/* ---- writing */

/* Point the object to its new version. An update comes first: REPLACE would delete the row from
 * every index and insert it again. It is needed for a new object, or one that got a new uid. */
static int put_object(struct store_db *db, const struct store_version *v, struct err *err)
{
	/* An object that exists only moves to its new version, unless it was replaced under another
	 * uid. */
	if (v->prev) {
		if (db_run(db, DB_MOVE_OBJECT, "write", err, "kit", &v->key, v->rv, v->uid) < 0)
			return -1;
		if (sqlite3_changes(db->sql) > 0)
			return 0;
	}
	return db_run(db, DB_PUT_OBJECT, "write", err, "kit", &v->key, v->rv, v->uid);
}

/* Compare owners with those stored. 1: equal; 0: different, or one is named twice; -1. */
static int has_owners(struct store_db *db, const struct store_key *key, const char *const *owners,
	size_t n, struct err *err)
{
	sqlite3_stmt *st = db_query(db, DB_OWNERS, err, "k", key);
	size_t stored = 0, known = 0;
	int rc;

	while ((rc = db_step(db, st, "read", err)) > 0) {
		size_t i = 0;

		while (i < n && !str_eq(owners[i], (const char *)sqlite3_column_text(st, 0)))
			i++;
		known += i < n;
		stored++;
	}
	return rc < 0 ? -1 : known == n && stored == n;
}

/* Replace the owners of an object if they changed. Few writes change them, and the others must not
 * touch the pages of that table. */
static int put_owners(struct store_db *db, const struct store_version *v, const char *const *owners,
	size_t n, struct err *err)
{
	int rc = v->prev ? has_owners(db, &v->key, owners, n, err) : n == 0;

	if (rc != 0) /* equal, or a failure */
		return rc < 0 ? -1 : 0;
	if (v->prev) {
		sqlite3_stmt *st = db_query(db, DB_OWNERS, err, "k", &v->key);

		/* Each is taken out of the digest before it is deleted. */
		while ((rc = db_step(db, st, "read", err)) > 0)
			db_set_owner(db, &db->set, &v->key,
				(const char *)sqlite3_column_text(st, 0), true);
		if (rc < 0 || db_run(db, DB_DROP_OWNERS, "write", err, "k", &v->key) < 0)
			return -1;
	}
	for (size_t i = 0; i < n; i++) {
		if (db_run(db, DB_ADD_OWNER, "write", err, "kt", &v->key, owners[i]) < 0)
			return -1;
		if (sqlite3_changes(db->sql) > 0) /* 0: an owner named twice */
			db_set_owner(db, &db->set, &v->key, owners[i], false);
	}
	return 0;
}

static bool take_away(void *arg, const struct store_version *v)
{
	struct store_db *db = arg;

	db_set_version(db, &db->set, v, true);
	return false;
}

/* Write one version. The digest of the current rows is updated along with them: the replaced
 * version is taken out before the row that names it changes. */
int store_db_write(struct store_db *db, const struct store_version *v, const char *const *owners,
	size_t n_owners, struct err *err)
{
	bool deletion = v->event == STORE_DELETED;
	cleanup_free uint8_t *seal = NULL;
	size_t len;

	if (!db->open || v->rv <= db->rv)
		DIE("write of version %llu after %llu", (unsigned long long)v->rv,
			(unsigned long long)db->rv);
	/* The old row must still be readable here: its digest is computed from its content. */
	if (store_db_get(db, &v->key, 0, take_away, db, err) < 0)
		return -1;
	if (deletion) {
		/* No key of a deleted object may remain, so all versions of a sealed one go. The
		 * write-ahead log then needs store_db_settle(). */
		if (db_run(db, DB_DROP_SEALED, "write", err, "k", &v->key) < 0)
			return -1;
		db->unsettled_then |= sqlite3_changes(db->sql) > 0;
		if (db_run(db, DB_DROP_OBJECT, "write", err, "k", &v->key) < 0)
			return -1;
	} else if (put_object(db, v, err) < 0) {
		return -1;
	}
	if (put_owners(db, v, owners, deletion ? 0 : n_owners, err) < 0)
		return -1;
	/* Of body and tag, one is the sealed or tagged content and the other is empty or plain. */
	seal = db_seal(db, v, &len);
	if (db_run(db, DB_INSERT_VERSION, "write", err, "kiitiiitibb", &v->key, v->rv,
		    (int64_t)v->event, v->uid, v->prev, v->at_s, (int64_t)v->head, v->meta,
		    (int64_t)v->sealed, v->sealed ? (void *)seal : v->body,
		    v->sealed ? len : v->len, v->sealed ? "" : (void *)seal,
		    v->sealed ? (size_t)0 : len) < 0)
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
int store_db_compact(struct store_db *db, uint64_t upto, struct err *err)
{
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
		if (db_run(db, q, "compact", err, "ii", db->oldest, upto) < 0)
			return -1;
		db->unsettled_then |= sqlite3_changes(db->sql) > 0;
	}
	db->oldest = upto > db->oldest ? upto : db->oldest;
	return 0;
}

bool store_db_unsettled(const struct store_db *db)
{
	return db->unsettled;
}

/* Write the log back and truncate it, so that no deleted key can be read from the file. */
int store_db_settle(struct store_db *db, struct err *err)
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
