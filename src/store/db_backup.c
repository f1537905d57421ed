/* SPDX-License-Identifier: MIT */
/* Backup with SQLite's online backup interface, a few pages per step. Writes in between go through
 * the same connection, so SQLite applies them to the copy too. The copy gets its final name only
 * when it is complete. */
#include "config.h"

#include "tec/store/db.h"

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
#define RV_SKIPPED     1000000000u /* more than can have been written since the backup */

struct store_db_backup {
	struct store_db *db; /* borrowed */
	sqlite3 *to;
	sqlite3_backup *run;
	char *path, *part; /* owned; part: its name until it is complete, then NULL */
};

/* Report an error of the copy, not of the database: a full disk there is no failure of the
 * store. */
static int failed(sqlite3 *to, const char *path, struct err *err)
{
	return err_set_http(err, ERR_TRANSIENT,
		(sqlite3_errcode(to) & 0xff) == SQLITE_FULL ? 507 : 500, "backup to %s: %s",
		log_esc(path), sqlite3_errmsg(to));
}

/* Create an empty file, readable by its owner alone before SQLite writes to it. It must not
 * exist. */
static int make_file(const char *path, struct err *err)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return err_set_errno(err, errno == EEXIST ? ERR_CONFLICT : ERR_TRANSIENT, errno,
			"%s", log_esc(path));
	(void)close(fd);
	return 0;
}

/* Prepare a copy under the name PATH.part. An existing file is never overwritten: it may be the
 * only backup. */
struct store_db_backup *store_db_backup_start(
	struct store_db *db, const char *path, struct err *err)
{
	struct store_db_backup *b = xcalloc(1, sizeof(*b));
	cleanup_free char *part = xasprintf("%s.part", path);
	struct stat st;

	b->db = db;
	b->path = xstrdup(path);
	if (lstat(path, &st) == 0) {
		(void)err_set(err, ERR_CONFLICT, "%s already exists", log_esc(path));
	} else {
		(void)unlink(part); /* left by an interrupted backup */
		if (make_file(part, err) == 0)
			b->part = steal_ptr(&part);
	}
	if (b->part && sqlite3_open_v2(b->part, &b->to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
			       NULL) == SQLITE_OK)
		b->run = sqlite3_backup_init(b->to, "main", db->sql, "main");
	if (b->run)
		return b;
	if (b->part)
		(void)failed(b->to, b->part, err);
	store_db_backup_free(b);
	return NULL;
}

static int sync_path(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC), rc = fd < 0 ? -1 : fsync(fd);

	if (fd >= 0)
		(void)close(fd);
	return rc;
}

/* Sync the directory, which makes a rename durable. */
int db_sync_folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	cleanup_free char *dir =
		slash ? xstrndup(path, slash == path ? 1 : (size_t)(slash - path)) : xstrdup(".");

	return sync_path(dir, O_RDONLY | O_DIRECTORY);
}

/* Complete the copy and give it its name, in the order that survives a power loss: sync, rename,
 * sync. */
static int finish(struct store_db_backup *b, struct err *err)
{
	int rc = sqlite3_backup_finish(b->run);

	b->run = NULL;
	/* Leave the write-ahead log mode, so the backup is a single file. */
	if (rc != SQLITE_OK ||
		sqlite3_exec(b->to, "PRAGMA journal_mode=DELETE", NULL, NULL, NULL) != SQLITE_OK)
		return failed(b->to, b->path, err);
	sqlite3_close(b->to);
	b->to = NULL;
	if (sync_path(b->part, O_RDWR) < 0 || rename(b->part, b->path) < 0 ||
		db_sync_folder_of(b->path) < 0)
		return err_set_errno(err, ERR_TRANSIENT, errno, "%s", log_esc(b->path));
	free(steal_ptr(&b->part));
	return 0;
}

/* Copy some pages. A locked database is not an error, just no progress in this step. */
int store_db_backup_step(struct store_db_backup *b, struct err *err)
{
	int rc;

	if (!b->run)
		DIE("backup step after its end");
	if (b->db->open) /* do not copy uncommitted data */
		return 1;
	rc = sqlite3_backup_step(b->run, PAGES_PER_STEP);
	if (rc == SQLITE_OK || rc == SQLITE_BUSY || rc == SQLITE_LOCKED)
		return 1;
	return rc == SQLITE_DONE ? finish(b, err) : failed(b->to, b->path, err);
}

void store_db_backup_free(struct store_db_backup *b)
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

/* Skip resourceVersions in a restored database. Clients may have seen later versions than it holds:
 * none of these numbers may be issued again, and resuming from one must give 410, so that clients
 * list again. */
static int skip_versions(struct store_db *db, const struct secret *key, struct err *err)
{
	int rc;

	if (store_db_begin(db, err) < 0)
		return -1;
	rc = store_db_compact(db, db->rv + RV_SKIPPED, err);
	db->restored_rv = db->rv;
	if (rc == 0 && db_put_keys(db, key, err) == 0) /* a backup from before 0.3.0 lacks one */
		return store_db_commit(db, err);
	store_db_rollback(db);
	return -1;
}

/* Open the copied file as a database, verify all of it, and prepare it for use. */
static int prepare_copy(const char *path, const struct db_verify *how, struct err *err)
{
	struct store_db *db = xcalloc(1, sizeof(*db));
	cleanup_free uint8_t *wrapped = NULL;
	size_t len = 0;
	int rc = -1;

	db->lock_fd = -1;
	if (db_open_file(db, path, NULL, err) == 0)
		rc = db_get_setting(db, "key", &wrapped, &len, err);
	if (rc == 0) /* SQLite opens an empty file as an empty database */
		rc = err_set(err, ERR_INVALID, "the file is not a backup: it is empty");
	else if (rc > 0)
		rc = db_unlock(db, how->key, err) == 0 ? db_verify(db, how, err) : -1;
	if (rc == 0)
		rc = skip_versions(db, how->key, err);
	store_db_close(db);
	return rc;
}

/* Copy a backup page by page into a file that exists. This also checks that it is an SQLite
 * database. */
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
		(void)err_set(err, ERR_INVALID, "cannot read %s as a backup: %s", log_esc(from),
			sqlite3_errmsg(out ? out : in));
	sqlite3_close(in);
	sqlite3_close(out);
	return run && rc == SQLITE_OK ? 0 : -1;
}

/* Work on a copy and rename it at the end: the backup is only read, and a failure leaves no
 * database. */
int store_db_backup_restore(const char *path, const char *dir, const struct secret *key,
	bool accept_unverified, struct err *err)
{
	const struct db_verify how = {key, clock_wall_s(), true, accept_unverified};
	cleanup_free char *to = xasprintf("%s/" STORE_DB_FILE, dir),
			  *part = xasprintf("%s.part", to);
	/* The lock comes first, so no server starts on a database that is not complete. */
	int lock = db_lock(dir, err), rc = -1;
	struct stat st;

	if (lock < 0)
		return -1;
	if (lstat(to, &st) == 0) {
		(void)err_set(err, ERR_CONFLICT, "%s already holds a database; move it away first",
			log_esc(dir));
	} else {
		(void)unlink(part);
		if (make_file(part, err) == 0 && copy_pages(path, part, err) == 0 &&
			prepare_copy(part, &how, err) == 0)
			rc = 0;
		if (rc == 0 && (sync_path(part, O_RDWR) < 0 || rename(part, to) < 0 ||
				       db_sync_folder_of(to) < 0))
			rc = err_set_errno(err, ERR_TRANSIENT, errno, "%s", log_esc(to));
		if (rc < 0)
			(void)unlink(part);
	}
	(void)close(lock);
	return rc;
}
