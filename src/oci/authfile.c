/* SPDX-License-Identifier: MIT */
/* Content is in a struct secret from the first byte. */
#include "config.h"

#include "tec/oci/authfile.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "tec/base/log.h"
#include "tec/base/mem.h"

struct oci_authfile {
	const char *path;
	struct secret *content; /* owned; NULL: no credentials */
};

/* At most SECRET_MAX_LEN bytes. NULL without an error: there is no such file, as of an optional
 * Secret that nobody made. */
static struct secret *read_auth(const char *path, struct err *err)
{
	cleanup_secret struct secret *all = secret_new(SECRET_MAX_LEN);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n = 0;

	if (fd < 0 && errno == ENOENT)
		return NULL;
	if (fd < 0) {
		err_set_errno(err, ERR_INVALID, errno, "cannot read %s", path);
		return NULL;
	}
	while (len < SECRET_MAX_LEN) {
		n = read(fd, secret_bytes(all) + len, SECRET_MAX_LEN - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	if (n < 0)
		err_set_errno(err, ERR_INVALID, errno, "cannot read %s", path);
	else if (len == 0 || len == SECRET_MAX_LEN)
		err_set(err, ERR_INVALID, "%s is empty, or 64 KiB or larger", path);
	close(fd);
	return err_is_set(err) ? NULL : secret_new_copy(secret_peek(all), len);
}

static void take(struct oci_authfile *f, struct secret *take_content, bool first)
{
	if (first || !take_content != !f->content)
		log_info(NULL,
			take_content ? "registry credentials read"
				     : "no credentials for registries: the file is absent",
			"file=%s", log_esc(f->path));
	secret_free(f->content);
	f->content = take_content;
}

struct oci_authfile *oci_authfile_new(const char *path, struct err *err)
{
	struct oci_authfile *f = xcalloc(1, sizeof(*f));
	struct secret *content = path ? read_auth(path, err) : NULL;

	f->path = path;
	if (err_is_set(err)) {
		free(f);
		return NULL;
	}
	if (path)
		take(f, content, true);
	return f;
}

void oci_authfile_free(struct oci_authfile *f)
{
	if (!f)
		return;
	secret_free(f->content);
	free(f);
}

const struct secret *oci_authfile_get(struct oci_authfile *f)
{
	struct err err = ERR_INIT;
	struct secret *now;

	if (!f->path)
		return NULL;
	now = read_auth(f->path, &err);
	if (err_is_set(&err))
		log_err(LOG_WARN, NULL, "registry credentials not read, the earlier ones are used",
			&err);
	else
		take(f, now, false);
	return f->content;
}
