/* SPDX-License-Identifier: MIT */
/*
 * Image references as in docker's reference grammar and the distribution specification:
 * [registry/]repository[:tag]@sha256:<64 hex>. Pure text; ERR_INVALID names the faulty part.
 */
#ifndef TEC_OCI_REF_H
#define TEC_OCI_REF_H

#include <stdbool.h>
#include <stddef.h>

#include "tec/base/err.h"

#define OCI_DIGEST_LEN 71 /* "sha256:" and 64 hex */
#define OCI_NAME_MAX   255
#define OCI_TAG_MAX    128

struct oci_ref {
	char registry[OCI_NAME_MAX + 1];   /* host[:port], lower case; "docker.io" if omitted */
	char repository[OCI_NAME_MAX + 1]; /* "library/debian" for docker.io's short names */
	char digest[OCI_DIGEST_LEN + 1];
	char tag[OCI_TAG_MAX + 1]; /* only from oci_ref_parse_tag(), and without a digest */
};
/* Parse a reference with a sha256 digest, which is required. A tag next to it is checked and
 * dropped: the digest alone identifies the image. */
int oci_ref_parse(const char *text, struct oci_ref *out, struct err *err) MUST_CHECK;
/* The same, but the digest may be omitted: it is "" then, and the tag identifies the image,
 * "latest" if it is omitted as well. */
int oci_ref_parse_tag(const char *text, struct oci_ref *out, struct err *err) MUST_CHECK;

/* Accept "sha256:" and 64 lower-case hex digits. */
bool oci_digest_valid(const char *text, size_t len);
/* Accept host[:port] with a name, IPv4 or [IPv6]; also for mirrors and lists in the
 * configuration. */
bool oci_host_valid(const char *text, size_t len);
/* Accept the path of a repository as in a reference. */
bool oci_repository_valid(const char *text, size_t len);

#endif
