/* SPDX-License-Identifier: MIT */
/*
 * Image references as in the distribution specification and docker's reference grammar:
 * [registry/]repository[:tag]@sha256:<64 hex>. Pure text.
 */
#ifndef TEC_OCI_REF_H
#define TEC_OCI_REF_H

#include "tec/base/err.h"

#define OCI_DIGEST_LEN 71 /* "sha256:" and 64 hex */

struct oci_ref {
	char registry[256];   /* host[:port]; "docker.io" when none is named */
	char repository[256]; /* "library/debian" for docker.io's short names */
	char digest[OCI_DIGEST_LEN + 1];
};
/* A reference without a sha256 digest is refused. */
int oci_ref_parse(const char *text, struct oci_ref *out, struct err *err) MUST_CHECK;

#endif
