/* SPDX-License-Identifier: MIT */
/* Ingresses, NetworkPolicies and PodDisruptionBudgets. */
#include "config.h"

#include <string.h>

#include "builtin_internal.h"
#include "schema_internal.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/kobj/key.h"

/* A member of spec, with where it is. */
static size_t into(struct look *l, const char *a, const char *b)
{
	size_t before = look_go(l, a);

	(void)look_go(l, b);
	return before;
}

/* ---- Ingresses */

static void backend_service(struct look *l, const char *name, struct json_object *s)
{
	struct json_object *number = json_get(s, "port/number"), *port = json_get(s, "port/name");
	size_t before;

	if (number && port) {
		look_at_text(
			l, name, SCHEMA_INVALID, "", "cannot set both port name & port number");
		return;
	}
	if (!number && !port)
		look_at(l, name, SCHEMA_REQUIRED, NULL, "port name or number is required");
	before = into(l, name, "service");
	if (look_needs(l, s, "name", ""))
		look_label_1035(l, s, "name");
	(void)look_go(l, "port");
	if (number)
		look_port(l, json_get(s, "port"), "number");
	look_back(l, before);
}

/* name: the member of o that is one. */
static void backend(struct look *l, struct json_object *o, const char *name)
{
	struct json_object *b = json_get_obj(o, name), *service = json_get(b, "service"),
			   *resource = json_get(b, "resource");

	if (service && resource)
		look_at_text(l, name, SCHEMA_INVALID, "",
			"cannot set both resource and service backends");
	else if (!service && !resource)
		look_at_text(
			l, name, SCHEMA_INVALID, "", "resource or service backend is required");
	else if (service)
		backend_service(l, name, service);
}

static void path(struct look *l, struct json_object *p)
{
	static const char *const types[] = {"Exact", "ImplementationSpecific", "Prefix", NULL};
	static const char *const never[] = {"//", "/./", "/../", "%2f", "%2F"};
	const char *s = json_get_str(p, "path");
	bool checked = str_eq(json_get_str(p, "pathType"), "Exact") ||
		       str_eq(json_get_str(p, "pathType"), "Prefix");

	if (look_needs(l, p, "pathType", "pathType must be specified"))
		look_one_of(l, p, "pathType", types);
	if (checked && (!s || *s != '/'))
		look_at_text(l, "path", SCHEMA_INVALID, s ? s : "", "must be an absolute path");
	for (size_t i = 0; checked && s && i < ARRAY_LEN(never); i++)
		if (strstr(s, never[i])) {
			cleanup_free char *why = xasprintf("must not contain '%s'", never[i]);

			look_at_text(l, "path", SCHEMA_INVALID, s, why);
		}
	backend(l, p, "backend");
}

static void host(struct look *l, struct json_object *r)
{
	static const char wildcard[] =
		"a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
	const char *s = json_get_str(r, "host");

	if (s && (schema_format_holds("ipv4", s, strlen(s)) ||
			 schema_format_holds("ipv6", s, strlen(s))))
		look_at_text(l, "host", SCHEMA_INVALID, s, "must be a DNS name, not an IP address");
	else if (s && !strchr(s, '*'))
		look_subdomain(l, r, "host");
	else if (s && (strncmp(s, "*.", 2) != 0 || !kobj_name_valid(s + 2, strlen(s + 2))))
		look_at_text(l, "host", SCHEMA_INVALID, s, wildcard);
}

static void ingress_rule(struct look *l, struct json_object *r)
{
	size_t before;

	host(l, r);
	if (!json_get(r, "http"))
		return;
	before = look_go(l, "http");
	if (look_needs(l, json_get(r, "http"), "paths", ""))
		look_each(l, json_get(r, "http"), "paths", path);
	look_back(l, before);
}

void look_ingress(struct look *l, struct json_object *o)
{
	struct json_object *spec = json_get_obj(o, "spec");
	size_t before;

	if (look_empty(json_get(spec, "rules")) && !json_get(spec, "defaultBackend")) {
		look_at(l, "spec", SCHEMA_INVALID, NULL,
			"either `defaultBackend` or `rules` must be specified");
		return;
	}
	before = look_go(l, "spec");
	look_each(l, spec, "rules", ingress_rule);
	if (json_get(spec, "defaultBackend"))
		backend(l, spec, "defaultBackend");
	look_subdomain(l, spec, "ingressClassName");
	look_back(l, before);
}

/* ---- PodDisruptionBudgets */

void look_budget(struct look *l, struct json_object *o)
{
	static const char *const policies[] = {"AlwaysAllow", "IfHealthyBudget", NULL};
	struct json_object *spec = json_get_obj(o, "spec");
	size_t before;

	if (json_get(spec, "minAvailable") && json_get(spec, "maxUnavailable"))
		look_at(l, "spec", SCHEMA_INVALID, spec,
			"minAvailable and maxUnavailable cannot be both set");
	before = look_go(l, "spec");
	look_percent(l, spec, "minAvailable");
	look_percent(l, spec, "maxUnavailable");
	look_selector(l, spec, "selector");
	look_one_of(l, spec, "unhealthyPodEvictionPolicy", policies);
	look_back(l, before);
}

/* ---- NetworkPolicies */

static void policy_port(struct look *l, struct json_object *p)
{
	static const char *const protocols[] = {"TCP", "UDP", "SCTP", NULL};
	int64_t first, last;

	look_port(l, p, "port");
	look_one_of(l, p, "protocol", protocols);
	if (look_number(p, "endPort", &last) && look_number(p, "port", &first) && last < first)
		look_at(l, "endPort", SCHEMA_INVALID, json_get(p, "port"),
			"must be greater than or equal to `port`");
}

static void peer(struct look *l, struct json_object *p)
{
	struct json_object *block = json_get_obj(p, "ipBlock");
	const char *cidr = json_get_str(block, "cidr");
	size_t before;

	look_selector(l, p, "podSelector");
	look_selector(l, p, "namespaceSelector");
	if (look_empty(p)) {
		schema_cause_add(l->causes, SCHEMA_REQUIRED, strbuf_str(&l->path), NULL,
			"must specify a peer");
	} else if (block && json_object_object_length(p) > 1) {
		schema_cause_add(l->causes, SCHEMA_FORBIDDEN, strbuf_str(&l->path), NULL,
			"may not specify both ipBlock and another peer");
	} else if (block) {
		before = look_go(l, "ipBlock");
		if (look_needs(l, block, "cidr", "") &&
			!schema_format_holds("cidr", cidr, strlen(cidr)))
			look_at(l, "cidr", SCHEMA_INVALID, json_get(block, "cidr"),
				"must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)");
		look_back(l, before);
	}
}

static void ingress(struct look *l, struct json_object *r)
{
	look_each(l, r, "ports", policy_port);
	look_each(l, r, "from", peer);
}

static void egress(struct look *l, struct json_object *r)
{
	look_each(l, r, "ports", policy_port);
	look_each(l, r, "to", peer);
}

void look_netpol(struct look *l, struct json_object *o)
{
	struct json_object *spec = json_get_obj(o, "spec"),
			   *types = json_get_arr(spec, "policyTypes");
	size_t before = look_go(l, "spec");

	look_selector(l, spec, "podSelector");
	look_each(l, spec, "ingress", ingress);
	look_each(l, spec, "egress", egress);
	for (size_t i = 0; types && i < json_object_array_length(types); i++) {
		struct json_object *t = json_object_array_get_idx(types, i);
		cleanup_free char *name = xasprintf("policyTypes[%zu]", i);

		if (!str_eq(json_object_get_string(t), "Ingress") &&
			!str_eq(json_object_get_string(t), "Egress"))
			look_at(l, name, SCHEMA_UNSUPPORTED, t,
				"supported values: \"Ingress\", \"Egress\"");
	}
	look_back(l, before);
}
