/* SPDX-License-Identifier: MIT */
/*
 * Who may do what. Members of system:masters have full access. A RoleBinding gives its subjects one
 * of three fixed ClusterRoles in its namespace: cluster-admin (all but writing RoleBindings), view
 * (read all but Secrets), tec-follow (view and Secrets: what another operator follows). Every known
 * user may ask what he himself may do, and what the API consists of.
 */
#ifndef TEC_APISTORE_RIGHTS_H
#define TEC_APISTORE_RIGHTS_H

#include <json-c/json.h>
#include <stdbool.h>

#include "tec/apistore/objects.h"
#include "tec/apistore/user.h"

/* One thing to do; all strings "" where there is none, never NULL. */
struct apistore_act {
	const char *verb; /* get list watch create update patch delete deletecollection */
	const char *group, *resource, *sub, *ns, *name;
	const char *path; /* not about an object, then the rest is "" */
};

/* Whether a RoleBinding to it gives anything; kind and name may be NULL. */
bool apistore_rights_is_role(const char *kind, const char *name);
/* s: where the RoleBindings are. When the database fails, they give nothing. */
bool apistore_rights_allow(
	struct apistore_objects *s, const struct apistore_user *u, const struct apistore_act *act);
/* The message of the refusal. The caller frees. */
char *apistore_rights_refusal(const struct apistore_user *u, const struct apistore_act *act);
/* The status of a SelfSubjectRulesReview for a namespace. The caller puts it. */
struct json_object *apistore_rights_rules(
	struct apistore_objects *s, const struct apistore_user *u, const char *ns);

#endif
