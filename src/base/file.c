/* SPDX-License-Identifier: MIT */
/* Whole files. The size from fstat() is not used: pipes and files in /proc and /sys report none. */
#include "config.h"

#include "tec/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/secret.h"

#define FIRST_LEN 4000u /* with the NUL in a buffer of 4 KiB */

void file_wipe(char *text, size_t len)
{
	if (text)
		secret_wipe(text, len);
	free(text);
}

/* Read until more than max bytes have arrived, to tell a file of exactly max bytes from a larger
 * one. The room doubles; a strbuf wipes what it outgrows. */
char *file_read_fd(int fd, const char *name, size_t max, size_t *len, struct err *err)
{
	cleanup_wiped_strbuf struct strbuf text = STRBUF_INIT;

	*len = 0;
	while (text.len <= max) {
		size_t room = text.len + FIRST_LEN;
		ssize_t got = read(fd, strbuf_extend(&text, room), room);

		text.len -= room - (got > 0 ? (size_t)got : 0);
		text.data[text.len] = '\0';
		if (got < 0 && errno != EINTR) {
			err_set_errno(err, ERR_INVALID, errno, "%s", log_esc(name));
			return NULL;
		}
		if (got == 0) {
			*len = text.len;
			return strbuf_steal(&text);
		}
	}
	return err_null(err, ERR_INVALID, "%s: larger than %zu bytes", log_esc(name), max);
}

/* O_NOCTTY: the path may name a terminal, for example /dev/stdin, which must not become the
 * controlling one. */
char *file_read(const char *path, size_t max, size_t *len, struct stat *st, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	char *text = NULL;

	*len = 0;
	if (fd < 0) {
		err_set_errno(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_INVALID, errno, "%s",
			log_esc(path));
		return NULL;
	}
	if (st && fstat(fd, st) != 0)
		err_set_errno(err, ERR_INVALID, errno, "%s", log_esc(path));
	else
		text = file_read_fd(fd, path, max, len, err);
	(void)close(fd);
	return text;
}

int file_sync_dir(const char *path, struct err *err)
{
	const char *slash = strrchr(path, '/');
	cleanup_free char *dir = slash ? xstrndup(path, (size_t)(slash - path) + 1) : xstrdup(".");
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = fd < 0 ? -1 : fsync(fd);

	if (rc < 0)
		err_set_errno(err, ERR_INVALID, errno, "%s", log_esc(dir));
	if (fd >= 0)
		close(fd);
	return rc;
}

/* POSIX allows write() to return 0 without an error; the next one could do so forever. */
int file_write(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len > 0) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0)
			errno = EIO;
		if (n <= 0)
			return -1;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Write everything and sync it, so that a later rename never exposes an empty file after a power
 * loss. */
static int write_all(int fd, const char *data, size_t len)
{
	return file_write(fd, data, len) < 0 ? -1 : fsync(fd);
}

/* A fixed name beside the file: the next file_replace() removes what a killed process left. */
static char *temporary(const char *path)
{
	return xasprintf("%s.new", path);
}

/* Write a temporary file, sync it and rename it over path. fchmod() sets the mode independently of
 * the umask. */
int file_replace(const char *path, const void *data, size_t len, mode_t mode, struct err *err)
{
	cleanup_free char *tmp = temporary(path);
	int fd, rc;

	unlink(tmp); /* left by a process that was killed */
	fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (fd < 0)
		return err_set_errno(err, ERR_INVALID, errno, "%s", log_esc(tmp));
	rc = fchmod(fd, mode) < 0 ? -1 : write_all(fd, data, len);
	if (rc == 0)
		rc = rename(tmp, path);
	if (rc < 0) {
		err_set_errno(err, ERR_INVALID, errno, "%s", log_esc(path));
		unlink(tmp);
	}
	close(fd);
	return rc < 0 ? -1 : file_sync_dir(path, err);
}

/* Create the file under a random name and link it to path: link() fails if path exists, and the
 * file is complete when it appears. */
int file_create(const char *path, const void *data, size_t len, struct err *err)
{
	cleanup_free char *tmp = xasprintf("%s.XXXXXX", path);
	int fd = mkostemp(tmp, O_CLOEXEC), rc; /* 0600 */

	if (fd < 0)
		return err_set_errno(err, ERR_INVALID, errno, "%s", log_esc(path));
	rc = write_all(fd, data, len);
	if (rc == 0)
		rc = link(tmp, path); /* never replaces a file */
	if (rc < 0)
		err_set_errno(err, errno == EEXIST ? ERR_CONFLICT : ERR_INVALID, errno, "%s",
			log_esc(path));
	unlink(tmp);
	close(fd);
	return rc < 0 ? -1 : file_sync_dir(path, err);
}

/* Errors are ignored: the file may not exist, and a caller could do nothing about others. */
void file_remove(const char *path)
{
	cleanup_free char *tmp = temporary(path);

	(void)unlink(path);
	(void)unlink(tmp);
}

char *file_temp_dir(const char *tmpdir, const char *name)
{
	char *dir = xasprintf("%s/%s.XXXXXX", tmpdir && *tmpdir ? tmpdir : "/tmp", name);

	if (mkdtemp(dir))
		return dir;
	free(dir);
	return NULL;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)remove(path);
	return 0;
}

/* FTW_PHYS: links are removed, not followed. */
void file_remove_tree(const char *dir)
{
	if (dir)
		(void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
