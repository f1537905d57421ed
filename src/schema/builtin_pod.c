/* SPDX-License-Identifier: MIT */
/* Pods and their templates: containers, their mounts and resources, volumes. */
#include "config.h"

#include <string.h>

#include "builtin_internal.h"
#include "schema_internal.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/schema/quantity.h"

/* ---- resources */

static bool is_standard(const char *name, bool container)
{
	static const char *const any[] = {"cpu", "memory", "ephemeral-storage", "storage", "pods",
		"services", "secrets", "configmaps"};

	if (strchr(name, '/') || str_starts(name, "hugepages-"))
		return true;
	for (size_t i = 0; i < (container ? 3 : ARRAY_LEN(any)); i++)
		if (str_eq(name, any[i]))
			return true;
	return false;
}

static bool read_quantity(struct json_object *v, struct schema_quantity *q)
{
	const char *s = json_object_get_string(v);
	struct err err = ERR_INIT;

	return s && schema_quantity_parse(s, strlen(s), q, &err) == 0;
}

/* Of a device, counted in whole numbers: not Kubernetes' own. */
static bool is_extended(const char *name)
{
	return strchr(name, '/') && !strstr(name, "kubernetes.io/") &&
	       !str_starts(name, "requests.");
}

static bool is_strict(const char *name)
{
	return is_extended(name) || str_starts(name, "hugepages-");
}

/* "limits[cpu]": its name and its quantity. */
static void resource(struct look *l, const char *list, const char *name, struct json_object *v)
{
	cleanup_free char *field = xasprintf("%s[%s]", list, name);
	struct schema_quantity q;

	if (!look_qualified(name))
		look_at_text(l, field, SCHEMA_INVALID, name,
			"name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')");
	else if (!is_standard(name, false))
		look_at_text(l, field, SCHEMA_INVALID, name,
			"must be a standard resource type or fully qualified");
	if (!is_standard(name, true))
		look_at_text(l, field, SCHEMA_INVALID, name,
			"must be a standard resource for containers");
	if (!read_quantity(v, &q))
		return;
	if (q.nano < 0)
		look_at(l, field, SCHEMA_INVALID, v, LOOK_NEGATIVE);
	if (is_extended(name) && q.nano % 1000000000 != 0)
		look_at(l, field, SCHEMA_INVALID, v, "must be an integer");
}

/* One that may not exceed its limit; devices and huge pages have to be equal to it. */
static void check_request(
	struct look *l, const char *name, struct json_object *v, struct json_object *limit)
{
	cleanup_free char *why = NULL;
	struct schema_quantity have, most;

	if (!limit && is_strict(name))
		look_at(l, "limits", SCHEMA_REQUIRED, NULL,
			"Limit must be set for non overcommitable resources");
	if (!limit || !read_quantity(v, &have) || !read_quantity(limit, &most))
		return;
	if (have.nano > most.nano || (is_strict(name) && have.nano != most.nano))
		why = xasprintf("must be %s %s limit of %s",
			have.nano > most.nano ? "less than or equal to" : "equal to", name,
			json_object_get_string(limit));
	if (why)
		look_at(l, "requests", SCHEMA_INVALID, v, why);
}

static bool has_any(struct json_object *list, const char *name, bool prefix)
{
	if (!list)
		return false;
	json_object_object_foreach (list, key, v) {
		(void)v;
		if (prefix ? str_starts(key, name) : str_eq(key, name))
			return true;
	}
	return false;
}

static void resources(struct look *l, struct json_object *c)
{
	struct json_object *r = json_get_obj(c, "resources"), *lists[2], *limit;
	bool huge = false, some = false;
	size_t before = look_go(l, "resources");

	lists[0] = json_get_obj(r, "limits");
	lists[1] = json_get_obj(r, "requests");
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		huge |= has_any(lists[i], "hugepages-", true);
		some |= has_any(lists[i], "cpu", false) || has_any(lists[i], "memory", false);
		if (!lists[i])
			continue;
		json_object_object_foreach (lists[i], name, v) {
			resource(l, i ? "requests" : "limits", name, v);
			limit = NULL;
			if (i && lists[0])
				json_object_object_get_ex(lists[0], name, &limit);
			if (i)
				check_request(l, name, v, limit);
		}
	}
	if (huge && !some)
		look_here(l, SCHEMA_FORBIDDEN, NULL, "HugePages require cpu or memory");
	look_back(l, before);
}

/* ---- containers */

static void container(struct look *l, struct json_object *spec, struct json_object *c, bool init)
{
	static const char *const policies[] = {"Always", "IfNotPresent", "Never", NULL};

	if (look_needs(l, c, "name", ""))
		look_label(l, c, "name");
	look_needs(l, c, "image", "");
	look_container(l, c);
	look_mounts(l, spec, c);
	look_one_of(l, c, "imagePullPolicy", policies);
	resources(l, c);
	look_container_life(l, c, init);
}

static void containers(struct look *l, struct json_object *spec, const char *list)
{
	struct json_object *a = json_get_arr(spec, list);
	size_t whole = look_go(l, list);

	for (size_t i = 0; a && i < json_object_array_length(a); i++) {
		size_t before = schema_path_index(&l->path, i);

		if (json_object_is_type(json_object_array_get_idx(a, i), json_type_object)) {
			container(l, spec, json_object_array_get_idx(a, i),
				str_eq(list, "initContainers"));
			look_container_policy(l, spec, json_object_array_get_idx(a, i));
		}
		look_back(l, before);
	}
	look_back(l, whole);
}

/* ---- who runs it, and where */

static void pod_security(struct look *l, struct json_object *spec)
{
	static const char *const policies[] = {"Always", "OnRootMismatch", NULL},
				 *const groups_policies[] = {"Merge", "Strict", NULL},
				 *const ids[] = {"fsGroup", "runAsUser", "runAsGroup"};
	struct json_object *s = json_get_obj(spec, "securityContext"),
			   *groups = json_get_arr(s, "supplementalGroups");
	size_t before = look_go(l, "securityContext");

	if (json_get_bool(spec, "shareProcessNamespace", false) &&
		json_get_bool(spec, "hostPID", false))
		look_at(l, "shareProcessNamespace", SCHEMA_INVALID,
			json_get(spec, "shareProcessNamespace"),
			"ShareProcessNamespace and HostPID cannot both be enabled");
	for (size_t i = 0; i < ARRAY_LEN(ids); i++)
		look_id(l, s, ids[i]);
	for (size_t i = 0; groups && i < json_object_array_length(groups); i++) {
		cleanup_free char *name = xasprintf("supplementalGroups[%zu]", i);
		cleanup_json struct json_object *o = json_obj();

		json_add(o, name, json_object_get(json_object_array_get_idx(groups, i)));
		look_id(l, o, name);
	}
	look_one_of(l, s, "fsGroupChangePolicy", policies);
	look_one_of(l, s, "supplementalGroupsPolicy", groups_policies);
	look_seccomp(l, s);
	look_apparmor(l, s);
	look_back(l, before);
}

/* A name that a container has cannot be an init container's. */
static void init_names(struct look *l, struct json_object *spec)
{
	struct json_object *init = json_get_arr(spec, "initContainers"),
			   *all = json_get_arr(spec, "containers");
	size_t whole = look_go(l, "initContainers");

	for (size_t i = 0; init && i < json_object_array_length(init); i++) {
		struct json_object *c = json_object_array_get_idx(init, i);
		const char *name = json_get_str(c, "name");
		size_t before = schema_path_index(&l->path, i);

		for (size_t j = 0; name && all && j < json_object_array_length(all); j++)
			if (str_eq(json_get_str(json_object_array_get_idx(all, j), "name"), name))
				look_at(l, "name", SCHEMA_DUPLICATE, json_get(c, "name"), "");
		look_back(l, before);
	}
	look_back(l, whole);
}

static void host_ports(struct look *l, struct json_object *c, struct json_object *seen, bool host)
{
	struct json_object *a = json_get_arr(c, "ports");
	size_t whole = look_go(l, "ports");

	for (size_t i = 0; a && i < json_object_array_length(a); i++) {
		struct json_object *p = json_object_array_get_idx(a, i);
		const char *protocol = json_get_str(p, "protocol"), *ip = json_get_str(p, "hostIP");
		int64_t on = json_get_int(p, "hostPort", 0);
		cleanup_free char *key = xasprintf(
			"%s/%s/%lld", protocol ? protocol : "", ip ? ip : "", (long long)on);
		size_t before = schema_path_index(&l->path, i);

		if (host && on && on != json_get_int(p, "containerPort", 0))
			look_at(l, "hostPort", SCHEMA_INVALID, json_get(p, "hostPort"),
				"must match `containerPort` when `hostNetwork` is true");
		else if (seen && on && json_object_object_get_ex(seen, key, NULL))
			look_at_text(l, "hostPort", SCHEMA_DUPLICATE, key, "");
		else if (seen && on)
			json_add_bool(seen, key, true);
		look_back(l, before);
	}
	look_back(l, whole);
}

/* Those of the machine: each once among the containers, and of its network those of the Pod. */
static void all_host_ports(struct look *l, struct json_object *spec)
{
	cleanup_json struct json_object *seen = json_obj();
	struct json_object *a = json_get_arr(spec, "containers");
	bool host = json_get_bool(spec, "hostNetwork", false);
	size_t whole = look_go(l, "containers");

	for (int pass = 0; pass < 1 + host; pass++)
		for (size_t i = 0; a && i < json_object_array_length(a); i++) {
			size_t before = schema_path_index(&l->path, i);

			host_ports(l, json_object_array_get_idx(a, i), pass ? NULL : seen, pass);
			look_back(l, before);
		}
	look_back(l, whole);
}

static void non_empty(struct look *l, struct json_object *o, const char *name,
	void (*fn)(struct look *l, struct json_object *o, const char *name))
{
	if (!look_empty(json_get(o, name)))
		fn(l, o, name);
}

static void deadline(struct look *l, struct json_object *spec)
{
	int64_t n;

	if (look_number(spec, "activeDeadlineSeconds", &n) && (n < 1 || n > INT32_MAX))
		look_at(l, "activeDeadlineSeconds", SCHEMA_INVALID,
			json_get(spec, "activeDeadlineSeconds"),
			"must be between 1 and 2147483647, inclusive");
}

static void system_name(struct look *l, struct json_object *spec)
{
	static const char *const names[] = {"linux", "windows", NULL};
	struct json_object *os = json_get_obj(spec, "os");
	size_t before = look_go(l, "os"), causes = l->causes->n;
	cleanup_json struct json_object *o = json_obj();

	if (os)
		look_needs(l, os, "name", "");
	look_back(l, before);
	if (!os || l->causes->n > causes)
		return;
	json_add(o, "os", json_object_get(json_get(os, "name"))); /* upstream leaves the name out */
	look_one_of(l, o, "os", names);
}

void look_pod_spec(struct look *l, struct json_object *spec)
{
	static const char *const preemption[] = {"PreemptLowerPriority", "Never", NULL};
	static const char *const dns[] = {
		"ClusterFirstWithHostNet", "ClusterFirst", "Default", "None", NULL};

	look_each(l, spec, "volumes", look_volume);
	look_unique(l, spec, "volumes");
	if (look_needs(l, spec, "containers", "")) {
		containers(l, spec, "containers");
		look_unique(l, spec, "containers");
		all_host_ports(l, spec);
	}
	containers(l, spec, "initContainers");
	look_unique(l, spec, "initContainers");
	init_names(l, spec);
	look_one_of(l, spec, "dnsPolicy", dns);
	look_labels(l, "nodeSelector", json_get(spec, "nodeSelector"));
	pod_security(l, spec);
	look_pod_policy(l, spec);
	look_place(l, spec);
	non_empty(l, spec, "serviceAccountName", look_subdomain);
	non_empty(l, spec, "nodeName", look_subdomain);
	deadline(l, spec);
	non_empty(l, spec, "hostname", look_label);
	non_empty(l, spec, "subdomain", look_label);
	look_place_last(l, spec);
	non_empty(l, spec, "priorityClassName", look_subdomain);
	look_subdomain(l, spec, "runtimeClassName");
	look_one_of(l, spec, "preemptionPolicy", preemption);
	system_name(l, spec);
}
