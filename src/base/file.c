/* SPDX-License-Identifier: MIT */
/* The size of a file is not used: pipes and files that the kernel generates have none. */
#include "config.h"

#include "tec/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/secret.h"

#define FIRST_LEN 4096u

void file_wipe(char *text, size_t len)
{
	if (text)
		secret_wipe(text, len);
	free(text);
}

/* realloc would leave the old bytes in freed memory. */
static char *moved(char *take_text, size_t len, size_t cap)
{
	char *text = xmalloc(cap);

	if (len > 0)
		memcpy(text, take_text, len);
	file_wipe(take_text, len);
	return text;
}

char *file_read_fd(int fd, const char *name, size_t max, size_t *len, struct err *err)
{
	size_t cap = 0, n = 0;
	char *text = NULL;

	*len = 0;
	while (n <= max) {
		ssize_t got;

		if (n + 1 >= cap) {
			cap = cap ? cap * 2 : FIRST_LEN;
			text = moved(text, n, cap);
		}
		got = read(fd, text + n, cap - n - 1);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			err_set_errno(err, ERR_INVALID, errno, "%s", log_esc(name));
			file_wipe(text, n);
			return NULL;
		}
		if (got == 0) {
			text[n] = '\0';
			*len = n;
			return text;
		}
		n += (size_t)got;
	}
	file_wipe(text, n);
	err_set(err, ERR_INVALID, "%s: larger than %zu bytes", log_esc(name), max);
	return NULL;
}

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
