/* SPDX-License-Identifier: MIT */
/*
 * The sealing key: 32 bytes, kept outside of the database, that wrap the database key. It is the
 * first of: the file that the caller names; the systemd credential tec-operator.sealing-key (which
 * systemd may keep sealed by a TPM); DIR/sealing.key. Only the last one is ever created here.
 *
 * A database sealed with an earlier key is opened with that key, if it can be found, and rekeyed.
 * Earlier keys are looked for in FILE.old, tec-operator.sealing-key.old, DIR/sealing.key.new (left
 * by an interrupted rotation) and DIR/sealing.key (from before the key moved elsewhere).
 */
#ifndef TEC_STORE_SEALING_H
#define TEC_STORE_SEALING_H

#include <stdbool.h>

#include "tec/store/db.h"
#include "tec/base/err.h"
#include "tec/base/secret.h"

#define STORE_SEALING_CREDENTIAL "tec-operator.sealing-key"

struct store_sealing;

struct store_sealing_conf {
	const char *file;        /* NULL: not named */
	const char *credentials; /* the directory of systemd credentials; NULL: none */
};

enum store_sealing_how {
	STORE_SEALING_READ,
	STORE_SEALING_MAKE, /* create DIR/sealing.key if there is neither a key nor a database */
	/* Change nothing, and fail where MAKE would. The caller has no lock, and the result is good
	 * for store_sealing_read() only; its key is NULL where MAKE would create one. */
	STORE_SEALING_LOOK,
};
/*
 * Find and read the key. The caller has locked dir. NULL: ERR_NOT_FOUND there is no key and none may
 * be created; ERR_INVALID a file is wrong, and err names it.
 */
struct store_sealing *store_sealing_open(const char *dir, const struct store_sealing_conf *conf,
	enum store_sealing_how how, struct err *err) MUST_CHECK;
void store_sealing_free(struct store_sealing *s); /* NULL is fine */

/* Borrowed until the next rotation. */
const struct secret *store_sealing_key(const struct store_sealing *s);
/* Is the key DIR/sealing.key? A copy of the directory then includes it. */
bool store_sealing_is_own(const struct store_sealing *s);
/*
 * Read or write a private key in a file of the directory (ca.key, server.key, token.key). Files are
 * written sealed under the current key. Files sealed under an earlier key, and plain ones from
 * version 0.2.0, can be read too. NULL: ERR_NOT_FOUND no such file; ERR_INVALID it is empty, or no
 * key opens it.
 */
struct secret *store_sealing_read(
	const struct store_sealing *s, const char *name, struct err *err) MUST_CHECK;
int store_sealing_write(const struct store_sealing *s, const char *name, const struct secret *plain,
	struct err *err) MUST_CHECK;
/* Open the database in dir as store_db_open() does. If it was sealed with an earlier key, it and
 * the key files are sealed with the current one before this returns. */
struct store_db *store_sealing_open_db(struct store_sealing *s, struct err *err) MUST_CHECK;
/*
 * Change the key: to a new random one in DIR/sealing.key, or to the current content of the file
 * that was named. No transaction may be open. ERR_CONFLICT: the file still holds the key in use.
 * After a crash in between, the next start finds the right key.
 */
int store_sealing_rotate(struct store_sealing *s, struct store_db *db, struct err *err) MUST_CHECK;

/*
 * The format of these files: a line of text that names it, then the sealed bytes. A file is bound to
 * its name, so that one cannot replace another. Version 0.2.0 wrote plain PEM.
 */
bool store_sealing_is_file(const char *text, size_t len);
/* Return the content of a file of this name, of *len bytes; the caller frees it. */
char *store_sealing_seal_file(const struct secret *sealing_key, const char *name,
	const struct secret *plain, size_t *len) MUST_CHECK;
/* Decrypt a file; the caller frees the result. NULL: another key or name, or changed bytes. */
struct secret *store_sealing_open_file(const struct secret *sealing_key, const char *name,
	const char *text, size_t len) MUST_CHECK;

#endif
