/* SPDX-License-Identifier: MIT */
/*
 * Reads a tar stream (ustar, GNU long names, pax) in pieces of any length. What it delivers is
 * checked: a path is relative to the root, without ".", "..", empty components or a trailing slash,
 * and its lengths are bounded; anything else is ERR_INVALID and ends the stream. Sparse files are
 * delivered as OCI_TAR_SPARSE, without their content.
 *
 * Owns nothing of its caller; strings are borrowed for the call. A callback that fails sets err and
 * ends the stream.
 */
#ifndef TEC_OCI_TAR_H
#define TEC_OCI_TAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tec/base/err.h"

#define OCI_TAR_PATH_MAX  4095u
#define OCI_TAR_NAME_MAX  255u           /* of a component of a path */
#define OCI_TAR_EXTRA_MAX (1024u * 1024) /* of one entry's pax records, or of a long name */

enum oci_tar_type {
	OCI_TAR_FILE,
	OCI_TAR_DIR,
	OCI_TAR_SYMLINK,
	OCI_TAR_HARDLINK,
	OCI_TAR_SPARSE,
	OCI_TAR_OTHER, /* devices, FIFOs and everything else */
};

struct oci_tar_entry {
	enum oci_tar_type type;
	const char *path;   /* never "": an entry for the root itself is skipped */
	const char *target; /* SYMLINK: any non-empty text; HARDLINK: a path as above */
	uint64_t size;      /* FILE: bytes that follow */
};

struct oci_tar_ops {
	int (*entry)(void *arg, const struct oci_tar_entry *e, struct err *err);
	/* Content of the last entry, if it is a FILE. */
	int (*data)(void *arg, const void *data, size_t len, struct err *err);
	/* The content of a FILE is complete. */
	int (*done)(void *arg, struct err *err);
};

struct oci_tar;
struct oci_tar *oci_tar_new(const struct oci_tar_ops *ops, void *arg);
int oci_tar_add(struct oci_tar *t, const void *data, size_t len, struct err *err) MUST_CHECK;
/* ERR_INVALID: the stream ends inside an entry. */
int oci_tar_end(struct oci_tar *t, struct err *err) MUST_CHECK;
void oci_tar_free(struct oci_tar *t); /* NULL is fine */

#endif
