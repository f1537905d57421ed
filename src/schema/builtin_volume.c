/* SPDX-License-Identifier: MIT */
/*
 * Volumes: one source each, in upstream's order, which is where the second one is found; and what the
 * sources of files have in common (keys, paths, modes). Paths of causes are upstream's, also where it
 * leaves the index of a list out.
 */
#include "config.h"

#include <string.h>

#include "builtin_internal.h"
#include "schema_internal.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"

/* ---- paths, modes */

static bool has_dots(const char *path)
{
	for (const char *p = path; (p = strstr(p, "..")); p += 2)
		if ((p == path || p[-1] == '/') && (!p[2] || p[2] == '/'))
			return true;
	return false;
}

void look_inside(struct look *l, struct json_object *o, const char *name)
{
	const char *path = json_get_str(o, name);

	if (path && *path == '/')
		look_at(l, name, SCHEMA_INVALID, json_get(o, name), "must be a relative path");
	if (path && has_dots(path))
		look_at(l, name, SCHEMA_INVALID, json_get(o, name), "must not contain '..'");
}

/* Names that begin with two dots are the kubelet's own. */
static void file_path(struct look *l, struct json_object *o, const char *name)
{
	const char *path = json_get_str(o, name);

	look_inside(l, o, name);
	if (path && str_starts(path, "..") && !str_starts(path, "../"))
		look_at(l, name, SCHEMA_INVALID, json_get(o, name), "must not start with '..'");
}

static void is_mode(struct look *l, struct json_object *o, const char *name)
{
	int64_t n;

	if (look_number(o, name, &n) && (n < 0 || n > 0777))
		look_at(l, name, SCHEMA_INVALID, json_get(o, name),
			"must be a number between 0 and 0777 (octal), both inclusive");
}

/* ---- files of Secrets, ConfigMaps and of the Pod itself */

static void item(struct look *l, struct json_object *i)
{
	look_needs(l, i, "key", "");
	if (look_needs(l, i, "path", ""))
		file_path(l, i, "path");
	is_mode(l, i, "mode");
}

/* A Secret or a ConfigMap; name: the member that names it. */
static void files(struct look *l, struct json_object *s, const char *name)
{
	look_needs(l, s, name, "");
	is_mode(l, s, "defaultMode");
	look_each(l, s, "items", item);
}

static void secret(struct look *l, struct json_object *s)
{
	files(l, s, "secretName");
}

static void config_map(struct look *l, struct json_object *s)
{
	files(l, s, "name");
}

static void downward_file(struct look *l, struct json_object *f)
{
	static const char *const known[] = {"metadata.annotations", "metadata.labels",
		"metadata.name", "metadata.namespace", "metadata.uid", NULL};
	struct json_object *field = json_get_obj(f, "fieldRef"),
			   *resource = json_get_obj(f, "resourceFieldRef");
	size_t before;

	look_needs(l, f, "path", "");
	file_path(l, f, "path");
	before = look_go(l, field ? "fieldRef" : "resourceFieldRef");
	if (field)
		look_field_ref(l, field, known);
	else if (resource)
		look_resource_ref(l, resource, true);
	look_back(l, before);
	if (field && resource)
		look_here(l, SCHEMA_INVALID, "resource",
			"fieldRef and resourceFieldRef can not be specified simultaneously");
	else if (!field && !resource)
		look_here(l, SCHEMA_REQUIRED, NULL,
			"one of fieldRef and resourceFieldRef is required");
	is_mode(l, f, "mode");
}

static void downward_files(struct look *l, struct json_object *s)
{
	struct json_object *a = json_get_arr(s, "items");

	for (size_t i = 0; a && i < json_object_array_length(a); i++)
		downward_file(l, json_object_array_get_idx(a, i));
}

static void downward(struct look *l, struct json_object *s)
{
	is_mode(l, s, "defaultMode");
	downward_files(l, s);
}

/* ---- several in one */

/* A path that an earlier source has; told of the volume, which is upstream's way. */
static void once(struct look *l, struct json_object *paths, struct json_object *source,
	const char *value, size_t volume)
{
	struct json_object *a = json_get_arr(source, "items");
	cleanup_strbuf struct strbuf at = STRBUF_INIT;

	strbuf_add(&at, strbuf_str(&l->path), volume);
	for (size_t i = 0; a && i < json_object_array_length(a); i++) {
		const char *path = json_get_str(json_object_array_get_idx(a, i), "path");

		if (path && *path && json_object_object_get_ex(paths, path, NULL))
			schema_cause_add_text(l->causes, SCHEMA_INVALID, strbuf_str(&at),
				value ? value : path, "conflicting duplicate paths");
		else if (path && *path)
			json_add_bool(paths, path, true);
	}
}

static void token(struct look *l, struct json_object *t, size_t volume)
{
	cleanup_free char *here = xstrdup(strbuf_str(&l->path));
	int64_t n;

	if (look_number(t, "expirationSeconds", &n) && n < 600)
		look_at(l, "expirationSeconds", SCHEMA_INVALID, json_get(t, "expirationSeconds"),
			"may not specify a duration less than 10 minutes");
	else if (n > INT64_C(1) << 32)
		look_at(l, "expirationSeconds", SCHEMA_INVALID, json_get(t, "expirationSeconds"),
			"may not specify a duration larger than 2^32 seconds");
	look_back(l, volume); /* upstream tells it of the volume */
	if (look_needs(l, t, "path", ""))
		file_path(l, t, "path");
	strbuf_reset(&l->path);
	strbuf_adds(&l->path, here);
}

static void projected_source(
	struct look *l, struct json_object *source, struct json_object *paths, size_t volume)
{
	static const char *const kinds[] = {
		"secret", "configMap", "downwardAPI", "serviceAccountToken"};
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct json_object *s = json_get_obj(source, kinds[i]);
		const char *name = json_get_str(s, "name");
		size_t before = look_go(l, kinds[i]);

		if (s && i < 2) {
			look_needs(l, s, "name", "");
			look_each(l, s, "items", item);
			once(l, paths, s, name ? name : "", volume);
		} else if (s && i == 2) {
			downward_files(l, s);
			once(l, paths, s, NULL, volume);
		} else if (s) {
			token(l, s, volume);
		}
		look_back(l, before);
		n += s != NULL;
	}
	if (n > 1)
		look_here(l, SCHEMA_FORBIDDEN, NULL,
			"may not specify more than 1 volume type per source");
}

static void projected(struct look *l, struct json_object *p)
{
	struct json_object *a = json_get_arr(p, "sources");
	cleanup_json struct json_object *paths = json_obj();
	size_t volume = l->path.len, list;

	is_mode(l, p, "defaultMode");
	list = look_go(l, "sources");
	for (size_t i = 0; a && i < json_object_array_length(a); i++) {
		size_t before = schema_path_index(&l->path, i);

		projected_source(l, json_object_array_get_idx(a, i), paths, volume);
		look_back(l, before);
	}
	look_back(l, list);
}

/* ---- the others */

static void empty_dir(struct look *l, struct json_object *e)
{
	const char *size = json_get_str(e, "sizeLimit");

	if (size && *size == '-')
		look_at(l, "sizeLimit", SCHEMA_FORBIDDEN, NULL,
			"SizeLimit field must be a valid resource quantity");
}

static void host_path(struct look *l, struct json_object *h)
{
	static const char *const types[] = {"", "BlockDevice", "CharDevice", "Directory",
		"DirectoryOrCreate", "File", "FileOrCreate", "Socket", NULL};
	const char *path = json_get_str(h, "path");

	if (look_needs(l, h, "path", "") && path && has_dots(path))
		look_at(l, "path", SCHEMA_INVALID, json_get(h, "path"), "must not contain '..'");
	look_one_of(l, h, "type", types);
}

static void claim(struct look *l, struct json_object *s)
{
	look_needs(l, s, "claimName", "");
}

static void nfs(struct look *l, struct json_object *s)
{
	const char *path = json_get_str(s, "path");

	look_needs(l, s, "server", "");
	look_needs(l, s, "path", "");
	if (!path || *path != '/')
		look_at_text(
			l, "path", SCHEMA_INVALID, path ? path : "", "must be an absolute path");
}

static void csi(struct look *l, struct json_object *s)
{
	cleanup_json struct json_object *none = json_add_str(json_obj(), "driver", "");

	look_needs(l, s, "driver", "");
	look_subdomain(l, json_get(s, "driver") ? s : none, "driver");
}

static void ephemeral(struct look *l, struct json_object *s)
{
	look_needs(l, s, "volumeClaimTemplate", "");
}

static void image(struct look *l, struct json_object *s)
{
	static const char *const policies[] = {"Always", "IfNotPresent", "Never", NULL};

	look_one_of(l, s, "pullPolicy", policies);
}

void look_volume(struct look *l, struct json_object *v)
{
	static const struct {
		const char *name;
		void (*check)(struct look *l, struct json_object *s); /* NULL: not looked at */
	} sources[] = {{"emptyDir", empty_dir}, {"hostPath", host_path}, {"gitRepo", NULL},
		{"gcePersistentDisk", NULL}, {"awsElasticBlockStore", NULL}, {"secret", secret},
		{"nfs", nfs}, {"iscsi", NULL}, {"glusterfs", NULL},
		{"persistentVolumeClaim", claim}, {"rbd", NULL}, {"cinder", NULL}, {"cephfs", NULL},
		{"flocker", NULL}, {"downwardAPI", downward}, {"fc", NULL}, {"azureFile", NULL},
		{"configMap", config_map}, {"vsphereVolume", NULL}, {"azureDisk", NULL},
		{"portworxVolume", NULL}, {"quobyte", NULL}, {"projected", projected},
		{"storageos", NULL}, {"scaleIO", NULL}, {"csi", csi}, {"ephemeral", ephemeral},
		{"image", image}};
	size_t n = 0;

	if (look_needs(l, v, "name", ""))
		look_label(l, v, "name");
	for (size_t i = 0; i < ARRAY_LEN(sources); i++) {
		struct json_object *s = json_get_obj(v, sources[i].name);
		size_t before;

		if (!s)
			continue;
		if (n++ > 0) {
			look_at(l, sources[i].name, SCHEMA_FORBIDDEN, NULL,
				"may not specify more than 1 volume type");
			continue;
		}
		before = look_go(l, sources[i].name);
		if (sources[i].check)
			sources[i].check(l, s);
		look_back(l, before);
	}
}

/* ---- where a container has them */

static bool has_volume(struct json_object *spec, const char *name)
{
	struct json_object *a = json_get_arr(spec, "volumes");

	for (size_t i = 0; a && i < json_object_array_length(a); i++)
		if (str_eq(json_get_str(json_object_array_get_idx(a, i), "name"), name))
			return true;
	return false;
}

/* Upstream tells all of these of the list. */
static void mount_options(struct look *l, struct json_object *m, bool privileged)
{
	static const char *const ways[] = {"Bidirectional", "HostToContainer", "None", NULL},
				 *const depths[] = {"Disabled", "Enabled", "IfPossible", NULL};
	const char *way = json_get_str(m, "mountPropagation"),
		   *depth = json_get_str(m, "recursiveReadOnly");

	if (way && look_one_of(l, m, "mountPropagation", ways) && str_eq(way, "Bidirectional") &&
		!privileged)
		look_at(l, "mountPropagation", SCHEMA_FORBIDDEN, NULL,
			"Bidirectional mount propagation is available only to privileged containers");
	if (!depth || !look_one_of(l, m, "recursiveReadOnly", depths) || str_eq(depth, "Disabled"))
		return;
	if (!json_get_bool(m, "readOnly", false))
		look_at(l, "recursiveReadOnly", SCHEMA_FORBIDDEN, NULL,
			"may only be specified when readOnly is true");
	if (way && !str_eq(way, "None"))
		look_at(l, "recursiveReadOnly", SCHEMA_FORBIDDEN, NULL,
			"may only be specified when mountPropagation is None or not specified");
}

static void mount(
	struct look *l, struct json_object *spec, struct json_object *m, struct json_object *paths)
{
	const char *path = json_get_str(m, "mountPath"), *name = json_get_str(m, "name");

	if (look_needs(l, m, "name", "") && !has_volume(spec, name))
		look_at(l, "name", SCHEMA_NOT_FOUND, json_get(m, "name"), "");
	if (look_needs(l, m, "mountPath", "") && path) {
		if (json_object_object_get_ex(paths, path, NULL))
			look_at(l, "mountPath", SCHEMA_INVALID, json_get(m, "mountPath"),
				"must be unique");
		json_add_bool(paths, path, true);
	}
	if (!look_empty(json_get(m, "subPath")) && !look_empty(json_get(m, "subPathExpr")))
		look_at(l, "subPathExpr", SCHEMA_INVALID, json_get(m, "subPathExpr"),
			"subPathExpr and subPath are mutually exclusive");
}

static void device(struct look *l, struct json_object *spec, struct json_object *d)
{
	if (look_needs(l, d, "name", "") && !has_volume(spec, json_get_str(d, "name")))
		look_at(l, "name", SCHEMA_NOT_FOUND, json_get(d, "name"), "");
	look_needs(l, d, "devicePath", "");
}

void look_mounts(struct look *l, struct json_object *spec, struct json_object *c)
{
	struct json_object *a = json_get_arr(c, "volumeMounts"),
			   *b = json_get_arr(c, "volumeDevices");
	cleanup_json struct json_object *paths = json_obj();
	bool privileged = json_get_bool(c, "securityContext/privileged", false);
	size_t whole = look_go(l, "volumeMounts");

	for (size_t i = 0; a && i < json_object_array_length(a); i++) {
		struct json_object *m = json_object_array_get_idx(a, i);
		size_t before = schema_path_index(&l->path, i);

		mount(l, spec, m, paths);
		look_back(l, before);
		look_inside(l, m, "subPath"); /* upstream tells it of the list */
		look_inside(l, m, "subPathExpr");
		mount_options(l, m, privileged);
	}
	look_back(l, whole);
	(void)look_go(l, "volumeDevices");
	for (size_t i = 0; b && i < json_object_array_length(b); i++) {
		size_t before = schema_path_index(&l->path, i);

		device(l, spec, json_object_array_get_idx(b, i));
		look_back(l, before);
	}
	look_back(l, whole);
}
