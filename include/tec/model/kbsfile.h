/* SPDX-License-Identifier: MIT */
/*
 * What a user's kbs-config.toml says about the Pod that it is read in: where files have to be, and
 * how Trustee is reached. All texts are part of the object that it was read from (model/input.h).
 * Older files put policies, resources and reference values into directories of their own (legacy:
 * up to Trustee v0.18), newer ones below one storage directory.
 */
#ifndef TEC_MODEL_KBSFILE_H
#define TEC_MODEL_KBSFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tec/kobj/meta.h"

#define MODEL_KBSFILE_KEY "kbs-config.toml"

struct model_kbsfile {
	bool there;
	bool legacy;
	bool older_admin; /* [admin] as before v0.21, whose Trustee has no /healthz */
	bool insecure_http;
	bool loopback; /* the first socket is of 127.0.0.1 or [::1] */
	uint16_t port;
	const char *why;         /* what is wrong with the file; NULL: nothing */
	const char *policy_path; /* legacy; NULL: not given */
	const char *resource_dir, *values_path, *policy_dir;
	const char *storage_dir, *values_dir; /* NULL: Trustee's defaults */
	/* The files below /etc that it names, as lines DIR/KEY: auth-secret/publicKey. NULL: none. */
	const char *files;
};

/* Reads a file into the member `at` of what p packs. */
void model_kbsfile_read(
	struct kobj_pack *p, size_t at, struct model_kbsfile *out, const char *text, size_t len);
/* Calls fn with each KEY of DIR that it names; false from fn ends it. NULL is fine as f->files. */
bool model_kbsfile_each(const struct model_kbsfile *f, const char *dir,
	bool (*fn)(void *arg, const char *key), void *arg);

#endif
