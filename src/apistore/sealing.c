/* SPDX-License-Identifier: MIT */
/*
 * A key is on disk before the database depends on it, and no key goes before the database is sealed
 * by another: at each moment one of the files looked into holds the right one.
 */
#include "config.h"

#include "tec/apistore/sealing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tec/base/file.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/seal.h"
#include "tec/base/str.h"

#include "db_internal.h"

#define OWN_FILE     "sealing.key"
#define KEY_FILE_MAX 4096
#define MAX_OTHERS   3

struct apistore_sealing {
	char *dir;
	char *path;          /* where the current key is */
	char *own, *own_new; /* DIR/sealing.key, and the next one during a rotation */
	struct secret *key;  /* the current one */
	bool is_own;         /* path is own */
	bool by_systemd;     /* it is a credential: systemd sees to it that nobody else reads it */
};

/* NULL with ERR_NOT_FOUND: there is no such file. */
static struct secret *read_key(const struct apistore_sealing *s, const char *path, struct err *err)
{
	struct secret *key = NULL;
	struct stat st;
	size_t len = 0;
	char *text = file_read(path, KEY_FILE_MAX, &len, &st, err);

	if (!text)
		return NULL;
	if (len != SEAL_KEY_LEN)
		(void)err_set(err, ERR_INVALID,
			"%s does not have %d bytes; next step: put the sealing key there",
			log_esc(path), SEAL_KEY_LEN);
	else if ((st.st_mode & 077) && !s->by_systemd)
		(void)err_set(err, ERR_INVALID,
			"%s can be read by other users; next step: chmod 0600, or make another key",
			log_esc(path));
	else
		key = secret_new_copy(text, len);
	file_wipe(text, len);
	return key;
}

static int put_key(const char *path, const struct secret *key, struct err *err)
{
	return file_replace(path, secret_peek(key), SEAL_KEY_LEN, 0600, err);
}

/* Never made again beside a database that needs another. */
static int may_make(const struct apistore_sealing *s, struct err *err)
{
	cleanup_free char *store = xasprintf("%s/" DB_FILE, s->dir);

	if (access(store, F_OK) == 0)
		return err_set(err, ERR_INVALID,
			"%s is missing, and %s cannot be read without it; next step: put it back from a backup",
			log_esc(s->own), log_esc(store));
	return 0;
}

static int make_own(struct apistore_sealing *s, struct err *err)
{
	if (may_make(s, err) < 0)
		return -1;
	s->key = secret_new_random(SEAL_KEY_LEN);
	return put_key(s->own, s->key, err);
}

static void choose(struct apistore_sealing *s, const struct apistore_sealing_conf *conf)
{
	cleanup_free char *credential = NULL;

	if (conf->credentials)
		credential = xasprintf("%s/" APISTORE_SEALING_CREDENTIAL, conf->credentials);
	s->by_systemd = !conf->file && credential && access(credential, F_OK) == 0;
	s->is_own = !conf->file && !s->by_systemd;
	s->path = s->by_systemd ? steal_ptr(&credential) : xstrdup(s->is_own ? s->own : conf->file);
}

static struct apistore_sealing *sealing_new(
	const char *dir, const struct apistore_sealing_conf *conf)
{
	struct apistore_sealing *s = xcalloc(1, sizeof(*s));

	s->dir = xstrdup(dir);
	s->own = xasprintf("%s/" OWN_FILE, dir);
	s->own_new = xasprintf("%s.new", s->own);
	choose(s, conf);
	return s;
}

struct apistore_sealing *apistore_sealing_open(
	const char *dir, const struct apistore_sealing_conf *conf, bool make, struct err *err)
{
	struct apistore_sealing *s = sealing_new(dir, conf);

	s->key = read_key(s, s->path, err);
	if (!s->key && err->kind == ERR_NOT_FOUND && s->is_own && make) {
		err_clear(err);
		if (make_own(s, err) == 0)
			return s;
	}
	if (s->key)
		return s;
	apistore_sealing_free(s);
	return NULL;
}

int apistore_sealing_check(
	const char *dir, const struct apistore_sealing_conf *conf, struct err *err)
{
	struct apistore_sealing *s = sealing_new(dir, conf);

	s->key = read_key(s, s->path, err);
	if (!s->key && err->kind == ERR_NOT_FOUND && s->is_own) {
		err_clear(err);
		(void)may_make(s, err);
	}
	apistore_sealing_free(s);
	return err_is_set(err) ? -1 : 0;
}

void apistore_sealing_free(struct apistore_sealing *s)
{
	if (!s)
		return;
	secret_free(s->key);
	free(s->own_new);
	free(s->own);
	free(s->path);
	free(s->dir);
	free(s);
}

const struct secret *apistore_sealing_key(const struct apistore_sealing *s)
{
	return s->key;
}

/* ---- the database */

static struct apistore_db *open_with(
	const struct apistore_sealing *s, const struct secret *key, struct err *err)
{
	const struct apistore_db_conf conf = {.dir = s->dir, .key = key};

	return apistore_db_open(&conf, err);
}

static int sync_dir(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = fd < 0 ? -1 : fsync(fd);

	if (fd >= 0)
		(void)close(fd);
	return rc;
}

/* The key of a rotation takes its place: the database is sealed by it. */
static int take_new(struct apistore_sealing *s, struct err *err)
{
	if (rename(s->own_new, s->own) < 0 || sync_dir(s->dir) < 0)
		return err_set_errno(err, ERR_TRANSIENT, errno,
			"the store is sealed by the key in %s, which cannot be renamed",
			log_esc(s->own_new));
	return 0;
}

/* With a key that was current before; NULL with err as it was: it is none of these. */
static struct apistore_db *open_with_earlier(struct apistore_sealing *s, struct err *err)
{
	cleanup_free char *old = xasprintf("%s.old", s->path);
	const char *const paths[MAX_OTHERS] = {old, s->own_new, s->own};
	struct apistore_db *db = NULL;

	for (size_t i = 0; i < MAX_OTHERS && !db; i++) {
		struct err unread = ERR_INIT, refused = ERR_INIT;
		struct secret *key = NULL;
		bool rotated = s->is_own && paths[i] == s->own_new;

		if (!str_eq(paths[i], s->path))
			key = read_key(s, paths[i], &unread);

		if (key)
			db = open_with(s, key, &refused);
		if (db) {
			err_clear(err);
			if (rotated ? take_new(s, err) < 0
				    : apistore_db_rekey(db, s->key, err) < 0) {
				apistore_db_close(db);
				secret_free(key);
				return NULL;
			}
			log_info(NULL,
				rotated ? "the rotation of the sealing key is completed"
					: "the store is sealed by another key now",
				NULL);
		}
		if (db && rotated) {
			secret_free(s->key);
			s->key = steal_ptr(&key);
		}
		secret_free(key);
	}
	return db;
}

struct apistore_db *apistore_sealing_open_db(struct apistore_sealing *s, struct err *err)
{
	struct apistore_db *db = open_with(s, s->key, err);

	if (!db && err->kind == ERR_DENIED)
		db = open_with_earlier(s, err);
	else if (db && s->is_own)
		file_remove(s->own_new); /* the rotation did not reach the database */
	if (db && !s->is_own && access(s->own, F_OK) == 0)
		log_warn(NULL,
			"the sealing key comes from elsewhere, and sealing.key in the directory is not used: keep it for the backups made under it, and take it away",
			NULL);
	return db;
}

/* ---- rotation */

/* Where a rotation failed, its key may be the database's after all: it is used again. */
static struct secret *next_own(const struct apistore_sealing *s, struct err *err)
{
	struct secret *key = read_key(s, s->own_new, err);

	if (key || err->kind != ERR_NOT_FOUND)
		return key;
	err_clear(err);
	key = secret_new_random(SEAL_KEY_LEN);
	if (put_key(s->own_new, key, err) == 0)
		return key;
	secret_free(key);
	return NULL;
}

static struct secret *next_named(const struct apistore_sealing *s, struct err *err)
{
	struct secret *key = read_key(s, s->path, err);

	if (!key || !secret_equal(key, s->key))
		return key;
	(void)err_set(err, ERR_CONFLICT,
		"%s holds the key in use: keep it as %s.old and put another one there first",
		log_esc(s->path), log_esc(s->path));
	secret_free(key);
	return NULL;
}

int apistore_sealing_rotate(struct apistore_sealing *s, struct apistore_db *db, struct err *err)
{
	struct secret *key = s->is_own ? next_own(s, err) : next_named(s, err);

	if (!key)
		return -1;
	if (apistore_db_rekey(db, key, err) < 0) {
		secret_free(key);
		return -1;
	}
	secret_free(s->key);
	s->key = key;
	return s->is_own ? take_new(s, err) : 0;
}
