/* SPDX-License-Identifier: MIT */
/*
 * The credentials of registries in a mounted file: read again before each use, as Kubernetes
 * replaces the files of a mounted Secret. They come from a file and not from the API: to read the
 * pull Secrets of our own ServiceAccount would need the right to read ServiceAccounts.
 */
#ifndef TEC_OCI_AUTHFILE_H
#define TEC_OCI_AUTHFILE_H

#include "tec/base/err.h"
#include "tec/base/secret.h"

struct oci_authfile;

/* path is borrowed; NULL: there are no credentials. NULL is returned when the file is there but
 * cannot be used; an absent one (an optional Secret that does not exist) is as good as none. */
struct oci_authfile *oci_authfile_new(const char *path, struct err *err) MUST_CHECK;
void oci_authfile_free(struct oci_authfile *f);
/* The content as it is now, borrowed until the next call; NULL: no credentials. While the file
 * cannot be used, the earlier content is. What changes is logged. */
const struct secret *oci_authfile_get(struct oci_authfile *f);

#endif
