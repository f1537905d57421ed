/* SPDX-License-Identifier: MIT */
/* For tests: administrators of a broker, its store in memory, and stock policies. */
#ifndef TESTS_FAKE_BROKER_H
#define TESTS_FAKE_BROKER_H

#include "tec/broker/admin.h"
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

/* A broker_admin's check, whose arg is the broker_auth: http 401 (no acceptable token) or 403 (a
 * valid token without this right). */
int broker_auth_check(const void *auth, const char *authorization, const char *target,
	int64_t now_s, struct err *err) MUST_CHECK;
/* The paths of the role "admin". */
const struct broker_auth_acl *broker_admin_acls(size_t *n);

/* In memory, lost with the process; each call is O(1), list O(n). */
struct broker_store *broker_store_memory_new(void);
void broker_store_memory_lose(struct broker_store *s);
/* Store the stock policies under the names that have none. */
int broker_admin_seed(struct broker_store *store, struct err *err) MUST_CHECK;

#endif
