/* SPDX-License-Identifier: MIT */
/*
 * Services: ports, addresses that people give, and which fields belong to which type. Addresses that
 * a network would give out are neither made nor checked against a range.
 */
#include "config.h"

#include <string.h>

#include "builtin_internal.h"
#include "schema_internal.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"

#define IP_TEXT   "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
#define CIDR_TEXT "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
#define ONLY_LB   "may only be used when `type` is 'LoadBalancer'"

static bool is_type(struct json_object *spec, const char *type)
{
	return str_eq(json_get_str(spec, "type"), type);
}

/* ---- ports */

static void service_port(struct look *l, struct json_object *p)
{
	static const char *const protocols[] = {"SCTP", "TCP", "UDP", NULL};
	const char *app = json_get_str(p, "appProtocol");
	int64_t n;

	look_label(l, p, "name");
	if (!look_number(p, "port", &n))
		n = 0;
	if (n < 1 || n > 65535) {
		cleanup_json struct json_object *zero = json_object_new_int64(n);

		look_at(l, "port", SCHEMA_INVALID, zero, LOOK_PORT);
	}
	look_one_of(l, p, "protocol", protocols);
	if (look_number(p, "targetPort", &n))
		look_port(l, p, "targetPort");
	else if (json_get(p, "targetPort"))
		look_port_name(l, p, "targetPort");
	if (app)
		look_name(l, "appProtocol", app);
}

static void service_names(struct look *l, struct json_object *p)
{
	look_needs(l, p, "name", "");
}

/* Of another protocol is another port. */
static bool same_port(struct json_object *a, struct json_object *b)
{
	return json_get_int(a, "port", 0) == json_get_int(b, "port", 0) &&
	       str_eq(json_get_str(a, "protocol"), json_get_str(b, "protocol"));
}

/* As Go prints one that has nothing but what is compared. */
static struct json_object *shown_port(struct json_object *p)
{
	struct json_object *o = json_obj();
	const char *protocol = json_get_str(p, "protocol");

	json_add_str(o, "Name", "");
	json_add_str(o, "Protocol", protocol ? protocol : "");
	json_add(o, "AppProtocol", NULL);
	json_add(o, "Port", json_object_get(json_get(p, "port")));
	json_add(o, "TargetPort", json_object_new_int(0));
	json_add(o, "NodePort", json_object_new_int(0));
	return o;
}

static void each_port_once(struct look *l, struct json_object *spec)
{
	struct json_object *a = json_get_arr(spec, "ports");
	size_t whole = look_go(l, "ports");

	for (size_t i = 0; a && i < json_object_array_length(a); i++) {
		struct json_object *p = json_object_array_get_idx(a, i);
		size_t before = schema_path_index(&l->path, i);

		for (size_t j = 0; j < i; j++)
			if (same_port(p, json_object_array_get_idx(a, j))) {
				cleanup_json struct json_object *value = shown_port(p);

				schema_cause_add(l->causes, SCHEMA_DUPLICATE, strbuf_str(&l->path),
					value, "%s", "");
				break;
			}
		if (is_type(spec, "ClusterIP") && json_get_int(p, "nodePort", 0))
			look_at(l, "nodePort", SCHEMA_FORBIDDEN, NULL,
				"may not be used when `type` is 'ClusterIP'");
		look_back(l, before);
	}
	look_back(l, whole);
}

/* ---- addresses */

static bool is_ip(const char *s)
{
	return s && (schema_format_holds("ipv4", s, strlen(s)) ||
			    schema_format_holds("ipv6", s, strlen(s)));
}

static void cluster_ip(struct look *l, struct json_object *spec)
{
	const char *ip = json_get_str(spec, "clusterIP"), *type = json_get_str(spec, "type");
	cleanup_free char *why = NULL;

	if (!ip || !*ip)
		return;
	if (is_type(spec, "ExternalName")) {
		look_at(l, "clusterIPs", SCHEMA_FORBIDDEN, NULL,
			"may not be set for ExternalName services");
		return;
	}
	if (!str_eq(ip, "None") && !is_ip(ip))
		look_at_text(l, "clusterIPs[0]", SCHEMA_INVALID, ip, IP_TEXT);
	if (!str_eq(ip, "None") || !type || is_type(spec, "ClusterIP"))
		return;
	why = xasprintf("may not be set to 'None' for %s services", type);
	look_at_text(l, "clusterIPs[0]", SCHEMA_INVALID, ip, why);
}

static void external_ips(struct look *l, struct json_object *spec)
{
	struct json_object *a = json_get_arr(spec, "externalIPs");

	for (size_t i = 0; a && i < json_object_array_length(a); i++) {
		const char *s = json_object_get_string(json_object_array_get_idx(a, i));
		cleanup_free char *name = xasprintf("externalIPs[%zu]", i);

		if (!is_ip(s))
			look_at_text(l, name, SCHEMA_INVALID, s ? s : "", IP_TEXT);
		else if (str_eq(s, "0.0.0.0") || str_eq(s, "::"))
			look_at_text(l, name, SCHEMA_INVALID, s,
				*s == ':' ? "may not be unspecified (::)"
					  : "may not be unspecified (0.0.0.0)");
		else if (str_starts(s, "127.") || str_eq(s, "::1"))
			look_at_text(l, name, SCHEMA_INVALID, s,
				"may not be in the loopback range (127.0.0.0/8, ::1/128)");
	}
}

static void source_ranges(struct look *l, struct json_object *spec)
{
	struct json_object *a = json_get_arr(spec, "loadBalancerSourceRanges");

	if (!look_empty(a) && !is_type(spec, "LoadBalancer"))
		look_at(l, "LoadBalancerSourceRanges", SCHEMA_FORBIDDEN, NULL, ONLY_LB);
	for (size_t i = 0; is_type(spec, "LoadBalancer") && a && i < json_object_array_length(a);
		i++) {
		const char *s = json_object_get_string(json_object_array_get_idx(a, i));
		cleanup_free char *name = xasprintf("LoadBalancerSourceRanges[%zu]", i);

		if (!s || !schema_format_holds("cidr", s, strlen(s)))
			look_at_text(l, name, SCHEMA_INVALID, s ? s : "", CIDR_TEXT);
	}
}

/* ---- what depends on the type */

static void affinity(struct look *l, struct json_object *spec)
{
	static const char *const affinities[] = {"ClientIP", "None", NULL};
	struct json_object *time = json_get(spec, "sessionAffinityConfig/clientIP/timeoutSeconds");
	int64_t n = time ? json_object_get_int64(time) : 1;

	look_one_of(l, spec, "sessionAffinity", affinities);
	if (str_eq(json_get_str(spec, "sessionAffinity"), "ClientIP") && (n <= 0 || n > 86400))
		look_at(l, "sessionAffinityConfig.clientIP.timeoutSeconds", SCHEMA_INVALID, time,
			"must be greater than 0 and less than 86400");
}

static void balancer(struct look *l, struct json_object *spec)
{
	const char *class = json_get_str(spec, "loadBalancerClass");
	int64_t check = json_get_int(spec, "healthCheckNodePort", 0);

	source_ranges(l, spec);
	if (json_get(spec, "allocateLoadBalancerNodePorts") && !is_type(spec, "LoadBalancer"))
		look_at(l, "allocateLoadBalancerNodePorts", SCHEMA_FORBIDDEN, NULL, ONLY_LB);
	if (class && !is_type(spec, "LoadBalancer"))
		look_at(l, "loadBalancerClass", SCHEMA_FORBIDDEN, NULL, ONLY_LB);
	else if (class)
		look_name(l, "loadBalancerClass", class);
	if (check && !(is_type(spec, "LoadBalancer") &&
			     str_eq(json_get_str(spec, "externalTrafficPolicy"), "Local")))
		look_at(l, "healthCheckNodePort", SCHEMA_INVALID,
			json_get(spec, "healthCheckNodePort"),
			"may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'");
}

static void traffic(struct look *l, struct json_object *spec)
{
	static const char *const policies[] = {"Cluster", "Local", NULL}, *const ways[] = {
										  "PreferClose",
										  "PreferSameZone",
										  "PreferSameNode",
										  NULL};
	bool outside = is_type(spec, "NodePort") || is_type(spec, "LoadBalancer") ||
		       !look_empty(json_get(spec, "externalIPs"));

	if (json_get(spec, "externalTrafficPolicy") && !outside)
		look_at(l, "externalTrafficPolicy", SCHEMA_INVALID,
			json_get(spec, "externalTrafficPolicy"),
			"may only be set for externally-accessible services");
	else
		look_one_of(l, spec, "externalTrafficPolicy", policies);
	look_one_of(l, spec, "internalTrafficPolicy", policies);
	look_one_of(l, spec, "trafficDistribution", ways);
}

static void families(struct look *l, struct json_object *spec)
{
	static const char *const policies[] = {
		"PreferDualStack", "RequireDualStack", "SingleStack", NULL};
	static const char *const known[] = {"IPv4", "IPv6", NULL};

	look_all_of(l, spec, "ipFamilies", known);
	look_one_of(l, spec, "ipFamilyPolicy", policies);
}

void look_service(struct look *l, struct json_object *o)
{
	static const char *const types[] = {
		"ClusterIP", "ExternalName", "LoadBalancer", "NodePort", NULL};
	struct json_object *spec = json_get_obj(o, "spec"), *ports = json_get_arr(spec, "ports");
	bool external = is_type(spec, "ExternalName");
	size_t before = look_go(l, "spec");

	if (look_empty(ports) && !external && !str_eq(json_get_str(spec, "clusterIP"), "None"))
		look_at(l, "ports", SCHEMA_REQUIRED, NULL, "");
	if (external && look_needs(l, spec, "externalName", ""))
		look_subdomain(l, spec, "externalName");
	if (ports && json_object_array_length(ports) > 1)
		look_each(l, spec, "ports", service_names);
	look_each(l, spec, "ports", service_port);
	look_unique(l, spec, "ports");
	look_labels(l, "selector", json_get(spec, "selector"));
	affinity(l, spec);
	cluster_ip(l, spec);
	external_ips(l, spec);
	look_one_of(l, spec, "type", types);
	each_port_once(l, spec);
	balancer(l, spec);
	traffic(l, spec);
	families(l, spec);
	look_back(l, before);
}
