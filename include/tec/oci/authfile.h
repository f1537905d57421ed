/* SPDX-License-Identifier: MIT */
/*
 * Registry credentials in a mounted file. The file is read again before each use, because
 * Kubernetes replaces the files of a mounted Secret. A file is used rather than the API: reading
 * the pull Secrets of our own ServiceAccount would require the right to read ServiceAccounts.
 */
#ifndef TEC_OCI_AUTHFILE_H
#define TEC_OCI_AUTHFILE_H

#include "tec/base/err.h"
#include "tec/base/secret.h"

struct oci_authfile;

/* path is borrowed; NULL: no credentials. Returns NULL if the file exists but is unusable. A
 * missing file (an optional Secret that does not exist) means no credentials. */
struct oci_authfile *oci_authfile_new(const char *path, struct err *err) MUST_CHECK;
void oci_authfile_free(struct oci_authfile *f);
/* Return the current content, borrowed until the next call; NULL: no credentials. While the file is
 * unusable, the previous content is returned. Changes are logged. */
const struct secret *oci_authfile_get(struct oci_authfile *f);

#endif
