/* SPDX-License-Identifier: MIT */
/*
 * The members of built-in kinds whose merge strategy is not the default, according to the OpenAPI
 * document of Kubernetes 1.34 (x-kubernetes-list-type, -map-keys, -map-type). Members below them
 * are not described.
 */
#include "config.h"

#include "tec/schema/merge.h"

#include <string.h>

#include "schema_internal.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/schema/crd.h"

#define METADATA "metadata" /* the same for every kind */

static const struct {
	const char *in, *name; /* name of a kind, or METADATA */
	struct schema_merge merge;
} members[] = {
	{METADATA, "finalizers", {.type = SCHEMA_MERGE_SET}},
	{METADATA, "ownerReferences", {.type = SCHEMA_MERGE_MAP, .keys = {"uid"}}},
	{"Event", "involvedObject", {.type = SCHEMA_MERGE_ATOMIC}},
	{"Event", "regarding", {.type = SCHEMA_MERGE_ATOMIC}},
	{"Event", "related", {.type = SCHEMA_MERGE_ATOMIC}},
	{"RoleBinding", "roleRef", {.type = SCHEMA_MERGE_ATOMIC}},
	{"ServiceAccount", "secrets", {.type = SCHEMA_MERGE_MAP, .keys = {"name"}}},
};

/* `top` marks the object itself, where apiVersion, kind and metadata are members of every kind. */
struct schema_at schema_at_object(const struct schema_kind *k)
{
	return k->crd ? (struct schema_at){.node = k->crd->schema, .top = true}
		      : (struct schema_at){.in = k->kind, .top = true};
}

/* metadata is the same for every kind, so for CRDs it comes from the table and not from their
 * schema. */
struct schema_at schema_at_member(struct schema_at at, const char *name)
{
	struct schema_at to = {.node = schema_node_member(at.node, name)};

	if (at.top && str_eq(name, METADATA))
		return (struct schema_at){.in = METADATA};
	for (size_t i = 0; at.in && i < ARRAY_LEN(members); i++)
		if (str_eq(at.in, members[i].in) && str_eq(name, members[i].name))
			to.merge = &members[i].merge;
	if (to.node)
		to.merge = &to.node->merge;
	return to;
}

/* Elements of CRDs follow their schema; those of built-in lists are atomic. */
struct schema_at schema_at_element(struct schema_at at)
{
	static const struct schema_merge atomic = {.type = SCHEMA_MERGE_ATOMIC};
	struct schema_at to = {.node = at.node ? at.node->items : NULL};

	/* An element of a list in the table has one owner as a whole. */
	to.merge = to.node ? &to.node->merge : !at.node && at.merge ? &atomic : NULL;
	return to;
}

const struct schema_merge *schema_at_merge(struct schema_at at)
{
	static const struct schema_merge plain = {.type = SCHEMA_MERGE_PLAIN};

	return at.merge ? at.merge : &plain;
}

/* The table of built-in kinds lists only special members, so any other one counts as declared. */
enum schema_declares schema_at_declares(struct schema_at at, const char *name)
{
	if (at.in)
		return SCHEMA_DECLARED;
	if (!at.node)
		return SCHEMA_ALLOWED;
	if (schema_node_member(at.node, name))
		return SCHEMA_DECLARED;
	return at.top && (str_eq(name, "apiVersion") || str_eq(name, "kind") ||
				 str_eq(name, METADATA))
		       ? SCHEMA_DECLARED
		       : SCHEMA_UNKNOWN;
}

/* Only places of CRDs are typed; null is accepted everywhere and pruned later. */
char *schema_at_mismatch(struct schema_at at, struct json_object *v)
{
	return at.node && v ? schema_node_mismatch(at.node, v) : NULL;
}
