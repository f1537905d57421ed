/* SPDX-License-Identifier: MIT */
/*
 * Files of an image, opened so that nothing outside its root can be reached and only regular files
 * are read. A path is first opened with O_PATH, which does not wake a device or wait on a FIFO, and
 * then for reading if it is a regular file. A file is mapped for its headers and signatures, but
 * read in steps for hashing: one access to a mapping may map 2 MiB, and memory use must not depend
 * on the size of a kernel image.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "measure_internal.h"
#include "tec/base/file.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/measure/authenticode.h"

#define FILE_MAX  (1 << 30)
#define SMALL_MAX (1u << 20)

static void close_fd(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}
#define cleanup_fd __attribute__((cleanup(close_fd)))

/* Open a path as if root_fd were "/": symbolic links and ".." cannot lead out of it. */
static int open_in(int root_fd, const char *path, int flags)
{
	struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC),
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	long fd;

	/* EAGAIN: a concurrent rename interfered with resolving "..". */
	do
		fd = syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	while (fd < 0 && (errno == EINTR || errno == EAGAIN));
	return (int)fd;
}

static int cannot_open(const char *path, int why, struct err *err)
{
	path = log_esc(path);
	if (why == ENOSYS || why == EPERM)
		return err_set(err, ERR_DENIED,
			"cannot open %s: openat2 is not permitted; next step: use Linux 5.6 or later and a seccomp profile that allows it",
			path);
	if (why == ELOOP)
		return err_set(err, ERR_INVALID, "%s is a loop of symbolic links", path);
	if (why == ENOENT)
		return err_set(err, ERR_NOT_FOUND, "%s does not exist", path);
	return err_set_errno(err, ERR_INVALID, why, "cannot open %s", path);
}

/* Open a regular file. The inode is compared in case the path is replaced between the two opens. */
static int open_regular(int root_fd, const char *path, struct err *err)
{
	cleanup_fd int at = open_in(root_fd, path, O_PATH), link = -1;
	struct stat first, st;
	int fd;

	if (at < 0) {
		int why = errno;

		/* A file may be missing, but a dangling link shows that one was intended. */
		if (why == ENOENT)
			link = open_in(root_fd, path, O_PATH | O_NOFOLLOW);
		if (link >= 0 && fstat(link, &st) == 0 && S_ISLNK(st.st_mode))
			return err_set(err, ERR_INVALID,
				"%s is a link to a file that does not exist inside the image",
				log_esc(path));
		return cannot_open(path, why, err);
	}
	if (fstat(at, &first) < 0)
		return err_set_errno(
			err, ERR_INVALID, errno, "cannot read the attributes of %s", log_esc(path));
	if (!S_ISREG(first.st_mode))
		return err_set(err, ERR_INVALID, "%s is %s, not a regular file", log_esc(path),
			S_ISFIFO(first.st_mode)   ? "a FIFO"
			: S_ISDIR(first.st_mode)  ? "a directory"
			: S_ISSOCK(first.st_mode) ? "a socket"
						  : "a device");
	fd = open_in(root_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return cannot_open(path, errno, err);
	if (fstat(fd, &st) < 0 || st.st_dev != first.st_dev || st.st_ino != first.st_ino) {
		close(fd);
		return err_set(err, ERR_INVALID, "%s changed while it was opened", log_esc(path));
	}
	return fd;
}

int measure_open_dir(int root_fd, const char *path, int *out, struct err *err)
{
	*out = open_in(root_fd, path, O_RDONLY | O_DIRECTORY);
	if (*out >= 0 || errno == ENOENT)
		return 0;
	return cannot_open(path, errno, err);
}

/* The descriptor is kept for hashing, the mapping for parsing. Signatures and sections point into
 * the mapping. */
int measure_file_open_fd(int fd, const char *path, struct measure_file *out, struct err *err)
{
	struct stat st;
	void *data;
	int own;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(err, ERR_INVALID, "%s is not a regular file", log_esc(path));
	if (st.st_size <= 0 || st.st_size > FILE_MAX)
		return err_set(err, ERR_INVALID, "%s is empty or larger than 1 GiB", log_esc(path));
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return err_set_errno(err, ERR_INVALID, errno, "cannot map %s", log_esc(path));
	own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	*out = (struct measure_file){
		.path = xstrdup(path), .fd = own, .data = data, .len = (size_t)st.st_size};
	if (own < 0)
		err_set_errno(err, ERR_TRANSIENT, errno, "cannot keep %s open", log_esc(path));
	else if (pe_parse(out->data, out->len, &out->pe, err) < 0)
		err_wrap(err, "%s", log_esc(path));
	if (err_is_set(err)) {
		measure_file_fini(out);
		return -1;
	}
	measure_file_rest(out);
	return 0;
}

int measure_file_open(int root_fd, const char *path, struct measure_file *out, struct err *err)
{
	cleanup_fd int fd = open_regular(root_fd, path, err);

	return fd < 0 ? -1 : measure_file_open_fd(fd, path, out, err);
}

void measure_file_fini(struct measure_file *f)
{
	if (f->data) {
		munmap(f->data, f->len);
		close_fd(&f->fd);
	}
	free(f->path);
	free(f->step);
	*f = (struct measure_file){0};
}

void measure_file_rest(const struct measure_file *f)
{
	(void)madvise(f->data, f->len, MADV_DONTNEED);
}

/* Read into one buffer per file, which the next call overwrites. */
const uint8_t *measure_file_source(void *arg, size_t from, size_t len, struct err *err)
{
	struct measure_file *f = arg;
	size_t have = 0;

	if (!f->step)
		f->step = xmalloc(AUTHENTICODE_STEP);
	while (have < len) {
		ssize_t n = pread(f->fd, f->step + have, len - have, (off_t)(from + have));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			err_set_errno(err, ERR_INVALID, errno, "cannot read %s", log_esc(f->path));
		else if (n == 0)
			err_set(err, ERR_INVALID, "%s was truncated while it was read",
				log_esc(f->path));
		if (n <= 0)
			return NULL;
		have += (size_t)n;
	}
	return f->step;
}

/* The buffer is freed afterwards: several files stay open, and none is hashed twice. */
int measure_file_hash(struct measure_file *f, struct err *err)
{
	struct authenticode_digests digests;

	if (authenticode_digest(&f->pe, measure_file_source, f, &digests, err) < 0)
		return -1;
	free(steal_ptr(&f->step));
	if (authenticode_check(&f->pe, digests.as_signed, &f->n_signatures, err) < 0)
		return err_wrap(err, "%s", log_esc(f->path));
	memcpy(f->digest, digests.as_measured, sizeof(f->digest));
	measure_file_rest(f);
	return 0;
}

int measure_read_small(int dir_fd, const char *path, struct strbuf *out, struct err *err)
{
	cleanup_fd int fd = open_regular(dir_fd, path, err);
	cleanup_free char *text = NULL;
	size_t len;

	if (fd < 0 || !(text = file_read_fd(fd, path, SMALL_MAX, &len, err)))
		return -1;
	strbuf_add(out, text, len);
	return 0;
}
