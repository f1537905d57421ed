/* SPDX-License-Identifier: MIT */
/*
 * The digest of the current rows. Each current version and each owner has a keyed digest, and their
 * sum modulo 2^256 is stored: a write subtracts the digest of the old row and adds that of the new
 * one. The sum is sealed under the database key and written by the transaction that changes it.
 * Deleting, adding or rolling back a row from outside changes the sum; replaced versions are not
 * part of it. The key of the digests survives a rotation of the database key, since resealing must
 * not change any digest.
 */
#include "config.h"

#include "tec/apistore/db.h"

#include <string.h>

#include "db_internal.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/secret.h"

#define RECORD   "rows"
#define LATEST_S INT64_C(253402300798) /* 9999-12-31T23:59:58Z, as creation is a second later */

/* The sealed record, in host byte order. So are the numbers in all tags: a database can only be
 * opened on machines of the same byte order. */
struct record {
	uint64_t rv, n;
	int64_t newest_s, restored_s;
	uint64_t restored_rv;
	uint64_t sum[DB_SET_WORDS];
};

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
void db_set_version(const struct apistore_db *db, struct db_set *set,
	const struct apistore_version *v, bool remove)
{
	const uint64_t numbers[] = {v->rv, (uint64_t)v->event, v->prev, (uint64_t)v->at_s,
		(uint64_t)v->head, (uint64_t)v->sealed};
	const struct seal_part parts[] = {{numbers, sizeof(numbers)},
		{v->key.resource, strlen(v->key.resource)}, {v->key.ns, strlen(v->key.ns)},
		{v->key.name, strlen(v->key.name)}, {v->uid, strlen(v->uid)},
		{v->meta, strlen(v->meta)}, {v->body, v->len}};
	uint8_t digest[SEAL_TAG_LEN];

	seal_tag(db->set_key, parts, ARRAY_LEN(parts), digest);
	change(set, digest, remove);
}

void db_set_owner(const struct apistore_db *db, struct db_set *set, const struct apistore_key *key,
	const char *uid, bool remove)
{
	const struct seal_part parts[] = {{"owner", 5}, {key->resource, strlen(key->resource)},
		{key->ns, strlen(key->ns)}, {key->name, strlen(key->name)}, {uid, strlen(uid)}};
	uint8_t digest[SEAL_TAG_LEN];

	seal_tag(db->set_key, parts, ARRAY_LEN(parts), digest);
	change(set, digest, remove);
}

static bool take_away(void *arg, const struct apistore_version *v)
{
	struct apistore_db *db = arg;

	db_set_version(db, &db->set, v, true);
	return false;
}

int db_set_take_away(struct apistore_db *db, const struct apistore_key *key, struct err *err)
{
	return apistore_db_get(db, key, 0, take_away, db, err) < 0 ? -1 : 0;
}

/* ---- the stored record */

/* Write the record with the digest. It also holds the last version, so that an old record cannot be
 * put beside newer rows. */
int db_set_put(struct apistore_db *db, struct err *err)
{
	struct record r = {db->rv, db->set.n, db->newest_s, db->restored_s, db->restored_rv, {0}};
	cleanup_free uint8_t *sealed = NULL;
	uint8_t bound[SEAL_TAG_LEN];

	memcpy(r.sum, db->set.sum, sizeof(r.sum));
	bind_record(bound);
	sealed = seal_bytes(db->now.set, bound, &r, sizeof(r));
	return db_put_setting(db, RECORD, sealed, sizeof(r) + SEAL_OVERHEAD, err);
}

/* Read the record. 1; 0: it is missing, or it is not what was written; -1. */
static int get_record(struct apistore_db *db, struct record *r, struct err *err)
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

static bool same_set(const struct record *r, const struct apistore_db *db, const struct db_set *set)
{
	return r->rv == db->rv && r->n == set->n &&
	       secret_same_bytes(r->sum, set->sum, sizeof(r->sum));
}

/* Compare the rows found with the record, and take over the record's other values. *whole is false
 * if the rows were changed from outside. */
static int compare(
	struct apistore_db *db, const struct db_found *found, bool *whole, struct err *err)
{
	struct record r;
	int rc = get_record(db, &r, err);

	if (rc < 0)
		return -1;
	*whole = rc == 1 && same_set(&r, db, &found->set);
	db->set = found->set;
	db->newest_s = *whole ? r.newest_s : found->newest_s;
	if (rc == 1) {
		db->restored_s = r.restored_s;
		db->restored_rv = r.restored_rv;
		db->rv = r.rv > db->rv ? r.rv : db->rv;
	}
	return 0;
}

/* Record the restore. Its time is at least that of the newest row, which a clock set back may put
 * in the future, and at most what RFC 3339 can express. */
static void mark_restored(struct apistore_db *db, int64_t now_s)
{
	int64_t at_s = db->newest_s > now_s ? db->newest_s : now_s;

	at_s = at_s < LATEST_S ? at_s : LATEST_S;
	if (at_s > db->restored_s)
		db->restored_s = at_s;
	db->restored_rv = db->rv;
}

/* Convert a database from before 0.3.0. It has no digest to compare with, so its rows may be
 * anyone's: it is marked like a restored backup, and the operator asks for the same checks. */
static int take_earlier(struct apistore_db *db, const struct db_verify *how,
	const struct db_found *found, struct err *err)
{
	db->set = found->set;
	db->newest_s = found->newest_s;
	mark_restored(db, how->now_s);
	if (db_convert(db, how->key, err) < 0)
		return -1;
	log_warn(NULL,
		"the store was written by a version before 0.3.0, which did not protect its set of rows; it is treated as restored from a backup",
		NULL);
	return 0;
}

/* Rows come first: the digest is computed over rows whose tags are valid. With accept_unverified a
 * mismatch is logged, and the digest of the rows found becomes the new one. */
int db_verify(struct apistore_db *db, const struct db_verify *how, struct err *err)
{
	struct db_found found = {0};
	bool whole = true;

	if (db_check(db, &found, err) < 0)
		return -1;
	if (db->version < DB_VERSION)
		return take_earlier(db, how, &found, err);
	if (compare(db, &found, &whole, err) < 0)
		return -1;
	if (!whole && !how->accept_unverified)
		return err_set(err, ERR_INVALID,
			"rows were deleted, added or replaced by older ones outside of tec-operator: restore a backup, or this file with --restore and --accept-unverified");
	if (!whole)
		log_warn(NULL, "accepted a backup whose rows do not match its digest", NULL);
	if (how->restores)
		mark_restored(db, how->now_s);
	return 0;
}
