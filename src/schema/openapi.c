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

static struct json_object *text_map(const char *description)
{
	return json_add(described("object", description), "additionalProperties",
		json_add_str(json_obj(), "type", "string"));
}

static struct json_object *list_of(const char *description, struct json_object *items)
{
	return json_add(described("array", description), "items", items);
}

/* The texts below are our own, shorter than those of Kubernetes. */
static struct json_object *owner_reference(void)
{
	static const char *const texts[][2] = {{"apiVersion", "API version of the owner."},
		{"kind", "Kind of the owner."}, {"name", "Name of the owner."},
		{"uid", "UID of the owner."}};
	struct json_object *o = described(
				   "object", "An object in the same namespace that owns this one."),
			   *p = json_obj(), *required = json_arr();

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		json_add(p, texts[i][0], described("string", texts[i][1]));
		json_push_str(required, texts[i][0]);
	}
	json_add(p, "controller",
		described("boolean", "True: the owner is the controller of this object."));
	json_add(p, "blockOwnerDeletion",
		described("boolean",
			"With foreground deletion, the owner stays until this object is "
			"deleted."));
	return json_add(json_add(o, "properties", p), "required", required);
}

/* fieldsV1 is a schema of its own, as in Kubernetes, because clients treat it as opaque. */
static struct json_object *managed_fields(const char *prefix)
{
	static const char *const texts[][2] = {{"apiVersion", "Version of the field names."},
		{"fieldsType", "Format of the field names: FieldsV1."},
		{"manager", "Name of the manager."}, {"operation", "Apply or Update."},
		{"subresource", "Subresource that was used; empty for the object itself."},
		{"time", "When the entry was last changed."}};
	struct json_object *p = json_obj();

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		json_add(p, texts[i][0], described("string", texts[i][1]));
	json_add(p, "fieldsV1", ref_to(prefix, META "FieldsV1"));
	return json_add(described("object", "The fields that one manager set."), "properties", p);
}

/* All members of ObjectMeta that Kubernetes 1.34 knows, so that kubectl's validation accepts
 * them. */
static struct json_object *object_meta(const char *prefix)
{
	static const char *const texts[][3] = {
		{"name", "string", "Unique for its kind and namespace; immutable."},
		{"generateName", "string", "Prefix of a generated name when name is not set."},
		{"namespace", "string", "Namespace of the object; immutable."},
		{"uid", "string", "Set by the server; a recreated object has another one."},
		{"resourceVersion", "string", "Changes with every write; opaque."},
		{"selfLink", "string", "No longer used."},
		{"creationTimestamp", "string", "Time of creation. Set by the server."},
		{"deletionTimestamp", "string",
			"The object is being deleted and waits for its finalizers."},
		{"generation", "integer",
			"Number of changes of the desired state. Set by the server."},
		{"deletionGracePeriodSeconds", "integer",
			"Grace period of the deletion in seconds. Set by the server."},
	};
	struct json_object *p = json_obj();
	static const char owner[] = META "OwnerReference";

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		json_add(p, texts[i][0], described(texts[i][1], texts[i][2]));
	json_add(p, "labels", text_map("Key-value pairs by which objects are selected."));
	json_add(p, "annotations", text_map("Key-value pairs that selectors ignore."));
	json_add(p, "finalizers",
		list_of("Names of components that must act before the object is removed.",
			json_add_str(json_obj(), "type", "string")));
	json_add(p, "ownerReferences",
		list_of("The object is deleted when all of these are deleted.",
			ref_to(prefix, owner)));
	json_add(p, "managedFields",
		list_of("Fields set by each manager. Set by the server.",
			ref_to(prefix, META "ManagedFieldsEntry")));
	return json_add(described("object", "Metadata of an object."), "properties", p);
}

/* Add the schemas to which those of all kinds refer, once per document. */
static void add_meta(struct json_object *schemas, const char *prefix)
{
	struct json_object *list = json_obj();

	json_add(list, "resourceVersion",
		described("string", "Version of the list, from which a watch can start."));
	json_add(list, "continue",
		described("string", "Token to request the next part of the list."));
	json_add(list, "remainingItemCount",
		described("integer", "Number of objects that follow this part."));
	json_add(list, "selfLink", described("string", "No longer used."));
	json_add(schemas, META "ListMeta",
		json_add(described("object", "Metadata of a list."), "properties", list));
	json_add(schemas, META "ObjectMeta", object_meta(prefix));
	json_add(schemas, META "OwnerReference", owner_reference());
	json_add(schemas, META "ManagedFieldsEntry", managed_fields(prefix));
	json_add(schemas, META "FieldsV1", described("object", "Field names as a tree."));
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
	json_add(p, "items", list_of("The objects.", ref_to(prefix, name)));
	json_add(o, "properties", p);
	json_add(o, "required", json_push_str(json_arr(), "items"));
	add_gvk(o, k, k->list_kind, true);
	json_add(schemas, list, o);
}

/* metadata is always replaced by the shared schema: CRDs may only restrict name and
 * generateName. */
static void add_kind(struct json_object *schemas, const char *prefix, const struct schema_kind *k,
	struct json_object *take_schema)
{
	cleanup_free char *name = name_of(k, "");
	struct json_object *p = json_get_obj(take_schema, "properties");

	if (!p) {
		p = json_obj();
		json_add(take_schema, "properties", p);
	}
	add_type_meta(p);
	json_drop(p, "metadata");
	json_add(p, "metadata", ref_to(prefix, META "ObjectMeta"));
	add_gvk(take_schema, k, k->kind, true);
	json_add(schemas, name, take_schema);
	if (k->verbs & SCHEMA_VERB_LIST)
		add_list(schemas, prefix, k, name);
}

/* Unknown members are preserved in each value, so that kubectl's validation accepts any content. */
static struct json_object *builtin_schema(const struct schema_kind *k)
{
	cleanup_free char *text =
		xasprintf("%s, a built-in kind of Kubernetes. Its fields are described at "
			  "https://kubernetes.io/docs/reference/.",
			k->kind);
	struct json_object *o = described("object", text), *p = json_obj();
	const char *members = schema_builtin_members(k);

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

/* ---- paths */

/* Version 2 has the type in the parameter itself, version 3 in a schema. */
static struct json_object *parameter(
	const char *name, const char *in, const char *type, const char *text, bool v2)
{
	struct json_object *o = json_obj(), *schema = json_obj();

	json_add_str(o, "name", name);
	json_add_str(o, "in", in);
	json_add_str(o, "description", text);
	if (str_eq(in, "path"))
		json_add_bool(o, "required", true);
	if (!v2)
		return json_add(o, "schema", json_add_str(schema, "type", type));
	json_object_put(schema);
	return json_add_str(o, "type", type);
}

/* kubectl looks for the parameters dryRun and fieldValidation here before it uses them. */
static struct json_object *operation(const struct schema_kind *k, const char *action, bool v2)
{
	struct json_object *o = json_obj(), *p = json_arr();
	cleanup_free char *id = xasprintf("%s%s%s%s", action, k->group, k->version, k->kind);

	for (char *c = id; *c; c++)
		if (*c == '.')
			*c = '_';
	json_add_str(o, "operationId", id);
	if (!str_eq(action, "get") && !str_eq(action, "list")) {
		json_push(p, parameter("dryRun", "query", "string",
				     "All: validate the request, but store nothing.", v2));
		json_push(
			p, parameter("fieldManager", "query", "string", "Name of the writer.", v2));
		json_push(p, parameter("fieldValidation", "query", "string",
				     "Strict, Warn or Ignore: treatment of unknown fields.", v2));
	}
	if (str_eq(action, "patch"))
		json_push(p, parameter("force", "query", "boolean",
				     "Apply even to fields of other managers.", v2));
	json_add(o, "parameters", p);
	json_add(o, "responses",
		json_add(json_obj(), "200", json_add_str(json_obj(), "description", "OK")));
	json_add_str(o, "x-kubernetes-action", action);
	add_gvk(o, k, k->kind, false);
	return o;
}

/* A kind that cannot be read (a review) has only the path of its collection. */
static void add_paths(struct json_object *paths, const struct schema_kind *k, bool v2)
{
	cleanup_free char *all = xasprintf("%s%s/%s%s/%s", *k->group ? "/apis/" : "/api", k->group,
				  k->version, k->namespaced ? "/namespaces/{namespace}" : "",
				  k->plural),
			  *one = xasprintf("%s/{name}", all);
	struct json_object *c = json_obj(), *o = json_obj(), *p = json_arr(), *q = json_arr();

	if (k->namespaced) {
		json_push(p, parameter("namespace", "path", "string", "The namespace.", v2));
		json_push(q, parameter("namespace", "path", "string", "The namespace.", v2));
	}
	json_push(q, parameter("name", "path", "string", "The name.", v2));
	if (k->verbs & SCHEMA_VERB_LIST)
		json_add(c, "get", operation(k, "list", v2));
	json_add(c, "post", operation(k, "post", v2));
	json_add(paths, all, json_add(c, "parameters", p));
	if (!(k->verbs & SCHEMA_VERB_GET)) {
		json_object_put(o);
		json_object_put(q);
		return;
	}
	json_add(o, "get", operation(k, "get", v2));
	json_add(o, "put", operation(k, "put", v2));
	json_add(o, "patch", operation(k, "patch", v2));
	json_add(o, "delete", operation(k, "delete", v2));
	json_add(paths, one, json_add(o, "parameters", q));
}

/* ---- all kinds */

typedef void (*each_fn)(const struct schema_kind *k, void *arg);

static void each_kind(const struct schema_served *s, each_fn fn, void *arg)
{
	for (size_t i = 0; i < schema_builtin_count(); i++)
		fn(schema_builtin_at(i), arg);
	for (size_t i = 0; i < s->n; i++)
		fn(&s->crds[i]->kind, arg);
}

/* The version of Kubernetes that the built-in kinds follow. */
static struct json_object *info(struct json_object *doc)
{
	struct json_object *o = json_add_str(json_obj(), "title", "Kubernetes");

	return json_add(doc, "info", json_add_str(o, "version", "v1.34.0"));
}

/* ---- version 3 */

struct v3 {
	const char *group, *version;
	struct json_object *schemas, *paths;
	size_t n;
};

/* A CRD's schema is copied, because add_kind() adds to it. */
static void add_v3(const struct schema_kind *k, void *arg)
{
	struct v3 *d = arg;

	if (!str_eq(k->group, d->group) || !str_eq(k->version, d->version))
		return;
	add_kind(d->schemas, V3, k, k->crd ? json_copy(k->crd->openapi) : builtin_schema(k));
	add_paths(d->paths, k, false);
	d->n++;
}

/* NULL when no kind is of this group and version. The shared metadata schemas are in every
 * document, because references do not cross documents. */
struct json_object *schema_openapi_v3(
	const struct schema_served *s, const char *group, const char *version)
{
	struct v3 d = {group, version, json_obj(), json_obj(), 0};
	struct json_object *doc = json_add_str(json_obj(), "openapi", "3.0.0");

	add_meta(d.schemas, V3);
	each_kind(s, add_v3, &d);
	info(doc);
	json_add(doc, "paths", d.paths);
	json_add(doc, "components", json_add(json_obj(), "schemas", d.schemas));
	if (d.n)
		return doc;
	json_object_put(doc);
	return NULL;
}

struct index {
	const struct schema_served *s;
	struct json_object *paths;
};

/* Add the document of a kind's group and version to the index, once. The hash is of the document's
 * text, so that clients may cache it indefinitely. */
static void add_index(const struct schema_kind *k, void *arg)
{
	struct index *x = arg;
	cleanup_free char *path =
		xasprintf("%s%s/%s", *k->group ? "apis/" : "api", k->group, k->version);
	cleanup_json struct json_object *doc = NULL;
	cleanup_free char *text = NULL, *url = NULL;
	uint8_t hash[SHA256_LEN];
	char hex[2 * SHA256_LEN + 1];

	if (json_object_object_get_ex(x->paths, path, NULL))
		return;
	doc = schema_openapi_v3(x->s, k->group, k->version);
	text = json_text(doc);
	bytes_sha256(text, strlen(text), hash);
	bytes_to_hex(hash, sizeof(hash), hex);
	url = xasprintf("/openapi/v3/%s?hash=%s", path, hex);
	json_add(x->paths, path, json_add_str(json_obj(), "serverRelativeURL", url));
}

struct json_object *schema_openapi_index(const struct schema_served *s)
{
	struct index x = {s, json_obj()};

	each_kind(s, add_index, &x);
	return json_add(json_obj(), "paths", x.paths);
}

/* ---- version 2 */

static void to_v2(struct json_object *s);

static void members_to_v2(struct json_object *s, const char *name)
{
	struct json_object *o = json_get_obj(s, name);

	if (!o)
		return;
	json_each (o, member, v) {
		to_v2(v);
	}
}

/* Reduce a schema to what version 2 can express. Where that would make it stricter than the CRD,
 * open it entirely: the server validates anyway. */
static void to_v2(struct json_object *s)
{
	static const char *const no[] = {"nullable", "oneOf", "anyOf", "allOf", "not", "default"};
	bool open;

	if (!json_object_is_type(s, json_type_object))
		return;
	open = json_get_bool(s, "x-kubernetes-preserve-unknown-fields", false) ||
	       json_get_bool(s, "nullable", false);
	if (json_get_bool(s, "x-kubernetes-int-or-string", false))
		json_drop(s, "type");
	for (size_t i = 0; i < ARRAY_LEN(no); i++)
		json_drop(s, no[i]);
	if (open) { /* allows null or unknown fields, which kubectl would refuse */
		json_drop(s, "type");
		json_drop(s, "items");
		json_drop(s, "properties");
		json_drop(s, "required");
	}
	members_to_v2(s, "properties");
	to_v2(json_get_obj(s, "items"));
	to_v2(json_get_obj(s, "additionalProperties"));
}

struct v2 {
	struct json_object *definitions, *paths;
};

/* The schema is reduced before the metadata is added, which version 2 can express. */
static void add_v2(const struct schema_kind *k, void *arg)
{
	struct v2 *d = arg;
	struct json_object *schema = k->crd ? json_copy(k->crd->openapi) : builtin_schema(k);

	to_v2(schema);
	add_kind(d->definitions, V2, k, schema);
	add_paths(d->paths, k, true);
}

/* One document for all groups, which older versions of kubectl use. */
struct json_object *schema_openapi_v2(const struct schema_served *s)
{
	struct v2 d = {json_obj(), json_obj()};
	struct json_object *doc = json_add_str(json_obj(), "swagger", "2.0");

	add_meta(d.definitions, V2);
	each_kind(s, add_v2, &d);
	info(doc);
	return json_add(json_add(doc, "paths", d.paths), "definitions", d.definitions);
}
