/* SPDX-License-Identifier: MIT */
/*
 * Image references as in docker's reference grammar and the distribution specification:
 * [registry/]repository[:tag]@sha256:<64 hex>. Pure text; fails with ERR_INVALID and says which
 * part is wrong.
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
	char registry[OCI_NAME_MAX + 1]; /* host[:port], lower case; "docker.io" when none is named
					  */
	char repository[OCI_NAME_MAX + 1]; /* "library/debian" for docker.io's short names */
	char digest[OCI_DIGEST_LEN + 1];
	char tag[OCI_TAG_MAX + 1]; /* only from oci_ref_parse_tag(), and without a digest */
};
/* A reference without a sha256 digest is refused; a tag beside the digest is checked and dropped:
 * the digest alone says what is meant. */
int oci_ref_parse(const char *text, struct oci_ref *out, struct err *err) MUST_CHECK;
/* The same for a person, who may leave the digest out: then it is "", and the tag says what is meant;
 * "latest" when that is left out too. */
int oci_ref_parse_tag(const char *text, struct oci_ref *out, struct err *err) MUST_CHECK;

/* "sha256:" and 64 lower-case hex digits, nothing else. */
bool oci_digest_valid(const char *text, size_t len);
/* host[:port] with a name, IPv4 or [IPv6]: mirrors and lists of the configuration. */
bool oci_host_valid(const char *text, size_t len);
/* Path components of a repository, as a reference may hold them. */
bool oci_repository_valid(const char *text, size_t len);

#endif
