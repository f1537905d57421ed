/* SPDX-License-Identifier: MIT */
/*
 * A whole file, pipe or terminal in memory, bounded; and a file written whole. Every buffer that was outgrown is wiped, so
 * that what holds a key needs no other reader: release it with file_wipe(), anything else with
 * free(). Blocks; for start-up, one-shot programs and small local files.
 */
#ifndef TEC_BASE_FILE_H
#define TEC_BASE_FILE_H

#include <stddef.h>
#include <sys/stat.h>

#include "tec/base/err.h"

/*
 * At most max bytes and a NUL after them; *len does not count it. st (may be NULL) is of what was
 * read. NULL: ERR_NOT_FOUND when there is no such file, else ERR_INVALID; the text names the path.
 */
char *file_read(
	const char *path, size_t max, size_t *len, struct stat *st, struct err *err) MUST_CHECK;
/* The same from where fd stands; name is for the error. fd stays open. */
char *file_read_fd(int fd, const char *name, size_t max, size_t *len, struct err *err) MUST_CHECK;
/*
 * path is what it was or all of data, whatever happens in between, and on disk when this returns. Of
 * this user with this mode; a link in its place is replaced.
 */
int file_replace(
	const char *path, const void *data, size_t len, mode_t mode, struct err *err) MUST_CHECK;
/* A new file of all of data, that only this user can read, and on disk when this returns; ERR_CONFLICT:
 * path exists, whatever it is. */
int file_create(const char *path, const void *data, size_t len, struct err *err) MUST_CHECK;
/* With what a file_replace() that was killed left beside it; that there is none is fine. */
void file_remove(const char *path);
void file_wipe(char *text, size_t len); /* wipes and frees; NULL is fine */

#endif
