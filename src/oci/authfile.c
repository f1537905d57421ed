/* SPDX-License-Identifier: MIT */
/* The content is kept only in a struct secret. */
#include "config.h"

#include "tec/oci/authfile.h"

#include <stdlib.h>

#include "tec/base/file.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"

struct oci_authfile {
	const char *path;
	struct secret *content; /* owned; NULL: no credentials */
};

/* Read the file. NULL without an error: it does not exist, like an optional Secret that was not
 * created. */
static struct secret *read_auth(const char *path, struct err *err)
{
	struct secret *auth = NULL;
	size_t len;
	char *text = file_read(path, SECRET_MAX_LEN - 1, &len, NULL, err);

	if (!text && err->kind == ERR_NOT_FOUND) {
		err_clear(err);
		return NULL;
	}
	if (text && len == 0)
		err_set(err, ERR_INVALID, "%s is empty", path);
	if (!err_is_set(err))
		auth = secret_new_copy(text, len);
	file_wipe(text, len);
	return auth;
}

/* Replace the content. Only its appearance and disappearance are logged, not each change. */
static void take(struct oci_authfile *f, struct secret *take_content, bool first)
{
	if (first || !take_content != !f->content)
		log_info(NULL,
			take_content ? "registry credentials read"
				     : "no registry credentials: the file does not exist",
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

/* An unreadable file is logged on every call, since someone has to repair it. */
const struct secret *oci_authfile_get(struct oci_authfile *f)
{
	struct err err = ERR_INIT;
	struct secret *now;

	if (!f->path)
		return NULL;
	now = read_auth(f->path, &err);
	if (err_is_set(&err))
		log_err(LOG_WARN, NULL,
			"cannot read registry credentials, keeping the previous ones", &err);
	else
		take(f, now, false);
	return f->content;
}
