/* SPDX-License-Identifier: MIT */
/* A single table of paths and methods; 404 and 405 follow from it. A message of reference values
 * is not atomic: values before a refused name are stored. */
#include "config.h"

#include "tec/broker/admin.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/broker/wire.h"
#include "tec/rats/api.h"

#define RESOURCE_POLICY "resource-policy"
#define REGO            ".rego"
#define JSON_TYPE       "application/json"

static const char plugin_error[] = "Plugin internal error"; /* Trustee's own wording */

/* One admin request while it is handled; everything is borrowed. */
struct call {
	const struct broker_admin *a;
	const struct broker_request *r;
	enum broker_store_ns ns; /* of the route */
	const char *rest;        /* of the path, after the route's prefix: a key or a name */
	int64_t now_s;
	struct broker_answer *out;
};

/* ---- answers */

void broker_answer_fini(struct broker_answer *a)
{
	strbuf_fini(&a->cookie);
	strbuf_fini(&a->body);
}

/* Drops what the body contains so far: a handler may fail half-way. */
void broker_admin_refuse(
	struct broker_answer *a, int status, const char *type, const char *fmt, ...)
{
	cleanup_strbuf struct strbuf detail = STRBUF_INIT;
	va_list ap;

	va_start(ap, fmt);
	strbuf_vaddf(&detail, fmt, ap);
	va_end(ap);
	a->status = status;
	a->type = type;
	a->content_type = JSON_TYPE;
	/* RFC 9110 section 15.5.2: a 401 must name the scheme. */
	a->challenge = status == 401 ? "Bearer" : NULL;
	strbuf_reset(&a->body);
	rats_api_error(&a->body, type, strbuf_str(&detail));
}

/* ---- resources */

/* Only the node listener serves resources; here the answer is Trustee's to a missing or foreign
 * token. */
static void resource_get(struct call *c)
{
	if (c->r->authorization)
		broker_admin_refuse(c->out, 401, "TokenVerifierError", "Token Verifier error");
	else
		broker_admin_refuse(c->out, 401, "TokenNotFound", "Attestation Token not found");
}

/* Whether the rest of the path is a valid resource key; false: the request was refused. */
static bool resource_key(struct call *c)
{
	struct err err = ERR_INIT;

	c->out->content_type = "text/xml";
	if (broker_wire_resource_check(c->rest, &err) == 0)
		return true;
	broker_admin_refuse(c->out, 400, "PluginInternalError", "%s: %s", plugin_error, err.text);
	return false;
}

/* Trustee reports a successful write without a body, as text/xml. */
static void resource_put(struct call *c)
{
	struct err err = ERR_INIT;

	if (resource_key(c) &&
		broker_store_set(c->a->store, c->ns, c->rest, c->r->body, c->r->len, &err) < 0)
		broker_admin_refuse(c->out, err.http ? err.http : 400, "PluginInternalError",
			"%s: %s", plugin_error, err.text);
}

/* A missing resource is a 404, which a stock Trustee cannot distinguish from a failure. */
static void resource_delete(struct call *c)
{
	struct err err = ERR_INIT;

	if (resource_key(c) && broker_store_remove(c->a->store, c->ns, c->rest, &err) < 0)
		broker_admin_refuse(c->out, 404, "ResourceNotFound", "the resource does not exist");
}

/* ---- reference values */

/* Store one reference value; the first refused one ends the message. */
static int set_value(void *arg, const char *name, const char *entry, size_t len, struct err *err)
{
	const struct call *c = arg;

	return broker_store_set(c->a->store, c->ns, name, entry, len, err);
}

/* A message is applied value by value: values before a refused one stay stored. */
static void values_put(struct call *c)
{
	struct err err = ERR_INIT;

	c->out->content_type = JSON_TYPE;
	if (broker_wire_values(c->r->body, c->r->len, c->now_s, set_value, c, &err) < 0)
		broker_admin_refuse(c->out, 400, "RvpsError",
			"RVPS configuration failed: Failed to register reference value: %s",
			err.text);
}

/* Return the value alone, without the name and expiration stored with it. */
static void value_get(struct call *c)
{
	struct broker_store_value entry;
	struct err err = ERR_INIT;

	c->out->content_type = JSON_TYPE;
	/* A value that was revoked is null, which is an answer, not an error. */
	if (broker_store_get(c->a->store, c->ns, c->rest, &entry, &err) < 0 ||
		broker_wire_entry_value(entry.data, entry.len, &c->out->body, &err) < 0)
		broker_admin_refuse(c->out, err.kind == ERR_NOT_FOUND ? 404 : 500, "RvpsError",
			"RVPS configuration failed: Failed to get reference_values: %s", err.text);
}

/* ---- policies */

/* Policies are compared byte by byte: a reformatted one is a different policy. */
const struct broker_policy *broker_policy_find(
	const struct broker_policy *policies, size_t n, bool resource, const void *text, size_t len)
{
	for (size_t i = 0; i < n; i++)
		if (policies[i].resource == resource && strlen(policies[i].text) == len &&
			memcmp(policies[i].text, text, len) == 0)
			return &policies[i];
	return NULL;
}

/* A policy that cannot be evaluated is refused now, not at the next attestation. */
static void policy_put(struct call *c)
{
	__attribute__((cleanup(broker_wire_policy_fini))) struct broker_wire_policy p = {
		NULL, NULL, 0};
	bool with_id = c->ns == BROKER_STORE_ATTESTATION_POLICY;
	cleanup_free char *key = NULL;
	struct err err = ERR_INIT;

	/* Without a list of policies (tests) any text is stored. */
	if (broker_wire_policy_parse(c->r->body, c->r->len, with_id, &p, &err) < 0) {
		/* refused below */
	} else if (c->a->policies &&
		   !broker_policy_find(c->a->policies, c->a->n_policies, !with_id, p.text, p.len)) {
		err_set(&err, ERR_INVALID,
			"this broker does not interpret Rego, and the policy is not one of the operator's own");
	} else {
		/* The file names of Trustee's LocalFs. */
		key = xasprintf("%s" REGO, with_id ? p.id : RESOURCE_POLICY);
		if (broker_store_set(c->a->store, c->ns, key, p.text, p.len, &err) == 0)
			return;
	}
	if (with_id)
		broker_admin_refuse(c->out, 400, "AttestationError",
			"Attestation error: Set policy failed: %s", err.text);
	else
		broker_admin_refuse(
			c->out, 400, "ParsePolicyError", "Failed to parse policy: %s", err.text);
}

/* Trustee lists policies by id, without the file name's suffix. */
static void add_name(void *arg, const char *key)
{
	size_t len = strlen(key);

	if (str_ends(key, REGO))
		len -= strlen(REGO);
	json_push(arg, json_object_new_string_len(key, (int)len));
}

/* The admin API lists ids only; a policy's text cannot be read back, as in Trustee. */
static void resource_policy_get(struct call *c)
{
	cleanup_json struct json_object *names = json_arr();
	cleanup_free char *text = NULL;
	struct err err = ERR_INIT;

	if (broker_store_list(c->a->store, c->ns, "", add_name, names, &err) < 0) {
		broker_admin_refuse(
			c->out, 500, "PolicyEngineError", "Policy engine error: %s", err.text);
		return;
	}
	text = json_text(names);
	c->out->content_type = JSON_TYPE;
	strbuf_adds(&c->out->body, text);
}

/* ---- routes */

#define V0(path) BROKER_ADMIN_PREFIX path

/* A path that ends in a slash matches everything below it. denied: error type if the token is
 * refused; NULL: no admin token is required. */
static const struct {
	const char *path, *method, *verb, *denied;
	enum broker_store_ns ns;
	void (*fn)(struct call *c);
} routes[] = {
	{V0("resource/"), "GET", "resource-get", NULL, BROKER_STORE_REPOSITORY, resource_get},
	{V0("resource/"), "POST", "resource-put", "AdminAuthInitialization",
		BROKER_STORE_REPOSITORY, resource_put},
	{V0("resource/"), "DELETE", "resource-delete", "AdminAuthInitialization",
		BROKER_STORE_REPOSITORY, resource_delete},
	{V0("reference-value"), "POST", "refvalue-put", "AdminAuthAccess",
		BROKER_STORE_REFERENCE_VALUE, values_put},
	{V0("reference-value/"), "GET", "refvalue-get", "AdminAuthAccess",
		BROKER_STORE_REFERENCE_VALUE, value_get},
	{V0("attestation-policy"), "POST", "attestation-policy-put", "AdminAuthAccess",
		BROKER_STORE_ATTESTATION_POLICY, policy_put},
	{V0("resource-policy"), "POST", "resource-policy-put", "AdminAuthAccess", BROKER_STORE_KBS,
		policy_put},
	{V0("resource-policy"), "GET", "resource-policy-get", "AdminAuthAccess", BROKER_STORE_KBS,
		resource_policy_get},
};

/* The token is checked with the query, as Trustee matches the raw target; routes ignore the
 * query. */
void broker_admin(const struct broker_admin *a, const struct broker_request *r, int64_t now_s,
	struct broker_answer *out)
{
	/* Routes match the path alone. */
	cleanup_free char *path = xstrndup(r->target, strcspn(r->target, "?"));
	struct call c = {.a = a, .r = r, .now_s = now_s, .out = out};
	struct err err = ERR_INIT;
	size_t allowed = 0;

	*out = (struct broker_answer){.status = 200, .verb = "other", .type = ""};
	/* Collect the methods of all routes that match the path, for the Allow header of a 405. */
	for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
		if (!(str_ends(routes[i].path, "/") ? str_starts(path, routes[i].path)
						    : str_eq(path, routes[i].path)))
			continue;
		if (str_eq(r->method, routes[i].method)) {
			/* An earlier route with this path but another method may have filled it. */
			out->allow[0] = '\0';
			out->verb = routes[i].verb;
			c.ns = routes[i].ns;
			c.rest = path + strlen(routes[i].path);
			if (routes[i].denied && a->check &&
				a->check(a->arg, r->authorization, r->target, now_s, &err) < 0)
				broker_admin_refuse(out, err.http, routes[i].denied,
					"admin access denied: %s", err.text);
			else
				routes[i].fn(&c);
			return;
		}
		allowed += (size_t)snprintf(out->allow + allowed, sizeof(out->allow) - allowed,
			"%s%s", allowed ? ", " : "", routes[i].method);
	}
	if (allowed)
		broker_admin_refuse(out, 405, "HttpError", "method not allowed");
	else if (str_starts(path, BROKER_ADMIN_PREFIX))
		broker_admin_refuse(out, 404, "PluginNotFound", "Plugin not found");
	else
		broker_admin_refuse(out, 404, "InvalidRequestPath", "not found");
}
