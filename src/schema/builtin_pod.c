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
	if (read_quantity(v, &q) && q.nano < 0)
		look_at(l, field, SCHEMA_INVALID, v, LOOK_NEGATIVE);
}

static void check_request(
	struct look *l, const char *name, struct json_object *v, struct json_object *limit)
{
	cleanup_free char *why = NULL;
	struct schema_quantity have, most;

	if (!limit || !read_quantity(v, &have) || !read_quantity(limit, &most) ||
		have.nano <= most.nano)
		return;
	why = xasprintf("must be less than or equal to %s limit of %s", name,
		json_object_get_string(limit));
	look_at(l, "requests", SCHEMA_INVALID, v, why);
}

/* limits NULL: these are them, or there are none. */
static void resource_list(
	struct look *l, const char *list, struct json_object *o, struct json_object *limits)
{
	struct json_object *limit = NULL;

	if (!o)
		return;
	json_object_object_foreach (o, name, v) {
		resource(l, list, name, v);
		if (limits && json_object_object_get_ex(limits, name, &limit))
			check_request(l, name, v, limit);
	}
}

static void resources(struct look *l, struct json_object *c)
{
	struct json_object *r = json_get_obj(c, "resources"), *limits = json_get_obj(r, "limits");
	size_t before = look_go(l, "resources");

	resource_list(l, "limits", limits, NULL);
	resource_list(l, "requests", json_get_obj(r, "requests"), limits);
	look_back(l, before);
}

/* ---- mounts */

static bool has_dots(const char *path)
{
	for (const char *p = path; (p = strstr(p, "..")); p += 2)
		if ((p == path || p[-1] == '/') && (!p[2] || p[2] == '/'))
			return true;
	return false;
}

static void inside_only(struct look *l, struct json_object *o, const char *name)
{
	const char *path = json_get_str(o, name);

	if (path && *path == '/')
		look_at(l, name, SCHEMA_INVALID, json_get(o, name), "must be a relative path");
	if (path && has_dots(path))
		look_at(l, name, SCHEMA_INVALID, json_get(o, name), "must not contain '..'");
}

static bool has_volume(struct json_object *spec, const char *name)
{
	struct json_object *a = json_get_arr(spec, "volumes");

	for (size_t i = 0; a && i < json_object_array_length(a); i++)
		if (str_eq(json_get_str(json_object_array_get_idx(a, i), "name"), name))
			return true;
	return false;
}

/* Of one container, in its list of mounts. */
static void mounts(struct look *l, struct json_object *spec, struct json_object *c)
{
	struct json_object *a = json_get_arr(c, "volumeMounts");
	cleanup_json struct json_object *paths = json_obj();
	size_t whole = look_go(l, "volumeMounts");

	for (size_t i = 0; a && i < json_object_array_length(a); i++) {
		struct json_object *m = json_object_array_get_idx(a, i);
		const char *path = json_get_str(m, "mountPath"), *name = json_get_str(m, "name");
		size_t before = schema_path_index(&l->path, i);

		if (look_needs(l, m, "name", "") && !has_volume(spec, name))
			look_at(l, "name", SCHEMA_NOT_FOUND, json_get(m, "name"), "");
		if (look_needs(l, m, "mountPath", "") && path) {
			if (json_object_object_get_ex(paths, path, NULL))
				look_at(l, "mountPath", SCHEMA_INVALID, json_get(m, "mountPath"),
					"must be unique");
			json_add_bool(paths, path, true);
		}
		look_back(l, before);
		inside_only(l, m, "subPath"); /* upstream tells it of the list */
	}
	look_back(l, whole);
}

/* ---- containers */

static void container(struct look *l, struct json_object *c, bool init)
{
	static const char *const policies[] = {"Always", "IfNotPresent", "Never", NULL};

	if (look_needs(l, c, "name", ""))
		look_label(l, c, "name");
	look_needs(l, c, "image", "");
	look_container(l, c, init);
	resources(l, c);
	look_one_of(l, c, "imagePullPolicy", policies);
}

static void containers(struct look *l, struct json_object *spec, const char *list)
{
	struct json_object *a = json_get_arr(spec, list);
	size_t whole = look_go(l, list);

	for (size_t i = 0; a && i < json_object_array_length(a); i++) {
		size_t before = schema_path_index(&l->path, i);

		if (json_object_is_type(json_object_array_get_idx(a, i), json_type_object)) {
			container(
				l, json_object_array_get_idx(a, i), str_eq(list, "initContainers"));
			mounts(l, spec, json_object_array_get_idx(a, i));
		}
		look_back(l, before);
	}
	look_back(l, whole);
}

/* ---- volumes */

static void is_mode(struct look *l, struct json_object *o, const char *name)
{
	int64_t n;

	if (look_number(o, name, &n) && (n < 0 || n > 0777))
		look_at(l, name, SCHEMA_INVALID, json_get(o, name),
			"must be a number between 0 and 0777 (octal), both inclusive");
}

static void item(struct look *l, struct json_object *i)
{
	look_needs(l, i, "key", "");
	if (look_needs(l, i, "path", ""))
		inside_only(l, i, "path");
	is_mode(l, i, "mode");
}

/* A Secret or a ConfigMap. */
static void files(struct look *l, struct json_object *v, const char *source, const char *name)
{
	struct json_object *s = json_get_obj(v, source);
	size_t before = look_go(l, source);

	if (s) {
		look_needs(l, s, name, "");
		is_mode(l, s, "defaultMode");
		look_each(l, s, "items", item);
	}
	look_back(l, before);
}

static void host_path(struct look *l, struct json_object *h)
{
	size_t before = look_go(l, "hostPath");
	const char *path = json_get_str(h, "path");

	if (look_needs(l, h, "path", "") && has_dots(path))
		look_at(l, "path", SCHEMA_INVALID, json_get(h, "path"), "must not contain '..'");
	look_back(l, before);
}

static void volume(struct look *l, struct json_object *v)
{
	/* In upstream's order, which is where the second one is found. */
	static const char *const sources[] = {
		"emptyDir", "hostPath", "secret", "nfs", "configMap", "projected"};
	size_t n = 0;

	if (look_needs(l, v, "name", ""))
		look_label(l, v, "name");
	for (size_t i = 0; i < ARRAY_LEN(sources); i++)
		if (json_get(v, sources[i]) && n++ > 0) {
			look_at(l, sources[i], SCHEMA_FORBIDDEN, NULL,
				"may not specify more than 1 volume type");
			return;
		}
	if (json_get_obj(v, "hostPath"))
		host_path(l, json_get_obj(v, "hostPath"));
	files(l, v, "secret", "secretName");
	files(l, v, "configMap", "name");
}

/* ---- who runs it, and where */

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

static void pod_security(struct look *l, struct json_object *spec)
{
	static const char *const policies[] = {"Always", "OnRootMismatch", NULL},
				 *const ids[] = {"fsGroup", "runAsUser", "runAsGroup"};
	struct json_object *s = json_get_obj(spec, "securityContext"),
			   *groups = json_get_arr(s, "supplementalGroups");
	size_t before = look_go(l, "securityContext");

	for (size_t i = 0; i < ARRAY_LEN(ids); i++)
		look_id(l, s, ids[i]);
	for (size_t i = 0; groups && i < json_object_array_length(groups); i++) {
		cleanup_free char *name = xasprintf("supplementalGroups[%zu]", i);
		cleanup_json struct json_object *o = json_obj();

		json_add(o, name, json_object_get(json_object_array_get_idx(groups, i)));
		look_id(l, o, name);
	}
	look_one_of(l, s, "fsGroupChangePolicy", policies);
	look_seccomp(l, s);
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

static void non_empty(struct look *l, struct json_object *o, const char *name,
	void (*fn)(struct look *l, struct json_object *o, const char *name))
{
	if (!look_empty(json_get(o, name)))
		fn(l, o, name);
}

void look_pod_spec(struct look *l, struct json_object *spec)
{
	static const char *const dns[] = {
		"ClusterFirstWithHostNet", "ClusterFirst", "Default", "None", NULL};

	look_each(l, spec, "volumes", volume);
	look_unique(l, spec, "volumes");
	if (look_needs(l, spec, "containers", "")) {
		containers(l, spec, "containers");
		look_unique(l, spec, "containers");
	}
	containers(l, spec, "initContainers");
	look_unique(l, spec, "initContainers");
	init_names(l, spec);
	look_one_of(l, spec, "dnsPolicy", dns);
	if (str_eq(json_get_str(spec, "dnsPolicy"), "None"))
		look_needs(
			l, spec, "dnsConfig", "must provide `dnsConfig` when `dnsPolicy` is None");
	look_labels(l, "nodeSelector", json_get(spec, "nodeSelector"));
	pod_security(l, spec);
	non_empty(l, spec, "serviceAccountName", look_subdomain);
	non_empty(l, spec, "nodeName", look_subdomain);
	non_empty(l, spec, "priorityClassName", look_subdomain);
	non_empty(l, spec, "hostname", look_label);
	non_empty(l, spec, "subdomain", look_label);
	look_each(l, spec, "tolerations", toleration);
}
