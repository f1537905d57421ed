/* SPDX-License-Identifier: MIT */
/*
 * A row is stored as a version of an object whose body is not text. Table names that a client could
 * use as a resource are refused.
 */
#include "config.h"

#include "tec/store/rows.h"

#include <assert.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/mem.h"
#include "tec/base/uuid.h"

#include "store_internal.h"

/* Make the key of a row. The slash keeps tables apart from resources, which clients can name. */
static struct store_key key_of(const char *table, const char *name)
{
	assert(strchr(table, '/'));
	return (struct store_key){table, "", name};
}

/* Note the current version of a row. */
static bool take_version(void *arg, const struct store_version *v)
{
	*(uint64_t *)arg = v->rv;
	return false;
}

/* Write a version of a row with a new uid. data NULL: delete it. */
static int write_row(struct store_objects *s, const struct store_key *key, uint64_t prev,
	const void *data, size_t len, struct err *err)
{
	char uid[UUID_TEXT_LEN + 1];
	struct store_version v = {.key = *key,
		.uid = uid,
		.rv = store_db_rv(s->db) + 1,
		.prev = prev,
		.event = !data  ? STORE_DELETED
			 : prev ? STORE_MODIFIED
				: STORE_ADDED,
		.at_s = clock_wall_s(),
		.meta = "",
		.body = data ? data : "",
		.len = len,
		.sealed = data != NULL};

	uuid_new_v4(uid);
	if (store_db_write(s->db, &v, NULL, 0, err) < 0)
		return store_objects_failed(s, err);
	store_objects_changed(
		s, key->resource); /* counts as a change, so the history is compacted */
	return 0;
}

/* Begin the transaction. It fails if an earlier write in this turn failed, with the reason of that. */
static int begin(struct store_objects *s, struct err *err)
{
	if (store_objects_begin(s) == 0)
		return 0;
	*err = s->doomed;
	return -1;
}

/* Begin first: the current version must be read within the transaction that replaces it. */
int store_rows_set(struct store_objects *s, const char *table, const char *name, const void *data,
	size_t len, struct err *err)
{
	const struct store_key key = key_of(table, name);
	uint64_t prev = 0;

	if (begin(s, err) < 0 || store_db_get(s->db, &key, 0, take_version, &prev, err) < 0)
		return -1;
	return write_row(s, &key, prev, len > 0 ? data : "", len, err);
}

/* An uncommitted write of this turn is visible here, as in all reads. */
int store_rows_get(struct store_objects *s, const char *table, const char *name, void **data,
	size_t *len, struct err *err)
{
	const struct store_key key = key_of(table, name);
	int rc = store_db_copy(s->db, &key, data, len, err);

	if (rc == 0)
		return err_set(err, ERR_NOT_FOUND, "no such row");
	return rc < 0 ? -1 : 0;
}

/* A row holds the PEM, which is wiped here. */
int store_rows_set_key(struct store_objects *s, const char *table, const char *name,
	const struct pki_key *key, struct err *err)
{
	cleanup_secret struct secret *pem = pki_key_private_pem(key);

	return store_rows_set(s, table, name, secret_peek(pem), secret_len(pem), err);
}

struct pki_key *store_rows_get_key(
	struct store_objects *s, const char *table, const char *name, struct err *err)
{
	cleanup_secret struct secret *pem = NULL;
	void *data = NULL;
	size_t len;

	if (store_rows_get(s, table, name, &data, &len, err) < 0)
		return NULL;
	pem = secret_new_copy(data, len);
	secret_wipe(data, len);
	free(data);
	return pki_key_from_pem(pem, err);
}

/* A row that does not exist is an error and begins no transaction. */
int store_rows_remove(struct store_objects *s, const char *table, const char *name, struct err *err)
{
	const struct store_key key = key_of(table, name);
	uint64_t prev = 0;

	if (store_db_get(s->db, &key, 0, take_version, &prev, err) < 0)
		return -1;
	if (prev == 0)
		return err_set(err, ERR_NOT_FOUND, "no such row");
	return begin(s, err) < 0 ? -1 : write_row(s, &key, prev, NULL, 0, err);
}

struct listing {
	const char *prefix;
	store_rows_fn fn;
	void *arg;
};

static bool list_one(void *arg, const struct store_version *v)
{
	const struct listing *l = arg;

	if (!str_starts(v->key.name, l->prefix))
		return false; /* names are sorted, so no other can match */
	l->fn(l->arg, v->key.name);
	return true;
}

/* Only keys are read, so no row is decrypted to be listed. */
int store_rows_list(struct store_objects *s, const char *table, const char *prefix,
	store_rows_fn fn, void *arg, struct err *err)
{
	const struct store_scan scan = {.resource = key_of(table, prefix).resource,
		.after_ns = "",
		.after_name = prefix,
		.only_keys = true};
	struct listing l = {prefix, fn, arg};

	return store_db_scan(s->db, &scan, list_one, &l, err) < 0 ? -1 : 0;
}
