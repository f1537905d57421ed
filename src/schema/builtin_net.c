/* SPDX-License-Identifier: MIT */
/* Ingresses, NetworkPolicies and PodDisruptionBudgets. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "builtin_internal.h"
#include "schema_internal.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/kobj/key.h"

#define CIDR_TEXT "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"

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
	struct json_object *port = json_get_obj(s, "port");
	bool number = json_get_int(port, "number", 0) != 0,
	     named = !look_empty(json_get(port, "name"));
	size_t before = into(l, name, "service");

	if (look_needs(l, s, "name", ""))
		look_label_1035(l, s, "name");
	(void)look_go(l, "port");
	if (named && !number)
		look_port_name(l, port, "name");
	else if (number && !named)
		look_port(l, port, "number");
	look_back(l, before);
	if (number && named)
		look_at_text(
			l, name, SCHEMA_INVALID, "", "cannot set both port name & port number");
	else if (!number && !named)
		look_at(l, name, SCHEMA_REQUIRED, NULL, "port name or number is required");
}

/* What stands in a path of the API. */
static void segment(struct look *l, struct json_object *o, const char *name)
{
	const char *s = json_get_str(o, name);

	if (look_needs(l, o, name, ""))
		look_segment(l, name, s);
}

static void backend_resource(struct look *l, const char *name, struct json_object *r)
{
	size_t before = into(l, name, "resource");

	look_subdomain(l, r, "apiGroup");
	segment(l, r, "kind");
	segment(l, r, "name");
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
	else
		backend_resource(l, name, resource);
}

static void path(struct look *l, struct json_object *p)
{
	static const char *const types[] = {"Exact", "ImplementationSpecific", "Prefix", NULL};
	static const char *const never[] = {"//", "/./", "/../", "%2f", "%2F"}, *const last[] = {
											"/..",
											"/."};
	const char *s = json_get_str(p, "path");
	bool checked = str_eq(json_get_str(p, "pathType"), "Exact") ||
		       str_eq(json_get_str(p, "pathType"), "Prefix");

	if (look_needs(l, p, "pathType", "pathType must be specified"))
		look_one_of(l, p, "pathType", types);
	if (checked ? !s || *s != '/' : s && *s && *s != '/')
		look_at_text(l, "path", SCHEMA_INVALID, s ? s : "", "must be an absolute path");
	for (size_t i = 0; checked && s && i < ARRAY_LEN(never); i++)
		if (strstr(s, never[i])) {
			cleanup_free char *why = xasprintf("must not contain '%s'", never[i]);

			look_at_text(l, "path", SCHEMA_INVALID, s, why);
		}
	for (size_t i = 0; checked && s && i < ARRAY_LEN(last); i++)
		if (str_ends(s, last[i])) {
			cleanup_free char *why = xasprintf("cannot end with '%s'", last[i]);

			look_at_text(l, "path", SCHEMA_INVALID, s, why);
		}
	backend(l, p, "backend");
}

static void host_name(struct look *l, const char *field, const char *s)
{
	static const char wildcard[] =
		"a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

	if (!strchr(s, '*'))
		look_subdomain_at(l, field, s);
	else if (strncmp(s, "*.", 2) != 0 || !kobj_name_valid(s + 2, strlen(s + 2)))
		look_at_text(l, field, SCHEMA_INVALID, s, wildcard);
}

static void host(struct look *l, struct json_object *r)
{
	const char *s = json_get_str(r, "host");

	if (!s)
		return;
	if (schema_format_holds("ipv4", s, strlen(s)) || schema_format_holds("ipv6", s, strlen(s)))
		look_at_text(l, "host", SCHEMA_INVALID, s, "must be a DNS name, not an IP address");
	else
		host_name(l, "host", s);
}

static void ingress_tls(struct look *l, struct json_object *t)
{
	struct json_object *a = json_get_arr(t, "hosts");

	for (size_t i = 0; a && i < json_object_array_length(a); i++) {
		const char *s = json_object_get_string(json_object_array_get_idx(a, i));
		cleanup_free char *field = xasprintf("hosts[%zu]", i);

		host_name(l, field, s ? s : "");
	}
	if (!look_empty(json_get(t, "secretName")))
		look_subdomain(l, t, "secretName");
}

/* The older way to say the class. */
static void class_twice(struct look *l, struct json_object *o)
{
	static const char name[] = "kubernetes.io/ingress.class";
	struct json_object *all = json_get_obj(o, "metadata/annotations"), *v = NULL;
	const char *class = json_get_str(o, "spec/ingressClassName");

	if (class && all && json_object_object_get_ex(all, name, &v) &&
		!str_eq(json_object_get_string(v), class))
		schema_cause_add(l->causes, SCHEMA_INVALID,
			"annotations.kubernetes.io/ingress.class", v,
			"must match `ingressClassName` when both are specified");
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
	if (json_get(spec, "defaultBackend"))
		backend(l, spec, "defaultBackend");
	look_each(l, spec, "rules", ingress_rule);
	look_each(l, spec, "tls", ingress_tls);
	look_subdomain(l, spec, "ingressClassName");
	look_back(l, before);
	class_twice(l, o);
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
	struct json_object *port = json_get(p, "port"), *end = json_get(p, "endPort");
	int64_t first = 0, last = 0;
	bool number = look_number(p, "port", &first), ends = look_number(p, "endPort", &last);

	look_one_of(l, p, "protocol", protocols);
	look_port(l, p, "port");
	if (port && !number)
		look_port_name(l, p, "port");
	if (ends && !port)
		look_at(l, "endPort", SCHEMA_INVALID, end,
			"may not be specified when `port` is not specified");
	else if (ends && !number)
		look_at(l, "endPort", SCHEMA_INVALID, end,
			"may not be specified when `port` is non-numeric");
	else if (ends && last < first)
		look_at(l, "endPort", SCHEMA_INVALID, port,
			"must be greater than or equal to `port`");
	if (ends && number)
		look_port(l, p, "endPort");
}

/* The bytes of an address, of which the first bits name the network. */
struct network {
	unsigned char bytes[16];
	size_t len;
	long bits;
};

static size_t put_ipv4(const char *s, unsigned char *out)
{
	unsigned v[4] = {0};

	if (sscanf(s, "%3u.%3u.%3u.%3u", &v[0], &v[1], &v[2], &v[3]) != 4)
		return 0;
	for (size_t i = 0; i < 4; i++)
		out[i] = (unsigned char)v[i];
	return 4;
}

/* Groups of one side of a "::"; of valid text at most 16 bytes. */
static size_t put_groups(const char *s, const char *end, unsigned char out[16])
{
	size_t n = 0;

	while (s < end && n < 16) {
		size_t len = strcspn(s, ":");
		unsigned long v = strtoul(s, NULL, 16);

		if (memchr(s, '.', len))
			return n + (n <= 12 ? put_ipv4(s, out + n) : 0);
		out[n++] = (unsigned char)(v >> 8);
		out[n++] = (unsigned char)v;
		s += len + (s[len] == ':');
	}
	return n;
}

static bool read_network(const char *s, struct network *n)
{
	const char *slash = strchr(s, '/'), *gap;
	unsigned char tail[16];
	cleanup_free char *ip = NULL;
	size_t len;

	memset(n, 0, sizeof(*n));
	if (!slash || !schema_format_holds("cidr", s, strlen(s)))
		return false;
	ip = xstrndup(s, (size_t)(slash - s));
	n->bits = strtol(slash + 1, NULL, 10);
	n->len = strchr(ip, ':') ? 16 : 4;
	if (n->len == 4)
		return put_ipv4(ip, n->bytes) == 4;
	gap = strstr(ip, "::");
	len = put_groups(ip, gap ? gap : ip + strlen(ip), n->bytes);
	if (!gap)
		return len == 16;
	len = put_groups(gap + 2, ip + strlen(ip), tail);
	memcpy(n->bytes + 16 - len, tail, len);
	return true;
}

static bool is_inside(const struct network *whole, const struct network *part)
{
	if (whole->len != part->len || part->bits <= whole->bits)
		return false;
	for (long i = 0; i < whole->bits; i++)
		if ((whole->bytes[i / 8] ^ part->bytes[i / 8]) & (0x80 >> i % 8))
			return false;
	return true;
}

static void ip_block(struct look *l, struct json_object *block)
{
	struct json_object *a = json_get_arr(block, "except");
	const char *cidr = json_get_str(block, "cidr");
	struct network whole, part;
	bool good = cidr && read_network(cidr, &whole);

	if (look_needs(l, block, "cidr", "") && !good)
		look_at(l, "cidr", SCHEMA_INVALID, json_get(block, "cidr"), CIDR_TEXT);
	for (size_t i = 0; good && a && i < json_object_array_length(a); i++) {
		const char *s = json_object_get_string(json_object_array_get_idx(a, i));
		cleanup_free char *field = xasprintf("except[%zu]", i);

		if (!s || !read_network(s, &part))
			look_at_text(l, field, SCHEMA_INVALID, s ? s : "", CIDR_TEXT);
		else if (!is_inside(&whole, &part))
			look_at_text(
				l, field, SCHEMA_INVALID, s, "must be a strict subset of `cidr`");
	}
}

static void peer(struct look *l, struct json_object *p)
{
	struct json_object *block = json_get_obj(p, "ipBlock");
	size_t before;

	look_selector(l, p, "podSelector");
	look_selector(l, p, "namespaceSelector");
	if (look_empty(p)) {
		look_here(l, SCHEMA_REQUIRED, NULL, "must specify a peer");
	} else if (block && json_object_object_length(p) > 1) {
		look_here(
			l, SCHEMA_FORBIDDEN, NULL, "may not specify both ipBlock and another peer");
	} else if (block) {
		before = look_go(l, "ipBlock");
		ip_block(l, block);
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
	static const char *const ways[] = {"Ingress", "Egress", NULL};
	size_t before = look_go(l, "spec");

	look_selector(l, spec, "podSelector");
	look_each(l, spec, "ingress", ingress);
	look_each(l, spec, "egress", egress);
	if (types && json_object_array_length(types) > 2)
		look_at(l, "policyTypes", SCHEMA_INVALID, types,
			"may not specify more than two policyTypes");
	else
		look_all_of(l, spec, "policyTypes", ways);
	look_back(l, before);
}
