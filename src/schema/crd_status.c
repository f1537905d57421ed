/* SPDX-License-Identifier: MIT */
/*
 * Names are taken by the definitions of one group: resources (plural, singular, short names) and
 * kinds (kind, listKind) are two sets. Who has a name keeps it; who asks for it later waits.
 */
#include "config.h"

#include "tec/schema/crd_status.h"

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"

/* ---- conditions */

static struct json_object *condition_of(struct json_object *o, const char *type)
{
	struct json_object *a = json_get_arr(o, "status/conditions");

	for (size_t i = 0; a && i < json_object_array_length(a); i++)
		if (str_eq(json_get_str(json_object_array_get_idx(a, i), "type"), type))
			return json_object_array_get_idx(a, i);
	return NULL;
}

static bool is_condition(struct json_object *o, const char *type, const char *status)
{
	return str_eq(json_get_str(condition_of(o, type), "status"), status);
}

static struct json_object *status_of(struct json_object *o)
{
	struct json_object *status = json_get_obj(o, "status");

	if (!status)
		json_add(o, "status", status = json_obj());
	return status;
}

/* Its time is the one of its last change from true to false or back. */
static void set_condition(struct json_object *o, const char *type, bool value, const char *reason,
	const char *message, const char *now)
{
	struct json_object *status = status_of(o), *c = condition_of(o, type);
	const char *text = value ? "True" : "False";

	if (!c) {
		if (!json_get_arr(status, "conditions"))
			json_add(status, "conditions", json_arr());
		json_push(json_get_arr(status, "conditions"), c = json_obj());
	}
	if (!str_eq(json_get_str(c, "status"), text))
		json_add_str(c, "lastTransitionTime", now);
	json_add_str(c, "message", message);
	json_add_str(c, "reason", reason);
	json_add_str(c, "status", text);
	json_add_str(c, "type", type);
}

/* ---- names */

struct naming {
	struct json_object *o, *others, *had, *wanted;
	struct json_object *given; /* acceptedNames as they will be; owned */
	const char *reason;        /* of the last name that another definition has; NULL: none */
	struct strbuf message;
};

static bool stands_in(struct json_object *list, const char *name)
{
	for (size_t i = 0; list && i < json_object_array_length(list); i++)
		if (str_eq(json_object_get_string(json_object_array_get_idx(list, i)), name))
			return true;
	return false;
}

static bool has_name(struct json_object *names, const char *name, bool kinds)
{
	if (kinds)
		return str_eq(json_get_str(names, "kind"), name) ||
		       str_eq(json_get_str(names, "listKind"), name);
	return str_eq(json_get_str(names, "plural"), name) ||
	       str_eq(json_get_str(names, "singular"), name) ||
	       stands_in(json_get_arr(names, "shortNames"), name);
}

static bool is_used(const struct naming *n, const char *name, bool kinds)
{
	const char *self = json_get_str(n->o, "metadata/name"),
		   *group = json_get_str(n->o, "spec/group");
	bool used = has_name(n->had, name, kinds); /* by itself, as something else */

	for (size_t i = 0; !used && n->others && i < json_object_array_length(n->others); i++) {
		struct json_object *other = json_object_array_get_idx(n->others, i);

		used = !str_eq(json_get_str(other, "metadata/name"), self) &&
		       str_eq(json_get_str(other, "spec/group"), group) &&
		       has_name(json_get(other, "status/acceptedNames"), name, kinds);
	}
	return used;
}

static void take_name(struct naming *n, const char *member, bool kinds, const char *reason)
{
	const char *want = json_get_str(n->wanted, member), *had = json_get_str(n->had, member);
	bool required = str_eq(member, "plural") || str_eq(member, "kind");

	if (!want || str_eq(want, had) || !is_used(n, want, kinds)) {
		json_add_str(n->given, member, want);
		return;
	}
	json_add_str(n->given, member, had ? had : required ? "" : NULL);
	n->reason = reason;
	strbuf_reset(&n->message);
	strbuf_addf(&n->message, "\"%s\" is already in use", want);
}

static void keep_list(struct naming *n, struct json_object *from, const char *member)
{
	struct json_object *list = json_get_arr(from, member);

	if (list)
		json_add(n->given, member, json_copy(list));
}

/* All of them or none. */
static void take_short_names(struct naming *n)
{
	struct json_object *had = json_get_arr(n->had, "shortNames"),
			   *want = json_get_arr(n->wanted, "shortNames");
	cleanup_strbuf struct strbuf why = STRBUF_INIT;
	size_t bad = 0;

	for (size_t i = 0; want && i < json_object_array_length(want); i++) {
		const char *name = json_object_get_string(json_object_array_get_idx(want, i));

		if (!stands_in(had, name) && is_used(n, name, false))
			strbuf_addf(&why, "%s\"%s\" is already in use", bad++ ? ", " : "", name);
	}
	keep_list(n, bad ? n->had : n->wanted, "shortNames");
	if (bad == 0)
		return;
	n->reason = "ShortNamesConflict";
	strbuf_reset(&n->message);
	strbuf_addf(&n->message, bad > 1 ? "[%s]" : "%s", strbuf_str(&why));
}

void schema_crd_accept(struct json_object *o, struct json_object *others, const char *now)
{
	struct naming n = {o, others, json_get_obj(o, "status/acceptedNames"),
		json_get_obj(o, "spec/names"), json_obj(), NULL, STRBUF_INIT};

	take_name(&n, "plural", false, "PluralConflict");
	take_name(&n, "singular", false, "SingularConflict");
	take_short_names(&n);
	take_name(&n, "kind", true, "KindConflict");
	take_name(&n, "listKind", true, "ListKindConflict");
	keep_list(&n, n.wanted, "categories");
	set_condition(o, "NamesAccepted", !n.reason, n.reason ? n.reason : "NoConflicts",
		n.reason ? strbuf_str(&n.message) : "no conflicts found", now);
	if (!n.reason)
		set_condition(o, "Established", true, "InitialNamesAccepted",
			"the initial names have been accepted", now);
	else if (!condition_of(o, "Established"))
		set_condition(
			o, "Established", false, "NotAccepted", "not all names are accepted", now);
	json_add(status_of(o), "acceptedNames", n.given);
	strbuf_fini(&n.message);
}

/* ---- what follows from them */

bool schema_crd_waits(struct json_object *o)
{
	return is_condition(o, "NamesAccepted", "False");
}

bool schema_crd_is_served(struct json_object *o)
{
	return !schema_crd_waits(o) || is_condition(o, "Established", "True");
}

void schema_crd_ending(struct json_object *o, bool done, const char *now)
{
	set_condition(o, "Terminating", !done,
		done ? "InstanceDeletionCompleted" : "InstanceDeletionInProgress",
		done ? "removed all instances" : "CustomResource deletion is in progress", now);
}
