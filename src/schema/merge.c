/* SPDX-License-Identifier: MIT */
/*
 * The places in the built-in kinds where a merge is not plain, as the OpenAPI document of Kubernetes
 * 1.34 has them (x-kubernetes-list-type, -map-keys, -map-type, -patch-merge-key, -patch-strategy),
 * without storage drivers of single vendors.
 */
#include "config.h"

#include "tec/schema/merge.h"

#include <string.h>

#include "schema_internal.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/schema/crd.h"

struct schema_member {
	const char *name;
	const struct schema_type *type; /* of it, or of its elements; NULL: nothing below */
	struct schema_merge merge;
};

struct schema_type {
	const struct schema_member *member;
	size_t n;
};

#define TYPE(name) static const struct schema_type type_##name = {name, ARRAY_LEN(name)}

static const struct schema_member object_meta[] = {
	{"finalizers", NULL, {.type = SCHEMA_MERGE_SET, .patch_key = ""}},
	{"ownerReferences", NULL,
		{.type = SCHEMA_MERGE_MAP,
			.keys = {"uid"},
			.patch_key = "uid",
			.atomic_elements = true}},
};
TYPE(object_meta);

static const struct schema_member config_map[] = {
	{"metadata", &type_object_meta, {.type = SCHEMA_MERGE_PLAIN}},
};
TYPE(config_map);

static const struct schema_member event[] = {
	{"involvedObject", NULL, {.type = SCHEMA_MERGE_ATOMIC}},
	{"metadata", &type_object_meta, {.type = SCHEMA_MERGE_PLAIN}},
	{"related", NULL, {.type = SCHEMA_MERGE_ATOMIC}},
};
TYPE(event);

static const struct schema_member new_event[] = {
	{"metadata", &type_object_meta, {.type = SCHEMA_MERGE_PLAIN}},
	{"regarding", NULL, {.type = SCHEMA_MERGE_ATOMIC}},
	{"related", NULL, {.type = SCHEMA_MERGE_ATOMIC}},
};
TYPE(new_event);

static const struct schema_member namespace_status[] = {
	{"conditions", NULL, {.type = SCHEMA_MERGE_MAP, .keys = {"type"}, .patch_key = "type"}},
};
TYPE(namespace_status);

static const struct schema_member namespace[] = {
	{"metadata", &type_object_meta, {.type = SCHEMA_MERGE_PLAIN}},
	{"status", &type_namespace_status, {.type = SCHEMA_MERGE_PLAIN}},
};
TYPE(namespace);

static const struct schema_member service_account[] = {
	{"metadata", &type_object_meta, {.type = SCHEMA_MERGE_PLAIN}},
	{"secrets", NULL,
		{.type = SCHEMA_MERGE_MAP,
			.keys = {"name"},
			.patch_key = "name",
			.atomic_elements = true}},
};
TYPE(service_account);

static const struct schema_member role_binding[] = {
	{"metadata", &type_object_meta, {.type = SCHEMA_MERGE_PLAIN}},
	{"roleRef", NULL, {.type = SCHEMA_MERGE_ATOMIC}},
};
TYPE(role_binding);

static const struct {
	const char *group, *kind;
	const struct schema_type *type;
} kinds[] = {
	{"", "ConfigMap", &type_config_map},
	{"", "Event", &type_event},
	{"events.k8s.io", "Event", &type_new_event},
	{"", "Namespace", &type_namespace},
	{"", "ServiceAccount", &type_service_account},
	{"rbac.authorization.k8s.io", "RoleBinding", &type_role_binding},
};

struct schema_at schema_at_object(const struct schema_kind *k)
{
	struct schema_at at = {NULL, NULL, NULL};

	if (k->crd) {
		at.node = k->crd->schema;
		return at;
	}
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (str_eq(k->group, kinds[i].group) && str_eq(k->kind, kinds[i].kind))
			at.type = kinds[i].type;
	if (!at.type)
		at.type = &type_config_map; /* metadata alone */
	return at;
}

struct schema_at schema_at_member(struct schema_at at, const char *name)
{
	struct schema_at to = {NULL, schema_node_member(at.node, name), NULL};

	/* metadata of a CRD's object is that of every kind. */
	if (at.node && !at.merge && !at.type && str_eq(name, "metadata"))
		return (struct schema_at){&type_object_meta, NULL, NULL};
	for (size_t i = 0; at.type && i < at.type->n; i++)
		if (str_eq(at.type->member[i].name, name)) {
			to.type = at.type->member[i].type;
			to.merge = &at.type->member[i].merge;
		}
	if (to.node)
		to.merge = schema_node_merge(to.node);
	return to;
}

struct schema_at schema_at_element(struct schema_at at)
{
	static const struct schema_merge atomic = {.type = SCHEMA_MERGE_ATOMIC};
	struct schema_at to = {at.type, schema_node_element(at.node), NULL};

	if (at.merge && at.merge->atomic_elements)
		to.merge = &atomic;
	if (to.node)
		to.merge = schema_node_merge(to.node);
	return to;
}

const struct schema_merge *schema_at_merge(struct schema_at at)
{
	return at.merge ? at.merge : schema_node_merge(NULL);
}

enum schema_declares schema_at_declares(struct schema_at at, const char *name)
{
	if (at.type)
		return SCHEMA_DECLARED;
	if (!at.node)
		return SCHEMA_ALLOWED;
	if (schema_node_prop(at.node, name))
		return SCHEMA_DECLARED;
	if ((!at.merge || at.node->embedded) &&
		(str_eq(name, "apiVersion") || str_eq(name, "kind") || str_eq(name, "metadata")))
		return SCHEMA_DECLARED;
	return at.node->additional || at.node->preserve ||
			       at.node->additional_is == SCHEMA_ADDITIONAL_TRUE
		       ? SCHEMA_ALLOWED
		       : SCHEMA_UNKNOWN;
}

/* As Go's %v, and its %#v for scalars. */
static void print_go(struct strbuf *out, struct json_object *v)
{
	const char *blank = "";

	if (json_object_is_type(v, json_type_object)) {
		strbuf_adds(out, "map[");
		json_object_object_foreach (v, name, child) {
			strbuf_addf(out, "%s%s:", blank, name);
			print_go(out, child);
			blank = " ";
		}
		strbuf_addc(out, ']');
	} else if (json_object_is_type(v, json_type_array)) {
		strbuf_addc(out, '[');
		for (size_t i = 0; i < json_object_array_length(v); i++, blank = " ") {
			strbuf_adds(out, blank);
			print_go(out, json_object_array_get_idx(v, i));
		}
		strbuf_addc(out, ']');
	} else {
		strbuf_adds(out, v ? json_object_get_string(v) : "<nil>");
	}
}

static const char *go_type(struct json_object *v)
{
	return json_object_is_type(v, json_type_object)   ? "map[string]interface {}"
	       : json_object_is_type(v, json_type_array)  ? "[]interface {}"
	       : json_object_is_type(v, json_type_string) ? "string"
							  : "bool";
}

static char *expected(
	const char *what, const char *before, struct json_object *v, const char *after)
{
	struct strbuf out = STRBUF_INIT;

	strbuf_addf(&out, "expected %s, got %s", what, before);
	print_go(&out, v);
	strbuf_adds(&out, after);
	return strbuf_steal(&out);
}

char *schema_at_mismatch(struct schema_at at, struct json_object *v)
{
	enum json_type have = json_object_get_type(v);
	bool number = have == json_type_int || have == json_type_double,
	     nested = have == json_type_object || have == json_type_array;

	if (!at.node || !v)
		return NULL;
	if (at.node->int_or_string)
		return nested ? expected("any scalar", "&{", v, "}") : NULL;
	switch (at.node->type) {
	case SCHEMA_TYPE_OBJECT:
		return have == json_type_object ? NULL : expected("map", "&{", v, "}");
	case SCHEMA_TYPE_ARRAY:
		return have == json_type_array ? NULL : expected("list", "&{", v, "}");
	case SCHEMA_TYPE_STRING:
		return have == json_type_string
			       ? NULL
			       : expected("string", "&value.valueUnstructured{Value:", v, "}");
	case SCHEMA_TYPE_BOOLEAN:
		return have == json_type_boolean ? NULL : expected("boolean", "&{", v, "}");
	case SCHEMA_TYPE_INTEGER:
	case SCHEMA_TYPE_NUMBER:
		return number ? NULL
			      : xasprintf("expected numeric (int or float), got %s", go_type(v));
	case SCHEMA_TYPE_NONE:
		break;
	}
	return NULL;
}
