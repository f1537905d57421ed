/* SPDX-License-Identifier: MIT */
/* SQLite's backup of a database that is in use: pages, a few per step; it sees what is written
 * meanwhile, as that is the same connection. The copy is whole only at the end, under its name then. */
#include "config.h"

#include "tec/apistore/db.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "db_internal.h"
#include "tec/base/clock.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"

#define PAGES_PER_STEP 64
#define RV_SKIPPED     1000000000u /* more writes than there can be after a backup */

struct apistore_db_backup {
	struct apistore_db *db; /* borrowed */
	sqlite3 *to;
	sqlite3_backup *run;
	char *path, *part; /* part: while it is not complete */
};

static int failed(sqlite3 *to, const char *path, struct err *err)
{
	return err_set_http(err, ERR_TRANSIENT,
		(sqlite3_errcode(to) & 0xff) == SQLITE_FULL ? 507 : 500, "backup to %s: %s",
		log_esc(path), sqlite3_errmsg(to));
}

/* Makes an empty file, which must be new. */
static int make_file(const char *path, struct err *err)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return err_set_errno(err, errno == EEXIST ? ERR_CONFLICT : ERR_TRANSIENT, errno,
			"%s", log_esc(path));
	(void)close(fd);
	return 0;
}

struct apistore_db_backup *apistore_db_backup_start(
	struct apistore_db *db, const char *path, struct err *err)
{
	struct apistore_db_backup *b = xcalloc(1, sizeof(*b));
	struct stat st;

	b->db = db;
	b->path = xstrdup(path);
	if (lstat(path, &st) == 0) {
		(void)err_set(err, ERR_CONFLICT, "%s is there already", log_esc(path));
		apistore_db_backup_free(b);
		return NULL;
	}
	b->part = xasprintf("%s.part", path);
	(void)unlink(b->part); /* of a backup that did not end */
	if (make_file(b->part, err) < 0) {
		free(steal_ptr(&b->part));
		apistore_db_backup_free(b);
		return NULL;
	}
	if (sqlite3_open_v2(b->part, &b->to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) ==
		SQLITE_OK)
		b->run = sqlite3_backup_init(b->to, "main", db->sql, "main");
	if (!b->run) {
		(void)failed(b->to, b->part, err);
		apistore_db_backup_free(b);
		return NULL;
	}
	return b;
}

static int sync_path(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC), rc = fd < 0 ? -1 : fsync(fd);

	if (fd >= 0)
		(void)close(fd);
	return rc;
}

static int sync_folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	cleanup_free char *dir =
		slash ? xstrndup(path, slash == path ? 1 : (size_t)(slash - path)) : xstrdup(".");

	return sync_path(dir, O_RDONLY | O_DIRECTORY);
}

static int finish(struct apistore_db_backup *b, struct err *err)
{
	int rc = sqlite3_backup_finish(b->run);

	b->run = NULL;
	/* One file, without a log beside it. */
	if (rc != SQLITE_OK ||
		sqlite3_exec(b->to, "PRAGMA journal_mode=DELETE", NULL, NULL, NULL) != SQLITE_OK)
		return failed(b->to, b->path, err);
	sqlite3_close(b->to);
	b->to = NULL;
	if (sync_path(b->part, O_RDWR) < 0 || rename(b->part, b->path) < 0 ||
		sync_folder_of(b->path) < 0)
		return err_set_errno(err, ERR_TRANSIENT, errno, "%s", log_esc(b->path));
	free(steal_ptr(&b->part));
	return 0;
}

int apistore_db_backup_step(struct apistore_db_backup *b, struct err *err)
{
	int rc;

	if (!b->run)
		DIE("a backup goes on after its end");
	if (b->db->open) /* what is not committed is not copied */
		return 1;
	rc = sqlite3_backup_step(b->run, PAGES_PER_STEP);
	if (rc == SQLITE_OK || rc == SQLITE_BUSY || rc == SQLITE_LOCKED)
		return 1;
	return rc == SQLITE_DONE ? finish(b, err) : failed(b->to, b->path, err);
}

void apistore_db_backup_free(struct apistore_db_backup *b)
{
	if (!b)
		return;
	if (b->run)
		(void)sqlite3_backup_finish(b->run);
	if (b->to)
		sqlite3_close(b->to);
	if (b->part)
		(void)unlink(b->part);
	free(b->part);
	free(b->path);
	free(b);
}

/* Clients may have seen later versions of what is older now: none of their numbers is given out
 * again, and what they go on from is not there any more, so they list again. */
static int skip_versions(struct apistore_db *db, const struct secret *key, struct err *err)
{
	int rc;

	if (apistore_db_begin(db, err) < 0)
		return -1;
	rc = apistore_db_compact(db, db->rv + RV_SKIPPED, err);
	db->restored_rv = db->rv;
	if (rc == 0 && db_put_keys(db, key, err) == 0) /* one may have been missing */
		return apistore_db_commit(db, err);
	apistore_db_rollback(db);
	return -1;
}

/* The file as a database of its own: opened under the key, all of it checked, and made ready. */
static int prepare_copy(const char *path, const struct db_verify *how, struct err *err)
{
	struct apistore_db *db = xcalloc(1, sizeof(*db));
	cleanup_free uint8_t *wrapped = NULL;
	size_t len = 0;
	int rc = -1;

	db->lock_fd = -1;
	if (db_open_file(db, path, NULL, err) == 0)
		rc = db_get_setting(db, "key", &wrapped, &len, err);
	if (rc == 0) /* an empty file is an empty database */
		rc = err_set(err, ERR_INVALID, "it is not a backup: it holds nothing");
	else if (rc > 0)
		rc = db_unlock(db, how->key, err) == 0 ? db_verify(db, how, err) : -1;
	if (rc == 0)
		rc = skip_versions(db, how->key, err);
	apistore_db_close(db);
	return rc;
}

static int copy_pages(const char *from, const char *to, struct err *err)
{
	sqlite3 *in = NULL, *out = NULL;
	sqlite3_backup *run = NULL;
	int rc;

	rc = sqlite3_open_v2(from, &in, SQLITE_OPEN_READONLY, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_open_v2(to, &out, SQLITE_OPEN_READWRITE, NULL);
	if (rc == SQLITE_OK)
		run = sqlite3_backup_init(out, "main", in, "main");
	if (run) {
		(void)sqlite3_backup_step(run, -1);
		rc = sqlite3_backup_finish(run);
	}
	if (!run || rc != SQLITE_OK)
		(void)err_set(err, ERR_INVALID, "%s cannot be read as a backup: %s", log_esc(from),
			sqlite3_errmsg(out ? out : in));
	sqlite3_close(in);
	sqlite3_close(out);
	return run && rc == SQLITE_OK ? 0 : -1;
}

int apistore_db_backup_restore(const char *path, const char *dir, const struct secret *key,
	bool accept_unverified, struct err *err)
{
	const struct db_verify how = {key, clock_wall_s(), true, accept_unverified};
	cleanup_free char *to = xasprintf("%s/" DB_FILE, dir), *part = xasprintf("%s.part", to);
	int lock = db_lock(dir, err), rc = -1;
	struct stat st;

	if (lock < 0)
		return -1;
	if (lstat(to, &st) == 0) {
		(void)err_set(err, ERR_CONFLICT, "%s holds a database already: move it away first",
			log_esc(dir));
	} else {
		(void)unlink(part);
		if (make_file(part, err) == 0 && copy_pages(path, part, err) == 0 &&
			prepare_copy(part, &how, err) == 0)
			rc = 0;
		if (rc == 0 && (sync_path(part, O_RDWR) < 0 || rename(part, to) < 0 ||
				       sync_folder_of(to) < 0))
			rc = err_set_errno(err, ERR_TRANSIENT, errno, "%s", log_esc(to));
		if (rc < 0)
			(void)unlink(part);
	}
	(void)close(lock);
	return rc;
}
