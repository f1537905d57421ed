/* SPDX-License-Identifier: MIT */
/* What a CustomResourceDefinition must say beside its schemas, in kube-apiserver's words. */
#include "config.h"

#include <ctype.h>
#include <string.h>

#include "crd_internal.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/kobj/key.h"
#include "tec/schema/crd.h"
#include "tec/schema/jsonpath.h"

#define LABEL_WORDS                                                                                \
	"a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with "  \
	"an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or "    \
	"'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
#define SUBDOMAIN_WORDS                                                                            \
	"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' "  \
	"or '.', and must start and end with an alphanumeric character (e.g. 'example.com', "      \
	"regex used for validation is "                                                            \
	"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"

struct check {
	struct schema_causes *causes;
	struct json_object *o;
};

/* A text at a path with '/'; field is the same with dots. NULL: a cause says why, unless it may be
 * absent. */
static const char *text(struct check *k, struct json_object *o, const char *member,
	const char *field, bool required)
{
	struct json_object *v = NULL;

	json_object_object_get_ex(o, member, &v);
	if (v && !json_object_is_type(v, json_type_string)) {
		schema_cause_add(k->causes, SCHEMA_INVALID, field, v, "must be a string");
		return NULL;
	}
	if (v && json_object_get_string_len(v) > 0)
		return json_object_get_string(v);
	if (required)
		schema_cause_add(k->causes, SCHEMA_REQUIRED, field, NULL, "%s", "");
	return NULL;
}

static bool is_label(const char *s)
{
	return islower((unsigned char)s[0]) && kobj_label_valid(s, strlen(s));
}

static void check_label(struct check *k, const char *field, const char *s, bool any_case)
{
	cleanup_free char *lower = xstrdup(s);

	for (char *p = lower; any_case && *p; p++)
		*p = (char)tolower((unsigned char)*p);
	if (!is_label(lower))
		schema_cause_add_text(k->causes, SCHEMA_INVALID, field, s, "%s%s",
			any_case ? "may have mixed case, but should otherwise match: " : "",
			strlen(s) > 63 ? "must be no more than 63 bytes" : LABEL_WORDS);
}

/* ---- names */

static void check_labels(struct check *k, struct json_object *names, const char *member)
{
	struct json_object *a = NULL;
	cleanup_free char *field = xasprintf("spec.names.%s", member);

	json_object_object_get_ex(names, member, &a);
	if (a && !json_object_is_type(a, json_type_array))
		schema_cause_add(k->causes, SCHEMA_INVALID, field, a, "must be a list");
	for (size_t i = 0;
		json_object_is_type(a, json_type_array) && i < json_object_array_length(a); i++) {
		struct json_object *v = json_object_array_get_idx(a, i);
		cleanup_free char *at = xasprintf("%s[%zu]", field, i);

		if (json_object_is_type(v, json_type_string))
			check_label(k, at, json_object_get_string(v), false);
		else
			schema_cause_add(k->causes, SCHEMA_INVALID, at, v, "must be a string");
	}
}

static void check_names(struct check *k, struct json_object *names)
{
	static const struct {
		const char *member, *field;
		bool any_case;
	} each[] = {{"plural", "spec.names.plural", false},
		{"singular", "spec.names.singular", false}, {"kind", "spec.names.kind", true},
		{"listKind", "spec.names.listKind", true}};
	const char *kind = json_get_str(names, "kind"), *list = json_get_str(names, "listKind");

	for (size_t i = 0; i < ARRAY_LEN(each); i++) {
		const char *s = text(k, names, each[i].member, each[i].field, true);

		if (s)
			check_label(k, each[i].field, s, each[i].any_case);
	}
	if (kind && str_eq(kind, list))
		schema_cause_add_text(k->causes, SCHEMA_INVALID, "spec.names.listKind", list,
			"kind and listKind may not be the same");
	check_labels(k, names, "shortNames");
	check_labels(k, names, "categories");
}

static bool is_protected(const char *group)
{
	return str_eq(group, "k8s.io") || str_ends(group, ".k8s.io") ||
	       str_eq(group, "kubernetes.io") || str_ends(group, ".kubernetes.io");
}

static void check_group(struct check *k, struct json_object *spec)
{
	const char *group = text(k, spec, "group", "spec.group", true);
	const char *plural = json_get_str(spec, "names/plural"),
		   *name = json_get_str(k->o, "metadata/name");
	cleanup_free char *want = NULL;

	if (!group)
		return;
	if (!kobj_name_valid(group, strlen(group)))
		schema_cause_add_text(
			k->causes, SCHEMA_INVALID, "spec.group", group, SUBDOMAIN_WORDS);
	else if (!strchr(group, '.'))
		schema_cause_add_text(k->causes, SCHEMA_INVALID, "spec.group", group,
			"should be a domain with at least one dot");
	want = xasprintf("%s.%s", plural ? plural : "", group);
	if (!str_eq(name, want))
		schema_cause_add_text(k->causes, SCHEMA_INVALID, "metadata.name", name ? name : "",
			"must be spec.names.plural+\".\"+spec.group");
	if (is_protected(group) &&
		!json_object_object_get_ex(json_get_obj(k->o, "metadata/annotations"),
			"api-approved.kubernetes.io", NULL))
		schema_cause_add(k->causes, SCHEMA_REQUIRED,
			"metadata.annotations[api-approved.kubernetes.io]", NULL,
			"protected groups must have approval annotation "
			"\"api-approved.kubernetes.io\", see "
			"https://github.com/kubernetes/enhancements/pull/1111");
}

/* ---- versions */

static bool is_one_of(const char *s, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(s, list[i]))
			return true;
	return false;
}

static void check_column(struct check *k, struct json_object *c, const char *at)
{
	static const char *const types[] = {"boolean", "date", "integer", "number", "string"};
	static const char *const formats[] = {
		"byte", "date", "date-time", "double", "float", "int32", "int64", "password"};
	cleanup_free char *name = xasprintf("%s.name", at), *type = xasprintf("%s.type", at),
			  *format = xasprintf("%s.format", at),
			  *path = xasprintf("%s.JSONPath", at),
			  *description = xasprintf("%s.description", at);
	const char *t, *f, *p;
	struct schema_jsonpath *parsed;
	struct err err = ERR_INIT;

	text(k, c, "name", name, true);
	text(k, c, "description", description, false);
	t = text(k, c, "type", type, true);
	if (t && !is_one_of(t, types, ARRAY_LEN(types)))
		schema_cause_add_text(k->causes, SCHEMA_INVALID, type, t,
			"must be one of boolean,date,integer,number,string");
	f = text(k, c, "format", format, false);
	if (f && !is_one_of(f, formats, ARRAY_LEN(formats)))
		schema_cause_add_text(k->causes, SCHEMA_INVALID, format, f,
			"must be one of byte,date,date-time,double,float,int32,int64,password");
	p = text(k, c, "jsonPath", path, true);
	if (!p)
		return;
	parsed = schema_jsonpath_new(p, &err);
	if (!parsed)
		schema_cause_add_text(
			k->causes, SCHEMA_INVALID, path, p, "is an invalid JSONPath: %s", err.text);
	schema_jsonpath_free(parsed);
}

static void check_columns(struct check *k, struct json_object *v, size_t i)
{
	struct json_object *a = NULL;

	json_object_object_get_ex(v, "additionalPrinterColumns", &a);
	for (size_t j = 0;
		json_object_is_type(a, json_type_array) && j < json_object_array_length(a); j++) {
		struct json_object *c = json_object_array_get_idx(a, j);
		cleanup_free char *at =
			xasprintf("spec.versions[%zu].additionalPrinterColumns[%zu]", i, j);

		if (json_object_is_type(c, json_type_object))
			check_column(k, c, at);
		else
			schema_cause_add(k->causes, SCHEMA_INVALID, at, c, "must be an object");
	}
}

/* What the root of a schema may say while status is a subresource. */
static void check_root(struct check *k, struct json_object *v, size_t i)
{
	static const char *const allowed[] = {"description", "type", "required", "title",
		"properties", "items", "externalDocs", "example", "default", "nullable",
		"x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations"};
	struct json_object *schema = json_get_obj(v, "schema/openAPIV3Schema");
	cleanup_free char *field = xasprintf("spec.versions[%zu].schema.openAPIV3Schema", i);

	if (!schema) {
		schema_cause_add(k->causes, SCHEMA_REQUIRED, field, NULL, "%s", "");
		return;
	}
	if (!json_get(v, "subresources/status"))
		return;
	json_object_object_foreach (schema, name, value) {
		if (value && !is_one_of(name, allowed, ARRAY_LEN(allowed)))
			schema_cause_add(k->causes, SCHEMA_INVALID, field, schema,
				"only [Description Type Format Title Maximum ExclusiveMaximum Minimum "
				"ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems "
				"UniqueItems MultipleOf Required Items Properties ExternalDocs Example "
				"XPreserveUnknownFields XValidations] fields are allowed at the root of "
				"the schema if the status subresource is enabled");
	}
}

/* ---- the subresource scale */

static void check_scale_path(struct check *k, struct json_object *scale, const char *at,
	const char *name, const char *below, const char *words)
{
	cleanup_free char *field = xasprintf("%s.%s", at, name);
	bool selector = str_eq(name, "labelSelectorPath");
	const char *path = text(k, scale, name, field, !selector);

	if (!path || !*path)
		return;
	if (*path != '.')
		schema_cause_add_text(k->causes, SCHEMA_INVALID, field, path,
			"must be a simple json path starting with .");
	else if (!str_starts(path, below) && !(selector && str_starts(path, ".status.")))
		schema_cause_add_text(k->causes, SCHEMA_INVALID, field, path,
			"should be a json path under %s", words);
}

/* As with schemas: what all versions share is told once, and stands in spec.subresources then. */
static void check_scale(struct check *k, struct json_object *versions, size_t i)
{
	struct json_object *v = json_object_array_get_idx(versions, i),
			   *first = json_object_array_get_idx(versions, 0), *scale = NULL;
	cleanup_free char *at = NULL;
	bool shared = true;

	json_object_object_get_ex(json_get_obj(v, "subresources"), "scale", &scale);
	for (size_t j = 1; j < json_object_array_length(versions); j++)
		shared = shared &&
			 json_object_equal(json_get(first, "subresources"),
				 json_get(json_object_array_get_idx(versions, j), "subresources"));
	if (!scale || (shared && i > 0))
		return;
	at = shared ? xstrdup("spec.subresources.scale")
		    : xasprintf("spec.versions[%zu].subresources.scale", i);
	if (!json_object_is_type(scale, json_type_object)) {
		schema_cause_add(k->causes, SCHEMA_INVALID, at, scale, "must be an object");
		return;
	}
	check_scale_path(k, scale, at, "specReplicasPath", ".spec.", ".spec");
	check_scale_path(k, scale, at, "statusReplicasPath", ".status.", ".status");
	check_scale_path(k, scale, at, "labelSelectorPath", ".spec.", "either .spec or .status");
}

static void check_version(struct check *k, struct json_object *v, size_t i)
{
	cleanup_free char *field = xasprintf("spec.versions[%zu].name", i),
			  *deprecation = xasprintf("spec.versions[%zu].deprecationWarning", i);
	const char *name = text(k, v, "name", field, true);

	if (name)
		check_label(k, field, name, false);
	if (json_get(v, "deprecationWarning") && !json_get_bool(v, "deprecated", false))
		schema_cause_add(k->causes, SCHEMA_INVALID, deprecation,
			json_get(v, "deprecationWarning"),
			"can only be set for deprecated versions");
	check_columns(k, v, i);
	check_root(k, v, i);
}

static void check_versions(struct check *k, struct json_object *spec)
{
	struct json_object *a = json_get_arr(spec, "versions");
	size_t n = a ? json_object_array_length(a) : 0, stored = 0;
	bool twice = false;

	for (size_t i = 0; i < n; i++) {
		struct json_object *v = json_object_array_get_idx(a, i);

		stored += json_get_bool(v, "storage", false);
		for (size_t j = 0; j < i; j++)
			twice = twice ||
				str_eq(json_get_str(v, "name"),
					json_get_str(json_object_array_get_idx(a, j), "name"));
		if (!json_object_is_type(v, json_type_object)) {
			schema_cause_add(
				k->causes, SCHEMA_INVALID, "spec.versions", v, "must be an object");
			continue;
		}
		check_version(k, v, i);
		check_scale(k, a, i);
	}
	if (twice)
		schema_cause_add(k->causes, SCHEMA_INVALID, "spec.versions", a,
			"must contain unique version names");
	if (stored != 1)
		schema_cause_add(k->causes, SCHEMA_INVALID, "spec.versions", a,
			"must have exactly one version marked as storage version");
}

void crd_check(struct json_object *o, struct schema_causes *causes)
{
	struct check k = {causes, o};
	struct json_object *spec = json_get_obj(o, "spec"), *names = json_get_obj(spec, "names");
	const char *scope, *conversion;

	if (!spec || !names) {
		schema_cause_add(
			causes, SCHEMA_REQUIRED, spec ? "spec.names" : "spec", NULL, "%s", "");
		return;
	}
	check_group(&k, spec);
	scope = text(&k, spec, "scope", "spec.scope", true);
	if (scope && !str_eq(scope, "Namespaced") && !str_eq(scope, "Cluster"))
		schema_cause_add_text(causes, SCHEMA_UNSUPPORTED, "spec.scope", scope,
			"supported values: \"Cluster\", \"Namespaced\"");
	check_versions(&k, spec);
	check_names(&k, names);
	if (json_get_bool(spec, "preserveUnknownFields", false))
		schema_cause_add(causes, SCHEMA_INVALID, "spec.preserveUnknownFields",
			json_get(spec, "preserveUnknownFields"),
			"cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
			"spec.versions[*].schema instead");
	conversion = json_get_str(spec, "conversion/strategy");
	if (conversion && !str_eq(conversion, "None"))
		schema_cause_add_text(causes, SCHEMA_UNSUPPORTED, "spec.conversion.strategy",
			conversion, "supported values: \"None\"");
}

static void check_same(struct json_object *old, struct json_object *now, const char *path,
	const char *field, struct schema_causes *causes)
{
	const char *a = json_get_str(old, path), *b = json_get_str(now, path);

	if (a && b && !str_eq(a, b))
		schema_cause_add_text(causes, SCHEMA_INVALID, field, b, "field is immutable");
}

void schema_crd_immutable(
	struct json_object *old, struct json_object *now, struct schema_causes *causes)
{
	check_same(old, now, "spec/scope", "spec.scope", causes);
	check_same(old, now, "spec/names/kind", "spec.names.kind", causes);
	check_same(old, now, "spec/group", "spec.group", causes);
	check_same(old, now, "spec/names/plural", "spec.names.plural", causes);
}
