/* SPDX-License-Identifier: MIT */
/*
 * What a user's kbs-config.toml says about the Pod that reads it: where files must be, and how to
 * reach Trustee. All strings belong to the object from which the file was read (model/input.h).
 * Older files use separate directories for policies, resources and reference values (legacy: up to
 * Trustee v0.18), newer ones a single storage directory.
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
	bool older_admin; /* [admin] in the form before v0.21, whose Trustee has no /healthz */
	bool admin_type;  /* ... and with type, which began with v0.16 */
	bool insecure_http;
	bool loopback; /* the first socket is on 127.0.0.1 or [::1] */
	uint16_t port;
	const char *why;         /* the first problem of the file; NULL: none */
	const char *policy_path; /* legacy; NULL: not given */
	const char *resource_dir, *values_path, *policy_dir;
	const char *storage_dir, *values_dir; /* NULL: Trustee's defaults */
	/* Files below /etc that it names, as lines DIR/KEY: auth-secret/publicKey. NULL: none. */
	const char *files;
};

/* Read a file into the member at offset `at` of what p packs. */
void model_kbsfile_read(
	struct kobj_pack *p, size_t at, struct model_kbsfile *out, const char *text, size_t len);
/* Call fn with each KEY that the file names in DIR; false from fn ends the iteration and is
 * returned. f->files may be NULL. */
bool model_kbsfile_each(const struct model_kbsfile *f, const char *dir,
	bool (*fn)(void *arg, const char *key), void *arg);

#endif
