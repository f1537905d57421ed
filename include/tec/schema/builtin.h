/* SPDX-License-Identifier: MIT */
/*
 * The built-in kinds of Kubernetes that this API serves, as one static table, and the validation of
 * their objects. Nothing is allocated except causes.
 */
#ifndef TEC_SCHEMA_BUILTIN_H
#define TEC_SCHEMA_BUILTIN_H

#include <json-c/json.h>

#include "tec/schema/cause.h"
#include "tec/schema/kind.h"

/* The ClusterRoles that a RoleBinding may name; apireq/rights knows what they grant. */
#define SCHEMA_ROLE_ADMIN  "cluster-admin"
#define SCHEMA_ROLE_VIEW   "view"
#define SCHEMA_ROLE_FOLLOW "tec-follow"

size_t schema_builtin_count(void);
const struct schema_kind *schema_builtin_at(size_t i);
/* NULL: not served. */
const struct schema_kind *schema_builtin_kind(
	const char *group, const char *version, const char *kind);

/* Fill in the defaults of kube-apiserver. */
void schema_builtin_default(const struct schema_kind *k, struct json_object *o);
/* Add causes for missing and invalid members, after the defaults. was NULL: the object is new. For
 * an update, also for members that must not change: data of an immutable Secret or ConfigMap, type
 * of a Secret, roleRef of a RoleBinding, and an Event of events.k8s.io except its series. */
void schema_builtin_check(const struct schema_kind *k, struct json_object *was,
	struct json_object *o, struct schema_causes *causes);

#endif
