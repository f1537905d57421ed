/* SPDX-License-Identifier: MIT */
/*
 * What only a broker in tests has: a store in memory, stock policies, and administrators with
 * tokens. The operator keeps its broker's content in its database, and nobody else administers it.
 *
 * The token is a Bearer JWT signed with the one admin key; exp is required (60 s leeway), role is
 * required, iss and aud are checked if configured; then the role's paths are matched against the raw
 * target with its query. The signature is checked first, then the claims, then the paths. A claim
 * of another type counts as missing. nbf and iat are not checked, as in Trustee.
 */
#include "config.h"

#include "broker.h"

#include <string.h>
#include <strings.h>

#include "tec/base/json.h"
#include "tec/base/secret.h"
#include "tec/base/table.h"

/* ---- tokens */

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
int broker_auth_check(const void *auth, const char *authorization, const char *target,
	int64_t now_s, struct err *err)
{
	const struct broker_auth *a = auth;
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

/* The role "admin" may use every route, but no path outside them. */
const struct broker_auth_acl *broker_admin_acls(size_t *n)
{
	static const char *const paths[] = {BROKER_ADMIN_PREFIX "resource",
		BROKER_ADMIN_PREFIX "reference-value", BROKER_ADMIN_PREFIX "attestation-policy",
		BROKER_ADMIN_PREFIX "resource-policy", NULL};
	static const struct broker_auth_acl acls[] = {{"admin", paths}};

	*n = ARRAY_LEN(acls);
	return acls;
}

/* ---- the store */

/* The names of Trustee's namespaces. */
static const char *const ns_names[BROKER_STORE_N] = {
	[BROKER_STORE_KBS] = "kbs",
	[BROKER_STORE_REPOSITORY] = "repository",
	[BROKER_STORE_REFERENCE_VALUE] = "reference_value",
	[BROKER_STORE_ATTESTATION_POLICY] = "attestation_service_policy",
};

struct entry {
	struct table_link link;
	struct secret *secret; /* owned: a resource; NULL: it is empty */
	char *data;            /* owned: any other value */
	size_t len;
	char key[];
};

struct memory {
	struct broker_store base;
	struct table tables[BROKER_STORE_N];
};

/* Resources are wiped by secret_free(); other values are not secret. */
static void entry_forget(struct entry *e)
{
	secret_free(e->secret);
	free(e->data);
	e->secret = NULL;
	e->data = NULL;
	e->len = 0;
}

static struct entry *find(const struct table *t, const char *key)
{
	struct entry *e;

	TABLE_WITH_HASH (e, link, t, table_hash_str(key))
		if (strcmp(e->key, key) == 0)
			return e;
	return NULL;
}

/* A resource is copied into a struct secret: locked in memory and wiped when freed. */
static int memory_set(struct broker_store *s, enum broker_store_ns ns, const char *key,
	const void *data, size_t len, struct err *err)
{
	struct table *t = &((struct memory *)s)->tables[ns];
	struct entry *e = find(t, key);

	if (!e) {
		e = xcalloc(1, sizeof(*e) + strlen(key) + 1);
		strcpy(e->key, key);
		table_add(t, &e->link, table_hash_str(key));
	}
	/* Wipe the old value before the new one is stored. */
	entry_forget(e);
	/* An empty resource has no struct secret: data stays NULL and len 0. */
	if (ns != BROKER_STORE_REPOSITORY)
		e->data = xmemdup(data, len);
	else if (len > 0)
		e->secret = secret_new_copy(data, len);
	e->len = len;
	return 0;
}

static int no_such_key(enum broker_store_ns ns, struct err *err)
{
	return err_set(err, ERR_NOT_FOUND, "the key does not exist in %s", ns_names[ns]);
}

/* An empty value is "", never NULL, so that callers can copy it. */
static int memory_get(struct broker_store *s, enum broker_store_ns ns, const char *key,
	struct broker_store_value *out, struct err *err)
{
	const struct entry *e = find(&((struct memory *)s)->tables[ns], key);

	if (!e)
		return no_such_key(ns, err);
	out->data = e->secret ? (const void *)secret_peek(e->secret) : e->data ? e->data : "";
	out->len = e->len;
	return 0;
}

/* NOT_FOUND is reported: the caller decides whether that is an error. */
static int memory_remove(
	struct broker_store *s, enum broker_store_ns ns, const char *key, struct err *err)
{
	struct table *t = &((struct memory *)s)->tables[ns];
	struct entry *e = find(t, key);

	if (!e)
		return no_such_key(ns, err);
	table_remove(t, &e->link);
	entry_forget(e);
	free(e);
	return 0;
}

static int memory_list(struct broker_store *s, enum broker_store_ns ns, const char *prefix,
	broker_store_key_fn fn, void *arg, struct err *err)
{
	const struct entry *e;

	TABLE_EACH (e, link, &((struct memory *)s)->tables[ns])
		if (str_starts(e->key, prefix))
			fn(arg, e->key);
	return 0;
}

/* The keys and values are gone, as when a Pod without a volume was replaced. */
void broker_store_memory_lose(struct broker_store *s)
{
	struct memory *m = (struct memory *)s;
	struct entry *e;

	for (size_t ns = 0; ns < BROKER_STORE_N; ns++)
		TABLE_EACH (e, link, &m->tables[ns]) {
			table_remove(&m->tables[ns], &e->link);
			entry_forget(e);
			free(e);
		}
}

/* Wipes resources at shutdown, too. */
static void memory_free(struct broker_store *s)
{
	broker_store_memory_lose(s);
	for (size_t ns = 0; ns < BROKER_STORE_N; ns++)
		table_fini(&((struct memory *)s)->tables[ns]);
	free(s);
}

struct broker_store *broker_store_memory_new(void)
{
	static const struct broker_store_ops ops = {.set = memory_set,
		.get = memory_get,
		.remove = memory_remove,
		.list = memory_list,
		.free = memory_free};
	struct memory *m = xcalloc(1, sizeof(*m));

	m->base.ops = &ops;
	return &m->base;
}

/* ---- stock policies */

/* Trustee's own stock policies grant more than is wanted here. All that matters is that a policy
 * exists under each name and that it differs from the operator's, which the operator then
 * replaces. */
static const char stock_resource_policy[] =
	"# stock: every resource to every attester but \"sample\"\n"
	"package policy\n"
	"import rego.v1\n"
	"default allow := false\n"
	"allow if {\n"
	"\tdata.plugin == \"resource\"\n"
	"\tnot input.submods.cpu0[\"ear.veraison.annotated-evidence\"].sample\n"
	"}\n";
static const char stock_attestation_policy[] = "# stock\n"
					       "package policy\n"
					       "import rego.v1\n"
					       "default executables := 33\n"
					       "trust_claims := {\"executables\": executables}\n";

/* Existing policies are kept: this runs at each start. */
int broker_admin_seed(struct broker_store *store, struct err *err)
{
	static const struct {
		enum broker_store_ns ns;
		const char *id, *text;
	} stock[] = {
		{BROKER_STORE_KBS, "resource-policy", stock_resource_policy},
		{BROKER_STORE_ATTESTATION_POLICY, "default_cpu", stock_attestation_policy},
		{BROKER_STORE_ATTESTATION_POLICY, "default_gpu", stock_attestation_policy},
		{BROKER_STORE_ATTESTATION_POLICY, "default_switch", stock_attestation_policy},
		{BROKER_STORE_ATTESTATION_POLICY, "default_ppcie", stock_attestation_policy},
	};

	for (size_t i = 0; i < ARRAY_LEN(stock); i++) {
		cleanup_free char *key = xasprintf("%s.rego", stock[i].id);
		struct broker_store_value there;
		struct err none = ERR_INIT;

		/* The operator may have replaced it since the last start. */
		if (broker_store_get(store, stock[i].ns, key, &there, &none) == 0)
			continue;
		if (broker_store_set(
			    store, stock[i].ns, key, stock[i].text, strlen(stock[i].text), err) < 0)
			return -1;
	}
	return 0;
}
