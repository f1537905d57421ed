/* SPDX-License-Identifier: MIT */
/*
 * Changes of an object by its schema: unknown members are dropped, and known ones that are null.
 * The recursion is as deep as the object, which its parser has limited.
 */
#include "config.h"

#include "tec/schema/structural.h"

#include <string.h>

#include "schema_internal.h"
#include "tec/base/json.h"

struct prune {
	struct strbuf path;
	struct schema_texts *unknown;
};

/* Report the path of a dropped member, as kube-apiserver names it in a warning. */
static void note(struct prune *p, const char *name)
{
	schema_texts_add(p->unknown, "%s%s%s", strbuf_str(&p->path), p->path.len ? "." : "", name);
}

static bool is_one_of(const char *name, const char *const *list)
{
	for (; *list; list++)
		if (str_eq(name, *list))
			return true;
	return false;
}

/* Drop all members that are not in the list, and report them. */
static void keep_only(struct prune *p, struct json_object *o, const char *const *names)
{
	json_each (o, name, v) {
		if (is_one_of(name, names))
			continue;
		note(p, name);
		json_drop(o, name);
	}
}

/* The elements of a list in metadata have a fixed set of members, too. */
static void prune_elements(
	struct prune *p, struct json_object *meta, const char *list, const char *const *names)
{
	struct json_object *a = json_get_arr(meta, list);
	size_t before = schema_path_add(&p->path, list);

	for (size_t i = 0; i < json_len(a); i++) {
		size_t here = schema_path_index(&p->path, i);

		keep_only(p, json_at(a, i), names);
		schema_path_cut(&p->path, here);
	}
	schema_path_cut(&p->path, before);
}

/* Prune metadata: ObjectMeta is the same for every kind, and no schema of a CRD describes it. */
static void prune_metadata(struct prune *p, struct json_object *meta)
{
	static const char *const names[] = {"annotations", "creationTimestamp",
		"deletionGracePeriodSeconds", "deletionTimestamp", "finalizers", "generateName",
		"generation", "labels", "managedFields", "name", "namespace", "ownerReferences",
		"resourceVersion", "selfLink", "uid", NULL};
	static const char *const owner[] = {
		"apiVersion", "blockOwnerDeletion", "controller", "kind", "name", "uid", NULL};
	static const char *const managed[] = {"apiVersion", "fieldsType", "fieldsV1", "manager",
		"operation", "subresource", "time", NULL};
	size_t before = schema_path_add(&p->path, "metadata");

	keep_only(p, meta, names);
	prune_elements(p, meta, "ownerReferences", owner);
	prune_elements(p, meta, "managedFields", managed);
	schema_path_cut(&p->path, before);
}

/* Prune a value. Without a schema nothing is known, so every member is dropped. */
static void prune(
	struct prune *p, struct json_object *v, const struct schema_node *s, bool is_whole)
{
	json_each (v, name, member) {
		const struct schema_node *child = schema_node_member(s, name);
		size_t before;

		if (is_whole && str_eq(name, "metadata")) {
			prune_metadata(p, member);
		} else if (is_whole && (str_eq(name, "apiVersion") || str_eq(name, "kind"))) {
			continue;
		} else if (!child) {
			note(p, name);
			json_drop(v, name);
		} else if (!member) {
			json_drop(v, name);
		} else {
			before = schema_path_add(&p->path, name);
			prune(p, member, child, false);
			schema_path_cut(&p->path, before);
		}
	}
	if (!json_object_is_type(v, json_type_array))
		return;
	for (size_t i = 0; i < json_len(v); i++) {
		size_t before = schema_path_index(&p->path, i);

		prune(p, json_at(v, i), schema_node_element(s), false);
		schema_path_cut(&p->path, before);
	}
}

/* Sorted, since clients show the paths as warnings in this order. */
void schema_prune(const struct schema_node *s, struct json_object *o, struct schema_texts *unknown)
{
	struct prune p = {STRBUF_INIT, unknown};

	prune(&p, o, s, true);
	strbuf_fini(&p.path);
	schema_texts_sort(unknown);
}
