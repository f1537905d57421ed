/* SPDX-License-Identifier: MIT */
/*
 * The kinds of Kubernetes itself that this API serves, as one static table, and what is wrong with
 * their objects. Nothing is allocated but causes.
 */
#ifndef TEC_SCHEMA_BUILTIN_H
#define TEC_SCHEMA_BUILTIN_H

#include <json-c/json.h>

#include "tec/schema/cause.h"
#include "tec/schema/kind.h"

/* The ClusterRoles that a RoleBinding may name; what they give is known to apistore/rights. */
#define SCHEMA_ROLE_ADMIN  "cluster-admin"
#define SCHEMA_ROLE_VIEW   "view"
#define SCHEMA_ROLE_FOLLOW "tec-follow"

size_t schema_builtin_count(void);
const struct schema_kind *schema_builtin_at(size_t i);
/* By resource ("secrets"), and by kind ("Secret"); NULL: not served. */
const struct schema_kind *schema_builtin_find(
	const char *group, const char *version, const char *plural);
const struct schema_kind *schema_builtin_kind(
	const char *group, const char *version, const char *kind);

/* The members of a kind beside apiVersion, kind and metadata, with blanks between them. */
const char *schema_builtin_members(const struct schema_kind *k);

/* Fills in what kube-apiserver fills in, where nothing is given. */
void schema_builtin_default(const struct schema_kind *k, struct json_object *o);
/* What is missing or cannot be, after the defaults; was NULL: the object is new. Of an update also what
 * may not change: data of an immutable Secret or ConfigMap, type of a Secret, roleRef of a RoleBinding,
 * an Event of events.k8s.io but for its series. */
void schema_builtin_check(const struct schema_kind *k, struct json_object *was,
	struct json_object *o, struct schema_causes *causes);

#endif
