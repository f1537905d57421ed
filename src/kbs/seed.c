/* SPDX-License-Identifier: MIT */
/* Each policy is replaced atomically, so that a crash leaves the old file or the new one. */
#include "config.h"

#include "tec/kbs/seed.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tec/base/file.h"
#include "tec/base/mem.h"

#define SEED_MAX_BYTES (1024 * 1024)

/* Keys of ConfigMap trustee-policies, and their paths in Trustee's LocalFs storage. */
static const struct {
	const char *key, *folder, *file;
} places[] = {
	{"resource-policy.rego", "kbs", "resource-policy.rego"},
	{"default_cpu.rego", "attestation_service_policy", "default_cpu.rego"},
};

/* Runs in an init container: an error keeps Trustee from starting with its own policies. */
int kbs_seed(const char *src, const char *dst, struct strbuf *said, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		cleanup_free char *from = xasprintf("%s/%s", src, places[i].key);
		cleanup_free char *dir = xasprintf("%s/%s", dst, places[i].folder);
		cleanup_free char *to = xasprintf("%s/%s", dir, places[i].file);
		struct err why = ERR_INIT;
		size_t len;
		cleanup_free char *data = file_read(from, SEED_MAX_BYTES, &len, NULL, err);

		if (!data)
			return -1;
		if (len == 0)
			return err_set(err, ERR_INVALID, "%s is empty", from);
		if (mkdir(dir, 0755) < 0 && errno != EEXIST)
			return err_set_errno(err, ERR_INVALID, errno, "cannot create %s", dir);
		if (file_replace(to, data, len, 0644, &why) < 0)
			return err_set_errno(err, ERR_INVALID, why.sys, "cannot write %s", to);
		strbuf_addf(said, "seeded %s (%zu bytes)\n", to, len);
	}
	return 0;
}

/* Trustee runs as another user, perhaps without any capability, and must be able to replace the file;
 * what an earlier run left may be that user's. Not atomic: a name may have no room for a suffix, and
 * after a crash this container runs again before Trustee starts. */
static int write_resource(const char *to, const char *data, size_t len)
{
	int fd, rc;

	unlink(to);
	fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (fd < 0)
		return -1;
	rc = fchmod(fd, 0666) < 0 ? -1 : file_write(fd, data, len);
	return close(fd) < 0 ? -1 : rc;
}

static int copy_resource(const char *src, const char *dst, const char *name, struct err *err)
{
	cleanup_free char *from = xasprintf("%s/%s", src, name),
			  *to = xasprintf("%s/%s", dst, name);
	size_t len;
	char *data = file_read(from, SEED_MAX_BYTES, &len, NULL, err);
	int rc;

	if (!data)
		return -1;
	rc = write_resource(to, data, len);
	if (rc < 0)
		err_set_errno(err, ERR_INVALID, errno, "cannot write %s", to);
	file_wipe(data, len);
	return rc;
}

/* A volume has names with a dot for its own use. */
int kbs_seed_resources(const char *src, const char *dst, struct strbuf *said, struct err *err)
{
	DIR *dir = opendir(src);
	struct dirent *e;
	unsigned n = 0;
	int rc = 0;

	if (!dir)
		return err_set_errno(err, ERR_INVALID, errno, "cannot read %s", src);
	while (rc == 0 && (errno = 0, e = readdir(dir))) {
		if (e->d_name[0] == '.')
			continue;
		rc = copy_resource(src, dst, e->d_name, err);
		n++;
	}
	if (rc == 0 && errno)
		rc = err_set_errno(err, ERR_INVALID, errno, "cannot read %s", src);
	closedir(dir);
	if (rc == 0)
		strbuf_addf(said, "seeded %s (%u resources)\n", dst, n);
	return rc;
}
