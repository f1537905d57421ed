/* SPDX-License-Identifier: MIT */
/* Tokens have the claims of kube-apiserver's, for programs that read them. */
#include "config.h"

#include "tec/apireq/user.h"

#include <stdio.h>
#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/uuid.h"

#define SKEW_S 60 /* how far in the future nbf may be */

bool apireq_user_in(const struct apireq_user *u, const char *group)
{
	for (size_t i = 0; i < u->n_groups; i++)
		if (strcmp(u->groups[i], group) == 0)
			return true;
	return false;
}

/* A group is added once, so duplicates cannot use up the places. */
void apireq_user_add_group(struct apireq_user *u, const char *group)
{
	if (u->n_groups < APIREQ_GROUPS_MAX && strlen(group) < APIREQ_GROUP_LEN &&
		!apireq_user_in(u, group))
		strcpy(u->groups[u->n_groups++], group);
}

/* Sign the claims (RFC 7519). The member "kubernetes.io" names the account, as in kube-apiserver's
 * bound tokens; jti makes two tokens of the same second differ. The token is a secret: it gives the
 * rights of the ServiceAccount until it expires. */
struct secret *apireq_token_sign(
	const struct pki_key *key, const struct apireq_token *t, struct err *err)
{
	cleanup_json struct json_object *o = json_obj();
	struct json_object *aud = json_arr(), *k = json_obj(), *sa = json_obj();
	cleanup_free char *sub = xasprintf("system:serviceaccount:%s:%s", t->ns, t->account),
			  *text = NULL;
	char id[UUID_TEXT_LEN + 1];

	uuid_new_v4(id);
	for (const char *const *a = t->audiences; *a; a++)
		json_push_str(aud, *a);
	json_add(o, "aud", aud);
	json_add_int(o, "exp", t->now_s + t->life_s);
	json_add_int(o, "iat", t->now_s);
	json_add_str(o, "iss", APIREQ_ISSUER);
	json_add_str(o, "jti", id);
	json_add_str(json_add_str(sa, "name", t->account), "uid", t->uid);
	json_add(json_add_str(k, "namespace", t->ns), "serviceaccount", sa);
	json_add(o, "kubernetes.io", k);
	json_add_int(o, "nbf", t->now_s);
	json_add_str(o, "sub", sub);
	text = json_text(o);
	return jws_sign_eddsa(key, text, strlen(text), err);
}

/* Read the user from the claims. False: a claim is missing or too long. */
static bool read_claims(struct json_object *claims, struct apireq_user *out)
{
	const char *ns = json_get_str(claims, "kubernetes.io/namespace"),
		   *account = json_get_str(claims, "kubernetes.io/serviceaccount/name"),
		   *uid = json_get_str(claims, "kubernetes.io/serviceaccount/uid");
	char group[APIREQ_GROUP_LEN];

	*out = (struct apireq_user){.n_groups = 0};
	if (!ns || !account || !uid || strlen(ns) >= sizeof(out->ns) ||
		strlen(account) >= sizeof(out->account) || strlen(uid) >= sizeof(out->uid))
		return false;
	strcpy(out->ns, ns);
	strcpy(out->account, account);
	strcpy(out->uid, uid);
	snprintf(out->name, sizeof(out->name), "system:serviceaccount:%s:%s", ns, account);
	apireq_user_add_group(out, "system:serviceaccounts");
	snprintf(group, sizeof(group), "system:serviceaccounts:%s", ns);
	apireq_user_add_group(out, group);
	return true;
}

/* Check the signature first; claims of unsigned text are not even parsed. */
int apireq_token_read(const struct jws_public *key, const char *token, size_t len, int64_t now_s,
	struct apireq_user *out, struct err *err)
{
	cleanup_json struct json_object *claims = NULL;
	cleanup_free char *text = NULL;
	size_t n = 0;

	if (jws_verify_eddsa(key, token, len, &text, &n, err) < 0)
		return -1;
	claims = json_parse(text, n, &json_limits_public, err);
	if (!claims)
		return -1;
	/* A token for another audience only must not work here. */
	if (!str_eq(json_get_str(claims, "iss"), APIREQ_ISSUER) ||
		!json_has_str(json_get(claims, "aud"), APIREQ_ISSUER) || !read_claims(claims, out))
		return err_set(err, ERR_DENIED, "the token is not for this API");
	/* No tolerance for exp: the same clock wrote it. nbf has some, in case the clock was set
	 * back. */
	if (json_get_int(claims, "exp", 0) <= now_s ||
		json_get_int(claims, "nbf", INT64_MAX) > now_s + SKEW_S)
		return err_set(err, ERR_DENIED, "the token has expired or is not valid yet");
	return 0;
}
