/* SPDX-License-Identifier: MIT */
/*
 * OpenAPI documents from kinds. Version 3 contains the schemas of CRDs unchanged. Version 2 leaves
 * out what it cannot express (nullable, alternatives, int-or-string), and is closed only where the
 * CRD is. Of the paths, kubectl only reads the query parameters that writes of a kind take; of the
 * schemas it reads everything.
 */
#include "config.h"

#include "tec/schema/openapi.h"

#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/schema/builtin.h"

#define V3   "#/components/schemas/"
#define V2   "#/definitions/"
#define META "io.k8s.apimachinery.pkg.apis.meta.v1."

/* ---- metadata */

/* Names as kube-apiserver makes them: io.k8s.api.core.v1.Secret, or, for a CRD, its group
 * reversed. */
static char *name_of(const struct schema_kind *k, const char *suffix)
{
	struct strbuf b = STRBUF_INIT;
	const char *end = k->group + strlen(k->group);

	if (!k->crd) {
		strbuf_addf(&b, "io.k8s.api.%.*s.%s.%s%s",
			*k->group ? (int)strcspn(k->group, ".") : 4, *k->group ? k->group : "core",
			k->version, k->kind, suffix);
		return strbuf_steal(&b);
	}
	while (end > k->group) { /* the labels of the group in reverse order */
		const char *start = end;

		while (start > k->group && start[-1] != '.')
			start--;
		strbuf_add(&b, start, (size_t)(end - start));
		strbuf_addc(&b, '.');
		end = start > k->group ? start - 1 : start;
	}
	strbuf_addf(&b, "%s.%s%s", k->version, k->kind, suffix);
	return strbuf_steal(&b);
}

static struct json_object *ref_to(const char *prefix, const char *name)
{
	cleanup_free char *ref = xasprintf("%s%s", prefix, name);

	return json_add_str(json_obj(), "$ref", ref);
}

static struct json_object *described(const char *type, const char *description)
{
	return json_add_str(json_add_str(json_obj(), "description", description), "type", type);
}

/* The schemas to which those of all kinds refer: all members that Kubernetes 1.34 knows, so that
 * kubectl's validation accepts them. The texts are our own, shorter than those of Kubernetes. */
static const struct meta {
	/* type NULL: a schema, to which the following members belong. Lists are of strings, or of
	 * the schema that type names. */
	const char *name, *type, *text;
} metadata[] = {
	{"ListMeta", NULL, "Metadata of a list."},
	{"resourceVersion", "string", "Version of the list, from which a watch can start."},
	{"continue", "string", "Token to request the next part of the list."},
	{"remainingItemCount", "integer", "Number of objects that follow this part."},
	{"selfLink", "string", "No longer used."},
	{"ObjectMeta", NULL, "Metadata of an object."},
	{"name", "string", "Unique for its kind and namespace; immutable."},
	{"generateName", "string", "Prefix of a generated name when name is not set."},
	{"namespace", "string", "Namespace of the object; immutable."},
	{"uid", "string", "Set by the server; a recreated object has another one."},
	{"resourceVersion", "string", "Changes with every write; opaque."},
	{"selfLink", "string", "No longer used."},
	{"creationTimestamp", "string", "Time of creation. Set by the server."},
	{"deletionTimestamp", "string",
		"The object is being deleted and waits for its finalizers."},
	{"generation", "integer", "Number of changes of the desired state. Set by the server."},
	{"deletionGracePeriodSeconds", "integer",
		"Grace period of the deletion in seconds. Set by the server."},
	{"labels", "object", "Key-value pairs by which objects are selected."},
	{"annotations", "object", "Key-value pairs that selectors ignore."},
	{"finalizers", "array", "Names of components that must act before the object is removed."},
	{"ownerReferences", "OwnerReference",
		"The object is deleted when all of these are deleted."},
	{"managedFields", "ManagedFieldsEntry", "Fields set by each manager. Set by the server."},
	{"OwnerReference", NULL, "An object in the same namespace that owns this one."},
	{"apiVersion", "string", "API version of the owner."},
	{"kind", "string", "Kind of the owner."},
	{"name", "string", "Name of the owner."},
	{"uid", "string", "UID of the owner."},
	{"controller", "boolean", "True: the owner is the controller of this object."},
	{"blockOwnerDeletion", "boolean",
		"With foreground deletion, the owner stays until this object is deleted."},
	{"ManagedFieldsEntry", NULL, "The fields that one manager set."},
	{"apiVersion", "string", "Version of the field names."},
	{"fieldsType", "string", "Format of the field names: FieldsV1."},
	{"manager", "string", "Name of the manager."},
	{"operation", "string", "Apply or Update."},
	{"subresource", "string", "Subresource that was used; empty for the object itself."},
	{"time", "string", "When the entry was last changed."},
};

/* An "object" is a map of strings. */
static struct json_object *meta_member(const struct meta *m, const char *prefix)
{
	cleanup_free char *name = xasprintf(META "%s", m->type);
	bool refers = m->type[0] < 'a';
	struct json_object *o = described(refers ? "array" : m->type, m->text),
			   *of = refers ? ref_to(prefix, name)
					: json_add_str(json_obj(), "type", "string");

	if (refers || str_eq(m->type, "array"))
		return json_add(o, "items", of);
	if (str_eq(m->type, "object"))
		return json_add(o, "additionalProperties", of);
	json_object_put(of);
	return o;
}

/* Once per document: references do not cross documents. */
static void add_meta(struct json_object *schemas, const char *prefix)
{
	static const char *const required[] = {"apiVersion", "kind", "name", "uid"};
	struct json_object *schema, *properties = NULL, *names = json_arr();

	for (size_t i = 0; i < ARRAY_LEN(metadata); i++) {
		const struct meta *m = &metadata[i];
		cleanup_free char *name = xasprintf(META "%s", m->name);

		if (m->type) {
			json_add(properties, m->name, meta_member(m, prefix));
			continue;
		}
		schema = described("object", m->text);
		json_add(schema, "properties", properties = json_obj());
		json_add(schemas, name, schema);
	}
	/* A schema of its own, as in Kubernetes, because clients treat it as opaque. */
	json_add(properties, "fieldsV1", ref_to(prefix, META "FieldsV1"));
	json_add(schemas, META "FieldsV1", described("object", "Field names as a tree."));
	for (size_t i = 0; i < ARRAY_LEN(required); i++)
		json_push_str(names, required[i]);
	json_add(json_get_obj(schemas, META "OwnerReference"), "required", names);
}

/* ---- kinds */

/* The extension by which kubectl finds the schema or operation of a kind. */
static void add_gvk(struct json_object *o, const struct schema_kind *k, const char *kind, bool list)
{
	struct json_object *gvk = json_obj();

	json_add_str(gvk, "group", k->group);
	json_add_str(gvk, "kind", kind);
	json_add_str(gvk, "version", k->version);
	json_add(o, "x-kubernetes-group-version-kind", list ? json_push(json_arr(), gvk) : gvk);
}

/* Schemas of CRDs may omit these two members. */
static void add_type_meta(struct json_object *properties)
{
	json_add(properties, "apiVersion",
		described("string", "Group and version of the schema that this object follows."));
	json_add(properties, "kind", described("string", "The kind of this object."));
}

/* Lists are kinds of their own, so clients look up a schema for them as well. */
static void add_list(struct json_object *schemas, const char *prefix, const struct schema_kind *k,
	const char *name)
{
	cleanup_free char *list = name_of(k, "List"), *text = xasprintf("A list of %s.", k->plural);
	struct json_object *o = described("object", text), *p = json_obj();

	add_type_meta(p);
	json_add(p, "metadata", ref_to(prefix, META "ListMeta"));
	json_add(p, "items",
		json_add(described("array", "The objects."), "items", ref_to(prefix, name)));
	json_add(o, "properties", p);
	json_add(o, "required", json_push_str(json_arr(), "items"));
	add_gvk(o, k, k->list_kind, true);
	json_add(schemas, list, o);
}

/* Unknown members are preserved in each value, so that kubectl's validation accepts any content. */
static struct json_object *builtin_schema(const struct schema_kind *k)
{
	cleanup_free char *text =
		xasprintf("%s, a built-in kind of Kubernetes. Its fields are described at "
			  "https://kubernetes.io/docs/reference/.",
			k->kind);
	struct json_object *o = described("object", text), *p = json_obj();
	const char *members = k->members;

	while (*members) {
		size_t len = strcspn(members, " ");
		cleanup_free char *name = xstrndup(members, len);

		json_add(p, name,
			json_add_bool(json_add_str(json_obj(), "description", "Any value."),
				"x-kubernetes-preserve-unknown-fields", true));
		members += len + (members[len] == ' ');
	}
	return json_add(o, "properties", p);
}

/* Reduce a schema to what version 2 can express. Where that would make it stricter than the CRD,
 * open it entirely: the server validates anyway. */
static void to_v2(struct json_object *s)
{
	static const char *const no[] = {"nullable", "oneOf", "anyOf", "allOf", "not", "default"};
	static const char *const closes[] = {"type", "items", "properties", "required"};
	/* allows null or unknown fields, which kubectl would refuse */
	bool open = json_get_bool(s, "x-kubernetes-preserve-unknown-fields", false) ||
		    json_get_bool(s, "nullable", false);

	if (json_get_bool(s, "x-kubernetes-int-or-string", false))
		json_drop(s, "type");
	for (size_t i = 0; i < ARRAY_LEN(no); i++)
		json_drop(s, no[i]);
	for (size_t i = 0; open && i < ARRAY_LEN(closes); i++)
		json_drop(s, closes[i]);
	json_each (json_get_obj(s, "properties"), member, v) {
		to_v2(v);
	}
	if (json_object_is_type(s, json_type_object)) {
		to_v2(json_get_obj(s, "items"));
		to_v2(json_get_obj(s, "additionalProperties"));
	}
}

/* ---- paths */

/* Version 2 has the type in the parameter itself, version 3 in a schema. */
static struct json_object *parameter(
	const char *name, const char *in, const char *type, const char *text, bool v2)
{
	struct json_object *o = json_obj();

	json_add_str(o, "name", name);
	json_add_str(o, "in", in);
	json_add_str(o, "description", text);
	if (str_eq(in, "path"))
		json_add_bool(o, "required", true);
	return v2 ? json_add_str(o, "type", type)
		  : json_add(o, "schema", json_add_str(json_obj(), "type", type));
}

/* kubectl looks for the parameters dryRun and fieldValidation here before it uses them. */
static struct json_object *operation(const struct schema_kind *k, const char *action, bool v2)
{
	static const char *const texts[][3] = {
		{"dryRun", "string", "All: validate the request, but store nothing."},
		{"fieldManager", "string", "Name of the writer."},
		{"fieldValidation", "string",
			"Strict, Warn or Ignore: treatment of unknown fields."},
		{"force", "boolean", "Apply even to fields of other managers."}, /* patch only */
	};
	bool reads = str_eq(action, "get") || str_eq(action, "list");
	size_t n = reads ? 0 : ARRAY_LEN(texts) - !str_eq(action, "patch");
	struct json_object *o = json_obj(), *p = json_arr();
	cleanup_free char *id = xasprintf("%s%s%s%s", action, k->group, k->version, k->kind);

	for (char *c = id; *c; c++)
		if (*c == '.')
			*c = '_';
	json_add_str(o, "operationId", id);
	for (size_t i = 0; i < n; i++)
		json_push(p, parameter(texts[i][0], "query", texts[i][1], texts[i][2], v2));
	json_add(o, "parameters", p);
	json_add(o, "responses",
		json_add(json_obj(), "200", json_add_str(json_obj(), "description", "OK")));
	json_add_str(o, "x-kubernetes-action", action);
	add_gvk(o, k, k->kind, false);
	return o;
}

/* The paths of the collection and of one object; a kind that cannot be read (a review) has only the
 * first. */
static void add_paths(struct json_object *paths, const struct schema_kind *k, bool v2)
{
	static const struct {
		bool one;
		const char *method, *action;
	} operations[] = {{false, "get", "list"}, {false, "post", "post"}, {true, "get", "get"},
		{true, "put", "put"}, {true, "patch", "patch"}, {true, "delete", "delete"}};
	bool readable = k->verbs & SCHEMA_VERB_GET;

	for (int one = 0; one <= readable; one++) {
		cleanup_free char *path = xasprintf("%s%s/%s%s/%s%s", *k->group ? "/apis/" : "/api",
			k->group, k->version, k->namespaced ? "/namespaces/{namespace}" : "",
			k->plural, one ? "/{name}" : "");
		struct json_object *o = json_obj(), *p = json_arr();

		for (size_t i = 0; i < ARRAY_LEN(operations); i++)
			if (operations[i].one == one &&
				((k->verbs & SCHEMA_VERB_LIST) ||
					!str_eq(operations[i].action, "list")))
				json_add(o, operations[i].method,
					operation(k, operations[i].action, v2));
		if (k->namespaced)
			json_push(
				p, parameter("namespace", "path", "string", "The namespace.", v2));
		if (one)
			json_push(p, parameter("name", "path", "string", "The name.", v2));
		json_add(paths, path, json_add(o, "parameters", p));
	}
}

/* ---- documents */

/* Add a kind to a document. metadata is always replaced by the shared schema, which version 2 can
 * express: CRDs may only restrict name and generateName. */
static void add_kind(struct json_object *schemas, struct json_object *paths,
	const struct schema_kind *k, bool v2)
{
	const char *prefix = v2 ? V2 : V3;
	cleanup_free char *name = name_of(k, "");
	struct json_object *schema = k->crd ? json_copy(k->crd->openapi) : builtin_schema(k), *p;

	if (v2)
		to_v2(schema);
	p = json_get_obj(schema, "properties");
	if (!p)
		json_add(schema, "properties", p = json_obj());
	add_type_meta(p);
	json_drop(p, "metadata");
	json_add(p, "metadata", ref_to(prefix, META "ObjectMeta"));
	add_gvk(schema, k, k->kind, true);
	json_add(schemas, name, schema);
	if (k->verbs & SCHEMA_VERB_LIST)
		add_list(schemas, prefix, k, name);
	add_paths(paths, k, v2);
}

/* Begin a document. Its version is that of Kubernetes that the built-in kinds follow. */
static struct json_object *document(
	const char *member, const char *format, struct json_object *take_paths)
{
	struct json_object *info = json_add_str(json_obj(), "title", "Kubernetes"),
			   *doc = json_add_str(json_obj(), member, format);

	json_add(doc, "info", json_add_str(info, "version", "v1.34.0"));
	return json_add(doc, "paths", take_paths);
}

/* NULL when no kind is of this group and version. */
struct json_object *schema_openapi_v3(
	const struct schema_served *s, const char *group, const char *version)
{
	struct json_object *schemas = json_obj(), *paths = json_obj(),
			   *doc = document("openapi", "3.0.0", paths);
	const struct schema_kind *k;

	add_meta(schemas, V3);
	for (size_t i = 0; (k = schema_served_at(s, i)); i++)
		if (str_eq(k->group, group) && str_eq(k->version, version))
			add_kind(schemas, paths, k, false);
	json_add(doc, "components", json_add(json_obj(), "schemas", schemas));
	if (json_len(paths))
		return doc;
	json_object_put(doc);
	return NULL;
}

/* One document per group and version. The hash is of its text, so that clients may cache it
 * indefinitely. */
struct json_object *schema_openapi_index(const struct schema_served *s)
{
	struct json_object *paths = json_obj();
	const struct schema_kind *k;

	for (size_t i = 0; (k = schema_served_at(s, i)); i++) {
		cleanup_free char *path =
			xasprintf("%s%s/%s", *k->group ? "apis/" : "api", k->group, k->version);
		cleanup_json struct json_object *doc = NULL;
		cleanup_free char *text = NULL, *url = NULL;
		uint8_t hash[SHA256_LEN];
		char hex[2 * SHA256_LEN + 1];

		if (json_object_object_get_ex(paths, path, NULL))
			continue;
		doc = schema_openapi_v3(s, k->group, k->version);
		text = json_text(doc);
		bytes_sha256(text, strlen(text), hash);
		bytes_to_hex(hash, sizeof(hash), hex);
		url = xasprintf("/openapi/v3/%s?hash=%s", path, hex);
		json_add(paths, path, json_add_str(json_obj(), "serverRelativeURL", url));
	}
	return json_add(json_obj(), "paths", paths);
}

/* One document for all groups, which older versions of kubectl use. */
struct json_object *schema_openapi_v2(const struct schema_served *s)
{
	struct json_object *schemas = json_obj(), *paths = json_obj();
	const struct schema_kind *k;

	add_meta(schemas, V2);
	for (size_t i = 0; (k = schema_served_at(s, i)); i++)
		add_kind(schemas, paths, k, true);
	return json_add(document("swagger", "2.0", paths), "definitions", schemas);
}
