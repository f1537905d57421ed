/* SPDX-License-Identifier: MIT */
/*
 * Registry authentication: credentials from docker's configuration JSON, the challenge of a 401
 * (RFC 9110 section 11), and the answer of a token server (distribution specification, "token
 * authentication"). Bytes in, values out; nothing is sent here. Every copy of a credential is a
 * struct secret, and the JSON parser's memory is wiped.
 */
#ifndef TEC_OCI_AUTH_H
#define TEC_OCI_AUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tec/base/err.h"
#include "tec/base/secret.h"

/* The configured credentials of one host. */
struct oci_cred {
	struct secret *basic;    /* "Basic <base64>" and a NUL byte: the header's value; or NULL */
	struct secret *identity; /* identitytoken and a NUL byte: a refresh token; or NULL */
};
void oci_cred_free(struct oci_cred *c);
DEFINE_CLEANUP(oci_cred_cleanup_, struct oci_cred *, oci_cred_free)
#define cleanup_oci_cred __attribute__((cleanup(oci_cred_cleanup_)))

/*
 * Find the credentials for a repository. configs: JSON of .dockerconfigjson ({"auths": {...}}) or
 * .dockercfg ({...}) Secrets. The entry with the longest matching path wins, then the earlier one;
 * paths match whole components. Keys are host[:port][/path], with or without a scheme and docker's
 * /v1/ and /v2/; `*` in a key is not supported. The historical names of docker.io match as well.
 * *out NULL: none is configured; otherwise the caller frees it. ERR_INVALID: a configuration is
 * malformed, or the matching entry is unusable.
 */
int oci_cred_find(const struct secret *const *configs, size_t n, const char *host,
	const char *repository, struct oci_cred **out, struct err *err) MUST_CHECK;

/* Write a configuration that contains only this credential, for a process that needs no other.
 * ERR_INVALID: larger than a secret may be. */
struct secret *oci_cred_config(const struct oci_cred *c, const char *host, const char *repository,
	struct err *err) MUST_CHECK;

struct oci_challenge {
	bool basic, bearer;
	char realm[1024], service[256],
		scope[1024]; /* of the first Bearer challenge; "": not given */
};
/* Parse the values of all WWW-Authenticate headers, joined by ", ". Unknown schemes are skipped.
 * ERR_INVALID: malformed, or a Bearer challenge without a realm. */
int oci_challenge_parse(
	const char *text, size_t len, struct oci_challenge *out, struct err *err) MUST_CHECK;

struct oci_token {
	struct secret *token; /* with a NUL byte at the end */
	uint32_t valid_s;     /* at least 60, at most an hour */
};
/* Parse a token server's JSON: token or access_token, and expires_in. The caller frees
 * the token. */
int oci_token_parse(
	const char *text, size_t len, struct oci_token *out, struct err *err) MUST_CHECK;

#endif
