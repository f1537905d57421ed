/* SPDX-License-Identifier: MIT */
/*
 * Who may write Roles and RoleBindings gives nobody, himself included, what he does not have: a Role
 * may name, and a RoleBinding may give, only what its writer may do in that namespace, unless he has
 * the verb escalate (for the Role) or bind (for the role that is bound). Members of system:masters
 * have everything already.
 */
#ifndef TEC_APISTORE_ESCALATE_H
#define TEC_APISTORE_ESCALATE_H

#include "tec/apistore/rights.h"

/* Who asks, and where his roles are read. */
struct apistore_asker {
	struct apistore_user user;
	const struct apistore_roles *roles; /* borrowed */
};

/*
 * What of the rules (a list of PolicyRules) the user does not hold in ns, in kube-apiserver's words;
 * the caller frees. NULL: he holds it all.
 */
char *apistore_escalate_missing(
	const struct apistore_asker *asker, const char *ns, struct json_object *rules);
/* His right to do so all the same. verb: "escalate" or "bind"; resource: "roles", "clusterroles". */
bool apistore_escalate_allowed(const struct apistore_asker *asker, const char *verb,
	const char *resource, const char *ns, const char *name);

#endif
