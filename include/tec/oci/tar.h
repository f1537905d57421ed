/* SPDX-License-Identifier: MIT */
/*
 * Reads a tar stream (ustar, GNU long names, pax) as it comes, in pieces of any length. What it hands out
 * is checked: a path is relative to the root, without ".", "..", empty components or a slash at its
 * end, and its lengths are bounded; what cannot be handed out so is ERR_INVALID, which ends the stream.
 * Sparse files are handed out as OCI_TAR_SPARSE, their content is not put together.
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
#define OCI_TAR_NAME_MAX  255u           /* of a path's component */
#define OCI_TAR_EXTRA_MAX (1024u * 1024) /* of one entry's pax records, or of a long name */

enum oci_tar_type {
	OCI_TAR_FILE,
	OCI_TAR_DIR,
	OCI_TAR_SYMLINK,
	OCI_TAR_HARDLINK,
	OCI_TAR_SPARSE,
	OCI_TAR_OTHER, /* devices, FIFOs, what else there may be */
};

struct oci_tar_entry {
	enum oci_tar_type type;
	const char *path;   /* never "": an entry for the root itself is not handed out */
	const char *target; /* SYMLINK: any text that is not empty; HARDLINK: a path as above */
	uint64_t size;      /* FILE: bytes that follow */
};

struct oci_tar_ops {
	int (*entry)(void *arg, const struct oci_tar_entry *e, struct err *err);
	/* Of the last entry, when it is a FILE. */
	int (*data)(void *arg, const void *data, size_t len, struct err *err);
	/* All bytes of a FILE were handed out. */
	int (*done)(void *arg, struct err *err);
};

struct oci_tar;
struct oci_tar *oci_tar_new(const struct oci_tar_ops *ops, void *arg);
int oci_tar_add(struct oci_tar *t, const void *data, size_t len, struct err *err) MUST_CHECK;
/* ERR_INVALID: the stream ends inside an entry. */
int oci_tar_end(struct oci_tar *t, struct err *err) MUST_CHECK;
void oci_tar_free(struct oci_tar *t); /* NULL is fine */

#endif
