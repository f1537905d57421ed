/* SPDX-License-Identifier: MIT */
/*
 * Encrypted rows for the program's own data, identified by table and name. They share the database
 * and the transaction of the turn with the objects. Clients cannot reach them: a table's name
 * contains a slash, which no resource has. store_objects_when_stored() reports when a write is
 * durable.
 *
 * Errors: ERR_NOT_FOUND no such row; all others come from the database (store/db.h).
 */
#ifndef TEC_STORE_ROWS_H
#define TEC_STORE_ROWS_H

#include <stddef.h>

#include "tec/store/objects.h"
#include "tec/base/err.h"
#include "tec/base/secret.h"
#include "tec/pki/key.h"

/* Create or replace a row. table: "OWNER/TABLE". */
int store_rows_set(struct store_objects *s, const char *table, const char *name, const void *data,
	size_t len, struct err *err) MUST_CHECK;
/* Get the bytes of a row, which the caller wipes and frees; never NULL on success. */
int store_rows_get(struct store_objects *s, const char *table, const char *name, void **data,
	size_t *len, struct err *err) MUST_CHECK;
/* The same for a private key: create or replace it, and get it. The caller frees it. */
int store_rows_set_key(struct store_objects *s, const char *table, const char *name,
	const struct pki_key *key, struct err *err) MUST_CHECK;
struct pki_key *store_rows_get_key(
	struct store_objects *s, const char *table, const char *name, struct err *err) MUST_CHECK;
int store_rows_remove(
	struct store_objects *s, const char *table, const char *name, struct err *err) MUST_CHECK;
/* List the names in a table that are longer than prefix and begin with it ("": all), in order. fn
 * must not write. */
typedef void (*store_rows_fn)(void *arg, const char *name);
int store_rows_list(struct store_objects *s, const char *table, const char *prefix,
	store_rows_fn fn, void *arg, struct err *err) MUST_CHECK;

#endif
