/* SPDX-License-Identifier: MIT */
/*
 * Bytes -> oci/inflate -> oci/tar -> here: which entries are whiteouts, which contents are kept,
 * and where. Names go into oci/tree; files on disk have numbers for names, so a layer cannot choose
 * where they are written.
 */
#include "config.h"

#include "tec/oci/unpack.h"

#include <dirent.h>
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
#include "tec/oci/inflate.h"
#include "tec/oci/tar.h"

#define FILES_MAX 20000u
#define MAGIC_MAX 8u
#define WHITEOUT  ".wh."
#define OPAQUE    ".wh..wh..opq"
#define AUFS      ".wh..wh." /* private to union file systems */

struct oci_unpack {
	struct oci_unpack_conf conf;
	int stage_fd;
	struct oci_tree *tree;
	struct oci_inflate *inflate; /* of the current layer; NULL: none */
	struct oci_tar *tar;
	uint64_t total, kept; /* bytes */
	unsigned n_files, next;
	/* The entry whose content is being received. */
	char *path; /* owned; NULL: ignore the content */
	bool needed;
	uint64_t size;
	char magic[MAGIC_MAX];
	size_t n_magic;
	int fd; /* -1: not kept, or undecided */
	unsigned number;
};

static void staged_name(unsigned number, char out[16])
{
	snprintf(out, 16, "f%u", number);
}

/* Delete a content whose last name is gone, because a later layer replaced it. */
static void on_drop(void *arg, unsigned number)
{
	struct oci_unpack *u = arg;
	char name[16];
	struct stat st;

	staged_name(number, name);
	if (fstatat(u->stage_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		u->kept -= (uint64_t)st.st_size < u->kept ? (uint64_t)st.st_size : u->kept;
	(void)unlinkat(u->stage_fd, name, 0);
	u->n_files--;
}

/* ---- a file's content */

/* Create a numbered file. Its full size is counted at once, so that a limit is noticed early. */
static int open_staged(struct oci_unpack *u, struct err *err)
{
	char name[16];

	u->number = u->next++;
	staged_name(u->number, name);
	u->fd = openat(
		u->stage_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (u->fd < 0)
		return err_set_errno(err, ERR_TRANSIENT, errno, "cannot create a file");
	u->n_files++;
	u->kept += u->size;
	return 0;
}

static int write_content(struct oci_unpack *u, const char *p, size_t len, struct err *err)
{
	if (file_write(u->fd, p, len) < 0)
		return err_set_errno(
			err, ERR_TRANSIENT, errno, "cannot write %.150s", log_esc(u->path));
	return 0;
}

static void close_file(struct oci_unpack *u)
{
	if (u->fd >= 0)
		close(u->fd);
	u->fd = -1;
	free(steal_ptr(&u->path));
}

/* Check the limits. Files that are kept only because links may lead to them get half of the space,
 * so that they cannot crowd out the required ones. */
static bool has_room(const struct oci_unpack *u, bool needed)
{
	uint64_t max = needed ? u->conf.max_kept : u->conf.max_kept / 2;

	return u->n_files < (needed ? FILES_MAX : FILES_MAX / 2) && u->kept <= max &&
	       u->size <= max - u->kept;
}

/* Prepare for a file's content. A required file is written at once; others are decided by their
 * first bytes. */
static int begin_file(struct oci_unpack *u, const struct oci_tar_entry *e, struct err *err)
{
	close_file(u);
	u->path = xstrdup(e->path);
	u->size = e->size;
	u->n_magic = 0;
	u->needed = oci_need_has(u->conf.needs, u->conf.n_needs, e->path);
	if (!u->needed)
		return 0;
	if (!has_room(u, true))
		return err_set(err, ERR_INVALID,
			"the required files exceed %llu MiB, or there are more than %u",
			(unsigned long long)(u->conf.max_kept >> 20), FILES_MAX);
	return open_staged(u, err);
}

/* Decide by its first bytes whether to keep a file that is not required by path: a link may lead to
 * it. */
static int look_at_magic(struct oci_unpack *u, const char **p, size_t *len, struct err *err)
{
	size_t want = strlen(u->conf.magic);

	while (u->n_magic < want && *len) {
		u->magic[u->n_magic++] = *(*p)++;
		--*len;
	}
	if (u->n_magic < want)
		return 0;
	if (memcmp(u->magic, u->conf.magic, want) != 0 || !has_room(u, false)) {
		u->size = 0;
		return 0;
	}
	return open_staged(u, err) < 0 ? -1 : write_content(u, u->magic, want, err);
}

/* u->size 0 means that the content is not kept. */
static int on_data(void *arg, const void *data, size_t len, struct err *err)
{
	struct oci_unpack *u = arg;
	const char *p = data;

	if (u->fd < 0 && u->size && look_at_magic(u, &p, &len, err) < 0)
		return -1;
	return u->fd < 0 ? 0 : write_content(u, p, len, err);
}

/* The name is added only now, with the whole content on disk. It hides a file of an earlier layer
 * even if it is not kept. */
static int on_done(void *arg, struct err *err)
{
	struct oci_unpack *u = arg;
	bool kept = u->fd >= 0;
	int rc;

	if (kept)
		rc = oci_tree_file(u->tree, u->path, u->number, err);
	else
		rc = oci_tree_other(u->tree, u->path, err);
	close_file(u);
	return rc;
}

/* ---- entries */

/* Handle whiteouts and entries private to union file systems. Return true if the entry was one. */
static bool whiteout(struct oci_unpack *u, const char *path, int *rc, struct err *err)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t dir_len = (size_t)(name - path);

	*rc = 0;
	if (!str_starts(name, WHITEOUT))
		return false;
	if (str_eq(name, OPAQUE)) {
		cleanup_free char *dir = xstrndup(path, dir_len);

		*rc = oci_tree_hide_all(u->tree, dir, err);
	} else if (!str_starts(name, AUFS)) {
		const char *hidden = name + strlen(WHITEOUT);
		cleanup_free char *of = xasprintf("%.*s%s", (int)dir_len, path, hidden);

		if (!*hidden || str_eq(hidden, ".") || str_eq(hidden, ".."))
			*rc = err_set(err, ERR_INVALID, "a whiteout has no name");
		else
			*rc = oci_tree_hide(u->tree, of, err);
	}
	return true;
}

/* Whiteouts come first: they look like ordinary files with special names. */
static int on_entry(void *arg, const struct oci_tar_entry *e, struct err *err)
{
	struct oci_unpack *u = arg;
	int rc;

	close_file(u);
	if (whiteout(u, e->path, &rc, err)) {
		/* The content of such an entry is ignored. */
		u->path = rc == 0 && e->type == OCI_TAR_FILE ? xstrdup(e->path) : NULL;
		u->size = 0;
		u->n_magic = 0;
		return rc;
	}
	switch (e->type) {
	case OCI_TAR_FILE:
		return begin_file(u, e, err);
	case OCI_TAR_DIR:
		return oci_tree_dir(u->tree, e->path, err);
	case OCI_TAR_SYMLINK:
		return oci_tree_symlink(u->tree, e->path, e->target, err);
	case OCI_TAR_HARDLINK:
		return oci_tree_hardlink(u->tree, e->path, e->target, err);
	case OCI_TAR_SPARSE:
		if (oci_need_has(u->conf.needs, u->conf.n_needs, e->path))
			return err_set(
				err, ERR_INVALID, "%.150s is a sparse file", log_esc(e->path));
		break;
	case OCI_TAR_OTHER:
		break;
	}
	return oci_tree_other(u->tree, e->path, err);
}

/* ---- layers */

static const struct oci_tar_ops ops = {.entry = on_entry, .data = on_data, .done = on_done};

static int on_plain(void *arg, const void *data, size_t len, struct err *err)
{
	struct oci_unpack *u = arg;

	return oci_tar_add(u->tar, data, len, err);
}

/* End the current layer, and count its bytes towards the limit for all layers. */
static void layer_close(struct oci_unpack *u)
{
	if (u->inflate)
		u->total += oci_inflate_total(u->inflate);
	oci_inflate_free(steal_ptr(&u->inflate));
	oci_tar_free(steal_ptr(&u->tar));
}

int oci_unpack_layer(struct oci_unpack *u, struct err *err)
{
	layer_close(u);
	if (u->total >= u->conf.max_total)
		return err_set(err, ERR_INVALID, "the decompressed layers exceed %llu MiB",
			(unsigned long long)(u->conf.max_total >> 20));
	oci_tree_next_layer(u->tree);
	u->inflate = oci_inflate_new(u->conf.max_total - u->total, on_plain, u);
	u->tar = oci_tar_new(&ops, u);
	return 0;
}

int oci_unpack_add(struct oci_unpack *u, const void *data, size_t len, struct err *err)
{
	return oci_inflate_add(u->inflate, data, len, err);
}

/* Both streams must have ended properly. */
int oci_unpack_layer_end(struct oci_unpack *u, struct err *err)
{
	if (oci_inflate_end(u->inflate, err) < 0 || oci_tar_end(u->tar, err) < 0)
		return -1;
	layer_close(u);
	return 0;
}

int oci_unpack_finish(struct oci_unpack *u, struct err *err)
{
	return oci_tree_write(
		u->tree, u->conf.into_fd, u->stage_fd, u->conf.needs, u->conf.n_needs, err);
}

/* Require an empty directory: existing files would get in the way, or be taken for the image's. */
static int check_empty(int into_fd, struct err *err)
{
	int fd = openat(into_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *e;
	bool empty = true;

	if (!d) {
		if (fd >= 0)
			close(fd);
		return err_set_errno(err, ERR_INVALID, errno, "cannot list the directory");
	}
	while (empty && (e = readdir(d)))
		empty = str_eq(e->d_name, ".") || str_eq(e->d_name, "..");
	closedir(d);
	return empty ? 0 : err_set(err, ERR_INVALID, "the directory is not empty");
}

/* The staging folder is created with mkdirat(), so it cannot be a link. */
struct oci_unpack *oci_unpack_new(const struct oci_unpack_conf *conf, struct err *err)
{
	struct oci_unpack *u;
	int fd = -1;

	if (check_empty(conf->into_fd, err) < 0)
		return NULL;
	if (mkdirat(conf->into_fd, OCI_UNPACK_FOLDER, 0700) < 0 ||
		(fd = openat(conf->into_fd, OCI_UNPACK_FOLDER,
			 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0) {
		err_set_errno(err, ERR_INVALID, errno, "cannot create folder " OCI_UNPACK_FOLDER);
		return NULL;
	}
	u = xcalloc(1, sizeof(*u));
	u->conf = *conf;
	u->stage_fd = fd;
	u->fd = -1;
	u->tree = oci_tree_new(on_drop, u);
	return u;
}

/* Remove staged files that were not moved into the target directory. */
void oci_unpack_free(struct oci_unpack *u)
{
	char name[16];

	if (!u)
		return;
	layer_close(u);
	close_file(u);
	oci_tree_free(u->tree);
	for (unsigned i = 0; i < u->next; i++) {
		staged_name(i, name);
		(void)unlinkat(u->stage_fd, name, 0);
	}
	close(u->stage_fd);
	(void)unlinkat(u->conf.into_fd, OCI_UNPACK_FOLDER, AT_REMOVEDIR);
	free(u);
}
