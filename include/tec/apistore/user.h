/* SPDX-License-Identifier: MIT */
/*
 * Who makes a request: the subject of a client certificate that our CA signed (its organizations are
 * the groups), or a ServiceAccount by a token that we signed. And the tokens: JWT, EdDSA, bound to the
 * ServiceAccount's uid, so that one that was deleted and made again is another.
 */
#ifndef TEC_APISTORE_USER_H
#define TEC_APISTORE_USER_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#include "tec/base/err.h"
#include "tec/base/secret.h"
#include "tec/jose/jws.h"
#include "tec/kobj/key.h"
#include "tec/pki/key.h"

#define APISTORE_GROUPS_MAX 12
#define APISTORE_GROUP_LEN  (KOBJ_NAME_MAX + 32)
#define APISTORE_MASTERS    "system:masters"
#define APISTORE_ISSUER     "https://kubernetes.default.svc.cluster.local"

struct apistore_user {
	char name[2 * KOBJ_NAME_MAX + 32];
	char groups[APISTORE_GROUPS_MAX][APISTORE_GROUP_LEN];
	size_t n_groups;
	/* Of a ServiceAccount; "" otherwise. */
	char ns[64], account[KOBJ_NAME_MAX + 1], uid[64];
};

bool apistore_user_in(const struct apistore_user *u, const char *group);
/* Another group; what does not fit is left out: fewer groups are fewer rights. */
void apistore_user_add_group(struct apistore_user *u, const char *group);

/* The claims of a token: now_s, whom it is for, how long it lasts. The caller frees. */
struct apistore_token {
	const char *ns, *account, *uid;
	const char *const *audiences; /* NULL-terminated; the first is what the API itself takes */
	int64_t now_s, life_s;
};
struct secret *apistore_token_sign(
	const struct pki_key *key, const struct apistore_token *t, struct err *err) MUST_CHECK;
/* ERR_DENIED: another's, expired, not for this API. Whether the ServiceAccount is still there with
 * this uid is for the caller to look at. */
int apistore_token_read(const struct jws_public *key, const char *token, size_t len, int64_t now_s,
	struct apistore_user *out, struct err *err) MUST_CHECK;

#endif
