/* SPDX-License-Identifier: MIT */
/* Each file is replaced atomically, so that a crash leaves the old file or the new one. */
#include "config.h"

#include "tec/kbs/seed.h"

#include <errno.h>
#include <sys/stat.h>

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
