/* SPDX-License-Identifier: MIT */
/* What a Role or RoleBinding would give, held against what its writer has. A write that changes
 * nothing but what the garbage collector needs is not judged, so that nobody's loss of a right keeps
 * an object from going. */
#include "config.h"

#include "write.h"

#include "tec/base/json.h"
#include "tec/base/mem.h"

static void drop_gc(struct json_object *o)
{
	static const char *const names[] = {"ownerReferences", "finalizers", "managedFields"};
	struct json_object *m = json_get_obj(o, "metadata");

	for (size_t i = 0; m && i < ARRAY_LEN(names); i++)
		json_object_object_del(m, names[i]);
}

static bool only_gc(const struct apistore_write *w, struct json_object *o)
{
	cleanup_json struct json_object *was = NULL, *now = NULL;

	if (!w->was)
		return false;
	was = json_copy(w->was);
	now = json_copy(o);
	drop_gc(was);
	drop_gc(now);
	return json_object_equal(was, now);
}

static int refuse(struct apistore_answer *refused, struct apistore_answer a)
{
	*refused = a;
	return -1;
}

static int check_rules(
	const struct apistore_write *w, struct json_object *rules, struct apistore_answer *refused)
{
	cleanup_free char *why = apistore_escalate_missing(w->asker, w->key.ns, rules);

	return why ? refuse(refused, apistore_status_forbidden(w->t, "%s", why)) : 0;
}

static int check_role(
	const struct apistore_write *w, struct json_object *o, struct apistore_answer *refused)
{
	/* As every right about one name: who creates has not named it yet. */
	const char *name = w->create ? "" : w->key.name;

	if (only_gc(w, o) ||
		apistore_escalate_allowed(w->asker, "escalate", "roles", w->key.ns, name))
		return 0;
	return check_rules(w, json_get_arr(o, "rules"), refused);
}

static int check_binding(
	const struct apistore_write *w, struct json_object *o, struct apistore_answer *refused)
{
	const char *kind = json_get_str(o, "roleRef/kind"), *name = json_get_str(o, "roleRef/name");
	bool cluster = str_eq(kind, "ClusterRole");
	cleanup_json struct json_object *rules = NULL;
	const char *roles = cluster ? "clusterroles" : "roles";
	struct apistore_target role = *w->t; /* kube-apiserver says so, not roles */

	if (!kind || !name || only_gc(w, o) || /* what lacks a role is refused for that */
		apistore_escalate_allowed(w->asker, "bind", roles, w->key.ns, name))
		return 0;
	role.name = (char *)name;
	rules = apistore_rights_of_role(kind, name, w->key.ns, w->asker->roles);
	if (!rules)
		return refuse(refused, apistore_status_absent(&role));
	return check_rules(w, rules, refused);
}

int apistore_grant_check(
	const struct apistore_write *w, struct json_object *o, struct apistore_answer *refused)
{
	if (!w->asker || apistore_user_in(&w->asker->user, APISTORE_MASTERS))
		return 0;
	if (str_eq(w->t->qualified, "roles.rbac.authorization.k8s.io"))
		return check_role(w, o, refused);
	if (str_eq(w->t->qualified, "rolebindings.rbac.authorization.k8s.io"))
		return check_binding(w, o, refused);
	return 0;
}
