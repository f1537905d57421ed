/* SPDX-License-Identifier: MIT */
/*
 * The database key, which is stored wrapped by the sealing key, and its rotation. One transaction
 * switches to a new key; the old key stays, wrapped beside it, to read older rows. These are
 * resealed a few at a time, and then the old key is deleted. An old backup and its sealing key
 * therefore cannot decrypt what was written after a rotation.
 */
#include "config.h"

#include "tec/store/db.h"

#include <stdio.h>
#include <string.h>

#include "db_internal.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"

#define KEY      "key"
#define OLD_KEY  "key-old"
#define SET_KEY  "key-rows"
#define SEALER   "sealed-by"
#define ALL_ROWS 256

/* ---- wrapped keys */

/* Bind a wrapped key to its purpose, so that one setting cannot be copied over another. */
static void bind_wrapped(const char *setting, uint8_t bound[SEAL_TAG_LEN])
{
	memset(bound, 0, SEAL_TAG_LEN);
	memcpy(bound, "tec apistore key", 16);
	if (str_eq(setting, OLD_KEY))
		memcpy(bound + 16, " before", 7);
	else if (str_eq(setting, SET_KEY))
		memcpy(bound + 16, " of rows", 8);
}

/* Derive the subkeys. The labels differ between database versions, so that rows of one version are
 * invalid in another. */
static void keys_set(struct db_keys *keys, struct secret *take_key, int64_t version)
{
	if (version < DB_VERSION)
		*keys = (struct db_keys){take_key, seal_subkey(take_key, "db-seals"),
			seal_subkey(take_key, "db-tags."), NULL};
	else
		*keys = (struct db_keys){take_key, seal_subkey(take_key, "db-seal3"),
			seal_subkey(take_key, "db-tags3"), seal_subkey(take_key, "db-rows3")};
}

void db_keys_fini(struct db_keys *keys)
{
	secret_free(keys->key);
	secret_free(keys->seal);
	secret_free(keys->tag);
	secret_free(keys->set);
	*keys = (struct db_keys){0};
}

/* Write a key, wrapped by the sealing key and bound to the name of its setting. */
static int put_wrapped(struct store_db *db, const char *setting, const struct secret *inner,
	const struct secret *key, struct err *err)
{
	cleanup_free uint8_t *wrapped = NULL;
	uint8_t bound[SEAL_TAG_LEN];

	bind_wrapped(setting, bound);
	wrapped = seal_bytes(key, bound, secret_peek(inner), SEAL_KEY_LEN);
	return db_put_setting(db, setting, wrapped, SEAL_KEY_LEN + SEAL_OVERHEAD, err);
}

/* The id of the sealing key is stored in clear, so that a wrong key can be named in the error. */
int db_put_keys(struct store_db *db, const struct secret *key, struct err *err)
{
	char id[SEAL_ID_LEN + 1];

	seal_key_id(key, id);
	if (put_wrapped(db, KEY, db->now.key, key, err) < 0 ||
		put_wrapped(db, SET_KEY, db->set_key, key, err) < 0 ||
		(db->old.key && put_wrapped(db, OLD_KEY, db->old.key, key, err) < 0) ||
		db_put_setting(db, SEALER, id, SEAL_ID_LEN, err) < 0)
		return -1;
	return db_set_put(db, err);
}

/* Unwrap a key. 1: out is set; 0: there is no such setting; -2: another key wrapped it, or it is
 * damaged; -1: err is set. */
static int get_wrapped(struct store_db *db, const char *setting, const struct secret *key,
	struct secret **out, struct err *err)
{
	cleanup_free uint8_t *wrapped = NULL;
	cleanup_secret struct secret *own = secret_new(SEAL_KEY_LEN);
	uint8_t bound[SEAL_TAG_LEN];
	size_t len = 0;
	int rc = db_get_setting(db, setting, &wrapped, &len, err);

	if (rc <= 0)
		return rc;
	bind_wrapped(setting, bound);
	if (len != SEAL_KEY_LEN + SEAL_OVERHEAD ||
		seal_open(key, bound, wrapped, len, secret_bytes(own)) < 0)
		return -2;
	*out = steal_ptr(&own);
	return 1;
}

/* DB_VERSION; in a transaction. */
static int put_version(struct store_db *db, struct err *err)
{
	char text[40];

	(void)snprintf(text, sizeof(text), "PRAGMA user_version=%d", DB_VERSION);
	return db_exec(db, text, "convert", err);
}

/* Create the keys of a new database. A database that has rows but no key was tampered with. */
static int new_key(struct store_db *db, const struct secret *key, struct err *err)
{
	int64_t rows = 0;

	if (db_number(db, "SELECT count(*) FROM version", &rows, err) < 0)
		return -1;
	if (rows > 0)
		return err_set(err, ERR_INVALID,
			"the database is damaged (it has no key): restore a backup");
	db->version = DB_VERSION;
	db->set_key = secret_new_random(SEAL_KEY_LEN);
	keys_set(&db->now, secret_new_random(SEAL_KEY_LEN), DB_VERSION);
	if (store_db_begin(db, err) < 0)
		return -1;
	if (db_put_keys(db, key, err) < 0 || put_version(db, err) < 0) {
		store_db_rollback(db);
		return -1;
	}
	return store_db_commit(db, err);
}

/* Tell a wrong sealing key from a damaged wrapped key by the id of the key that wrapped it. */
static int refuse_key(struct store_db *db, const struct secret *key, struct err *err)
{
	cleanup_free uint8_t *id = NULL;
	char have[SEAL_ID_LEN + 1];
	size_t len = 0;

	if (db_get_setting(db, SEALER, &id, &len, err) < 0)
		return -1;
	/* The id in the database is not authenticated: it only decides which message is shown. */
	seal_key_id(key, have);
	if (id && str_eq((char *)id, have))
		return err_set(err, ERR_INVALID,
			"the database is damaged (its key cannot be read): restore a backup");
	return err_set(err, ERR_DENIED,
		"the database is sealed with key %s, but the sealing key given is %s; give the key it is sealed with",
		id ? log_escn((char *)id, len) : "?", have);
}

/* A database without a key is new and gets one. An old key beside the current one means that a
 * rotation was not finished: resealing starts over from the first row. */
int db_unlock(struct store_db *db, const struct secret *key, struct err *err)
{
	struct secret *own = NULL, *old = NULL;
	int rc = get_wrapped(db, KEY, key, &own, err);

	if (rc == 0)
		return new_key(db, key, err);
	if (rc == 1) {
		keys_set(&db->now, own, db->version);
		rc = get_wrapped(db, OLD_KEY, key, &old, err);
	}
	if (rc == 1)
		keys_set(&db->old, old, db->version);
	if (rc == -2)
		return refuse_key(db, key, err);
	db->reseal_until = db->rv;
	if (rc >= 0 && db->version >= DB_VERSION)
		rc = get_wrapped(db, SET_KEY, key, &db->set_key, err);
	/* If the key of row digests is missing or damaged, a random one takes its place: the stored
	 * digest then does not match, which db_verify() reports. */
	if (!db->set_key)
		db->set_key = secret_new_random(SEAL_KEY_LEN);
	return rc == -1 ? -1 : 0;
}

/* ---- key rotation */

/* A failure before the commit keeps the old keys in use. */
int store_db_rekey(struct store_db *db, const struct secret *key, struct err *err)
{
	/* Finish an earlier rotation first: a row is sealed under one of two keys at most. */
	if (store_db_reseal_all(db, err) < 0 || store_db_begin(db, err) < 0)
		return -1;
	db->old = db->now;
	keys_set(&db->now, secret_new_random(SEAL_KEY_LEN), DB_VERSION);
	db->unsettled_then = true;
	if (db_put_keys(db, key, err) < 0 || store_db_commit(db, err) < 0) {
		store_db_rollback(db);
		db_keys_fini(&db->now);
		db->now = db->old;
		db->old = (struct db_keys){0};
		return -1;
	}
	db->reseal_at = 0;
	db->reseal_until = db->rv;
	return 0;
}

bool store_db_is_resealing(const struct store_db *db)
{
	return db->old.key != NULL;
}

struct batch {
	struct store_db *db;
	struct err *err;
	size_t left; /* bytes of bodies left in this batch */
	int rc;      /* 1: a row was written; 0: there was none; -1 */
};

/* Write one row again under the new key. Sealed rows get a new body, others only a new tag. */
static bool reseal_row(void *arg, const struct store_version *v)
{
	struct batch *b = arg;
	size_t len;
	cleanup_free uint8_t *seal = db_seal(b->db, v, &len);

	b->rc = -1;
	if (db_run(b->db, v->sealed ? DB_RESEAL : DB_RETAG, "seal again", b->err, "bi", seal, len,
		    v->rv) < 0)
		return false;
	b->db->reseal_at = v->rv;
	b->left -= v->len < b->left ? v->len : b->left;
	b->rc = 1;
	return true;
}

/* Reseal the next row, and set b->rc. */
static void reseal_next(struct batch *b)
{
	sqlite3_stmt *st =
		db_query(b->db, DB_NEXT_ROW, b->err, "ii", b->db->reseal_at, b->db->reseal_until);

	b->rc = db_step(b->db, st, "seal again", b->err);
	if (b->rc > 0 && db_give_version(b->db, st, reseal_row, b, b->err) < 0)
		b->rc = -1;
	sqlite3_reset(st);
}

/* A failure restores the position, so that the next call repeats the same rows. */
int store_db_reseal(struct store_db *db, unsigned rows, size_t bytes, struct err *err)
{
	uint64_t before = db->reseal_at;
	struct batch b = {db, err, bytes, 1};

	if (!db->old.key)
		return 0;
	if (store_db_begin(db, err) < 0)
		return -1;
	for (unsigned i = 0; i < rows && b.left > 0 && b.rc > 0; i++)
		reseal_next(&b);
	/* The old key is deleted in the same transaction as the last row that it sealed. */
	if (b.rc == 0)
		b.rc = db_run(db, DB_DROP_SETTING, "forget a key", err, "t", OLD_KEY);
	db->unsettled_then = true;
	if (b.rc < 0 || store_db_commit(db, err) < 0) {
		store_db_rollback(db);
		db->reseal_at = before;
		return -1;
	}
	if (b.rc == 0)
		db_keys_fini(&db->old);
	return b.rc;
}

int store_db_reseal_all(struct store_db *db, struct err *err)
{
	int rc;

	while ((rc = store_db_reseal(db, ALL_ROWS, SIZE_MAX, err)) > 0)
		;
	return rc;
}

/* ---- conversion of an earlier version */

/* An unfinished rotation is completed first. Then one transaction writes new keys, all rows and the
 * new version: an interrupted conversion leaves the old database. */
int db_convert(struct store_db *db, const struct secret *key, struct err *err)
{
	struct batch all = {db, err, SIZE_MAX, 1};
	struct db_keys was;

	if (store_db_reseal_all(db, err) < 0 || store_db_begin(db, err) < 0)
		return -1;
	was = db->now;
	keys_set(&db->now, secret_new_random(SEAL_KEY_LEN), DB_VERSION);
	all.rc = db_put_keys(db, key, err) < 0 ? -1 : 1;
	db->old = was; /* to read the rows below; not stored */
	db->unsettled_then = true;
	db->reseal_at = 0;
	db->reseal_until = db->rv;
	while (all.rc > 0)
		reseal_next(&all);
	if (all.rc < 0 || put_version(db, err) < 0 || store_db_commit(db, err) < 0) {
		store_db_rollback(db);
		return -1;
	}
	db_keys_fini(&db->old);
	db->version = DB_VERSION;
	return store_db_settle(db, err);
}
