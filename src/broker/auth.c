/* SPDX-License-Identifier: MIT */
/* Checks the signature first, then the claims, then the paths. A claim of another type counts as
 * missing. nbf and iat are not checked, as in Trustee. */
#include "config.h"

#include "tec/broker/auth.h"

#include <strings.h>

#include "tec/base/json.h"

#define HTTP_UNAUTHORIZED 401
#define HTTP_FORBIDDEN    403

static int unauthorized(struct err *err, const char *why)
{
	return err_set_http(err, ERR_DENIED, HTTP_UNAUTHORIZED, "%s", why);
}

/* aud is a single name or a list (RFC 7519 section 4.1.3). */
static bool has_audience(struct json_object *claims, const char *wanted)
{
	struct json_object *list = json_get_arr(claims, "aud");

	for (size_t i = 0; list && i < json_object_array_length(list); i++) {
		struct json_object *v = json_object_array_get_idx(list, i);

		if (json_object_is_type(v, json_type_string) &&
			str_eq(json_object_get_string(v), wanted))
			return true;
	}
	return str_eq(json_get_str(claims, "aud"), wanted);
}

/* exp is required: a token without it would be valid forever. */
static int check_claims(
	const struct broker_auth *a, struct json_object *claims, int64_t now_s, struct err *err)
{
	int64_t exp = json_get_int(claims, "exp", -1);

	if (exp < 0)
		return unauthorized(err, "the token has no exp claim");
	if (exp < now_s - BROKER_AUTH_LEEWAY_S)
		return unauthorized(err, "the token has expired");
	/* iss and aud are checked if configured, as Trustee's options are. */
	if (a->issuer && !str_eq(json_get_str(claims, "iss"), a->issuer))
		return unauthorized(err, "the token is from another issuer");
	if (a->audience && !has_audience(claims, a->audience))
		return unauthorized(err, "the token is for another audience");
	/* The role selects the list of paths in check_acl(). */
	if (!json_get_str(claims, "role"))
		return unauthorized(err, "the token has no role claim");
	return 0;
}

/* Match whole segments: "/kbs/v0/resource" must not grant "/kbs/v0/resource-policy". */
static bool path_fits(const char *path, const char *target)
{
	size_t len = strlen(path);

	return strncmp(path, target, len) == 0 && (target[len] == '\0' || target[len] == '/');
}

/* 403 instead of 401: the token is valid, so another login would not help. */
static int check_acl(
	const struct broker_auth *a, const char *role, const char *target, struct err *err)
{
	/* A role may have several entries. */
	for (size_t i = 0; i < a->n_acls; i++) {
		if (!str_eq(a->acls[i].role, role))
			continue;
		for (const char *const *p = a->acls[i].paths; *p; p++)
			if (path_fits(*p, target))
				return 0;
	}
	return err_set_http(
		err, ERR_DENIED, HTTP_FORBIDDEN, "the token's role is not allowed to do this");
}

/* The scheme is case-insensitive (RFC 9110 section 11.1). */
static const char *bearer_token(const char *authorization)
{
	static const char scheme[] = "Bearer ";

	if (!authorization || strncasecmp(authorization, scheme, sizeof(scheme) - 1) != 0)
		return NULL;
	return authorization + sizeof(scheme) - 1;
}

/* The reason why a signature fails is not returned: it would help only a forger. */
int broker_auth_check(const struct broker_auth *a, const char *authorization, const char *target,
	int64_t now_s, struct err *err)
{
	const char *token = bearer_token(authorization);
	cleanup_json struct json_object *claims = NULL;
	cleanup_free char *payload = NULL;
	struct err why = ERR_INIT;
	size_t len;

	if (!token)
		return unauthorized(err, "a bearer token is required");
	if (jws_verify_eddsa(a->key, token, strlen(token), &payload, &len, &why) < 0)
		return unauthorized(err, "the token is malformed or not signed by the admin key");
	/* Only now is the payload parsed: it is signed. */
	claims = json_parse(payload, len, &json_limits_public, &why);
	if (!json_object_is_type(claims, json_type_object))
		return unauthorized(err, "the token's claims are not a JSON object");
	if (check_claims(a, claims, now_s, err) < 0)
		return -1;
	return check_acl(a, json_get_str(claims, "role"), target, err);
}
