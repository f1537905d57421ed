/* SPDX-License-Identifier: MIT */
/*
 * Read a whole file, pipe or terminal into memory, up to a limit, and write whole files. Outgrown
 * buffers are wiped, so this reader is also safe for keys: release a key with file_wipe(), anything
 * else with free(). All functions block: they are for start-up, one-shot programs and small local
 * files.
 */
#ifndef TEC_BASE_FILE_H
#define TEC_BASE_FILE_H

#include <stddef.h>
#include <sys/stat.h>

#include "tec/base/err.h"

/*
 * Return at most max bytes with a NUL after them that *len does not count. st (may be NULL) receives
 * the status of the file that was read. On failure NULL with ERR_NOT_FOUND if the file does not
 * exist, otherwise ERR_INVALID; the text names the path.
 */
char *file_read(
	const char *path, size_t max, size_t *len, struct stat *st, struct err *err) MUST_CHECK;
/* Read from the current position of fd, which stays open; name is for the error. */
char *file_read_fd(int fd, const char *name, size_t max, size_t *len, struct err *err) MUST_CHECK;
/* Write all of data, in as many parts as it takes. -1 with errno: part of it may be written. */
int file_write(int fd, const void *data, size_t len) MUST_CHECK;
/*
 * Replace the file atomically: whatever happens in between, path holds either its old contents or all
 * of data, and it is on disk when this returns. It belongs to this user and has this mode; a symbolic
 * link at path is replaced.
 */
int file_replace(
	const char *path, const void *data, size_t len, mode_t mode, struct err *err) MUST_CHECK;
/* Create a new file with data that only this user can read; it is on disk when this returns.
 * ERR_CONFLICT: path already exists, as a file of any type. */
int file_create(const char *path, const void *data, size_t len, struct err *err) MUST_CHECK;
/* Sync the directory of path: a created or renamed entry is durable only after its directory is. */
int file_sync_dir(const char *path, struct err *err) MUST_CHECK;
/* Remove the file and what a killed file_replace() left beside it; a missing file is not an error. */
void file_remove(const char *path);
/* Create a directory that only this user can enter, "TMPDIR/NAME.XXXXXX"; in /tmp, if tmpdir is NULL
 * or empty. NULL: errno is set. The caller frees the path. */
char *file_temp_dir(const char *tmpdir, const char *name) MUST_CHECK;
/* Remove a directory with all that is below it. NULL is fine. Errors are ignored: a leftover in a
 * temporary directory does no harm. */
void file_remove_tree(const char *dir);
void file_wipe(char *text, size_t len); /* wipes and frees; NULL is fine */

#endif
