/* SPDX-License-Identifier: MIT */
/* Pods and their templates: containers, their mounts and resources, volumes. */
#include "config.h"

#include <string.h>

#include "builtin_internal.h"
#include "schema_internal.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/schema/quantity.h"

static void container_port(struct look *l, struct json_object *p)
{
	static const char *const protocols[] = {"SCTP", "TCP", "UDP", NULL};
	int64_t n;

	if (!look_number(p, "containerPort", &n) || n == 0)
		look_at(l, "containerPort", SCHEMA_REQUIRED, NULL, "");
	else
		look_port(l, p, "containerPort");
	look_one_of(l, p, "protocol", protocols);
}

static void named(struct look *l, struct json_object *o)
{
	look_needs(l, o, "name", "");
}

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

static void container(struct look *l, struct json_object *c)
{
	static const char *const policies[] = {"Always", "IfNotPresent", "Never", NULL};

	if (look_needs(l, c, "name", ""))
		look_label(l, c, "name");
	look_needs(l, c, "image", "");
	look_each(l, c, "ports", container_port);
	look_each(l, c, "env", named);
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
			container(l, json_object_array_get_idx(a, i));
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
	look_one_of(l, spec, "dnsPolicy", dns);
}
