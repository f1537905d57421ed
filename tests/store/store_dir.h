/* SPDX-License-Identifier: MIT */
/* A folder for a store on disk, its key, and what tests look for in its files. */
#ifndef TEC_TESTS_STORE_STORE_DIR_H
#define TEC_TESTS_STORE_STORE_DIR_H

#include <criterion/criterion.h>
#include <dirent.h>
#include <sqlite3.h>
#include <stdio.h>
#include <unistd.h>

#include "tec/store/db.h"
#include "tec/base/file.h"
#include "tec/base/mem.h"
#include "tec/base/seal.h"
#include "tec/base/str.h"

static char dir[64];
static struct secret *key; /* the sealing key */

static inline void store_dir_up(void)
{
	/* Nobody pulls a plug here, so memory will do where there is such a folder. */
	snprintf(dir, sizeof(dir), "%s/tec-store-XXXXXX",
		access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	cr_assert_not_null(mkdtemp(dir));
	key = secret_new_random(SEAL_KEY_LEN);
}

static inline char *in_dir(const char *name)
{
	return xasprintf("%s/%s", dir, name);
}

static inline void store_dir_down(void)
{
	DIR *d = opendir(dir);
	const struct dirent *e;

	while (d && (e = readdir(d))) {
		cleanup_free char *path = in_dir(e->d_name);

		(void)unlink(path);
	}
	if (d)
		closedir(d);
	(void)rmdir(dir);
	secret_free(key);
}

static inline struct store_db *store_open(const char *vfs, struct err *err)
{
	return store_db_open(&(const struct store_db_conf){dir, vfs, key}, err);
}

/* SQL on the closed database: the number that it gives. */
static inline int64_t sql(const char *text)
{
	cleanup_free char *path = in_dir("store.db");
	sqlite3_stmt *st = NULL;
	sqlite3 *db = NULL;
	int64_t n = -1;

	cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
	while (*text) {
		cr_assert_eq(sqlite3_prepare_v2(db, text, -1, &st, &text), SQLITE_OK, "%s",
			sqlite3_errmsg(db));
		if (sqlite3_step(st) == SQLITE_ROW)
			n = sqlite3_column_int64(st, 0);
		cr_assert_eq(sqlite3_finalize(st), SQLITE_OK, "%s", sqlite3_errmsg(db));
	}
	cr_assert_eq(sqlite3_close(db), SQLITE_OK);
	return n;
}

static inline char *slurp(const char *path, size_t *len)
{
	struct err err = ERR_INIT;

	return file_read(path, 64u << 20, len, NULL, &err);
}

/* In any file of the folder. */
static inline bool is_in_files(const void *bytes, size_t len)
{
	DIR *d = opendir(dir);
	const struct dirent *e;
	bool found = false;

	while ((e = readdir(d))) {
		cleanup_free char *path = in_dir(e->d_name), *text = NULL;
		size_t n = 0;

		text = e->d_name[0] == '.' ? NULL : slurp(path, &n);
		found |= text && memmem(text, n, bytes, len) != NULL;
	}
	closedir(d);
	return found;
}

#endif
