/* SPDX-License-Identifier: MIT */
/*
 * Saves GET /tec/v1/backup to a file that appears complete or not at all: written to a temporary
 * file in the same directory, synced, then linked to its name, which refuses to overwrite.
 */
#include "config.h"

#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tec/base/file.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"

#define BACKUP_PATH "/tec/v1/backup"
#define BACKUP_MS   3600000u          /* for the whole transfer */
#define MAGIC       "SQLite format 3" /* with its NUL, the first 16 bytes of a database */

struct backup {
	struct tool *t;
	struct err *err;
	int fd;
	unsigned long long bytes;
	char head[sizeof(MAGIC)];
};

/* Write the piece to the file, and keep the first bytes for the check of the format. */
static int on_data(void *arg, const char *data, size_t len, struct err *err)
{
	struct backup *b = arg;

	if (file_write(b->fd, data, len) < 0)
		return err_set_errno(err, ERR_INVALID, errno, "cannot write the backup");
	for (size_t i = 0; i < len && b->bytes + i < sizeof(b->head); i++)
		b->head[b->bytes + i] = data[i];
	b->bytes += len;
	return 0;
}

/* A 404 means another kind of server, which deserves a better message than "not found". */
static void on_answer(void *arg, const struct err *err, const struct k8s_answer *answer)
{
	struct backup *b = arg;

	if (k8s_answer_check(err, answer, b->err) < 0 && b->err->http == 404) {
		err_clear(b->err);
		err_set(b->err, ERR_NOT_FOUND,
			"%.100s is not a tec-operator --standalone; next step: back up the cluster's etcd with its own tools",
			b->t->server);
	}
	tool_done(b->t);
}

/* The transfer may take long, but a silence of a minute ends it. */
static int fetch(struct backup *b, struct err *err)
{
	struct k8s_request req = {.method = "GET",
		.verb = "get",
		.resource = "backup",
		.path = xstrdup(BACKUP_PATH),
		.deadline_ms = BACKUP_MS,
		.silence_ms = 60000};

	(void)k8s_transport_start(b->t->api, &b->t->ops, &req, on_data, on_answer, b);
	if (tool_run(b->t, err) < 0 || err_is_set(err))
		return -1;
	if (b->bytes < sizeof(b->head) || memcmp(b->head, MAGIC, sizeof(MAGIC)) != 0)
		return err_set(err, ERR_INVALID, "the server's answer is not a backup");
	if (fsync(b->fd) < 0)
		return err_set_errno(err, ERR_INVALID, errno, "cannot write the backup");
	return 0;
}

/* Create the temporary file, readable only by its owner. Returns its name, which the caller
 * frees. */
static char *open_beside(const char *file, int *fd, struct err *err)
{
	char *tmp = xasprintf("%s.XXXXXX", file);

	*fd = mkostemp(tmp, O_CLOEXEC);
	if (*fd >= 0 && fchmod(*fd, 0600) == 0)
		return tmp;
	err_set_errno(
		err, ERR_INVALID, errno, "cannot create a temporary file for %s", log_esc(file));
	if (*fd >= 0) {
		(void)unlink(tmp);
		close(*fd);
	}
	free(tmp);
	return NULL;
}

/* Also for a symbolic link: a backup must not end up where somebody else points. */
static int refuse_existing(const char *file, struct err *err)
{
	return err_set(err, ERR_INVALID,
		"%s exists and is not overwritten; next step: give a new file name", log_esc(file));
}

/* link(2) refuses an existing name atomically; the check before it only saves the transfer. */
int tool_backup(struct tool *t, struct err *err)
{
	const char *file = conf_operand(t->conf);
	struct backup b = {.t = t, .err = err, .fd = -1};
	cleanup_free char *tmp = NULL;
	struct err why = ERR_INIT;
	struct stat st;
	int rc;

	if (lstat(file, &st) == 0)
		return refuse_existing(file, err);
	tmp = open_beside(file, &b.fd, err);
	if (!tmp)
		return -1;
	rc = fetch(&b, err);
	close(b.fd);
	if (rc == 0 && link(tmp, file) < 0)
		rc = errno == EEXIST ? refuse_existing(file, err)
				     : err_set_errno(err, ERR_INVALID, errno, "cannot create %s",
					       log_esc(file));
	(void)unlink(tmp);
	if (rc == 0 && file_sync_dir(file, &why) < 0)
		rc = err_set_errno(err, ERR_INVALID, why.sys, "cannot sync the directory of %s",
			log_esc(file));
	if (rc < 0)
		return -1;
	tool_say(stdout,
		"backup of %s saved to %s, %llu bytes. To restore it: tec-operator --standalone=DIR --restore=%s, with the server's sealing key",
		t->server, file, b.bytes, file);
	return 0;
}
