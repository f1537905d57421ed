/* SPDX-License-Identifier: MIT */
/*
 * Authorization. Members of system:masters have full access. A RoleBinding grants its subjects one
 * of three fixed ClusterRoles in its namespace: cluster-admin (everything but writing
 * RoleBindings), view (read everything but Secrets), or tec-follow (view and Secrets, for an
 * operator that follows this one). Every authenticated user may review his own access and read the
 * discovery documents.
 */
#ifndef TEC_APIREQ_RIGHTS_H
#define TEC_APIREQ_RIGHTS_H

#include <json-c/json.h>
#include <stdbool.h>

#include "tec/store/objects.h"
#include "tec/apireq/user.h"

/* One action to authorize. Strings are "" where they do not apply, never NULL. */
struct apireq_act {
	const char *verb; /* get list watch create update patch delete deletecollection */
	const char *group, *resource, *sub, *ns, *name;
	const char *path; /* a non-resource path; all other members but verb are then "" */
};

/* Is this one of the three roles? kind and name may be NULL. */
bool apireq_rights_is_role(const char *kind, const char *name);
/* Is the action allowed? If the database fails, RoleBindings grant nothing. */
bool apireq_rights_allow(
	struct store_objects *s, const struct apireq_user *u, const struct apireq_act *act);
/* The message of a 403, in kube-apiserver's words; the caller frees it. */
char *apireq_rights_refusal(const struct apireq_user *u, const struct apireq_act *act);
/* The status of a SelfSubjectRulesReview for a namespace; the caller puts it. */
struct json_object *apireq_rights_rules(
	struct store_objects *s, const struct apireq_user *u, const char *ns);

#endif
