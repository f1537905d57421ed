/* SPDX-License-Identifier: MIT */
/*
 * The sealing key: what the database's own key is wrapped under, 32 bytes that the database does not
 * hold. It is, in this order: the file that the caller names; the systemd credential
 * tec-operator.sealing-key (which systemd may keep sealed by a TPM); DIR/sealing.key, the only one
 * that is ever made here.
 *
 * A database that another key sealed is opened with the earlier one where that can still be found,
 * and sealed again: FILE.old, tec-operator.sealing-key.old, DIR/sealing.key.new (of a rotation that
 * was interrupted), DIR/sealing.key (before it moved elsewhere).
 */
#ifndef TEC_APISTORE_SEALING_H
#define TEC_APISTORE_SEALING_H

#include <stdbool.h>

#include "tec/apistore/db.h"
#include "tec/base/err.h"
#include "tec/base/secret.h"

#define APISTORE_SEALING_CREDENTIAL "tec-operator.sealing-key"

struct apistore_sealing;

struct apistore_sealing_conf {
	const char *file;        /* NULL: not named */
	const char *credentials; /* the directory of systemd's credentials; NULL: none */
};

/*
 * dir is locked by the caller. make: DIR/sealing.key is made where there is no key and no database
 * yet. NULL: ERR_NOT_FOUND there is no key and none may be made; ERR_INVALID says which file is
 * wrong.
 */
struct apistore_sealing *apistore_sealing_open(const char *dir,
	const struct apistore_sealing_conf *conf, bool make, struct err *err) MUST_CHECK;
/* The same without the lock, where nothing is made or changed: good for apistore_sealing_read() only.
 * NULL: apistore_sealing_open() would fail, with make. */
struct apistore_sealing *apistore_sealing_look(
	const char *dir, const struct apistore_sealing_conf *conf, struct err *err) MUST_CHECK;
void apistore_sealing_free(struct apistore_sealing *s); /* NULL is fine */

/* Borrowed until the next rotation. */
const struct secret *apistore_sealing_key(const struct apistore_sealing *s);
/* The key is DIR/sealing.key, so a copy of the directory includes it. */
bool apistore_sealing_is_own(const struct apistore_sealing *s);
/*
 * A private key in a file of the directory (ca.key, server.key, token.key), which is written sealed under
 * the current key. One that is plain, as version 0.2.0 wrote it, or sealed under an earlier key is read
 * as well. NULL: ERR_NOT_FOUND: no such file; ERR_INVALID: it is empty, or no key opens it.
 */
struct secret *apistore_sealing_read(
	const struct apistore_sealing *s, const char *name, struct err *err) MUST_CHECK;
int apistore_sealing_write(const struct apistore_sealing *s, const char *name,
	const struct secret *plain, struct err *err) MUST_CHECK;
/* The database in dir, which is sealed by the current key when this returns, as are the files of keys.
 * As apistore_db_open(). */
struct apistore_db *apistore_sealing_open_db(
	struct apistore_sealing *s, struct err *err) MUST_CHECK;
/*
 * Another key from now on: a new one in DIR/sealing.key, or what the file that was named holds by
 * now. The database is in no transaction. ERR_CONFLICT: the file holds the key in use. A process
 * that dies in between finds the key at its next start.
 */
int apistore_sealing_rotate(
	struct apistore_sealing *s, struct apistore_db *db, struct err *err) MUST_CHECK;

#endif
