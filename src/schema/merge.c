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

static const struct schema_member node_affinity[] = {
	{"requiredDuringSchedulingIgnoredDuringExecution", NULL, {.type = SCHEMA_MERGE_ATOMIC}},
};
TYPE(node_affinity);

static const struct schema_member affinity[] = {
	{"nodeAffinity", &type_node_affinity, {.type = SCHEMA_MERGE_PLAIN}},
};
TYPE(affinity);

static const struct schema_member env_var_source[] = {
	{"configMapKeyRef", NULL, {.type = SCHEMA_MERGE_ATOMIC}},
	{"fieldRef", NULL, {.type = SCHEMA_MERGE_ATOMIC}},
	{"fileKeyRef", NULL, {.type = SCHEMA_MERGE_ATOMIC}},
	{"resourceFieldRef", NULL, {.type = SCHEMA_MERGE_ATOMIC}},
	{"secretKeyRef", NULL, {.type = SCHEMA_MERGE_ATOMIC}},
};
TYPE(env_var_source);

static const struct schema_member env_var[] = {
	{"valueFrom", &type_env_var_source, {.type = SCHEMA_MERGE_PLAIN}},
};
TYPE(env_var);

static const struct schema_member resource_requirements[] = {
	{"claims", NULL, {.type = SCHEMA_MERGE_MAP, .keys = {"name"}}},
};
TYPE(resource_requirements);

static const struct schema_member container[] = {
	{"env", &type_env_var, {.type = SCHEMA_MERGE_MAP, .keys = {"name"}, .patch_key = "name"}},
	{"ports", NULL,
		{.type = SCHEMA_MERGE_MAP,
			.keys = {"containerPort", "protocol"},
			.key_default = "TCP",
			.patch_key = "containerPort"}},
	{"resources", &type_resource_requirements, {.type = SCHEMA_MERGE_PLAIN}},
	{"volumeDevices", NULL,
		{.type = SCHEMA_MERGE_MAP, .keys = {"devicePath"}, .patch_key = "devicePath"}},
	{"volumeMounts", NULL,
		{.type = SCHEMA_MERGE_MAP, .keys = {"mountPath"}, .patch_key = "mountPath"}},
};
TYPE(container);

static const struct schema_member ephemeral_container[] = {
	{"env", &type_env_var, {.type = SCHEMA_MERGE_MAP, .keys = {"name"}, .patch_key = "name"}},
	{"ports", NULL,
		{.type = SCHEMA_MERGE_MAP,
			.keys = {"containerPort", "protocol"},
			.key_default = "TCP",
			.patch_key = "containerPort"}},
	{"resources", &type_resource_requirements, {.type = SCHEMA_MERGE_PLAIN}},
	{"volumeDevices", NULL,
		{.type = SCHEMA_MERGE_MAP, .keys = {"devicePath"}, .patch_key = "devicePath"}},
	{"volumeMounts", NULL,
		{.type = SCHEMA_MERGE_MAP, .keys = {"mountPath"}, .patch_key = "mountPath"}},
};
TYPE(ephemeral_container);

static const struct schema_member topology_spread_constraint[] = {
	{"labelSelector", NULL, {.type = SCHEMA_MERGE_ATOMIC}},
};
TYPE(topology_spread_constraint);

static const struct schema_member csivolume_source[] = {
	{"nodePublishSecretRef", NULL, {.type = SCHEMA_MERGE_ATOMIC}},
};
TYPE(csivolume_source);

static const struct schema_member persistent_volume_claim_spec[] = {
	{"dataSource", NULL, {.type = SCHEMA_MERGE_ATOMIC}},
	{"selector", NULL, {.type = SCHEMA_MERGE_ATOMIC}},
};
TYPE(persistent_volume_claim_spec);

static const struct schema_member persistent_volume_claim_template[] = {
	{"metadata", &type_object_meta, {.type = SCHEMA_MERGE_PLAIN}},
	{"spec", &type_persistent_volume_claim_spec, {.type = SCHEMA_MERGE_PLAIN}},
};
TYPE(persistent_volume_claim_template);

static const struct schema_member ephemeral_volume_source[] = {
	{"volumeClaimTemplate", &type_persistent_volume_claim_template,
		{.type = SCHEMA_MERGE_PLAIN}},
};
TYPE(ephemeral_volume_source);

static const struct schema_member volume[] = {
	{"csi", &type_csivolume_source, {.type = SCHEMA_MERGE_PLAIN}},
	{"ephemeral", &type_ephemeral_volume_source, {.type = SCHEMA_MERGE_PLAIN}},
};
TYPE(volume);

static const struct schema_member pod_spec[] = {
	{"affinity", &type_affinity, {.type = SCHEMA_MERGE_PLAIN}},
	{"containers", &type_container,
		{.type = SCHEMA_MERGE_MAP, .keys = {"name"}, .patch_key = "name"}},
	{"ephemeralContainers", &type_ephemeral_container,
		{.type = SCHEMA_MERGE_MAP, .keys = {"name"}, .patch_key = "name"}},
	{"hostAliases", NULL, {.type = SCHEMA_MERGE_MAP, .keys = {"ip"}, .patch_key = "ip"}},
	{"imagePullSecrets", NULL,
		{.type = SCHEMA_MERGE_MAP,
			.keys = {"name"},
			.patch_key = "name",
			.atomic_elements = true}},
	{"initContainers", &type_container,
		{.type = SCHEMA_MERGE_MAP, .keys = {"name"}, .patch_key = "name"}},
	{"nodeSelector", NULL, {.type = SCHEMA_MERGE_ATOMIC}},
	{"resourceClaims", NULL,
		{.type = SCHEMA_MERGE_MAP,
			.keys = {"name"},
			.patch_key = "name",
			.retain_keys = true}},
	{"resources", &type_resource_requirements, {.type = SCHEMA_MERGE_PLAIN}},
	{"schedulingGates", NULL,
		{.type = SCHEMA_MERGE_MAP, .keys = {"name"}, .patch_key = "name"}},
	{"topologySpreadConstraints", &type_topology_spread_constraint,
		{.type = SCHEMA_MERGE_MAP,
			.keys = {"topologyKey", "whenUnsatisfiable"},
			.patch_key = "topologyKey"}},
	{"volumes", &type_volume,
		{.type = SCHEMA_MERGE_MAP,
			.keys = {"name"},
			.patch_key = "name",
			.retain_keys = true}},
};
TYPE(pod_spec);

static const struct schema_member pod_status[] = {
	{"conditions", NULL, {.type = SCHEMA_MERGE_MAP, .keys = {"type"}, .patch_key = "type"}},
	{"hostIPs", NULL, {.patch_key = "ip"}},
	{"podIPs", NULL, {.type = SCHEMA_MERGE_MAP, .keys = {"ip"}, .patch_key = "ip"}},
	{"resourceClaimStatuses", NULL,
		{.type = SCHEMA_MERGE_MAP,
			.keys = {"name"},
			.patch_key = "name",
			.retain_keys = true}},
};
TYPE(pod_status);

static const struct schema_member pod[] = {
	{"metadata", &type_object_meta, {.type = SCHEMA_MERGE_PLAIN}},
	{"spec", &type_pod_spec, {.type = SCHEMA_MERGE_PLAIN}},
	{"status", &type_pod_status, {.type = SCHEMA_MERGE_PLAIN}},
};
TYPE(pod);

static const struct schema_member pod_template_spec[] = {
	{"metadata", &type_object_meta, {.type = SCHEMA_MERGE_PLAIN}},
	{"spec", &type_pod_spec, {.type = SCHEMA_MERGE_PLAIN}},
};
TYPE(pod_template_spec);

static const struct schema_member job_spec[] = {
	{"selector", NULL, {.type = SCHEMA_MERGE_ATOMIC}},
	{"template", &type_pod_template_spec, {.type = SCHEMA_MERGE_PLAIN}},
};
TYPE(job_spec);

static const struct schema_member uncounted_terminated_pods[] = {
	{"failed", NULL, {.type = SCHEMA_MERGE_SET}},
	{"succeeded", NULL, {.type = SCHEMA_MERGE_SET}},
};
TYPE(uncounted_terminated_pods);

static const struct schema_member job_status[] = {
	{"conditions", NULL, {.patch_key = "type"}},
	{"uncountedTerminatedPods", &type_uncounted_terminated_pods, {.type = SCHEMA_MERGE_PLAIN}},
};
TYPE(job_status);

static const struct schema_member job[] = {
	{"metadata", &type_object_meta, {.type = SCHEMA_MERGE_PLAIN}},
	{"spec", &type_job_spec, {.type = SCHEMA_MERGE_PLAIN}},
	{"status", &type_job_status, {.type = SCHEMA_MERGE_PLAIN}},
};
TYPE(job);

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
	{"", "Pod", &type_pod},
	{"batch", "Job", &type_job},
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
