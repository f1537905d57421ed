/* SPDX-License-Identifier: MIT */
/* Writes each file next to its final path and renames it, so that a crash leaves the old file or
 * the new one. */
#include "config.h"

#include "tec/kbs/seed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
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

/* fsync before the rename: otherwise a crash could leave an empty file under the final name. */
static int write_all(int fd, const char *data, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = write(fd, data + done, len - done);

		if (n < 0 && errno != EINTR)
			return -1;
		done += n > 0 ? (size_t)n : 0;
	}
	return fsync(fd);
}

/* Write to a hidden file in the same directory, which makes the rename atomic. */
static int write_file(
	const char *dir, const char *file, const char *data, size_t len, struct err *err)
{
	cleanup_free char *path = xasprintf("%s/%s", dir, file);
	cleanup_free char *tmp = xasprintf("%s/.%s.new", dir, file);
	int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	int rc;

	if (fd < 0)
		return err_set_errno(err, ERR_INVALID, errno, "cannot write %s", tmp);
	/* close() can report a delayed write error. */
	rc = write_all(fd, data, len);
	if (close(fd) < 0)
		rc = -1;
	if (rc < 0 || rename(tmp, path) < 0)
		return err_set_errno(err, ERR_INVALID, errno, "cannot write %s", path);
	return 0;
}

/* Runs in an init container: an error keeps Trustee from starting with its own policies. */
int kbs_seed(const char *src, const char *dst, struct strbuf *said, struct err *err)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(places); i++) {
		cleanup_free char *from = xasprintf("%s/%s", src, places[i].key);
		cleanup_free char *dir = xasprintf("%s/%s", dst, places[i].folder);
		size_t len;
		cleanup_free char *data = file_read(from, SEED_MAX_BYTES, &len, NULL, err);

		if (!data)
			return -1;
		if (len == 0)
			return err_set(err, ERR_INVALID, "%s is empty", from);
		if (mkdir(dir, 0755) < 0 && errno != EEXIST)
			return err_set_errno(err, ERR_INVALID, errno, "cannot create %s", dir);
		if (write_file(dir, places[i].file, data, len, err) < 0)
			return -1;
		strbuf_addf(said, "seeded %s/%s (%zu bytes)\n", dir, places[i].file, len);
	}
	return 0;
}
