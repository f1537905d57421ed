/* SPDX-License-Identifier: MIT */
/*
 * Access to a broker's admin API: a Bearer JWT signed with the one admin key; exp is required (60 s
 * leeway), role is required, iss and aud are checked if configured; then the role's paths are
 * matched against the raw target with its query. Time and bytes are arguments.
 *
 * Errors are ERR_DENIED with http 401 (no acceptable token) or 403 (a valid token without this
 * right); the text may be sent to the client.
 */
#ifndef TEC_BROKER_AUTH_H
#define TEC_BROKER_AUTH_H

#include <stddef.h>
#include <stdint.h>

#include "tec/base/err.h"
#include "tec/jose/jws.h"

#define BROKER_AUTH_LEEWAY_S 60

/* The target must be one of the paths or below one: "/kbs/v0/resource" also covers
 * "/kbs/v0/resource/a?b" but not "/kbs/v0/resource?b", as Trustee's regular expression does. */
struct broker_auth_acl {
	const char *role;
	const char *const *paths; /* NULL-terminated */
};

struct broker_auth {
	const struct jws_public *key;
	const char *issuer, *audience; /* NULL: not checked */
	const struct broker_auth_acl *acls;
	size_t n_acls;
};

/* authorization: value of the header; NULL: absent. */
int broker_auth_check(const struct broker_auth *a, const char *authorization, const char *target,
	int64_t now_s, struct err *err) MUST_CHECK;

#endif
