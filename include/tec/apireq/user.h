/* SPDX-License-Identifier: MIT */
/*
 * Authenticated users: the subject of a client certificate signed by our CA (its organizations are
 * the groups), or a ServiceAccount with a token signed by us. Tokens are JWTs signed with EdDSA and
 * bound to the uid of the ServiceAccount, so deleting the account revokes them even if it is
 * created again.
 */
#ifndef TEC_APIREQ_USER_H
#define TEC_APIREQ_USER_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#include "tec/base/err.h"
#include "tec/base/secret.h"
#include "tec/jose/jws.h"
#include "tec/kobj/key.h"
#include "tec/pki/key.h"

#define APIREQ_GROUPS_MAX 12
#define APIREQ_GROUP_LEN  (KOBJ_NAME_MAX + 32)
#define APIREQ_MASTERS    "system:masters"
#define APIREQ_ISSUER     "https://kubernetes.default.svc.cluster.local"

struct apireq_user {
	char name[2 * KOBJ_NAME_MAX + 32];
	char groups[APIREQ_GROUPS_MAX][APIREQ_GROUP_LEN];
	size_t n_groups;
	/* For a ServiceAccount; "" otherwise. */
	char ns[64], account[KOBJ_NAME_MAX + 1], uid[64];
};

bool apireq_user_in(const struct apireq_user *u, const char *group);
/* Add a group. One that does not fit is dropped, which can only reduce the user's rights. */
void apireq_user_add_group(struct apireq_user *u, const char *group);

/* The claims of a token. */
struct apireq_token {
	const char *ns, *account, *uid;
	const char *const *audiences; /* NULL-terminated; APIREQ_ISSUER is the API itself */
	int64_t now_s, life_s;        /* the wall clock; how long the token is valid */
};
/* Sign a token; the caller frees it. */
struct secret *apireq_token_sign(
	const struct pki_key *key, const struct apireq_token *t, struct err *err) MUST_CHECK;
/* Verify a token. ERR_DENIED: not signed by us, expired, or not for this API. The caller must check
 * that the ServiceAccount still exists with this uid. */
int apireq_token_read(const struct jws_public *key, const char *token, size_t len, int64_t now_s,
	struct apireq_user *out, struct err *err) MUST_CHECK;

#endif
