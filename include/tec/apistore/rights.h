/* SPDX-License-Identifier: MIT */
/*
 * Who may do what. Members of system:masters may do all. A ServiceAccount may do what Roles give it
 * that RoleBindings of the same namespace bind to it, and what the built-in ClusterRole tec-follow
 * gives, when a RoleBinding names that: reading what another operator follows. Everybody who is known
 * may ask about himself and read what the API consists of.
 */
#ifndef TEC_APISTORE_RIGHTS_H
#define TEC_APISTORE_RIGHTS_H

#include <json-c/json.h>
#include <stdbool.h>

#include "tec/apistore/user.h"

#define APISTORE_FOLLOW_ROLE "tec-follow"

/* One thing to do; all strings "" where there is none, never NULL. */
struct apistore_act {
	const char *verb; /* get list watch create update patch delete deletecollection */
	const char *group, *resource, *sub, *ns, *name;
	const char *path; /* not about an object, then the rest is "" */
};

/* Where roles are read from: a Role, or the RoleBindings of a namespace (a list). The caller puts what
 * they return; NULL: there is none. */
struct apistore_roles {
	struct json_object *(*role)(void *arg, const char *ns, const char *name);
	struct json_object *(*bindings)(void *arg, const char *ns);
	void *arg;
};

bool apistore_rights_allow(const struct apistore_user *u, const struct apistore_act *act,
	const struct apistore_roles *roles);
/* What a Role, or the ClusterRole that is built in, gives as a list of rules, which the
 * caller puts. NULL: there is no such role. */
struct json_object *apistore_rights_of_role(
	const char *kind, const char *name, const char *ns, const struct apistore_roles *roles);
/* The message of the refusal, in kube-apiserver's words. The caller frees. */
char *apistore_rights_refusal(const struct apistore_user *u, const struct apistore_act *act);
/* The status of a SelfSubjectRulesReview for a namespace. The caller puts it. */
struct json_object *apistore_rights_rules(
	const struct apistore_user *u, const char *ns, const struct apistore_roles *roles);

#endif
