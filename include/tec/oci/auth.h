/* SPDX-License-Identifier: MIT */
/*
 * What a registry asks of its clients: credentials out of docker's configuration JSON, the
 * challenge of a 401 (RFC 9110 section 11), the answer of a token server (distribution
 * specification, "token authentication"). Bytes in, values out; nothing here is sent. Every copy of
 * a credential is a struct secret, and what the JSON parser held is wiped.
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
 * configs: JSON of .dockerconfigjson ({"auths": {...}}) or .dockercfg ({...}) Secrets. The entry
 * whose path is the longest at the borders of `repository`'s components wins, then the earlier one.
 * Keys are host[:port][/path], with or without a scheme and docker's own /v1/ and /v2/; `*` in a
 * key is not supported. docker.io is known by its historical names too. *out NULL: none is configured
 * (the caller frees otherwise). ERR_INVALID: a configuration is not such JSON, or the entry that
 * wins is unusable.
 */
int oci_cred_find(const struct secret *const *configs, size_t n, const char *host,
	const char *repository, struct oci_cred **out, struct err *err) MUST_CHECK;

/* The same as a configuration of its own, of which oci_cred_find() finds this credential and no
 * other: for a process that needs no more. ERR_INVALID: larger than a secret may be. */
struct secret *oci_cred_config(const struct oci_cred *c, const char *host, const char *repository,
	struct err *err) MUST_CHECK;

struct oci_challenge {
	bool basic, bearer;
	char realm[1024], service[256], scope[1024]; /* of the first Bearer; "": not given */
};
/* text: the values of all WWW-Authenticate headers, joined by ", ". Schemes it does not know are
 * skipped; ERR_INVALID when it cannot be read, or a Bearer challenge does not have a realm. */
int oci_challenge_parse(
	const char *text, size_t len, struct oci_challenge *out, struct err *err) MUST_CHECK;

struct oci_token {
	struct secret *token; /* with a NUL byte at the end */
	uint32_t valid_s;     /* at least 60, at most an hour */
};
/* The JSON of a token server: token, or access_token, and expires_in. The caller frees the token.
 */
int oci_token_parse(
	const char *text, size_t len, struct oci_token *out, struct err *err) MUST_CHECK;

#endif
