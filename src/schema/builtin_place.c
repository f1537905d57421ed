/* SPDX-License-Identifier: MIT */
/*
 * Where Pods run and what they find there: affinity, spread, tolerations; names and servers of DNS,
 * hosts. In upstream's words, with its paths, which leave some indices out.
 */
#include "config.h"

#include <string.h>

#include "builtin_internal.h"
#include "schema_internal.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/kobj/key.h"

#define REQUIRED  "requiredDuringSchedulingIgnoredDuringExecution"
#define PREFERRED "preferredDuringSchedulingIgnoredDuringExecution"
#define IP_TEXT   "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"

#define SEARCH_TEXT                                                                                \
	"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')"

/* ---- tolerations */

static void toleration(struct look *l, struct json_object *t)
{
	static const char *const operators[] = {"Equal", "Exists", NULL},
				 *const effects[] = {
					 "NoSchedule", "PreferNoSchedule", "NoExecute", NULL};
	const char *key = json_get_str(t, "key"), *op = json_get_str(t, "operator"),
		   *value = json_get_str(t, "value"), *effect = json_get_str(t, "effect");
	bool exists = str_eq(op, "Exists"), any = !key || !*key;

	if (!any && !look_qualified(key))
		look_at(l, "key", SCHEMA_INVALID, json_get(t, "key"), LOOK_PART);
	if (any && !exists)
		look_at_text(l, "operator", SCHEMA_INVALID, op ? op : "",
			"operator must be Exists when `key` is empty, which means \"match all values and all keys\"");
	if (json_get(t, "tolerationSeconds") && !str_eq(effect, "NoExecute"))
		look_at_text(l, "effect", SCHEMA_INVALID, effect ? effect : "",
			"effect must be 'NoExecute' when `tolerationSeconds` is set");
	if (exists && value && *value)
		look_at(l, "operator", SCHEMA_INVALID, json_get(t, "value"),
			"value must be empty when `operator` is 'Exists'");
	else if (!exists && (!op || !*op || str_eq(op, "Equal")))
		look_value(l, "operator", value);
	else
		look_one_of(l, t, "operator", operators);
	if (effect && *effect)
		look_one_of(l, t, "effect", effects);
}

/* ---- nodes */

static void node_expression(struct look *l, struct json_object *e)
{
	const char *op = json_get_str(e, "operator"), *key = json_get_str(e, "key");
	struct json_object *values = json_get_arr(e, "values");
	size_t n = values ? json_object_array_length(values) : 0;

	if ((str_eq(op, "In") || str_eq(op, "NotIn")) && n == 0)
		look_at(l, "values", SCHEMA_REQUIRED, NULL,
			"must be specified when `operator` is 'In' or 'NotIn'");
	else if ((str_eq(op, "Exists") || str_eq(op, "DoesNotExist")) && n > 0)
		look_at(l, "values", SCHEMA_FORBIDDEN, NULL,
			"may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
	else if ((str_eq(op, "Gt") || str_eq(op, "Lt")) && n != 1)
		look_at(l, "values", SCHEMA_REQUIRED, NULL,
			"must be specified single value when `operator` is 'Lt' or 'Gt'");
	else if (!str_eq(op, "In") && !str_eq(op, "NotIn") && !str_eq(op, "Exists") &&
		 !str_eq(op, "DoesNotExist") && !str_eq(op, "Gt") && !str_eq(op, "Lt"))
		look_at_text(l, "operator", SCHEMA_INVALID, op ? op : "",
			"not a valid selector operator");
	look_name(l, "key", key);
}

static void node_field(struct look *l, struct json_object *e)
{
	const char *op = json_get_str(e, "operator"), *key = json_get_str(e, "key");
	struct json_object *values = json_get_arr(e, "values");
	bool known = str_eq(op, "In") || str_eq(op, "NotIn");

	if (known && (!values || json_object_array_length(values) != 1))
		look_at(l, "values", SCHEMA_REQUIRED, NULL,
			"must be only one value when `operator` is 'In' or 'NotIn' for node field selector");
	else if (!known)
		look_at_text(l, "operator", SCHEMA_INVALID, op ? op : "",
			"not a valid selector operator");
	if (!str_eq(key, "metadata.name"))
		look_at_text(
			l, "key", SCHEMA_INVALID, key ? key : "", "not a valid field selector key");
}

static void node_term(struct look *l, struct json_object *t)
{
	look_each(l, t, "matchExpressions", node_expression);
	look_each(l, t, "matchFields", node_field);
}

static void weight(struct look *l, struct json_object *p)
{
	cleanup_json struct json_object *n = json_object_new_int64(json_get_int(p, "weight", 0));

	if (json_object_get_int64(n) < 1 || json_object_get_int64(n) > 100)
		look_at(l, "weight", SCHEMA_INVALID, n, "must be in the range 1-100");
}

static void preferred_node(struct look *l, struct json_object *p)
{
	size_t before;

	weight(l, p);
	before = look_go(l, "preference");
	node_term(l, json_get_obj(p, "preference"));
	look_back(l, before);
}

static void node_affinity(struct look *l, struct json_object *a)
{
	struct json_object *r = json_get_obj(a, REQUIRED);
	size_t before = look_go(l, "nodeAffinity"), inside = look_go(l, REQUIRED);

	if (r && look_needs(l, r, "nodeSelectorTerms", "must have at least one node selector term"))
		look_each(l, r, "nodeSelectorTerms", node_term);
	look_back(l, inside);
	look_each(l, a, PREFERRED, preferred_node);
	look_back(l, before);
}

/* ---- other Pods */

static void pod_term(struct look *l, struct json_object *t)
{
	struct json_object *a = json_get_arr(t, "namespaces");

	look_selector(l, t, "labelSelector");
	look_selector(l, t, "namespaceSelector");
	for (size_t i = 0; a && i < json_object_array_length(a); i++) {
		cleanup_json struct json_object *o = json_obj();

		json_add(o, "namespace", json_object_get(json_object_array_get_idx(a, i)));
		look_label(l, o, "namespace"); /* upstream's name of the field */
	}
	if (!look_empty(json_get(t, "matchLabelKeys")) && !json_get(t, "labelSelector"))
		look_at(l, "matchLabelKeys", SCHEMA_FORBIDDEN, NULL,
			"must not be specified when labelSelector is not set");
	look_needs(l, t, "topologyKey", "can not be empty");
	look_name(l, "topologyKey", json_get_str(t, "topologyKey"));
}

static void preferred_pod(struct look *l, struct json_object *p)
{
	size_t before;

	weight(l, p);
	before = look_go(l, "podAffinityTerm");
	pod_term(l, json_get_obj(p, "podAffinityTerm"));
	look_back(l, before);
}

static void pod_affinity(struct look *l, struct json_object *affinity, const char *name)
{
	struct json_object *a = json_get_obj(affinity, name);
	size_t before = look_go(l, name);

	look_each(l, a, REQUIRED, pod_term);
	look_each(l, a, PREFERRED, preferred_pod);
	look_back(l, before);
}

/* ---- spread */

static void spread(struct look *l, struct json_object *c)
{
	static const char *const when[] = {"DoNotSchedule", "ScheduleAnyway", NULL},
				 *const policies[] = {"Honor", "Ignore", NULL};
	const char *unsatisfiable = json_get_str(c, "whenUnsatisfiable");
	cleanup_json struct json_object *skew =
		json_object_new_int64(json_get_int(c, "maxSkew", 0));
	cleanup_free char *why = NULL;
	int64_t n;

	if (json_object_get_int64(skew) <= 0)
		look_at(l, "maxSkew", SCHEMA_INVALID, skew, "must be greater than zero");
	look_needs(l, c, "topologyKey", "can not be empty");
	look_word(l, c, "whenUnsatisfiable", when);
	if (look_number(c, "minDomains", &n) && n <= 0)
		look_at(l, "minDomains", SCHEMA_INVALID, json_get(c, "minDomains"),
			"must be greater than zero");
	why = xasprintf("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not %s",
		unsatisfiable ? unsatisfiable : "");
	if (json_get(c, "minDomains") && !str_eq(unsatisfiable, "DoNotSchedule"))
		look_at(l, "minDomains", SCHEMA_INVALID, json_get(c, "minDomains"), why);
	look_one_of(l, c, "nodeAffinityPolicy", policies);
	look_one_of(l, c, "nodeTaintsPolicy", policies);
}

/* The same key with the same way twice, told of the first. */
static void spread_pairs(struct look *l, struct json_object *a, size_t i)
{
	struct json_object *c = json_object_array_get_idx(a, i);
	const char *key = json_get_str(c, "topologyKey"),
		   *when = json_get_str(c, "whenUnsatisfiable");

	for (size_t j = i + 1; key && when && j < json_object_array_length(a); j++) {
		struct json_object *d = json_object_array_get_idx(a, j);
		cleanup_free char *value = xasprintf("{%s, %s}", key, when);

		if (str_eq(key, json_get_str(d, "topologyKey")) &&
			str_eq(when, json_get_str(d, "whenUnsatisfiable")))
			look_at_text(
				l, "{topologyKey, whenUnsatisfiable}", SCHEMA_DUPLICATE, value, "");
	}
}

static void spread_all(struct look *l, struct json_object *spec)
{
	struct json_object *a = json_get_arr(spec, "topologySpreadConstraints");
	size_t whole = look_go(l, "topologySpreadConstraints");

	for (size_t i = 0; a && i < json_object_array_length(a); i++) {
		struct json_object *c = json_object_array_get_idx(a, i);
		struct json_object *keys = json_get_arr(c, "matchLabelKeys");
		size_t before = schema_path_index(&l->path, i);

		spread(l, c);
		spread_pairs(l, a, i);
		for (size_t k = 0; keys && k < json_object_array_length(keys); k++) {
			cleanup_free char *name = xasprintf("matchLabelKeys[%zu]", k);

			look_name(l, name,
				json_object_get_string(json_object_array_get_idx(keys, k)));
		}
		look_selector(l, c, "labelSelector");
		look_back(l, before);
	}
	look_back(l, whole);
}

/* ---- names */

static bool is_ip(const char *s)
{
	return s && (schema_format_holds("ipv4", s, strlen(s)) ||
			    schema_format_holds("ipv6", s, strlen(s)));
}

static void host_alias(struct look *l, struct json_object *h)
{
	struct json_object *a = json_get_arr(h, "hostnames");
	const char *ip = json_get_str(h, "ip");

	if (!is_ip(ip))
		look_at_text(l, "ip", SCHEMA_INVALID, ip ? ip : "", IP_TEXT);
	for (size_t i = 0; a && i < json_object_array_length(a); i++) {
		cleanup_free char *name = xasprintf("hostnames[%zu]", i);
		look_subdomain_at(l, name, json_object_get_string(json_object_array_get_idx(a, i)));
	}
}

static void dns_servers(struct look *l, struct json_object *spec, struct json_object *dns)
{
	struct json_object *a = json_get_arr(dns, "nameservers");
	size_t n = a ? json_object_array_length(a) : 0;

	if (str_eq(json_get_str(spec, "dnsPolicy"), "None") && n == 0)
		look_at(l, "nameservers", SCHEMA_REQUIRED, NULL,
			"must provide at least one DNS nameserver when `dnsPolicy` is None");
	if (n > 3)
		look_at(l, "nameservers", SCHEMA_INVALID, a,
			"must not have more than 3 nameservers");
	for (size_t i = 0; i < n; i++) {
		const char *s = json_object_get_string(json_object_array_get_idx(a, i));
		cleanup_free char *name = xasprintf("nameservers[%zu]", i);

		if (!is_ip(s))
			look_at_text(l, name, SCHEMA_INVALID, s ? s : "", IP_TEXT);
	}
}

/* A subdomain whose parts may begin with one '_' and have more inside; "." is the root. */
static bool is_search(const char *s)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";

	if (str_eq(s, "."))
		return true;
	if (strlen(s) > 253)
		return false;
	for (;;) {
		size_t n = strcspn(s, "."), sign = *s == '_';

		if (n <= sign || strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-_") < n ||
			!strchr(letters, s[sign]) || !strchr(letters, s[n - 1]))
			return false;
		if (!s[n] || !s[n + 1]) /* a dot at the end is forgiven */
			return true;
		s += n + 1;
	}
}

static void dns_searches(struct look *l, struct json_object *dns)
{
	struct json_object *a = json_get_arr(dns, "searches");
	size_t n = a ? json_object_array_length(a) : 0;

	if (n > 32)
		look_at(l, "searches", SCHEMA_INVALID, a,
			"must not have more than 32 search paths");
	for (size_t i = 0; i < n; i++) {
		const char *s = json_object_get_string(json_object_array_get_idx(a, i));
		cleanup_free char *name = xasprintf("searches[%zu]", i);

		if (!s || !is_search(s))
			look_at_text(l, name, SCHEMA_INVALID, s ? s : "", SEARCH_TEXT);
	}
}

static void dns_option(struct look *l, struct json_object *o)
{
	if (look_empty(json_get(o, "name")))
		look_here(l, SCHEMA_REQUIRED, NULL, "must not be empty");
}

static void dns_config(struct look *l, struct json_object *spec)
{
	struct json_object *dns = json_get_obj(spec, "dnsConfig");
	size_t before = look_go(l, "dnsConfig");

	if (dns) {
		dns_servers(l, spec, dns);
		dns_searches(l, dns);
		look_each(l, dns, "options", dns_option);
	}
	look_back(l, before);
	if (!dns && str_eq(json_get_str(spec, "dnsPolicy"), "None"))
		look_at(l, "dnsConfig", SCHEMA_REQUIRED, NULL,
			"must provide `dnsConfig` when `dnsPolicy` is None");
}

static void readiness_gate(struct look *l, struct json_object *g)
{
	look_name(l, "conditionType", json_get_str(g, "conditionType"));
}

/* ---- all of it, in two parts: fields between them are upstream's order */

void look_place(struct look *l, struct json_object *spec)
{
	struct json_object *a = json_get_obj(spec, "affinity");
	size_t before = look_go(l, "affinity");

	if (json_get_obj(a, "nodeAffinity"))
		node_affinity(l, json_get_obj(a, "nodeAffinity"));
	pod_affinity(l, a, "podAffinity");
	pod_affinity(l, a, "podAntiAffinity");
	look_back(l, before);
	dns_config(l, spec);
	look_each(l, spec, "readinessGates", readiness_gate);
	spread_all(l, spec);
}

void look_place_last(struct look *l, struct json_object *spec)
{
	look_each(l, spec, "tolerations", toleration);
	look_each(l, spec, "hostAliases", host_alias);
}
