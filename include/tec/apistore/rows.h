/* SPDX-License-Identifier: MIT */
/*
 * Bytes by table and name, sealed, in the same database and the same transaction of the turn as the
 * objects, for what belongs to this program and is no object: no client can name a table, since a
 * table's name holds a slash. apistore_objects_when_stored() says when a write is durable.
 *
 * Errors: ERR_NOT_FOUND there is no such row; anything else is the database's (apistore/db.h).
 */
#ifndef TEC_APISTORE_ROWS_H
#define TEC_APISTORE_ROWS_H

#include <stddef.h>

#include "tec/apistore/objects.h"
#include "tec/base/err.h"
#include "tec/base/secret.h"

/* Makes or replaces. table: "OWNER/TABLE". */
int apistore_rows_set(struct apistore_objects *s, const char *table, const char *name,
	const void *data, size_t len, struct err *err) MUST_CHECK;
/* The bytes, which are the caller's to wipe and free; never NULL when it succeeds. */
int apistore_rows_get(struct apistore_objects *s, const char *table, const char *name, void **data,
	size_t *len, struct err *err) MUST_CHECK;
int apistore_rows_remove(struct apistore_objects *s, const char *table, const char *name,
	struct err *err) MUST_CHECK;
/* The names of the table that begin with prefix ("": all), in order; fn must not write. */
typedef void (*apistore_rows_fn)(void *arg, const char *name);
int apistore_rows_list(struct apistore_objects *s, const char *table, const char *prefix,
	apistore_rows_fn fn, void *arg, struct err *err) MUST_CHECK;

#endif
