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
	if (schema_node_member(at.node, name))
		return SCHEMA_DECLARED;
	return !at.merge && (str_eq(name, "apiVersion") || str_eq(name, "kind") ||
				    str_eq(name, "metadata"))
		       ? SCHEMA_DECLARED
		       : SCHEMA_UNKNOWN;
}

char *schema_at_mismatch(struct schema_at at, struct json_object *v)
{
	return at.node && v ? schema_type_fault(at.node, v) : NULL;
}
